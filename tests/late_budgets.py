"""Load budgets over streams that are late, revised and taken back: what must hold after every step of a schedule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.api.budgeted_revisions import BudgetedRevisedMatcher
from tests.revised_answers import bound_columns, plain
from tests.revised_model import Ledger, Schedule
from tests.revised_streams import schedule

UNLIMITED = ("100%", float("inf"))
LIMITED = (*["0.3 steps/event", "1 steps/event", "3 steps/event", "12 steps/event"], "2 runs", "9 runs", "10%", "30%", "80%")
POLICIES = ("oldest", "random", "most-advanced")
FULL_WORK = 8.0


def asked_of(seed: int) -> tuple[Schedule, dict[str, Any]]:
    """A schedule that runs answer, and how a budget is spent on it."""
    dice = Random(seed)
    made = schedule(seed)
    while not is_shed(made):
        seed += 100_003
        made = schedule(seed)
    budget: Any = dice.choice(LIMITED)
    return replace(made, engine="runs"), {"budget": budget, "policy": dice.choice(POLICIES), "seed": dice.randrange(9)}


def is_shed(asked: Schedule) -> bool:
    """Whether runs answer, and each match that a budget finds is one of the exact answer, also where some are missing."""
    try:
        plan = compile_query(asked.text, engine="runs").plan
    except Exception:  # noqa: BLE001  (queries that runs do not answer)
        return False
    return plan.query.selection.is_all


def matcher_of(query: Query, asked: Schedule, how: dict[str, Any]) -> Any:
    """A matcher inside a budget."""
    full = {"full_work": FULL_WORK} if str(how["budget"]).endswith("%") else {}
    return query.matcher(**asked.options(), **how, **full)


def told(found: Counter[tuple[Any, ...]], columns: list[str], asked: Schedule, query: Query) -> Counter[Any]:
    """What is compared of rows: of points the event, of counts how many, of matches all but what more of them would change."""
    if not columns:
        return Counter()
    if asked.output != "matches":
        at = [columns.index(asked.id or "row")]
        times = columns.index("matches") if asked.output == "counts" else None
        result: Counter[Any] = Counter()
        for row, number in found.items():
            result[tuple(row[place] for place in at)] += number * (row[times] if times is not None else 1)
        return result if asked.output == "counts" else Counter({row: min(n, 1) for row, n in result.items()})
    kept = [place for place, name in enumerate(columns) if name not in ("errors", "missing")]
    result = Counter()
    for row, number in found.items():
        result[tuple(row[place] for place in kept)] += number
    return result


def holds(asked: Schedule, how: dict[str, Any]) -> Counter[str]:
    """Runs a schedule inside a budget; after each step what is out is part of the exact answer, and paid for."""
    query = compile_query(asked.text, engine=asked.engine)
    matcher, model = matcher_of(query, asked, how), asked.model()
    rows = [row for step in asked.steps for row in step.rows or ()]
    ledger = Ledger(has_ids=False, is_telling=False)
    seen: Counter[str] = Counter()
    for number, step in enumerate([*asked.steps, None]):
        if step is None:
            table = matcher.finish()
        elif step.tick is not None:
            if not model.punctuate(step.tick):
                continue
            table = matcher.punctuate(step.tick)
        elif step.rows is not None:
            table = matcher.push(asked.table(step.rows))
            model.push(step.rows)
        else:
            matcher = again(query, matcher)
            seen["restart"] += 1
            continue
        ledger.take(table)
        matcher.rejected()
        columns, expected = plain(asked, query, model, is_over=step is None)
        net = told(ledger.net, ledger.columns, asked, query)
        exact = told(expected, columns, asked, query)
        assert all(n > 0 for n in ledger.net.values()), f"after step {number} taken back what was not out: {ledger.net}"
        assert not net - exact, f"after step {number} too much: {net - exact}"
        assert is_paid(matcher), f"after step {number}: {paid(matcher)}"
        if str(how["budget"]) in ("100%", "inf"):
            assert ledger.net == expected, (ledger.net - expected, expected - ledger.net)
        seen["found"] += net.total()
        seen["missing"] += (exact - net).total()
    del rows
    return seen


def again(query: Query, matcher: BudgetedRevisedMatcher) -> Any:
    """The matcher after a restart."""
    made = query.from_state(matcher.state_bytes())
    assert paid(made) == paid(matcher)
    return made


def paid(matcher: Any) -> tuple[float, float]:
    """Run-steps taken, and granted, so far."""
    shedder, pipeline = matcher.shedder, matcher.execution.pipeline
    if shedder is None or pipeline is None:
        return 0.0, 0.0
    work = pipeline.progress.steps + shedder.arena.on_passes + (shedder.audit_work or 0)
    granted = shedder.granted + shedder._aside.quota if shedder._rate > 0 else float("inf")
    return work, granted


def is_paid(matcher: Any) -> bool:
    work, granted = paid(matcher)
    return work <= granted + 1e-6
