"""Queries come and go in a job on Spark: what it finds is what a set here finds that changes at the same watermark."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from acep_approx import QuerySet
from acep_approx.api.on_spark.changing import ChangingWork
from acep_approx.api.on_spark.pinned import KEPT_NOTES, PinnedVersions
from acep_approx.api.on_spark.placing import Placing
from acep_approx.errors import DataError, UsageError
from acep_approx.subscriptions.versions import read_version
from tests.cases import cases
from tests.command_line import acep
from tests.spark_changing import ChangingJob, set_queries
from tests.spark_streams import QUERIES, stream

POOL = QUERIES | {
    "higher": "PATTERN C c WHERE c.x > 5 WITHIN 1",
    "rising": "PATTERN SEQ(A a, B b) WHERE [user] AND b.x > a.x + 1 WITHIN 20",
    "rising more": "PATTERN SEQ(A a, B b) WHERE [user] AND b.x > a.x + 3 WITHIN 7",
    "after the last": "PATTERN SEQ(A a, ~(C c)) WHERE [user] AND a.x > 5 WITHIN 12",
}
"""With queries that differ in constants alone, and more that wait for the end of a window."""


def texts(*names: str) -> dict[str, str]:
    """Some queries by their ids."""
    return {name: POOL[name] for name in names}


def nothing(_: Random) -> None:
    """No change."""


def at_random(home: Any, chance: float = 0.05) -> Any:
    """Changes of a folder at any moment: some queries come or go, or get another text under the same id."""
    now = {one.id: one.text for one in read_version(home).queries}

    def changes(dice: Random) -> None:
        if dice.random() < chance:
            for name in dice.sample([*POOL], dice.randint(1, 4)):
                if name in now and dice.random() < 0.7:
                    del now[name]
                else:
                    now[name] = POOL[name] + " " * dice.randrange(2)
            set_queries(home, now)

    return changes


def changing_job(tmp_path: Any, seed: int, *began: str, size: int = 120, **more: Any) -> ChangingJob:
    """A job on random events that begins with some queries."""
    set_queries(tmp_path / "desk", texts(*(began or ("by user", "by nothing"))))
    return ChangingJob(tmp_path / "desk", tmp_path / "acep", stream(size, seed), Random(seed), **more)


@pytest.mark.parametrize("seed", range(cases(96)))
def test_a_job_finds_what_a_set_finds_that_changes_at_the_same_time(tmp_path, seed):
    dice = Random(seed)
    began = dice.choice([("by user",), ("by nothing",), ("by user", "by shop", "by nothing"), ("up", "twice up")])
    size, output = dice.choice((30, 90)), dice.choice(("matches", "matches", "points"))
    job = changing_job(tmp_path, seed, *began, size=size, shards=dice.choice((1, 2, 3)), output=output)
    job.run(at_random(job.home), dice.choice((0, 3)))
    assert job.found == job.expected


def test_the_random_cases_change_queries_and_do_micro_batches_again(tmp_path):
    job = changing_job(tmp_path, 5, "by user", "by nothing", size=200)
    job.run(at_random(job.home), kills=0.2)
    assert len({*job.versions}) > 5
    assert job.replayed > 3
    assert job.found.total() > 20


def takes_the_newest(job: ChangingJob, patch: pytest.MonkeyPatch) -> None:
    """A worker takes the newest version when its task runs."""

    def version_of(pinned: PinnedVersions, batch: int) -> int:
        newest, placing = read_version(job.home), job.driver._pin
        if not pinned.has(newest.number):
            pinned.keep(newest.number, placing._after(pinned.queries(pinned.notes[batch]), newest))
        return newest.number

    patch.setattr(PinnedVersions, "version_of", version_of)


def notes_again(_: ChangingJob, patch: pytest.MonkeyPatch) -> None:
    """A driver notes the version of a micro-batch again when it is done again."""
    call = Placing.__call__

    def noting(placing: Placing, batch: int) -> None:
        notes = {one: version for one, version in placing.pinned.notes.items() if one < batch}
        (Path(placing.pinned.control) / "queries" / "micro-batches.json").write_text(json.dumps(notes))
        call(placing, batch)

    patch.setattr(Placing, "__call__", noting)


def comes_late(_: ChangingJob, patch: pytest.MonkeyPatch) -> None:
    """A worker changes its queries one micro-batch too late."""
    ready = ChangingWork.ready
    patch.setattr(ChangingWork, "ready", lambda work, batch: ready(work, max(batch - 1, 0)))


@pytest.mark.parametrize("mutant", [takes_the_newest, notes_again, comes_late])
def test_a_job_that_does_not_keep_to_the_notes_is_noticed(tmp_path, monkeypatch, mutant):
    def is_noticed(seed: int) -> bool:
        job = changing_job(tmp_path / str(seed), seed, "by user", "by nothing", size=100)
        mutant(job, monkeypatch)
        try:
            job.run(at_random(job.home, 0.1))
        except AssertionError:
            return True
        return job.found != job.expected

    assert any(map(is_noticed, range(1, 6)))


# --- where queries go -------------------------------------------------------------------------------------------------

LATER = {
    "by user": ("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 3", 0),
    "more keys": ("PATTERN SEQ(A a, B b) WHERE [user] AND [shop] WITHIN 3", 0),
    "another key": ("PATTERN SEQ(A a, B b) WHERE [shop] WITHIN 3", 1),
    "no key": ("PATTERN SEQ(A a, B b) WITHIN 3", 1),
    "reads by user": ("PATTERN SEQ(Up a, Up b) WHERE [user] WITHIN 3", 0),
    "reads without a key": ("PATTERN SEQ(Up a, Up b) WITHIN 3", None),
    "reads what has no key": ("PATTERN SEQ(All a, All b) WHERE [user] WITHIN 3", 1),
    "reads both": ("PATTERN SEQ(Up a, All b) WHERE [user] WITHIN 3", None),
    "publishes the same": ("PATTERN A a WITHIN 3 RETURN a.x AS p, a.user AS user PUBLISH Up", None),
    "has a wrong column": ("PATTERN A a WHERE a.colour = 'red' WITHIN 3", None),
    "is no query of a set": ("PATTERN AUTOMATON { START s; s -> FINAL t ON A a } WITHIN 3", None),
}
FIRST = {
    "up": "PATTERN SEQ(A a, B b) WHERE [user] WITHIN 9 RETURN a.user AS user PUBLISH Up",
    "all": "PATTERN A a WITHIN 1 RETURN a.user AS user PUBLISH All",
}


@pytest.mark.parametrize("name", LATER)
def test_a_later_query_goes_where_its_keys_or_its_streams_are(tmp_path, caplog, name):
    text, part = LATER[name]
    home = tmp_path / "desk"
    set_queries(home, FIRST)
    job = ChangingJob(home, tmp_path / "acep", stream(9, 1), Random(1))
    assert [part.keys for part in job.job.parts] == [("user",), ()]
    job.driver.begin(0)
    set_queries(home, FIRST | {"later": text})
    for _ in range(2):
        job.driver.begin(1)
    job.driver.begin(2)
    placed = {one.id: one.part for one in job.pinned.queries(2)}
    assert placed == {"up": 0, "all": 1} | ({} if part is None else {"later": part})
    told = [record.getMessage() for record in caplog.records if "'later' is not run" in record.getMessage()]
    assert len(told) == (part is None)


def test_a_query_that_needs_another_key_is_not_run_where_all_parts_have_keys(tmp_path, caplog):
    job = changing_job(tmp_path, 1, "by user")
    job.driver.begin(0)
    set_queries(job.home, texts("by user", "by shop", "up", "twice up"))
    job.driver.begin(1)
    assert [one.id for one in job.pinned.queries(2)] == ["by user", "up", "twice up"]
    assert "the query 'by shop' is not run: it cannot be matched apart by user" in caplog.text
    assert "version 2 from micro-batch 1 on: +2 queries (up, twice up)" in caplog.text


def test_queries_without_a_key_are_dealt_to_the_same_shards_by_every_driver(tmp_path):
    job = changing_job(tmp_path, 1, "by nothing", "neighbours")
    assert [part.keys for part in job.job.parts] == [(), ()]
    job.driver.begin(0)
    more = {f"q{n}": f"PATTERN SEQ(A a, B b) WITHIN {n + 1}" for n in range(20)}
    set_queries(job.home, texts("by nothing", "neighbours") | more)
    job.driver.begin(1)
    placed = job.pinned.queries(2)
    assert {one.part for one in placed} == {0, 1}
    (job.control / "queries" / "v0002.json").unlink()
    notes = job.control / "queries" / "micro-batches.json"
    notes.write_text('{"0": 1}')
    job.restart()
    job.driver.begin(1)
    assert job.pinned.queries(2) == placed


# --- what the driver notes --------------------------------------------------------------------------------------------


def test_a_restart_goes_on_with_the_noted_version_and_the_same_parts(tmp_path):
    job = changing_job(tmp_path, 1, "by user")
    job.driver.begin(0)
    set_queries(job.home, texts("by shop", "by nothing"))
    before = job.job
    job.restart()
    assert [part.keys for part in job.job.parts] == [("user",)]
    assert [part.program.identity for part in job.job.parts] == [part.program.identity for part in before.parts]
    job.driver.begin(0)
    assert job.pinned.version_of(0) == 1
    job.driver.begin(1)
    assert job.pinned.version_of(1) == 2
    assert job.pinned.queries(2) == ()


def test_old_notes_are_forgotten_with_their_queries(tmp_path):
    job = changing_job(tmp_path, 1, "by user")
    for batch in range(KEPT_NOTES + 2):
        if batch == 1:
            set_queries(job.home, texts("by user", "up"))
        job.driver.begin(batch)
    assert sorted(job.pinned.notes) == [*range(2, KEPT_NOTES + 2)]
    assert sorted(place.name for place in (job.control / "queries").glob("v*")) == ["v0002.json"]


def test_a_folder_that_cannot_be_read_leaves_the_job_at_its_version(tmp_path, caplog):
    job = changing_job(tmp_path, 1, "by user")
    job.driver.begin(0)
    (job.home / "LATEST").write_text("torn")
    job.driver.begin(1)
    job.driver.begin(2)
    assert job.pinned.notes == {0: 1, 1: 1, 2: 1}
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "the job goes on with version 1 of its queries: ACEP-D210" in caplog.text
    set_queries(job.home, texts("up"))
    job.driver.begin(3)
    assert job.pinned.version_of(3) == 2


def test_another_folder_is_another_job(tmp_path, caplog):
    job = changing_job(tmp_path, 1, "by user")
    job.driver.begin(0)
    job.home.rename(tmp_path / "away")
    set_queries(job.home, texts("by user"))
    set_queries(job.home, texts("up"))
    job.driver.begin(1)
    assert job.pinned.version_of(1) == 1
    assert "is another folder than when the job began" in caplog.text
    with pytest.raises(DataError, match="ACEP-S012"):
        job.restart()


def test_what_cannot_be_known_is_an_error(tmp_path):
    job = changing_job(tmp_path, 1, "by user")
    job.driver.begin(0)
    for batch in (None, 7):
        with pytest.raises(DataError, match="ACEP-S087"):
            job.pinned.version_of(batch)
    for name in ("v0001.json", "micro-batches.json"):
        (job.control / "queries" / name).write_text("[{")
    with pytest.raises(DataError, match="ACEP-S088"):
        job.pinned.queries(1)
    with pytest.raises(DataError, match="ACEP-S088"):
        job.pinned.version_of(0)


def test_a_set_with_queries_of_its_own_is_refused(tmp_path):
    desk = QuerySet(time="ts")
    with pytest.raises(UsageError, match="ACEP-U231"):
        desk.spark(queries=tmp_path)
    desk.add(QUERIES["by user"])
    with pytest.raises(UsageError, match="ACEP-S089"):
        desk.spark(queries=tmp_path)


def test_a_job_needs_a_query_to_begin_with(tmp_path):
    set_queries(tmp_path / "desk", {"a": "PATTERN A a WHERE a.colour = 'red' WITHIN 3"})
    matcher = QuerySet(time="ts").spark(queries=tmp_path / "desk")
    with pytest.raises(UsageError, match="ACEP-S090"):
        matcher.job(stream(9, 1).schema, is_stream=True)


# --- results ----------------------------------------------------------------------------------------------------------


def test_rows_have_the_same_columns_whatever_the_queries(tmp_path):
    set_queries(tmp_path / "desk", {"a": "PATTERN SEQ(A a, B b) WITHIN 3 s", "b": "PATTERN SEQ(A a, B b) WITHIN 3"})
    for type_, when in ((pa.int64(), pa.int64()), (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"))):
        events = stream(9, 1)
        events = events.set_column(0, "ts", events["ts"].cast(type_))
        job = QuerySet(time="ts").spark(queries=tmp_path / "desk").job(events.schema, is_stream=True)
        assert job.results.names == ["query", "start", "end", "errors", "times", "values"]
        assert job.results.field("end").type == when
        assert job.schema.names == events.column_names


# --- inside a budget --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(cases(24, 3)))
def test_a_budget_holds_while_queries_come_and_go(tmp_path, seed):
    options = {"budget": "1 steps/event", "policy": "oldest", "audit": 0, "seed": seed}
    job = changing_job(tmp_path, seed, "by user", "by both", size=200, options=options)
    job.run(at_random(job.home, 0.03), most=60)
    assert not job.found - job.expected
    assert 0 < job.sums["steps"] <= len(job.events)


def test_the_whole_budget_is_the_exact_answer(tmp_path):
    job = changing_job(tmp_path, 2, "by user", "by nothing", size=60, options={"budget": "100%"})
    job.run(at_random(job.home))
    assert job.found == job.expected


# --- with Spark -------------------------------------------------------------------------------------------------------


def put(place: Path, number: int, events: pa.Table) -> None:
    """Let a file of events arrive."""
    place.mkdir(exist_ok=True)
    draft = place / f".{number}.parquet"
    pq.write_table(events, draft)
    draft.rename(place / f"{number}.parquet")
    os.utime(place / f"{number}.parquet", (number, number))


def timed(seed: int) -> pa.Table:
    """Events whose times Spark has a watermark for, without ties."""
    events = stream(300, seed)
    when = pa.array(range(1_000_000, 301_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    return events.set_column(0, "ts", when)


IN_SECONDS = {
    "by user": "PATTERN SEQ(A a, B b) WHERE [user] AND b.x > a.x WITHIN 20 s",
    "high": "PATTERN C c WHERE [user] AND c.x > 6 WITHIN 1 s RETURN c.user AS user, c.x AS x",
}


def number_of(found: pa.Table, query: str) -> int:
    """How many results a query has."""
    return found.filter(pc.equal(found["query"], query)).num_rows


@pytest.mark.xdist_group("spark")
def test_queries_come_and_go_in_a_running_job(spark, tmp_path, caplog):
    from acep_approx.spark import start

    home, arrived, events = tmp_path / "desk", tmp_path / "arrived", timed(1)
    set_queries(home, {"by user": IN_SECONDS["by user"]})
    put(arrived, 0, events.slice(0, 100))
    schema = spark.createDataFrame(events.slice(0, 1)).schema
    matcher = QuerySet(time="ts").spark(queries=home, id="id", watermark="1 second", shards=2)
    places = {"to": tmp_path / "found", "checkpoint": tmp_path / "checkpoint"}
    query = start(matcher, spark.readStream.schema(schema).parquet(str(arrived)), **places)
    try:
        query.processAllAvailable()
        set_queries(home, IN_SECONDS)
        put(arrived, 1, events.slice(100, 100))
        query.processAllAvailable()
        set_queries(home, {"high": IN_SECONDS["high"]})
        put(arrived, 2, events.slice(200, 100))
        query.processAllAvailable()
    finally:
        query.stop()
    found = spark.read.parquet(str(places["to"])).toArrow()
    here, expected = QuerySet(time="ts", bind="id"), []
    here.add(IN_SECONDS["by user"], id="by user")
    for first, last, change_here in (
        (0, 98, lambda: here.add(IN_SECONDS["high"], id="high")),  # the others wait for the watermark
        (98, 198, lambda: here.remove("by user")),
        (198, 298, lambda: None),
    ):
        expected += here.push(events.slice(first, last - first)).to_arrow().to_pylist()
        expected += here.pass_time((last + 1) * 1_000_000).to_arrow().to_pylist()
        change_here()
    columns = ["query", "start", "end", "errors", "times", "values"]
    assert Counter(map(str, found.select(columns).to_pylist())) == Counter(map(str, expected))
    assert number_of(found, "by user") > 20
    assert "version 2 from micro-batch" in caplog.text


@pytest.mark.xdist_group("spark")
def test_a_job_of_the_shell_takes_the_newest_version_when_it_goes_on(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in IN_SECONDS.items():
        Path(f"{name}.acep").write_text(text)
    events = timed(2)
    put(Path("arrived"), 0, events.slice(0, 150))
    acep("queries", "add", "desk", "by user.acep")
    run = ("run", "--queries", "desk", "arrived", "--spark", "--stream", "--until-done", "--id", "id")
    run += ("--watermark", "1 second", "-o", "found", "--checkpoint", "checkpoint", "--shards", "2")
    acep(*run)
    acep("queries", "add", "desk", "high.acep")
    put(Path("arrived"), 1, events.slice(150, 150))
    acep(*run)
    found = spark.read.parquet(str(tmp_path / "found")).toArrow()
    expected = pc.sum(pc.and_(pc.equal(events["type"], "C"), pc.greater(events["x"], 6)).slice(148, 150)).as_py()
    assert number_of(found, "high") == expected > 0
    here = QuerySet(time="ts", bind="id")
    here.add(IN_SECONDS["by user"], id="by user")
    assert number_of(found, "by user") == here.match(events.slice(0, 298)).rows
