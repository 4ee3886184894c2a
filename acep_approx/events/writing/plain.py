"""Columns as texts for people."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import can_be_text, in_python


def plain_text(column: pa.Array, separator: str) -> pa.Array:
    """A column as strings for people and CSV; NULL stays NULL.

    Parameters
    ----------
    column : pyarrow.Array
        Of any type.
    separator : str
        Put between the items of a list.
    """
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return _times(column)
    if pa.types.is_list(type_) and can_be_text(type_.value_type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), separator)
    return column.cast(pa.string()) if can_be_text(type_) else values_as_json(column, is_inside=False)


def values_as_json(column: pa.Array, *, is_inside: bool) -> pa.Array:
    """Values one by one: slow, for what has no faster way. Where they stand alone, texts have no quotes."""
    texts = []
    for value in map(_plain, in_python(column)):
        is_bare = value is None or (isinstance(value, str) and not is_inside)
        texts.append(value if is_bare else json.dumps(value, ensure_ascii=False))
    return pa.array(texts, pa.string())


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def with_times_as_text(column: pa.Array) -> pa.Array:
    """A nested column with times within it as texts, as ``plain_text`` writes them; any other as it is.

    Examples
    --------
    >>> with_times_as_text(pa.array([[0], None], pa.list_(pa.timestamp("s", "UTC")))).to_pylist()
    [['1970-01-01T00:00:00Z'], None]
    """
    return _inner(column) if pa.types.is_nested(column.type) and _has_times(column.type) else column


def _has_times(type_: pa.DataType) -> bool:
    if pa.types.is_nested(type_):
        return any(_has_times(type_.field(number).type) for number in range(type_.num_fields))
    return bool(pa.types.is_timestamp(type_) or pa.types.is_time(type_))


def _inner(column: pa.Array) -> pa.Array:
    type_, is_null = column.type, column.is_null()
    if pa.types.is_timestamp(type_):
        return _times(column)
    if pa.types.is_time(type_):
        return column.cast(pa.string())
    if pa.types.is_struct(type_) and type_.num_fields:
        names = [type_.field(number).name for number in range(type_.num_fields)]
        return pa.StructArray.from_arrays([_inner(one) for one in column.flatten()], names=names, mask=is_null)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
        ends = pc.cumulative_sum(lengths)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
        return pa.ListArray.from_arrays(offsets, _inner(column.flatten()), mask=is_null)
    return column


def _times(column: pa.Array) -> pa.Array:
    """ISO-8601, with as many decimals as there are; with a zone always in UTC, and no database of zones is asked."""
    naive = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit)).cast(pa.string())
    text = pc.replace_substring(naive, " ", "T", max_replacements=1)
    text = pc.replace_substring_regex(text, r"\.0+$|(\.\d*[1-9])0+$", r"\1")
    return pc.binary_join_element_wise(text, "Z", "") if column.type.tz else text
