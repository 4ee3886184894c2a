"""Tables of rules as tables of SQLite: names, types, what may stand in a column, and the statements.

A table has the columns of its declaration, in their order. Types are checked by SQLite at each write, whoever writes,
and once more when a run begins, for constraints can be switched off.

Times are text, ``2024-03-01 10:00:00.000000``, always with six digits behind the point, in UTC. It is exact to the
microsecond; sorts, compares and groups like the time; is what SQLite's own functions, pandas and SQLAlchemy take for a
time; and since the type is declared as TIMESTAMP, DuckDB reads a time too. Numbers would have to be told apart: seconds
to some tools, milliseconds or days to others.

Values of Arrow become values that SQLite binds, and back, by columns, never row by row.
"""
# ruff: noqa: S608  every name that is put into a statement is quoted

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import StoreError, UsageError
from acep_approx.query.rules.syntax import Column, Holds, Table
from acep_approx.rules.words import schema_of

DECLARED: dict[Holds, str] = {
    "int": "INTEGER",
    "float": "REAL",
    "text": "TEXT",
    "bool": "INTEGER",
    "time": "TIMESTAMP",
}
"""What a column is declared as, which decides how SQLite keeps what other tools write there."""
_DIGIT = "[0-9]"
_SHAPE = "-".join((_DIGIT * 4, _DIGIT * 2, _DIGIT * 2)) + " " + ":".join([_DIGIT * 2] * 3) + "." + _DIGIT * 6
_FITS: dict[Holds, str] = {
    "int": "typeof({0}) = 'integer'",
    "float": "typeof({0}) = 'real'",
    "text": "typeof({0}) = 'text'",
    "bool": "typeof({0}) = 'integer' AND {0} IN (0, 1)",
    "time": f"typeof({{0}}) = 'text' AND {{0}} GLOB '{_SHAPE}'",
}
OURS = "acep_"
"""What the names of tables with our own notes begin with."""
MOST_COLUMNS = 2000
"""Of a table, in SQLite."""


def quoted(name: str) -> str:
    """A name as SQL takes any name, words of SQL included.

    Examples
    --------
    >>> quoted("order")
    '"order"'
    """
    return '"' + name.replace('"', '""') + '"'


def fits(column: Column, *, is_key: bool = False) -> str:
    r"""The condition that a value is one which a column can hold.

    Examples
    --------
    >>> fits(Column("n", "int"))
    '"n" IS NULL OR typeof("n") = \'integer\''
    """
    condition = _FITS[column.holds].format(quoted(column.name))
    return condition if is_key else f"{quoted(column.name)} IS NULL OR {condition}"


def create(table: Table) -> str:
    """The statement that makes a table."""
    lines = []
    for column in table.columns:
        is_key = column.name in table.key
        needed = " NOT NULL" if is_key else ""
        condition = fits(column, is_key=is_key)
        lines.append(f"{quoted(column.name)} {DECLARED[column.holds]}{needed} CHECK ({condition})")
    lines.append(f"PRIMARY KEY ({listed(table.key)})")
    inside = ",\n  ".join(lines)
    # without a rowid a key may be any value but NULL, even a single number, and there is one tree instead of two
    return f"CREATE TABLE {quoted(table.name)} (\n  {inside}\n) WITHOUT ROWID"


def upsert(table: Table) -> str:
    """The statement that writes a row, given as ``schema_of`` orders it.

    Not ``INSERT OR REPLACE``, which would delete other rows where a user has made a unique index.
    """
    names = schema_of(table).names
    sets = ", ".join(f"{quoted(column.name)} = excluded.{quoted(column.name)}" for column in table.values)
    return (
        f"INSERT INTO {quoted(table.name)} ({listed(names)}) VALUES ({', '.join('?' * len(names))}) "
        f"ON CONFLICT ({listed(table.key)}) DO {f'UPDATE SET {sets}' if sets else 'NOTHING'}"
    )


def delete(table: Table) -> str:
    """The statement that deletes the row of a key."""
    return f"DELETE FROM {quoted(table.name)} WHERE " + " AND ".join(f"{quoted(name)} = ?" for name in table.key)


