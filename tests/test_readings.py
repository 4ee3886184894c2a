"""Ways to read a history: pairs of numbers as features, values by paths; which one is used is found by replay."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Matcher, compile_query
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.kernels.runs import scores as kernel
from acep_approx.shedding.shed_runs import coins, terms
from acep_approx.training import choosing
from acep_approx.training.past import Past
from acep_approx.training.policies import worth_of
from acep_approx.training.pricing import PricePoint, Prices
from acep_approx.training.training import try_readings
from history import Feature, Graph, Place, Scheme, fit_values
from history.checking import scheme_of
from history.fitting import fit_features

NEAR = """
    PATTERN SEQ(A a, B b, C c) WHERE [id] AND c.x > a.x AND c.x < b.x AND c.y > 80 AND c.y - a.y > 0 AND c.y - b.y > 0
    WITHIN 200
"""


def stream(events: int, seed: int) -> pa.Table:
    """Integers ``x`` and floating point numbers ``y``; some of both are NULL."""
    dice = random.Random(seed)
    return pa.table(
        {
            "ts": list(range(events)),
            "type": [dice.choice("ABC") for _ in range(events)],
            "id": [dice.randrange(4) for _ in range(events)],
            "x": pa.array([dice.randrange(100) if dice.random() < 0.97 else None for _ in range(events)], pa.int64()),
            "y": pa.array([dice.random() * 100 if dice.random() < 0.97 else None for _ in range(events)], pa.float64()),
        }
    )


# --- pairs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "expected"), [("difference", [1, 0, 3]), ("sum", [2, 2, 3])])
def test_a_pair_has_the_buckets_of_what_comes_of_both(kind, expected):
    columns = {"x": np.array([5.0, 2.0, np.nan]), "y": np.array([4.0, 9.0, 1.0])}
    feature = Feature("x, y", kind, edges=(0.0, 5.0), of=("x", "y"))
    assert feature.bucket(feature.values(columns.__getitem__)).tolist() == expected


@pytest.mark.parametrize(("kind", "sign"), [("difference", -1), ("sum", 1)])
def test_what_only_a_pair_tells_is_found(kind, sign):
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 4000))
    reached = (np.abs(x + sign * y - 0.5 * (1 + sign)) < 0.1).astype(float)
    columns = {"x": ("float", x), "y": ("float", y)}
    found = fit_features(columns, (), reached, pairs=[("x", "y")])
    assert (found[0].kind, found[0].of) == (kind, ("x", "y"))
    alone = fit_features(columns, (), reached)
    assert {feature.kind for feature in alone} <= {"float"}


def test_a_scheme_with_pairs_comes_back_from_json_and_an_older_one_has_none():
    pair = Feature("x - y", "difference", (1.0, 2.0), of=("x", "y"))
    scheme = Scheme((Place("a", 0, (pair, Feature("x", "int", (3.0,)))),), 10, values="paths")
    saved = scheme.to_json()
    assert scheme_of(saved) == scheme
    for feature in saved["places"][0]["features"]:
        del feature["of"]
    with pytest.raises(ValueError, match="other buckets"):
        scheme_of(saved)
    del saved["places"][0]["features"][0], saved["values"]
    assert scheme_of(saved) == Scheme((Place("a", 0, (Feature("x", "int", (3.0,)),)),), 10)
    with pytest.raises(ValueError, match="values"):
        scheme_of({**saved, "values": "guesses"})


@pytest.mark.parametrize("kind", ["difference", "sum"])
@pytest.mark.parametrize(
    "pair", [("x of a", "x of b"), ("x of a", "y of a"), ("y of a", "x of b"), ("y of a", "y of b")]
)
def test_the_kernel_ranks_by_pairs(kind, pair):
    """Scores that the kernel wrote down are those of the groups that the numbers of a pair lead to."""
    query = compile_query(NEAR, engine="runs")
    automaton = query.plan.registers
    assert automaton is not None
    feature = Feature("pair", kind, (-20.0, 0.0, 30.0, 90.0), of=pair)
    places = (Place("", 0), Place("", 0), Place("", 0, (feature,)), Place("", 0))
    scheme = Scheme(places, 200, remaining=1, since=())
    gain = np.array([100.0, 100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0])  # all that have bound an A and a B are shed
    worth = replace(worth_of(automaton, scheme, gain, np.ones(scheme.vertices)), dominated=1.0)
    shedding = Shedding(worth, Allowance(price=50.0, reserve=-1.0), logs_shed=True)
    matcher = Matcher(query.plan, shedding=FixedLoad(shedding))
    matcher.push(stream(2000, 2))
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    log = engine.logged()
    expected, _, _, vertex = terms(log, shedding, engine)
    assert len(np.unique(vertex)) >= 4
    assert set(vertex.tolist()) <= {2, 3, 4, 5, 6, 7}
    score = np.ascontiguousarray(log[:, kernel.LOG_SCORE]).view(float)
    np.testing.assert_allclose(score, expected * coins(log, shedding))


# --- paths --------------------------------------------------------------------------------------------------


def lucky() -> Graph:
    """A graph of two groups of A's. Both lead to the same B's, but one of them happened to meet no match point."""
    unlucky = Feature("x", "int", (1.0,))
    graph = Graph(Scheme((Place("a", 0, (unlucky,)), Place("a b", 0)), 10, remaining=1, since=(0.0,), values="paths"))
    counts = graph.counts
    counts.visits[[0, 2, 6]] = 1000, 1000, 400
    counts.reached[[0, 6]] = 80, 80
    counts.led[[0, 6]] = 80, 80
    counts.completed[6] = 80
    counts.source, counts.target = np.array([0, 2]), np.array([6, 6])
    counts.moves, counts.passed = np.array([200, 200]), np.array([80, 0])
    return graph


def test_by_paths_a_vertex_is_worth_what_it_leads_to():
    graph = lucky()
    by_paths = fit_values(graph).gain
    assert by_paths[0] == pytest.approx(by_paths[2])
    graph.scheme = replace(graph.scheme, values="means")
    by_means = fit_values(graph).gain
    assert by_means[0] > 10 * by_means[2]
    assert by_paths[[0, 2]].mean() == pytest.approx(by_means[[0, 2]].mean(), rel=0.05)  # places keep their means


def test_by_paths_the_edges_rank():
    graph = lucky()
    graph.counts.moves[1] = 20  # a tenth of the B's
    gain = fit_values(graph).gain
    assert 5 < gain[0] / gain[2] < 10  # few visits are shrunk a little
    graph.counts.source = graph.counts.target = graph.counts.moves = graph.counts.passed = np.zeros(0, np.int64)
    without = fit_values(graph).gain
    assert without[0] == without[2] > 0  # nothing tells them apart any more


# --- which one is used --------------------------------------------------------------------------------------


def sums(events: int, seed: int) -> pa.Table:
    """Only the sum of two numbers tells which runs are completed."""
    rng = np.random.default_rng(seed)
    kind = np.array(list("AABBC"))[rng.integers(0, 5, events)]
    v = rng.integers(0, 1000, events)
    return pa.table({"ts": np.arange(events), "type": kind, "v": v, "w": rng.integers(0, 20, events)})


BEST = [("with pairs", "paths", 0.7), ("with features", "paths", -1.0), ("with features", "means", -1.0)]


def test_one_thing_is_varied_at_a_time_from_the_best_reading(monkeypatch):
    tried = []

    def recalls(self, reading, known, most):
        tried.append((reading.name, reading.values, reading.overlap))
        found = 100 - BEST.index(tried[-1]) if tried[-1] in BEST else 0
        return Prices((PricePoint(0.0, 100, 100), PricePoint(1.0, 1, found)))

    monkeypatch.setattr(choosing._Trials, "prices", recalls)
    plan = compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5", engine="runs").plan
    graphs = dict.fromkeys(("with features", "with pairs", "without features"), Graph(Scheme((), 1)))
    found = choosing.choose(plan, graphs, [], lambda _: None)
    assert (found.name, found.values, found.overlap) == BEST[1]  # 0.7 was not better with features and means
    assert len(tried) == len(set(tried)) + 1 == 4 + 1 + 2 + 3 + 1  # the last one looks at more prices


def test_the_reading_that_finds_more_is_used_and_kept(tmp_path):
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.v + b.v < c.v AND c.w = 7 WITHIN 150"
    query, past = compile_query(text, engine="runs"), sums(8000, 2)
    tried = try_readings(query.plan, Past(query.plan, past, {}), -1, 100, lambda *_: None)
    assert tried.reading.values == tried.blank.scheme.values == "paths"
    known = HistoryGraph(query).fit(past)
    assert known.graph_.scheme.values == "paths"
    known.save(tmp_path / "kept")
    again = HistoryGraph.load(tmp_path / "kept", query)
    assert again.graph_.scheme.values == "paths"
    assert again.values().gain.tolist() == known.values().gain.tolist()
    again.graph_.counts.moves = 0 * again.graph_.counts.moves
    assert again.values().gain.tolist() != known.values().gain.tolist()
