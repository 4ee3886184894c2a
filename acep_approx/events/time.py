"""Time columns of any type to int64 ticks, and ticks back to timestamps."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError
from acep_approx.events.columns import decoded, plain_type, to_arrow, to_numpy
from acep_approx.events.roles import Roles, is_number
from acep_approx.events.time_formats import (
    MICROSECONDS_UTC,
    TimeFormat,
    UnknownZoneError,
    digits_format,
    guesses,
    localized,
    no_year,
    parse_alone,
    parse_times,
    unknown_zone,
    written_numbers,
)
from acep_approx.events.times_in_order import TimesInOrder

LIMIT = 2**60
"""Ticks stay below this in size, so that ``ts + window`` never overflows 64 bits."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FIRST, LAST = 631_152_000, 4_102_444_800
"""1990 and 2100, in seconds: numbers that count from 1970 lie between them if their unit is right."""

_Y1980, _Y2000, _Y2200 = 315_532_800, 946_684_800, 7_258_118_400
_PER_UNIT = {"us": 1, "ms": 10**3, "s": 10**6}
_NUMBER = r"^\s*[+-]?\d+(\.\d+)?\s*$"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"
_AFTER_DATE = 10  # a "-" within YYYY-MM-DD is no zone


def tick_unit(type_: pa.DataType, unit: str | None) -> str | None:
    """Whether ticks of such a column are real time.

    Parameters
    ----------
    type_ : pyarrow.DataType
        Type of the time column.
    unit : str or None
        Unit of a column of numbers.

    Returns
    -------
    str or None
        ``"us"``: ticks are microseconds since 1970-01-01 UTC. None: plain numbers without a unit.

    Examples
    --------
    >>> tick_unit(pa.timestamp("ns"), None), tick_unit(pa.int64(), "s"), tick_unit(pa.int64(), None)
    ('us', 'us', None)
    """
    return None if unit is None and is_number(plain_type(type_)) else "us"


def plausible_unit(least: float, most: float) -> str | None:
    """The unit in which numbers that count from 1970 are times between 1990 and 2100; at most one fits.

    Examples
    --------
    >>> plausible_unit(1_700_000_000, 1_700_000_999), plausible_unit(1.7e12, 1.7e12), plausible_unit(0, 5)
    ('s', 'ms', None)
    """
    for unit, per_second in PER_SECOND.items():
        if least >= FIRST * per_second and most < LAST * per_second:
            return unit
    return None


def likelier_unit(least: int, most: int, unit: str | None) -> str | None:
    """The unit in which times are between 2000 and 2100, where as they are taken all are before 1980 or after 2200.

    Parameters
    ----------
    least, most : int
        The first and the last tick of a column of numbers.
    unit : str or None
        What they were taken to count.

    Returns
    -------
    str or None
        None: the times may be right, or no unit is plausible; so are small numbers, which count from anywhere.

    Examples
    --------
    >>> likelier_unit(1_700_000_000, 1_700_000_999, "us"), likelier_unit(1_700_000_000, 1_700_000_999, None)
    ('s', 's')
    >>> likelier_unit(0, 5, "us"), likelier_unit(1_700_000_000_000_000, 1_700_000_000_000_000, "us")
    (None, None)
    """
    if unit is not None and not (most < _Y1980 * 10**6 or least > _Y2200 * 10**6):
        return None
    scale = 1.0 if unit is None else PER_SECOND[unit] / 10**6
    return next(
        (
            other
            for other, per_second in PER_SECOND.items()
            if other != unit and least * scale >= _Y2000 * per_second and most * scale < LAST * per_second
        ),
        None,
    )


def likely_digits(least: int, most: int, unit: str | None) -> str | None:
    """The format in which numbers are times written as digits, where they were taken to count something.

    Parameters
    ----------
    least, most, unit
        As of ``likelier_unit``.

    Examples
    --------
    >>> likely_digits(20240331, 20240401, None), likely_digits(0, 5, None)
    ('%Y%m%d', None)
    """
    scale = 1.0 if unit is None else PER_SECOND[unit] / 10**6
    return digits_format(least * scale, most * scale)


