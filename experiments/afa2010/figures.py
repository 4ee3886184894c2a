"""The figures of ``afa2010``: each is a function that measures, and gives the rows of its table."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import compile_query
from acep_approx.arrays import Ints
from experiments.afa2010.baselines import Spans, by_joins, by_two_machines, paper_q1, paper_q2, run_paper, spans
from experiments.afa2010.streams import DROP, REAL_DROP, Ignoring, Late, q1, q1_in_one_state, q2, real, stock
from experiments.report import Row
from tests.paper_machine import Machine

FEW, MANY = 1_000, 10_000
"""Rows that are pushed at a time."""
LIVE = 10
"""Rows that are pushed at a time where it counts how long results wait."""
SIGMAS = (0, 250, 500, 1000, 2000)


@dataclass(frozen=True)
class Asked:
    """How much is measured: ``live`` events where few are pushed at a time; ``data``: where real streams are."""

    events: int
    live: int
    rounds: int
    data: Path


@dataclass(frozen=True)
class Way:
    """One way to find matches: ``ready`` returns what is timed, which gives the results."""

    name: str
    ready: Callable[[], Callable[[], Any]]

    def run(self) -> tuple[float, Any]:
        """Seconds of the process, and what came out."""
        run = self.ready()
        begun = time.process_time()
        found = run()
        return time.process_time() - begun, found


def pushing(text: Any, events: pa.Table, size: int = MANY, **asked: Any) -> Callable[[], Callable[[], Any]]:
    """A matcher of a query, as text or built, that gets a stream, so many rows at a time.

    The first event is pushed before the clock runs: the matcher gets to know the columns.
    """

    def ready() -> Callable[[], list[pa.Table]]:
        matcher: Any = compile_query(text).matcher(**asked)
        before = matcher.push(events.slice(0, 1))
        parts = [events.slice(first, size) for first in range(1, events.num_rows, size)]
        return lambda: [before, *(matcher.push(part) for part in parts), matcher.finish()]

    return ready


def times(ways: Sequence[Way], rounds: int, seen: Callable[[Any], Counter[Any]] = spans) -> dict[str, list[float]]:
    """Seconds of each way, in turns, after all have been held against the first one by what is ``seen`` of results."""
    wanted: Counter[Any] | None = None
    for way in ways:
        found = way.run()[1]
        here = found if isinstance(found, Counter) else seen(found)
        wanted = here if wanted is None else wanted
        assert here == wanted, f"{way.name} has other results than {ways[0].name}"
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        gc.collect()  # what the checks and Algorithm 1 have left is not swept while the clock runs
        for way in ways:
            taken[way.name].append(way.run()[0])
    return taken


def ratio(taken: dict[str, list[float]], over: str, under: str) -> float:
    """The median of the ratios of two ways that were run in turns."""
    return statistics.median(a / b for a, b in zip(taken[over], taken[under], strict=True))


def rate(taken: dict[str, list[float]], way: str, events: int) -> float:
    """Million events per second."""
    return events / statistics.median(taken[way]) / 1e6


def held_against_paper(machine: Machine, values: Sequence[Any], found: Sequence[pa.Table]) -> None:
    """Algorithm 1 finds the same in the events in order."""
    theirs = run_paper(machine, values, range(len(values)), [], math.inf).left
    assert spans(found) == theirs, "Algorithm 1 has other results"


# --- figure 8 ---------------------------------------------------------------------------------------------------------

PAPER_8 = {
    "AFA+O": "the fastest",
    "AFA": "slightly slower",
    "AFA+ignore": "slightly slower",
    "CAN": "0.75 of AFA+ignore; real 0.84",
    "IPM": "0.2",
}


def figure_8(asked: Asked) -> list[Row]:
    """Q1, k = 2, W = 2000, in order: ways to find the same."""
    k, window = 2, 2000
    streams: list[tuple[str, pa.Table | None, float]] = [
        ("generated", stock(asked.events, rises=0.5), DROP),
        ("real", real(asked.data, asked.events), REAL_DROP),
    ]
    rows: list[Row] = []
    for data, events, drop in streams:
        if events is None:
            continue
        plain, passing = q1(k, drop, window), q1(k, drop, window, "ignore")
        prefix = events.slice(0, 5 * window)
        found = pushing(plain, prefix)()()
        held_against_paper(paper_q1(k, drop, window, loops=False), prefix.column("change").to_pylist(), found)
        ways = [
            Way("AFA, ordered", pushing(plain, events)),
            Way("AFA", pushing(plain, events, emit="early", watermark=window)),
            Way("AFA+O", pushing(plain, events, sequence="n")),
            Way("AFA+ignore", pushing(passing, events)),
            Way("CAN", pushing(q1_in_one_state(k, drop, window), events)),
            Way("IPM", _joins(k, drop, window, events)),
            Way("two machines", _two_machines(k, drop, window, events)),
        ]
        taken = times(ways, asked.rounds)
        rows += [
            {
                "data": data,
                "way": way.name,
                "rate": rate(taken, way.name, asked.events),
                "of_plain": ratio(taken, "AFA, ordered", way.name),
                "of_ignore": ratio(taken, "AFA+ignore", way.name),
                "paper": PAPER_8.get(way.name),
            }
            for way in ways
        ]
    return rows


def _joins(k: int, drop: float, window: int, events: pa.Table) -> Callable[[], Callable[[], Spans]]:
    return lambda: lambda: by_joins(k, drop, window, events, MANY)


def _two_machines(k: int, drop: float, window: int, events: pa.Table) -> Callable[[], Callable[[], list[pa.Table]]]:
    def ready() -> Callable[[], list[pa.Table]]:
        run = by_two_machines(k, drop, window, MANY)
        return lambda: list(run(events))

    return ready


# --- figures 10 and 11 ------------------------------------------------------------------------------------------------

PAPER_10 = {70: "14", 90: "4.5"}


@dataclass
class Watched:
    """What came out of a stream that arrives one event per millisecond.

    ``rows`` in all; ``waits`` of matches that were put out: milliseconds from the arrival of the last event that they
    have to when they came; ``seconds`` of the process for each push.
    """

    rows: int
    waits: list[int]
    seconds: list[float]
    left: Spans


def watched(text: str, late: Late, sigma: int | None, marks: dict[int, int], size: int = 1) -> Watched:
    """Push events, so many at a time, with punctuations between; ``sigma`` None: all is put out early."""
    matcher: Any = compile_query(text).matcher(emit="early" if sigma is None else sigma, changelog=True)
    arriving = late.arriving
    came_at = np.empty(len(late.arrival), np.int64)
    came_at[late.arrival] = np.arange(len(late.arrival))
    is_part = late.events.column("change").to_numpy() != 0
    tables: list[pa.Table] = []
    waits: list[int] = []
    seconds: list[float] = []
    for first in range(0, len(came_at), size):
        now = min(first + size, len(came_at))
        begun = time.process_time()
        found = [matcher.push(arriving.slice(first, size))]
        seconds.append(time.process_time() - begun)
        if now in marks:
            found.append(matcher.punctuate(marks[now]))
        for table in found:
            if table.num_rows:
                waits += _waits(table, came_at, is_part, now - 1)
        tables += found
    tables.append(matcher.finish())
    return Watched(sum(table.num_rows for table in tables), waits, seconds, spans(tables))


def _waits(table: pa.Table, came_at: Ints, is_part: np.ndarray, now: int) -> list[int]:
    """How long matches have waited since the last event of theirs that has come."""
    waits = []
    columns = (table.column(name).to_pylist() for name in ("start", "end", "op"))
    for start, end, op in zip(*columns, strict=True):
        if op == "+I":
            mine = came_at[start : end + 1][is_part[start : end + 1]]
            waits.append(now - int(mine[mine <= now].max()))
    return waits


def figure_10(asked: Asked) -> list[Row]:
    """Rows put out, and how long they waited: 5% of the events late by 1 to 5,000, one punctuation per window."""
    window, share, most = 500, 0.05, 5000
    rows: list[Row] = []
    for ignorable in (70, 90):
        events = stock(asked.live, rises=0.5, ignorable=ignorable / 100, seed=9)
        late = Late.made(events, share=share, most=min(most, asked.live // 2))
        change, price = events.column("change").to_pylist(), events.column("price").to_pylist()
        both = list(zip(change, price, strict=True))
        queries: list[tuple[str, str, Machine, Sequence[Any], tuple[int | None, ...]]] = [
            ("Q1", q1(1, DROP, window, "ignore"), paper_q1(1, DROP, window, loops=False), change, (*SIGMAS, None)),
            ("Q2", q2(DROP, window, "ignore"), paper_q2(DROP, window), both, (0, None)),
        ]
        for name, text, machine, values, sigmas in queries:
            least: dict[str, int] = {}
            for sigma in sigmas:
                row = _one_sigma(text, machine, late, values, sigma, is_q1=name == "Q1")
                length = row.pop("length")
                for key in ("ours", "pushes", "special", "algorithm"):
                    if row.get(key) is not None:
                        row[f"{key}_ratio"] = row[key] / max(least.setdefault(key, row[key]), 1)
                spanning = share * (1 - ignorable / 100)  # late events that are ticks, of all
                rows.append(
                    {
                        "query": name,
                        "ignorable": ignorable,
                        "sigma": "all" if sigma is None else str(sigma),
                        **row,
                        "length": length,
                        "by_length": 1 + 2 * spanning * length if sigma is None else None,
                        "by_window": 1 + 2 * spanning * window if sigma is None else None,
                        "paper": PAPER_10[ignorable] if name == "Q1" and sigma == 1000 else None,
                    }
                )
    return rows


def _one_sigma(
    text: str, machine: Machine, late: Late, values: Sequence[Any], sigma: int | None, *, is_q1: bool
) -> dict[str, Any]:
    """Ours in small pushes and window by window, and Algorithm 1 with and without appendix D."""
    window, ahead = machine.window + 1, math.inf if sigma is None else sigma
    marks = late.punctuations(window)
    ours = watched(text, late, sigma, dict(marks), size=LIVE)
    pushes = watched(text, late, sigma, dict(marks), size=window)
    arrival = late.arrival.tolist()
    is_part = late.events.column("change").to_numpy()[late.arrival] != 0
    number = np.cumsum(is_part)
    # with appendix D an event that all runs ignore touches nothing: as if it had not come
    some = np.array(arrival)[is_part].tolist()
    special = run_paper(machine, values, some, [(int(number[at - 1]), tick) for at, tick in marks], ahead)
    row: dict[str, Any] = {"ours": ours.rows, "pushes": pushes.rows, "special": special.rows}
    assert ours.left == pushes.left == special.left, f"sigma {sigma}: other results than Algorithm 1"
    if is_q1:
        loops = paper_q1(1, DROP, window, loops=True)
        row["algorithm"] = run_paper(loops, values, arrival, marks, ahead).rows
    lengths = [end - start for (start, end), times in special.left.items() for _ in range(times)]
    wait = statistics.fmean(ours.waits) if ours.waits else None
    return row | {
        "wait": wait,
        "cpu": 1e3 * statistics.median(ours.seconds),
        "length": statistics.fmean(lengths) if lengths else 0.0,
    }


# --- figures 12 and 13 ------------------------------------------------------------------------------------------------


def figure_12(asked: Asked) -> list[Row]:
    """Q2, W = 500: more and more events are late by 1 to 1,000."""
    window, most = 500, 1000
    text, events = q2(DROP, window), stock(asked.events, rises=0.7)
    prefix = events.slice(0, 5 * window)
    values = list(zip(prefix.column("change").to_pylist(), prefix.column("price").to_pylist(), strict=True))
    held_against_paper(paper_q2(DROP, window), values, pushing(text, prefix)()())
    rows: list[Row] = []
    for share in (0, 1, 5, 10, 20):
        late = Late.made(events, share=share / 100, most=min(most, asked.events // 2))
        arriving = late.arriving
        ways = [Way("plain", pushing(text, events))]
        asking: dict[str, dict[str, Any]] = {
            "early": {"emit": "early", "watermark": most},
            "sequence": {"sequence": "n"},
        }
        for name, options in asking.items():
            ways += [
                Way(f"{name}_{size}", pushing(text, arriving, rows_at_once, **options))
                for size, rows_at_once in (("few", FEW), ("many", MANY))
            ]
        taken = times(ways, asked.rounds)
        row: Row = {"late": share} | {way.name: rate(taken, way.name, asked.events) for way in ways}
        for name, options in asking.items():
            row[f"{name}_held"], row[f"{name}_kb"] = most_held(text, arriving, **options)
        rows.append(row | {"nodes": _nodes(late.events, late, window)})
    for row in rows:
        row["of_ordered"] = row["early_many"] / rows[0]["early_many"]
    return rows


def _nodes(events: pa.Table, late: Late, window: int) -> int:
    """Partial matches that Algorithm 1 holds at most for Q2."""
    values = list(zip(events.column("change").to_pylist(), events.column("price").to_pylist(), strict=True))
    marks = late.punctuations(window)
    return run_paper(paper_q2(DROP, window), values, late.arrival.tolist(), marks, math.inf).most


def most_held(text: str, arriving: pa.Table, **asked: Any) -> tuple[int, float]:
    """Events that a matcher holds at most, and kilobytes of these, snapshots and results."""
    matcher: Any = compile_query(text).matcher(**asked)
    events, size = 0, 0
    for first in range(0, arriving.num_rows, FEW):
        matcher.push(arriving.slice(first, FEW))
        events = max(events, matcher.held_events)
        size = max(size, _bytes_held(matcher.stream))
    return events, size / 1e3


def _bytes_held(stream: Any) -> int:
    """Of a stream whose events may be late."""
    tail = stream.run.tail
    parts = [*tail.parts(), *stream.waiting.parts]
    size: int = sum(part.data.nbytes + 3 * part.tick.nbytes for part in parts)
    size += sum(2 * part.tick.nbytes for part in tail.parts())  # places, slots
    for segment in tail.segments:
        size += 8 * segment.snapshot.words + sum(table.nbytes for table in segment.results)
    return size


# --- figures 16 and 17 ------------------------------------------------------------------------------------------------


def figure_16(asked: Asked) -> list[Row]:
    """Q1, k = 1, delta = 0, in order: events that IGNORE passes over, or that an arc consumes."""
    window = 500
    rows: list[Row] = []
    for ignorable in (0, 20, 40, 60, 80, 90):
        events = stock(asked.events, rises=0.5, ignorable=ignorable / 100)
        change = events.column("change").to_pylist()
        kinds: tuple[Ignoring, ...] = ("ignore", "loop")
        ways = [Way(kind, pushing(q1(1, 0, window, kind), events)) for kind in kinds]
        taken = times(ways, asked.rounds)
        row: Row = {"ignorable": ignorable} | {way.name: rate(taken, way.name, asked.events) for way in ways}
        row["ratio"] = ratio(taken, "loop", "ignore")
        for kind in kinds:
            matcher: Any = compile_query(q1(1, 0, window, kind)).matcher()
            found = [matcher.push(events), matcher.finish()]
            row |= {f"{kind}_made": matcher.progress.made / asked.events, f"{kind}_runs": matcher.progress.peak}
        marks = [(at, at) for at in range(window, asked.events, window)]
        loops = run_paper(paper_q1(1, 0, window, loops=True), change, range(asked.events), marks, math.inf)
        assert loops.left == spans(found), "Algorithm 1 has other results"
        number = np.cumsum(np.array(change) != 0)
        fewer = [(int(number[at - 1]), tick) for at, tick in marks]
        some = np.flatnonzero(np.array(change) != 0).tolist()
        special = run_paper(paper_q1(1, 0, window, loops=False), change, some, fewer, math.inf)
        rows.append(row | {"special_nodes": special.most, "loop_nodes": loops.most})
    return rows
