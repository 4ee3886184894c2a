"""Judge two ways of ranking runs by what became of a cohort in which nothing was shed.

Each is judged on outcomes that came after it was worked out: prequentially (Dawid, JRSS A 147, 1984). The rule is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Floats, Ints
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
    parent = _parents(trace, first)
    score = _scores(trace, first, ranking)
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


def _parents(trace: Trace, first: Ints) -> Ints:
    """The birth that each was made from; -1: none."""
    visit = np.where(first >= 0, trace.parent[first], -1)
    return np.where(visit >= 0, trace.birth[visit], -1)


def _scores(trace: Trace, first: Ints, ranking: Ranking) -> Floats:
    """Match points per run-step of each birth, with the coin of its lineage."""
    vertex = vertices_of(ranking.scheme, trace)[first]
    score = ranking.values.gain[vertex] / ranking.values.cost[vertex] ** ranking.scheme.cost_power
    coin = (trace.start % (1 << 40)) * GOLDEN % 1.0
    return np.where(first >= 0, score * (SPREAD + coin) / (SPREAD + 1), np.inf)


def _own_steps(trace: Trace, first: Ints, parent: Ints) -> Floats:
    """Run-steps of each birth alone: its cost less that of its first child, which is counted in it."""
    steps = np.where(first >= 0, trace.cost[first], 0.0)
    order = np.lexsort((np.arange(len(parent)), trace.tick))
    children = order[parent[order] >= 0]
    mother, at = np.unique(parent[children], return_index=True)
    own = steps.copy()
    own[mother] -= steps[children[at]]
    return np.maximum(own, 0.0)
