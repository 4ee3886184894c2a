"""Values of Arrow as Python values that SQLite binds, and back: by columns, never row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import StoreError

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
