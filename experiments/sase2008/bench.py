"""Measuring for ``sase2008``: the runs engine with and without merging, and backtracking, on stock streams."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx import compile_query
from experiments.sase2008.backtrack import Backtracked, backtrack
from experiments.sase2008.workload import SYMBOLS, StockQuery, stock_stream

BASIC, MERGING = "none", "equal"
"""What the engine is told to merge."""

WARM_UP = 2000
"""Events that each query sees before the clock starts, so that its kernels are compiled."""

ENOUGH = 4.0
"""Seconds after which a measurement is not repeated once more."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Found:
    """What one pass of the engine found (``matches``, or match points; their events) and did (as ``Matches.work``)."""

    matches: int
    length: int
    steps: int
    made: int
    merged: int
    peak: int


@dataclass(frozen=True)
class Timed:
    """CPU seconds of one pass, and events per second."""

    seconds: float
    rate: float


@dataclass(frozen=True)
class Engine(Timed):
    """One pass of the engine."""

    found: Found


@dataclass(frozen=True)
class Baseline(Timed):
    """One pass of backtracking."""

    found: Backtracked


def run_engine(query: StockQuery, merge: str, listing: bool, events: pa.Table) -> Found:
    """List all matches, table by table, or only detect where there are some."""
    matches = compile_query(query.text, engine="runs").match(events, merge=merge)
    count = length = 0
    for table in matches.tables() if listing else matches.point_tables():
        count += table.num_rows
        if listing and table.num_rows:
            length += pc.sum(pc.list_value_length(table.column("a"))).as_py() + table.num_rows * (1 + query.tail)
    work = matches.work
    return Found(count, length, work.steps, work.made, work.merged, work.peak)


class Bench:
    """Measures each thing once, on streams of one kind.

    Parameters
    ----------
    stretch : int
        Events of a stream per symbol, in windows; the paper takes 200.
    rise : float
        Probability that a price rises.
    rounds : int
        Repetitions of each measurement; medians count.
    """

    def __init__(self, stretch: int, rise: float, rounds: int) -> None:
        self.stretch = stretch
        self.rise = rise
        self.rounds = rounds
        self.stream = functools.cache(self._stream)
        self.engine = functools.cache(self._engine)
        self.backtracking = functools.cache(self._backtracking)

    def _stream(self, window: int) -> pa.Table:
        return stock_stream(SYMBOLS * window * self.stretch, self.rise, seed=window)

    def _engine(
        self, query: StockQuery, *, listing: bool = True, merges: tuple[str, ...] = (BASIC, MERGING)
    ) -> dict[str, Engine]:
        """The engine, per way of merging; all must find the same."""
        events = self.stream(query.window)
        works = [functools.partial(run_engine, query, merge, listing) for merge in merges]
        timed = [Engine(seconds, len(events) / seconds, found) for seconds, found in self._measure(works, events)]
        answers = {(one.found.matches, one.found.length) for one in timed}
        assert len(answers) == 1, f"merging changes the answer of {query.name}: {answers}"
        return dict(zip(merges, timed, strict=True))

    def _backtracking(self, query: StockQuery) -> Baseline:
        """The baseline; it must find what the engine finds."""
        events = self.stream(query.window)
        ((seconds, found),) = self._measure([lambda part: backtrack(part, query)], events)
        ours = self.engine(query)[BASIC].found
        assert found.matches == ours.matches, f"the yardstick gives another answer to {query.name}: {found}, {ours}"
        return Baseline(seconds, len(events) / seconds, found)

    def _measure(self, works: Sequence[Callable[[pa.Table], Result]], events: pa.Table) -> list[tuple[float, Result]]:
        """Seconds and result of each work, repeated in turns."""
        found = [work(events.slice(0, WARM_UP)) for work in works]
        spent: list[list[float]] = [[] for _ in works]
        for _ in range(self.rounds):
            for k, work in enumerate(works):
                start = time.process_time()
                found[k] = work(events)
                spent[k].append(time.process_time() - start)
            if sum(map(sum, spent)) > ENOUGH:
                break
        return [(statistics.median(seconds), result) for seconds, result in zip(spent, found, strict=True)]
