"""The runs engine inside a load budget: what it reports is true, and the bound holds at every event."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance, RunFeature, Worth
from acep_approx.kernels.runs import scores as kernel_scores
from acep_approx.planning.planner import MERGING
from tests.cases import examples
from tests.match_tables import bindings
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for

ALL = ",".join(MERGING)
EXPLODING = "PATTERN SEQ(A a, A b, A c, B d) WHERE b.x <> a.x AND c.x <> b.x AND d.x <> a.x AND d.x <> b.x WITHIN 60"


def engine_of(matcher: Matcher) -> Runs:
    """The runs engine of a matcher that has seen events."""
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    return engine


def random_worth(query: Query, table: pa.Table, seed: int) -> Worth:
    """Arbitrary features, gains, costs and covers for the pools of a query."""
    random = Random(seed)
    matcher = Matcher(query.plan)
    engine = matcher.bind(table.schema).engine
    assert isinstance(engine, Runs)
    features: list[list[RunFeature]] = []
    for pool in engine.tables.pools:
        some = []
        for column in range(min(pool.alike - 1, 2)):
            edges = tuple(sorted(random.uniform(-2, 5) for _ in range(random.randrange(3))))
            kind = random.choice(("int", "float"))
            some.append(RunFeature(kind, column, len(edges) + 2, edges))  # type: ignore[arg-type]
        if len(some) < 2 and random.random() < 0.3:
            some.append(RunFeature("key", -1, 3, groups={"p": 0, "q": 1, "1": 1}))
        features.append(some)
    groups = [int(np.prod([f.buckets for f in some])) for some in features]
    vertices = sum(groups) * 4 * 3
    rng = np.random.default_rng(seed)
    pools = len(features)
    covers = [[p, *rng.integers(0, pools, random.randrange(3)).tolist()] for p in range(pools)]
    window = max(query.plan.query.window.amount, 1)
    return Worth(
        features=features,
        remaining=4,
        since=(0, int(window // 4)),
        gain=rng.exponential(size=vertices),
        cost=rng.uniform(0.1, 3, vertices),
        overlap=rng.uniform(0, 1, pools),
        covers=covers,
        coin_per_run=random.random() < 0.5,
    )


def random_allowance(random: Random) -> Allowance:
    """Budgets from nothing to nearly all."""
    if random.random() < 0.3:
        price, audit = random.choice((1e-3, 0.3, 2.0)), random.choice((0.0, 0.4))
        return Allowance(runs=random.randrange(6), price=price, audit=audit, epoch=7)
    rate = random.choice((0.0, 0.3, 1.0, 3.0, 20.0))
    return Allowance(
        rate=rate,
        most=random.choice((rate, 4 * rate, 1e18)),
        price=random.choice((1e-3, 0.3, 2.0)),
        reserve=max(rate, 0.1),
        reserve_share=random.choice((0.0, 0.1)),
        audit=random.choice((0.0, 0.4)),
        epoch=7,
    )


@examples(150, shrink=False)
@given(rich_worlds(), st.integers(0, 2**20), st.sampled_from((ALL, "none", "equal,chain")))
def test_whatever_is_shed_every_match_is_true_and_the_bound_holds_at_every_event(
    world: RichWorld, seed: int, merge: str
) -> None:
    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None or not world.rows:
            return
        random = Random(seed)
        table = world.table()
        shedding = Shedding(random_worth(query, table, seed), random_allowance(random))
        matcher = Matcher(query.plan, merge=merge, shedding=FixedLoad(shedding))
        tables = []
        for event in range(len(table)):
            tables.append(matcher.push(table.slice(event, 1)))
            holds_bound(matcher, shedding)
        found = bindings(pa.concat_tables([*tables, matcher.finish()]), world.query)
        expected = world.expected()
        for bound, errors in found.items():
            assert bound in expected
            assert errors >= expected[bound]  # the way with the least may have been shed

    holds_for(world, check)


def holds_bound(matcher: Matcher, shedding: Shedding) -> None:
    """Between two events the work done is within what was granted, and so are the live runs."""
    engine = engine_of(matcher)
    allowance = shedding.allowance
    if allowance.runs >= 0:
        assert engine.control[11] <= allowance.runs  # LIVE
    else:
        assert engine.work()[0] + shedding.on_passes <= shedding.granted + 1e-6
        assert shedding.granted == pytest.approx(allowance.rate * matcher.progress.relevant)
    engine.put_away()
    assert shedding.counts.sum() == engine.control[19]  # SHED


@examples(100, shrink=False)
@given(rich_worlds(), st.sampled_from((ALL, "none")))
def test_a_budget_that_suffices_changes_nothing(world: RichWorld, merge: str) -> None:
    """Without a price nothing is weighed; with one, but a bound that is far away, in the end nothing is shed either."""

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None:
            return
        table = world.table()
        plenty = Allowance(rate=1e6, price=1e-30, reserve=1.0)
        for shedding in (Shedding(None, Allowance()), Shedding(None, plenty)):
            matcher = Matcher(query.plan, merge=merge, shedding=FixedLoad(shedding))
            found = pa.concat_tables([matcher.push(table), matcher.finish()]) if len(table) else matcher.finish()
            assert bindings(found, world.query) == world.expected()
            assert shedding.counts.sum() == 0

    holds_for(world, check)


def stream(events: int, seed: int = 1) -> pa.Table:
    """Events of two types and two keys, with a number."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(rng.integers(0, 3, events)),
            "type": rng.choice(["A", "A", "A", "B"], events),
            "x": rng.integers(0, 50, events),
            "k": rng.choice(["p", "q"], events),
        }
    )


