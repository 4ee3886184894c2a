"""Estimated recall by all that speaks of it: its interval holds as often as it says, and mutants are noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.budget import evidence as module
from acep_approx.budget.audit import AuditSample
from acep_approx.budget.evidence import WIDE, EndSample, Evidence, Expected
from acep_approx.ranges import DamagedError
from acep_approx.training.expecting import expected
from acep_approx.training.pricing import PricePoint, Prices
from tests.cases import cases
from tests.intervals import refutes

SHARES = st.floats(0.001, 0.999)


# --- parts ---------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 5)), max_size=5))
def test_portions_add_up_in_any_order(portions: list[tuple[int, int, int, int]]) -> None:
    parts = [EndSample.of(a + b + c, b + c, c, d) for a, b, c, d in portions]
    forth, back = EndSample(), EndSample()
    for part in parts:
        forth, back = forth.combine(part), part.combine(back)
    assert list(vars(forth).values()) == pytest.approx(list(vars(back).values()))
    assert forth.number <= forth.open + 1e-9
    assert EndSample.restored(list(vars(forth).values())) == forth


def test_a_sample_of_a_state_that_is_none_is_refused() -> None:
    with pytest.raises(DamagedError):
        EndSample.restored([1, -1, 0, 0, 0.0, 0.0, 0.0])
    with pytest.raises(DamagedError):
        EndSample.restored([1, 1, 0, 0, float("nan"), 0.0, 0.0])


def test_ends_that_are_tried_less_often_count_for_more() -> None:
    """All of ten were tried and none missed, one of ten of a hundred and all missed: most are missed."""
    both = EndSample.of(10, 10, 0).combine(EndSample.of(100, 10, 10))
    assert both.share == pytest.approx(100 / 110)
    assert both.number < 20


@given(st.integers(1, 500), st.integers(0, 300), st.integers(0, 300))
def test_recall_is_known_where_all_ends_were_tried(found: int, missed: int, others: int) -> None:
    ends = EndSample.of(missed + others, missed + others, missed)
    estimate = Evidence(found, 10_000, ends=ends).estimate()
    assert estimate.low == estimate.recall == estimate.high == found / (found + missed)
    assert estimate.is_certain == (not missed)


@given(st.integers(0, 500), st.integers(0, 300), st.integers(0, 50), SHARES, st.booleans())
def test_recall_is_no_less_than_if_all_open_ends_were_missed(
    found: int, others: int, tried: int, recall: float, has_past: bool
) -> None:
    past = Expected(recall, 20.0, 0.01, 0.3, 8) if has_past else None
    ends = EndSample(others + tried).combine(replace(EndSample.of(tried, tried, 0), open=0))
    evidence = Evidence(found, 10_000, past, ends)
    low, mean, high = evidence.interval(0.95)
    assert 0 <= low <= high <= 1
    assert 0 <= mean <= 1
    if found:
        assert low >= found / (found + others + tried) - 1e-9


def test_a_number_is_given_where_the_interval_is_narrow() -> None:
    thin, good = (Evidence(300, 60_000, ends=EndSample.of(2_000, tried, tried // 10)) for tried in (8, 400))
    assert thin.estimate().recall is None
    assert "history" in thin.estimate().reason
    assert good.estimate().recall is not None
    assert good.estimate().high - good.estimate().low <= WIDE
    past = replace(thin, expected=Expected(0.6, 3.0, 0.01, 0.9, 8)).estimate()
    assert past.by_past
    assert "history" not in past.reason


def test_a_run_that_found_nothing_may_have_missed_everything() -> None:
    assert Evidence(0, 100, ends=EndSample(3)).interval(0.95)[0] == 0.0
    assert Evidence(0, 100, ends=EndSample(0)).interval(0.95) == (1.0, 1.0, 1.0)  # no event can end a match
    assert Evidence(0, 100, ends=EndSample.of(50, 4, 1)).interval(0.95) == (0.0, 0.0, 0.0)


def test_few_open_ends_of_many_match_points_leave_little_open() -> None:
    for found in (10**3, 10**6, 10**9):
        low, mean, high = Evidence(found, 10**9, ends=EndSample(3)).interval(0.95)
        assert found / (found + 3) - 1e-12 <= low <= mean <= high <= 1


def test_of_ends_that_were_given_up_any_number_may_end_a_match() -> None:
    ends = EndSample(open=300_000, tried=500, given_up=20_000, drawn_from=40_000, spread=40_000**2 / 500)
    low, _, high = Evidence(150, 600_000, ends=ends).interval(0.95)
    assert low < 0.3
    assert high > 0.95
    past = Expected(0.05, 20.0, 0.0, 0.5, 8)
    low, mean, _ = Evidence(150, 600_000, past, ends).interval(0.95)
    assert low < 0.05
    assert mean < 0.3  # about what the past leads to expect


def test_cells_are_part_of_it() -> None:
    cells = AuditSample(np.arange(40), np.full(40, 2), np.full(40, 4))
    low, mean, high = Evidence(500, 60_000, Expected(0.9, 5.0, 0.01, 0.9, 8), cells=cells).interval(0.95)
    assert low < 0.5 < high
    assert mean == pytest.approx(0.5, abs=0.05)


def test_what_the_past_says_is_worth_less_where_it_was_uneven() -> None:
    def known(found: tuple[int, ...], there: tuple[int, ...]) -> Expected:
        exact = PricePoint(0.0, 1000, sum(there), stretches=there)
        made = expected(Prices((exact, PricePoint(0.1, 100, sum(found), stretches=found))), 0.1, 0.02)
        assert made is not None
        return made

    even = known((50,) * 8, (100,) * 8)
    uneven = known((10, 90, 20, 80, 50, 60, 40, 50), (100,) * 8)
    bursts = known((5, 5, 5, 5, 5, 5, 5, 365), (10, 10, 10, 10, 10, 10, 10, 730))
    assert even.recall == uneven.recall == bursts.recall == pytest.approx(0.5)
    assert even.worth > 2 * uneven.worth
    assert bursts.doubt > 3 * even.doubt
    assert even.worth > 2 * bursts.worth
    assert expected(Prices((PricePoint(0.0, 1000, 80),)), 0.1, 0.02) is None  # nobody remembers


# --- simulated worlds ----------------------------------------------------------------------------------------

DOUBT, STRETCHES, DRIFT = 0.3, 8, 0.1


def worlds(number: int, seed: int) -> list[tuple[float, Evidence]]:
    """Runs, each with its recall: what they find, and how often matches come, differs from the past as it says."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        promised = rng.uniform(0.05, 0.98)
        recall = np.sin(np.clip(np.arcsin(np.sqrt(promised)) + DRIFT * rng.normal(), 0.02, np.pi / 2)) ** 2
        points = max(round(600 * float(np.exp(DOUBT * rng.normal()))), 2)
        found = rng.binomial(points, recall)
        lost, others = points - found, int(rng.integers(100, 3_000))
        tried = int(rng.integers(0, 60))
        missed = rng.hypergeometric(lost, others, tried) if tried else 0
        ends = EndSample.of(lost + others, tried, int(missed))
        past = Expected(promised, 1 / (4 * DRIFT**2), 0.01, DOUBT, STRETCHES)
        made.append((found / points, Evidence(int(found), 60_000, past, ends)))
    return made


