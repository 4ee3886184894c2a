"""``acep run --spark``: the same words as a run here, and streams of files that grow in number."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shlex
import signal
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from random import Random
from tempfile import gettempdir
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from acep_approx import HistoryGraph, compile_query
from acep_approx.budget.budget import Budget
from acep_approx.cli.main import app
from acep_approx.cli.on_spark import demo, stream
from acep_approx.cli.on_spark.batch import is_folder
from acep_approx.cli.on_spark.words import budget_lines
from acep_approx.errors import DataError, UsageError
from acep_approx.learning.judging import Verdict
from acep_approx.spark.setup.failures import clear_errors
from acep_approx.spark.sources.files import EventFiles, read_growing
from acep_approx.spark.streaming.kept_shards import check_shards, known_shards, note_shards
from acep_approx.spark.streaming.metrics import Totals
from acep_approx.spark.streaming.stream import start
from acep_approx.spark.worker.spending import Spending
from tests.patience import until
from tests.spark_reports import REPORT, progress

if TYPE_CHECKING:
    from click.testing import Result

spark_test = pytest.mark.xdist_group("spark")
QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [user] AND b.x > a.x WITHIN 20 s ERRORS 1 WEIGHTS (a = 2, c = 2)"
RISING = "PATTERN SEQ(A a, B b, C c) WHERE [user] AND b.x > a.x AND c.x > b.x WITHIN 100 s"
MIDNIGHT = datetime(2024, 5, 1, tzinfo=UTC)


def events(number: int, seed: int = 1) -> list[dict[str, Any]]:
    """One event a second."""
    dice = Random(seed)
    return [
        {
            "ts": (MIDNIGHT + timedelta(seconds=n)).isoformat(),
            "user": dice.choice("mnopq"),
            "type": dice.choice("ABC"),
            "x": dice.randrange(50),
            "event": f"e{n:05}",
        }
        for n in range(number)
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """JSON lines; the file is there at once."""
    draft = path.with_name(f".{path.name}")
    draft.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    draft.rename(path)


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """The same as Parquet."""
    table = pa.Table.from_pylist(rows)
    times = pa.array([datetime.fromisoformat(row["ts"]) for row in rows], pa.timestamp("us", "UTC"))
    draft = path.with_name(f".{path.name}")
    pq.write_table(table.set_column(0, "ts", times), draft)
    draft.rename(path)


def acep(*words: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, list(words))


def found(text: str) -> Counter[str]:
    """Results as a multiset, whatever their order."""
    return Counter(json.dumps(json.loads(line), sort_keys=True) for line in text.splitlines())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to be in, with a file of events."""
    monkeypatch.chdir(tmp_path)
    write(Path("events.jsonl"), events(300))
    return tmp_path


# --- without Spark ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        ("--master local", "ACEP-S037", "--master"),
        ("--id event", "ACEP-S071", "--id"),
        ("--stream", "ACEP-S071", "--stream"),
        ("--spark --watermark 5s", "ACEP-S071", "--watermark"),
        ("--spark --late x.jsonl", "ACEP-S071", "--late"),
        ("--spark --budget 20% --learn", "ACEP-S071", "--learn"),
        ("--spark --merge none", "ACEP-S072", "--merge"),
        ("--spark --sort", "ACEP-S072", "--sort"),
        ("--spark --emit early", "ACEP-S071", "--emit"),
        ("--spark --changelog", "ACEP-S071", "--changelog"),
        ("--spark --op op --id event", "ACEP-S072", "--op"),
        ("--spark --stream --watermark 5s --source s", "ACEP-S072", "--source"),
        ("--spark --stream --watermark 5s --idle 5s", "ACEP-S072", "--idle"),
        ("--spark --sequence n", "ACEP-S072", "--sequence"),
        ("--spark --report x.html", "ACEP-S072", "--report"),
        ("--spark --stream --output bundles --emit early -o new --checkpoint state", "ACEP-U055", "bundles"),
        ("--spark --output compressed -o x", "ACEP-S072", "compressed"),
        ("--spark --stream --limit 3", "ACEP-S072", "--limit"),
        ("--spark --stream --trigger 5s --until-done", "ACEP-S072", "--trigger"),
        ("--spark -o full", "ACEP-S073", "full"),
        ("--spark -o new --format csv", "ACEP-S073", "csv"),
        ("--spark -o new --output count", "ACEP-S073", "counts"),
        ("--spark --stream -o new", "ACEP-S074", "--checkpoint"),
        ("--spark --stream --checkpoint state", "ACEP-S074", "-o"),
        ("--spark --stream -o new --checkpoint new", "ACEP-S074", "new"),
        ("--spark --stream -o new --checkpoint events.jsonl/state", "ACEP-S074", "state"),
        ("--spark --stream -o new --checkpoint state full", "ACEP-S070", "one folder"),
    ],
)
def test_options_that_do_not_go_together(words, code, named):
    Path("full").mkdir()
    Path("full/x").touch()
    refused = acep("run", QUERY, "events.jsonl", *words.split())
    assert refused.exit_code == 2, refused.output
    assert code in refused.output
    assert named in refused.output


