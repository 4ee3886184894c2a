"""How much a run has found, by all that speaks of it: what the past leads to expect, and what was looked at.

What speaks of recall: the share that runs inside such a budget found of the past; how many match points come in so many
events, beside those that were found; and match points, or ends of matches, that were looked for beside the run. Each
alone is thin. Together they give a distribution of recall, and its shortest interval of the level asked for.

Source: ours. Bayes' rule on a grid. A promise is a beta distribution as wide as the past says, with a chance that it no
longer holds (a contaminated prior: Berger and Berliner, Annals of Statistics 1986). The rate of match points is a
Student's t on the scale of logarithms. Ends that were tried are drawn without replacement from those that the run did
not report: a hypergeometric likelihood; those drawn with different chances count for as many as they are worth (Kish,
Survey Sampling 1965). Match points of audited cells are binomial with the design effect of ``AuditSample``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Floats
from acep_approx.budget.audit import MOST_LOST, AuditSample, RecallEstimate
from acep_approx.ranges import COUNT, finite, number_in

CELLS = 2000
"""Of the grid of recall; closer together at its ends, where shares are known better."""
TINY = 1e-12
BROKEN = 0.05
"""How likely a promise of the past no longer says anything."""
WIDE = 0.4
"""Width of an interval above which no number is given beside it."""


@dataclass(frozen=True)
class Expected:
    """What the past leads to expect of a run.

    Attributes
    ----------
    recall : float
        Share of the match points that runs inside such a budget found.
    worth : float
        How many match points of the present that is worth.
    rate : float
        Match points per event.
    doubt : float
        By how much the logarithm of the rate differs from one stretch of time to another (a standard deviation).
    stretches : int
        From how many that is known, at least 2.
    """

    recall: float
    worth: float
    rate: float
    doubt: float
    stretches: int

    def of_recall(self, grid: Floats) -> Floats:
        """The density of a recall before anything is seen of the run."""
        from scipy.special import betaln  # type: ignore[import-untyped]

        found, lost = self.recall * self.worth, (1 - self.recall) * self.worth
        beta = np.exp((found - 1) * np.log(grid) + (lost - 1) * np.log1p(-grid) - betaln(found, lost))
        return np.asarray((1 - BROKEN) * beta + BROKEN, np.float64)

    def of_found(self, grid: Floats, found: int, events: int) -> Floats:
        """How likely so many match points in so many events are, by recall."""
        degrees = self.stretches - 1
        there = (found + 0.5) / grid
        spread = np.sqrt(self.doubt**2 * (1 + 1 / self.stretches) + 1 / (found + 0.5))
        off = np.log(there / (self.rate * events)) / spread
        return np.asarray((1 + off**2 / degrees) ** (-(degrees + 1) / 2), np.float64)


@dataclass(frozen=True)
class EndSample:
    """Ends of matches that the run did not report, and those of them that were tried.

    Attributes
    ----------
    open : int
        Events so far that can end a match, by themselves, and were not reported.
    tried, missed : int
        Those that were tried, and that do end one.
    given_up : int
        Those that were drawn, and cost too much: whether they end one is not known.
    drawn_from, lost, spread : float
        Of the portions of the stream in which some were tried: events that can end a match; match points that were
        missed, as far as the tried ones tell; and the sum of the squares of their numbers per one that was tried.

    Examples
    --------
    >>> first = EndSample.of(40, 10, 2)
    >>> both = first.combine(EndSample.of(20, 0, 0))
    >>> both.open, both.tried, both.number, both.share
    (60, 10, 10.0, 0.2)
    """

    open: int = 0
    tried: int = 0
    missed: int = 0
    given_up: int = 0
    drawn_from: float = 0.0
    lost: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, number: int, tried: int, missed: int, given_up: int = 0) -> EndSample:
        """Of a portion of the stream: its open ends, those that were tried, drawn at random, and those missed."""
        if not tried:
            return cls(number, given_up=given_up)
        return cls(number, tried, missed, given_up, number, number * missed / tried, number * number / tried)

    @classmethod
    def drawn(cls, number: int, chances: Floats, is_point: Bools, given_up: int = 0) -> EndSample:
        """The same where each of those that were tried was drawn with a chance of its own.

        Source: the ratio estimator of Hajek, and as many draws with the same chance as these are worth (Kish).

        Examples
        --------
        >>> two = EndSample.drawn(40, np.array([0.1, 0.05]), np.array([True, False]))
        >>> round(two.share, 2), round(two.number, 2)
        (0.33, 1.8)
        """
        if not len(chances):
            return cls(number, given_up=given_up)
        weights = 1 / chances
        total, worth = float(weights.sum()), float(weights.sum() ** 2 / (weights @ weights))
        lost = number * float(weights @ is_point) / total
        return cls(number, len(chances), int(is_point.sum()), given_up, number, lost, number * number / worth)

    @classmethod
    def restored(cls, saved: list[float]) -> EndSample:
        """A sample of a state, if it can be one.

        Raises
        ------
        DamagedError
        """
        finite("ends", *saved)
        return cls(*(number_in("ends", count, 0, COUNT) for count in saved[:4]), *map(float, saved[4:]))

    def combine(self, other: EndSample) -> EndSample:
        """Those of two portions as one; in any order."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return EndSample(*(one + more for one, more in pairs))

    @property
    def is_complete(self) -> bool:
        """Whether all were tried."""
        return self.tried == self.open

    @property
    def number(self) -> float:
        """How many ends, drawn with the same chance, those that were tried are worth."""
        return self.drawn_from**2 / self.spread if self.tried else 0.0

    @property
    def share(self) -> float:
        """Share of them that do end a match."""
        return self.lost / self.drawn_from if self.tried else 0.0

    def of_recall(self, grid: Floats, found: int) -> Floats:
        """How likely it is that so many of them end matches, by the recall of a run that found so many points.

        Of those that were given up any number may end one: they are the dear ones, so that they are not like others.
        Where some number of them goes with a recall, that many are taken to (a profile likelihood).
        """
        number, unknown = self.number, self.given_up if self.tried else 0
        hits: Floats | float = self.share * number
        lost = found * (1 / grid - 1)  # match points that were missed
        if unknown and self.open:
            hits = hits + np.clip(lost * (number + unknown) / self.open - hits, 0, unknown)
        return self._drawn(lost, hits, number + unknown - hits)

    def _drawn(self, lost: Floats, hits: Floats | float, others: Floats | float) -> Floats:
        """How likely such a sample is by how many were missed, drawn without replacement; 1 where it is likeliest."""
        from scipy.special import gammaln

        rest = self.open - lost
        is_possible = (lost > np.maximum(hits, self.missed) - 0.5) & (
            rest > np.maximum(others, self.tried - self.missed) - 0.5
        )
        lost, rest = np.where(is_possible, lost, hits), np.where(is_possible, self.open - lost, others)
        logs = gammaln(lost + 1) - gammaln(np.maximum(lost - hits, 0) + 1) - gammaln(hits + 1)
        logs += gammaln(rest + 1) - gammaln(np.maximum(rest - others, 0) + 1) - gammaln(others + 1)
        return np.where(is_possible, np.exp(logs - logs[is_possible].max(initial=-np.inf)), 0.0)


