"""The step of a shard, as Spark calls it but without Spark: local = batch = streaming, in any split; bad input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, archive, compile_query
from acep_approx.events.roles import Roles
from acep_approx.ipc import from_ipc
from acep_approx.run.events import in_order
from acep_approx.spark.plan import packing
from acep_approx.spark.plan.flow import accounting, matching
from acep_approx.spark.plan.packing import GROUP, SHARD, gathered, packer, unpacker
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.program import MATCHES
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.shard import Shard, describe
from tests.cases import cases
from tests.spark_cases import SparkCase, corpus, numbered, random_cases, rows, waits_for_the_end
from tests.spark_streamed import streamed

SHARD_COUNTS = (1, 2, 3, 5)


def in_batch(case: SparkCase, dice: Random) -> Counter[str]:
    """What partitions find that are sorted as Spark sorts them."""
    shards = dice.choice(SHARD_COUNTS)
    job, shard_of = case.job(shards), case.shard_of(shards)
    found: Counter[str] = Counter()
    for number in range(shards):
        events = case.events.select(job.schema.names).take(np.flatnonzero(shard_of == number))
        batches = iter(events.to_batches(max_chunksize=dice.randint(1, 9)))
        found += sum((rows(pa.Table.from_batches([made])) for made in matching(job)(batches)), Counter())
    return found


def agree(cases: Iterator[SparkCase], dice: Random) -> int:
    """Assert that all cases are the same in all ways; returns how many matches there were."""
    matches = 0
    for case in cases:
        expected = case.expected()
        matches += expected.total()
        assert in_batch(case, dice) == expected, case
        run = streamed(case.job(dice.choice(SHARD_COUNTS)), case.events, dice, dice.choice((0, 0, 3)))
        assert not run.sums["late"] + run.sums["malformed"], case
        if waits_for_the_end(case):
            assert not run.rows() - expected, case
        else:
            assert run.rows() == expected, case
    return matches


def test_the_corpus_is_the_same_in_batch_and_in_a_stream():
    assert agree(corpus(), Random(1)) > 200


@pytest.mark.parametrize("seed", range(4))
def test_random_worlds_are_the_same_in_batch_and_in_a_stream(seed):
    """Four times fifty cases."""
    number = cases(50)
    assert agree(random_cases(number, seed), Random(seed)) > number // 4


def test_a_condition_that_no_result_depends_on_names_columns_that_are_there():
    """No match has both a ``b`` and a ``c``: their columns play no role, and a query that names them is checked."""
    table = pa.table({"ts": range(9), "type": list("ABC") * 3, "x": [1, 2, 3] * 3, "y": [0, 3, 1] * 3})
    case = numbered("branches", "PATTERN SEQ(A a, (B b | C c)) WHERE (a.x = 1 OR b.y < c.y) WITHIN 5", table)
    assert case is not None
    assert agree(iter([case]), Random(1)) > 0


# --- one shard ------------------------------------------------------------------------------------------------------

TEXT = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"
QUERY = compile_query(TEXT)
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("type", pa.string()), ("id", pa.int64())])


def job_of(text: str, shards: int = 1, bind: Any = "id", output: Any = "matches") -> Job:
    """The job of a query."""
    program = QueryProgram(compile_query(text), bind, output)
    return Job.of(program, SCHEMA, Roles("ts", None, "type", None), ("id",), shards)


JOB = job_of(TEXT)


def events(*some: tuple[int | None, str | None, str, int]) -> pa.Table:
    """Events of the columns of ``JOB``."""
    columns = list(zip(*some, strict=True)) or [()] * 4
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def test_events_wait_for_the_watermark_and_are_matched_in_order():
    shard = Shard(JOB)
    first = shard.process(events((5, "x", "B", 1), (3, "x", "A", 0)), None)
    assert (first.results.num_rows, first.metrics.events, first.metrics.waiting) == (0, 0, 2)
    assert shard.waits_until == 4
    second = shard.process(events(), 5)  # what is at the watermark may still get company
    assert (second.results.num_rows, second.metrics.events, second.metrics.waiting) == (0, 1, 1)
    third = shard.process(events(), 6)
    assert third.results.to_pylist() == [{"k": "x", "errors": 0, "start": 3, "end": 5, "missing": [], "a": 0, "b": 1}]
    assert shard.waits_until is None


def test_late_events_and_those_without_a_time_are_left_out_and_can_be_had():
    shard = Shard(JOB)
    shard.process(events((3, "x", "A", 0)), None)
    found = shard.process(events((9, "x", "B", 1), (None, "x", "B", 2), (10, "x", "B", 3)), 10)
    assert found.left_out.to_pylist() == [
        {"ts": 9, "k": "x", "type": "B", "id": 1, "reason": "late"},
        {"ts": None, "k": "x", "type": "B", "id": 2, "reason": "no time"},
    ]
    assert (found.metrics.late, found.metrics.malformed, found.metrics.waiting) == (1, 1, 1)


def test_the_watermark_never_goes_back():
    shard = Shard(JOB)
    shard.process(events((3, "x", "A", 0)), 20)
    again = Shard(JOB, state=shard.to_bytes())
    assert again.process(events((12, "x", "B", 1)), 5).metrics.late == 1


def test_events_without_a_key_are_counted():
    shard = Shard(JOB)
    shard.process(events((3, None, "A", 0), (4, None, "B", 1)), None)
    found = shard.process(events(), 30)
    assert (found.results.num_rows, found.metrics.events, found.metrics.without_key) == (0, 2, 2)


def test_events_of_one_time_are_ordered_by_id_then_by_content():
    table = pa.table({"id": [3, 1, 2, 1], "x": ["b", "b", None, "a"]})
    ticks, places, columns = np.array([7, 7, 7, 7]), np.arange(4), [column.combine_chunks() for column in table.columns]
    assert table.take(in_order(ticks, places, columns)).to_pylist() == [
        {"id": 1, "x": "a"}, {"id": 1, "x": "b"}, {"id": 2, "x": None}, {"id": 3, "x": "b"},
    ]  # fmt: skip
    assert in_order(ticks, places).tolist() == [0, 1, 2, 3]
    assert in_order(np.array([4, 3, 2, 1]), places, columns[:1]).tolist() == [3, 2, 1, 0]


# --- state ----------------------------------------------------------------------------------------------------------


def test_the_state_says_what_it_is_and_is_never_pickled():
    shard = Shard(JOB)
    shard.process(events((3, "x", "A", 0), (30, "x", "A", 1)), None)
    shard.process(events(), 20)
    said = describe(shard.to_bytes())
    assert (said["format"], said["events"], said["waiting"], said["watermark"]) == (archive.FORMAT, 1, 1, 20)
    assert said["query"] == f"{QUERY.plan.fingerprint()} within 10 ticks"
    assert said["columns"] == "ts int64, k string, type string, id int64"
    assert not any(code in shard.to_bytes() for code in (b"cpickle", b"cnumpy", b"ccopy_reg", b"\x80\x04\x95"))


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("query", job_of("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 11")),
        ("query", job_of("PATTERN SEQ(A a, C c) WHERE [k] WITHIN 10")),
        ("partitions by", job_of("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")),
        ("RETURN", job_of("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10 RETURN a.id AS id")),
        ("columns", replace(JOB, schema=SCHEMA.append(pa.field("more", pa.int64())))),
        ("events shown as", job_of(TEXT, bind=("id", "type"))),
        ("output", job_of(TEXT, output="points")),
        ("shards", job_of(TEXT, shards=2)),
    ],
)
def test_the_checkpoint_of_another_query_is_refused(what, other):
    shard = Shard(JOB)
    shard.process(events(), 1)
    with pytest.raises(DataError, match=f"ACEP-S012: the checkpoint is of another query or of other events: {what}"):
        Shard(other, state=shard.to_bytes())


def test_state_of_another_format_or_none_at_all_is_refused(monkeypatch):
    shard = Shard(JOB)
    shard.process(events(), 1)
    with monkeypatch.context() as patched:
        patched.setattr(archive, "FORMAT", 99)
        later = shard.to_bytes()
    with pytest.raises(DataError, match="ACEP-S011: the checkpoint holds state of format 99"):
        Shard(JOB, state=later)
    with pytest.raises(DataError, match="ACEP-S010"):
        Shard(JOB, state=b"something else")


# --- moving columns -------------------------------------------------------------------------------------------------


def test_packing_gives_each_shard_its_events_and_unpacking_gives_them_back():
    dice = np.random.default_rng(5)
    table = events(*((int(t), f"k{t % 7}", "A", i) for i, t in enumerate(dice.integers(0, 50, 300))))
    shard = dice.integers(0, 4, 300)
    batches = table.append_column(SHARD, pa.array(shard, pa.int32())).to_batches(max_chunksize=37)
    packed = list(packer(SCHEMA, (5, 0, 9, 2), [SHARD])(iter(batches)))
    assert [row[GROUP] for batch in packed for row in batch.to_pylist()] == [5, 0, 9, 2]
    for batch in packed:
        for number, payload in enumerate(batch.column("payload").to_pylist()):
            assert from_ipc(payload)["id"].to_pylist() == np.flatnonzero(shard == number).tolist()
    back = pa.Table.from_batches(unpacker(SCHEMA)(iter(packed)))
    assert rows(back) == rows(table)


def test_small_batches_are_put_together():
    table = events(*((t, "x", "A", t) for t in range(100)))
    assert [len(some) for some in gathered(iter(table.to_batches(max_chunksize=9)), rows=30)] == [36, 36, 28]
    assert list(gathered(iter([]))) == []


def test_a_partition_can_keep_metrics():
    table = events((1, "x", "A", 0), (2, "x", "B", 1), (None, "x", "B", 2))
    made = pa.Table.from_batches(accounting(JOB)(iter(table.to_batches())))
    kinds = made["kind"].to_pylist()
    assert sorted(set(kinds)) == ["late", "matches", "metrics"]
    numbers = {name: sum(value or 0 for value in made[name].to_pylist()) for name in ("events", "matches", "malformed")}
    assert numbers == {"events": 2, "matches": 1, "malformed": 1}


def test_results_of_many_rows_are_cut_into_several(monkeypatch):
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 3)
    shard = Shard(JOB)
    shard.process(events(*((t, "x", "AB"[t % 2], t) for t in range(12))), None)
    found = shard.process(events(), 100)
    payloads = [row["payload"] for row in packing.packed(0, found) if row["kind"] == MATCHES]
    assert len(payloads) == -(-found.results.num_rows // 3) > 1
    assert rows(pa.concat_tables(map(from_ipc, payloads))) == rows(found.results)


def test_events_of_other_types_are_refused():
    """Also after the state was saved; columns in another order, and narrower ones, are the same events."""
    first, good = events((1, "x", "A", 0)), events((2, "x", "B", 1))
    wrong = {
        "ACEP-D024": good.set_column(3, "id", [["one"]]),
        "ACEP-D002": good.drop_columns(["id"]),
    }
    for code, table in wrong.items():
        shard = Shard(JOB)
        shard.process_sorted(first)
        with pytest.raises(DataError, match=code):
            shard.process_sorted(table)
        shard = Shard(JOB)
        shard.process(first, None)
        with pytest.raises(DataError, match=code):
            Shard(JOB, 0, shard.to_bytes()).process(table, None)
    narrow = good.select(["id", "type", "k", "ts"]).set_column(0, "id", pa.array([1], pa.int8()))
    shard = Shard(JOB)
    shard.process(first, None)
    shard = Shard(JOB, 0, shard.to_bytes())
    assert [shard.process(table, mark).results.num_rows for table, mark in ((narrow, None), (events(), 3))] == [0, 1]


def test_texts_that_are_bytes():
    """As types and as keys."""
    schema = pa.schema([("ts", pa.int64()), ("k", pa.binary()), ("type", pa.binary()), ("id", pa.int64())])
    shard = Shard(replace(JOB, schema=schema))
    some = events((1, "x", "A", 0), (2, "y", "B", 1), (3, "x", "B", 2))
    assert [row["k"] for row in shard.process_sorted(some.cast(schema)).results.to_pylist()] == ["x"]
