"""Rules under way: events in, outcomes out; an action that fails leaves all as it was before its transaction.

The state says where each stream and pipeline of the program stands, and what is in its tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import pyarrow as pa

from acep_approx.archive import Differences, Kind, Scope, damaged_state, state_of_other_format
from acep_approx.errors import AcepError, DataError, RuleError, UsageError, stopped_within
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit
from acep_approx.kernels.rules.rows import NO_KEY, NO_VALUE, NOT_WHOLE, PASSED
from acep_approx.matching.outputs.bind import Bind, as_plain, from_plain
from acep_approx.matching.state import meaning, restored_stream, roles_of, save_stream
from acep_approx.query.rules.printer import to_text
from acep_approx.ranges import COUNT, check, number_in
from acep_approx.rules.execution import Counters, Outcome, RuleExecution
from acep_approx.rules.log import FailedActionError
from acep_approx.rules.losses import Spending
from acep_approx.rules.program import Driver, Program
from acep_approx.run.events import Events
from acep_approx.run.lateness import Lateness
from acep_approx.run.order import Order


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


def saved(execution: RuleExecution, wanted: Mapping[str, Any], *, with_tables: bool = True) -> Scope:
    """Return where the rules stand.

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
        "bind": as_plain(execution.bind_by),
        "counters": asdict(execution.counters),
        "spending": None if execution.spending is None else execution.spending.options(),
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
        if bound.losses is not None and execution.spending is not None:
            bound.losses.save(mine.sub("losses", execution.spending.snapshot()))
    return scope


def restored(program: Program, scope: Scope, spending: Spending | None = None) -> RuleExecution:
    """Go on from what ``saved`` gave; inside the load budget that it was in.

    Raises
    ------
    Exception
        What ``ranges.reading`` takes for damage.
    """
    execution = RuleExecution(program, scope.head["driver"], from_plain(scope.head.get("bind")), spending)
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
    if bound.losses is not None and spending is not None:
        bound.losses.restore(mine.parts["losses"])
        spending.restore(mine.parts["losses"].head)
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


def _by_arrival(error: DataError, batch: EventBatch) -> DataError:
    """Let an error about an event name it by its row among all that came, where these come in any order."""
    if batch.ids is not None and error.row is not None:
        before, error.row = error.row, int(batch.ids[error.row - batch.first_row])
        error.message = re.sub(rf"^row {before}\b", f"row {error.row}", error.message)
    return error


