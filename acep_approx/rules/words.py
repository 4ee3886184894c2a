"""Values of tables as 64-bit words, and back: whole numbers, bits of floats, codes of texts, truths, microseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.keys import KeyCodes
from acep_approx.kernels.rules.rows import NOT_WHOLE, PASSED
from acep_approx.query.rules.syntax import Column, Holds, Table

ARROW: dict[Holds, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us"),
}
"""The Arrow type of the columns of a table."""


def schema_of(table: Table) -> pa.Schema:
    """The columns of rows as they travel: those of the key, then the others."""
    return pa.schema([(column.name, ARROW[column.holds]) for column in (*table.keys, *table.values)])


class Texts:
    """Codes of the texts in a store; those that no row holds any more are forgotten from time to time."""

    def __init__(self) -> None:
        self.codes = KeyCodes()

    def encode(self, texts: pa.Array) -> Ints:
        """The code of each text; -1 where it is NULL."""
        return self.codes.encode([texts])

    def find(self, texts: pa.Array) -> Ints:
        """The code of each text that some row may hold; -1 for NULL and for all others, which get no code."""
        if pa.types.is_null(texts.type):
            return np.full(len(texts), -1, np.int64)
        return self.codes.find(texts)

    def decode(self, codes: Ints) -> pa.Array:
        """The texts of codes; NULL for -1."""
        if not len(self.codes):
            return pa.nulls(len(codes), pa.string())
        return self.codes.values(codes)[0]


def as_held(values: pa.Array, holds: Holds) -> pa.Array:
    """Values of an expression with the type of a column that they are compared with; NULL where it cannot hold them.

    Examples
    --------
    >>> as_held(pa.array([2.0, 2.5, None]), "int").to_pylist()
    [2, None, None]
    """
    wanted = ARROW[holds]
    if isinstance(values, pa.DictionaryArray):
        if holds == "text":
            return values
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), wanted)
    if holds == "int" and pa.types.is_floating(values.type):
        numbers, ok = _whole(values)[:2]
        return to_arrow(numbers, ok)
    if holds == "time" and pa.types.is_string(values.type):
        return values.cast(pa.timestamp("us"))
    return values.cast(wanted, safe=False)


def to_words(values: pa.Array, holds: Holds, texts: Texts) -> tuple[Ints, Bools, Ints]:
    """Words of values that are written to a column, where they are not NULL, and why one cannot be written (0: it can).

    Returns
    -------
    words : int64, shape (values,)
    ok : bool, shape (values,)
    failed : int64, shape (values,)
    """
    none = np.zeros(len(values), np.int64)
    if pa.types.is_floating(values.type) and holds == "int":
        return _whole(values)
    values = as_held(values, holds)
    if holds == "text":
        codes = texts.encode(values)
        return codes, codes >= 0, none
    ok = to_numpy(values.is_valid())
    if holds == "float":
        numbers = to_numpy(values.fill_null(0.0)).astype(np.float64)
        ok = ok & ~np.isnan(numbers)
        return np.where(ok, numbers, 0.0).view(np.int64), ok, none
    if holds == "bool":
        return to_numpy(values.fill_null(False)).astype(np.int64), ok, none
    return to_numpy(pc.fill_null(values.cast(pa.int64()), 0)).copy(), ok, none


def _whole(values: pa.Array) -> tuple[Ints, Bools, Ints]:
    floats = to_numpy(values.cast(pa.float64()).fill_null(np.nan))
    ok = ~np.isnan(floats)
    fits = ok & (np.abs(floats) < 2.0**63)
    numbers = np.where(fits, floats, 0.0).astype(np.int64)
    failed = np.where(ok & ~fits, PASSED, np.where(fits & (numbers != floats), NOT_WHOLE, 0)).astype(np.int64)
    return numbers, ok & (failed == 0), failed


def from_words(words: Ints, ok: Bools, holds: Holds, texts: Texts) -> pa.Array:
    """What stands in a column, as Arrow has it."""
    if holds == "text":
        return texts.decode(np.where(ok, words, -1))
    if holds == "float":
        return to_arrow(words, ok).view(pa.float64())
    if holds == "bool":
        return to_arrow(words, ok).cast(pa.bool_())
    return to_arrow(words, ok).cast(ARROW[holds])


def default_of(column: Column, texts: Texts) -> tuple[int, bool]:
    """The word that a column begins with, and whether it is not NULL."""
    value: Any = None if column.default is None else column.default.value
    if value is None:
        return 0, False
    if column.holds == "float":
        value = float(value)
    if column.holds == "time":
        array = pa.array([value], pa.string()).cast(pa.timestamp("us"))
    else:
        array = pa.array([value], ARROW[column.holds])
    words, ok, _ = to_words(array, column.holds, texts)
    return int(words[0]), bool(ok[0])
