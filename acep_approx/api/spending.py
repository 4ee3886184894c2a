"""What is asked for when a run of a query must not do all of the work; what a state holds of that."""

from __future__ import annotations

from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from acep_approx.budget.budget import Budget
from acep_approx.errors import expect
from acep_approx.events.source import Source
from acep_approx.matching.state import MATCHER
from acep_approx.planning.changed import check_horizon
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.ranges import finite
from acep_approx.results.budgeted import BudgetedRun
from acep_approx.results.matches import Matches
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.remaining import remaining
from acep_approx.revisions.request import Revisions
from acep_approx.shedding.load import Load
from acep_approx.training.histories import check_same, told
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.needless import warn_of_needless_history

if TYPE_CHECKING:
    from acep_approx.archive import Scope
    from acep_approx.planning.planner import Plan

HOW = ("policy", "audit", "seed", "learns", "full_work", "horizon")
"""What a load says beside the budget and the history."""


def known_history(query: CompiledQuery, history: HistoryGraph | str | Path | None) -> HistoryGraph | None:
    """The history that is given, or is at a path."""
    expect("history", history, (HistoryGraph, str, Path, NoneType), "a HistoryGraph, or the path of one")
    return HistoryGraph.load(history, query) if isinstance(history, str | Path) else history


def load_of(
    query: CompiledQuery,
    budget: str | float | Budget,
    history: HistoryGraph | str | Path | None,
    policy: str | None,
    horizon: str | None = None,
    **how: Any,
) -> Load:
    """What is asked for; ``how`` as for ``Load``.

    Raises
    ------
    UsageError
        ``ACEP-U221``: a horizon of a query that has a window.
    """
    given = Budget.parse(budget)
    if horizon is not None:
        check_horizon(query.plan, horizon)
        history = None if given.is_unlimited else history  # it is of the query with the horizon
        query = CompiledQuery(Load(given, horizon=horizon).plan_of(query.plan))
    if query.plan.registers is None:  # nothing is shed, so nothing is asked of a history
        if history is not None:
            warn_of_needless_history(query.plan)
        history, policy = None, None
    return Load(given, known_history(query, history), policy=policy, horizon=horizon, **how)


def put_in_order(matches: Matches, asked: Revisions) -> Source:
    """Put the events of a question in order of time: those that remain once late ones and changes have come."""
    question = matches.question
    return remaining(RevisedMatcher(question.plan, asked, **question.roles), matches.source)


# --- in a state ---------------------------------------------------------------------------------------------


def spent(run: BudgetedRun) -> dict[str, Any]:
    """What a state holds of a run: its budget, how it is spent, and where it stands, as JSON."""
    load, known, shedder = run.load, run.load.history, run.shedder
    return {
        "budget": str(load.budget),
        "history": None if known is None else told(known),
        **{name: getattr(load, name) for name in HOW},
        "seconds": run.seconds,
        "so_far": None if shedder is None else shedder.metrics.snapshot(shedder.cells),
    }


def load_of_state(plan: Plan, spending: dict[str, Any], history: HistoryGraph | None) -> Load:
    """The load of a run that ``spent`` told of.

    Raises
    ------
    DataError
        ``ACEP-D048``: it needs its history, or had another one, or none.
    """
    if plan.registers is not None:
        check_same(spending["history"], history)
    how = {"horizon": None, **spending}  # states of before have none
    return Load(Budget.parse(spending["budget"]), history, **{name: how[name] for name in HOW})


def plan_then(plan: Plan, state: Scope) -> Plan:
    """The plan of a run whose state this is: that of the query, unless it ended partial matches with a horizon."""
    with MATCHER.reading():
        head = state.parts["revisions"].head if "revisions" in state.parts else state.head["caller"]
        spending = head.get("spending") or {"budget": "100%"}
        return Load(Budget.parse(spending["budget"]), horizon=spending.get("horizon")).plan_of(plan)


def go_on(run: BudgetedRun, spending: dict[str, Any]) -> None:
    """Let a run know what it did before."""
    finite("seconds", spending["seconds"])
    run.seconds = spending["seconds"]
    if run.shedder is not None and spending["so_far"] is not None:
        run.shedder.metrics.restore(spending["so_far"])
