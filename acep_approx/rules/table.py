"""The rows of one table of the shared store, in memory: flat columns, and a number for each key; and rows as they were.

Rows that users give a table have values of the type of their column, or are an error; nothing is rounded, cut or
guessed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.keys import KeyCodes
from acep_approx.kernels.rules.rows import Rows
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.rules.syntax import Column, Table
from acep_approx.ranges import COUNT, TICK, Range, check
from acep_approx.rules.words import ARROW, Texts, as_held, default_of, from_words, schema_of, to_words

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
        self._held = [column.holds for column in table.keys]
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
        return [pa.array([], ARROW[column.holds]) for column in self.table.keys]

    def _make_room(self, room: int) -> None:
        self.room = room
        self._sizes = np.array([len(self.columns), room, self.table.is_total, 0, 0, 0], np.int64)  # see ``Rows``

    @property
    def rows(self) -> Rows:
        """The table as kernels see it; valid until there are more keys."""
        return Rows(self.words, self.ok, self.present, self._sizes, self._default_words, self._default_ok)

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
        held = [as_held(values, holds) for values, holds in zip(keys, self._held, strict=True)]
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
        rows = pa.table(self.values(used[self.present[used]]), schema=schema_of(self.table))
        return rows.sort_by([(name, "ascending") for name in self.table.key])

    def written(self, rows: Ints) -> pa.Table:
        """Rows that were written, each once, and whether they were deleted."""
        rows = np.unique(rows)
        values = pa.table(self.values(rows), schema=schema_of(self.table))
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

    @property
    def has_many_keys(self) -> bool:
        """Whether there are so many that some should be forgotten."""
        return len(self.keys) >= 2 * self._known + SWEEP

    def forget_read_keys(self, held: Ints) -> None:
        """Let go of keys that have no row and were only read; not of ``held`` ones."""
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


_EXACT = 2**53
"""Whole numbers up to here are floats, too."""
_DIGITS = 15
"""Digits of decimal numbers that floats tell apart."""


def given(table: Table, column: Column, rows: pa.Table, *, required: bool) -> pa.Array | None:
    """A column of rows for a table, in its type; None where it is left out.

    Raises
    ------
    DataError
        ``ACEP-R110``: it is missing, or a value is of another type, or out of its range.
    """
    if column.name not in rows.column_names:
        if not required:
            return None
        raise DataError(
            f"the rows of table {table.name!r} have no column {column.name!r}",
            code="ACEP-R110",
            hint=f"they have {', '.join(rows.column_names) or 'none'}; a column with DEFAULT may be left out",
        )
    values = rows.column(column.name).combine_chunks()
    values = values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values
    try:
        return _in_type(values, column)
    except pa.ArrowException as error:
        raise DataError(
            f"the column {column.name!r} of table {table.name!r} is of type {values.type}, and a value of it is no "
            f"{column.holds}: {str(error).splitlines()[0]}",
            code="ACEP-R110",
            hint=f"give it values that are each {_VALUES[column.holds]}, or NULL",
        ) from error


def refuse_misspelt(table: Table, rows: pa.Table) -> None:
    """Refuse columns that a table has not where one of its own is left out: it may be that one.

    Raises
    ------
    DataError
        ``ACEP-R110``.
    """
    names = [column.name for column in table.columns]
    unknown = [name for name in rows.column_names if name not in names]
    missing = [name for name in names if name not in rows.column_names]
    if unknown and missing:
        near = did_you_mean(unknown[0], missing)
        raise DataError(
            f"the rows of table {table.name!r} have a column {unknown[0]!r}, which the table has not, and none called "
            f"{missing[0]!r}",
            code="ACEP-R110",
            hint=f"{near}its columns are {', '.join(names)}; rename the column, or leave it out",
        )


_VALUES = {
    "int": "a whole number of 64 bits",
    "float": "a number that a float holds exactly",
    "text": "a text in UTF-8, or a whole number",
    "bool": "TRUE or FALSE",
    "time": "a time of whole microseconds",
}


def _in_type(values: pa.Array, column: Column) -> pa.Array:
    """Values in the type of a column; raises ``pyarrow.ArrowException``."""
    type_, holds = values.type, column.holds
    if pa.types.is_null(type_) or not len(values):
        return pa.nulls(len(values), ARROW[holds])
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    if holds in ("int", "float") and is_number:
        return _without_nan(values).cast(pa.int64()) if holds == "int" else _floats(values)
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    is_bytes = pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_)
    if holds == "text" and (is_text or is_bytes or pa.types.is_integer(type_)):
        return values.cast(pa.string())
    if holds == "bool" and pa.types.is_boolean(type_):
        return values
    if holds == "time" and (is_text or pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
        return _times(values)
    raise pa.ArrowInvalid(f"{type_} is not {holds}")


def _floats(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        digits = pc.replace_substring_regex(values.cast(pa.string()), "E.*|[^0-9]", "")
        if (pc.max(pc.utf8_length(pc.utf8_trim(digits, "0"))).as_py() or 0) > _DIGITS:
            raise pa.ArrowInvalid(f"one has more than {_DIGITS} digits")
    found = _without_nan(values).cast(pa.float64(), safe=False)
    if pa.types.is_integer(values.type):
        numbers = to_numpy(pc.fill_null(values, 0))
        large = (numbers > _EXACT) | (numbers < -_EXACT) if values.type != pa.uint64() else numbers > np.uint64(_EXACT)
        if any(int(float(number)) != number for number in numbers[large].tolist()):
            raise pa.ArrowInvalid("a whole number beyond 2^53 is no float")
    return found


def _without_nan(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    values = values.cast(pa.float64())
    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)


def _times(values: pa.Array) -> pa.Array:
    """Times in UTC without a zone, as tables have them; a text without an offset is in UTC."""
    if not pa.types.is_timestamp(values.type) and not pa.types.is_date(values.type):
        values = values.cast(pa.string())
        has_offset = pc.any(pc.match_substring_regex(values, r"T.*(Z|[+-]\d\d:?\d\d)$")).as_py()
        values = values.cast(pa.timestamp("us", "UTC" if has_offset else None))
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    return values.cast(pa.timestamp("us", zone)).cast(pa.timestamp("us"))


class PastRows:
    """What stood in rows before each write of a window that ends now.

    Parameters
    ----------
    columns : int
        Of the table, beside the key.

    Attributes
    ----------
    window : int
        In ticks: earlier writes are forgotten.
    """

    def __init__(self, columns: int) -> None:
        self.window = 0
        self._columns = columns
        self._width = 2 * columns + 1
        self._place = np.zeros(0, np.int64)
        self._time = np.zeros(0, np.int64)
        self._row = np.zeros(0, np.int64)
        self._before = np.zeros((0, self._width), np.int64)  # as ``kernels.rules.sweep.Done.before`` has it

    def add(self, place: Ints, time: Ints, row: Ints, before: Ints) -> None:
        """Keep what stood in rows before later writes, which are in order."""
        self._place = np.concatenate((self._place, place))
        self._time = np.concatenate((self._time, time))
        self._row = np.concatenate((self._row, row))
        self._before = np.concatenate((self._before, before.reshape(-1, self._width)))

    def forget(self, now: int) -> None:
        """Let go of what no match that is completed from now on can ask for."""
        first = int(np.searchsorted(self._time, now - self.window))
        if 2 * first > len(self._time):
            self._place, self._time = self._place[first:], self._time[first:]
            self._row, self._before = self._row[first:], self._before[first:]

    def look(self, column: int | None, rows: Ints, places: Ints) -> tuple[Bools, Bools, Ints, Bools]:
        """What stood in rows as of transactions.

        Returns
        -------
        known : bool
            Whether a row was written since; else it is what it was then.
        present, words, ok : arrays
            Whether there was a row, and its value in the column.

        Complexity: O((n + kept) log kept).
        """
        kept = len(self._row)
        order = np.argsort(self._row * kept + np.arange(kept)) if kept else np.zeros(0, np.int64)
        keys = self._row[order] * kept + order
        at = np.searchsorted(keys, rows * kept + np.searchsorted(self._place, places))
        found = np.append(order, kept)[np.minimum(at, kept)]
        known = found < kept
        known[known] = self._row[found[known]] == rows[known]
        before = self._before[np.where(known, found, 0)] if kept else np.zeros((len(rows), self._width), np.int64)
        words = before[:, 1 + (column or 0)] if self._columns else before[:, 0]
        ok = before[:, 1 + self._columns + (column or 0)] != 0 if self._columns else before[:, 0] != 0
        return known, before[:, 0] != 0, words, ok

    @property
    def rows(self) -> Ints:
        """The row of each write."""
        return self._row

    # --- state ------------------------------------------------------------------------------------------------

    def save(self, scope: Scope, table: TableRows) -> None:
        """Save the state; of numbers and codes, which are others after a restart, what they stand for."""
        scope.arrays |= {"place": self._place, "time": self._time, "before": self._before.reshape(-1)}
        scope.put("keys", pa.table(table.key_columns(self._row)))
        scope.put("texts", pa.table({table.columns[n].name: self._texts(n, table) for n in _of_texts(table)}))

    def _texts(self, column: int, table: TableRows) -> pa.Array:
        words, ok = self._before[:, 1 + column], self._before[:, 1 + self._columns + column] != 0
        return from_words(words, ok, "text", table.texts)

    def restore(self, scope: Scope, table: TableRows) -> None:
        """Take over what ``save`` saved.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        keys, texts = ([one.combine_chunks() for one in scope.table(name).columns] for name in ("keys", "texts"))
        before = scope.array("before").reshape(-1, self._width).copy()
        for column, values in zip(_of_texts(table), texts, strict=True):
            before[:, 1 + column] = table.texts.encode(values)
        row, kept = table.row_of(keys), len(before)
        place, time = scope.array("place", Range(kept, 0, COUNT)), scope.array("time", Range(kept, -TICK, TICK))
        check("past", good=len(row) == kept and (row >= 0).all())
        check("past", good=(place[1:] >= place[:-1]).all() and (time[1:] >= time[:-1]).all())
        check("past", good=((before[:, 0] == 0) | (before[:, 0] == 1)).all())
        self.add(place, time, row, before)


def _of_texts(table: TableRows) -> list[int]:
    return [number for number, column in enumerate(table.columns) if column.holds == "text"]
