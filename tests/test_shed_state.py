"""A run inside a budget that is saved and taken up with a new shedder goes on as if nothing had happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.audit import AuditSample
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.runs import Runs
from acep_approx.errors import DataError
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.timing import StepClock
from acep_approx.training.history_graph import HistoryGraph
from tests import spark_driving
from tests.cases import examples
from tests.one_reading import learned

KEYED = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 150"
ONE_PART = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x <> a.x WITHIN 120"
BUDGETS = ("20%", "50 steps/event", "3 steps/event", "40 runs")
EVENTS = 1500


def stream(seed: int, events: int = EVENTS, letters: str = "ABCN") -> pa.Table:
    """One event a tick, six keys; some events are of no interest."""
    rng = np.random.default_rng(seed)
    letter = rng.choice(4, events, p=[0.4, 0.3, 0.2, 0.1])
    columns = {"ts": np.arange(events), "x": rng.integers(0, 30, events), "id": rng.integers(0, 6, events)}
    return pa.table({**columns, "type": np.array(list(letters))[letter]})


@cache
def compiled(text: str) -> Query:
    return compile_query(text, engine="runs")


@cache
def trained(text: str, seed: int = 1) -> HistoryGraph:
    return learned(HistoryGraph(compiled(text)), stream(seed, 4000))


def load(text: str, budget: str, audit: float = 0.5, seed: int = 1, policy: str = "history") -> Load:
    return Load(Budget.parse(budget), trained(text, seed), policy=policy, audit=audit, seed=3)


def engine_of(matcher: Matcher) -> Runs:
    assert matcher.pipeline is not None
    assert isinstance(matcher.pipeline.engine, Runs)
    return matcher.pipeline.engine


def is_within(matcher: Matcher, shedder: Shedder) -> bool:
    """Whether the bound holds here."""
    engine = engine_of(matcher)
    if shedder.load.budget.unit == "runs":
        return bool(engine.work()[4] <= shedder.load.budget.amount)
    return bool(engine.work()[0] + shedder.arena.on_passes <= shedder.arena.granted + 1e-6)


def ran(
    text: str, loads: list[Load], cuts: list[int], *, is_broken: bool, letters: str = "ABCN"
) -> tuple[pa.Table, list[int], AuditSample]:
    """Run a stream part by part, with the loads in turn; saved and taken up between any two parts, or never.

    Gives the matches, the numbers that a run is judged by, and what the audit saw.
    """
    plan, table = compiled(text).plan, stream(7, letters=letters)
    none = np.zeros(0, np.int64)
    tables, sample = [], AuditSample.of(none, none.astype(bool))
    shedder = Shedder(plan, loads[0])
    matcher = Matcher(plan, shedding=shedder)
    for part, (first, last) in enumerate(zip([0, *cuts], [*cuts, EVENTS], strict=True)):
        if part and is_broken:
            seen = shedder.audited()
            sample = sample.combine(seen) if seen is not None else sample
            shedder = Shedder(plan, loads[part % len(loads)])
            matcher = Matcher.from_state(plan, matcher.state_bytes(), shedder)
        tables.append(matcher.push(table.slice(first, last - first)))
        assert is_within(matcher, shedder)
    tables.append(matcher.finish())
    seen = shedder.audited()
    arena = shedder.arena
    numbers = [*engine_of(matcher).work(), *arena.counts.ravel().tolist(), arena.broken, arena.untested]
    numbers += [round(arena.granted), round(1e6 * arena.left)]
    return pa.concat_tables(tables), numbers, sample.combine(seen) if seen is not None else sample


CUTS = st.lists(st.integers(1, EVENTS - 1), max_size=6, unique=True).map(sorted)


@examples(40)
@given(
    st.sampled_from((KEYED, ONE_PART)),
    st.sampled_from(BUDGETS),
    CUTS,
    st.sampled_from((0.0, 0.5)),
    st.sampled_from(("history", "coverage")),
)
def test_saved_and_taken_up_a_run_sheds_and_finds_the_same(
    text: str, budget: str, cuts: list[int], audit: float, policy: str
) -> None:
    loads = [load(text, budget, audit, policy=policy)]
    whole, numbers, seen = ran(text, loads, cuts, is_broken=False)
    broken, others, also_seen = ran(text, loads, cuts, is_broken=True)
    assert broken.equals(whole)
    assert others == numbers
    for name in ("cells", "found", "points", "outside"):
        np.testing.assert_array_equal(getattr(seen, name), getattr(also_seen, name))


@pytest.mark.parametrize("budget", BUDGETS)
def test_these_budgets_shed_and_find(budget: str) -> None:
    """So that the test above compares something."""
    for text in (KEYED, ONE_PART):
        whole, numbers, seen = ran(text, [load(text, budget)], [], is_broken=False)
        shed = numbers[5]
        assert len(whole) > 10
        assert shed > 0 or budget == "50 steps/event"
        assert seen.points.sum() > 0 or budget == "20%"


@pytest.mark.parametrize("budget", BUDGETS)
def test_one_partition_may_be_cut_anywhere(budget: str) -> None:
    """Parts of several keys are run key by key, and events of no interest count when their part is done."""
    loads = [load(ONE_PART, budget)]
    whole, numbers, _ = ran(ONE_PART, loads, [], is_broken=False, letters="ABCB")
    broken, others, _ = ran(ONE_PART, loads, list(range(7, EVENTS, 97)), is_broken=True, letters="ABCB")
    assert len(whole) > 10
    assert broken.equals(whole)
    assert others == numbers


@examples(20)
@given(CUTS, st.lists(st.sampled_from(BUDGETS[:3]), min_size=2, max_size=3), st.booleans())
def test_another_history_and_another_amount_may_take_over(cuts: list[int], budgets: list[str], is_new: bool) -> None:
    loads = [load(KEYED, budget, seed=1 + is_new * (n % 2)) for n, budget in enumerate(budgets)]
    found, _, _ = ran(KEYED, loads, cuts, is_broken=True)
    exact = compiled(KEYED).match(stream(7)).to_arrow()
    assert Counter(map(str, found.to_pylist())) <= Counter(map(str, exact.to_pylist()))


def test_what_is_granted_for_events_of_no_interest_is_granted_once() -> None:
    """A shedder that has just been made does not take all events so far for those of its first piece."""
    plan, table = compiled(KEYED).plan, stream(7)
    of = load(KEYED, "3 steps/event", 0.0)
    matcher = Matcher(plan, shedding=Shedder(plan, of))
    for first in range(0, EVENTS, 50):
        matcher.push(table.slice(first, 50))
        shedder = Shedder(plan, of)
        matcher = Matcher.from_state(plan, matcher.state_bytes(), shedder)
        assert shedder.granted == pytest.approx(3 * min(first + 50, EVENTS))


def test_saving_a_run_does_not_change_it() -> None:
    plan, table = compiled(KEYED).plan, stream(7)
    found = []
    for saves in (False, True):
        matcher = Matcher(plan, shedding=Shedder(plan, load(KEYED, "3 steps/event")))
        parts = []
        for first in range(0, EVENTS, 75):
            parts.append(matcher.push(table.slice(first, 75)))
            if saves:
                assert len(matcher.state_bytes()) == len(matcher.state_bytes())
        found.append((pa.concat_tables(parts), engine_of(matcher).work()))
    assert found[0] == found[1]


def test_the_clock_is_told_of_choosing_among_runs_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes time, and is paid for in run-steps: as part of the time of each other run-step it was paid for twice."""
    told: list[int] = []
    monkeypatch.setattr(StepClock, "observe", lambda _, events, steps, seconds: told.append(steps))
    known = learned(HistoryGraph(spark_driving.QUERY), spark_driving.stream(4))
    found = spark_driving.QUERY.match_within(spark_driving.stream(4, seed=2), "20%", history=known, audit=0)
    found.to_arrow()
    on_passes = found.shedder.arena.on_passes
    assert on_passes > 500
    assert sum(told) == pytest.approx(found.progress.steps + on_passes, abs=len(told))


