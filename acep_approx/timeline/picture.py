"""Where the matches lie in time: a histogram of match points as SVG."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.diagrams.colours import FONT, SERIES, variables
from acep_approx.events.columns import integers
from acep_approx.timeline.scale import axis_ticks, bin_edges, moment_text, nice, span_text, width_text
from acep_approx.visible import escape

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
        (f"{level} or more" if with_more else f"{level} error{'' if level == 1 else 's'}", where)
        for level, with_more, where in by_errors(errors)
    ]
    height = TOP + PLOT + 34 + len(series) * (LANE + LANE_GAP) + 8
    total = f"{len(ends):,} match point{'' if len(ends) == 1 else 's'}"
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
    """The parts of a timeline with at least one point."""

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
                    said = f"{moment_text(at, is_time=self.is_time)}: {errors} error{'' if errors == 1 else 's'}"
                    mark = f"M{self.x(at)} {y}v{LANE}"
                    yield f'<path class="m{i}" stroke-width="2" d="{mark}"><title>{said}</title></path>'
            else:
                places = sorted({self.x(at) for at in np.unique(ends).tolist()})
                marks = "".join(f"M{x} {y}v{LANE}" for x in places)
                yield f'<path class="m{i}" stroke-width=".5" stroke-opacity=".7" d="{marks}"/>'
