"""What rules write to a table in a batch: collected rule by rule, read as of any event, done at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import empty, to_arrow, to_numpy
from acep_approx.kernels.rules.rows import DEPTH, Scratch, Undo, Writes
from acep_approx.kernels.rules.sweep import EXISTS, Done, Reads, Values, fold, perform, sweep, take_back
from acep_approx.rules.compiled import TablePrograms
from acep_approx.rules.table import PastRows, TableRows
from acep_approx.rules.words import from_words


@dataclass(frozen=True)
class Columns:
    """Things in columns: arrays, tables or columns again, each with a row for each thing."""

    def take(self, which: Ints | slice) -> Self:
        """Some of them, in the order given."""
        return type(self)(*[_taken(getattr(self, name), which) for name in self.__dataclass_fields__])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Those of several, at least one, one after the other."""
        columns = [[getattr(part, one.name) for part in parts] for one in fields(cls)]
        return cls(*(one[0].joined(one) if isinstance(one[0], Columns) else np.concatenate(one) for one in columns))


def _taken(column: Any, which: Ints | slice) -> Any:
    if isinstance(column, np.ndarray):
        return column[which]
    return column.take(to_arrow(which) if isinstance(column, pa.Table) and not isinstance(which, slice) else which)


@dataclass(frozen=True)
class Transactions(Columns):
    """Which transaction each of some things is of: later ones are greater, compared one after the other.

    What event ``row`` causes has ``place`` 2 row + 1. What windows that have closed cause comes before the first event
    after them: its ``place`` is 2 row of that event, then it is ordered by ``tick`` and ``start``. ``time`` is the tick
    of the transaction, ``row`` the event that causes it, -1 where it is none.
    """

    place: Ints
    tick: Ints
    start: Ints
    time: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def none(cls) -> Transactions:
        """None at all."""
        return cls(*[np.zeros(0, np.int64)] * 5)

    @classmethod
    def of_events(cls, rows: Ints, ticks: Ints) -> Transactions:
        """Those of events, by their row numbers."""
        none = np.zeros(len(rows), np.int64)
        return cls(2 * rows + 1, none, none, ticks, rows)

    def until(self, place: int, tick: int, start: int) -> int:
        """How many of those in order are at most a transaction."""
        first, last = (int(np.searchsorted(self.place, place, side)) for side in ("left", "right"))
        while first < last and (self.tick[first], self.start[first]) <= (tick, start):
            first += 1
        return first

    def replaced(self, where: Bools, by: Transactions) -> Transactions:
        """Those of ``by`` in some places."""
        return Transactions(*(np.where(where, getattr(by, f.name), getattr(self, f.name)) for f in fields(self)))

    def numbered(self) -> Ints:
        """Numbers from 0 of those in order: equal where they are the same."""
        if not len(self):
            return np.zeros(0, np.int64)
        differ = np.zeros(len(self), np.bool_)
        for column in (self.place, self.tick, self.start):
            differ[1:] |= column[1:] != column[:-1]
        return np.cumsum(differ)

    def reads(self, rows: Ints) -> Reads:
        """Reads of table rows as of these transactions."""
        return Reads(self.place, self.tick, self.start, rows)


def places_of_events(first_row: int, events: int) -> Ints:
    """The places of the transactions of consecutive events.

    Examples
    --------
    >>> places_of_events(5, 3).tolist()
    [11, 13, 15]
    """
    place = empty(events)
    place.fill(2)
    place[:1] = 2 * first_row + 1
    return np.cumsum(place, out=place)  # in place: memory that is new costs more than all that is done here


@dataclass(frozen=True)
class Chunk(Columns):
    """Writes to one table: transactions, rules, numbers of matches within the rule, of actions, and what they take.

    ``row`` is as in ``kernels.rules.rows.Writes``; ``slots`` and ``slot_state`` have a row for each write.
    """

    of: Transactions
    rule: Ints
    match: Ints
    action: Ints
    row: Ints
    statement: Ints
    slots: Ints
    slot_state: Ints

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def none(cls, width: int) -> Chunk:
        """No writes, of so many slots."""
        no, slots = np.zeros(0, np.int64), np.zeros((0, width), np.int64)
        return cls(Transactions.none(), no, no, no, no, no, slots, slots)

    def in_order(self) -> Chunk:
        """The same by transaction, rule, match and action."""
        of = self.of
        return self.take(np.lexsort((self.action, self.match, self.rule, of.start, of.tick, of.place)))

    @property
    def writes(self) -> Writes:
        """As kernels see them."""
        of = self.of
        return Writes(
            of.place, of.tick, of.start, self.row, self.statement, self.slots.reshape(-1), self.slot_state.reshape(-1)
        )


