"""The push interface inside a load budget: a live run that sheds, learns, and can be saved with what it has learned."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.api.matcher import Matcher
from acep_approx.archive import Scope
from acep_approx.budget.budget import Budget
from acep_approx.errors import DataError
from acep_approx.matching.execution import checked_options
from acep_approx.matching.outputs.kinds import MATCHES
from acep_approx.ranges import finite
from acep_approx.results.budgeted import BudgetedRun, refuse_output
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import shedder

if TYPE_CHECKING:
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph


class BudgetedMatcher(Matcher, BudgetedRun):
    """Runs one query over a stream of batches inside a load budget; made by ``Query.matcher(budget=...)``.

    Parameters
    ----------
    plan : Plan
    load : Load
        The budget, and how it is spent.
    **options
        As for ``Execution``.

    Notes
    -----
    What ``push`` returns are matches of the exact answer; some are missing. Memory is bounded, however long it runs: it
    remembers the latest match points, and where it stood from time to time.
    """

    def __init__(self, plan: Plan, load: Load, **options: Any) -> None:
        refuse_output(options.get("output", MATCHES))
        load.check(plan)
        self.load = load
        self.shedder = shedder(plan, load)
        super().__init__(plan, shedding=self.shedder, **options)

    def push(self, events: Any) -> pa.Table:
        """Run more events and return the results that they complete and that the budget can buy; see ``Matcher``."""
        begun = time.perf_counter()
        found = super().push(events)
        if self.shedder is not None:
            self.shedder.forget()
        self._seconds += time.perf_counter() - begun
        return found

    def finish(self, *, ended: bool = True) -> pa.Table:
        """The stream has ended: the matches that were waiting for the end of their window; see ``Matcher``."""
        if self.shedder is not None:
            self.shedder.finish()
        return super().finish(ended=ended)

    # --- state ----------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """What it was made with, and what it must go on with elsewhere, as JSON."""
        load, known = self.load, self.load.history
        spending = {
            "budget": str(load.budget),
            "history": None if known is None else {"version": known.version_, "events": known.events_},
            "policy": load.policy,
            "audit": load.audit,
            "seed": load.seed,
            "learns": load.learns,
            "full_work": load.full_work,
            "seconds": self._seconds,
            "so_far": None if self.shedder is None else self.shedder.metrics.snapshot(self.shedder.cells),
        }
        return {**super().options(), "spending": spending}

    @classmethod
    def taken_up(cls, plan: Plan, saved: Scope, history: HistoryGraph | None = None) -> Self:
        """Go on from a state; see ``Query.from_state``.

        Raises
        ------
        DataError
            ``ACEP-D048``: it needs its history.
        """
        options = checked_options(dict(saved.head["caller"]))
        spending = options.pop("spending")
        needed = spending["history"]
        if needed is not None and history is None and plan.registers is not None:
            version = f"version {needed['version']}" if needed["version"] else "never saved"
            raise DataError(
                f"the state is of a run with a history ({version}, learned from {needed['events']:,} events), which is "
                "not in it",
                code="ACEP-D048",
                hint="give the history too: from_state(state, history=...); a later version of it will do",
            )
        how = {name: spending[name] for name in ("policy", "audit", "seed", "learns", "full_work")}
        made = cls(plan, Load(Budget.parse(spending["budget"]), history, **how), **options)
        finite("seconds", spending["seconds"])
        made._seconds = spending["seconds"]
        if made.shedder is not None and spending["so_far"] is not None:
            made.shedder.metrics.restore(spending["so_far"])
        made.take(saved)
        return made
