"""The audit beside a run sees all match points of its cells, costs no more than its share, and its interval holds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import Matcher, Query, compile_query
from acep_approx.budget.audit import AuditSample
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.shedding import exact_cells
from acep_approx.shedding.exact_cells import ExactCells
from acep_approx.shedding.exact_ends import LookBack
from experiments.shedding.workloads import REAL, load
from experiments.streams.real import is_here
from tests.cases import cases
from tests.intervals import refutes

TEXT = "PATTERN SEQ(View v, Basket b, Pay p) WHERE [shop] AND b.price > v.price AND p.price > b.price WITHIN 300"
KEYS = 6


@pytest.fixture(autouse=True)
def _no_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the query could not be read backwards: then cells are matched."""
    monkeypatch.setattr(LookBack, "of", classmethod(lambda *_: None))


@cache
def query() -> Query:
    return compile_query(TEXT)


def visits(seed: int, events: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"ts": np.arange(events), "shop": rng.integers(0, KEYS, events), "price": rng.integers(0, 100, events)}
    return pa.table({**columns, "type": rng.choice(["View", "Basket", "Pay"], events, p=[0.6, 0.3, 0.1])})


def audited(some: BudgetedMatches) -> ExactCells:
    assert some.shedder is not None
    assert some.shedder.exact_audit is not None
    return some.shedder.exact_audit.cells


def test_it_sees_all_match_points_of_its_cells_and_which_of_them_were_found() -> None:
    table = visits(1, 20_000)
    some = query().match_within(table, "3 steps/event", audit=0.5, seed=3)
    found = set(some.points()["row"].to_pylist())
    beside = audited(some)
    assert beside.lost == 0
    rows = np.unique(query().match(table).points()["row"].to_numpy())
    slots = np.array([some.shedder.arena.keys_now().texts().index(str(s)) for s in table["shop"].to_numpy()[rows]])
    ticks = table["ts"].to_numpy()[rows]
    cells = beside.cells.cells(slots, ticks)
    looked = np.array([beside._looks.get(int(e), False) for e in ticks // beside.cells.epoch])
    first = min(e for e in beside._looks) * beside.cells.epoch  # what is older is no longer kept in mind
    is_in = (cells >= 0) & looked & (ticks >= first)
    wanted = AuditSample.of(cells[is_in], np.isin(rows[is_in], list(found)))
    for name in ("cells", "found", "points"):
        np.testing.assert_array_equal(getattr(beside.sample, name), getattr(wanted, name))
    assert 0 < wanted.found.sum() < wanted.points.sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_audit_takes_its_share_and_leaves_the_run_alone(seed: int) -> None:
    """Twenty run-steps with an audit of 5% are nineteen without one; runs that were marked once took far more."""
    table = visits(seed, 8_000)
    with_audit = query().match_within(table, "20 steps/event", audit=0.05, seed=seed)
    without = query().match_within(table, "19 steps/event", audit=0, seed=seed)
    assert with_audit.points().equals(without.points())
    record = with_audit.record()
    assert record.audit_work is not None
    assert record.audit_work <= 0.05 * record.allowed + 1
    assert record.work <= record.allowed


def test_in_small_batches_it_never_takes_more_than_is_saved_up() -> None:
    matcher = query().matcher(budget="6 steps/event", audit=0.3, seed=1)
    table = visits(2, 6_000)
    for first in range(0, 6_000, 50):
        matcher.push(table.slice(first, 50))
        beside = matcher.shedder.exact_audit.cells
        assert beside.steps <= beside.quota
        assert matcher.record().work <= matcher.record().allowed
    assert beside.sample.points.sum() > 0


def test_cells_that_cost_too_much_are_given_up_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing were asked before cells are looked at."""
    monkeypatch.setattr(exact_cells, "ENOUGH", 0.0)
    some = query().match_within(visits(3, 12_000), "0.5 steps/event", audit=0.1, seed=2)
    some.points()
    beside = audited(some)
    assert beside.lost > 0
    estimate = some.record().recall
    sample = AuditSample(beside.sample.cells, beside.sample.found, beside.sample.points)
    if estimate.low is not None:
        assert estimate.high - estimate.low > sample.estimate().high - sample.estimate().low
    if beside.lost > 0.1 * (len(sample.cells) + beside.lost):
        assert estimate.recall is None
        assert "given up" in estimate.reason


def test_cells_that_were_given_up_widen_the_interval() -> None:
    sample = AuditSample(np.arange(40), np.full(40, 3), np.full(40, 4), 900)
    whole, few, many = (sample.estimate(lost=lost) for lost in (0, 4, 20))
    assert whole.recall == few.recall == 0.75
    assert many.recall is None
    assert "20 of 60 cells given up" in many.reason
    assert many.low < few.low < whole.low < whole.high < few.high < many.high
    none = AuditSample.none().estimate(lost=3)
    assert "all of 3 chosen cells were given up" in none.reason


def intervals(some: list[tuple[BudgetedMatches, int]]) -> tuple[int, int]:
    """How many runs had an interval, and of how many it holds the truth; each with its match points in truth."""
    number = held = 0
    for matches, truth in some:
        share = matches.points().num_rows / truth
        estimate = matches.record().recall
        if estimate is not None and estimate.low is not None:
            number += 1
            held += estimate.low <= share <= estimate.high
    return number, held


def test_intervals_hold_on_generated_streams() -> None:
    runs = []
    for seed in range(cases(40)):
        table = visits(100 + seed, 10_000)
        some = query().match_within(table, "5 steps/event", audit=0.3, seed=seed)
        runs.append((some, query().match(table).points().num_rows))
    number, held = intervals(runs)
    assert number >= len(runs) // 2
    assert not refutes(number, held), (number, held)


@pytest.mark.skipif(not is_here(REAL["F4"][0]), reason="the streams are not there")
def test_intervals_hold_on_a_real_stream() -> None:
    work = load("F4")
    real = compile_query(work.query, engine="runs")
    table = work.test
    exact = Matcher(real.plan, output="points", unit=work.unit)
    exact.may_search = False  # what a share is of follows all runs
    truth, steps = len(exact.push(table)), exact.progress.steps / len(table)
    how = {"full_work": steps, "unit": work.unit, "audit": 0.5}
    number, held = intervals([(real.match_within(table, "40%", seed=seed, **how), truth) for seed in range(cases(20))])
    assert number > 0
    assert not refutes(number, held), (number, held)
