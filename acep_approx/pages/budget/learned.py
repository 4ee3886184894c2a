"""What a run learned while it went on: a section of the report, with its pictures."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from acep_approx.budget.ledger import mean_score, place_words
from acep_approx.diagrams.text_layout import label
from acep_approx.pages.budget.lines import learning_facts
from acep_approx.pages.drawing import (
    MOST_PIECES,
    Panel,
    Times,
    cut,
    legend,
    percent,
    picture,
    short,
    steps,
    table,
    thinned,
)
from acep_approx.pages.shell import facts
from acep_approx.timeline.picture import RIGHT, WIDTH
from acep_approx.timeline.scale import moment_text
from acep_approx.visible import escape

if TYPE_CHECKING:
    from acep_approx.budget.ledger import Learning, Piece, RunRecord, Score

MOST_ROWS, MOST_TEXT, MOST_ALARMS, MOST_RESCORED = 40, 160, 100, 200
_SIZE, _LEFT, _TOP, _LARGEST, _LEAST = 300.0, 70.0, 34.0, 16.0, 3.0
_FORETOLD = (
    '<p class="soft">Before the outcome of a run of the cohort was known, its chance to lead to a match point was '
    "foretold. On the dashed line it came true as often as foretold; circles are as large as their number of cases.</p>"
)


def learned(record: RunRecord) -> Iterator[str]:
    """What was learned, whether it comes true, and what it cost; nothing where the run did not learn.

    Parameters
    ----------
    record : RunRecord

    Yields
    ------
    str
        Pieces of HTML.
    """
    known = record.learning
    if known is None:
        return
    yield "<h2>What was learned</h2>"
    yield (
        '<p class="soft">While the stream ran, what runs are worth was learned from tests of live runs, and from a '
        "cohort that was matched exactly beside the run, for its budget. What was shed was never looked at.</p>"
    )
    yield facts(learning_facts(record, known))
    if record.pieces:
        yield f"<figure>{learning_curve(record, known)}</figure>"
    if known.revalued:
        rows = []
        for one in thinned(known.revalued, MOST_ROWS):
            numbers = (one.events, one.points, one.tests, one.work, one.explored, one.alarms)
            rows.append([moment_text(one.tick, is_time=record.is_time), *map("{:,}".format, numbers)])
        head = ["runs rescored at", "events", "match points", "tests seen", "run-steps", "of the cohort"]
        shown = table([*head, "drift alarms"], rows, caption="all counted from the beginning")
        yield f"<details><summary>as a table</summary>{shown}</details>"
    if known.cases:
        yield _FORETOLD
        rows = [[percent(tenth.foretold), percent(tenth.reached), f"{tenth.cases:,}"] for tenth in known.tenths]
        beside = table(["foretold", "came true", "cases"], rows, caption="chances, by tenths", texts=0)
        yield f'<div class="pair"><figure>{reliability(known)}</figure>{beside}</div>'
    if known.alarms:
        rows = [[moment_text(one.tick, is_time=record.is_time), one.where] for one in known.alarms[-MOST_ROWS:]]
        left_out = f" (the last {len(rows)} of {len(known.alarms):,})" if len(rows) < len(known.alarms) else ""
        caption = f"drift: where what was foretold no longer fitted{left_out}"
        yield table(["alarm at", "state"], rows, caption=caption, texts=2)
    if not known.features:
        yield "<p>Nothing that runs remember was found to tell them apart: only how far they are, and what is left.</p>"
        return
    rows = [
        [place_words(one.state, one.errors), one.feature, cut("; ".join(one.ranges), MOST_TEXT)]
        for one in known.features[:MOST_ROWS]
    ]
    caption = "the features by which the runs of a state are told apart; pace: the arrival rate of events of their key"
    yield table(["state", "by", "in ranges"], rows, caption=caption, texts=3)


# --- pictures ---------------------------------------------------------------------------------------------------


def reliability(learned: Learning) -> str:
    """Chances foretold against the share that came true: a circle for each tenth of the range.

    Parameters
    ----------
    learned : Learning
        With cases.

    Returns
    -------
    str
        On the dashed line what was foretold came true; the area of a circle is its number of cases.
    """
    base, most = _TOP + _SIZE, max(tenth.cases for tenth in learned.tenths)
    parts = [label(_LEFT, _TOP - 14, "share that led to a match point", kind="head")]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = _LEFT + share * _SIZE, base - share * _SIZE
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}h{_SIZE}M{x:.1f} {_TOP}v{_SIZE}"/>')
        parts.append(label(_LEFT - 8, y + 4, percent(share), anchor="end"))
        parts.append(label(x, base + 20, percent(share), anchor="middle"))
    parts.append(label(_LEFT + _SIZE / 2, base + 42, "chance foretold", anchor="middle"))
    parts.append(f'<path class="line l1 dash" d="M{_LEFT} {base}L{_LEFT + _SIZE} {_TOP}"/>')
    said_of = []
    for tenth in learned.tenths:
        x, y = _LEFT + tenth.foretold * _SIZE, base - tenth.reached * _SIZE
        radius = max(_LARGEST * sqrt(tenth.cases / most), _LEAST)
        said = f"{percent(tenth.foretold)} foretold, {percent(tenth.reached)} came true, {tenth.cases:,} cases"
        said_of.append(said)
        parts.append(f'<circle class="r0" fill-opacity=".6" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">')
        parts.append(f"<title>{escape(said)}</title></circle>")
        parts.append(label(x, y - radius - 4, short(tenth.cases), anchor="middle"))
    return picture(
        parts,
        width=560,
        height=base + 54,
        name="reliability",
        title="Whether chances come true",
        description="; ".join(said_of),
    )


def learning_curve(record: RunRecord, learned: Learning) -> str:
    """What was learned over time, with drift alarms.

    Parameters
    ----------
    record : RunRecord
        With at least one piece.
    learned : Learning
        What it learned.

    Returns
    -------
    str
        Strips on one axis: Brier score of the outcomes that became known (none where none did), match points found; a
        mark for each time that runs were rescored, a line through both strips for each alarm.
    """
    pieces = thinned(record.pieces, MOST_PIECES)
    time = Times.of(pieces, record.begin)
    briers = piece_scores(learned.scores, pieces)
    found, events = (np.diff([0, *(getattr(piece, name) for piece in pieces)]) for name in ("points", "events"))
    points = (1000 * found / np.maximum(events, 1)).tolist()
    upper = Panel(34, 90, steps(max((brier for brier in briers if brier is not None), default=0.0), 3))
    lower = Panel(upper.top + upper.height + 44, 62, steps(max(points), 2))
    base = lower.top + lower.height
    parts = [
        *upper.frame("Brier score of what was foretold: 0 is right, 1 is wrong"),
        *_levels(upper, time, briers),
        *lower.frame("match points found in 1,000 events"),
        time.stairs(lower, points, "r4"),
        *time.ticks(base, is_time=record.is_time),
        *_marks(record, learned, time, upper.y(0), base),
    ]
    return picture(
        parts,
        width=WIDTH,
        height=base + 56,
        name="learning",
        title="Learning over time",
        description=f"Runs were rescored {len(learned.revalued):,} times; {len(learned.alarms):,} drift alarms. The "
        "numbers are in the tables below.",
    )


def piece_scores(scores: Sequence[Score], pieces: Sequence[Piece]) -> list[float | None]:
    """The Brier score of the outcomes that became known in each piece; None where none did.

    What became known after the last event, at the end of the stream, belongs to the last piece.
    """
    ends = [piece.tick for piece in pieces]
    known: list[list[Score]] = [[] for _ in pieces]
    for score in scores:
        known[min(bisect_left(ends, score.tick), len(ends) - 1)].append(score)
    return [mean_score(some) for some in known]


def _levels(panel: Panel, time: Times, values: Sequence[float | None]) -> Iterator[str]:
    """A line for each piece with a value, joined where the next one has one too."""
    path, is_down = "", False
    for value, left, right in zip(values, time.edges, time.edges[1:], strict=False):
        if value is not None:
            y = panel.y(value)
            path += f"V{y:.1f}H{right:.1f}" if is_down else f"M{left:.1f} {y:.1f}H{right:.1f}"
        is_down = value is not None
    if path:
        yield f'<path class="line l0" d="{path}"/>'


def _marks(record: RunRecord, learned: Learning, time: Times, middle: float, base: float) -> Iterator[str]:
    """Alarms, times of rescoring, and what the signs mean."""
    for one in thinned(learned.revalued, MOST_RESCORED):
        yield f'<path class="line l3" d="M{time.x(one.tick):.1f} {middle:.1f}v8"/>'
    for alarm in learned.alarms[-MOST_ALARMS:]:
        said = escape(f"drift alarm at {moment_text(alarm.tick, is_time=record.is_time)}: {alarm.where}")
        line = f"M{time.x(alarm.tick):.1f} 34V{base:.1f}"
        yield f'<path class="line l1 dash" d="{line}"><title>{said}</title></path>'
    meanings = (("line l3", "runs rescored"), ("line l1 dash", "drift alarm"))
    yield from legend(WIDTH - RIGHT - 260, base + 44, meanings, 140)
