"""What runs inside a budget are promised to find: measured on the end of the past, with an interval, as plain data.

A promise is about a stretch of the stream as long as the part that it was measured on. So its interval has room for the
chance of that part and for that of the stretch to come, which are taken to be alike. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import asin, pi, sin, sqrt
from typing import Any, Self

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.budget.audit import AuditSample
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
STRETCHES = 16
"""Stretches of time that the part is cut into, to see by how much the recall of one differs from that of another."""


@dataclass(frozen=True)
class Part:
    """The end of a past, and how it is run.

    Attributes
    ----------
    plan : Plan
    batches : sequence of EventBatch
        Its events, that nothing was learned from.
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

    @property
    def first_row(self) -> int:
        """The row of its first event."""
        return self.batches[0].first_row if self.batches else 0


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
        counts = [number_in(name, kept[name], 0, COUNT) for name in ("trained", "measured", "points")]
        rows = tuple(Promise(*row) for row in kept["rows"])
        for row in rows:
            check("output", good=row.output in OUTPUTS)
            finite("promise", row.share, row.steps, row.recall, row.low, row.high)
        exact = tuple(kept["exact"])
        finite("exact", *exact)
        check("exact", good=len(exact) == len(OUTPUTS))
        return cls(*counts, exact, rows)


def interval(is_found: Bools, cells: Ints, stretches: Ints) -> tuple[float, float]:
    """Where the recall of as many events to come lies, in 95 of 100 cases.

    Parameters
    ----------
    is_found : bool array, shape (points,)
        Whether each match point of the part was found.
    cells : int64 array, shape (points,)
        The same number for match points of one key within the time of a window.
    stretches : int64 array, shape (points,)
        The stretch of time that each lies in.

    Returns
    -------
    (float, float)
        (0, 1) where the match points are too few to tell.

    Notes
    -----
    That of the part is the interval of ``AuditSample``, for match points of one cell share what befalls them. Both ends
    are moved away from the middle, on the scale of the arc sine, where the spread of a share is the same everywhere: by
    the root of two, since the stretch to come has a chance of its own; and of as much as the variance between
    stretches is above that between cells.

    Examples
    --------
    >>> found = np.arange(400) % 4 > 0
    >>> low, high = interval(found, np.arange(400), np.arange(400) // 25)
    >>> 0.65 < low < 0.70 < 0.80 < high < 0.85
    True
    """
    part = AuditSample.of(cells, is_found).estimate(LEVEL)
    if part.low is None or part.high is None:
        return 0.0, 1.0
    by_cells, by_stretches = (_variance(is_found, groups) for groups in (cells, stretches))
    further = sqrt(2.0 * max(by_stretches / by_cells, 1.0)) if by_cells else sqrt(2.0)
    middle, low, high = (asin(sqrt(share)) for share in (float(is_found.mean()), part.low, part.high))
    return sin(max(middle - further * (middle - low), 0.0)) ** 2, sin(min(middle + further * (high - middle), pi / 2)) ** 2


def _variance(is_found: Bools, groups: Ints) -> float:
    """Of the recall, where the match points of each group share what befalls them."""
    differences = np.bincount(groups, is_found - is_found.mean())
    return float((differences**2).sum()) / len(is_found) ** 2
