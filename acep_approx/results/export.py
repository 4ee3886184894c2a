"""Results for other libraries: as a stream of Arrow, which polars, DuckDB and pyarrow read, and as a polars frame."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep_approx.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars as pl


def reader_of(tables: Iterator[pa.Table]) -> pa.RecordBatchReader:
    """A stream of tables as a reader of record batches; they are made as they are read.

    Where the type of a column is not known before the first event comes, they are all made at once.

    Parameters
    ----------
    tables : iterator of pyarrow.Table
        The first one, which may be empty, shows the columns.
    """
    first = next(tables, pa.table({}))
    if any(pa.types.is_null(field.type) for field in first.schema):
        found = pa.concat_tables([first, *tables], promote_options="permissive")
        return found.to_reader()
    return pa.RecordBatchReader.from_batches(first.schema, _batches(first.schema, chain([first], tables)))


def _batches(schema: pa.Schema, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from _of_types(schema, table).to_batches()


def _of_types(schema: pa.Schema, table: pa.Table) -> pa.Table:
    """A table in the types that were told to who reads it."""
    if table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a column got another type while the stream ran: {error}",
            code="ACEP-D068",
            hint="take all results at once: to_arrow()",
        ) from error


_KNOWN = frozenset(("errors", "start", "end", "missing", "times"))


def to_polars(table: pa.Table) -> pl.DataFrame:
    """A table as a polars frame.

    Raises
    ------
    UsageError
        ``ACEP-U149``: polars is not installed.
    DataError
        ``ACEP-D157``: polars has no such type.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise UsageError("to_polars() needs polars", code="ACEP-U149", hint="pip install polars") from error
    try:
        frame: Any = pl.from_arrow(table)
    except pl.exceptions.ComputeError as error:
        columns = ", ".join(f"{field.name!r} {field.type}" for field in table.schema if field.name not in _KNOWN)
        raise DataError(
            f"polars does not take all of these columns: {columns}: {error}",
            code="ACEP-D157",
            hint="take them with to_arrow() or to_pandas(), or leave out of the query what polars does not know",
        ) from error
    made: pl.DataFrame = frame
    return made
