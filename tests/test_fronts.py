"""Runs that another can do all of: merged where points are asked for, the first to be shed where matches are listed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import REASONS, Allowance, Worth
from acep_approx.kernels.runs import scores
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from tests.cases import examples

RISING = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 300"
GROUPED = "PATTERN SEQ(A a, B b, C c) WHERE b.g = a.g AND b.x > a.x AND c.x > b.x AND c.g <> a.g WITHIN 300"
WINDOW = 300
DOMINATED = len(REASONS) - 1


def stream(events: int = 3000, seed: int = 1) -> pa.Table:
    """Many beginnings, few ends."""
    rng = np.random.default_rng(seed)
    columns = {"ts": np.arange(events), "x": rng.integers(0, 1000, events), "g": rng.integers(0, 4, events)}
    return pa.table({**columns, "type": rng.choice(["A", "B", "C", "N"], events, p=[0.55, 0.3, 0.05, 0.1])})


def alike(query: Query, dominated: float) -> Worth:
    """All runs are worth the same, but for those that are dominated."""
    matcher = Matcher(query.plan)
    matcher.bind(stream(1).schema)
    pools = len(engine_of(matcher).tables.pools)
    ones, none = np.ones(pools), [()] * pools
    return Worth(none, 1, (), ones, ones.copy(), np.zeros(pools), none, spread=10.0, dominated=dominated)


def inside(query: Query, shedding: Shedding, output: str = "matches", batch: int = 500) -> tuple[pa.Table, Matcher]:
    """The results of a query that sheds."""
    matcher = Matcher(query.plan, output=output, shedding=FixedLoad(shedding))  # type: ignore[arg-type]
    table = stream()
    parts = [matcher.push(table.slice(first, batch)) for first in range(0, len(table), batch)]
    return pa.concat_tables([*parts, matcher.finish()]), matcher


def engine_of(matcher: Matcher) -> Runs:
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    return engine


def exactly(query: Query, output: str = "points") -> tuple[pa.Table, Matcher]:
    matcher = Matcher(query.plan, output=output, merge="equal,chain")  # type: ignore[arg-type]
    return pa.concat_tables([matcher.push(stream()), matcher.finish()]), matcher


def tenth(query: Query) -> Allowance:
    """A tenth of what listing takes."""
    _, matcher = exactly(query)
    rate = 0.1 * matcher.progress.steps / matcher.progress.relevant
    return Allowance(rate=rate, price=0.05, reserve=256 * rate, reserve_share=0.01)


@pytest.mark.parametrize("text", [RISING, GROUPED])
def test_where_matches_are_listed_match_points_come_first(text: str) -> None:
    """All runs are worth the same: only dominance tells which are needed for match points."""
    query = compile_query(text, engine="runs")
    points = set(exactly(query)[0]["row"].to_pylist())
    ends = {}
    for share in (1 / 256, 1.0):
        found, _ = inside(query, Shedding(alike(query, share), tenth(query)))
        ends[share] = set(found["end"].to_pylist())
        assert ends[share] <= points  # rows are ticks here
    assert len(ends[1 / 256]) > 1.15 * len(ends[1.0])


@pytest.mark.parametrize("text", [RISING, GROUPED])
def test_points_merge_what_is_dominated(text: str) -> None:
    query = compile_query(text, engine="runs")
    points = exactly(query)[0]["row"].to_pylist()
    shedding = Shedding(alike(query, 1 / 256), tenth(query))
    found, matcher = inside(query, shedding, "points")
    assert set(found["row"].to_pylist()) <= set(points)
    assert len(found) > 0.7 * len(points)
    assert shedding.counts[:, DOMINATED].sum() == 0  # a merged run is not a shed one
    assert matcher.progress.merged > 500
    assert matcher.progress.steps + shedding.on_passes <= shedding.granted


def test_a_dominated_run_says_so_when_it_is_shed() -> None:
    query = compile_query(RISING, engine="runs")
    shedding = Shedding(alike(query, 1 / 256), tenth(query), logs_shed=True)
    _, matcher = inside(query, shedding)
    log = engine_of(matcher).logged()
    reasons = np.bincount(log[:, 0], minlength=len(REASONS))
    assert reasons.tolist() == shedding.counts.sum(axis=0).tolist()
    assert reasons[DOMINATED] > 500


@pytest.mark.parametrize("text", [RISING, GROUPED])
def test_a_run_that_is_gone_is_not_shed_again(text: str) -> None:
    """Where not even a look can be afforded all but the youngest go; of these some were dominated, or too old."""
    query, bound = compile_query(text, engine="runs"), REASONS.index("bound on run-steps")
    shedding = Shedding(alike(query, 1 / 256), Allowance(rate=2.0, price=0.05, reserve=-1.0), logs_shed=True)
    _, matcher = inside(query, shedding)
    log = engine_of(matcher).logged()
    assert (log[:, scores.LOG_REASON] == bound).sum() > 100
    assert (log[:, scores.LOG_REASON] == DOMINATED).any()
    assert (log[:, scores.LOG_START] >= log[:, scores.LOG_TICK] - WINDOW).all()
    assert engine_of(matcher).work()[-1] == len(log)


@examples(20, shrink=False)
@given(st.integers(0, 2**20), st.sampled_from((RISING, GROUPED)), st.sampled_from(("points", "matches")))
def test_what_is_written_down_changes_nothing(seed: int, text: str, output: str) -> None:
    """Without a log nobody asks how far below the price a run is."""
    random, query = Random(seed), compile_query(text, engine="runs")
    rate, price = random.choice((2.0, 10.0, 40.0)), random.choice((0.01, 0.05, 0.3))
    some = Allowance(rate=rate, price=price, reserve=random.choice((-1.0, 8 * rate)), seed=seed)
    worth = replace(alike(query, 1 / 256), overlap=np.full(len(alike(query, 1.0).gain), random.random()))
    worth = replace(worth, covers=[[place] for place in range(len(worth.gain))])
    found = []
    for logs in (False, True):
        shedding = Shedding(worth, some, logs_shed=logs)
        table, matcher = inside(query, shedding, output)
        found.append((table, matcher.progress.steps, shedding.on_passes, shedding.counts.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("text", [RISING, GROUPED])
@pytest.mark.parametrize("output", ["points", "matches", "counts"])
def test_where_there_is_plenty_nothing_is_lost(text: str, output: str) -> None:
    query = compile_query(text, engine="runs")
    exact, _ = exactly(query, output)
    shedder = Shedder(query.plan, Load(Budget.parse("100%"), policy="oldest", full_work=1.0))
    matcher = Matcher(query.plan, output=output, shedding=shedder)  # type: ignore[arg-type]
    found = pa.concat_tables([matcher.push(stream()), matcher.finish()])
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, exact.to_pylist()))
    assert shedder.arena.counts.sum() == 0


@pytest.mark.parametrize("output", ["points", "matches"])
def test_what_the_audit_protects_no_better_run_takes_away(output: str) -> None:
    """The price sheds all, and all is audited: all is found."""
    query = compile_query(RISING, engine="runs")
    dear = Allowance(rate=1e6, price=1e9, reserve=-1.0, audit=1.0, epoch=10**9)
    found, _ = inside(query, Shedding(alike(query, 1 / 256), dear), output)
    exact, _ = exactly(query, output)
    assert len(found) == len(exact)


@examples(30, shrink=False)
@given(st.integers(0, 2**20), st.sampled_from((RISING, GROUPED)), st.sampled_from(("points", "matches")))
def test_batches_change_nothing_and_the_bound_holds_at_every_event(seed: int, text: str, output: str) -> None:
    """Also with events of no interest: they are granted for at the next event that is tested."""
    random, query = Random(seed), compile_query(text, engine="runs")
    table = stream(200, seed)
    budget = random.choice(("5%", "30%", "0.3 steps/event", "2 steps/event", "20 steps/event"))
    found = []
    for most in (1, 40, 200):
        load = Load(Budget.parse(budget), policy="oldest", full_work=20.0, audit=0.0, seed=seed)
        shedder, parts, first = Shedder(query.plan, load), [], 0
        matcher = Matcher(query.plan, output=output, shedding=shedder)  # type: ignore[arg-type]
        while first < len(table):
            rows = random.randrange(1, most + 1)
            parts.append(matcher.push(table.slice(first, rows)))
            first += rows
            assert matcher.progress.steps + shedder.arena.on_passes <= shedder.arena.granted + 1e-6
            assert shedder.granted == pytest.approx(shedder.arena.allowance.rate * matcher.progress.events)
        found.append((pa.concat_tables([*parts, matcher.finish()]), matcher.progress.steps))
    assert found[0] == found[1] == found[2]
