"""Batch: a partition of Spark holds some keys, sorted by time, and is matched as it streams through."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from acep_approx.spark.plan.outputs import SCHEMA, packed
from acep_approx.spark.plan.packing import Batches, gathered
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.shard import Shard, Taken


def matching(job: Job) -> Callable[[Batches], Batches]:
    """For ``mapInArrow`` over sorted partitions: events in, results out. Memory does not grow with the partition.

    Events come with the columns of the job, whatever their names.
    """

    def match(batches: Batches) -> Batches:
        for taken in _taken(job, batches):
            yield from taken.results.to_batches()

    return match


def accounting(job: Job) -> Callable[[Batches], Batches]:
    """The same with the rows of ``outputs.SCHEMA`` out."""

    def match(batches: Batches) -> Batches:
        for taken in _taken(job, batches):
            yield pa.RecordBatch.from_pylist(list(packed(0, taken)), schema=SCHEMA)

    return match


def _taken(job: Job, batches: Batches) -> Iterator[Taken]:
    shard = Shard(job)
    for table in gathered(batches):
        yield shard.take_sorted(table.rename_columns(job.schema.names).cast(job.schema))
    yield shard.finish()
