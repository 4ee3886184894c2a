"""Draw tests as if no run had been shed: what tells runs apart would else tell less the better it is known. Ours.

Of runs that are shed there are hardly any tests. A feature that ranks runs makes those that are tested alike in it, so
that it seems to tell nothing; another one takes its place, and what it told apart comes back. Shedding looks at nothing
but the group of a run, and children are known before they are shed. So the runs of each group that would have been born
can be added up, from the start of the pattern on, and tests are drawn by that.
"""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import SampledTests
from acep_approx.training.covers import depths
from history.vectors import Place, Scheme

MOST_TIMES = 20.0
"""A test stands for so many times as many as there are on average, at most: few ones must not decide."""


def unshed_births(reader: SampleReader, tests: SampledTests, scheme: Scheme) -> list[Floats]:
    """About how many runs of each group would have been born, were none shed.

    Parameters
    ----------
    reader : SampleReader
    tests : SampledTests
    scheme : Scheme
        Groups that runs were shed by.

    Returns
    -------
    list of float64 arrays, shape (groups,)
        By place; in any unit. Rounds of a repetition are left out.

    Complexity: O(tests).
    """
    target, passed = reader.target(tests), np.flatnonzero(tests.passed > 0)
    parent = reader.groups(tests.key, tests.values, tests.source, scheme)
    child = np.zeros(len(tests), np.int64)
    child[passed] = reader.groups(tests.key[passed], tests.children[:, passed], target[passed], scheme)
    births = [np.zeros(place.groups) for place in scheme.places]
    for number in np.argsort(depths(reader.tables.automaton), kind="stable").tolist():
        mine = np.flatnonzero((tests.source == number) & (target != number))
        born = tests.passed[mine]
        if number:
            seen = np.bincount(parent[mine], tests.seen[mine], len(births[number]))
            each = np.divide(births[number], seen, out=np.zeros(len(seen)), where=seen > 0)
            born = born * each[parent[mine]]
        for to in np.unique(target[mine]).tolist():
            here = target[mine] == to
            births[to] += np.bincount(child[mine[here]], born[here], len(births[to]))
    return births


def drawn(reader: SampleReader, tests: SampledTests, mine: Ints, place: Place, births: Floats) -> Ints:
    """Some tests of a place, so that fewer of its groups seem rare only because they are shed.

    A group is drawn by the root of how many runs stand for one test: by all of it little would be left of the tests of
    the runs that are kept, which say the rest.

    Parameters
    ----------
    reader : SampleReader
    tests : SampledTests
    mine : int64 array
        Which tests, in order of time.
    place : Place
    births : float64 array, shape (groups,)
        See ``unshed_births``.

    Returns
    -------
    int64 array
        Of ``mine``, in the same order; one may be there more than once. There are as many as tests of equal weight
        would say as much (Kish 1965), drawn at equal distances, so that nothing is left to chance.

    Complexity: O(tests).
    """
    some = tests[mine]
    group = reader.group(some.key, some.values, place, np.arange(len(mine)))
    weight = np.sqrt(births / np.maximum(np.bincount(group, minlength=len(births)), 1))[group]
    if not weight.any():
        return mine
    weight = np.minimum(weight, MOST_TIMES * weight.mean())
    size = int(weight.sum() ** 2 / (weight**2).sum())
    total = np.cumsum(weight)
    return np.asarray(mine[np.searchsorted(total, (np.arange(size) + 0.5) * total[-1] / size)], np.int64)
