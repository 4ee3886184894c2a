"""A date and a time of day in two columns as one column of times: ``date+time``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools
from acep_approx.errors import DataError
from acep_approx.events.columns import decoded, plain_type, to_arrow, to_numpy
from acep_approx.events.roles import Roles, is_number, time_column
from acep_approx.events.time import ticks
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.usable_times import usable_times

DATE_NAMES = ("date", "datum", "day", "tag")
CLOCK_NAMES = ("time", "zeit", "uhrzeit", "time_of_day", "clock")
_IS_DAY = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_string, pa.types.is_integer)
_IS_CLOCK = (pa.types.is_time, pa.types.is_string, pa.types.is_integer)
"""What columns of such names may hold."""
DAY = 86_400_000_000
_DAYS_AS_DIGITS = "%Y%m%d"
_CLOCK = r"^(?P<H>\d{1,2}):(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?)?(?: *(?P<p>[AaPp])\.?[Mm]\.?)?$"
_DIGITS = r"^(\d\d)(\d\d)(\d\d(?:\.\d{1,9})?)$"
WRONG_DAYS = 10
"""So many of the first values are looked at that are no days."""
First = Callable[[tuple[str, str]], pa.RecordBatch | None]
"""The first events, with these columns; None where they cannot be read twice."""


@dataclass(frozen=True)
class DateAndTime:
    """Two columns that make a time.

    Parameters
    ----------
    date, clock : str
        The columns of the days, and of the times of day.
    format : TimeFormat, optional
        How days are written, and the zone of the times.
    """

    date: str
    clock: str
    format: TimeFormat | None = None

    @property
    def name(self) -> str:
        """The name of the two together."""
        return f"{self.date}+{self.clock}"

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns with the one of the times."""
        return schema.append(pa.field(self.name, pa.timestamp("us")))

    def times(self, batch: pa.RecordBatch, first_row: int) -> pa.Array:
        """The times of some events; null where one of the two is missing.

        Raises
        ------
        DataError
            ``ACEP-D086``: a value is no day, or no time of day.
        """
        days, clocks = decoded(batch.column(self.date)), decoded(batch.column(self.clock))
        is_there = pc.and_(days.is_valid(), clocks.is_valid())
        since_midnight = _clock_ticks(clocks)
        wrong = pc.and_(is_there, since_midnight.is_null())
        if pc.any(wrong).as_py():
            place = pc.index(wrong, True).as_py()
            raise self._wrong(self.clock, clocks, place, first_row, "is no time of day, such as 17:45 or 5:45 PM")
        present = days.filter(is_there)
        format_ = _of_days(self.format)
        unit = _unit_of_days(present, format_)
        try:
            midnights = pa.array(ticks(present, unit, first_row=first_row, format=format_), pa.int64())
        except DataError as error:
            if error.code == "ACEP-D006" and error.row is not None:
                place = pc.indices_nonzero(is_there)[error.row - first_row].as_py()
                raise self._wrong(self.date, days, place, first_row, "is no day, such as 2024-03-28") from error
            raise DataError(
                f"column {self.date!r}, which {self.name!r} takes for days: {error.message}",
                code="ACEP-D086",
                hint=error.hint or "write days as 2024-03-28",
            ) from error
        late = pc.not_equal(pc.multiply(pc.divide(midnights, DAY), DAY), midnights)
        if pc.any(late).as_py():
            place = pc.indices_nonzero(is_there)[pc.index(late, True).as_py()].as_py()
            raise self._wrong(self.date, days, place, first_row, "is no day: it has a time of day itself")
        joined = pc.add(midnights, since_midnight.filter(is_there)).cast(pa.timestamp("us"))
        return pc.replace_with_mask(pa.nulls(len(days), joined.type), is_there, joined)

    def usable(self, batch: pa.RecordBatch) -> Bools:
        """Which events have a day and a time of day, as ``times`` reads them."""
        days, clocks = decoded(batch.column(self.date)), decoded(batch.column(self.clock))
        usable = np.array(to_numpy(pc.and_(days.is_valid(), _clock_ticks(clocks).is_valid())))
        there = np.flatnonzero(usable)
        days, format_ = days.take(to_arrow(there)), _of_days(self.format)
        unit = _unit_of_days(days, format_)
        if unit is None and format_ is None and (digits := _digits(days)).any():
            usable[there], unit = digits, _DAYS_AS_DIGITS
            there = np.flatnonzero(usable)
            days = decoded(batch.column(self.date)).take(to_arrow(there))
        found = usable_times(days, unit, format_)
        midnights = ticks(days.take(to_arrow(np.flatnonzero(found))), unit, format=format_)
        found[found] = midnights % DAY == 0
        usable[there] = found
        return usable

    def _wrong(self, name: str, column: pa.Array, place: int, first_row: int, why: str) -> DataError:
        return DataError(
            f"row {first_row + place}: {column[place].as_py()!s} in column {name!r} {why}",
            code="ACEP-D086",
            hint=f"the time is taken to be {self.date} + {self.clock}: correct the value, or name a column that is the "
            "whole time: --time COLUMN (time='COLUMN' in Python)",
            row=first_row + place,
        )


