"""Tables as a Parquet file, whose columns may get their types late."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.reading.widening import common_schema

ROWS = 65_536
"""Rows of a row group: small tables are gathered, for each one written would be a row group of its own."""


class ParquetRows:
    """Writes tables; ``close`` must be called at the end.

    Parameters
    ----------
    sink : binary file
        Stays open.
    schema : pyarrow.Schema
        Columns and what is known of their types; the tables of the first row group may have wider ones.
    """

    def __init__(self, sink: BinaryIO, schema: pa.Schema) -> None:
        self._sink = sink
        self._schema = schema
        self._writer: Any = None
        self._gathered: list[pa.Table] = []
        self._rows = 0

    def write(self, table: pa.Table) -> None:
        """Write a table, now or later.

        Raises
        ------
        DataError
            ``ACEP-D024``: a column has another type than in the row groups that were written.
        """
        self._gathered.append(table)
        self._rows += table.num_rows
        if self._rows >= ROWS:
            self._flush()

    def close(self) -> None:
        """Write what was gathered; nothing more comes."""
        self._flush()
        assert self._writer is not None
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            others = [table.schema for table in self._gathered if not table.schema.equals(self._schema)]
            self._schema = common_schema([self._schema, *others]) if others else self._schema
            self._writer = pq.ParquetWriter(self._sink, self._schema)
        try:
            tables = [table.cast(self._schema) for table in self._gathered]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"after {ROWS:,} rows a column has got another type, which a Parquet file cannot take: {error}",
                code="ACEP-D024",
                hint="write CSV or JSON lines, or give the column one type in all events",
            ) from error
        self._writer.write_table(pa.concat_tables([self._schema.empty_table(), *tables]))
        self._gathered, self._rows = [], 0