def select(table: Table) -> str:
    """The statement that reads all rows, in the order of the key."""
    return f"SELECT {listed(schema_of(table).names)} FROM {quoted(table.name)} ORDER BY {listed(table.key)}"


def unfit(table: Table, column: Column) -> str:
    """The statement that reads the key, and a value of a column, of a row where it does not fit."""
    condition = fits(column, is_key=column.name in table.key)
    names = listed([*table.key, column.name])
    # where the condition is NULL, it is about a key that is NULL
    return f"SELECT {names} FROM {quoted(table.name)} WHERE NOT coalesce({condition}, 0) LIMIT 1"


def listed(names: Iterable[str]) -> str:
    """Names as a list in SQL."""
    return ", ".join(map(quoted, names))


def check_names(tables: Sequence[Table]) -> None:
    """Refuse what a file of SQLite cannot hold, although the rules are right.

    Raises
    ------
    UsageError
        ``ACEP-R213``: a name that belongs to SQLite or to us; two names that differ in upper and lower case alone;
        too many columns.
    """
    for table in tables:
        if table.name.lower().startswith((OURS, "sqlite_")):
            raise _no_table(f"a file has tables of its own whose names begin like {table.name!r}", "rename the table")
        _tell_apart("tables", [other.name for other in tables])
        _tell_apart(f"columns of table {table.name!r}", [column.name for column in table.columns])
        if len(table.columns) > MOST_COLUMNS:
            raise _no_table(
                f"table {table.name!r} has {len(table.columns):,} columns, SQLite takes {MOST_COLUMNS:,}",
                "make two tables of it",
            )


def _tell_apart(what: str, names: Sequence[str]) -> None:
    for one, other in combinations(names, 2) if len({name.lower() for name in names}) < len(names) else ():
        if one.lower() == other.lower():
            raise _no_table(f"two {what}, {one!r} and {other!r}, are one name in SQL", "rename one of them")


def _no_table(message: str, hint: str) -> UsageError:
    return UsageError(
        f"these rules cannot be kept in a file: {message}", code="ACEP-R213", hint=f"{hint}, or run without a file"
    )


EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds of the years 1 to 9999, which is what four digits can say."""


def bound(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as SQLite takes them.

    Raises
    ------
    StoreError
        ``ACEP-R215``: a time that a file cannot hold.

    Examples
    --------
    >>> from datetime import datetime
    >>> bound(pa.chunked_array([[datetime(2024, 3, 1, 10), None]], pa.timestamp("us")))
    ['2024-03-01 10:00:00.000000', None]
    """
    if pa.types.is_timestamp(column.type):
        bounds = pc.min_max(column.cast(pa.int64())).as_py()
        if bounds["min"] is not None and not EARLIEST <= bounds["min"] <= bounds["max"] <= LATEST:
            raise StoreError(
                "a time lies outside the years 1 to 9999, and cannot be kept in a file",
                code="ACEP-R215",
                hint="keep such a time as a whole number, in a column of type int",
            )
        column = column.cast(pa.string())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values: list[Any] = column.to_pylist()
    return values


def rows_of(columns: Sequence[pa.ChunkedArray]) -> Iterator[tuple[Any, ...]]:
    """Rows as ``executemany`` takes them."""
    return zip(*map(bound, columns), strict=True)


def table_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows as SQLite gives them, as a table.

    Raises
    ------
    pyarrow.ArrowInvalid
        A text is not the time that it should be.

    Examples
    --------
    >>> table_of([(1, "2024-03-01 10:00:00.000000")], pa.schema({"n": pa.int64(), "t": pa.timestamp("us")})).to_pylist()
    [{'n': 1, 't': datetime.datetime(2024, 3, 1, 10, 0)}]
    """
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([_array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema)


def _array(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(wanted):
        times = pa.array(values, pa.string()).cast(wanted)
        if pc.any(pc.less(times.cast(pa.int64()), EARLIEST)).as_py():
            raise pa.ArrowInvalid("a time lies before the year 1")
        return times
    if pa.types.is_boolean(wanted):
        return pa.array(values, pa.int8()).cast(wanted)
    return pa.array(values, wanted)