def said(schema: pa.Schema, time: str | None, format: TimeFormat | None) -> DateAndTime | None:  # noqa: A002
    """What ``date+time`` means, where that is no column and the two are."""
    if not isinstance(time, str) or time in schema.names:  # what is no name is refused with the other roles
        return None
    for found in re.finditer(r"\+", time):
        date, clock = time[: found.start()].strip(), time[found.end() :].strip()
        if date in schema.names and clock in schema.names:
            return DateAndTime(date, clock, format)
    return None


def found_itself(schema: pa.Schema, first: First, format: TimeFormat | None) -> DateAndTime | None:  # noqa: A002
    """The two columns that make a time, by their names and what is known of their values.

    None where another column is the time by its name, or where most of the first values do not fit: those that do not
    are told when they are read.
    """
    pair = named_pair(schema)
    if pair is None or "+".join(pair) in schema.names or time_column(schema) not in (*pair, None):
        return None
    types = [plain_type(schema.field(name).type) for name in pair]
    if pa.types.is_integer(types[1]):  # which may count seconds
        return None
    joined = DateAndTime(*pair, format)
    if pa.types.is_date(types[0]) and pa.types.is_time(types[1]):
        return joined
    batch = first(pair)
    return joined if batch is not None and _mostly_fit(joined, batch) else None