def run(
    query: str, table: pa.Table, shedding: Shedding, batch: int = 10_000, **options: Any
) -> tuple[pa.Table, Matcher]:
    """The matches of a query, pushed in batches."""
    matcher = Matcher(compile_query(query, engine="runs").plan, shedding=FixedLoad(shedding), **options)
    parts = [matcher.push(table.slice(first, batch)) for first in range(0, len(table), batch)]
    return pa.concat_tables([*parts, matcher.finish()]), matcher


def budget(rate: float, **more: Any) -> Shedding:
    """All runs are worth the same; so many run-steps per event."""
    usual = {"rate": rate, "price": 1.0, "reserve": 50 * rate, "reserve_share": 0.05}
    return Shedding(None, Allowance(**{**usual, **more}))


def test_more_budget_finds_more() -> None:
    table = stream(4000)
    found = [len(run(EXPLODING, table, budget(rate))[0]) for rate in (1, 4, 16, 64, 1e6)]
    assert found == sorted(found)
    assert 0 < found[1] < found[3] < found[4]


def test_the_budget_is_used() -> None:
    table = stream(4000)
    shedding = budget(10.0)
    _, matcher = run(EXPLODING, table, shedding)
    used = matcher.progress.steps + shedding.on_passes
    assert 0.75 * shedding.granted < used <= shedding.granted


@pytest.mark.parametrize("allowance", [{"rate": 8.0}, {"rate": 20.0, "most": 20.0}, {"rate": 1e18, "runs": 40}])
def test_the_same_in_any_split_and_inside_the_bound_over_a_restart(allowance: dict[str, Any]) -> None:
    table, query = stream(600), EXPLODING.replace("60", "20")
    whole, matcher = run(query, table, budget(**allowance, reserve=100.0))
    again, _ = run(query, table, budget(**allowance, reserve=100.0))
    split, _ = run(query, table, budget(**allowance, reserve=100.0), batch=7)
    assert whole.equals(again)
    assert whole.equals(split)
    plan = matcher.plan
    parts = []
    state = None
    for first in range(0, len(table), 100):
        shedding = budget(**allowance, reserve=100.0)
        load = FixedLoad(shedding)
        part = Matcher(plan, shedding=load) if state is None else Matcher.from_state(plan, state, load)
        parts.append(part.push(table.slice(first, 100)))
        state = part.state_bytes()
        holds_bound(part, shedding)
    assert pa.concat_tables(parts).equals(whole)
    assert len(whole) > 0


