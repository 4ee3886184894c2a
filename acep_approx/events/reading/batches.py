"""Events in record batches: a list of them, or whatever gives one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import plain_schema, plain_type, unreadable, why_unreadable
from acep_approx.events.reading.frames import pieces
from acep_approx.events.reading.widening import as_wider, common_type

Part: TypeAlias = pa.RecordBatch | pa.Table


class BatchesEvents:
    """Record batches or tables, one after the other, as one stream.

    Parameters
    ----------
    first : sequence of pyarrow.RecordBatch or pyarrow.Table
        At least one. Together they say which columns there are, and their types; a batch that lacks a column has null
        there.
    others : iterator, optional
        What comes after them, read once; it may bring no other columns. None: all are there.

    Raises
    ------
    DataError
        ``ACEP-D066``, while reading: a batch has a column that ``first`` has not, or one of a type that does not go
        together with that of others.
    """

    def __init__(self, first: Sequence[Part], others: Iterator[Part] | None = None) -> None:
        known: dict[str, pa.Field] = {}
        for number, part in enumerate(first):
            for field in plain_schema(part.schema, f"batch {number}"):
                known[field.name] = _wider(known.get(field.name), field, number)
        self.schema = pa.schema(list(known.values()))
        self.reusable = others is None
        self.rows = sum(part.num_rows for part in first) if others is None else None
        self._first = first
        self._others: Iterable[Part] = () if others is None else others

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        parts = chain(self._first, self._others)
        yield from pieces(self._fitted(parts, schema), columns, batch_rows)

    def _fitted(self, parts: Iterable[Part], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        known = set(self.schema.names)
        for number, part in enumerate(parts):
            if extra := set(part.schema.names) - known:
                raise DataError(
                    f"batch {number} has the columns {', '.join(sorted(extra))}, and the first had not",
                    code="ACEP-D066",
                    hint="give the first batch all columns, with nulls where it has no values",
                )
            for batch in part.to_batches() if isinstance(part, pa.Table) else [part]:
                arrays = [_column(batch, field, number) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _column(batch: pa.RecordBatch, field: pa.Field, number: int) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    return as_wider(column, _together(field.name, field.type, plain_type(column.type), number))


def _wider(known: pa.Field | None, found: pa.Field, number: int) -> pa.Field:
    """A column with the type of two batches; types that do not go together are an error only where it is read."""
    if known is None or why_unreadable(known) or why_unreadable(found):
        return found if known is None or not why_unreadable(known) else known
    try:
        return pa.field(found.name, _together(found.name, known.type, found.type, number))
    except DataError as error:
        return unreadable(found.name, error.message, error.code)


def _together(name: str, known: pa.DataType, found: pa.DataType, number: int) -> pa.DataType:
    wider = common_type(known, found)
    if wider is None:
        raise DataError(
            f"column {name!r} is {known} so far, and {found} in batch {number}",
            code="ACEP-D066",
            hint="give the column one type in all batches",
        )
    return wider
