"""The history counts what a naive computation counts, in any split and order, and recovers known probabilities."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st

from history import Graph, HistoryError, Place, Scheme, Trace, fit_values
from history.bundles import Bundles, chain
from history.counting import Counts
from history.coverage.selection import lazy_greedy
from tests.cases import examples
from tests.counted_histories import assert_same, learned
from tests.naive_history import SCHEME, WINDOW, naive_bundles, naive_counts, random_trace

DENSE = ("visits", "reached", "led", "cost", "started", "completed")


def shown(counts: Counts) -> dict[str, object]:
    """Counts in the form of the naive ones."""
    edges = list(zip(counts.source.tolist(), counts.target.tolist(), strict=True))
    ends = zip(counts.ends_vertex.tolist(), counts.ends_bundle.tolist(), strict=True)
    found: dict[str, object] = {
        name: {int(at): int(getattr(counts, name)[at]) for at in np.flatnonzero(getattr(counts, name))}
        for name in DENSE
    }
    found["moves"] = dict(zip(edges, counts.moves.tolist(), strict=True))
    found["passed"] = {edge: n for edge, n in zip(edges, counts.passed.tolist(), strict=True) if n}
    found["ends"] = dict(zip(ends, counts.ends.tolist(), strict=True))
    found["maps"] = {at: set(bits.search(bitarray("1"))) for at, bits in counts.maps.items()}
    return found


# --- counts -------------------------------------------------------------------------------------------------


@examples(40)
@given(
    seed=st.integers(0, 2**32),
    gap=st.sampled_from([-1, 0, 3, WINDOW]),
    most=st.sampled_from([1, 4, 1000]),
    points=st.sampled_from([1, 12, 90]),
)
def test_one_trace_is_counted_as_the_naive_computation_counts(seed, gap, most, points):
    trace = random_trace(seed, points=points)
    assert shown(learned([trace], gap, most).counts) == naive_counts([trace], gap, most)


@examples(40)
@given(
    seed=st.integers(0, 2**32),
    ring=st.sampled_from([(-1, 1), (-1, 7), (-1, 1000), (0, 1000), (3, 1000), (WINDOW, 1000)]),
)
def test_traces_are_joined_as_if_they_were_one_in_any_order(seed, ring):
    traces = [random_trace(seed + n, row=n * 1000) for n in range(3)]
    one, two, three = (learned([trace], *ring) for trace in traces)
    expected = learned(traces, *ring)
    assert shown(expected.counts) == naive_counts(traces, *ring)
    for merged in (
        one.merge(two).merge(three),
        one.merge(two.merge(three)),
        three.merge(one).merge(two),
        Graph(SCHEME, *ring).merge(two).merge(three.merge(one)),
    ):
        assert_same(merged.counts, expected.counts)


def test_maps_are_the_same_however_many_are_made_at_once(monkeypatch):
    trace = random_trace(6, births=80, points=90)
    expected = learned([trace], -1, 50).counts.maps
    for size in (1, 100, 500):
        monkeypatch.setattr("history.counting.CHUNK", size)
        assert learned([trace], -1, 50).counts.maps == expected


def test_a_bundle_that_leaves_the_ring_is_cleared_from_all_maps():
    early, late = random_trace(1), random_trace(2, row=1000)
    late = replace(late, point_tick=late.point_tick + 1000)
    graph = learned([early, late], -1, 12)
    assert min(graph.counts.bundles.first) >= 1000
    assert {len(bits) for bits in graph.counts.maps.values()} == {12}
    alone = learned([late], -1, 12)
    assert graph.counts.maps == alone.counts.maps
    assert graph.counts.visits.sum() == early.birth.size + late.birth.size


def test_merging_changes_neither_graph():
    one, two = learned([random_trace(1)], -1, 5), learned([random_trace(2, row=1000)], -1, 5)
    before = shown(one.counts), shown(two.counts)
    one.merge(two)
    assert (shown(one.counts), shown(two.counts)) == before


@pytest.mark.parametrize("other", [Graph(Scheme((), WINDOW)), Graph(SCHEME, 0), Graph(SCHEME, -1, 3)])
def test_histories_of_different_kinds_are_not_joined(other):
    with pytest.raises(HistoryError) as caught:
        Graph(SCHEME).merge(other)
    assert caught.value.code == "ACEP-H007"


def test_an_empty_trace_adds_nothing():
    graph = learned([random_trace(3)], -1, 100)
    before = shown(graph.counts)
    none = random_trace(0, births=1, points=1)
    columns = {name: column[:0] for name, column in vars(none).items() if isinstance(column, np.ndarray)}
    graph.observe(replace(none, values=tuple(column[:0] for column in none.values), **columns))
    assert shown(graph.counts) == before


# --- bundles ------------------------------------------------------------------------------------------------


@examples(100)
@given(seed=st.integers(0, 2**32), gap=st.integers(-1, 12), most=st.integers(1, 30), parts=st.integers(1, 3))
def test_chains_of_chains_are_chains(seed, gap, most, parts):
    """Definition 3, however the points came together."""
    traces = [random_trace(seed + part, births=1, points=10, row=part * 1000) for part in range(parts)]
    found = Bundles()
    for trace in traces:
        single = Bundles(
            trace.point_tick,
            trace.point_tick,
            trace.slot_names(trace.point_slot),
            trace.point_row,
            np.ones(10, np.int64),
        )
        both = Bundles(*(np.concatenate([getattr(found, c.name), getattr(single, c.name)]) for c in fields(Bundles)))
        found, _ = chain(both, gap, 1000)
    kept, places = chain(found, gap, most)
    assert len(kept) == min(most, len(found))
    assert places.tolist() == [max(-1, n - max(0, len(found) - most)) for n in range(len(found))]
    expected = naive_bundles(traces, gap, most)
    sizes = np.bincount(list(expected.values()), minlength=len(kept))
    assert kept.points.tolist() == sizes.tolist()
    for number in range(len(kept)):
        members = [traces[t].point_tick[n] for (t, n), bundle in expected.items() if bundle == number]
        assert (kept.first[number], kept.last[number]) == (min(members), max(members))


@pytest.mark.parametrize("gap", [-1, 0, 5])
def test_a_point_that_is_there_twice_is_one_bundle(gap):
    points = Bundles(*(np.array(column) for column in ([5, 99, 5], [5, 99, 5], ["x"] * 3, [1, 2, 1], [1, 1, 1])))
    kept, places = chain(points, gap, 10)
    assert places.tolist() == [0, 1, 0]
    assert kept.points.tolist() == [2, 1]


def test_two_points_of_two_slots_are_two_bundles():
    points = Bundles(*(np.array(column) for column in ([5, 6], [5, 6], ["x", "y"], [1, 2], [1, 1])))
    assert len(chain(points, 100, 10)[0]) == 2


# --- groups -------------------------------------------------------------------------------------------------


def test_containment_is_the_share_of_common_bundles():
    graph = learned([random_trace(5, births=60, points=40)], -1, 1000)
    groups = list(range(SCHEME.groups))
    maps = []
    for group in groups:
        mine = range(group * SCHEME.cells, (group + 1) * SCHEME.cells)
        maps.append(set().union(*(set(graph.map(v).search(bitarray("1"))) for v in mine)))
    found = graph.containment(groups)
    for one in groups:
        for other in groups:
            expected = len(maps[one] & maps[other]) / len(maps[one]) if maps[one] else 0.0
            assert found[one, other] == pytest.approx(expected)
    assert found[found < 1].max() > 0
    assert graph.containment([]).shape == (0, 0)


# --- generated data with known probabilities ------------------------------------------------------------------

ADVANCE = (0.5, 0.3, 0.6)
"""Chance that a run at each of three places is taken further by the next event; after the third it is a match."""


def markov_trace(lineages: int, seed: int) -> Trace:
    """Runs that advance by a coin; run-steps: 3 at each place."""
    rng = np.random.default_rng(seed)
    depth = (rng.random((lineages, 3)) < ADVANCE).cumprod(axis=1).sum(axis=1)
    rows = [np.arange(lineages)[depth >= place] for place in range(3)]
    number = {(place, lineage): n for n, (place, lineage) in enumerate((p, x) for p in range(3) for x in rows[p])}
    lineage = np.concatenate(rows)
    place = np.repeat(np.arange(3), [len(row) for row in rows])
    parent = np.array([number.get((p - 1, x), -1) for p, x in zip(place, lineage, strict=True)])
    done = np.flatnonzero(depth == 3)
    births = len(place)
    point = np.searchsorted(done, lineage)
    return Trace(
        place=place,
        tick=lineage,
        start=lineage,
        slot=np.zeros(births, np.int64),
        columns=(),
        kinds=(),
        values=(),
        key=np.full(births, -1),
        texts=(),
        birth=np.arange(births),
        remaining=WINDOW - 10 * place,
        since=np.zeros(births, np.int64),
        parent=parent,
        first_point=point,
        mask=(depth[lineage] == 3).astype(np.uint64),
        cost=3.0 * (np.minimum(depth[lineage], 2) - place + 1),
        point_row=done,
        point_tick=done,
        point_slot=np.zeros(len(done), np.int64),
        end_visit=np.array([number[2, x] for x in done]),
        end_point=np.arange(len(done)),
    )


def markov_graph(lineages: int = 20_000) -> tuple[Graph, list[int]]:
    scheme = Scheme((Place("a", 0), Place("b", 0), Place("c", 0)), WINDOW)
    graph = Graph(scheme)
    graph.observe(markov_trace(lineages, seed=7))
    return graph, scheme.encode([0, 1, 2], [0, 0, 0], [WINDOW, WINDOW - 10, WINDOW - 20], [0, 0, 0]).tolist()


def test_transition_probabilities_are_recovered():
    graph, vertices = markov_graph()
    counts = graph.counts
    out = [*counts.moves, counts.completed[vertices[2]]]
    assert counts.source.tolist() == vertices[:2]
    assert counts.target.tolist() == vertices[1:]
    for moved, vertex, chance in zip(out, vertices, ADVANCE, strict=True):
        seen = counts.visits[vertex]
        assert abs(moved / seen - chance) < 4 * (chance * (1 - chance) / seen) ** 0.5


def test_values_are_the_expected_points_and_run_steps():
    graph, vertices = markov_graph()
    values = fit_values(graph)
    success = np.cumprod(ADVANCE[::-1])[::-1]
    np.testing.assert_allclose(values.gain[vertices], success, rtol=0.1)
    steps = [3 * (1 + 0.5 + 0.15), 3 * 1.3, 3]
    np.testing.assert_allclose(values.cost[vertices], steps, rtol=0.05)


def test_the_only_path_has_all_completions():
    graph, vertices = markov_graph(500)
    (path,) = graph.strongest_paths(5)
    assert list(path.vertices) == vertices
    assert path.share == pytest.approx(1)
    assert path.count == graph.counts.completed.sum()


# --- paths --------------------------------------------------------------------------------------------------


def all_paths(counts: Counts, least: float) -> dict[tuple[int, ...], float]:
    """Shares of all paths whose beginnings have at least some share, by walking all edges."""
    found: dict[tuple[int, ...], float] = {}
    total = counts.completed.sum()
    waiting = [((int(v),), counts.started[v] / total) for v in np.flatnonzero(counts.started)]
    while waiting:
        path, share = waiting.pop()
        at = path[-1]
        edges = [e for e in range(len(counts.source)) if counts.source[e] == at]
        out = counts.completed[at] + sum(counts.passed[e] for e in edges)
        if counts.completed[at]:
            found[path] = share * counts.completed[at] / out
        for edge in edges:
            onward = share * counts.passed[edge] / out
            if onward >= least:
                waiting.append(((*path, int(counts.target[edge])), onward))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_strongest_paths_are_the_strongest_of_all(seed):
    graph = learned([random_trace(seed, births=8)], -1, 100)
    found = graph.strongest_paths(12)
    every = all_paths(graph.counts, least=found[-1].share)
    expected = sorted(every.values(), reverse=True)[:12]
    np.testing.assert_allclose([path.share for path in found], expected)
    for path in found:
        assert every[path.vertices] == pytest.approx(path.share)
        assert path.count == pytest.approx(path.share * graph.counts.completed.sum())


def test_shares_of_all_paths_add_up_to_one():
    graph, _ = markov_graph(300)
    two = random_trace(1, births=3)
    two = replace(two, parent=np.minimum(two.parent, 2))  # lineages of a few visits: few paths
    other = learned([two], -1, 100)
    for one in (graph, other):
        assert sum(path.share for path in one.strongest_paths(100_000)) == pytest.approx(1)


def test_without_completions_there_are_no_paths():
    trace = random_trace(1)
    graph = learned([replace(trace, end_visit=trace.end_visit[:0], end_point=trace.end_point[:0])], -1, 10)
    assert graph.strongest_paths(3) == []
    assert graph.counts.moves.sum() > 0


# --- values -------------------------------------------------------------------------------------------------


def test_means_are_shrunk_level_by_level():
    graph = learned([random_trace(9, births=80)], -1, 100)
    counts, values = graph.counts, fit_values(graph)
    cost, visits = counts.cost, counts.visits

    def shrunk(chosen: list[int], mean: float) -> float:
        return (cost[chosen].sum() + 5 * mean) / (visits[chosen].sum() + 5)

    everything = list(range(SCHEME.vertices))
    for vertex in everything[::7]:
        group, cell = divmod(vertex, SCHEME.cells)
        place = SCHEME.place_of_group[group]
        of_place = [v for v in everything if SCHEME.place_of_group[v // SCHEME.cells] == place]
        of_part = [v for v in of_place if v % SCHEME.cells // 4 == cell // 4]
        of_group = [v for v in of_part if v // SCHEME.cells == group]
        mean = cost.sum() / visits.sum()
        for level in (of_place, of_part, of_group, [vertex]):
            mean = shrunk(level, mean)
        assert values.cost[vertex] == pytest.approx(max(mean, 0.05))


def test_gain_never_falls_with_what_remains_of_the_window():
    graph = learned([random_trace(11, births=200)], -1, 100)
    gain = fit_values(graph).gain.reshape(SCHEME.groups, 8, 4)
    assert (np.diff(gain, axis=1) >= 0).all()
    assert (np.diff(gain, axis=1) > 0).any()
    raw = graph.counts.reached / np.maximum(graph.counts.visits, 1)
    assert (np.diff(raw.reshape(gain.shape), axis=1) < 0).any()


def test_an_empty_history_is_worth_nothing():
    values = fit_values(Graph(SCHEME))
    assert not values.gain.any()
    assert (values.cost == 0.05).all()


def greedy_order(graph: Graph, place: int) -> list[int]:
    """The vertices of a place in the order of greedy coverage: each adds most bundles to those before it."""
    low, high = (int(graph.scheme.first_group[number]) * graph.scheme.cells for number in (place, place + 1))
    vertices = [vertex for vertex in graph.counts.maps if low <= vertex < high]
    chosen = lazy_greedy([graph.counts.maps[vertex] for vertex in vertices])
    return [vertices[item] for item in chosen.items]


def test_greedy_order_of_a_place_adds_most_first():
    graph = learned([random_trace(4, births=60, points=30)], -1, 100)
    vertices = range(SCHEME.cells * int(SCHEME.first_group[1]), SCHEME.cells * int(SCHEME.first_group[2]))
    covered: set[int] = set()
    maps = {v: set(graph.map(v).search(bitarray("1"))) for v in vertices}
    order = greedy_order(graph, 1)
    for vertex in order:
        gains = {v: len(bundles - covered) for v, bundles in maps.items()}
        assert gains[vertex] == max(gains.values()) > 0
        covered |= maps[vertex]
    assert covered == set().union(*maps.values())
