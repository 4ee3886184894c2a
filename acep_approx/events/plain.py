"""Columns as texts for people."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


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
    if pa.types.is_list(type_):
        return pc.binary_join(column.cast(pa.list_(pa.string())), separator)
    return column.cast(pa.string())


def _times(column: pa.Array) -> pa.Array:
    """ISO-8601, with as many decimals as there are; with a zone always in UTC, and no database of zones is asked."""
    naive = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit)).cast(pa.string())
    text = pc.replace_substring(naive, " ", "T", max_replacements=1)
    text = pc.replace_substring_regex(text, r"\.0+$|(\.\d*[1-9])0+$", r"\1")
    return pc.binary_join_element_wise(text, "Z", "") if column.type.tz else text
