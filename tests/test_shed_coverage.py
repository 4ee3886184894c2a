"""Runs are ranked by what they add to those that are kept: by runs counted side by side, and by match maps."""

from __future__ import annotations

import json
from copy import copy
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.cli.commands import train
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.training import training
from acep_approx.training.policies import (
    BY_MAPS,
    BY_RUNS,
    MEASURED,
    MOST_COVERS,
    POLICIES,
    covering,
    covers_by_match_maps,
    covers_by_runs,
    group_overlaps,
)
from acep_approx.training.training import MORE_OVERLAPS, OVERLAPS
from history import Feature, Graph, Place, Scheme
from history.coverage import covers_by_maps, groups
from tests.cases import examples

BANDS = (
    "PATTERN SEQ(A a, B b, C c) WHERE b.x - a.x < 12 AND b.x - a.x > 0 AND c.x - b.x < 12 AND c.x - b.x > 0 WITHIN 300"
)
"""Runs of one level of x lead to other match points than those of another."""


@cache
def query() -> Query:
    return compile_query(BANDS, engine="runs")


def stream(seed: int, events: int = 6000) -> pa.Table:
    rng = np.random.default_rng(seed)
    letter = np.array(list("ABC"))[rng.choice(3, events, p=[0.5, 0.4, 0.1])]
    return pa.table({"ts": np.arange(events), "type": letter, "x": rng.integers(0, 100, events)})