class FailedActionError(Exception):
    """An action cannot be done: of which transaction, rule, match and action, why, and what it would do."""

    def __init__(self, at: tuple[int, int, int], place: tuple[int, int, int], row: int, how: int, what: str) -> None:
        super().__init__(what)
        self.at, self.place, self.row, self.how, self.what = at, place, row, how, what

    @classmethod
    def of(
        cls, transactions: Transactions, number: int, place: tuple[int, int, int], how: int, what: str
    ) -> FailedActionError:
        """That of one of some transactions."""
        one = transactions.take(slice(number, number + 1))
        return cls((int(one.place[0]), int(one.tick[0]), int(one.start[0])), place, int(one.row[0]), how, what)


@dataclass(frozen=True)
class Changes:
    """What writes did to a table, in order, without those that did nothing.

    ``values`` are its columns afterwards, the key first, ``beside`` those that are not of the key.
    """

    of: Transactions
    rule: Ints
    effect: Ints
    row: Ints
    values: dict[str, pa.Array]
    beside: int
    without_row: int
    conflicts: int


def scratch_for(columns: int) -> Scratch:
    """Room for the programs of a table of so many columns."""
    stack, new = np.zeros(DEPTH, np.int64), np.zeros(max(columns, 1), np.int64)
    return Scratch(stack, stack.view(np.float64), np.zeros(DEPTH, np.bool_), new, np.zeros(len(new), np.bool_))


def room_to_undo(writes: int, columns: int) -> int:
    """What so many writes may change at most, of rows of so many columns."""
    return writes * (2 * columns + 1) + 1


