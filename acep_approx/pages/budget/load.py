"""The picture of the load: work against its bound, and what it depends on, over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from acep_approx.pages.budget.times import MOST_PIECES, Times, thinned
from acep_approx.pages.drawing import Panel, label, moment, picture, steps
from acep_approx.timeline.picture import RIGHT, WIDTH
from acep_approx.visible import escape

if TYPE_CHECKING:
    from acep_approx.budget.ledger import Piece, RunRecord


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
