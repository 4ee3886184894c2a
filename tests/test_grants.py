"""Run-steps are granted evenly: events of no interest count at the next event that is tested; small budgets save up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.shedding.load import CARRIED, Load
from acep_approx.shedding.shedder import Shedder

NEAR = "PATTERN SEQ(A a, B b, C c) WHERE (b.x - a.x) * (b.x - a.x) < 900 AND c.x > b.x AND c.x < a.x + 9 WITHIN 1000"
APART = 10
"""Every so many events one is of interest."""


def stream(events: int = 1000, seed: int = 1) -> pa.Table:
    """Nine events of no interest before each that has a letter."""
    rng = np.random.default_rng(seed)
    kind = np.full(events * APART, "N")
    kind[APART - 1 :: APART] = rng.choice(["A", "B", "C"], events, p=[0.5, 0.3, 0.2])
    return pa.table({"ts": np.arange(len(kind)), "type": kind, "x": rng.integers(0, 300, len(kind))})


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(NEAR, engine="runs")


@pytest.fixture(scope="module")
def history(query: Query) -> HistoryGraph:
    known = HistoryGraph(query).fit(stream(seed=2))
    known.search_ = None  # partial matches are followed
    return known


@pytest.mark.parametrize("share", ["2%", "10%", "30%"])
def test_a_budget_finds_what_the_same_work_per_event_of_interest_finds(
    query: Query, history: HistoryGraph, share: str
) -> None:
    """In whatever batches the stream comes: what the tables say of a share of the work is what users get."""
    load = Load(Budget.parse(share), history, audit=0.0, seed=4, full_work=history.steps_per_event_)
    shedder = Shedder(query.plan, load)
    Matcher(query.plan, shedding=shedder).bind(stream(1).schema)
    allowance = shedder.arena.allowance
    some = Shedding(shedder.arena.worth, replace(allowance, rate=APART * allowance.rate))
    matcher = Matcher(query.plan, output="points", shedding=FixedLoad(some))
    expected = pa.concat_tables([matcher.push(stream()), matcher.finish()])
    assert len(expected) > 0
    for batch in (90, 1700, 100_000):
        found = Matcher(query.plan, output="points", shedding=Shedder(query.plan, load))
        parts = [found.push(stream().slice(first, batch)) for first in range(0, len(stream()), batch)]
        assert pa.concat_tables([*parts, found.finish()]).equals(expected)
        assert found.progress.steps == matcher.progress.steps


@pytest.mark.parametrize("budget", ["0.3 steps/event", "1 steps/event"])
@pytest.mark.parametrize("learn", [False, True])
def test_less_than_a_run_step_per_event_finds_something(
    query: Query, history: HistoryGraph, budget: str, learn: bool
) -> None:
    """What is granted is carried over until it pays for tests."""
    few = query.match_within(stream(), budget, history=history, learn=learn, seed=1)
    found = few.points()
    record = few.record()
    assert 0 < len(found) < len(query.match(stream()).points())
    assert all(piece.work <= piece.bound for piece in record.pieces)
    assert found["row"].to_pylist() == sorted(set(found["row"].to_pylist()))


def test_what_is_carried_over_is_little(query: Query) -> None:
    """At no event more is tested than is granted for it, but for so many run-steps where less is."""
    matcher = Matcher(query.plan, shedding=Shedder(query.plan, Load(Budget.parse("3 steps/event"), policy="oldest")))
    before, events = 0, stream()
    for first in range(0, 3000, APART):
        matcher.push(events.slice(first, APART))
        steps = matcher.progress.steps
        assert steps - before <= CARRIED
        before = steps
    assert before > 100
