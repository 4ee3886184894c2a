"""The tests of a circle as records for the kernel, and what of each event the store is compared with.

What rules would write is made likewise, for all events that may complete a match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import to_numpy
from acep_approx.kernels.rules.lockstep import (
    AS_FLOATS,
    AS_WORDS,
    IN,
    IS_NULL,
    MICROSECONDS_AS_NANOSECONDS,
    NOT_IN,
    TEST,
    WHOLE_AS_FLOATS,
)
from acep_approx.kernels.rules.rows import ROOM, ROWS, WORDS, Undo, Writes
from acep_approx.query.evaluate import evaluate, evaluate_asked, time_of
from acep_approx.query.rules.syntax import Holds
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Expression
from acep_approx.rules.compiled import ReadColumn
from acep_approx.rules.firing import Firing, Known, OfBatch, OfEvents, Statement, Taken, nothing_taken
from acep_approx.rules.lockstep.arenas import NONE, TableArena, begins, joined_statements
from acep_approx.rules.lockstep.conditions import Test
from acep_approx.rules.log import TableLog, room_to_undo, scratch_for
from acep_approx.rules.words import Texts

Column = Callable[[str], pa.Array]
EXISTS = -1


@dataclass(frozen=True)
class Live:
    """A column that is read: its table, which column of rows the kernel has for it, what it holds, its number."""

    log: TableLog
    rows_of: int
    holds: Holds
    column: int

    @classmethod
    def of(cls, read: ReadColumn, logs: Mapping[str, TableLog], rows_of: int) -> Live:
        """Of a read."""
        table = logs[read.table].rows
        if read.column is None:
            return cls(logs[read.table], rows_of, "bool", EXISTS)
        number = table.column(read.column)
        return cls(logs[read.table], rows_of, table.columns[number].holds, number)

    def record(self, arena: TableArena) -> list[int]:
        """The beginning of the record of a test: where its values stand."""
        table = self.log.rows
        sizes = arena.rows.sizes[arena.at(table) :]
        if self.column == EXISTS:
            return [self.rows_of, -1, int(sizes[ROWS]), 0, 0]
        begin = int(sizes[WORDS] + self.column * sizes[ROOM])
        return [self.rows_of, begin, int(sizes[ROWS]), *map(int, table.default(self.column))]


@dataclass(frozen=True)
class Operands:
    """What the store is compared with, by event: words, floats as their bits, and where they are not NULL."""

    words: Ints
    ok: Bools
    number: dict[tuple[Expression, bool], int]
    kinds: dict[Expression, str]


class Questions:
    """The tests of a circle.

    Parameters
    ----------
    live : mapping of str to Live
        By the names of columns that are read.
    arena : TableArena
    texts : Texts
        Codes of the texts in the store.
    """

    def __init__(self, live: Mapping[str, Live], arena: TableArena, texts: Texts) -> None:
        self._live, self._arena, self._texts = live, arena, texts
        self._made: tuple[Any, tuple[Ints, Ints]] | None = None

    def operands(
        self, tests: Sequence[Test], rows: int, column: Column, asked: Callable[[Expression], Bools]
    ) -> Operands:
        """The values of the events of a batch; texts that no row can hold have no code.

        ``asked`` gives for an operand the events whose value matters.
        """
        kinds: dict[Expression, str] = {}
        values: dict[Expression, pa.Array] = {}
        number: dict[tuple[Expression, bool], int] = {}
        for test in tests:
            if test.operand is None or not _names_events(test.operand):
                continue
            if test.operand not in values:
                matters = partial(asked, test.operand)
                values[test.operand] = evaluate_asked(test.operand, lambda leaf: column(leaf.name), matters)
                kinds[test.operand] = str(values[test.operand].type)
            as_floats = self._live[test.read].holds == "float" or pa.types.is_floating(values[test.operand].type)
            number.setdefault((test.operand, as_floats), len(number))
        words, ok = np.zeros((len(number), rows), np.int64), np.zeros((len(number), rows), np.bool_)
        for (operand, as_floats), place in number.items():
            self._fill(values[operand], words[place], ok[place], as_floats=as_floats)
        return Operands(words.reshape(-1), ok.reshape(-1), number, kinds)

    def _fill(self, values: pa.Array, words: Ints, ok: Bools, *, as_floats: bool) -> None:
        if pa.types.is_null(values.type):
            return
        ok[:] = to_numpy(values.is_valid())
        if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type):
            words[:] = self._texts.find(values)
        elif as_floats:
            words[:] = to_numpy(values.cast(pa.float64(), safe=False).fill_null(0.0)).view(np.int64)
        elif pa.types.is_boolean(values.type):
            words[:] = to_numpy(values.fill_null(False))
        else:
            words[:] = to_numpy(pc.fill_null(_in_microseconds(values).cast(pa.int64()), 0))

    def records(self, tests: Sequence[Test], operands: Operands) -> tuple[Ints, Ints]:
        """Records of ``TEST`` integers, and the constants of IN.

        Made anew where there are more tests, a table has another place, or a column of the events another type.
        """
        key = len(tests), self._arena.version, operands.number, operands.kinds
        if self._made is None or self._made[0] != key:
            lists: list[int] = []
            records = [self._record(test, operands, lists) for test in tests]
            made = np.array(records, np.int64).reshape(-1), np.array(lists, np.int64)
            self._made = key, made
        return self._made[1]

    def shown(self, read: str) -> list[int]:
        """The record of a test of which only the value is wanted."""
        return [*self._live[read].record(self._arena), *[0] * (TEST - 5)]

    def _record(self, test: Test, operands: Operands, lists: list[int]) -> list[int]:
        live = self._live[test.read]
        begin = live.record(self._arena)
        if test.outcomes in (IN, NOT_IN):
            first = len(lists)
            scalars = [evaluate(one, _no_column) for one in test.values]
            as_floats = any(pa.types.is_floating(one.type) for one in scalars)
            lists += [self._constant(live.holds, one, as_floats=as_floats)[0] for one in scalars]
            return [*begin, _how(live.holds, as_floats=as_floats), test.outcomes, -1, first, len(lists)]
        if test.outcomes >= IS_NULL or test.operand is None:
            return [*begin, AS_WORDS, test.outcomes, -1, 0, 0]
        if not _names_events(test.operand):
            scalar = evaluate(test.operand, _no_column)
            as_floats = pa.types.is_floating(scalar.type)
            word, is_ok = self._constant(live.holds, scalar, as_floats=as_floats)
            return [*begin, _how(live.holds, as_floats=as_floats), test.outcomes * is_ok, -1, word, 0]
        kind = operands.kinds[test.operand]
        as_floats = kind == "double"
        how = MICROSECONDS_AS_NANOSECONDS if kind == "timestamp[ns]" else _how(live.holds, as_floats=as_floats)
        place = operands.number[test.operand, live.holds == "float" or as_floats]
        return [*begin, how, test.outcomes, place, 0, 0]

    def _constant(self, holds: Holds, scalar: pa.Scalar, *, as_floats: bool) -> tuple[int, bool]:
        """A constant that a column of the store is compared with, and whether it is not NULL."""
        value = scalar.as_py()
        if value is None:
            return 0, False
        if holds == "text":
            return int(self._texts.encode(pa.array([value], pa.string()))[0]), True
        if holds == "float" or as_floats:
            return int(np.float64(value).view(np.int64)), True
        if holds == "time":
            scalar = time_of(value) if isinstance(value, str) else scalar
            return int(_in_microseconds(scalar).cast(pa.int64()).as_py()), True
        return int(value), True


def _how(holds: Holds, *, as_floats: bool) -> int:
    if holds == "float":
        return AS_FLOATS
    return WHOLE_AS_FLOATS if as_floats else AS_WORDS


def _in_microseconds(values: Any) -> Any:
    """Times in microseconds, those in nanoseconds as they are."""
    if pa.types.is_timestamp(values.type) and values.type.unit in ("s", "ms"):
        return values.cast(pa.timestamp("us"))
    return values


@lru_cache(maxsize=4096)
def _names_events(operand: Expression) -> bool:
    return any(isinstance(node, Attribute) for node in walk(operand))


def _no_column(leaf: object) -> pa.Array:
    raise AssertionError(f"a constant names {leaf}")


NO_WRITES = Writes(NONE, NONE, NONE, NONE, NONE, NONE, NONE)


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
        self._masks: Bools | None = None

    def wanted(self, arena: TableArena) -> Bools:
        """The columns that are written, of all tables."""
        if self._masks is None:
            masks = ((self._wanted.get(one.table.name), len(one.columns)) for one in arena.tables)
            self._masks = np.concatenate([np.zeros(size, np.bool_) if mask is None else mask for mask, size in masks])
        return self._masks

    def prepared(self, of: OfBatch, at: list[Ints]) -> Prepared:
        """What would be written for events of a batch, per rule."""
        if not any(map(len, at)):
            return Prepared(NO_WRITES, [0] * len(self._pairs), [nothing_taken(self._width)] * len(self._pairs), at)
        taken = [self._firings[rule].takes(one, OfEvents(of, at[rule])) for rule, one in self._pairs]
        sizes = [len(one.row) for one in taken]
        total, first = sum(sizes), begins(sizes)
        row, statement = np.empty(total, np.int64), np.empty(total, np.int64)
        slots, states = np.zeros((2, total, self._width), np.int64)
        for one, begin, number in zip(taken, first, self._numbers, strict=True):
            if not len(one.row):
                continue
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
