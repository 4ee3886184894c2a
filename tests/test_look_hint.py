"""Errors that one understands when one sees the columns point to ``acep look``; others do not."""

from __future__ import annotations

import pytest

from tests.command_line import acep, csv_text

QUERY = "PATTERN SEQ(Packed p, Delivered d) WITHIN 12 h"


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (QUERY, ["--time", "when"]),
        (QUERY, ["--time", "kg", "--sort"]),
        (QUERY, ["--unit", "s"]),
        (QUERY.replace("WITHIN", "WHERE p.weight > 1 WITHIN"), []),
        (QUERY.replace("WITHIN", "WHERE p.kg = 'heavy' WITHIN"), []),
        (QUERY.replace("WITHIN", "WHERE [box] WITHIN"), []),
    ],
)
def test_errors_about_columns_point_to_look(query, options, tmp_path):
    path = tmp_path / "my events.csv"
    path.write_text(csv_text())
    (code,) = {3, 4, 2} & {acep_code("run", query, str(path), *options)}
    said = acep("run", query, str(path), *options, code=code).stderr
    assert f"acep look '{path}' shows its columns" in said


def acep_code(*arguments: str) -> int:
    """The exit code of a command."""
    from typer.testing import CliRunner

    from acep_approx.cli.main import app

    return CliRunner().invoke(app, list(arguments)).exit_code


def test_errors_of_the_query_alone_do_not(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(csv_text())
    assert "acep look" not in acep("run", "PATTERN SEQ(Packed p", str(path), code=3).stderr


def test_what_look_cannot_open_it_does_not_show():
    assert "acep look" not in acep("run", QUERY, "nowhere.csv", code=4).stderr


def test_standard_input_is_gone_when_it_was_read():
    assert "acep look" not in acep("run", QUERY, "-", "--time", "when", stdin=csv_text().encode(), code=4).stderr


def test_look_does_not_point_to_itself(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(csv_text())
    assert "see:" not in acep("look", str(path), "--time", "when", code=4).stderr


def test_check_points_to_look(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(csv_text())
    said = acep("check", QUERY.replace("WITHIN", "WHERE p.weight > 1 WITHIN"), "--input", str(path), code=3).stderr
    assert f"see:  acep look {path} shows" in said