@pytest.mark.parametrize("budget", ["2 ms/batch", "100k events/s"])
def test_what_the_clock_said_goes_on(budget: str) -> None:
    plan, table = compiled(KEYED).plan, stream(7)
    of = load(KEYED, budget)
    shedder = Shedder(plan, of)
    matcher = Matcher(plan, shedding=shedder)
    matcher.push(table.slice(0, 700))
    again = Shedder(plan, of)
    later = Matcher.from_state(plan, matcher.state_bytes(), again)
    assert again.clock.snapshot() == shedder.clock.snapshot()
    assert again.clock.snapshot() != StepClock().snapshot()
    later.push(table.slice(700))
    assert is_within(later, again)


def test_a_state_of_a_run_with_a_budget_needs_one_and_the_other_way_round() -> None:
    plan, table = compiled(KEYED).plan, stream(7)
    of = load(KEYED, "20%")
    bare, budgeted = Matcher(plan), Matcher(plan, shedding=Shedder(plan, of))
    for matcher, shedding in ((bare, Shedder(plan, of)), (budgeted, None)):
        matcher.push(table)
        with pytest.raises(DataError) as error:
            Matcher.from_state(plan, matcher.state_bytes(), shedding)
        assert error.value.code == "ACEP-D044"


def test_audited_cells_of_parts_with_other_seeds_are_other_cells() -> None:
    """Samples of parts of a stream are added: a cell of one must not be taken for a cell of another."""
    plan = compiled(KEYED).plan
    samples = []
    for seed in (1, 2):
        shedder = Shedder(plan, replace(load(KEYED, "90%", audit=0.9), seed=seed))
        Matcher(plan, shedding=shedder).push(stream(7))
        sample = shedder.audited()
        assert sample is not None
        samples.append(sample)
    assert min(len(sample.cells) for sample in samples) > 0
    assert len(samples[0].combine(samples[1]).cells) == sum(len(sample.cells) for sample in samples)
