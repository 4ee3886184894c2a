"""What runs inside a budget are promised to find: measured on the end of the past, with an interval, as plain data.

A promise is about a stretch of the stream like the part that it was measured on, and as long. So its interval has room
for the chance of that part and for that of the stretch to come. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.events.keys import KeyCodes
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, check, finite, number_in

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Budgets that promises are made for, as shares of the exact run's work."""
OUTPUTS = ("matches", "points")
"""What runs put out that promises are made for: where matches are listed more runs have to be kept."""
LEVEL = 0.95
"""How often the interval of a promise holds."""
STRETCHES = 32
"""Stretches of time that the part is cut into, to see by how much the recall of one differs from that of another."""
UNSEEN = 0.25
"""Groups of match points that are taken to have been lost as a whole, beside what was seen."""


@dataclass(frozen=True)
class Part:
    """The end of a past, and how it is run.

    Attributes
    ----------
    plan : Plan
    batches : sequence of EventBatch
        Its events, that nothing was learned from; numbered from 0, as a run over them alone numbers them: which events
        are looked at for what the exact run takes (``engines.runs.first_pools``) depends on their numbers.
    bind : callable
        Binds a matcher to their columns.
    trained : int
        Events before it that were learned from.
    """

    plan: Plan
    batches: Sequence[EventBatch]
    bind: Callable[[Execution], None]
    trained: int

    @property
    def events(self) -> int:
        """How many events it has."""
        return sum(map(len, self.batches))


@dataclass(frozen=True)
class Promise:
    """What a run inside a budget is promised to find.

    Attributes
    ----------
    share : float
        The budget, as a share of the exact run's work.
    output : {"matches", "points"}
        What the run puts out.
    steps : float
        Run-steps per event that it took.
    recall : float
        Share of the match points that it found.
    low, high : float
        Where the recall of a stretch of the same length lies, in 95 of 100 cases.
    """

    share: float
    output: str
    steps: float
    recall: float
    low: float
    high: float


@dataclass(frozen=True)
class Promises:
    """Promises of one history, and what they were measured on.

    Attributes
    ----------
    trained, measured : int
        Events that were learned from, and the events behind them that recall was measured on.
    points : int
        Match points in the latter.
    exact : tuple of float
        Run-steps per event of the exact run over them, for each of ``OUTPUTS``.
    rows : tuple of Promise
        By output, then by rising budget.
    """

    trained: int
    measured: int
    points: int
    exact: tuple[float, ...]
    rows: tuple[Promise, ...]

    def of(self, output: str) -> tuple[Promise, ...]:
        """Those for runs of one output.

        Examples
        --------
        >>> rows = (Promise(0.1, "matches", 2.9, 0.8, 0.7, 0.9), Promise(0.1, "points", 2.8, 0.9, 0.8, 0.95))
        >>> [promise.recall for promise in Promises(600, 400, 100, (30.0, 20.0), rows).of("points")]
        [0.9]
        """
        return tuple(promise for promise in self.rows if promise.output == output)

    @property
    def differ(self) -> bool:
        """Whether it makes a difference if matches are listed: whether a run can do all that another can."""
        return len(set(self.exact)) > 1

    def as_json(self) -> dict[str, Any]:
        """As it is kept beside a history."""
        return {**vars(self), "exact": list(self.exact), "rows": [list(vars(row).values()) for row in self.rows]}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """What ``as_json`` gave.

        Raises
        ------
        ValueError, LookupError, TypeError
            It is not that.
        """
        names = ("trained", "measured", "points")
        trained, measured, points = (number_in(name, kept[name], 0, COUNT) for name in names)
        rows = tuple(Promise(*row) for row in kept["rows"])
        for row in rows:
            check("output", good=row.output in OUTPUTS)
            finite("promise", row.share, row.steps, row.recall, row.low, row.high)
        exact = tuple(kept["exact"])
        finite("exact", *exact)
        check("exact", good=len(exact) == len(OUTPUTS))
        return cls(trained, measured, points, exact, rows)