def ticks(
    column: pa.Array,
    unit: str | None = None,
    *,
    first_row: int = 0,
    format: TimeFormat | None = None,  # noqa: A002  (what it is)
    order: TimesInOrder | None = None,
) -> npt.NDArray[np.int64]:
    """The time column as int64 ticks; no copy for int64 without a unit (or in microseconds).

    Timestamps, dates, strings and numbers with a unit become microseconds since 1970-01-01 UTC; a timestamp without a
    zone is taken as UTC. Strings are of ISO-8601, of the format that is given, or of another known one in which nothing
    has two meanings. Finer times are rounded down (nanoseconds) or to the nearest
    microsecond (floats), neither of which changes their order. Numbers without a unit stay as they are.

    Parameters
    ----------
    column : pyarrow.Array
        Time column of one batch.
    unit : str, optional
        Unit of a column of numbers, or of texts that are numbers: ``ns``, ``us``, ``ms`` or ``s``; or the format of
        numbers that are times written as digits, such as ``%Y%m%d``. Default: plain ticks.
    first_row : int
        Row number of the first value over the whole input, for messages. Default 0.
    format : TimeFormat, optional
        How strings are written, and the zone of times that have none.
    order : TimesInOrder, optional
        What is known of the times before these, where they come in the order of the events. Default: each is read
        alone.

    Returns
    -------
    numpy.ndarray of int64
        One tick per row; may be read-only.

    Raises
    ------
    DataError
        ``ACEP-D003`` not a type of time; ``ACEP-D004`` a null or NaN; ``ACEP-D005`` a tick of ``2**60`` or
        more; ``ACEP-D006`` a string that is no time, a fraction without a unit; ``ACEP-D032`` strings that do not tell
        days from months; ``ACEP-D034`` a local time that occurs twice, or never; ``ACEP-D035`` strings without a year.
        ``row`` is the first.

    Examples
    --------
    >>> ticks(pa.array([1, 2]), "ms").tolist()
    [1000, 2000]
    >>> ticks(pa.array(["1970-01-01T00:00:01.5+01:00"])).tolist()
    [-3598500000]
    """
    column = decoded(column)
    if column.null_count:
        _refuse_null(first_row + int(np.argmax(to_numpy(column.is_null()))))
    type_ = plain_type(column.type)
    if len(column) == 0:
        return np.zeros(0, np.int64)
    if is_number(type_):
        return _from_numbers(column, unit, first_row, format)
    if pa.types.is_date(type_):
        column, type_ = column.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if pa.types.is_timestamp(type_):
        if type_.tz is None and format is not None and format.zone is not None:
            column = _localized(column, format, first_row, order)
        return _scaled(to_numpy(column.cast(pa.int64())), column.type.unit, first_row)
    if pa.types.is_string(type_):
        return _from_text(column.cast(pa.string()), unit, first_row, format or TimeFormat(), order)
    raise DataError(f"values of type {type_} cannot be the time of an event", code="ACEP-D003")


def shown_type(type_: pa.DataType, format: TimeFormat | None = None) -> pa.DataType:  # noqa: A002
    """Return the type in which results show the times of events: so they can be joined with the events.

    Parameters
    ----------
    type_ : pyarrow.DataType
        Of the time column, whose ticks are times.
    format : TimeFormat, optional
        The zone of times that have none.

    Returns
    -------
    pyarrow.DataType
        Timestamps in microseconds, with the zone of the column. Timestamps and dates without a zone have none in
        results either, unless the format gives them one. What is no timestamp, such as numbers with a unit, is in UTC.

    Examples
    --------
    >>> shown_type(pa.timestamp("ns")), shown_type(pa.timestamp("s", "Europe/Vienna"))
    (TimestampType(timestamp[us]), TimestampType(timestamp[us, tz=Europe/Vienna]))
    >>> shown_type(pa.int64()), shown_type(pa.timestamp("us"), TimeFormat(zone="Europe/Vienna"))
    (TimestampType(timestamp[us, tz=UTC]), TimestampType(timestamp[us, tz=UTC]))
    """
    type_ = plain_type(type_)
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp("us", type_.tz)
    has_dates = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
    return pa.timestamp("us") if has_dates and (format is None or format.zone is None) else MICROSECONDS_UTC


def to_datetime(values: npt.NDArray[np.int64], type_: pa.DataType = MICROSECONDS_UTC) -> pa.Array:
    """Ticks in microseconds as timestamps, for output.

    Parameters
    ----------
    values : numpy.ndarray of int64
        Microseconds since 1970-01-01 UTC.
    type_ : pyarrow.DataType, optional
        Timestamps in microseconds. Default: in UTC.

    Returns
    -------
    pyarrow.Array
        Of that type, sharing memory with the ticks.
    """
    return to_arrow(values).view(type_)


