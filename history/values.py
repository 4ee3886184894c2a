"""What a run is worth: match points that it may still lead to, and run-steps that it may still take.

All of this is ours, a reconstruction of section 3.2 of Li and Ge, PVLDB 2016 (docs/how-it-works/paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from history.arrays import Floats, Ints
from history.graph import Graph

PSEUDO = 5.0
"""Visits at the mean of the level above that are added to the visits of each level."""
LEAST_COST = 0.05
"""Run-steps of a run at least."""
SWEEPS, CLOSE, TINY = 64, 1e-6, 1e-12
"""How often gains are worked out anew from one another at most, and when they are the same."""

PRICES, RANGE = 32, 1e-4
"""How many prices of a run-step are tried, and the lowest of them as a share of the highest."""
STOPPING_SWEEPS = 16
"""How often values at one price are worked out anew at most. They begin with those at the price before."""

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

    @property
    def is_level(self) -> bool:
        """Whether they tell no run from another."""
        return bool((self.gain == self.gain[:1]).all() and (self.cost == self.cost[:1]).all())


def fit_values(graph: Graph) -> Values:
    """Learn from a history what runs are worth.

    A mean over few visits is shrunk to the mean of the level above, as if five visits more had had that: vertex,
    (place, group, remaining), (place, remaining), place, everything. Gain is then made monotone: a run with more of
    its window left reaches all that one with less of it reaches, and more.

    Parameters
    ----------
    graph : Graph
        The history. Unless ``graph.scheme.values`` is "means", gains come from the edges: see ``gains_by_paths``.

    Complexity: O(vertices), without "means" also O(edges · sweeps).
    """
    counts = graph.counts
    is_by_paths = graph.scheme.values != "means"
    gain = gains_by_paths(graph) if is_by_paths else _gains(graph, counts.reached.astype(np.float64))
    cost = np.maximum(_shrunk(graph, counts.cost), LEAST_COST)
    chance = _shrunk(graph, counts.led.astype(np.float64))
    return Values(gain, cost.reshape(-1), chance.reshape(-1))


def gains_by_paths(graph: Graph) -> Floats:
    """What runs lead to, from the edges of the graph: one step of their way at a time; shape (vertices,).

    The gain of a vertex is what its runs complete with the next event, what those lead to that stay until the next
    part of the window, and what their children lead to beyond that:

        gain(v) = p + stay(v) + sum over children u of h(u) max(0, gain(u) - stay(v) - p / 2)

    p: direct completions per visit; h(u): the chance that there is a child, shared among its vertices as it was in the
    past. A run and its child wait for the same events, so their gains do not add up: the larger one counts (as in
    ``rl.values``). Means are shrunk as those of ``fit_values``; in the end each place has the mean that it has there.

    A mean asks only what the runs of the vertex itself led to. By paths a vertex that was often seen, but whose runs
    met few match points, is worth what the vertices are worth that it leads to. It is blind to what these do not tell
    apart any more.

    Bellman 1957; to use it here is ours. Complexity: O(edges) for each of up to 64 sweeps.
    """
    scheme, counts, ways = graph.scheme, graph.counts, _Ways.of(graph)
    gain = np.zeros(scheme.vertices)
    for _ in range(SWEEPS):
        before, gain = gain, _gains(graph, counts.visits * ways.backup(gain))
        if np.abs(gain - before).max() <= CLOSE * gain.max():
            break
    place = scheme.place_of_group[np.arange(scheme.vertices) // scheme.cells]
    reached, found = (np.bincount(place, column) for column in (counts.reached, counts.visits * gain))
    return np.asarray(gain * (reached / np.maximum(found, TINY))[place], np.float64)


@dataclass(frozen=True)
class _Ways:
    """Where the runs of each vertex go with the next event, as far as edges tell; see ``gains_by_paths``.

    ``source``, ``target`` and ``stay`` are of runs that stay, ``parent``, ``child`` and ``made`` of their children.
    """

    source: Ints
    target: Ints
    stay: Floats
    parent: Ints
    child: Ints
    made: Floats
    has_child: Floats
    direct: Floats

    @classmethod
    def of(cls, graph: Graph) -> _Ways:
        scheme, counts = graph.scheme, graph.counts
        visits = np.maximum(counts.visits, 1)
        rate = counts.moves / visits[counts.source]
        stays = counts.target % (scheme.cells // scheme.remaining) > 0  # a child has bound its last event just now
        (source, target, stay), (parent, child, made) = (
            (counts.source[chosen], counts.target[chosen], rate[chosen]) for chosen in (stays, ~stays)
        )
        # a run stays once at most: with more, as a damaged file has, gains grow without end
        stay = np.minimum(stay, 1.0)
        children = np.bincount(parent, made, scheme.vertices)
        has_child = -np.expm1(-children) / np.maximum(children, TINY)
        return cls(source, target, stay, parent, child, made, has_child, counts.completed / visits)

    def later(self, values: Floats) -> Floats:
        """What runs that take no step are worth: that of the vertices where they are seen next."""
        return np.asarray(np.bincount(self.source, self.stay * values[self.target], len(values)), np.float64)

    def backup(self, values: Floats) -> Floats:
        """What the runs of each vertex are worth, if those of all vertices are worth ``values``."""
        later = self.later(values)
        more = np.maximum(values[self.child] - later[self.parent] - self.direct[self.parent] / 2, 0.0)
        return self.direct + later + self.has_child * np.bincount(self.parent, self.made * more, len(values))


def stopping_index(graph: Graph) -> Floats:
    """Up to which price of a run-step the runs of each vertex are worth keeping, if they may be dropped later.

    Gain over cost is a mean over whole lives. But a run may be kept until the next event and be dropped then, and each
    of its children may be dropped as well. At a price ``x`` of a run-step a run is worth

        V(v) = max(0, what V says of where it leads to, as in ``gains_by_paths`` - x · c(v))

    c(v): the run-steps until it is seen next. The index is the price at which V(v) comes to 0; between two of the
    prices that are tried it is interpolated by the logarithm.

    Returns
    -------
    float64 array, shape (vertices,)
        Match points per run-step.

    Source: Gittins 1979 (the index of a stopping problem); to rank partial matches by it is ours.
    Complexity: O(edges) for up to 16 sweeps at each of 32 prices.
    """
    scheme, ways = graph.scheme, _Ways.of(graph)
    whole = _shrunk(graph, graph.counts.cost).reshape(-1)
    cost = np.maximum(whole - ways.later(whole), LEAST_COST)
    highest = max(float((ways.backup(gains_by_paths(graph)) / cost).max(initial=0.0)), TINY)
    prices = highest * RANGE ** (np.arange(PRICES) / (PRICES - 1))
    values, index, last = np.zeros(scheme.vertices), np.zeros(scheme.vertices), np.zeros(scheme.vertices)
    for number, price in enumerate(prices.tolist()):
        for _ in range(STOPPING_SWEEPS):
            net = _gains(graph, graph.counts.visits * (ways.backup(values) - price * cost))
            before, values = values, np.maximum(net, 0.0)
            if np.abs(values - before).max() <= CLOSE * max(values.max(), TINY):
                break
        is_new = (index == 0.0) & (net > 0.0)
        if number:  # it passes 0 between the last price and this one
            part = np.where(is_new, net / np.maximum(net - last, TINY), 0.0)
            index = np.where(is_new, price * (prices[number - 1] / price) ** part, index)
        else:
            index = np.where(is_new, price, index)
        last = net
    return np.asarray(index, np.float64)


def _gains(graph: Graph, total: Floats) -> Floats:
    """Mean gains of all vertices, shrunk and monotone in the part of the window; shape (vertices,)."""
    return np.maximum.accumulate(_shrunk(graph, total), axis=1).reshape(-1)


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
