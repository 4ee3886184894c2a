"""Pictures of the report: work against its bound over time, what was shed, recall, bundles, strongest paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.budget.audit import RecallEstimate
from acep_approx.budget.ledger import Bundle, HistoryPath, PathStep, Piece, Shed, SpentRecord
from acep_approx.diagrams.text_layout import label
from acep_approx.events.counts import counted
from acep_approx.pages.drawing import MOST_PIECES, Panel, Times, cut, legend, percent, picture, short, steps, thinned
from acep_approx.pages.over_time import OverTime
from acep_approx.timeline.picture import RIGHT, WIDTH, moment_text
from acep_approx.visible import escape

MANY_STEPS = 1_000
YIELD = f"match points found by {MANY_STEPS:,} run-steps"
"""What a reader can compare where prices are not to be compared."""
MOST_STATES, MOST_REASONS, MOST_BUNDLES = 12, 5, 400


def load(record: SpentRecord) -> str:
    """Work against its bound, and what it depends on, over time.

    Parameters
    ----------
    record : SpentRecord
        With at least one piece; more than 240 are shown as 240.

    Returns
    -------
    str
        Five strips on one axis: work so far below the bound so far, run-steps per event, live runs, runs shed, price;
        of engines with prices of their own in the place of these the match points that work finds; where ends are
        searched, the events that are kept, and the ends that are left open.
    """
    pieces = thinned(record.pieces, MOST_PIECES)
    time = Times.of(pieces, record.begin)
    first = Panel(34, 170, steps(max(max(p.bound, p.work) for p in pieces), 4))
    parts = [*first.frame("run-steps so far")]
    lines = {name: time.line(first, [0, *(getattr(piece, name) for piece in pieces)]) for name in ("bound", "work")}
    below = f"L{time.edges[-1]:.1f} {first.y(0):.1f}H{time.edges[0]:.1f}Z"
    for name, kind, end in (
        ("bound", "room", below),
        ("work", "r0 soft", below),
        ("bound", "line l1 dash", ""),
        ("work", "line l0", ""),
    ):
        parts.append(f'<path class="{kind}" d="{lines[name]}{end}"/>')
    meanings = (("line l0", "work done"), ("line l1 dash", "allowed"))
    parts += legend(WIDTH - RIGHT - 190, first.top - 14, meanings, 110)
    work, bound, events = (
        np.diff([0, *(getattr(piece, name) for piece in pieces)]) for name in ("work", "bound", "events")
    )
    allowed = (bound / np.maximum(events, 1)).tolist()
    strips: list[tuple[str, list[float], int]] = [
        ("run-steps per event", (work / np.maximum(events, 1)).tolist(), 0),
        *_kept_and_left_out(record, pieces),
    ]
    if follows_runs(record):
        strips.append((*_worth_of_work(record, pieces), 2))
    top = first.top + first.height + 44
    for name, values, colour in strips:
        reach = max(values + (allowed if colour == 0 else []))
        panel = Panel(top, 62, steps(reach, 2))
        parts += [*panel.frame(name), time.stairs(panel, values, f"r{colour}")]
        if colour == 0:
            parts.append(time.stairs(panel, allowed, "line l1 dash", closed=False))
        top += 62 + 42
    base = top - 42
    parts += [*time.ticks(base, is_time=record.is_time), *_hits(record, pieces, time, base)]
    return picture(
        parts,
        width=WIDTH,
        height=base + 30,
        name="load",
        title="Load and budget over time",
        description=f"{record.work:,} run-steps of {record.allowed:,} allowed ones, over {record.events:,} events; "
        f"{record.shed_runs:,} runs were shed. The numbers are in the table below.",
    )


def keeps_events(record: SpentRecord) -> bool:
    """Whether events were kept, so that ends of matches could be searched."""
    return any(piece.kept for piece in record.pieces)


def follows_runs(record: SpentRecord) -> bool:
    """Whether runs were followed at some time: only then there is a price."""
    return not keeps_events(record) or any(piece.live or piece.shed for piece in record.pieces)


def _kept_and_left_out(record: SpentRecord, pieces: Sequence[Piece]) -> Iterator[tuple[str, list[float], int]]:
    """What is kept at a time, and what is left out: runs, or events and ends of matches that are searched."""
    for title, name, colour, of_search in (
        ("live runs", "live", 3, False),
        ("events kept", "kept", 3, True),
        ("runs shed", "shed", 1, False),
        ("ends left open", "open_ends", 1, True),
    ):
        values = [float(getattr(piece, name)) for piece in pieces]
        if of_search == keeps_events(record) or any(values):
            yield title, values if colour == 3 else np.diff([0.0, *values]).tolist(), colour


def _worth_of_work(record: SpentRecord, pieces: Sequence[Piece]) -> tuple[str, list[float]]:
    """The price over time; where engines have prices of their own, which are not to be compared, what work finds."""
    if not record.has_one_price:
        points, work = (np.diff([0, *(getattr(piece, name) for piece in pieces)]) for name in ("points", "work"))
        return YIELD, found_per_work(points, work).tolist()
    highest = max((piece.price for piece in pieces if isfinite(piece.price)), default=1.0)
    prices = [piece.price if isfinite(piece.price) else highest for piece in pieces]
    return "price: least gain per run-step of a run that is kept", prices  # one at which nothing is kept has no limit


def found_per_work(points: Ints | int, work: Ints | int) -> Floats:
    """Match points for each ``MANY_STEPS`` run-steps; 0 where there was no work."""
    return np.asarray(MANY_STEPS * np.asarray(points) / np.maximum(work, 1))


def _hits(record: SpentRecord, pieces: Sequence[Piece], time: Times, base: float) -> Iterator[str]:
    for piece, left, right in zip(pieces, time.edges, time.edges[1:], strict=False):
        said = (
            f"up to {moment_text(piece.tick, is_time=record.is_time)}\n{piece.events:,} events\n{piece.work:,} "
            f"run-steps of {piece.bound:,}\n{piece.live:,} live runs\n"
            f"{f'{piece.kept:,} events kept' + chr(10) if piece.kept else ''}"
            f"{f'price {piece.price:.4g}' + chr(10) if record.has_one_price and not piece.kept else ''}"
            f"{piece.shed:,} runs shed so far\n"
            f"{f'{piece.open_ends:,} ends left open so far' + chr(10) if piece.kept else ''}"
            f"{piece.points:,} match points so far"
        )
        yield (
            f'<rect class="hit" x="{left:.1f}" y="24" width="{max(right - left, 0.5):.1f}" height="{base - 24:.1f}">'
            f"<title>{escape(said)}</title></rect>"
        )


def by_state(shed: Sequence[Shed]) -> tuple[list[str], list[str], Counter[tuple[str, str]]]:
    """What was shed, for a table.

    Parameters
    ----------
    shed : sequence of Shed
        In any order.

    Returns
    -------
    tuple
        States and reasons, those of most runs first, at most 12 and 5 with the rest as one; runs by (state, reason).
    """
    counts: Counter[tuple[str, str]] = Counter()
    states = _ranked(shed, lambda one: one.state, MOST_STATES, "other states")
    reasons = _ranked(shed, lambda one: one.reason, MOST_REASONS, "other reasons")
    for one in shed:
        counts[states[one.state], reasons[one.reason]] += one.runs
    return list(dict.fromkeys(states.values())), list(dict.fromkeys(reasons.values())), counts


def _ranked(shed: Sequence[Shed], name: Callable[[Shed], str], most: int, rest: str) -> dict[str, str]:
    """Names by runs shed; from the ``most``-th on they are all called ``rest``."""
    sums: Counter[str] = Counter()
    for one in shed:
        sums[name(one)] += one.runs
    order = sorted(sums, key=lambda key: (-sums[key], key))
    return {key: key if len(order) <= most or i < most - 1 else rest for i, key in enumerate(order)}


def shed_bars(shed: Sequence[Shed]) -> str:
    """How many runs of each state were shed: bars, stacked by reason.

    Parameters
    ----------
    shed : sequence of Shed
        Not empty.

    Returns
    -------
    str
    """
    states, reasons, counts = by_state(shed)
    sums = {state: sum(counts[state, reason] for reason in reasons) for state in states}
    marks = steps(max(sums.values()), 4)
    width, left, right, top, lane = 560.0, 150.0, 60.0, 16.0 + 20 * len(reasons), 30.0
    scale = (width - left - right) / marks[-1]
    base = top + lane * len(states)
    parts = []
    for i, reason in enumerate(reasons):
        parts += [
            f'<rect class="r{i}" x="{left}" y="{4 + 20 * i}" width="12" height="12" rx="2"/>',
            label(left + 20, 14 + 20 * i, cut(reason, 60)),
        ]
    for mark in marks:
        x = left + mark * scale
        parts += [
            f'<path class="grid" d="M{x:.1f} {top:.1f}V{base:.1f}"/>',
            label(x, base + 18, short(mark), anchor="middle"),
        ]
    for row, state in enumerate(states):
        y, x = top + row * lane + 5, left
        parts.append(label(left - 10, y + 15, cut(state, 17), kind="ink", anchor="end"))
        for i, reason in enumerate(reasons):
            size = counts[state, reason] * scale
            if size:
                said = escape(f"{state}: {counts[state, reason]:,} {reason}")
                parts += [
                    f'<rect class="r{i}" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="20">',
                    f"<title>{said}</title></rect>",
                ]
            x += size
        parts.append(label(x + 8, y + 15, short(sums[state])))
    return picture(
        parts,
        width=width,
        height=base + 28,
        name="shed",
        title="What was shed",
        description=", ".join(f"{state}: {sums[state]:,} runs" for state in states),
    )


def recall_bar(estimate: RecallEstimate) -> str:
    """The estimate on a scale from 0 to 100%, with its interval.

    Parameters
    ----------
    estimate : RecallEstimate
        With an interval, if not with a number.

    Returns
    -------
    str
    """
    assert estimate.low is not None
    assert estimate.high is not None
    width, left, right, y = 560.0, 24.0, 24.0, 52.0
    low, high = (left + share * (width - left - right) for share in (estimate.low, estimate.high))
    parts = [f'<rect class="room" x="{left}" y="{y - 9}" width="{width - left - right}" height="18" rx="9"/>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = left + share * (width - left - right)
        parts += [f'<path class="axis" d="M{x:.1f} {y + 13}v6"/>', label(x, y + 34, percent(share), anchor="middle")]
    parts.append(
        f'<rect class="r0" fill-opacity=".35" x="{low:.1f}" y="{y - 9}" width="{high - low:.1f}" height="18"/>'
    )
    parts.append(f'<path class="line l0" d="M{low:.1f} {y - 13}v26M{high:.1f} {y - 13}v26"/>')
    if estimate.recall is not None:
        at = left + estimate.recall * (width - left - right)
        parts.append(f'<circle class="r0" cx="{at:.1f}" cy="{y}" r="7"/>')
        parts.append(
            label(min(max(at, 50), width - 50), y - 24, percent(estimate.recall), kind="head", anchor="middle")
        )
    number = "" if estimate.recall is None else f"{percent(estimate.recall)}, "
    return picture(
        parts,
        width=width,
        height=98,
        name="recall",
        title="Estimated recall",
        description=f"{number}between {percent(estimate.low)} and {percent(estimate.high)} "
        f"with {percent(estimate.level)} confidence.",
    )


def recall_lanes(known: Sequence[tuple[str, RecallEstimate]]) -> str:
    """Several estimates below one another: a dot each, and a band for its interval.

    Parameters
    ----------
    known : sequence of (str, RecallEstimate)
        Names, each with an estimate that has an interval; not empty.

    Returns
    -------
    str
    """
    width, left, right, top, lane = 560.0, 150.0, 66.0, 8.0, 26.0
    base = top + lane * len(known)
    size = width - left - right
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = left + share * size
        parts.append(f'<path class="grid" d="M{x:.1f} {top:.1f}V{base:.1f}"/>')
        parts.append(label(x, base + 18, percent(share), anchor="middle"))
    said_of = []
    for row, (name, estimate) in enumerate(known):
        y = top + row * lane + lane / 2
        low, high = estimate.low or 0.0, 1.0 if estimate.high is None else estimate.high
        number = "unknown" if estimate.recall is None else percent(estimate.recall)
        said = f"{name}: {number}, between {percent(low)} and {percent(high)}"
        said_of.append(said)
        parts += [
            f"<g><title>{escape(said)}</title>",
            label(left - 10, y + 5, cut(name, 17), kind="ink", anchor="end"),
        ]
        band = f'x="{left + low * size:.1f}" y="{y - 6:.1f}" width="{max((high - low) * size, 1):.1f}"'
        parts.append(f'<rect class="r0" fill-opacity=".35" {band} height="12" rx="2"/>')
        if estimate.recall is not None:
            parts.append(f'<circle class="r0" cx="{left + estimate.recall * size:.1f}" cy="{y:.1f}" r="5"/>')
        parts.append(label(width - right + 10, y + 5, number) + "</g>")
    return picture(
        parts, width=width, height=base + 26, name="worst", title="Estimated recall", description="; ".join(said_of)
    )


def bundle_strip(bundles: Sequence[Bundle], picture: OverTime) -> str:
    """Bundles below the match points: as long as they last, as high as their number of match points.

    Parameters
    ----------
    bundles : sequence of Bundle
        Not empty; of more than 400 the largest are shown.
    picture : OverTime
        The picture of their match points.

    Returns
    -------
    str
        A strip of the picture.
    """
    shown = sorted(sorted(bundles, key=lambda b: (-b.points, b.first))[:MOST_BUNDLES], key=lambda b: b.first)
    most = max(b.points for b in bundles)
    bars = []
    for bundle in shown:
        x, end = (1000 * float(picture.share(tick)) for tick in (bundle.first, bundle.last))
        ticks = dict.fromkeys((bundle.first, bundle.last))
        span = " to ".join(moment_text(tick, is_time=picture.is_time) for tick in ticks)
        bars.append(
            f'<rect class="f4" fill-opacity=".75" x="{x:.2f}" y="{most - bundle.points}" '
            f'width="{max(end - x, 1.5):.2f}" height="{bundle.points}"><title>{escape(span)}: {bundle.points:,} match '
            "points</title></rect>"
        )
    name = "match points per bundle" if len(shown) == len(bundles) else f"the {len(shown)} largest bundles"
    said = f"{len(bundles):,} bundles; the largest has {most:,} match points"
    return (
        f'<div class="strip"><div class="strip-head"><span><i class="swatch f4"></i>{name}</span><span class="end">'
        f'{len(bundles):,} bundles</span></div>\n<div class="plot" style="height:60px" role="img" aria-label="{said}">'
        f'<span class="top">{most:,}</span><svg viewBox="0 0 1000 {most}" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(bars)}</svg></div></div>'
    )


# --- the strongest paths of the history, as a person can read them ------------------------------------------------

_NUMBER = re.compile(r"\W*(?:state\s*)?\d*\W*", re.IGNORECASE)
"""A state that is a number, or has no name."""
MOST_PATHS, MOST_STEPS = 5, 6
_TOP, _NODE, _FLOW, _LEAST, _SLOT, _GAP = 16.0, 10.0, 170.0, 6.0, 50.0, 16.0
"""Margin, width of a vertex, thickness of all bands and of the thinnest, height of a vertex, gap between two."""


def readable_paths(paths: Sequence[HistoryPath]) -> list[HistoryPath]:
    """The ways that paths stand for.

    Parameters
    ----------
    paths : sequence of HistoryPath
        Strongest first. Many differ only in how much of the window is left, or in what registers hold.

    Returns
    -------
    list of HistoryPath
        Strongest first, without details. Empty where states have no names, or all go the same way: that says nothing.

    Examples
    --------
    >>> a, late, b = PathStep("a", 0, "90% left"), PathStep("a", 0, "10% left"), PathStep("b", 0)
    >>> paths = [HistoryPath([a, late, b], 3, 0.3), HistoryPath([a, b], 2, 0.2), HistoryPath([b], 1, 0.1)]
    >>> [("-".join(step.state for step in way.steps), way.count) for way in readable_paths(paths)]
    [('a-b', 5.0), ('b', 1.0)]
    """
    sums: dict[tuple[tuple[str, int], ...], tuple[float, float]] = {}
    for path in paths:
        steps = [(step.state, step.errors) for step in path.steps]
        way = tuple(step for at, step in enumerate(steps) if not at or step != steps[at - 1])
        count, share = sums.get(way, (0.0, 0.0))
        sums[way] = (count + path.count, share + path.share)
    if len(sums) < 2 or any(_NUMBER.fullmatch(state) for way in sums for state, _ in way):
        return []
    found = [HistoryPath([PathStep(*step) for step in way], *both) for way, both in sums.items()]
    return sorted(found, key=lambda way: -way.count)


@dataclass
class _Node:
    """A vertex in one column of the picture; without words: the place where a band passes by a column."""

    words: tuple[str, ...]
    paths: list[int] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    thickness: float = 0.0

    @property
    def width(self) -> float:
        return _NODE if self.words else 0.0

    @property
    def height(self) -> float:
        """What it takes in its column: room for its words."""
        return max(self.thickness, _SLOT) if self.words else self.thickness


def words(step: PathStep) -> str:
    """A vertex in a line: ``a b, 1 error, 50-62% left``."""
    return ", ".join(part for part in (step.state, counted(step.errors, "error"), step.details) if part)


def flow(paths: Sequence[HistoryPath]) -> str:
    """A picture of paths through the history graph.

    Parameters
    ----------
    paths : sequence of HistoryPath
        Strongest first, not empty; the first five are drawn, long ones without their middle.

    Returns
    -------
    str
        Columns of vertices: where paths share their k-th vertex, they share its place. Bands are as thick as their
        share.
    """
    shown = list(paths[:MOST_PATHS])
    total = sum(path.share for path in shown)
    thick = [max(_LEAST, _FLOW * path.share / total if total else 0.0) for path in shown]
    columns, routes = _columns(shown)
    height = _place(columns, thick)
    parts = _bands(shown, routes, thick)
    for node in (node for column in columns for node in column if node.words):
        parts.append(
            f'<rect x="{node.x:.1f}" y="{node.y:.1f}" width="{_NODE}" height="{node.thickness:.1f}" rx="2" '
            f'fill="currentColor"><title>{escape(", ".join(node.words))}</title></rect>'
        )
    parts += _names(columns)
    return picture(
        parts,
        width=WIDTH,
        height=height,
        name="paths",
        title="The strongest paths of the history",
        description="; ".join(f"{percent(path.share)}: {' to '.join(map(words, path.steps))}" for path in shown) + ".",
    )


def _columns(paths: Sequence[HistoryPath]) -> tuple[list[list[_Node]], list[list[_Node]]]:
    """Vertices by column, and by path; all paths end in the one vertex of the last column."""
    longest = max(min(len(path.steps), MOST_STEPS) for path in paths)
    columns: list[dict[object, _Node]] = [{} for _ in range(longest)]
    end = _Node(("match point",))
    routes = []
    for number, path in enumerate(paths):
        route = []
        cells = _cells(path)
        cells += [()] * (longest - len(cells))
        for column, said in zip(columns, cells, strict=True):
            node = column.setdefault(said or number, _Node(said))
            node.paths.append(number)
            route.append(node)
        end.paths.append(number)
        routes.append([*route, end])
    return [*(list(column.values()) for column in columns), [end]], routes


def _cells(path: HistoryPath) -> list[tuple[str, ...]]:
    """The lines of each vertex; those in the middle of a long path are one."""
    lines = [(step.state, counted(step.errors, "error"), *filter(None, (step.details,))) for step in path.steps]
    if len(lines) <= MOST_STEPS:
        return lines
    half = MOST_STEPS // 2
    return [*lines[:half], ("…", f"{len(lines) - MOST_STEPS + 1} more"), *lines[half + 1 - MOST_STEPS :]]


def _place(columns: list[list[_Node]], thick: list[float]) -> float:
    heights = []
    for column in columns:
        for node in column:
            node.thickness = sum(thick[number] for number in node.paths)
        heights.append(sum(node.height + _GAP for node in column) - _GAP)
    tallest, step = max(heights), (WIDTH - 2 * _TOP - 90) / max(len(columns) - 1, 1)
    for i, (column, height) in enumerate(zip(columns, heights, strict=True)):
        y = _TOP + (tallest - height) / 2
        for node in column:
            node.x, node.y = _TOP + i * step, y
            y += node.height + _GAP
    return tallest + 2 * _TOP


def _bands(paths: Sequence[HistoryPath], routes: list[list[_Node]], thick: list[float]) -> list[str]:
    parts = []
    for number, (path, route) in enumerate(zip(paths, routes, strict=True)):
        said = escape(f"{percent(path.share)} ({path.count:,.0f} completions): {' → '.join(map(words, path.steps))}")
        size = thick[number]
        tops = [node.y + sum(thick[n] for n in node.paths[: node.paths.index(number)]) for node in route]
        shape = ""
        for (one, y), (two, z) in pairwise(zip(route, tops, strict=True)):
            left, right = one.x + one.width, two.x
            half = (left + right) / 2
            shape += (
                f"M{left:.1f} {y:.1f}C{half:.1f} {y:.1f} {half:.1f} {z:.1f} {right:.1f} {z:.1f}v{size:.1f}"
                f"C{half:.1f} {z + size:.1f} {half:.1f} {y + size:.1f} {left:.1f} {y + size:.1f}Z"
            )
        parts.append(f'<path class="r{number} band" d="{shape}"><title>{said}</title></path>')
    return parts


def _names(columns: list[list[_Node]]) -> list[str]:
    parts = []
    room = int((WIDTH - 2 * _TOP - 90) / max(len(columns) - 1, 1) / 7.2)
    for node in (node for column in columns for node in column):
        for i, text in enumerate(node.words):
            kind = "" if i else "head"
            parts.append(label(node.x + _NODE + 6, node.y + 14 + 17 * i, cut(text, max(room, 12)), kind=kind))
    return parts
