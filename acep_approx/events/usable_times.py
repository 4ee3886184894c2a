"""Which values of a column are times that can be used, where some are not: as masks over whole columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools
from acep_approx.errors import DataError
from acep_approx.events.columns import decoded, plain_type, to_arrow, to_numpy
from acep_approx.events.roles import is_number
from acep_approx.events.time import LIMIT, PER_SECOND, of_iso
from acep_approx.events.time_formats import (
    TimeFormat,
    UnknownZoneError,
    guesses,
    occurs,
    parse_alone,
    unknown_zone,
    written_numbers,
)
from acep_approx.events.times_in_order import TimesInOrder

_ISO_DAY = r"^\d{4}-\d\d-\d\d"
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_LOOKED_AT = 100
"""Different texts of which is asked how they are written, where the first ones are no times."""
Read = Callable[[pa.Array], object]


def usable_times(
    column: pa.Array,
    unit: str | None,
    format: TimeFormat | None,  # noqa: A002
    order: TimesInOrder | None = None,
) -> Bools:
    """Which values ``time.ticks`` can read, each for itself.

    Parameters
    ----------
    column, unit, format
        As for ``ticks``.
    order : TimesInOrder, optional
        What is known of the times before these, of which nothing changes.

    Returns
    -------
    numpy.ndarray of bool
        Texts of no format that is said or known are held against the way in which most of the others are written.

    Raises
    ------
    DataError
        ``ACEP-D122``: times end in letters that may name several zones.

    Complexity: whole columns; of texts that look like times each different one that is none takes a logarithm of calls.

    Examples
    --------
    >>> usable_times(pa.array([1.0, 1.5, None, 9e300]), None, None).tolist()
    [True, False, False, False]
    >>> usable_times(pa.array(["2024-02-29", "2023-02-29", "", "soon"]), None, None).tolist()
    [True, False, False, False]
    """
    column = decoded(column)
    is_there = to_numpy(column.is_valid())
    if not is_there.any():
        return is_there
    usable = is_there.copy()
    written = format or TimeFormat()
    settled = order.written if order is not None and unit is None and written.text is None else None
    if settled:
        written = replace(written, text=settled)
    usable[is_there] = _usable(column.drop_null(), unit, written, is_iso=settled == "")
    if order is not None and format is not None and format.is_yearless and pa.types.is_string(plain_type(column.type)):
        texts = those(column, usable).cast(pa.string())
        usable[usable] = ~order.impossible("", parse_alone(texts, format), format)
    return usable


def earlier(format: TimeFormat | None) -> TimeFormat | None:  # noqa: A002
    """A format in which of two times that have one local time the first one is meant."""
    return None if format is None else replace(format, fold="earlier")


def _usable(column: pa.Array, unit: str | None, format: TimeFormat, *, is_iso: bool) -> Bools:  # noqa: A002
    type_ = plain_type(column.type)
    if is_number(type_):
        if unit is not None and unit.startswith("%"):
            return _of_format(written_numbers(column), replace(format, text=unit))
        return _numbers(column, unit)
    if pa.types.is_date(type_):
        column, type_ = column.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if pa.types.is_timestamp(type_):
        found = _in_range(to_numpy(column.cast(pa.int64())), type_.unit)
        if type_.tz is None and format.zone is not None:
            found[found] = occurs(those(column, found), format.zone)
        return found
    if not pa.types.is_string(type_):
        return np.ones(len(column), np.bool_)  # which is refused as a whole
    texts = column.cast(pa.string()).dictionary_encode()  # what is wrong is so again and again
    found = _texts(texts.dictionary, unit, format, is_iso=is_iso)
    return np.take(found, to_numpy(texts.indices))


def _numbers(column: pa.Array, unit: str | None) -> Bools:
    if not pa.types.is_floating(plain_type(column.type)):
        return _in_range(to_numpy(column), unit or "us")
    values = to_numpy(column.cast(pa.float64()))
    with np.errstate(over="ignore"):
        scaled = values * (10**6 / PER_SECOND[unit or "us"])
        found: Bools = np.abs(scaled) < LIMIT  # NaN is not
    return found if unit is not None else found & (values == np.floor(values))


def _in_range(values: np.ndarray, unit: str) -> Bools:
    if unit == "ns":
        return np.ones(len(values), np.bool_)
    limit = -(-LIMIT // (10**6 // PER_SECOND[unit]))
    found: Bools = (values > -limit) & (values < limit)
    return found


def _texts(texts: pa.Array, unit: str | None, format: TimeFormat, *, is_iso: bool) -> Bools:  # noqa: A002
    """The same of texts that are all different; ``is_iso``: others of their column were of ISO-8601."""
    if unit is not None:
        found = _mask(pc.match_substring_regex(texts, _NUMBER))
        numbers = pc.utf8_trim_whitespace(those(texts, found)).cast(pa.float64())
        found[found] = _numbers(numbers, unit)
        return found
    if format.text is not None:
        return _of_format(texts, format)
    found = _mask(pc.match_substring_regex(texts, _ISO_DAY))
    alone = replace(format, fold="earlier")  # which one is meant of two is another question
    found[found] = salvaged(those(texts, found), lambda some: of_iso(some, 0, alone))
    if is_iso or found.any():
        return found
    firsts = (guesses(texts.slice(place, 1)) for place in range(min(len(texts), _LOOKED_AT)))
    fitting = [_of_format(texts, replace(format, text=text, fold="earlier")) for text in next(filter(None, firsts), [])]
    return max(fitting, key=np.count_nonzero, default=found)  # the known format that most of them have


def _of_format(texts: pa.Array, format: TimeFormat) -> Bools:  # noqa: A002
    found = _mask(pc.match_substring_regex(pc.utf8_trim_whitespace(texts), f"^(?:{format.pattern})$"))
    found[found] = salvaged(those(texts, found), lambda some: parse_alone(some, format))
    return found


def _mask(answers: pa.Array) -> Bools:
    return np.array(to_numpy(answers))  # which can be written to


def those(values: pa.Array, mask: Bools) -> pa.Array:
    """The values where a mask is true."""
    return values.take(to_arrow(np.flatnonzero(mask)))


def salvaged(values: pa.Array, read: Read) -> Bools:
    """Which values can be read, by halving: what reads them says of none which it refuses."""
    found = np.ones(len(values), np.bool_)
    open_ = [(0, len(values))]
    while open_:
        first, count = open_.pop()
        try:
            if count:
                read(values.slice(first, count))
        except UnknownZoneError as error:
            raise unknown_zone(str(error)) from error
        except (DataError, pa.ArrowInvalid):
            if count == 1:
                found[first] = False
            else:
                open_ += [(first, count // 2), (first + count // 2, count - count // 2)]
    return found
