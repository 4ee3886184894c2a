"""What disorder and revisions cost: each way against the same query on the same events in order, in one run.

``python -m experiments.speed.revisions`` prints a table. CPU time of the process, medians of interleaved repetitions;
each way's net results are held against those of the plain matcher on the sorted events, once, before anything is timed.
Workload: Chandramouli, Goldstein, Maier, PVLDB 3(1) 2010, section 6.1 (ticks of a random walk; V-shaped patterns
without gaps, their Q2 in the words of our language), and sequences of types that skip what lies between.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from acep_approx import compile_query
from acep_approx.arrays import Ints
from experiments.report import Column, Row, of_columns

WINDOW = 500
QUERIES = {
    "V shapes": f"""PATTERN SEQ(T a, T+ b[], T+ c[])
        WHERE partition_contiguity {{
            a.change < -0.25 AND b[i].change < 0 AND c[i].change > 0 AND c[c.LEN].price >= a.before
        }}
        WITHIN {WINDOW}""",
    "next": f"PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match {{ [key] AND b.price > a.price }} WITHIN {WINDOW}",
    "any": f"PATTERN SEQ(A a, B b, C c) WHERE [key] WITHIN {WINDOW}",
}
OUTPUTS = {"V shapes": "points", "next": "matches", "any": "points"}
LETTERS = 20
KEYS = 10


@dataclass(frozen=True)
class Stream:
    """Events in order, and the order in which they arrive."""

    events: pa.Table
    arrival: Ints

    @classmethod
    def made(cls, name: str, events: int, *, share: float, most: int, seed: int = 7) -> Stream:
        """A stream for a query; a ``share`` of its events comes up to ``most`` events late."""
        dice = np.random.default_rng(seed)
        change = np.abs(dice.normal(0.7, 0.3, events)) * np.where(dice.random(events) < 0.7, 1, -1)
        price = 100 + np.cumsum(change)
        letters = np.array([chr(ord("A") + n) for n in range(LETTERS)])
        kind = np.full(events, "T") if name == "V shapes" else letters[dice.integers(0, LETTERS, events)]
        columns = {
            "ts": np.arange(events),
            "type": pa.array(kind.tolist()).dictionary_encode(),
            "key": dice.integers(0, KEYS, events),
            "price": price,
            "before": price - change,
            "change": change,
        }
        delay = np.where(dice.random(events) < share, dice.integers(1, most + 1, events), 0)
        return cls(pa.table(columns), np.argsort(np.arange(events) + delay, kind="stable"))

    @property
    def arriving(self) -> pa.Table:
        """The events as they arrive."""
        return self.events.take(pa.array(self.arrival))


@dataclass(frozen=True)
class Way:
    """One way to run a stream: what the matcher is asked for, and how many rows are pushed at a time."""

    name: str
    rows: pa.Table
    size: int
    asked: dict[str, Any]

    def run(self, name: str) -> tuple[float, list[pa.Table]]:
        """Seconds of the process, and what came out."""
        matcher: Any = compile_query(QUERIES[name]).matcher(output=OUTPUTS[name], **self.asked)
        parts = [self.rows.slice(first, self.size) for first in range(0, self.rows.num_rows, self.size)]
        begun = time.process_time()
        found = [matcher.push(part) for part in parts]
        found.append(matcher.finish())
        return time.process_time() - begun, found


def net(tables: Sequence[pa.Table]) -> Counter[tuple[Any, ...]]:
    """What is left of a changelog: times of events in the place of rows, which depend on the order of arrival."""
    left: Counter[tuple[Any, ...]] = Counter()
    for table in tables:
        names = [name for name in ("start", "end", "errors", "key") if name in table.column_names]
        ops = table.column("op").to_pylist() if "op" in table.column_names else ["+I"] * table.num_rows
        rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        for row, op in zip(rows, ops, strict=True):
            left[row] += 1 if op == "+I" else -1
    return +left


def times(name: str, ways: Sequence[Way], rounds: int) -> dict[str, list[float]]:
    """Seconds of each way, in turns, after all have been held against the first one."""
    wanted = net(ways[0].run(name)[1])
    for way in ways[1:]:
        assert net(way.run(name)[1]) == wanted, f"{name}: {way.name} has other results"
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            taken[way.name].append(way.run(name)[0])
    return taken


def ratio(taken: dict[str, list[float]], over: str, under: str) -> float:
    """The median of the ratios of two ways that were run in turns."""
    return statistics.median(a / b for a, b in zip(taken[over], taken[under], strict=True))


def in_order(name: str, events: int, rounds: int) -> list[Row]:
    """The cost of being ready for disorder where there is none."""
    stream = Stream.made(name, events, share=0, most=1)
    rows: list[Row] = []
    for size in (events, 10_000):
        ways = [
            Way("plain", stream.events, size, {}),
            Way("final", stream.events, size, {"emit": "final", "watermark": 1000}),
            Way("early", stream.events, size, {"emit": "early", "watermark": 1000}),
        ]
        taken = times(name, ways, rounds)
        for way, wanted in (("final", "1.0x"), ("early", "1.3x")):
            rows.append(
                {
                    "what": f"{way}, in order",
                    "query": name,
                    "push": size,
                    "ordered": events / statistics.median(taken["plain"]) / 1e6,
                    "value": ratio(taken, way, "plain"),
                    "unit": "x",
                    "wanted": wanted,
                }
            )
    return rows


def disorder(name: str, events: int, rounds: int) -> list[Row]:
    """Five in a hundred events come up to 1,000 events late.

    Against the plain matcher, and as in the paper's figure 12 against the same matcher where none is late.
    """
    rows: list[Row] = []
    stream = Stream.made(name, events, share=0.05, most=1000)
    for size in (1_000, 10_000, 100_000):
        asked = {"emit": "early", "watermark": 1001}
        ways = [
            Way("plain", stream.events, size, {}),
            Way("early", stream.events, size, asked),
            Way("late", stream.arriving, size, asked),
        ]
        taken = times(name, ways, rounds)
        rows += [
            {
                "what": f"5% late by up to 1,000, against {other}",
                "query": name,
                "push": size,
                "ordered": events / statistics.median(taken[other]) / 1e6,
                "value": ratio(taken, other, "late"),
                "unit": "of the speed",
                "wanted": "0.6",
            }
            for other in ("plain", "early")
        ]
    return rows


def late_events(name: str, events: int, rounds: int) -> list[Row]:
    """What one late event costs, in pushes of 1,000."""
    rows: list[Row] = []
    for late in (10, 100, 1000):
        dice = np.random.default_rng(3)
        delay = np.where(dice.random(events) < 0.05, late, 0)
        stream = Stream.made(name, events, share=0, most=1)
        arrival = np.argsort(np.arange(events) + delay, kind="stable")
        asked = {"emit": "early", "watermark": late + 1}
        ways = [
            Way("plain", stream.events, 1_000, {}),
            Way("in order", stream.events, 1_000, asked),
            Way("late", stream.events.take(pa.array(arrival)), 1_000, asked),
        ]
        taken = times(name, ways, rounds)
        each = statistics.median(b - a for a, b in zip(taken["in order"], taken["late"], strict=True)) / (0.05 * events)
        step = statistics.median(taken["plain"]) / events
        rows.append(
            {
                "what": f"an event late by {late}",
                "query": name,
                "push": 1_000,
                "ordered": 1e-6 / step,
                "value": each * 1e6,
                "unit": "us",
                "wanted": f"{5 + 2 * step * 1e6 * min(WINDOW, late):.0f} us",
            }
        )
    return rows


def retractions(name: str, events: int, rounds: int) -> list[Row]:
    """One in a hundred events is taken back, up to 1,000 events later."""
    stream = Stream.made(name, events, share=0, most=1)
    dice = np.random.default_rng(5)
    named = stream.events.append_column("id", pa.array(np.arange(events)))
    gone = np.flatnonzero(dice.random(events) < 0.01)
    back = np.minimum(gone + dice.integers(1, 1001, len(gone)), events - 1)
    inserts = named.append_column("op", pa.array(["+I"] * events).dictionary_encode())
    deletes = named.take(pa.array(gone)).append_column("op", pa.array(["-D"] * len(gone)).dictionary_encode())
    order = np.argsort(np.concatenate((np.arange(events), back + 0.5)), kind="stable")
    revised = pa.concat_tables([inserts, deletes]).unify_dictionaries().combine_chunks().take(pa.array(order))
    left = named.take(pa.array(np.setdiff1d(np.arange(events), gone)))
    rows: list[Row] = []
    for size in (1_000, 10_000):
        asked = {"emit": "early", "watermark": 1001, "id": "id"}
        ways = [
            Way("without", left.append_column("op", pa.array(["+I"] * left.num_rows)), size, asked | {"op": "op"}),
            Way("revised", revised, size, asked | {"op": "op"}),
        ]
        taken = times(name, ways, rounds)
        rows.append(
            {
                "what": "1% taken back",
                "query": name,
                "push": size,
                "ordered": events / statistics.median(taken["without"]) / 1e6,
                "value": ratio(taken, "without", "revised"),
                "unit": "of the speed",
                "wanted": "0.8",
            }
        )
    return rows


COLUMNS = (
    Column("what", "what", "s"),
    Column("query", "query", "s"),
    Column("push", "rows at a time", ",d"),
    Column("ordered", "in order, M events/s", ".2f"),
    Column("value", "measured", ".2f"),
    Column("unit", "", "s"),
    Column("wanted", "wanted", "s"),
)
PARTS: dict[str, Callable[[str, int, int], list[Row]]] = {
    "in-order": in_order,
    "disorder": disorder,
    "late": late_events,
    "retractions": retractions,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few events, one round: whether it works")
    parser.add_argument("--only", choices=[*PARTS], help="one part of the table")
    parser.add_argument("--query", choices=[*QUERIES], help="one query")
    given = parser.parse_args()
    events, rounds = (5_000, 1) if given.quick else (given.events, given.rounds)
    rows: list[Row] = []
    for part, measure in PARTS.items():
        if given.only in (None, part):
            for name in QUERIES if given.query is None else [given.query]:
                rows += measure(name, events, rounds)
    Console(width=140).print(of_columns("Late and revised events", rows, COLUMNS))


if __name__ == "__main__":
    main()
