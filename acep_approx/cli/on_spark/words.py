"""What a run on Spark says at its end: the numbers of all its workers, in the words of a run here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from acep_approx.cli.on_spark.live import learned
from acep_approx.cli.options.choices import ResultKind
from acep_approx.cli.summary import events_read
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    from acep_approx.api import Query
    from acep_approx.budget.audit import RecallEstimate
    from acep_approx.learning.judging import Verdict
    from acep_approx.spark.streaming.metrics import Totals
    from acep_approx.spark.worker.job import Spending

THINGS = {ResultKind.MATCHES: "match", ResultKind.POINTS: "point"}


@dataclass(frozen=True)
class Numbers:
    """What a job did.

    Parameters
    ----------
    counts : mapping of str to int
        As ``metrics.COUNTS``.
    shed : mapping of str to int
        Runs shed, by reason.
    recall : RecallEstimate or None
        None: nothing was audited.
    version : int
        Of the history; 0: none.
    learned : Verdict or None
        What learning has come to; None: nothing was learned, or nobody has told.
    """

    counts: Mapping[str, int]
    shed: Mapping[str, int]
    recall: RecallEstimate | None
    version: int
    learned: Verdict | None = None

    @classmethod
    def of_batch(cls, observed: Mapping[str, Any]) -> Self:
        """From what Spark added up, see ``metrics.observed``."""
        from acep_approx.spark.streaming.metrics import COUNTS, Totals, audit_of

        counts = {name: int(observed.get(name) or 0) for name in COUNTS}
        return cls(
            counts,
            {reason: int(observed.get(f"shed_{i}") or 0) for i, reason in enumerate(Totals().shed)},
            audit_of(observed).estimate() if counts["audited"] else None,
            int(observed.get("version") or 0),
        )

    @classmethod
    def of_stream(cls, totals: Totals) -> Self:
        """From what was added up over micro-batches."""
        last = totals.last
        waiting = {"waiting": last.waiting if last else 0}
        version, verdict = (last.version, last.learned) if last else (0, None)
        return cls({**totals.counts, **waiting}, totals.shed, totals.recall(), version, verdict)


def say_read(numbers: Numbers, query: Query, seconds: float) -> None:
    """Say on stderr what was read, and what it took."""
    counts = numbers.counts
    events = counts["events"]
    say(events_read(events, counts["relevant"], seconds))
    if counts["steps"]:
        say(f"{amount(counts['steps'], 'run')} met, {counts['steps'] / events:,.1f} per event")
    if counts["without_key"]:
        names = ", ".join(f"[{e.name}]" for e in query.syntax.equivalences)
        say(f"{amount(counts['without_key'], 'event')} left out: no value for {names}")
    if counts["malformed"]:
        say(f"{amount(counts['malformed'], 'event')} left out without a time that can be used")
    if counts.get("late"):
        say(f"{amount(counts['late'], 'event')} left out that came late")
    if counts.get("waiting"):
        say(f"{amount(counts['waiting'], 'event')} wait until the watermark has passed them")


def say_budget(numbers: Numbers, spending: Spending, query: Query) -> None:
    """Say on stderr whether a budget was needed, and what it was spent on."""
    for line in budget_lines(numbers, spending, spending.known_work(query)):
        say(line)


def budget_lines(numbers: Numbers, spending: Spending, full_work: float | None) -> Iterator[str]:
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
    yield f"estimated recall: {recall_words(numbers.recall)}"
    if numbers.learned is not None and numbers.learned.versions:
        yield f"learning: {learned(numbers.learned)}"
