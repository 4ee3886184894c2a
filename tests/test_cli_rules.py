"""``acep run|check|explain RULES``: a file of rules in the place of a query, with a store that goes on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from acep_approx import Wide, compile_rules
from tests.command_line import acep

RULES = """-- hygiene
TABLE status (hcw text, level text DEFAULT 'safe', n int DEFAULT 0, KEY (hcw))
TABLE room (id text, ward text, KEY (id)) STATIC
RULE warn ON
  PATTERN SEQ(EXIT a, ~(SANITIZE n), ENTER b)
  WHERE [hcw] AND a.location != b.location AND store.status[b.hcw].level = 'safe'
  WITHIN 45 s
  WHEN store.room[b.location].ward != 'closed'
DO UPDATE status SET level = 'warning', n = old.n + 1 AT (b.hcw); CALL badge(b.hcw, 'red') END
RULE calm ON
  PATTERN SEQ(MASK m, EXIT e)
  WHERE [hcw] AND store.status[e.hcw].level = 'warning'
  WITHIN 5 s
DO UPDATE status SET level = 'safe' AT (e.hcw) END
"""
EVENTS = """ts,type,hcw,location
2024-05-01T08:00:02Z,EXIT,ann,r1
2024-05-01T08:00:10Z,ENTER,ann,r2
2024-05-01T08:00:12Z,MASK,ann,r2
2024-05-01T08:00:15Z,EXIT,ann,r2
2024-05-01T08:00:20Z,ENTER,ann,r3
2024-05-01T08:00:30Z,EXIT,bob,r1
2024-05-01T08:00:32Z,ENTER,bob,r3
"""
ROOMS = "id,ward\nr1,a\nr2,a\nr3,closed\n"
QUIET = "RULE still ON PATTERN SEQ(A a, ~(B b)) WITHIN 5 DO CALL ring(a.x) END"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hygiene.acep").write_text(RULES)
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "rooms.csv").write_text(ROOMS)
    return tmp_path


def rows_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def lines(path: Path) -> list[dict]:
    return rows_of(path.read_text())


def run(*more: str, events: str = "events.csv", code: int = 0):
    return acep("run", "hygiene.acep", events, "--table", "room=rooms.csv", *more, code=code)


def test_rows_on_stdout_say_which_rule_they_are_of(here: Path) -> None:
    done = run("--bind", "row")
    assert [(row["rule"], row["a" if "a" in row else "m"], row.get("fired")) for row in rows_of(done.stdout)] == [
        ("warn", 0, True), ("warn", 3, False), ("warn", 0, False), ("warn", 5, False), ("calm", 2, None)
    ]  # fmt: skip
    told = done.stderr.splitlines()
    assert told[0].startswith("7 events read, 2 rules; ")
    assert told[1:] == ["5 matches: warn 4 (1 fired), calm 1", "2 changes: status 2", "1 call: badge 1"]
    assert run("-q").stderr == ""


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_folders_get_a_file_for_each_rule_and_table(here: Path, form: str) -> None:
    run("-o", "out", "--changes", "changes", "--calls", "calls.jsonl", "--format", form)
    assert sorted(path.name for path in (here / "out").iterdir()) == [f"calm.{form}", f"warn.{form}"]
    assert [path.name for path in (here / "changes").iterdir()] == [f"status.{form}"]
    if form == "parquet":
        out = compile_rules(RULES).run("events.csv", store={"room": "rooms.csv"}, bind=Wide())
        assert pq.read_table("out/warn.parquet").to_pylist() == out["warn"].to_pylist()
        assert pq.read_table("changes/status.parquet").to_pylist() == out.changes["status"].to_pylist()
    calls = lines(here / "calls.jsonl")
    assert [(call["id"], call["row"], json.loads(call["arguments"])) for call in calls] == [
        ("warn:1:0", 1, ["ann", "red"])
    ]


def test_files_are_parquet_unless_something_else_is_asked_for(here: Path) -> None:
    run("-o", "out")
    assert pq.read_table("out/calm.parquet").num_rows == 1


def test_a_run_that_was_broken_off_goes_on_and_all_is_as_in_one_run(here: Path) -> None:
    files = ("-o", "out", "--changes", "changes", "--calls", "calls.jsonl", "--store", "hygiene.db")
    (here / "first.csv").write_text("".join(EVENTS.splitlines(keepends=True)[:4]))
    run(*files, events="first.csv")
    done = run(*files)
    assert "4 events read, 3 events of an earlier run left out, 2 rules" in done.stderr
    assert "--table plays no role: hygiene.db has rows already" in done.stderr
    again = run(*files)
    assert "0 events read, 7 events of an earlier run left out" in again.stderr
    whole = ("-o", "out1", "--changes", "changes1", "--calls", "calls1.jsonl", "--format", "jsonl")
    run(*whole)
    for path in ("out/warn.jsonl", "out/calm.jsonl", "changes/status.jsonl", "calls.jsonl"):
        folder, _, name = path.rpartition("/")
        one = here / f"{folder}1" / name if folder else here / "calls1.jsonl"
        assert lines(here / path) == lines(one)
    with sqlite3.connect("hygiene.db") as db:
        assert db.execute("SELECT * FROM status").fetchall() == [("ann", "safe", 1)]


def test_what_was_not_written_when_a_run_broke_off_is_written_by_the_next(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("-o", "out", "--calls", "calls.jsonl", "--store", "hygiene.db")
    with monkeypatch.context() as broken:

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        broken.setattr("acep_approx.cli.runs.rules.RulesRun.take", interrupted)
        run(*files, code=130)
    assert not [*(here / "out").iterdir()]
    run(*files)
    assert [len(lines(here / "out" / f"{rule}.jsonl")) for rule in ("warn", "calm")] == [4, 1]
    assert len(lines(here / "calls.jsonl")) == 1


def test_a_line_that_was_not_written_to_its_end_is_cut_off(here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / "calm.jsonl").write_text('{"kept": 1}\n{"broken')
    run("-o", "out", "--store", "hygiene.db")
    assert [*map(len, lines(here / "out" / "calm.jsonl"))] == [1, 7]


def test_without_finish_matches_wait_for_their_windows(here: Path) -> None:
    (here / "still.acep").write_text(QUIET)
    (here / "a.csv").write_text("ts,type,x\n1,A,1\n")
    done = acep("run", "still.acep", "a.csv", "--store", "s.db", "--calls", "c.jsonl")
    assert done.stdout == ""
    assert "matches may wait for windows to close: --finish" in done.stderr
    done = acep("run", "still.acep", "a.csv", "--store", "s.db", "--calls", "c.jsonl", "--finish")
    assert [row["a.ts"] for row in rows_of(done.stdout)] == [1]
    assert [json.loads(call["arguments"]) for call in lines(here / "c.jsonl")] == [[1]]
    assert len(rows_of(acep("run", "still.acep", "a.csv").stdout)) == 1


def test_an_action_that_fails_leaves_what_came_before_in_the_store_and_the_files(here: Path) -> None:
    (here / "sum.acep").write_text(
        "TABLE t (id text, n int DEFAULT 0, KEY (id)) RULE r ON PATTERN A a WITHIN 1 "
        "DO UPDATE t SET n = old.n + a.x AT (a.id) END"
    )
    (here / "a.csv").write_text(f"ts,type,id,x\n1,A,u,1\n2,A,u,{2**63 - 1}\n3,A,u,1\n")
    told = acep("run", "sum.acep", "a.csv", "--store", "s.db", "-o", "out", "--changes", "changes", code=4).stderr
    assert "ACEP-R101" in told
    assert "row 1" in told
    assert [(row["row"], row["n"]) for row in lines(here / "changes" / "t.jsonl")] == [(0, 1)]
    assert [row["a.ts"] for row in lines(here / "out" / "r.jsonl")] == [1]
    acep("run", "sum.acep", "a.csv", "-o", "whole", code=4)
    assert not [*(here / "whole").iterdir()]


def test_conflicts_and_writes_without_a_row_are_counted(here: Path) -> None:
    (here / "odd.acep").write_text(
        "TABLE t (id text, n int, KEY (id)) RULE r ON PATTERN A a WITHIN 1 DO UPDATE t SET n = 1 AT (a.id);"
        "UPSERT t SET n = 2 AT (a.id); UPSERT t SET n = 3 AT (a.id) END"
    )
    (here / "a.csv").write_text("ts,type,id\n1,A,u\n")
    told = acep("run", "odd.acep", "a.csv").stderr
    assert "1 conflict: values written again, another way, for the same event" in told
    assert "1 write of rows that were not there" in told


def test_check_holds_rules_against_events(here: Path) -> None:
    assert acep("check", "hygiene.acep").stdout == "2 tables and 2 rules are right and can be run\n"
    assert "reads      ts, type, hcw, location" in acep("check", "hygiene.acep", "--input", "events.csv").stdout
    (here / "wrong.acep").write_text(RULES.replace("b.location]", "b.hour]"))
    told = acep("check", "wrong.acep", "--input", "events.csv", code=3).stderr
    assert "no attribute 'hour' (line 8, column 19)" in told
    (here / "wrong.acep").write_text(RULES.replace("store.room", "store.rom"))
    told = acep("check", "wrong.acep", code=3).stderr
    assert "ACEP-R007" in told
    assert "line 8" in told


def test_explain_tells_and_draws(here: Path) -> None:
    rules = compile_rules(RULES)
    assert acep("explain", "hygiene.acep").stdout == f"{rules.explain()}\n"
    for form in ("mermaid", "dot"):
        assert acep("explain", "hygiene.acep", "--format", form).stdout == f"{rules.graph(form)}\n"
    for form in ("json", "air"):
        assert f"--format {form} and active rules" in acep("explain", "hygiene.acep", "--format", form, code=2).stderr


@pytest.mark.parametrize(
    "more",
    [
        ("--expand",), ("--errors", "1"), ("--within", "5"), ("--engine", "runs"),
        ("--merge", "none"), ("--limit", "3"), ("--output", "count"), ("--output", "points"),
        ("--watermark", "5 s"), ("--emit", "early"), ("--op", "op"), ("--id", "id"),
        ("--start", "ts"), ("--format", "csv"), ("--format", "parquet", "--store", "s.db"),
        ("--finish",), ("--checkpoint-every", "5"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_does_not_go_with_rules_is_refused_by_name(here: Path, more: tuple[str, ...]) -> None:
    told = run(*more, code=2).stderr
    assert "ACEP-U064" in told
    assert " ".join(more[:2] if more[0] in ("--output", "--format") else more[:1]) in told
    assert not (here / "s.db").exists()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--budget", "a lot"), "ACEP-U030"),
        (("--history", "h"), "ACEP-U040"),
        (("--shed-rules", "alike"), "ACEP-U040"),
        (("--table", "rooms.csv"), "ACEP-U076"),
        (("--table", "room=rooms.csv"), "ACEP-U076"),
        (("--table", "status=rooms.csv"), "ACEP-R110"),
        (("--table", "ward=rooms.csv"), "ACEP-U065"),
        (("-o", "hygiene.acep"), "ACEP-U013"),
        (("-o", "other.txt"), "ACEP-U019"),
        (("-o", "none/out"), "ACEP-U016"),
        (("-o", "out", "--changes", "out"), "ACEP-U017"),
        (("--calls", "calls.parquet"), "ACEP-U018"),
        (("--calls", "events.csv"), "ACEP-U013"),
        (("--format", "parquet"), "ACEP-U011"),
        (("-o", "out", "--format", "table"), "ACEP-U014"),
        (("--store", "none/h.db"), "ACEP-U016"),
        (("--store", "rooms.csv"), "ACEP-U013"),
        (("--store", "other.txt"), "ACEP-R205"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(here: Path, more: tuple[str, ...], code: str) -> None:
    (here / "other.txt").write_text("ts,type\n")
    wrong = 4 if code.startswith("ACEP-R") else 2
    assert code in run(*more, code=wrong).stderr


@pytest.mark.parametrize("option", ["--store", "--table", "--changes", "--calls"])
def test_options_of_rules_are_refused_beside_a_query(here: Path, option: str) -> None:
    told = acep("run", "PATTERN A a WITHIN 5", "events.csv", option, "x", code=2).stderr
    assert f"{option} is of use with a file of rules only" in told


def test_other_rules_do_not_go_on_at_a_store(here: Path) -> None:
    run("--store", "hygiene.db")
    (here / "hygiene.acep").write_text(RULES.replace("45 s", "50 s"))
    assert "ACEP-R208" in run("--store", "hygiene.db", code=4).stderr


def test_wrong_rules_show_their_place(here: Path) -> None:
    (here / "hygiene.acep").write_text(
        RULES.replace("DO UPDATE status SET level = 'safe'", "DO UPDATE status SET level")
    )
    told = run(code=3).stderr
    assert "line 14" in told
    assert "^" in told


RISES = """TABLE flag (k text, n int DEFAULT 0, KEY (k))
RULE rise WORTH 2 ON PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 20 DO UPDATE flag SET n = 1 AT (b.k) END
RULE calm ON PATTERN B b WHERE store.flag[b.k].n = 0 WITHIN 0
"""


def test_rules_learn_from_the_past_and_stay_inside_a_budget(here: Path) -> None:
    (here / "rises.acep").write_text(RISES)
    rows = [f"{ts},{'AAB'[ts % 3]},k{ts % 4},{ts * 7 % 11}" for ts in range(300)]
    (here / "past.csv").write_text("\n".join(["ts,type,k,x", *rows]))
    (here / "flag.csv").write_text("k,n\nk0,1\n")
    told = acep("train", "rises.acep", "past.csv", "-o", "known", "--table", "flag=flag.csv").stderr
    assert "rule rise:" in told
    assert (here / "known" / "rise").is_dir()
    assert "ACEP-H005" in acep("train", "rises.acep", "past.csv", "-o", "known", code=None).stderr
    done = acep("run", "rises.acep", "past.csv", "--budget", "20%", "--history", "known", "-o", "out")
    assert "budget 20%: " in done.stderr
    assert "rise: " in done.stderr
    assert "nothing is shed: calm" in done.stderr
    assert "certain: " in done.stderr
    within = ("run", "rises.acep", "past.csv", "--budget", "20%", "--history", "known", "-o", "out")
    for how, is_first in (("protect", True), ("alike", False)):
        assert ("counts for more" in acep(*within, "--shed-rules", how).stderr) == is_first
    for rule in ("rise", "calm"):
        assert pq.read_table(here / "out" / f"{rule}.parquet").column_names[-1] == "certain"


@pytest.mark.parametrize(
    ("more", "code"),
    [(("--gap", "5"), "ACEP-U064"), (("--more",), "ACEP-U064"), (("--errors", "1"), "ACEP-U064")],
    ids=str,
)
def test_what_does_not_go_with_learning_of_rules(here: Path, more: tuple[str, ...], code: str) -> None:
    assert code in acep("train", "hygiene.acep", "events.csv", "-o", "known", *more, code=2).stderr
    assert not (here / "known").exists()