def test_protected_runs_are_marked_not_shed() -> None:
    table, query = stream(800), EXPLODING.replace("60", "20")
    shedding = budget(0.5, audit=1.0, epoch=10**9)
    _, matcher = run(query, table, shedding)
    assert shedding.counts[:, :2].sum() == 0  # only the bound sheds them
    assert shedding.broken == shedding.counts.sum() > 0
    exact, _ = run(query, table, Shedding(None, Allowance()))
    dear = Allowance(rate=1e6, price=1e9, reserve=-1.0, audit=1.0, epoch=10**9)
    kept, _ = run(query, table, Shedding(None, dear))
    assert Counter(map(str, kept.to_pylist())) == Counter(map(str, exact.to_pylist()))
    assert len(run(query, table, Shedding(None, Allowance(rate=1e6, price=1e9, reserve=-1.0)))[0]) == 0
    assert matcher.progress.steps > 0


def test_shed_runs_are_logged_with_their_scores() -> None:
    table = stream(1500)
    features = [(), (RunFeature("int", 0, 3, (10.0,)),), (), (), ()]
    gain, ones = np.linspace(0.1, 1, 7 * 8), np.ones(7 * 8)
    worth = Worth(features, 4, (0,), gain, ones, np.full(5, 0.5), [(p,) for p in range(5)])
    allowance = Allowance(rate=4.0, price=0.2, reserve=100.0)
    shedding = Shedding(worth, allowance, logs_shed=True)
    _, matcher = run(EXPLODING, table, shedding)
    log = engine_of(matcher).logged()
    assert len(log) == shedding.counts.sum() > 100
    reasons = np.bincount(log[:, 0], minlength=kernel_scores.REASONS)
    assert reasons.tolist() == shedding.counts.sum(axis=0).tolist()
    born = log[log[:, 0] == kernel_scores.LOW_PRICE]
    scores, prices = np.ascontiguousarray(born[:, 9]).view(float), np.ascontiguousarray(born[:, 10]).view(float)
    assert (scores < prices).all()
    assert (scores >= 0).all()
    assert (log[:, 5] <= log[:, 6]).all()  # started before its last event
    assert (log[:, 6] <= log[:, 3]).all()  # which came before it was shed
    ticks = table["ts"].to_numpy()
    assert (ticks[log[:, 2]] == log[:, 3]).all()


def test_births_are_logged_where_nothing_is_shed() -> None:
    table = stream(400)
    shedding = Shedding(None, Allowance(), logs_births=True)
    query = "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 20"
    found, matcher = run(query, table, shedding, merge="none")
    log = engine_of(matcher).logged()
    assert set(log[:, 0]) == {kernel_scores.BORN}
    assert len(log) == matcher.progress.made - len(found)  # the last state keeps no runs
    assert shedding.counts.sum() == 0


def test_the_richest_of_two_kinds_is_kept() -> None:
    """With features on a register, runs of the better bucket live and the others go."""
    table = stream(3000)
    query = "PATTERN SEQ(A a, A b, B c) WHERE b.x <> a.x AND c.x <> a.x WITHIN 60"
    gain = np.array([1.0, 1e-4, 1.0, 1e-4, 1.0, 1.0])
    features = [(), (RunFeature("int", 0, 3, (25.0,)),), (), ()]
    worth = Worth(features, 1, (), gain, np.ones(6), np.zeros(4), [()] * 4)
    shedding = Shedding(worth, Allowance(rate=12.0, price=0.5, reserve=-1.0))
    matcher = Matcher(compile_query(query, engine="runs").plan, shedding=FixedLoad(shedding))
    found = matcher.push(table)
    rows = np.array([match["a"] for match in found.to_pylist()])
    assert len(rows) > 100
    assert (table["x"].to_numpy()[rows] >= 25).mean() > 0.99


def test_mutant_a_pass_that_forgets_the_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If tests were not charged to the budget, the check of the bound would fail."""
    shedding = budget(2.0)
    _, matcher = run(EXPLODING, stream(500), shedding)
    shedding.floats[kernel_scores.GRANTED] = 0.0
    with pytest.raises(AssertionError):
        holds_bound(matcher, shedding)
