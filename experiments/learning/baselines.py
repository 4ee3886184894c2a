"""Plain learners, to compare with: what they leave out shows what it is worth.

Each has the face of ``Updater``: ``observe`` and ``values``. None of them is meant to be used.

Source: tabular TD(0) is that of Sutton and Barto, Reinforcement Learning, 2nd edition, section 6.1, Monte Carlo that of
section 5.1. Ours are the max backup, the levels that a vertex begins with, and that all three are on the same vertices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from history.arrays import Bools, Floats, Ints
from history.values import Values
from history.vectors import Scheme
from rl.chart import Chart
from rl.exploration import CohortCounts
from rl.model import PRIOR_PASS, fit_model
from rl.records import Events, Lineages, Tests
from rl.statistics import Statistics
from rl.values import solve

WINDOWS = 8
"""Windows after which what was seen counts half."""
PSEUDO = 5.0
"""Visits at the mean of the level above that are added to those of each level, as in ``history.values``."""
LEAST_STEP = 0.01
"""Step size of TD(0) at least, so that it goes on learning."""
FIRST = 10.0
"""One by its first step size."""


@dataclass(frozen=True)
class Moves:
    """Where live runs went: parallel columns in order of time, one row for a change of a run's vertex or a child of it.

    Attributes
    ----------
    vertex : int64 array, shape (rows,)
        Where the run stood.
    after : int64 array, shape (rows,)
        Where it stands then; -1 if it is over: it left with the step, or its window closed.
    child : int64 array, shape (rows,)
        Where its child stands; -1 where there is none that goes on.
    ends : bool array, shape (rows,)
        Whether a match ended.
    """

    vertex: Ints
    after: Ints
    child: Ints
    ends: Bools

    @classmethod
    def none(cls) -> Moves:
        """Nothing moved."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, np.zeros(0, np.bool_))


