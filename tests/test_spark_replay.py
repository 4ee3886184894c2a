"""The replay data source: which events it gives, and when."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.errors import AcepError
from acep_approx.spark.sources import replay
from acep_approx.spark.sources.replay import Loaded, Recording, Replay, Settings, StreamReader
from tests.patience import ended

MINUTE = 60_000_000


def write(path, **columns):
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.fixture
def file(tmp_path):
    """Ten events, one a minute."""
    return write(
        tmp_path / "recorded.parquet",
        ts=pa.array([i * MINUTE for i in range(10)], pa.timestamp("us", tz="UTC")),
        tail=[f"N{i % 3}" if i else None for i in range(10)],
        seat=pa.array([i % 4 + 7 for i in range(10)], pa.int16()),
    )


def options(file, **more):
    from pyspark.sql.datasource import CaseInsensitiveDict

    return CaseInsensitiveDict({"path": file, **more})


def events(file, parts=None, schema=None, **more):
    """All events of some parts (default: of a batch), one after the other."""
    source = Replay(options(file, **more))
    reader = source.reader(source.schema() if schema is None else schema)
    reader = pickle.loads(pickle.dumps(reader))
    wanted = reader.partitions() if parts is None else parts
    return pa.Table.from_batches([batch for part in wanted for batch in reader.read(part)], schema=reader.schema)


def stream(file, **more) -> StreamReader:
    source = Replay(options(file, **more))
    return source.streamReader(source.schema())


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on only when told."""

    class Clock:
        now = 1000.0

    monkeypatch.setattr(replay, "monotonic", lambda: Clock.now)
    return Clock


def test_a_batch_is_the_file(file):
    found = events(file)
    assert found.equals(pq.read_table(file).cast(found.schema))


def test_repetitions_are_later_and_have_other_keys(file):
    found = events(file, repeat="3", shift_keys="tail").to_pylist()
    assert len(found) == 30
    gaps = {(b["ts"] - a["ts"]).total_seconds() for a, b in pairwise(found)}
    assert gaps == {60.0}  # also from one repetition to the next
    assert [row["tail"] for row in found[:30:9]] == [None, "N0", "N2~1", "N1~2"]
    assert found[10]["tail"] is found[20]["tail"] is None
    assert found[11]["tail"] == "N1~1"
    assert [row["seat"] for row in found[:10]] == [row["seat"] for row in found[20:]]


def test_integer_keys_move_past_all_others(file):
    found = events(file, repeat="3", shift_keys="seat")["seat"].to_pylist()
    seats = [set(found[i : i + 10]) for i in (0, 10, 20)]
    assert seats == [{7, 8, 9, 10}, {11, 12, 13, 14}, {15, 16, 17, 18}]


