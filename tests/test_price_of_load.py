"""The price of a budget where the load is another one than that of the past: it follows, and does not run away."""

from __future__ import annotations

from copy import copy

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.pricing import PricePoint, Prices

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 200"
EVENTS = 20_000


def stream(events: int = EVENTS, keys: int = 5, letters: str = "ABC", seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    kind = np.array(list(letters))[rng.integers(0, len(letters), events)]
    return pa.table(
        {"ts": np.arange(events), "type": kind, "x": rng.integers(0, 100, events), "id": rng.integers(0, keys, events)}
    )


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY, engine="runs")


@pytest.fixture(scope="module")
def known(query: Query) -> HistoryGraph:
    return HistoryGraph(query).fit(stream(6000, seed=2))


def test_a_price_far_too_high_comes_down_where_the_past_says_that_it_hardly_matters(
    query: Query, known: HistoryGraph
) -> None:
    """In the past a price a little lower kept many more runs; now it takes one that is much lower."""
    misled = copy(known)
    exact = known.prices_.replays[0]
    most = 1000 * max(replay.price for replay in known.prices_.replays)
    few = PricePoint(1.001 * most, exact.steps // 100, exact.points // 100)
    misled.prices_ = Prices((exact, PricePoint(most, exact.steps // 2, exact.points // 2), few))
    assert misled.prices_.elasticity(0.2) < 0.02
    some = query.match_within(stream(), "20%", history=misled, audit=0)
    found = len(some.points())
    record = some.record()
    assert record.work > 0.5 * record.allowed
    assert all(piece.work <= piece.bound for piece in record.pieces)
    assert found > 0.2 * len(query.match(stream()).points())


def test_where_nothing_is_shed_the_price_stays(query: Query, known: HistoryGraph) -> None:
    """Or it would have to climb back for as long when the load comes."""
    shedder = Shedder(query.plan, Load(Budget.parse("20 steps/event"), known, audit=0.0))
    matcher = Matcher(query.plan, output="points", shedding=shedder)
    matcher.push(stream(letters="BC"))
    assert shedder.arena.counts.sum() == 0
    assert shedder.arena.factor == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("share", "least"), [("2%", 0.01), ("10%", 0.1)])
def test_a_short_input_is_not_held_back_for(query: Query, known: HistoryGraph, share: str, least: float) -> None:
    """Of a few hundred run-steps in all most are spent, instead of being saved for what no longer comes."""
    short = stream(2000, seed=3)
    some = query.match_within(short, share, history=known, audit=0)
    found, record = len(some.points()), some.record()
    assert record.allowed < 2000
    assert record.work > 0.5 * record.allowed
    assert found > least * len(query.match(short).points())
