"""How much recall a budget costs, estimated while it runs: from a small cohort in which nothing is shed.

The keys and the time are cut into cells; a fixed hash chooses a share of them. Every match point of a chosen cell is
found, because no run that could lead there is shed: runs that the policy *would have* shed go on, but marked. A match
point that only marked runs reach is one that the policy alone would have lost.

Source: ours; the papers do not estimate recall. The estimate is the ratio estimator of a cluster sample. Its interval
is that of Korn and Graubard (Survey Methodology 1998): the exact one, with the design effect and Student's quantile.
The design effect is ours: with half a cell more than was seen (after Agresti and Coull, American Statistician 1998).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.kernels.runs.pools import hash_word, seed_word
from acep_approx.ranges import COUNT, Range, check_arrays, number_in


@dataclass(frozen=True)
class AuditCells:
    """Which part of the stream is audited: cells of one key and one epoch, chosen by a hash.

    A match point belongs to the cell of its own key and tick, so each is audited with the same chance, however many
    runs lead to it. (With cells of *starts* a point with starts in two epochs would be audited nearly twice as often,
    and these points are the ones that are easily found.) It follows which runs must be protected: all that start in a
    chosen epoch, or at most one window before it.

    Parameters
    ----------
    share : float
        Chance that a cell is chosen, from 0 to 1.
    epoch : int
        Length of an epoch in ticks; at least ``window``. About ``share * (1 + window / epoch)`` of all runs are
        protected.
    window : int
        The window of the query, in ticks.
    seed : int
        Another seed chooses other cells.

    Raises
    ------
    ValueError
        The share lies outside of 0 to 1, or the epoch is shorter than the window.

    Examples
    --------
    >>> import numpy as np
    >>> audit = AuditCells(share=0.05, epoch=100, window=20)
    >>> ticks = np.arange(4_000)
    >>> audited = audit.cells(np.zeros(4_000, np.int64), ticks) >= 0
    >>> np.unique(ticks[audited] // 100)  # three of forty epochs
    array([ 8, 26, 30])
    >>> audit.protects(np.array([0, 0]), np.array([779, 780]))  # a window before the eighth
    array([False,  True])
    """

    share: float
    epoch: int
    window: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"the share of audited cells is {self.share}; it lies from 0 to 1")
        if self.epoch < max(1, self.window):
            raise ValueError(f"epochs of {self.epoch} ticks are shorter than the window of {self.window}")

    def cells(self, keys: Ints, ticks: Ints) -> Ints:
        """The audited cell that each match point lies in.

        Parameters
        ----------
        keys : numpy.ndarray of int64, shape (n,)
            Number of the key; 0 everywhere where there are no keys.
        ticks : numpy.ndarray of int64, shape (n,)
            When the last event of the match came.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
            Id of the cell, at least 0; -1 for points that are not audited. Complexity: linear.
        """
        epochs = ticks // self.epoch
        begun = mixed(mixed(np.int64(seed_word(self.seed)), keys), epochs)
        hashed = mixed(begun, keys)
        return np.where(hashed < int(self.share * 2**31), hashed << 31 | begun, -1)

    def protects(self, keys: Ints, starts: Ints) -> Bools:
        """Whether runs are protected: whether a match point of an audited cell can be theirs.

        Parameters
        ----------
        keys, starts : numpy.ndarray of int64, shape (n,)
            Number of the key, and tick of the first bound event, of each run. For a run that stands for several
            merged ones the latest start: what an earlier start can reach in time, the latest can too.

        Returns
        -------
        numpy.ndarray of bool, shape (n,)
            Complexity: linear.
        """
        is_now, is_ahead = self.now_or_ahead(keys, starts)
        return is_now | is_ahead

    def now_or_ahead(self, keys: Ints, ticks: Ints) -> tuple[Bools, Bools]:
        """Which events lie in audited cells, and which up to a window before one.

        Parameters
        ----------
        keys, ticks : numpy.ndarray of int64, shape (n,)
            Number of the key, and tick, of each event.

        Returns
        -------
        two numpy.ndarrays of bool, shape (n,)
            Complexity: linear in the events. Where there are fewer cells, only those are asked for their hash.
        """
        if not len(keys):
            return (none := np.zeros(0, np.bool_)), none
        first, last = int(ticks.min()) // self.epoch, (int(ticks.max()) + self.window) // self.epoch
        size = int(keys.max()) + 1
        if (last - first + 1) * size > len(keys):
            return self.cells(keys, ticks) >= 0, self.cells(keys, ticks + self.window) >= 0
        epochs = np.arange(first, last + 1)
        every = np.tile(np.arange(size), len(epochs))
        table, begin = self.cells(every, np.repeat(epochs * self.epoch, size)) >= 0, keys - first * size
        if not table.any():
            return (none := np.zeros(len(keys), np.bool_)), none
        now, ahead = (at // self.epoch * size + begin for at in (ticks, ticks + self.window))
        return table[now], table[ahead]


def mixed(hashed: Ints | np.int64, words: Ints) -> Ints:
    """One more word of a hash of 31 bits, elementwise: the kernel's own function, not compiled, takes arrays too."""
    of_arrays: Any = hash_word
    return np.asarray(of_arrays(hashed, words), np.int64)


LEAST_POINTS = 30
"""Audited match points below which there is no estimate, only an interval."""
MOST_LOST = 0.1
"""Share of the cells that may have been given up for want of budget where there is an estimate."""


NOTHING = 0.95
"""An interval that is so wide says nothing about recall."""


@dataclass(frozen=True)
class RecallEstimate:
    """Estimated share of all match points that the policy finds by itself.

    Attributes
    ----------
    recall : float or None
        The estimate; None where fewer than ``LEAST_POINTS`` match points were audited, or those of one cell only.
    low, high : float or None
        Ends of the interval; None where it tells nothing, as no match point was audited, or those of one cell only.
    points, cells : int
        Audited match points, and cells with at least one.
    outside : int
        Match points found outside of the audited cells.
    level : float
        Chance that such an interval holds the truth, nominally.
    reason : str
        Why there is no estimate, in words; empty where there is one.
    ends, missed : int
        Events that may end a match and were not reported, of which it was tried whether they do; those that do.
    by_past : bool
        Whether what the history leads to expect is part of it.

    Notes
    -----
    The answer holds the audited match points too, also those that the policy alone would have lost: its recall is
    ``(points + outside) / total``, a little above ``recall``.
    """

    recall: float | None
    low: float | None
    high: float | None
    points: int
    cells: int
    outside: int = 0
    level: float = 0.95
    reason: str = ""
    ends: int = 0
    missed: int = 0
    by_past: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether nothing was missed for certain."""
        return self.low == 1

    @property
    def tells(self) -> bool:
        """Whether there is an estimate, and an interval that says something about it."""
        is_known = self.recall is not None and self.low is not None and self.high is not None
        return is_known and (self.high or 0.0) - (self.low or 0.0) < NOTHING

    @property
    def total(self) -> int | None:
        """Estimated number of match points in the input, those found included; None where it cannot be told."""
        return self._total(self.recall)

    @property
    def totals(self) -> tuple[int | None, int | None]:
        """The same at the ends of the interval: at least, and at most so many; None where it cannot be told."""
        return self._total(self.high), self._total(self.low)

    def _total(self, recall: float | None) -> int | None:
        return round(self.points + self.outside / recall) if recall else None


class Members(NamedTuple):
    """What is known of cells that are summed up in groups: their number, and the squares of their match points."""

    number: int = 0
    squares: int = 0

    def combine(self, other: Members) -> Members:
        """Those of two samples."""
        return Members(self.number + other.number, self.squares + other.squares)


@dataclass(frozen=True)
class AuditSample:
    """What the audit saw: per cell the match points, and those that the policy alone would have found.

    Attributes
    ----------
    cells : numpy.ndarray of int64, shape (c,)
        Ids of the cells with at least one match point, in order.
    found, points : numpy.ndarray of int64, shape (c,)
        Match points that the policy alone would have found, and all match points, of each cell.
    outside : int
        Match points found outside of the audited cells.
    members : Members or None
        Of the cells, where ``cells`` are groups of them; None: they are the cells themselves.

    Examples
    --------
    >>> import numpy as np
    >>> first = AuditSample.of(np.array([7, 7, 9]), np.array([True, False, True]), outside=40)
    >>> second = AuditSample.of(np.array([9, 9, 11]), np.array([True, True, False]), outside=30)
    >>> estimate = first.combine(second).estimate()
    >>> estimate.points, estimate.cells, estimate.recall, estimate.reason
    (6, 3, None, '6 match points audited, too few for an estimate')
    >>> round(estimate.low, 2), round(estimate.high, 2)
    (0.0, 1.0)
    """

    cells: Ints
    found: Ints
    points: Ints
    outside: int = 0
    members: Members | None = None

    @classmethod
    def none(cls) -> AuditSample:
        """Of nothing."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty)

    @classmethod
    def restored(cls, columns: Iterable[Any], outside: object = 0) -> AuditSample:
        """A sample of a state, if it can be one.

        Raises
        ------
        DamagedError
        """
        cells, found, points = (np.array(column, np.int64) for column in columns)
        made = cls(cells, found, points, number_in("outside", outside, -COUNT, COUNT))
        counts = Range(len(made.cells), 0, COUNT)
        check_arrays(vars(made), {"cells": Range(), "found": counts, "points": counts})
        return made

    @classmethod
    def of(cls, cells: Ints, found: Bools, outside: int = 0) -> AuditSample:
        """The sample of some audited match points.

        Parameters
        ----------
        cells : numpy.ndarray of int64, shape (n,)
            Cell of each match point (each point once), as ``AuditCells.cells`` gives it; without the -1.
        found : numpy.ndarray of bool, shape (n,)
            Whether the policy alone would have found it.
        outside : int
            Match points found outside of the audited cells.

        Returns
        -------
        AuditSample
            Complexity: O(n log n).
        """
        return cls._summed(cells, found.astype(np.int64), np.ones(len(cells), np.int64), outside)

    @classmethod
    def _summed(cls, cells: Ints, found: Ints, points: Ints, outside: int) -> AuditSample:
        distinct, place = np.unique(np.asarray(cells, np.int64), return_inverse=True)
        sums = np.zeros((2, len(distinct)), np.int64)
        np.add.at(sums[0], place, found)
        np.add.at(sums[1], place, points)
        return cls(distinct, sums[0], sums[1], outside)

    def combine(self, other: AuditSample) -> AuditSample:
        """Both samples as one; associative and commutative, so batches and workers may be joined in any order.

        Parameters
        ----------
        other : AuditSample
            Of other match points, with the same cohort; cells may be the same.

        Returns
        -------
        AuditSample
            Complexity: O(c log c).
        """
        pairs = ((self.cells, other.cells), (self.found, other.found), (self.points, other.points))
        cells, found, points = (np.concatenate(pair) for pair in pairs)
        return self._summed(cells, found, points, self.outside + other.outside)

    @property
    def number(self) -> int:
        """How many cells there are."""
        return len(self.cells) if self.members is None else self.members.number

    def of_run(self, found: int, lost: int) -> RecallEstimate:
        """Estimated recall of a run that found so many match points, where cells were matched beside it."""
        return replace(self, outside=found - int(self.found.sum())).estimate(lost=lost)

    def estimate(self, level: float = 0.95, lost: int = 0) -> RecallEstimate:
        """Estimated recall with its interval.

        Parameters
        ----------
        level : float
            Chance that the interval holds the truth, between 0 and 1.
        lost : int
            Cells that were chosen and given up, for want of budget: nobody knows what was found there.

        Returns
        -------
        RecallEstimate
            With too few match points an interval and the reason, but no number that looks like an answer; with none, or
            those of one cell, not even that. Complexity: linear in the cells.

        Notes
        -----
        Match points of one cell share their outcome, so they count for less than as many independent ones. The design
        effect says how much less (jackknife over cells); it is never taken below 1. Few cells, of very different sizes,
        most of them found, show too little of it, so it is measured with half a cell more, of the size of the cell of a
        point on average, as often found as lost. That is ours; without it such intervals hold in as few as 76 of 100
        cases (``tests/test_audit.py``). Of cells that were given up all may have been found, or none: the interval is
        as wide as both together.
        """
        points, found = int(self.points.sum()), int(self.found.sum())
        cells = len(self.cells) if len(self.cells) < 2 else self.number
        reason = _too_few(points, cells, lost)
        if cells < 2:
            return RecallEstimate(None, None, None, points, cells, self.outside, level, reason)
        recall = found / points
        low, high = self._interval(level, lost)
        low, high = min(low, recall), max(high, recall)
        return RecallEstimate(None if reason else recall, low, high, points, cells, self.outside, level, reason)

    def worth(self, level: float = 0.95) -> tuple[float, float]:
        """How many independent match points these are worth, and how many of those were found; of two cells or more."""
        from scipy.special import ndtri, stdtrit  # type: ignore[import-untyped]

        points, found, sizes = float(self.points.sum()), float(self.found.sum()), self.points.astype(np.float64)
        squares = float((sizes**2).sum()) if self.members is None else self.members.squares
        size = squares / points  # of the cell of a point, on average
        share = (found + size / 4) / (points + size / 2)  # with half a cell more than was seen, as often found as lost
        residuals = (self.found - share * sizes) / (points - sizes)  # the estimate without each cell
        of_more = ((1 - share) ** 2 + share**2) / 4 * (size / points) ** 2
        variance = float((residuals**2).sum()) + of_more
        # the variance is known from few cells only: each point counts as a part of one
        few = float((ndtri(0.5 + level / 2) / stdtrit(len(self.cells) - 1, 0.5 + level / 2)) ** 2)
        number = min(share * (1 - share) / variance, points) * few
        return number, number * found / points

    def _interval(self, level: float, lost: int) -> tuple[float, float]:
        """The exact interval (Clopper and Pearson) of a binomial with as many independent points as these are worth."""
        from scipy.special import betaincinv

        number, found = self.worth(level)
        side = (1 - level) / 2
        low = float(betaincinv(found, number - found + 1, side)) if found > 0 else 0.0
        high = float(betaincinv(found + 1, number - found, 1 - side)) if found < number else 1.0
        seen = self.number / (self.number + lost)
        return low * seen, high * seen + 1 - seen


def _too_few(points: int, cells: int, lost: int) -> str:
    """Why so many match points are not enough; empty if they are."""
    if lost and not points:
        return f"all of {lost:,} chosen cells were given up: they cost more than the budget has for the audit"
    if not points:
        return "no match point fell into the audited cells: a larger share or a longer input would tell"
    seen = f"{points:,} match point{'' if points == 1 else 's'} audited"
    if cells < 2:
        return f"{seen}, all in one cell: they tell nothing about the others"
    if lost > MOST_LOST * (cells + lost):
        return f"{seen}, but {lost:,} of {cells + lost:,} cells given up for want of budget"
    return f"{seen}, too few for an estimate" if points < LEAST_POINTS else ""
