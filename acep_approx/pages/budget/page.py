"""The report of a run under a budget: one page of HTML that loads nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path

import numpy as np

from acep_approx.budget.audit import NOTHING, RecallEstimate
from acep_approx.budget.ledger import Learning, Piece, RunRecord, Score, Shed, SpentRecord, mean_score, place_words
from acep_approx.diagrams.fragments import tiles
from acep_approx.diagrams.text_layout import label
from acep_approx.pages.budget.charts import (
    MOST_PATHS,
    bundle_strip,
    by_state,
    flow,
    follows_runs,
    keeps_events,
    load,
    readable_paths,
    recall_bar,
    shed_bars,
    words,
)
from acep_approx.pages.budget.lines import basis_words, learning_facts, need_words, recall_words, searched_words, spent
from acep_approx.pages.code import code
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
from acep_approx.pages.over_time import OverTime, Points
from acep_approx.pages.shell import facts, page, write_page
from acep_approx.timeline.picture import RIGHT, WIDTH, moment_text
from acep_approx.visible import escape

MOST_ROWS = 40
TESTS_OF_RUNS = "A run-step is one test of a run against an event."
TESTS_OF_EVENTS = "A run-step is one test: of a kept event for an end of a match, or of a run against an event."
PRICE_RISES = " The price rises when the budget gets short."
ABSURD = 1_000
"""A number of match points that is so many times another says nothing."""
_MARKED = (
    "In a small part of the stream, chosen by a hash, nothing is shed: runs that the policy would have shed only "
    "get an audit flag. The share of match points there that need no flagged run is the estimate."
)
_COHORT = (
    "Events at which a match may end, and that the run did not report, are drawn at random and tried exactly beside "
    "the run; where that costs less, parts of the stream are matched. With what the history leads to expect they give "
    "the estimate."
)


def write_report(record: RunRecord, path: str | Path) -> None:
    """Write the page.

    Parameters
    ----------
    record : RunRecord
        What the run wrote down about itself.
    path : str or Path
        Where to; a file there is replaced.

    Raises
    ------
    UsageError
        ``ACEP-U012``: the file cannot be written.
    """
    write_page(report_html(record), path)


def report_html(record: RunRecord) -> str:
    """The page as text.

    Parameters
    ----------
    record : RunRecord
        What the run wrote down about itself; may be empty.

    Returns
    -------
    str
        HTML with its style and its pictures; needs no network and no script. Complexity: linear in the record; the
        size of the page is bounded, but for the query.
    """
    parts = (_head, load_section, _shed, _recall, learned, _matches, _paths)
    sections = (text for part in parts for text in part(record))
    return page(f"Run under a budget: {record.source}", sections)


def budget_sections(record: RunRecord) -> Iterator[str]:
    """The same for a page that shows the matches already: how the budget was spent, and what was missed.

    Parameters
    ----------
    record : RunRecord

    Yields
    ------
    str
        Pieces of HTML.
    """
    yield f"<h2>A budget of {escape(record.budget)}</h2>"
    yield from _numbers(record)
    for part in (load_section, _shed, _recall, learned, _paths):
        yield from part(record)


def _head(record: RunRecord) -> Iterator[str]:
    yield f"<h1>{escape(record.source)} under a budget of {escape(record.budget)}</h1>"
    yield from _numbers(record)
    yield code(record.query)
    left_out = f"{record.late:,} late, {record.malformed:,} malformed, {record.without_key:,} without key"
    known = [("policy", f"{record.policy}, seed {record.seed}"), ("events not matched", left_out)]
    if record.seconds is not None:
        speed = f", {record.events / record.seconds:,.0f} events/s" if record.seconds > 0 else ""
        known.append(("time", f"{record.seconds:,.2f} s{speed}"))
    yield facts(known)


def _numbers(record: RunRecord) -> Iterator[str]:
    yield f'<p class="soft">{escape(record.bound)}</p>'
    yield f"<p><b>Is a budget needed?</b> Exact run: {escape(need_words(record))}.</p>"
    yield tiles([_recall_tile(record.recall), *spent(record)])


def _recall_tile(estimate: RecallEstimate | None) -> tuple[str, str]:
    """The estimate, and what it is; of too few match points only the interval."""
    if estimate is None or estimate.low is None:
        return "unknown", "recall (not audited)" if estimate is None else "recall (too little was audited)"
    if estimate.recall is None:
        between = interval(estimate) if (estimate.high or 0.0) - (estimate.low or 0.0) < NOTHING else "unknown"
        return between, f"recall ({basis_words(estimate)}: too little to say more)"
    return percent(estimate.recall), f"estimated recall ({interval(estimate)})"


def interval(estimate: RecallEstimate) -> str:
    """Between which shares a recall lies, as people read it."""
    return f"{percent(estimate.low or 0.0)} to {percent(estimate.high or 0.0)}"


def load_section(record: SpentRecord) -> Iterator[str]:
    """Work against its bound over time, as a picture and as a table.

    Parameters
    ----------
    record : SpentRecord

    Yields
    ------
    str
        Pieces of HTML.
    """
    yield "<h2>Load and budget over time</h2>"
    if not record.pieces:
        yield '<p class="soft">There were no events.</p>'
        return
    searches = keeps_events(record)
    has_price = record.has_one_price and follows_runs(record)
    yield (
        f'<p class="soft">{TESTS_OF_EVENTS if searches else TESTS_OF_RUNS} Work never passes its bound; what is not '
        f"used in quiet times may be used later, within limits.{PRICE_RISES if has_price else ''}</p>"
    )
    yield f"<figure>{load(record)}</figure>"
    rows = []
    for piece in thinned(record.pieces, MOST_ROWS):
        texts = [f"{number:,}" for number in (piece.events, piece.work, piece.bound, piece.live)]
        texts += [f"{piece.kept:,}", f"{piece.open_ends:,}"] if searches else []
        price = (f"{piece.price:.4g}",) if has_price else ()
        counts = (f"{piece.shed:,}", f"{piece.points:,}")
        rows.append([moment_text(piece.tick, is_time=record.is_time), *texts, *price, *counts])
    named = ("price",) if has_price else ()
    of_ends = ["events kept", "ends left open"] if searches else []
    head = ["up to", "events", "run-steps", "allowed", "live runs", *of_ends, *named, "shed", "match points"]
    now = ["live runs", *of_ends[:1], *named]
    caption = f"all but {', '.join(now[:-1]) + ' and ' if now[1:] else ''}{now[-1]} are counted from the beginning"
    yield f"<details><summary>as a table</summary>{table(head, rows, caption=caption)}</details>"


def _shed(record: RunRecord) -> Iterator[str]:
    if record.ends:
        yield f"<h2>What was left open</h2><p>{searched_words(record).capitalize()}.</p>"
        if not record.shed_runs:
            return
    yield from shed_section(record.shed, "state", "the state that they were in")


def shed_section(shed: Sequence[Shed], thing: str, by: str) -> Iterator[str]:
    """What was shed, and why, as bars and as a table.

    Parameters
    ----------
    shed : sequence of Shed
    thing : str
        What stands in the place of their states, as head of a column.
    by : str
        The same in words.

    Yields
    ------
    str
        Pieces of HTML.
    """
    yield "<h2>What was shed</h2>"
    if not any(one.runs for one in shed):
        yield "<p>Nothing: the budget was enough for all runs.</p>"
        return
    names, reasons, counts = by_state(shed)
    rows = [[name, *(f"{counts[name, reason]:,}" for reason in reasons)] for name in names]
    yield f'<p class="soft">Runs by {by}, and why they were shed.</p>'
    beside = table([thing, *reasons], rows, caption="runs shed")
    yield f'<div class="pair"><figure>{shed_bars(shed)}</figure>{beside}</div>'


def _recall(record: RunRecord) -> Iterator[str]:
    yield "<h2>Estimated recall</h2>"
    estimate = record.recall
    if estimate is None or estimate.low is None or estimate.recall is None:
        words = recall_words(estimate)
        yield f"<p>{escape(f'{words[0].upper()}{words[1:]}.')}</p>"
    if estimate is None or estimate.low is None:
        return
    yield f'<p class="soft">{_MARKED if record.audit_work is None else _COHORT}</p>'
    audited = "not told apart from the run's"
    if record.audit_work is not None:
        share = f" ({percent(record.audit_work / record.work)})" if record.work else ""
        audited = f"{record.audit_work:,}{share}"
    rows = [
        ["estimate", "too few to say" if estimate.recall is None else percent(estimate.recall)],
        [f"interval, {percent(estimate.level)}", interval(estimate)],
        ["match points audited", f"{estimate.points:,}"],
        ["cells audited", f"{estimate.cells:,}"],
        ["ends of matches tried, and missed", f"{estimate.ends:,}, {estimate.missed:,}"],
        ["history", "part of the estimate" if estimate.by_past else "no part of it"],
        ["run-steps of the audit", audited],
        ["match points found elsewhere", f"{estimate.outside:,}"],
        ["match points in the input", _total_words(estimate)],
    ]
    beside = table(["recall of the policy", ""], rows, caption="")
    yield f'<div class="pair"><figure>{recall_bar(estimate)}</figure>{beside}</div>'


def _total_words(estimate: RecallEstimate) -> str:
    least, most = estimate.totals
    if least is None:
        return "unknown"
    if most is None or most > ABSURD * max(least, 1):
        return f"at least {least:,}"
    between = f"{least:,} to {most:,}"
    return between if estimate.total is None else f"about {estimate.total:,} ({between})"


def _matches(record: RunRecord) -> Iterator[str]:
    yield "<h2>Matches over time</h2>"
    ticks, errors = (np.asarray(values, np.int64) for values in (record.point_ticks, record.point_errors))
    if not len(ticks):
        yield "<p>No match point was found.</p>"
        return
    picture = OverTime([Points("", ticks, errors)], [], is_time=record.is_time)
    bars = bundle_strip(record.bundles, picture) if len(record.bundles) else ""
    yield picture.html(bars)
    found, counts = np.unique(errors, return_counts=True)
    rows = [[f"{e}", f"{n:,}"] for e, n in zip(found.tolist(), counts.tolist(), strict=True)]
    caption = f"{len(ticks):,} match points in {len(record.bundles):,} bundles"
    yield f"<details><summary>as a table</summary>{table(['errors', 'match points'], rows, caption=caption)}</details>"


def _paths(record: RunRecord) -> Iterator[str]:
    known = readable_paths(record.paths)
    if not known:
        return
    yield "<h2>The history's strongest paths</h2>"
    yield (
        '<p class="soft">The ways that most completions of the past took from a first event to a match point; bands '
        "are as thick as their share.</p>"
    )
    yield f"<figure>{flow(known)}</figure>"
    rows = [
        [" → ".join(map(words, p.steps)), f"{p.count:,.0f}", percent(p.share)] for p in known[: 2 * MOST_PATHS]
    ]
    yield table(["path", "completions", "share"], rows, caption="")


# --- what was learned ---------------------------------------------------------------------------------------------

MOST_TEXT, MOST_ALARMS, MOST_RESCORED = 160, 100, 200
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
        parts += [
            f'<path class="grid" d="M{_LEFT} {y:.1f}h{_SIZE}M{x:.1f} {_TOP}v{_SIZE}"/>',
            label(_LEFT - 8, y + 4, percent(share), anchor="end"),
            label(x, base + 20, percent(share), anchor="middle"),
        ]
    parts += [
        label(_LEFT + _SIZE / 2, base + 42, "chance foretold", anchor="middle"),
        f'<path class="line l1 dash" d="M{_LEFT} {base}L{_LEFT + _SIZE} {_TOP}"/>',
    ]
    said_of = []
    for tenth in learned.tenths:
        x, y = _LEFT + tenth.foretold * _SIZE, base - tenth.reached * _SIZE
        radius = max(_LARGEST * sqrt(tenth.cases / most), _LEAST)
        said = f"{percent(tenth.foretold)} foretold, {percent(tenth.reached)} came true, {tenth.cases:,} cases"
        said_of.append(said)
        parts += [
            f'<circle class="r0" fill-opacity=".6" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">',
            f"<title>{escape(said)}</title></circle>",
            label(x, y - radius - 4, short(tenth.cases), anchor="middle"),
        ]
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
    for one in thinned(learned.revalued, MOST_RESCORED):
        yield f'<path class="line l3" d="M{time.x(one.tick):.1f} {middle:.1f}v8"/>'
    for alarm in learned.alarms[-MOST_ALARMS:]:
        said = escape(f"drift alarm at {moment_text(alarm.tick, is_time=record.is_time)}: {alarm.where}")
        line = f"M{time.x(alarm.tick):.1f} 34V{base:.1f}"
        yield f'<path class="line l1 dash" d="{line}"><title>{said}</title></path>'
    meanings = (("line l3", "runs rescored"), ("line l1 dash", "drift alarm"))
    yield from legend(WIDTH - RIGHT - 260, base + 44, meanings, 140)
