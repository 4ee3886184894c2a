"""Proxies and regions against naive ones, and the bound on what proxies miss."""

from __future__ import annotations

import numpy as np
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st

from history.coverage.proxy import missed, proxies, regions
from history.coverage.sketch import FoldedMap, bitmap

BUNDLES = 10
SETS = st.lists(st.sets(st.integers(0, BUNDLES - 1), max_size=8), max_size=8)
THETA = st.sampled_from([0.25, 0.5, 2 / 3, 0.75, 1.0])
MEASURE = st.sampled_from(["containment", "jaccard"])


def exact(sets) -> list[bitarray]:
    return [bitmap(np.array(sorted(bundles), np.int64), BUNDLES) for bundles in sets]


def alike(one: set[int], other: set[int], measure: str) -> float:
    whole = one if measure == "containment" else one | other
    return len(one & other) / len(whole) if whole else 1.0


@given(SETS, THETA, MEASURE, st.randoms(use_true_random=False))
def test_proxies_are_those_of_the_rule(sets, theta, measure, dice):
    order = list(range(len(sets)))
    dice.shuffle(order)
    found = proxies(exact(sets), theta, order, measure).tolist()
    leaders: list[int] = []
    for item in order:
        fits = [leader for leader in leaders if alike(sets[item], sets[leader], measure) >= theta]
        likeness = [alike(sets[item], sets[leader], measure) for leader in fits]
        wanted = fits[likeness.index(max(likeness))] if fits else item
        assert found[item] == wanted
        if not fits:
            leaders.append(item)


@given(SETS, THETA, MEASURE)
def test_a_represented_item_misses_at_most_the_rest_of_theta(sets, theta, measure):
    maps = exact(sets)
    proxy = proxies(maps, theta, measure=measure)
    lost = missed(maps, proxy)
    assert np.all(lost <= 1 - theta + 1e-12)
    for item, leader in enumerate(proxy.tolist()):
        assert proxy[leader] == leader, "a proxy stands for itself"
        assert leader <= item, "and is ranked before those it stands for"
        own = len(sets[item])
        assert lost[item] == pytest.approx(len(sets[item] - sets[leader]) / own if own else 0.0)
    whole, kept = set().union(*sets), set().union(*(sets[leader] for leader in proxy.tolist()))
    bound = sum((1 - theta) * len(sets[item]) for item, leader in enumerate(proxy.tolist()) if leader != item)
    assert len(whole) - len(kept) <= bound + 1e-9


def test_jaccard_does_not_accept_a_proxy_with_many_more_bundles():
    maps = exact([set(range(8)), {0, 1}])
    assert proxies(maps, 0.9).tolist() == [0, 0]
    assert proxies(maps, 0.9, measure="jaccard").tolist() == [0, 1]


def test_the_most_alike_proxy_is_taken_and_the_first_of_equal_ones():
    maps = exact([{0, 1, 2, 3}, {2, 3, 4, 5}, {1, 2, 3, 4, 5}, {2, 3}])
    assert proxies(maps, 0.75).tolist() == [0, 1, 1, 0]
    assert proxies(maps, 0.75, order=[1, 0, 2, 3]).tolist() == [0, 1, 1, 1]


def test_proxies_by_sketches_are_those_by_maps_where_these_are_clear():
    blocks = [np.arange(1000 * (i // 10), 1000 * (i // 10) + 900 + i) for i in range(40)]
    folded = [FoldedMap.of(ids, bits=8192) for ids in blocks]
    assert proxies(folded, 0.8).tolist() == [10 * (i // 10) for i in range(40)]


def test_what_makes_no_sense_is_refused():
    maps = exact([{0}, {1}])
    for theta in (0, 1.01):
        with pytest.raises(ValueError, match="theta"):
            proxies(maps, theta)
    for order in ([0], [0, 0], [1, 2]):
        with pytest.raises(ValueError, match="order"):
            proxies(maps, 0.5, order)
    with pytest.raises(ValueError, match="window"):
        regions(np.array([1]), -1)
    assert proxies([], 0.5).tolist() == []


# --- regions --------------------------------------------------------------------------------------------------

POINTS = st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20)), max_size=12)


@given(POINTS, st.integers(0, 9))
def test_regions_are_the_ticks_that_lie_in_some_window(points, window):
    slots, ticks = (np.array([point[i] for point in points], np.int64) for i in (0, 1))
    where, first, last = (column.tolist() for column in regions(ticks, window, slots))
    wanted = {(slot, tick - back) for slot, tick in points for back in range(window + 1)}
    rows = list(zip(where, first, last, strict=True))
    covered = [(slot, tick) for slot, begin, end in rows for tick in range(begin, end + 1)]
    assert len(covered) == len(set(covered)), "disjoint"
    assert set(covered) == wanted
    assert rows == sorted(rows)
    for slot, tick in points:
        assert any(at == slot and begin <= tick - window and tick <= end for at, begin, end in rows), "in one piece"


def test_regions_of_different_partitions_stay_apart():
    assert [column.tolist() for column in regions(np.array([5, 5, 9]), 4, np.array([1, 0, 1]))] == [
        [0, 1],
        [1, 1],
        [5, 9],
    ]
    assert [column.tolist() for column in regions(np.array([5, 9, 14]), 4)] == [[0, 0], [1, 10], [9, 14]]