@given(repeat=st.integers(1, 4), cuts=st.lists(st.integers(0, 40), max_size=6), rows=st.integers(1, 12))
def test_any_cuts_give_the_same_events(tmp_path_factory, repeat, cuts, rows):
    file = write(
        tmp_path_factory.mktemp("cuts") / "x.parquet",
        ts=pa.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3]),
        key=pa.array(["a", "b", None, *"cdefghi"]).dictionary_encode(),
    )
    schema = pa.schema([("key", pa.string()), ("ts", pa.int64())])
    loaded = Recording(file, repeat=repeat, shift_keys="key").loaded(schema)
    whole = pa.Table.from_batches(loaded.read(0, loaded.total))
    period = 9 - 1 + 1  # from first to last, and no tick twice
    assert whole["ts"].to_pylist() == [t + r * period for r in range(repeat) for t in [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]]
    ends = sorted({0, loaded.total, *(min(cut, loaded.total) for cut in cuts)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "ROWS", rows)
        parts = [list(loaded.read(a, b)) for a, b in pairwise(ends)]
    assert all(0 < batch.num_rows <= rows for part in parts for batch in part)
    assert pa.Table.from_batches([batch for part in parts for batch in part]).equals(whole.combine_chunks())


@given(
    times=st.lists(st.integers(-50, 50), min_size=1, max_size=8),
    repeat=st.integers(1, 3),
    start=st.integers(0, 24),
    seconds=st.integers(0, 400),
    speed=st.sampled_from([0.5, 1, 7]),
)
def test_what_is_due_against_brute_force(times, repeat, start, seconds, speed):
    import numpy as np

    ticks = np.array(times)
    loaded = Loaded(
        Recording("", repeat=repeat), pa.schema([]), pa.table({}), ticks, np.maximum.accumulate(ticks), "ts", False
    )
    start = min(start, loaded.total)
    shifted = [t + r * loaded.period for r in range(repeat) for t in times]
    latest = [max(shifted[: i + 1]) for i in range(len(shifted))]
    assert latest == sorted(latest)
    expected = start
    if start < len(shifted):
        expected = sum(t <= latest[start] + int(seconds * speed) for t in latest)
    assert loaded.after(start, seconds, speed) == expected


def test_speed_follows_event_time(file, clock):
    reader = stream(file, speed="60")  # a minute in a second
    begin = reader.initialOffset()
    assert begin == {"event": 0, "of": 10}
    assert reader.latestOffset(begin, None)["event"] == 1
    clock.now += 0.9
    assert reader.latestOffset({"event": 1, "of": 10}, None)["event"] == 1
    clock.now += 2.2
    assert reader.latestOffset({"event": 1, "of": 10}, None)["event"] == 4
    clock.now += 1e9
    assert reader.latestOffset({"event": 4, "of": 10}, None) == reader.reportLatestOffset() == {"event": 10, "of": 10}


def test_after_a_restart_time_goes_on_where_it_stopped(file, clock):
    clock.now = 5e6
    reader = stream(file, speed="60", repeat="2")
    assert reader.latestOffset({"event": 7, "of": 20}, None)["event"] == 8
    clock.now += 5
    assert reader.latestOffset({"event": 8, "of": 20}, None)["event"] == 13


def test_a_rate_in_events_per_second(file, clock):
    reader = stream(file, rate="2.5")
    begin = reader.initialOffset()
    assert reader.latestOffset(begin, None) == begin
    clock.now += 2
    assert reader.latestOffset(begin, None)["event"] == 5


def test_most_events_per_batch(file):
    reader = stream(file, speed="max", most="4")
    offset, seen = reader.initialOffset(), []
    limit = reader.getDefaultReadLimit()
    while (new := reader.latestOffset(offset, limit)) != offset:
        parts = reader.partitions(offset, new)
        seen.append(sum(batch.num_rows for part in parts for batch in reader.read(part)))
        offset = new
    assert seen == [4, 4, 2]


def test_available_now_is_all_of_it(file):
    reader = stream(file, speed="1")
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(reader.initialOffset(), None)["event"] == 10


def test_the_start(file):
    begun = events(file, start="1970-01-01T00:07:00Z")
    assert begun["ts"].to_pylist() == [datetime(1970, 1, 1, 0, minute, tzinfo=UTC) for minute in (7, 8, 9)]
    assert stream(file, start="1970-01-01T00:06:30").initialOffset()["event"] == 7


def test_older_sparks_do_not_say_where_they_are(file):
    reader = stream(file, speed="max", most="4")
    reader.initialOffset()
    assert [reader.latestOffset()["event"] for _ in range(3)] == [4, 8, 10]
    with pytest.raises(AcepError, match="ACEP-S051"):
        stream(file).latestOffset()


def test_parts_cover_a_batch_without_tiny_ones(file):
    settings = Settings.of(options(file, partitions="4"))
    assert [part.value for part in settings.parts(5, 5)] == []
    assert [part.value for part in settings.parts(5, 30_000)] == [(5, 30_000)]
    parts = [part.value for part in settings.parts(7, 1_000_007)]
    assert len(parts) == 4
    assert [a for a, _ in parts] + [1_000_007] == [7] + [b for _, b in parts]


@pytest.mark.parametrize(
    ("text", "name", "times"),
    [
        ("ts,v\n2013-01-01T00:00:00Z,1\n2013-01-01T00:00:01Z,2\n", "x.csv", "timestamp[us, tz=UTC]"),
        ('{"ts": 1000, "v": 1}\n{"ts": 2000, "v": 2}\n', "x.jsonl", "int64"),
    ],
)
def test_text_files(tmp_path, text, name, times):
    (tmp_path / name).write_text(text)
    found = events(str(tmp_path / name))
    assert str(found.schema.field("ts").type) == times
    assert found["v"].to_pylist() == [1, 2]


def test_numbers_with_a_unit_come_out_as_times(tmp_path):
    file = write(tmp_path / "x.parquet", ts=[1_500, 2_500], n=pa.array([1, 2], pa.uint16()))
    found = events(file, unit="ms")
    assert found["ts"].to_pylist()[0] == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert found.schema.field("n").type == pa.int32()


def test_a_schema_of_ones_own_leaves_columns_out(file):
    from pyspark.sql.types import StructType

    found = events(file, schema=StructType().add("seat", "long").add("ts", "timestamp_ntz"))
    assert found.schema.names == ["seat", "ts"]
    assert found["seat"].to_pylist()[:3] == [7, 8, 9]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"sped": "60"}, "ACEP-S045"),
        ({"speed": "fast"}, "ACEP-S046"),
        ({"speed": "0"}, "ACEP-S046"),
        ({"speed": "nan"}, "ACEP-S046"),
        ({"rate": "-1"}, "ACEP-S046"),
        ({"repeat": "0"}, "ACEP-S046"),
        ({"repeat": "1.5"}, "ACEP-S046"),
        ({"speed": "2", "rate": "2"}, "ACEP-S047"),
        ({"start": "yesterday"}, "ACEP-S046"),
        ({"repeat": "100000000000"}, "ACEP-S046"),
        ({"time": "when"}, "ACEP-D002"),
        ({"time": "tail"}, "ACEP-D004"),
        ({"shift_keys": "ts"}, "ACEP-S049"),
        ({"shift_keys": "nobody"}, "ACEP-D002"),
        ({"shift_keys": "seat", "repeat": "9000"}, "ACEP-S049"),
        ({"format": "csv"}, "ACEP-D"),
        ({"file": "/nowhere/x.parquet"}, "ACEP-D010"),
    ],
)
def test_what_is_refused(file, more, code):
    with pytest.raises(AcepError) as found:
        events(**{"file": file, **more})
    assert found.value.code.startswith(code)
    assert found.value.hint or code == "ACEP-D002"  # which lists the columns


