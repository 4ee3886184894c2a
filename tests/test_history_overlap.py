"""Overlap is that of single runs: what a birth reaches and the run beside it reaches as well."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history import Feature, Graph, Place, Scheme, Trace
from history.counting import CANDIDATES, candidates, groups_of
from tests.cases import examples

WINDOW = 30
BY_X = (Feature("x", "float", edges=(0.0,)),)
SCHEME = Scheme((Place("a", 0, BY_X), Place("a b", 0), Place("a b", 1, BY_X)), WINDOW)
WIDE = Scheme(tuple(Place(name, 0, (Feature("x", "int", tuple(range(1, 34))),)) for name in "ab"), WINDOW)
"""So many groups that not all pairs are counted."""
Pairs = dict[tuple[int, int], tuple[int, int]]


def made(births: dict[str, list], reached: list[list[int]], points: list[tuple[int, int]], **more) -> Trace:
    """A trace of births that were visited once; numbers of match points, which are (slot, tick) in this order."""
    size, slot, tick = len(reached), np.array(births["slot"]), np.array(births["tick"])
    of_points = np.array(points).reshape(-1, 2)
    first = [sum((s, t) < (a, b) for s, t in points) for a, b in zip(slot, tick, strict=True)]
    masks = [sum(1 << n - f for n in some if n - f < 64) for some, f in zip(reached, first, strict=True)]
    columns = {
        "place": np.zeros(size, np.int64),
        "start": tick,
        "parent": np.full(size, -1),
        "x": np.zeros(size),
        **{name: np.array(column) for name, column in births.items()},
    }
    return Trace(
        place=columns["place"],
        tick=tick,
        start=columns["start"],
        slot=slot,
        columns=("x",),
        kinds=("float",),
        values=(columns["x"].astype(np.float64),),
        key=np.full(size, -1),
        texts=(),
        birth=more.get("birth", np.arange(size)),
        remaining=columns["start"] + WINDOW - tick,
        since=np.zeros(size, np.int64),
        parent=columns["parent"],
        first_point=np.array(first, np.int64),
        mask=np.array(masks, np.uint64),
        cost=np.ones(size),
        point_row=np.arange(len(points)),
        point_tick=of_points[:, 1],
        point_slot=of_points[:, 0],
    )


def random_trace(seed: int, size: int = 40, groups: int = 2, points: int = 60) -> Trace:
    """Births in no order of time, made from each other, that reach match points of their slot within their window."""
    rng = np.random.default_rng(seed)
    slot, tick = rng.integers(0, 2, size), rng.integers(0, 80, size)
    start = tick - rng.integers(0, WINDOW // 2, size)
    parent = np.full(size, -1)
    for child in range(size):
        older = np.flatnonzero(
            (slot == slot[child]) & ((tick < tick[child]) | ((tick == tick[child]) & (np.arange(size) < child)))
        )
        if len(older) and rng.random() < 0.5:
            parent[child] = rng.choice(older)
    for child in np.argsort(tick, kind="stable"):
        if parent[child] >= 0:
            start[child] = start[parent[child]]
    of_points = sorted(zip(rng.integers(0, 2, points).tolist(), rng.integers(0, 110, points).tolist(), strict=True))
    chance = rng.choice([0.1, 0.9], size)
    reached = [
        [
            number
            for number, (of, when) in enumerate(of_points)
            if of == slot[birth] and tick[birth] <= when <= start[birth] + WINDOW and rng.random() < chance[birth]
        ]
        for birth in range(size)
    ]
    births = {
        "slot": slot,
        "tick": tick,
        "start": start,
        "parent": parent,
        "place": rng.integers(0, len(SCHEME.places), size),
    }
    if groups > 2:
        births["place"] = rng.integers(0, 2, size)
        births["x"] = rng.integers(0, groups, size)
    else:
        births["x"] = rng.normal(size=size)
    return made(births, reached, of_points)


def reached_by(trace: Trace, birth: int) -> set[int]:
    return {int(trace.first_point[birth]) + bit for bit in range(64) if int(trace.mask[birth]) >> bit & 1}


def naive_pairs(scheme: Scheme, trace: Trace, wanted: np.ndarray) -> Pairs:
    """What the births of each group share with their covers of each group; visit n is that of birth n."""
    found: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    number = (scheme.first_group[trace.place] + groups_of(scheme, trace)).tolist()
    when = [(tick, birth) for birth, tick in enumerate(trace.tick.tolist())]
    for birth, group in enumerate(number):
        ancestors, above = set(), int(trace.parent[birth])
        while above >= 0:
            ancestors.add(above)
            above = int(trace.parent[above])
        for other in range(scheme.groups):
            before = [
                c for c, of in enumerate(number)
                if of == other and trace.slot[c] == trace.slot[birth] and when[c] < when[birth]
            ]  # fmt: skip
            cover = max(before, key=lambda c: (trace.start[c], when[c]), default=None)
            if cover is None or cover in ancestors or not wanted[group, other]:
                continue
            end = trace.start[cover] + WINDOW
            if end < trace.tick[birth]:
                continue
            could = {
                p for p in reached_by(trace, birth) if trace.point_tick[p] <= end and p < trace.first_point[cover] + 64
            }
            both = could & reached_by(trace, cover)
            before_now = found[group, other]
            found[group, other] = before_now[0] + len(could), before_now[1] + len(both)
    return {pair: counted for pair, counted in found.items() if counted[0]}


def pairs(graph: Graph) -> Pairs:
    counts = graph.counts
    keys = zip(counts.covered.tolist(), counts.cover.tolist(), strict=True)
    return dict(zip(keys, zip(counts.shareable.tolist(), counts.shared.tolist(), strict=True), strict=True))


def observed(scheme: Scheme, *traces: Trace) -> Graph:
    graph = Graph(scheme)
    for trace in traces:
        graph.observe(trace)
    return graph


# --- counting -----------------------------------------------------------------------------------------------


@examples(60)
@given(seed=st.integers(0, 2**32), points=st.sampled_from([0, 10, 60, 400]))
def test_pairs_are_those_of_the_naive_double_loop(seed, points):
    trace = random_trace(seed, points=points)
    place = SCHEME.place_of_group
    assert pairs(observed(SCHEME, trace)) == naive_pairs(SCHEME, trace, place[:, None] <= place[None, :])


def test_the_random_traces_have_something_to_count():
    """Else the test above would say little."""
    found = pairs(observed(SCHEME, *(random_trace(seed, points=400) for seed in range(5))))
    assert len(found) > 12
    assert {0 < shared < could for could, shared in found.values()} == {True}


@pytest.mark.parametrize("seed", range(4))
def test_of_many_groups_those_are_counted_whose_maps_hold_most(seed):
    trace = random_trace(seed, size=150, groups=34)
    graph = observed(WIDE, trace)
    wanted = candidates(WIDE, graph.counts.maps)
    maps = {g: set(graph.group_map(g).search(1)) for g in range(WIDE.groups)}
    place = WIDE.place_of_group
    for group, own in maps.items():
        others = [o for o in maps if o != group and place[o] >= place[group] and own & maps[o]]
        others.sort(key=lambda o: (-len(own & maps[o]), o))
        assert set(np.flatnonzero(wanted[group])) == {group, *others[:CANDIDATES]}
    assert wanted.sum(axis=1).max() == 1 + CANDIDATES
    assert pairs(graph) == naive_pairs(WIDE, trace, wanted) != {}


@pytest.mark.parametrize(("scheme", "groups"), [(SCHEME, 2), (WIDE, 34)])
def test_traces_are_added_up_in_any_split_and_order(scheme, groups):
    traces = [random_trace(seed, size=150, groups=groups) for seed in range(3)]
    one, two, three = (observed(scheme, trace) for trace in traces)
    expected: dict[tuple[int, int], np.ndarray] = defaultdict(lambda: np.zeros(2, np.int64))
    for graph in (one, two, three):
        for pair, counted in pairs(graph).items():
            expected[pair] += counted
    sums = {pair: tuple(counted.tolist()) for pair, counted in sorted(expected.items())}
    for merged in (observed(scheme, *traces), one.merge(two).merge(three), three.merge(two.merge(one))):
        assert list(pairs(merged).items()) == list(sums.items())


def test_a_birth_whose_visit_is_missing_is_left_out():
    births = {"slot": [0, 0], "tick": [1, 2]}
    trace = made(births, [[0], [0]], [(0, 5)])
    assert pairs(observed(Scheme((Place("a", 0),), WINDOW), trace)) == {(0, 0): (1, 1)}
    alone = made(births, [[0], [0]], [(0, 5)], birth=np.array([1, 1]))
    assert pairs(observed(Scheme((Place("a", 0),), WINDOW), alone)) == {}


def test_a_run_is_not_covered_by_what_it_was_made_from():
    births = {"slot": [0] * 3, "tick": [1, 2, 3], "start": [1, 1, 1], "parent": [-1, 0, 1]}
    scheme = Scheme((Place("a", 0),), WINDOW)
    assert pairs(observed(scheme, made(births, [[0]] * 3, [(0, 5)]))) == {}
    births["parent"] = [-1, 0, 0]  # siblings
    assert pairs(observed(scheme, made(births, [[0]] * 3, [(0, 5)]))) == {(0, 0): (1, 1)}


# --- worlds -------------------------------------------------------------------------------------------------


def flights(kinds: int, tells: bool) -> Trace:
    """Each tick a run begins; it leads to the match points of its own kind, or where kinds tell nothing to all."""
    rng = np.random.default_rng(1)
    kind, goal = rng.integers(0, kinds, 400), rng.integers(0, kinds, 400)
    points = [(0, tick) for tick in range(400)]
    reached = [
        [n for n in range(tick, min(tick + WINDOW + 1, 400)) if not tells or goal[n] == kind[tick]]
        for tick in range(400)
    ]
    return made({"slot": [0] * 400, "tick": list(range(400)), "x": kind}, reached, points)


def shared(graph: Graph, group: int) -> float:
    """Share of its match points that a run of a group loses beside a later one of the same group."""
    shareable, both = pairs(graph)[group, group]
    return both / shareable


def test_runs_that_remember_different_things_do_not_cover_each_other():
    scheme = Scheme((Place("a", 0),), WINDOW)
    graph = observed(scheme, flights(10, tells=True))
    assert graph.containment([0])[0, 0] == 1  # the map of the group cannot tell
    assert shared(graph, 0) == pytest.approx(0.1, abs=0.03)


def test_runs_that_remember_nothing_cover_each_other():
    assert shared(observed(Scheme((Place("a", 0),), WINDOW), flights(10, tells=False)), 0) == 1


def test_groups_that_tell_what_runs_remember_cover_themselves_only():
    scheme = Scheme((Place("a", 0, (Feature("x", "int", (1, 2, 3)),)),), WINDOW)
    graph = observed(scheme, flights(4, tells=True))
    assert [shared(graph, group) for group in range(4)] == [1] * 4
    assert not any(both for (one, other), (_, both) in pairs(graph).items() if one != other)
    graph = observed(scheme, flights(4, tells=False))
    assert all(both == shareable for shareable, both in pairs(graph).values())
