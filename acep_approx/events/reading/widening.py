"""One type for values that come in parts: what a column is when a file, a chunk or a batch has more to say about it.

A column of nothing but nulls has an open type: the first value gives it one. Numbers and times become wider, never
narrower, and only where every value stays exactly what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from acep_approx.events.columns import decoded, encode_text, plain_type

WRITTEN = {b"acep.as_written": b""}
"""Metadata of a column of text whose values look like numbers, of which one would not come back as it is written.

Whole numbers that were read from the same text before become texts with it, as they were written: those do come back.
"""
_UNITS = ("s", "ms", "us", "ns")


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of two columns.

    Parameters
    ----------
    first, second : pyarrow.DataType
        Plain ones; see ``columns.plain_type``.

    Returns
    -------
    pyarrow.DataType or None
        Of null and another the other; of two kinds of numbers the wider, of whole numbers and floats the float; of
        dates and times the finer time, in UTC where one of them has another zone than the other. None: they do not go
        together.

    Examples
    --------
    >>> common_type(pa.null(), pa.string()), common_type(pa.int64(), pa.float64())
    (DataType(string), DataType(double))
    >>> common_type(pa.int64(), pa.string()) is None
    True
    """
    if first.equals(second):
        return first
    times = [type_ for type_ in (first, second) if pa.types.is_timestamp(type_)]
    if times and all(type_ in times or pa.types.is_date(type_) for type_ in (first, second)):
        zones = {type_.tz for type_ in times}
        unit = max((type_.unit for type_ in times), key=_UNITS.index)
        return pa.timestamp(unit, tz=zones.pop() if len(zones) == 1 else "UTC")
    both = [pa.schema([("column", type_)]) for type_ in (first, second)]
    try:
        return pa.unify_schemas(both, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


def is_as_written(field: pa.Field) -> bool:
    """Whether a field is marked as ``WRITTEN``."""
    return field.metadata is not None and WRITTEN.items() <= field.metadata.items()


def wider_text(known: pa.DataType, found: pa.Field) -> pa.DataType | None:
    """As ``common_type`` of values that come from one text: whole numbers become text where a field is ``WRITTEN``."""
    if pa.types.is_integer(known) and is_as_written(found):
        return pa.string()
    return common_type(known, plain_type(found.type))


def with_marks(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch whose fields are marked as ``WRITTEN`` where they are so in a schema."""
    marked = {field.name for field in schema if is_as_written(field)}
    if not marked:
        return batch
    fields = [field.with_metadata(WRITTEN) if field.name in marked else field for field in batch.schema]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def as_wider(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """A column as one of a wider plain type; strings are encoded.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value cannot be held exactly.
    """
    if plain_type(column.type).equals(type_):
        return column
    return encode_text(decoded(column).cast(type_))


def common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of the first schema in types that hold those of all; where there is none, in the first type.

    Whole numbers and texts of one stream are texts: see ``WRITTEN``.
    """
    types = {field.name: plain_type(field.type) for field in schemas[0]}
    for schema in schemas[1:]:
        for name, known in types.items():
            field = schema.field(name)
            is_text = pa.types.is_integer(known) and pa.types.is_string(plain_type(field.type))
            types[name] = pa.string() if is_text else common_type(known, plain_type(field.type)) or known
    return pa.schema(types.items())


def one_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Batches of the same columns as one table, in their common types; strings are encoded.

    Parameters
    ----------
    batches : sequence of pyarrow.RecordBatch
        At least one, as one stream gives them.
    """
    schema = common_schema([batch.schema for batch in batches])
    columns = [[encode_text(as_wider(batch.column(field.name), field.type)) for field in schema] for batch in batches]
    parts = [pa.RecordBatch.from_arrays(arrays, names=schema.names) for arrays in columns]
    return pa.Table.from_batches(parts).unify_dictionaries()


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables one after the other, with the columns of all; each column has the common type of its parts.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        At least one. Where a table lacks a column, its rows have NULL there.

    Examples
    --------
    >>> stacked([pa.table({"a": [1]}), pa.table({"a": [0.5], "b": ["x"]})]).to_pydict()
    {'a': [1.0, 0.5], 'b': [None, 'x']}
    """
    if len(tables) == 2 and not tables[0].num_rows and tables[0].schema.equals(tables[1].schema):
        return tables[1]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowTypeError:  # Arrow does not join times with a zone to times without one
        types: dict[str, pa.DataType] = {}
        for field in (field for table in tables for field in table.schema):
            types[field.name] = common_type(types.get(field.name, field.type), field.type) or types[field.name]
        cast = [table.cast(pa.schema([(name, types[name]) for name in table.column_names])) for table in tables]
        return pa.concat_tables(cast, promote_options="permissive")
