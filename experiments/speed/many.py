"""Many queries that differ in constants, on one stream: what each part of it takes, beside what is wanted.

    python -m experiments.speed.many [rates templates hot texts more idle single waiting] [--events 300000] [--rounds 3]

``rates``: 1,000 to 100,000 queries of one template (``--queries``), and each query by itself. ``templates``: a thousand
templates with ten queries each. ``hot``: 100,000 queries of hot symbols, symbols of queries and of events as 1/rank,
eight values per constant. ``texts``: adding 100,000 queries, as texts and as rows of a table. ``more``: adding one to
100,000. ``idle``: bytes of a query for which nothing has come. ``single``: one query in a set, against the same by
itself. ``waiting``: 10,000 partial matches that wait for a threshold.

Match points; reading is left out. Times are CPU times of the process, the best of some rounds. Sets of queries are held
against each of some queries by itself on the first events.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acep_approx import QuerySet, compile_query
from experiments.speed import waiting as bench_waiting
from experiments.speed.many_workload import (
    CHUNK,
    FIRST,
    TEMPLATE,
    check,
    constants,
    desk_of,
    desk_of_shapes,
    filled,
    hot_constants,
    only_asked,
    seconds_alone,
    shape_constants,
    shapes,
    stream,
    timed,
)

WANTED_RATES = {1_000: 4e6, 10_000: 1e6, 100_000: 1e5}
CHECKED = 20_000
"""Events on which a set is held against single queries."""
ONE_TEST = "PATTERN SEQ(Stock a, Stock b, Stock c) WHERE [symbol] AND a.price > 120 AND c.volume > 30000 WITHIN 20000"
CEL_WAITING = "SELECT price_1 AS price FROM A NEXT{$2.price > 1.05 * $1.price} B"


@dataclass(frozen=True)
class Asked:
    """How much is measured: ``many`` queries where it is about many."""

    events: int
    rounds: int
    queries: tuple[int, ...]
    many: int


@dataclass(frozen=True)
class Line:
    """A number beside the one that is wanted: at most that, or at least where ``more_is_better``."""

    what: str
    value: float
    unit: str
    wanted: float | None = None
    note: str = ""
    more_is_better: bool = False

    def __str__(self) -> str:
        good = self.wanted is None or (self.value >= self.wanted if self.more_is_better else self.value <= self.wanted)
        wanted = "" if self.wanted is None else f"{_short(self.wanted)} {self.unit}"
        number = f"{_short(self.value)} {self.unit}"
        return f"{self.what:50}{number:>20}{wanted:>20}  {' ' if good else '!'} {self.note}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rates(asked: Asked) -> Iterator[Line]:
    """More and more queries of one template."""
    data = stream(asked.events)
    alone = seconds_alone(TEMPLATE, constants(3), data)
    for queries in asked.queries:
        rows = constants(queries)
        check(TEMPLATE, rows, data.slice(0, CHECKED))
        rate, points = timed(lambda rows=rows: desk_of(TEMPLATE, rows), data, asked.rounds)
        wanted, name = WANTED_RATES.get(queries), f"{queries:,} queries of one template"
        yield Line(name, rate, "events/s", wanted, f"{points:.2f} points/event", more_is_better=True)
        ratio = alone * queries * rate / asked.events
        least = 1000 if queries == 10_000 else None
        yield Line("  of the speed of each by itself", ratio, "x", least, more_is_better=True)


def templates(asked: Asked) -> Iterator[Line]:
    """A thousand templates, ten queries each."""
    count, queries, data = asked.many // 100, 10, stream(asked.events)
    for number, text in enumerate(shapes(count)):
        if number % max(count // 10, 1) == 0:
            check(text, only_asked(text, shape_constants(queries, number)), data.slice(0, CHECKED), 2)
    begun = time.process_time()
    desk_of_shapes(count, queries)
    adding = time.process_time() - begun
    rate, points = timed(lambda: desk_of_shapes(count, queries), data, asked.rounds)
    note = f"{points:.2f} points/event; adding them took {adding:.1f} s"
    yield Line(f"{count:,} templates x {queries} queries", rate, "events/s", 2e5, note, more_is_better=True)


def hot(asked: Asked) -> Iterator[Line]:
    """Symbols of queries and events as 1/rank, few values per constant."""
    data, rows = stream(asked.events, skew=1.0), hot_constants(asked.many)
    check(TEMPLATE, rows, data.slice(0, CHECKED // 4))
    rate, points = timed(lambda: desk_of(TEMPLATE, rows), data, asked.rounds)
    name = f"{asked.many:,} queries, hot symbols, 8 values"
    yield Line(name, rate, "events/s", 3e5, f"{points:.2f} points/event", more_is_better=True)


def texts(asked: Asked) -> Iterator[Line]:
    """Adding queries; the next push takes them in."""
    rows, some = constants(asked.many), stream(FIRST)
    desk_of(TEMPLATE, rows[:10]).push(some)  # kernels are compiled
    as_texts, as_table = [filled(TEMPLATE, row) for row in rows], pa.Table.from_pylist(rows)
    cases: tuple[tuple[str, Callable[[QuerySet], Any], float], ...] = (
        (f"adding {asked.many:,} texts", lambda desk: [desk.add(text) for text in as_texts], 10),
        (f"adding {asked.many:,} rows of a table", lambda desk: desk.add_many(TEMPLATE, as_table), 1),
    )
    for name, add, wanted in cases:
        gc.collect()
        desk = QuerySet(time="ts", output="points")
        begun = time.process_time()
        add(desk)
        adding = time.process_time() - begun
        desk.push(some)
        yield Line(name, time.process_time() - begun, "s", wanted, f"{adding:.2f} s, the rest in the first push")


def more(asked: Asked) -> Iterator[Line]:
    """Adding one query to many, and what the next push takes longer for it."""
    data = stream(FIRST * 32)
    rows = constants(asked.many + 10)
    ways: dict[str, Callable[[QuerySet, dict[str, Any]], Any]] = {
        "as a row of their template": lambda desk, row: desk.add_many(TEMPLATE, [row]),
        "as a text": lambda desk, row: desk.add(filled(TEMPLATE, row)),
    }
    for way, add in ways.items():
        desk = desk_of(TEMPLATE, rows[: asked.many])
        desk.push(data.slice(0, FIRST))
        calls, pushes, plain = [], [], []
        for turn, row in enumerate(rows[asked.many :], 1):
            parts = [data.slice((3 * turn - 2 + part) * FIRST, FIRST) for part in range(3)]
            desk.push(parts[0])
            plain.append(_seconds(desk.push, parts[1]))
            calls.append(_seconds(add, desk, row))
            pushes.append(_seconds(desk.push, parts[2]))
        call, push, before = (1e3 * statistics.median(taken) for taken in (calls, pushes, plain))
        note = f"{call:.2f} ms in the call; a push of {FIRST:,} events {push:.1f} ms, without {before:.1f} ms"
        yield Line(f"one query to {asked.many:,}, {way}", call + max(push - before, 0), "ms", 5, note)


def _seconds(call: Callable[..., Any], *given: Any) -> float:
    begun = time.process_time()
    call(*given)
    return time.process_time() - begun


def bytes_per_query(template: str, rows: pa.Table, some: pa.Table) -> float:
    """What a set holds for each query after some events; those of a set with one query are taken off."""

    def held(table: pa.Table) -> int:
        gc.collect()
        arrow = pa.total_allocated_bytes()
        tracemalloc.start()
        desk = QuerySet(time="ts", output="points")
        desk.add_many(template, table)
        desk.push(some)
        desk.finish()
        gc.collect()
        size: int = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - arrow
        tracemalloc.stop()
        assert len(desk) == table.num_rows
        return size

    held(rows.slice(0, 1))  # what is kept for all sets
    queries: int = rows.num_rows
    return (held(rows) - held(rows.slice(0, 1))) / max(queries - 1, 1)


def idle(asked: Asked) -> Iterator[Line]:
    """Memory of queries for which no event has come."""
    rows, some = pa.Table.from_pylist(constants(asked.many)), stream(10)
    nowhere = some.set_column(2, "symbol", pa.array([-1] * some.num_rows))
    size = bytes_per_query(TEMPLATE, rows, nowhere)
    yield Line(f"an idle query of {asked.many:,}", size, "bytes", 300, "of Python, numpy and Arrow")


def single(asked: Asked) -> Iterator[Line]:
    """One query in a set, against the same by itself, in turns."""
    data = stream(asked.events)
    cases = {
        "one query in a set: conditions across events": filled(TEMPLATE, constants(1)[0]),
        "one query in a set: conditions on one event": ONE_TEST,
    }
    for name, text in cases.items():
        query = compile_query(text)
        ratios, together = [], 0.0
        for turn in range(asked.rounds + 1):
            begun = time.process_time()
            points = query.match(data).points().num_rows
            alone = time.process_time() - begun
            desk = QuerySet(time="ts", output="points")
            desk.add(text)
            begun = time.process_time()
            rows = desk.match(data).rows
            together = time.process_time() - begun
            assert rows == points, f"{name}: {rows} points, alone {points}"
            if turn:  # kernels are compiled
                ratios.append(together / alone)
        note = f"{points:,} points, {asked.events / together / 1e6:.1f} M events/s in the set"
        yield Line(name, statistics.median(ratios), "x the time", 1.1, note)


def waiting(asked: Asked) -> Iterator[Line]:
    """Runs that wait for an event beyond a threshold, without a key; of a thousand events one reaches some."""
    runs = asked.many // 10
    begin, events = bench_waiting.probes(runs, asked.rounds * 20_000, 1)
    text = bench_waiting.query_text("probes", runs, has_key=False, is_simultaneous=False)
    ways: dict[str, Callable[[], Any]] = {
        "a pattern by itself": lambda: compile_query(text).matcher(output="points"),
        "a pattern in a set": lambda: _desk(text),
        "NEXT in CEL by itself": lambda: compile_query(CEL_WAITING).matcher(),
        "NEXT in CEL in a set": lambda: _desk(CEL_WAITING),
    }
    for name, make in ways.items():
        matcher = make()
        found = [matcher.push(begin.slice(first, CHUNK)) for first in range(0, begin.num_rows, CHUNK)]
        best, part = float("inf"), events.num_rows // asked.rounds
        for turn in range(asked.rounds):
            batch = events.slice(turn * part, part)
            begun = time.process_time()
            found.append(matcher.push(batch))
            best = min(best, time.process_time() - begun)
        found.append(matcher.finish())
        count = sum(one.rows if hasattr(one, "rows") else one.num_rows for one in found)
        note = f"{count:,} results"
        yield Line(f"{runs:,} waiting, {name}", 1e6 * best / part, "us/event", 1, note)


def _desk(text: str) -> QuerySet:
    desk = QuerySet(time="ts", output="points" if text.startswith("PATTERN") else "matches")
    desk.add(text)
    return desk


PARTS: dict[str, Callable[[Asked], Iterator[Line]]] = {
    "rates": rates,
    "templates": templates,
    "hot": hot,
    "texts": texts,
    "more": more,
    "idle": idle,
    "single": single,
    "waiting": waiting,
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(PARTS)}")
    parser.add_argument("--queries", type=int, nargs="+", default=[*WANTED_RATES], help="of rates")
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few queries and events: whether it works")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in PARTS]:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    asked = Asked(given.events, given.rounds, tuple(given.queries), 100_000)
    if given.quick:
        asked = Asked(6_000, 1, (100,), 1_000)
    print(f"{'':50}{'measured':>20}{'wanted':>20}")
    for name in given.parts or PARTS:
        for line in PARTS[name](asked):
            print(line, flush=True)


if __name__ == "__main__":
    main()
