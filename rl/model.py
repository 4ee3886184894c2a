"""The factored model: a step is taken when an event of the run's key comes, has the letter, and passes the test.

Source: the design is ours. Shrinking to the level above by pseudo-counts is the empirical Bayes of James and Stein in
its plainest form, as in ``history.values``. The shares are those of all events: never censored. The rest is what tests
of live runs say; which runs live does not matter to them, as long as shedding looks at nothing but the vertex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from history.arrays import Floats, Ints
from history.vectors import Place
from rl.chart import Chart, Pairs
from rl.statistics import Statistics
from rl.values import Hazards

PSEUDO = 4.0
"""Rows (or events) at the mean of the level above that are added to those of each level."""
PSEUDO_PASSES = 0.5
"""Passed tests that are added in the same way, where passing may be rare."""
LEAST = 1e-9
"""Chance to pass at least."""
PRIOR_PASS = 0.5
"""Chance that an event of the letter passes, before any was tested."""
PRIOR_EVENTS = 4.0
"""Events of a key in a window, before any was seen."""


@dataclass(frozen=True)
class Model:
    """The factors.

    Parameters
    ----------
    share : float64 array, shape (letters, groups)
        Share of the events of the key of a run that have a letter.
    rate : float64 array, shape (groups,)
        Events of a run's key per tick.
    selectivity : float64 array, shape (steps, groups)
        Chance that an event of the step's letter passes; of groups that it does not lead from: of all.
    tested : float64 array, shape (steps, groups)
        Chance that it is tested at all. It may be below ``selectivity``: steps of one letter are taken together, and
        the test may have been counted for another of them.
    children : tuple of float64 arrays, one per step, shape (groups of its source, groups of its target)
        Chance that the child of a run of a group is of a group; rows sum to 1.
    """

    share: Floats
    rate: Floats
    selectivity: Floats
    tested: Floats
    children: tuple[Floats, ...]

    def hazards(self, chart: Chart) -> Hazards:
        """Steps and tests per tick: rate * share * selectivity, and rate * share * tested. O(pairs)."""
        kind = Pairs(chart).kind
        events = self.rate * self.share[chart.letter]
        return Hazards((events * self.selectivity).ravel()[kind], (events * self.tested).ravel()[kind], self.children)


def fit_model(chart: Chart, statistics: Statistics) -> Model:
    """The factors of some statistics.

    Parameters
    ----------
    chart : Chart
        Places and steps.
    statistics : Statistics
        The sums.

    Returns
    -------
    Model
        Every mean is that of weighted rows; each level is shrunk to the one above it as if 4 rows more had had its
        mean. Levels: step and group, step, 1 (tested); group, place, everything (rate: the harmonic mean, because a
        key of twice the rate shows twice the rows); step and groups of parent and child, step and buckets of each
        feature of the child and of the same one of the parent, step and bucket of the child, uniform. Selectivity
        (step and group, step, 1/2) is shrunk by half a passed test.

    Complexity: O(pairs + families + steps * groups).
    """
    shape = (chart.steps, chart.scheme.groups)
    kind = statistics.pairs.kind

    def by_kind(column: Floats) -> Floats:
        return np.bincount(kind, weights=column, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    seen, rows = by_kind(statistics.seen), by_kind(statistics.rows)
    passed, tested = by_kind(statistics.passed), by_kind(statistics.tested)
    return Model(
        _shares(statistics),
        _rates(chart, seen, by_kind(statistics.ticks), rows),
        _selectivity(passed, seen, rows, weight_of_pass(statistics)[:, None]),
        _tested(tested, seen, rows),
        _children(statistics),
    )


def letters_by_key(statistics: Statistics) -> Floats:
    """Share of the events of each bucket of keys that have a letter, shrunk to that of all keys.

    Returns
    -------
    float64 array, shape (buckets, letters)

    Notes
    -----
    The less the shares of buckets differ beyond chance, the more events at the share of all are added to those of each:
    the beta-binomial model, by moments. Where they differ by chance only they are all the same.
    Complexity: O(buckets * letters).
    """
    counts, total = statistics.by_key[:, :-1], statistics.by_key[:, -1:]
    share = letters_of_all(statistics)
    chance = share * (1 - share)
    off = counts - total * share
    excess = (off**2 / np.maximum(total, LEAST)).sum(axis=0) - max((total > 0).sum() - 1, 0) * chance
    known = total.sum() - (total**2).sum() / max(total.sum(), LEAST)
    added = np.maximum(chance * known / np.maximum(excess, LEAST) - 1, PSEUDO)
    return np.asarray(share + off / (total + added), np.float64)


def letters_of_all(statistics: Statistics) -> Floats:
    """Share of all events that have a letter; shape (letters,)."""
    share = (statistics.letters + PSEUDO / max(len(statistics.letters), 1)) / (statistics.total + PSEUDO)
    return np.minimum(share, 1.0)


def _shares(statistics: Statistics) -> Floats:
    """Share of the events of a run's key that have a letter: a mean over the runs that were born into a group."""
    births = statistics.born.sum(axis=1)
    total = letters_by_key(statistics).T @ statistics.born.T + PSEUDO * letters_of_all(statistics)[:, None]
    return np.asarray(total / (births + PSEUDO), np.float64)


