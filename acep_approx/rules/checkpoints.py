"""Checkpoints of rules under way: when they are written, and how a run goes on from the last one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from os import PathLike

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow
from acep_approx.events.keys import KeyCodes
from acep_approx.query.rules.printer import to_text
from acep_approx.query.rules.syntax import Table
from acep_approx.rules.durable.database import damaged
from acep_approx.rules.durable.notes import Checkpoint
from acep_approx.rules.durable.store import DELETED, Durable, none_deleted
from acep_approx.rules.execution import Outcome, tables_of
from acep_approx.rules.losses import Spending
from acep_approx.rules.program import Program
from acep_approx.rules.runner import Runner

LOG = logging.getLogger("acep_approx.checkpoint")
NOTED_WITHIN = 0.05
"""Seconds of calls that are noted together at most."""
Begin = Callable[[], Runner]
"""Makes a runner whose tables have the rows that they begin with."""


class Checkpoints:
    """The file in which a run keeps its store, and what of the run is not in it yet.

    Parameters
    ----------
    program : Program
    path : path
    begin : callable
        Makes the runner where the file is new.
    every : int
        Events between two checkpoints, at least.
    spending : Spending, optional
        As for ``Runner``.

    Attributes
    ----------
    runner : Runner
        Where the last checkpoint left it.
    waiting : dict of str to pyarrow.Table
        Matches of the last checkpoints of an earlier run which may not have been handed on.

    Raises
    ------
    StoreError, UsageError
        See ``Durable``.
    """

    def __init__(
        self,
        program: Program,
        path: str | PathLike[str],
        begin: Begin,
        every: int,
        spending: Spending | None = None,
    ) -> None:
        self._spending = spending
        self._file = Durable(path, program.file.tables, to_text(program.file))
        self._every = every
        try:
            last = self._file.load()
            kept = self._file.take_matches()
            self._given = [one.number for one in kept]
            try:
                self.waiting = tables_of((one.rule, one.matches) for one in kept)
            except pa.ArrowException as error:
                raise damaged(self._file.path, f"matches do not go together: {error}") from error
            self.calls = self._file.pending_calls()
            if last is not None:
                self.runner = self._restored(program, last)
                self.runner.load({name: rows.drop_columns([DELETED]) for name, rows in last.changes.items()})
        except BaseException:
            self._file.close()
            raise
        self._taken: list[int] = []
        self._made: list[str] = []
        self._note_at = 0.0
        self._outcomes: list[Outcome] = []
        if last is None:
            self.runner = begin()
            self.write(all_rows=True)
        self._events = self.runner.arrived
        self.runner.keeps_last()

    def _restored(self, program: Program, last: Checkpoint) -> Runner:
        """The runner of the last checkpoint.

        Raises
        ------
        StoreError
            ``ACEP-R209``: its state is not as it was written.
        """
        try:
            runner = Runner.restored(program, last.engine, self._spending)
        except DataError as error:
            if error.code != "ACEP-D040":
                raise
            raise damaged(self._file.path, "the state of the run is not the one that was written") from error
        if runner.arrived != last.offset:
            raise damaged(self._file.path, f"its state is as of {runner.arrived} events, and not of {last.offset}")
        if unknown := {*self.waiting} - {rule.name for rule in program.rules}:
            raise damaged(self._file.path, f"it has matches of the rule {min(unknown)!r:.80}, which there is not")
        return runner

    def note(self, outcome: Outcome) -> Outcome | None:
        """Take in what came of a batch; gives what a checkpoint has made lasting, if one was due."""
        self._outcomes.append(outcome)
        return self.write() if self.runner.arrived - self._events >= self._every else None

    def write(self, *, all_rows: bool = False) -> Outcome:
        """Write a checkpoint; gives what has come since the one before."""
        outcome = Outcome.joined(self._outcomes) if self._outcomes else self.runner.execution.nothing()
        tables = self.runner.execution.tables
        if all_rows:
            changes = {name: none_deleted(rows.to_arrow()) for name, rows in tables.items()}
        else:
            changes = {name: _last(rows, tables[name].table) for name, rows in outcome.last.items()}
        state = self.runner.state(with_tables=False)
        matches = {rule: table for rule, table in outcome.matches.items() if table.num_rows}
        self._given += self._file.commit(
            Checkpoint(self.runner.arrived, state, changes, matches, outcome.calls, self._taken, self._made)
        )
        self._taken, self._made, self._outcomes, self._events = [], [], [], self.runner.arrived
        LOG.info("checkpoint after %s events, %d bytes of state", f"{self.runner.arrived:,}", len(state))
        return outcome

    def hand_on(self) -> None:
        """Who asks for more has got all matches so far: the next checkpoint says so."""
        self._taken += self._given
        self._given = []

    def made(self, id: str) -> None:  # noqa: A002
        """The call of this id has been made: the file says so, soon.

        A run that dies makes the calls again that it has not noted. To note one takes about as long as a checkpoint
        without events. So a call that takes as long is noted at once, and of fast ones several together, those of
        ``NOTED_WITHIN`` at most: calls take no more than twice the time that they take by themselves.
        """
        self._made.append(id)
        begun = time.monotonic()
        if begun >= self._note_at:
            self._file.delivered(self._made)
            self._made, now = [], time.monotonic()
            self._note_at = now + min(now - begun, NOTED_WITHIN)

    def close(self, *, is_failed: bool = False) -> None:
        """Let go of the file; calls that were made, and matches that were handed on, are noted.

        ``is_failed``: who got the last matches may not be done with them.
        """
        if self._file.is_closed:  # somebody else wrote it
            return
        if not is_failed:
            self.hand_on()
        self._file.delivered(self._made)
        self._file.taken(self._taken)
        self._file.close()


def _last(rows: pa.Table, table: Table) -> pa.Table:
    """Changed rows, each key once, as it was last."""
    rows = rows.combine_chunks()
    numbers = KeyCodes().encode([rows.column(name).combine_chunks() for name in table.key])
    _, first = np.unique(numbers[::-1], return_index=True)
    return rows.take(to_arrow(np.sort(len(numbers) - 1 - first)))
