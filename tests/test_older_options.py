"""An option means one thing in all commands; what was spelled otherwise once still works."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import typer

from acep_approx.cli.main import app
from acep_approx.cli.options.older import respelled
from tests.command_line import acep

QUERY = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5"
EVENTS = "ts,type,user\n1,A,u\n2,B,u\n3,A,v\n9,B,v\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text(EVENTS)
    return tmp_path


def test_an_option_means_one_thing() -> None:
    options = defaultdict(set)
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for param in command.params:
            for spelled in param.opts if param.param_type_name == "option" else ():
                options[spelled].add((param.metavar or "").upper() if spelled != "-o" else "")
        assert not {"--at", "--input"} & options.keys(), name
    assert {spelled: options[spelled] for spelled in ("--around", "--key", "--key-column")} == {
        "--around": {"TS"},
        "--key": {"VALUE"},
        "--key-column": {"COLUMN"},
    }
    assert {"--output", "-o"} <= options.keys()


def test_output_with_the_name_of_a_file(here: Path) -> None:
    done = acep("run", QUERY, "e.csv", "--key-column", "user", "--output", "found.csv")
    assert "--output says which kind of result; the file is taken as -o found.csv" in done.stderr
    assert done.stdout == ""
    assert Path("found.csv").read_text().splitlines()[1].startswith("u,0,1,2")
    acep("run", QUERY, "e.csv", "--key-column", "user", "--output=./points.jsonl", "--output", "points", "-q")
    assert Path("points.jsonl").read_text().count("\n") == 1
    wrong = acep("run", QUERY, "e.csv", "--output", "fount", code=2).stderr
    assert "'matches'" in wrong


def test_older_spellings(here: Path) -> None:
    now = acep("run", QUERY, "e.csv", "--key-column", "user")
    older = acep("run", "--input", "e.csv", QUERY, "--key=user")
    assert older.stdout == now.stdout
    assert older.stderr.startswith("--key is called --key-column now: --key user still works\n")
    assert "--key" not in acep("run", QUERY, "e.csv", "--key", "user", "-q").stderr
    asked = [acep("why", QUERY, "e.csv", "--key-column", "user", at, "2", "--key", "u").stdout for at in TIMES]
    assert asked[0] == asked[1]
    assert "match" in asked[0]


TIMES = ("--around", "--at")


def test_what_stands_behind_two_dashes_is_no_option() -> None:
    known = ["--key-column", "--around"]
    assert respelled(["a", "--", "--key", "b"], known, takes_events=True) == (["a", "--", "--key", "b"], [])
    assert respelled(["a", "--key"], known, takes_events=True) == (["a", "--key"], [])
    assert respelled(["a", "--input", "b"], known, takes_events=False) == (["a", "--input", "b"], [])