WRONG = [
    ("run", "none.parquet", "ACEP-D010"),
    ("run", "torn.parquet", "ACEP-D013"),
    ("run", "torn.jsonl.gz", "ACEP-D013"),
    ("run", "clock.parquet", "ACEP-S003"),
    ("run", "events.jsonl clock.parquet", "ACEP-S021"),
    ("run", "events.jsonl --id nobody", "ACEP-D002"),
    ("run", "events.jsonl --bind nobody", "ACEP-D002"),
    ("run", "events.jsonl --time nobody", "ACEP-D002"),
    ("run", "events.jsonl --key-column nobody", "ACEP-D002"),
    ("run", "events.jsonl --budget 3x", "ACEP-U030"),
    ("run", "events.jsonl --budget 200runs", "ACEP-S006"),
    ("run", "events.jsonl --budget 20% --history none", "ACEP-H001"),
    ("run", "none --stream --watermark 5s", "ACEP-S070"),
    ("run", "empty --stream --watermark 5s", "ACEP-D011"),
    ("run", "in --stream", "ACEP-S004"),
    ("run", "in --stream --watermark 5s --id nobody", "ACEP-D002"),
    ("run", "in --stream --watermark 5s --budget 20% --history none", "ACEP-H001"),
    ("run", "in --stream --watermark 5x", "ACEP-U056"),
    ("run", "in --stream --watermark 5", "ACEP-D073"),
    ("run", "in --stream --watermark 5s --trigger 5x", "ACEP-U056"),
    ("run", "in --stream --watermark 5s --trigger 5", "ACEP-U056"),
    ("train", "torn.parquet", "ACEP-D013"),
    ("train", "events.jsonl --id nobody", "ACEP-D002"),
    ("train", "events.jsonl --time nobody", "ACEP-D002"),
    ("tune", "other.jsonl", "ACEP-Q060"),
]


