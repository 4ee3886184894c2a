"""Types of columns: what a column holds whatever its encoding, and strings as codes into a dictionary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError

CODED = pa.dictionary(pa.int32(), pa.string())
"""The type of every string column of an event batch."""
MOST_COLUMNS = 10_000
"""Events with more columns are taken for a mistake: values stand in the place of names."""
_SHOWN = 40
_LISTED = 100


def plain_type(type_: pa.DataType) -> pa.DataType:
    """What a column holds, whatever its encoding.

    Parameters
    ----------
    type_ : pyarrow.DataType
        Any type.

    Returns
    -------
    pyarrow.DataType
        The type of a dictionary's values, or of runs; ``string`` for the other two layouts of strings, ``binary`` for
        views of bytes, also within structs and lists.

    Examples
    --------
    >>> plain_type(pa.dictionary(pa.int8(), pa.large_string()))
    DataType(string)
    """
    if pa.types.is_primitive(type_):
        return type_
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    return _without_views(type_) if pa.types.is_nested(type_) else type_


def _without_views(type_: pa.DataType) -> pa.DataType:
    """A nested type whose texts and bytes have layouts that all functions of Arrow take; polars nests views."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_inner(field.type)) for field in type_])
    for is_kind, make in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_kind(type_):
            return make(type_.value_field.with_type(_inner(type_.value_type)))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(type_.value_field.with_type(_inner(type_.value_type)), type_.list_size)
    return type_


def _inner(type_: pa.DataType) -> pa.DataType:
    is_view = pa.types.is_string_view(type_) or pa.types.is_binary_view(type_)
    return plain_type(type_) if is_view or pa.types.is_nested(type_) else type_


def is_bytes(type_: pa.DataType) -> bool:
    """Whether values of a plain type are bytes: texts, as some tools write them, or anything else."""
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(is_kind(type_) for is_kind in kinds)


def plain_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """The schema with plain types and without metadata; refuses two columns of one name, and too many.

    Parameters
    ----------
    schema : pyarrow.Schema
        Schema as stored.
    where : str
        File or object it belongs to, for the message.

    Returns
    -------
    pyarrow.Schema
        Same names, :func:`plain_type` of each type.

    Raises
    ------
    DataError
        ``ACEP-D015``: two columns have the same name; ``ACEP-D130``: there are too many.
    """
    refuse_many(schema.names, where)
    refuse_twins(schema.names, where)
    return _plain(schema)


@lru_cache(maxsize=64)
def _plain(schema: pa.Schema) -> pa.Schema:
    """Of small batches there are many with one schema."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def refuse_many(names: Sequence[str], where: str) -> None:
    """Raise ``ACEP-D130`` if there are more columns than events have."""
    if len(names) > MOST_COLUMNS:
        last = ", ".join(repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "...") for name in names[-3:])
        raise DataError(
            f"{where}: {len(names):,} different names of columns, and there may be more; the last ones are {last}; "
            f"events have {MOST_COLUMNS:,} columns at most",
            code="ACEP-D130",
            hint="names that differ from event to event are values: write them as such, "
            '{"name": "a", "value": 1}; '
            "or keep the columns that the query reads: jq -c '{ts, type}' FILE, cut -d, -f1-3 FILE",
        )


def refuse_twins(names: Iterable[str], where: str) -> None:
    """Raise ``ACEP-D015`` if a column name occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(
                f"{where}: two columns are named {name!r}",
                code="ACEP-D015",
                hint="rename one of them: a query could not tell which one it means",
            )
        seen.add(name)


def events_in_lists(schema: pa.Schema, name: str | None = None) -> str:
    """What to do where events seem to stand in a list of each row: the list, and a command that takes them out.

    Parameters
    ----------
    schema : pyarrow.Schema
    name : str, optional
        A column that is looked for; only lists whose objects have it count. Default: any list of objects.

    Returns
    -------
    str
        Empty where there is no such list; of lists within lists the innermost.

    Examples
    --------
    >>> record = pa.struct([("when", pa.int64())])
    >>> schema = pa.schema([("scopes", pa.list_(pa.struct([("logs", pa.list_(record))])))])
    >>> events_in_lists(schema, "when")
    'the events stand in the list scopes[].logs[]: take them out first: jq -c ...'
    """
    found = [path for path, names in _lists(schema, ()) if name is None or name in names]
    if not found:
        return ""
    path = max(found, key=lambda one: sum(part.endswith("[]") for part in one))
    last = json.dumps(path[-1].removesuffix("[]").rpartition(".")[2], ensure_ascii=False)  # of an object's field
    command = f"jq -c '.. | .{last}? | arrays | .[]' FILE > events.jsonl"
    return f"the events stand in the list {'.'.join(path)}: take them out first: {command}"


