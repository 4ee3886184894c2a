"""Expanding by a window on both sides: all matches of the match bundles of which a budget found a match point."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.results.budgeted import BudgetedMatches
from tests.cases import examples
from tests.shed_streams import LISTED, world

LATE = "PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] AND a.x <> b.x WITHIN 12"
WINDOW = 12


def grown(found: set[int], ends: set[int]) -> set[int]:
    """By brute force: all match points that a chain of steps of at most a window leads to."""
    known, new = set(found), set(found)
    while new:
        new = {end for end in ends - known if any(abs(end - one) <= WINDOW for one in known)}
        known |= new
    return known


def rows(table: pa.Table) -> list[dict[str, object]]:
    return table.to_pylist()


@examples(40)
@given(st.integers(0, 10_000), st.sampled_from([LISTED, LATE]), st.sampled_from(["1 steps/event", "2 runs"]))
def test_all_matches_of_the_bundles_are_listed(seed: int, text: str, budget: str) -> None:
    query, events = compile_query(text, engine="runs"), world(seed, 60)
    some = query.match_within(events, budget, audit=0, policy="random", seed=seed)
    found = set(some.points()["end"].to_pylist())
    exact = query.match(events).to_arrow()
    wanted = grown(found, set(exact["end"].to_pylist()))
    assert rows(some.expanded(bundles=True)) == [row for row in rows(exact) if row["end"] in wanted]
    assert some.expansion.rounds > 0 or not found
    assert rows(some.expanded()) == [row for row in rows(exact) if row["end"] in found]
    assert some.expansion.rounds == 0


def some_of(rows_: int) -> BudgetedMatches:
    """Two bundles far apart, of which a budget finds the first; each of many match points."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 12", engine="runs")
    first = [{"ts": t, "type": "AB"[t % 2], "x": t} for t in range(rows_)]
    second = [{"ts": 1000 + t, "type": "AB"[t % 2], "x": t} for t in range(rows_)]
    return query.match_within([*first, *second], "3 runs", audit=0, policy="random")


def test_a_bundle_that_was_not_found_is_not_expanded_and_the_cost_is_told() -> None:
    some = some_of(60)
    assert some.points().num_rows > 0
    alone = some.expanded()
    cost = some.expansion
    assert 0 < cost.events <= 120
    assert cost.steps > 0
    whole = some.expanded(bundles=True)
    assert whole.num_rows >= alone.num_rows
    assert some.expansion.events > cost.events
    assert some.expansion.steps > cost.steps


@pytest.mark.parametrize("bind", ["x", ["x", "ts"]])
def test_what_stands_for_events_stays(bind: str | list[str]) -> None:
    query, events = compile_query(LISTED, engine="runs"), world(3, 60)
    some = query.match_within(events, "2 runs", audit=0, bind=bind)
    whole = query.match(events, bind=bind).to_arrow()
    got = some.expanded(bundles=True)
    assert got.schema == whole.schema
    assert all(row in rows(whole) for row in rows(got))
