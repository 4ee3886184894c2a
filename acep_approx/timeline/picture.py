"""Where the matches lie in time: a histogram of match points as SVG, with bins and ticks that people can name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.diagrams.colours import FONT, SERIES, variables
from acep_approx.events.columns import integers
from acep_approx.events.counts import counted
from acep_approx.visible import escape

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
    """Return the times of a bin as text; ``end`` is the first tick behind it.

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


# --- the picture --------------------------------------------------------------------------------------------------

WIDTH, LEFT, RIGHT, TOP, PLOT = 960, 64, 20, 64, 240
LANE, LANE_GAP = 16, 8
BINS, TICKS = 72, 10
NAMED = 300
"""Most points of a lane that get a text of their own."""

_STYLE = f"""
{variables(".acep")}
.acep{{font:13px/1.4 {FONT}}}
.acep text{{fill:var(--soft)}}.acep .ink{{fill:var(--ink)}}
.acep .back{{fill:var(--back)}}.acep .grid{{stroke:var(--grid)}}
{"".join(f".acep .s{i}{{fill:var(--c{i})}}.acep .m{i}{{stroke:var(--c{i})}}" for i in range(SERIES))}
.acep .bin:hover .bar{{opacity:.75}}.acep .hit{{fill:transparent}}
.acep .bin:hover .hit{{fill:var(--ink);fill-opacity:.06}}
"""


def svg(points: pa.Table, *, is_time: bool, title: str = "match points over time") -> str:
    """The timeline as one ``<svg>`` element with its own style, for embedding.

    Parameters
    ----------
    points : pyarrow.Table
        Columns ``errors`` and ``end``, as ``Matches.points`` makes them.
    is_time : bool
        Whether ``end`` holds times, or integers.
    title : str
        Written above the picture.

    Returns
    -------
    str
        Above the axis the number of match points per bin, stacked by number of errors; below it a lane per number of
        errors, with a mark for every point.
    """
    errors, ends = integers(points, "errors"), integers(points, "end")
    series = [
        (f"{level} or more" if with_more else counted(level, "error"), where)
        for level, with_more, where in by_errors(errors)
    ]
    height = TOP + PLOT + 34 + len(series) * (LANE + LANE_GAP) + 8
    total = counted(len(ends), "match point")
    parts = [
        (
            f'<svg class="acep" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-label="{escape(title)}: {total}">'
        ),
        f"<style>{_STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}" rx="6"/>',
        f'<text class="ink" x="{LEFT}" y="24" font-size="15" font-weight="600">{escape(title)}</text>',
    ]
    if len(ends):
        parts += _Picture(ends, errors, series, is_time=is_time).parts()
    else:
        parts.append(f'<text x="{WIDTH / 2}" y="{TOP + PLOT / 2}" text-anchor="middle">no match points</text>')
    return "\n".join([*parts, "</svg>"])


def by_errors(errors: Ints) -> list[tuple[int, bool, Bools]]:
    """The points by number of errors: how many, whether those of more are with them, and where they are.

    More groups than there are colours could not be told apart.
    """
    levels = np.unique(errors).tolist()
    groups = [(level, False, errors == level) for level in levels[:SERIES]]
    if len(levels) > SERIES:
        groups[-1] = (levels[SERIES - 1], True, errors >= levels[SERIES - 1])
    return groups


class _Picture:
    def __init__(
        self, ends: Ints, errors: Ints, series: list[tuple[str, Bools]], *, is_time: bool
    ) -> None:
        self.ends, self.errors, self.series, self.is_time = ends, errors, series, is_time
        self.edges = bin_edges(int(ends.min()), int(ends.max()), BINS, is_time=is_time)
        self.counts = np.stack([np.histogram(ends[where], self.edges)[0] for _, where in series])
        self.step = nice(int(self.counts.sum(axis=0).max()) / 4)
        self.top = -(-int(self.counts.sum(axis=0).max()) // self.step) * self.step
        self.base = TOP + PLOT

    def x(self, at: int) -> float:
        low, high = int(self.edges[0]), int(self.edges[-1])
        return round(LEFT + (at - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, count: int) -> float:
        return round(self.base - count / self.top * PLOT, 1)

    def parts(self) -> Iterator[str]:
        """Everything but the frame."""
        x = LEFT
        for i, (name, where) in enumerate(self.series):
            text = f"{name}: {int(where.sum()):,}"
            yield f'<rect class="s{i}" x="{x}" y="37" width="12" height="12" rx="2"/>'
            yield f'<text x="{x + 18}" y="47">{text}</text>'
            x += 34 + 7 * len(text)
        unit = width_text(int(self.edges[1] - self.edges[0]), is_time=self.is_time)
        yield f'<text x="{WIDTH - RIGHT}" y="47" text-anchor="end">match points per {unit}</text>'
        for count in range(0, self.top + 1, self.step):
            y = self.y(count)
            yield f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{count:,}</text>'
        yield from self._bars()
        for tick in axis_ticks(int(self.edges[0]), int(self.edges[-1]), TICKS, is_time=self.is_time):
            at = self.x(tick.at)
            yield f'<path class="grid" d="M{at} {self.base}v6"/>'
            yield f'<text x="{at}" y="{self.base + 20}" text-anchor="middle">{tick.label}</text>'
        yield from self._lanes()

    def _bars(self) -> Iterator[str]:
        for column, (begin, end) in enumerate(zip(self.edges.tolist(), self.edges[1:].tolist(), strict=False)):
            counts = self.counts[:, column].tolist()
            if not any(counts):
                continue
            left, right = self.x(begin), self.x(end)
            gap = min(1.0, (right - left) / 8)
            said = [f"{name}: {n:,}" for (name, _), n in zip(self.series, counts, strict=True) if n]
            span = span_text(begin, end, is_time=self.is_time)
            yield f'<g class="bin"><title>{span}\n{escape(chr(10).join(said))}</title>'
            yield f'<rect class="hit" x="{left}" y="{TOP}" width="{right - left:.1f}" height="{PLOT}"/>'
            below = 0
            for i, n in enumerate(counts):
                if n:
                    low, high = self.y(below), self.y(below + n)
                    yield (
                        f'<rect class="bar s{i}" x="{left + gap / 2:.1f}" y="{high}" width="{right - left - gap:.1f}" '
                        f'height="{low - high:.1f}"/>'
                    )
                below += n
            yield "</g>"

    def _lanes(self) -> Iterator[str]:
        """One mark per point; so that few points are seen beside many."""
        for i, (name, where) in enumerate(self.series):
            y = self.base + 34 + i * (LANE + LANE_GAP)
            yield f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{name}</text>'
            yield f'<path class="grid" d="M{LEFT} {y + LANE}H{WIDTH - RIGHT}"/>'
            ends = self.ends[where]
            if len(ends) <= NAMED:
                for at, errors in zip(ends.tolist(), self.errors[where].tolist(), strict=True):
                    said = f"{moment_text(at, is_time=self.is_time)}: {counted(errors, 'error')}"
                    mark = f"M{self.x(at)} {y}v{LANE}"
                    yield f'<path class="m{i}" stroke-width="2" d="{mark}"><title>{said}</title></path>'
            else:
                places = sorted({self.x(at) for at in np.unique(ends).tolist()})
                marks = "".join(f"M{x} {y}v{LANE}" for x in places)
                yield f'<path class="m{i}" stroke-width=".5" stroke-opacity=".7" d="{marks}"/>'
