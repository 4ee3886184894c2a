"""What users of a set hold: what it has found in a batch, and queries that were added, with who is told of results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arguments import checked
from acep_approx.arrays import Ints
from acep_approx.diagrams.fragments import never_raises, tables_view
from acep_approx.errors import expect
from acep_approx.events.columns import plain_type, to_arrow, to_numpy
from acep_approx.events.reading.widening import common_type, stacked
from acep_approx.events.writing.tables import json_lines, plain_text, to_pandas
from acep_approx.matching.outputs.bind import ROWS
from acep_approx.subscriptions.graph import NUMBER

if TYPE_CHECKING:
    import pandas as pd

Callback = Callable[[pa.Table], Any]
_LOG = logging.getLogger(__name__)
OWN = (NUMBER, "start", "end", "errors", "times")
"""Columns of ``to_arrow`` beside ``values``."""
SPARSE = 64
"""Numbers in a range of so many times their number are sorted; in a narrower one they are marked."""
IdsOf = Callable[[Ints], "dict[int, str | None]"]
"""Gives the ids of queries by their numbers; None where their results are not shown."""
Look = Callable[[str], "list[tuple[int, pa.Table]]"]
"""Gives for an id, or the name of a stream, the numbers of the queries meant, each with a table of no results."""


class Found(Mapping[str, pa.Table]):
    """The results of the queries of a set in one batch.

    ``found["ibm"]`` is the table of one query, by its id, or of all that publish a stream, by its name: a column
    ``query`` with the id, then those that the query has alone. It is empty, with these columns, where there are none.
    ``for id in found`` names the queries that have results, ``len(found)`` is their number. ``table`` has all results,
    with the columns of all queries; ``to_arrow`` has all in few columns.

    Parameters
    ----------
    tables : list of pyarrow.Table
        Results, none of them empty; a query may have its own in several, each of other times. Numbers name the queries.
    ids_of : callable
        Gives the ids of numbers; None where the results of one are not shown.
    look : callable
        Finds queries by name.
    columns : callable
        Gives the columns of the results of all queries, each in one type.

    Attributes
    ----------
    rows : int
        How many results there are.
    """

    def __init__(self, tables: list[pa.Table], ids_of: IdsOf, look: Look, columns: Callable[[], pa.Schema]) -> None:
        self._look, self._columns = look, columns
        self._ids: dict[int, str] = {}
        self._parts: list[pa.Table] = []
        self._in_part: list[Ints] = []  # which queries have results in it, by number
        for table in tables:
            self._take(table, ids_of)
        self.rows = sum(part.num_rows for part in self._parts)

    def _take(self, table: pa.Table, ids_of: IdsOf) -> None:
        numbers = distinct(to_numpy(table.column(NUMBER).combine_chunks()))
        shown = {number: id_ for number, id_ in ids_of(numbers).items() if id_ is not None}
        if not shown:
            return
        if len(shown) < len(numbers):
            numbers = np.array([*shown])
            table = table.filter(pc.is_in(table.column(NUMBER), pa.array(numbers)))
        self._ids |= shown
        self._in_part.append(numbers)
        self._parts.append(table)

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in sorted(self._ids):
            found.setdefault(self._ids[number], []).append(number)
        return found

    @checked
    def __getitem__(self, name: str) -> pa.Table:
        known = [] if name in self._numbers else self._look(name)
        numbers = self._numbers.get(name) or [number for number, _ in known if number in self._ids]
        tables = [self.of(number) for number in numbers]
        tables = tables or [_with_ids(nothing, {}) for _, nothing in known if nothing.num_columns]
        return stacked(tables) if tables else pa.table({})

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._numbers

    @property
    def numbers(self) -> Collection[int]:
        """The queries that have results, by number."""
        return self._ids.keys()

    def of(self, number: int) -> pa.Table:
        """The results of the query of a number."""
        parts = zip(self._parts, self._in_part, strict=True)
        tables = [
            part.filter(pc.equal(part.column(NUMBER), number)) if len(numbers) > 1 else part
            for part, numbers in parts
            if number in numbers
        ]
        table = tables[0]
        if len(tables) > 1:  # queries came or went between them
            table = stacked(tables)
            table = table.take(to_arrow(np.argsort(_ends(table), kind="stable")))
        return _with_ids(table, self._ids)

    def to_arrow(self) -> pa.Table:
        """All results as one table: by the end of each, then in the order in which the queries were added.

        Returns
        -------
        pyarrow.Table
            ``query`` (string: the id), ``start``, ``end`` (as each query has them: times, or whole numbers), ``errors``
            (int64), ``times`` (int64: how often the result was derived; 1 where a query does not count it) and
            ``values`` (string): all other columns of the query, with their names, as a JSON object.

        Notes
        -----
        Columns of thousands of queries have no one type: so ``values`` is text, and ``found[id]`` has the types.
        """
        if not self._parts:
            return pa.table({name: pa.array([], _TYPES.get(name, pa.int64())) for name in (*OWN, "values")})
        return self._in_order([self._row(part) for part in self._parts])

    def table(self) -> pa.Table:
        """Return all results as one table with the columns of all queries: rows as those of ``to_arrow``.

        Returns
        -------
        pyarrow.Table
            ``query``, ``start``, ``end``, ``errors`` and ``times``, as of ``to_arrow``. Then each column that a query
            of the set has, with NULL in the rows of other queries. Where queries have a column in different types, it
            has the type that holds both, such as float for whole numbers and floats; else it is text.
        """
        columns = self._columns()
        own = [pa.field(name, _TYPES.get(name, _type_in(columns, name))) for name in OWN]
        others = [field for field in columns if field.name not in OWN and not field.name.startswith(ROWS)]
        wide = pa.schema([*own, *others])
        return self._in_order([_widened(part, wide) for part in self._parts]) if self._parts else wide.empty_table()

    def _in_order(self, parts: list[pa.Table]) -> pa.Table:
        """Rows by their ends, then in the order in which the queries were added, with ids in the place of numbers."""
        table = stacked(parts)
        order = np.lexsort((to_numpy(table.column(NUMBER).combine_chunks()), _ends(table)))
        if not (order[1:] > order[:-1]).all():
            table = table.take(to_arrow(order))
        return table.set_column(0, NUMBER, _ids_of(table.column(NUMBER), self._ids).dictionary_decode())

    def to_pandas(self) -> pd.DataFrame:
        """``to_arrow`` as a pandas DataFrame."""
        return to_pandas(self.to_arrow())

    @staticmethod
    def _row(part: pa.Table) -> pa.Table:
        values = part.select([name for name in part.column_names if name not in OWN and not name.startswith(ROWS)])
        return pa.table(_own(part) | {"values": _json(values, part.num_rows)})

    @never_raises
    def _repr_html_(self) -> str:
        return tables_view(repr(self)[1:-1], ((id_, self[id_]) for id_ in self))

    def __repr__(self) -> str:
        return f"<Found {self.rows:,} results of {len(self):,} queries>"


def _own(part: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns that all results have, also those of queries that lack one."""
    own = {name: part.column(name) for name in OWN if name in part.column_names}
    own.setdefault("start", pa.nulls(part.num_rows, part.schema.field("end").type))
    for name, default in (("errors", 0), ("times", 1)):
        own.setdefault(name, pa.array(np.full(part.num_rows, default)))
    return {name: own[name] for name in OWN}


