"""Packed rows: on the way to the shards the events of each become one row, and what comes out of a shard is rows too.

A row per event would be turned into a Python object each; a row per shard costs nothing that grows with the events. Of
the rows that come out ``kind`` says whether they hold results, events that were left out, or metrics: one plan gives
all three, so that a stream is read once, and numbers are columns, so that Spark adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.ipc import read_ipc, to_ipc
from acep_approx.run.passing import TO_ALL
from acep_approx.spark.worker.program import PASSED
from acep_approx.spark.worker.shard import Processed, ShardMetrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acep_approx.spark.worker.job import Job

SHARD = "_acep_shard"
"""What columns are called that say which shard an event belongs to, with the number of the part behind."""
GROUP = "shard_group"
"""The column that Spark groups by: it stands for a shard, see ``spread``."""
GROUPED = f"{GROUP} bigint, payload binary"
TRIED_A_SHARD = 32
"""Numbers that are tried for each shard: with so many every shard finds one."""
ROWS_AT_ONCE = 1 << 17
"""Events that are held back to make the rows longer, and the Arrow batches that the matcher gets; and most results in
one row: Spark takes no value of 2 GB."""
Batches = Iterator[pa.RecordBatch]

LATE, METRICS = "late", "metrics"
"""Kinds of rows beside those of the tables of a program, which have their names."""
_TYPES = {
    "int": (pa.int64(), "bigint"),
    "float": (pa.float64(), "double"),
    "tuple[int, ...]": (pa.list_(pa.int64()), "array<bigint>"),
    "tuple[float, ...]": (pa.list_(pa.float64()), "array<double>"),
}
_NUMBERS = {field.name: _TYPES[str(field.type)] for field in fields(ShardMetrics)}
NUMBERS = tuple(_NUMBERS)
SCHEMA = pa.schema(
    [("shard", pa.int32()), ("kind", pa.string()), ("payload", pa.binary())]
    + [(name, type_) for name, (type_, _) in _NUMBERS.items()]
)
"""Columns of what comes out of a shard; those after ``payload`` are NULL but for the metrics."""
PACKED = "shard int, kind string, payload binary, " + ", ".join(f"{name} {sql}" for name, (_, sql) in _NUMBERS.items())


ADDRESSED = f"{GROUP} bigint, {PACKED}"
"""Columns of what comes out of a shard of the first of two stages."""


def spread(spark: SparkSession, shards: int) -> tuple[int, ...]:
    """A number for each shard, such that Spark puts each group of these numbers into a task of its own.

    Spark chooses the task by a hash: of the shards 0 and 1 it makes one task of two, and a core has nothing to do. What
    is chosen does not depend on how many tasks there are, as a checkpoint may be taken up with another number; as many
    as shards, a divisor or a multiple of that share them evenly.

    Complexity: O(shards), in one small job of Spark: it is asked for its own hash.
    """
    from pyspark.sql import functions as F

    tried = spark.range(0, TRIED_A_SHARD * shards, 1, 1)
    task = tried.select(F.pmod(F.hash("id"), F.lit(shards)).alias("task")).toArrow().column("task").to_numpy()
    tasks, groups = np.unique(task, return_index=True)
    assert len(tasks) == shards, "a shard found no number"
    return tuple(groups.tolist())


def packer(schema: pa.Schema, groups: Sequence[int], shards: Sequence[str]) -> Callable[[Batches], Batches]:
    """For ``mapInArrow``: columns of ``schema``, whatever their names, and ``shards`` in, rows of ``GROUPED`` out.

    Parameters
    ----------
    schema : pyarrow.Schema
    groups : sequence of int
        Those of ``spread``.
    shards : sequence of str
        Columns each of which names a shard that gets the event.

    Complexity: O(events · columns of shards + rows · shards).
    """
    group_of = np.array(groups, np.int64)

    def pack(batches: Batches) -> Batches:
        for table in gathered(batches):
            events = table.drop_columns([*shards]).rename_columns(schema.names).cast(schema)
            for name in shards:
                yield from _by_shard(events, table.column(name).combine_chunks().to_numpy(), group_of)

    return pack


def _by_shard(events: pa.Table, shard: Ints, group_of: Ints) -> Batches:
    """One row for the events of each shard."""
    order = np.argsort(shard, kind="stable")
    events = events.take(pa.array(order)).combine_chunks()
    numbers, starts = np.unique(shard[order], return_index=True)
    ends = np.append(starts[1:], len(shard)).tolist()
    rows = [to_ipc(events.slice(a, b - a)) for a, b in zip(starts.tolist(), ends, strict=True)]
    yield pa.RecordBatch.from_arrays(
        [pa.array(group_of[numbers]), pa.array(rows, pa.binary())], names=[GROUP, "payload"]
    )


def unpacker(schema: pa.Schema) -> Callable[[Batches], Batches]:
    """For ``mapInArrow``: rows with a column ``payload`` in, the tables that were packed out."""

    def unpack(batches: Batches) -> Batches:
        for batch in batches:
            for payload in batch.column("payload"):
                yield from read_ipc(payload.as_py()).cast(schema).to_batches()

    return unpack


def gathered(batches: Batches, rows: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The same rows in tables of at least ``rows`` each, but for the last one."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)


def packed(number: int, processed: Processed) -> Iterator[dict[str, Any]]:
    """The rows of what a shard has processed: of results and of events left out only where there are any."""
    nothing = dict.fromkeys(NUMBERS)
    for kind, table in (*processed.tables.items(), (LATE, processed.left_out)):
        for first in range(0, table.num_rows, ROWS_AT_ONCE):
            yield {"shard": number, "kind": kind, "payload": to_ipc(table.slice(first, ROWS_AT_ONCE)), **nothing}
    numbers = vars(processed.metrics)
    metrics = {name: list(value) if isinstance(value, tuple) else value for name, value in numbers.items()}
    yield {"shard": number, "kind": METRICS, "payload": processed.sample, **metrics}


def addressed(job: Job, number: int, processed: Processed, groups: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The same of a shard of the first of two stages: each row with the group of a shard of the second.

    What is passed on goes to the shards that need it; all else to any of them, which lets it through.
    """
    first = job.first_shards
    anyone = groups[first + number % (job.shards - first)]
    for row in packed(number, processed):
        yield {GROUP: anyone, **row}
    if processed.passed is None or not processed.passed.num_rows:
        return
    nothing = dict.fromkeys(NUMBERS)
    for part in job.fed:
        apart = processed.passed.column(part.stage.apart).combine_chunks().to_numpy()
        for shard in range(part.shards):
            mine = np.flatnonzero((apart == TO_ALL) | (apart % part.shards == shard))
            for start in range(0, len(mine), ROWS_AT_ONCE):
                payload = to_ipc(processed.passed.take(pa.array(mine[start : start + ROWS_AT_ONCE])))
                row = {GROUP: groups[first + shard], "shard": number, "kind": PASSED, "payload": payload}
                yield row | nothing
        first += part.shards
