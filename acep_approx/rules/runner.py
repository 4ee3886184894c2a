"""Rules under way: events in, outcomes out; an action that fails leaves all as it was before its transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError, RuleError
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import Source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.kernels.rules.rows import NO_KEY, NO_VALUE, NOT_WHOLE, PASSED
from acep_approx.rules.execution import Bound, Outcome, RuleExecution, joined
from acep_approx.rules.log import FailedActionError
from acep_approx.rules.program import Driver, Program
from acep_approx.rules.state import RULES, pack, unpack

OnBatch = Callable[[int], None]
END = 2**61
"""Later than every tick."""
SNAPSHOT = 1 << 18
"""Events after which it is noted where the rules stand: to take an action back, the events since are run again."""
REASONS = {
    PASSED: ("a whole number passes 64 bits", "compute with a column of type float"),
    NOT_WHOLE: ("a number with a fraction would be written to a column of type int", "give the column the type float"),
    NO_KEY: ("the key of the row is NULL", "leave such events out: WHERE b.id IS NOT NULL"),
    NO_VALUE: ("a value cannot be computed", "a whole number passes 64 bits, or has a fraction"),
}


class Runner:
    """Runs a program over a stream that comes in pieces.

    Parameters
    ----------
    program : Program
    wanted : mapping of str to str or None
        Columns for the roles ``time``, ``key``, ``type``, and the ``unit``: as for ``infer_roles``.
    driver : {"auto", "stepping"}, default "auto"

    Attributes
    ----------
    execution : RuleExecution
    """

    def __init__(self, program: Program, wanted: Mapping[str, Any], driver: Driver = "auto") -> None:
        self.program = program
        self.wanted = dict(wanted)
        self.execution = RuleExecution(program, driver)
        self._keeps_last = False
        self._snapshot: bytes | None = None
        self._since: list[EventBatch] = []
        self._events_since = 0

    @property
    def offset(self) -> int:
        """Events that were run."""
        return self.execution.counters.events

    def keeps_last(self) -> None:
        """Let outcomes say what rows are now, for checkpoints."""
        self._keeps_last = self.execution.keeps_last = True

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Put rows into tables.

        Raises
        ------
        DataError
            ``ACEP-R110``, ``ACEP-R111``: they do not fit.
        """
        for name, rows in tables.items():
            self.execution.tables[name].load(rows)

    def bind(self, source: Source) -> Bound:
        """Get ready for events of the columns of a source."""
        if self.execution.bound is None:
            self.execution.bind(source.schema, infer_roles(source.schema, **self.wanted))
        assert self.execution.bound is not None, "it was just bound"
        source.expect(self.execution.bound.columns)
        return self.execution.bound

    def outcomes(
        self, source: Source, *, sort: bool = False, skips: bool = False, on_batch: OnBatch | None = None
    ) -> Iterator[Outcome]:
        """What comes of the events of a source, batch by batch.

        Parameters
        ----------
        source : Source
        sort : bool, default False
            Sort it first.
        skips : bool, default False
            Whether it is the whole stream, of which events that were run are left out.
        on_batch : callable, optional
            Is told the number of events so far.

        Raises
        ------
        RuleError
            ``ACEP-R101``: an action cannot be done.
        """
        if not len(source.schema):  # no columns, no events: an empty list
            return
        bound = self.bind(source)
        source.late.check(sort=sort)
        first = 0 if skips else self.offset
        with source.locating():
            for read in read_events(source, bound.roles, columns=bound.columns, sort=sort, first_row=first):
                done = min(self.offset - read.first_row, len(read))
                batch = read.slice(done, len(read) - done) if done else read
                if len(batch):
                    yield self.run(batch)
                if on_batch is not None:
                    on_batch(self.offset + source.late.count)

    def run(self, batch: EventBatch) -> Outcome:
        """What comes of a batch."""
        self._note()
        try:
            outcome = self.execution.run(batch)
        except FailedActionError as failed:
            raise self._undone(failed, batch) from failed
        except DataError:
            self._restore()  # none of the batch was run
            raise
        self._since.append(batch)
        self._events_since += len(batch)
        return outcome

    def _note(self, *, now: bool = False) -> None:
        """Note where the rules stand, now or if it is long ago."""
        if self._snapshot is None or now or self._events_since >= SNAPSHOT:
            self._snapshot, self._since, self._events_since = pack(self.execution, self.wanted), [], 0

    def close(self, before: int | None) -> Outcome:
        """What waited for windows that end before a tick; for all windows where it is None."""
        self._note(now=True)
        try:
            return self.execution.finish() if before is None else self.execution.pass_time(before)
        except FailedActionError as failed:
            self._restore()
            raise self._closed_before(failed) from failed

    def _closed_before(self, failed: FailedActionError) -> RuleError:
        """Let the windows close that end before the one of a transaction that failed; an earlier one may fail then."""
        while (tick := failed.at[1]) < END:
            try:
                outcome = self.execution.pass_time(tick)
            except FailedActionError as earlier:
                failed = earlier
                self._restore()
                continue
            self._snapshot = None
            return self._error(failed, outcome)
        return self._error(failed, self.execution.nothing())

    def _undone(self, failed: FailedActionError, batch: EventBatch) -> RuleError:
        """Run the events before a transaction that failed again.

        Where another error had cut the batch short, an earlier one may fail then, or an earlier rule of the same event.
        """
        alone = None
        while True:
            self._restore()
            place, tick, _ = failed.at
            before = batch.slice(0, place // 2 - batch.first_row)
            try:
                outcome = self.execution.run(before) if len(before) else self.execution.nothing()
                if place % 2:  # of an event: windows that had closed before it
                    tick = int(batch.ticks[len(before)])
                outcome = joined([outcome, self.execution.pass_time(tick)])
                if place % 2 and place != alone:
                    alone = place
                    self.execution.run(batch.slice(len(before), 1))
            except FailedActionError as earlier:
                failed = earlier
                continue
            self._snapshot = None
            return self._error(failed, outcome)

    def _restore(self) -> None:
        """Go back to where the rules stood before the last batch."""
        assert self._snapshot is not None, "it was noted before the batch"
        bound = self.execution.bound
        self.execution = unpack(self.program, self._snapshot)[0]
        self.execution.keeps_last = self._keeps_last
        if self.execution.bound is None and bound is not None:
            self.execution.bind(bound.schema, bound.roles)
        for batch in self._since:
            self.execution.run(batch)

    def _error(self, failed: FailedActionError, outcome: Outcome) -> RuleError:
        rule = self.program.rules[failed.rule].name
        row = failed.row if failed.row >= 0 else None
        where = "at the end of a window" if row is None else f"row {row}"
        what, hint = REASONS[failed.how]
        return RuleError(
            f"{where}: the rule {rule!r} cannot {failed.what}: {what}",
            code="ACEP-R101",
            hint=f"{hint}. The transaction was undone: all is as it was before",
            row=row,
            rule=rule,
            outcome=outcome,
        )

    # --- state ------------------------------------------------------------------------------------------------

    def state(self, *, with_tables: bool = True) -> bytes:
        """All that is needed to go on; see ``rules.state``."""
        return pack(self.execution, self.wanted, with_tables=with_tables)

    @classmethod
    def restored(cls, program: Program, state: bytes) -> Runner:
        """What ``state`` was called on.

        Raises
        ------
        DataError
            See ``rules.state.unpack``.
        """
        execution, wanted = unpack(program, state)
        with RULES.reading():
            made = cls(program, wanted, execution.driver)
        made.execution = execution
        return made

