"""Batch: a partition of Spark holds some keys, sorted by time, and is matched as it streams through."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from acep_approx.spark.plan.outputs import SCHEMA, packed
from acep_approx.spark.plan.packing import Batches, gathered
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.shard import Processed, Shard


def matching(job: Job) -> Callable[[Batches], Batches]:
    """For ``mapInArrow`` over sorted partitions: events in, results out. Memory does not grow with the partition.

    Events come with the columns of the job, whatever their names.
    """

    def match(batches: Batches) -> Batches:
        for processed in _processed(job, batches):
            yield from processed.results.to_batches()

    return match


def accounting(job: Job) -> Callable[[Batches], Batches]:
    """The same with the rows of ``outputs.SCHEMA`` out; the shard is the partition."""

    def match(batches: Batches) -> Batches:
        from pyspark import TaskContext

        task = TaskContext.get()
        shard = task.partitionId() if task is not None else 0
        for processed in _processed(job, batches):
            yield pa.RecordBatch.from_pylist(list(packed(shard, processed)), schema=SCHEMA)

    return match


def _processed(job: Job, batches: Batches) -> Iterator[Processed]:
    shard = Shard(job)
    for table in gathered(batches):
        yield shard.process_sorted(table.rename_columns(job.schema.names).cast(job.schema))
    yield shard.finish()
