"""The page of ``acep tune``: recall against work, and matches and load against the number of errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from acep_approx.diagrams.text_layout import label
from acep_approx.pages.code import code
from acep_approx.pages.drawing import cut, percent, picture, short
from acep_approx.pages.shell import page
from acep_approx.visible import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 960.0, 330.0, 70.0, 34.0, 600.0, 240.0
COLOURS = 5
"""Colours of the style sheet; lines beyond them are dashed."""


@dataclass(frozen=True)
class Curve:
    """A line of a picture.

    Attributes
    ----------
    name : str
        For the legend.
    points : sequence of (float, float)
        From left to right.
    """

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class _Axis:
    """One direction of a picture: where values lie, from 0 to 1, and the marks."""

    title: str
    place: Callable[[float], float]
    marks: Sequence[tuple[float, str]]


def recall_curves(curves: Sequence[Curve]) -> str:
    """Recall against the share of the work, both from 0 to 1.

    Parameters
    ----------
    curves : sequence of Curve
        Not empty.
    """
    marks = [(share, percent(share)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    across = _Axis("share of the full work", lambda share: min(share, 1.0), marks)
    return _picture("recall", "Recall against work", across, _Axis("recall", lambda share: share, marks), curves)


def growth_curves(name: str, title: str, unit: str, curves: Sequence[Curve]) -> str:
    """What grows with the number of errors, in powers of ten.

    Parameters
    ----------
    name : str
        Letters only; unlike that of any other picture of the page.
    title, unit : str
        Of the picture, and of what grows.
    curves : sequence of Curve
        Not empty; numbers of errors across.
    """
    errors = sorted({x for curve in curves for x, _ in curve.points})
    most = max(errors[-1] - errors[0], 1.0)
    values = [max(y, 0.1) for curve in curves for _, y in curve.points]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    high = max(high, low + 1)
    powers = range(low, high + 1, max(1, (high - low) // 6))
    across = _Axis("errors", lambda x: (x - errors[0]) / most, [(x, f"{x:g}") for x in errors])
    up = _Axis(
        unit, lambda y: (log10(max(y, 10.0**low)) - low) / (high - low), [(10.0**p, short(10.0**p)) for p in powers]
    )
    return _picture(name, title, across, up, curves)


def _picture(name: str, title: str, across: _Axis, up: _Axis, curves: Sequence[Curve]) -> str:
    base = _TOP + _PLOT_HEIGHT
    parts = [label(_LEFT, _TOP - 14, up.title, kind="head")]
    for value, text in up.marks:
        y = base - up.place(value) * _PLOT_HEIGHT
        parts += [
            f'<path class="grid" d="M{_LEFT} {y:.1f}h{_PLOT_WIDTH}"/>',
            label(_LEFT - 8, y + 4, text, anchor="end"),
        ]
    for value, text in across.marks:
        x = _LEFT + across.place(value) * _PLOT_WIDTH
        parts.append(f'<path class="axis" d="M{x:.1f} {base:.1f}v5"/>' + label(x, base + 20, text, anchor="middle"))
    parts.append(label(_LEFT + _PLOT_WIDTH / 2, base + 42, across.title, anchor="middle"))
    for number, curve in enumerate(curves):
        colour, dash = number % COLOURS, " dash" if number >= COLOURS else ""
        places = [(_LEFT + across.place(x) * _PLOT_WIDTH, base - up.place(y) * _PLOT_HEIGHT) for x, y in curve.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path class="line l{colour}{dash}" d="M{path}"/>')
        for (x, y), (first, second) in zip(places, curve.points, strict=True):
            words = escape(f"{curve.name}: {first:.3g}, {second:,.3g}")
            parts.append(f'<circle class="r{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{words}</title></circle>')
        x, y = _LEFT + _PLOT_WIDTH + 24, _TOP + 12 + 20 * number
        parts.append(f'<path class="line l{colour}{dash}" d="M{x:.1f} {y:.1f}h22"/>')
        parts[-1] += label(x + 30, y + 4, cut(curve.name, 32))
    said = "; ".join(f"{one.name}: " + ", ".join(f"{x:.3g} {y:.3g}" for x, y in one.points) for one in curves)
    height = max(_HEIGHT, _TOP + 24 + 20 * len(curves))
    return picture(parts, width=_WIDTH, height=height, name=name, title=title, description=said)


def curves_page(
    query: str, said: Sequence[str], recall: Sequence[Curve], matches: Sequence[Curve], load: Sequence[Curve]
) -> str:
    """The page as text.

    Parameters
    ----------
    query : str
        Text of the query.
    said : sequence of str
        What is recommended, and why.
    recall, matches, load : sequence of Curve
        Recall by share of the work; matches, and run-steps per event, by number of errors. May be empty.

    Returns
    -------
    str
        HTML with its style and its pictures; needs no network and no script.
    """
    drawn = []
    if recall:
        drawn.append(f"<h2>What a budget finds</h2>\n<figure>{recall_curves(recall)}</figure>")
    if matches:
        figure = growth_curves("matches", "Matches by errors", "matches", matches)
        drawn.append(f"<h2>What errors bring</h2>\n<figure>{figure}</figure>")
    if load:
        figure = growth_curves("load", "Load by errors", "run-steps per event", load)
        drawn.append(f"<h2>What errors cost</h2>\n<figure>{figure}</figure>")
    reasons = [f"<p>{escape(text)}</p>" for text in said]
    title = "Errors, window and budget"
    return page(title, [f"<h1>{title}</h1>", code(query), *reasons, *drawn])
