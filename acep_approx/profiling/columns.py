"""What is in each column: type, what is missing, different values, examples, range; and what the times tell."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import can_be_told_apart, decoded, is_bytes, plain_type, to_numpy
from acep_approx.events.roles import UNITS, is_number
from acep_approx.events.time import FIRST, PER_SECOND, plausible_unit, ticks
from acep_approx.events.time_formats import TimeFormat, digits_format
from acep_approx.profiling.formatting import distance, moment, shown, window
from history.coverage.sketch import finalized

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
    """Numbers of which every bit depends on every bit."""
    return finalized(values + np.uint64(0x9E3779B97F4A7C15))


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


# --- the times: their unit, their span, what is late, what is simultaneous, where nothing came --------------------

KEPT_TIMES = 4_000_000
"""Times that are kept, for gaps and distances."""
MOST_UNREADABLE = 1_000
"""Values that are no times; beyond these no more are looked for."""
ISO = r"^\d{4}-\d\d-\d\d"
"""How times of ISO-8601 begin."""
GAPS = 3
"""Largest gaps that are told."""
LARGE = 3
"""Times the typical distance: what is less is no gap."""
LAST_YEAR = 9999
"""That Python's dates can hold."""


@dataclass(frozen=True)
class Gap:
    """A piece of time without events.

    Attributes
    ----------
    after : str
        The time of the event before it.
    length : str
    """

    after: str
    length: str


@dataclass(frozen=True)
class TimeProfile:
    """What is known of the times of events.

    Attributes
    ----------
    column : str
    unit : str or None
        What the numbers count, as far as it was said or is plausible; None: times of their own, or plain numbers.
    is_time : bool
        Whether they are real time, so that windows are said in seconds or days.
    first, last, span : str
        Of the readable times.
    as_units : tuple of (str, str)
        What the first of the numbers would be as a time, by unit; empty where they are times of their own, or small.
    digits : str or None
        The format in which the numbers are times written as digits, if they are.
    late : int
        Events whose time is before that of an event before them.
    latest : str
        By how much at most.
    patience : str
        A watermark delay that none of them exceeds.
    is_reversed : bool
        Whether the newest event stands first.
    ties : int
        Events that share their time with another one.
    typical : str
        Half of the events follow the one before within this distance.
    gaps : tuple of Gap
        The largest ones, the largest first.
    kept : int
        Events whose times were kept for ``ties``, ``typical`` and ``gaps``: the first ones, if they are more.
    unreadable : int
        Rows without a time that can be read.
    is_counted : bool
        Whether these are all; from a thousand values on that are no times no more are looked for.
    reason : str
        Of the first of them.
    """

    column: str
    unit: str | None
    is_time: bool
    first: str
    last: str
    span: str
    as_units: tuple[tuple[str, str], ...]
    digits: str | None
    late: int
    latest: str
    patience: str
    is_reversed: bool
    ties: int
    typical: str
    gaps: tuple[Gap, ...]
    kept: int
    unreadable: int
    is_counted: bool
    reason: str


def as_units(number: float) -> list[tuple[str, str]]:
    """What a large number would be as a time, by unit.

    Examples
    --------
    >>> as_units(1_700_000_000_000)[2:]
    [('ms', '2023-11-14 22:13:20'), ('s', 'the year 55,841')]
    """
    found = []
    for unit in UNITS:
        seconds = number / PER_SECOND[unit]
        year = 1970 + seconds / 31_556_952
        when = moment(round(seconds * 10**6), is_time=True) if year < LAST_YEAR else f"the year {year:,.0f}"
        found.append((unit, when))
    return found