@pytest.mark.parametrize(("command", "words", "code"), WRONG)
def test_what_is_wrong_is_said_before_spark_starts(command, words, code, monkeypatch):
    def starts(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    for place in ("acep_approx.spark.session", "acep_approx.spark.setup.session.session"):  # the first finds the second
        monkeypatch.setattr(place, starts)
    rows = events(100)
    Path("in").mkdir()
    Path("empty").mkdir()
    write_parquet(Path("in/1.parquet"), rows)
    whole = Path("in/1.parquet").read_bytes()
    Path("torn.parquet").write_bytes(whole[: len(whole) // 2])
    pq.write_table(pa.Table.from_pylist(rows), "clock.parquet")
    Path("torn.jsonl.gz").write_bytes(gzip.compress(Path("events.jsonl").read_bytes())[:500])
    write(Path("other.jsonl"), [{name: row[name] for name in ("ts", "user", "type")} for row in rows])
    places = {"run": ["-o", "out", "--checkpoint", "state"] if "--stream" in words else [], "train": ["-o", "history"]}
    said = acep(command, QUERY, *words.split(), "--spark", *places.get(command, []))
    assert code in said.stderr, said.output
    assert said.exit_code in (2, 3, 4)
    assert not Path("state").exists()


def test_a_folder_is_told_by_its_name(tmp_path):
    assert is_folder(tmp_path)
    assert is_folder(tmp_path / "new")
    assert not any(map(is_folder, (None, tmp_path / "new.csv", Path("/dev/null"), Path("events.jsonl"))))


def test_a_stream_does_not_write_to_a_file():
    with pytest.raises(UsageError, match="is a file"):
        stream.Places(Path("out"), Path("events.jsonl"), None).check(["in"])


def test_numbers_are_told_once():
    told: list[int] = []
    sink = stream.Tally(lambda now: told.append(now.batch))
    for batch in (0, 1, 1, 0, 3):
        sink(progress(batch=batch, events=10, waiting=batch))
    assert told == [0, 1, 3]
    numbers = sink.totals
    assert (numbers.counts["events"], numbers.counts["waiting"]) == (30, 3)


def test_what_was_learned_is_not_forgotten_at_the_end():
    sink = stream.Tally()
    sink(progress(batch=1, learned=Verdict("history", 2, 9, versions=3, refused=3)))
    late = {**REPORT, "batchId": 2, "name": "plain"}
    sink.rest(SimpleNamespace(recentProgress=[late]))
    numbers = sink.totals
    assert sink.totals.batches == 2
    lines = list(budget_lines(numbers, Spending(Budget.parse("10 steps/event"), "history"), 45.0))
    assert lines[-1] == (
        "learning: ranked by the history (2 audited match points gained and 9 lost by what was learned; "
        "3 of 3 versions refused)"
    )


def test_a_budget_in_words():
    """As a run here says it."""
    counts = {"events": 100, "steps": 850, "bound": 1000, "shed_0": 20, "shed_2": 10, "audited": 40, "kept": 30}
    parts = {f"{name}_{i}": number for i in range(8) for name, number in (("audited", 5), ("kept", 3 + i % 2))}
    cells = {"cells": 8, "squares": 200, "audit": 1}
    numbers = Totals.of_batch({**counts, **parts, **cells, "kept": 28, "version": 3, "matches": None})
    lines = list(budget_lines(numbers, Spending(Budget.parse("10 steps/event"), "history"), 45.0))
    assert lines[:4] == [
        "exact run: it takes about 45 run-steps per event, this one took 8.5 (19%)",
        "budget of 10 steps/event, policy history, seed 0, history version 3",
        "work: 850 run-steps of 1,000 allowed (85.0%)",
        "shed: 30 runs: 20 born below the price, 10 bound on run-steps",
    ]
    assert lines[4].startswith("estimated recall: 70% (")
    assert lines[4].endswith("with 95% confidence; 40 match points audited in 8 cells)")


def test_a_budget_of_which_little_is_known_in_words():
    some = Spending(Budget.parse("10 steps/event"))
    nothing = list(budget_lines(Totals.of_batch({}), some, None))
    assert nothing[0].startswith("exact run: unknown: ")
    assert nothing[3:] == ["shed: 0 runs", "estimated recall: unknown: there was no audit"]
    cells = {"cells": 2, "squares": 72, "audit": 1}
    few = Totals.of_batch({**cells, **{f"audited_{i}": 6 for i in (1, 4)}, "kept_1": 6, "kept_4": 3})
    assert "12 match points audited, too few for an estimate; it lies between" in [*budget_lines(few, some, 45.0)][4]


def test_the_work_of_the_exact_run_is_what_was_given_or_what_the_newest_history_knows(tmp_path):
    query = compile_query("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40", engine="runs")
    some = Spending(Budget.parse("20%"), str(tmp_path / "history"), learns=True)
    assert some.known_work(query) is None  # nothing was learned yet
    known = HistoryGraph(query).fit([{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11} for t in range(600)])
    known.save(tmp_path / "history")
    assert some.known_work(query) == known.steps_per_event_ > 0
    assert replace(some, full_work=7.0).known_work(query) == 7.0


def test_ctrl_c_stops_the_stream():
    class Stream:
        asked = stopped = 0

        def awaitTermination(self, timeout):
            self.asked += 1
            if self.asked == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return self.asked == 4

        def stop(self):
            self.stopped += 1

    before = signal.getsignal(signal.SIGINT)
    running: Any = Stream()
    assert stream.wait(running)
    assert (running.asked, running.stopped) == (2, 1)
    assert not stream.wait(running)
    assert (running.asked, running.stopped) == (4, 1)
    assert signal.getsignal(signal.SIGINT) is before


NAMED = ("`a.event`", "`b.event`", "`c.event`")  # for Spark a dot leads into a struct


# --- a batch ----------------------------------------------------------------------------------------------------


@spark_test
@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count"])
def test_a_batch_gives_what_a_run_here_gives(spark, output):
    bind = [] if output == "count" else ["--bind", "event"]
    here = acep("run", QUERY, "events.jsonl", "--output", output, "--format", "jsonl", *bind)
    bind += ["--spark", "--id", "event"]
    there = acep("run", QUERY, "events.jsonl", "--output", output, "--format", "jsonl", *bind)
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert len(found(here.stdout)) > 1
    assert found(there.stdout) == found(here.stdout)
    same = [line for line in here.stderr.splitlines() if " with 0 errors" in line]
    assert same == [line for line in there.stderr.splitlines() if " with 0 errors" in line]
    assert "300 events read, 300 relevant" in there.stderr
    ends = [row["end"] for row in map(json.loads, there.stdout.splitlines()) if "end" in row]
    assert ends == sorted(ends)
    if output == "matches":  # without ids of events what the query names is shown there as here
        texts = [acep("run", QUERY, "events.jsonl", "--format", "jsonl", *more).stdout for more in ([], ["--spark"])]
        assert found(texts[0]) == found(texts[1])


@spark_test
def test_a_folder_is_written_by_the_workers(spark):
    for form, read in (("parquet", spark.read.parquet), ("jsonl", spark.read.json)):
        done = acep("run", QUERY, "events.jsonl", "--spark", "--id", "event", "-o", form, "--format", form)
        assert done.exit_code == 0, done.output
        rows = read(str(Path(form).absolute())).select(*NAMED).toArrow().to_pylist()
        here = acep("run", QUERY, "events.jsonl", "--bind", "event", "--format", "jsonl", "-q").stdout
        names = [name.strip("`") for name in NAMED]
        wanted = [{name: row[name] for name in names} for row in map(json.loads, here.splitlines())]
        assert Counter(map(str, rows)) == Counter(map(str, wanted))
        assert f"{len(wanted):,} matches written to {form}" in done.stderr


MUCH = ("--budget", "30 steps/event", "--policy", "random", "--audit", "0.9", "--full-work", "40")


@spark_test
def test_a_limit_and_a_budget(spark):
    words = ("run", RISING, "events.jsonl", "--spark", "--id", "event", "--engine", "runs", "-o", "found.parquet")
    done = acep(*words, "--limit", "3")
    assert done.exit_code == 0, done.output
    assert pq.read_table("found.parquet").num_rows == 3
    assert "stopped after 3 matches, there are more" in done.stderr
    within = acep(*words, "--budget", "3 steps/event", "--policy", "random", "--seed", "5")
    assert within.exit_code == 0, within.output
    assert "budget of 3 steps/event, policy random, seed 5" in within.stderr
    assert "of 900 allowed" in within.stderr
    assert "exact run: unknown: " in within.stderr
    audited = acep(*words, *MUCH)
    assert "exact run: it takes about 40 run-steps per event, this one took " in audited.stderr
    here = acep(*(word for word in words if word != "--spark" and word not in ("--id", "event")), *MUCH)
    lines = [one for text in (here, audited) for one in text.stderr.splitlines() if one.startswith("estimated recall")]
    assert lines == ["estimated recall: 100%: nothing was shed that a match point needs"] * 2
    everything = acep(*words).stderr
    assert pq.read_table("found.parquet").num_rows > 0
    assert everything.count(" matches") == 1


@spark_test
def test_errors_of_workers_are_ours(spark):
    Path("broken.jsonl").write_text('{"ts": 1, "type": "A", "user": "m", "x": 3}\n{"ts": \n', encoding="utf-8")
    refused = acep("run", QUERY, "broken.jsonl", "--spark")
    assert refused.exit_code == 4, refused.output
    assert "ACEP-D" in refused.stderr
    assert "\tat " not in refused.stderr


def test_what_a_killed_job_left_in_a_folder_is_named():
    Path("out/_temporary").mkdir(parents=True)
    refused = acep("run", QUERY, "events.jsonl", "--spark", "-o", "out")
    assert refused.exit_code == 2
    assert "ACEP-S073: an earlier job is writing to 'out', or it was killed" in refused.stderr


# --- a stream ---------------------------------------------------------------------------------------------------

STREAM = ("--spark", "--stream", "--id", "event", "--shards", "2", "--watermark", "5 s")


def of_stream(spark, folder="out") -> Counter[str]:
    """The matches that a stream has written."""
    table = spark.read.parquet(str(Path(folder).absolute())).select("errors", *NAMED).toArrow()
    return Counter(map(str, table.to_pylist()))


def of_run(rows: list[dict[str, Any]]) -> Counter[str]:
    """The matches that a run here finds."""
    write(Path("all.jsonl"), rows)
    listed = acep("run", QUERY, "all.jsonl", "--bind", "event", "--format", "jsonl", "-q").stdout
    rows = [json.loads(line) for line in listed.splitlines()]
    return Counter(str({name: row[name] for name in ("errors", *(name.strip("`") for name in NAMED))}) for row in rows)


@spark_test
def test_a_stream_goes_on_where_it_stopped(spark):
    rows = events(300)
    Path("in").mkdir()
    write(Path("in/first.jsonl"), rows[:150])
    words = ("run", QUERY, "in", *STREAM, "-o", "out", "--checkpoint", "state", "--late", "late", "--until-done")
    first = acep(*words)
    assert first.exit_code == 0, first.output
    assert "6 events wait until the watermark has passed them" in first.stderr
    write(Path("in/second.jsonl"), [rows[3], *rows[150:]])
    second = acep(*words)
    assert second.exit_code == 0, second.output
    assert "1 event left out that came late" in second.stderr
    late = spark.read.parquet(str(Path("late").absolute())).toArrow()
    assert late["event"].to_pylist() == ["e00003"]
    assert of_stream(spark) == of_run(rows[:294])  # the last ones wait for the watermark
    write(Path("in/third.jsonl"), events(310)[300:])
    other = acep("run", RISING, "in", *STREAM, "-o", "other", "--checkpoint", "state", "--until-done")
    assert (other.exit_code, "ACEP-S012" in other.stderr) == (4, True), other.output


@pytest.mark.parametrize("name", ["e.parquet", "e.jsonl", "e.csv.gz"])
def test_the_bytes_of_some_events_are_told_by_the_files_that_are_there(name, monkeypatch):
    rows = events(900)
    Path("in").mkdir()
    for number in range(3):
        part, place = rows[300 * number : 300 * number + 300], Path("in", f"{number}{name}")
        if name.endswith("parquet"):
            write_parquet(place, part)
        elif name.endswith("jsonl"):
            write(place, part)
        else:
            text = "".join(",".join(map(str, row.values())) + "\n" for row in part)
            place.write_bytes(gzip.compress(f"{','.join(rows[0])}\n{text}".encode()))
    sizes = [path.stat().st_size for path in Path("in").iterdir()]
    found = EventFiles.in_folder("in").bytes_of(600)
    assert max(sizes) < found < sum(sizes)
    assert found == pytest.approx(sum(sizes) / 900 * 600, rel=0.05)
    monkeypatch.setattr("acep_approx.spark.sources.files.SAMPLED", 0)  # all are larger
    assert EventFiles.in_folder("in").bytes_of(30) < min(sizes) * 2
    with pytest.raises(UsageError, match="ACEP-S075"):
        read_growing(SimpleNamespace(), "in", at_once=0)


@spark_test
def test_a_backlog_is_read_in_micro_batches_of_some_events(spark):
    rows = events(300)
    Path("in").mkdir()
    for number in range(6):
        write_parquet(Path(f"in/{number}.parquet"), rows[50 * number : 50 * number + 50])
        os.utime(f"in/{number}.parquet", (number, number))  # Spark reads the oldest file first
    words = ("run", QUERY, "in", *STREAM, "-o", "out", "--checkpoint", "state", "--until-done", "--at-once", "120")
    done = acep(*words)
    assert done.exit_code == 0, done.output
    assert re.findall(r"batch (\d): ", done.stderr)[:3] == ["0", "1", "2"]
    assert of_stream(spark) == of_run(rows[:294])


@spark_test
def test_a_damaged_file_that_comes_into_a_stream_is_named(spark):
    Path("in").mkdir()
    write_parquet(Path("in/1.parquet"), events(100))
    whole = Path("in/1.parquet").read_bytes()
    Path("in/2.parquet").write_bytes(whole[: len(whole) // 2])
    schema = spark.read.parquet(str(Path("in/1.parquet").absolute())).schema
    torn = spark.readStream.schema(schema).parquet(str(Path("in").absolute()))
    matcher = compile_query(QUERY).spark(id="event", watermark="5 seconds", shards=2)
    with pytest.raises(DataError, match=r"in/2\.parquet: cannot be read as Parquet: ") as caught, clear_errors():
        start(matcher, torn, to="out", checkpoint="state", until_done=True).awaitTermination()
    assert caught.value.code == "ACEP-D013"


@spark_test
def test_a_checkpoint_keeps_its_number_of_shards(spark, monkeypatch):
    rows = events(300)
    Path("in").mkdir()
    write_parquet(Path("in/1.parquet"), rows[:150])
    words = ("run", QUERY, "in", "--spark", "--stream", "--id", "event", "--watermark", "5 s", "--until-done")
    words += ("-o", "out", "--checkpoint", "state")
    assert acep(*words).exit_code == 0
    write_parquet(Path("in/2.parquet"), rows[150:])
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")  # as on a machine with more cores
    try:
        again = acep(*words)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert again.exit_code == 0, again.output
    assert of_stream(spark) == of_run(rows[:294])
    monkeypatch.setattr("acep_approx.spark.setup.session.session", None)  # it is not asked for
    refused = acep(*words, "--shards", "3")
    assert refused.exit_code == 4, refused.output
    assert "ACEP-S012: the checkpoint 'state' was begun with shards = 2, and this job has 3" in refused.stderr
    assert "--shards 2" in refused.stderr


def test_a_note_of_shards_counts_once_there_is_a_state(caplog):
    state = Path("state")
    (state / "acep").mkdir(parents=True)
    note_shards(2, state)
    check_shards(3, state)  # the job has stopped before its first micro-batch
    (state / "offsets").mkdir()
    check_shards(3, state)
    (state / "offsets/0").touch()
    assert known_shards(state) == 2
    with pytest.raises(DataError, match="begun with shards = 2"):
        check_shards(3, state)
    for damaged in (b"", b"true", b"0", b'"2"'):
        (state / "acep/shards.json").write_bytes(damaged)
        assert known_shards(state) is None
    assert caplog.text.count("shards.json cannot be read") == 4


@spark_test
def test_addresses_go_to_spark_as_they_are_written(spark, folder):
    """An address of a file stands for those of other places."""
    rows, home = events(200), folder.as_uri()
    Path("in").mkdir()
    write_parquet(Path("in/1.parquet"), rows)
    words = ("run", QUERY, f"{home}/in", *STREAM, "-o", f"{home}/out", "--checkpoint", f"{home}/state", "--until-done")
    done = acep(*words, "--late", f"{home}/late")
    assert done.exit_code == 0, done.output
    assert f"written to {home}/out" in done.stderr
    assert of_stream(spark) == of_run(rows[:194])
    assert not Path("state/acep").exists()
    batch = acep("run", QUERY, f"{home}/in", "--spark", "--id", "event", "-o", f"{home}/batch", "--format", "parquet")
    assert batch.exit_code == 0, batch.output
    assert pq.read_table("batch").num_rows > 0
    text = acep("run", QUERY, f"{home}/in", "--spark", "--input-format", "jsonl")
    assert (text.exit_code, "ACEP-S085" in text.stderr) == (2, True), text.output
    spending = acep(*words, "--budget", "20%", "--full-work", "9", "--policy", "oldest")
    assert (spending.exit_code, "ACEP-S083" in spending.stderr) == (2, True), spending.output


@spark_test
def test_a_stream_that_grows_until_it_is_stopped(spark):
    rows = events(200)
    Path("in").mkdir()
    write_parquet(Path("in/1.parquet"), rows[:100])
    seen: list[str] = []
    is_over = threading.Event()

    def is_done() -> bool:
        if Path("out").exists() and not Path("in/2.parquet").exists():
            write_parquet(Path("in/2.parquet"), rows[100:])
        with contextlib.suppress(OSError, HTTPException), urlopen(f"http://{place}/metrics", timeout=10) as page:
            numbers = page.read().decode()
            seen.extend([numbers] if "194.0" in numbers else [])
        return bool(seen) or is_over.is_set()

    def meanwhile() -> None:
        try:
            until(is_done, pause=0.1)
        finally:
            if not is_over.is_set():  # the stream goes on until it is stopped
                os.kill(os.getpid(), signal.SIGINT)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = "{}:{}".format(*free.getsockname())
    words = ("-o", "out", "--checkpoint", "state", "--trigger", "1 s", "--metrics-port", place.split(":")[1])
    with ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(meanwhile)
        try:
            stopped = acep("run", QUERY, "in", *STREAM, *words)
        finally:
            is_over.set()
        watcher.result()
    assert stopped.exit_code == 130, stopped.output
    assert "194 events read" in stopped.stderr
    assert "batch 0: " in stopped.stderr
    assert of_stream(spark) == of_run(rows[:194])
    assert seen


@spark_test
def test_a_stream_of_points(spark):
    Path("in").mkdir()
    write(Path("in/first.jsonl"), events(300))
    done = acep("run", QUERY, "in", *STREAM, "-o", "out", "--checkpoint", "state", "--until-done", "--output", "points")
    assert done.exit_code == 0, done.output
    table = spark.read.parquet(str(Path("out").absolute())).select("user", "errors", "end").toArrow()
    assert f"{table.num_rows} points written to out" in done.stderr
    write(Path("all.jsonl"), events(300)[:294])  # the last ones wait for the watermark
    here = compile_query(QUERY).match("all.jsonl").points()
    rows = zip(*(here[name].to_pylist() for name in ("user", "errors", "end")), strict=True)
    assert Counter(tuple(row.values()) for row in table.to_pylist()) == Counter(rows)


@spark_test
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_parquet_with_nanoseconds(spark, zone):
    rows = events(200)
    table = pa.Table.from_pylist(rows)
    ticks = [round(datetime.fromisoformat(row["ts"]).timestamp()) * 10**9 + n * 7 % 1000 for n, row in enumerate(rows)]
    table = table.set_column(0, "ts", pa.array(ticks, pa.timestamp("ns", zone)))
    Path("in").mkdir()
    pq.write_table(table, "in/1.parquet")
    here = acep("run", QUERY, "in", "--bind", "event", "--format", "jsonl", "-q")
    there = acep("run", QUERY, "in", "--spark", "--id", "event", "--bind", "event", "--format", "jsonl", "-q")
    assert there.exit_code == 0, there.output
    if zone is None:  # Spark takes times of files for UTC
        assert found(there.stdout.replace('Z"', '"')) == found(here.stdout)
    else:
        assert found(there.stdout) == found(here.stdout)
    assert here.stdout
    if zone is None:
        return  # a stream reads files as a batch does
    done = acep("run", QUERY, "in", *STREAM, "-o", "out", "--checkpoint", "state", "--until-done")
    assert done.exit_code == 0, done.output
    assert of_stream(spark) == of_run(rows[:194])


# --- what the README and the demo show ----------------------------------------------------------------------------


@spark_test
def test_the_commands_of_the_readme(spark):
    page = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## On Spark\n")[2].partition("\n## ")[0]
    commands = [shlex.split(line) for line in re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1].splitlines()]
    dice = Random(5)
    visits = [
        {
            "ts": ts,
            "shop": dice.randrange(9),
            "type": dice.choice(["View", "Basket", "Pay"]),
            "price": dice.randrange(99),
        }
        for ts in range(6000)
    ]
    Path("purchases.acep").write_text(
        "PATTERN SEQ(View v, Basket b, Pay p) WHERE [shop] AND b.price > v.price AND p.price > b.price WITHIN 90",
        encoding="utf-8",
    )
    Path("shops").mkdir()
    write(Path("past.jsonl"), visits[:3000])
    for name in ("today.jsonl", "shops/today.jsonl"):
        write(Path(name), visits[3000:])
    for program, *words in commands[:-1]:
        done = acep(*words)
        assert (program, done.exit_code) == ("acep", 0), done.output
    assert pq.read_table("found.parquet").num_rows > 0
    assert sum(of_any("stream", spark).values()) > 0
    assert commands[-1] == ["acep", "demo", "--spark"]


def of_any(folder: str, spark) -> Counter[str]:
    """The rows that a stream has written."""
    return Counter(map(str, spark.read.parquet(str(Path(folder).absolute())).toArrow().to_pylist()))


@spark_test
def test_the_demo_in_small(spark, monkeypatch):
    import pyarrow.compute as pc

    from acep_approx.events.demo import flights

    def some() -> pa.Table:
        events = flights()
        begin, end = datetime(2013, 3, 22, tzinfo=UTC), datetime(2013, 4, 12, tzinfo=UTC)
        return events.filter(pc.and_(pc.greater(events["ts"], begin), pc.less(events["ts"], end)))

    monkeypatch.setattr("acep_approx.events.demo.flights", some)
    monkeypatch.setattr(demo, "SECONDS", 4)
    monkeypatch.setattr(demo, "LEAST_BATCHES", 2)
    monkeypatch.setattr(demo, "BUDGET", "50%")  # of so few events little can be learned
    before = set(Path(gettempdir()).glob("acep-demo-*"))
    shown = acep("demo", "--spark", "-o", "demo.html")
    assert shown.exit_code == 0, shown.output
    numbers = re.findall(r"([\d,]+) +│ +(?:\d+%)? +│", shown.stdout)
    exact, random, frozen, refreshed = (int(number.replace(",", "")) for number in numbers)
    query = compile_query(demo.QUERY)
    now = some().drop_columns(["key"])
    now = now.filter(pc.greater_equal(now["ts"], demo.NOW_BEGINS))
    assert exact == query.match(now).points().num_rows
    assert random < exact
    assert max(frozen, refreshed) <= exact
    assert refreshed > 0
    said = r"found ([\d,]+) match points where .* at random found ([\d,]+); .* found (\d+) .* missed (\d+) "
    told = re.search(said, shown.stdout)
    assert told is not None
    known, chance, gained, lost = (int(number.replace(",", "")) for number in told.groups())
    assert (known, chance, known + gained - lost) == (frozen, random, refreshed)
    assert Path("demo.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert set(Path(gettempdir()).glob("acep-demo-*")) <= before
    assert {path.name for path in Path().iterdir()} == {"demo.html", "events.jsonl"}


def test_explain_says_how_the_work_is_split(tmp_path):
    (tmp_path / "one.acep").write_text("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 5", encoding="utf-8")
    (tmp_path / "two.acep").write_text("PATTERN SEQ(A a, C c) WITHIN 5", encoding="utf-8")
    told = acep("explain", "--queries", str(tmp_path), "--spark", "--shards", "2")
    assert told.exit_code == 0, told.output
    assert told.stdout.splitlines()[-2:] == [
        "         the query one: matched apart by user: all events of a match have the same",
        "         the query two: matched in one task: no column is a key of all of its queries, as [user] is",
    ]
    told = acep("explain", str(tmp_path / "one.acep"), "--spark")
    assert told.stdout.endswith("Spark    all events are matched apart by user: all events of a match have the same\n")
    told = acep("explain", "TABLE t (k text, KEY (k)) RULE r ON PATTERN SEQ(A a, B b) WITHIN 5", "--spark")
    assert "matched in one task: the pattern of the rule 'r' has no key" in told.stdout, told.output
    for words, code in (("--shards 2", "ACEP-S071"), ("--spark --format dot", "ACEP-U064")):
        refused = acep("explain", str(tmp_path / "one.acep"), *words.split())
        assert (refused.exit_code, code in refused.stderr) == (2, True), refused.output
