"""Which of the things that a run remembers tell what becomes of it: found out while the stream runs, from tests alone.

Where a history is fitted, whole outcomes are known (``history.fitting``). Here only next steps are: so the places
furthest on are looked at first, and a step is worth what the child's group at the next place was found to be worth.
Where a key has lost a letter no test says so, as there is no event to test runs with: keys are also told apart by
counts of events, which nothing sheds (``KeyLetters``).

Tests are drawn as if no run had been shed. Of runs that are shed there are hardly any tests. A feature that ranks runs
makes those that are tested alike in it, so that it seems to tell nothing; another one takes its place, and what it told
apart comes back. Shedding looks at nothing but the group of a run, and children are known before they are shed. So the
runs of each group that would have been born can be added up, from the start of the pattern on (``unshed_births``).
Ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Floats, Ints
from acep_approx.kernels.runs.sample import LEFT_OUT
from acep_approx.learning.sampling import SPARE_PACE, SampleReader
from acep_approx.learning.training_sample import SampledTests
from acep_approx.training.policies import depths
from acep_approx.training.trace import AHEAD, PACE_NAME
from history.fitting import BUCKETS, LEAST_BUCKETS, MOST_FEATURES, Column, fit_features
from history.trace import KEY
from history.vectors import CONTEXT, Feature, Place, Scheme
from rl.chart import Chart

# --- keys that lose a letter --------------------------------------------------------------------------------

LETTERS = "letters of key"
"""The column of whether keys lose what their runs wait for: 1, or 0."""
LOST = 1 / 8
"""A key loses what comes to it less than so many times as often as to all keys. Smaller differences are left alone:
told apart by powers of 2, one of the workloads of load shedding was found less of (docs/how-it-works/learning.md)."""


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
            column = partial(self.reader.column, runs.key, runs.children)
            columns: dict[str, Column] = {
                f.name: ("int", f.bucket(f.values(column), self.reader.texts)) for f in place.features
            }
            columns[LETTERS] = ("int", self.loses(number, runs.key))
            told = {feature.name: feature for feature in fit_features(columns, self.reader.texts, success)}
            if LETTERS in told:
                found = dict([*{**told, **found}.items()][:MOST_FEATURES])
        if LETTERS in found:
            bucket = found[LETTERS].bucket(self.loses(number, self._codes))
            group = np.unique(bucket, return_inverse=True)[1].tolist()
            texts = [self.reader.texts[code] for code in self._codes.tolist()]
            found[LETTERS] = Feature(KEY, "text", groups=dict(sorted(zip(texts, group, strict=True))))
        return tuple(found.values())

    def _comes(self, number: int, tests: SampledTests) -> Floats:
        return self._next[number][self.reader.buckets_of(tests.key)]

    def _group(self, runs: SampledTests, place: Place) -> Ints:
        return self.reader.group(runs.key, runs.children, place, np.arange(len(runs)))


# --- tests as if no run had been shed -----------------------------------------------------------------------

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


# --- features -----------------------------------------------------------------------------------------------

PSEUDO = 10.0
"""Tests, or runs, at the mean of the place that are added to those of each of its groups."""
MOST_ROWS = 20_000
"""Tests of one place that are looked at, the latest."""
GROUP_ROWS = 30
"""Tests of a group of a place on average, at least: of fewer, chance says more than the feature does."""


def select_features(reader: SampleReader, tests: SampledTests, before: Scheme, by_key: Floats | None = None) -> Scheme:
    """Vertices whose groups tell what becomes of runs.

    Parameters
    ----------
    reader : SampleReader
    tests : SampledTests
        Tests, in order of time.
    before : Scheme
        As it was found before, and runs were shed by: a place keeps a feature where there is room for it.
    by_key : float64 array, shape (buckets, letters), optional
        How often letters come among the events of a bucket of keys, as a multiple of how often they do among all.

    Returns
    -------
    Scheme
        Each place with up to 2 features, from at least 200 tests; see ``history.fitting.fit_features``. The fewer tests
        there are, the fewer buckets a feature has, so that two features leave 30 tests to a group, on average.

    Notes
    -----
    What is called success of a test is its share of a good one: whether it passed, times what the child was worth;
    where that leaves room for a feature, times how many events its key has as well. Tests are drawn as if no run had
    been shed, see ``unshed``. What a group is worth is the mean of success, times how often what its runs wait for
    comes to their keys. Where a key has lost a letter there is no test to say so: whether the key tells is also asked
    of the runs that were born. Rounds of a repetition say nothing. Left out are the pace where there is one partition,
    in which it is the same for all runs, how far a register is ahead of an event, and its context: of the current event
    they would say what comes of the test.
    Complexity: O(tests · columns · log rows).
    """
    remembered = reader.remembered
    steps = reader.chart(before)
    names = [*zip(remembered.columns, remembered.kinds, strict=True), (KEY, "text")]
    names = [(name, kind) for name, kind in names if kind != CONTEXT]
    has_keys = bool((tests.key >= 0).any())
    names = [(name, kind) for name, kind in names if not name.endswith(AHEAD) and (has_keys or name != PACE_NAME)]
    fitted = {number: Place(state, errors) for number, (state, errors) in enumerate(remembered.places)}
    worth: dict[int, Floats] = {}
    letters = KeyLetters(reader, steps, tests, by_key) if by_key is not None and has_keys else None
    rate, births = _rates(tests), unshed_births(reader, tests, before)
    for number in np.argsort(-depths(reader.tables.automaton), kind="stable").tolist():
        is_known = np.isin(steps.target[tests.step], [*worth]) | steps.ends[steps.target[tests.step]]
        mine = np.flatnonzero((tests.source == number) & (tests.outcome != LEFT_OUT) & is_known)[-MOST_ROWS:]
        mine = drawn(reader, tests, mine, before.places[number], births[number])
        state, errors = remembered.places[number]
        worth[number] = np.ones(fitted[number].groups)
        if not len(mine) or number == 0:
            continue
        some = tests[mine]
        success = _success(reader, some, steps.target, steps.ends, fitted, worth)
        columns = {name: (kind, reader.column(some.key, some.values, name)) for name, kind in names}
        if letters is not None:
            letters.wait(number, some, success)
            columns[LETTERS] = ("int", letters.loses(number, some.key))
        buckets = int(np.clip(np.sqrt(len(mine) / GROUP_ROWS), LEAST_BUCKETS, BUCKETS))  # of two features each
        found = fit_features(columns, reader.texts, success, buckets=buckets)
        if {KEY, LETTERS} <= {feature.name for feature in found}:  # both would be buckets of keys
            del columns[LETTERS]
            found = fit_features(columns, reader.texts, success, buckets=buckets)
        if len(found) < MOST_FEATURES:  # what a run waits for comes the sooner, the more events its key has
            by_rate = fit_features(columns, reader.texts, success * rate[mine], buckets=buckets)
            found = _filled(found, by_rate)
        known = before.places[number].features
        if letters is not None:
            runs = tests[np.flatnonzero((tests.passed > 0) & (reader.target(tests) == number))[-MOST_ROWS:]]
            others = tuple(feature for feature in known if feature.name != KEY)
            place = Place(state, errors, _filled(found, others))
            found = letters.separating(number, runs, place, partial(_mean_success, reader, some, success))
        later = {f.name for to in np.unique(steps.target[steps.source == number]) for f in fitted[int(to)].features}
        fitted[number] = Place(state, errors, _filled(_led_on(found, known, later), known))
        worth[number] = _mean_success(reader, some, success, fitted[number])
        if letters is not None:
            worth[number] *= letters.means(number, runs, fitted[number])
    return Scheme(tuple(fitted[number] for number in range(len(fitted))), before.window, cost_power=before.cost_power)


def bare_scheme(reader: SampleReader, window: int) -> Scheme:
    """Vertices without features."""
    return Scheme(tuple(Place(state, errors) for state, errors in reader.remembered.places), window)


def _filled(found: tuple[Feature, ...], others: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """Features, and others of other names where there is room for them."""
    names = {feature.name for feature in found}
    return (*found, *(feature for feature in others if feature.name not in names))[:MOST_FEATURES]


def _led_on(found: tuple[Feature, ...], known: tuple[Feature, ...], later: set[str]) -> tuple[Feature, ...]:
    """Features that were found, behind those of before which places ``later`` ask for as well.

    A place whose runs were shed by a feature early on seems to do without it. But what a run is worth is known by the
    groups that it comes to: were one of the places in between without the feature, those before it would not know
    what becomes of it, and would keep what it tells apart.
    """
    new = {feature.name: feature for feature in found}
    return _filled(tuple(new.get(f.name, f) for f in known if f.name in later), found)


def _success(
    reader: SampleReader,
    tests: SampledTests,
    target: Ints,
    ends: npt.NDArray[np.bool_],
    fitted: dict[int, Place],
    worth: dict[int, Floats],
) -> Floats:
    """What came of some tests of one place, as a share of a good one.

    That is what the child is worth, 1 where it is a match, 0 where there is none.
    """
    found = np.zeros(len(tests))
    to = target[tests.step]
    passed = tests.passed > 0
    for number in np.unique(to[passed]).tolist():
        here = np.flatnonzero(passed & (to == number))
        if ends[number]:
            found[here] = 1.0
        else:
            found[here] = worth[number][reader.group(tests.key, tests.children, fitted[number], here)]
    if not found.any():
        return found
    # as a share of the mean over what succeeds, 1 at most: shares of the best would all be near 0
    return np.asarray(np.minimum(found * (found.sum() / (found**2).sum()), 1.0), np.float64)


def _rates(tests: SampledTests) -> Floats:
    """How fast the key of each row is, as a share of the fastest; all are the same where they differ by chance only.

    The pace of a key is a count that fades: if events came at one rate it would vary by half of its mean.
    """
    if not len(tests):
        return tests.rate
    mean, spread = float(tests.rate.mean()), float(tests.rate.var())
    by_chance = mean / 2 * float(tests.rate.min()) / SPARE_PACE  # the lowest rate stands for the spare pace
    rate = mean + max(0.0, 1 - by_chance / max(spread, 1e-300)) * (tests.rate - mean)
    return np.minimum(rate / max(float(np.quantile(rate, 0.99)), 1e-300), 1.0)


def _mean_success(reader: SampleReader, tests: SampledTests, success: Floats, place: Place) -> Floats:
    group = reader.group(tests.key, tests.values, place, np.arange(len(tests)))
    total = np.bincount(group, tests.passed * success, place.groups)
    weight = np.bincount(group, tests.seen, place.groups)
    return np.asarray((total + PSEUDO * total.sum() / max(weight.sum(), 1.0)) / (weight + PSEUDO), np.float64)
