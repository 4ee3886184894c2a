"""Matches found inside a load budget, with the metrics of the run: work against the bound, what was shed, recall."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.learning_ledger import Learning
from acep_approx.budget.ledger import Bundle, HistoryPath, PathStep, RunRecord
from acep_approx.engines.runs.runs import Runs
from acep_approx.errors import UsageError
from acep_approx.events.source import Source
from acep_approx.events.stream import read_events
from acep_approx.events.time import tick_unit
from acep_approx.learning.refresh import refresh
from acep_approx.matching.execution import Execution
from acep_approx.matching.pipeline import OutputKind, Pipeline
from acep_approx.matching.renumber import renumbered
from acep_approx.planning.planner import Plan
from acep_approx.results.expand import expanded
from acep_approx.results.matches import Matches
from acep_approx.shedding.learning_summary import learning_table, summary
from acep_approx.shedding.load import Load, full_work_unknown
from acep_approx.shedding.metrics import Metrics
from acep_approx.shedding.shed_runs import shed_by_state, shed_table
from acep_approx.shedding.shedder import Shedder, shedder
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.policies import LEARNED, no_history
from history.bundles import Bundles, chain

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery

SHOWN_PATHS = 6
"""Paths of the history that a report shows."""


class BudgetedMatches(Matches):
    """The matches that a load budget can buy; see ``Matches``, and ``record`` for what it cost.

    Parameters
    ----------
    plan, source, options, **more
        As for ``Matches``.
    load : Load
        The budget, and how it is spent.

    Notes
    -----
    Every match is one of the exact answer; some may be missing. Its errors are the least of the ways to it that were
    found; with NON OVERLAP a match may be reported that follows one that was missed. Where the cells engine answers,
    nothing is shed: its work does not depend on how many partial matches there are.
    """

    def __init__(self, plan: Plan, source: Source, options: dict[str, Any], load: Load, **more: Any) -> None:
        super().__init__(plan, source, options, **more)
        self.load = load
        if load.history is None and plan.registers is not None:
            if load.budget.unit == "%" and not load.budget.is_unlimited and load.full_work is None:
                raise full_work_unknown(load.budget)
            if load.policy_name in LEARNED:
                raise no_history(load.policy_name)
        self.shedder: Shedder | None = None
        self._asked: OutputKind | None = None
        self._pipeline: Pipeline | None = None
        self._seconds = 0.0
        self._logged: list[pa.Table] = []

    @classmethod
    def of(cls, exact: Matches, load: Load) -> Self:
        """The same question, inside a budget."""
        more = {"sort": exact._sort, "limit": exact.limit, "on_progress": exact._on_progress}
        return cls(exact.plan, exact.source, exact._options, load, **more)

    def _matcher(self, plan: Plan, kind: OutputKind) -> Execution:
        if kind in ("partial", "compressed"):
            raise UsageError(
                f"the output {kind!r} is about all partial matches, and a budget sheds some",
                code="ACEP-U038",
                hint="leave the budget out, or ask for matches, points or counts",
            )
        self.shedder, self._asked = shedder(plan, self.load), kind
        return Execution(plan, output=kind, shedding=self.shedder, **self._options)

    def _through(self, matcher: Execution, pipeline: Pipeline) -> Iterator[pa.Table]:
        self._pipeline, self._logged = pipeline, []
        begun = time.perf_counter()
        for table in super()._through(matcher, pipeline):
            self._take_log()
            yield table
        self._take_log()
        if self.shedder is not None:
            self.shedder.finish()
        self._seconds = time.perf_counter() - begun

    def _take_log(self) -> None:
        """Tables of what was shed; the keys of its slots are still known now."""
        if self.load.logs_shed and self._pipeline is not None and isinstance(self._pipeline.engine, Runs):
            log = self._pipeline.engine.logged()
            if len(log):
                self._logged.append(shed_table(log, self._pipeline))

    @property
    def window(self) -> int:
        """The window of the last call that found matches: in ticks, or in events; 0 before."""
        return self._pipeline.window if self._pipeline is not None else 0

    @property
    def _is_time(self) -> bool:
        """Whether ticks are microseconds since 1970."""
        if self._pipeline is None or self.plan.is_count_window:
            return False
        schema, roles = self._pipeline.schema, self._pipeline.roles
        return tick_unit(schema.field(roles.time).type, roles.unit) is not None

    def shed(self) -> pa.Table:
        """The runs shed by the last call that found matches: one row each; see ``shed_runs.shed_table``.

        Raises
        ------
        UsageError
            ``ACEP-U039``: it was not asked for when the matches were.
        """
        if not self.load.logs_shed:
            raise UsageError(
                "the runs that are shed were not written down", code="ACEP-U039", hint="ask for them with log_shed=True"
            )
        if not self._logged:
            return pa.table({})
        return renumbered(pa.concat_tables(self._logged), ["row"], self.source.late.original)

    def refreshed(self, query: CompiledQuery) -> HistoryGraph | None:
        """The history as it was learned by the last call that found matches, up to now.

        Parameters
        ----------
        query : CompiledQuery
            The query that is run.

        Returns
        -------
        HistoryGraph or None
            A new one; None as long as nothing was learned.
        """
        done = self.shedder
        if done is None or done.online is None or done.online.learner.values is None:
            return None
        known = copy(self.load.history) if self.load.history is not None else HistoryGraph(query)
        refresh(known, done.online.learner, self.progress.events, len(done.metrics.points), done.full_work())
        return known

    def learning(self) -> pa.Table:
        """When the last call that found matches scored runs anew, and by what: one row each time.

        Returns
        -------
        pyarrow.Table
            See ``learning_summary.learning_table``; without rows where nothing was learned. More is in
            ``record().learning``.
        """
        return learning_table(self._learned(), is_time=self._is_time)

    def _learned(self) -> Learning | None:
        online = self.shedder.online if self.shedder is not None else None
        return summary(online) if online is not None else None

    def expanded(self) -> pa.Table:
        """All matches that end when a match point does which ``points`` finds, not only those whose runs were kept.

        Unless ``points`` was the last call that found matches, it is called first. Then the events are read once more,
        and those at most a window before such a point are matched exactly; that work is not part of the budget. Columns
        as for ``to_arrow``.

        Raises
        ------
        UsageError
            ``ACEP-U047``: windows of events have no times to look at again; ``ACEP-U103``: the events can be read only
            once.

        Complexity: see ``expand.expanded``.
        """
        if self.plan.registers is None:
            return self.to_arrow()
        if self.plan.is_count_window:
            raise UsageError(
                "matches of a window of events cannot be expanded",
                code="ACEP-U047",
                hint="use a window of time, or list all matches without a budget",
            )
        if not self.source.reusable:
            raise UsageError(
                "these events can be read only once, and expanding reads them twice",
                code="ACEP-U103",
                hint="give a list, a table or a file",
            )
        if self._asked != "points":
            self.points()
        if self.shedder is None or self._pipeline is None:  # no columns, no events
            return pa.table({})
        ticks = self.shedder.metrics.points.joined("tick")
        matcher = Execution(self.plan, **self._options)
        pipeline = matcher.bind(self.source.schema)
        batches = read_events(self.source, pipeline.roles, columns=pipeline.columns, sort=self._sort)
        return expanded(matcher, batches, ticks, pipeline.window, self.source.late.original)

    def record(self, source: str = "") -> RunRecord:
        """The record of the last call that found matches.

        Parameters
        ----------
        source : str
            Name of the input, for people.
        """
        known, done = self.load.history, self.shedder
        learned, found = self._learned(), done.metrics if done else Metrics()
        ticks = found.points.joined("tick")
        order = np.argsort(ticks, kind="stable")
        return RunRecord(
            query=str(self.plan.query.text).strip(),
            source=source,
            budget=str(self.load.budget),
            bound=done.bound_in_words() if done else "the cells engine answers exactly, and sheds nothing",
            policy=self.load.policy_words if learned else self.load.policy_name,
            seed=self.load.seed,
            is_time=self._is_time,
            begin=found.begin,
            pieces=found.pieces,
            shed=shed_by_state(done.arena) if done and self._pipeline else (),
            recall=done.recall() if done else None,
            point_ticks=ticks[order],
            point_errors=found.points.joined("errors")[order],
            bundles=_bundles(ticks[order], self.window),
            paths=_paths(known) if known else (),
            late=self.source.late.count,
            malformed=self.source.malformed.count,
            without_key=self.progress.without_key,
            seconds=self._seconds,
            learning=learned,
        )

    def report(self, path: str | Path, source: str = "") -> None:
        """Write the record as one self-contained HTML page."""
        from acep_approx.report.page import write_report

        write_report(self.record(source), path)


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
