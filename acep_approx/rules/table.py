"""The rows of one table of the shared store, in memory: flat columns, and a number for each key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow
from acep_approx.events.keys import KeyCodes
from acep_approx.kernels.rules.rows import Rows
from acep_approx.query.rules.syntax import Table
from acep_approx.rules.loading import given, refuse_misspelt
from acep_approx.rules.words import ARROW, Texts, as_held, default_of, from_words, to_words

LEAST_ROOM = 64
SWEEP = 4096
"""Keys without a row, known only because they were read, beyond which they are forgotten."""


class TableRows:
    """A table: which keys have rows, and what stands in them.

    Parameters
    ----------
    table : Table
    texts : Texts
        Codes of the texts of the store.

    Attributes
    ----------
    keys : KeyCodes
        A number for each key that was ever asked for; a row may be absent.
    stamp, set_words, set_ok : arrays, shape (columns x room,)
        Of the last transaction that set each value: see ``kernels.rules.sweep.Done``.
    """

    def __init__(self, table: Table, texts: Texts) -> None:
        self.table = table
        self.texts = texts
        self.keys = KeyCodes()
        self.columns = table.values
        self._numbers = {column.name: number for number, column in enumerate(self.columns)}
        defaults = [default_of(column, texts) for column in self.columns]
        self._default_words = np.array([word for word, _ in defaults], np.int64)
        self._default_ok = np.array([ok for _, ok in defaults], np.bool_)
        self._make_room(LEAST_ROOM)
        self.words = np.zeros(len(self.columns) * self.room, np.int64)
        self.ok = np.zeros(len(self.words), np.bool_)
        self.present = np.zeros(self.room, np.bool_)
        self.stamp = np.full(len(self.words), -1, np.int64)
        self.set_words, self.set_ok = self.words.copy(), self.ok.copy()
        self._known = 0
        self._key_arrays, self._added = self._no_keys(), 0

    def _no_keys(self) -> list[pa.Array]:
        """Columns of the keys that were shown so far, by their numbers."""
        return [pa.array([], ARROW[column.holds]) for column in self.table.keys]

    def _make_room(self, room: int) -> None:
        self.room = room
        self._sizes = np.array([len(self.columns), room, self.table.is_total, 0, 0, 0], np.int64)  # see ``Rows``

    @property
    def rows(self) -> Rows:
        """The table as kernels see it; valid until there are more keys."""
        return Rows(self.words, self.ok, self.present, self._sizes, self._default_words, self._default_ok)

    @property
    def schema(self) -> pa.Schema:
        """Its columns: first those of the key."""
        return pa.schema([(column.name, ARROW[column.holds]) for column in (*self.table.keys, *self.columns)])

    def column(self, name: str) -> int:
        """The number of a column beside the key."""
        return self._numbers[name]

    def default(self, column: int) -> tuple[int, bool]:
        """What an absent row reads as in a column, and whether that is not NULL."""
        return int(self._default_words[column]), bool(self.table.is_total and self._default_ok[column])

    def row_of(self, keys: Sequence[pa.Array]) -> Ints:
        """The number of the row of each key, which may be absent; -1 where a value is NULL.

        Parameters
        ----------
        keys : sequence of pyarrow.Array
            The columns of the key in its order, of types that can be compared with them.
        """
        held = [as_held(values, column.holds) for values, column in zip(keys, self.table.keys, strict=True)]
        found = self.keys.encode(held)
        if self.keys.capacity > self.room:
            self._grow(self.keys.capacity)
        return found

    def _grow(self, least: int) -> None:
        columns, before, room = len(self.columns), self.room, max(least, 2 * self.room)
        for name, fill in (("words", 0), ("ok", False), ("stamp", -1), ("set_words", 0), ("set_ok", False)):
            old = getattr(self, name).reshape(columns, before)
            new = np.full((columns, room), fill, old.dtype)
            new[:, :before] = old
            setattr(self, name, new.reshape(-1))
        self.present = np.concatenate((self.present, np.zeros(room - before, np.bool_)))
        self._make_room(room)

    def values(self, rows: Ints) -> dict[str, pa.Array]:
        """What stands in some rows, column by column, the key first."""
        return {**self.key_columns(rows), **{
            column.name: from_words(words[rows], ok[rows], column.holds, self.texts)
            for column, words, ok in zip(self.columns, *self._by_column(), strict=True)
        }}  # fmt: skip

    def key_columns(self, rows: Ints) -> dict[str, pa.Array]:
        """The keys of some rows."""
        known, added = len(self._key_arrays[0]), self.keys.added
        if added - self._added != self.keys.capacity - known:  # numbers of forgotten keys are used again
            self._key_arrays, known = self._no_keys(), 0
        if known < self.keys.capacity:
            numbers = np.arange(known, self.keys.capacity)
            more = self.keys.values(np.where(np.isin(numbers, self.keys.used()), numbers, -1))
            self._key_arrays = [pa.concat_arrays(pair) for pair in zip(self._key_arrays, more, strict=True)]
            self._added = added
        place = to_arrow(rows, rows >= 0)
        return {name: array.take(place) for name, array in zip(self.table.key, self._key_arrays, strict=True)}

    def _by_column(self) -> tuple[Ints, Bools]:
        shape = len(self.columns), self.room
        return self.words.reshape(shape), self.ok.reshape(shape)

    def to_arrow(self) -> pa.Table:
        """All rows that there are, in the order of their keys."""
        used = self.keys.used()
        rows = pa.table(self.values(used[self.present[used]]), schema=self.schema)
        return rows.sort_by([(name, "ascending") for name in self.table.key])

    def written(self, rows: Ints) -> pa.Table:
        """Rows that were written, each once, and whether they were deleted."""
        rows = np.unique(rows)
        values = pa.table(self.values(rows), schema=self.schema)
        return values.append_column("deleted", to_arrow((~self.present[rows]).astype(np.int64)).cast(pa.bool_()))

    def load(self, rows: pa.Table) -> None:
        """Put rows in, in the place of those that have the same keys.

        Raises
        ------
        DataError
            ``ACEP-R110``: a column is missing, or a value is of another type; ``ACEP-R111``: a key is NULL, or is there
            twice. Then nothing was put in.
        """
        refuse_misspelt(self.table, rows)
        columns = [given(self.table, column, rows, required=True) for column in self.table.keys]
        at = self.row_of(columns)
        if (at < 0).any():
            raise _bad_rows(self.table, int(np.argmax(at < 0)), "has no key: it is NULL")
        distinct, first = np.unique(at, return_index=True)
        if len(distinct) < len(at):
            twice = np.setdiff1d(np.arange(len(at)), first)
            raise _bad_rows(self.table, int(twice[0]), "has a key that stands in a row before it, too")
        by_word, by_ok = self._by_column()
        for number, column in enumerate(self.columns):
            values = given(self.table, column, rows, required=column.default is None)
            if values is None:
                by_word[number, at], by_ok[number, at] = self._default_words[number], self._default_ok[number]
                continue
            by_word[number, at], by_ok[number, at], _ = to_words(values, column.holds, self.texts)
        self.present[at] = True

    # --- what is forgotten ------------------------------------------------------------------------------------

    def forget_read_keys(self, held: Ints) -> None:
        """Let go of keys that have no row and were only read, once there are many; not of ``held`` ones."""
        if len(self.keys) < 2 * self._known + SWEEP:
            return
        used = self.keys.used()
        self.keys.release(used[~self.present[used] & ~np.isin(used, held)])
        self._key_arrays = self._no_keys()
        self._known = len(self.keys)


def _bad_rows(table: Table, row: int, what: str) -> DataError:
    return DataError(
        f"row {row} of table {table.name!r} {what}",
        code="ACEP-R111",
        row=row,
        hint=f"give each row a key of its own: ({', '.join(table.key)})",
    )
