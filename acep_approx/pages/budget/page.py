"""The report of a run under a budget: one page of HTML that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acep_approx.diagrams.fragments import tiles
from acep_approx.events.counts import counted
from acep_approx.pages.budget.charts import bundle_strip, by_state, load, recall_bar, shed_bars
from acep_approx.pages.budget.flow import MOST_PATHS, flow, readable_paths, words
from acep_approx.pages.budget.learned import learned
from acep_approx.pages.budget.lines import need_words, recall_words, spent
from acep_approx.pages.code import code
from acep_approx.pages.drawing import percent, table, thinned
from acep_approx.pages.over_time import OverTime, Points
from acep_approx.pages.shell import facts, page, write_page
from acep_approx.timeline.scale import moment_text
from acep_approx.visible import escape

if TYPE_CHECKING:
    from acep_approx.budget.audit import RecallEstimate
    from acep_approx.budget.ledger import RunRecord

MOST_ROWS = 40
NOTHING, ABSURD = 0.95, 1_000
"""An interval that is so wide says nothing about recall; nor does a number of match points so many times another."""
_MARKED = (
    "In a small part of the stream, chosen by a hash, nothing is shed: runs that the policy would have shed only "
    "get an audit flag. The share of match points there that need no flagged run is the estimate."
)
_COHORT = (
    "A small part of the stream, chosen by a hash, is matched exactly beside the run. The share of its match points "
    "that the run found by itself is the estimate."
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
    parts = (_head, _load, _shed, _recall, learned, _matches, _paths)
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
    for part in (_load, _shed, _recall, learned, _paths):
        yield from part(record)


def _head(record: RunRecord) -> Iterator[str]:
    """What ran, and the four numbers to know."""
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
        between = _interval(estimate) if (estimate.high or 0.0) - (estimate.low or 0.0) < NOTHING else "unknown"
        return between, f"recall ({counted(estimate.points, 'match point')} audited: too few to say more)"
    return percent(estimate.recall), f"estimated recall ({_interval(estimate)})"


def _interval(estimate: RecallEstimate) -> str:
    return f"{percent(estimate.low or 0.0)} to {percent(estimate.high or 0.0)}"


def _load(record: RunRecord) -> Iterator[str]:
    yield "<h2>Load and budget over time</h2>"
    if not record.pieces:
        yield '<p class="soft">There were no events.</p>'
        return
    yield (
        '<p class="soft">A run-step is one test of a run against an event. Work never passes its bound; what is not '
        "used in quiet times may be used later, within limits. The price rises when the budget gets short.</p>"
    )
    yield f"<figure>{load(record)}</figure>"
    rows = []
    for piece in thinned(record.pieces, MOST_ROWS):
        texts = [f"{number:,}" for number in (piece.events, piece.work, piece.bound, piece.live)]
        shed = (f"{piece.price:.4g}", f"{piece.shed:,}", f"{piece.points:,}")
        rows.append([moment_text(piece.tick, is_time=record.is_time), *texts, *shed])
    head = ["up to", "events", "run-steps", "allowed", "live runs", "price", "shed", "match points"]
    caption = "all but live runs and price are counted from the beginning"
    yield f"<details><summary>as a table</summary>{table(head, rows, caption=caption)}</details>"


def _shed(record: RunRecord) -> Iterator[str]:
    yield "<h2>What was shed</h2>"
    if not record.shed_runs:
        yield "<p>Nothing: the budget was enough for all runs.</p>"
        return
    states, reasons, counts = by_state(record.shed)
    rows = [[state, *(f"{counts[state, reason]:,}" for reason in reasons)] for state in states]
    yield '<p class="soft">Runs by the state that they were in, and why they were shed.</p>'
    beside = table(["state", *reasons], rows, caption="runs shed")
    yield f'<div class="pair"><figure>{shed_bars(record.shed)}</figure>{beside}</div>'


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
        [f"interval, {percent(estimate.level)}", _interval(estimate)],
        ["match points audited", f"{estimate.points:,}"],
        ["cells audited", f"{estimate.cells:,}"],
        ["run-steps of the audit", audited],
        ["match points found elsewhere", f"{estimate.outside:,}"],
        ["match points in the input", _total_words(estimate)],
    ]
    beside = table(["recall of the policy", ""], rows, caption="")
    yield f'<div class="pair"><figure>{recall_bar(estimate)}</figure>{beside}</div>'


def _total_words(estimate: RecallEstimate) -> str:
    """How many match points there are in the input, as far as the audit tells."""
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
