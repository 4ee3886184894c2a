"""Errors that one understands when one sees the columns point to ``acep look``; others do not."""

from __future__ import annotations

import pytest

from acep_approx.shell import quoted
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


def test_a_role_in_no_column_is_told_with_the_columns_that_could_be_it(tmp_path):
    path = tmp_path / "shop.csv"
    rows = [f"{1_700_000_000_000 + 60_000 * at},u{at % 2},{kind}" for at, kind in enumerate(["in", "out"] * 4)]
    path.write_text("\n".join(["when_ms,user_id,action", *rows]))
    query, options = "PATTERN SEQ('in' a, 'out' b) WHERE [key] WITHIN 5 min", []
    for option, value in (
        ("--time when_ms --unit ms", "1700000000000, 1700000060000"),
        ("--key-column user_id", "u0, u1"),
        ("--type action", "in, out"),
    ):
        said = acep("run", query, str(path), *options, code=acep_code("run", query, str(path), *options))
        line = next(line for line in said.stderr.splitlines() if line.strip().startswith("try:"))
        assert f"try:  {option}  (" in line
        assert f": {value})" in line
        options += option.split()
    assert acep_code("run", query.replace("[key]", "[key] AND a.user_id = 'u0'"), str(path), *options) == 0


def test_the_one_cell_that_makes_a_column_text_is_shown_with_what_repairs_it(tmp_path):
    path = tmp_path / "dirty.csv"
    path.write_text("ts,type,v\n" + "".join(f"{at},A,{'n/k' if at == 25 else at}\n" for at in range(40)))
    query = "PATTERN A a WHERE a.v > 20 WITHIN 5"
    said = acep("run", query, str(path), code=3).stderr
    assert "1 of 40 values of 'v' is no number; the first is 'n/k', in row 25 (from 0)" in said
    for options in (["--null", "n/k"], ["--column-type", "v=float", "--on-malformed", "skip"]):
        assert " ".join(options) in said
        assert '"matches": 18' in acep("run", query, str(path), *options, "--output", "count").stdout
    path.write_text("ts,type,v\n" + "".join(f"{at},A,{'n/k' if at % 2 else at}\n" for at in range(40)))
    assert "is no number" not in acep("run", query, str(path), code=3).stderr


@pytest.mark.parametrize("cell", ["it's", "a\\b", "none, in row 3"])
def test_a_cell_with_quotes_or_signs_is_named_as_it_stands(tmp_path, cell):
    path = tmp_path / "dirty.csv"
    path.write_text("ts,type,v\n" + "".join(f'{at},A,"{cell if at == 25 else at}"\n' for at in range(40)))
    said = acep("run", "PATTERN A a WHERE a.v > 20 WITHIN 5", str(path), code=3).stderr
    assert f"--null {quoted(cell)}  (" in said
