"""Values that no operator reads, such as lists and times of day, as texts and back: runs carry them to results."""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterable
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import decoded, is_bytes

_ESCAPED = "surrogateescape"  # bytes that are UTF-8 have the text that they are
_IS_COUNT = (pa.types.is_time, pa.types.is_date, pa.types.is_timestamp, pa.types.is_duration)
_IS_LIST = (
    pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view,
    pa.types.is_large_list_view,
)  # fmt: skip
as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def to_texts(column: pa.Array) -> list[str | None]:
    """The texts of values; equal ones have one text, NULL has none.

    Parameters
    ----------
    column : pyarrow.Array
        Of any type but unions.

    Returns
    -------
    list of str or None
        Bytes as UTF-8, others as JSON. See ``from_texts``.

    Examples
    --------
    >>> to_texts(pa.array([[1, 2], None, []]))
    ['[1,2]', None, '[]']
    """
    values = _plain(column)
    return values if is_bytes(column.type) else [None if one is None else as_json(one) for one in values]


def from_texts(texts: Iterable[str | None], type_: pa.DataType) -> pa.Array:
    """The values that ``to_texts`` wrote."""
    if not is_bytes(type_):
        texts = [None if text is None else json.loads(text) for text in texts]
    storage = _storage(type_)
    found = pa.array([_read(value, storage) for value in texts], storage)
    return found if storage.equals(type_) else pa.ExtensionArray.from_storage(type_, found)


def in_order(column: pa.Array) -> pa.Array:
    """What a column of results is put in order by: its values, or their texts where Arrow has no order."""
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    if pa.types.is_null(column.type):
        return column.cast(pa.bool_())
    is_plain = not isinstance(column.type, pa.BaseExtensionType) and not pa.types.is_nested(column.type)
    if is_plain and not pa.types.is_interval(column.type):
        return column
    texts = [None if text is None else text.encode("utf-8", _ESCAPED) for text in to_texts(column)]
    return pa.array(texts, pa.binary())


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _plain(column: pa.Array) -> list[Any]:
    """Values as JSON has them: times as counts, decimals as texts, structs and entries of maps as lists."""
    column = decoded(column.storage if isinstance(column, pa.ExtensionArray) else column)
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))
    type_ = column.type
    found: list[Any]
    if is_bytes(type_):
        found = [None if one is None else one.decode("utf-8", _ESCAPED) for one in column.to_pylist()]
    elif any(is_kind(type_) for is_kind in _IS_COUNT):
        found = column.view(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist()
    elif pa.types.is_decimal(type_):
        found = column.cast(pa.string()).to_pylist()
    elif pa.types.is_struct(type_):
        fields, is_there = [_plain(field) for field in column.flatten()], column.is_valid().to_pylist()
        found = [[values[row] for values in fields] if one else None for row, one in enumerate(is_there)]
    elif any(is_kind(type_) for is_kind in _IS_LIST):
        inner, lengths = iter(_plain(column.flatten())), pc.list_value_length(column).to_pylist()
        found = [None if length is None else list(islice(inner, length)) for length in lengths]
    else:
        found = column.to_pylist()
    return found


def _read(value: Any, type_: pa.DataType) -> Any:  # noqa: PLR0911  one for each kind of type
    if value is None:
        return None
    type_ = _storage(type_)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return _read(value, type_.value_type)
    if is_bytes(type_):
        return value.encode("utf-8", _ESCAPED)
    if pa.types.is_decimal(type_):
        return decimal.Decimal(value)
    if pa.types.is_interval(type_):
        return pa.MonthDayNano(value)
    if pa.types.is_map(type_):
        return [(_read(key, type_.key_type), _read(item, type_.item_type)) for key, item in value]
    if pa.types.is_struct(type_):
        return [(field.name, _read(one, field.type)) for field, one in zip(type_, value, strict=True)]
    if any(is_kind(type_) for is_kind in _IS_LIST):
        return [_read(one, type_.value_type) for one in value]
    return value
