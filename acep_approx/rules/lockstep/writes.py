"""What the rules of a circle would write for an event: made for all events that may complete a match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.kernels.rules.rows import Undo, Writes
from acep_approx.rules.firing import Firing, Known, Statement, Taken
from acep_approx.rules.lockstep.arenas import TableArena, begins, joined_statements
from acep_approx.rules.log import TableLog, room_to_undo, scratch_for
from acep_approx.rules.values import OfBatch, OfEvents

NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Prepared:
    """What is ready to be written in a batch: for each statement the kernel runs, what it takes from its events.

    ``first``: where the writes of each begin; ``at``: per rule where its events stand in the batch.
    """

    writes: Writes
    first: list[int]
    taken: list[Taken]
    at: list[Ints]


class Acts:
    """The statements of a circle: those that its own reads depend on, which the kernel runs, and all others.

    Parameters
    ----------
    firings : sequence of Firing
        Of its rules.
    logs : mapping of str to TableLog
        Of the tables that are read.
    run : sequence of sequence of Statement
        Per rule those that the kernel runs.
    wanted : mapping of str to numpy.ndarray of bool
        Per table the columns that reads depend on.

    Attributes
    ----------
    first : list of int
        Of each rule, the first of the statements that the kernel runs.
    tables : list of TableRows
        Per statement that it runs.
    """

    def __init__(
        self,
        firings: Sequence[Firing],
        logs: Mapping[str, TableLog],
        run: Sequence[Sequence[Statement]],
        wanted: Mapping[str, Bools],
    ) -> None:
        self._firings = firings
        self._pairs = [(number, one) for number, some in enumerate(run) for one in some]
        self.first = begins([len(some) for some in run])
        self.tables = [logs[one.write.table].rows for _, one in self._pairs]
        self.statements, firsts = joined_statements([log.programs.statements for log in logs.values()])
        begin = dict(zip(logs, firsts, strict=True))
        self._numbers = [begin[one.write.table] + one.number for _, one in self._pairs]
        self._width = max(log.programs.width for log in logs.values())
        self._wanted = wanted
        self._columns = max(len(log.rows.columns) for log in logs.values())
        self.scratch = scratch_for(self._columns)
        self._undo = Undo(np.zeros(1, np.int64), NONE, NONE, np.zeros(0, np.bool_))

    def wanted(self, arena: TableArena) -> Bools:
        """The columns that are written, of all tables."""
        return arena.by_column(dict(self._wanted))

    def prepared(self, of: OfBatch, at: list[Ints]) -> Prepared:
        """What would be written for events of a batch, per rule."""
        values = [OfEvents(of, own) for own in at]
        taken = [self._firings[rule].takes(one, values[rule]) for rule, one in self._pairs]
        sizes = [len(one.row) for one in taken]
        total, first = sum(sizes), begins(sizes)
        row, statement = np.empty(total, np.int64), np.empty(total, np.int64)
        slots, states = (np.zeros((total, self._width), np.int64) for _ in range(2))
        for one, begin, number in zip(taken, first, self._numbers, strict=True):
            part = slice(begin, begin + len(one.row))
            row[part], statement[part] = one.row, number
            slots[part, : one.slots.shape[1]], states[part, : one.slots.shape[1]] = one.slots, one.slot_state
        none = np.zeros(total, np.int64) if total else NONE
        writes = Writes(none, none, none, row, statement, slots.reshape(-1), states.reshape(-1))
        return Prepared(writes, first, taken, at)

    def undo(self, writes: int) -> Undo:
        """Room to take so many writes back; its arrays are used again."""
        room = room_to_undo(writes, self._columns)
        if len(self._undo.place) < room:
            words = np.empty(room, np.int64), np.empty(room, np.int64)
            self._undo = Undo(self._undo.used, *words, np.empty(room, np.bool_))
        return self._undo

    def known(self, rule: int, prepared: Prepared, places: Ints, acts: Bools, of: OfBatch) -> Known:
        """What a rule takes from the events that complete its matches, by their places among ``at``."""
        firing, at = self._firings[rule], prepared.at[rule][places]
        ready = {
            one.action: taken for (whose, one), taken in zip(self._pairs, prepared.taken, strict=True) if whose == rule
        }
        values = OfEvents(of, at)
        by_action = {
            one.action: ready[one.action].take(places) if one.action in ready else firing.takes(one, values)
            for one in firing.statements
        }
        return Known(of.batch.first_row + at, acts, by_action)
