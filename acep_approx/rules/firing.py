"""What comes of the matches of a rule: which of them act, what these write and call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints, firsts
from acep_approx.automaton.letters import unbound
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.rules.rows import NO_VALUE as UNKNOWN
from acep_approx.kernels.rules.rows import VALUE
from acep_approx.matching.outputs.bind import ROWS
from acep_approx.query.evaluate import as_key, evaluate, is_true, spread
from acep_approx.query.rules.syntax import Call, Write
from acep_approx.query.shape import replaced, variables
from acep_approx.query.syntax import Attribute, Constant, Expression, Read
from acep_approx.rules.compiled import HIDDEN, CompiledRule, Leaf, Slot
from acep_approx.rules.doubt import TableDoubt
from acep_approx.rules.log import Chunk, Columns, FailedActionError, TableLog, Transactions
from acep_approx.rules.matched import Matched, Moment, edge
from acep_approx.rules.words import to_words


class Values:
    """Values of expressions over the events of matches.

    Parameters
    ----------
    rule : CompiledRule
    found : Matched
    moment : Moment
        Has the events that complete match points.
    roles : Roles
    """

    def __init__(self, rule: CompiledRule, found: Matched, moment: Moment, roles: Roles) -> None:
        self._rule, self._found, self._moment, self._roles = rule, found, moment, roles

    def __len__(self) -> int:
        return len(self._found)

    def take(self, which: Ints) -> Values:
        """Of some of the matches."""
        return Values(self._rule, self._found.take(which), self._moment, self._roles)

    def first(self) -> Values:
        """Of the first of them."""
        return self.take(np.arange(min(len(self), 1)))

    def column(self, leaf: Leaf) -> pa.Array:
        """An attribute or an aggregate."""
        if self._rule.lists:
            return self._found.table.column(self._rule.leaves[leaf]).combine_chunks()
        batch = self._moment.batch
        assert batch is not None, "points come with their batch"
        assert leaf.name is not None, "count() needs matches"
        return batch.data.column(self._roles.column(leaf.name)).take(to_arrow(batch.at(self._found.end)))

    def computed(self, expression: Expression) -> pa.Array:
        """An expression, one value per match."""
        return spread(evaluate(expression, self.column), len(self))

    def tried(self, expression: Expression) -> tuple[pa.Array, Bools]:
        """The same as for a key, and for which matches it cannot be computed: there it is NULL."""
        failed = np.zeros(len(self), np.bool_)
        try:
            return as_key(expression, self.column, len(self)), failed
        except DataError:
            parts = []
            for match in range(len(self)):
                try:
                    parts.append(self.take(np.array([match])).computed(expression))
                except DataError:
                    failed[match] = True
                    parts.append(pa.nulls(1))
            kinds = [part.type for part in parts if not pa.types.is_null(part.type)]
            return pa.concat_arrays([part.cast(kinds[0]) if kinds else part for part in parts]), failed

    def rows_of(self, event: Attribute) -> Ints:
        """The row of an event of each match; 0 where it is missing."""
        rows = self._found.table.column(HIDDEN + str(event.variable)).combine_chunks()
        if pa.types.is_list(rows.type):
            return np.maximum(edge(rows, last=event.index != "first"), 0)
        return to_numpy(pc.fill_null(rows, 0))

    def lacks(self, named: frozenset[str]) -> Bools:
        """Which matches have no event for one of some variables."""
        lacking = np.zeros(len(self), np.bool_)
        for name in named:
            if not self._rule.lists or HIDDEN + name not in self._found.table.column_names:
                continue
            rows = self._found.table.column(HIDDEN + name).combine_chunks()
            is_list = pa.types.is_list(rows.type)
            lacking |= to_numpy(pc.equal(rows.value_lengths(), 0) if is_list else rows.is_null())
        return lacking


@dataclass(frozen=True)
class OfBatch:
    """A batch of events, which columns are what, and the rows that the events name, by table and key."""

    batch: EventBatch
    roles: Roles
    rows: Mapping[tuple[str, tuple[Expression, ...]], Ints]


class OfEvents(Values):
    """Values of expressions over single events of a batch.

    Parameters
    ----------
    of : OfBatch
    at : int64
        Where they stand in it.
    """

    def __init__(self, of: OfBatch, at: Ints) -> None:
        self.of, self.at = of, at

    def __len__(self) -> int:
        return len(self.at)

    def take(self, which: Ints) -> OfEvents:
        """Of some of the events."""
        return OfEvents(self.of, self.at[which])

    def column(self, leaf: Leaf) -> pa.Array:
        """An attribute."""
        assert leaf.name is not None, "aggregates are of matches"
        return self.of.batch.data.column(self.of.roles.column(leaf.name)).take(to_arrow(self.at))

    def named(self, table: str, key: tuple[Expression, ...]) -> Ints | None:
        """The rows of a table that a key names, where the events read these; else None."""
        rows = self.of.rows.get((table, key))
        return None if rows is None else rows[self.at]


Objects = npt.NDArray[np.object_]
NO_KEY, NO_VALUE = -1, -2
"""In the place of a row: the key is NULL; something cannot be computed."""
NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Calls(Columns):
    """Calls: transactions, rules, numbers of matches and actions, names and arguments, which are tuples.

    ``failed``: those of which an argument cannot be computed.
    """

    of: Transactions
    rule: Ints
    match: Ints
    action: Ints
    name: Objects
    arguments: Objects
    failed: Bools

    @property
    def first_failed(self) -> FailedActionError | None:
        """The first that cannot be made."""
        if not self.failed.any():
            return None
        first = int(self.failed.argmax())
        place = int(self.rule[first]), int(self.match[first]), int(self.action[first])
        return FailedActionError.of(self.of, first, place, UNKNOWN, f"call {self.name[first]}")


@dataclass(frozen=True)
class Fired:
    """What came of matches: the results that users see, in order, and calls."""

    table: pa.Table
    calls: list[Calls]


@dataclass(frozen=True)
class Statement:
    """A writing action of a rule: its number among the actions, and among the statements of its table."""

    action: int
    write: Write
    number: int

    @cached_property
    def key(self) -> tuple[Expression, ...]:
        """What names its row, over the event that completes a match."""
        return tuple(map(unbound, self.write.key))


@dataclass(frozen=True)
class Taken(Columns):
    """What a statement takes from some matches, or events: rows and values of slots, as in ``log.Chunk``."""

    row: Ints
    slots: Ints
    slot_state: Ints


@lru_cache(maxsize=64)
def nothing_taken(width: int) -> Taken:
    """What a statement of a table takes from no matches; ``width``: slots of a row."""
    none = np.zeros((0, width), np.int64)
    return Taken(NO_ROWS, none, none)


@dataclass(frozen=True)
class Known:
    """What statements take from events that complete matches, by the number of the action, and whether they act.

    ``rows`` are those of the events, rising.
    """

    rows: Ints
    acts: Bools
    by_action: Mapping[int, Taken]

    def of(self, action: int, ends: Ints) -> Taken:
        """From matches that end with these events."""
        return self.by_action[action].take(np.searchsorted(self.rows, ends))

    def do_act(self, ends: Ints) -> Bools:
        """Whether matches that end with these events act."""
        return self.acts[np.searchsorted(self.rows, ends)]


class Judge(Protocol):
    """Knows which matches of a rule are certain: see ``losses.Watch``."""

    def is_certain(self, found: Matched) -> Bools:
        """Which matches are in the exact answer, as far as events say it."""

    def is_open_at(self, rows: Ints) -> Bools:
        """Whether a match may be missed at some of the last events."""

    def guarded(self, found: Matched) -> Any:
        """Where matches that are not certain are there but for what their last event reads, and for which values."""

    def may_be_written(self, one: Statement, of: Transactions, rows: Ints | None, guard: Any = None) -> None:
        """A statement may have been run by the exact run alone, or here alone."""


class Firing:
    """Runs the actions of one rule.

    Parameters
    ----------
    rule : CompiledRule
    logs : mapping of str to TableLog
        By table.
    statements : list of Statement
        Its writing actions.
    roles : Roles

    Attributes
    ----------
    keeps_rows : bool
        Whether users see the row numbers of events, too; see ``Wide``.
    shows_certain : bool
        Whether results say which matches are certain: inside a load budget.
    judge : Judge or None
        Who knows; None: all are.
    doubts : mapping of str to TableDoubt
        By table, of those that may be in doubt.
    """

    keeps_rows = shows_certain = False
    judge: Judge | None = None
    doubts: Mapping[str, TableDoubt] = {}

    def __init__(
        self, rule: CompiledRule, logs: Mapping[str, TableLog], statements: list[Statement], roles: Roles
    ) -> None:
        self.rule = rule
        self.statements = statements
        self._logs = logs
        self._roles = roles
        self._conditions = [(_with_values(one), variables(one)) for one in rule.conditions]
        self._late = [(_with_values(one), variables(one)) for one in rule.late]
        self._matches = 0
        self._constants: dict[Slot, tuple[Ints, Ints]] = {}

    def fire(self, found: Matched, moment: Moment, known: Known | None = None) -> Fired:
        """Write and call for the matches that act; gives what users see of all of them.

        ``known``: whether the events that complete matches act, and what statements take from them. Default: it is
        computed.
        """
        values = Values(self.rule, found, moment, self._roles)
        if self._late:
            read = {_name_of(one): self._read(one, values) for one in self.rule.late_reads}
            holds = _holds(self._late, values, read)
            if self.judge is not None:  # by what is in doubt others may hold
                self._leave_in_doubt(found, values, np.flatnonzero(~holds & ~self.judge.is_certain(found)))
            found = found.take(np.flatnonzero(holds))
            values = Values(self.rule, found, moment, self._roles)
        if known is None:
            read = {_name_of(one): self._read(one, values, found.of) for one in self.rule.when_reads}
            acts = _holds(self._conditions, values, read)
        else:
            acts = known.do_act(found.end)
        certain = self._certain(found, values, acts)
        self._leave_in_doubt(found, values, np.flatnonzero(~certain))
        result = self._result(found, acts, certain)
        acting = np.flatnonzero(acts)
        if self.rule.rule.each == "point":
            of = found.of.take(acting)
            acting = acting[firsts(of.place, of.tick, of.start, found.end[acting])]
        if not self.rule.rule.actions or not len(acting):
            return Fired(result, [])
        if len(acting) < len(found):
            found, values, certain = found.take(acting), values.take(acting), certain[acting]
        numbers = self._matches + np.arange(len(acting))
        self._matches += len(acting)
        self._write(found, values, numbers, known, np.flatnonzero(certain))
        return Fired(result, self._calls(found, values, numbers))

    def nothing(self, table: pa.Table) -> pa.Table:
        """The results of no matches; ``table`` are those of its pipeline."""
        none = np.zeros(0, np.bool_)
        return self._result(Matched(table, Transactions.none(), NO_ROWS), none, none)

    def _result(self, found: Matched, acts: Bools, certain: Bools) -> pa.Table:
        table = found.table
        if self.rule.lists:
            kept = [name for name in table.column_names if not name.startswith(HIDDEN)]
            if self.keeps_rows:
                kept += [name for name in table.column_names if name.startswith(ROWS) and name[1:2] != HIDDEN]
            table = table.select(kept)
        if self.rule.rule.when is not None:
            table = table.append_column("fired", pa.array(acts.tolist(), pa.bool_()))
        if self.shows_certain:
            table = table.append_column("certain", pa.array(certain.tolist(), pa.bool_()))
        if self.rule.rule.each == "point" and self.rule.lists:
            return self._points(table, found, acts)
        return table

    def _points(self, table: pa.Table, found: Matched, acts: Bools) -> pa.Table:
        """Of each event that completes matches the first one of those that act, or of all where none does."""
        order = np.lexsort((~acts, found.end, found.of.start, found.of.tick, found.of.place))
        columns = (found.of.place[order], found.of.tick[order], found.of.start[order], found.end[order])
        first = order[firsts(*columns)]
        of_key = {self._roles.column(name) for name in self.rule.plan.keys}
        keys = [name for name in table.column_names if name in of_key]
        kept = [*keys, "errors", "start", "end"]
        points = table.select(kept).append_column("row", to_arrow(found.end))
        for name in ("fired", "certain"):
            if name in table.column_names:
                points = points.append_column(name, table.column(name))
        return points.take(to_arrow(first))

    # --- what is certain --------------------------------------------------------------------------------------

    def _certain(self, found: Matched, values: Values, acts: Bools) -> Bools:
        """Which matches are in the exact answer, and act there if they act here; of points all or none of an event."""
        if self.judge is None:
            return np.ones(len(found), np.bool_)
        certain = self.judge.is_certain(found)
        for read in self.rule.when_reads:
            if (doubt := self.doubts.get(read.table)) is not None:
                rows = doubt.rows.row_of([values.computed(key) for key in read.keys])
                certain &= ~doubt.read(read.column, rows, found.of)
        if self.rule.rule.each == "match" or not self.rule.lists or not len(found):
            return certain
        _, event = np.unique(found.end, return_inverse=True)  # those that act do the same: one that is certain will do
        is_acting, is_sure, is_unsure = (np.zeros(int(event.max()) + 1, np.bool_) for _ in range(3))
        is_acting[event[acts]] = True
        is_sure[event[acts & certain]] = True
        is_unsure[event[~certain]] = True
        open_ = self.judge.is_open_at(found.end)
        return np.where(is_acting[event], is_sure[event], ~(is_unsure[event] | open_))

    def _leave_in_doubt(self, found: Matched, values: Values, at: Ints) -> None:
        """What matches write that are not certain is in doubt: it may be done here alone, or by the exact run alone."""
        if self.judge is None or not len(at):
            return
        some, guard = values.take(at), self.judge.guarded(found.take(at))
        for one in self.statements:
            if one.write.table in self.doubts:
                self.judge.may_be_written(one, found.of.take(at), self.row_of(one, some), guard)

    # --- conditions -------------------------------------------------------------------------------------------

    def _read(self, read: Read, values: Values, of: Transactions | None = None) -> pa.Array:
        """A read as of a transaction of each match, or else of the event behind AT.

        Where a match has none, the value plays no role.
        """
        log = self._logs[read.table]
        rows = log.rows.row_of([values.computed(key) for key in read.keys])
        if of is not None:
            return log.read(read.column, of.reads(rows))
        assert read.at is not None, "other reads are columns of events"
        return log.read_before(read.column, rows, 2 * values.rows_of(read.at) + 1)

    # --- actions ----------------------------------------------------------------------------------------------

    def row_of(self, one: Statement, values: Values) -> Ints:
        """The rows that a statement writes for matches, or for events: many name them where they read them, too."""
        if isinstance(values, OfEvents) and (named := values.named(one.write.table, one.key)) is not None:
            return named
        keys, failed = _all([values.tried(key) for key in one.write.key])
        return np.where(failed, NO_VALUE, self._logs[one.write.table].rows.row_of(keys))

    def takes(self, one: Statement, values: Values) -> Taken:
        """What a statement takes from matches, or from events."""
        log = self._logs[one.write.table]
        if not len(values):
            return nothing_taken(log.programs.width)
        slots, slot_state = (np.zeros((len(values), log.programs.width), np.int64) for _ in range(2))
        row = self.row_of(one, values)
        for place, slot in enumerate(log.programs.slots[one.number]):
            slots[:, place], slot_state[:, place] = self._filled(slot, values, log)
        return Taken(row, slots, slot_state)

    def _filled(self, slot: Slot, values: Values, log: TableLog) -> tuple[Ints, Ints]:
        """The words of a slot, and their states; constants are made once."""
        if slot in self._constants:
            return self._constants[slot]
        is_constant = isinstance(slot.value, Constant)
        given, wrong = (values.first() if is_constant else values).tried(slot.value)
        words, ok, how = to_words(given, slot.holds, log.rows.texts)
        made = words, np.where(wrong, VALUE + UNKNOWN, VALUE * (ok | (how > 0)) + how)
        if is_constant:
            self._constants[slot] = made
        return made

    def _write(self, found: Matched, values: Values, numbers: Ints, known: Known | None, certain: Ints) -> None:
        for one in self.statements:
            taken = self.takes(one, values) if known is None else known.of(one.action, found.end)
            chunk = Chunk(
                of=found.of,
                rule=np.full(len(found), self.rule.number),
                match=numbers,
                action=np.full(len(found), one.action),
                row=taken.row,
                statement=np.full(len(found), one.number),
                slots=taken.slots,
                slot_state=taken.slot_state,
            )
            self._logs[one.write.table].add(chunk)
            if (doubt := self.doubts.get(one.write.table)) is not None:
                of, rows = found.of.take(certain), taken.row[certain]
                doubt.is_written(of, rows, one.number, self.rule.number, numbers[certain], one.action)

    def _calls(self, found: Matched, values: Values, numbers: Ints) -> list[Calls]:
        made, size = list[Calls](), len(found)
        for number, one in enumerate(self.rule.rule.actions):
            if isinstance(one, Call):
                given, failed = [()] * size, np.zeros(size, np.bool_)
                if one.arguments:
                    columns, failed = _all([values.tried(argument) for argument in one.arguments])
                    given = [*zip(*(column.to_pylist() for column in columns), strict=True)]
                rule, action = np.full(size, self.rule.number), np.full(size, number)
                name, arguments = np.full(size, one.name, np.object_), np.fromiter(given, np.object_, size)
                made.append(Calls(found.of, rule, numbers, action, name, arguments, failed))
        return made


def _holds(conditions: list[tuple[Expression, frozenset[str]]], values: Values, read: Mapping[str, pa.Array]) -> Bools:
    """Which matches all conditions hold for; those that name a variable without event are void."""
    holds = np.ones(len(values), np.bool_)
    for condition, named in conditions:
        value = evaluate(condition, lambda leaf: read[leaf.name] if leaf.name in read else values.column(leaf))
        holds &= is_true(value, len(values)) | values.lacks(named)
    return holds


def _with_values(condition: Expression) -> Expression:
    """A condition with attributes of no variable in the places of reads."""
    return replaced(condition, lambda node: Attribute(None, None, _name_of(node)) if isinstance(node, Read) else None)


def _name_of(read: Read) -> str:
    return HIDDEN + repr(read)


def _all(tried: list[tuple[pa.Array, Bools]]) -> tuple[list[pa.Array], Bools]:
    return [values for values, _ in tried], np.logical_or.reduce([failed for _, failed in tried])
