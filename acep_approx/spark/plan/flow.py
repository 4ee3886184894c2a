"""A program on one DataFrame: the plans that Spark runs, for batch and for streams.

In a batch a partition of Spark holds some keys, sorted by time, and is matched as it streams through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from acep_approx.errors import UsageError
from acep_approx.planning.durations import Duration
from acep_approx.spark.plan import packing
from acep_approx.spark.plan.columns import column, places, quoted, rising
from acep_approx.spark.plan.delays import delay
from acep_approx.spark.plan.packing import GROUP, SHARD, Batches, gathered, packed, packer, spread, unpacker
from acep_approx.spark.setup.kinds import sent_whole
from acep_approx.spark.worker.job import Job, Part
from acep_approx.spark.worker.program import MATCHES, PASSED
from acep_approx.spark.worker.shard import Processed, Shard


def matching(job: Job, table: str = MATCHES) -> Callable[[Batches], Batches]:
    """For ``mapInArrow`` over sorted partitions: events in, rows of a table out. Memory does not grow with events.

    Events come with the columns of the job, whatever their names.
    """

    def match(batches: Batches) -> Batches:
        for processed in _processed(job, batches):
            rows = processed.passed if table == PASSED else processed.tables[table]
            yield from () if rows is None else rows.to_batches()

    return match


def accounting(job: Job) -> Callable[[Batches], Batches]:
    """The same with the rows of ``packing.SCHEMA`` out; the shard is the partition."""

    def match(batches: Batches) -> Batches:
        from pyspark import TaskContext

        task = TaskContext.get()
        shard = task.partitionId() if task is not None else 0
        for processed in _processed(job, batches):
            yield pa.RecordBatch.from_pylist(list(packed(shard, processed)), schema=packing.SCHEMA)

    return match


def _processed(job: Job, batches: Batches) -> Iterator[Processed]:
    shard = Shard(job)
    for table in gathered(batches):
        yield shard.process_sorted(table.rename_columns(job.schema.names).cast(job.schema))
    yield shard.finish()


WATERMARK = "spark.watermarkDelayMs"
"""What Spark writes into the metadata of a column that has a watermark."""
STAMP = "_acep_time"
"""A column made of a time that is a number, for the watermark."""
TO_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1, None: 10**3}


@dataclass(frozen=True)
class Flow:
    """Events on their way through a program.

    Parameters
    ----------
    job : Job
    events : DataFrame
        Batch or streaming, in any order.
    watermark : str or int, optional
        How late events may come, where the stream has no watermark of its own.
    """

    job: Job
    events: DataFrame
    watermark: Duration | None = None

    def outputs(self) -> DataFrame:
        """Everything that comes of the events, packed: columns as ``packing.PACKED`` says.

        ``matches``, ``late`` and ``metrics`` take it apart; all three can be taken from the DataFrame that
        ``foreachBatch`` gets, so that a stream is read once. Cache it there.

        Complexity: one shuffle by key; batch: and a sort within each partition.
        """
        if not self.events.isStreaming:
            return self._of_parts(accounting, packing.PACKED)
        from acep_approx.spark.plan.processor import SecondProcessor, ShardProcessor

        groups = spread(self.events.sparkSession, self.job.shards)
        rows, processor = self.packed_by_shard(groups).groupBy(GROUP), ShardProcessor(self.job, groups)
        with sent_whole(self.events.sparkSession):
            if not self.job.fed:
                return rows.transformWithState(processor, packing.PACKED, "append", "eventTime")
            passed = rows.transformWithState(processor, packing.ADDRESSED, "append", "eventTime").groupBy(GROUP)
            second = SecondProcessor(self.job.second, groups)
            return passed.transformWithState(second, packing.PACKED, "append", "eventTime")

    def packed_by_shard(self, groups: Sequence[int]) -> DataFrame:
        """The events of a stream, one row for those of a shard, for which a number of ``spread`` stands."""
        schema, numbers, first = self.job.schema, list[Column](), 0
        for part in self.job.parts:
            if part.stage.is_second:
                continue
            apart = F.pmod(F.xxhash64(*self._key_columns(part)), F.lit(part.shards)) if part.keys else F.lit(0)
            numbers.append((F.lit(first) + apart).cast("int"))
            first += part.shards
        shards = [f"{SHARD}{number}" for number in range(len(numbers))]
        carried = self._in_time().select(*map(column, schema.names), *numbers).toDF(*places(schema), *shards)
        return carried.mapInArrow(packer(schema, groups, shards), packing.GROUPED)

    def matches(self, packed: DataFrame | None = None) -> DataFrame:
        """The matches, of all events or among some ``outputs``."""
        return self.table(MATCHES, packed)

    def table(self, name: str, packed: DataFrame | None = None) -> DataFrame:
        """One of the tables of the program, such as ``"changes of status"``; see ``Job.tables``."""
        columns = self.job.tables[name]
        schema = from_arrow_schema(columns, prefer_timestamp_ntz=False)
        if packed is None and not self.events.isStreaming:
            return self._of_parts(partial(matching, table=name), schema)
        return self._of_kind(name, packed).mapInArrow(unpacker(columns), schema)

    def late(self, packed: DataFrame | None = None) -> DataFrame:
        """The events that were left out, with a ``reason``: late beyond the watermark, or without a time.

        They have the columns that the query reads, and those that stand for an event.
        """
        schema = self.job.left_out
        columns = from_arrow_schema(schema, prefer_timestamp_ntz=False)
        return self._of_kind(packing.LATE, packed).mapInArrow(unpacker(schema), columns)

    def metrics(self, packed: DataFrame | None = None) -> DataFrame:
        """What happened, per shard and micro-batch: see ``ShardMetrics``; ``payload`` is the training sample."""
        return self._of_kind(packing.METRICS, packed).drop("kind")

    def _of_kind(self, kind: str, packed: DataFrame | None) -> DataFrame:
        return (self.outputs() if packed is None else packed).filter(F.col("kind") == kind)

    # --- plans ----------------------------------------------------------------------------------------------

    def _of_parts(
        self, ran: Callable[[Job], Callable[[Batches], Batches]], schema: StructType | str
    ) -> DataFrame:
        """Batch: what comes of all parts of the job, each over events of its own."""
        found = [self._sorted_for(job).mapInArrow(ran(job), schema) for job in self.job.apart()]
        return reduce(DataFrame.unionAll, found)

    def _sorted_for(self, job: Job) -> DataFrame:
        """Batch: the events of a job of one part, which are passed on by others where it is of the second stage."""
        (part,) = job.parts
        if not part.stage.is_second:
            return self._sorted(part)
        columns = from_arrow_schema(job.schema, prefer_timestamp_ntz=False)
        first = [one for one in self.job.apart() if one.parts[0].stage.passing is not None]
        sets = [self._sorted(one.parts[0]).mapInArrow(matching(one, PASSED), columns) for one in first]
        passed, number = reduce(DataFrame.unionAll, sets), (part.shards,) if part.shards else ()
        to_one = any(one.parts[0].stage.to_all for one in first)  # each row once: shards could be in one task
        apart = passed.repartition(1) if to_one else passed.repartition(*number, column(part.stage.apart))
        return apart.sortWithinPartitions(*rising(job.order)).toDF(*places(job.schema))

    def _sorted(self, part: Part) -> DataFrame:
        """Batch: whole keys in each partition, and their events in order."""
        carried = self.events.select(*map(column, self.job.schema.names))
        number = (part.shards,) if part.shards else ()
        apart = carried.repartition(*number, *self._key_columns(part)) if part.keys else carried.repartition(1)
        return apart.sortWithinPartitions(*rising(self.job.order)).toDF(*places(self.job.schema))

    def _key_columns(self, part: Part) -> list[Column]:
        """Columns of the key; of floating point numbers the two zeros are one."""
        types = dict(self.events.dtypes)
        found = []
        for name in part.keys:
            key, type_ = column(name), types[name]
            if type_ in ("float", "double"):
                key += 0.0
            elif type_ in ("array<float>", "array<double>"):
                key = F.transform(key, lambda item: item + 0.0)
            found.append(key)
        return found

    def _in_time(self) -> DataFrame:
        time = self.job.roles.time
        if WATERMARK in self.events.schema[time].metadata:
            return self.events
        if self.watermark is None:
            raise no_watermark(time)
        late, kind = delay(self.watermark, is_time=self.job.has_real_times), dict(self.events.dtypes)[time]
        if kind == "timestamp":
            return self.events.withWatermark(quoted(time), late)
        stamp = F.timestamp_micros(_microseconds(column(time), kind, self.job.roles.unit))
        return self.events.withColumn(STAMP, stamp).withWatermark(STAMP, late)


def no_watermark(time: str) -> UsageError:
    """The error for a stream of which it is not known how late events may come (``ACEP-S004``)."""
    return UsageError(
        f"the stream has no watermark on {time!r}: nobody knows how late events may come",
        code="ACEP-S004",
        hint=f"say it: --watermark '10 s' (watermark= in Python; or events.withWatermark({time!r}, '10 seconds'))",
    )


def _microseconds(time: Column, kind: str, unit: str | None) -> Column:
    """A time since 1970 that has no zone, or is a number; plain ticks are taken for milliseconds."""
    if kind == "timestamp_ntz":  # a cast would take it for a time of the session's zone
        seconds = (time - F.expr("TIMESTAMP_NTZ'1970-01-01'")).cast("interval second").cast("decimal(20, 6)")
        return (seconds * 10**6).cast("bigint")
    number = time.cast("bigint")
    return F.call_function("div", number, F.lit(1000)) if unit == "ns" else number * TO_MICROSECONDS[unit]
