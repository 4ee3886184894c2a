"""Times that only the order of the events tells whole: the year of syslog, and the hour that clocks pass twice."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.time_formats import LEAP_YEAR, TimeFormat, localized, occurs

_SECOND = 10**6
_DAY = 86_400 * _SECOND
_BACK = 183 * _DAY
"""A time that goes back by more begins the next year: from December to January."""
_AHEAD = 334 * _DAY
"""A time that goes ahead by more is a late one of the year before: from January to December."""
_LATE = 60 * _SECOND
"""A local time that goes back by less is a late one, and not the same hour for the second time."""
_NEAR = 10 * _DAY
_LEAP_DAY = 59
"""February 29, counted from the begin of the year."""
_AT_ONCE = 1024
"""Times that are looked at together for days that do not exist; where one is found, the others are looked at again."""


@dataclass
class _Column:
    year: int | None = None
    last: int = 0
    latest: int | None = None
    open: str = ""
    is_decided: bool = False
    is_disordered: bool = False
    written: str | None = None


@dataclass
class TimesInOrder:
    """The times of one pass over events, column by column, as they come.

    Parameters
    ----------
    columns : dict, optional
        What is known of earlier events: what ``state`` gave.

    Notes
    -----
    A year begins where times go back by more than half a year; the first event is of the year that is said. A local
    time that occurs twice is the first one until times would go back, then the second one. What is decided so depends
    on the order of the events alone, not on the batches in which they come. Where nothing goes back, the order does not
    tell which one is meant: that is an error, unless it is said. So it is where the events are not in order.
    """

    _columns: dict[str, _Column] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Any) -> TimesInOrder:
        """As ``state`` gave it.

        Raises
        ------
        ValueError
            It is something else.
        """
        try:
            return cls({name: _Column(**column) for name, column in (state or {}).items()})
        except (AttributeError, TypeError) as error:
            raise ValueError("not what is known of times") from error

    @property
    def state(self) -> dict[str, Any]:
        """What is known so far, as plain values."""
        return {name: asdict(column) for name, column in self._columns.items()}

    def resolved(self, name: str, times: pa.Array, written: TimeFormat) -> pa.Array:
        """The times of the next events.

        Parameters
        ----------
        name : str
            Their column.
        times : pyarrow.Array
            As they are read without knowing others: without a year in ``LEAP_YEAR``, and local then; else in UTC, the
            first one of those that occur twice.
        written : TimeFormat

        Raises
        ------
        DataError
            ``ACEP-D034``: the order does not tell which of two times is meant; ``ACEP-D121``: no such day in that year.
        """
        if written.is_yearless or written.is_local:
            seen = self._columns.setdefault(name, _Column())
            is_there = to_numpy(times.is_valid())
            values = to_numpy(pc.fill_null(times.cast(pa.int64()), 0))[is_there]
            if len(values):
                values = self._values(seen, values, written)
                filled = np.zeros(len(times), np.int64)
                filled[is_there] = values
                whole = to_arrow(filled, None if is_there.all() else is_there)
                return whole.cast(pa.timestamp("us")).cast(times.type)
        return times

    @property
    def written(self) -> str | None:
        """The format in which the texts of the times were written so far; empty: ISO-8601; None: there was none."""
        return self._columns.get("", _Column()).written

    @written.setter
    def written(self, text: str) -> None:
        """Let later ones be written so, too."""
        self._columns.setdefault("", _Column()).written = text

    def go_back(self, state: dict[str, Any]) -> None:
        """Know what ``state`` was, and no more."""
        self._columns = {name: _Column(**column) for name, column in state.items()}

    def impossible(self, name: str, times: pa.Array, written: TimeFormat) -> Bools:
        """Which of the next times do not exist in the year that those before them tell; nothing is taken in.

        Parameters
        ----------
        name, times, written
            As of ``resolved``.
        """
        is_there = to_numpy(times.is_valid())
        wrong = np.zeros(len(times), np.bool_)
        if written.is_yearless:
            values = to_numpy(pc.fill_null(times.cast(pa.int64()), 0))[is_there]
            wrong[is_there] = _impossible(self._columns.get(name, _Column()), values, written)
        return wrong

    def finish(self) -> None:
        """No more events come.

        Raises
        ------
        DataError
            ``ACEP-D034``: as ``resolved``.
        """
        for seen in self._columns.values():
            if seen.open:
                raise _untold(seen.open)

    def _values(self, seen: _Column, values: Ints, written: TimeFormat) -> Ints:
        if written.is_yearless:
            values = _with_years(seen, values, written)
            if written.zone is None:
                return values
            local = to_arrow(values).cast(pa.timestamp("us"))
            try:  # the first one of those that occur twice
                values = to_numpy(localized(local, written.zone, ambiguous="earliest").cast(pa.int64()))
            except pa.ArrowInvalid as error:
                raise DataError(
                    str(error), code="ACEP-D034", hint="correct the time; or name the right zone: --time-zone UTC"
                ) from error
        return _unfolded(seen, values, written) if written.is_local else values


def _with_years(seen: _Column, values: Ints, written: TimeFormat) -> Ints:
    if seen.year is None:
        seen.year, seen.last = written.year, int(values[0])
    assert seen.year is not None, "it was said"
    years = _years(values, seen.year, seen.last)
    seen.year, seen.last = int(years[-1]), int(values[-1])
    found, never = _in_years(values, years)
    if never.any():
        year = int(years[never].min())
        raise DataError(
            f"February 29 does not occur in {year}, the year that the order of the events tells",
            code="ACEP-D121",
            hint=f"is the first event of {written.year}? Say another year: --time-year {year - year % 4}",
        )
    return found


def _in_years(values: Ints, years: Ints) -> tuple[Ints, Bools]:
    since = values - _begins(LEAP_YEAR)
    days = since // _DAY
    is_common = (years % 4 != 0) | ((years % 100 == 0) & (years % 400 != 0))
    return _begins(years) + since - _DAY * (is_common & (days > _LEAP_DAY)), is_common & (days == _LEAP_DAY)


def _begins(years: Any) -> Any:
    return np.asarray(years - 1970, "datetime64[Y]").astype("datetime64[us]").astype(np.int64)


def _years(values: Ints, year: int, last: int) -> Ints:
    steps = np.diff(values, prepend=last)
    years: Ints = year + np.cumsum((steps < -_BACK).astype(np.int64) - (steps > _AHEAD))
    return years


def _impossible(seen: _Column, values: Ints, written: TimeFormat) -> Bools:
    """Which times of ``LEAP_YEAR`` do not exist in their year, which the existing ones before them tell."""
    wrong = np.zeros(len(values), np.bool_)
    year, last, begin = seen.year, seen.last, 0
    while begin < len(values):
        some = values[begin : begin + _AT_ONCE]
        assert written.year is not None, "it was said"
        years = _years(some, written.year if year is None else year, int(some[0]) if year is None else last)
        local, found = _in_years(some, years)
        if written.zone is not None:
            found |= ~occurs(to_arrow(local).cast(pa.timestamp("us")), written.zone)
        good = int(found.argmax()) if found.any() else len(some)
        if good:
            year, last = int(years[good - 1]), int(some[good - 1])
        if good < len(some):
            wrong[begin + good] = True
        begin += good + (good < len(some))
    return wrong


def _unfolded(seen: _Column, first: Ints, written: TimeFormat) -> Ints:
    """Times in UTC, those that occur twice as the order or what is said tells."""
    zone = str(written.zone)
    second = first if _is_plain(int(first.min()), int(first.max()), zone) else _second(first, zone)
    is_twice = second != first
    if written.fold in ("earlier", "later"):
        return first if written.fold == "earlier" else second
    places = np.flatnonzero(is_twice)
    begin, end = (int(places[0]), int(places[-1]) + 1) if len(places) else (len(first), len(first))
    values = first.copy() if len(places) else first
    _pass(seen, first[:begin], written)
    for place in range(begin, end):  # few: an hour in a year
        if not is_twice[place]:
            _pass(seen, first[place : place + 1], written)
            continue
        goes_back = seen.latest is not None and first[place] < seen.latest - _LATE
        if goes_back and seen.is_disordered and written.fold is None:
            raise _untold(_shown(int(first[place]), zone))
        values[place] = second[place] if goes_back else first[place]
        seen.is_decided |= goes_back
        seen.open = "" if goes_back or written.fold else seen.open or _shown(int(first[place]), zone)
        seen.latest = int(values[place] if seen.latest is None else max(values[place], seen.latest))
    _pass(seen, first[end:], written)
    return values


def _pass(seen: _Column, values: Ints, written: TimeFormat) -> None:
    if not len(values):
        return
    if seen.open:
        raise _untold(seen.open)
    before = np.maximum.accumulate(np.concatenate(([values[0] if seen.latest is None else seen.latest], values)))
    if not seen.is_disordered and (values < before[:-1]).any():
        if seen.is_decided and written.fold is None:
            raise _untold(_shown(int(values[np.argmax(values < before[:-1])]), str(written.zone)))
        seen.is_disordered = True
    seen.latest = int(before[-1])


def _second(first: Ints, zone: str) -> Ints:
    local = pc.local_timestamp(to_arrow(first).cast(pa.timestamp("us", tz=zone)))
    return to_numpy(localized(local, zone, ambiguous="latest").cast(pa.int64()))


def _is_plain(least: int, most: int, zone: str) -> bool:
    """Whether clocks are not set back around these times, which is certain where the first and the last agree."""
    if most - least > _NEAR:
        return False
    known = _zone(zone)
    return _at(least - _DAY // 4, known).utcoffset() == _at(most + _DAY // 4, known).utcoffset()


def _at(tick: int, zone: ZoneInfo) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick)).astimezone(zone)


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _shown(tick: int, zone: str) -> str:
    return f"{_at(tick, _zone(zone)):%Y-%m-%d %H:%M:%S} of {zone}"


def _untold(when: str) -> DataError:
    return DataError(
        f"the local time {when} occurs twice, because clocks are set back, and the order of the events does not tell "
        "which one it is",
        code="ACEP-D034",
        hint="say it: --time-fold earlier or later, or order (the first one until times go back); "
        "TimeFormat(..., fold='order') in Python. Or write times with their zone (2013-10-27T02:30:00+02:00)",
    )
