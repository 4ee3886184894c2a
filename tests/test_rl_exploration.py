"""The cohort: its coins are fair, its estimates unbiased, and parts of it add up to the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.bundles import Bundles
from rl.exploration import CohortCounts, in_cohort
from rl.records import Lineages

VERTICES = 5


def lineages(rows: list[tuple[int, int, int, float]]) -> Lineages:
    """Of rows (tick, vertex, points, weight)."""
    tick, vertex, points, weight = np.array(rows).reshape(-1, 4).T
    return Lineages(tick.astype(np.int64), vertex.astype(np.int64), points.astype(np.int64), weight.astype(float))


# --- coins ------------------------------------------------------------------------------------------------------


def test_coins_are_fair_and_know_nothing_of_each_other():
    """Within 4 standard errors, for all keys of an epoch, all epochs of a key, and two epochs of one key at once."""
    key, epoch = np.arange(400), np.arange(500)[:, None]
    for chance in (0.05, 0.5):
        coins = in_cohort(key, epoch, chance, seed=3)
        error = (chance * (1 - chance)) ** 0.5
        assert abs(coins.mean() - chance) < 4 * error / coins.size**0.5
        for axis in (0, 1):
            assert np.abs(coins.mean(axis=axis) - chance).max() < 5 * error / coins.shape[axis] ** 0.5
        both = (coins[1:] & coins[:-1]).mean()
        assert abs(both - chance**2) < 4 * chance / coins.size**0.5
        other = in_cohort(key, epoch, chance, seed=4)
        assert abs((coins & other).mean() - chance**2) < 4 * chance / coins.size**0.5


def test_a_coin_is_the_same_wherever_it_is_asked_for():
    key, epoch = np.array([-7, 0, 3, 2**62]), np.arange(50)[:, None]
    coins = in_cohort(key, epoch, 0.3)
    for row, column in ((0, 0), (17, 2), (49, 3)):
        assert in_cohort(int(key[column]), int(epoch[row, 0]), 0.3) == coins[row, column]
    assert not (coins & ~in_cohort(key, epoch, 0.6)).any()
    assert not in_cohort(key, epoch, 0.0).any()
    assert in_cohort(key, epoch, 1.0).all()


# --- Horvitz and Thompson ---------------------------------------------------------------------------------------


def population(half_life: float) -> tuple[np.ndarray, np.ndarray, Lineages]:
    """Visits of 60 keys in 8 epochs: keys differ in how much they visit, where, and in what it leads to."""
    dice = np.random.default_rng(8)
    size = dice.integers(0, 12, (60, 8))
    key, epoch = (np.repeat(column, size.ravel()) for column in np.unravel_index(np.arange(480), (60, 8)))
    vertex = np.minimum(dice.integers(0, 3, len(key)) + key % 4, VERTICES - 1)
    points = dice.poisson(0.2 + (key % 7 == 0), len(key))
    return key, epoch, Lineages(epoch * 30 + dice.integers(0, 30, len(key)), vertex, points, np.ones(len(key)))


def test_estimates_are_unbiased_whatever_the_cohort():
    """The mean over 600 cohorts is within 4.5 standard errors of the truth; sums without weights are far off."""
    seeds, chance, half_life = 600, 0.1, 100.0
    key, epoch, every = population(half_life)
    latest = int(every.tick.max())
    faded = np.exp2((every.tick - latest) / half_life)
    columns = np.stack([faded, faded * (every.points > 0), faded * every.points])
    flat = np.arange(3)[:, None] * VERTICES + every.vertex
    truth = np.bincount(flat.ravel(), columns.ravel(), 3 * VERTICES).reshape(3, VERTICES)
    unit = key * 8 + epoch
    by_unit = np.zeros((3, VERTICES, 480))
    for number in range(3):
        np.add.at(by_unit[number], (every.vertex, unit), columns[number])
    error = np.sqrt((1 - chance) / chance * (by_unit**2).sum(axis=2) / seeds)
    estimates = []
    for seed in range(seeds):
        chosen = in_cohort(key, epoch, chance, seed)
        counts = CohortCounts(VERTICES, half_life)
        weight = np.full(chosen.sum(), 1 / chance)
        counts.add(Lineages(every.tick[chosen], every.vertex[chosen], every.points[chosen], weight))
        counts.forget(latest)
        estimates.append(counts.sums)
    mean = np.mean(estimates, axis=0)
    assert (truth > 0).all()
    assert (np.abs(mean - truth) < 4.5 * error).all()
    spread = np.std(estimates, axis=0) / (error * seeds**0.5)
    assert (np.abs(spread - 1) < 0.2).all()
    assert (np.abs(mean * chance - truth) > 20 * error).any()


# --- sums -------------------------------------------------------------------------------------------------------

rows = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, VERTICES - 1), st.integers(0, 3), st.sampled_from([1.0, 20.0])),
    max_size=12,
)
marks = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, VERTICES - 1)), max_size=12
)  # (tick, slot, vertex)


def counted(fates: list[tuple[int, int, int, float]], reached: list[tuple[int, int, int]], most: int) -> CohortCounts:
    counts = CohortCounts(VERTICES, 60.0, most)
    counts.add(lineages(fates))
    ends = sorted({mark[:2] for mark in reached}, reverse=True)  # not in the order of time
    tick, slot = (np.array([end[part] for end in ends], np.int64) for part in range(2))
    names = np.array([f"slot {number}" for number in slot.tolist()], np.str_)
    place = np.array([ends.index(mark[:2]) for mark in reached], np.int64)
    once = np.ones(len(ends), np.int64)
    counts.reach(Bundles(tick, tick, names, tick * 2, once), np.array([m[2] for m in reached], np.int64), place)
    return counts


def told(counts: CohortCounts) -> dict[int, set[tuple[int, str]]]:
    """What the maps say, by vertex."""
    names = list(zip(counts.bundles.first.tolist(), counts.bundles.slot.tolist(), strict=True))
    assert names == sorted(names)
    maps = counts.maps()
    assert all(len(bits) == len(names) for bits in maps.values())
    return {vertex: {names[bit] for bit in bits.search(1)} for vertex, bits in maps.items()}


@given(st.lists(st.tuples(rows, marks), min_size=3, max_size=3), st.booleans(), st.sampled_from([3, 1000]))
def test_merging_is_associative_and_the_same_as_one_that_saw_all(parts, backward, most):
    one, two, three = (counted(*part, most) for part in parts)
    merged = three.merge(one.merge(two)) if backward else one.merge(two).merge(three)
    fates = [row for part in parts for row in part[0]]
    latest = max((row[0] for row in fates), default=None)
    assert merged.tick == latest
    naive = np.zeros((3, VERTICES))
    for tick, vertex, points, weight in fates:
        naive[:, vertex] += weight * 0.5 ** ((latest - tick) / 60.0) * np.array([1, points > 0, points])
    assert np.allclose([merged.visits, merged.led, merged.points], naive, rtol=1e-12, atol=0)
    reached = {(tick, f"slot {slot}", vertex) for part in parts for tick, slot, vertex in part[1]}
    kept = sorted({end[:2] for end in reached})[-most:]
    assert (merged.bundles.points == 1).all()
    maps = told(merged)
    assert maps == {
        vertex: ends
        for vertex in range(VERTICES)
        if (ends := {(tick, slot) for tick, slot, at in reached if at == vertex and (tick, slot) in kept})
    }


@given(marks, marks, st.integers(0, 10))
def test_old_bundles_are_dropped_with_their_bits(before, after, tick):
    counts = counted([], before, 1000)
    counts.drop_before(tick)
    counts = counts.merge(counted([], after, 1000))
    left = [mark for mark in before if mark[0] >= tick] + after
    assert sorted(zip(counts.bundles.first.tolist(), counts.bundles.slot.tolist(), strict=True)) == sorted(
        {(mark[0], f"slot {mark[1]}") for mark in left}
    )
    assert told(counts) == {
        vertex: {(mark[0], f"slot {mark[1]}") for mark in left if mark[2] == vertex}
        for vertex in {mark[2] for mark in left}
    }


def test_sums_do_not_depend_on_batches_or_order():
    dice = np.random.default_rng(2)
    every = [(int(t), int(v), int(p), 4.0) for t, v, p in dice.integers(0, (900, VERTICES, 3), (200, 3))]
    whole, parts = CohortCounts(VERTICES, 50.0), CohortCounts(VERTICES, 50.0)
    whole.add(lineages(every))
    for low in range(0, 200, 7):
        parts.add(lineages(every[low : low + 7]))
        parts.add(Lineages.none())
    assert parts.tick == whole.tick
    assert np.allclose(parts.sums, whole.sums, rtol=1e-12, atol=0)


def test_sums_stay_finite_over_very_long_streams():
    """10 million visits, ticks up to 2**62: the sum of a steady stream of weights is bounded by its half-life."""
    counts = CohortCounts(1, half_life=100.0)
    batch = np.full(10_000, 0)
    for number in range(1000):
        counts.add(Lineages(batch + number, batch, batch + 1, np.full(10_000, 20.0)))
    assert counts.visits[0] == pytest.approx(200_000 * (1 - 0.5**10) / (1 - 0.5**0.01), rel=1e-9)
    counts.add(Lineages(np.array([2**62]), np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1)))
    assert (counts.visits[0], counts.led[0]) == (1.0, 0.0)


def test_cohorts_that_differ_are_not_merged():
    with pytest.raises(ValueError, match="half_life"):
        CohortCounts(2, 10.0).merge(CohortCounts(2, 20.0))
    nothing = CohortCounts(2, 10.0).merge(CohortCounts(2, 10.0))
    assert (nothing.tick, nothing.sums.sum(), nothing.maps()) == (None, 0.0, {})
