"""What is looked at beside a run, out of a share of its budget: ends of matches, or else cells of the stream.

Ends come first, where the query can be read backwards. Once they turn out to cost more than the parts of the stream
that they lie in, these are matched instead. Nothing is lent, so the audit never takes more than its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.audit import MOST_LOST, AuditCells, RecallEstimate
from acep_approx.budget.budget import granted_beside
from acep_approx.budget.evidence import Evidence, Expected
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.lost import LostRuns, can_follow
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.planning.planner import Plan
from acep_approx.shedding.exact_cells import ExactCells
from acep_approx.shedding.exact_ends import ExactEnds, LookBack, ending_letters


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
    ends : ExactEnds or None
        None: the query cannot be read backwards.
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
        self.ends: ExactEnds | None = None
        look = LookBack.of(plan, *columns, cells.window)
        if look is not None:
            runs = None
            if arena is not None and can_follow(plan.registers):
                runs = LostRuns(arena, cells.window, begins=True)
            self.ends = ExactEnds(look, ending_letters(plan.registers), cells.seed, full_work, runs)
        self._events: RunEvents
        self._found: list[Ints] = []  # rows of the match points of the run in this piece
        self._decided: list[Ints] = []  # and those of which it knows whether they are some

    def count(self, events: RunEvents) -> None:
        """These events come, that runs are tested with."""
        self._events, self._found, self._decided = events, [], []

    def note_found(self, rows: Ints) -> None:
        """The run has found match points at these rows."""
        self._found.append(rows)

    def forget_runs(self) -> None:
        """From here on nothing says of which ends the runs were lost: each may be open."""
        if self.ends is not None:
            self.ends.runs = None

    def note_decided(self, rows: Ints) -> None:
        """Note rows of which the run knows whether they are match points."""
        self._decided.append(rows)

    @property
    def tries_ends(self) -> bool:
        """Whether ends are tried, not cells."""
        return self.ends is not None and not self.ends.is_dear

    def end_piece(
        self, batch: EventBatch, rate: float, classes: Sequence[int], *, is_relevant: bool, is_certain: bool = False
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
        """
        granted = granted_beside(rate, len(batch), self.explores)
        if self.tries_ends:
            assert self.ends is not None
            self.ends.quota += granted
            granted = 0.0
        events = self._events if is_relevant and len(self._events.row) else None
        found = np.concatenate([*self._found, np.zeros(0, np.int64)])
        if self.ends is not None and events is not None:
            decided = np.concatenate([found, *self._decided])
            self.ends.add(batch, events, classes, decided, is_certain=is_certain)
            if self.ends.is_due():
                granted = self._try_ends()
        if not self.tries_ends:
            self.cells.end_piece(batch, granted, events, found)

    def _try_ends(self, *, is_last: bool = False) -> float:
        """Try some; gives the run-steps that are left for cells, if these come next."""
        assert self.ends is not None
        self.ends.try_some(is_last=is_last)
        left = self.ends.quota - self.ends.steps if self.ends.is_dear else 0.0
        self.ends.quota -= left
        return left

    def finish(self) -> None:
        """The stream has ended."""
        if self.tries_ends:
            self.cells.quota += self._try_ends(is_last=True)

    def rebind(self) -> None:
        """Columns have got wider types: the current cells are given up."""
        self.cells.rebind()

    @property
    def quota(self) -> float:
        """Run-steps granted so far."""
        return self.cells.quota + (self.ends.quota if self.ends is not None else 0.0)

    @property
    def steps(self) -> int:
        """Run-steps done so far."""
        return self.cells.steps + (self.ends.steps if self.ends is not None else 0)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        return {**self.cells.snapshot(), "ends": self.ends.snapshot() if self.ends is not None else None}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        self.cells.restore(saved)
        if self.ends is not None and saved.get("ends") is not None:  # states of before have none
            self.ends.restore(saved["ends"])


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
    sample, lost, ends = audit.cells.sample, audit.cells.lost, audit.ends
    if past is None and (ends is None or (not ends.sample.tried and len(sample.cells) > 1)):
        return sample.of_run(found, lost)
    tried = None if ends is None else ends.sample
    is_whole = lost <= MOST_LOST * (len(sample.cells) + lost)
    return Evidence(found, events, past, tried, sample if is_whole else None).estimate()