def _widened(part: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return results of one query with the columns of all."""
    others = pa.schema([field for field in columns if field.name not in OWN])
    table = in_types_of(others, part)
    return pa.table(_own(part) | dict(zip(others.names, table.columns, strict=True)))


def in_types_of(columns: pa.Schema, part: pa.Table) -> pa.Table:
    """Return a table with some columns in their types: NULL where it has none of a name, and text as people read it."""
    return pa.table(
        {
            name: _as_type(part.column(name), type_) if name in part.column_names else pa.nulls(part.num_rows, type_)
            for name, type_ in zip(columns.names, columns.types, strict=True)
        },
        schema=columns,
    )


def _as_type(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    values = column.combine_chunks()
    if values.type.equals(type_):
        return values
    return plain_text(values, ";") if pa.types.is_string(type_) else values.cast(type_)


def _type_in(columns: pa.Schema, name: str) -> pa.DataType:
    return columns.field(name).type if name in columns.names else pa.int64()


def common_columns(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return the columns of several tables, each in the type that holds the values of all, else as text.

    Examples
    --------
    >>> one, other = pa.schema([("a", pa.int64())]), pa.schema([("a", pa.list_(pa.int64())), ("b", pa.bool_())])
    >>> common_columns([one, other])
    a: string
    b: bool
    """
    types: dict[str, pa.DataType] = {}
    for field in (field for schema in schemas for field in schema if not field.name.startswith(ROWS)):
        type_ = plain_type(field.type)
        types[field.name] = common_type(types.get(field.name, type_), type_) or pa.string()
    return pa.schema([*types.items()])


def _ends(table: pa.Table) -> Ints:
    ends: Ints = to_numpy(table.column("end").combine_chunks().cast(pa.int64()))
    return ends


def distinct(numbers: Ints) -> Ints:
    """The different ones of some numbers, in order; in O(n + range) where the range is not much wider than they are.

    Examples
    --------
    >>> distinct(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    low, high = int(numbers[0]), int(numbers[-1])
    if low == high and (numbers == low).all():
        return numbers[:1]
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > SPARSE * len(numbers):
        return np.unique(numbers)
    is_there = np.zeros(high - low + 1, np.bool_)
    is_there[numbers - low] = True
    return np.flatnonzero(is_there) + low


_TYPES = {NUMBER: pa.string(), "values": pa.string()}


def _json(table: pa.Table, rows: int) -> pa.Array:
    if not table.num_columns:
        return pa.array(["{}"] * rows, pa.string())
    lines = pa.array([json_lines(table).to_pybytes().decode()], pa.large_string())
    return pc.split_pattern(lines, "\n").values.slice(0, rows).cast(pa.string())


def _with_ids(table: pa.Table, ids: Mapping[int, str]) -> pa.Table:
    return table.set_column(table.column_names.index(NUMBER), NUMBER, _ids_of(table.column(NUMBER), ids))


def _ids_of(numbers: pa.ChunkedArray, ids: Mapping[int, str]) -> pa.Array:
    """Ids as a dictionary: few different ones, whatever the number of rows."""
    values = to_numpy(numbers.combine_chunks())
    if not len(values) or (values == values[0]).all():
        known, codes = values[:1], np.zeros(len(values), np.int64)
    else:
        known, codes = np.unique(values, return_inverse=True)
    names = pa.array([ids[int(number)] for number in known], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)


class Subscription:
    """A query of a set.

    Attributes
    ----------
    id : str
    failures : int
        How often something that was to be told of results failed.
    last_error : Exception or None
        With what, the last time.
    """

    def __init__(self, id: str, number: int, listening: dict[int, Subscription]) -> None:  # noqa: A002
        self.id = id
        self._number, self._listening = number, listening
        self.failures = 0
        self.last_error: Exception | None = None
        self.callbacks: list[Callback] = []

    def on_match(self, callback: Callback) -> Subscription:
        """Call a function with the results of this query, once for each batch that has some.

        Parameters
        ----------
        callback : callable
            Takes a ``pyarrow.Table``. If it raises an exception, that is counted (``failures``, ``last_error``) and
            logged, and matching goes on.

        Returns
        -------
        Subscription
            Itself, so that several can be added in a row.
        """
        expect("the callback", callback, Callable, "a function of an Arrow table")  # type: ignore[arg-type]
        self.callbacks.append(callback)
        self._listening[self._number] = self
        return self

    def tell(self, table: pa.Table) -> None:
        """Call all functions that were given."""
        for callback in self.callbacks:
            try:
                callback(table)
            except Exception as error:  # noqa: BLE001  whatever it is, matching goes on
                self.failures += 1
                self.last_error = error
                _LOG.warning("a function that was told of results of %r failed: %r", self.id, error)

    def __repr__(self) -> str:
        return f"<Subscription {self.id!r}>"


class Subscriptions(Sequence[Subscription]):
    """Subscriptions of queries that were added together, each made when it is asked for."""

    def __init__(
        self, ids: Sequence[str], numbers: Sequence[int], make: Callable[[str, int], Subscription]
    ) -> None:
        self._ids, self._numbers, self._make = ids, numbers, make

    @overload
    def __getitem__(self, at: int) -> Subscription: ...

    @overload
    def __getitem__(self, at: slice) -> Subscriptions: ...

    def __getitem__(self, at: int | slice) -> Subscription | Subscriptions:
        if isinstance(at, slice):
            return Subscriptions(self._ids[at], self._numbers[at], self._make)
        return self._make(self._ids[at], self._numbers[at])

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return repr([*self])