@dataclass
class TimeScan:
    """What is known of the times of events, batch by batch."""

    column: str
    unit: str | None
    is_time: bool
    time_format: TimeFormat | None = None
    rows: int = 0
    late: int = 0
    latest: int = 0
    rising: bool = False
    missing: int = 0
    unreadable: int = 0
    reason: str = ""
    hint: str = ""
    newest: int | None = None
    units: tuple[tuple[str, str], ...] = ()
    _kept: list[Ints] = field(default_factory=list)

    @property
    def is_counted(self) -> bool:
        """Whether all values that are no times were looked for."""
        return self.unreadable < MOST_UNREADABLE

    def add(self, column: pa.Array) -> Ints:
        """Take in a batch; gives the ticks, and where there is none the least number."""
        if self.rows == 0 and is_number(plain_type(column.type)):
            first = column.filter(_is_present(column)).slice(0, 1)
            number = abs(first[0].as_py()) if len(first) else 0
            self.units = tuple(as_units(number)) if number >= FIRST / 10 else ()
        values, is_read = self._read(column)
        known = values[is_read]
        if len(known):
            start = known[0] if self.newest is None else self.newest
            before = np.maximum.accumulate(np.insert(known[:-1], 0, start))
            self.late += int((known < before).sum())
            self.latest = max(self.latest, int((before - known).max()))
            self.rising |= bool((known > before).any())
            self.newest = max(int(before[-1]), int(known[-1]))
            if sum(map(len, self._kept)) < KEPT_TIMES:
                self._kept.append(known.copy())
        self.rows += len(values)
        return np.where(is_read, values, np.iinfo(np.int64).min)

    def _read(self, column: pa.Array) -> tuple[Ints, npt.NDArray[np.bool_]]:
        values = np.zeros(len(column), np.int64)
        is_read = np.zeros(len(column), np.bool_)
        present = np.flatnonzero(to_numpy(_is_present(column)))
        if len(present) < len(column):
            missing = np.setdiff1d(np.arange(len(column)), present)
            self.missing += len(missing)
            self._explain(DataError("row 0: the event has no time (null or NaN)", code="ACEP-D004"), missing)
        waiting = [present]
        while waiting and self.is_counted:
            rows = waiting.pop()
            try:
                some = column.take(pa.array(rows))
                if len(rows) < len(present):  # or each part would be read in the format that fits it
                    self._check_written(some)
                values[rows] = ticks(some, self.unit, format=self.time_format)
                is_read[rows] = True
            except DataError as error:
                self._explain(error, rows)
                if len(rows) > 1:
                    waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
                else:
                    self.unreadable += 1
        return values, is_read

    def _explain(self, error: DataError, rows: Ints) -> None:
        """Keep the first reason, with the number of the row in the whole input; ``rows`` are those of the batch."""
        if not self.reason:
            self.reason = re.sub(r"^row (\d+)", lambda row: f"row {self.rows + rows[int(row[1])]}", error.message)
            self.hint = error.hint or ""

    def _check_written(self, some: pa.Array) -> None:
        """Refuse texts that are no times of ISO-8601, where no format was said."""
        if self.unit is None and self.time_format is None and pa.types.is_string(plain_type(some.type)):
            texts = plain_values(some)
            if not pc.all(pc.match_substring_regex(texts, ISO)).as_py():
                raise DataError(f"row 0: {texts[0].as_py()!r} is not written as the other times are", code="ACEP-D006")

    def profile(self) -> TimeProfile | None:
        """What was found; None without a time that can be read."""
        if not self._kept:
            return None
        known = np.concatenate(self._kept)
        sorted_ = np.sort(known)
        steps = np.diff(sorted_)
        largest = np.argsort(-steps, kind="stable")[:GAPS]
        typical = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
        gaps = [
            Gap(moment(int(sorted_[place]), is_time=self.is_time), distance(int(steps[place]), is_time=self.is_time))
            for place in largest
            if steps[place] > LARGE * typical
        ]
        is_same = np.concatenate(([False], steps == 0, [False]))  # as the time before
        return TimeProfile(
            column=self.column,
            unit=self.unit,
            is_time=self.is_time,
            first=moment(int(sorted_[0]), is_time=self.is_time),
            last=moment(int(sorted_[-1]), is_time=self.is_time),
            span=distance(int(sorted_[-1] - sorted_[0]), is_time=self.is_time),
            as_units=self.units,
            digits=None if self.is_time else digits_format(int(sorted_[0]), int(sorted_[-1])),
            late=self.late,
            latest=distance(self.latest, is_time=self.is_time),
            patience=window(self.latest, is_time=self.is_time),
            is_reversed=self.late > 0 and not self.rising,
            ties=int((is_same[:-1] | is_same[1:]).sum()),
            typical=distance(typical, is_time=self.is_time),
            gaps=tuple(gaps),
            kept=len(known),
            unreadable=self.missing + self.unreadable,
            is_counted=self.is_counted,
            reason=self.reason,
        )


def _is_present(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(plain_type(column.type)):
        plain = plain_values(column)
        return pc.fill_null(pc.invert(pc.is_nan(plain)), False)
    return column.is_valid()


def unit_of(column: pa.Array) -> str | None:
    """The unit that is plausible for a column of numbers, or of texts that are numbers; None where none fits."""
    plain = plain_values(column)
    present = plain.filter(_is_present(plain))
    if pa.types.is_string(plain_type(present.type)):
        try:
            present = pc.utf8_trim_whitespace(present).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    if not len(present) or not is_number(present.type):
        return None
    found = pc.min_max(present)
    return plausible_unit(found["min"].as_py(), found["max"].as_py())


def has_fractions(column: pa.Array) -> bool:
    """Whether a column holds numbers that are not whole: as times they need a unit."""
    if not pa.types.is_floating(plain_type(column.type)):
        return False
    plain = plain_values(column)
    present = plain.filter(_is_present(plain))
    return bool(pc.any(pc.not_equal(present, pc.floor(present))).as_py())