def held(number: int, change: Callable[[Evidence], Evidence] = lambda evidence: evidence) -> tuple[int, float]:
    """Of how many worlds the interval holds the truth, and its mean width."""
    holds, widths = 0, []
    for recall, evidence in worlds(number, 7):
        low, _, high = change(evidence).interval(0.95)
        holds += low - 1e-9 <= recall <= high + 1e-9
        widths.append(high - low)
    return holds, float(np.mean(widths))


def test_intervals_hold_at_their_level_and_each_part_makes_them_narrower() -> None:
    number = cases(2_000)
    holds, width = held(number)
    assert not refutes(number, holds), (number, holds)
    for part in ("expected", "ends"):
        alone, wider = held(number, lambda evidence, part=part: replace(evidence, **{part: None}))
        assert not refutes(number, alone), (part, number, alone)
        assert wider > width


def _sure(evidence: Evidence) -> Evidence:
    """A mutant: the past is worth ten times as much."""
    assert evidence.expected is not None
    return replace(evidence, expected=replace(evidence.expected, worth=10 * evidence.expected.worth), ends=None)


def _steady(evidence: Evidence) -> Evidence:
    """A mutant: matches come as often as they did."""
    assert evidence.expected is not None
    return replace(evidence, expected=replace(evidence.expected, doubt=0.05))


def _likely(evidence: Evidence) -> Evidence:
    """A mutant: ends that were tried are those that are missed more often than others."""
    assert evidence.ends is not None
    ends = evidence.ends
    return replace(evidence, ends=EndSample.of(ends.open, ends.tried, min(2 * ends.missed, ends.tried)))


@pytest.mark.parametrize("mutant", [_sure, _steady, _likely])
def test_mutants_are_noticed(mutant: Callable[[Evidence], Evidence]) -> None:
    number = cases(2_000)
    holds, _ = held(number, mutant)
    assert refutes(number, holds), (number, holds)


def test_a_promise_that_no_longer_holds_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends that were tried say a fifth, the past said nearly all."""
    evidence = Evidence(100, 60_000, Expected(0.97, 40.0, 0.008, 0.3, 8), EndSample.of(2_000, 60, 12))
    truth = 100 / 500
    low, _, high = evidence.interval(0.95)
    assert low <= truth <= high
    assert high < 0.6
    monkeypatch.setattr(module, "BROKEN", 0.0)
    low, _, high = evidence.interval(0.95)
    assert not low <= truth <= high