def test_a_column_that_cannot_be_cast(file):
    from pyspark.sql.types import StructType

    with pytest.raises(AcepError, match="ACEP-S050"):
        events(file, schema=StructType().add("tail", "integer"))


def test_no_path_is_refused():
    with pytest.raises(AcepError, match="ACEP-S045"):
        Settings.of({})


def test_another_recording_under_a_checkpoint(file, clock):
    reader = stream(file)
    with pytest.raises(AcepError, match="ACEP-S048"):
        reader.latestOffset({"event": 3, "of": 11}, None)


def test_an_empty_recording(tmp_path):
    file = write(tmp_path / "x.parquet", ts=pa.array([], pa.timestamp("us")))
    assert events(file, repeat="3").num_rows == 0
    reader = stream(file)
    assert reader.latestOffset(reader.initialOffset(), None) == {"event": 0, "of": 0}


def test_the_file_is_read_once_and_again_when_it_changes(file):
    schema = pa.schema([("seat", pa.int64())])
    first = Recording(file).loaded(schema)
    assert Recording(file).loaded(schema) is first
    write(file, ts=[1, 2, 3], seat=[1, 2, 3])
    assert Recording(file).loaded(schema).total == 3


@pytest.mark.xdist_group("spark")
def test_on_spark(spark, file, tmp_path):
    spark.dataSource.register(Replay)
    asked = {"path": file, "repeat": "3", "shift_keys": "tail", "speed": "max", "most": "20"}
    local = events(file, repeat="3", shift_keys="tail").to_pylist()
    batch = spark.read.format("acep_replay").options(**asked).load()
    assert batch.toArrow().to_pylist() == local

    def run(**more):
        events = spark.readStream.format("acep_replay").options(**asked, **more).load()
        writer = events.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
        ended(query)
        return [json.loads(progress.json) for progress in query.recentProgress]

    sizes = [progress["numInputRows"] for progress in run() if progress["numInputRows"]]
    assert sizes == [20, 10]
    assert spark.read.parquet(str(tmp_path / "out")).orderBy("ts").toArrow().to_pylist() == local
    run()  # goes on from the checkpoint: nothing is left
    assert spark.read.parquet(str(tmp_path / "out")).count() == 30
