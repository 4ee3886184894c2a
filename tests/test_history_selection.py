"""Selection against brute force: the guarantees hold, the lazy rule is the plain rule, and kept sets do not flicker."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st

from history.coverage.selection import Swap, above_price, coverage, lazy_greedy, own_count
from history.coverage.sketch import CountedMap, FoldedMap, HashedMap, ids_of
from tests.cases import examples

BUNDLES = 12
MAPS = st.lists(st.sets(st.integers(0, BUNDLES - 1), max_size=6), min_size=1, max_size=7)
HALF = math.ulp(1.0) * 64


def exact(sets) -> list[bitarray]:
    maps = []
    for bundles in sets:
        maps.append(bitarray(BUNDLES))
        for bundle in bundles:
            maps[-1][bundle] = 1
    return maps


def worth(sets, items, weights=None) -> float:
    covered = set().union(*(sets[item] for item in items))
    return len(covered) if weights is None else sum(weights[bundle] for bundle in covered)


def best(sets, budget, costs=None, weights=None) -> float:
    """Brute force over all sets of items within the budget."""
    costs = [1.0] * len(sets) if costs is None else costs
    every = (items for n in range(len(sets) + 1) for items in combinations(range(len(sets)), n))
    return max(worth(sets, items, weights) for items in every if sum(costs[item] for item in items) <= budget)


def plain_greedy(sets, budget, costs, weights) -> list[int]:
    """The greedy rule as one reads it."""
    chosen: list[int] = []
    while True:
        spent = sum(costs[item] for item in chosen)
        fits = [item for item in range(len(sets)) if item not in chosen and spent + costs[item] <= budget]
        rank = {
            item: (worth(sets, [*chosen, item], weights) - worth(sets, chosen, weights)) / costs[item] for item in fits
        }
        if not rank or max(rank.values()) <= 0:
            return chosen
        chosen.append(min(fits, key=lambda item: (-rank[item], item)))


# --- greedy coverage ------------------------------------------------------------------------------------------


@given(MAPS, st.integers(1, 4))
def test_greedy_covers_its_share_of_the_best(sets, budget):
    choice = lazy_greedy(exact(sets), budget=budget)
    assert choice.covered == worth(sets, choice.items)
    assert len(choice.items) == choice.cost <= budget
    assert choice.covered >= (1 - (1 - 1 / budget) ** budget) * best(sets, budget) - HALF


COSTS = st.lists(st.integers(1, 8), min_size=7, max_size=7)
WEIGHTS = st.lists(st.integers(0, 4), min_size=BUNDLES, max_size=BUNDLES)


@given(MAPS, COSTS, WEIGHTS, st.integers(1, 16))
def test_greedy_with_costs_and_weights_covers_its_share_of_the_best(sets, costs, weights, budget):
    costs = costs[: len(sets)]
    choice = lazy_greedy(exact(sets), np.array(weights, float), np.array(costs, float), budget)
    assert choice.covered == worth(sets, choice.items, weights)
    assert choice.cost == sum(costs[item] for item in choice.items) <= budget
    assert choice.covered >= (1 - 1 / math.e) / 2 * best(sets, budget, costs, weights)


@given(MAPS, COSTS, WEIGHTS, st.integers(1, 16))
def test_the_lazy_choice_is_the_plain_one_or_the_better_single_item(sets, costs, weights, budget):
    costs = [2.0 ** (cost % 3 - 1) for cost in costs[: len(sets)]]  # powers of two: ranks of equal items are equal
    choice = lazy_greedy(exact(sets), np.array(weights, float), np.array(costs), budget)
    plain = plain_greedy(sets, budget, costs, weights)
    if choice.items != tuple(plain):
        (single,) = choice.items
        assert worth(sets, [single], weights) > worth(sets, plain, weights)
        assert worth(sets, [single], weights) == max(
            worth(sets, [item], weights) for item in range(len(sets)) if costs[item] <= budget
        )


def test_a_single_large_item_is_not_lost_to_many_cheap_ones():
    maps = [bitarray("1000000000"), bitarray("0111111111")]
    assert lazy_greedy(maps, costs=np.array([1.0, 10.0]), budget=10.0).items == (1,)


def test_equal_items_are_taken_by_number_whatever_came_before():
    maps = [bitarray(text) for text in ("000011", "110000", "001100", "110000", "000011")]
    assert lazy_greedy(maps).items == (0, 1, 2)
    assert own_count(maps, budget=3).items == (0, 1, 2)
    assert lazy_greedy(maps[::-1]).items == (0, 1, 2)


def test_without_a_budget_all_that_adds_something_comes_in_order_of_what_it_adds():
    maps = [bitarray("110000"), bitarray("001111"), bitarray("000000"), bitarray("000110"), bitarray("100000")]
    choice = lazy_greedy(maps)
    assert (choice.items, choice.gains) == ((1, 0), (4, 2))
    assert lazy_greedy([]).items == own_count([]).items == ()
    assert lazy_greedy(maps, budget=0).items == ()


def test_what_makes_no_sense_is_refused():
    maps = [bitarray("10"), bitarray("01")]
    with pytest.raises(ValueError, match="cost > 0"):
        lazy_greedy(maps, costs=np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="cost > 0"):
        own_count(maps, costs=np.array([1.0]))
    with pytest.raises(ValueError, match="weight"):
        lazy_greedy(maps, weights=np.array([1.0]))
    with pytest.raises(ValueError, match="weight"):
        lazy_greedy(maps, weights=np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="one length"):
        lazy_greedy([bitarray("10"), bitarray("010")])
    with pytest.raises(ValueError, match="kept"):
        lazy_greedy(maps, kept=[2])
    folded = [FoldedMap.of(bundles, bits=8) for bundles in maps]
    with pytest.raises(ValueError, match="exact maps"):
        lazy_greedy(folded, weights=np.ones(2))
    with pytest.raises(ValueError, match="exact maps"):
        coverage([*maps, *folded], [0])


@given(MAPS, st.integers(1, 7))
def test_refilling_goes_on_with_the_rest_as_if_nothing_were_covered(sets, budget):
    left, wanted = list(range(len(sets))), []
    while len(wanted) < budget:
        chosen = [
            left[at] for at in lazy_greedy([exact(sets)[item] for item in left], budget=budget - len(wanted)).items
        ]
        if not chosen:
            break
        wanted += chosen
        left = [item for item in left if item not in chosen]
    choice = lazy_greedy(exact(sets), budget=budget, refill=True)
    assert choice.items == tuple(wanted)
    assert choice.covered == worth(sets, choice.items)


def test_sketches_are_refilled_too():
    folded = [FoldedMap.of(np.arange(50 * i, 50 * i + 50), bits=16) for i in range(6)]
    full = lazy_greedy(folded, budget=6)
    assert len(full.items) < 6, "all 16 bits are set before"
    assert sorted(lazy_greedy(folded, budget=6, refill=True).items) == list(range(6))


# --- against ranking by own count -----------------------------------------------------------------------------


def test_own_count_ranks_by_own_count():
    maps = [bitarray("1100"), bitarray("1110"), bitarray("0001"), bitarray("1111")]
    assert own_count(maps).items == (3, 1, 0, 2)
    assert own_count(maps, weights=np.array([1.0, 1, 1, 9])).items == (3, 2, 1, 0)
    assert own_count(maps, costs=np.array([1.0, 1, 1, 9]), budget=3).items == (1, 0, 2)
    assert own_count(maps, costs=np.array([1.0, 1, 0.25, 0.5])).items == (3, 2, 1, 0)


def test_own_count_misses_what_coverage_finds():
    """Nine items share the three most visited bundles, five others lead to two bundles each, of their own."""
    maps = [bitarray("111" + "0" * 10) for _ in range(9)]
    maps += [bitarray("000" + "0" * (2 * i) + "11" + "0" * (8 - 2 * i)) for i in range(5)]
    assert coverage(maps, own_count(maps, budget=6).items) == own_count(maps, budget=6).covered == 3
    assert lazy_greedy(maps, budget=6).covered == 13


# --- hysteresis -----------------------------------------------------------------------------------------------


@examples(200)
@given(MAPS, st.integers(1, 4), WEIGHTS, st.lists(st.integers(-3, 3), min_size=BUNDLES, max_size=BUNDLES))
def test_a_kept_set_does_not_flicker_while_gains_change_by_half_the_bonus(sets, budget, weights, noise):
    maps, before = exact(sets), np.array(weights, float) + 3
    after = before + noise
    kept = lazy_greedy(maps, before, budget=budget).items
    bonus = 2.0 * np.abs(noise).sum()  # no gain can change by more than the sum of all changes
    again = lazy_greedy(maps, after, budget=budget, kept=kept, bonus=bonus).items
    assert again[: len(kept)] == kept


@given(MAPS, st.integers(1, 4), st.permutations(range(7)), st.floats(0, 4))
def test_a_bonus_costs_no_more_than_itself_a_step(sets, budget, order, bonus):
    kept = [item for item in order if item < len(sets)]
    choice = lazy_greedy(exact(sets), budget=budget, kept=kept, bonus=bonus)
    share = 1 - (1 - 1 / budget) ** budget
    assert choice.covered >= share * (best(sets, budget) - budget * bonus) - HALF


def test_a_bonus_keeps_until_the_difference_is_larger():
    maps = [bitarray("11111100"), bitarray("11110000")]
    assert lazy_greedy(maps, budget=1, kept=[1], bonus=2).items == (1,)
    assert lazy_greedy(maps, budget=1, kept=[1], bonus=1.5).items == (0,)
    assert lazy_greedy(maps, budget=1, kept=[1]).items == (0,)
    costs = np.array([2.0, 1.0])
    assert lazy_greedy(maps, costs=costs, budget=2, kept=[1], bonus=2).items == (1,)
    assert lazy_greedy(maps, costs=costs, budget=2, kept=[1], bonus=1.5).items == (0,)


def test_a_large_item_that_is_kept_is_not_given_up_for_many_cheap_ones_by_less_than_the_bonus():
    maps = [bitarray(text) for text in ("1111100000", "0000011111", "0111111111", "1111111111")]
    costs = np.array([4.0, 4.0, 10.0, 10.0])
    assert lazy_greedy(maps, costs=costs, budget=10).items == (0, 1)
    assert lazy_greedy(maps, costs=costs, budget=10, kept=[2], bonus=2).items == (2,)
    assert lazy_greedy(maps, costs=costs, budget=10, kept=[2], bonus=0.5).items == (0, 1)
    assert lazy_greedy(maps, costs=costs, budget=10, kept=[0, 1], bonus=2).items == (0, 1)


def test_without_a_bonus_sets_flicker():
    """So the tests above can fail."""
    maps = [bitarray("110"), bitarray("011")]
    chosen = [lazy_greedy(maps, np.array(weights), budget=1).items for weights in ([1.1, 1, 1], [1, 1, 1.1])]
    assert chosen == [(0,), (1,)]


# --- one by one -----------------------------------------------------------------------------------------------


@examples(300)
@given(st.lists(st.sets(st.integers(0, BUNDLES - 1), max_size=6), min_size=1, max_size=9), st.integers(1, 3))
def test_swapping_covers_a_quarter_of_the_best_at_any_time(sets, most):
    swap, inside = Swap(most), []
    for item, bundles in enumerate(exact(sets)):
        before, least = swap.covered, min((swap.credit(kept) for kept in inside), default=0)
        adds = worth(sets, [*inside, item]) - worth(sets, inside)
        out = swap.offer(item, bundles)
        if len(inside) < most:
            assert out == (None if adds else item)
        elif out == item:
            assert adds < 2 * least or adds == 0
        else:
            assert adds >= 2 * least
            assert swap.covered >= before + least
        inside = [kept for kept in [*inside, item] if kept != out]
        assert swap.items == tuple(inside)
        assert len(inside) <= most
        assert swap.covered == worth(sets, inside) == sum(swap.credit(kept) for kept in inside)
        assert 4 * swap.covered >= best(sets[: item + 1], most)


def test_who_leaves_is_the_one_with_the_least_credit():
    swap = Swap(2)
    assert swap.offer(5, bitarray("1110000000")) is None
    assert swap.offer(3, bitarray("0110100000")) is None
    assert [swap.credit(5), swap.credit(3)] == [3, 1]
    assert swap.offer(9, bitarray("0000011000")) == 3
    assert swap.offer(1, bitarray("0000000111")) == 1, "it adds 3, but the least credit is 2"
    assert swap.items == (5, 9)


@pytest.mark.parametrize(("third", "owned"), [("0000011110", (4, 4)), ("1000011110", (4, 5)), ("1100011110", (3, 6))])
def test_credits_go_to_those_who_also_cover_the_bundle(third, owned):
    swap = Swap(2)
    swap.offer(0, bitarray("1100000000"))
    swap.offer(1, bitarray("0111100000"))
    assert (swap.credit(0), swap.credit(1)) == (2, 3)
    assert swap.offer(2, bitarray(third)) == 0
    assert (swap.credit(1), swap.credit(2)) == owned
    assert swap.covered == sum(owned)


def test_offers_that_make_no_sense_are_refused():
    swap = Swap(2)
    swap.offer(0, bitarray("10"))
    with pytest.raises(ValueError, match="kept already"):
        swap.offer(0, bitarray("01"))
    with pytest.raises(ValueError, match="length"):
        swap.offer(1, bitarray("010"))
    with pytest.raises(ValueError, match="room"):
        Swap(0)


# --- sketches -------------------------------------------------------------------------------------------------


def test_sketches_choose_nearly_as_well_as_exact_maps():
    dice = np.random.default_rng(5)
    often = dice.random(2000) < 0.1
    maps = [bitarray((often & (dice.random(2000) < 0.9)).tolist()) for _ in range(30)]
    maps += [bitarray((dice.random(2000) < share).tolist()) for share in dice.uniform(0.005, 0.05, 30)]
    whole = lazy_greedy(maps, budget=10).covered
    assert coverage(maps, own_count(maps, budget=10).items) < 0.5 * whole
    kinds = {
        "folded": [FoldedMap.of(bundles, bits=1024) for bundles in maps],
        "hashed": [HashedMap.of(ids_of(bundles), permutations=128) for bundles in maps],
        "counted": [CountedMap.of(bundles, precision=10) for bundles in maps],
    }
    for kind, sketches in kinds.items():
        found = coverage(maps, lazy_greedy(sketches, budget=10).items)
        assert found >= 0.9 * whole, kind


def test_greedy_over_the_bits_of_folded_maps_is_greedy_by_their_estimates():
    dice = np.random.default_rng(6)
    for seed in range(20):
        folded = [FoldedMap.of(dice.integers(0, 1000, size), bits=200, seed=seed) for size in dice.integers(1, 80, 30)]
        by_bits = lazy_greedy([sketch.bits for sketch in folded], budget=8).items
        covered, by_estimate = FoldedMap.of(np.array([], np.int64), bits=200, seed=seed), []
        for _ in range(8):
            left = [item for item in range(30) if item not in by_estimate]
            by_estimate.append(max(left, key=lambda item: (covered.union(folded[item]).count(), -item)))
            covered = covered.union(folded[by_estimate[-1]])
        assert by_bits == tuple(by_estimate)


@pytest.mark.slow
def test_bench_selection_prints_its_tables():
    command = [sys.executable, "-m", "experiments.shedding.coverage", "--quick"]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for title in ("what lazy greedy covers", "a tenth of the memory", "union of two maps", "proxies"):
        assert title in done.stdout


@examples(200)
@given(MAPS, st.data())
def test_what_adds_at_least_a_price_covers_half_of_the_best_for_the_same_cost(sets, data) -> None:
    costs = np.array(data.draw(st.lists(st.sampled_from((0.5, 1.0, 2.0)), min_size=len(sets), max_size=len(sets))))
    price = data.draw(st.sampled_from((0.5, 1.0, 2.0, 3.0)))
    kept = above_price(exact(sets), price, costs=costs)
    assert kept.covered == worth(sets, kept.items)
    for budget in (kept.cost, 2 * kept.cost, 3.0):
        if kept.cost > 0:
            assert kept.covered * (1 + budget / kept.cost) >= best(sets, budget, costs) - HALF
    for item in set(range(len(sets))) - set(kept.items):
        assert worth(sets, [*kept.items, item]) - kept.covered < price * costs[item]
