"""Policies that others shed by, as tables over the vertices of a history, so that all are run by one engine.

A run's score is ``gain / cost`` of the vertex where it stands; the engine keeps the runs of high scores, and breaks
ties by a coin per lineage. Every policy is a function of what an exact run over the past tells (``Trace``) and of how
runs are put into vertices (``Scheme``). What the sources call a complete match is a match point here, which is what
recall is measured in; where they know attribute values, these are the groups of the scheme.

Sources are those of each function; ``POLICIES`` has their names. ``clairvoyant``, which knows the future, is in
``shedding.clairvoyant``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from history import Scheme, Trace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SLOTS = 16
"""Steps of the Markov chain in one part of the window."""
CLASSES = 4
"""Classes of runs per place in the cost model, as in the authors' code."""
MOST_SAMPLES = 20_000
"""Visits per place that the cost model learns from."""
LEAST_COST = 0.05
"""Run-steps; no run is free."""


class Worth(NamedTuple):
    """What a run is worth and what it costs; float64 arrays, shape (vertices,)."""

    gain: Floats
    cost: Floats


Policy = Callable[[Trace, Scheme], Worth]


class Vertices(NamedTuple):
    """Of each vertex its place, its group (numbered over all places) and its part of the window."""

    place: Ints
    group: Ints
    part: Ints


def vertices(scheme: Scheme) -> Vertices:
    """Take all vertices of a scheme apart."""
    number = np.arange(scheme.vertices)
    group = number // scheme.cells
    part = number % scheme.cells // (len(scheme.since) + 1)
    return Vertices(scheme.place_of_group[group], group, part)


def births(trace: Trace, scheme: Scheme) -> Ints:
    """Group (numbered over all places) of each birth."""
    group = np.zeros(len(trace.place), np.int64)
    for number, place in enumerate(scheme.places):
        mine = np.flatnonzero(trace.place == number)
        values = [feature.values(trace.column)[mine] for feature in place.features]
        group[mine] = scheme.first_group[number] + scheme.group(number, values, trace.texts, len(mine))
    return group


def parts(trace: Trace, scheme: Scheme) -> Ints:
    """Part of the window of each visit."""
    return np.searchsorted(scheme.remaining_floors, trace.remaining, side="right").astype(np.int64)


def completions(trace: Trace) -> Floats:
    """Match points that each visit leads to, as many as the trace records (64)."""
    return np.bitwise_count(trace.mask).astype(np.float64)


def _per_birth(trace: Trace) -> Floats:
    """Match points that each birth leads to."""
    first = trace.first_visits()
    return np.where(first >= 0, completions(trace)[first], 0.0)


def _sums(number: Ints, size: int, weights: Floats | None = None) -> Floats:
    return np.bincount(number, weights, size).astype(np.float64)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """A share, 0 of nothing."""
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


def _worth(gain: npt.NDArray[np.floating]) -> Worth:
    return Worth(gain.astype(np.float64), np.ones(len(gain)))


# --- without learning --------------------------------------------------------------------------------------------


def random(trace: Trace, scheme: Scheme) -> Worth:  # noqa: ARG001
    """All runs are alike: the coin decides. The floor that every paper compares with."""
    return _worth(np.ones(scheme.vertices))


def oldest(trace: Trace, scheme: Scheme) -> Worth:  # noqa: ARG001
    """The runs that started first go first. First in, first out: the usual way to drop load without knowledge."""
    return _worth(1.0 + vertices(scheme).part)


def most_advanced(trace: Trace, scheme: Scheme) -> Worth:
    """The runs stay that have bound the most events, on average over the runs of their place.

    The more of the pattern is bound, the likelier it is completed: a rule without learning. Complexity: O(visits · log
    visits of a lineage).
    """
    first = trace.first_visits()
    bound = np.zeros(len(trace.birth), np.int64)
    bound[first[first >= 0]] = 1
    before = trace.parent.copy()
    while (going := np.flatnonzero(before >= 0)).size:  # each round looks twice as far back
        bound[going] += bound[before[going]]
        before[going] = before[before[going]]
    per_birth = np.where(first >= 0, bound[first], 0).astype(np.float64)
    places = len(scheme.places)
    depth = _ratio(_sums(trace.place, places, per_birth), _sums(trace.place, places))
    return _worth(1.0 + depth[vertices(scheme).place])


# --- counts ------------------------------------------------------------------------------------------------------


