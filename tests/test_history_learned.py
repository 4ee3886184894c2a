"""What is learned from the past, and spent inside a budget: end to end, as users call it."""

from __future__ import annotations

import warnings
from copy import copy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import NeedlessHistoryWarning, Query, compile_query
from acep_approx.errors import UsageError
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.training.history_graph import HistoryGraph
from history.errors import HistoryError

QUERY = "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x AND c.y <> a.y WITHIN 40"


def stream(events: int, seed: int) -> pa.Table:
    """Most runs lead nowhere: a match needs low numbers first, and a late high one."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(rng.integers(0, 3, events)),
            "type": rng.choice(["A", "A", "A", "B"], events),
            "x": rng.integers(0, 1000, events),
            "y": rng.integers(0, 3, events),
        }
    )


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY)


@pytest.fixture(scope="module")
def known(query: Query) -> HistoryGraph:
    return HistoryGraph(query).fit(stream(6000, 1))


@pytest.fixture(scope="module")
def followed(known: HistoryGraph) -> HistoryGraph:
    """The same, where partial matches are followed, and shed."""
    found = copy(known)
    found.search_ = None
    return found


def points(matches: BudgetedMatches | Any) -> set[int]:
    """Rows that complete a match."""
    return set(matches.to_arrow()["c"].to_pylist())


def test_a_history_finds_more_than_chance(query: Query, known: HistoryGraph) -> None:
    test = stream(6000, 2)
    exact = points(query.match(test))
    found = {
        policy: np.mean(
            [
                len(points(query.match_within(test, "5%", history=known, policy=policy, audit=0, seed=s)) & exact)
                for s in range(3)
            ]
        )
        for policy in ("history", "random", "oldest")
    }
    assert found["history"] > 1.3 * found["random"]
    assert found["history"] > found["oldest"]


def test_every_match_is_one_of_the_exact_answer_and_the_bound_holds(
    query: Query, known: HistoryGraph, followed: HistoryGraph
) -> None:
    test = stream(3000, 3)
    exact = {str(row) for row in query.match(test).to_arrow().to_pylist()}
    budgets = ("2%", "10%", "50%", "3 steps/event", "20 runs")
    for budget, history in product(budgets, (known, followed)):
        some = query.match_within(test, budget, history=history)
        assert {str(row) for row in some.to_arrow().to_pylist()} <= exact
        record = some.record()
        assert record.work <= record.allowed
        assert all(piece.work <= piece.bound for piece in record.pieces)
        assert (record.shed_runs > 0) == (record.ends == 0)
        if budget == "20 runs":
            assert max(piece.live for piece in record.pieces) <= 20


def test_all_of_the_work_is_the_exact_answer(query: Query, known: HistoryGraph) -> None:
    test = stream(2000, 4)
    some = query.match_within(test, "100%", history=known)
    assert some.to_arrow().equals(query.match(test).to_arrow())
    assert some.record().shed_runs == 0


def test_more_budget_finds_more_on_average(query: Query, known: HistoryGraph) -> None:
    means = [
        np.mean(
            [
                len(points(query.match_within(stream(2000, seed), f"{share}%", history=known, audit=0)))
                for seed in range(5, 9)
            ]
        )
        for share in (2, 10, 30, 60, 90)
    ]
    # Where nearly all is found, more budget may lose a match point that less budget finds.
    assert (np.diff(means) > -0.5).all()


def test_the_same_seed_gives_the_same_answer(query: Query, known: HistoryGraph) -> None:
    test = stream(2000, 6)
    first, second = (query.match_within(test, "10%", history=known, seed=3).to_arrow() for _ in range(2))
    assert first.equals(second)


def test_recall_is_estimated_near_the_truth(query: Query, known: HistoryGraph) -> None:
    """A large cohort, so that one stream is enough to see it."""
    test = stream(20_000, 7)
    some = query.match_within(test, "60%", history=known, audit=0.5)
    found = points(some)
    truth = points(query.match(test))
    estimate = some.record().recall
    assert estimate is not None
    assert estimate.recall is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert abs(estimate.recall - len(found) / len(truth)) < 0.25
    assert estimate.low <= estimate.recall <= estimate.high


def test_saved_loaded_and_saved_again_it_is_the_same(query: Query, known: HistoryGraph, tmp_path: Path) -> None:
    first = known.save(tmp_path / "one")
    again = HistoryGraph.load(tmp_path / "one", query)
    second = again.save(tmp_path / "two")
    for file in sorted(path.name for path in first.iterdir()):
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    test = stream(1000, 8)
    ours, theirs = (query.match_within(test, "10%", history=one).to_arrow() for one in (known, again))
    assert ours.equals(theirs)
    assert query.match_within(test, "10%", history=tmp_path / "one").to_arrow().equals(ours)


def test_nothing_is_overwritten_and_versions_are_added(query: Query, known: HistoryGraph, tmp_path: Path) -> None:
    known.save(tmp_path / "h")
    with pytest.raises(HistoryError, match="there is a history"):
        known.save(tmp_path / "h")
    known.save(tmp_path / "h", new_version=True)
    assert HistoryGraph.load(tmp_path / "h", query).version_ == 2
    assert HistoryGraph.load(tmp_path / "h", query, version=1).version_ == 1


def test_a_history_of_another_query_is_refused_with_both_fingerprints(known: HistoryGraph, tmp_path: Path) -> None:
    known.save(tmp_path / "h")
    other = compile_query(QUERY.replace("c.y <> a.y", "c.y <> b.y"))
    with pytest.raises(HistoryError) as refused:
        HistoryGraph.load(tmp_path / "h", other)
    mine, theirs = known.plan.fingerprint(), other.plan.fingerprint()
    assert mine in str(refused.value)
    assert theirs in str(refused.value)
    with pytest.raises(UsageError, match="ACEP-U037") as refused_too:
        other.match_within(stream(100, 1), "10%", history=known).to_arrow()
    assert mine in str(refused_too.value)
    assert theirs in str(refused_too.value)
    wider = compile_query(QUERY.replace("WITHIN 40", "WITHIN 50"))
    with pytest.raises(UsageError, match="ACEP-U037"):
        wider.match_within(stream(100, 1), "10%", history=known).to_arrow()


def test_more_past_is_added(query: Query) -> None:
    known = HistoryGraph(query).fit(stream(2000, 1))
    visits, prices = int(known.graph_.counts.visits.sum()), known.prices_
    more = stream(2000, 9)
    known.partial_fit(more.set_column(0, "ts", pa.array(more["ts"].to_numpy() + 10_000)))
    assert known.events_ == 4000
    assert known.graph_.counts.visits.sum() > 1.5 * visits
    assert known.prices_ == prices


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"budget": "20%"}, "ACEP-U034"),
        ({"budget": "5 steps/event", "policy": "history"}, "ACEP-U032"),
        ({"budget": "5 steps/event", "policy": "best"}, "ACEP-U031"),
        ({"budget": "5 steps/event", "audit": 2.0}, "ACEP-U033"),
        ({"budget": "lots"}, "ACEP-U030"),
    ],
)
def test_what_cannot_be_asked_for(query: Query, options: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError, match=code):
        query.match_within(stream(10, 1), options.pop("budget"), **options)


def test_a_history_that_has_learned_nothing_is_refused(query: Query) -> None:
    with pytest.raises(UsageError, match="ACEP-U036"):
        query.match_within(stream(10, 1), "10%", history=HistoryGraph(query)).to_arrow()


def test_a_history_that_no_run_needs_is_told_of_once() -> None:
    """And learned for the other engine: whoever compiles the query for that can use it."""
    text, events = "PATTERN SEQ(A a, B b) WITHIN 5", stream(300, 1)
    exact = compile_query(text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", NeedlessHistoryWarning)
        known = HistoryGraph(exact).fit(events)
        found = exact.match_within(events, "5%", history=known)
        assert found.to_arrow() == exact.match(events).to_arrow()
        HistoryGraph(exact)
    needless = [str(one.message) for one in told if one.category is NeedlessHistoryWarning]
    assert [text.partition(",")[0] for text in needless] == ["this query needs no history"]
    within = compile_query(text, engine="runs").match_within(events, "50%", history=known)
    assert 0 < len(within.to_arrow()) < len(found.to_arrow())


def test_scikit_learn_can_clone_a_history(query: Query) -> None:
    """By what it was made with, as its ``clone`` asks for it."""
    known = HistoryGraph(query, gap=7).fit(stream(300, 1))
    asked = known.get_params(deep=False)
    made = HistoryGraph(**asked)
    assert all(value is asked[name] for name, value in made.get_params(deep=False).items())
    assert not made.is_fitted
    assert made.set_params(gap="window").get_params()["gap"] == "window"
    assert not known.set_params(most_bundles=9).is_fitted
    with pytest.raises(UsageError, match="ACEP-U053"):
        known.set_params(gaps=1)
    clone = pytest.importorskip("sklearn.base").clone
    assert clone(known).get_params() == known.get_params()


def test_a_past_without_matches_or_events_teaches_nothing_but_harms_nothing(query: Query) -> None:
    quiet = stream(500, 1).filter(pa.compute.equal(stream(500, 1)["type"], "A"))
    known = HistoryGraph(query).fit(quiet)
    assert known.points_ == 0
    some = query.match_within(stream(500, 2), "5 steps/event", history=known)
    some.to_arrow()
    assert 0 < some.record().work <= 5 * 500
    for past in (stream(500, 1).slice(0, 0), stream(500, 1).filter(pa.compute.equal(stream(500, 1)["type"], "B"))):
        with pytest.raises(UsageError, match="ACEP-U046"):
            HistoryGraph(query).fit(past)


def test_where_the_cells_engine_answers_nothing_is_shed() -> None:
    easy = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
    test = stream(300, 1)
    some = easy.match_within(test, "1 step/event")
    assert some.to_arrow().equals(easy.match(test).to_arrow())
    assert "sheds nothing" in some.record().bound


def test_budgets_of_time_run_and_stay_true(query: Query, known: HistoryGraph) -> None:
    test = stream(3000, 11)
    exact = {str(row) for row in query.match(test).to_arrow().to_pylist()}
    for budget in ("0.5 ms/batch", "50k events/s"):
        some = query.match_within(test, budget, history=known)
        assert {str(row) for row in some.to_arrow().to_pylist()} <= exact


def test_what_was_shed_can_be_had(query: Query, followed: HistoryGraph) -> None:
    test = stream(1500, 12)
    some = query.match_within(test, "5%", history=followed, log_shed=True)
    some.to_arrow()
    shed = some.shed()
    assert len(shed) == some.record().shed_runs
    weighed = shed.filter(pa.compute.equal(shed["reason"], "born below the price"))
    gain, covered, cost, score = (weighed[name].to_numpy() for name in ("gain", "covered", "cost", "score"))
    assert (score < weighed["price"].to_numpy()).all()
    assert (score <= (gain - covered) / cost + 1e-9).all()
    assert (score >= (gain - covered) / cost * 0.9 - 1e-9).all()  # what a coin takes away at most
    with pytest.raises(UsageError, match="ACEP-U039"):
        query.match_within(test, "5%", history=followed).shed()


def test_all_matches_at_the_points_found_can_be_had(query: Query, known: HistoryGraph) -> None:
    """One run stands for others: the region before a match point is matched again."""
    test = stream(3000, 13)
    some = query.match_within(test, "5%", history=known, audit=0)
    found = set(some.points()["row"].to_pylist())
    whole = some.expanded()
    ends = {int(test["ts"][row].as_py()) for row in found}
    exact = [row for row in query.match(test).to_arrow().to_pylist() if row["end"] in ends]
    assert len(whole) > len(some.to_arrow())
    assert whole.to_pylist() == exact


def test_what_is_expanded_does_not_depend_on_what_was_asked_before(query: Query, known: HistoryGraph) -> None:
    """Listing finds other match points than detecting does: less can be merged."""
    test = stream(3000, 13)

    def fresh() -> BudgetedMatches:
        return query.match_within(test, "5%", history=known, audit=0)

    whole = fresh().expanded()
    assert len(whole) > len(fresh().to_arrow())
    for ask in ("to_arrow", "points", "counts", "bundles", "record", "expanded"):
        some = fresh()
        getattr(some, ask)()
        assert some.expanded().equals(whole), ask


def test_what_cannot_be_expanded_is_refused_whatever_was_asked_before(query: Query) -> None:
    rows = compile_query(QUERY.replace("WITHIN 40", "WITHIN 40 events"))
    with pytest.raises(UsageError, match="ACEP-U047"):
        rows.match_within(stream(30, 13), "3 steps/event").expanded()
    once = query.match_within(stream(30, 13).to_reader(), "3 steps/event")
    with pytest.raises(UsageError, match="ACEP-U103"):
        once.expanded()
    assert query.match_within([], "3 steps/event").expanded().num_rows == 0


def test_where_nothing_was_found_nothing_is_expanded(query: Query, known: HistoryGraph) -> None:
    some = query.match_within(stream(3, 1), "5%", history=known)
    some.to_arrow()
    assert some.expanded().num_rows == 0
