"""Types of columns: what a column holds whatever its encoding, and strings as codes into a dictionary."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from operator import is_
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.kernels.texts import code_texts
from acep_approx.without_pandas import leave_pandas_out

leave_pandas_out()  # before the first column is made

CODED = pa.dictionary(pa.int32(), pa.string())
"""The type of every string column of an event batch."""
UNREADABLE = b"acep.unreadable"
"""Where the metadata of a field says that its values make no column, and why: to read it is an error."""
CODE = b"acep.code"
"""Where it says which error that is."""
MOST_COLUMNS = 10_000
"""Events with more columns are taken for a mistake: values stand in the place of names."""
_PLAIN = frozenset(type_.id for type_ in (pa.string(), pa.int64(), pa.float64(), pa.timestamp("us"), pa.bool_()))
"""The types that most columns have, which are plain: this is asked about each column of each batch."""
_MANY, _MOST_DISTINCT, _LONG = 4096, 1024, 64
"""A kernel codes a column of at least ``_MANY`` texts, if at most ``_MOST_DISTINCT`` of them differ, and they have no
more than ``_LONG`` bytes on average."""
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
    if type_.id in _PLAIN or pa.types.is_primitive(type_):
        return type_
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    if _is_nothing(type_):
        return pa.null()
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


def unreadable(name: str, why: object, code: str = "ACEP-D018") -> pa.Field:
    """A column whose values are of several types, or of none that Arrow has: an error only where it is read.

    Until then its type is open, as that of a column without values.
    """
    return pa.field(name, pa.null(), metadata={UNREADABLE: str(why).encode(errors="replace"), CODE: code.encode()})


def why_unreadable(field: pa.Field) -> str:
    """Why a column cannot be read; empty: it can."""
    why: bytes = (field.metadata or {}).get(UNREADABLE, b"")
    return why.decode()


def readable(schema: pa.Schema) -> pa.Schema:
    """The columns that can be read."""
    if not any(map(why_unreadable, schema)):
        return schema
    return pa.schema([field for field in schema if not why_unreadable(field)], schema.metadata)


@lru_cache(maxsize=256)
def can_be_told_apart(type_: pa.DataType) -> bool:
    """Whether Arrow can tell which values of a plain type are equal: not of nested ones, nor of extensions."""
    return _can(type_, lambda column: column.dictionary_encode())


@lru_cache(maxsize=256)
def can_be_text(type_: pa.DataType) -> bool:
    """Whether Arrow can write values of a plain type as text, each as one value; bytes need not be text."""
    if pa.types.is_nested(getattr(type_, "storage_type", type_)) or is_bytes(type_):
        return False
    return _can(type_, lambda column: column.cast(pa.string()))


def _can(type_: pa.DataType, compute: Callable[[pa.Array], Any]) -> bool:
    try:
        compute(pa.nulls(0, type_))
    except pa.ArrowNotImplementedError:
        return False
    return True


def refuse_unreadable(schema: pa.Schema, names: Iterable[str]) -> None:
    """Raise ``ACEP-D018``, or the code of ``unreadable``, if one of these columns cannot be read."""
    for name in names:
        field = schema.field(name)
        if why := why_unreadable(field):
            raise DataError(
                f"column {name!r} holds values of several types, or of one that Arrow has not: {why}",
                code=field.metadata[CODE].decode(),
                hint="give the column one type: numbers, text or times",
            )


def is_list(type_: pa.DataType) -> bool:
    """Whether the values of a column are lists; views of lists are not."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """Whether values of a plain type are bytes: texts, as some tools write them, or anything else."""
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(is_kind(type_) for is_kind in kinds)


def plain_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """The schema with plain types; refuses two columns of one name, and too many.

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
    if any(field.metadata for field in schema):  # which says what cannot be read, and which the cache does not see
        return _plain.__wrapped__(schema)
    return _plain(schema)


@lru_cache(maxsize=64)
def _plain(schema: pa.Schema) -> pa.Schema:
    """Of small batches there are many with one schema."""
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    if why_unreadable(field):
        return field
    type_ = plain_type(field.type)
    return unreadable(field.name, f"it is of type {type_}") if _holds_unions(type_) else pa.field(field.name, type_)


def _holds_unions(type_: pa.DataType) -> bool:
    """Arrow computes nothing with columns of several types, alone or within others."""
    return pa.types.is_union(type_) or any(_holds_unions(type_.field(n).type) for n in range(type_.num_fields))


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
        return _coded(column) if is_text else column
    if len(column.dictionary) > 2 * len(column) + 64 or column.dictionary.null_count:
        return column.dictionary_decode().cast(pa.string()).dictionary_encode()
    if column.type.equals(CODED):
        return column
    codes, values = column.indices.cast(pa.int32()), column.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(codes, values)


