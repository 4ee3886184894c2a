"""Rules under way: events in, outcomes out; an action that fails leaves all as it was before its transaction.

The state says where each stream and pipeline of the program stands, and what is in its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

import pyarrow as pa

from acep_approx.archive import Differences, Kind, Scope, damaged_state, state_of_other_format
from acep_approx.errors import DataError, RuleError
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.rules.rows import NO_KEY, NO_VALUE, NOT_WHOLE, PASSED
from acep_approx.matching.state import meaning, restored_stream, roles_of, save_stream
from acep_approx.query.rules.printer import to_text
from acep_approx.ranges import COUNT, number_in
from acep_approx.rules.execution import Counters, Outcome, RuleExecution, joined
from acep_approx.rules.log import FailedActionError
from acep_approx.rules.program import Driver, Program


def _of_another(_: Differences) -> DataError:
    return DataError(
        "the state is of other rules",
        code="ACEP-D042",
        hint="go on with the rules that it was made with, or start from the beginning",
    )


RULES = Kind("rules", lambda: damaged_state("rules"), state_of_other_format, _of_another)


def fingerprint(program: Program) -> str:
    """Sixteen hex digits that change whenever the rules, or what they are compiled to, do."""
    plans = [meaning(rule.plan) for rule in program.rules]
    return sha256(repr((to_text(program.file), plans)).encode()).hexdigest()[:16]


def pack(execution: RuleExecution, wanted: Mapping[str, Any], *, with_tables: bool = True) -> bytes:
    """Return all that is needed to go on in another process.

    Parameters
    ----------
    execution : RuleExecution
    wanted : mapping of str to str or None
        Columns for roles: see ``Runner``.
    with_tables : bool, default True
        Whether the tables are in it, too; a database may hold them.

    Complexity: O(state).
    """
    scope, bound = Scope(), execution.bound
    scope.head |= {
        "of": {"rules": fingerprint(execution.program)},
        "wanted": wanted,
        "driver": execution.driver,
        "counters": asdict(execution.counters),
    }
    if with_tables:
        tables = scope.sub("tables")
        for rows in execution.tables.values():
            tables.put(rows.table.name, rows.to_arrow())
    if bound is not None:
        mine = scope.sub("bound", {"roles": bound.roles.plain})
        mine.put("schema", bound.schema)
        for number, log in enumerate(bound.logs.values()):
            if log.past is not None:
                log.past.save(mine.sub(f"past {number}"), log.rows)
        for number, side in enumerate(bound.sides):
            save_stream(side, mine.sub(f"stream {number}"))
        for number, one in bound.pipelines.items():
            one.save(mine.sub(f"rule {number}"))
    return RULES.pack(scope)


def unpack(program: Program, state: bytes) -> tuple[RuleExecution, dict[str, Any]]:
    """Return what ``pack`` was called on, and the columns that were wanted.

    Raises
    ------
    DataError
        ``ACEP-D040``: these bytes are no state of rules, or have changed; ``ACEP-D041``: of another format;
        ``ACEP-D042``: of other rules.
    """
    scope = RULES.unpack(state, of={"rules": fingerprint(program)})
    with RULES.reading():
        return _restored(program, scope), scope.head["wanted"]


def _restored(program: Program, scope: Scope) -> RuleExecution:
    execution = RuleExecution(program, scope.head["driver"])
    counters = scope.head["counters"]
    execution.counters = Counters(**{name: number_in(name, counters[name], -COUNT, COUNT) for name in counters})
    if "tables" in scope.parts:
        for name in scope.parts["tables"].arrays:
            execution.tables[name].load(scope.parts["tables"].table(name))
    if "bound" not in scope.parts:
        return execution
    mine, words = scope.parts["bound"], scope.words
    streams = sum(name.startswith("stream ") for name in mine.parts)
    sides = [restored_stream(mine.parts[f"stream {number}"], words) for number in range(streams)]
    bound = execution.bind(mine.table("schema").schema, roles_of(mine.head["roles"]), sides)
    for number, log in enumerate(bound.logs.values()):
        if log.past is not None:
            log.past.restore(mine.parts[f"past {number}"], log.rows)
    for number, one in bound.pipelines.items():
        one.restore(mine.parts[f"rule {number}"])
    return execution


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

    waits = False
    """Whether events may come in any order."""

    @property
    def roles(self) -> Roles | None:
        """Which columns are time, key and type; None before the columns of the events are known."""
        return None if self.execution.bound is None else self.execution.bound.roles

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must be read."""
        return () if self.execution.bound is None else self.execution.bound.columns

    @property
    def arrived(self) -> int:
        """Events that were run."""
        return self.execution.counters.events

    def begin(self, schema: pa.Schema) -> None:
        """Get ready for events of these columns."""
        if self.execution.bound is None:
            self.execution.bind(schema, infer_roles(schema, **self.wanted))

    def run(self, batch: EventBatch) -> Iterator[Outcome]:
        """What comes of a batch.

        Raises
        ------
        RuleError
            ``ACEP-R101``: an action cannot be done.
        """
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
        yield outcome

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
