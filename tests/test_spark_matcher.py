"""On real Spark: batch = stream = local; late events, silent keys, odd columns, bad input, and state one can read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from acep_approx import AcepError, DataError, UsageError, compile_query
from acep_approx.spark.plan.flow import Flow
from acep_approx.spark.plan.matcher import SparkMatcher
from acep_approx.spark.plan.packing import GROUP, spread
from acep_approx.spark.setup.failures import clear_errors
from acep_approx.spark.setup.kinds import batch_of_task
from acep_approx.spark.streaming.stream import start
from acep_approx.spark.worker.shard import describe
from acep_approx.training.history_graph import HistoryGraph
from history.errors import HistoryError
from tests.cases import FULL
from tests.patience import ended, until
from tests.spark_cases import END, SparkCase, corpus, numbered, random_cases, rows, waits_for_the_end

pytestmark = pytest.mark.xdist_group("spark")

CASES = 200 if FULL else 3
"""Random ones, each in a batch and in a stream."""
STREAMED = 1 if FULL else 4
"""Of the cases every so many is also a stream: each micro-batch starts a Python process, which takes seconds."""
AT_ONCE = 3
"""Streams that run at the same time."""
TOO_SLOW = "failed to connect back"
"""What Spark says when a new Python process takes more than ten seconds to start: on a busy machine, try again."""
ATTEMPTS = 5
CHOSEN = (
    "language: two keys do not mix",
    "language: count windows count all events",
    "language: letters of a regular expression are not",
    "language: no overlap, and a negation at the end that fails",
    "language: a negation beside a missing event is void",
)
WRITTEN = {
    "with RETURN": "PATTERN SEQ(A a, B+ b[]) WHERE [g] AND a.x <= b[i].x WITHIN 9 RETURN a.x AS x, sum(b[].x) AS total",
    "strict contiguity": "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [g] } WITHIN 9",
    "negation at the end": "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN 5",
    "regular expression": "xy*z WITHIN 3 DEFINE x AS type = 'A', y AS x > 1, z AS type = 'C'",
}


def table_of(seed: int, number: int = 80) -> pa.Table:
    """Events of three types and three keys, with ties and nulls."""
    dice = Random(seed)
    ts = np.cumsum([dice.choice((0, 1, 1, 2)) for _ in range(number)])
    return pa.table(
        {
            "ts": pa.array(ts, pa.int64()),
            "type": [dice.choice("AABBC") for _ in range(number)],
            "x": pa.array([dice.choice((1, 2, 3, None)) for _ in range(number)], pa.int64()),
            "g": pa.array([dice.choice(("p", "p", "q", None)) for _ in range(number)], pa.string()),
        }
    )


def cases() -> Iterator[SparkCase]:
    """Some of each kind, and random ones."""
    yield from (case for case in corpus() if case.name in CHOSEN)
    for seed, (name, query) in enumerate(WRITTEN.items()):
        case = numbered(name, query, table_of(seed))
        assert case is not None, name
        yield case
    yield from random_cases(CASES, 77)


# --- ways to run ------------------------------------------------------------------------------------------------------


def shuffled(spark, events: pa.Table, dice: Random):
    """A DataFrame of the same events, in random partitions and in no order."""
    order = dice.sample(range(len(events)), len(events))
    return spark.createDataFrame(events.take(order)).repartition(dice.randint(1, 4))


def as_files(spark, events: Sequence[pa.Table], folder: Path):
    """A stream that gets the tables one by one."""
    folder.mkdir(parents=True)
    for number, table in enumerate(events):
        file = folder / f"{number}.parquet"
        pq.write_table(table, file)
        os.utime(file, (10**9 + number,) * 2)  # Spark reads the oldest first
    schema = spark.createDataFrame(events[0].slice(0, 0)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(streams: dict[str, DataFrame]) -> None:
    """Run streams into tables in memory until nothing is left to read."""
    for stream in [begun(partial(into_memory, name, packed)) for name, packed in streams.items()]:
        ended(stream)


def into_memory(name: str, packed: DataFrame) -> StreamingQuery:
    """Start a stream whose rows can be had as a table."""
    return packed.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()


def begun(start_it: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A stream whose first micro-batch is done, or has failed."""
    for _ in range(ATTEMPTS):
        stream = start_it()
        until(lambda its=stream: not its.isActive or its.lastProgress is not None, pause=0.1)
        if TOO_SLOW not in str(stream.exception()):
            return stream
    raise AssertionError("Spark did not start a stream")