def _coded(texts: pa.Array) -> pa.DictionaryArray:
    """Plain strings as ``dictionary_encode`` has them, in a third of its time where there are many of few."""
    if len(texts) < _MANY or texts.null_count:
        return texts.dictionary_encode()
    _, ends, data = texts.buffers()
    data = pa.py_buffer(b"") if data is None else data
    ends = np.asarray(_Memory(ends, np.int32))[texts.offset : texts.offset + len(texts) + 1]
    if int(ends[-1]) - int(ends[0]) > _LONG * len(texts):
        return texts.dictionary_encode()
    table, rows = np.zeros((3, 4 * _MOST_DISTINCT), np.int64), np.empty(_MOST_DISTINCT, np.int64)
    codes = np.frombuffer(pa.allocate_buffer(4 * len(texts)), np.int32)
    args = (ends, np.asarray(_Memory(data, np.int64)), np.asarray(_Memory(data, np.uint8)), *table, rows, codes)
    distinct = code_texts.if_compiled(*args)
    if distinct is None or distinct < 0:
        return texts.dictionary_encode()
    indices = pa.Array.from_buffers(pa.int32(), len(texts), [None, pa.py_buffer(codes)])
    return pa.DictionaryArray.from_arrays(indices, texts.take(to_arrow(rows[:distinct])), safe=False)


class _Memory:
    """Memory of Arrow as numpy writes to it, which it is not: kernels are compiled for one kind of arrays alone."""

    def __init__(self, buffer: pa.Buffer, kind: type) -> None:
        self._kept = buffer
        shape = (buffer.size // np.dtype(kind).itemsize,)
        self.__array_interface__ = {
            "data": (buffer.address, False), "shape": shape, "typestr": np.dtype(kind).str, "version": 3
        }  # fmt: skip


def decoded(column: pa.Array) -> pa.Array:
    """A column without its dictionary or its runs; others as they are."""
    column = _laid_out(column)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def in_python(column: pa.Array) -> list[Any]:
    """The values of a column; times beyond the years of Python, 1 to 9999, as text."""
    try:
        return to_list(column)
    except (OverflowError, ValueError):
        values: list[Any] = column.cast(pa.string()).to_pylist()
        return values


def to_list(column: pa.Array) -> list[Any]:
    """The values of a column, as ``to_pylist`` gives them: of times with a zone, that imports pandas."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is None or column.type.unit == "ns":
        values: list[Any] = column.to_pylist()
        return values
    zone = pa.lib.string_to_tzinfo(column.type.tz)
    times = column.cast(pa.timestamp(column.type.unit)).to_pylist()
    return [None if time is None else time.replace(tzinfo=UTC).astimezone(zone) for time in times]


def laid_out(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose columns have layouts that all functions of Arrow take: no runs, and no views."""
    given = batch.columns
    columns = [_laid_out(column) for column in given]
    if all(map(is_, columns, given)):
        return batch
    fields = [field.with_type(column.type) for field, column in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _laid_out(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_primitive(type_) or type_.equals(CODED):
        return column
    if pa.types.is_run_end_encoded(type_):
        return _laid_out(pc.run_end_decode(column))
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        return column.cast(plain_type(type_))
    if pa.types.is_dictionary(type_):
        values = _laid_out(column.dictionary)
        is_plain = values.type.equals(type_.value_type)
        return column if is_plain else pa.DictionaryArray.from_arrays(column.indices, values)
    return column.storage if _is_nothing(type_) else column


def _is_nothing(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.BaseExtensionType) and pa.types.is_null(type_.storage_type)


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
    """Room for a column of results, in memory that is used again.

    Pages that come from the system anew cost five times what it takes to write them. Arrow's usual pool gives pages
    back soon after a result was let go of; the allocator of the C library learns to keep them.
    """
    return np.frombuffer(pa.allocate_buffer(8 * size, memory_pool=pa.system_memory_pool()), np.int64)


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


_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
_TIMES: dict[object, pa.DataType] = {None: pa.timestamp("us"), UTC: pa.timestamp("us", "UTC")}
"""Types of values of Python that are all of one kind, as pyarrow guesses them; of times by their zone."""


def from_python(values: list[Any]) -> pa.Array:
    """Values of Python as a column, of the type that pyarrow guesses.

    ``pa.array`` would do, but to guess it imports pandas.
    """
    kinds, known = set(map(type, values)) - {type(None)}, None
    if kinds == {datetime} and "PYARROW_IGNORE_TIMEZONE" not in os.environ:
        zones = {value.tzinfo for value in values if value is not None}
        known = _TIMES.get(zones.pop()) if len(zones) == 1 else None
    elif len(kinds) == 1:
        known = _TYPES.get(kinds.pop())
    if known is not None:
        with suppress(OverflowError, ValueError):  # what it says of values that do not fit is said of its own guess
            return pa.array(values, known)
    return pa.array(values)


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


def integers(table: pa.Table, name: str) -> Ints:
    """A column without nulls of integers, or of times, which are ticks then."""
    found: Ints = to_numpy(table.column(name).combine_chunks().cast(pa.int64()))
    return found


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