class TableLog:
    """The writes of a batch to one table.

    Who reads it gets what there would be if writes that cannot be done did nothing. Up to the first of them all is
    right; ``fold`` tells which one that is, and then nothing counts.

    Parameters
    ----------
    rows : TableRows
    programs : TablePrograms
    """

    def __init__(self, rows: TableRows, programs: TablePrograms) -> None:
        self.rows = rows
        self.programs = programs
        self._chunks: list[Chunk] = []
        self._ordered: Chunk | None = None  # those of them that are not done in place, in order
        self._in_place: list[Chunk] = []
        self._undos: list[Undo] = []
        self._transactions = 0
        self.past: PastRows | None = None
        self._kept: tuple[Chunk, Done] | None = None
        self._noted: list[Ints] = []
        columns = len(rows.columns)
        self._scratch = scratch_for(columns)
        self._none = np.zeros(columns, np.bool_)
        self._all = np.ones(columns, np.bool_)

    def add(self, chunk: Chunk) -> None:
        """Take in more writes."""
        if len(chunk):
            self._chunks.append(chunk)
            self._ordered = None
            self._noted.append(chunk.row)

    def take_noted(self) -> Ints | None:
        """The rows that were written since the last call; None where there are none."""
        if not self._noted:
            return None
        rows, self._noted = np.concatenate(self._noted), []
        return rows

    @property
    def has_writes(self) -> bool:
        """Whether there are some, without those done in place."""
        return bool(self._chunks)

    def ordered(self) -> Chunk:
        """The writes so far, in order, without those done in place."""
        if self._ordered is None or len(self._chunks) > 1:
            if len(self._chunks) > 1:
                self._chunks = [Chunk.joined(self._chunks).in_order()]
            self._ordered = self._chunks[0] if self._chunks else Chunk.none(self.programs.width)
        return self._ordered

    # --- where writes depend on earlier ones: they are done in place, one transaction after the other -----------------

    def do_before(self, place: int, tick: int, start: int, wanted: Bools) -> None:
        """Do the writes of transactions before one in place, until ``bring_back``; of the wanted columns."""
        if not self.has_writes:
            return
        given = self.ordered()
        last = given.of.until(place, tick, start - 1)
        if not last:
            return
        now, self._ordered = given.take(slice(0, last)), given.take(slice(last, None))
        self._chunks = [self._ordered] if len(self._ordered) else []
        undo = self._undo(len(now))
        perform(now.writes, self.programs.statements, self.rows.rows, wanted, undo, self._scratch)
        self._in_place.append(now)
        self._undos.append(undo)

    def bring_back(self) -> None:
        """Make the table again what it was at the beginning of the batch."""
        for undo in reversed(self._undos):
            take_back(undo, self.rows.rows)
        self._chunks = [*self._in_place, *self._chunks]
        self._in_place, self._undos, self._ordered = [], [], None

    # --- reading, and the end of the batch ------------------------------------------------------------------------

    def read(self, column: str | None, reads: Reads) -> pa.Array:
        """A column of rows as of transactions, in order; EXISTS where it is None."""
        if column in self.rows.table.key:
            return self._read_key(column, reads)
        number = EXISTS if column is None else self.rows.column(column)
        wanted = self._none if column is None else self.programs.needs[number]
        values = Values(empty(len(reads.row)), np.empty(len(reads.row), np.bool_))
        given = self.ordered()
        sweep(
            reads, number, given.writes, self.programs.statements, self.rows.rows, wanted, self._undo(len(given)),
            self._scratch, values
        )  # fmt: skip
        holds = "bool" if column is None else self.rows.columns[number].holds
        return from_words(values.words, values.ok, holds, self.rows.texts)

    def read_before(self, column: str | None, rows: Ints, places: Ints) -> pa.Array:
        """A column of rows as of events that came up to a window ago, in any order."""
        assert self.past is not None, "it was asked for when the rules were bound"
        self.bring_back()
        order, none = np.argsort(places, kind="stable"), np.zeros(len(places), np.int64)
        back = np.argsort(order, kind="stable")
        reads = Reads(places[order], none, none, rows[order])
        now = self.read(column, reads).take(to_arrow(back))
        is_key = column in self.rows.table.key
        number = None if column is None or is_key else self.rows.column(str(column))
        known, present, words, ok = self.past.look(number, rows, places)
        if number is None:
            was = present | (self.rows.table.is_total and is_key)
            then = to_arrow(was.astype(np.int64)).cast(pa.bool_())
            if is_key:
                then = self.rows.key_columns(np.where(was, rows, -1))[str(column)]
        else:
            absent, is_ok = self.rows.default(number)
            words, ok = np.where(present, words, absent), np.where(present, ok, is_ok)
            then = from_words(words, ok, self.rows.columns[number].holds, self.rows.texts)
        return pc.if_else(to_arrow(known.astype(np.int64)).cast(pa.bool_()), then, now)

    def _read_key(self, name: str, reads: Reads) -> pa.Array:
        """A column of the key: that of the rows that there are; in a total table there are all."""
        is_there = True if self.rows.table.is_total else to_numpy(self.read(None, reads))
        return self.rows.key_columns(np.where(is_there, reads.row, -1))[name]

    def fold(self) -> Changes:
        """Do all writes; ``forget`` makes it final, ``bring_back`` takes it back.

        Raises
        ------
        FailedActionError
            Then none was done.
        """
        given, failed = self.ordered(), np.zeros(1, np.int64)
        columns, writes = len(self.rows.columns), len(given)
        numbers = given.of.numbered() + self._transactions
        done = Done(
            effect=np.zeros(writes, np.int64),
            words=np.zeros(writes * columns, np.int64),
            ok=np.zeros(writes * columns, np.bool_),
            transaction=numbers,
            stamp=self.rows.stamp,
            set_words=self.rows.set_words,
            set_ok=self.rows.set_ok,
            conflicts=np.zeros(1, np.int64),
            before=np.zeros(writes * (2 * columns + 1) if self.past is not None else 0, np.int64),
        )
        undo = self._undo(writes)
        culprit = fold(
            given.writes, self.programs.statements, self.rows.rows, self._all, undo, self._scratch, done, failed
        )
        self._transactions = int(numbers[-1]) + 1 if writes else self._transactions
        if culprit >= 0:
            place = int(given.rule[culprit]), int(given.match[culprit]), int(given.action[culprit])
            what = f"write the table {self.rows.table.name!r}"
            raise FailedActionError.of(given.of, culprit, place, int(failed[0]), what)
        self._undos.append(undo)
        self._kept = (given, done) if self.past is not None else None
        return self._changes(given, done)

    def keep_past(self, now: int) -> None:
        """Keep what the writes that were just done have overwritten, for those who read as of earlier events."""
        if self.past is None or self._kept is None:
            return
        given, done = self._kept
        did = np.flatnonzero(done.effect)
        before = done.before.reshape(-1, 2 * len(self.rows.columns) + 1)[did]
        self.past.add(given.of.place[did], given.of.time[did], given.row[did], before)
        self.past.forget(now)
        self._kept = None

    def forget(self) -> None:
        """Forget the writes of the batch, which are done or given up."""
        self._chunks, self._in_place, self._undos, self._ordered = [], [], [], None
        self._noted = []

    def given_up(self) -> FailedActionError | None:
        """Forget the writes of the batch, and take back those that are done; gives the first that cannot be done."""
        self.bring_back()
        failed = None
        try:
            self.fold()
        except FailedActionError as one:
            failed = one
        self.bring_back()
        self.forget()
        return failed

    def _changes(self, given: Chunk, done: Done) -> Changes:
        kept = np.flatnonzero(done.effect)
        columns = len(self.rows.columns)
        shape = len(done.effect), columns  # a table may have columns of its key alone
        words, ok = done.words.reshape(shape)[kept], done.ok.reshape(shape)[kept]
        values = self.rows.key_columns(given.row[kept])
        for number, column in enumerate(self.rows.columns):
            own = np.ascontiguousarray(words[:, number])
            values[column.name] = from_words(own, ok[:, number].copy(), column.holds, self.rows.texts)
        without = len(given.row) - len(kept)
        return Changes(
            given.of.take(kept), given.rule[kept], done.effect[kept], given.row[kept], values, columns, without,
            int(done.conflicts[0])
        )  # fmt: skip

    def _undo(self, writes: int) -> Undo:
        room = room_to_undo(writes, len(self.rows.columns))
        return Undo(np.zeros(1, np.int64), np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.bool_))
