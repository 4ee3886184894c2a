"""Ways to read a history: pairs and context as features, values by paths; which one is used is found by replay."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Matcher, Query, compile_query
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.kernels.runs import scores as kernel
from acep_approx.matching.tracing.traced import LOGGED
from acep_approx.training import pricing, training
from acep_approx.training.past import Past
from acep_approx.training.policies import gains_and_costs, raised, worth_of
from acep_approx.training.policies import history as by_history
from acep_approx.training.pricing import PricePoint, Prices
from acep_approx.training.trace import Remembered
from acep_approx.training.training import WITH_PAIRS, Reading
from history import Feature, Graph, Place, Scheme, fit_values
from history.checking import scheme_of
from history.fitting import fit_features
from history.trees import NULL, Node, Trees, fit_trees
from history.values import stopping_index
from history.vectors import PAIRED, FeatureKind

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


def pair(kind: FeatureKind, one: str, other: str) -> Feature:
    return Feature(f"{one}, {other}", kind, (-20.0, 0.0, 30.0, 90.0), of=(one, other))


CONTEXT_TREES = Trees(
    ("tick at hand", "pace at hand", "x at hand", "y at hand"),
    100,
    (
        *(Node(0, 0.4, 1, 2), Node(-1, -1.0), Node(-1, 1.0)),
        *(Node(1, 8.0, 4, 5), Node(-1, -0.25), Node(2, 50.0, 6, 7), Node(-1, 0.25), Node(-1, 0.5)),
        *(Node(3, 20.0, 9, 10), Node(-1, -0.1), Node(-1, 0.1)),
    ),
    (0, 3, 8),
)
FEATURES = [
    *(pair(kind, *of) for kind in PAIRED for of in (("x of a", "x of b"), ("x of a", "y of a"), ("y of a", "x of b"))),
    *(pair(kind, "y of a", "y of b") for kind in PAIRED),
    Feature("context", "context", (-1.2, -0.9, -0.5, 0.7, 1.2), trees=CONTEXT_TREES),
]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: f"{feature.kind} of {feature.name}")
def test_the_kernel_and_the_past_see_the_same_groups(feature):
    query = compile_query(NEAR, engine="runs")
    automaton = query.plan.registers
    assert automaton is not None
    places = (Place("", 0), Place("", 0), Place("", 0, (feature,)), Place("", 0))
    scheme = Scheme(places, 200, remaining=1, since=())
    worth = worth_of(automaton, scheme, np.ones(scheme.vertices), np.ones(scheme.vertices))
    shedding = Shedding(worth, Allowance(price=1e-9, reserve=-1.0), logs_births=True)
    matcher = Matcher(query.plan, shedding=FixedLoad(shedding))
    matcher.push(stream(2000, 2))
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    log = engine.logged()
    log = log[log[:, kernel.LOG_POOL] == 2]
    remembered = Remembered.by(engine.tables)
    values = remembered.values(log[:, [*LOGGED, *range(kernel.LOG, log.shape[1])]])
    expected = feature.bucket(feature.values(lambda name: values[remembered.columns.index(name)]))
    assert len(np.unique(expected)) >= 4
    assert (log[:, kernel.LOG_GROUP] - scheme.first_group[2]).tolist() == expected.tolist()


# --- context ------------------------------------------------------------------------------------------------


def test_trees_find_what_only_two_things_tell_together():
    rng = np.random.default_rng(3)
    tick, x = rng.integers(0, 10**6, 8000).astype(float), rng.random(8000)
    x[:800] = np.nan
    is_good = (tick % 1000 < 300) & (x > 0.7)
    reached = rng.random(8000) < np.where(is_good, 0.5, 0.02)
    trees = fit_trees(("tick", "x"), [tick, x], 1000, rng.integers(1, 3, 8000), reached)
    assert trees is not None
    values = trees.values([tick, x])
    assert np.quantile(values[is_good], 0.1) > np.quantile(values[~is_good], 0.9)
    assert values[is_good].mean() > values[~is_good].mean() + 2.0
    assert fit_trees(("tick", "x"), [tick, x], 1000, np.ones(8000, np.int64), np.zeros(8000, np.bool_)) is None
    assert trees.values([tick[:0], x[:0]]).tolist() == []
    for row in range(0, 8000, 500):  # one by one, and not beside others that are the same
        assert trees.values([tick[[row]], x[[row]]]).tolist() == [values[row]] == [followed(trees, tick[row], x[row])]


def followed(trees: Trees, tick: float, x: float) -> float:
    """What the trees say of one row, node by node."""
    row, total = [tick % trees.day / trees.day, NULL if np.isnan(x) else x], 0.0
    for root in trees.roots:
        node = trees.nodes[root]
        while node.input >= 0:
            node = trees.nodes[node.left if row[node.input] <= node.number else node.right]
        total += node.number
    return total


@pytest.mark.parametrize(
    "change",
    [
        {"roots": [0, 3, 9]},
        {"roots": [1]},
        {"day": -1},
        {"nodes": [[0, 0.4, 0, 1]]},  # back to itself
        {"nodes": [[0, 0.4, 1, 2], [-1, 0.0, 0, 0]]},  # there is no second
        {"nodes": [[7, 0.4, 1, 2], [-1, 0.0, 0, 0], [-1, 0.0, 0, 0]]},  # nor a seventh input
        {"nodes": [[-1, float("nan"), 0, 0]]},
        {"nodes": [[-1, 0.0, 0, 0]] * 65},
    ],
)
def test_damaged_trees_are_refused(change):
    saved = CONTEXT_TREES.to_json()
    assert Trees.from_json(saved) == CONTEXT_TREES
    with pytest.raises(ValueError, match="trees"):
        Trees.from_json({**saved, "roots": [0], **change} if "nodes" in change else {**saved, **change})


def test_context_in_words_says_how_many_times_more_often_than_others():
    feature = replace(FEATURES[-1], edges=(float(np.log(0.5)), float(np.log(2.0))))
    words = [feature.words(bucket) for bucket in range(3)]
    assert words == ["below 0.5 times", "0.5 times to 2 times", "2 times or more"]


def test_a_scheme_keeps_its_trees():
    scheme = Scheme((Place("a", 0, (FEATURES[-1],)), Place("b", 0, (FEATURES[-1],))), 10)
    saved = scheme.to_json()
    assert scheme_of(saved) == scheme
    assert len(saved["trees"]) == 1
    with pytest.raises(ValueError, match="other buckets"):
        scheme_of({**saved, "trees": []})


def rush(events: int, seed: int) -> pa.Table:
    """Only in busy times that come at one hour do B's follow; nothing that a run remembers says so."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, 20 * 86_400, events))
    is_rush = (ts // 3600 % 24 >= 8) & (ts // 3600 % 24 < 11)
    kind = np.where(rng.random(events) < np.where(is_rush, 0.3, 0.003), "B", "A")
    x = rng.integers(0, 50, events)
    return pa.table({"ts": pa.array(ts * 10**6).cast(pa.timestamp("us")), "type": kind, "x": x})


def test_context_is_used_where_it_finds_more():
    query = compile_query("PATTERN SEQ(A a, A b, B c) WHERE c.x > a.x AND b.x > a.x WITHIN 20 min", engine="runs")
    known = HistoryGraph(query).fit(rush(7_000, 1))
    kinds = {feature.kind for place in known.graph_.scheme.places for feature in place.features}
    assert "context" in kinds


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


def test_by_paths_no_gain_grows_without_end_where_more_runs_stay_than_there_were():
    graph = Graph(Scheme((Place("a", 0),), 10, remaining=1, since=(0.0, 5.0), values="paths"))
    counts = graph.counts
    counts.visits[:], counts.reached[:], counts.completed[1] = 10, 5, 5
    counts.source, counts.target = np.array([0, 1]), np.array([1, 1])
    counts.moves, counts.passed = np.array([2**62, 2**62]), np.array([5, 5])
    with np.errstate(all="raise"):
        assert np.isfinite(fit_values(graph).gain).all()


# --- by the index of a stopping problem -------------------------------------------------------------------------


def waiting(children: int = 0) -> Graph:
    """Half of the A's are completed by the next event; the others wait for nothing, for many run-steps.

    Of these so many have a child that is completed for certain, after as long a wait.
    """
    graph = Graph(Scheme((Place("a", 0), Place("a b", 0)), 10, remaining=1, since=(0.0, 5.0), values="index"))
    counts = graph.counts
    just, later, child = 0, 1, graph.scheme.cells
    counts.visits[[just, later, child]] = 100_000, 50_000, children
    counts.reached[[just, child]] = 50_000 + children, children
    counts.completed[[just, child]] = 50_000, children
    counts.cost[[just, later, child]] = 100_000 + 50_000 * 100, 50_000 * 100, children * 100
    counts.source, counts.target = np.array([just, just]), np.array([later, child])
    counts.moves, counts.passed = np.array([50_000, children]), np.array([0, children])
    return graph


def test_by_the_index_a_run_is_worth_what_it_finds_before_it_is_dropped() -> None:
    """Gain over cost says a hundredth of that: it counts the whole wait."""
    graph = waiting()
    index, values = stopping_index(graph), fit_values(graph)
    assert index[0] == pytest.approx(0.5, rel=0.05)
    assert values.gain[0] / values.cost[0] == pytest.approx(0.5 / 51, rel=0.05)
    assert index[1] < 0.01


def test_by_the_index_children_pay_for_themselves() -> None:
    """One that finds a match point for 100 run-steps adds nothing to a parent that finds one for two."""
    graph = waiting(children=50_000)
    index = stopping_index(graph)
    assert index[0] == pytest.approx(0.5, rel=0.05)
    assert index[graph.scheme.cells] == pytest.approx(0.01, rel=0.2)


def test_a_reading_by_the_index_ranks_by_it_alone() -> None:
    gain, cost = gains_and_costs(waiting())
    assert (cost == 1).all()
    assert np.array_equal(gain, stopping_index(waiting()))


# --- which one is used --------------------------------------------------------------------------------------


def sums(events: int, seed: int) -> pa.Table:
    """Only the sum of two numbers tells which runs are completed."""
    rng = np.random.default_rng(seed)
    kind = np.array(list("AABBC"))[rng.integers(0, 5, events)]
    v = rng.integers(0, 1000, events)
    return pa.table({"ts": np.arange(events), "type": kind, "v": v, "w": rng.integers(0, 20, events)})


SUM = "PATTERN SEQ(A a, B b, C c) WHERE a.v + b.v < c.v AND c.w = 7 WITHIN 150"


PLAN = compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5", engine="runs").plan
NAMES = ("with features", "with pairs", "without features")


def found(rows: np.ndarray, points: int = 1000, each: int = 1) -> Prices:
    """Replays that found some of the match points, of which so many share a cell."""
    every = np.arange(points)
    exact = PricePoint(0.0, 100, points, every, every // each)
    others = (PricePoint(price, steps, len(rows), rows) for price, steps in ((0.2, 25), (0.5, 5), (1.0, 1)))
    return Prices((exact, *others))  # near enough to one another to say what lies between


def chosen(monkeypatch, prices, **how):
    """What is chosen, and what was tried, where trying a reading shows what ``prices`` says."""
    tried = []

    def tell(self, reading, *_):
        tried.append((reading.name, reading.values, reading.overlap, reading.cost_power))
        return prices(reading)

    monkeypatch.setattr(training._Trials, "prices", tell)
    return training.choose(PLAN, dict.fromkeys(NAMES, Graph(Scheme((), 1))), [], lambda _: None, **how), tried


@pytest.mark.parametrize(("less", "values"), [(30, "means"), (-30, "paths")])
def test_one_thing_is_varied_at_a_time_from_the_best_reading(monkeypatch, less, values):
    def prices(reading):
        many = 900 - 400 * abs(reading.overlap - 0.7) - 200 * abs(reading.cost_power - training.BETWEEN)
        many += {"with pairs": 50}.get(reading.name, 0) - {"paths": less}.get(reading.values, 0)
        return found(np.arange(max(round(many), 0)))

    (best, *others), tried = chosen(monkeypatch, prices)
    assert (best.name, best.values, best.overlap, best.cost_power) == ("with pairs", values, 0.7, training.BETWEEN)
    assert {other.name for other in others} == {"with pairs"}
    assert len(tried) == len(set(tried)) + 1  # none twice, but the best one at more prices


PLAIN = ("with features", "paths", training.OVERLAPS[0], 1.0)


@pytest.mark.parametrize(
    ("more", "less", "each", "values"),
    [
        (26, 20, 1, "paths"),  # 6 more, but they differ in 46: by chance 7 of them go one way or the other
        (30, 20, 1, "means"),
        (60, 20, 20, "paths"),  # of three cells and one, which share what befalls them
        (60, 40, 20, "paths"),
        (60, 0, 20, "means"),
    ],
)
def test_another_reading_must_be_better_by_more_than_chance_allows(monkeypatch, more, less, each, values):
    """Both find 500 match points; one of them finds ``more`` beside, and misses ``less`` of those of the other."""

    def prices(reading):
        rows = np.arange(less, 500 + more) if reading.values == "means" else np.arange(500)
        return found(rows, each=each)

    (best, *_), _ = chosen(monkeypatch, prices)
    assert (best.name, best.values, best.overlap, best.cost_power) == (PLAIN[0], values, *PLAIN[2:])


@pytest.mark.parametrize(("learned", "judged", "is_plain"), [(29, 1000, True), (1000, 29, True), (30, 30, False)])
def test_with_few_match_points_the_plain_reading_is_used(monkeypatch, learned, judged, is_plain):
    def prices(reading):
        return found(np.arange(judged if reading.values == "means" else 0), judged)

    (best, *others), tried = chosen(monkeypatch, prices, points=learned)
    assert (best.values == "paths") == is_plain
    assert (len(set(tried)) == 1) == is_plain == (not others)
    if is_plain:
        assert set(tried) == {PLAIN}


def test_match_points_of_both_parts_of_the_past_are_counted(monkeypatch):
    asked = []

    def choose(_plan, graphs, held_out, *_, points):
        asked.append((points, sum(len(batch) for batch in held_out)))
        return (Reading(next(iter(graphs)), "means", 0.9, 1.0, Prices((PricePoint(0.0, 100, 10),))),)

    monkeypatch.setattr(training, "choose", choose)
    query, past = compile_query(SUM, engine="runs"), sums(2000, 2)
    HistoryGraph(query).fit(past)
    assert asked == [(len(query.match(past.slice(0, 1200)).points()), 800)]


def test_replays_tell_which_match_points_they_found_and_which_share_what_befalls_them():
    query = compile_query(NEAR, engine="runs")
    events = stream(1500, 3)
    past = Past(query.plan, events, {})
    known = HistoryGraph(query).fit(events)
    prices = pricing.learn_prices(query.plan, known.worth(), list(past.batches()), past.bind)
    exact, points = prices.replays[0], query.match(events).points()
    assert exact.rows.tolist() == sorted(points["row"].to_pylist())
    keys = zip(points["id"].to_pylist(), points["end"].to_numpy() // 201, strict=True)
    cells = dict(zip(points["row"].to_pylist(), keys, strict=True))
    told = {(cells[row], cell) for row, cell in zip(exact.rows.tolist(), exact.cells.tolist(), strict=True)}
    assert len(told) == len({cell for cell, _ in told}) == len({number for _, number in told})
    for replay in prices.replays:
        assert (len(replay.rows), np.isin(replay.rows, exact.rows).all()) == (replay.points, True)
    for share in (0.001, 0.02, 0.1, 0.5, 1.0):
        assert prices.found(share).mean() == pytest.approx(prices.recall(share))
        assert prices.bare().recall(share) == prices.recall(share)


@cache
def learned_of_sums() -> tuple[Query, Graph]:
    """A graph that is read in several ways: nothing changes it."""
    query = compile_query(SUM, engine="runs")
    return query, HistoryGraph(query).fit(sums(2000, 1)).graph_


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_gain_is_divided_by_a_power_of_the_cost(power):
    query, learned = learned_of_sums()
    graph = training.read_by(learned, "means", power)
    assert Scheme.from_json(graph.scheme.to_json()) == graph.scheme
    values, worth = fit_values(graph), by_history(query.plan.registers, graph, 0.0)
    np.testing.assert_allclose(worth.gain / worth.cost, raised(values.gain) / values.cost**power)


def test_a_reading_that_does_not_bear_other_counts_gives_way(monkeypatch):
    known = Prices((PricePoint(0.0, 100, 10), PricePoint(1.0, 1, 9)))
    readings = [Reading("with features", "means", overlap, 1.0, known) for overlap in (0.9, 0.7)]
    monkeypatch.setattr(training, "choose", lambda *_, **__: tuple(readings))

    def learn_prices(plan, worth, *_, **__):
        found = 4 if worth.overlap[1] == 0.9 else 8
        return Prices((PricePoint(0.0, 100, 10), PricePoint(1.0, 1, found)))

    monkeypatch.setattr(training, "learn_prices", learn_prices)
    assert HistoryGraph(compile_query(SUM, engine="runs")).fit(sums(1000, 1)).overlap_ == 0.7


def test_the_reading_that_finds_most_is_used_and_kept(monkeypatch, tmp_path):
    best = Reading(WITH_PAIRS, "paths", 0.7, 1.0, Prices((PricePoint(0.0, 100, 10), PricePoint(1.0, 10, 5))))
    monkeypatch.setattr(training, "choose", lambda *_, **__: (best,))
    monkeypatch.setattr(training, "FEW_POINTS", 0)  # else none but the first reading is counted
    query, past = compile_query(SUM, engine="runs"), sums(4000, 2)
    known = HistoryGraph(query).fit(past)
    scheme = known.graph_.scheme
    assert (scheme.values, known.overlap_) == ("paths", 0.7)
    assert {"sum"} <= {feature.kind for place in scheme.places for feature in place.features}
    again = HistoryGraph.load(known.save(tmp_path / "kept").parent, query)
    assert again.graph_.scheme == scheme
    assert again.values().gain.tolist() == known.values().gain.tolist()
    again.graph_.counts.moves = 0 * again.graph_.counts.moves
    assert again.values().gain.tolist() != known.values().gain.tolist()


def test_recall_between_two_replays_goes_by_the_logarithm_of_the_share():
    prices = Prices((PricePoint(0.0, 1000, 100), PricePoint(1.0, 200, 60), PricePoint(2.0, 40, 20)))
    assert prices.recall((0.2 * 0.04) ** 0.5) == pytest.approx(0.4)
    assert prices.recall(0.02) == pytest.approx(0.1)  # below the least share in proportion
    assert prices.recall(1.0) == 1.0
    assert Prices().recall(0.1) == 0.0


def test_replays_fill_the_gaps_between_shares_that_matter():
    """Below the lowest price passes take more than the exact run: what lies there is not asked."""
    shares = {0.0: 1.0, 1e-6: 5.0, 1.0: 0.4, 4.0: 0.09, 16.0: 0.009}
    found = [PricePoint(price, int(1e6 * share), 1) for price, share in shares.items()]
    pricing._fill(found, lambda price: PricePoint(price, 30_000, 1), len(found) + 1)
    assert found[-1].price == pytest.approx(8.0)
