"""Streams for the Spark shell: the corpus and random worlds, with what a local run finds in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.errors import AcepError
from acep_approx.spark.plan.matcher import SparkMatcher
from acep_approx.spark.worker.job import Job
from tests.corpus_cases import NAMED, events_of, listing
from tests.rich_worlds import rich_world

END = 10**9
"""A time when all windows have closed."""
ID = "id_"


@dataclass(frozen=True)
class SparkCase:
    """A query, and a stream in which every event has an ``ID``."""

    name: str
    query: Query
    events: pa.Table

    def expected(self) -> Counter[str]:
        """What a local run finds."""
        return rows(self.query.match(self.events, bind=ID).to_arrow())

    def job(self, shards: int) -> Job:
        """What a worker is told: only of the columns that the query reads."""
        return self.matcher().job(self.events.schema, shards=shards)

    def shard_of(self, shards: int) -> np.ndarray:
        """The shard of each event; that of Spark is another hash."""
        keys = [e.name for e in self.query.syntax.equivalences]
        if not keys or self.query.syntax.strategy == "strict_contiguity":
            return np.zeros(len(self.events), np.int64)
        return np.array([crc32(repr(row).encode()) % shards for row in self.events.select(keys).to_pylist()])

    def matcher(self, **options: Any) -> SparkMatcher:
        """The same for a DataFrame."""
        return self.query.spark(id=ID, **options)


def rows(table: pa.Table) -> Counter[str]:
    """The rows of a table as a multiset, in words."""
    return Counter(map(str, table.to_pylist()))


def numbered(name: str, text: str, events: pa.Table) -> SparkCase | None:
    """A case; None where the query is refused or Spark could not have such events."""
    shift = 1 - min([0, *events["ts"].to_pylist()])  # before 1970 Spark has no watermark
    events = events.set_column(0, "ts", pa.array([t + shift for t in events["ts"].to_pylist()], pa.int64()))
    try:
        query = compile_query(text)
        query.match(events).count_by_errors()
    except AcepError:
        return None
    return SparkCase(name, query, events.append_column(ID, pa.array(range(len(events)), pa.int64())))


def corpus() -> Iterator[SparkCase]:
    """All cases of the corpus."""
    for name, case in NAMED.items():
        events = events_of(case)
        found = numbered(name, listing(case), events) if len(events) else None
        if found is not None:
            yield found


def random_cases(number: int, seed: int) -> Iterator[SparkCase]:
    """Some worlds over the whole language."""
    dice = Random(seed)
    made = 0
    while made < number:
        world = rich_world(dice, dice.random() < 0.2)
        found = numbered(f"random {seed}.{made}", world.text, world.table()) if world.rows else None
        if found is not None:
            made += 1
            yield found


def waits_for_the_end(case: SparkCase) -> bool:
    """Whether matches wait for a window of events to close: no time closes it, and a stream has no end."""
    registers = case.query.plan.registers
    return case.query.plan.is_count_window and registers is not None and registers.has_late_ends