class Runner:
    """Runs a program over a stream that comes in pieces.

    Parameters
    ----------
    program : Program
    wanted : mapping of str to str or None
        Columns for the roles ``time``, ``key``, ``type``, and the ``unit``: as for ``infer_roles``.
    driver : {"auto", "stepping"}, default "auto"
    lateness : Lateness, optional
        How late events may come. Default: they come in order.
    bind : str, sequence of str or Wide, optional
        What stands for events in matches.
    spending : Spending, optional
        How to stay inside a load budget. Default: nothing is shed.

    Attributes
    ----------
    execution : RuleExecution
    order : Order
        Where events may come late: holds them until the watermark has passed them. An event whose action cannot be
        done goes back to those that it holds, with all behind it. Where they come in order it is not asked.
    """

    def __init__(
        self,
        program: Program,
        wanted: Mapping[str, Any],
        driver: Driver = "auto",
        lateness: Lateness | None = None,
        bind: Bind = None,
        spending: Spending | None = None,
    ) -> None:
        self.program = program
        self.spending = spending
        self.wanted = dict(wanted)
        self.lateness = lateness
        self.execution = RuleExecution(program, driver, bind, spending)
        self.order = Order()
        self._has_left = True  # events may wait though the watermark has passed them, as far as is known
        self._is_stopped = False  # by an action of the first of them
        self._is_within = False
        self._keeps_last = False
        self._snapshot: bytes | None = None
        self._since: list[EventBatch | int | None] = []  # events, and times up to which windows were closed
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

    @property
    def waits(self) -> bool:
        """Whether events may come in any order."""
        return self.lateness is not None

    @property
    def roles(self) -> Roles | None:
        """Which columns are time, key and type; None before the columns of the events are known."""
        return None if self.execution.bound is None else self.execution.bound.roles

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must be read."""
        columns = () if self.execution.bound is None else self.execution.bound.columns
        if self.order.wait is None:
            return columns
        return tuple(dict.fromkeys([*columns, *self.order.wait.reads]))

    @property
    def arrived(self) -> int:
        """Events that came: where they come in order all of them were run."""
        return self.execution.counters.events if self.lateness is None else self.order.arrived

    def begin(self, schema: pa.Schema) -> None:
        """Get ready for events of these columns."""
        self._check_whole()
        if self.execution.bound is None:
            roles = infer_roles(schema, **self.wanted)
            is_time = tick_unit(schema.field(roles.time).type, roles.unit) is not None
            wait = None if self.lateness is None else self.lateness.wait(is_time=is_time)
            self.execution.bind(schema, roles)
            if wait is not None:
                self.order.wait_for(wait)

    def run(self, batch: EventBatch) -> Iterator[Outcome]:
        """What comes of a batch, or of those events that the watermark has passed with it.

        Raises
        ------
        RuleError
            ``ACEP-R101``: an action cannot be done.
        """
        yield self._do(batch) if self.lateness is None else self._pass_on(self.order.push(batch))

    def close(self, before: int | None) -> Outcome:
        """What waited for windows that end before a tick; for all windows where it is None."""
        if self.lateness is None:
            return self._do(before)
        return self._pass_on(self.order.close(before), is_end=before is None)

    def _pass_on(self, due: Iterator[EventBatch], *, is_end: bool = False) -> Outcome:
        """Run the events that the watermark has passed, then close the windows that end before it.

        Where that fails, what was not run waits on, and is first in turn the next time.
        """
        self._check_whole()
        self._is_within, arrived = True, self.order.arrived
        try:
            ready = [*due]
            if self._has_left and not ready:
                ready = [*self.order.close(self.order.floor)]
        except DataError:
            self._is_within = self.order.arrived != arrived
            raise
        self._is_within = self._has_left = self._is_stopped = False
        found: list[Outcome] = []
        try:
            while ready:
                first = self.execution.counters.events
                try:
                    found.append(self._do(replace(ready[0], first_row=first)))
                finally:
                    ready[0] = ready[0].slice(self.execution.counters.events - first, len(ready[0]))
                del ready[0]
            found.append(self._do(None if is_end else self.order.floor))
        except AcepError as error:
            self._is_stopped = isinstance(error, RuleError) and error.row is not None
            before = [*found, *([error.found] if isinstance(error.found, Outcome) else [])]
            error.found = Outcome.joined(before) if before else None
            raise
        finally:
            self._wait_on(ready)
        return Outcome.joined(found)

    def _wait_on(self, ready: Iterable[EventBatch]) -> None:
        """Let events wait that the watermark has passed."""
        for events in ready:
            assert events.ids is not None, "they come from an order"
            self.order.waiting.add(Events(events.ticks, events.ids, events.ids, events.data))
            self._has_left = True

    def skip(self) -> pa.Table:
        """Leave out the event whose action could not be done, for which others wait; gives it.

        Raises
        ------
        UsageError
            ``ACEP-U055``: there is none.
        """
        if not self._is_stopped:
            raise UsageError(
                "no event waits whose action could not be done",
                code="ACEP-U055",
                hint="without a watermark no event waits: push those behind it",
            )
        first, *others = self.order.close(self.order.floor)
        self._wait_on([first.slice(1, len(first)), *others])
        self._is_stopped = False
        return pa.Table.from_batches([first.data.slice(0, 1)])

    def _check_whole(self) -> None:
        if self._is_within:
            raise stopped_within("these rules")

    # --- taking back ------------------------------------------------------------------------------------------

    def _do(self, step: EventBatch | int | None) -> Outcome:
        """Run a batch, or close windows before a tick, or all."""
        if self._snapshot is None or self._events_since >= SNAPSHOT:  # note where the rules stand
            self._snapshot = RULES.pack(saved(self.execution, self.wanted))
            self._since, self._events_since = [], 0
        try:
            outcome = self._done(step)
        except FailedActionError as failed:
            if isinstance(step, EventBatch):
                raise _by_arrival(self._undone(failed, step), step) from failed
            self._restore()
            raise self._closed_before(failed) from failed
        except DataError as error:
            self._restore()  # none of it was done
            if isinstance(step, EventBatch):
                _by_arrival(error, step)
            raise
        self._since.append(step)
        self._events_since += len(step) if isinstance(step, EventBatch) else 1
        return outcome

    def _done(self, step: EventBatch | int | None) -> Outcome:
        return self.execution.run(step) if isinstance(step, EventBatch) else self.execution.close(step)

    def _closed_before(self, failed: FailedActionError) -> RuleError:
        """Let the windows close that end before the one of a transaction that failed; an earlier one may fail then."""
        while (tick := failed.at[1]) < END:
            try:
                outcome = self.execution.close(tick)
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
                outcome = Outcome.joined([outcome, self.execution.close(tick)])
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
        self.execution = restored(self.program, RULES.unpack(self._snapshot), self.spending)
        self.execution.keeps_last = self._keeps_last
        if self.execution.bound is None and bound is not None:
            self.execution.bind(bound.schema, bound.roles)
        for step in self._since:
            self._done(step)

    def _error(self, failed: FailedActionError, outcome: Outcome) -> RuleError:
        rule = self.program.rules[failed.place[0]].name
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
        """All that is needed to go on in another process: where the rules stand, and which events wait.

        ``with_tables``: whether the tables are in it, too; a database may hold them.

        Raises
        ------
        DataError
            ``ACEP-D045``: an error stopped it in the middle of a batch.
        """
        self._check_whole()
        scope = saved(self.execution, self.wanted, with_tables=with_tables)
        if self.lateness is not None:
            scope.head["late"] = asdict(self.lateness)
            self.order.save(scope.sub("order"))
        return RULES.pack(scope)

    @staticmethod
    def spending_of(program: Program, state: bytes) -> dict[str, Any] | None:
        """How the run of a state spends its load budget: ``Spending.options``; None where it has none.

        Raises
        ------
        DataError
            As for ``restored``.
        """
        scope = RULES.unpack(state, of={"rules": fingerprint(program)})
        found: dict[str, Any] | None = scope.head.get("spending")
        return found

    @classmethod
    def restored(cls, program: Program, state: bytes, spending: Spending | None = None) -> Runner:
        """What ``state`` was called on; inside the load budget that it was in.

        Raises
        ------
        DataError
            ``ACEP-D040``: these bytes are no state of rules, or have changed; ``ACEP-D041``: of another format;
            ``ACEP-D042``: of other rules.
        """
        scope = RULES.unpack(state, of={"rules": fingerprint(program)})
        with RULES.reading():
            execution, late = restored(program, scope, spending), scope.head.get("late")
            lateness = None if late is None else Lateness(**late)
            made = cls(program, scope.head["wanted"], execution.driver, lateness, spending=spending)
            made.execution = execution
            if lateness is not None:
                made.order = Order.restored(scope.parts["order"])
                check("order", good=(made.order.wait is None) == (execution.bound is None))
        return made
