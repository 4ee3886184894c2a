"""Match points over time as strips that fit any width: bars and marks stretch with the page, words do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.diagrams.colours import SERIES
from acep_approx.events.columns import integers
from acep_approx.events.counts import counted
from acep_approx.pages.code import code
from acep_approx.pages.shell import page
from acep_approx.timeline.picture import axis_ticks, bin_edges, by_errors, nice, span_text, width_text
from acep_approx.visible import escape

BINS, TICKS, MOST_STRIPS = 72, 8, 12
MOST_MARKS = 1_200
"""Marks of a lane: more cannot be told apart on any screen."""
SLIVER = 0.15
"""A series whose highest bar is a smaller part of the highest one gets a strip of its own: it would not be seen."""


@dataclass(frozen=True)
class Series:
    """Match points that have one colour, and the bar heights by bin."""

    name: str
    colour: int
    ticks: Ints
    counts: Ints


@dataclass(frozen=True)
class Points:
    """The match points of a query.

    Attributes
    ----------
    name : str
        Of the query; empty where there is one only.
    ticks, errors : numpy.ndarray of int64
        Equally long.
    """

    name: str
    ticks: Ints
    errors: Ints


@dataclass(frozen=True)
class Near:
    """A place of interest beside the match points: its tick, what is said of it, whether it is a shed match."""

    tick: int
    said: str
    is_shed: bool = False


class OverTime:
    """The picture.

    Parameters
    ----------
    queries : sequence of Points
        With at least one match point or place in all.
    near : sequence of Near
        Marked in a lane of their own.
    is_time : bool
        Whether ticks are microseconds since 1970.
    least : int
        How long the axis is where there is one moment only, in ticks.

    Attributes
    ----------
    edges : numpy.ndarray of int64
        Borders of the bins.
    """

    def __init__(self, queries: Sequence[Points], near: Sequence[Near], *, is_time: bool, least: int = 1) -> None:
        places = np.concatenate([*(one.ticks for one in queries), np.array([one.tick for one in near], np.int64)])
        self.is_time, self.near = is_time, near
        low, high = int(places.min()), int(places.max())
        self.edges = bin_edges(low if low < high else high - least, high, BINS, is_time=is_time)
        filled = [(number, one) for number, one in enumerate(queries) if len(one.ticks)]
        filled.sort(key=lambda item: -len(item[1].ticks))
        self.shown, self.left_out = sorted(filled[:MOST_STRIPS], key=lambda item: item[0]), filled[MOST_STRIPS:]

    def html(self, more: str = "") -> str:
        """The picture as HTML, already escaped; needs the style sheet of the pages. ``more``: strips above the axis."""
        begin = f'<div class="over-time" data-bins="{len(self.edges) - 1}">'
        rest = []
        if self.left_out:
            others = sum(len(one.ticks) for _, one in self.left_out)
            rest.append(
                f'<p class="soft">Drawn are the {len(self.shown)} queries with most match points; '
                f"{len(self.left_out):,} others have {others:,} more.</p>"
            )
        return "\n".join([begin, *self._strips(), *self._near(), more, self._axis(), "</div>", *rest])

    def bins(self, ticks: Ints) -> Ints:
        """How many of some ticks lie in each bin."""
        counts: Ints = np.histogram(ticks, self.edges)[0].astype(np.int64)
        return counts

    # --- strips ---------------------------------------------------------------------------------------------

    def _strips(self) -> Iterator[str]:
        for number, points in self.shown:
            series = self._series(points)
            tallest = [int(one.counts.max()) for one in series]
            has_slivers = len(series) > 3 or min(tallest) < SLIVER * max(tallest)  # or too many to read
            groups = [[one] for one in series] if has_slivers else [series]
            height = 150 if len(self.shown) * len(groups) == 1 else 76
            for group in groups:
                yield self._strip(points.name, number, group, height)

    def _series(self, points: Points) -> list[Series]:
        """By number of errors; those that could not be told apart are one."""
        groups = by_errors(points.errors)
        is_few = groups[-1][0] < SERIES and not groups[-1][1]
        series = []
        for number, (level, with_more, where) in enumerate(groups):
            name = f"{level} or more errors" if with_more else counted(level, "error")
            if len(groups) == 1 and not level:  # nothing is to be told apart
                name = "match points"
            ticks = points.ticks[where]
            series.append(Series(name, level if is_few else number, ticks, self.bins(ticks)))  # as the table has it
        return series

    def _strip(self, name: str, number: int, series: list[Series], height: int) -> str:
        sums = np.sum([one.counts for one in series], axis=0)
        most = int(sums.max())
        step = nice(most / (4 if height > 100 else 2))
        top = -(-most // step) * step
        heads = [f"<b>{escape(name)}</b>"] if name else []
        heads += [
            f'<span><i class="swatch f{one.colour}"></i>{escape(one.name)}: {len(one.ticks):,}</span>' for one in series
        ]
        unit = width_text(int(self.edges[1] - self.edges[0]), is_time=self.is_time)
        said = f"{name + ': ' if name else ''}match points per {unit}; " + ", ".join(
            f"{one.name}: {len(one.ticks):,}" for one in series
        )
        guides = "".join(
            f'<i class="guide" style="bottom:{100 * mark / top:.4g}%"></i>' for mark in range(step, top + 1, step)
        )
        bars = "".join(self._bars(series, sums, top))
        return (
            f'<div class="strip"><div class="strip-head">{"".join(heads)}<span class="end">match points per '
            f'{unit}</span></div>\n<div class="plot" data-query="{number}" style="height:{height}px" role="img" '
            f'aria-label="{escape(said)}">{guides}<span class="top">{top:,}</span>\n'
            f'<svg viewBox="0 0 {len(sums)} {top}" preserveAspectRatio="none" aria-hidden="true">{bars}</svg></div>\n'
            f"{''.join(self._marks(series))}</div>"
        )

    def _bars(self, series: list[Series], sums: Ints, top: int) -> Iterator[str]:
        for column in np.flatnonzero(sums).tolist():
            begin, end = int(self.edges[column]), int(self.edges[column + 1])
            said = [span_text(begin, end, is_time=self.is_time)]
            said += [f"{one.name}: {one.counts[column]:,}" for one in series if one.counts[column]]
            yield f"<g><title>{escape(chr(10).join(said))}</title>"
            below = 0
            for one in series:
                if number := int(one.counts[column]):
                    yield (
                        f'<rect class="f{one.colour}" x="{column + 0.08:g}" y="{top - below - number}" width="0.84" '
                        f'height="{number}"/>'
                    )
                    below += number
            yield "</g>"

    def _marks(self, series: list[Series]) -> Iterator[str]:
        """A lane for each series, with a mark for every point; so that few points are seen beside many."""
        for one in series:
            places = np.unique(np.round(self.share(one.ticks) * MOST_MARKS).astype(np.int64)).tolist()
            path = "".join(f"M{x} 0v1" for x in places)
            width = 1.5 if len(places) < 150 else 1
            yield (
                f'<div class="marks"><svg viewBox="0 0 {MOST_MARKS} 1" preserveAspectRatio="none" aria-hidden="true">'
                f'<path class="k{one.colour}" stroke-width="{width}" d="{path}"/></svg></div>'
            )

    # --- what is below the strips ---------------------------------------------------------------------------

    def _near(self) -> Iterator[str]:
        if not self.near:
            return
        dots = "".join(
            f'<span class="dot near" data-near="{number}" style="left:{100 * float(self.share(one.tick)):.3f}%" '
            f'title="{escape(one.said)}"></span>'
            for number, one in enumerate(self.near)
        )
        number = counted(len(self.near), "place")
        shed = sum(one.is_shed for one in self.near)
        told = f"nearly matched: {number}" if not shed else f"shed or nearly matched: {number}, {shed:,} of them shed"
        yield (
            f'<div class="strip"><div class="strip-head"><span><i class="swatch near"></i>{told}</span></div>\n'
            f'<div class="marks dots" role="img" aria-label="{told}">{dots}</div></div>'
        )

    def _axis(self) -> str:
        low, high = int(self.edges[0]), int(self.edges[-1])
        ticks = axis_ticks(low, high, TICKS, is_time=self.is_time)
        spans = []
        for number, tick in enumerate(ticks):
            share = float(self.share(tick.at))
            told = {"minor": number % 2, "first": share < 0.03, "last": share > 0.97}
            kinds = [kind for kind, is_so in told.items() if is_so]
            kind = f' class="{" ".join(kinds)}"' if kinds else ""
            spans.append(f'<span{kind} style="left:{100 * share:.3f}%">{escape(tick.label)}</span>')
        return f'<div class="times" aria-hidden="true">{"".join(spans)}</div>'

    def share(self, ticks: int | Ints) -> float | np.ndarray:
        """Where ticks lie on the axis: from 0 to 1."""
        low, high = int(self.edges[0]), int(self.edges[-1])
        return (ticks - low) / (high - low)


def timeline_html(points: pa.Table, *, title: str, subtitle: str, is_time: bool, query: str = "") -> str:
    """A page that shows where match points lie in time.

    Parameters
    ----------
    points : pyarrow.Table
        Columns ``errors`` and ``end``, as ``Matches.points`` makes them.
    title, subtitle : str
        Heading and explanation; plain text, empty lines separate paragraphs.
    is_time : bool
        Whether ``end`` holds times, or integers.
    query : str
        Shown as code; empty: none.

    Returns
    -------
    str
        HTML; needs no other file and no network.

    Complexity: linear in the number of points; the size of the page is bounded.
    """
    ticks, errors = integers(points, "end"), integers(points, "errors")
    shown = "<p>no match points</p>"
    if len(ticks):
        shown = OverTime([Points("", ticks, errors)], [], is_time=is_time).html()
    told = [f"<p>{escape(text)}</p>" for text in subtitle.split("\n\n")]
    return page(title, [f"<h1>{escape(title)}</h1>", *told, *([code(query)] if query else []), shown])
