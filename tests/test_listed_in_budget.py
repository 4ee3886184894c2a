"""Matches that are listed backwards inside a budget: none that is none, one of each match point first, in any split."""

from __future__ import annotations

from collections import Counter
from copy import copy
from random import Random

import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.kernels.search.end_search import ALL
from acep_approx.matching.outputs.kinds import MATCHES
from acep_approx.pages.budget.lines import searched_words
from acep_approx.results.shed_replay import in_words
from acep_approx.shedding.metrics import LEFT_OPEN
from tests.cases import cases
from tests.numbered_worlds import numbered_world, numbers
from tests.one_reading import learned
from tests.rich_worlds import RichWorld
from tests.searched import QUERY, backward, forward_listed, listed, some_orders, stream, turned
from tests.smaller_worlds import holds_for


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(map(str, table.to_pylist()))


def test_any_world_that_can_be_listed_in_a_budget() -> None:
    """Without a limit all are found, row by row; with one some of them, the same in any split and restarted."""
    some = 0

    def agrees(world: RichWorld, number: int) -> None:
        query = listed(world.text)
        if query is None:  # a smaller world, when one is looked for
            return
        table, dice = world.table(), Random(number)
        exact, searches = forward_listed(query, table), some_orders(query.plan.paths, Random(number), ALL)
        assert backward(query, table, searches, output=MATCHES).equals(exact), (world.text, world.rows)
        for rate in (0.3, 1.0, 4.0):
            found = backward(query, table, searches, output=MATCHES, rate=rate)
            assert rows_of(found) <= rows_of(exact), (world.text, world.rows, rate)
            split = backward(query, table, searches, dice, MATCHES, rate=rate)
            assert split.equals(found), (world.text, world.rows, rate)

    for number in numbers(cases(12_000, 800)):
        world = numbered_world(number)
        if listed(world.text) is not None:
            some += 1
            holds_for(world, lambda world, number=number: agrees(world, number))
    assert some > 20


@pytest.mark.parametrize("text", [QUERY, QUERY.replace("[g] AND", "") + " ERRORS 1"])
def test_nothing_is_lost_however_often_it_turns(text: str) -> None:
    """Runs answer for a while, then a search: without a limit all matches are listed, row by row."""
    query = compile_query(text, engine="runs")
    for seed in range(cases(20, 3)):
        dice, table = Random(seed), stream(2000, seed)
        found = turned(query, table, some_orders(query.plan.paths, dice, ALL), dice, MATCHES)
        assert found.equals(forward_listed(query, table))


# --- as users run it ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known() -> tuple[Query, HistoryGraph]:
    query = compile_query(QUERY, engine="runs")
    return query, learned(HistoryGraph(query), stream(4000, 2))


@pytest.mark.parametrize("budget", ["2%", "10%", "60%", "3 steps/event", "400 steps/event"])
def test_a_load_that_rises_thirtyfold(budget: str, known: tuple[Query, HistoryGraph]) -> None:
    """No more work than granted at any event, no match that is none, and the same in any split and restarted."""
    query, history = known
    table = stream(3000, 3, rises_at=0.7)
    exact, some = rows_of(forward_listed(query, table)), query.match_within(table, budget, history=history)
    found = [row for part in some.tables() for row in part.to_pylist()]
    record = some.record()
    assert Counter(map(str, found)) <= exact
    assert (record.ends > 0) == (budget != "400 steps/event")  # then following partial matches lists all
    assert all(piece.work <= piece.bound + 1 for piece in record.pieces)
    if record.unsearched == record.unlisted == record.shed_runs == 0:
        assert len(found) == exact.total()
    matcher, parts, dice, first = query.matcher(budget=budget, history=history), [], Random(4), 0
    while first < len(table):
        size = dice.randint(1, 1500)
        parts += matcher.push(table.slice(first, size)).to_pylist()
        first += size
        matcher = query.from_state(matcher.state_bytes(), history=history)
    assert parts == found


def test_each_match_point_has_a_match_first(known: tuple[Query, HistoryGraph]) -> None:
    """As many match points as where only these are asked for, far more matches than runs complete, and it is said."""
    query, history = known
    table = stream(6000, 7)
    some = query.match_within(table, "2 steps/event", history=history)
    found, record = pa.concat_tables(some.tables()), some.record()
    points = len(query.match_within(table, "2 steps/event", history=history).points())
    assert record.found > 0.9 * points
    assert record.unlisted > 0
    assert f"of {record.unlisted:,} others whether they end more matches" in searched_words(record)
    follows = copy(history)
    follows.search_ = None
    followed = pa.concat_tables(query.match_within(table, "2 steps/event", history=follows).tables())
    assert len(followed) < len(found) < len(query.match(table))


@pytest.mark.parametrize("output", ["points", "matches"])
def test_which_ends_were_left_open_can_be_had(known: tuple[Query, HistoryGraph], output: str) -> None:
    """Events of which the budget left it open whether a match ends there; what was found is not among them."""
    query, history = known
    table = stream(3000, 8)
    exact = set(query.match(table).points()["row"].to_pylist())
    some = query.match_within(table, "4%" if output == "points" else "1%", history=history, log_shed=True)
    shown = some.points() if output == "points" else pa.concat_tables(some.tables())
    left_open = some.shed()
    assert len(left_open) == some.record().unsearched > 0
    assert set(left_open["reason"].to_pylist()) == {LEFT_OPEN}
    rows = left_open["row"].to_pylist()
    found = set(shown["row" if output == "points" else "c"].to_pylist())
    assert not found & set(rows)
    assert exact - found <= set(rows)
    assert left_open["key"].to_pylist() == table["g"].take(rows).to_pylist()
    assert left_open["at"].to_pylist() == table["ts"].take(rows).to_pylist()
    assert left_open["score"].null_count == len(rows)
    assert [name for name, _ in in_words(left_open.to_pylist()[0], some)] == ["why"]
    whole = query.match_within(table, "60%", history=history, log_shed=True)
    whole.points()
    assert len(whole.shed()) == whole.record().unsearched == 0
    assert whole.shed().schema == left_open.schema
