"""What a run is worth: match points that it may still lead to, run-steps that it may still take, and who covers it.

All of this is ours, a reconstruction of section 3.2 of Li and Ge, PVLDB 2016 (docs/paper.md). What we know of it, match
maps, is used run by run: a run whose match points another run reaches as well adds little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from history.counting import Counts
from history.coverage.selection import lazy_greedy
from history.graph import Graph
from history.trace import Ints

Floats = npt.NDArray[np.float64]

PSEUDO = 5.0
"""Visits at the mean of the level above that are added to the visits of each level."""
LEAST_COST = 0.05
"""Run-steps of a run at least."""
PSEUDO_POINTS = 20.0
"""Match points at the mean of the level above that are added to those that runs of two groups could share."""
MOST_COVERS = 8
"""Groups that are asked whether they cover a run."""


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
        Share of its match points that a run loses beside one that covers it; 0: nothing covers it.
    covers : int64 array, shape (groups, 8)
        Groups whose runs cover those of a group, itself first if it is one of them; -1 after the last.
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
        yet got there. (Overlap is counted for pairs of places in rising number only.)
    coverage : bool, default True
        False: overlap is 0 and no group covers another, so that runs are ranked by their own score alone.
    theta : float, default 0.8
        Share of its match points that a run must have in common with one of another group that is to cover it.

    Notes
    -----
    Overlap is the share of match points that the run which would cover a birth reaches as well (see
    ``overlap.overlaps``), shrunk as if 20 match points more had had the share of its place (for two groups: of their
    two places), and this in the same way to that of all. A group covers itself as far as its overlap goes.

    Only one overlap is kept for each group, beside the latest start of all that cover it; so it is the smallest of
    theirs, and a group that would lower it covers nothing. Where a group's own overlap is below ``theta`` but that of
    others is not, it is covered either by itself or by the others, whichever is worth more: overlap times the match
    points that could be shared (of the others: the largest).

    Complexity: O(vertices + groups · pairs of groups that were counted).
    """
    counts, scheme = graph.counts, graph.scheme
    groups = scheme.groups
    gain = np.maximum.accumulate(_shrunk(graph, counts.reached.astype(np.float64)), axis=1)
    cost = np.maximum(_shrunk(graph, counts.cost), LEAST_COST)
    covers, overlap = np.full((groups, MOST_COVERS), -1, np.int64), np.zeros(groups)
    if coverage:
        depth = np.zeros(len(scheme.places), np.int64) if order is None else np.asarray(order, np.int64)
        covering = _coverings(graph.counts, scheme.place_of_group, depth[scheme.place_of_group], theta)
        for group, (chosen, share) in enumerate(covering):
            covers[group, : len(chosen)], overlap[group] = chosen, share
    else:
        covers[:, 0] = np.arange(groups)
    return Values(gain.reshape(-1), cost.reshape(-1), overlap, covers)


def fit_chances(graph: Graph) -> Floats:
    """The chance that a run leads to a match point at all; shape (vertices,), shrunk as in ``fit_values``."""
    return _shrunk(graph, graph.counts.led.astype(np.float64)).reshape(-1)


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


def _coverings(counts: Counts, place: Ints, depth: Ints, theta: float) -> Iterator[tuple[list[int], float]]:
    """For each group the groups that cover it, and the overlap."""
    groups, is_own = len(place), counts.covered == counts.cover
    shareable, shared = np.zeros((2, groups), np.int64)
    mine = counts.covered[is_own]
    shareable[mine], shared[mine] = counts.shareable[is_own], counts.shared[is_own]
    own = _shares(shared, shareable, place)
    group, other = counts.covered[~is_own], counts.cover[~is_own]
    points = counts.shareable[~is_own]
    share = _shares(counts.shared[~is_own], points, place[group] * (place.max(initial=0) + 1) + place[other])
    is_able = (share >= theta) & (depth[other] >= depth[group])
    for number in range(groups):
        able = np.flatnonzero(is_able & (group == number))
        able = able[np.lexsort((other[able], -share[able]))]
        worth = float((share[able] * points[able]).max(initial=0.0))
        if own[number] < theta and worth > own[number] * shareable[number]:
            able = able[:MOST_COVERS]
            yield other[able].tolist(), float(share[able].min())
        elif own[number] > 0:
            able = able[(share[able] >= own[number]) & (own[number] >= theta)][: MOST_COVERS - 1]
            yield [number, *other[able].tolist()], float(own[number])
        else:
            yield [], 0.0


def _shares(shared: Ints, shareable: Ints, kind: Ints) -> Floats:
    """Shares, shrunk to that of their kind, and this to that of all."""
    everything = shared.sum() / max(shareable.sum(), 1)
    total, could = np.bincount(kind, shared), np.bincount(kind, shareable)
    mean = (total + PSEUDO_POINTS * everything) / (could + PSEUDO_POINTS)
    return np.asarray((shared + PSEUDO_POINTS * mean[kind]) / (shareable + PSEUDO_POINTS))
