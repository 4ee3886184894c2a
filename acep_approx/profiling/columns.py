"""What is in each column: its type, what is missing, how many different values, examples, range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import can_be_told_apart, decoded, is_bytes, plain_type
from acep_approx.profiling.distinct import DistinctValues
from acep_approx.profiling.formatting import shown

EXAMPLES = 3
FREQUENT = 12
"""Values that are listed with their counts."""


@dataclass(frozen=True)
class ColumnProfile:
    """What is in a column.

    Attributes
    ----------
    name, type : str
    missing : int
        Rows without a value: null or NaN.
    distinct : int or None
        Different values; None where they were not counted (lists and structs).
    is_exact : bool
        Whether ``distinct`` was counted; else it is an estimate, right to about 2%.
    examples : tuple of str
        The most frequent values where they are few, else the first ones.
    least, most : str or None
        The range, of numbers and times.
    frequent : tuple of (str, int)
        The most frequent values with their counts, where all were counted.
    """

    name: str
    type: str
    missing: int
    distinct: int | None
    is_exact: bool
    examples: tuple[str, ...]
    least: str | None
    most: str | None
    frequent: tuple[tuple[str, int], ...]


class ColumnScan:
    """What is known of a column, batch by batch."""

    def __init__(self, name: str, type_: pa.DataType) -> None:
        self.name = name
        self.type = type_
        self.missing = 0
        self.values = DistinctValues()
        self.is_counted = not pa.types.is_nested(type_)
        self._examples: list[Any] = []
        self._least: Any = None
        self._most: Any = None

    def add(self, column: pa.Array) -> None:
        """Take in a batch."""
        if pa.types.is_null(self.type):
            self.type = plain_type(column.type)  # of a column that begins with nulls
            self.is_counted = not pa.types.is_nested(self.type)
        present = _present(column)
        self.missing += len(column) - len(present)
        if not len(present):
            return
        self.is_counted &= not is_bytes(present.type) and can_be_told_apart(present.type)
        if not _are_in_calendar(present):
            present = present.cast(pa.string())
            self.is_counted, self._least, self._most = False, None, None
        if not self.is_counted:
            self._examples += present.slice(0, EXAMPLES - len(self._examples)).to_pylist()
            return
        counted = pc.value_counts(present)
        values, counts = counted.field(0), counted.field(1)
        if len(self._examples) < EXAMPLES:
            self._examples += [v for v in values.slice(0, EXAMPLES).to_pylist() if v not in self._examples]
        self._widen_range(values)
        self.values.add(values, counts)

    def _widen_range(self, values: pa.Array) -> None:
        type_ = values.type
        is_ordered = (pa.types.is_primitive(type_) or pa.types.is_decimal(type_)) and not pa.types.is_interval(type_)
        if not is_ordered or pa.types.is_boolean(type_):
            return
        is_length = pa.types.is_duration(type_)  # which Arrow cannot compare
        found = pc.min_max(values.cast(pa.int64()) if is_length else values)
        least, most = (found[name].cast(type_).as_py() for name in ("min", "max"))
        self._least = least if self._least is None else min(self._least, least)
        self._most = most if self._most is None else max(self._most, most)

    def profile(self) -> ColumnProfile:
        """What was found."""
        frequent = tuple((shown(value), count) for value, count in self.values.most_frequent(FREQUENT))
        is_few = frequent and self.values.count <= FREQUENT
        return ColumnProfile(
            name=self.name,
            type=str(self.type),
            missing=self.missing,
            distinct=self.values.count if self.is_counted else None,
            is_exact=self.values.is_exact,
            examples=tuple(value for value, _ in frequent[:EXAMPLES])
            if is_few
            else tuple(shown(value) for value in self._examples[:EXAMPLES]),
            least=None if self._least is None else shown(self._least),
            most=None if self._most is None else shown(self._most),
            frequent=frequent,
        )


def plain_values(column: pa.Array) -> pa.Array:
    """A column without its dictionary, texts in the one layout that Arrow computes with, also those that are bytes."""
    plain = decoded(column)
    if is_bytes(plain.type):
        try:
            return plain.cast(pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:  # no texts in UTF-8
            return plain.cast(plain_type(plain.type))
    return plain.cast(_computable(plain_type(plain.type)))


def _computable(type_: pa.DataType) -> pa.DataType:
    """The type itself, or the wider one of its kind that Arrow computes with."""
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal32(type_) or pa.types.is_decimal64(type_):
        return pa.decimal128(type_.precision, type_.scale)
    return type_


def _are_in_calendar(values: pa.Array) -> bool:
    """Whether Python has all of these, where they are times; its years are those from 1 to 9999."""
    if not (pa.types.is_timestamp(values.type) or pa.types.is_date(values.type)):
        return True
    try:
        pc.min_max(values).as_py()
    except (OverflowError, ValueError):
        return False
    return True


def _present(column: pa.Array) -> pa.Array:
    """The values that are there, plain; times in microseconds of UTC, which Python can show without pandas."""
    present = plain_values(column).drop_null()
    if pa.types.is_floating(present.type):
        return present.filter(pc.invert(pc.is_nan(present)))
    for is_kind, shown_as in (
        (pa.types.is_timestamp, pa.timestamp("us")),
        (pa.types.is_duration, pa.duration("us")),
        (pa.types.is_time64, pa.time64("us")),
    ):
        if is_kind(present.type):
            return present.cast(shown_as, safe=False)
    return present
