"""The constants of the queries of a template: a column for each parameter, a row for each query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.archive import damaged_part
from acep_approx.arrays import Bools, Ints, extended
from acep_approx.engines.runs.event_columns import Kind, Texts
from acep_approx.query.parameters import MARK
from acep_approx.ranges import COUNT, check

ARROW: dict[Kind, pa.DataType] = {"int": pa.int64(), "float": pa.float64(), "truth": pa.bool_(), "text": pa.string()}
_NUMPY: dict[Kind, Any] = {"int": np.int64, "float": np.float64, "truth": np.bool_, "text": np.int64}
_KINDS: dict[type, Kind] = {int: "int", float: "float", bool: "truth", str: "text"}
_FIRST_ROOM = 16
_MOST_FREE = 1 << 24
"""Rows of a table that are free."""


class QueryTable:
    """Constants by row; a row that was removed is given to a later query once ``release`` was called.

    Parameters
    ----------
    kinds : mapping of str to {"int", "float", "truth", "text"}
        By the names of the parameters.

    Attributes
    ----------
    numbers : int64 array
        Per row the number of its query.
    is_there : bool array
        Per row whether it has a query.
    queries : int
        How many there are.
    version : int
        Changes whenever a row does.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = dict(kinds)
        self.queries = 0
        self.numbers: Ints = np.zeros(_FIRST_ROOM, np.int64)
        self.is_there: Bools = np.zeros(_FIRST_ROOM, np.bool_)
        self.version = 0
        self._used = 0
        self._removed: list[int] = []
        self._free: list[int] = []
        self._new: list[int] = []
        self._texts: dict[str, int] = {}
        self._columns = {name: np.zeros(_FIRST_ROOM, _NUMPY[kind]) for name, kind in self.kinds.items()}

    @property
    def room(self) -> int:
        """Rows that there is room for."""
        return len(self.numbers)

    def add(self, numbers: Ints, table: pa.Table) -> Ints:
        """Take in queries; gives their rows.

        ``table`` has a column without NULLs for each parameter.
        """
        columns = {name: self._column(name, table) for name in self.kinds}
        wanted = len(numbers)
        again, self._free = self._free[:wanted], self._free[wanted:]
        new = np.arange(self._used, self._used + wanted - len(again))
        self._used += len(new)
        self._grow(self._used)
        rows = np.concatenate((np.array(again, np.int64), new))
        self.numbers[rows], self.is_there[rows] = numbers, True
        for name, values in columns.items():
            self._columns[name][rows] = values
        self.queries += len(rows)
        self._new += rows.tolist()
        self.version += 1
        return rows

    def widen(self, name: str, rows: Ints, values: Any, widest: np.ufunc) -> None:
        """Let rows have the widest of their constant of a parameter and some values."""
        column = self._columns[name]
        before = column[rows].copy()
        widest.at(column, rows, values)
        changed = np.unique(rows[column[rows] != before])
        if len(changed):
            self._new += changed.tolist()
            self.version += 1

    def remove(self, number: int) -> None:
        """Let go of a query; its row stays as it is until ``release``. Complexity: O(rows)."""
        row = int(np.flatnonzero((self.numbers == number) & self.is_there)[0])
        self.is_there[row] = False
        self.queries -= 1
        self._removed.append(row)
        self.version += 1

    def release(self) -> Ints:
        """The rows that were removed since the last call; from now on others may get them."""
        rows, self._removed = self._removed, []
        self._free += rows
        return np.array(rows, np.int64)

    def take_new(self) -> Ints:
        """The rows of queries that have come since the last call."""
        rows, self._new = self._new, []
        return np.array(rows, np.int64)

    def values(self, name: str) -> Any:
        """The constants of a parameter per row, as numpy has them; texts as places in ``texts``."""
        return self._columns[name]

    def of(self, numbers: Ints) -> pa.Table:
        """The constants of some queries, a column for each parameter."""
        rows = np.flatnonzero(self.is_there)
        order = np.argsort(self.numbers[rows])
        rows = rows[order[np.searchsorted(self.numbers[rows], numbers, sorter=order)]]
        return pa.table({name: self.arrow(name, rows) for name in self.kinds})

    def arrow(self, name: str, rows: Ints) -> pa.Array:
        """The constants of a parameter in some rows."""
        values = self._columns[name][rows]
        if self.kinds[name] != "text":
            return pa.array(values)
        known = pa.array(list(self._texts), pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), known)

    def words(self, name: str, texts: Texts, kind: Kind, rows: Ints | slice = slice(None)) -> Ints:
        """The constants of a parameter as words beside values of ``kind``: per row, or those of some rows."""
        values = self._columns[name][rows]
        if self.kinds[name] == "text":
            known, different = list(self._texts), np.unique(values[self.is_there[rows]])
            codes = np.zeros(len(known) + 1, np.int64)
            codes[different] = [texts.code(known[place]) for place in different.tolist()]
            words: Ints = codes[values]
            return words
        if kind == "float":
            return values.astype(np.float64).view(np.int64)
        return values.astype(np.int64)

    def fields(self) -> dict[str, pa.DataType]:
        """The columns that bring the constants to the events of a query."""
        return {MARK + name: ARROW[kind] for name, kind in self.kinds.items()}

    def _column(self, name: str, table: pa.Table) -> Any:
        kind = self.kinds[name]
        values = table.column(name).cast(ARROW[kind])
        if kind != "text":
            return values.to_numpy()
        return np.array([self._texts.setdefault(text, len(self._texts)) for text in values.to_pylist()], np.int64)

    def _grow(self, wanted: int) -> None:
        if wanted > self.room:
            room = max(wanted, 2 * self.room)
            self.numbers = extended(self.numbers, room)
            self.is_there = np.concatenate((self.is_there, np.zeros(room - len(self.is_there), np.bool_)))
            for name, values in self._columns.items():
                more = np.zeros(room - len(values), values.dtype)
                self._columns[name] = np.concatenate((values, more))

    # --- state ------------------------------------------------------------------------------------------------

    def to_state(self) -> pa.Table:
        """All rows that have queries, in order: ``row``, ``number``, and a column for each parameter."""
        rows = np.flatnonzero(self.is_there)
        columns = {MARK + name: self.arrow(name, rows).cast(ARROW[kind]) for name, kind in self.kinds.items()}
        return pa.table({"row": rows, "number": self.numbers[rows], **columns})

    def restore(self, state: pa.Table) -> None:
        """Take over what ``to_state`` gave; the table has no queries so far.

        Raises
        ------
        DataError
            ``ACEP-D040``: rows that cannot be.
        """
        rows = state.column("row").to_numpy()
        end = _MOST_FREE + 64 * len(rows)
        if len(np.unique(rows)) < len(rows) or rows.min(initial=0) < 0 or rows.max(initial=0) >= end:
            raise damaged_part("rows of a table of constants")
        self._used = int(rows.max(initial=-1)) + 1
        self._free = np.setdiff1d(np.arange(self._used), rows).tolist()
        self._grow(self._used)
        numbers = state.column("number").to_numpy()
        if numbers.dtype != np.int64 or numbers.min(initial=0) < 0 or numbers.max(initial=0) >= COUNT:
            raise damaged_part("numbers of queries")
        self.numbers[rows], self.is_there[rows] = numbers, True
        constants = state.rename_columns([name.removeprefix(MARK) for name in state.column_names])
        check("constants", good=not any(column.null_count for column in constants.columns))
        for name in self.kinds:
            self._columns[name][rows] = self._column(name, constants)
        self.queries = len(rows)
        self.version += 1


def kind_of(constant: Any) -> Kind:
    """The kind of a constant."""
    return _KINDS[type(constant)]
