"""No output takes the place of an input or of another output, and none is read again: by whatever name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acep_approx import compile_query
from acep_approx.errors import UsageError
from acep_approx.events import follow, open_source
from tests.command_line import acep
from tests.processes import as_started

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
EVENTS = "ts,type\n1,A\n2,B\n"
SKIP = ["--on-malformed", "skip"]
RULES = """TABLE room (id text, n int DEFAULT 0, KEY (id))
RULE r ON PATTERN A a WITHIN 1 DO UPSERT room SET n = old.n + 1 AT (a.type) END"""
BUDGET = ["--budget", "5 runs", "--engine", "runs"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text(EVENTS)
    (tmp_path / "q.acep").write_text(QUERY)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text(EVENTS)
    for name in ("e.csv.part", "rooms.csv", "calls/r.jsonl", "calls/room.jsonl", "cp/checkpoint", "s.db-wal"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(EVENTS)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "q.acep").write_text(QUERY)
    os.link("e.csv", "hard.csv")
    (tmp_path / "soft.csv").symlink_to("e.csv")
    return tmp_path


def untouched():
    return {path: path.read_text() for path in sorted(Path().rglob("*")) if path.is_file()}


def names():
    return sorted(path.name for path in Path("in").iterdir())


def refused(*arguments, code, stdin=b""):
    before = untouched()
    done = acep(*arguments, stdin=stdin, code=2)
    assert code in done.stderr
    assert untouched() == before


@pytest.mark.parametrize("name", ["e.csv", "./in/../e.csv", "hard.csv", "soft.csv"])
@pytest.mark.parametrize("option", ["-o", "--page", "--log", "--rejects"])
def test_an_output_is_no_input(option, name):
    refused("run", QUERY, "e.csv", *SKIP, option, name, code="ACEP-U013")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "@q.acep", "e.csv", "-o", "q.acep", "--format", "csv"],
        ["run", "q.acep", "e.csv", "--page", "q.acep"],
        ["run", QUERY, "in", "-o", "in/1.csv"],
        ["run", QUERY, "in/*.csv", "--page", "in/1.csv"],
        ["run", QUERY, "in", "--follow", "--until-idle", "0 s", "-o", "in/1.csv"],
        ["run", QUERY, "e.csv", "--follow", "--until-idle", "0 s", "-o", "hard.csv"],
        ["run", QUERY, "e.csv", *BUDGET, "--report", "e.csv"],
        ["run", QUERY, "e.csv", *BUDGET, "--shed", "hard.csv"],
        ["look", "e.csv", "--log", "e.csv"],
        ["why", QUERY, "e.csv", "--log", "soft.csv"],
        ["check", QUERY, "--input", "e.csv", "--log", "e.csv"],
        ["explain", "@q.acep", "--log", "q.acep"],
        ["tune", QUERY, "e.csv", "--plot", "e.csv"],
        ["run", QUERY, "e.csv.part", "--input-format", "csv", *SKIP, "--rejects", "e.csv"],
        ["run", "--queries", "queries", "e.csv", "-o", "queries/q.acep", "--format", "csv"],
        ["run", "--queries", "queries", "e.csv", "-o", "e.csv"],
        ["run", RULES, "e.csv", "--table", "room=rooms.csv", "--calls", "calls/../rooms.csv"],
        ["run", RULES, "calls/r.jsonl", "-o", "calls", "--format", "jsonl"],
        ["run", RULES, "calls/room.jsonl", "--changes", "calls", "--format", "jsonl"],
        ["run", QUERY, "e.csv", "--kafka-option", "@q.acep", "--log", "q.acep"],
        ["run", QUERY, "cp/checkpoint", "--input-format", "csv", "--follow", "--checkpoint", "cp"],
        ["run", RULES, "s.db-wal", "--input-format", "csv", "--store", "s.db"],
        ["run", QUERY, "e.csv", *BUDGET, "--history", "queries", "--page", "queries/q.acep"],
    ],
)
def test_it_is_so_for_every_command_and_input(arguments):
    refused(*arguments, code="ACEP-U013")


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "x.csv", "--page", "x.csv"],
        ["-o", "x.csv", "--page", "in/../x.csv"],
        ["-o", "x.csv", "--log", "x.csv"],
        ["-o", "x.csv", *SKIP, "--rejects", "x.csv"],
        ["--page", "x.csv", *SKIP, "--rejects", "x.csv"],
        ["--on-late", "skip", "--late", "x.csv", *SKIP, "--rejects", "x.csv"],
        ["-o", "x.csv", "--page", "x.csv.part"],
        ["-o", "new-soft", "--format", "csv", "--page", "new"],
        ["-o", "old", "--format", "csv", "--page", "old-hard"],
        [*BUDGET, "--report", "x.html", "--page", "x.html"],
        ["-o", "/dev/shm/../shm/x-of-acep.csv", "--page", "/dev/shm/x-of-acep.csv"],
    ],
)
def test_two_outputs_are_two_files(arguments, folder):
    (folder / "new-soft").symlink_to("new")
    (folder / "old").write_text("")
    os.link("old", "old-hard")
    refused("run", QUERY, "e.csv", *arguments, code="ACEP-U017")


def test_devices_pipes_and_levels_of_the_log_are_nobodys_place():
    acep("run", QUERY, "e.csv", "-o", "/dev/null", "--format", "csv", "--page", "/dev/null", "--log", "debug")


def test_standard_streams_are_places_too(folder):
    environment = as_started(Q=QUERY)
    program = f"acep() {{ '{sys.executable}' -c 'from acep_approx.cli.main import main; main()' \"$@\"; }}; "
    for line in (
        'acep run "$Q" e.csv >> hard.csv',
        'acep run "$Q" - < e.csv -o soft.csv',
        'acep run "$Q" in --follow --until-idle "0 s" > in/2.jsonl',
        'acep run "$Q" e.csv -o x.csv 2>> soft.csv',
    ):
        done = subprocess.run(["bash", "-c", program + line], env=environment, capture_output=True, check=False)
        assert done.returncode == 2
        assert b"ACEP-U013" in done.stderr or "2>>" in line
        assert b"standard output would go to 'in/2.jsonl'" in done.stderr or "2.jsonl" not in line
    assert Path("e.csv").read_text().startswith(EVENTS)
    assert not Path("in/2.jsonl").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "in/out.jsonl"],
        ["-o", "in/../in/out.csv"],
        ["-o", "alias/out.csv"],
        [*SKIP, "--rejects", "in/r.jsonl"],
        ["--watermark", "1", "--late", "in/late.csv"],
        ["--page", "in/page.json"],
    ],
)
def test_no_output_is_read_with_a_followed_folder(arguments, folder):
    (folder / "alias").symlink_to("in")
    refused("run", QUERY, "in", "--follow", "--until-idle", "0 s", *arguments, code="ACEP-U193")
    assert names() == ["1.csv"]


@pytest.mark.parametrize(
    ("place", "output"),
    [
        ("in", "in/out.csv"),
        ("in", "in/deeper/out.jsonl"),
        (".", "out.parquet"),
        ("in/../in", "alias/out.tsv"),
        ("in/*.csv", "in/out.csv"),
        ("i[n]", "in/out.csv"),
    ],
)
def test_nor_where_the_next_run_would_read_it(place, output, folder):
    (folder / "alias").symlink_to("in")
    (folder / "in" / "deeper").mkdir()
    if place == "i[n]":
        (folder / "i[n]").symlink_to("in")
    refused("run", QUERY, place, "-o", output, code="ACEP-U193")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", RULES, "in", "-o", "in/found"],
        ["run", RULES, "in", "--changes", "in/found"],
        ["run", QUERY, "in", "--output", "compressed", "-o", "in/found"],
        ["run", QUERY, "in", "--spark", "-o", "in/found"],
        ["run", QUERY, "in", *BUDGET, "--learn", "--save", "in/known"],
        ["train", QUERY, "in", "-o", "in/known"],
        ["run", QUERY, "in", "--spark", "--stream", "-o", "out", "--checkpoint", "state", "--log", "in/log.csv"],
    ],
)
def test_nor_a_folder_of_results(arguments):
    refused(*arguments, code="ACEP-U193")
    assert "begin with _: in/_" in acep(*arguments, code=2).stderr


def test_a_log_among_lines_that_are_read(folder):
    lines = ["run", QUERY, "logs", "--line-format", "{ts} {type}", "--log", "logs/run.log"]
    (folder / "logs").mkdir()
    (folder / "logs" / "a.log").write_text("1 A\n2 B\n")
    refused(*lines, code="ACEP-U193")
    acep("run", QUERY, "logs", "--line-format", "{ts} {type}", "--log", "logs/_run.log")


def test_what_is_not_read_may_lie_in_a_folder_that_is():
    more = ["-o", "in/_out.csv", "--page", "in/page.html", "--log", "in/run.log"]
    for _ in range(2):
        assert "1 match" in acep("run", QUERY, "in", *more).stderr
    acep("run", QUERY, "in/1.csv", "-o", "in/out.csv")
    acep("run", QUERY, "e*.csv", "-o", "out.csv")


def test_what_is_not_read_may_lie_in_a_followed_folder():
    more = ["-o", "in/_out.csv", "--page", "in/page.html", "--log", "in/run.log", "--checkpoint", "in/cp"]
    for _ in range(2):
        done = acep("run", QUERY, "in", "--follow", "--until-idle", "0 s", *more)
    assert "0 events read" in done.stderr
    assert names() == ["1.csv", "_out.csv", "cp", "page.html", "run.log"]


def code_of(call, *arguments, **options):
    with pytest.raises(UsageError) as caught:
        list(call(*arguments, **options))
    return caught.value.code


def test_from_python_too():
    query = compile_query(QUERY)
    for how in ({"on_malformed": "skip", "rejects": "in/r.jsonl"}, {"watermark": 1, "late": "in/late.csv"}):
        assert code_of(query.follow, "in", until_idle=0, **how) == "ACEP-U193"
    assert code_of(open_source, "in", on_malformed="skip", rejects="in/r.jsonl") == "ACEP-U193"
    for place, target in (("e.csv", "hard.csv"), ("e.csv", "soft.csv"), ("e.csv.part", "e.csv")):
        rejects = {"on_malformed": "skip", "rejects": target, "format": "csv"}
        assert code_of(query.follow, place, until_idle=0, **rejects) == "ACEP-U106"
        assert code_of(open_source, place, **rejects) == "ACEP-U106"
        assert code_of(query.follow, place, until_idle=0, watermark=1, late=target, format="csv") == "ACEP-U114"
        assert code_of(open_source, place, on_late="skip", late=target, format="csv") == "ACEP-U114"
    both = {"on_malformed": "skip", "rejects": "r.jsonl", "on_late": "skip", "late": "in/../r.jsonl"}
    assert code_of(open_source, "e.csv", **both) == "ACEP-U114"


def test_pages_and_reports_from_python():
    query = compile_query(QUERY)
    before = untouched()
    for place, target in (("e.csv", "hard.csv"), ("in", "in/1.csv"), (["e.csv", "in"], "in/1.csv")):
        assert code_of(query.match(place).page, target) == "ACEP-U013"
        assert code_of(query.match_within(place, "9 runs").report, target) == "ACEP-U013"
    assert code_of(query.match(follow("e.csv", until_idle=0)).page, "hard.csv") == "ACEP-U013"
    assert untouched() == before
    query.match("e.csv").page("page.html")
