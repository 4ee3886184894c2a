"""Pictures of the report: work against its bound over time, what was shed, recall, bundles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from acep_approx.diagrams.text_layout import label
from acep_approx.pages.drawing import MOST_PIECES, Panel, Times, cut, moment, percent, picture, short, steps, thinned
from acep_approx.pages.over_time import OverTime
from acep_approx.timeline.picture import RIGHT, WIDTH
from acep_approx.visible import escape

if TYPE_CHECKING:
    from acep_approx.budget.audit import RecallEstimate
    from acep_approx.budget.ledger import Bundle, Piece, RunRecord, Shed

def load(record: RunRecord) -> str:
    """Work against its bound, and what it depends on, over time.

    Parameters
    ----------
    record : RunRecord
        With at least one piece; more than 240 are shown as 240.

    Returns
    -------
    str
        Five strips on one axis: work so far below the bound so far, run-steps per event, live runs, runs shed, price.
    """
    pieces = thinned(record.pieces, MOST_PIECES)
    time = Times.of(pieces, record.begin)
    first = Panel(34, 170, steps(max(max(p.bound, p.work) for p in pieces), 4))
    parts = [*first.frame("run-steps so far"), *_room(first, time, pieces), *_legend(first)]
    before = (None, *pieces[:-1])
    per_event = [_rate(p, b, "work") for p, b in zip(pieces, before, strict=True)]
    allowed = [_rate(p, b, "bound") for p, b in zip(pieces, before, strict=True)]
    shed = [float(p.shed - (b.shed if b else 0)) for p, b in zip(pieces, before, strict=True)]
    strips: list[tuple[str, list[float], int]] = [
        ("run-steps per event", per_event, 0),
        ("live runs", [float(p.live) for p in pieces], 3),
        ("runs shed", shed, 1),
        ("price: least gain per run-step of a run that is kept", _finite([p.price for p in pieces]), 2),
    ]
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


def _finite(prices: list[float]) -> list[float]:
    """Prices for a picture: one without limit, at which nothing is kept, is drawn like the highest one with a limit."""
    highest = max((price for price in prices if isfinite(price)), default=1.0)
    return [price if isfinite(price) else highest for price in prices]


def _rate(piece: Piece, before: Piece | None, name: str) -> float:
    """Run-steps per event of one piece."""
    done, events = (int(getattr(piece, what)) - (getattr(before, what) if before else 0) for what in (name, "events"))
    return float(done / max(events, 1))


def _room(panel: Panel, time: Times, pieces: Sequence[Piece]) -> Iterator[str]:
    """The room below the bound, and the work in it."""
    base = panel.y(0)
    for name, kind in (("bound", "room"), ("work", "r0 soft")):
        line = _line(panel, time, [0, *(getattr(piece, name) for piece in pieces)])
        yield f'<path class="{kind}" d="{line}L{time.edges[-1]:.1f} {base:.1f}H{time.edges[0]:.1f}Z"/>'
    for name, kind in (("bound", "line l1 dash"), ("work", "line l0")):
        yield f'<path class="{kind}" d="{_line(panel, time, [0, *(getattr(piece, name) for piece in pieces)])}"/>'


def _line(panel: Panel, time: Times, values: Sequence[float]) -> str:
    return "M" + "L".join(f"{x:.1f} {panel.y(value):.1f}" for x, value in zip(time.edges, values, strict=True))


def _legend(panel: Panel) -> Iterator[str]:
    x, y = WIDTH - RIGHT - 190, panel.top - 14
    for kind, text in (("line l0", "work done"), ("line l1 dash", "allowed")):
        yield f'<path class="{kind}" d="M{x:.1f} {y:.1f}h22"/>' + label(x + 28, y + 4, text)
        x += 110


def _hits(record: RunRecord, pieces: Sequence[Piece], time: Times, base: float) -> Iterator[str]:
    """What the pointer finds: all numbers of a piece."""
    for piece, left, right in zip(pieces, time.edges, time.edges[1:], strict=False):
        said = (
            f"up to {moment(piece.tick, is_time=record.is_time)}\n{piece.events:,} events\n{piece.work:,} run-steps of "
            f"{piece.bound:,}\n{piece.live:,} live runs\nprice {piece.price:.4g}\n{piece.shed:,} runs shed so far\n"
            f"{piece.points:,} match points so far"
        )
        yield (
            f'<rect class="hit" x="{left:.1f}" y="24" width="{max(right - left, 0.5):.1f}" height="{base - 24:.1f}">'
            f"<title>{escape(said)}</title></rect>"
        )


MOST_STATES, MOST_REASONS, MOST_BUNDLES = 12, 5, 400


def by_state(shed: Sequence[Shed]) -> tuple[list[str], list[str], dict[tuple[str, str], int]]:
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
    counts: dict[tuple[str, str], int] = {}
    states = _ranked(shed, lambda one: one.state, MOST_STATES, "other states")
    reasons = _ranked(shed, lambda one: one.reason, MOST_REASONS, "other reasons")
    for one in shed:
        place = (states.get(one.state, "other states"), reasons.get(one.reason, "other reasons"))
        counts[place] = counts.get(place, 0) + one.runs
    return list(dict.fromkeys(states.values())), list(dict.fromkeys(reasons.values())), counts


def _ranked(shed: Sequence[Shed], name: Callable[[Shed], str], most: int, rest: str) -> dict[str, str]:
    """Names by runs shed; from the ``most``-th on they are all called ``rest``."""
    sums: dict[str, int] = {}
    for one in shed:
        sums[name(one)] = sums.get(name(one), 0) + one.runs
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
    sums = {state: sum(counts.get((state, reason), 0) for reason in reasons) for state in states}
    marks = steps(max(sums.values()), 4)
    width, left, right, top, lane = 560.0, 130.0, 60.0, 16.0 + 20 * len(reasons), 30.0
    scale = (width - left - right) / marks[-1]
    base = top + lane * len(states)
    parts = []
    for i, reason in enumerate(reasons):
        parts.append(f'<rect class="r{i}" x="{left}" y="{4 + 20 * i}" width="12" height="12" rx="2"/>')
        parts.append(label(left + 20, 14 + 20 * i, cut(reason, 60)))
    for mark in marks:
        x = left + mark * scale
        parts.append(f'<path class="grid" d="M{x:.1f} {top:.1f}V{base:.1f}"/>')
        parts.append(label(x, base + 18, short(mark), anchor="middle"))
    for row, state in enumerate(states):
        y, x = top + row * lane + 5, left
        parts.append(label(left - 10, y + 15, cut(state, 18), kind="ink", anchor="end"))
        for i, reason in enumerate(reasons):
            size = counts.get((state, reason), 0) * scale
            if size:
                said = escape(f"{state}: {counts[state, reason]:,} {reason}")
                parts.append(f'<rect class="r{i}" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="20">')
                parts.append(f"<title>{said}</title></rect>")
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
        parts.append(f'<path class="axis" d="M{x:.1f} {y + 13}v6"/>')
        parts.append(label(x, y + 34, percent(share), anchor="middle"))
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
        span = " to ".join(moment(tick, is_time=picture.is_time) for tick in ticks)
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
