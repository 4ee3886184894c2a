"""What ``afa2010`` compares with: a plan of joins, a plan of two machines, and the algorithm of the paper itself.

Source: Chandramouli, Goldstein and Maier, PVLDB 3(1) 2010: IPM of section 6.2, figure 5, Algorithm 1 with *Cleanse* of
section 5.3. The plan of joins is ours, in pandas: whole batches of events, where theirs was fed event by event.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from acep_approx import compile_query
from experiments.afa2010.streams import chained, v_patterns
from tests.paper_machine import Arc, Input, Machine, Operator, Partial

Spans = Counter[tuple[int, int]]
"""First and last time of matches: in what all ways must agree."""


def spans(tables: Sequence[pa.Table]) -> Spans:
    """Those of the results of a matcher; of a changelog those that are left."""
    left: Spans = Counter()
    for table in tables:
        if not table.num_rows:
            continue
        ops = table.column("op").to_pylist() if "op" in table.column_names else ["+I"] * table.num_rows
        rows = zip(table.column("start").to_pylist(), table.column("end").to_pylist(), ops, strict=True)
        for start, end, op in rows:
            left[start, end] += 1 if op == "+I" else -1
    return +left


# --- IPM: partial matches are joined with events, again and again -----------------------------------------------------


class Joins:
    """Q1 as a recursive query of two joins: events with arcs, and these with partial matches, which are fed back.

    Parameters
    ----------
    k, drop, window
        As for ``q1``.

    Notes
    -----
    A partial match waits for the event behind it, by its number. In each turn all partial matches of a batch take one
    event; those whose next event has not come wait for the next batch.
    """

    def __init__(self, k: int, drop: float, window: int) -> None:
        self.k, self.drop, self.window = k, drop, window
        self.waiting = pd.DataFrame({name: pd.Series(dtype=np.int64) for name in ("start", "next", *REGISTERS)})

    def push(self, events: pd.DataFrame) -> pd.DataFrame:
        """Take in the next events; returns the matches they complete, with ``start`` and ``end``."""
        change = events["change"].to_numpy()
        fences = (change < -self.drop, change < 0, change < 0, change > 0, change > 0, change > 0)
        moves = pd.concat(  # the first join: events and arcs
            [
                pd.DataFrame({"next": events["ts"].to_numpy()[fence], "arc": arc, "state": SOURCES[arc]})
                for arc, fence in enumerate(fences)
            ]
        )
        last = int(events["ts"].iloc[-1])
        begun = pd.DataFrame(dict.fromkeys(("start", "next"), events["ts"]) | dict.fromkeys(REGISTERS, 0))
        partial = pd.concat([self.waiting, begun], ignore_index=True)
        found, waiting = [], []
        while len(partial):
            waiting.append(partial[partial["next"] > last])
            taken = partial.merge(moves, on=["next", "state"])  # the second one
            partial, matches = self._moved(taken)
            found.append(matches)
        self.waiting = pd.concat(waiting, ignore_index=True)
        return pd.concat(found, ignore_index=True)

    def _moved(self, taken: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Fences and transfers that look at registers; partial matches, and whole ones."""
        counts = taken["patterns"] + 1
        is_last = (counts == self.k) & (taken["level"] == 1)
        fits = np.select([taken["arc"] == CLOSES, taken["arc"] == ENDS], [counts < self.k, is_last], True)
        taken = taken[fits & (taken["next"] - taken["start"] < self.window)]
        arc = taken["arc"].to_numpy()
        moved = pd.DataFrame(
            {
                "start": taken["start"],
                "next": taken["next"] + 1,
                "state": TARGETS[arc],
                "level": taken["level"] + np.array([0, 1, 1, -1, -1, -1])[arc],
                "patterns": taken["patterns"] + np.array([0, 0, 0, 0, 1, 1])[arc],
            }
        )
        is_whole = moved["state"] == 3
        whole = pd.DataFrame({"start": moved["start"][is_whole], "end": moved["next"][is_whole] - 1})
        return moved[~is_whole], whole


REGISTERS = ("state", "level", "patterns")
SOURCES, TARGETS = (0, 1, 1, 2, 2, 2), np.array([1, 1, 2, 2, 1, 3])
"""Of the arcs of figure 3."""
CLOSES, ENDS = 4, 5


def by_joins(k: int, drop: float, window: int, events: pa.Table, size: int) -> Spans:
    """Run IPM over a stream, so many events at a time."""
    joins = Joins(k, drop, window)
    frame = events.select(["ts", "change"]).to_pandas()
    found = pd.concat([joins.push(frame.iloc[first : first + size]) for first in range(0, len(frame), size)])
    return Counter(zip(found["start"].tolist(), found["end"].tolist(), strict=True))


# --- figure 5: one machine feeds another ------------------------------------------------------------------------------