@dataclass(frozen=True)
class Truth:
    """The match points of an exact run over a part: what others find a share of.

    Attributes
    ----------
    rows : int64 array, shape (points,)
        Their rows, each once and in order.
    cells : int64 array, shape (points,)
        The same number for those of one key within the time of a window: they share what befalls them.
    stretches : int64 array, shape (points,)
        The stretch of time that each lies in.
    """

    rows: Ints
    cells: Ints
    stretches: Ints

    @classmethod
    def of(cls, tables: Sequence[pa.Table], window: int, events: int) -> Self:
        """Those of an output of points or counts, over so many events; the window in ticks."""
        points = pa.concat_tables(tables)
        rows, first = np.unique(points["row"].to_numpy(), return_index=True)
        points = points.take(pa.array(first))
        columns = [points[name] for name in points.column_names[: points.column_names.index("errors")]]
        keys = KeyCodes().encode([column.combine_chunks() for column in columns]) if columns else np.zeros_like(rows)
        windows = points["end"].cast(pa.int64()).to_numpy() // (window + 1)
        cells = np.unique(np.stack([keys, windows]), axis=1, return_inverse=True)[1].reshape(-1)
        return cls(rows, cells, rows * STRETCHES // max(events, 1))

    def __len__(self) -> int:
        return len(self.rows)

    def found(self, rows: Ints) -> Bools:
        """Which of them are among those of other rows."""
        return np.isin(self.rows, rows)


def intervals(found: Bools, of: Truth, weight: Floats | None = None) -> list[tuple[float, float]]:
    """Where the recall of as many events to come lies inside each budget, in 95 of 100 cases.

    Parameters
    ----------
    found : bool array, shape (budgets, points)
        Whether a run inside each budget found each match point of the part.
    of : Truth
        These match points.
    weight : float64 array, shape (points,), optional
        What each counts for. Default: all for the same.

    Returns
    -------
    list of (float, float)
        (0, 1) where there is at most one match point. Complexity: linear.

    Notes
    -----
    The exact interval (Clopper and Pearson), out to whole points, of as many independent points as these are worth:
    those of one cell, and of one stretch of time, share what befalls them. How much, is a trait of the part: it is
    taken from all budgets together, as none tells where all is found. Where there are few cells, stretches are taken in
    their place. The stretch to come has a chance of its own, of the same size: so half of the points are left. All that
    is ours; ``tests/test_promises.py`` holds it against streams that go on.

    Examples
    --------
    >>> found = np.stack([np.arange(400) % 4 > 0, np.ones(400, np.bool_)])
    >>> of = Truth(np.arange(400), np.arange(400), np.arange(400) // 13)
    >>> [(round(low, 2), round(high, 2)) for low, high in intervals(found, of)]
    [(0.68, 0.81), (0.98, 1.0)]
    """
    from scipy.special import betaincinv, ndtri, stdtrit  # type: ignore[import-untyped]

    points = len(of)
    if points < 2 or not len(found):
        return [(0.0, 1.0)] * len(found)
    groups = of.cells if len(np.unique(of.cells)) >= STRETCHES else of.stretches
    weight = np.ones(points) if weight is None else weight / weight.mean()
    effect = max(_effect(found, groups, UNSEEN, weight), _effect(found, of.stretches, 0.0, weight))
    worth = points / min(max(effect, 1.0), points / 2) / float((weight**2).mean())
    side, number = 0.5 + LEVEL / 2, max(len(np.unique(groups)) - 1, 1)
    worth *= float(ndtri(side) / stdtrit(number, side)) ** 2  # what points are worth is known from few groups only
    worth /= 2
    ends = []
    for seen in (worth * (found * weight).mean(1)).tolist():
        low = float(betaincinv(seen, worth - seen + 1, 1 - side)) if seen > 0 else 0.0
        high = float(betaincinv(seen + 1, worth - seen, side)) if seen < worth else 1.0
        ends.append((floor(low * points) / points, ceil(high * points) / points))
    return ends


def _effect(found: Bools, groups: Ints, unseen: float, weight: Floats) -> float:
    """The design effect: how many points count as one. ``unseen`` groups of the usual size were lost by one budget."""
    _, place = np.unique(groups, return_inverse=True)
    sizes = np.bincount(place)
    usual = float((sizes**2).sum()) / len(groups)  # size of the group of a point, on average
    apart = (found - (found * weight).mean(1, keepdims=True)) * weight
    together = sum(float((np.bincount(place, of_one) ** 2).sum()) for of_one in apart) / len(found)
    return (together + unseen * usual**2) / max(float((apart**2).sum()) / len(found) + unseen * usual, 1e-9)
