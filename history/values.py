"""What a run is worth: match points that it may still lead to, run-steps that it may still take, and who covers it.

All of this is ours: the paper's own rule is in the half that is not at hand. What we know of it, maps and bundles, is
used for coverage: a run whose match points another run reaches as well adds little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from bitarray.util import count_and

from history.graph import Graph
from history.selection import lazy_greedy
from history.trace import Ints

Floats = npt.NDArray[np.float64]

PSEUDO = 5.0
"""Visits at the mean of the level above that are added to the visits of each level."""
LEAST_COST = 0.05
"""Run-steps of a run at least."""
MOST_COVERS = 8
"""Groups that are asked whether they cover a run, its own among them."""


@dataclass(frozen=True)
class Values:
    """What the runs of each vertex are worth.

    Parameters
    ----------
    gain : float64 array, shape (vertices,)
        Match points that a run still leads to, on average; never less where more of the window remains.
    cost : float64 array, shape (vertices,)
        Run-steps that it still takes, on average; at least 0.05.
    overlap : float64 array, shape (groups,)
        Share of its match points that a run loses beside one that covers it; 0: coverage is off.
    covers : int64 array, shape (groups, 8)
        Groups whose runs cover those of a group; the group itself first; -1 after the last.
    """

    gain: Floats
    cost: Floats
    overlap: Floats
    covers: Ints


def fit_values(
    graph: Graph,
    order: npt.ArrayLike | None = None,
    *,
    coverage: bool = True,
    theta: float = 0.8,
    overlap: float = 0.95,
) -> Values:
    """Learn from a history what runs are worth.

    A mean over few visits is shrunk to the mean of the level above, as if five visits more had had that: vertex,
    (place, group, remaining), (place, remaining), place, everything. Gain is then made monotone: a run with more of
    its window left reaches all that one with less of it reaches, and more.

    Parameters
    ----------
    graph : Graph
        The history.
    order : int array, shape (places,), default all 0
        How far on each place is. Only groups at least as far on can cover a group: one behind it has most likely not
        yet got there.
    coverage : bool, default True
        False: overlap is 0 and no group covers another, so that runs are ranked by their own score alone.
    theta : float, default 0.8
        Share of a group's match map that another's must hold to cover it.
    overlap : float, default 0.95
        The overlap of all groups. Not 1, for runs of one group are alike, not the same.

    Complexity: O(vertices + groups² · bundles / 64).
    """
    counts, scheme = graph.counts, graph.scheme
    groups = scheme.groups
    gain = np.maximum.accumulate(_shrunk(graph, counts.reached.astype(np.float64)), axis=1)
    cost = np.maximum(_shrunk(graph, counts.cost), LEAST_COST)
    covers = np.full((groups, MOST_COVERS), -1, np.int64)
    covers[:, 0] = np.arange(groups)
    if coverage:
        depth = np.zeros(len(scheme.places), np.int64) if order is None else np.asarray(order, np.int64)
        _fill_covers(covers, graph, depth[scheme.place_of_group], theta)
    return Values(gain.reshape(-1), cost.reshape(-1), np.full(groups, overlap if coverage else 0.0), covers)


def greedy_order(graph: Graph, place: int) -> list[int]:
    """The vertices of a place in the order of greedy coverage: each adds most bundles to those before it.

    Parameters
    ----------
    graph : Graph
        The history.
    place : int
        Number of the place.

    Returns
    -------
    list of int
        Vertices that add a bundle; the others add nothing to them.

    Complexity: as ``selection.lazy_greedy``, of which the guarantees are too.
    """
    low = int(graph.scheme.first[place])
    high = low + graph.scheme.places[place].groups * graph.scheme.cells
    vertices = [vertex for vertex in graph.counts.maps if low <= vertex < high]
    chosen = lazy_greedy([graph.counts.maps[vertex] for vertex in vertices])
    return [vertices[item] for item in chosen.items]


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


def _fill_covers(covers: Ints, graph: Graph, depth: Ints, theta: float) -> None:
    """Other groups that hold enough of each group's map: the fullest first, then the lowest number."""
    cells = graph.scheme.cells
    occupied = sorted({vertex // cells for vertex in graph.counts.maps})
    maps = {group: graph.group_map(group) for group in occupied}
    size = {group: bits.count() for group, bits in maps.items()}
    for group in occupied:
        least = theta * size[group]
        held = [
            (-count_and(maps[group], maps[other]), other)
            for other in occupied
            if other != group and depth[other] >= depth[group] and size[other] >= least
        ]
        others = [other for share, other in sorted(held) if -share >= least][: MOST_COVERS - 1]
        covers[group, 1 : 1 + len(others)] = others
