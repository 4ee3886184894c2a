"""A job on Spark while it runs: a panel on a terminal, else a line per micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acep_approx.cli.terminal import amount, say, words

if TYPE_CHECKING:
    from rich.table import Table

    from acep_approx.learning.judging import Verdict
    from acep_approx.spark.streaming.metrics import Progress, Totals

_ALWAYS = ("events", "matches")
_SUMS = {
    "events": "events matched",
    "matches": "matches",
    "points": "match points",
    "late": "late",
    "malformed": "malformed",
    "without_key": "without key",
    "steps": "run-steps",
}

RANKED_BY = {"history": "the history", "learned": "what was learned", "random": "nothing: at random"}


@contextmanager
def live(*, enabled: bool = True) -> Iterator[Callable[[Progress], None]]:
    """Show the micro-batches of a job on stderr.

    Parameters
    ----------
    enabled : bool, default True
        Without, nothing is shown.

    Yields
    ------
    callable
        A sink for ``acep_approx.spark.Listener``; other threads may call it.
    """
    if not enabled:
        yield lambda _progress: None
        return
    from acep_approx.spark.streaming.metrics import Totals

    totals, console = Totals(), words()
    if not console.is_terminal:

        def add_line(progress: Progress) -> None:
            totals.add(progress)
            say(line(progress, totals))

        yield add_line
        return
    from rich.live import Live

    with Live("waiting for the first micro-batch ...", console=console, auto_refresh=False) as panel:

        def redraw(progress: Progress) -> None:
            totals.add(progress)
            panel.update(table(progress, totals), refresh=True)

        yield redraw


def line(progress: Progress, totals: Totals) -> str:
    """One micro-batch in words."""
    parts = [
        f"batch {progress.batch}: {amount(progress.events, 'event')} in {progress.seconds:.1f} s",
        amount(progress.matches, "match"),
        *(f"{getattr(progress, name):,} {_SUMS[name]}" for name in ("late", "malformed", "without_key")
          if getattr(progress, name)),
    ]  # fmt: skip
    if progress.waiting:
        parts.append(f"{progress.waiting:,} waiting")
    if progress.budget_used is not None:
        parts.append(f"{progress.budget_used:.0%} of the budget, {amount(sum(progress.shed.values()), 'run')} shed")
    if (recall := _recall(totals)) is not None:
        parts.append(f"recall {recall}")
    if progress.version:
        parts.append(f"history version {progress.version}")
    if progress.learned is not None and progress.learned.versions:
        parts.append(learned(progress.learned))
    return ", ".join(parts)


def table(progress: Progress, totals: Totals) -> Table:
    """The panel: numbers of the last micro-batch beside those of all.

    Parameters
    ----------
    progress : Progress
    totals : Totals
        Of all micro-batches, this one too.
    """
    from rich.table import Table

    shown = Table(title=f"{progress.query}, batch {progress.batch}", title_justify="left", header_style="bold")
    shown.add_column("")
    shown.add_column("this batch", justify="right")
    shown.add_column("in all", justify="right")
    for name, text in _SUMS.items():
        if totals.counts[name] or name in _ALWAYS:
            shown.add_row(text, f"{getattr(progress, name):,}", f"{totals.counts[name]:,}")
    for reason, number in totals.shed.items():
        if number:
            shown.add_row(f"shed: {reason}", f"{progress.shed[reason]:,}", f"{number:,}")
    for text, now, all_of_them in _states(progress, totals):
        shown.add_row(text, now, all_of_them)
    return shown


def _states(progress: Progress, totals: Totals) -> Iterator[tuple[str, str, str]]:
    """Rows of the panel that are no counts."""
    yield "seconds", f"{progress.seconds:.2f}", f"{totals.seconds:,.1f}"
    yield "rows per second", f"{progress.rows_per_second:,.0f}", ""
    if progress.budget_used is not None:
        bound = totals.counts["bound"]
        yield "budget used", f"{progress.budget_used:.0%}", f"{totals.counts['steps'] / bound:.0%}" if bound else ""
    if (recall := _recall(totals)) is not None:
        yield "estimated recall", "", recall
    if progress.version:
        yield "history version", str(progress.version), ""
    if (found := progress.learned) is not None:
        yield "partial matches are ranked by", RANKED_BY[found.ranked_by], ""
        yield "versions made, refused", "", f"{found.versions:,}, {found.refused:,}"
        if found.gained + found.lost:
            yield "audited match points gained, lost", "", f"{found.gained:,}, {found.lost:,}"
        if found.broken:
            yield "promises broken", "", f"{found.broken:,}"
    if progress.lag is not None:
        yield "behind the latest event, seconds", f"{progress.lag:,.1f}", ""
    yield "events that wait", f"{progress.waiting:,}", ""
    yield "live runs", f"{progress.live:,}", ""
    yield "state", f"{progress.state_bytes / 2**20:,.1f} MiB", ""


def learned(found: Verdict) -> str:
    """By what partial matches are ranked now, and what that rests on, as far as anything was compared."""
    if found.ranked_by == "random":
        why = "far less came than was promised" if found.broken else "too little is known"
        return f"{why}: partial matches are kept at random"
    refused = f"{found.refused:,} of {found.versions:,} versions refused"
    if found.gained + found.lost:
        refused = f"{found.gained:,} audited match points gained and {found.lost:,} lost by what was learned; {refused}"
    elif found.refused:
        refused += ", no audited match point tells them apart"
    return f"ranked by {RANKED_BY[found.ranked_by]} ({refused})"


def _recall(totals: Totals) -> str | None:
    estimate = totals.recall()
    if estimate.low is None or estimate.high is None:
        return None
    between = f"{estimate.low:.2f} to {estimate.high:.2f}"
    return between if estimate.recall is None else f"about {estimate.recall:.2f} ({between})"
