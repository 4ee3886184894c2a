"""A live run inside a load budget whose events may be late, change or be taken back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.api.spending import go_on, load_of_state, spent
from acep_approx.budget.audit import RecallEstimate
from acep_approx.errors import UsageError
from acep_approx.matching.outputs.kinds import MATCHES
from acep_approx.matching.pipeline import Pipeline
from acep_approx.results.budgeted import BudgetedRun, refuse_output
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.request import Revisions
from acep_approx.run.watermarks import NEVER
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import shedder

if TYPE_CHECKING:
    from acep_approx.archive import Scope
    from acep_approx.engines.progress import RunProgress
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph


class BudgetedRevisedMatcher(RevisedMatcher, BudgetedRun):
    """Runs one query inside a load budget over a stream that may change; made by ``Query.matcher(budget=...)``.

    Parameters
    ----------
    plan : Plan
    asked : Revisions
        How events may come late and change.
    load : Load
        The budget, and how it is spent.
    **options
        As for ``RevisedMatcher``.

    Raises
    ------
    UsageError
        ``ACEP-U055``: it is to learn from results that may be taken back.

    Notes
    -----
    After each push the sum of all that was put out is part of what the same run without a budget would have put out,
    and no more run-steps were taken than granted: what a late event, or one that is taken back, makes run again is paid
    from the same budget. Each event is granted for once, when it is first taken in. Match points are counted once,
    when they are first found. Where results may be taken back there is no audit, so recall is not known.
    """

    def __init__(self, plan: Plan, asked: Revisions, load: Load, **options: Any) -> None:
        refuse_output(options.get("output", MATCHES))
        load.check(plan)
        if not asked.is_final:
            if load.learns:
                raise UsageError(
                    "learn= and emit= do not go together: what is learned of a match may be taken back",
                    code="ACEP-U055",
                    hint="leave emit= out: results are put out when they are final; or leave learn= out (--learn)",
                )
            load = replace(load, audit=0.0)
        self.load = load
        self.shedder = shedder(plan, load)
        super().__init__(plan, asked, shedding=self.shedder, **options)

    @property
    def pipeline(self) -> Pipeline | None:  # type: ignore[override]
        """None: no columns were seen yet."""
        return self.execution.pipeline

    @property
    def progress(self) -> RunProgress:
        """Numbers of events seen so far."""
        return self.execution.progress

    # --- while it runs --------------------------------------------------------------------------------------

    def push(self, events: Any) -> pa.Table:
        """Take in rows, and return what changes as far as the budget can buy it; see ``RevisedMatcher``."""
        with self._noted():
            return super().push(events)

    def punctuate(self, tick: int | str | datetime, where: str | None = None) -> pa.Table:
        """No event before ``tick`` will come any more; see ``RevisedMatcher``."""
        with self._noted():
            return super().punctuate(tick, where)

    def finish(self, *, ended: bool = True) -> pa.Table:
        """The stream has ended; see ``RevisedMatcher``."""
        with self._noted():
            found = super().finish(ended=ended)
        if self.shedder is not None:
            self.shedder.finish()
        return found

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Write down what a call took, and where the run stands then."""
        begun = time.perf_counter()
        yield
        run = None if self.stream is None else self.stream.run
        if self.shedder is not None:
            if isinstance(run, Replay) and run.head > NEVER:
                self.shedder.note_change(run.head, self.progress)
            self.shedder.forget()
        self.seconds += time.perf_counter() - begun

    def _recall(self) -> RecallEstimate | None:
        if self.asked.is_final or self.shedder is None:
            return super()._recall()
        reason = "there is no audit where results may be taken back (emit=)"
        return RecallEstimate(None, None, None, points=0, cells=0, reason=reason)

    def _left_out(self) -> dict[str, int]:
        return {"late": self.revisions.late, "malformed": self.malformed.count, **super()._left_out()}

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What a state holds of it beside the stream, as JSON."""
        return {**super().header(), "spending": spent(self)}

    @classmethod
    def taken_up(cls, plan: Plan, saved: Scope, history: HistoryGraph | None = None) -> Self:
        """Go on from a state; see ``Query.from_state``.

        Raises
        ------
        DataError
            ``ACEP-D048``: it needs its history.
        """
        spending = saved.parts["revisions"].head["spending"]
        asked, options = cls.made_with(saved)
        made = cls(plan, asked, load_of_state(plan, spending, history), **options)
        go_on(made, spending)
        made.go_on(saved)
        return made
