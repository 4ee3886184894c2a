"""Tables as others read them: as text (JSON lines, CSV), whole columns at a time; as Parquet; as frames of pandas."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError
from acep_approx.events.columns import can_be_text, in_python, is_list
from acep_approx.events.reading.widening import common_schema, stacked
from acep_approx.events.time import PER_SECOND

if TYPE_CHECKING:
    import pandas as pd

ROWS = 65_536
"""Rows of a row group: small tables are gathered, for each one written would be a row group of its own."""
_FINE = pa.time64("ns")


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
    if pa.types.is_duration(type_):
        return _durations(column)
    if pa.types.is_list(type_) and can_be_text(type_.value_type):
        lists = column.cast(pa.list_(pa.string()))
        if lists.values.null_count:  # a NULL within a list would make it NULL
            lists = pa.ListArray.from_arrays(lists.offsets, lists.values.fill_null(""), mask=lists.is_null())
        return pc.binary_join(lists, separator)
    return column.cast(pa.string()) if can_be_text(type_) else values_as_json(column, is_inside=False)


def values_as_json(column: pa.Array, *, is_inside: bool) -> pa.Array:
    """Values one by one: slow, for what has no faster way. Where they stand alone, texts have no quotes."""
    texts = []
    for value in map(_plain, in_python(column)):
        is_bare = value is None or (isinstance(value, str) and not is_inside)
        texts.append(value if is_bare else json.dumps(value, ensure_ascii=False))
    return pa.array(texts, pa.string())


def _plain(value: Any) -> Any:
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
    return bool(pa.types.is_timestamp(type_) or pa.types.is_time(type_) or pa.types.is_duration(type_))


def _inner(column: pa.Array) -> pa.Array:
    type_, is_null = column.type, column.is_null()
    if pa.types.is_timestamp(type_):
        return _times(column)
    if pa.types.is_duration(type_):
        return _durations(column)
    if pa.types.is_time(type_):
        return column.cast(pa.string())
    if pa.types.is_struct(type_) and type_.num_fields:
        names = [type_.field(number).name for number in range(type_.num_fields)]
        return pa.StructArray.from_arrays([_inner(one) for one in column.flatten()], names=names, mask=is_null)
    if is_list(type_):
        lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
        ends = pc.cumulative_sum(lengths)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
        return pa.ListArray.from_arrays(offsets, _inner(column.flatten()), mask=is_null)
    return column


def _times(column: pa.Array) -> pa.Array:
    """ISO-8601, with as many decimals as there are; with a zone always in UTC, and no database of zones is asked."""
    naive = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit)).cast(pa.string())
    text = pc.replace_substring(naive, " ", "T", max_replacements=1)
    text = _without_zeros(text)
    return pc.binary_join_element_wise(text, "Z", "") if column.type.tz else text


def _without_zeros(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, r"\.0+$|(\.\d*[1-9])0+$", r"\1")


def _durations(column: pa.Array) -> pa.Array:
    """Hours, minutes and seconds, with as many decimals as there are: what SQL and pandas read as a length of time.

    Examples
    --------
    >>> _durations(pa.array([101_000_000, -500_000, 93_600_000_000, None], pa.duration("us"))).to_pylist()
    ['00:01:41', '-00:00:00.5', '26:00:00', None]
    """
    unit, ticks = column.type.unit, column.cast(pa.int64())
    size, per_hour = pc.abs(ticks), 3600 * PER_SECOND[unit]
    hours = pc.divide(size, per_hour)
    clock = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    rest = pc.subtract(size, pc.multiply(hours, per_hour))
    rest = (rest.cast(pa.int32()) if unit in ("s", "ms") else rest).cast(clock).cast(pa.string())
    sign = pc.if_else(pc.less(ticks, 0), "-", "")
    padded = pc.utf8_lpad(hours.cast(pa.string()), 2, "0")
    return pc.binary_join_element_wise(sign, padded, _without_zeros(pc.utf8_slice_codeunits(rest, 2)), "")


def json_lines(table: pa.Table) -> pa.Buffer:
    r"""The rows of a table as JSON lines.

    Times are ISO-8601 strings, durations hours, minutes and seconds, lists are arrays; NULL, and what JSON has no
    number for (NaN), is ``null``. Bytes are the text that Python has for them.

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
    r"""The rows of a table as CSV: times as in ISO-8601, durations as ``hh:mm:ss``, lists joined with ``;``.

    NULL is an empty value, within a list too. Objects, lists of objects and lists of lists are JSON.

    Examples
    --------
    >>> bytes(csv_lines(pa.table({"errors": [1, 0], "missing": [["b", "c"], []], "a": [None, 5]})))
    b'1,b;c,\n0,"",5\n'
    """
    pieces: list[pa.Array | pa.Scalar] = []
    for _, column in _columns(table):
        items = column.type.value_type if pa.types.is_list(column.type) else column.type
        text = plain_text(column, ";") if _is_plain(items) else values_as_json(column, is_inside=False)
        type_ = column.type  # below: of digits and signs alone
        is_bare = pa.types.is_integer(type_) or pa.types.is_timestamp(type_) or pa.types.is_duration(type_)
        pieces += [*([pa.scalar(",")] if pieces else []), text if is_bare else _csv(text)]
    return _joined([*pieces, pa.scalar("\n")], table.num_rows, null="")


def csv_header(names: Sequence[str]) -> bytes:
    """The first line of a CSV file with these columns."""
    return ",".join(_csv(pa.array(list(names), pa.string())).to_pylist()).encode() + b"\n"


def _columns(table: pa.Table) -> list[tuple[str, pa.Array]]:
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
    if pa.types.is_list(type_):
        return bool(pa.types.is_integer(type_.value_type) or pa.types.is_string(type_.value_type))
    return can_be_text(type_)


def _needs_escapes(column: pa.ListArray) -> bool:
    items = column.flatten()
    if items.null_count or not pa.types.is_string(items.type):
        return bool(items.null_count)
    return bool(pc.any(pc.match_substring_regex(items, r'["\\\x00-\x1f]')).as_py())


def _json_list(column: pa.Array) -> pa.Array:
    quote = '"' if pa.types.is_string(column.type.value_type) else ""
    inside = pc.binary_join(column.cast(pa.list_(pa.string())), f"{quote}, {quote}")
    full = pc.binary_join_element_wise(f"[{quote}", inside, f"{quote}]", "")
    return pc.if_else(pc.equal(pc.list_value_length(column), 0), "[]", full)


def _csv(text: pa.Array) -> pa.Array:
    needs = pc.or_(pc.match_substring_regex(text, '[",\r\n]'), pc.equal(text, ""))
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
    return pc.if_else(needs, quoted, text)


def _joined(pieces: list[pa.Array | pa.Scalar], rows: int, null: str) -> pa.Buffer:
    if not rows:
        return pa.py_buffer(b"")
    lines = pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement=null)
    everything = pa.LargeListArray.from_arrays(pa.array([0, rows]), lines)
    return pc.binary_join(everything, "")[0].as_buffer()


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


def gathered_table(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables as one; one that has columns even where no row was found."""
    parts = list(tables)
    filled = [part for part in parts if part.num_rows] or parts[:1]
    return stacked(filled) if filled else pa.table({})


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A table as a DataFrame; times of day in nanoseconds, which Python has not, stay those of Arrow."""
    import pandas as pd

    frame: pd.DataFrame = table.to_pandas(types_mapper=lambda type_: pd.ArrowDtype(type_) if type_ == _FINE else None)
    return frame
