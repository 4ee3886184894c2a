"""What the exact run may have in a table, inside a load budget: noted rule by rule, read as of events, kept at the end.

A log of what may differ from the exact run, beside the log of writes (``log.TableLog``), and with the same calls. What
the marks do is in ``kernels.rules.doubt``; of which values there is a bit each, in ``domains``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints, extended
from acep_approx.kernels.rules import doubt as kernel
from acep_approx.kernels.rules.doubt import ANY_ROW, MAY_WRITE, MAY_WRITE_LATER, MAY_WRITE_UNTIL, WRITES, WRITES_IF
from acep_approx.query.rules.syntax import Write
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute
from acep_approx.ranges import COUNT, Range, check
from acep_approx.rules.compiled import KINDS, is_old
from acep_approx.rules.domains import ABSENT, CONSTANT, OTHER, PRESENCE, PRESENT, Domain, effect
from acep_approx.rules.log import Columns, TableLog, Transactions
from acep_approx.rules.table import TableRows
from acep_approx.rules.words import from_words

NO_PLACE = 2**62
"""Later than all transactions."""
BEFORE, WITH, AFTER = range(3)
"""Within a transaction: what may be written comes before what is written, and once more behind it. The exact run may do
either first."""
Given = dict[str, Ints | int]
"""Some columns of marks, by name."""


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
    asked: Ints
    guard: Ints
    phase: Ints
    rule: Ints
    match: Ints
    action: Ints
    is_same: Ints
    is_first: Ints
    is_last: Ints
    before: Ints

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of_one(cls, of: Transactions, row: Ints, width: int, given: Given) -> Marks:
        """Marks of one statement; what is not given is 0."""
        none = np.zeros(len(of), np.int64)
        names = [name for name in cls.__dataclass_fields__ if name not in ("of", "row", "before")]
        some = {name: none + given.get(name, 0) for name in names}
        return cls(of, row, before=np.zeros((len(of), width), np.int64), **some)

    @classmethod
    def none(cls, width: int) -> Marks:
        """No marks."""
        return cls.of_one(Transactions.none(), np.zeros(0, np.int64), width, {})

    def in_order(self) -> Marks:
        """The same as they happened."""
        of = self.of
        keys = (self.action, self.match, self.rule, self.phase, of.start, of.tick, of.place)
        return self.take(np.lexsort(keys))

    def that_matter(self) -> Marks:
        """The same without those of which others say all; given as they happened, and given so.

        Where one statement alone may write a row in a transaction, it is enough that it may be run before all others.
        Where several may, nobody knows whether one was run just where a value was one of some.
        """
        of, number = self.of, np.arange(len(self))
        names = np.stack((of.place, of.tick, of.start, self.row, np.where(self.row < 0, number, 0)))
        group = np.unique(names, axis=1, return_inverse=True)[1].reshape(-1)
        least, most = (np.full(int(group.max()) + 1, first) for first in (NO_PLACE, -1))
        np.minimum.at(least, group, self.statement)
        np.maximum.at(most, group, self.statement)
        is_alone = (least == most)[group]
        is_if = self.what == WRITES_IF
        is_run = self._runs(self.what == WRITES, self.statement, group)
        kept = ~(is_run & (self.what != WRITES) & ((self.is_same > 0) | is_if))
        runs_if = self._runs(is_if & ~is_run, self.statement, group)
        kept &= np.where(is_alone, ~runs_if | is_if, ~is_if)
        rest = np.flatnonzero(kept & is_alone & (self.row >= 0) & ((runs_if > 0) | ~is_run))
        again = np.ones(len(rest), np.bool_)
        again[np.unique(group[rest], return_index=True)[1]] = False
        kept[rest[again]] = False
        return self.take(np.flatnonzero(kept))

    @staticmethod
    def _runs(which: Bools, statement: Ints, group: Ints) -> Bools:
        """Which marks are of a statement that some marks say something of, in the same transaction and row."""
        pairs = np.unique(np.stack((group, statement)), axis=1, return_inverse=True)[1].reshape(-1)
        there = np.zeros(int(pairs.max()) + 1, np.bool_)
        there[pairs[which]] = True
        return there[pairs]

    @property
    def in_kernel(self) -> kernel.Marks:
        """As kernels see them."""
        of, before = self.of, np.ascontiguousarray(self.before).reshape(-1)
        own = (self.row, self.statement, self.what, self.until, self.asked, self.guard)
        return kernel.Marks(of.place, of.tick, of.start, of.time, *own, self.is_first, self.is_last, before)


@dataclass(frozen=True)
class Guard:
    """Just where a value of a row is one of some, as bits, a statement is run: a column (None: whether there is a row).

    ``values`` has a word for each transaction.
    """

    column: str | None
    values: Ints


class TableDoubt:
    """What the exact run may have in one table.

    Parameters
    ----------
    log : TableLog
    writes : sequence of Write
        The statements that write the table, by number.
    domains : sequence of Domain or None
        Of the columns beside the key.
    once : collection of int
        The statements that no event runs twice.

    Attributes
    ----------
    since : int
        The place of the first transaction since when something was in doubt; ``NO_PLACE`` where nothing was.
    """

    def __init__(
        self, log: TableLog, writes: Sequence[Write], domains: Sequence[Domain | None], once: Collection[int] = ()
    ) -> None:
        self.log, self.rows = log, log.rows
        self.since = NO_PLACE
        self._domains = domains
        self._width = len(self.rows.columns) + 1
        self._effects = _effects(self.rows, writes, domains, once)
        self._words = np.zeros(2 * self._width, np.int64)
        self._words[self._width :] = -NO_PLACE
        self._marks: list[Marks] = []
        self._ordered: Marks | None = None
        self._done: list[Marks] = []
        self._befores: list[kernel.Before] = []
        self._new = np.zeros(2 * self._width, np.int64)
        self._fit()

    def _fit(self) -> None:
        """Have words for all rows of the table."""
        wanted = 2 * self._width * (1 + self.rows.room)
        if self._words.size < wanted:
            self._words = extended(self._words, wanted, 0)

    def domain(self, column: str | None) -> Domain | None:
        """The values of a column that are told apart, or whether there is a row (None); None where none are."""
        if column is None:
            return PRESENCE
        return None if column in self.rows.table.key else self._domains[self.rows.column(column)]

    # --- what happens -----------------------------------------------------------------------------------------

    def may_be_written(
        self, of: Transactions, rows: Ints | None, statement: int, until: Ints | None = None, *, is_same: bool = False
    ) -> None:
        """A statement may have been run for these rows, or none, in some transactions; None: nobody knows the row.

        ``until``: it may be run at any time up to these ticks, of any row. ``is_same``: as for ``Marks``.
        """
        if not len(of):
            return
        self.since = min(self.since, int(of.place.min()))
        row = np.full(len(of), ANY_ROW) if rows is None else rows
        for phase, what in ((BEFORE, MAY_WRITE), (AFTER, MAY_WRITE_LATER)):
            own: Given = {"statement": statement, "phase": phase, "is_same": int(is_same), "what": what}
            own |= {} if until is None else {"what": MAY_WRITE_UNTIL, "until": until}
            self._marks.append(Marks.of_one(of, row, self._width, own))
        self._ordered = None

    def is_written_if(self, of: Transactions, rows: Ints, statement: int, guard: Guard) -> None:
        """The exact run has run a statement for these rows just where a value of theirs was one of some before."""
        self.may_be_written(of, rows, statement, is_same=True)
        if len(of):
            asked = self._number(guard.column)
            assert asked is not None, "it is in doubt"
            own: Given = {"statement": statement, "phase": WITH, "what": WRITES_IF}
            own |= {"asked": asked, "guard": guard.values}
            self._marks.append(Marks.of_one(of, rows, self._width, own))

    def is_written(self, of: Transactions, rows: Ints, statement: int, rule: int, match: Ints, action: int) -> None:
        """The exact run has run a statement for these rows, too."""
        if not len(of):
            return
        own: Given = {"statement": statement, "phase": WITH, "what": WRITES}
        own |= {"rule": rule, "match": match, "action": action}
        self._marks.append(Marks.of_one(of, rows, self._width, own))
        self._ordered = None

    def _in_order(self) -> Marks:
        if self._ordered is None:
            self._ordered = self._told(self._all())
        return self._ordered

    def _all(self) -> Marks:
        """All marks that have not happened yet, in order."""
        if self._marks:
            self._marks = [Marks.joined(self._marks).in_order()]
        return self._marks[0] if self._marks else Marks.none(self._width)

    def _told(self, marks: Marks) -> Marks:
        """Those of some marks in order that matter, with what stood here before."""
        if not len(marks):
            return marks
        given = marks.that_matter()
        names = np.stack((given.of.place, given.of.tick, given.of.start, given.row))
        is_first, is_last = (np.zeros(len(given), np.int64) for _ in range(2))
        is_first[np.unique(names, axis=1, return_index=True)[1]] = 1
        is_last[len(given) - 1 - np.unique(names[:, ::-1], axis=1, return_index=True)[1]] = 1
        given = replace(given, is_first=is_first, is_last=is_last)
        return replace(given, before=self._before(given))

    def _before(self, marks: Marks) -> Ints:
        """What stood here before the transactions of marks, as bits, where that matters."""
        found = np.zeros((len(marks), self._width), np.int64)
        asks = (marks.what == MAY_WRITE) | (marks.what == WRITES_IF) | (marks.is_first > 0)
        at = np.flatnonzero((marks.row >= 0) & asks)
        if len(at):
            reads = marks.of.take(at).reads(marks.row[at])
            for number, column in enumerate([*(one.name for one in self.rows.columns), None]):
                if (domain := self.domain(column)) is not None:
                    found[at, number] = domain.bits(self.log.read(column, reads))
        return found

    def do_before(self, place: int, tick: int, start: int) -> None:
        """Let what happened before a transaction have happened, until ``bring_back``."""
        if not self._marks:
            return
        given = self._all()
        last = given.of.until(place, tick, start - 1)
        if last:
            now, rest = given.take(slice(0, last)), given.take(slice(last, None))
            self._marks, self._ordered = [rest] if len(rest) else [], None
            self._happen(self._told(now))
            self._done.append(now)

    def _happen(self, marks: Marks) -> None:
        self._fit()
        before = self._room(len(marks))
        kernel.happen(marks.in_kernel, self._effects, self._words, before, self._new)
        self._befores.append(before)

    def bring_back(self) -> None:
        """Make all what it was at the beginning of the batch."""
        for before in reversed(self._befores):
            kernel.take_back(self._words, before)
        self._marks = [*self._done, *self._marks]
        self._done, self._befores, self._ordered = [], [], None

    def settle(self) -> None:
        """The batch is done: know what happened, while the log of writes has what stood where before."""
        self.bring_back()
        self._in_order()

    def fold(self) -> None:
        """What happened has happened, and the table has all that was written."""
        if self._marks:
            marks = self._in_order()
            self._happen(marks)
            self._compare(np.unique(marks.row[marks.row >= 0]))
        self._marks, self._done, self._befores, self._ordered = [], [], [], None

    def _compare(self, rows: Ints) -> None:
        """Where the exact run has what stands here, and nothing else, nothing is in doubt."""
        is_there = self.rows.present[rows]
        values = self.rows.values(rows)
        for number, column in enumerate([*(one.name for one in self.rows.columns), None]):
            domain = self.domain(column)
            if domain is None:
                continue
            if column is None:
                here = np.where(is_there, PRESENT, ABSENT)
            else:
                here = np.where(is_there, domain.bits(values[column]), default_bit(self.rows, number, domain))
            worlds = self._by_row()[rows, self._width + number]
            self._by_row()[rows, self._width + number] = np.where(domain.is_same(worlds, here), 0, worlds)

    # --- reading ----------------------------------------------------------------------------------------------

    def read(self, column: str | None, rows: Ints, of: Transactions) -> Bools:
        """Whether a column of rows, or whether there is one (None), is in doubt as of transactions, in order."""
        worlds = self.possible(column, rows, of)
        found: Bools = worlds != 0
        domain = self.domain(column)
        if domain is not None and (worlds > 0).any():
            found &= ~domain.is_same(worlds, domain.bits(self.log.read(column, of.reads(rows))))
        return found

    def possible(self, column: str | None, rows: Ints, of: Transactions) -> Ints:
        """The values that a column of rows may have in the exact run, as bits; whether there is one, where it is None.

        0: what stands here; ``kernels.rules.doubt.ANYTHING``: nobody knows.
        """
        found = np.zeros(len(rows), np.int64)
        number = self._number(column)
        if self.since == NO_PLACE or number is None:
            return found
        self._fit()
        given = self._in_order()
        asked = kernel.Asked(of.place, of.tick, of.start, of.time, rows, np.full(len(rows), number))
        before = self._room(len(given))
        kernel.possible(asked, given.in_kernel, self._effects, self._words, before, self._new, found)
        return found

    def _number(self, column: str | None) -> int | None:
        """The number of a column, that of the rows where it is of the key; None where it is never in doubt."""
        if column is None or (column in self.rows.table.key and not self.rows.table.is_total):
            return self._width - 1
        return None if column in self.rows.table.key else self.rows.column(column)

    def _room(self, marks: int) -> kernel.Before:
        room = 3 * self._width * marks + 1  # three words of each column, at most
        return kernel.Before(np.zeros(1, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))

    # --- keys and state ---------------------------------------------------------------------------------------

    def _by_row(self) -> Ints:
        """Of each row the stamps of its columns, and their worlds."""
        return self._words[2 * self._width :].reshape(-1, 2 * self._width)

    @property
    def held(self) -> Ints:
        """The rows whose keys must not be forgotten: something of them is in doubt, and not of all."""
        stamps, worlds = np.split(self._by_row(), 2, axis=1)
        return np.flatnonzero(((stamps == kernel.DOUBTED) | (worlds != 0)).any(axis=1))

    def forget_free_rows(self) -> None:
        """Rows without a key have no stamps: they will be those of other keys."""
        is_free = np.ones(len(self._by_row()), np.bool_)
        is_free[self.rows.keys.used()] = False
        self._by_row()[is_free] = 0

    def save(self, scope: Scope) -> None:
        """Save the state at the end of a batch."""
        rows = np.flatnonzero(self._by_row().any(axis=1))
        stamps, worlds = np.split(self._by_row()[rows], 2, axis=1)
        scope.head["since"] = self.since
        scope.arrays |= {"columns": self._words[: 2 * self._width]}
        scope.arrays |= {"stamps": stamps.reshape(-1), "worlds": worlds.reshape(-1)}
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
        worlds = scope.array("worlds", Range(self._width * len(rows), 0, NO_PLACE))
        check("doubt", good=(rows >= 0).all() and len(np.unique(rows)) == len(rows))
        self._fit()
        self._words[: 2 * self._width] = columns
        self._by_row()[rows] = np.hstack((stamps.reshape(-1, self._width), worlds.reshape(-1, self._width)))


def default_bit(rows: TableRows, column: int, domain: Domain) -> int:
    """The bit of what an absent row reads as in a column; 0 where it has none."""
    word, is_ok = rows.default(column)
    value = from_words(np.array([word]), np.array([is_ok]), rows.columns[column].holds, rows.texts)
    return int(domain.bits(value)[0])


def _effects(
    rows: TableRows, writes: Sequence[Write], domains: Sequence[Domain | None], once: Collection[int]
) -> kernel.Effects:
    """What statements do, for the kernel."""
    width, number = len(rows.columns), rows.column
    sets = np.zeros((len(writes), width), np.int64)
    of = np.zeros((len(writes), width, width), np.int64)
    how, by = (np.zeros((len(writes), width + 1), np.int64) for _ in range(2))
    for statement, write in enumerate(writes):
        for one in write.sets:
            column = number(one.column)
            sets[statement, column] = 1
            of[statement, column, [*map(number, _olds(one.value, rows))]] = 1
            how[statement, column], by[statement, column] = effect(one, rows.columns[column], domains[column])
        is_delete = write.kind == "delete"
        if is_delete or write.kind == "upsert" or rows.table.is_total:
            how[statement, width], by[statement, width] = CONSTANT, ABSENT if is_delete else PRESENT
        for column, domain in enumerate(domains) if is_delete and rows.table.is_total else ():
            bit = 0 if domain is None else default_bit(rows, column, domain)
            how[statement, column], by[statement, column] = (CONSTANT, bit) if bit else (OTHER, 0)
    kinds = np.array([KINDS[write.kind] for write in writes], np.int64)
    is_once = np.isin(np.arange(len(writes)), [*once]).astype(np.int64)
    values = np.array([0 if domain is None else len(domain.values) for domain in (*domains, PRESENCE)], np.int64)
    flat = (sets.reshape(-1), of.reshape(-1), how.reshape(-1), by.reshape(-1))
    return kernel.Effects(width, int(rows.table.is_total), kinds, *flat, is_once, values)


def _olds(value: object, rows: TableRows) -> Iterable[str]:
    """The columns of the row that a value is computed from; those of the key are what the action says."""
    nodes = (node for node in walk(value) if isinstance(node, Attribute) and is_old(node))  # type: ignore[arg-type]
    return {str(node.name) for node in nodes if node.name not in rows.table.key}

