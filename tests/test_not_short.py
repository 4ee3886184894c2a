"""A budget in run-steps per event, or in runs, sheds nothing before less is left than should be."""

from __future__ import annotations

from copy import copy
from random import Random

import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Query, compile_query
from tests.cases import cases

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x AND c.x < b.x WITHIN 30"
PLENTY = ("999M steps/event", "1M runs")


def stream(seed: int, events: int, first: int = 0) -> pa.Table:
    """Events of three keys, up to two ticks apart."""
    dice, now, rows = Random(seed), first, []
    for _ in range(events):
        now += dice.randrange(3)
        rows.append((now, dice.choice("AABC"), dice.choice("uvw"), dice.randrange(100)))
    return pa.table(dict(zip(("ts", "type", "key", "x"), zip(*rows, strict=True), strict=True)))


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY)


@pytest.fixture(scope="module")
def history(query: Query) -> HistoryGraph:
    return HistoryGraph(query).fit(stream(1, 700))


@pytest.mark.parametrize("seed", range(cases(48, 2)))
@pytest.mark.parametrize("budget", [*PLENTY, "40 steps/event"])
@pytest.mark.parametrize("knows", [False, True])
def test_what_is_never_short_sheds_nothing(
    query: Query, history: HistoryGraph, seed: int, budget: str, knows: bool
) -> None:
    events = stream(seed, 300, 20_000)
    within = query.match_within(events, budget, history=history if knows else None, audit=0)
    exact = query.match(events)
    assert within.points().equals(exact.points())
    assert within.record().shed_runs == 0
    assert within.expanded().num_rows == within.to_arrow().num_rows == exact.to_arrow().num_rows
    assert within.record().shed_runs == 0


@pytest.mark.parametrize("budget", ["1 steps/event", "3 runs"])
def test_from_the_first_shortness_on_a_price_is_paid(query: Query, history: HistoryGraph, budget: str) -> None:
    history = copy(history)
    history.search_ = None  # partial matches are followed
    within = query.match_within(stream(3, 900, 20_000), budget, history=history, audit=0)
    within.to_arrow()
    assert within.shedder is not None
    assert within.shedder.arena.price > 0
    assert within.shedder.arena.counts[:, :2].sum() > 0  # for their price, not by the bound


def test_a_run_that_goes_on_after_a_stop_still_waits(query: Query) -> None:
    events = stream(4, 400)
    first = query.matcher(budget=PLENTY[0])
    first.push(events.slice(0, 200))
    again = query.from_state(first.state_bytes())
    again.push(events.slice(200))
    again.finish()
    assert again.record().shed_runs == 0