class TabularTD:
    """TD(0) over vertices, move by move, with no model of why runs move.

    It needs what the three records do not tell, the moves of live runs: pass them to ``observe``. A run that is shed
    makes no further move, so nothing is learned from that. Costs are not learned: they are 1.

    Parameters
    ----------
    chart : Chart
        Places and steps.

    Notes
    -----
    At a move from v to v' with a child at c: ``V(v) += a (y - V(v))``, where y = max(V(v'), 1 if a match ended, V(c))
    for the chance and y = max(V(v'), V(c)) + (1 if a match ended) for the gain; V of what is over is 0. The step is
    a = max(0.01, 1 / (10 + n)) at the n-th move from v. The same is learned for (place, part of the window) over all
    groups, which begins at 1/2, and where a vertex begins that has not moved yet.

    Complexity: O(moves), in a loop of Python.
    """

    def __init__(self, chart: Chart) -> None:
        scheme = chart.scheme
        vertex = np.arange(scheme.vertices)
        part = vertex % scheme.cells // (scheme.cells // scheme.remaining)
        self._level = (scheme.place_of_group[vertex // scheme.cells] * scheme.remaining + part).tolist()
        levels = len(scheme.places) * scheme.remaining
        self._chance, self._gain = [0.5] * levels, [0.5] * levels
        self._moved = [0] * levels
        self._own: dict[int, list[float]] = {}

    def observe(self, events: Events, tests: Tests, lineages: Lineages, moves: Moves) -> None:
        """Learn from moves; of the three records nothing is used."""
        del events, tests, lineages
        columns = (moves.vertex, moves.after, moves.child, moves.ends)
        for vertex, after, child, ends in zip(*(column.tolist() for column in columns), strict=True):
            (chance, gain), (chance_c, gain_c) = self._read(after), self._read(child)
            target = (1.0 if ends else max(chance, chance_c), max(gain, gain_c) + ends)
            self._step(vertex, target)

    def values(self) -> Values:
        """What runs are worth."""
        level = np.array(self._level)
        chance, gain = np.array(self._chance)[level], np.array(self._gain)[level]
        for vertex, (own_chance, own_gain, _) in self._own.items():
            chance[vertex], gain[vertex] = own_chance, own_gain
        return Values(gain, np.ones(len(gain)), chance)

    def _read(self, vertex: int) -> Sequence[float]:
        if vertex < 0:
            return 0.0, 0.0
        own = self._own.get(vertex)
        level = self._level[vertex]
        return own[:2] if own is not None else (self._chance[level], self._gain[level])

    def _step(self, vertex: int, target: tuple[float, float]) -> None:
        level = self._level[vertex]
        own = self._own.setdefault(vertex, [self._chance[level], self._gain[level], 0.0])
        size = max(LEAST_STEP, 1 / (FIRST + own[2]))
        own[0] += size * (target[0] - own[0])
        own[1] += size * (target[1] - own[1])
        own[2] += 1
        size = max(LEAST_STEP, 1 / (FIRST + self._moved[level]))
        self._chance[level] += size * (target[0] - self._chance[level])
        self._gain[level] += size * (target[1] - self._gain[level])
        self._moved[level] += 1


class MonteCarlo:
    """Means of what became of runs, where a run that was shed led to what it had led to by then: a failure, mostly.

    It needs the outcomes of *all* runs as ``lineages``, shed ones too, with a weight of 1: more than a learner is
    shown, and biased, because what is shed looks worthless and is shed again. Costs are not learned: they are 1.

    Parameters
    ----------
    chart : Chart
        Places and steps.
    half_life : float, optional
        In ticks; default 8 windows.

    Notes
    -----
    Means are shrunk to those of the level above, as if it had had five visits more: vertex, (place, part of the
    window), place, everything, 1/2.
    """

    def __init__(self, chart: Chart, half_life: float | None = None) -> None:
        self.chart = chart
        self._counts = CohortCounts(chart.scheme.vertices, half_life or WINDOWS * chart.scheme.window)

    def observe(self, events: Events, tests: Tests, lineages: Lineages) -> None:
        """Learn from outcomes; of events and tests nothing is used."""
        del events, tests
        self._counts.add(lineages)

    def values(self) -> Values:
        """What runs are worth."""
        counts, scheme = self._counts, self.chart.scheme
        gain = _shrunk(scheme, counts.points, counts.visits)
        return Values(gain, np.ones(len(gain)), _shrunk(scheme, counts.led, counts.visits))


class EventRates:
    """The factored model without its tests: every event of the letter is taken to pass with a chance of 1/2.

    Rates of groups and the groups of children are learned from the rows of tests, as in ``Updater``, but not how many
    of them passed. No residual.

    Parameters
    ----------
    chart : Chart
        Places and steps.
    half_life : float, optional
        In ticks; default 8 windows.
    """

    def __init__(self, chart: Chart, half_life: float | None = None) -> None:
        self.chart = chart
        self._statistics = Statistics(chart, half_life or WINDOWS * chart.scheme.window)

    def observe(self, events: Events, tests: Tests, lineages: Lineages) -> None:
        """Learn from events and tests; of outcomes nothing is used."""
        del lineages
        self._statistics.add(events, tests)

    def values(self) -> Values:
        """What runs are worth."""
        model = fit_model(self.chart, self._statistics)
        blind = replace(
            model, selectivity=np.full(model.selectivity.shape, PRIOR_PASS), tested=np.ones(model.tested.shape)
        )
        return solve(self.chart, blind.hazards(self.chart))


def _shrunk(scheme: Scheme, total: Floats, visits: Floats) -> Floats:
    """Means of all vertices, shrunk level by level to 1/2; shape (vertices,)."""
    shape = (scheme.groups, scheme.remaining, scheme.cells // scheme.remaining)
    top, seen = total.reshape(shape), visits.reshape(shape)
    means = np.empty(shape)
    for number, place in enumerate(scheme.places):
        low = int(scheme.first_group[number])
        here = slice(low, low + place.groups)
        mean = np.full((1, 1, 1), (total.sum() + PSEUDO / 2) / (visits.sum() + PSEUDO))
        for axes in ((0, 1, 2), (0, 2), ()):
            above = seen[here].sum(axis=axes, keepdims=True) + PSEUDO
            mean = (top[here].sum(axis=axes, keepdims=True) + PSEUDO * mean) / above
        means[here] = mean
    return means.reshape(-1)
