"""What is said of a job on Spark: signs of life, its micro-batches while it runs, and its numbers at the end.

On a terminal a panel or a bar moves; else there are lines. The numbers are those of all workers, in the words of a run
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Self

from acep_approx.cli.summary import events_read
from acep_approx.cli.terminal import amount, say, stages, words

if TYPE_CHECKING:
    from rich.table import Table

    from acep_approx.learning.judging import Verdict
    from acep_approx.spark.streaming.metrics import Progress, Totals
    from acep_approx.spark.worker.program import Program
    from acep_approx.spark.worker.spending import Spending

EVERY = 15.0
"""Seconds without a line, at most, where there is no terminal."""


class Pulse:
    """Says what is going on whenever nothing was said for some time.

    Parameters
    ----------
    what : str
        What is going on.
    enabled : bool, default True
        Without, and on a terminal, nothing is said: there something else moves.
    """

    def __init__(self, what: str, *, enabled: bool = True) -> None:
        self._what, self._begun = what, monotonic()
        self._heard, self._is_over = self._begun, Event()
        self._thread = Thread(target=self._beat, name="signs of life", daemon=True)
        self._speaks = enabled and not words().is_terminal

    def now(self, what: str) -> None:
        """Something else is going on now."""
        self._what = what

    def said(self, what: str) -> None:
        """A line was printed, and something else is going on now."""
        self._what, self._begun = what, monotonic()
        self._heard = self._begun

    def _beat(self) -> None:
        while not self._is_over.wait(max(self._heard + EVERY - monotonic(), 0.0)):
            if monotonic() >= self._heard + EVERY:
                say(f"... {self._what}, {monotonic() - self._begun:.0f} s so far")
                self._heard = monotonic()

    def __enter__(self) -> Self:
        if self._speaks:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._speaks:
            self._thread.join()


@contextmanager
def waiting(what: str, *, enabled: bool = True) -> Iterator[Callable[[str, float], None]]:
    """Say what is going on, and show that it goes on.

    Parameters
    ----------
    what : str
    enabled : bool, default True
        Without, nothing is said.

    Yields
    ------
    callable
        Call it with what is being done, and how much of it all is done, from 0 to 1.
    """
    if enabled:
        say(f"{what} ...")
    with stages(enabled=enabled) as bar, Pulse(what, enabled=enabled) as pulse:
        bar(what, 0.0)

        def tell(stage: str, share: float) -> None:
            bar(stage, share)
            pulse.now(f"{stage}, {share:.0%}")

        yield tell


# --- micro-batches --------------------------------------------------------------------------------------------------


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
def live(totals: Totals, *, enabled: bool = True) -> Iterator[Callable[[Progress], None]]:
    """Show the micro-batches of a job on stderr.

    Parameters
    ----------
    totals : Totals
        Of all micro-batches so far, the one that is shown too.
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
    console = words()
    if not console.is_terminal:
        yield lambda progress: say(line(progress, totals))
        return
    from rich.live import Live

    with Live("waiting for the first micro-batch ...", console=console, auto_refresh=False) as panel:
        yield lambda progress: panel.update(table(progress, totals), refresh=True)


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


# --- at the end -----------------------------------------------------------------------------------------------------


def say_read(numbers: Totals, program: Program, seconds: float, *, of_topics: bool = False) -> None:
    """Say on stderr what was read, and what it took; ``of_topics``: events were messages."""
    counts = numbers.counts
    events = counts["events"]
    say(events_read(events, counts["relevant"] if program.single is not None else None, seconds))
    if counts["steps"]:
        say(f"{amount(counts['steps'], 'run')} met, {counts['steps'] / events:,.1f} per event")
    if counts["without_key"]:
        say(f"{amount(counts['without_key'], 'event')} left out: no value for {program.key_words}")
    if counts["malformed"]:
        thing, why = ("message", ": malformed") if of_topics else ("event", " without a time that can be used")
        say(f"{amount(counts['malformed'], thing)} left out{why}")
    if numbers.tombstones:
        say(f"{amount(numbers.tombstones, 'message')} left out: no value (tombstones)")
    if counts["late"]:
        say(f"{amount(counts['late'], 'event')} left out that came late")
    if counts["waiting"]:
        say(f"{amount(counts['waiting'], 'event')} wait until the watermark has passed them")
    if counts["others"]:
        say(f"{amount(counts['others'], 'row')} of changes and calls")


def say_budget(numbers: Totals, spending: Spending, program: Program) -> None:
    """Say on stderr whether a budget was needed, and what it was spent on."""
    for line in budget_lines(numbers, spending, program.known_work(spending)):
        say(line)


def budget_lines(numbers: Totals, spending: Spending, full_work: float | None) -> Iterator[str]:
    """The exact run, work against the bound, runs shed by reason, estimated recall, what learning has come to.

    ``full_work``: run-steps per event of the exact run, where they are known.
    """
    from acep_approx.pages.budget.lines import recall_words, work_words

    counts = numbers.counts
    yield f"exact run: {work_words(full_work, counts['steps'] / max(counts['events'], 1))}"
    policy = spending.policy or ("history" if spending.history else "oldest")
    version = f", history version {numbers.version}" if numbers.version else ""
    yield f"budget of {spending.budget}, policy {policy}, seed {spending.seed}{version}"
    used = f" ({counts['steps'] / counts['bound']:.1%})" if counts["bound"] else ""
    yield f"work: {counts['steps']:,} run-steps of {counts['bound']:,} allowed{used}"
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in numbers.shed.items() if number)
    yield f"shed: {amount(sum(numbers.shed.values()), 'run')}" + (f": {reasons}" if reasons else "")
    yield f"estimated recall: {recall_words(numbers.recall() if numbers.has_audit else None)}"
    if numbers.learned is not None and numbers.learned.versions:
        yield f"learning: {learned(numbers.learned)}"
