"""Keys told apart by whether what their runs wait for comes to them: as counts of events say, which nothing sheds.

Where a key has lost a letter no test says so, as there is no event to test runs with. Ours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import SampledTests
from history.fitting import MOST_FEATURES, Column, fit_features
from history.trace import KEY
from history.vectors import Feature, Place
from rl.chart import Chart

LETTERS = "letters of key"
"""The column of whether keys lose what their runs wait for: 1, or 0."""
LOST = 1 / 8
"""A key loses what comes to it less than so many times as often as to all keys. Smaller differences are left alone:
told apart by powers of 2, one of the workloads of load shedding was found less of (docs/how-it-works/learning.md)."""
PSEUDO = 10.0
"""Runs at the mean of the place that are added to those of each of its groups."""


class KeyLetters:
    """How often what runs wait for comes to their keys, place by place from the end on.

    Parameters
    ----------
    reader : SampleReader
    steps : Chart
    tests : SampledTests
        All keys are among theirs.
    by_key : float64 array, shape (buckets, letters)
        How often a letter comes among the events of a bucket of keys, as a multiple of how often it does among all.
    """

    def __init__(self, reader: SampleReader, steps: Chart, tests: SampledTests, by_key: Floats) -> None:
        self.reader = reader
        self._steps, self._by_key = steps, by_key
        self._codes = np.unique(tests.key[tests.key >= 0])
        self._next: dict[int, Floats] = {}
        self._ahead: dict[int, Floats] = {}

    def wait(self, place: int, tests: SampledTests, success: Floats) -> None:
        """Find out what the runs of a place wait for, by the success of their tests."""
        brought = np.bincount(tests.step, tests.passed * success, minlength=self._steps.steps)
        if not brought.any():
            brought = np.bincount(tests.step, minlength=self._steps.steps)
        comes = self._by_key[:, self._steps.letter] * (brought / brought.sum())
        later = [self._ahead.get(target, np.ones(len(comes))) for target in self._steps.target.tolist()]
        self._next[place] = comes.sum(axis=1)
        self._ahead[place] = (comes * np.transpose(later)).sum(axis=1)

    def loses(self, place: int, key: Ints) -> Floats:
        """Whether some keys lose the next event that runs wait for, or what it takes after it."""
        return np.where(self._ahead[place] < LOST, 1.0, 0.0)[self.reader.buckets_of(key)]

    def means(self, number: int, runs: SampledTests, place: Place) -> Floats:
        """How often the next event comes to the keys of each group of a place.

        ``runs`` are tests that made runs of the place.
        """
        group, comes = self._group(runs, place), self._comes(number, runs)
        mean = float(comes.mean()) if len(comes) else 1.0
        many = np.bincount(group, minlength=place.groups)
        return np.asarray((np.bincount(group, comes, place.groups) + PSEUDO * mean) / (many + PSEUDO), np.float64)

    def separating(
        self, number: int, runs: SampledTests, place: Place, worth: Callable[[Place], Floats]
    ) -> tuple[Feature, ...]:
        """The features of a place, with the keys that lose a letter if that tells which of its runs wait in vain.

        Parameters
        ----------
        number : int
        runs : SampledTests
            Tests that made runs of the place.
        place : Place
            With the features that tests tell of, at most two; those keys may take the place of one.
        worth : callable
            Gives the mean success of the tests of each group of a place.
        """
        found = {feature.name: feature for feature in place.features}
        if not {KEY, LETTERS} & found.keys() and len(runs):
            success = self._comes(number, runs) * worth(place)[self._group(runs, place)]
            success = np.minimum(success / max(float(np.quantile(success, 0.99)), 1e-300), 1.0)
            columns: dict[str, Column] = {f.name: ("int", self._bucket(runs, f)) for f in place.features}
            columns[LETTERS] = ("int", self.loses(number, runs.key))
            told = {feature.name: feature for feature in fit_features(columns, self.reader.texts, success)}
            if LETTERS in told:
                found = dict([*{**told, **found}.items()][:MOST_FEATURES])
        if LETTERS in found:
            found[LETTERS] = self._by_key_of(number, found[LETTERS])
        return tuple(found.values())

    def _comes(self, number: int, tests: SampledTests) -> Floats:
        """How often the next event comes to the keys of some tests."""
        return self._next[number][self.reader.buckets_of(tests.key)]

    def _group(self, runs: SampledTests, place: Place) -> Ints:
        """The groups of the runs that some tests made."""
        return self.reader.group(runs.key, runs.children, place, np.arange(len(runs)))

    def _bucket(self, runs: SampledTests, feature: Feature) -> Ints:
        """The bucket of a feature that each of the runs is in that some tests made."""
        values = feature.values(lambda name: self.reader.column(runs.key, runs.children, name))
        return feature.bucket(values, self.reader.texts)

    def _by_key_of(self, number: int, lost: Feature) -> Feature:
        """The feature that tells keys which lose a letter from the others."""
        group = np.unique(lost.bucket(self.loses(number, self._codes)), return_inverse=True)[1]
        texts = [self.reader.texts[code] for code in self._codes.tolist()]
        return Feature(KEY, "text", groups=dict(sorted(zip(texts, group.tolist(), strict=True))))
