"""The push interface inside a load budget: a live run that sheds, learns, and can be saved with what it has learned."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.api.matcher import Matcher
from acep_approx.api.spending import go_on, load_of_state, spent
from acep_approx.archive import Scope
from acep_approx.matching.execution import checked_options
from acep_approx.matching.outputs.kinds import MATCHES
from acep_approx.results.budgeted import BudgetedRun, refuse_output
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import shedder

if TYPE_CHECKING:
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph


FEW, PUSHES = 100, 4096
"""Pushes without which nothing is said of how long they take, and the latest ones that it is said of."""


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
        self._took: deque[float] = deque(maxlen=PUSHES)
        super().__init__(plan, shedding=self.shedder, **options)

    def push(self, events: Any) -> pa.Table:
        """Run more events and return the results that they complete and that the budget can buy; see ``Matcher``."""
        begun = time.perf_counter()
        found = super().push(events)
        if self.shedder is not None:
            self.shedder.forget()
        self._took.append(time.perf_counter() - begun)
        self.seconds += self._took[-1]
        return found

    def _push_p99(self) -> float | None:
        """How long a push took at most, in 99 of 100 cases, of the latest ones; None where there were few."""
        return float(np.quantile(self._took, 0.99)) if len(self._took) >= FEW else None

    def finish(self, *, ended: bool = True) -> pa.Table:
        """The stream has ended: the matches that were waiting for the end of their window; see ``Matcher``."""
        if self.shedder is not None:
            self.shedder.finish()
        return super().finish(ended=ended)

    # --- state ----------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """What it was made with, and what it must go on with elsewhere, as JSON."""
        return {**super().options(), "spending": spent(self)}

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
        made = cls(plan, load_of_state(plan, spending, history), **options)
        go_on(made, spending)
        made.take(saved)
        return made
