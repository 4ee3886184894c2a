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
from acep_approx.run.passing import TO_ALL
from acep_approx.spark.plan import packing
from acep_approx.spark.plan.processor import SecondProcessor, ShardProcessor
from acep_approx.spark.worker import held
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


def stand_in(job: Job, *, is_second: bool = False) -> TwsTester:
    """Spark's own stand-in; it is told that no packed row is late, as Spark does not know better either."""
    groups = range(job.shards)
    processor = SecondProcessor(job.second, groups) if is_second else ShardProcessor(job, groups)
    return TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: END + 1)


class Stages:
    """The shards of a job, those of a second stage behind those of the first.

    Parameters
    ----------
    job : Job
    """

    def __init__(self, job: Job) -> None:
        self.job, self._watermark = job, 0
        self._first = [stand_in(job) for _ in range(job.first_shards)]
        self._second = {n: stand_in(job, is_second=True) for n in range(job.first_shards, job.shards)}
        self.found = Streamed()

    def run(self, rows: dict[int, list[Row]], dice: Random) -> None:
        """Give shards of the first stage their events; now and then all shards are made of their states again."""
        if dice.random() < 0.1:
            held._HELD.clear()
        self._go_on([tester.test(n, rows[n]) for n, tester in enumerate(self._first) if rows.get(n)], dice)

    def pass_time(self, watermark: int, dice: Random) -> None:
        """Let the watermark go on."""
        self._watermark = watermark
        self._go_on([tester.setWatermark(watermark) for tester in self._first], dice)

    def _go_on(self, made: list[list[Row]], dice: Random) -> None:
        """What comes of the first stage goes through the second in the same micro-batch, in any order."""
        for rows in made if not self._second else ():
            self.found.take(rows)
        for number, tester in self._second.items():
            mine = [row for rows in made for row in rows if row.shard_group == number]
            dice.shuffle(mine)
            tester._currentWatermarkMs = self._watermark
            if mine:
                self.found.take(tester.test(number, mine))
            self.found.take(tester._handleExpiredTimers())


def streamed(job: Job, events: pa.Table, dice: Random, delay: int = 0, most: int = 9) -> Streamed:
    """Run a stream in random micro-batches of at most so many events, out of order within the watermark's delay."""
    tick = events["ts"].to_numpy()
    arrival = np.argsort(tick + [dice.uniform(0, delay) for _ in tick], kind="stable")
    first, shard = 0, []
    for part in job.parts:
        if part.stage.is_second:
            continue
        shard.append(first + shards_of(part, events))
        first += part.shards
    stages = Stages(job)
    at, watermark = 0, 0
    while at < len(arrival):
        piece = arrival[at : at + dice.randint(1, most)]
        at += len(piece)
        rows = {}
        for number in range(job.first_shards):
            mine = [int(i) for of_part in shard for i in piece[of_part[piece] == number]]
            dice.shuffle(mine)
            if mine:
                rows[number] = [Row(payload=to_ipc(events.select(job.schema.names).take(mine)))]
        stages.run(rows, dice)
        latest = int(tick[piece].max()) - delay
        if latest > watermark:
            stages.pass_time(latest, dice)
        watermark = max(watermark, latest)
    stages.pass_time(END, dice)
    return stages.found


def in_batch(job: Job, events: pa.Table, dice: Random) -> Streamed:
    """Run whole keys together, each with its events in order, as partitions of Spark have them."""
    found, passed = Streamed(), list[pa.Table]()
    for one in job.apart():
        (part,) = one.parts
        given = events.select(job.schema.names)
        if part.stage.is_second:
            given = pa.concat_tables(passed).sort_by([(name, "ascending") for name in one.order])
            apart = given.column(part.stage.apart).to_numpy()
            to_all = (apart == TO_ALL).any()
            shard_of = apart % (1 if to_all else part.shards)
        else:
            shard_of = shards_of(part, events)
        for number in range(part.shards):
            shard = Shard(one, number)
            mine = given.take(np.flatnonzero(shard_of == number))
            pieces = mine.to_batches(max_chunksize=dice.randint(1, 9))
            for processed in (*(shard.process_sorted(pa.table(piece)) for piece in pieces), shard.finish()):
                passed += [] if processed.passed is None else [processed.passed]
                for name, table in processed.tables.items():
                    found.tables[name] += [table] if len(table) else []
    return found
