"""What a run inside a load budget did, as plain data: the same of a run over a whole input and of one that goes on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.budget.ledger import Bundle, HistoryPath, Learning, PathStep, RunRecord
from acep_approx.diagrams.fragments import never_raises
from acep_approx.events.time import tick_unit
from acep_approx.learning.learned import refresh, summary
from acep_approx.shedding.metrics import Metrics
from acep_approx.shedding.shed_runs import shed_by_state
from acep_approx.training.history_graph import HistoryGraph
from history.bundles import Bundles, chain

if TYPE_CHECKING:
    from acep_approx.matching.pipeline import Pipeline
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.planning.planner import Plan
    from acep_approx.shedding.load import Load
    from acep_approx.shedding.shedder import Shedder

SHOWN_PATHS = 40
"""Paths of the history that a report shows."""


class ShownRecord(RunRecord):
    """A record that draws itself in a notebook."""

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import record_view

        return record_view(self)


@dataclass(frozen=True)
class BudgetedRun:
    """A run inside a load budget: what it was to do, and what does it.

    Parameters
    ----------
    plan : Plan
    load : Load
    shedder : Shedder or None
        None: the cells engine answers, or nothing ran yet.
    pipeline : Pipeline or None
        None: no columns were seen yet.
    """

    plan: Plan
    load: Load
    shedder: Shedder | None
    pipeline: Pipeline | None

    @property
    def window(self) -> int:
        """In ticks, or in events; 0 where no columns were seen yet."""
        return self.pipeline.window if self.pipeline is not None else 0

    @property
    def is_time(self) -> bool:
        """Whether ticks are microseconds since 1970."""
        if self.pipeline is None or self.plan.is_count_window:
            return False
        schema, roles = self.pipeline.schema, self.pipeline.roles
        return tick_unit(schema.field(roles.time).type, roles.unit) is not None

    def learned(self) -> Learning | None:
        """What it learned so far; None where it does not learn."""
        online = self.shedder.online if self.shedder is not None else None
        return summary(online) if online is not None else None

    def refreshed(self, query: CompiledQuery, events: int) -> HistoryGraph | None:
        """The history as it was learned in so many events, a new one; None as long as nothing was learned."""
        done = self.shedder
        if done is None or done.online is None or done.online.learner.values is None:
            return None
        known = copy(self.load.history) if self.load.history is not None else HistoryGraph(query)
        work = done.full_work()
        assert work is not None, "who has ranked runs knows what they take"
        refresh(known, done.online.learner, events, done.metrics.found, work)
        return known

    def record(self, source: str, seconds: float, left_out: dict[str, int]) -> RunRecord:
        """The record of it.

        Parameters
        ----------
        source : str
            Name of the input, for people.
        seconds : float
            How long it took so far.
        left_out : dict of str to int
            Events that were not matched, by their names in ``RunRecord``.
        """
        known, done = self.load.history, self.shedder
        learned, found = self.learned(), done.metrics if done else Metrics()
        ticks = found.points.joined("tick")
        order = np.argsort(ticks, kind="stable")
        return ShownRecord(
            query=str(self.plan.query.text).strip(),
            source=source,
            budget=str(self.load.budget),
            bound=done.bound_in_words() if done else "the cells engine answers exactly, and sheds nothing",
            policy=self.load.policy_words if learned else self.load.policy_name,
            seed=self.load.seed,
            is_time=self.is_time,
            begin=found.begin,
            pieces=found.pieces,
            shed=shed_by_state(done.arena) if done and self.pipeline else (),
            recall=done.recall() if done else None,
            point_ticks=ticks[order],
            point_errors=found.points.joined("errors")[order],
            bundles=_bundles(ticks[order], self.window),
            paths=_paths(known) if known else (),
            seconds=seconds,
            learning=learned,
            full_work=done.full_work() if done and self.pipeline else None,
            exact_seconds=done.exact_seconds() if done and self.pipeline else None,
            audit_work=done.audit_work if done else None,
            **left_out,
        )


def _paths(known: HistoryGraph) -> list[HistoryPath]:
    """The strongest paths of a history, in words."""
    scheme = known.graph_.scheme
    return [
        HistoryPath([PathStep.of(scheme.describe(v), scheme.window) for v in path.vertices], path.count, path.share)
        for path in known.graph_.strongest_paths(SHOWN_PATHS)
    ]


def _bundles(ticks: Ints, window: int) -> list[Bundle]:
    """Chains of match points at most a window apart (of all keys together, for a picture)."""
    number = len(ticks)
    single = Bundles(ticks, ticks, np.zeros(number, np.str_), np.arange(number), np.ones(number, np.int64))
    chained, _ = chain(single, window, number)
    columns = (chained.first.tolist(), chained.last.tolist(), chained.points.tolist())
    return [Bundle(*row) for row in zip(*columns, strict=True)]