@cache
def trained() -> HistoryGraph:
    """Its groups are by features, whatever replays would say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "READINGS", (training.WITH_FEATURES,))
        return HistoryGraph(query()).fit(stream(1))


def found(graph: Graph, policy: str, overlap: float = MEASURED, share: float = 0.04) -> list[int]:
    """The match points that a policy finds with a share of the work."""
    automaton = query().plan.registers
    assert automaton is not None
    known = trained()
    allowance = Allowance(rate=share * known.steps_per_event_, price=known.prices_.price(share), reserve=20.0)
    shedding = Shedding(POLICIES[policy](automaton, graph, overlap), allowance)
    matcher = Matcher(query().plan, output="points", merge="equal,chain", shedding=FixedLoad(shedding))
    tables = [matcher.push(stream(2)), matcher.finish()]
    return pa.concat_tables(tables).column("end").to_pylist()


def with_maps(maps: dict[int, bitarray]) -> Graph:
    """The trained history with other match maps."""
    graph = trained().graph_
    other = Graph(graph.scheme, graph.gap, graph.most_bundles)
    other.counts = type(graph.counts)(**{**vars(graph.counts), "maps": maps})
    return other


def permuted(maps: dict[int, bitarray]) -> dict[int, bitarray]:
    """Each match map at the vertex of another one."""
    order = np.random.default_rng(3).permutation(list(maps))
    return {int(vertex): bits for vertex, bits in zip(order, maps.values(), strict=True)}


def test_match_maps_rank() -> None:
    """Without the maps, or with each at another vertex, other runs are kept, and fewer match points are found."""
    graph = trained().graph_
    assert any(place.groups > 1 for place in graph.scheme.places)
    mine = found(graph, "coverage")
    assert mine == found(graph, "history", BY_MAPS)
    for maps in ({}, permuted(graph.counts.maps)):
        assert found(with_maps(maps), "coverage") != mine
        assert found(with_maps(maps), "history", MEASURED) == found(graph, "history", MEASURED)


def test_what_runs_are_worth_is_worked_out_once_until_more_is_learned() -> None:
    """Covers of groups take longer than to match a short stream."""
    first = trained().worth("coverage")
    known = copy(trained())
    assert known.worth("coverage") is first
    assert known.worth("history") is not first
    known.partial_fit(stream(3, 2000))
    assert known.worth("coverage").gain.tolist() != first.gain.tolist()
    assert trained().worth("coverage") is first


def test_pairs_of_groups_rank() -> None:
    graph = trained().graph_
    mine = found(graph, "history", BY_RUNS)
    other = with_maps(graph.counts.maps)
    other.counts.shared = np.where(other.counts.covered == other.counts.cover, other.counts.shared, 0)
    assert found(other, "history", BY_RUNS) != mine


def test_a_reading_by_groups_is_tried_and_kept(tmp_path: Path) -> None:
    assert {BY_RUNS, BY_MAPS} < {*OVERLAPS, *MORE_OVERLAPS}
    known = copy(trained())
    for overlap in (BY_RUNS, BY_MAPS):
        known.overlap_ = overlap
        known.save(tmp_path / str(overlap))
        again = HistoryGraph.load(tmp_path / str(overlap), query())
        one, other = known.worth().by_group, again.worth().by_group
        assert one is not None
        assert other is not None
        assert one.share.tolist() == other.share.tolist()


# --- which groups cover which -----------------------------------------------------------------------------------

BUNDLES = 10
SETS = st.lists(st.frozensets(st.integers(0, BUNDLES - 1)), min_size=6, max_size=6)


def graph_of(sets: list[frozenset[int]]) -> Graph:
    """Two places of three groups each; the map of a group is split over two of its vertices."""
    by_x = Feature("x", "int", edges=(1.0,))
    graph = Graph(Scheme((Place("a", 0, (by_x,)), Place("b", 0, (by_x,))), 80))
    for group, bundles in enumerate(sets):
        for vertex, some in enumerate((sorted(bundles)[::2], sorted(bundles)[1::2])):
            if some:
                bits = bitarray(BUNDLES)
                bits[some] = 1
                graph.counts.maps[group * graph.scheme.cells + vertex] = bits
    graph.counts.bundles.first = np.arange(BUNDLES)
    return graph


@examples(200)
@given(SETS, st.integers(1, 6))
def test_covers_by_maps_are_containments_and_what_they_add(sets: list[frozenset[int]], most: int) -> None:
    """Against sets: shares, no place that does not cover, and never more together than the union holds."""
    graph, places = graph_of(sets), [[0, 1], [1]]
    found = covers_by_maps(graph, places, most)
    for group, mine in enumerate(sets):
        rows = range(found.first[group], found.first[group + 1])
        covers = found.cover[rows].tolist()
        assert covers[0] == group
        assert len(covers) == len(set(covers)) <= max(most, 1)
        before: set[int] = set()
        for row, cover in list(zip(rows, covers, strict=True))[1:]:
            assert cover // 3 in places[group // 3]
            assert found.share[row] == len(mine & sets[cover]) / len(mine) > 0
            more = len(mine & sets[cover] - before) / len(mine)
            assert found.more[row] in (more, 0.0)
            before |= sets[cover]
        union = set().union(*(sets[cover] for cover in covers[1:]))
        assert sum(found.more[rows]) == pytest.approx(len(mine & union) / max(len(mine), 1))


def test_maps_of_many_bundles_are_sketched_and_the_error_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sets = [frozenset(rng.choice(BUNDLES, 6, replace=False).tolist()) for _ in range(6)]
    graph = graph_of(sets)
    exact = covers_by_maps(graph, [[0, 1], [1]], 6)
    assert groups.sketch_error(graph) == 0
    monkeypatch.setattr(groups, "EXACT_BUNDLES", BUNDLES - 1)
    error = groups.sketch_error(graph)
    assert 0 < error < 0.05
    sketched = covers_by_maps(graph, [[0, 1], [1]], 6)
    assert not sketched.more.any()
    for group in range(6):
        rows = slice(*exact.first[group : group + 2])
        known = dict(zip(exact.cover[rows].tolist(), exact.share[rows].tolist(), strict=True))
        rows = slice(*sketched.first[group : group + 2])
        for cover, share in zip(sketched.cover[rows].tolist(), sketched.share[rows].tolist(), strict=True):
            assert share == pytest.approx(known[cover], abs=8 * error)


def test_a_cover_of_a_group_is_worth_what_its_runs_reach() -> None:
    """Shares by maps are less than containments, by how much of what some run reached a later one reached too."""
    automaton, graph = query().plan.registers, trained().graph_
    assert automaton is not None
    own = group_overlaps(graph)
    by_maps, plain = covers_by_match_maps(automaton, graph), covers_by_maps(graph, covering(automaton), MOST_COVERS)
    np.testing.assert_allclose(by_maps.share, plain.share * own[plain.cover])
    by_runs = covers_by_runs(automaton, graph)
    place = graph.scheme.place_of_group
    for group in range(graph.scheme.groups):
        rows = slice(*by_runs.first[group : group + 2])
        assert by_runs.cover[rows][0] == group
        assert by_runs.share[rows][0] == own[group]
        assert set(place[by_runs.cover[rows]]) <= set(covering(automaton)[place[group]])


def test_a_history_says_how_well_its_maps_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = trained()
    exact = json.loads((known.save(tmp_path / "exact") / "manifest.json").read_text())
    monkeypatch.setattr(groups, "EXACT_BUNDLES", 10)
    folder = known.save(tmp_path / "sketched")
    sketched = json.loads((folder / "manifest.json").read_text())
    assert exact["notes"]["sketch_error"] == 0
    assert sketched["notes"]["sketch_error"] == groups.sketch_error(known.graph_) > 0
    train._summary(known, known.events_, folder)
    assert "compared by sketches" in capsys.readouterr().err
    assert len(found(known.graph_, "coverage")) > 10