def _lists(fields: Iterable[pa.Field], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The lists of objects, at any depth, each as its path, and the names in its objects."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _lists(field.type, (*above, field.name))
        elif pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            path = (*above, f"{field.name}[]")
            yield path, [inner.name for inner in field.type.value_type]
            yield from _lists(field.type.value_type, path)


def missing_column(name: str, names: Iterable[str], *, hint: str | None = None) -> DataError:
    """The error for a column that is not there, with the ones that are and the closest name.

    Parameters
    ----------
    name : str
        The column asked for.
    names : iterable of str
        The columns there are.
    hint : str, optional
        What to do when no name is close.

    Returns
    -------
    DataError
        ``ACEP-D002``, to be raised by the caller.
    """
    from difflib import get_close_matches

    there = list(names)
    lowered = {n.lower(): n for n in there}
    ends = [n for n in lowered if n.endswith(f".{name.lower()}")]  # a field of an object
    close = ends or get_close_matches(name.lower(), lowered, n=1)
    return DataError(
        f"there is no column {name!r}; the columns are: {listed(there)}",
        code="ACEP-D002",
        hint=f"did you mean {lowered[close[0]]!r}?" if close else hint,
    )


def listed(names: Sequence[str]) -> str:
    """Names for a message: the first hundred."""
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return (", ".join(names[:_LISTED]) or "(none)") + more


def encode_text(column: pa.Array) -> pa.Array:
    """Strings as codes into a dictionary of the values of this batch; other columns plain.

    A dictionary that is given is kept, unless it is much longer than the column: later stages work once per
    dictionary value.

    Parameters
    ----------
    column : pyarrow.Array
        Column of one batch.

    Returns
    -------
    pyarrow.Array
        ``dictionary<int32, string>`` for strings of any layout, else the column without its dictionary.

    Examples
    --------
    >>> encode_text(pa.array(["a", "b", "a"])).indices.to_pylist()
    [0, 1, 0]
    """
    if pa.types.is_primitive(column.type):
        return column
    plain = plain_type(column.type)
    is_text = pa.types.is_string(plain)
    if not is_text or not pa.types.is_dictionary(column.type):
        column = decoded(column)
        column = column if column.type.equals(plain) else column.cast(plain)
        return column.dictionary_encode() if is_text else column
    if len(column.dictionary) > 2 * len(column) + 64 or column.dictionary.null_count:
        return column.dictionary_decode().cast(pa.string()).dictionary_encode()
    if column.type.equals(CODED):
        return column
    codes, values = column.indices.cast(pa.int32()), column.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(codes, values)


def decoded(column: pa.Array) -> pa.Array:
    """A column without its dictionary or its runs; others as they are."""
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_binary_view(values.type):
        values = values.cast(pa.binary())  # Arrow takes nothing from views of bytes
        column = pa.DictionaryArray.from_arrays(column.indices, values)
    return column.dictionary_decode()


def decode_bytes(column: pa.Array, name: str) -> pa.Array:
    """Bytes as the texts that they are in UTF-8, encoded as ``encode_text`` does.

    Parameters
    ----------
    column : pyarrow.Array
        Bytes of any layout, plain or dictionary-encoded.
    name : str
        Of the column, for the message.

    Raises
    ------
    DataError
        ``ACEP-D025``: they are not UTF-8.
    """
    column = decoded(column)
    try:
        return encode_text(column.cast(pa.binary()).cast(pa.string()))
    except pa.ArrowInvalid as error:
        raise DataError(
            f"column {name!r} holds bytes that are not UTF-8, and the query reads it as text",
            code="ACEP-D025",
            hint="write the column as text, for example in hexadecimal digits, or as numbers",
        ) from error


def empty(size: int) -> npt.NDArray[np.int64]:
    """Room for a column of results: in Arrow's memory, which is used again where that of numpy is given back.

    Pages that come from the system anew cost five times what it takes to write them.
    """
    return np.frombuffer(pa.allocate_buffer(8 * size), np.int64)


def taken(values: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``values[places]`` as a column of results; see ``empty``."""
    return np.take(values, places, out=empty(len(places)), mode="clip")  # any other mode copies


def to_arrow(values: npt.NDArray[np.int64], bound: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Integers of numpy as an Arrow column that shares their memory.

    ``pa.array`` would do, but it imports pandas, which costs half a second.

    Parameters
    ----------
    values : numpy.ndarray of int64
        Any integers.
    bound : numpy.ndarray of bool, optional
        Where there is a value; elsewhere is NULL. Default: everywhere.

    Returns
    -------
    pyarrow.Array
        ``int64``.
    """
    valid = None if bound is None or bound.all() else pa.py_buffer(np.packbits(bound, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])


def to_lists(offsets: npt.NDArray[np.int32], values: pa.Array) -> pa.ListArray:
    """Lists of ``values``, without nulls: list ``i`` has ``values[offsets[i] : offsets[i + 1]]``."""
    places = pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)])
    return pa.ListArray.from_arrays(places, values)


def to_numpy(column: pa.Array) -> npt.NDArray[Any]:
    """A column of numbers or booleans without nulls as numpy, without a copy for numbers.

    ``Array.to_numpy`` would do, but it imports pandas.

    Parameters
    ----------
    column : pyarrow.Array
        Integers, floats or booleans; no nulls.

    Returns
    -------
    numpy.ndarray
        Read-only view, or a new array of bool.
    """
    if pa.types.is_boolean(column.type):
        return np.from_dlpack(column.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(column)


def text_codes(column: pa.Array) -> npt.NDArray[np.int64]:
    """The codes of a dictionary-encoded column.

    Parameters
    ----------
    column : pyarrow.DictionaryArray
        With int32 codes, as :func:`encode_text` gives.

    Returns
    -------
    numpy.ndarray of int64
        Positions in ``column.dictionary``; -1 for null.

    Examples
    --------
    >>> text_codes(pa.array(["a", None, "b", "a"]).dictionary_encode()).tolist()
    [0, -1, 1, 0]
    """
    indices = column.indices
    if indices.null_count == 0:
        return to_numpy(indices).astype(np.int64)
    stored = np.frombuffer(indices.buffers()[1], np.int32)[indices.offset : indices.offset + len(indices)]
    return np.where(to_numpy(indices.is_valid()), stored, -1).astype(np.int64)
