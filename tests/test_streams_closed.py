"""Standard streams that are closed, full, or have no reader, and terminals that know few characters: no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.patience import PATIENCE
from tests.processes import as_started

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
PROGRAM = f"'{sys.executable}' -c 'from acep_approx.cli.main import main; main()'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("streams")
    (made / "e.csv").write_text("ts,type\n1,A\n2,B\n")
    (made / "é.csv").write_text("ts,type,ä\n1,A,日本\n2,B,ö\n", encoding="utf-8")
    return made


def shell(folder, command, **more):
    """Run a line of the shell; ``acep`` and ``$Q`` stand for the program and a query."""
    environment = as_started(Q=QUERY, **more)
    line = f'set -o pipefail; acep() {{ {PROGRAM} "$@"; }}; {command}'
    command = ["bash", "-c", line]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=PATIENCE)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert b"Exception ignored" not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ('acep run "$Q" e.csv <&-', 0, "1 match"),
        ('acep run "$Q" - <&-', 2, "ACEP-U192"),
        ('acep run "$Q" e.csv >&-', 1, "ACEP-E001: standard output is closed"),
        ('acep run "$Q" e.csv -o out.csv >&-', 0, "1 match"),
        ("acep --help >&-", 1, "ACEP-E001"),
        ('acep run "$Q" e.csv 2>&-', 0, ""),
        ("acep look nofile 2>&-", 4, ""),
        ("acep --help >/dev/full", 75, "ACEP-E001: the system refuses"),
        ('acep run "$Q" e.csv --format table >/dev/full', 75, "ACEP-E001"),
        ('acep run "$Q" e.csv --log /dev/full', 75, "ACEP-E001"),
        ("acep look nofile 2>/dev/full", 4, ""),
        ("acep nothing 2>/dev/full", 2, ""),
        ("acep look e.csv | true", 0, ""),
        ('acep run "$Q" e.csv --format table | true', 0, ""),
        ("acep --help | true", 0, ""),
        ("acep look nofile 2>&1 | true", 4, ""),
    ],
)
def test_what_cannot_be_read_or_written_is_told_in_words(folder, command, code, said):
    found, _, words = shell(folder, command)
    assert found == code, words
    assert said in words


def test_a_file_takes_no_number_of_a_closed_stream(folder):
    assert shell(folder, 'acep run "$Q" e.csv -o safe.csv <&- >&- 2>&-')[0] == 0
    assert (folder / "safe.csv").read_text().splitlines()[0] == "errors,start,end,missing,a.ts,b.ts"


C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("how", [{"PYTHONIOENCODING": "ascii"}, C])
def test_a_terminal_of_few_characters_gets_escapes(folder, how):
    code, out, _ = shell(folder, "acep look é.csv --format json && acep look nö.csv 2>&1", **how)
    assert code == 4
    assert out.isascii()
    data, error, _ = out.split("\n", 2)
    assert "ä" in [column["name"] for column in json.loads(data)["columns"]]
    assert error.endswith(".csv: there is no such file")


def test_a_name_of_other_bytes_is_a_name(folder):
    name = os.fsdecode(b"x\xff.csv")
    (folder / name).write_text("ts,type\n1,A\n2,B\n")
    code, _, _ = shell(folder, 'acep run "$Q" $\'x\\xff.csv\' -o $\'y\\xff.jsonl\' --page p.html')
    assert code == 0
    assert (folder / os.fsdecode(b"y\xff.jsonl")).exists()
    code, _, words = shell(folder, 'acep run "$Q" e.csv --time $\'\\xff\'')
    assert code == 4
    assert "'\\udcff'" in words
