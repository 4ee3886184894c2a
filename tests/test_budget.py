"""Budgets as people write them, and what an event and a run-step are measured to take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.budget.budget import Budget
from acep_approx.errors import UsageError
from acep_approx.shedding.timing import EVENT_SECONDS, STEP_SECONDS, StepClock


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("20%", 20, "%"),
        (" 0.5 % ", 0.5, "%"),
        ("5000 steps/event", 5000, "steps/event"),
        ("5k steps per event", 5000, "steps/event"),
        ("1 step/event", 1, "steps/event"),
        (".5 steps/event", 0.5, "steps/event"),
        ("200 runs", 200, "runs"),
        ("1 run", 1, "runs"),
        ("2 ms/batch", 2, "ms/batch"),
        ("0.25 s/batch", 250, "ms/batch"),
        ("100k events/s", 100_000, "events/s"),
        ("1.5M events/s", 1_500_000, "events/s"),
    ],
)
def test_what_people_write(text: str, amount: float, unit: str) -> None:
    budget = Budget.parse(text)
    assert (budget.amount, budget.unit) == (amount, unit)
    assert Budget.parse(str(budget)) == budget
    assert Budget.parse(budget) == budget


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with a number"),
        ("many", "does not begin with a number"),
        ("-5%", "does not begin with a number"),
        ("0%", "nothing can be done"),
        ("20", "no unit"),
        ("20 apples", "'apples' is no unit"),
        ("2.5 runs", "whole numbers"),
        ("20%%", "is no unit"),
    ],
)
def test_what_is_no_budget(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        Budget.parse(text)
    assert error.value.code == "ACEP-U030"
    assert "steps/event" in str(error.value.hint)


@given(st.sampled_from(["%", "steps/event", "runs", "ms/batch", "events/s"]), st.integers(1, 10**7))
def test_texts_and_budgets_are_the_same(unit: str, amount: int) -> None:
    assert Budget.parse(str(Budget(amount, unit))) == Budget(amount, unit)  # type: ignore[arg-type]


def test_all_of_the_work_is_no_limit() -> None:
    assert Budget.parse("100%").is_unlimited
    assert not Budget.parse("99%").is_unlimited
    assert not Budget.parse("1000 runs").is_unlimited


def test_calibration_finds_what_an_event_and_a_step_take() -> None:
    rng = np.random.default_rng(1)
    clock = StepClock()
    for _ in range(60):
        events, steps = int(rng.integers(100, 20_000)), int(rng.integers(0, 10**6))
        clock.observe(events, steps, (events * 1.5e-6 + steps * 3e-9) * rng.uniform(0.95, 1.05))
    assert clock.event_seconds == pytest.approx(1.5e-6, rel=0.3)
    assert clock.step_seconds == pytest.approx(3e-9, rel=0.2)
    assert clock.steps_in(0.01, 1000) == pytest.approx((0.01 - 1.5e-3) / 3e-9, rel=0.3)


def test_calibration_follows_a_machine_that_slows_down() -> None:
    rng = np.random.default_rng(2)
    clock = StepClock()
    for factor in (1, 4):
        for _ in range(60):
            events, steps = int(rng.integers(100, 20_000)), int(rng.integers(0, 10**6))
            clock.observe(events, steps, factor * (events * 1e-6 + steps * 5e-9))
    assert clock.step_seconds == pytest.approx(20e-9, rel=0.1)


def test_a_clock_that_stands_still_does_not_make_work_free() -> None:
    clock = StepClock()
    for _ in range(10):
        clock.observe(1000, 100_000, 0.0)
    assert clock.event_seconds >= EVENT_SECONDS / 20
    assert clock.step_seconds >= STEP_SECONDS / 20
    assert clock.steps_in(0.0, 1000) == 0


def test_a_number_is_a_share_of_the_full_work() -> None:
    """A text without a unit may mean anything: the error says how a share is written."""
    assert Budget.parse(0.1) == Budget(10.0, "%")
    assert str(Budget.parse(0.07)) == "7%"
    assert Budget.parse(1.0).is_unlimited
    for number in (0.0, -0.5, 1.5, 20.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="a number is a share of the full work, above 0 and at most 1"):
            Budget.parse(number)
    for count in (0, 1, 10, True):
        with pytest.raises(UsageError, match="ACEP-U053"):
            Budget.parse(count)
    with pytest.raises(UsageError, match=r"it has no unit\n  hint: write '10%'"):
        Budget.parse("0.1")
    with pytest.raises(UsageError, match=r"it has no unit\n  hint: write '20%', "):
        Budget.parse("30")