def as_shown(values: pa.Array, column: str, roles: Roles) -> pa.Array:
    """Return values of a column of events as results show them: times of the events as times with the zone of others.

    Parameters
    ----------
    values : pyarrow.Array
        As the events have them.
    column : str
    roles : Roles
        Which columns are the time, or the start, and how these are written.

    Returns
    -------
    pyarrow.Array
        The values themselves where the column is neither, where they are days, or timestamps with the zone of others.

    Examples
    --------
    >>> as_shown(pa.array([1]), "ts", Roles("ts", None, None, "s")).type
    TimestampType(timestamp[us, tz=UTC])
    """
    if column not in (roles.time, roles.start) or tick_unit(values.type, roles.unit) is None:
        return values
    type_ = plain_type(values.type)
    has_zone = pa.types.is_timestamp(type_) and type_.tz == shown_type(type_, roles.time_format).tz
    if has_zone or pa.types.is_date(type_):
        return values
    return shown_times(values, roles.unit, roles.time_format)


def shown_times(
    column: pa.Array, unit: str | None, format: TimeFormat | None = None  # noqa: A002
) -> pa.Array:
    """Numbers of a unit, texts or dates as the times that they are, for output.

    Parameters
    ----------
    column : pyarrow.Array
        Values of a time column of events whose times were taken before; NULL stays NULL.
    unit : str or None
        As of ``ticks``.
    format : TimeFormat, optional
        How texts are written, and the zone of times that have none.

    Returns
    -------
    pyarrow.Array
        Rounded as ticks are, in the type of ``shown_type``.

    Examples
    --------
    >>> shown_times(pa.array([1, None]), "s").cast(pa.int64()).to_pylist()
    [1000000, None]
    """
    type_ = shown_type(column.type, format)
    if pa.types.is_null(column.type):
        return column.cast(type_)
    there = np.flatnonzero(to_numpy(column.is_valid()))
    values = np.zeros(len(column), np.int64)
    values[there] = ticks(column.drop_null(), unit, format=format)
    is_there = to_numpy(column.is_valid()) if len(there) < len(column) else None
    return to_arrow(values, is_there).view(type_)


