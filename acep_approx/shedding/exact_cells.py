"""The audit of a run: a few cells of key and time are matched exactly beside it, out of a share of its budget.

The run is left alone: which of the cells' match points it found is seen afterwards. Whether the cells of an epoch are
looked at is decided when it begins, by what is saved up and by what cells have cost so far, so that it says nothing
about what is in them. Cells that turn out to cost more than there is are given up, and counted: nobody knows what was
found there. Nothing is lent, so the audit never takes more than its share.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.budget.audit import AuditCells, AuditSample
from acep_approx.engines.batches import RunEvents
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, TICK, finite, number_in

ENOUGH = 1.5
"""How many times what cells have cost so far must be saved up before those of an epoch are looked at."""
MOST_EPOCHS = 1000
"""Epochs that are kept in mind."""


class ExactCells:
    """Finds out which match points of some cells a run that sheds has found.

    Parameters
    ----------
    plan : Plan
        Of a query with a window of time, each completed run of which is a match at once.
    columns : (pyarrow.Schema, Roles)
        Of the events.
    cells : AuditCells
        Which cells are chosen.
    full_work : float
        Run-steps per event of an exact run, as far as is known.

    Attributes
    ----------
    quota, steps : float, int
        Run-steps granted, and done, so far.
    lost : int
        Cells that were given up.
    sample : AuditSample
        Match points of the cells, and which of them the run found.
    """

    def __init__(self, plan: Plan, columns: tuple[pa.Schema, Roles], cells: AuditCells, full_work: float) -> None:
        self.plan, self.cells, self.full_work = plan, cells, full_work
        self.schema, self.roles = columns
        self.quota, self.steps, self.lost = 0.0, 0, 0
        self.sample = AuditSample.none()
        self._density = 0.0  # events per tick
        self._done = self._at_hand = 0  # epochs that were looked at, and are
        self._seen = 0  # events that the exact run was shown
        self._looks: dict[int, bool] = {}  # by epoch: whether its cells are looked at; the latest
        self._execution: Execution | None = None

    def end_piece(self, batch: EventBatch, granted: float, events: RunEvents | None, found: Ints) -> None:
        """Match the cells' part of a piece of the stream, for which some run-steps are granted.

        ``events``: those that runs are tested with, None without any; ``found``: rows of the run's match points.
        """
        self.quota += granted
        self._density = len(batch) / (int(batch.ticks[-1] - batch.ticks[0]) + 1)
        if events is None:
            return
        chosen = self._chosen(events.slot, events.tick)
        if len(chosen):
            self._match(batch, events, chosen[np.argsort(events.row[chosen])], found)
        # epochs that are over are no longer at hand; long ago they are forgotten
        now = int(batch.ticks[-1]) // self.cells.epoch
        at_hand = sum(looks for epoch, looks in self._looks.items() if epoch >= now)
        self._done, self._at_hand = self._done + self._at_hand - at_hand, at_hand
        self._looks = {epoch: looks for epoch, looks in self._looks.items() if epoch > now - MOST_EPOCHS}

    def rebind(self) -> None:
        """Columns have got wider types: the current cells are given up."""
        self._execution = None
        self.lost += self._at_hand
        self._looks = dict.fromkeys(self._looks, False)

    # --- which cells ----------------------------------------------------------------------------------------

    def _chosen(self, slots: Ints, ticks: Ints) -> Ints:
        """Which events lie in cells that are looked at, or up to a window before one."""
        window, epoch = self.cells.window, self.cells.epoch
        is_now, is_ahead = self.cells.now_or_ahead(slots, ticks)
        some = np.flatnonzero(is_now | is_ahead)
        is_now, is_ahead = is_now[some], is_ahead[some]
        now, ahead = ticks[some] // epoch, (ticks[some] + window) // epoch
        distinct = np.unique(np.concatenate((now[is_now], ahead[is_ahead], [np.iinfo(np.int64).max])))
        looks = np.array([self._looks_at(e) for e in distinct[:-1].tolist()] + [False])
        is_now &= looks[np.searchsorted(distinct, now)]
        is_ahead &= looks[np.searchsorted(distinct, ahead)]
        return some[is_now | is_ahead]

    def _looks_at(self, epoch: int) -> bool:
        """Whether the cells of an epoch are looked at: if what is saved up should suffice, for those at hand too."""
        if epoch not in self._looks:
            if self._done:
                cost = self.steps / self._done
            else:  # as far as is known before any was looked at
                cost = self.full_work * self._density * (self.cells.epoch + self.cells.window) * self.cells.share
            self._looks[epoch] = self.quota - self.steps >= ENOUGH * cost * (self._at_hand + 1)
            self._at_hand += self._looks[epoch]
        return self._looks[epoch]

    # --- what is in them ------------------------------------------------------------------------------------

    def _match(self, batch: EventBatch, events: RunEvents, chosen: Ints, found: Ints) -> None:
        rows, slots, ticks = events.row[chosen], events.slot[chosen], events.tick[chosen]
        if self._execution is None:
            self._execution = Execution(self.plan, output=BARE)
            known = {field.name: field for field in batch.data.schema}  # types may be wider by now
            self._execution.bind(pa.schema([known.get(field.name, field) for field in self.schema]), self.roles)
            self._seen = 0
        pipeline, place = self._execution.pipeline, rows - batch.first_row
        assert pipeline is not None
        part = EventBatch(self._seen, batch.ticks[place], batch.data.take(pa.array(place)))
        done, left = self._execution.progress.steps, max(int(self.quota - self.steps), 0)
        pipeline.results.give_up_after(done + left)
        try:
            tables = list(self._execution.run(part))
        except TooManyStepsError:
            self.steps += left
            self._give_up(slots, ticks)
            return
        self.steps += self._execution.progress.steps - done
        at = [table.column("row").to_numpy() for table in tables if table.num_rows]
        points = np.unique(np.concatenate([*at, np.zeros(0, np.int64)])) - self._seen
        self._seen += len(part)
        rows, slots, ticks = rows[points], slots[points], ticks[points]
        cells = self.cells.cells(slots, ticks)
        is_in = (cells >= 0) & self._looked(ticks)
        self.sample = self.sample.combine(AuditSample.of(cells[is_in], np.isin(rows[is_in], found)))

    def _give_up(self, slots: Ints, ticks: Ints) -> None:
        self._execution = None
        looked = self._looked(ticks)
        cells = np.unique(self.cells.cells(slots[looked], ticks[looked]))
        self.lost += int((cells >= 0).sum())
        for epoch in np.unique(np.concatenate((ticks, ticks + self.cells.window)) // self.cells.epoch).tolist():
            self._looks[epoch] = False

    def _looked(self, ticks: Ints) -> Bools:
        return np.array([self._looks.get(epoch, False) for epoch in (ticks // self.cells.epoch).tolist()], np.bool_)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        sample, execution = self.sample, self._execution
        return {
            "counts": [self.quota, self.steps, self.lost, self._done, self._at_hand, self._seen],
            "sample": [column.tolist() for column in (sample.cells, sample.found, sample.points)],
            "looks": list(self._looks.items()),
            "execution": "" if execution is None else b64encode(execution.state_bytes()).decode(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        quota, *counts = saved["counts"]
        finite("counts", quota)
        self.quota = quota
        numbers = [number_in("counts", count, 0, COUNT) for count in counts]
        self.steps, self.lost, self._done, self._at_hand, self._seen = numbers
        self.sample = AuditSample.restored(saved["sample"])
        self._looks = {number_in("looks", epoch, -TICK, TICK): bool(looks) for epoch, looks in saved["looks"]}
        if saved["execution"]:
            self._execution = Execution.from_state(self.plan, b64decode(saved["execution"]))
