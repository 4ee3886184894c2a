"""The history of an engine as it was learned while it ran, to be saved, or to begin another run with."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from acep_approx.learning.online import refresh
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.query.syntax import Window
from acep_approx.training.history_graph import HistoryGraph

if TYPE_CHECKING:
    from acep_approx.planning.planner import Plan
    from acep_approx.shedding.shedder import Shedder


def plan_of_history(plan: Plan, window: int, *, is_time: bool) -> Plan:
    """The plan that a history of an engine is about: of a template whose queries name windows that of the longest.

    ``window``: in ticks; 0: that of the plan. ``is_time``: whether ticks are microseconds.
    """
    if not window:
        return plan
    return replace(plan, query=replace(plan.query, window=Window(window, "us" if is_time else "ticks")))


def refreshed(shedder: Shedder, query: CompiledQuery | None = None, events: int | None = None) -> HistoryGraph | None:
    """The history of an engine as it was learned up to now.

    Parameters
    ----------
    shedder : Shedder
        Sheds for the engine.
    query : CompiledQuery, optional
        Default: that of the engine.
    events : int, optional
        That it was shown. Default: those that it has counted; of a template pairs of an event and a query.

    Returns
    -------
    HistoryGraph or None
        A new one; None as long as nothing was learned.
    """
    online, load = shedder.online, shedder.load
    if online is None or online.learner.values is None:
        return None
    if query is None:
        query = CompiledQuery(plan_of_history(shedder.plan, shedder.window, is_time=shedder.has_times))
    known = copy(load.history) if load.history is not None else HistoryGraph(query)
    work = load.steps_per_event or shedder.full_work()
    assert work is not None, "who has ranked runs knows what they take"
    listing, shown = work / load.ratio, shedder.events_shown if events is None else events
    refresh(known, online.learner, shown, shedder.metrics.found, listing / shedder.shown_per_event)
    known.steps_per_event_ = listing
    return known
