"""The audit of a search: ends that it had no tests for are searched all the same, out of a share of the budget."""

from __future__ import annotations

from functools import cache

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.shedding.exact_audit import ExactAudit
from acep_approx.shedding.shedder import Shedder
from tests.cases import cases
from tests.intervals import refutes
from tests.one_reading import learned
from tests.searched import QUERY, stream

BUDGET = "0.7 steps/event"


@cache
def known() -> tuple[Query, HistoryGraph]:
    query = compile_query(QUERY, engine="runs")
    return query, learned(HistoryGraph(query), stream(6000, 2))


def within(seed: int, audit: float, budget: str = BUDGET) -> tuple[BudgetedMatches, int]:
    """A run that searches, and how many match points there are."""
    (query, history), table = known(), stream(12_000, seed)
    some = query.match_within(table, budget, history=history, audit=audit, seed=seed)
    some.points()
    return some, query.match(table).points().num_rows


def audit_of(shedder: object) -> ExactAudit:
    assert isinstance(shedder, Shedder)
    assert shedder.has_searched
    assert shedder.exact_audit is not None
    return shedder.exact_audit


def test_where_all_open_ends_are_tried_all_that_was_missed_is_seen() -> None:
    some, truth = within(3, 0.3, "1 steps/event")
    sample, found = audit_of(some.shedder).searched.sample, some.points().num_rows
    assert 0 < sample.tried == sample.open
    assert sample.missed == truth - found > 0
    recall = some.record().recall
    assert recall is not None
    assert recall.low == recall.high == found / truth


def test_intervals_hold_and_the_audit_takes_no_more_than_its_share() -> None:
    number = held = 0
    for seed in range(cases(40, 8)):
        some, truth = within(100 + seed, 0.05, "0.5 steps/event")
        audit, record = audit_of(some.shedder), some.record()
        assert audit.searched.sample.tried < audit.searched.sample.open
        assert 0 < audit.steps <= audit.quota
        assert all(piece.work <= piece.bound + 1 for piece in record.pieces)
        if record.recall is not None and record.recall.low is not None:
            number += 1
            held += record.recall.low <= some.points().num_rows / truth <= record.recall.high
    assert number > 0
    assert not refutes(number, held), (number, held)


def test_it_goes_on_from_a_state() -> None:
    (query, history), table = known(), stream(12_000, 4)
    audits = []
    for restarts in (False, True):
        matcher = query.matcher(budget=BUDGET, history=history, output="points", audit=0.1)
        for first in range(0, len(table), 3000):
            matcher.push(table.slice(first, 3000))
            if restarts:
                matcher = query.from_state(matcher.state_bytes(), history=history)
        audits.append(audit_of(matcher.shedder).searched)
    assert vars(audits[0]) | {"sample": None} == vars(audits[1]) | {"sample": None}
    assert vars(audits[0].sample) == vars(audits[1].sample)


def test_without_an_open_end_nothing_is_tried() -> None:
    some, truth = within(5, 0.1, "8 steps/event")
    assert some.points().num_rows == truth
    assert audit_of(some.shedder).searched.steps == 0
    recall = some.record().recall
    assert recall is not None
    assert recall.low == 1.0
