"""What is learned on Spark is what is learned here, bit for bit, whatever the partitions; portions are the same."""

from __future__ import annotations

import json
import random
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.errors import AcepError
from acep_approx.events.source import BATCH_ROWS
from acep_approx.run.events import in_order
from acep_approx.spark.past.training import PORTION_OF, TICK, portions_of
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.past import Past, portion_of, portions
from acep_approx.training.training import Counted, blank_of, count_past, count_portion, try_readings
from history.tables import pack, unpack
from tests.cases import examples
from tests.counted_histories import assert_same

spark_test = pytest.mark.xdist_group("spark")
TEXT = "PATTERN SEQ(A a, B b, C c) WHERE [user] AND b.x > a.x AND c.x > b.x WITHIN 200"
QUERY = compile_query(TEXT)
KEYLESS = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 4")


def make_events(number: int, seed: int = 1) -> pa.Table:
    """Events of 20 users, three to each tick, some without a user."""
    dice = random.Random(seed)
    return pa.Table.from_pylist(
        [
            {
                "ts": n // 3,
                "user": f"u{dice.randrange(20)}" if dice.random() < 0.97 else None,
                "type": dice.choice("ABC"),
                "x": dice.randrange(10),
                "id": n,
            }
            for n in range(number)
        ]
    )


EVENTS = make_events(6000)


def files(known: HistoryGraph, folder: Path) -> dict[str, Any]:
    """The sums of all files of a history, and all else that is kept with it."""
    return json.loads((known.save(folder) / "manifest.json").read_text(encoding="utf-8"))


def shuffled(events: pa.Table, seed: int) -> pa.Table:
    return events.take(np.random.default_rng(seed).permutation(len(events)))


def past_of(query: Query, events: pa.Table = EVENTS) -> Past:
    return Past(query.plan, events, {})


def tried(query: Query, past: Past, gap: int = -1):
    return try_readings(query.plan, past, gap, 1000, lambda *_: None)


# --- without Spark ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts() -> tuple[Past, list[Counted], Counted]:
    """The portions of a past, counted one by one and together."""
    past = past_of(QUERY)
    blank = tried(QUERY, past).blank
    found = [count_portion(QUERY.plan, past.schema, past.roles, blank, batches) for batches in past.portions(8)]
    return past, found, count_past(QUERY.plan, past, blank, 8)


@examples(15)
@given(order=st.permutations(range(6)), split=st.integers(0, 6))
def test_portions_add_up_to_the_same_in_any_order_and_grouping(parts, order, split):
    _, counted, expected = parts
    blank = blank_of(expected.graph)
    assert len(counted) >= 6
    left = right = Counted(blank)
    for number in order[:split]:
        left = left.merge(counted[number])
    for number in [*order[split:], *range(6, len(counted))]:
        right = right.merge(counted[number])
    found = right.merge(left)
    assert_same(found.graph.counts, expected.graph.counts)
    assert vars(found) | {"graph": 0} == vars(expected) | {"graph": 0}


def test_what_was_counted_comes_back_from_its_bytes(parts):
    _, counted, _ = parts
    graph = counted[0].graph
    assert len(graph.counts.bundles)
    assert graph.counts.maps
    again = unpack(pack(graph), blank_of(graph))
    assert_same(again.counts, graph.counts)
    assert pack(again) == pack(graph)
    empty = blank_of(graph)
    assert_same(unpack(pack(empty), empty).counts, empty.counts)


def test_portions_find_the_events_and_points_of_the_whole(parts):
    past, _, cut = parts
    blank = blank_of(cut.graph)
    whole, cut = count_past(QUERY.plan, past, blank, 1), count_past(QUERY.plan, past, blank, 16)
    assert (whole.events, whole.points, whole.steps) == (cut.events, cut.points, cut.steps)
    assert whole.points > 50
    for name in ("visits", "reached", "led", "completed"):  # the cost too: this past is looked at in one chunk
        np.testing.assert_array_equal(getattr(whole.graph.counts, name), getattr(cut.graph.counts, name))
    names = [list(zip(c.graph.counts.bundles.first, c.graph.counts.bundles.slot, strict=True)) for c in (whole, cut)]
    assert sorted(names[0]) == sorted(names[1])


