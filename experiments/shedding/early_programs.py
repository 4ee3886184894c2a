"""Early results inside a load budget: 5% of the events come late, and results come at once.

Queries (``shedding.heavy``, ``shedding.workloads``) learn from the events before the middle of a stream. Of those
behind it, 5% come up to 2,000 events late, and are pushed 500 at a time to
``query.matcher(budget=, history=, watermark=, emit="early")``. After every push the net of all that was put out is held
against that of the same matcher without a budget, and the work against what was granted. Printed are the share of the
match points of that net which the budget finds, beside the same budget over the same events in order, and how many of
its results came before they were final.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import HistoryGraph, Matcher, Query, compile_query
from acep_approx.shedding.promising import MERGES
from experiments.shedding.heavy import HEAVY, load_heavy
from experiments.shedding.workloads import Workload, load

NAMES = ("flights-turn", "soccer-press", "ticks-lead", "tweets-spread", "DS1-near", "DS2-sum")
"""Workloads with more than a hundred match points among the first events of the half that is measured."""
BUDGETS = (5, 10, 20)
SHARE, MOST = 0.05, 2_000
"""Of the events that come late, and by how many events."""
PUSHED = 500
EVENTS = 20_000


@dataclass(frozen=True)
class Early:
    """What came of one run.

    Attributes
    ----------
    recall : float
        Of the match points that are left at the end.
    in_order : float
        The same where no event comes late.
    early : float
        Share of the match points that are left which were put out before they were final.
    taken_back : float
        Rows taken back, as a share of those put out.
    spent : float
        Run-steps, as a share of what was allowed.
    of_exact : float
        Run-steps, as a share of the budget's share of the exact run over the events in order.
    time : float
        CPU time, as a share of that of the exact matcher.
    """

    workload: str
    percent: int
    points: int
    recall: float
    in_order: float
    early: float
    taken_back: float
    spent: float
    of_exact: float
    time: float


class Net:
    """What is left of all that was put out: match points by the number of their event."""

    def __init__(self) -> None:
        self.left: dict[int, bool] = {}
        self.put_out = self.gone = 0

    def take(self, table: pa.Table, final: int) -> None:
        """Take in what a push gave; what ends before ``final`` is final."""
        ops = table.column("op").to_pylist()
        ends = table.column("end").cast(pa.int64()).to_pylist()
        for op, event, end in zip(ops, table.column("eid").to_pylist(), ends, strict=True):
            if op == "-D":
                assert event in self.left, "nothing is taken back that was not put out"
                del self.left[event]
                self.gone += 1
            else:
                self.left[event] = end >= final
                self.put_out += 1


@dataclass(frozen=True)
class Late:
    """Events as they come, in parts; ``watermark``: how long one has to wait for all of them."""

    parts: Sequence[pa.Table]
    watermark: int

    @classmethod
    def of(cls, events: pa.Table, seed: int = 7) -> Late:
        """Let some events of a table, which is in order, come late."""
        dice = np.random.default_rng(seed)
        number = np.arange(len(events))
        delay = np.where(dice.random(len(events)) < SHARE, dice.integers(1, MOST + 1, len(events)), 0)
        arrival = np.argsort(number + delay, kind="stable")
        ts = events.column("ts").to_numpy()[arrival]
        arriving = events.take(pa.array(arrival))
        parts = [arriving.slice(first, PUSHED) for first in range(0, len(events), PUSHED)]
        return cls(parts, int((np.maximum.accumulate(ts) - ts).max()) + 1)

    def how_long(self, unit: str | None) -> str | int:
        """The watermark in words, where times are real."""
        return self.watermark if unit is None else f"{self.watermark // 1_000_000 + 1} s"


def run(matcher: Any, late: Late) -> Iterator[Net]:
    """Push all parts, and end the stream; the net after each."""
    net, newest = Net(), 0
    for part in late.parts:
        newest = max(newest, int(part.column("ts").to_numpy().max()))
        net.take(matcher.push(part), newest - late.watermark)
        yield net
    net.take(matcher.finish(), newest + 1)
    yield net


def measure(workload: Workload, percents: Sequence[int] = BUDGETS, events: int = EVENTS) -> Iterator[Early]:
    """Run one query inside each budget."""
    query: Query = compile_query(workload.query, engine="runs")
    unit: dict[str, Any] = {"unit": workload.unit} if workload.unit else {}
    now = _numbered(workload.test.slice(0, events))
    known = HistoryGraph(query).fit(workload.train.slice(max(len(workload.train) - events, 0)), **unit)
    late = Late.of(now)
    asked: dict[str, Any] = {"output": "points", "emit": "early", "id": "eid", **unit}
    asked["watermark"] = late.how_long(workload.unit)
    begun = time.process_time()
    nets = [set(net.left) for net in run(query.matcher(**asked), late)]
    exact_seconds = time.process_time() - begun
    exact = Matcher(query.plan, output="points", **unit)
    exact.push(now)
    exact.finish()
    exact_steps = exact.progress.steps
    for percent in percents:
        matcher = query.matcher(budget=f"{percent}%", history=known, **asked)
        begun = time.process_time()
        for net, wanted in zip(run(matcher, late), nets, strict=True):
            record = matcher.record()
            assert set(net.left) <= wanted, "a result that the exact matcher does not have now"
            assert record.work <= record.allowed, "the bound was passed"
        seconds = time.process_time() - begun
        yield Early(
            workload.name,
            percent,
            points=len(nets[-1]),
            recall=len(net.left) / max(len(nets[-1]), 1),
            in_order=_in_order(query, now, known, percent, unit) / max(len(nets[-1]), 1),
            early=sum(net.left.values()) / max(len(net.left), 1),
            taken_back=net.gone / max(net.put_out, 1),
            spent=record.work / max(record.allowed, 1),
            of_exact=record.work / max(percent / 100 * exact_steps, 1),
            time=seconds / max(exact_seconds, 1e-9),
        )


def _numbered(events: pa.Table) -> pa.Table:
    """Events with a number each, which names them."""
    if "eid" in events.column_names:
        return events
    return events.append_column("eid", pa.array(np.arange(len(events))))


def _in_order(query: Query, now: pa.Table, known: HistoryGraph, percent: int, unit: dict[str, Any]) -> int:
    """Match points that the same budget finds where no event is late."""
    some = query.match_within(now, f"{percent}%", history=known, merge=MERGES["points"], **unit)
    return len(set(some.points().column("row").to_pylist()))


def workloads(names: Sequence[str] = NAMES) -> Iterator[Workload]:
    """The workloads by name, each loaded when it is its turn."""
    return (load_heavy(name) if name in HEAVY else load(name) for name in names)