def _mostly_fit(joined: DateAndTime, batch: pa.RecordBatch) -> bool:
    clocks = _clock_ticks(decoded(batch.column(joined.clock)))
    rest, least = batch.filter(clocks.is_valid()), max(1, (batch.num_rows + 1) // 2)
    for _ in range(WRONG_DAYS):
        if len(rest) < least:
            return False
        try:
            times = joined.times(rest, 0)
        except DataError as error:
            if error.row is None:
                return False
            rest = pa.concat_batches([rest.slice(0, error.row), rest.slice(error.row + 1)])
        else:
            return bool(len(times) - times.null_count >= least)
    return False


def hinted(error: DataError, schema: pa.Schema, time: str) -> DataError:
    """The error of a column of times, with the hint that it may be half of a time, if it may."""
    pair = named_pair(schema)
    if error.code != "ACEP-D006" or pair is None or time not in pair or "+".join(pair) in schema.names:
        return error
    both = "+".join(pair)
    hint = f"if {pair[0]!r} and {pair[1]!r} make the time together, say --time {both} (time={both!r} in Python)"
    return DataError(error.message, code=error.code, hint=hint, row=error.row)


def named_pair(schema: pa.Schema) -> tuple[str, str] | None:
    """The columns that are a date and a time of day by their names, and may be by types; None but for one of each."""
    names = [
        [
            name
            for name in schema.names
            if name.lower() in wanted and any(is_kind(plain_type(schema.field(name).type)) for is_kind in kinds)
        ]
        for wanted, kinds in ((DATE_NAMES, _IS_DAY), (CLOCK_NAMES, _IS_CLOCK))
    ]
    return (names[0][0], names[1][0]) if list(map(len, names)) == [1, 1] else None


def unsaid(schema: pa.Schema, days: Collection[str] = ()) -> str:
    """What to say of a time that is a day only, beside what looks like a time of day; empty where there is no such.

    Parameters
    ----------
    schema : pyarrow.Schema
    days : collection of str
        Columns of times that are written as days.
    """
    time = time_column(schema)
    pair = named_pair(schema)
    clocks = [field.name for field in schema if pa.types.is_time(plain_type(field.type))]
    if pair is None and time is not None and len(clocks) == 1 and (is_day(schema, time) or time in days):
        pair = time, clocks[0]
    if pair is None or time not in pair or "+".join(pair) in schema.names:
        return ""
    return f"{time} alone as the time; if {pair[1]} holds the time of day, say --time {'+'.join(pair)}"


def refuse_day_alone(schema: pa.Schema, roles: Roles, time: str | None) -> None:
    """Refuse a day as the time that nobody said, beside a time of day that is not joined to it (``ACEP-D085``)."""
    pair = named_pair(schema)
    if time is not None or pair is None or roles.time != pair[0] or not is_day(schema, pair[0]):
        return
    raise DataError(
        f"the time would be the day alone: {pair[0]!r} and {pair[1]!r} are not joined on Spark",
        code="ACEP-D085",
        hint=f"join them into one column of timestamps before, or say that days are meant: --time {pair[0]}",
    )


def is_day(schema: pa.Schema, name: str) -> bool:
    """Whether a column holds days, by its type."""
    return bool(pa.types.is_date(plain_type(schema.field(name).type)))


def _unit_of_days(days: pa.Array, format_: TimeFormat | None) -> str | None:
    if is_number(days.type):
        return _DAYS_AS_DIGITS if format_ is None or format_.text is None else format_.text
    return _DAYS_AS_DIGITS if format_ is None and len(days) and _digits(days).all() else None


def _digits(days: pa.Array) -> Bools:
    if not pa.types.is_string(plain_type(days.type)):
        return np.zeros(len(days), np.bool_)
    return to_numpy(pc.match_substring_regex(days, r"^\d{8}$"))


def _of_days(format_: TimeFormat | None) -> TimeFormat | None:
    """How days are written; their zone is that of the whole time, and is for later."""
    return None if format_ is None else TimeFormat(format_.text, None, format_.year)


def _clock_ticks(clocks: pa.Array) -> pa.Array:
    type_ = plain_type(clocks.type)
    if pa.types.is_time(type_):
        return pc.divide(clocks.cast(pa.time64("ns")).cast(pa.int64()), 1000)
    if pa.types.is_integer(type_):  # 93000, where zeros ahead are lost
        clocks, type_ = pc.utf8_lpad(clocks.cast(pa.string()), 6, "0"), pa.string()
    if not pa.types.is_string(type_):
        return pa.nulls(len(clocks), pa.int64())
    texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(clocks.cast(pa.string())), _DIGITS, r"\1:\2:\3")
    found = pc.extract_regex(texts, pattern=_CLOCK)
    part = {name: pc.struct_field(found, name) for name in ("H", "M", "S", "f", "p")}
    hour, minute = part["H"].cast(pa.int64()), part["M"].cast(pa.int64())
    second = pc.if_else(pc.equal(part["S"], ""), "0", part["S"]).cast(pa.int64())
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(part["f"], 6, "0"), 0, 6).cast(pa.int64())
    half = pc.utf8_lower(part["p"])
    is_half = pc.not_equal(half, "")
    fits = pc.if_else(is_half, pc.and_(pc.greater(hour, 0), pc.less_equal(hour, 12)), pc.less(hour, 24))
    hour = pc.if_else(pc.and_(is_half, pc.equal(hour, 12)), 0, hour)
    hour = pc.if_else(pc.equal(half, "p"), pc.add(hour, 12), hour)
    seconds = pc.add(pc.multiply(pc.add(pc.multiply(hour, 60), minute), 60), second)
    return pc.if_else(fits, pc.add(pc.multiply(seconds, 1_000_000), fraction), pa.scalar(None, pa.int64()))
