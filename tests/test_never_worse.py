"""Learning on top of a history: never worse than the history alone where it still holds, and it says why it changes."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.cli.on_spark.demo import NOW_BEGINS
from acep_approx.cli.on_spark.demo import QUERY as DEMO
from acep_approx.errors import FewPointsWarning
from acep_approx.events.demo import flights
from acep_approx.learning.judging import Promise, Ranking, Tally, found_within, patience
from acep_approx.learning.learner import Learner
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.shedding import shedder
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.policies import RANDOM_SPREAD
from acep_approx.training.pricing import Prices
from history.bundles import Bundles
from history.trace import Trace
from history.values import Values
from history.vectors import Place, Scheme
from tests.cases import FULL

pytestmark = pytest.mark.usefixtures("one_reading")

QUERIES = (
    "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 200",
    "PATTERN SEQ(A a, B b, C c) WHERE [id] AND b.x > a.x AND c.x > b.x WITHIN 300",
)
EVENTS = 9000


def seeds(full: int) -> tuple[int, ...]:
    """Of so many seeds two, whose pasts are learned once for all tests."""
    return tuple(range(full)) if FULL else (1, 2)


def world(seed: int, *, events: int, first: int = 0, least: int | None = None) -> pa.Table:
    """One event a tick; keys differ in how often they come, and C has its x in a narrow range."""
    dice = np.random.default_rng(seed)
    share, keys = dice.dirichlet([6, 6, 3]), dice.integers(4, 30)
    weight, low = dice.dirichlet(np.ones(keys)), int(dice.integers(5, 85)) if least is None else least
    rng = np.random.default_rng([seed, first])
    letter, x = rng.choice(3, events, p=share), rng.integers(0, 100, events)
    x[letter == 2] = low + rng.integers(0, 10, (letter == 2).sum())
    ticks = np.arange(first, first + events)
    key = np.char.add("k", rng.choice(keys, events, p=weight).astype(str))
    return pa.table({"ts": ticks, "type": np.array(list("ABC"))[letter], "x": x, "id": key})


def ran(query: Query, now: pa.Table, known: HistoryGraph, *, learns: bool, budget: str = "10%") -> BudgetedMatches:
    some = query.match_within(now, budget, history=known, learn=learns)
    some.to_arrow()
    return some


Past = Callable[..., HistoryGraph]


@pytest.fixture(scope="module")
def past() -> Past:
    """What the first events of a world of a seed say: each is learned once, and given as a copy."""

    @cache
    def fitted(text: str, seed: int, least: int | None) -> HistoryGraph:
        known = HistoryGraph(compile_query(text, engine="runs")).fit(world(seed, events=EVENTS, least=least))
        known.search_ = None  # partial matches are followed
        return known

    return lambda seed, least=None, text=QUERIES[0]: copy(fitted(text, seed, least))


def learner_of(some: BudgetedMatches) -> Learner:
    assert some.shedder is not None
    assert some.shedder.online is not None
    return some.shedder.online.learner


@pytest.mark.parametrize("text", QUERIES)
def test_where_nothing_changes_learning_on_finds_as_much_as_the_history(text: str, past: Past) -> None:
    """Worlds of their own for each seed; what is learned costs a twentieth of the budget."""
    query, frozen, ours = compile_query(text, engine="runs"), [], []
    for seed in seeds(8):
        known = past(seed, text=text)
        now = world(seed, events=2 * EVENTS, first=EVENTS)
        exact = query.match(now).points().num_rows
        for learns, found in ((False, frozen), (True, ours)):
            found.append(ran(query, now, known, learns=learns).points().num_rows / max(exact, 1))
    assert np.mean(frozen) > 0.3
    assert np.mean(ours) > np.mean(frozen) - 0.02
    assert min(mine - theirs for mine, theirs in zip(ours, frozen, strict=True)) > -0.08


def test_after_a_change_what_was_learned_takes_over(past: Past) -> None:
    query, frozen, ours = compile_query(QUERIES[0], engine="runs"), [], []
    for seed in seeds(3):
        known = past(seed, 10)
        now = world(seed, events=2 * EVENTS, first=EVENTS, least=80)
        some = ran(query, now, known, learns=True, budget="20%")
        assert learner_of(some).known is None
        assert any(alarm.what == "promise" for alarm in learner_of(some).alarms)
        ours.append(some.points().num_rows)
        frozen.append(ran(query, now, known, learns=False, budget="20%").points().num_rows)
    assert np.sum(ours) > 2 * np.sum(frozen)


def test_after_a_change_as_much_is_found_as_by_learning_from_nothing(past: Past) -> None:
    """From ten windows after an abrupt change on, means over seeds; a change takes some windows to be noticed."""
    query = compile_query(QUERIES[0], engine="runs")
    frozen, ours, cold = [], [], []
    for seed in seeds(6):
        known = past(seed, 10)
        before = world(seed, events=EVENTS, first=EVENTS, least=10)
        after = world(seed, events=2 * EVENTS, first=2 * EVENTS, least=80)
        later = 2 * EVENTS + 10 * 200
        exact = (np.array(query.match(after).points()["end"]) >= later).sum()
        whole, work = pa.concat_tables([before, after]), known.steps_per_event_
        for table, history, learns, found in (
            (whole, known, False, frozen), (whole, known, True, ours), (after, None, True, cold)
        ):  # fmt: skip
            some = query.match_within(table, "10%", history=history, learn=learns, full_work=work)
            some.to_arrow()
            found.append((np.array(some.record().point_ticks) >= later).sum() / exact)
    assert np.mean(ours) > np.mean(cold) - 0.1
    assert np.mean(ours) > np.mean(frozen) + 0.2


def test_a_broken_promise_is_an_alarm_and_runs_are_kept_at_random_until_others_are_found_that_lead_on(
    past: Past,
) -> None:
    """Nothing that was learned of the runs that a history kept counts any more."""
    query = compile_query(QUERIES[0], engine="runs")
    known = past(1, 10)
    made = Shedder(query.plan, Load(Budget.parse("10%"), known, learns=True))
    matcher = Matcher(query.plan, shedding=made)
    now, coins = world(1, events=2 * EVENTS, first=EVENTS, least=80), 0
    for first in range(0, len(now), 500):
        matcher.push(now.slice(first, 500))
        assert made.online is not None
        learner = made.online.learner
        if learner.alarms and learner.is_random:
            assert learner.alarms[-1].what == "promise"
            assert made.arena.worth is not None
            assert made.arena.worth.spread == RANDOM_SPREAD
            assert not any(made.arena.worth.features)
            assert all(sample.events.tick > learner.alarms[-1].tick for sample in learner._kept)
            coins += 1
    assert 0 < coins < 20
    assert not learner.is_random
    assert [alarm.what for alarm in learner.alarms].count("promise") == 1


def test_with_far_too_high_prices_the_budget_is_used(
    monkeypatch: pytest.MonkeyPatch, past: Past
) -> None:
    """A price comes down by itself; what is seen tells sooner how far, but of what is learned then less is known."""
    monkeypatch.setattr(shedder, "patience", lambda _: np.inf)  # its promise is not broken
    query, frozen, ours = compile_query(QUERIES[0], engine="runs"), [], []
    for seed in (1, 3, 5):
        now = world(seed, events=2 * EVENTS, first=EVENTS)
        known = past(seed)
        exact, *others = known.prices_.replays
        high = known.prices_.price(0.02)
        known.prices_ = Prices((exact, *(replace(one, price=high) for one in others)))
        old, new = (ran(query, now, known, learns=learns) for learns in (False, True))
        assert old.record().work > 0.6 * old.record().allowed
        assert new.record().work > 0.9 * new.record().allowed
        assert learner_of(new).known is not None
        frozen.append(old.points().num_rows)
        ours.append(new.points().num_rows)
    assert np.sum(ours) > 0.8 * np.sum(frozen)


def test_what_is_refreshed_while_a_history_ranks_finds_as_much_as_the_history(past: Past) -> None:
    query, frozen, ours = compile_query(QUERIES[0], engine="runs"), [], []
    for seed in seeds(4):
        known = past(seed)
        made = ran(query, world(seed, events=EVENTS, first=EVENTS), known, learns=True).refreshed(query)
        assert made is not None
        later = world(seed, events=EVENTS, first=2 * EVENTS)
        for one, found in ((known, frozen), (made, ours)):
            found.append(ran(query, later, one, learns=False).points().num_rows)
    assert np.sum(ours) > 0.95 * np.sum(frozen)


@pytest.mark.slow
def test_the_demo_finds_as_much_with_learning_as_without() -> None:
    """Cancelled flights come in bursts: a quiet month is no reason to give a history up."""
    query, events = compile_query(DEMO, engine="runs"), flights()
    is_past = pc.less(events["ts"], NOW_BEGINS)
    past = events.filter(is_past)
    if not FULL:  # to learn takes longest
        past = past.filter(pc.greater_equal(past["ts"], NOW_BEGINS - dt.timedelta(days=30)))
    known = HistoryGraph(query).fit(past)
    now = events.filter(pc.invert(is_past))
    now = now.filter(pc.less(now["ts"], NOW_BEGINS + dt.timedelta(days=120)))
    frozen, ours = (ran(query, now, known, learns=learns).points().num_rows for learns in (False, True))
    assert ours > 0.95 * frozen


# --- promises -------------------------------------------------------------------------------------------------------


def bundles(ticks: np.ndarray) -> Bundles:
    ones = np.ones(len(ticks), np.int64)
    return Bundles(ticks, ticks, np.full(len(ticks), ""), np.arange(len(ticks)), ones)


def test_where_match_points_come_in_bursts_more_must_be_promised_before_their_absence_counts() -> None:
    dice = np.random.default_rng(1)
    even = bundles(np.sort(dice.integers(0, 100_000, 3000)))
    storms = bundles(np.sort(dice.choice([5_000, 20_000, 23_000, 91_000], 3000) + dice.integers(0, 900, 3000)))
    days = bundles(np.sort(np.arange(3000) // 150 * 2000 + dice.integers(0, 600, 3000)))
    assert 24 <= patience(even) <= 48
    assert patience(storms) == np.inf
    assert patience(even) < patience(days) < np.inf
    assert patience(Bundles()) == np.inf


def broken() -> Promise:
    """A promise of 10 match points in 1000 events, of which 2 came."""
    promise = Promise(rate=0.01, most=20)
    assert promise.hold(6000, 0, 6000) is None
    assert promise.hold(7000, 0, 7000) is None  # 10 were promised since
    assert promise.hold(8000, 5, 8000) is None
    assert not promise.is_broken
    assert promise.hold(10_000, 9, 10_000) == 8000
    assert promise.is_broken
    return promise


def test_a_promise_is_broken_once_where_too_few_came() -> None:
    promise = broken()
    assert promise.hold(12_000, 9, 12_000) is None
    assert promise.hold(70_000, 9, 70_000) is None
    assert not promise.is_in_vain  # there was no time to learn yet
    assert promise.hold(75_000, 100, 75_000) is None
    assert promise.is_in_vain  # 91 of 65,000 events, 4 of 2000 before
    assert Promise().hold(10**9, 0, 1) is None
    assert not Promise().is_broken


def test_what_was_learned_instead_promises_what_it_found() -> None:
    """So that the next change is noticed as well."""
    promise = broken()
    assert promise.hold(75_000, 269, 75_000) is None
    assert not promise.is_broken
    assert not promise.is_in_vain
    assert promise.rate == 0.004
    assert promise.hold(79_000, 269, 79_000) is None  # 16 were promised since
    assert promise.hold(80_000, 273, 80_000) == 75_000
    assert promise.is_broken


def test_nothing_is_promised_before_runs_can_have_led_anywhere() -> None:
    """Before a window is over, and as long as the run has not come to its price."""
    slow, soon = Promise(rate=0.1, most=20, window=5000), Promise(rate=0.1, most=20)
    assert [slow.hold(tick, 0, tick) for tick in (1000, 4000, 5900, 6200)] == [None, None, None, 5900]
    assert [soon.hold(tick, 0, tick) for tick in (100, 1000, 3900, 4200)] == [None, None, None, 3900]


def test_of_a_history_that_promises_little_what_was_learned_takes_over_at_once(past: Past) -> None:
    """Its absence would not be noticed, and where no cohort can be paid for nothing would say what is better."""
    query = compile_query(QUERIES[0], engine="runs")
    known = past(1, 10)
    now = world(1, events=3 * EVENTS, first=EVENTS, least=70)
    poor, prices = copy(known), known.prices_.replays
    poor.search_ = None  # partial matches are followed
    poor.prices_ = Prices((prices[0], *(replace(price, points=price.points // 50) for price in prices[1:])))
    assert poor.prices_.recall(0.1) < 0.25 < known.prices_.recall(0.1)
    frozen, some = (query.match_within(now, "10%", history=poor, learn=learns, audit=0) for learns in (False, True))
    found = [len(one.points()) for one in (frozen, some)]
    learner = learner_of(some)
    assert learner.known is None
    assert not learner.promise.is_broken
    assert found[1] > 1.5 * found[0]


# --- judging --------------------------------------------------------------------------------------------------------


def lineages(alone: int) -> Trace:
    """Two runs of each of ``alone`` slots: one at place 0 costs 1 and leads to a point; that at place 1 to none."""
    number = np.arange(2 * alone)
    place = number % 2
    return Trace(
        place=place, tick=number, start=number, slot=number // 2, columns=(), kinds=(), values=(),
        key=np.full(2 * alone, -1), texts=(), birth=number, remaining=np.full(2 * alone, 50),
        since=np.zeros(2 * alone, np.int64), parent=np.full(2 * alone, -1), first_point=number // 2,
        mask=np.where(place == 0, 1, 0).astype(np.uint64), cost=np.ones(2 * alone),
        point_row=np.arange(alone), point_tick=number[::2] + 40, point_slot=np.arange(alone),
        end_visit=number[::2], end_point=np.arange(alone), slots=[f"s{n}" for n in range(alone)],
    )  # fmt: skip


def ranking(gains: list[float]) -> Ranking:
    scheme = Scheme((Place("a", 0), Place("b", 0)), 60)
    gain = np.repeat(np.array(gains), scheme.cells)
    return Ranking(scheme, Values(gain, np.ones(len(gain)), gain), np.zeros(2))


def test_of_two_rankings_the_better_one_finds_more_of_the_same_outcomes() -> None:
    trace = lineages(40)
    right, wrong = (found_within(trace, ranking(gains), 0.5) for gains in ([1.0, 0.1], [0.1, 1.0]))
    assert right.all()
    assert not wrong.any()
    assert found_within(trace, ranking([1.0, 0.1]), 0.25).sum() == 20
    tally = Tally()
    tally.add(right, wrong)
    assert tally.says_better()
    assert not tally.says_worse()
    other = Tally()
    other.add(wrong, right)
    assert other.says_worse()


def test_a_run_whose_parent_is_shed_is_not_kept() -> None:
    """A chain of place 0 and then place 1: the worst of both counts, and the parent's steps end with its child."""
    trace = Trace(
        place=np.array([0, 1]), tick=np.array([0, 5]), start=np.array([0, 0]), slot=np.array([0, 0]), columns=(),
        kinds=(), values=(), key=np.array([-1, -1]), texts=(), birth=np.array([0, 1]), remaining=np.array([60, 55]),
        since=np.array([0, 0]), parent=np.array([-1, 0]), first_point=np.array([0, 0]),
        mask=np.ones(2, np.uint64), cost=np.array([10.0, 4.0]), point_row=np.array([9]), point_tick=np.array([9]),
        point_slot=np.array([0]), end_visit=np.array([1]), end_point=np.array([0]), slots=["s"],
    )  # fmt: skip
    assert found_within(trace, ranking([1.0, 1.0]), 1.0).tolist() == [True]
    assert found_within(trace, ranking([1.0, 9.0]), 0.7).tolist() == [False]
    assert found_within(trace, ranking([9.0, 1.0]), 0.7).tolist() == [False]


def test_a_few_match_points_say_nothing() -> None:
    assert not Tally(gained=7).says_better()
    assert Tally(gained=8).says_better()
    assert not Tally(gained=20, lost=12).says_better()
    assert not Tally(lost=7).says_worse()


def test_a_past_of_few_match_points_is_warned_of() -> None:
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", engine="runs")
    events = [{"ts": t, "type": "AB"[t % 2 and t < 8], "x": t} for t in range(200)]
    with pytest.warns(FewPointsWarning, match="4 match points in this past: too few to learn from"):
        HistoryGraph(query).fit(events)
    many = [{"ts": t, "type": "AB"[t % 2], "x": t} for t in range(200)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewPointsWarning)
        HistoryGraph(query).fit(many)
