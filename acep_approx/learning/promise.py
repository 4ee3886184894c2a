"""What a history promises: match points per event, and after how many of them their absence says anything. Ours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from history.bundles import Bundles

SURPRISE = 24
"""Match points that must be promised at least before their absence says anything."""
KEPT = 0.25
"""Share of what was promised that must come; recall is only known about."""
WARM = 4_000
"""Events that a run takes to come to its price."""
POOR = 0.25
"""Share of the match points that a history must promise to find: where it promises less there is little to lose."""
TO_LEARN = 32
"""So many times as long what was learned instead has before it is judged: at first it has seen little."""
LEAST_STRETCHES = 4
"""Stretches of the past, at least, from which it is known how match points come and go."""


@dataclass
class Promise:
    """Holds a history to the match points that it promised, and then what was learned instead to those that it found.

    Attributes
    ----------
    rate : float
        Match points per event that are found within the budget.
    most : float
        Match points that are promised until it is looked whether enough of them came; see ``patience``.
    window : int
        Of the query, in ticks: the first runs take as long to lead anywhere.
    is_broken : bool
        Whether too few did, and what was learned instead is not judged yet.
    failed : float
        Match points per event that were found when it was broken.
    is_in_vain : bool
        Whether even less was found since.
    is_poor : bool
        Whether so little is promised (``POOR``) that what was learned may rank runs without being found to be better.
    events, found : int
    tick : int or None
        Where the stream was when it was looked last: events, match points found, tick.
    begun : int or None
        The first tick.
    """

    rate: float = 0.0
    most: float = math.inf
    window: int = 0
    is_broken: bool = False
    failed: float = 0.0
    is_in_vain: bool = False
    is_poor: bool = False
    events: int = 0
    found: int = 0
    tick: int | None = None
    begun: int | None = None

    @property
    def ahead(self) -> float:
        """Events in which so many match points are promised; without end where none are."""
        return self.most / self.rate if self.rate > 0 else math.inf

    def hold(self, events: int, found: int, tick: int, runs: int = 1) -> int | None:
        """See whether enough came.

        Parameters
        ----------
        events, found : int
            Events so far, and match points found.
        tick : int
            Of the last event.
        runs : int, default 1
            Over which the events are spread, each of which comes to a price of its own.

        Returns
        -------
        int or None
            Where it has just been broken: the tick up to which it was kept.
        """
        if self.begun is None:
            self.begun = tick
        if self.tick is None or tick < self.begun + self.window or events < WARM * runs:
            self.events, self.found, self.tick = events, found, tick
            return None
        promised = self.rate * (events - self.events)
        if promised < self.most * (TO_LEARN if self.is_broken else 1):
            return None
        rate, kept = (found - self.found) / (events - self.events), self.tick
        self.events, self.found, self.tick = events, found, tick
        if self.is_broken:
            self._judge(rate)
        elif rate < KEPT * self.rate:
            self.is_broken, self.failed = True, rate
            return kept
        return None

    def begin_to_judge(self, events: int, found: int, tick: int) -> None:
        """Judge what was learned instead from here on: it has ranked no runs before."""
        if self.is_broken:
            self.events, self.found, self.tick = events, found, tick

    def _judge(self, rate: float) -> None:
        """What was learned instead has found so much: it promises as much from here on, if that is not even less."""
        if rate < self.failed:
            self.is_in_vain = True
        else:
            self.is_broken, self.rate = False, rate


def patience(bundles: Bundles) -> float:
    """Match points of the least stretch of a past in which there never were less than half of the mean.

    Match points may come in bursts, such as storms: then few of them for some time say nothing.

    Parameters
    ----------
    bundles : Bundles
        Of the past.

    Returns
    -------
    float
        24 at least; infinite where a quarter of the past is not long enough.

    Examples
    --------
    >>> ticks = np.arange(1000)
    >>> patience(Bundles(ticks, ticks, np.full(1000, ""), ticks, np.ones(1000, np.int64)))
    24.0
    """
    total, size = int(bundles.points.sum()), float(SURPRISE)
    if not total:
        return math.inf
    low, high = int(bundles.last.min()), int(bundles.last.max())
    while size * LEAST_STRETCHES <= total:
        stretches = int(total // size)
        at = ((bundles.last - low) / (high - low + 1) * stretches).astype(np.int64)
        points = np.bincount(at, bundles.points, stretches)
        if points.min() >= points.mean() / 2:
            return size
        size *= 2
    return math.inf
