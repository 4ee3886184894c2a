"""The command line over live input: what it says, where results go, how it ends, and what it refuses."""

from __future__ import annotations

import json
import os
import signal

import pytest

from acep_approx.cli.runs.lasting import Progress, behind, ends_cleanly
from acep_approx.events import follow
from tests.command_line import acep
from tests.live_steps import appends

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
EVENTS = "ts,type,x\n1,A,1\n2,B,2\n3,A,3\n"
END = ("--until-idle", "0 s")
RULES = """
TABLE seen (x int, n int DEFAULT 0, KEY (x))
RULE count ON PATTERN B b WITHIN 5 DO UPSERT seen SET n = old.n + 1 AT (b.x) END
"""


@pytest.fixture
def csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return path


def test_a_file_is_followed_to_where_it_stands(csv):
    result = acep("run", QUERY, "events.csv", "--follow", *END)
    assert [json.loads(line)["b.ts"] for line in result.stdout.splitlines()] == [2]
    assert "3 events read" in result.stderr
    assert "1 match: 1 with 0 errors" in result.stderr


def test_csv_goes_on_without_a_second_header(csv, tmp_path):
    args = ["run", QUERY, "events.csv", "--follow", *END, "--checkpoint", "cp", "-o", "found.csv"]
    acep(*args)
    appends(csv, "4,B,1\n")()
    assert "going on from the checkpoint in cp" in acep(*args).stderr
    assert (tmp_path / "found.csv").read_text().splitlines() == [
        "errors,start,end,missing,a.ts,b.ts",
        '0,1,2,"",1,2',
        '0,3,4,"",3,4',
        '0,1,4,"",1,4',
    ]
    assert "-o was 'found.csv'" in acep(*args[:-1], "other.csv", code=4).stderr
    (tmp_path / "found.csv").write_text("")
    assert "ACEP-D065" in acep(*args, code=4).stderr


@pytest.mark.parametrize("output", ["count", "bundles", "points", "partial"])
def test_other_outputs(csv, output):
    query = "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5"
    live = acep("run", query, "events.csv", "--follow", *END, "--output", output, "--format", "jsonl").stdout
    assert live == acep("run", query, "events.csv", "--output", output, "--format", "jsonl").stdout
    assert live


def test_budgets_and_late_events_without_a_checkpoint(csv, tmp_path):
    appends(csv, "2,B,9\n4,B,9\n")()
    query = ["run", "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", "events.csv", "--follow", *END]
    late = ["--on-late", "skip", "--late", "late.csv"]
    for more in ([], ["--budget", "1000 runs"]):
        result = acep(*query, *late, *more, "--bind", "row", "-o", "found.jsonl")
        assert [json.loads(line)["b"] for line in (tmp_path / "found.jsonl").read_text().splitlines()] == [1, 4, 4]
        assert "1 event left out that came late" in result.stderr
    assert (tmp_path / "late.csv").read_text().splitlines()[1] == "3,2,B,9"


def test_late_and_revised_events(csv, tmp_path):
    appends(csv, "9,B,9\n0,A,0\n")()
    args = ["run", QUERY, "events.csv", "--follow", *END, "--watermark", "1", "--late", "late.jsonl"]
    result = acep(*args, "--checkpoint", "cp")
    assert "1 row left out: 1 late" in result.stderr
    assert json.loads((tmp_path / "late.jsonl").read_text())["row"] == 4
    assert json.loads(acep(*args, "--output", "count").stdout) == {"errors": 0, "matches": 1}
    early = acep("run", QUERY, "events.csv", "--follow", *END, "--watermark", "9", "--emit", "early")
    assert "put out" in early.stderr or "matches" in early.stderr


def test_rules_follow_a_file(csv, tmp_path):
    (tmp_path / "r.acep").write_text(RULES)
    run = ["run", "r.acep", "events.csv", "--follow", *END]
    assert "1 change" in acep(*run, "-o", "found").stderr
    acep(*run, "-o", "found")
    assert len((tmp_path / "found" / "count.jsonl").read_text().splitlines()) == 1
    stored = [*run, "--store", "s.db", "-o", "kept"]
    acep(*stored)
    appends(csv, "4,B,2\n")()
    assert "1 event read, 3 events of an earlier run left out" in acep(*stored).stderr
    assert len((tmp_path / "kept" / "count.jsonl").read_text().splitlines()) == 2
    assert "--store FILE" in acep(*run, "--checkpoint", "cp", code=2).stderr
    assert "ACEP-U142" in acep(*stored, "--checkpoint-every", "1 s", code=2).stderr


def test_many_queries_follow_a_file(csv, tmp_path):
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "pair.acep").write_text(QUERY)
    (queries / "wrong.acep").write_text("PATTERN SEQ(A a, B b) WHERE b.y > 1 WITHIN 5")
    args = ["run", "--queries", "queries", "events.csv", "--follow", *END, "--checkpoint", "cp", "-o", "f.jsonl"]
    result = acep(*args, code=3)
    assert "no attribute 'y'" in result.stderr
    assert "1 query left out" in result.stderr
    appends(csv, "9,B,1\n")()
    acep(*args, "--finish")
    assert [json.loads(line)["query"] for line in (tmp_path / "f.jsonl").read_text().splitlines()] == ["pair"]
    assert "ACEP-U138" in acep(*args, "--output", "count", code=2).stderr
    assert "ACEP-U138" in acep(*args, "--on-late", "skip", code=2).stderr