def pieces(case: SparkCase, dice: Random, delay: int) -> list[pa.Table]:
    """Some micro-batches, with events out of order within a delay; the last one has an event of the far future."""
    tick = case.events["ts"].to_numpy()
    arrival = np.argsort(tick + [dice.uniform(0, delay) for _ in tick], kind="stable")
    cuts = sorted({0, len(tick), *(dice.randint(0, len(tick)) for _ in range(2 if FULL else 1))})
    parts = [dice.sample(arrival[a:b].tolist(), b - a) for a, b in pairwise(cuts)]
    future = case.events.slice(0, 1).set_column(0, "ts", pa.array([END], pa.int64()))
    return [*(case.events.take(part) for part in parts), future]


@contextmanager
def settings(spark: SparkSession, **changed: str) -> Iterator[None]:
    """Other settings of the session, ``spark.sql.`` left out."""
    names = {f"spark.sql.{name.replace('_', '.')}": value for name, value in changed.items()}
    before = {name: spark.conf.get(name) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


# --- local = batch = stream -------------------------------------------------------------------------------------------


def test_batch_is_local(spark):
    dice, matches = Random(1), 0
    for case in cases():
        expected = expected_of(case)
        found = matcher_of(case, dice.choice((None, 1, 3)))(shuffled(spark, case.events, dice))
        assert rows(found.toArrow()) == expected, case
        matches += expected.total()
    assert matches > 80


def test_streams_are_local(spark, tmp_path):
    dice, matches, waiting = Random(2), 0, list(cases())[::STREAMED]
    while waiting:
        some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        names = [f"case_{len(waiting)}_{n}" for n in range(len(some))]
        flows = {name: streaming(spark, case, dice, tmp_path / name) for name, case in zip(names, some, strict=True)}
        run({name: flow.outputs() for name, flow in flows.items()})
        for case, (name, flow) in zip(some, flows.items(), strict=True):
            matches += check_stream(case, flow, spark.table(name))
    assert matches > 10


def expected_of(case: SparkCase) -> Counter[str]:
    """What a local run finds; with RETURN nothing else is shown of events."""
    return rows(case.query.match(case.events).to_arrow()) if case.query.syntax.outputs else case.expected()


def matcher_of(case: SparkCase, shards: int | None, delay: int = 0) -> SparkMatcher:
    """The same for Spark."""
    return case.matcher(shards=shards, watermark=f"{delay} milliseconds")


def streaming(spark, case: SparkCase, dice: Random, folder: Path) -> Flow:
    """A case as a stream, in random micro-batches and shards."""
    delay = dice.choice((0, 0, 3))
    files = as_files(spark, pieces(case, dice, delay), folder)
    return matcher_of(case, dice.choice((1, 2, 3)), delay).flow(files)


def check_stream(case: SparkCase, flow: Flow, packed: DataFrame) -> int:
    """Assert that a stream found what a local run finds, and counted right; returns the number of matches."""
    found, expected = rows(flow.matches(packed).toArrow()), expected_of(case)
    metrics = flow.metrics(packed).collect()
    assert not found - expected if waits_for_the_end(case) else found == expected, case
    assert sum(row.events for row in metrics) == len(case.events), case
    assert sum(row.matches for row in metrics) == found.total()
    assert not sum(row.late + row.malformed for row in metrics), case
    return found.total()


# --- time goes by -----------------------------------------------------------------------------------------------------

WAITING = compile_query("PATTERN SEQ(A a, ~(B b)) WHERE [k] WITHIN 10 s")
NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
SHARDS = 2


def timed(*some: tuple[float | None, str, str | None, int]) -> pa.Table:
    """Events of these seconds, types, keys and numbers."""
    columns = list(zip(*some, strict=True))
    seconds = [None if s is None else NEW_YEAR + timedelta(seconds=s) for s in columns[0]]
    return pa.table(
        {
            "ts": pa.array(seconds, pa.timestamp("us", tz="UTC")),
            "type": pa.array(columns[1], pa.string()),
            "k": pa.array(columns[2], pa.string()),
            "id": pa.array(columns[3], pa.int64()),
        }
    )


def keys_of_two_shards(spark: SparkSession) -> tuple[str, str]:
    """Two keys that do not meet."""
    names = spark.createDataFrame([(name,) for name in "abcdefgh"], "k string")
    shard = {row.k: row.s for row in names.withColumn("s", F.expr(f"pmod(xxhash64(k), {SHARDS})")).collect()}
    return "a", next(name for name in shard if shard[name] != shard["a"])


def test_shards_are_spread_over_the_tasks(spark):
    """Of the shards 0 and 1 Spark's hash makes one task of two: each shard stands for itself by another number."""
    for shards, tasks in ((1, 1), (2, 2), (4, 4), (16, 16), (100, 100), (8, 2), (2, 8)):
        groups = spread(spark, shards)
        assert len(set(groups)) == shards
        rows = spark.createDataFrame([(group,) for group in groups], f"{GROUP} bigint").repartition(tasks, GROUP)
        counts = Counter(row.task for row in rows.select(F.spark_partition_id().alias("task")).collect())
        assert len(counts) == min(shards, tasks)
        assert set(counts.values()) == {max(shards // tasks, 1)}


def test_silent_keys_and_late_events(spark, tmp_path):
    """What waits at a key without new events is put out as soon as the watermark of all others has passed."""
    x, y = keys_of_two_shards(spark)
    micro_batches = [
        timed((0, "A", x, 1)),
        timed((100, "A", y, 2)),
        timed((101, "B", y, 3)),  # now the watermark is at 90 s, and x is silent
        timed((3, "B", x, 4), (102, "C", None, 5), (None, "A", x, 6)),
        timed((10**6, "A", y, 7)),
    ]
    events = as_files(spark, micro_batches, tmp_path / "events").withWatermark("ts", "10 seconds")
    streaming_job = partial(
        start,
        WAITING.spark(id="id", shards=SHARDS),
        events,
        to=tmp_path / "matches",
        late=tmp_path / "late",
        checkpoint=tmp_path / "checkpoint",
        until_done=True,
    )
    with clear_errors():
        ended(begun(streaming_job))
    matches = spark.read.parquet(str(tmp_path / "matches")).select("a", "batch").collect()
    assert [tuple(row) for row in matches] == [(1, 2)]
    late = spark.read.parquet(str(tmp_path / "late")).select("id", "reason", "batch").collect()
    assert sorted(tuple(row) for row in late) == [(4, "late", 3), (6, "no time", 3)]
    check_state(spark, tmp_path / "checkpoint", waiting=1)
    check_another_query(events, tmp_path)


def check_state(spark: SparkSession, checkpoint: Path, waiting: int) -> None:
    """Assert that the state of each shard can be read, and says what it is."""
    reader = spark.read.format("statestore").option("stateVarName", "shard")
    said = [describe(bytes(row.value.blob)) for row in reader.load(str(checkpoint)).collect()]
    assert len(said) == SHARDS
    assert {one["query"] for one in said} == {f"{WAITING.plan.fingerprint()} within 10 s"}
    assert sum(one["waiting"] for one in said) == waiting
    assert sum(one["events"] for one in said) == 4


def check_another_query(events: DataFrame, folder: Path) -> None:
    """Assert that the same checkpoint is refused to another query, in words."""
    pq.write_table(timed((10**6 + 1, "A", "a", 8)), folder / "events" / "more.parquet")
    other = compile_query("PATTERN SEQ(A a, ~(C c)) WHERE [k] WITHIN 10 s").spark(id="id", shards=SHARDS)
    places = {"to": folder / "other", "checkpoint": folder / "checkpoint"}
    with pytest.raises(DataError, match="the checkpoint is of another query") as caught, clear_errors():
        ended(begun(partial(start, other, events, **places, until_done=True)))
    assert caught.value.code == "ACEP-S012"
    assert "checkpoint directory of its own" in (caught.value.hint or "")


# --- columns of all kinds ---------------------------------------------------------------------------------------------

KINDS = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp without a zone": pa.timestamp("us"),
    "date": pa.date32(),
    "s": pa.int32(),
    "ms": pa.int64(),
    "us": pa.int64(),
    "ns": pa.int64(),
}
IN_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ODD = compile_query("PATTERN SEQ(A a, B b) WHERE [key] AND a.`a price` < b.`a price` WITHIN 5 d")


def odd_events(kind: str) -> pa.Table:
    """Events of some days, and one much later, with odd names of columns, and columns that are not used.

    Those of a day are ordered by their ids, and nanoseconds by themselves, though ticks are microseconds.
    """
    dice = Random(kind)
    days = [*sorted(dice.randrange(15) for _ in range(60)), 1000]
    numbers = range(len(days))
    seconds = [int((NEW_YEAR + timedelta(days=day)).timestamp()) for day in days]
    if kind in IN_SECONDS:
        fraction = numbers if kind == "ns" else [0] * len(days)
        ticks = [s * IN_SECONDS[kind] + part for s, part in zip(seconds, fraction, strict=True)]
        times = pa.array(ticks, KINDS[kind])
    else:
        times = pa.array([s * 10**6 for s in seconds], pa.timestamp("us", tz="UTC")).cast(KINDS[kind])
    return pa.table(
        {
            "the.time": times,
            "kind of event": [dice.choice("AB") for _ in numbers],
            "user.name": [dice.choice(("ann", "ann", "bob", None)) for _ in numbers],
            "a price": pa.array([dice.choice((1.5, 1.5, 2.5, 3.5, float("nan"), None)) for _ in numbers], pa.float64()),
            "no.": pa.array(reversed(numbers) if kind == "ns" else numbers, pa.int64()),
            "cost": [Decimal(n).scaleb(-2) for n in numbers],
            "place": [{"x": n, "tags": ["a"]} for n in numbers],
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_times_of_all_kinds_in_columns_of_any_name(spark, tmp_path, kind):
    events = odd_events(kind)
    roles = {"time": "the.time", "key": "user.name", "type": "kind of event"}
    roles |= {"unit": kind} if kind in IN_SECONDS else {}
    expected = ODD.match(events, bind="no.", **roles).to_arrow()
    assert len(expected) > 5
    without_zone = "TIMESTAMP_NTZ" if kind == "timestamp without a zone" else "TIMESTAMP_LTZ"
    with settings(spark, session_timeZone="America/New_York", timestampType=without_zone):
        found = ODD.spark(id="no.", shards=2, **roles)(shuffled(spark, events, Random(3))).toArrow()
        assert rows(found.cast(expected.schema)) == rows(expected)
        if kind not in ("timestamp without a zone", "ns"):
            return
        matcher = ODD.spark(id="no.", shards=2, watermark="1 day", **roles)
        parts = [events.slice(0, 60), events.slice(60)] if FULL else [events]
        flow = matcher.flow(as_files(spark, parts, tmp_path / "events"))
        run({"odd": flow.outputs()})
        found = flow.matches(spark.table("odd")).toArrow()
        assert rows(found.cast(expected.schema)) == rows(expected)


NUMBERS_OF_ALL_KINDS = (0.0, -0.0, 1.5, float("nan"), None)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.float64(), NUMBERS_OF_ALL_KINDS),
        (pa.float32(), NUMBERS_OF_ALL_KINDS),
        (pa.int16(), (0, -1, None)),
        (pa.bool_(), (True, False, None)),
        (pa.date32(), (date(2024, 2, 29), date(2024, 3, 1), None)),
        (pa.list_(pa.float64()), ([0.0], [-0.0], [1.5, None], [], None)),
    ],
)
def test_keys_of_all_types(spark, type_, values):
    """Two keys, one of any type: both zeros are one key, NaN is a key, and NULL is none."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [k] AND [g] WITHIN 9")
    dice = Random(str(type_))
    events = table_of(7).append_column("k", pa.array(dice.choices(values, k=80), type_))
    case = numbered("keys", str(query), events)
    assert case is not None
    expected = case.expected()
    assert expected.total() > 5
    for shards in (None, 3) if FULL else (None if pa.types.is_float32(type_) or pa.types.is_boolean(type_) else 3,):
        assert rows(case.matcher(shards=shards)(shuffled(spark, case.events, dice)).toArrow()) == expected


# --- bad input --------------------------------------------------------------------------------------------------------

SIMPLE = compile_query("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10 s", engine="runs")
COLUMNS = "ts timestamp, type string, k string, id long"


@pytest.mark.parametrize(
    ("columns", "options", "code"),
    [
        ("ts timestamp, type string, id long", {}, "ACEP-Q060"),
        ("type string, k string, id long", {}, "ACEP-D001"),
        (COLUMNS, {"time": "when"}, "ACEP-D002"),
        (COLUMNS.replace("timestamp", "string"), {"time": "ts"}, "ACEP-S003"),
        (COLUMNS.replace("timestamp", "boolean"), {"time": "ts"}, "ACEP-D003"),
        (COLUMNS, {"id": "number"}, "ACEP-D002"),
        (COLUMNS, {"bind": ("id", "number")}, "ACEP-D002"),
        (COLUMNS, {"shards": 0}, "ACEP-S001"),
        (COLUMNS, {"budget": "a lot"}, "ACEP-U030"),
        (COLUMNS, {"budget": "2 ms/batch"}, "ACEP-S006"),
        (COLUMNS, {"budget": "20%", "history": "/none/at/all"}, "ACEP-H001"),
    ],
)
def test_bad_input_is_refused_before_spark_starts(spark, columns, options, code):
    with pytest.raises((AcepError, HistoryError), match=code):
        SIMPLE.spark(**options)(spark.createDataFrame([], columns))


def test_the_history_of_another_query_is_refused(spark, tmp_path):
    other = compile_query("PATTERN SEQ(A a, C c) WHERE [k] WITHIN 10 s", engine="runs")
    HistoryGraph(other).fit(timed(*((n, "AC"[n % 2], "x", n) for n in range(20)))).save(tmp_path / "history")
    with pytest.raises(HistoryError, match="ACEP-H002"):
        SIMPLE.spark(budget="20%", history=tmp_path / "history")(spark.createDataFrame([], COLUMNS))


@pytest.mark.parametrize(
    ("change", "options", "code"),
    [
        ("timestamp", {}, "ACEP-S004"),
        ("double", {"watermark": "1 second", "unit": "s"}, "ACEP-S005"),
        ("date", {"watermark": "1 second"}, "ACEP-S005"),
    ],
)
def test_bad_streams_are_refused(spark, tmp_path, change, options, code):
    files = as_files(spark, [timed((0, "A", "x", 1))], tmp_path / "events")
    events = files.withColumn("ts", F.col("ts").cast(change))
    with pytest.raises(AcepError) as caught:
        SIMPLE.spark(**options)(events)
    assert caught.value.code == code
    assert caught.value.hint


def test_a_task_is_told_which_micro_batch_it_is_of(spark, tmp_path):
    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (pa.RecordBatch.from_pydict({"told": [batch_of_task()]}) for batch in batches if len(batch))

    seen: list[tuple[int, int]] = []
    files = as_files(spark, [timed((tick, "x", "A", 0)) for tick in range(3)], tmp_path / "events")
    stream = files.mapInArrow(told, "told long").writeStream.trigger(availableNow=True)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    ended(stream.foreachBatch(lambda some, n: seen.extend((n, row.told) for row in some.collect())).start())
    assert sorted(seen) == [(0, 0), (1, 1), (2, 2)]


def test_a_batch_is_no_stream(spark, tmp_path):
    events = spark.createDataFrame([], COLUMNS)
    with pytest.raises(UsageError) as caught:
        start(SIMPLE.spark(), events, to=tmp_path / "matches", checkpoint=tmp_path / "checkpoint")
    assert caught.value.code == "ACEP-S007"


def test_without_keys_all_events_go_into_one_task_and_it_says_so(spark, caplog):
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 10 s")
    events = timed((0, "A", "x", 1), (1, "B", "y", 2))
    matches = query.spark(id="id", shards=4)(spark.createDataFrame(events).repartition(2))
    assert [record.name for record in caplog.records] == ["acep_approx.spark"]
    assert "in one task: the query has no equivalence" in caplog.text
    assert [row.asDict()["b"] for row in matches.collect()] == [2]
    caplog.clear()
    SIMPLE.spark(id="id", shards=4)(spark.createDataFrame([], COLUMNS))
    assert not caplog.records


@pytest.mark.parametrize("output", ["points", "matches"])
def test_ends_are_searched_as_they_are_here(spark: SparkSession, tmp_path: Path, output: str) -> None:
    """Inside a budget, with a history that says that it pays."""
    dice = Random(3)
    query = compile_query("PATTERN SEQ(A a, B b, A c) WHERE [g] AND b.x > a.x AND c.y = a.y WITHIN 60")
    kinds = {"type": "AAB", "g": "pqr", "x": range(9), "y": range(20)}
    events = [{"ts": ts, **{name: dice.choice(some) for name, some in kinds.items()}} for ts in range(6000)]
    past, now = pa.Table.from_pylist(events[:3000]), pa.Table.from_pylist(events[3000:])
    HistoryGraph(query).fit(past).save(tmp_path / "known")
    here = query.match_within(now, "15%", history=tmp_path / "known", audit=0)
    shown = here.points() if output == "points" else pa.concat_tables(here.tables())
    expected = sorted(shown["end"].to_pylist())
    assert here.shedder is not None
    assert here.shedder.ways is not None
    assert here.shedder.ways.searches
    assert 10 < len(expected) < len(query.match(now).points() if output == "points" else query.match(now))
    spending = {"budget": "15%", "history": tmp_path / "known", "audit": 0}
    matcher = query.spark(time="ts", output=output, shards=1, **spending)
    file = tmp_path / "now.parquet"
    pq.write_table(now, file)
    assert sorted(row["end"] for row in matcher(spark.read.parquet(str(file))).collect()) == expected
