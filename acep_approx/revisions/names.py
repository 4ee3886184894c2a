"""Names of events, from the column of ids: a name stays the same when the type of the column changes.

A file may begin with ids that look like numbers and go on with texts; then the column becomes one of texts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import can_be_told_apart, decoded, in_python, plain_type, to_numpy
from acep_approx.kernels.arithmetic import MIX
from acep_approx.kernels.words import Words, words_of_numbers

NULL = MIX
_LOW, _END = -(2**63), 2**64
"""Which whole numbers have words of their own."""


def check_ids(name: str | None, schema: pa.Schema) -> None:
    """Refuse a column of ids, if there is one, whose values are no single ones.

    Raises
    ------
    DataError
        ``ACEP-D151``.
    """
    if name is not None and not can_be_told_apart(plain_type(schema.field(name).type)):
        raise DataError(
            f"the column {name!r} has the type {schema.field(name).type}, which cannot name events",
            code="ACEP-D151",
            hint="name events by a column of texts or numbers: id='COLUMN' (--id COLUMN)",
        )


def names_of(column: pa.Array) -> list[Hashable]:
    """The names of events: equal for whole numbers and the same as text, and where they are not a number."""
    column = decoded(column)
    if pa.types.is_integer(column.type):
        return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_floating(column.type):
        return [None if value is None else _text_of(value) for value in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def words_of_ids(column: pa.Array) -> tuple[Words, Words]:
    """Two words that stand for each name; names that ``names_of`` calls equal have equal words, in any process."""
    column = decoded(column)
    if pa.types.is_integer(column.type):
        is_there = to_numpy(pc.is_valid(column)) if column.null_count else None
        high, low = words_of_whole(to_numpy(pc.fill_null(column, 0)).astype(np.int64))
        return (high, low) if is_there is None else (high * is_there, low * is_there)
    if not pa.types.is_string(plain_type(column.type)) and not pa.types.is_floating(column.type):
        return words_of(column)
    coded = column.dictionary_encode()
    values = [value if isinstance(value, str) else _text_of(value) for value in coded.dictionary.to_pylist()]
    high, low = words_of(pa.array(values, pa.string()))
    whole = [_whole(value) for value in values]
    at = np.flatnonzero([value is not None for value in whole])
    if len(at):
        high, low = high.copy(), low.copy()
        some = np.array([value % 2**64 for value in whole if value is not None], np.uint64)
        high[at], low[at] = words_of_whole(some.view(np.int64))
    codes = to_numpy(pc.fill_null(coded.indices, len(values)).cast(pa.int64()))
    return np.append(high, np.uint64(0))[codes], np.append(low, np.uint64(0))[codes]


def words_of(column: pa.Array) -> tuple[Words, Words]:
    """Two words for each value of any type; equal values of one type have equal words, in any process."""
    coded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    digests = [blake2b(repr(value).encode(), digest_size=16).digest() for value in in_python(coded.dictionary)]
    words = np.frombuffer(b"".join([*digests, bytes(16)]), np.uint64).reshape(-1, 2)
    codes = to_numpy(pc.fill_null(coded.indices, len(digests)).cast(pa.int64()))
    return words[codes, 0], words[codes, 1]


def mixed(values: Words) -> Words:
    """Words with all bits mixed (Steele, Lea, Flood, OOPSLA 2014: SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def words_of_whole(values: Ints) -> tuple[Words, Words]:
    """Two words for each whole number; one from 2^63 on stands as the negative one of the same bits."""
    high, low = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    for piece in words_of_numbers.pieces(len(values)):
        words_of_numbers(values[piece], high[piece], low[piece])
    return high, low


def _text_of(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value.is_integer() else repr(value)


def _whole(text: str) -> int | None:
    """The whole number that a text is written as, if it is one and there is no other way to write it."""
    if not text.removeprefix("-").isdecimal() or not text.isascii():
        return None
    value = int(text) if len(text) < 21 else _END
    return value if _LOW <= value < _END and str(value) == text else None
