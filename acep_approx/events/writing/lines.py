"""Columns as text, whole columns at a time: JSON lines and CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import can_be_text
from acep_approx.events.writing.plain import plain_text, values_as_json, with_times_as_text


def json_lines(table: pa.Table) -> pa.Buffer:
    r"""The rows of a table as JSON lines.

    Times are ISO-8601 strings, lists are arrays; NULL, and what JSON has no number for (NaN), is ``null``. Bytes and
    durations are the text that Python has for them.

    Examples
    --------
    >>> bytes(json_lines(pa.table({"errors": [1], "missing": [["b"]], "a": [[3, 5]]})))
    b'{"errors": 1, "missing": ["b"], "a": [3, 5]}\n'
    """
    pieces: list[pa.Array | pa.Scalar] = []
    for name, column in _columns(table):
        pieces += [pa.scalar(f"{', ' if pieces else '{'}{json.dumps(name, ensure_ascii=False)}: "), _json(column)]
    return _joined([*pieces, pa.scalar("}\n")], table.num_rows, null="null")


def csv_lines(table: pa.Table) -> pa.Buffer:
    r"""The rows of a table as CSV: times as in ISO-8601, lists joined with ``;``, NULL as an empty value.

    Objects, and lists of anything but strings, whole numbers and times, are JSON.

    Examples
    --------
    >>> bytes(csv_lines(pa.table({"errors": [1, 0], "missing": [["b", "c"], []], "a": [None, 5]})))
    b'1,b;c,\n0,"",5\n'
    """
    pieces: list[pa.Array | pa.Scalar] = []
    for _, column in _columns(table):
        text = plain_text(column, ";") if _is_plain(column.type) else values_as_json(column, is_inside=False)
        is_bare = pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)  # digits and signs alone
        pieces += [*([pa.scalar(",")] if pieces else []), text if is_bare else _csv(text)]
    return _joined([*pieces, pa.scalar("\n")], table.num_rows, null="")


def csv_header(names: Sequence[str]) -> bytes:
    """The first line of a CSV file with these columns."""
    return ",".join(_csv(pa.array(list(names), pa.string())).to_pylist()).encode() + b"\n"


def _columns(table: pa.Table) -> list[tuple[str, pa.Array]]:
    """Names and whole columns, without dictionaries; times within lists and objects as texts."""
    found = []
    for name, chunked in zip(table.column_names, table.columns, strict=True):
        column = chunked.combine_chunks()
        if isinstance(column, pa.ExtensionArray) and pa.types.is_nested(column.type.storage_type):
            column = column.storage
        is_coded = pa.types.is_dictionary(column.type)
        found.append((name, column.dictionary_decode() if is_coded else with_times_as_text(column)))
    return found


def _json(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_floating(type_):
        wide = column.cast(pa.float32()) if pa.types.is_float16(type_) else column  # Arrow computes with no half floats
        return pc.if_else(pc.is_finite(wide), wide, None).cast(pa.string())
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_decimal(type_):
        return column.cast(pa.string())
    if not _is_plain(type_) or (pa.types.is_list(type_) and _needs_escapes(column)):
        return values_as_json(column, is_inside=True)
    if pa.types.is_list(type_):
        return _json_list(column)
    distinct = plain_text(column, ";").dictionary_encode()
    quoted = [json.dumps(value, ensure_ascii=False) for value in distinct.dictionary.to_pylist()]
    return pa.array(quoted, pa.string()).take(distinct.indices)


def _is_plain(type_: pa.DataType) -> bool:
    """Whether whole columns of a type can be turned into text at once."""
    if pa.types.is_list(type_):
        return bool(pa.types.is_integer(type_.value_type) or pa.types.is_string(type_.value_type))
    return can_be_text(type_) and not pa.types.is_duration(type_)


def _needs_escapes(column: pa.ListArray) -> bool:
    """Whether the items of lists (or that one is missing) make more of them than text between quotes."""
    items = column.flatten()
    if items.null_count or not pa.types.is_string(items.type):
        return bool(items.null_count)
    return bool(pc.any(pc.match_substring_regex(items, r'["\\\x00-\x1f]')).as_py())


def _json_list(column: pa.Array) -> pa.Array:
    """Lists of whole numbers, or of strings in which nothing must be escaped."""
    quote = '"' if pa.types.is_string(column.type.value_type) else ""
    inside = pc.binary_join(column.cast(pa.list_(pa.string())), f"{quote}, {quote}")
    full = pc.binary_join_element_wise(f"[{quote}", inside, f"{quote}]", "")
    return pc.if_else(pc.equal(pc.list_value_length(column), 0), "[]", full)


def _csv(text: pa.Array) -> pa.Array:
    """Values in quotes where they need them."""
    needs = pc.or_(pc.match_substring_regex(text, '[",\r\n]'), pc.equal(text, ""))
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
    return pc.if_else(needs, quoted, text)


def _joined(pieces: list[pa.Array | pa.Scalar], rows: int, null: str) -> pa.Buffer:
    """All rows in one buffer."""
    if not rows:
        return pa.py_buffer(b"")
    lines = pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement=null)
    everything = pa.LargeListArray.from_arrays(pa.array([0, rows]), lines)
    return pc.binary_join(everything, "")[0].as_buffer()
