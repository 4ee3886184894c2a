"""Rows that users give a table: values of the type of their column, or an error; nothing is rounded, cut or guessed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError
from acep_approx.events.columns import to_numpy
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.rules.syntax import Column, Table
from acep_approx.rules.words import ARROW

_EXACT = 2**53
"""Whole numbers up to here are floats, too."""
_DIGITS = 15
"""Digits of decimal numbers that floats tell apart."""


def given(table: Table, column: Column, rows: pa.Table, *, required: bool) -> pa.Array | None:
    """A column of rows for a table, in its type; None where it is left out.

    Raises
    ------
    DataError
        ``ACEP-R110``: it is missing, or a value is of another type, or out of its range.
    """
    if column.name not in rows.column_names:
        if not required:
            return None
        raise DataError(
            f"the rows of table {table.name!r} have no column {column.name!r}",
            code="ACEP-R110",
            hint=f"they have {', '.join(rows.column_names) or 'none'}; a column with DEFAULT may be left out",
        )
    values = _plain(rows.column(column.name))
    try:
        return _in_type(values, column)
    except pa.ArrowException as error:
        raise DataError(
            f"the column {column.name!r} of table {table.name!r} is of type {values.type}, and a value of it is no "
            f"{column.holds}: {str(error).splitlines()[0]}",
            code="ACEP-R110",
            hint=f"give it values that are each {_VALUES[column.holds]}, or NULL",
        ) from error


def refuse_misspelt(table: Table, rows: pa.Table) -> None:
    """Refuse columns that a table has not where one of its own is left out: it may be that one.

    Raises
    ------
    DataError
        ``ACEP-R110``.
    """
    names = [column.name for column in table.columns]
    unknown = [name for name in rows.column_names if name not in names]
    missing = [name for name in names if name not in rows.column_names]
    if unknown and missing:
        near = did_you_mean(unknown[0], missing)
        raise DataError(
            f"the rows of table {table.name!r} have a column {unknown[0]!r}, which the table has not, and none called "
            f"{missing[0]!r}",
            code="ACEP-R110",
            hint=f"{near}its columns are {', '.join(names)}; rename the column, or leave it out",
        )


_VALUES = {
    "int": "a whole number of 64 bits",
    "float": "a number that a float holds exactly",
    "text": "a text in UTF-8, or a whole number",
    "bool": "TRUE or FALSE",
    "time": "a time of whole microseconds",
}


def _plain(column: Any) -> pa.Array:
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values


def _in_type(values: pa.Array, column: Column) -> pa.Array:
    """Values in the type of a column; raises ``pyarrow.ArrowException``."""
    type_, holds = values.type, column.holds
    if pa.types.is_null(type_) or not len(values):
        return pa.nulls(len(values), ARROW[holds])
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    if holds in ("int", "float") and is_number:
        return _whole(values) if holds == "int" else _floats(values)
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    is_bytes = pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_)
    if holds == "text" and (is_text or is_bytes or pa.types.is_integer(type_)):
        return values.cast(pa.string())
    if holds == "bool" and pa.types.is_boolean(type_):
        return values
    if holds == "time" and (is_text or pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
        return _times(values)
    raise pa.ArrowInvalid(f"{type_} is not {holds}")


def _whole(values: pa.Array) -> pa.Array:
    """Numbers without a fraction as whole numbers; NaN is NULL."""
    return _without_nan(values).cast(pa.int64())


def _floats(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        digits = pc.replace_substring_regex(values.cast(pa.string()), "E.*|[^0-9]", "")
        if (pc.max(pc.utf8_length(pc.utf8_trim(digits, "0"))).as_py() or 0) > _DIGITS:
            raise pa.ArrowInvalid(f"one has more than {_DIGITS} digits")
    found = _without_nan(values).cast(pa.float64(), safe=False)
    if pa.types.is_integer(values.type):
        numbers = to_numpy(pc.fill_null(values, 0))
        large = (numbers > _EXACT) | (numbers < -_EXACT) if values.type != pa.uint64() else numbers > np.uint64(_EXACT)
        if any(int(float(number)) != number for number in numbers[large].tolist()):
            raise pa.ArrowInvalid("a whole number beyond 2^53 is no float")
    return found


def _without_nan(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    values = values.cast(pa.float64())
    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)


def _times(values: pa.Array) -> pa.Array:
    """Times in UTC without a zone, as tables have them; a text without an offset is in UTC."""
    if not pa.types.is_timestamp(values.type) and not pa.types.is_date(values.type):
        values = values.cast(pa.string())
        has_offset = pc.any(pc.match_substring_regex(values, r"T.*(Z|[+-]\d\d:?\d\d)$")).as_py()
        values = values.cast(pa.timestamp("us", "UTC" if has_offset else None))
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    return values.cast(pa.timestamp("us", zone)).cast(pa.timestamp("us"))
