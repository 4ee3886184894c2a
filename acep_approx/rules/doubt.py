"""What is in doubt of a table inside a load budget: noted rule by rule, read as of events, kept at the end of a batch.

A log of what may differ from the exact run, beside the log of writes (``log.TableLog``), and with the same calls. What
the marks do is in ``kernels.rules.doubt``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints, extended
from acep_approx.kernels.rules import doubt as kernel
from acep_approx.kernels.rules.doubt import ANY_ROW, MAY_WRITE, MAY_WRITE_UNTIL, WRITES
from acep_approx.query.rules.syntax import Write
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute
from acep_approx.ranges import COUNT, Range, check
from acep_approx.rules.compiled import KINDS, is_old
from acep_approx.rules.log import Columns, Transactions
from acep_approx.rules.table import TableRows

NO_PLACE = 2**62
"""Later than all transactions."""
BEFORE, WITH, AFTER = range(3)
"""Within a transaction: what may be written comes before what is written, and once more behind it. The exact run may do
either first."""


@dataclass(frozen=True)
class Marks(Columns):
    """What happened to one table: see ``kernels.rules.doubt.Marks``; and in which order within a transaction.

    ``is_same``: that a statement may have been run is of no concern where it is run for sure in the same transaction,
    of the same row: all matches of an event do the same.
    """

    of: Transactions
    row: Ints
    statement: Ints
    what: Ints
    until: Ints
    phase: Ints
    rule: Ints
    match: Ints
    action: Ints
    is_same: Ints

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def none(cls) -> Marks:
        """No marks."""
        return cls(Transactions.none(), *[np.zeros(0, np.int64)] * 9)

    def in_order(self) -> Marks:
        """The same as they happened."""
        of = self.of
        keys = (self.action, self.match, self.rule, self.phase, of.start, of.tick, of.place)
        return self.take(np.lexsort(keys))

    def that_matter(self) -> Marks:
        """The same without what may have been run and is run for sure."""
        if not self.is_same.any():
            return self
        of = self.of
        names = np.stack((of.place, of.tick, of.start, self.statement, self.row))
        name = np.unique(names, axis=1, return_inverse=True)[1].reshape(-1)
        is_run = np.zeros(int(name.max()) + 1, np.bool_)
        is_run[name[self.what == WRITES]] = True
        return self.take(np.flatnonzero((self.is_same == 0) | ~is_run[name]))

    @property
    def in_kernel(self) -> kernel.Marks:
        """As kernels see them."""
        of = self.of
        return kernel.Marks(of.place, of.tick, of.start, of.time, self.row, self.statement, self.what, self.until)


class TableDoubt:
    """The doubt of one table.

    Parameters
    ----------
    rows : TableRows
    writes : sequence of Write
        The statements that write the table, by number.

    Attributes
    ----------
    since : int
        The place of the first transaction since when something was in doubt; ``NO_PLACE`` where nothing was.
    """

    def __init__(self, rows: TableRows, writes: Sequence[Write]) -> None:
        self.rows = rows
        self.since = NO_PLACE
        self._width = len(rows.columns) + 1
        self._effects = _effects(rows, writes)
        self._words = np.zeros(2 * self._width, np.int64)
        self._words[self._width :] = -NO_PLACE
        self._marks: list[Marks] = []
        self._ordered: Marks | None = None
        self._done: list[Marks] = []
        self._befores: list[kernel.Before] = []
        self._new = np.zeros(self._width, np.int64)
        self._fit()

    def _fit(self) -> None:
        """Have words for all rows of the table."""
        wanted = 2 * self._width + self._width * self.rows.room
        if self._words.size < wanted:
            self._words = extended(self._words, wanted, 0)

    # --- what happens -----------------------------------------------------------------------------------------

    def may_be_written(
        self,
        of: Transactions,
        rows: Ints | None,
        statement: int,
        until: Ints | None = None,
        *,
        is_same: bool = False,
    ) -> None:
        """A statement may have been run for these rows, or none, in some transactions; None: nobody knows the row.

        ``until``: it may be run at any time up to these ticks, of any row. ``is_same``: as for ``Marks``.
        """
        if not len(of):
            return
        self.since = min(self.since, int(of.place.min()))
        what = MAY_WRITE if until is None else MAY_WRITE_UNTIL
        none = np.zeros(len(of), np.int64)
        row = none + ANY_ROW if rows is None else rows
        until = none if until is None else until
        for phase in (BEFORE, AFTER):
            some = none + statement, none + what, until, none + phase, none, none, none, none + is_same
            self._marks.append(Marks(of, row, *some))
        self._ordered = None

    def is_written(self, of: Transactions, rows: Ints, statement: int, rule: int, match: Ints, action: int) -> None:
        """The exact run has run a statement for these rows, too."""
        if not len(of):
            return
        none = np.zeros(len(of), np.int64)
        some = none + statement, none + WRITES, none, none + WITH, none + rule, match, none + action, none
        self._marks.append(Marks(of, rows, *some))
        self._ordered = None

    def _in_order(self) -> Marks:
        if self._ordered is None or len(self._marks) > 1:
            self._ordered = Marks.joined(self._marks).that_matter().in_order() if self._marks else Marks.none()
            self._marks = [self._ordered] if len(self._ordered) else []
        return self._ordered

    def do_before(self, place: int, tick: int, start: int) -> None:
        """Let what happened before a transaction have happened, until ``bring_back``."""
        if not self._marks:
            return
        given = self._in_order()
        last = given.of.until(place, tick, start - 1)
        if last:
            rest = given.take(slice(last, None))
            self._ordered, self._marks = rest, [rest] if len(rest) else []
            self._happen(given.take(slice(0, last)))

    def _happen(self, marks: Marks) -> None:
        self._fit()
        before = self._room(len(marks))
        kernel.happen(marks.in_kernel, self._effects, self._words, before, self._new)
        self._done.append(marks)
        self._befores.append(before)

    def bring_back(self) -> None:
        """Make all what it was at the beginning of the batch."""
        for before in reversed(self._befores):
            kernel.take_back(self._words, before)
        self._marks = [*self._done, *self._marks]
        self._done, self._befores, self._ordered = [], [], None

    def fold(self) -> None:
        """The batch is done: what happened has happened."""
        self.bring_back()
        if self._marks:
            self._happen(self._in_order())
        self._marks, self._done, self._befores, self._ordered = [], [], [], None

    # --- reading ----------------------------------------------------------------------------------------------

    def read(self, column: str | None, rows: Ints, of: Transactions) -> Bools:
        """Whether a column of rows, or whether there is one (None), is in doubt as of transactions, in order."""
        found = np.zeros(len(rows), np.bool_)
        number = self._number(column)
        if self.since == NO_PLACE or number is None:
            return found
        self._fit()
        given = self._in_order()
        asked = kernel.Asked(of.place, of.tick, of.start, of.time, rows, np.full(len(rows), number))
        before = self._room(len(given))
        kernel.doubted(asked, given.in_kernel, self._effects, self._words, before, self._new, found)
        return found

    def _number(self, column: str | None) -> int | None:
        """The number of a column, that of the rows where it is of the key; None where it is never in doubt."""
        if column is None or (column in self.rows.table.key and not self.rows.table.is_total):
            return self._width - 1
        return None if column in self.rows.table.key else self.rows.column(column)

    def _room(self, marks: int) -> kernel.Before:
        room = 2 * self._width * marks + 1
        return kernel.Before(np.zeros(1, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))

    # --- keys and state ---------------------------------------------------------------------------------------

    def _stamps(self) -> Ints:
        return self._words[2 * self._width :].reshape(-1, self._width)

    @property
    def held(self) -> Ints:
        """The rows whose keys must not be forgotten: something of them is in doubt, and not of all."""
        return np.flatnonzero((self._stamps() == kernel.DOUBTED).any(axis=1))

    def forget_free_rows(self) -> None:
        """Rows without a key have no stamps: they will be those of other keys."""
        stamps = self._stamps()
        is_free = np.ones(len(stamps), np.bool_)
        is_free[self.rows.keys.used()] = False
        stamps[is_free] = 0

    def save(self, scope: Scope) -> None:
        """Save the state at the end of a batch."""
        stamps = self._stamps()
        rows = np.flatnonzero(stamps.any(axis=1))
        scope.head["since"] = self.since
        scope.arrays |= {"columns": self._words[: 2 * self._width], "stamps": stamps[rows].reshape(-1)}
        scope.put("keys", pa.table(self.rows.key_columns(rows)))

    def restore(self, scope: Scope) -> None:
        """Take over what ``save`` saved; the rows of the table are there.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        self.since = scope.number("since", 0, NO_PLACE + 1)
        rows = self.rows.row_of([column.combine_chunks() for column in scope.table("keys").columns])
        columns = scope.array("columns", Range(2 * self._width, -NO_PLACE, NO_PLACE + 1))
        stamps = scope.array("stamps", Range(self._width * len(rows), kernel.DOUBTED, COUNT))
        check("doubt", good=(rows >= 0).all() and len(np.unique(rows)) == len(rows))
        self._fit()
        self._words[: 2 * self._width] = columns
        self._stamps()[rows] = stamps.reshape(-1, self._width)


def _effects(rows: TableRows, writes: Sequence[Write]) -> kernel.Effects:
    """What statements do, for the kernel."""
    width, number = len(rows.columns), rows.column
    sets = np.zeros((len(writes), width), np.int64)
    of = np.zeros((len(writes), width, width), np.int64)
    for statement, write in enumerate(writes):
        for one in write.sets:
            sets[statement, number(one.column)] = 1
            of[statement, number(one.column), [*map(number, _olds(one.value, rows))]] = 1
    kinds = np.array([KINDS[write.kind] for write in writes], np.int64)
    return kernel.Effects(width, int(rows.table.is_total), kinds, sets.reshape(-1), of.reshape(-1))


def _olds(value: object, rows: TableRows) -> Iterable[str]:
    """The columns of the row that a value is computed from; those of the key are what the action says."""
    nodes = (node for node in walk(value) if isinstance(node, Attribute) and is_old(node))  # type: ignore[arg-type]
    return {str(node.name) for node in nodes if node.name not in rows.table.key}

