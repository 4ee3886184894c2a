"""The strongest paths of the history, as a person can read them: bands from the first event to the match point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from acep_approx.budget.ledger import HistoryPath, PathStep
from acep_approx.diagrams.text_layout import label
from acep_approx.pages.drawing import cut, percent, picture
from acep_approx.timeline.picture import WIDTH
from acep_approx.visible import escape

if TYPE_CHECKING:
    from acep_approx.budget.ledger import HistoryPath, PathStep

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


def _errors(step: PathStep) -> str:
    return f"{step.errors} error{'' if step.errors == 1 else 's'}"


def words(step: PathStep) -> str:
    """A vertex in a line: ``a b, 1 error, 50-62% left``."""
    return ", ".join(part for part in (step.state, _errors(step), step.details) if part)


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
    lines = [(step.state, _errors(step), *filter(None, (step.details,))) for step in path.steps]
    if len(lines) <= MOST_STEPS:
        return lines
    half = MOST_STEPS // 2
    return [*lines[:half], ("…", f"{len(lines) - MOST_STEPS + 1} more"), *lines[half + 1 - MOST_STEPS :]]


def _place(columns: list[list[_Node]], thick: list[float]) -> float:
    """Give every vertex its place; the height of the picture."""
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
    """One band a path, through its share of each of its vertices."""
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
