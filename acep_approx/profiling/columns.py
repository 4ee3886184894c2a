"""What is in each column: its type, what is missing, how many different values, examples, range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import can_be_told_apart, decoded, is_bytes, plain_type, to_numpy
from acep_approx.profiling.formatting import shown

EXACT = 10_000
"""Different values that are counted one by one."""
KEPT = 4_096
"""Least hash values that are kept of more: the estimate is right to within 1.6% (one standard deviation)."""
_WHOLE = float(2**64)
Hashes = npt.NDArray[np.uint64]
EXAMPLES = 3
FREQUENT = 12
"""Values that are listed with their counts."""


class DistinctValues:
    """The different values of a column, batch by batch, in bounded memory.

    Notes
    -----
    Up to ``EXACT`` values are kept with their counts. Of more the least ``KEPT`` values of a hash are kept, and their
    number follows from how close these lie: the estimator of Bar-Yossef et al., "Counting distinct elements in a data
    stream" (RANDOM 2002).

    Examples
    --------
    >>> values = DistinctValues()
    >>> values.add(pa.array(["a", "b", "a"]), pa.array([5, 1, 2]))
    >>> values.count, values.is_exact, values.most_frequent(1)
    (2, True, [('a', 7)])
    """

    def __init__(self) -> None:
        self._counts: dict[Any, int] | None = {}
        self._least: Hashes = np.zeros(0, np.uint64)

    @property
    def is_exact(self) -> bool:
        """Whether ``count`` is a count, and no estimate."""
        return self._counts is not None

    @property
    def count(self) -> int:
        """How many there are; an estimate of two digits where they are many."""
        if self._counts is not None:
            return len(self._counts)
        estimate = (KEPT - 1) * _WHOLE / float(self._least[-1])
        return max(EXACT, int(float(f"{estimate:.1e}")))

    def add(self, values: pa.Array, counts: pa.Array) -> None:
        """Take in the different values of a batch, without null, and how often each occurs."""
        if self._counts is not None:
            known = self._counts
            for value, count in zip(values.to_pylist(), counts.to_pylist(), strict=True):
                known[value] = known.get(value, 0) + count
            if len(known) <= EXACT:
                return
            values, self._counts = pa.array(list(known), values.type), None
        merged = np.union1d(self._least, hashes(values))
        self._least = merged[:KEPT]

    def most_frequent(self, most: int) -> list[tuple[Any, int]]:
        """The most frequent values with their counts, those that came first before others; none where they are many."""
        return sorted((self._counts or {}).items(), key=lambda item: -item[1])[:most]


def hashes(values: pa.Array) -> Hashes:
    """A hash of each value; none is null.

    Examples
    --------
    >>> one, two, three = hashes(pa.array(["ab", "ba", "ab"])).tolist()
    >>> one == three, one == two
    (True, False)
    """
    type_ = values.type
    if pa.types.is_floating(type_):
        return _mixed(to_numpy(values.cast(pa.float64())).view(np.uint64))
    if pa.types.is_integer(type_):
        return _mixed(to_numpy(values).astype(np.int64, copy=False).view(np.uint64))
    if pa.types.is_temporal(type_):
        return hashes(values.cast(pa.int32() if type_.bit_width == 32 else pa.int64()))
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_binary(type_)
    texts = values if is_text else pa.array([str(value) for value in values.to_pylist()], pa.string())
    return _of_texts(texts.cast(pa.large_binary()))


def _of_texts(values: pa.Array) -> Hashes:
    """The sum over the bytes of a text of a hash of each and its place: texts of a batch at once."""
    if not len(values):
        return np.zeros(0, np.uint64)
    lengths = to_numpy(pc.binary_length(values)).astype(np.int64)
    ends = np.cumsum(lengths)
    data = np.frombuffer(b"".join(values.to_pylist()), np.uint8).astype(np.uint64)
    places = np.arange(len(data)) - np.repeat(ends - lengths, lengths)
    sums = np.concatenate(
        (np.zeros(1, np.uint64), np.cumsum(_mixed(data + (places.astype(np.uint64) << np.uint64(8)))))
    )
    return _mixed(sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64))


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele et al. 2014): every bit depends on every bit."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


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
    type_ = plain_type(plain.type)
    if pa.types.is_float16(type_):  # Arrow computes with the wider ones of their kinds
        type_ = pa.float32()
    elif pa.types.is_decimal32(type_) or pa.types.is_decimal64(type_):
        type_ = pa.decimal128(type_.precision, type_.scale)
    return plain.cast(type_)


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
