"""Throughput of programs of all kinds on Spark, against the same plan without a matcher: sets, rules, early results."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from acep_approx import QuerySet, compile_query, compile_rules
from experiments.on_spark.plans import CORES, Place, drained, rates, spread, steady
from experiments.on_spark.throughput import (
    APART,
    DELAY,
    HANDED_ON,
    KEPT,
    KEYS,
    MATCHER,
    QUERY,
    SCHEMA,
    events,
    in_turns,
    streaming,
)
from experiments.report import Column, Report
from experiments.report import Row as Line

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from acep_approx.spark import SparkMatcher

QUERIES = 1_000
LATE = 0.05
"""Share of the events that are late, by up to ``DELAY``, where results come early."""
TEMPLATE = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.k = :k WITHIN 500 ms"
RULES = """
TABLE seen (k int, n int DEFAULT 0, KEY (k))
RULE count ON PATTERN A a WITHIN 1 ms DO UPDATE seen SET n = old.n + 1 AT (a.k) END
RULE often ON PATTERN SEQ(A a, B b, C c) WHERE [k] AND store.seen[c.k].n > 5 WITHIN 500 ms
"""
ABOVE = f"""{RULES}
RULE above ON PATTERN SEQ(C a, C b) WHERE store.seen[a.k].n > 5 AND a.k = b.k WITHIN 1 ms
"""
WANTED = 0.7
HOW = {"id": "id", "shards": CORES, "watermark": f"{DELAY // 1000} ms"}


def a_set() -> SparkMatcher:
    """A query for each of some keys."""
    desk = QuerySet(time="ts", key="k")
    desk.add_many(TEMPLATE, [{"k": number * KEYS // QUERIES} for number in range(QUERIES)])
    return desk.spark(**HOW)


def stages() -> SparkMatcher:
    """The query of ``throughput`` by keys, and one that reads what it publishes of all keys."""
    desk = QuerySet(time="ts", key="k")
    desk.add(f"{QUERY} RETURN a.k AS k PUBLISH Found", id="found")
    desk.add("PATTERN SEQ(Found a, Found b) WHERE a.k = b.k WITHIN 10 ms", id="again")
    return desk.spark(**HOW)


def rules(text: str = RULES) -> SparkMatcher:
    """Rules that count and read what they count, keyed like their patterns."""
    return compile_rules(text).spark(time="ts", key="k", **HOW)


def rules_in_stages() -> SparkMatcher:
    """The same with one that reads what they count, of all keys."""
    return rules(ABOVE)


def early() -> SparkMatcher:
    """The query of ``throughput``, whose results come at once."""
    return compile_query(QUERY).spark(time="ts", key="k", emit="early", **HOW)


PROGRAMS: dict[str, tuple[Callable[[], SparkMatcher], float, str]] = {
    f"a set of {QUERIES:,} queries": (a_set, 0.0, KEPT),
    "rules keyed like their patterns": (rules, 0.0, KEPT),
    "a set in two stages": (stages, 0.0, KEPT),
    "rules in two stages": (rules_in_stages, 0.0, KEPT),
    f"early results, {LATE:.0%} late": (early, LATE, HANDED_ON),
}
"""What is measured: how it is made, how many events are late, and which plan without a matcher does the same work."""


def recorded(where: Place, each: int, batches: int, late: float, seed: int) -> Callable[[], DataFrame]:
    """Write a stream to files, a micro-batch to ``CORES`` of them; gives what reads it."""
    table, dice = events(0, each * batches, seed), np.random.default_rng(seed)
    arrives = np.arange(len(table)) + (dice.random(len(table)) < late) * dice.uniform(0, DELAY / APART, len(table))
    table = table.take(pa.array(np.argsort(arrives, kind="stable")))
    folder: Path = where.folder / f"arrived-{each}-{batches}-{late}-{seed}"
    folder.mkdir(exist_ok=True)
    part = each // CORES
    for number in range(batches * CORES):
        path = folder / f"{number:04}.parquet"
        pq.write_table(table.slice(number * part, part), path)
        os.utime(path, (1e9 + number, 1e9 + number))
    reader = where.spark.readStream.schema(from_arrow_schema(SCHEMA)).option("maxFilesPerTrigger", CORES)
    return lambda: reader.parquet(str(folder))


COLUMNS = [
    Column("program", "program"),
    Column("events", "events at once", ",d"),
    Column("median", "events/s", ",.0f"),
    Column("least", "least", ",.0f"),
    Column("most", "most", ",.0f"),
    Column("plain", "without a matcher", ",.0f"),
    Column("ratio", "ratio", ".2f"),
    Column("ratios", "in turns"),
    Column("wanted", "wanted", ".1f"),
    Column("matches", "rows/event", ".4f"),
]


def programs(report: Report, where: Place, each: int, repeats: int, batches: int, seed: int) -> None:
    """Events per second of each kind of program; the arguments of ``throughput``."""
    lines = [_line(name, where, each, repeats, batches, seed) for name in PROGRAMS]
    note = "medians of runs in turns, against a pass-through that keeps events for a micro-batch where they wait"
    report.table("programs", f"programs on Spark, {KEYS:,} keys, local[{CORES}]", lines, COLUMNS, note)


def _line(name: str, where: Place, each: int, repeats: int, batches: int, seed: int) -> Line:
    made, late, plain = PROGRAMS[name]
    read, matcher = recorded(where, each, batches, late, seed), made()
    found: dict[str, list[float]] = {MATCHER: [], plain: []}
    rows = events_done = 0
    for turn in range(repeats):
        for plan in (MATCHER, plain)[:: 1 if turn % 2 else -1]:
            done = list(steady(drained(streaming(matcher.flow(read()), plan), where.new("checkpoint"))))
            found[plan].append(statistics.median(rates(done)))
            told = [one.progress for one in done if one.progress is not None]
            rows, events_done = rows + sum(one.matches for one in told), events_done + sum(one.events for one in told)
    return {
        "program": name,
        "events": each,
        **spread(found[MATCHER]),
        "plain": statistics.median(found[plain]),
        **in_turns(found[MATCHER], found[plain]),
        "wanted": WANTED,
        "matches": rows / max(events_done, 1),
    }