def weight_of_pass(statistics: Statistics) -> Floats:
    """How many passed tests each one that was looked at stands for; shape (steps,)."""
    steps = statistics.pairs.chart.steps
    passed, hits = (
        np.bincount(statistics.pairs.step, weights=column, minlength=steps)
        for column in (statistics.passed, statistics.hits)
    )
    return np.divide(passed, hits, out=np.ones(steps), where=hits > 0)


def _mean(total: Floats, weight: Floats, rows: Floats, above: Floats | float) -> Floats:
    """Weighted means, shrunk as if some rows more had had the mean of the level above."""
    mean = np.divide(total, weight, out=np.zeros(np.shape(total)), where=weight > 0)
    return np.asarray((rows * mean + PSEUDO * above) / (rows + PSEUDO), np.float64)


def _selectivity(passed: Floats, seen: Floats, rows: Floats, weight: Floats) -> Floats:
    """Chances to pass; shape (steps, groups).

    What is rare is known by how often it was seen, not by how often it was not: so a mean is shrunk by passed tests, as
    many as ``PSEUDO_PASSES``, at the mean of the level above. The mean of a step is one over its groups, each counted
    by how well it is known: of the groups that are shed there are few rows, and theirs would count for nothing.
    """
    base = _by_passes(passed.sum(axis=1, keepdims=True), seen.sum(axis=1, keepdims=True), weight, PRIOR_PASS)
    known = rows / (rows + PSEUDO)
    mean = np.minimum(np.divide(passed, seen, out=np.zeros(seen.shape), where=seen > 0), 1.0)
    step = ((known * mean).sum(axis=1, keepdims=True) + base) / (known.sum(axis=1, keepdims=True) + 1.0)
    return _by_passes(passed, seen, weight, step)


def _by_passes(passed: Floats, seen: Floats, weight: Floats, above: Floats | float) -> Floats:
    prior = PSEUDO_PASSES * weight
    return np.minimum((passed + prior) / (seen + prior / np.maximum(above, LEAST)), 1.0)


def _tested(tested: Floats, seen: Floats, rows: Floats) -> Floats:
    total, weight, looked = (sums.sum(axis=1, keepdims=True) for sums in (tested, seen, rows))
    return _mean(tested, seen, rows, _mean(total, weight, looked, 1.0))


def _rates(chart: Chart, seen: Floats, ticks: Floats, rows: Floats) -> Floats:
    """Intervals are averaged, not rates: the mean of ``1 / rate`` over events is ticks over events."""
    scheme = chart.scheme
    seen, ticks, rows = (sums.sum(axis=0) for sums in (seen, ticks, rows))
    interval = np.divide(ticks, seen, out=np.zeros(len(seen)), where=seen > 0)
    known, at = rows / (rows + PSEUDO), scheme.place_of_group

    def by_place(column: Floats) -> Floats:
        return np.bincount(at, weights=column, minlength=len(scheme.places)).astype(np.float64)

    everything = ticks.sum() / seen.sum() if seen.sum() > 0 else scheme.window / PRIOR_EVENTS
    place = (by_place(known * interval) + everything) / (by_place(known) + 1.0)
    return np.asarray(1.0 / _mean(ticks, seen, rows, place[at]), np.float64)


def _children(statistics: Statistics) -> tuple[Floats, ...]:
    """Distributions; a weight counts as many rows as the passed tests of its step do on average."""
    pairs, found, low = statistics.pairs, [], 0
    places, weight = pairs.chart.scheme.places, weight_of_pass(statistics)
    for step, size in enumerate(pairs.families.tolist()):
        source, target = places[pairs.chart.source[step]], places[pairs.chart.target[step]]
        born = statistics.children[low : low + size].reshape(source.groups, target.groups) / weight[step]
        found.append(_shrunk(born, _by_features(born, source, target)))
        low += size
    return tuple(found)


def _by_features(born: Floats, source: Place, target: Place) -> Floats:
    """Chances of the groups of children, as if the buckets of their features were independent.

    A child remembers what its parent does. So the bucket of a feature that both places have is foretold from that of
    the parent, the others from those of all children: far fewer rows tell that than tell the same of pairs of groups.
    """
    parents = dict(_buckets(source))
    chance = np.ones_like(born)
    for name, child in _buckets(target):
        parent = parents.get(name, np.zeros(source.groups, np.int64))
        counts = np.eye(parent.max() + 1)[:, parent] @ born @ np.eye(child.max() + 1)[child]
        of_all = _shrunk(counts.sum(axis=0), np.full(counts.shape[1], 1 / counts.shape[1]))
        chance *= _shrunk(counts, of_all)[np.ix_(parent, child)]
    return chance


def _buckets(place: Place) -> list[tuple[str, Ints]]:
    """The features of a place, with the bucket of each of its groups."""
    sizes = [feature.buckets for feature in place.features]
    buckets = np.unravel_index(np.arange(place.groups), sizes) if sizes else ()
    return [(feature.name, bucket) for feature, bucket in zip(place.features, buckets, strict=True)]


def _shrunk(counts: Floats, above: Floats) -> Floats:
    """Rows of shares, each as if ``PSEUDO`` rows more had had those of the level above."""
    return np.asarray((counts + PSEUDO * above) / (counts.sum(axis=-1, keepdims=True) + PSEUDO), np.float64)
