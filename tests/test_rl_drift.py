"""Drift detection: changes are found, nothing else is; and whether chances come true."""

from __future__ import annotations

import numpy as np
import pytest

from rl import drift
from rl.drift import Alarm, Calibration, Detectors, excess


def feed(chance, truth, seed, per_tick=1, place=1):
    """Alarms about outcomes of which each is true by its own chance."""
    dice = np.random.default_rng(seed)
    tick = np.arange(len(truth)) // per_tick
    error = excess(np.broadcast_to(chance, len(truth)), dice.random(len(truth)) < truth)
    return Detectors().feed("tests", tick, np.full(len(truth), place), error)


@pytest.mark.parametrize(("before", "after"), [(0.1, 0.25), (0.25, 0.1), (0.05, 0.0), (0.9, 0.7), (0.02, 0.98)])
def test_a_change_is_found_soon(before, after):
    delays = []
    for seed in range(10):
        alarms = feed(before, np.repeat([before, after], [2000, 2000]), seed)
        first = next(alarm.tick for alarm in alarms if alarm.tick >= 2000)
        delays.append(first - 2000)
        assert {(alarm.place, alarm.what) for alarm in alarms} == {(1, "tests")}
    assert np.median(delays) < 1100


def test_nothing_is_found_where_nothing_changes():
    assert not [alarm for seed in range(20) for alarm in feed(0.1, np.full(2000, 0.1), seed)]
    assert not [alarm for seed in range(20) for alarm in feed(0.1, np.full(2000, 0.1), seed, per_tick=25)]


def test_a_model_that_gets_better_is_no_alarm():
    """From one chance for all to each its own: the squared error falls by a quarter, its excess does not."""
    dice = np.random.default_rng(5)
    squared, alarms = [], []
    for seed in range(10):
        truth = dice.choice([0.1, 0.7], 4000)
        alarms += feed(np.where(np.arange(4000) < 2000, 0.4, truth), truth, seed)
        squared.append(truth * (1 - truth))
    assert not alarms
    assert np.mean(squared) < 0.75 * 0.4 * 0.6


def test_groups_that_change_places_are_found():
    """The mean stays what it was, and so does the mean error; its square does not."""
    dice = np.random.default_rng(6)
    foretold = dice.choice([0.05, 0.6], 4000)
    truth = np.where(np.arange(4000) < 2000, foretold, 0.65 - foretold)
    alarms = feed(foretold, truth, 7)
    assert alarms
    assert 2000 < alarms[0].tick < 2300


def test_a_thousand_runs_of_one_event_are_no_change():
    """They pass or fail together: what is one observation must not count as a thousand."""
    dice = np.random.default_rng(8)
    same = np.repeat(dice.random(60) < 0.3, 1000)
    alarms = Detectors().feed(
        "tests", np.arange(60_000) // 1000, np.ones(60_000, np.int64), excess(np.full(60_000, 0.3), same)
    )
    every = Detectors().feed("tests", np.arange(60_000), np.ones(60_000, np.int64), excess(np.full(60_000, 0.3), same))
    assert not alarms
    assert every


def test_places_do_not_disturb_each_other_and_order_does_not_matter():
    dice = np.random.default_rng(9)
    tick = np.tile(np.arange(300), 20)
    place = dice.integers(0, 3, len(tick))
    truth = np.where((place == 2) & (tick > 150), 0.9, 0.2)
    error = excess(np.full(len(tick), 0.2), dice.random(len(tick)) < truth)
    alarms = Detectors().feed("cohort", tick, place, error)
    assert {alarm.place for alarm in alarms} == {2}
    assert alarms == sorted(alarms)
    order = dice.permutation(len(tick))
    assert Detectors().feed("cohort", tick[order], place[order], error[order]) == alarms
    alone = place == 2
    assert Detectors().feed("cohort", tick[alone], place[alone], error[alone]) == alarms


def test_what_is_taken_does_not_depend_on_who_saw_it():
    dice = np.random.default_rng(11)
    tick, place, error = dice.integers(0, 3, 500), dice.integers(0, 2, 500), dice.random(500)
    order = dice.permutation(500)
    means = list(drift._means(tick, place, error))
    assert means == list(drift._means(tick[order], place[order], error[order]))
    assert [mean[:2] for mean in means] == [(when, where) for when in range(3) for where in range(2)]
    for when, where, mean in means:
        assert mean == pytest.approx(error[(tick == when) & (place == where)].mean())


def test_detectors_remember_between_feeds():
    dice = np.random.default_rng(10)
    error = excess(np.full(4000, 0.1), dice.random(4000) < np.repeat([0.1, 0.3], 2000))
    tick, place = np.arange(4000), np.ones(4000, np.int64)
    whole, parts = Detectors(), Detectors()
    found = [parts.feed("tests", tick[at : at + 100], place[:100], error[at : at + 100]) for at in range(0, 4000, 100)]
    one_by_one = [alarm for alarms in found for alarm in alarms]
    assert one_by_one == whole.feed("tests", tick, place, error) != []


def test_no_errors_no_alarms():
    none = np.zeros(0, np.int64)
    assert Detectors().feed("tests", none, none, np.zeros(0)) == []
    assert Alarm(1, 2, "cohort") < Alarm(2, 1, "cohort")


# --- calibration --------------------------------------------------------------------------------------------


def filled(seed, lots=3, scale=1.0):
    dice, made, table = np.random.default_rng(seed), Calibration(), []
    for lot in range(lots):
        chance = dice.choice([0.0, 0.05, 0.31, 0.5, 0.99, 1.0], 200)
        reached, weight = dice.random(200) < chance * scale, dice.choice([1.0, 20.0], 200)
        made.add(100 * lot, chance, reached, weight)
        table += zip(chance, reached, weight, strict=True)
    return made, np.array(table)


def test_brier_and_reliability_are_weighted_means():
    made, (chance, reached, weight) = filled(1)[0], filled(1)[1].T
    assert made.brier == pytest.approx(np.average((chance - reached) ** 2, weights=weight))
    foretold, came, total = made.reliability()
    for tenth in range(10):
        here = np.minimum(np.floor(chance * 10), 9) == tenth
        assert total[tenth] == weight[here].sum()
        if here.any():
            assert foretold[tenth] == pytest.approx(np.average(chance[here], weights=weight[here]))
            assert came[tenth] == pytest.approx(np.average(reached[here], weights=weight[here]))
        else:
            assert np.isnan(foretold[tenth])
            assert np.isnan(came[tenth])
    ticks, brier = made.curve()
    assert ticks.tolist() == [0, 100, 200]
    assert brier[1] == pytest.approx(np.average((chance - reached)[200:400] ** 2, weights=weight[200:400]))


def test_calibrations_merge_and_are_saved():
    a, b, c = (filled(seed, seed)[0] for seed in (1, 2, 3))
    one, other = a.merge(b).merge(c), c.merge(a.merge(b))
    for name, column in one.to_arrays().items():
        np.testing.assert_allclose(column, other.to_arrays()[name])
    weights = [part.curve_weight.sum() for part in (a, b, c)]
    assert one.brier == pytest.approx(np.average([a.brier, b.brier, c.brier], weights=weights))
    assert one.curve()[0].tolist() == [0, 100, 200]
    again = Calibration.from_arrays(one.to_arrays())
    assert again.brier == one.brier
    assert np.array_equal(again.weight, one.weight)


def test_without_fates_nothing_is_known():
    made = Calibration()
    made.add(5, np.zeros(0), np.zeros(0, bool), np.zeros(0))
    assert np.isnan(made.brier)
    assert len(made.curve()[0]) == 0