def by_two_machines(k: int, drop: float, window: int, sizes: int) -> Callable[[pa.Table], Iterator[pa.Table]]:
    """Ready to run Q1 as the plan of figure 5; returns what takes a stream and gives the results, push by push."""
    first, second = compile_query(v_patterns(window)), compile_query(chained(k, window))

    def run(events: pa.Table) -> Iterator[pa.Table]:
        shapes, whole = first.matcher(), second.matcher()
        for at in range(0, events.num_rows, sizes):
            part = events.slice(at, sizes)
            found = shapes.push(part)
            ts, change = part.column("ts").to_numpy(), part.column("change").to_numpy()
            drops = ts[change < -drop]
            since, until, rise, low = (found.column(name).to_numpy() for name in ("start", "end", "level", "low"))
            none = np.zeros(len(drops), np.int64)
            tick, begins = np.concatenate((drops, until)), np.concatenate((none, since))
            order = np.lexsort((begins, tick))
            kind = np.concatenate((none, np.ones(len(until), np.int64)))[order]
            names = pa.array(["Drop", "V"])
            columns = {
                "ts": tick[order],
                "type": pa.DictionaryArray.from_arrays(pa.array(kind, pa.int32()), names),
                "since": begins[order],
                "rise": np.concatenate((none, rise))[order],
                "low": np.concatenate((none, low))[order],
            }
            yield whole.push(pa.table(columns))

    return run


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


def paper_q1(k: int, drop: float, window: int, *, loops: bool) -> Machine:
    """Figure 3 for Algorithm 1; ``loops``: ignorable events are taken by arcs from a state to itself."""
    down: Any = lambda change, _: change < 0  # noqa: E731
    up: Any = lambda change, _: change > 0  # noqa: E731
    passes: Any = lambda change, _: change == 0  # noqa: E731
    arcs = [
        Arc("q0", "q1", lambda change, _: change < -drop, lambda _, r: r),
        Arc("q1", "q1", down, lambda _, r: (r[0] + 1, r[1])),
        Arc("q1", "q2", down, lambda _, r: (r[0] + 1, r[1])),
        Arc("q2", "q2", up, lambda _, r: (r[0] - 1, r[1])),
        Arc("q2", "q1", lambda c, r: c > 0 and r[1] + 1 < k, lambda _, r: (r[0] - 1, r[1] + 1)),
        Arc("q2", "done", lambda c, r: c > 0 and r[1] + 1 == k and r[0] == 1, lambda _, r: (r[0] - 1, r[1] + 1)),
    ]
    if loops:
        arcs += [Arc(state, state, passes, lambda _, r: r) for state in ("q1", "q2")]
    return Machine(tuple(arcs), "q0", frozenset({"done"}), (0, 0), window - 1)


def paper_q2(drop: float, window: int) -> Machine:
    """Q2 for Algorithm 1: an event is (change, price)."""
    down: Any = lambda e, _: e[0] < 0  # noqa: E731
    rising: Any = lambda e, r: e[0] > 0 and e[1] < r[0]  # noqa: E731
    back: Any = lambda e, r: e[0] > 0 and e[1] >= r[0]  # noqa: E731
    same: Any = lambda _, r: r  # noqa: E731
    more: Any = lambda _, r: (r[0], r[1] + 1)  # noqa: E731
    arcs = (
        Arc("q0", "q1", lambda e, _: e[0] < -drop, lambda e, _: (e[1] - e[0], 0)),
        Arc("q1", "q1", down, same),
        Arc("q1", "q2", rising, same),
        Arc("q1", "done", back, more),
        Arc("q2", "q2", rising, same),
        Arc("q2", "q1", down, more),
        Arc("q2", "done", back, more),
    )
    return Machine(arcs, "q0", frozenset({"done"}), (0.0, 0), window - 1)


class Counted(Operator):
    """Algorithm 1 with appendix C, behind *Cleanse*; it counts what it puts out.

    Parameters
    ----------
    machine : Machine
    ahead : float
        Sigma: events up to so far beyond the last punctuation go through, in order, others wait.

    Attributes
    ----------
    rows : int
        Put out so far, retractions too.
    most : int
        Partial matches held at most.
    """

    def __init__(self, machine: Machine, ahead: float = np.inf) -> None:
        super().__init__(machine)
        self.rows = self.held = self.most = 0
        self.left: Spans = Counter()
        self.ahead, self.reached = ahead, -np.inf
        self.waits: list[tuple[int, Any]] = []

    def come(self, ts: int, value: Any) -> None:
        """An event arrives."""
        if np.isinf(self.ahead) or ts < self.reached + self.ahead:
            self._take(ts, value)
        else:
            heapq.heappush(self.waits, (ts, value))

    def pass_time(self, tick: float) -> None:
        """A punctuation."""
        self.reached = tick
        while self.waits and self.waits[0][0] < tick + self.ahead:
            self._take(*heapq.heappop(self.waits))
        if np.isfinite(tick):
            before = sum(len(entry.partials) for entry in self.entries)
            self.punctuate(int(tick))
            self.held -= before - sum(len(entry.partials) for entry in self.entries)

    def _take(self, ts: int, value: Any) -> None:
        made, removed = self.made, self.removed
        self.insert(Input(ts, ts, value))
        self.held += self.made - made - (self.removed - removed)
        self.most = max(self.most, self.held)

    def put_out(self, partials: Sequence[Partial], end: int, sign: int) -> None:
        """Count."""
        for partial in partials:
            if partial.state in self.machine.finals:
                self.rows += 1
                self.left[partial.start[0], end] += sign


def run_paper(
    machine: Machine, values: Sequence[Any], arrival: Sequence[int], marks: Sequence[tuple[int, int]], ahead: float
) -> Counted:
    """Run Algorithm 1 over events that arrive in this order, with punctuations after so many of them."""
    operator = Counted(machine, ahead)
    ticks = dict(marks)
    for number, ts in enumerate(arrival, 1):
        operator.come(ts, values[ts])
        if number in ticks:
            operator.pass_time(ticks[number])
    operator.pass_time(np.inf)
    operator.left = +operator.left
    return operator
