"""What is looked at beside a run, out of a share of its budget: ends of matches, or else cells of the stream.

Ends come first, where the query can be read backwards. Once they turn out to cost more than the parts of the stream
that they lie in, these are matched instead. Nothing is lent, so the audit never takes more than its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.audit import AuditCells, RecallEstimate
from acep_approx.budget.budget import granted_beside
from acep_approx.budget.evidence import EndSample, Expected, recall_by
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.lost import LostRuns, can_follow
from acep_approx.engines.runs.shedding import OpenEnds, Shedding
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.planning.planner import Plan
from acep_approx.shedding.exact_cells import ExactCells
from acep_approx.shedding.exact_ends import ExactEnds, LookBack, ending_letters
from acep_approx.shedding.searched_ends import SearchedEnds


class ExactAudit:
    """Finds out what a run that sheds has missed.

    Parameters
    ----------
    plan : Plan
        Of a query with a window of time, each completed run of which is a match at once.
    columns : (pyarrow.Schema, Roles)
        Of the events.
    cells : AuditCells
        Which cells are chosen, where cells are matched.
    explores : float
        Share of the budget that is for it. What is not used is saved up.
    full_work : float
        Run-steps per event of an exact run, as far as is known.
    arena : Shedding or None
        Of the run; None: it keeps no runs whose loss would say which ends are open.

    Attributes
    ----------
    cells : ExactCells
    searched : SearchedEnds
        Audits the parts of the stream in which the run searches ends.
    ends : ExactEnds or None
        Audits the others; None: runs were not followed yet, or the query cannot be read backwards.
    """

    def __init__(
        self,
        plan: Plan,
        columns: tuple[pa.Schema, Roles],
        cells: AuditCells,
        explores: float,
        full_work: float,
        arena: Shedding | None,
    ) -> None:
        assert plan.registers is not None
        self.cells, self.explores = ExactCells(plan, columns, cells, full_work), explores
        self.searched = SearchedEnds(cells.seed)
        self.ends: ExactEnds | None = None
        self._arena, self._make_ends = arena, partial(_ends_of, plan, columns, cells, full_work)
        self._has_followed = False
        self._events: RunEvents
        self._found: list[Ints] = []  # rows of the match points of the run in this piece

    def _follow(self) -> ExactEnds | None:
        """What audits ends where runs are followed; made only then, as it takes milliseconds."""
        if not self._has_followed:
            self._has_followed, self.ends = True, self._make_ends(self._arena)
        return self.ends

    def count(self, events: RunEvents) -> None:
        """These events come, that runs are tested with."""
        self._events, self._found = events, []

    def note_found(self, rows: Ints) -> None:
        """The run has found match points at these rows."""
        self._found.append(rows)

    def forget_runs(self) -> None:
        """From here on nothing says of which ends the runs were lost: each may be open."""
        self._arena = None
        if self.ends is not None:
            self.ends.runs = None

    def end_piece(
        self,
        batch: EventBatch,
        rate: float,
        classes: Sequence[int],
        *,
        is_relevant: bool,
        is_certain: bool = False,
        searched: OpenEnds | None = None,
    ) -> None:
        """Look at a part of a piece of the stream.

        Parameters
        ----------
        batch : EventBatch
            The piece.
        rate : float
            Run-steps that the run was granted per event.
        classes : sequence of int
            Letters of each class of events.
        is_relevant : bool
            Whether there were events that runs are tested with.
        is_certain : bool
            Whether the run has found all match points up to here: then there is no end to try.
        searched : OpenEnds, optional
            What ends were left open, where the run has searched them.
        """
        granted = granted_beside(rate, len(batch), self.explores)
        events = self._events if is_relevant and len(self._events.row) else None
        if searched is not None:
            self.searched.quota += granted
            self._end_search(batch, events, classes, searched)
            return
        ends = self._follow()
        if ends is not None and not ends.is_dear:
            ends.quota += granted
            granted = 0.0
        found = np.concatenate([*self._found, np.zeros(0, np.int64)])
        if ends is not None and events is not None:
            ends.add(batch, events, classes, found, is_certain=is_certain)
            if ends.is_due():
                granted = self._try_ends(ends)
        elif ends is not None:
            ends.pass_over(len(batch))
        if ends is None or ends.is_dear:
            self.cells.end_piece(batch, granted, events, found)

    def _end_search(
        self, batch: EventBatch, events: RunEvents | None, classes: Sequence[int], searched: OpenEnds
    ) -> None:
        """Audit a piece whose ends were searched. Its events are kept only if runs are followed soon."""
        if events is not None:
            self.searched.try_some(searched)
        ends = self._follow() if searched.gets_ready else self.ends
        if searched.gets_ready and ends is not None and events is not None:
            ends.add(batch, events, classes, events.row, is_certain=True)
        elif ends is not None and ends.keeps_events:
            self._try_ends(ends, is_last=True)
            ends.forget()

    @staticmethod
    def _try_ends(ends: ExactEnds, *, is_last: bool = False) -> float:
        """Try some; gives the run-steps that are left for cells, if these come next."""
        ends.try_some(is_last=is_last)
        left = ends.quota - ends.steps if ends.is_dear else 0.0
        ends.quota -= left
        return left

    def pause(self) -> None:
        """Try ends with what there is, if enough wait: nobody knows when more events come, and all would be kept."""
        if self.ends is not None and self.ends.is_full:
            self.cells.quota += self._try_ends(self.ends)

    def finish(self) -> None:
        """The stream has ended."""
        if self.ends is not None and not self.ends.is_dear:
            self.cells.quota += self._try_ends(self.ends, is_last=True)

    def rebind(self) -> None:
        """Columns have got wider types: the current cells are given up."""
        self.cells.rebind()

    @property
    def quota(self) -> float:
        """Run-steps granted so far."""
        return self.cells.quota + self.searched.quota + (self.ends.quota if self.ends is not None else 0.0)

    @property
    def steps(self) -> int:
        """Run-steps done so far."""
        return self.cells.steps + self.searched.steps + (self.ends.steps if self.ends is not None else 0)

    @property
    def sample(self) -> EndSample | None:
        """What was seen of ends; None where none can be tried."""
        if self.ends is not None:
            return self.searched.sample.combine(self.ends.sample)
        return self.searched.sample if self.searched.quota else None

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        return {
            **self.cells.snapshot(),
            "ends": self.ends.snapshot() if self.ends is not None else None,
            "searched": self.searched.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        self.cells.restore(saved)
        ends = self._follow() if saved.get("ends") is not None else None  # states of before have none
        if ends is not None:
            ends.restore(saved["ends"])
        if saved.get("searched") is not None:
            self.searched.restore(saved["searched"])


def _ends_of(
    plan: Plan, columns: tuple[pa.Schema, Roles], cells: AuditCells, full_work: float, arena: Shedding | None
) -> ExactEnds | None:
    """Make what audits ends where runs are followed, see ``ExactAudit``; None: the query cannot be read backwards."""
    look = LookBack.of(plan, *columns, cells.window)
    if look is None or plan.registers is None:
        return None
    runs = None
    if arena is not None and can_follow(plan.registers):
        runs = LostRuns(arena, cells.window, begins=True)
    return ExactEnds(look, ending_letters(plan.registers), cells.seed, full_work, runs)


def estimated(found: int, events: int, audit: ExactAudit, past: Expected | None) -> RecallEstimate:
    """Recall of a run by all that speaks of it.

    Parameters
    ----------
    found, events : int
        Match points that the run found, and events that it was shown.
    audit : ExactAudit
    past : Expected or None
        What its history leads to expect.
    """
    return recall_by(found, events, audit.cells.sample, audit.cells.lost, audit.sample, past)
