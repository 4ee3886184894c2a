"""Sums of what was seen, which fade: all that is kept of the records, in plain arrays that add up.

Source: sums that fade exponentially are common in streams (Cohen and Strauss, J. Algorithms 59, 2006); which sums is
ours. Nothing is ever written down for a run because it was shed: it merely has no further rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from history.arrays import Floats, Ints
from history.checking import require
from rl.chart import Chart, Pairs
from rl.records import Events, Tests

NEVER = int(np.iinfo(np.int64).min)
"""The tick of sums to which nothing was added."""

LEAST = 1e-100
"""Sums below it are 0: what is left of numbers fades to ones that cannot be divided by."""

_BY_PAIR = ("seen", "tested", "passed", "ticks", "rows", "hits")
_SUMS = ("letters", "total", *_BY_PAIR, "children", "by_key", "born")


class Statistics:
    """Sums over events and tests, as of one tick; each halves within a half-life.

    Parameters
    ----------
    chart : Chart
        Places and steps.
    half_life : float
        In ticks; above 0, or infinite. It may be set while the stream runs, and holds for what fades from then on.

    Attributes
    ----------
    tick : int
        That they are as of; ``NEVER`` before the first record.
    letters : float64 array, shape (letters,)
        Events of each letter.
    total : float64 array, shape (1,)
        Events in all.
    seen, tested, passed : float64 array, shape (pairs,)
        Weights of tests, by pair of step and vertex (``Pairs``).
    ticks : float64 array, shape (pairs,)
        Sum of ``seen / rate``: divided by the share of the step's letter it is the time that runs spent there.
    rows : float64 array, shape (pairs,)
        Rows with ``seen`` above 0, without their weights: how many were really looked at.
    hits : float64 array, shape (pairs,)
        Rows with ``passed`` above 0: how many passed tests were really looked at.
    children : float64 array, shape (families,)
        Weights of passed tests by step, group of the parent and group of the child (``Pairs.of_child``).
    by_key : float64 array, shape (buckets, letters + 1)
        Events of each letter by bucket of keys, and last events in all.
    born : float64 array, shape (groups, buckets)
        Passed tests that were looked at, by group of the child and bucket of its key.

    Raises
    ------
    ValueError
        The half-life is not above 0.
    """

    def __init__(self, chart: Chart, half_life: float) -> None:
        if not half_life > 0:
            raise ValueError(f"half-life of {half_life} ticks: it must be above 0")
        self.pairs = Pairs(chart)
        self.half_life = float(half_life)
        self.tick = NEVER
        self.letters, self.total = np.zeros(len(chart.letters)), np.zeros(1)
        self.seen, self.tested, self.passed, self.ticks, self.rows, self.hits = np.zeros((6, len(self.pairs)))
        self.children = np.zeros(int(self.pairs.families.sum()))
        self.by_key = np.zeros((chart.buckets, len(chart.letters) + 1))
        self.born = np.zeros((chart.scheme.groups, chart.buckets))

    def add(self, events: Events, tests: Tests) -> None:
        """Add what was seen.

        Parameters
        ----------
        events : Events
            Their tick is that of the tests, too. What came before ``tick`` has faded, so the order does not matter.
        tests : Tests
            Rows whose step leads from the place of their vertex.

        Complexity: O(rows + pairs + families).
        """
        self.forget(events.tick)
        fresh = self._left(self.tick - events.tick)
        self.letters += fresh * events.counts
        self.total += fresh * events.total
        if events.by_key is not None:
            self.by_key += fresh * events.by_key
        if not len(tests.step):
            return
        pair = self.pairs.of(tests.step, tests.vertex)
        rows = (tests.seen > 0).astype(np.float64)
        hits = (tests.passed > 0).astype(np.float64)
        columns = (tests.seen, tests.tested, tests.passed, tests.seen / tests.rate, rows, hits)
        for name, column in zip(_BY_PAIR, columns, strict=True):
            self._sum(name, pair, fresh * column)
        born = np.flatnonzero((tests.child >= 0) & (tests.passed > 0))
        group = self.pairs.chart.group_of_vertex[tests.vertex[born]]
        family = self.pairs.of_child(tests.step[born], group, tests.child[born])
        self._sum("children", family, fresh * tests.passed[born])
        if tests.key is not None:
            born = born[tests.key[born] >= 0]
            np.add.at(self.born, (tests.child[born], tests.key[born]), fresh)

    def forget(self, to_tick: int) -> None:
        """Let all sums fade to a tick; nothing happens if it is not later. O(pairs + families)."""
        if to_tick <= self.tick:
            return
        left = self._left(to_tick - self.tick)
        for name in _SUMS:
            getattr(self, name)[:] *= left
        self.tick = int(to_tick)
        self._drop()

    def merge(self, other: Statistics) -> Statistics:
        """The sums of both, as of the later tick: associative and commutative up to rounding.

        Of different half-lives the longer one holds from now on. Then it is still commutative; associative it is only
        if all are as of the same tick.
        """
        merged = Statistics(self.pairs.chart, max(self.half_life, other.half_life))
        merged.tick = max(self.tick, other.tick)
        for part in (self, other):
            left = merged._left(merged.tick - part.tick)
            for name in _SUMS:
                getattr(merged, name)[:] += left * getattr(part, name)
        merged._drop()
        return merged

    def discount(self, places: Iterable[int] | None, factor: float) -> None:
        """Multiply sums, so that what comes counts for more.

        Parameters
        ----------
        places : iterable of int, or None
            Those of the steps from these places; None: all, letters included.
        factor : float
            From 0 to 1.
        """
        chart = self.pairs.chart
        steps = np.ones(chart.steps, np.bool_) if places is None else np.isin(chart.source, list(places))
        if places is None:
            self.letters *= factor
            self.total *= factor
            self.by_key *= factor
            self.born *= factor
        for name in _BY_PAIR:
            getattr(self, name)[np.repeat(steps, self.pairs.sizes)] *= factor
        self.children[np.repeat(steps, self.pairs.families)] *= factor
        self._drop()

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """As arrays by name, half-life and tick included."""
        arrays: dict[str, npt.NDArray[np.generic]] = {name: getattr(self, name).copy() for name in _SUMS}
        return {**arrays, "half_life": np.array([self.half_life]), "tick": np.array([self.tick], np.int64)}

    @classmethod
    def from_arrays(cls, chart: Chart, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Statistics:
        """What ``to_arrays`` wrote.

        Raises
        ------
        ValueError
            The arrays are those of another chart.
        """
        made = cls(chart, float(arrays["half_life"].item()))
        made.tick = int(arrays["tick"].item())
        for name in _SUMS:
            if arrays[name].shape != getattr(made, name).shape:
                raise ValueError(f"{name}: shape {arrays[name].shape} instead of {getattr(made, name).shape}")
            setattr(made, name, arrays[name].astype(np.float64))
            require((getattr(made, name) >= 0).all(), f"{name} is below 0, or no number")
        return made

    def _left(self, ticks: int) -> float:
        """What is left of 1 after some ticks; ticks are Python integers, so no difference is too large."""
        left = float(2.0 ** (-ticks / self.half_life))
        return left if left >= LEAST else 0.0

    def _drop(self) -> None:
        """Forget what has faded to next to nothing, and what is divided by it."""
        for total, *parts in (("seen", "ticks", "rows"), ("passed", "hits"), ("tested",)):
            sums = getattr(self, total)
            faint = sums < LEAST
            if sums[faint].any():
                for name in (total, *parts):
                    getattr(self, name)[faint] = 0.0
        for sums in (self.letters, self.total, self.children, self.by_key, self.born):
            sums[sums < LEAST] = 0.0

    def _sum(self, name: str, at: Ints, weights: Floats) -> None:
        sums = getattr(self, name)
        sums += np.bincount(at, weights=weights, minlength=len(sums))