def hspice(trace: Trace, scheme: Scheme) -> Worth:
    """Completions per processing, by state, letter and position in the window.

    Source: Slo, Bhowmik and Rothermel, *hSPICE*, DEBS 2020. Deviations: the paper drops the test of an event against a
    run, ours drops the run that such a test would make; the place of a run says its state and the letter that made it;
    a position is a part of the window, and each part that a run lives in is a processing.
    """
    of = vertices(scheme)
    size = len(scheme.places) * scheme.remaining
    cell = trace.place[trace.birth] * scheme.remaining + parts(trace, scheme)
    led = (trace.mask > 0).astype(np.float64)
    utility = _ratio(_sums(cell, size, led), _sums(cell, size))
    return _worth(utility[of.place * scheme.remaining + of.part])


def contribution(trace: Trace, scheme: Scheme) -> Worth:
    """How many completions runs with this key value at this state had: a raw count, not a rate.

    Source: the routine ``loadShedding_VLDB16`` in the public code of AthenaCEP, whose name suggests Li and Ge, PVLDB
    2016; it has neither bundles nor maps. Deviation: the key value is the bucket of the place's first feature.
    """
    head: list[Ints] = []
    group = births(trace, scheme)
    for place in scheme.places:
        rest = place.groups // (place.features[0].buckets if place.features else 1)
        head.append(np.arange(place.groups) // rest + (head[-1][-1] + 1 if head else 0))
    heads = np.concatenate(head)
    count = _sums(heads[group], int(heads[-1]) + 1, _per_birth(trace))
    return _worth(count[heads[vertices(scheme).group]])


def prefix_sketch(trace: Trace, scheme: Scheme) -> Worth:
    """How many completions runs with the same attribute values along their prefix had: a raw count.

    Source: Yu, Shi, Weidlich and Zhao, *SHARP* (2025), for one pattern: runs are taken in order of ``cn``. Their
    overhead (``pn`` times the predicates left) fills up the budget and is no part of the order; here run-steps fill
    it. Deviation: the attribute values of the prefix are the group of the place, so nothing collides.
    """
    count = _sums(births(trace, scheme), scheme.groups, _per_birth(trace))
    return _worth(count[vertices(scheme).group])


# --- models ------------------------------------------------------------------------------------------------------


def markov(trace: Trace, scheme: Scheme) -> Worth:
    """Probability to complete in what remains of the window, by the time that takes to process.

    Source: Slo et al., *pSPICE*, BigData 2019: a Markov chain over the states of a run, with the work
    in a state as its reward; ``P(s, R)`` is the entry (s, final) of its R-th power, ``tau(s, R)`` the expected sum of
    rewards. Deviations: steps of the chain are sixteenths of a part of the window, not events; a run that has children
    and stays is one that goes on, as the paper's chain has no branches; work is counted in run-steps.

    Raises
    ------
    ValueError
        The trace has match points, but does not say which visits completed them.
    """
    if len(trace.point_row) and not len(trace.end_visit):
        raise ValueError("a Markov chain needs a trace with direct completions (end_visit)")
    places = len(scheme.places)
    moves, reward = chain(trace, scheme)
    steps = scheme.remaining * SLOTS
    done, work = np.zeros((steps + 1, places + 1)), np.zeros((steps + 1, places + 1))
    done[0, places] = 1.0
    for step in range(steps):
        done[step + 1] = moves @ done[step]
        work[step + 1] = reward + moves @ work[step]
    of = vertices(scheme)
    middle = of.part * SLOTS + SLOTS // 2
    return Worth(done[middle, of.place], np.maximum(work[middle, of.place], LEAST_COST))


def chain(trace: Trace, scheme: Scheme) -> tuple[Floats, Floats]:
    """Transitions between places, and run-steps in each, per step of the chain.

    Returns
    -------
    float64 array, shape (places + 1, places + 1)
        Probabilities, rows add up to 1; the last place is the match, which is never left.
    float64 array, shape (places + 1,)
        Run-steps of a run per step.

    Complexity: O(visits).
    """
    places = len(scheme.places)
    here = trace.place[trace.birth]
    floors = np.concatenate(([0], scheme.remaining_floors))[parts(trace, scheme)]
    lived = np.maximum(trace.remaining - floors + 1, 1) / (scheme.window / (scheme.remaining * SLOTS))
    alive = _sums(here, places, lived)
    first = trace.first_visits()
    made = first[first >= 0]
    made = made[trace.parent[made] >= 0]
    source, target = here[trace.parent[made]], here[made]
    moves = source != target
    rate = np.zeros((places, places + 1))
    np.add.at(rate, (source[moves], target[moves]), 1.0)
    rate[:, places] = _sums(here[trace.end_visit], places)
    rate = _ratio(rate, np.broadcast_to(alive[:, None], rate.shape).copy())
    total = rate.sum(axis=1)
    matrix = np.zeros((places + 1, places + 1))
    matrix[:places] = rate * _ratio(-np.expm1(-total), total)[:, None]
    np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
    quiet, tests = _own_tests(trace, made)
    reward = _ratio(_sums(here[quiet], places, tests), _sums(here[quiet], places, lived[quiet]))
    return matrix, np.append(reward, 0.0)


def _own_tests(trace: Trace, made: Ints) -> tuple[Ints, Floats]:
    """Visits in which nothing happened, and the run-steps taken in each."""
    after = np.full(len(trace.birth), -1, np.int64)
    goes_on = np.flatnonzero((trace.parent >= 0) & (trace.birth == trace.birth[trace.parent]))
    after[trace.parent[goes_on]] = goes_on
    is_quiet = np.ones(len(trace.birth), np.bool_)
    is_quiet[trace.parent[made]] = False
    is_quiet[trace.end_visit] = False
    quiet = np.flatnonzero(is_quiet)
    later = np.where(after[quiet] >= 0, trace.cost[after[quiet]], 0.0)
    return quiet, np.maximum(trace.cost[quiet] - later, 0.0)


def cost_model(trace: Trace, scheme: Scheme) -> Worth:
    """Classes of runs by contribution and consumption; a tree says to which class a run belongs.

    Source: Zhao, Hung and Weidlich, ICDE 2020: k-means per state and time slice, decision trees on attribute values.
    Deviations: the time slice is one more question that the tree may ask; trees see buckets of values, so that every
    vertex falls into one class; classes are not estimated again online; the knapsack over classes is the engine's price
    on contribution per consumption, the order in which the authors' greedy code takes classes.

    Complexity: O(samples · log samples) per place.
    """
    of = vertices(scheme)
    gain, cost = np.zeros(scheme.vertices), np.ones(scheme.vertices)
    here, part, group = trace.place[trace.birth], parts(trace, scheme), births(trace, scheme)[trace.birth]
    outcome = np.stack((completions(trace), trace.cost), axis=1)
    rng = np.random.default_rng(0)
    for number in range(len(scheme.places)):
        seen = np.flatnonzero(here == number)
        if not len(seen):
            continue
        seen = rng.permutation(seen)[:MOST_SAMPLES]
        asked = _questions(scheme, number, group[seen], part[seen])
        mine = np.flatnonzero(of.place == number)
        predicted = _classified(asked, outcome[seen], _questions(scheme, number, of.group[mine], of.part[mine]))
        gain[mine], cost[mine] = predicted.T
    return Worth(gain, np.maximum(cost, LEAST_COST))


def _questions(scheme: Scheme, place: int, group: Ints, part: Ints) -> Ints:
    """What the tree may ask: the bucket of each feature, and the part of the window."""
    buckets = tuple(feature.buckets for feature in scheme.places[place].features)
    within = group - scheme.first_group[place]
    return np.stack((*(np.unravel_index(within, buckets) if buckets else ()), part), axis=1)


def _classified(asked: Ints, outcome: Floats, wanted: Ints) -> Floats:
    """Mean outcome of the class that the tree puts each of ``wanted`` into; float64, shape (wanted, 2)."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]
    from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]

    spread = outcome.std(axis=0)
    scaled = outcome / np.where(spread > 0, spread, 1.0)
    classes = min(CLASSES, len(np.unique(scaled, axis=0)))
    label = KMeans(classes, n_init=4, random_state=0).fit_predict(scaled)
    means = np.stack([outcome[label == k].mean(axis=0) for k in range(classes)])
    tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=10, random_state=0).fit(asked, label)
    found: Floats = means[tree.predict(wanted)]
    return found


POLICIES: dict[str, Policy] = {
    "random": random,
    "oldest": oldest,
    "most-advanced": most_advanced,
    "markov": markov,
    "hspice": hspice,
    "contribution": contribution,
    "cost-model": cost_model,
    "prefix-sketch": prefix_sketch,
}
"""Name: policy."""
