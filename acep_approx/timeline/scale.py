"""Scales of a timeline: where bins begin, and which ticks an axis of times or numbers gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Ints

SECOND = 1_000_000
DAY = 86_400 * SECOND
MONDAY = 4 * DAY
"""The first Monday, in microseconds since 1970-01-01, a Thursday."""
_UNITS = (
    *(n * 10**p for p in range(6) for n in (1, 2, 5)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * 60 * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * 3600 * SECOND for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182, 365)),
)
"""Widths that people can name, in microseconds."""
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000)


@dataclass(frozen=True)
class Tick:
    """A mark on the axis: its place in ticks of the data, and its text."""

    at: int
    label: str


def nice(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that is not below ``least``.

    Examples
    --------
    >>> nice(0.3), nice(3), nice(60)
    (1, 5, 100)
    """
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10


def bin_edges(low: int, high: int, most: int, *, is_time: bool) -> Ints:
    """Borders of equal bins that hold all of ``low .. high``.

    Parameters
    ----------
    low, high : int
        First and last value.
    most : int
        Most bins.
    is_time : bool
        Values are microseconds since 1970: bins are minutes, hours, days, weeks, ...

    Returns
    -------
    numpy.ndarray of int64
        One more than there are bins; a bin holds its left border, not its right one.
    """
    least = (high - low + 1) / max(most - 1, 1)
    width = next((unit for unit in _UNITS if unit >= least), None) if is_time else nice(least)
    if width is None:
        width = _UNITS[-1] * nice(least / _UNITS[-1])
    origin = MONDAY if is_time and width % (7 * DAY) == 0 else 0
    first = (low - origin) // width * width + origin
    count = (high - first) // width + 1
    return first + width * np.arange(count + 1)


def axis_ticks(low: int, high: int, most: int, *, is_time: bool) -> list[Tick]:
    """Ticks between ``low`` and ``high``, at round numbers or at dates and times that people can name."""
    if not is_time:
        step = nice((high - low) / most)
        return [Tick(at, f"{at:,}") for at in range(-(-low // step) * step, high + 1, step)]
    least = (high - low) / most
    if least > 7 * DAY:
        return _month_ticks(low, high, least)
    step = next(unit for unit in _UNITS if unit >= least)
    origin = MONDAY if step == 7 * DAY else 0
    first = -(-(low - origin) // step) * step + origin
    places = range(first, high + 1, step)
    return [Tick(at, _label(at, step, is_first=at == first)) for at in places]


def _month_ticks(low: int, high: int, least: float) -> list[Tick]:
    step = next((n for n in _MONTHS if n * 30 * DAY >= least), _MONTHS[-1])
    first, last = (int(np.datetime64(at, "us").astype("datetime64[M]").astype(np.int64)) for at in (low, high))
    months = np.arange(-(-first // step) * step, last + 1, step).astype("datetime64[M]")
    places = [(int(month.astype("datetime64[us]").astype(np.int64)), str(month)) for month in months]
    places = [(at, name) for at, name in places if low <= at <= high]
    if step >= 12:
        return [Tick(at, name[:-3]) for at, name in places]
    names = [_month(name, with_year=i == 0 or name.endswith("-01")) for i, (_, name) in enumerate(places)]
    return [Tick(at, name) for (at, _), name in zip(places, names, strict=True)]


def _month(name: str, *, with_year: bool) -> str:
    """``2013-02`` as people write it."""
    words = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    year, _, month = name.rpartition("-")
    return f"{words[int(month) - 1]} {year}" if with_year else words[int(month) - 1]


def day_text(at: int, *, with_year: bool = True) -> str:
    """The day of a moment: ``20 Feb 2013``."""
    name = str(np.datetime64(at, "us").astype("datetime64[D]"))
    return f"{int(name[-2:])} {_month(name[:-3], with_year=with_year)}"


def _label(at: int, step: int, *, is_first: bool) -> str:
    """A date at midnight and first of all, else the time of the day, as finely as the step asks."""
    if at % DAY == 0 or step >= DAY:
        return day_text(at, with_year=is_first)
    time = clock_text(at, step)
    return f"{day_text(at, with_year=False)}, {time}" if is_first else time


def clock_text(at: int, step: int) -> str:
    """The time of the day, as finely as ``step`` asks."""
    text = str(np.datetime64(at, "us"))[-15:]  # 17:45:00.500000
    if step % (60 * SECOND) == 0:
        return text[:5]
    return text[:8] if step % SECOND == 0 else text.rstrip("0").rstrip(".")


def moment_text(at: int, *, is_time: bool) -> str:
    """A moment for people.

    Examples
    --------
    >>> moment_text(2 * DAY + SECOND, is_time=True), moment_text(1200, is_time=False)
    ('3 Jan 1970, 00:00:01', '1,200')
    """
    return f"{day_text(at)}, {clock_text(at, 1)}" if is_time else f"{at:,}"


def span_text(begin: int, end: int, *, is_time: bool) -> str:
    """What a bin from ``begin`` up to, not including, ``end`` covers.

    Examples
    --------
    >>> span_text(0, 7 * DAY, is_time=True), span_text(0, 10, is_time=False)
    ('1 Jan 1970 to 7 Jan 1970', '0 to 9')
    """
    width = end - begin
    if not is_time:
        return f"{begin:,}" if width == 1 else f"{begin:,} to {end - 1:,}"
    if width == DAY:
        return day_text(begin)
    if width > DAY:
        return f"{day_text(begin)} to {day_text(end - DAY)}"
    return f"{day_text(begin)}, {clock_text(begin, width)} to {clock_text(end, width)}"


def width_text(width: int, *, is_time: bool) -> str:
    """A width in words.

    Examples
    --------
    >>> width_text(7 * DAY, is_time=True), width_text(3600 * SECOND, is_time=True), width_text(20, is_time=False)
    ('week', 'hour', '20 ticks')
    """
    if not is_time:
        return "tick" if width == 1 else f"{width:,} ticks"
    units = (("week", 7 * DAY), ("day", DAY), ("hour", 3600 * SECOND), ("minute", 60 * SECOND), ("second", SECOND))
    name, size = next(((name, size) for name, size in (*units, ("millisecond", 1000)) if width % size == 0), ("us", 1))
    return name if width == size else f"{width // size:,} {name}{'' if name == 'us' else 's'}"
