"""How the runs of old groups fall into new ones, where it was found that others tell runs apart. Ours."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import SampledTests
from history.vectors import Scheme

PSEUDO = 1.0
"""Tests at the share of the whole place that are added to those of each old group."""


def group_shares(reader: SampleReader, tests: SampledTests, before: Scheme, after: Scheme) -> list[Floats]:
    """For each place, which share of the runs of an old group falls into each of the new ones.

    Parameters
    ----------
    reader : SampleReader
    tests : SampledTests
        Tests that were kept: of what their runs and children remembered, both groups are known.
    before, after : Scheme

    Returns
    -------
    list of float64 arrays, shape (groups before, groups after)
        Rows add up to 1. An old group that no test was seen of has the shares of its place.

    Complexity: O(tests · features).
    """
    target = reader.target(tests)
    passed = np.flatnonzero(tests.passed > 0)
    sides = [
        (tests.source, tests.key, tests.values),
        (target[passed], tests.key[passed], tests.children[:, passed]),
    ]
    shares = []
    for number, (old, new) in enumerate(zip(before.places, after.places, strict=True)):
        if old == new:
            shares.append(np.eye(old.groups))
            continue
        seen = np.zeros((old.groups, new.groups))
        for at, key, values in sides:
            here = np.flatnonzero(at == number)
            np.add.at(seen, tuple(reader.group(key, values, place, here) for place in (old, new)), 1.0)
        shares.append(_shrunk(seen))
    return shares


def _shrunk(seen: Floats) -> Floats:
    """Shares of some numbers of tests, shrunk to those of all old groups together."""
    everything = seen.sum(axis=0) + 1 / seen.shape[1]
    few = seen + PSEUDO * everything / everything.sum()
    return np.asarray(few / few.sum(axis=1, keepdims=True))