def test_bundles_are_told_apart_in_all_portions(parts):
    _, counted, _ = parts
    seen = [
        identity
        for one in counted
        for identity in zip(
            *(getattr(one.graph.counts.bundles, name).tolist() for name in ("first", "slot", "row")), strict=True
        )
    ]
    assert len(seen) == len(set(seen)) > 50


def test_the_same_past_is_cut_alike_however_it_is_stored(tmp_path):
    pq.write_table(EVENTS, tmp_path / "past.parquet", row_group_size=700)
    stored, held = (Past(QUERY.plan, source, {}) for source in (tmp_path / "past.parquet", EVENTS))
    one, other = list(stored.batches(10, 5000)), list(held.batches(10, 5000))
    assert [batch.data.equals(twin.data) for batch, twin in zip(one, other, strict=True)] == [True]
    assert one[0].first_row == 10


def test_no_tick_is_torn_where_the_past_is_cut():
    past = past_of(QUERY)
    first, held_out = past.cut()
    assert (first, held_out) == (0, 3600)
    torn = past_of(QUERY, EVENTS.slice(1))  # the border would be within a tick
    place = torn.cut()[1]
    assert torn.ticks[place - 1] < torn.ticks[place]
    assert 0 <= int(0.6 * len(torn)) - place < 3


def test_the_end_of_a_long_past_is_cut_as_the_whole(monkeypatch):
    monkeypatch.setattr("acep_approx.training.past.MOST_HELD_OUT", 500)
    monkeypatch.setattr("acep_approx.training.past.MOST_TRIED", 1000)
    whole = past_of(QUERY)
    end = Past(QUERY.plan, EVENTS.slice(4000), {}, skipped=4000)
    first, held_out = whole.cut()
    assert (first, held_out) == (4497, 5499)
    assert end.cut() == (first - 4000, held_out - 4000)
    assert next(end.batches(500)).first_row == 4500


def test_the_number_of_portions_depends_on_the_query():
    strict = compile_query("PATTERN SEQ(A a, B b) WHERE strict_contiguity { [user] } WITHIN 20")
    assert portions(QUERY.plan, 1 << 20) == 8
    assert portions(KEYLESS.plan, 1 << 20) == portions(strict.plan, 1 << 20) == 1


def test_a_portion_is_that_of_a_checksum():
    text = "ann"
    word = zlib.crc32(text.encode())
    word ^= word >> 16
    expected = (((word & 0xFFFF) * 40_503 & 0xFFFF) * 64) >> 16
    for column in (pa.array([text]), pa.array([text]).dictionary_encode(), pa.array([text], pa.large_string())):
        assert portion_of([column], 64).tolist() == [expected]


@examples(20)
@given(st.integers(0, 12).map(lambda bits: 1 << bits), st.integers(0, 40))
def test_keys_are_spread_over_all_portions(stride, begin):
    """Whatever the step from one number to the next."""
    keys = pa.array(np.arange(4096) * stride + begin)
    found = np.bincount(portion_of([keys], 16), minlength=16)
    assert found.min() > 4096 / 16 / 3
    assert found.max() < 4096 / 16 * 3


def rows_of(portion: list[int]) -> list[pa.RecordBatch]:
    table = pa.table({PORTION_OF: pa.array(portion, pa.int32()), TICK: range(len(portion)), "x": portion})
    return table.to_batches(max_chunksize=3)