def recall_by(
    found: int, events: int, sample: AuditSample, lost: int, ends: EndSample | None, past: Expected | None = None
) -> RecallEstimate:
    """Estimate recall by all that speaks of it.

    Parameters
    ----------
    found, events : int
        Match points that the run found, and events that it was shown.
    sample : AuditSample
        Of cells.
    lost : int
        Cells that were chosen and given up.
    ends : EndSample or None
        None: ends of matches cannot be tried alone.
    past : Expected, optional
        What a history leads to expect.
    """
    if past is None and (ends is None or (not ends.tried and len(sample.cells) > 1)):
        return sample.of_run(found, lost)
    is_whole = lost <= MOST_LOST * (sample.number + lost)
    return Evidence(found, events, past, ends, sample if is_whole else None).estimate()


@dataclass(frozen=True)
class Evidence:
    """All that speaks of the recall of a run.

    Attributes
    ----------
    found, events : int
        Match points that the run found, and events that it was shown.
    expected : Expected or None
        By a history; None: there is none that speaks of such a run.
    ends : EndSample or None
        None: ends of matches cannot be tried alone.
    cells : AuditSample or None
        Match points of audited cells.
    """

    found: int
    events: int
    expected: Expected | None = None
    ends: EndSample | None = None
    cells: AuditSample | None = None

    def estimate(self, level: float = 0.95) -> RecallEstimate:
        """Recall with its interval; without a number where the interval is wider than ``WIDE``."""
        low, mean, high = self.interval(level)
        is_thin = high - low > WIDE
        if self._is_silent and low < high:  # then it may be anything that there is room for
            low, high, is_thin = self._least, 1.0, True
        cells, ends = self.cells or AuditSample.none(), self.ends or EndSample()
        return RecallEstimate(
            None if is_thin else min(max(mean, low), high),
            low,
            high,
            int(cells.points.sum()),
            cells.number,
            self.found - int(cells.found.sum()),
            level,
            self._wanted() if is_thin else "",
            ends=ends.tried,
            missed=ends.missed,
            by_past=self.expected is not None,
        )

    @property
    def _is_silent(self) -> bool:
        """Whether nothing was looked at: no end was tried, no match point audited, and nothing is expected."""
        has_tried = self.ends is not None and self.ends.tried > 0
        has_cells = self.cells is not None and len(self.cells.cells) > 1
        return self.expected is None and not has_tried and not has_cells

    def _wanted(self) -> str:
        history = ", or a history (acep train)" if self.expected is None else ""
        return f"too little is known for a number: a larger audit (--audit), a longer stream{history} would tell more"

    def interval(self, level: float) -> tuple[float, float, float]:
        """The shortest interval that holds recall with a chance of ``level``, and the mean.

        Returns
        -------
        (float, float, float)
            Low end, mean, high end. Complexity: linear in the grid.

        Examples
        --------
        >>> evidence = Evidence(300, 60_000, ends=EndSample.of(400, 200, 50))
        >>> [round(share, 2) for share in evidence.interval(0.95)]
        [0.72, 0.75, 0.78]
        """
        missed = self.ends.missed if self.ends is not None else 0
        is_complete = self.ends is not None and self.ends.is_complete
        if is_complete or (missed and not self.found):  # who found none of some has missed all
            recall = self.found / (self.found + missed) if missed else 1.0
            return recall, recall, recall
        least = self._least
        edges = least + (1 - least) * (1 - np.cos(np.linspace(0, np.pi, CELLS + 1))) / 2
        grid = np.clip((edges[1:] + edges[:-1]) / 2, TINY, 1 - TINY)
        weights = self._density(grid) * np.diff(edges)
        total = float(weights.sum())
        if not total > 0:  # the parts contradict each other: nobody knows
            return least, (1 + least) / 2, 1.0
        below = np.concatenate(([0.0], np.cumsum(weights / total)))
        first = np.flatnonzero(below <= 1 - level)
        last = np.minimum(np.searchsorted(below, below[first] + level), CELLS)
        best = int(np.argmin(edges[last] - edges[first]))
        low, high = (float(edges[ends[best]]) for ends in (first, last))
        return self._possible(low, np.ceil), float(weights @ grid) / total, self._possible(high, np.floor)

    @property
    def _least(self) -> float:
        """Recall if all open ends were missed."""
        is_known = self.ends is not None and self.found > 0
        return self.found / (self.found + self.ends.open) if is_known and self.ends is not None else 0.0

    def _possible(self, recall: float, whole: np.ufunc) -> float:
        """The next recall that a whole number of missed match points makes."""
        if not self.found:
            return recall if whole is np.floor else 0.0
        return self.found / (self.found + float(whole(self.found * (1 / recall - 1)))) if recall > 0 else 0.0

    def _density(self, grid: Floats) -> Floats:
        density = np.ones(len(grid))
        if self.expected is not None:
            density *= self.expected.of_recall(grid)
            if self.expected.rate > 0 and self.events:
                density *= self.expected.of_found(grid, self.found, self.events)
        if self.ends is not None:
            density *= self.ends.of_recall(grid, self.found)
        if self.cells is not None and len(self.cells.cells) > 1:
            points, found = self.cells.worth()
            likely = found * np.log(grid) + (points - found) * np.log1p(-grid)
            density *= np.exp(likely - likely.max())
        return density