def test_many_queries_are_counted_at_the_end_of_live_input_and_leave_out_what_comes_late(csv, tmp_path):
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "pair.acep").write_text(QUERY)
    appends(csv, "2,B,1\n6,B,1\n")()
    args = ["run", "--queries", "queries", "events.csv", "--on-late", "skip"]
    for more in (["--output", "count"], ["--late", "late.csv"], ["--page", "page.html"]):
        whole = acep(*args, *more)
        live = acep(*args, *more, "--follow", *END)
        assert whole.stdout == live.stdout != ""
        assert "1 event left out that came late" in live.stderr
    assert (tmp_path / "late.csv").read_text().splitlines()[1:] == ["3,2,B,1"]


def test_flush_lets_a_file_grow_under_its_name(csv, tmp_path):
    acep("run", QUERY, "-", "--flush", "-o", "found.jsonl", stdin=[EVENTS.encode(), b"4,B,1\n"])
    assert len((tmp_path / "found.jsonl").read_text().splitlines()) == 3
    assert not (tmp_path / "found.jsonl.part").exists()
    assert "ACEP-U138" in acep("run", QUERY, "events.csv", "--flush", "-o", "found.parquet", code=2).stderr


@pytest.mark.parametrize(
    ("more", "code", "named"),
    [
        (["--sort"], "ACEP-U138", "--sort does not go with --follow"),
        (["--format", "table"], "ACEP-U138", "--format table does not go with --follow"),
        (["-o", "found.parquet"], "ACEP-U138", "--format parquet does not go with --follow"),
        (["--output", "compressed", "-o", "f"], "ACEP-U138", "--output compressed does not go with --follow"),
        (["--budget", "20%", "--full-work", "9", "--expand"], "ACEP-U138", "--expand does not go with --follow"),
        (["--checkpoint", "cp", "--limit", "3"], "ACEP-U138", "--limit does not go with --checkpoint"),
        (["--checkpoint", "cp", "--budget", "9 runs", "--shed", "s.csv"], "ACEP-U138", "--shed does not go"),
        (["--checkpoint", "cp", "--output", "count"], "ACEP-U138", "--output count does not go with --checkpoint"),
        (["--checkpoint", "cp", "--on-late", "skip"], "ACEP-U138", "--on-late skip does not go with --checkpoint"),
        (["--checkpoint", "cp", "--watermark", "1", "--late", "l.parquet"], "ACEP-U138", "l.parquet does not go"),
        (["--checkpoint", "cp", "--checkpoint-every", "often"], "ACEP-U142", "'often'"),
        (["--checkpoint-every", "1 s"], "ACEP-U139", "--checkpoint-every is of use with --checkpoint only"),
        (["--finish"], "ACEP-U139", "--finish is of use with --checkpoint only"),
        (["--kafka-option", "a=b"], "ACEP-U139", "--kafka-option is of use with a topic of Kafka only"),
        (["--until-idle", "soon"], "ACEP-U142", "'soon'"),
        (["--encoding", "latin-1"], "ACEP-U138", "latin-1"),
        (["other.csv"], "ACEP-U140", "2 inputs"),
    ],
)
def test_what_does_not_go_together_is_refused(csv, more, code, named):
    said = acep("run", QUERY, "events.csv", *more, "--follow", code=2).stderr
    assert code in said
    assert named in said


@pytest.mark.parametrize("more", [["--until-idle", "5 s"], ["--checkpoint", "cp"], ["--kafka-option", "a=b"]])
def test_what_is_of_use_with_live_input_only_is_refused(csv, more):
    said = acep("run", QUERY, "events.csv", *more, code=2).stderr
    assert "ACEP-U139" in said
    assert more[0] in said


def test_ctrl_c_ends_a_run_cleanly(csv, tmp_path, monkeypatch):
    from acep_approx.events.live.text import Pace

    monkeypatch.setattr(Pace, "wait", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    result = acep("run", QUERY, "events.csv", "--follow", "--checkpoint", "cp", "-o", "f.jsonl", code=130)
    assert "the same command goes on from the checkpoint in cp" in result.stderr
    assert len((tmp_path / "f.jsonl").read_text().splitlines()) == 1
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    appends(csv, "4,B,1\n")()
    acep("run", QUERY, "events.csv", "--follow", "--checkpoint", "cp", "-o", "f.jsonl", *END)
    assert len((tmp_path / "f.jsonl").read_text().splitlines()) == 3


def test_a_second_signal_breaks_a_run_off():
    stopped = []

    def signals():
        with ends_cleanly(lambda: stopped.append(1)):
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        signals()
    assert stopped == [1]


def test_a_line_now_and_then_says_how_far_it_is(csv, capsys, monkeypatch):
    source = follow(csv, until_idle=0)
    source.settle(lambda schema: schema)
    says = Progress(source, lambda: "1 match", quiet=False)
    source.pace.on_border = says
    batches = list(source.batches())
    assert len(batches) == 1
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("acep_approx.cli.runs.lasting.EVERY", 0)
    says()
    says()
    assert capsys.readouterr().err == "3 events, 1 match\n"
    assert behind((1, "byte")) == "1 byte behind"


def test_times_of_another_format_go_on_as_they_were_read(csv):
    csv.write_text("when;type\n03.04.2024 10:00;A\n13.04.2024 10:01;B\n")
    args = ["run", "PATTERN SEQ(A a, B b) WITHIN 30 d", "events.csv", "--time", "when", "--follow", *END]
    args += ["--checkpoint", "cp", "--time-format", "%d.%m.%Y %H:%M"]
    assert json.loads(acep(*args).stdout)["end"] == "2024-04-13T10:01:00Z"
    appends(csv, "05.05.2024 08:00;B\n")()
    assert acep(*args, code=0).stdout == ""
    appends(csv, "06.05.2024 08:00;A\n07.05.2024 08:00;B\n")()
    assert json.loads(acep(*args).stdout)["end"] == "2024-05-07T08:00:00Z"
