"""A run changes over between searching ends and following runs: at a batch, and nothing that has begun is lost."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Matcher, compile_query
from acep_approx.budget.budget import Budget
from acep_approx.engines.search import exact_ways
from acep_approx.engines.search.exact_ways import ExactSearch
from acep_approx.shedding import ways
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from tests.cases import cases
from tests.one_reading import learned
from tests.searched import QUERY, forward, some_orders, stream, turned


@pytest.mark.parametrize("text", [QUERY, QUERY.replace("[g] AND", "") + " ERRORS 1"])
def test_nothing_is_lost_however_often_it_turns(text: str) -> None:
    """Without a limit all is found, with the same errors and starts; also where a state is taken up in between."""
    query = compile_query(text, engine="runs")
    for seed in range(cases(40, 6)):
        dice, table = Random(seed), stream(3000, seed)
        expected = forward(query, table)
        assert turned(query, table, some_orders(query.plan.paths, dice), dice).equals(expected)


# --- inside a budget ----------------------------------------------------------------------------------------------


def test_the_past_decides_at_the_beginning() -> None:
    """By what both ways promise; a policy that ranks runs is taken at its word."""
    query, table = compile_query(QUERY, engine="runs"), stream(6000, 1)
    known = learned(HistoryGraph(query), table)
    assert known.search_ is not None
    begun = [ways.Ways.of(Load(Budget.parse(budget), known), query.plan, "points") for budget in ("10%", "100%")]
    assert all(one is not None and one.searches for one in begun)
    assert ways.Ways.of(Load(Budget.parse("10%"), known, policy="scores"), query.plan, "points") is None
    assert ways.Ways.of(Load(Budget.parse("20 runs"), known), query.plan, "points") is None


@pytest.mark.parametrize("budget", ["5%", "20%", "3 steps/event", "30 steps/event"])
def test_a_load_that_rises_thirtyfold(budget: str) -> None:
    """No more work than granted at any event, no match point that is none, and the same in any split and restarted."""
    query = compile_query(QUERY, engine="runs")
    known, table = learned(HistoryGraph(query), stream(6000, 2)), stream(24_000, 3, rises_at=0.5)
    exact = set(query.match(table).points()["row"].to_pylist())
    some = query.match_within(table, budget, history=known)
    found = some.points()["row"].to_pylist()
    record = some.record()
    assert set(found) <= exact
    assert all(piece.work <= piece.bound + 1 for piece in record.pieces)
    matcher, parts, dice = query.matcher(budget=budget, history=known, output="points"), [], Random(4)
    first = 0
    while first < len(table):
        size = dice.randint(1, 3000)
        parts += matcher.push(table.slice(first, size))["row"].to_pylist()
        first += size
        matcher = query.from_state(matcher.state_bytes(), history=known)
    assert parts == found


def test_searching_is_given_up_where_runs_promise_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is tried once more later; all that was found is right."""
    query = compile_query(QUERY, engine="runs")
    known, table = learned(HistoryGraph(query), stream(6000, 2)), stream(40_000, 5)
    monkeypatch.setattr(ways, "MOST_STRETCH", ways.LEAST_STRETCH)
    monkeypatch.setattr(ways.Ways, "_is_poor", lambda self, granted: self._rest < 4 * ways.FIRST_REST)
    some = query.match_within(table, "20 steps/event", history=known)
    found = some.points()["row"].to_pylist()
    assert isinstance(some.shedder, Shedder)
    assert some.shedder.ways is not None
    assert some.shedder.ways._rest == 4 * ways.FIRST_REST
    assert some.shedder.ways.searches
    assert set(found) <= set(query.match(table).points()["row"].to_pylist())


# --- without a budget ---------------------------------------------------------------------------------------------


def test_exact_points_change_over_where_it_takes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same, in any split and restarted, and take fewer run-steps."""
    monkeypatch.setattr(exact_ways, "LEAST_STEPS", 2.0)
    monkeypatch.setattr(exact_ways, "TRIED_EVENTS", 256)
    monkeypatch.setattr(exact_ways, "MOST_AT_ONCE", 1024)
    query, table = compile_query(QUERY, engine="runs"), stream(20_000, 6, rises_at=0.2, times=4)
    whole, plain = Matcher(query.plan, output="points"), Matcher(query.plan, output="points", merge="equal,chain")
    expected = plain.push(table)
    assert whole.push(table).equals(expected)
    assert whole.pipeline is not None
    assert isinstance(whole.pipeline.engine, ExactSearch)
    assert whole.pipeline.engine.doing == exact_ways.SEARCHES
    assert whole.progress.steps < plain.progress.steps
    dice, first, parts, matcher = Random(1), 0, [], Matcher(query.plan, output="points")
    while first < len(table):
        size = dice.randint(1, 2000)
        parts.append(matcher.push(table.slice(first, size)))
        first += size
        matcher = Matcher.from_state(query.plan, matcher.state_bytes())
    assert pa.concat_tables(parts).equals(expected)


def test_a_search_that_takes_too_much_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could take any number of tests: a try may take no more than runs do, and these answer meanwhile."""
    monkeypatch.setattr(exact_ways, "LEAST_STEPS", 2.0)
    monkeypatch.setattr(exact_ways, "TRIED_EVENTS", 256)
    dice = Random(2)
    table = pa.Table.from_pylist([{"ts": ts, "type": "A", "x": dice.randrange(1000)} for ts in range(6000)])
    text = "PATTERN SEQ(A a, A b, A c, A d) WHERE b.x > a.x AND c.x > b.x AND d.x > a.x + 998 WITHIN 200"
    query = compile_query(text, engine="runs")
    whole, plain = Matcher(query.plan, output="points"), Matcher(query.plan, output="points")
    plain.may_search = False
    assert whole.push(table).equals(plain.push(table))
    assert whole.pipeline is not None
    assert isinstance(whole.pipeline.engine, ExactSearch)
    assert whole.pipeline.engine.doing == exact_ways.FOLLOWS
    assert whole.pipeline.engine._rest > exact_ways.FIRST_REST
    assert whole.progress.steps < 3 * plain.progress.steps