def in_type(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Times that are counted in UTC, in the type of the column that they come from."""
    if pa.types.is_timestamp(wanted) and wanted.tz is not None:
        return values.cast(pa.int64()).cast(pa.timestamp(values.type.unit, wanted.tz)).cast(wanted)
    return values.cast(wanted)


def _scaled(values: npt.NDArray[Any], unit: str, first_row: int) -> npt.NDArray[np.int64]:
    """Integers of a unit as microseconds, with the limit checked before anything can overflow."""
    if unit == "ns":
        wide = values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
        return (wide // 1000).astype(np.int64, copy=False)
    factor = _PER_UNIT[unit]
    limit = -(-LIMIT // factor)
    if values.min() <= -limit or values.max() >= limit:
        wrong = (values <= -limit) | (values >= limit)
        _refuse_range(int(values[wrong.argmax()]), unit, first_row + int(wrong.argmax()))
    whole = values.astype(np.int64, copy=False)
    return whole if factor == 1 else whole * factor


def few_ticks(numbers: list[int], unit: str | None) -> list[int] | None:
    """Some whole numbers of a unit as ticks; None where one is beyond the limit, or comes before the one before it.

    Examples
    --------
    >>> few_ticks([1, 2], "ms"), few_ticks([1999], "ns"), few_ticks([2, 1], None), few_ticks([LIMIT], None)
    ([1000, 2000], [1], None, None)
    """
    values = [number // 1000 for number in numbers] if unit == "ns" else numbers
    factor = 1 if unit in (None, "ns") else _PER_UNIT[unit]
    ticks = values if factor == 1 else [value * factor for value in values]
    before = -LIMIT + 1
    for tick in ticks:
        if tick < before:
            return None
        before = tick
    return ticks if before < LIMIT else None


def _from_numbers(
    column: pa.Array, unit: str | None, first_row: int, format: TimeFormat | None  # noqa: A002
) -> npt.NDArray[np.int64]:
    if unit is not None and unit.startswith("%"):
        written = TimeFormat(unit) if format is None else replace(format, text=unit)
        return _of_format(written_numbers(column), written, first_row)
    if pa.types.is_floating(plain_type(column.type)):
        return _from_floats(to_numpy(column.cast(pa.float64())), unit, first_row)
    return _scaled(to_numpy(column), unit or "us", first_row)


def _from_floats(values: npt.NDArray[np.float64], unit: str | None, first_row: int) -> npt.NDArray[np.int64]:
    if np.isnan(values).any():
        _refuse_null(first_row + int(np.isnan(values).argmax()))
    if unit is None:
        fractions = values != np.floor(values)
        if fractions.any():
            row = first_row + int(fractions.argmax())
            raise DataError(
                f"row {row}: the time {values[row - first_row]} is not a whole number, and it has no unit",
                code="ACEP-D006",
                hint="say what the numbers count: --unit s (unit='s' in Python), or ms, us, ns",
                row=row,
            )
    scaled = values / 1000 if unit == "ns" else values * _PER_UNIT[unit or "us"]
    wrong = np.abs(scaled) >= LIMIT
    if wrong.any():
        _refuse_range(float(values[wrong.argmax()]), unit or "ticks", first_row + int(wrong.argmax()))
    return np.rint(scaled).astype(np.int64)


def _from_text(
    column: pa.Array,
    unit: str | None,
    first_row: int,
    format: TimeFormat,  # noqa: A002
    order: TimesInOrder | None,
) -> npt.NDArray[np.int64]:
    if unit is not None:
        return ticks(_numbers(column, unit, first_row), unit, first_row=first_row)
    if format.text is None and order is not None and order.written:
        format = replace(format, text=order.written)  # noqa: A001
    if format.text is not None:
        return _of_format(column, format, first_row, order)
    try:
        found = of_iso(column, first_row, format, order)
    except DataError as error:
        if order is not None and order.written is not None:
            raise
        guessed = guesses(column) if error.code == "ACEP-D006" else []
        if not guessed:
            first = guesses(column.slice(0, 1)) if error.code == "ACEP-D006" and error.row == first_row else []
            if not first:  # the first is ISO-8601, so this is how they are written, or it is no time at all
                raise
            guessed = first[:1]  # others are written in another way: the first of them is told
    else:
        return _settled(found, "", order)
    if len(guessed) > 1:
        raise DataError(
            f"row {first_row}: {column[0].as_py()!r} can be read in {'two' if len(guessed) == 2 else 'several'} ways: "
            + " or ".join(f"{TimeFormat(text).order} ({text!r})" for text in guessed),
            code="ACEP-D032",
            hint=f"say which one is meant: --time-format {guessed[0]!r} (time_format={guessed[0]!r} in Python)",
            row=first_row,
        )
    return _settled(_of_format(column, replace(format, text=guessed[0]), first_row, order), guessed[0], order)


def _settled(values: npt.NDArray[np.int64], text: str, order: TimesInOrder | None) -> npt.NDArray[np.int64]:
    """Ticks of times of a format, in which later ones are to be written, too."""
    if order is not None and order.written is None:
        order.written = text
    return values


def _numbers(column: pa.Array, unit: str, first_row: int) -> pa.Array:
    for type_ in (pa.int64(), pa.float64()):
        try:
            return pc.utf8_trim_whitespace(column).cast(type_)
        except pa.ArrowInvalid:
            continue
    place = _first_wrong(column, lambda some: some.cast(pa.float64()))
    raise DataError(
        f"row {first_row + place}: {column[place].as_py()!r} is no number of {unit}",
        code="ACEP-D006",
        hint="leave the unit out: it is for numbers only",
        row=first_row + place,
    )


def _of_format(
    column: pa.Array, format: TimeFormat, first_row: int, order: TimesInOrder | None = None  # noqa: A002
) -> npt.NDArray[np.int64]:
    if not format.has_year:
        raise no_year(str(format.text))
    which = format.which_of_two if order is None else "earliest"
    try:
        if order is not None and format.is_in_order:
            return to_numpy(order.resolved("", parse_alone(column, format), format).cast(pa.int64()))
        return _scaled(to_numpy(parse_times(column, format, which).cast(pa.int64())), "us", first_row)
    except UnknownZoneError as error:
        raise unknown_zone(str(error)) from error
    except pa.ArrowInvalid as error:
        place = _first_wrong(column, lambda some: parse_times(some, format, which))
        row = first_row + place
        raise DataError(
            f"row {row}: {column[place].as_py()!r} is not a time as {format}: {error}",
            code="ACEP-D006",
            hint="correct the time, or --time-format (time_format= in Python)",
            row=row,
        ) from error


def _localized(
    column: pa.Array, format: TimeFormat, first_row: int, order: TimesInOrder | None = None  # noqa: A002
) -> pa.Array:
    zone = str(format.zone)
    which = format.which_of_two if order is None else "earliest"
    try:
        found = localized(column, zone, ambiguous=which)
        return found if order is None else order.resolved("", found.cast(MICROSECONDS_UTC), replace(format, text=None))
    except pa.ArrowInvalid as error:
        row = first_row + _first_wrong(column, lambda some: localized(some, zone, ambiguous=which))
        raise DataError(
            f"row {row}: {error}",
            code="ACEP-D034",
            hint="write times with their zone (2013-10-27T02:30:00+02:00), or in UTC; or say which of two is meant: "
            "--time-fold order, earlier or later (TimeFormat(..., fold=...) in Python)",
            row=row,
        ) from error


def of_iso(
    column: pa.Array, first_row: int, format: TimeFormat, order: TimesInOrder | None = None  # noqa: A002
) -> npt.NDArray[np.int64]:
    """Texts of ISO-8601 as ticks, and of no other format; see ``ticks``."""
    zoned = to_numpy(pc.match_substring_regex(pc.utf8_slice_codeunits(column, _AFTER_DATE, None), _ZONE))
    if zoned.all() or not zoned.any():
        return _parse(column, zoned[0], first_row, format=format, order=order)
    values = np.empty(len(column), np.int64)
    for has_zone in (False, True):
        rows = np.flatnonzero(zoned == has_zone)
        values[rows] = _parse(column.take(to_arrow(rows)), has_zone, first_row, rows, format=format)
    return values


def _parse(
    column: pa.Array,
    has_zone: bool,
    first_row: int,
    rows: npt.NDArray[np.int64] | None = None,
    *,
    format: TimeFormat,  # noqa: A002
    order: TimesInOrder | None = None,
) -> npt.NDArray[np.int64]:
    """Parse strings that all have a zone, or all have none; ``rows`` are their places in the batch."""
    tz = "UTC" if has_zone else None
    for fine in ("us", "ns"):  # nanoseconds reach only from 1677 to 2262
        try:
            parsed = column.cast(pa.timestamp(fine, tz=tz))
        except pa.ArrowInvalid:
            continue
        if format.zone is not None and not has_zone:
            parsed = _localized(parsed, format, first_row, order)
        return _scaled(to_numpy(parsed.cast(pa.int64())), parsed.type.unit, first_row)
    place = _first_wrong(column, lambda some: some.cast(pa.timestamp("ns", tz=tz)))
    row = first_row + (place if rows is None else int(rows[place]))
    value = column[place].as_py()
    hint = (
        "write times as 2013-01-31T17:45:00.5Z (UTC if the zone is left out), or as numbers with a unit; "
        "or say how they are written: --time-format '%d/%m/%Y %H:%M' (time_format= in Python)"
    )
    raise DataError(
        f"row {row}: {value!r} is not an ISO-8601 time",
        code="ACEP-D006",
        hint=_hint_on_numbers(column) if re.fullmatch(_NUMBER, value) else hint,
        row=row,
    )


def _hint_on_numbers(column: pa.Array) -> str:
    others = column.filter(pc.invert(pc.match_substring_regex(column, _NUMBER)))
    if len(others):
        return f"the times are read as text because some are no numbers: {others[0].as_py()!r}; correct or remove those"
    numbers = pc.min_max(pc.utf8_trim_whitespace(column).cast(pa.float64()))
    if text := digits_format(numbers["min"].as_py(), numbers["max"].as_py()):
        return f"the times are written as digits: --time-format {text} (time_format='{text}' in Python)"
    return "the times are numbers: say what they count: --unit s (unit='s' in Python), or ms, us, ns"


def _first_wrong(column: pa.Array, read: Callable[[pa.Array], pa.Array]) -> int:
    """Halve a column until the first string is found that cannot be read; one of them cannot."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            read(column.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _refuse_null(row: int) -> NoReturn:
    raise DataError(
        f"row {row}: the event has no time (null or NaN)",
        code="ACEP-D004",
        hint="every event needs a time: fill it in or leave the event out before matching",
        row=row,
    )


def _refuse_range(value: float, unit: str, row: int) -> NoReturn:
    plausible = plausible_unit(value, value)
    likelier = f"in {plausible} it is a time between 1990 and 2100: --unit {plausible}" if plausible else None
    raise DataError(
        f"row {row}: the time {value} {unit} is too large; ticks must be below 2**60 in size",
        code="ACEP-D005",
        hint=f"is the unit right? {likelier or '2**60 microseconds are 36,533 years'}",
        row=row,
    )
