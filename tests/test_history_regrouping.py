"""A history that goes on: fading, vertices that are cut into other groups, and part of a trace."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history import Place, Scheme
from history.bundles import Bundles
from history.counting import Counts, count
from history.regrouping import faded, regrouped, since, whole
from tests.cases import examples
from tests.counted_histories import assert_same, learned
from tests.naive_history import SCHEME, WINDOW, random_trace

DENSE = ("visits", "reached", "led", "cost", "started", "completed")
BARE = Scheme(tuple(Place(place.state, place.errors) for place in SCHEME.places), WINDOW)
JOINED = [np.ones((place.groups, 1)) for place in SCHEME.places]
"""All groups of a place become one."""


def counted(seed: int, scheme: Scheme = SCHEME) -> Counts:
    return count(scheme, random_trace(seed), -1, 1000)


@examples(20)
@given(seed=st.integers(0, 2**32))
def test_groups_that_are_joined_have_counted_what_one_would_have(seed: int) -> None:
    """But for what runs share: the cover of a run is looked for group by group."""
    ours, theirs = regrouped(counted(seed), SCHEME, BARE, JOINED), counted(seed, BARE)
    pairs = ("covered", "cover", "shareable", "shared")
    assert_same(replace(ours, **{name: getattr(theirs, name) for name in pairs}), theirs)


@examples(20)
@given(seed=st.integers(0, 2**32))
def test_the_same_groups_change_nothing(seed: int) -> None:
    counts = counted(seed)
    kept = counts.moves > 0
    assert kept.all()
    assert_same(regrouped(counts, SCHEME, SCHEME, [np.eye(place.groups) for place in SCHEME.places]), counts)


def test_what_is_spread_adds_up_to_what_it_was() -> None:
    """From one group to several; a bit of a map goes to one of them, and a run that grows older stays in its group."""
    graph = learned([random_trace(seed, births=200, points=90, row=1000 * seed) for seed in range(4)], -1, 1000)
    bare = regrouped(graph.counts, SCHEME, BARE, JOINED)
    dice = np.random.default_rng(1)
    shares = [dice.dirichlet(np.ones(place.groups), 1) for place in SCHEME.places]
    finer = regrouped(bare, BARE, SCHEME, shares)
    for name in (*DENSE, "moves", "ends"):
        assert getattr(finer, name).sum() == pytest.approx(getattr(bare, name).sum(), rel=0.01), name
    by_group = finer.visits.reshape(SCHEME.groups, -1).sum(axis=1)[: SCHEME.places[0].groups]
    assert np.allclose(by_group / by_group.sum(), shares[0][0], atol=0.05)
    assert sum(bits.count() for bits in finer.maps.values()) == sum(bits.count() for bits in bare.maps.values())
    group = finer.source // SCHEME.cells, finer.target // SCHEME.cells
    place = SCHEME.place_of_group
    older = place[group[0]] == place[group[1]]
    assert older.any()
    assert (group[0] == group[1])[older].all()
    gain = [counts.reached.sum() / counts.visits.sum() for counts in (bare, finer)]
    assert gain[0] == pytest.approx(gain[1], rel=0.02)


@pytest.mark.parametrize("left", [0.0, 0.3, 1.0])
def test_what_fades_keeps_its_means_and_its_bundles(left: float) -> None:
    counts = learned([random_trace(seed, births=200, points=60, row=1000 * seed) for seed in range(4)], -1, 1000).counts
    half = faded(counts, SCHEME, np.full(SCHEME.groups, left))
    for name in DENSE:
        assert getattr(half, name).sum() == pytest.approx(left * getattr(counts, name).sum(), rel=0.05), name
    assert half.moves.sum() == pytest.approx(left * counts.moves.sum(), abs=1)
    assert half.maps == counts.maps
    assert len(half.bundles) == len(counts.bundles)
    assert (half.led <= half.visits).all()


def test_groups_fade_each_by_itself() -> None:
    counts = learned([random_trace(seed, births=200, row=1000 * seed) for seed in range(4)], -1, 1000).counts
    left = np.ones(SCHEME.groups)
    left[: SCHEME.places[0].groups] = 0
    made = faded(counts, SCHEME, left)
    gone = slice(0, SCHEME.places[0].groups * SCHEME.cells)
    assert made.visits[gone].sum() == 0
    assert (made.visits[gone.stop :] == counts.visits[gone.stop :]).all()
    assert (made.source >= gone.stop).all()


def test_bundles_of_before_are_let_go() -> None:
    counts = counted(3)
    tick = int(np.median(counts.bundles.last))
    made = since(counts, tick)
    kept = np.flatnonzero(counts.bundles.last >= tick)
    for column in fields(Bundles):
        assert getattr(made.bundles, column.name).tolist() == getattr(counts.bundles, column.name)[kept].tolist()
    for vertex, bits in counts.maps.items():
        mine = [bits[int(at)] for at in kept]
        assert (list(made.maps[vertex]) if vertex in made.maps else [0] * len(kept)) == mine
    assert made.ends.sum() == counts.ends[np.isin(counts.ends_bundle, kept)].sum()
    assert len(since(counts, 10**6).bundles) == 0
    assert since(counts, -(10**6)) is counts


def test_sums_are_rounded_so_that_their_total_stays() -> None:
    numbers = np.random.default_rng(0).exponential(0.3, 1000)
    assert abs(whole(numbers).sum() - numbers.sum()) <= 0.5
    assert np.abs(whole(numbers) - numbers).max() <= 1


@examples(20)
@given(seed=st.integers(0, 2**32))
def test_parts_of_a_trace_count_as_much_as_all_of_it(seed: int) -> None:
    """Lineages that are split by their start and partition, as those of a cohort are."""
    trace = random_trace(seed)
    lone = trace.parent >= 0
    lone[lone] = trace.birth[trace.parent[lone]] != trace.birth[np.flatnonzero(lone)]
    trace = replace(trace, parent=np.where(lone, -1, trace.parent))
    chosen = np.random.default_rng(seed).random(len(trace.place)) < 0.4
    parts = [count(SCHEME, trace.of_births(some), -1, 1000) for some in (chosen, ~chosen)]
    both = count(SCHEME, trace, -1, 1000)
    for name in DENSE:
        assert (getattr(parts[0], name) + getattr(parts[1], name) == getattr(both, name)).all(), name
    for name in ("moves", "passed", "ends"):
        assert getattr(parts[0], name).sum() + getattr(parts[1], name).sum() == getattr(both, name).sum()
    for vertex, bits in both.maps.items():
        assert parts[0].maps.get(vertex, bits ^ bits) | parts[1].maps.get(vertex, bits ^ bits) == bits
