"""The times of events: their unit, their span, what is late, what is simultaneous, where nothing came."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import plain_type, to_numpy
from acep_approx.events.roles import UNITS, is_number
from acep_approx.events.time import FIRST, PER_SECOND, plausible_unit, ticks
from acep_approx.events.time_formats import TimeFormat, digits_format
from acep_approx.profiling.columns import plain_values
from acep_approx.profiling.formatting import distance, moment, window

KEPT = 4_000_000
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
            if sum(map(len, self._kept)) < KEPT:
                self._kept.append(known.copy())
        self.rows += len(values)
        return np.where(is_read, values, np.iinfo(np.int64).min)

    def _read(self, column: pa.Array) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """The ticks of a batch, and which of its values are times."""
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
