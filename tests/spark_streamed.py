"""A job as Spark would run it, without Spark: real shards and processors in micro-batches that are cut at random."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from acep_approx.ipc import from_ipc, to_ipc
from acep_approx.spark.plan import packing
from acep_approx.spark.plan.processor import ShardProcessor
from acep_approx.spark.worker.job import Job, Part
from acep_approx.spark.worker.shard import Shard

END = 10**9
"""A time when all windows have closed."""


@dataclass
class Streamed:
    """What came of a stream: the tables in parts, and sums of the metrics."""

    tables: defaultdict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))
    sums: Counter[str] = field(default_factory=Counter)

    def take(self, made: list[Row]) -> None:
        """Add the rows of a task."""
        for row in made:
            if row.kind != packing.METRICS:
                self.tables[row.kind].append(from_ipc(row.payload))
                continue
            seen = ("events",) if not row.is_copy else ()
            for name in (*seen, "late", "malformed", "matches", "others", "steps", "bound"):
                self.sums[name] += getattr(row, name)

    def table(self, name: str = "matches") -> pa.Table:
        """All rows of a table, of each shard in their order."""
        parts = self.tables[name]
        return pa.concat_tables(parts) if parts else pa.table({})

    def rows(self, name: str = "matches") -> Counter[str]:
        """The rows of a table as a multiset, in words."""
        return Counter(map(str, self.table(name).to_pylist()))


def shards_of(part: Part, events: pa.Table) -> np.ndarray:
    """The shard of each event within a part; that of Spark is another hash."""
    if not part.keys:
        return np.zeros(len(events), np.int64)
    return np.array([crc32(repr(row).encode()) % part.shards for row in events.select(part.keys).to_pylist()], np.int64)


def stand_in(job: Job) -> TwsTester:
    """Spark's own stand-in; it is told that no packed row is late, as Spark does not know better either."""
    return TwsTester(ShardProcessor(job, range(job.shards)), timeMode="EventTime", eventTimeExtractor=lambda _: END)


def streamed(job: Job, events: pa.Table, dice: Random, delay: int = 0, most: int = 9) -> Streamed:
    """Run a stream in random micro-batches of at most so many events, out of order within the watermark's delay."""
    tick = events["ts"].to_numpy()
    arrival = np.argsort(tick + [dice.uniform(0, delay) for _ in tick], kind="stable")
    first, shard = 0, []
    for part in job.parts:
        shard.append(first + shards_of(part, events))
        first += part.shards
    testers, found = [stand_in(job) for _ in range(job.shards)], Streamed()
    at, watermark = 0, 0
    while at < len(arrival):
        piece = arrival[at : at + dice.randint(1, most)]
        at += len(piece)
        for number, tester in enumerate(testers):
            mine = [int(i) for of_part in shard for i in piece[of_part[piece] == number]]
            dice.shuffle(mine)
            if mine:
                payload = to_ipc(events.select(job.schema.names).take(mine))
                found.take(tester.test(number, [Row(payload=payload)]))
        latest = int(tick[piece].max()) - delay
        for tester in testers if latest > watermark else ():
            found.take(tester.setWatermark(latest))
        watermark = max(watermark, latest)
    for tester in testers:
        found.take(tester.setWatermark(END))
    return found


def in_batch(job: Job, events: pa.Table, dice: Random) -> Streamed:
    """Run whole keys together, each with its events in order, as partitions of Spark have them."""
    found = Streamed()
    for one in job.apart():
        (part,) = one.parts
        shard_of = shards_of(part, events)
        for number in range(part.shards):
            shard = Shard(one, number)
            mine = events.select(job.schema.names).take(np.flatnonzero(shard_of == number))
            pieces = mine.to_batches(max_chunksize=dice.randint(1, 9))
            for processed in (*(shard.process_sorted(pa.table(piece)) for piece in pieces), shard.finish()):
                for name, table in processed.tables.items():
                    found.tables[name] += [table] if len(table) else []
    return found
