"""What the ways of writing events as text share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from acep_approx.events.reading.widening import WRITTEN

FIRST_BYTES = 1 << 16
"""Of a block, in which values show what they can be."""


def with_type(schema: pa.Schema, name: str, type_: pa.DataType) -> pa.Schema:
    """The schema with another type of one column."""
    return schema.set(schema.get_field_index(name), pa.field(name, type_))


def as_text(schema: pa.Schema, name: str) -> pa.Schema:
    """The schema with a column of numbers as text, because one would not come back from its number."""
    return schema.set(schema.get_field_index(name), pa.field(name, pa.string(), metadata=WRITTEN))


def is_blank(data: bytes) -> bool:
    """Whether there is nothing to read."""
    return not data or data.isspace()


def finer_times(schema: pa.Schema) -> pa.Schema:
    """Whole seconds in the first rows say nothing about later ones: read times in microseconds."""
    fields: list[tuple[str, Any]] = []
    for field in schema:
        coarse = pa.types.is_timestamp(field.type) and field.type.unit == "s"
        fields.append((field.name, pa.timestamp("us", tz=field.type.tz) if coarse else field.type))
    return pa.schema(fields)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
