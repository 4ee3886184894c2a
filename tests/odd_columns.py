"""Columns of every type that Arrow, pandas, numpy and Python have, as all values, with nulls, all null, and empty."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

ROWS = 8
FORMS = ("values", "with nulls", "all null", "empty")
DAY = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001  (a zone is one of the odd things)
WHOLE = [3, 1, 4, 1, 5, 9, 2, 6]
TEXTS = ["A", "B", "A", "C", "B", "A", "B", "é"]


def _arrow_types() -> dict[str, tuple[pa.DataType, list[Any]]]:
    """Every type of Arrow that is made of values of Python, with such values."""
    times = [DAY + dt.timedelta(hours=number) for number in range(ROWS)]
    days = [time.date() for time in times]
    clocks = [dt.time(number, 30) for number in range(ROWS)]
    lengths = [dt.timedelta(seconds=number) for number in WHOLE]
    months = [pa.MonthDayNano([number, 1, 5]) for number in WHOLE]
    lists = [[number, None] for number in WHOLE]
    pairs = [{"p": number, "q": text} for number, text in zip(WHOLE, TEXTS, strict=True)]
    bits = [bytes([number, 255]) for number in WHOLE]
    found: dict[str, tuple[pa.DataType, list[Any]]] = {"null": (pa.null(), [None] * ROWS)}
    found["bool"] = pa.bool_(), [number % 2 == 0 for number in WHOLE]
    for make in (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64):
        found[make.__name__] = make(), WHOLE
    found["uint64 beyond int64"] = pa.uint64(), [2**64 - number for number in WHOLE]
    for make in (pa.float16, pa.float32, pa.float64):
        found[make.__name__] = make(), [np.float16(number) for number in WHOLE]
    found["float64 odd"] = pa.float64(), [float("nan"), 1.5, float("inf"), -0.0, 1e300, -float("inf"), 2.0, 0.1]
    for width, make in ((5, pa.decimal32), (9, pa.decimal64), (30, pa.decimal128), (70, pa.decimal256)):
        found[make.__name__] = make(width, 2), [decimal.Decimal(number) / 4 for number in WHOLE]
    for make in (pa.string, pa.large_string, pa.string_view):
        found[make.__name__] = make(), TEXTS
    for make in (pa.binary, pa.large_binary, pa.binary_view):
        found[make.__name__] = make(), bits
    found["binary of texts"] = pa.binary(), [text.encode() for text in TEXTS]
    found["binary(2)"] = pa.binary(2), bits
    found["date32"], found["date64"] = (pa.date32(), days), (pa.date64(), days)
    for unit in ("s", "ms"):
        found[f"time32 {unit}"] = pa.time32(unit), clocks
    for unit in ("us", "ns"):
        found[f"time64 {unit}"] = pa.time64(unit), clocks
    for unit in ("s", "ms", "us", "ns"):
        found[f"timestamp {unit}"] = pa.timestamp(unit), times
        found[f"duration {unit}"] = pa.duration(unit), lengths
    for zone in ("UTC", "Europe/Vienna", "+05:30"):
        found[f"timestamp {zone}"] = pa.timestamp("us", zone), [time.replace(tzinfo=dt.UTC) for time in times]
    found["timestamp far"] = pa.timestamp("s"), [2**40 + number for number in range(ROWS)]
    found["month_day_nano"] = pa.month_day_nano_interval(), months
    found["list"], found["large list"] = (pa.list_(pa.int64()), lists), (pa.large_list(pa.int64()), lists)
    found["fixed list"] = pa.list_(pa.int64(), 2), lists
    found["list view"] = pa.list_view(pa.int64()), lists
    found["large list view"] = pa.large_list_view(pa.int64()), lists
    found["list of views"] = pa.list_(pa.string_view()), [[text] for text in TEXTS]
    found["struct"] = pa.struct([("p", pa.int64()), ("q", pa.string())]), pairs
    found["empty struct"] = pa.struct([]), [{}] * ROWS
    found["list of structs"] = pa.list_(pa.struct([("p", pa.int64()), ("q", pa.string())])), [[pair] for pair in pairs]
    found["map"] = pa.map_(pa.string(), pa.int64()), [[(text, 1)] for text in TEXTS]
    return found


def _wrapped() -> dict[str, pa.Array]:
    """Types that wrap others: dictionaries, runs, extensions; and unions, each without a null of its own."""
    from pyarrow import DictionaryArray as Coded
    from pyarrow import RunEndEncodedArray as Runs

    codes, whole = pa.array([number % 3 for number in WHOLE], pa.int8()), pa.array(WHOLE)
    texts, few = pa.array(TEXTS), pa.array(["A", "B", "C"])
    kinds = pa.array([number % 2 for number in range(ROWS)], pa.int8())
    halves = pa.array([number // 2 for number in range(ROWS)], pa.int32())
    documents = pa.array(["1", "[2]", "{}", "null", '"x"', "1.5", "true", "[]"])
    ends = pa.array(range(1, ROWS + 1), pa.int32())
    storage = pa.array([uuid.UUID(int=number).bytes for number in WHOLE], pa.binary(16))
    pair = pa.array([[number, 1] for number in WHOLE], pa.list_(pa.int64(), 2))
    return {
        "dictionary of texts": Coded.from_arrays(codes, few),
        "dictionary of large texts": Coded.from_arrays(codes, few.cast(pa.large_string())),
        "dictionary of views": Coded.from_arrays(codes, few.cast(pa.string_view())),
        "dictionary of numbers": Coded.from_arrays(codes, pa.array([1, 2, 3])),
        "dictionary of lengths": Coded.from_arrays(codes, pa.array([1, 2, 3], pa.duration("s"))),
        "dictionary of bytes": Coded.from_arrays(codes, pa.array([b"\xff", b"B", b"C"])),
        "dictionary with null": Coded.from_arrays(codes, pa.array(["A", None, "C"])),
        "dictionary, unsigned": Coded.from_arrays(codes.cast(pa.uint64()), few),
        "runs of texts": Runs.from_arrays(ends, texts),
        "runs of numbers": Runs.from_arrays(ends, whole),
        "runs of lists": Runs.from_arrays(ends, pair),
        "sparse union": pa.UnionArray.from_sparse(kinds, [whole, texts]),
        "dense union": pa.UnionArray.from_dense(kinds, halves, [whole, texts]),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), storage),
        "json": pa.ExtensionArray.from_storage(pa.json_(), documents),
        "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), [2]), pair),
        "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([number % 2 for number in WHOLE], pa.int8())),
        "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "point", "somebody"), whole),
        "opaque without values": pa.ExtensionArray.from_storage(pa.opaque(pa.null(), "no", "body"), pa.nulls(ROWS)),
    }


def arrow_columns() -> dict[tuple[str, str], pa.Array]:
    """Columns of Arrow by their type and form."""
    found = {}
    for name, (type_, values) in _arrow_types().items():
        holes = [value if place % 3 else None for place, value in enumerate(values)]
        for form, some in zip(FORMS, (values, holes, [None] * ROWS, []), strict=True):
            found[name, form] = pa.array(some, type_)
    for name, column in _wrapped().items():
        found[name, "values"], found[name, "empty"] = column, column.slice(0, 0)
        if pa.types.is_union(column.type) or name == "opaque without values":
            continue
        if isinstance(column, pa.ExtensionArray):
            storage = column.storage
            found[name, "all null"] = pa.ExtensionArray.from_storage(column.type, pa.nulls(ROWS, storage.type))
            storage = storage.take(pa.array([None if place % 3 == 0 else place for place in range(ROWS)]))
            found[name, "with nulls"] = pa.ExtensionArray.from_storage(column.type, storage)
        else:
            found[name, "all null"] = pa.nulls(ROWS, column.type)
    return found


def pandas_columns() -> dict[tuple[str, str], Any]:
    """Columns of pandas by their type and form: what Arrow has no word for among them."""
    stamps = pd.date_range("2024-01-01", periods=ROWS, freq="h")
    whole = pd.array(WHOLE)
    columns: dict[str, Any] = {
        "sparse": pd.arrays.SparseArray(WHOLE),
        "sparse floats": pd.arrays.SparseArray([1.0, float("nan")] * 4),
        "nullable whole": pd.array([1, None] * 4, "Int64"),
        "nullable small": pd.array([1, None] * 4, "UInt8"),
        "nullable float": pd.array([1.5, None] * 4, "Float32"),
        "nullable truth": pd.array([True, None] * 4, "boolean"),
        "texts of pandas": pd.array(TEXTS, "string"),
        "texts of Arrow": pd.array(TEXTS, "string[pyarrow]"),
        "categories": pd.Categorical(TEXTS),
        "ordered categories": pd.Categorical(TEXTS, ordered=True),
        "categories of numbers": pd.Categorical(WHOLE),
        "categories of intervals": pd.cut(WHOLE, 3),
        "categories with gaps": pd.Categorical(["A", None] * 4),
        "periods": pd.period_range("2024-01", periods=ROWS, freq="M"),
        "intervals": pd.interval_range(0, ROWS),
        "intervals of times": pd.interval_range(stamps[0], periods=ROWS, freq="h"),
        "lengths": pd.to_timedelta(WHOLE, unit="s"),
        "times": stamps,
        "times with gaps": stamps.where(np.array(WHOLE) > 2),
        "times in a zone": stamps.tz_localize("Europe/Vienna"),
        "lengths of Arrow": pd.array(whole.astype("int64"), dtype=pd.ArrowDtype(pa.duration("s"))),
        "lists of Arrow": pd.array([[1]] * ROWS, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        "float16": np.array(WHOLE, np.float16),
        "complex": np.array(WHOLE, np.complex128),
        "void": pd.Series([np.void(b"ab")] * ROWS, dtype=object),
    }
    if np.dtype(np.longdouble) != np.dtype(np.float64):
        columns["long double"] = np.array(WHOLE, np.longdouble)
    objects: dict[str, list[Any]] = {name: [*values] for name, values in python_columns().items()}
    columns |= {f"objects: {name}": pd.Series(values, dtype=object) for name, values in objects.items()}
    columns["objects: frames"] = pd.Series([pd.DataFrame({"a": [1]})] * ROWS, dtype=object)
    found: dict[tuple[str, str], Any] = {}
    for name, column in columns.items():
        series = pd.Series(column).reset_index(drop=True)
        found[name, "values"], found[name, "empty"] = series, series.iloc[:0]
    found["objects: nothing", "all null"] = pd.Series([None] * ROWS, dtype=object)
    found["categories", "all null"] = pd.Series(pd.Categorical([None] * ROWS))
    found["lengths", "all null"] = pd.Series(pd.to_timedelta([None] * ROWS))
    found["nullable whole", "all null"] = pd.Series(pd.array([None] * ROWS, "Int64"))
    return found


def python_columns() -> dict[str, list[Any]]:
    """Values of Python, as dicts have them: of one type, and mixed."""
    return {
        "whole and text": [1, "x"] * 4,
        "whole and float": [1, 2.5] * 4,
        "truth and whole": [True, 5] * 4,
        "text and bytes": ["x", b"x"] * 4,
        "list and whole": [[1], 2] * 4,
        "lists of several types": [[1], ["x"]] * 4,
        "lists within lists": [[[1], []], [[2, 3]]] * 4,
        "dict and whole": [{"p": 1}, 2] * 4,
        "dicts": [{"p": 1, "q": "x"}, {"p": 2}] * 4,
        "dicts with odd names": [{1: 2}, {None: 3}] * 4,
        "date and time": [DAY.date(), DAY] * 4,
        "zoned and plain": [DAY, DAY.replace(tzinfo=dt.UTC)] * 4,
        "huge": [2**70, 1] * 4,
        "all huge": [2**70] * ROWS,
        "beyond int64": [2**63 + 5] * ROWS,
        "fractions": [decimal.Decimal("1.5"), decimal.Decimal("2.25")] * 4,
        "NaN as fraction": [decimal.Decimal("NaN"), decimal.Decimal(1)] * 4,
        "fraction and float": [decimal.Decimal("1.5"), 2.5] * 4,
        "lengths": [dt.timedelta(1)] * ROWS,
        "times of day": [dt.time(1)] * ROWS,
        "uuids": [uuid.UUID(int=number) for number in WHOLE],
        "sets": [{1}] * ROWS,
        "tuples": [(1, 2)] * ROWS,
        "objects": [object()] * ROWS,
        "complex": [2j] * ROWS,
        "arrays": [np.array([1, 2])] * ROWS,
        "square arrays": [np.ones((2, 2))] * ROWS,
        "scalars of numpy": [np.int64(5), np.float32(1.5)] * 4,
        "times of numpy": [np.datetime64("2024-01-01")] * ROWS,
        "scalars of Arrow": [pa.scalar(5)] * ROWS,
        "NA and NaT": [pd.NA, pd.NaT] * 4,
        "NaN alone": [float("nan")] * ROWS,
        "half a character": ["\ud800"] * ROWS,
        "bytes": [b"\xff\x00"] * ROWS,
        "nothing": [None] * ROWS,
        "classes": [int] * ROWS,
    }


def numpy_columns() -> dict[str, Any]:
    """Columns of an array of numpy with names."""
    kinds = ("i1", ">i4", "u8", "f2", "f4", "f8", ">f8", "?", "S2", "U2", "m8[s]", "c16", "O")
    found: dict[str, Any] = {kind: np.array(WHOLE).astype(kind) for kind in kinds}
    found["V2"] = np.frombuffer(b"ab" * ROWS, "V2")
    found["square"] = np.ones((ROWS, 2))
    found["M8[s]"], found["M8[D]"] = (np.array(WHOLE, "i8").astype(kind) for kind in ("M8[s]", "M8[D]"))
    found["M8 without unit"] = np.array(["NaT"] * ROWS, "M8")
    found["M8[Y]"] = np.array(["2024"] * ROWS, "M8[Y]")
    found["nested"] = np.zeros(ROWS, [("p", "i4"), ("q", "f8")])
    return found


def frames(others: dict[str, list[Any]], name: str) -> Iterator[tuple[str, Any]]:
    """Events whose column ``name`` is odd, of each kind of object; ``others`` are their other columns."""
    plain = {column: values for column, values in others.items() if column != name}
    for (kind, form), column in arrow_columns().items():
        rows = len(column)
        yield f"Arrow, {kind}, {form}", pa.table({key: values[:rows] for key, values in plain.items()} | {name: column})
    for (kind, form), series in pandas_columns().items():
        whole = pd.DataFrame(plain).iloc[: len(series)]
        yield f"pandas, {kind}, {form}", whole.assign(**{name: series})
    for kind, values in python_columns().items():
        columns = plain | {name: values}
        yield f"dicts, {kind}", [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for kind, array in numpy_columns().items():
        yield f"numpy, {kind}", _records(plain, name, array)


def _records(plain: dict[str, list[Any]], name: str, array: Any) -> Any:
    columns = {key: np.array(values) for key, values in plain.items()} | {name: array}
    types = [(key, values.dtype, values.shape[1:]) for key, values in columns.items()]
    records = np.zeros(ROWS, types)
    for key, values in columns.items():
        records[key] = values
    return records
