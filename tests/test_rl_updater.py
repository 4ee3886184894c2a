"""The learner in small worlds of which the truth is known: with shedding, with drift, merged, saved, at the edges."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rl
import rl.updater
from history.vectors import Feature, Place, Scheme
from rl.drift import Alarm
from rl.model import fit_model
from rl.records import Events, Lineages
from rl.records import Tests as Rows
from rl.residual import residual
from rl.updater import Updater
from rl.values import solve
from tests.cases import examples

WINDOW = 6400
TWO = Feature("x", "int", edges=())
SCHEME = Scheme((Place("start", 0), Place("a", 0), Place("a b", 0, (TWO,)), Place("a b c", 0)), WINDOW)
CHART = rl.Chart(
    SCHEME,
    source=np.array([1, 2]),
    target=np.array([2, 3]),
    letter=np.array([0, 1]),
    leaves=np.array([False, False]),
    ends=np.array([False, False, False, True]),
    stays=np.array([True, True, True, False]),
    letters=("B", "C"),
)
RATE, SHARE = 0.005, 0.2
"""Events of a key per tick, and how many of them are C: 6.4 in a window."""
NO_TESTS = Rows(*np.zeros((2, 0), np.int64), *np.zeros((4, 0)), np.zeros(0, np.int64))


def late_bloom(since, group):
    """Chance that a C passes: low at first, high after a quarter of the window."""
    return np.where(since > WINDOW // 4, 0.6, 0.05) * np.where(group == 1, 1.0, 0.5)


def at_all_times(chance, since, group):
    """The same chance for all."""
    return chance + 0.0 * since


def changed(since, group):
    """Much more passes."""
    return 0.4 + 0.0 * since


def constant_tenth(since, group):
    """A tenth for all."""
    return 0.1 + 0.0 * since


def constant(since, group):
    """The same at all times."""
    return np.where(group == 1, 0.3, 0.1) + 0.0 * since


def world(seed, runs, passes):
    """Runs that wait for a C, each of a key of its own, born with any part of the window left."""
    dice = np.random.default_rng(seed)
    left = dice.uniform(0, WINDOW, runs)
    run = np.repeat(np.arange(runs), dice.poisson(RATE * SHARE * left))
    since = np.ceil(dice.random(len(run)) * left[run]).astype(np.int64)
    order = np.lexsort((since, run))
    run, since = run[order], since[order]
    group = run % 2
    ones = np.ones(len(run))
    vertex = SCHEME.encode(2, group, np.maximum(left[run] - since, 0), since)
    passed = ones * (dice.random(len(run)) < passes(since, group))
    none = np.full(len(run), -1)
    return run, Rows(none * 0 + 1, vertex, ones * RATE, ones, ones, passed, none)


def picked(rows, which):
    """Some rows of all columns."""
    columns = [getattr(rows, name) for name in Rows.__dataclass_fields__]
    return Rows(*(column if column is None else column[which] for column in columns))


def spread(rows, until):
    """The same rows, one after the other in the quarter of a window before a tick."""
    return replace(rows, tick=until - 1599 + np.arange(len(rows.step)) * 1600 // max(len(rows.step), 1))


def events(tick, number=10_000.0, c_share=SHARE):
    return Events(tick, np.array([0.3, c_share]) * number, number)


def taught(rows, **options):
    learner = Updater(CHART, **options)
    learner.observe(events(1000), rows, Lineages.none())
    return learner


def true_gain(passes, points=24):
    """Match points of each vertex of the place: means over a fine grid of the times that can occur, NaN if none."""
    found = np.full(SCHEME.vertices, np.nan)
    at = (np.arange(512) + 0.5) / 512 * WINDOW
    low, high = int(SCHEME.first[2]), int(SCHEME.first[3])
    for vertex in range(low, high):
        words = SCHEME.describe(vertex)
        group = (vertex - low) // SCHEME.cells
        total = np.concatenate([[0.0], np.cumsum(passes(at, group)) * RATE * SHARE * WINDOW / 512])
        (few, most), (young, old) = words["remaining"], words["since"]
        young = young if old else 0
        remaining, since = np.meshgrid(np.linspace(few, most, points), np.linspace(young, max(old, young), points))
        can = since + remaining <= WINDOW
        if can.any():
            ends = [
                np.interp(when, np.linspace(0, WINDOW, 513), total) for when in (since[can], (since + remaining)[can])
            ]
            found[vertex] = np.mean(ends[1] - ends[0])
    return found


def error(gain, passes):
    """Mean error of the gain over all vertices that can occur, as a share of its mean."""
    truth = true_gain(passes)
    known = ~np.isnan(truth)
    return np.abs(gain - truth)[known].mean() / truth[known].mean()


# --- the truth is found -------------------------------------------------------------------------------------


def test_the_model_is_enough_where_it_is_true():
    learner = taught(world(1, 20_000, constant)[1])
    model = fit_model(CHART, learner.statistics)
    assert error(solve(CHART, model.hazards(CHART)).gain, constant) < 0.04
    assert error(learner.values().gain, constant) < 0.06


def test_the_residual_finds_what_the_model_misses():
    errors = []
    for runs in (200, 2000, 40_000):
        learner = taught(world(2, runs, late_bloom)[1])
        errors.append(error(learner.values().gain, late_bloom))
        model = fit_model(CHART, learner.statistics)
        plain = solve(CHART, model.hazards(CHART))
        assert error(plain.gain, late_bloom) > 0.25
        rest = residual(CHART, learner.statistics, model)
        np.testing.assert_allclose(plain.gain + rest.gain, learner.values().gain)
    assert errors[2] < 0.06
    assert errors[2] < errors[1] / 2 < errors[0] / 3


def test_chances_come_true():
    """Of runs of a second world, by their vertex at birth."""
    learner = taught(world(3, 20_000, late_bloom)[1])
    runs = 20_000
    run, rows = world(4, runs, late_bloom)
    left = np.random.default_rng(4).uniform(0, WINDOW, runs)
    vertex = SCHEME.encode(2, np.arange(runs) % 2, left, 0)
    points = np.bincount(run[rows.passed > 0], minlength=runs)
    learner.values()
    learner.observe(events(2000), NO_TESTS, Lineages(np.full(runs, 1500), vertex, points, np.ones(runs)))
    foretold, reached, weight = learner.calibration.reliability()
    enough = weight > 500
    assert enough.sum() >= 5
    np.testing.assert_allclose(foretold[enough], reached[enough], atol=0.04)
    assert learner.calibration.brier < 0.9 * (points > 0).mean() * (points == 0).mean()


# --- what is shed says nothing ------------------------------------------------------------------------------


def shed(seed, chance):
    """Rows of a world of which runs are shed at their vertex, by coins; and those that are lost by it."""
    run, rows = world(seed, 30_000, late_bloom)
    late = rows.vertex % 4
    coin = np.random.default_rng(seed + 1).random(len(run)) < chance[late]
    before = np.cumsum(coin) - coin
    first = np.r_[True, np.diff(run) != 0]
    lives = before == np.maximum.accumulate(np.where(first, before, 0))
    return rows, lives


@pytest.mark.parametrize("chance", [[0.0, 0.5, 0.2, 0.2], [0.0, 0.1, 0.6, 0.3]])
def test_shedding_leaves_values_as_they_are(chance):
    rows, lives = shed(5, np.array(chance))
    assert 0.2 < lives.mean() < 0.8

    def assert_unbiased(seen):
        values = taught(seen).values()
        assert error(values.gain, late_bloom) < 0.08

    assert_unbiased(picked(rows, lives))
    failed = Rows(rows.step, rows.vertex, rows.rate, rows.seen, rows.tested * lives, rows.passed * lives, rows.child)
    with pytest.raises(AssertionError):
        assert_unbiased(failed)  # a shed run is not a failed one


def test_rows_that_are_looked_at_by_chance_stand_for_all():
    """A coin of one in five per event, and weights of 5: the same values, from a fifth of the rows."""
    rows = world(6, 60_000, constant)[1]
    looked = picked(rows, np.random.default_rng(7).random(len(rows.step)) < 0.2)
    heavy = Rows(
        looked.step, looked.vertex, looked.rate, looked.seen * 5, looked.tested * 5, looked.passed * 5, looked.child
    )
    one, other = taught(looked).values(), taught(heavy).values()
    np.testing.assert_allclose(one.gain, other.gain)  # only what was really looked at is evidence
    assert error(other.gain, constant) < 0.06


@pytest.mark.parametrize("passes", [constant, late_bloom])
def test_passed_tests_may_be_looked_at_more_than_others(passes):
    """One of ten tests, and four of ten that passed: of three quarters of those nothing else is seen."""
    rows = world(8, 120_000, passes)[1]
    has_passed = rows.passed > 0
    coin = np.random.default_rng(9).random(len(rows.step))
    is_seen, is_hit = coin < 0.1, has_passed & (coin < 0.4)
    only = has_passed[is_seen | is_hit] & ~is_seen[is_seen | is_hit]
    some = picked(rows, is_seen | is_hit)

    def assert_unbiased(seen, passed):
        told = Rows(some.step, some.vertex, some.rate, seen, seen, passed, some.child)
        assert error(taught(told).values().gain, passes) < 0.08

    assert_unbiased(10.0 * ~only, 2.5 * some.passed)
    with pytest.raises(AssertionError):
        assert_unbiased(10.0 * ~only, 10.0 * some.passed)  # each stands for as many as were passed over for it
    with pytest.raises(AssertionError):
        assert_unbiased(np.where(only, 2.5, 10.0), 2.5 * some.passed)  # those are no further tests


# --- drift --------------------------------------------------------------------------------------------------


def stream(learner, seed, chances, rows=200):
    """One observation for each chance, a quarter of a window apart."""
    dice = np.random.default_rng(seed)
    for number, chance in enumerate(chances):
        sample = world(int(dice.integers(2**32)), rows // 2, partial(at_all_times, chance))[1]
        learner.observe(events(1600 * number), spread(sample, 1600 * number), Lineages.none())
        learner.settle()
    return learner


def test_a_steady_stream_gives_no_alarm():
    for seed in range(5):
        assert stream(Updater(CHART), seed, [0.1] * 80).alarms == []


def test_a_change_is_noticed_and_learned_sooner():
    chances = [0.1] * 60 + [0.4] * 12
    frozen = stream(Updater(CHART, delta=1e-300), 9, chances)
    learner = stream(Updater(CHART), 9, chances)
    assert not frozen.alarms
    first = learner.alarms[0]
    assert first.place == 2
    assert first.what == "tests"
    assert 59 * 1600 < first.tick <= 66 * 1600
    truth = partial(at_all_times, 0.4)
    assert error(learner.values().gain, truth) < 0.5 * error(frozen.values().gain, truth)


def test_watching_notices_a_change_without_learning():
    """The same alarms as if it had learned from the tests before, while predictions stay."""
    learner = stream(Updater(CHART), 9, [0.1] * 60)
    model, dice = learner.model, np.random.default_rng(19)
    before = learner.statistics.seen.sum()
    for number in range(60, 72):
        rows = world(int(dice.integers(2**32)), 100, changed)[1]
        learner.observe(events(1600 * number), spread(rows, 1600 * number), Lineages.none())
        found = learner.watch()
        assert learner.watch() == []  # errors are looked at once
        if found:
            break
    assert learner.model is model
    assert [(alarm.place, alarm.what) for alarm in found] == [(2, "tests")] * len(found)
    assert learner.alarms == found
    assert number <= 66
    assert learner.statistics.seen.sum() < before / 5
    learner.values()
    assert (learner.model.selectivity[1, 2:4] > model.selectivity[1, 2:4]).all()


def test_values_are_worked_out_once(monkeypatch):
    """And not before they are needed: neither to settle, nor to branch and merge."""
    calls = []

    def counted(chart, hazards):
        calls.append(chart)
        return solve(chart, hazards)

    monkeypatch.setattr(rl.updater, "solve", counted)
    learner = stream(Updater(CHART), 3, [0.1] * 5)
    part = learner.branch()
    part.observe(events(9000), world(1, 50, constant)[1], Lineages.none())
    learner = learner.merge(part)
    learner.watch()
    assert not calls
    assert learner.values() is learner.values()
    fates = Lineages(np.full(2, 9000), np.full(2, SCHEME.first[2]), np.array([0, 3]), np.ones(2))
    for one in (learner, learner.branch(), learner.branch()):
        one.observe(events(9100), NO_TESTS, fates)  # needs chances: those there are
    assert len(calls) == 1
    learner.values()
    assert len(calls) == 2


def cohort(learner, seed, since=0, shift=0.4):
    """60 lots of fates of the cohort; after half of them more runs lead to a match point."""
    dice = np.random.default_rng(seed)
    vertex = np.full(40, SCHEME.encode(2, 0, WINDOW // 2, since))
    chance = learner.values().chance[vertex[0]]
    for number in range(60):
        reached = dice.random(40) < (chance if number < 30 else min(1.0, chance + shift))
        last = 9000 + 40 * number
        lineages = Lineages(np.arange(last - 39, last + 1), vertex, reached.astype(np.int64), np.ones(40))
        learner.observe(events(last), NO_TESTS, lineages)
    learner.settle()
    return learner.alarms


def test_the_cohort_gives_alarms_too():
    learner = stream(Updater(CHART), 10, [0.1] * 4)
    alarms = cohort(learner, 11)
    assert [(alarm.place, alarm.what) for alarm in alarms][:1] == [(2, "cohort")]
    assert alarms[0].tick >= 9000 + 40 * 30 - 39


def test_what_is_no_evidence_gives_no_alarm():
    assert cohort(stream(Updater(CHART), 10, [0.1] * 4), 11, shift=0.0) == []
    assert cohort(stream(Updater(CHART), 10, [0.1] * 4), 11, since=10) == []  # later visits share a birth's fate
    assert cohort(Updater(CHART), 11, shift=-0.7) == []  # nothing was foretold before the first row


def test_looking_at_more_passed_tests_is_no_drift():
    """From half way on each one that passed is seen five times more, as of those only: no error is taken of them."""
    learner, dice = stream(Updater(CHART), 20, [0.1] * 40), np.random.default_rng(21)
    for number in range(40, 80):
        rows = spread(world(int(dice.integers(2**32)), 100, constant_tenth)[1], 1600 * number)
        learner.observe(events(1600 * number), rows, Lineages.none())
        hits = picked(rows, np.repeat(np.flatnonzero(rows.passed > 0), 5))
        only = Rows(hits.step, hits.vertex, hits.rate, hits.seen * 0, hits.tested * 0, hits.passed / 6, hits.child)
        learner.observe(events(1600 * number, 0.0), only, Lineages.none())
        learner.watch()
    assert learner.alarms == []


def test_an_alarm_makes_what_comes_count_for_more():
    learner = stream(Updater(CHART, half_life=np.inf), 12, [0.1] * 60)
    before = learner.statistics.seen.sum()
    learner._pending["tests"].append((np.arange(3000), np.full(3000, 2), np.repeat([0.0, 0.7], 1500)))
    learner.settle()
    assert learner.alarms
    assert learner.statistics.seen.sum() == pytest.approx(before / 10)


# --- merging ------------------------------------------------------------------------------------------------


def part(seed, tick, rows, shift=0.0):
    """Records of some keys."""
    dice = np.random.default_rng(seed)
    sample = world(seed, rows, partial(at_all_times, 0.2 + shift))[1]
    fates = int(dice.integers(0, 30))
    lineages = Lineages(
        np.sort(tick - dice.integers(0, 100, fates)),
        SCHEME.encode(2, dice.integers(0, 2, fates), dice.integers(0, WINDOW, fates), 0),
        (dice.random(fates) < 0.3) * 2,
        dice.choice([1.0, 20.0], fates),
    )
    return events(tick, float(dice.integers(1, 1000)), dice.random() / 2), sample, lineages


def assert_same(one, other):
    one.values(), other.values()  # both settle
    assert one.observed == other.observed
    for name in ("gain", "cost", "chance"):
        np.testing.assert_allclose(getattr(one.values(), name), getattr(other.values(), name), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.calibration.reliability(), other.calibration.reliability(), rtol=1e-9)
    assert one.alarms == other.alarms
    for line, same in zip(one.calibration.curve(), other.calibration.curve(), strict=True):
        np.testing.assert_allclose(line, same, rtol=1e-9)


@examples(15)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0, 5, 300]), st.sampled_from([0.0, 0.5]))
def test_learners_of_different_keys_merge_into_one(seed, rounds, rows, shift):
    whole, merged = Updater(CHART), Updater(CHART)
    for number in range(rounds):
        parts = [merged.branch(), merged.branch()]
        for at in range(3):
            tick = 2000 * (3 * number + at)
            for which, one in enumerate(parts):
                records = part(seed + 100 * number + 10 * at + which, tick, rows, shift * (number > 0))
                one.observe(*records)
                whole.observe(*records)
        left, right = merged.merge(parts[0]).merge(parts[1]), merged.merge(parts[0].merge(parts[1]))
        assert_same(left, right)
        merged = left
        assert_same(merged, whole)


def test_merging_leaves_both_as_they_were():
    one, other = taught(world(1, 50, constant)[1]), taught(world(2, 50, constant)[1])
    before = one.values().gain.copy(), one.observed, one.statistics.seen.sum()
    one.merge(other).values()
    assert np.array_equal(one.values().gain, before[0])
    assert (one.observed, one.statistics.seen.sum()) == before[1:]


def test_saved_and_loaded_goes_on_as_if_nothing_had_been():
    learner = stream(Updater(CHART), 13, [0.1] * 20)
    learner.observe(*part(14, 33_000, 100))
    again = Updater.from_arrays(CHART, learner.to_arrays())
    records = part(15, 34_000, 100)
    learner.observe(*records)
    again.observe(*records)
    assert_same(again, learner)
    learner.alarms = [Alarm(5, 2, "tests"), Alarm(7, 1, "cohort")]
    assert Updater.from_arrays(CHART, learner.to_arrays()).alarms == learner.alarms
    other = Updater.from_arrays(CHART, {name: column.copy() for name, column in learner.to_arrays().items()})
    assert sorted(other.to_arrays()) == sorted(learner.to_arrays())
    for name, column in learner.to_arrays().items():
        assert np.array_equal(column, other.to_arrays()[name]), name


# --- the edges ----------------------------------------------------------------------------------------------


def assert_sound(values):
    for column in (values.gain, values.cost, values.chance):
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert (values.chance <= 1).all()
    assert (values.cost >= 0.05).all()
    assert (values.gain >= values.chance - 1e-9).all()


def test_before_anything_was_seen():
    values = Updater(CHART).values()
    assert_sound(values)
    assert values.gain[SCHEME.encode(2, 0, WINDOW, 0)] > values.gain[SCHEME.encode(1, 0, WINDOW, 0)] > 0


def test_an_empty_stream():
    learner = Updater(CHART)
    learner.observe(Events(0, np.zeros(2), 0.0), NO_TESTS, Lineages.none())
    assert_sound(learner.values())
    assert learner.observed == 0


def test_a_single_event():
    learner = Updater(CHART)
    learner.observe(Events(7, np.array([0.0, 1.0]), 1.0), picked(world(1, 50, constant)[1], [0]), Lineages.none())
    assert_sound(learner.values())
    assert learner.observed == 1


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_a_constant_stream(chance):
    learner = stream(Updater(CHART), 16, [chance] * 40)
    assert_sound(learner.values())
    assert learner.alarms == []
    wait = slice(int(SCHEME.first[2]), int(SCHEME.first[3]))
    truth = true_gain(partial(at_all_times, chance))[wait]
    np.testing.assert_allclose(learner.values().gain[wait][~np.isnan(truth)], truth[~np.isnan(truth)], atol=0.6)


def test_ten_million_events_at_large_ticks():
    learner, rows = Updater(CHART), world(17, 100, constant)[1]
    for number in range(100):
        tick = 1_700_000_000_000_000_000 + number * WINDOW
        fates = Lineages(np.full(2, tick), np.full(2, rows.vertex[0]), np.array([0, 3]), np.ones(2))
        learner.observe(events(tick, 1e5), rows, fates)
    assert_sound(learner.values())
    assert 8e5 < learner.statistics.total[0] < 1.3e6  # eight windows and what is left of those before
    assert learner.calibration.curve_weight.sum() == 200


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [1e6, 1e-12])
def test_long_gaps_and_odd_rates(rate):
    """10,000 half-lives between the parts of a stream, and keys with very many events or hardly any."""
    learner, rows = Updater(CHART, half_life=3.0), world(18, 40, constant)[1]
    rows = Rows(rows.step, rows.vertex, rows.rate * 0 + rate, rows.seen, rows.tested, rows.passed, rows.child)
    for number in range(1, 40):
        tick = 30_000 * (number // 4) + 400 * number
        fates = Lineages(np.full(2, tick), np.full(2, rows.vertex[0]), np.array([0, 3]), np.ones(2))
        learner.observe(events(tick), picked(rows, slice(number)) if number % 4 else NO_TESTS, fates)
        assert_sound(learner.values())
    learner.observe(events(10**9), NO_TESTS, Lineages.none())
    assert_sound(learner.values())


def test_names_of_the_package():
    assert {name for name in rl.__all__ if getattr(rl, name).__name__ == name} == set(rl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        rl.Nothing  # noqa: B018


def test_tests_that_say_when_they_were_tell_when_the_stream_changed():
    """All in one look: alarms carry the times of the tests, in whatever order these come; else that of the look."""
    dice = np.random.default_rng(8)
    learner, other = Updater(CHART), Updater(CHART)
    for one in (learner, other):
        one.observe(events(1000, 1000), world(1, 4000, constant_tenth)[1], Lineages.none())
        one.settle()
    rows = world(2, 8000, constant_tenth)[1]
    changed = np.arange(len(rows.step)) >= len(rows.step) // 2
    passed = np.where(changed, rows.seen * (dice.random(len(rows.step)) < 0.5), rows.passed)
    tick = 1001 + np.arange(len(rows.step))
    rows = replace(rows, passed=passed, child=np.full(len(rows.step), -1), tick=tick)
    order = dice.permutation(len(rows.step))
    last = int(tick[-1])
    learner.observe(events(last, 1000), picked(rows, order), Lineages.none())
    other.observe(events(last, 1000), replace(rows, tick=None), Lineages.none())
    first = min(alarm.tick for alarm in learner.watch())
    assert 0 <= first - tick[changed][0] < 1000
    assert all(alarm.tick == last for alarm in other.watch())
