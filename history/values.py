"""What a run is worth: match points that it may still lead to, and run-steps that it may still take.

All of this is ours, a reconstruction of section 3.2 of Li and Ge, PVLDB 2016 (docs/paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from history.arrays import Floats
from history.graph import Graph

PSEUDO = 5.0
"""Visits at the mean of the level above that are added to the visits of each level."""
LEAST_COST = 0.05
"""Run-steps of a run at least."""

KNOWN = 20.0
"""Visits of a vertex that what a learner has found of it counts for."""


@dataclass(frozen=True)
class Values:
    """What the runs of each vertex are worth.

    Parameters
    ----------
    gain : float64 array, shape (vertices,)
        Match points that a run still leads to, on average.
    cost : float64 array, shape (vertices,)
        Run-steps that it still takes, on average; at least 0.05.
    chance : float64 array, shape (vertices,)
        Chance that it leads to a match point at all.
    """

    gain: Floats
    cost: Floats
    chance: Floats


def fit_values(graph: Graph) -> Values:
    """Learn from a history what runs are worth.

    A mean over few visits is shrunk to the mean of the level above, as if five visits more had had that: vertex,
    (place, group, remaining), (place, remaining), place, everything. Gain is then made monotone: a run with more of
    its window left reaches all that one with less of it reaches, and more.

    Parameters
    ----------
    graph : Graph
        The history.

    Complexity: O(vertices).
    """
    counts = graph.counts
    gain = np.maximum.accumulate(_shrunk(graph, counts.reached.astype(np.float64)), axis=1)
    cost = np.maximum(_shrunk(graph, counts.cost), LEAST_COST)
    chance = _shrunk(graph, counts.led.astype(np.float64))
    return Values(gain.reshape(-1), cost.reshape(-1), chance.reshape(-1))


def with_counts(known: Values, before: Graph, after: Graph) -> Values:
    """What runs are worth by what was known and by what a graph has counted since.

    Parameters
    ----------
    known : Values
        They count for 20 visits of each vertex.
    before, after : Graph
        The graph then, and now that more was counted.

    Complexity: O(vertices).
    """
    old, new = before.counts, after.counts
    shape = (after.scheme.groups, after.scheme.remaining, -1)

    def mean(values: Floats, name: str) -> Floats:
        visits = (new.visits - old.visits).astype(np.float64)
        return np.asarray((KNOWN * values + getattr(new, name) - getattr(old, name)) / (KNOWN + visits))

    gain = np.maximum.accumulate(mean(known.gain, "reached").reshape(shape), axis=1).reshape(-1)
    return Values(gain, np.maximum(mean(known.cost, "cost"), LEAST_COST), np.clip(mean(known.chance, "led"), 0.0, 1.0))


def _shrunk(graph: Graph, total: Floats) -> Floats:
    """Means of all vertices, shrunk level by level; shape (groups, R, T)."""
    scheme = graph.scheme
    shape = (scheme.groups, scheme.remaining, scheme.cells // scheme.remaining)
    sums, visits = total.reshape(shape), graph.counts.visits.reshape(shape)
    everything = sums.sum() / max(visits.sum(), 1)
    means = np.empty(shape)
    for number, place in enumerate(scheme.places):
        low = int(scheme.first_group[number])
        here = slice(low, low + place.groups)
        mean = np.full((1, 1, 1), everything)
        for axes in ((0, 1, 2), (0, 2), (2,), ()):
            top, seen = sums[here].sum(axis=axes, keepdims=True), visits[here].sum(axis=axes, keepdims=True)
            mean = (top + PSEUDO * mean) / (seen + PSEUDO)
        means[here] = mean
    return means