@examples(40)
@given(st.lists(st.integers(0, 4), max_size=40).map(sorted), st.integers(1, 7))
def test_a_worker_cuts_a_partition_where_portions_end(portion, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep_approx.spark.past.training.BATCH_ROWS", rows)
        found = [list(some) for some in portions_of(iter(rows_of(portion)), pa.schema([("x", pa.int64())]))]
    assert [sum(map(len, some)) for some in found] == [portion.count(n) for n in sorted(set(portion))]
    for some in found:
        assert all(len(batch) == rows for batch in some[:-1])
        assert [batch.first_row for batch in some] == list(range(0, len(some) * rows, rows))
        assert len({value for batch in some for value in batch.data.column("x").to_pylist()}) == 1
    assert BATCH_ROWS == 131_072  # what local portions are cut into; a history depends on it


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--spark", "--more"], "ACEP-S023"),
        (["--spark", "--on-malformed", "skip"], "ACEP-S023"),
        (["--id", "id"], "ACEP-S024"),
        (["--master", "local[2]"], "ACEP-S037"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, code, tmp_path):
    from acep_approx.cli.main import app

    result = CliRunner().invoke(app, ["train", TEXT, "past.csv", "-o", str(tmp_path / "history"), *options])
    assert result.exit_code != 0
    assert result.stderr.startswith(f"error {code}")


# --- on Spark -----------------------------------------------------------------------------------------------


@spark_test
@pytest.mark.parametrize(("partitions", "shards", "ordered_by"), [(1, 1, "id"), (3, 2, None), (7, 5, "id")])
def test_a_history_is_the_same_as_here(spark, tmp_path, partitions, shards, ordered_by):
    from acep_approx.spark.past.training import train_history

    columns = Matcher(QUERY.plan, output="points").bind(EVENTS.schema).columns
    ties = [EVENTS[name].combine_chunks() for name in columns if name != "ts"]
    here = EVENTS if ordered_by else EVENTS.take(in_order(EVENTS["ts"].to_numpy(), np.arange(len(EVENTS)), ties))
    known = HistoryGraph(QUERY).fit(here, portion_events=500)
    events = spark.createDataFrame(shuffled(EVENTS, partitions)).repartition(partitions)
    found = train_history(events, QUERY, id=ordered_by, portion_events=500, shards=shards)
    assert files(found, tmp_path / "spark") == files(known, tmp_path / "here")
    assert known.points_ > 50
    assert portions(QUERY.plan, len(EVENTS), 500) == 8


@spark_test
def test_the_time_may_have_any_name(spark, tmp_path):
    from acep_approx.spark.past.training import train_history

    some = EVENTS.slice(0, 500).rename_columns(["event.ts" if name == "ts" else name for name in EVENTS.column_names])
    known = HistoryGraph(QUERY).fit(some, time="event.ts")
    found = train_history(spark.createDataFrame(shuffled(some, 1)), QUERY, time="event.ts", id="id")
    assert files(found, tmp_path / "spark") == files(known, tmp_path / "here")


@spark_test
def test_only_the_end_of_a_long_past_comes_to_the_driver(spark, tmp_path, monkeypatch):
    """Here with a window of bundles, no key, and times that Spark does not know as such."""
    from acep_approx.spark.past import training

    for name, number in (("MOST_HELD_OUT", 500), ("MOST_TRIED", 1000)):
        monkeypatch.setattr(f"acep_approx.training.past.{name}", number)
        monkeypatch.setattr(training, name, number)
    monkeypatch.setattr(training, "BINS", 3)
    texts = [datetime.fromtimestamp(tick, UTC).isoformat() for tick in EVENTS["ts"].to_pylist()]
    events = EVENTS.set_column(0, "ts", pa.array(texts))
    query = compile_query(str(KEYLESS).replace("WITHIN 4", "WITHIN 4 s"))
    known = HistoryGraph(query, gap="window").fit(events)
    collected: list[Past] = []
    collect = training._Training._collected

    def noted(job, *args):
        collected.append(collect(job, *args))
        return collected[-1]

    monkeypatch.setattr(training._Training, "_collected", noted)
    found = training.train_history(spark.createDataFrame(shuffled(events, 1)), query, id="id", gap="window")
    assert files(found, tmp_path / "spark") == files(known, tmp_path / "here")
    assert [1501 <= len(past) <= 3100 for past in collected] == [True]


@spark_test
def test_spark_finds_the_same_portions(spark):
    from pyspark.sql import functions as F

    from acep_approx.spark.past.training import portion_column

    dice = np.random.default_rng(3)
    numbers = pa.array(dice.integers(-(2**62), 2**62, 200), mask=dice.random(200) < 0.1)
    small = pc.bit_wise_and(numbers, 1023)
    columns = {
        "whole": numbers,
        "short": small.cast(pa.int16()),
        "text": pc.binary_join_element_wise("Zoë ", small.cast(pa.string()), ""),
        "truth": pc.equal(pc.bit_wise_and(numbers, 1), 1),
        "day": small.cast(pa.int32()).cast(pa.date32()),
        "moment": small.cast(pa.timestamp("us", tz="UTC")),
        "real": pc.divide(numbers.cast(pa.float64(), safe=False), 1e14),
    }
    events = spark.createDataFrame(pa.table(columns))
    for names in [*([name] for name in columns), ["text", "whole", "day"], ["text", "real"]]:
        found = events.select(portion_column(events, names, 64).alias("portion"), F.lit(1)).toArrow()
        expected = portion_of([columns[name] for name in names], 64).tolist()
        assert found["portion"].to_pylist() == expected, names
        assert len(set(expected)) > (1 if names == ["truth"] else 20), names


@spark_test
def test_events_without_a_time_are_refused(spark):
    from acep_approx.spark.past.training import train_history

    events = spark.createDataFrame([(1, "u", "A", 1), (None, "u", "B", 2)], "ts long, user string, type string, x long")
    with pytest.raises(AcepError) as caught:
        train_history(events, QUERY)
    assert caught.value.code == "ACEP-D004"


@spark_test
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_are_read_as_here(spark, tmp_path, kind):
    from acep_approx.events.source import open_source
    from acep_approx.spark.sources.files import read_files

    begin = datetime(2024, 3, 1, tzinfo=UTC).timestamp() * 1_000_000
    stamps = pc.add(pc.multiply(EVENTS["ts"], 500_000), int(begin)).cast(pa.timestamp("us", tz="UTC"))
    events = EVENTS.set_column(0, "ts", stamps).slice(0, 500)
    for number, part in enumerate((events.slice(0, 300), events.slice(300))):
        file = tmp_path / f"part{number}.{kind}"
        if kind == "csv":
            pacsv.write_csv(part.select(part.column_names[:: 1 - 2 * number]), file)  # columns in another order
        elif kind == "jsonl":
            lines = (json.dumps({**row, "ts": row["ts"].isoformat()}) for row in part.to_pylist())
            file.write_text("\n".join(lines), encoding="utf-8")
        else:
            pq.write_table(part, file)
    source = open_source(tmp_path)
    here = pa.Table.from_batches(source.batches())
    found = read_files(spark, [tmp_path]).orderBy("id").toArrow()
    times = here["ts"] if kind == "parquet" else here["ts"].cast(stamps.type)  # of JSON they are texts here
    here = here.set_column(here.column_names.index("ts"), "ts", times)
    for name in here.column_names:
        assert found[name].to_pylist() == here[name].to_pylist(), name


@spark_test
@pytest.mark.usefixtures("spark")  # the command finds the session that runs
def test_the_command_learns_on_spark(tmp_path):
    from acep_approx.cli.main import app

    pacsv.write_csv(EVENTS, tmp_path / "past.csv")
    command = ["train", TEXT, str(tmp_path / "past.csv"), "--quiet", "-o"]
    for options in (["here"], ["spark", "--spark", "--id", "id"]):
        options[0] = str(tmp_path / options[0])
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 0, result.stderr
    one, other = ((tmp_path / name / "v0001" / "manifest.json").read_bytes() for name in ("here", "spark"))
    assert one == other
    (tmp_path / "torn.csv").write_text("ts,user,type,x\n1,u,A,1\n2,u,B\n", encoding="utf-8")
    torn = CliRunner().invoke(app, ["train", TEXT, str(tmp_path / "torn.csv"), "--spark", "-o", str(tmp_path / "torn")])
    assert torn.exit_code == 4
    assert torn.stderr.startswith("error ACEP-D")
