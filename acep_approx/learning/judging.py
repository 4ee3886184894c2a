"""Judge what ranks runs: by what became of a cohort in which nothing was shed, and by what was promised.

Two rankings are compared on outcomes of the cohort that came after they were worked out: prequentially (Dawid, JRSS A
147, 1984). A history is also held to the match points that it promised. The rules are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.ranges import check, finite
from history.bundles import Bundles
from history.checking import finite_column, scheme_of, values_of
from history.counting import vertices_of
from history.regrouping import GOLDEN
from history.trace import Trace
from history.values import Values
from history.vectors import Scheme

SPREAD = 10.0
"""Lineages of one vertex differ in score by up to 1 / (1 + SPREAD), as they do in the engine."""
SURE = 2.0
"""Standard deviations by which the match points that only one finds must outnumber those that only the other does."""
LEAST = 8
"""Match points that only one of the two finds, before anything is said."""


@dataclass(frozen=True)
class Ranking:
    """By what runs are ranked.

    Attributes
    ----------
    scheme : Scheme
        Vertices.
    values : Values
        What runs of each are worth.
    overlap : float64 array, shape (places,)
        Share of its match points that a run is taken to lose beside a later one.
    """

    scheme: Scheme
    values: Values
    overlap: Floats

    def save(self) -> dict[str, Any]:
        """All of it, for ``load``."""
        return {"scheme": self.scheme.to_json(), "overlap": self.overlap, **vars(self.values)}

    @classmethod
    def load(cls, saved: dict[str, Any], like: Scheme) -> Self:
        """What ``save`` gave, of the same query as another scheme."""
        scheme = scheme_of(saved["scheme"], like)
        overlap = finite_column("overlap", saved["overlap"], len(scheme.places))
        return cls(scheme, values_of(saved, scheme.vertices), overlap)


@dataclass
class Tally:
    """Match points of the cohort that one ranking would have found and the other not.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.add(np.array([True, True, False]), np.array([False, True, False]))
    >>> tally.gained, tally.lost, tally.says_better(), Tally(gained=20, lost=2).says_better()
    (1, 0, False, True)
    """

    gained: int = 0
    lost: int = 0

    @classmethod
    def load(cls, saved: dict[str, Any]) -> Self:
        """That of which these are the attributes."""
        finite("tally", *saved.values())
        return cls(**saved)

    def add(self, new: Bools, old: Bools) -> None:
        """Which of some match points each would have found."""
        self.gained += int((new & ~old).sum())
        self.lost += int((old & ~new).sum())

    def says_better(self) -> bool:
        """Whether there is enough evidence that the new one finds more."""
        return self._lead() >= SURE and self.gained + self.lost >= LEAST

    def says_worse(self) -> bool:
        """Whether there is enough evidence that it finds less."""
        return self._lead() <= -SURE and self.gained + self.lost >= LEAST

    def _lead(self) -> float:
        """By how many standard deviations more were gained than lost, were it chance."""
        return float((self.gained - self.lost) / np.sqrt(max(self.gained + self.lost, 1)))


@dataclass(frozen=True)
class Verdict:
    """What learning has come to so far.

    Attributes
    ----------
    ranked_by : {"history", "learned", "random"}
        By what runs are ranked from here on: by the history that was there at the beginning, by what was learned, or by
        nothing yet, or no longer.
    gained, lost : int
        Match points of the cohort that what was learned would have found and the history not, and the other way round,
        as far as the two have been compared.
    versions, refused : int
        Versions that were made, and those in which what was learned was not found to be better, so that the history
        goes on ranking runs.
    broken : int
        How often far less came than was promised, so that runs were kept at random.
    """

    ranked_by: str = "random"
    gained: int = 0
    lost: int = 0
    versions: int = 0
    refused: int = 0
    broken: int = 0


def found_within(trace: Trace, ranking: Ranking, share: float) -> Bools:
    """Which match points of a trace would be found if only the runs of the best scores took their run-steps.

    Parameters
    ----------
    trace : Trace
        Of whole lineages.
    ranking : Ranking
        A run is kept if it and all that it was made from have a score that is high enough.
    share : float
        Of the run-steps of the trace that may be taken.

    Returns
    -------
    bool array, shape (points,)
        False, too, for those that no run of the trace completes.

    Notes
    -----
    What runs take away from one another is left out: which runs are kept would have to be known for it.
    Complexity: O(births · (log births + longest lineage) + visits).
    """
    found = np.zeros(len(trace.point_row), np.bool_)
    if not len(trace.place):
        return found
    first = trace.first_visits()
    visit = np.where(first >= 0, trace.parent[first], -1)
    parent = np.where(visit >= 0, trace.birth[visit], -1)  # the birth that each was made from
    vertex = vertices_of(ranking.scheme, trace)[first]
    worth = ranking.values.gain[vertex] / ranking.values.cost[vertex] ** ranking.scheme.cost_power
    coin = (trace.start % (1 << 40)) * GOLDEN % 1.0  # of its lineage
    score = np.where(first >= 0, worth * (SPREAD + coin) / (SPREAD + 1), np.inf)
    while True:
        least = np.where(parent >= 0, np.minimum(score, score[parent]), score)
        if (least == score).all():
            break
        score = least
    steps = _own_steps(trace, first, parent)
    order = np.lexsort((trace.tick, -score))
    done = np.cumsum(steps[order])
    kept = np.zeros(len(score), np.bool_)
    kept[order[done <= share * done[-1]]] = True
    found[trace.end_point[kept[trace.birth[trace.end_visit]]]] = True
    return found


def _own_steps(trace: Trace, first: Ints, parent: Ints) -> Floats:
    """Run-steps of each birth alone: its cost less that of its first child, which is counted in it."""
    steps = np.where(first >= 0, trace.cost[first], 0.0)
    order = np.lexsort((np.arange(len(parent)), trace.tick))
    children = order[parent[order] >= 0]
    mother, at = np.unique(parent[children], return_index=True)
    own = steps.copy()
    own[mother] -= steps[children[at]]
    return np.maximum(own, 0.0)


# --- what a history promises --------------------------------------------------------------------------------

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

    @classmethod
    def load(cls, saved: dict[str, Any]) -> Self:
        """That of which these are the attributes; ``most`` may be infinite."""
        made = cls(**saved)
        finite("promise", made.rate, made.failed, made.window, made.events, made.found)
        finite("promise", *(tick for tick in (made.tick, made.begun) if tick is not None))
        check("promise", good=type(made.most) in (int, float) and made.most > 0)
        return made

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
        if not self.is_broken:
            if rate >= KEPT * self.rate:
                return None
            self.is_broken, self.failed = True, rate
            return kept
        # what was learned instead has found so much: it promises as much from here on, if that is not even less
        if rate < self.failed:
            self.is_in_vain = True
        else:
            self.is_broken, self.rate = False, rate
        return None

    def change(self, rate: float, events: int, *, is_poor: bool) -> None:
        """From here on so many match points per event are promised; what was promised before stays.

        ``events``: so far. Where the promise is broken it is no longer about the history: then all stays.
        """
        if self.is_broken or rate == self.rate:
            return
        if rate > 0:  # as if the events since it was looked last had been fewer, or more
            self.events = round(events - (events - self.events) * self.rate / rate)
        self.rate, self.is_poor = rate, is_poor

    def begin_to_judge(self, events: int, found: int, tick: int) -> None:
        """Judge what was learned instead from here on: it has ranked no runs before."""
        if self.is_broken:
            self.events, self.found, self.tick = events, found, tick


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
