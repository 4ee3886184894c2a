"""What a run under a budget did, in words: whether one is needed, and a few lines for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from acep_approx.budget.audit import RecallEstimate
from acep_approx.budget.ledger import LIGHT, Learning, RunRecord, SpentRecord
from acep_approx.events.counts import counted
from acep_approx.pages.drawing import percent
from acep_approx.timeline.picture import moment_text

LARGE = 1000
"""Numbers from which on all digits before the point are shown."""


def need_words(record: SpentRecord) -> str:
    """Work and time of the exact run against those of this one; whether a budget can save time at such a load.

    Parameters
    ----------
    record : SpentRecord

    Returns
    -------
    str
        Sentences without a stop at the end. Times only where the run has shown how long a run-step takes.

    Examples
    --------
    >>> from acep_approx.budget import Piece, RunRecord
    >>> done = [Piece(tick=99, events=1000, work=9_000, bound=9_500, live=7, price=0.1, shed=30, points=12)]
    >>> print(need_words(RunRecord("", "", "20%", "", "history", pieces=done, full_work=45.0, seconds=0.5)))
    it takes about 45 run-steps per event, this one took 9 (20%)
    >>> print(need_words(RunRecord("", "", "20%", "", "history", pieces=done, full_work=2.5, seconds=0.5)))
    it takes about 2.5 run-steps per event: below 10 a budget saves no time and may take more; run it exactly
    >>> print(need_words(RunRecord("", "", "9 runs", "", "oldest", pieces=done)))
    unknown: nobody knows the work of the exact run here; a run without a budget, or acep train, says it
    """
    if record.full_work is None or not record.events:
        return work_words(None, 0.0)
    words = work_words(record.full_work, record.work / record.events, record.past_work)
    if record.is_light or record.exact_seconds is None or record.seconds is None:
        return words
    return f"{words}; it would take about {record.exact_seconds:,.2g} s, this one took {record.seconds:,.2g} s"


def work_words(full: float | None, done: float, past: float | None = None) -> str:
    """Run-steps per event of the exact run, as far as they are known, against those of one within a budget.

    ``past``: what it took in the past, where ``full`` is what is expected of the events that came.

    Examples
    --------
    >>> work_words(45.0, 9.0)
    'it takes about 45 run-steps per event, this one took 9 (20%)'
    >>> work_words(45.0, 9.0, past=30.0)
    'it takes about 45 run-steps per event (expected of these events; 30 in the past), this one took 9 (20%)'
    """
    if full is None:
        return "unknown: nobody knows the work of the exact run here; a run without a budget, or acep train, says it"
    exact = f"it takes about {_plain(full)} run-steps per event"
    exact += f" (expected of these events; {_plain(past)} in the past)" if past is not None else ""
    if full < LIGHT:
        return f"{exact}: below {LIGHT:g} a budget saves no time and may take more; run it exactly"
    share = f" ({done / full:.0%})" if done < full else ""
    return f"{exact}, this one took {_plain(done)}{share}"


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= LARGE else f"{number:.3g}"


def summary(record: RunRecord) -> list[str]:
    """The exact run, work against the bound, what was shed, the estimated recall, what was learned and not matched.

    Parameters
    ----------
    record : RunRecord

    Returns
    -------
    list of str
        Lines without line ends.

    Examples
    --------
    >>> from acep_approx.budget import Piece, RecallEstimate, RunRecord, Shed
    >>> record = RunRecord(
    ...     "SEQ(A a, B b) WITHIN 5", "x.csv", "20%", "at most 9 run-steps per event", "history",
    ...     pieces=[Piece(tick=99, events=100, work=850, bound=900, live=7, price=0.1, shed=30, points=12)],
    ...     shed=[Shed("a", "at birth", 20), Shed("a", "in a pass", 10)],
    ...     recall=RecallEstimate(0.9, 0.84, 0.94, points=40, cells=11, outside=100), full_work=45.0, audit_work=34,
    ... )
    >>> for line in summary(record):
    ...     print(line)
    exact run: it takes about 45 run-steps per event, this one took 8.5 (19%)
    work: 850 run-steps of 900 allowed (94.4%), 8.5 per event; at most 9 run-steps per event
    shed: 30 runs
      a: 20 at birth, 10 in a pass
    estimated recall: 90% (84% to 94% with 95% confidence; 40 match points audited in 11 cells)
    audit: 34 run-steps, 4% of the work
    """
    lines = [f"exact run: {need_words(record)}"]
    if record.events:
        used = f" ({percent(record.work / record.allowed)})" if record.allowed else ""
        rate = f"{record.work / record.events:,.1f} per event"
        lines.append(f"work: {record.work:,} run-steps of {record.allowed:,} allowed{used}, {rate}; {record.bound}")
    else:
        lines.append(f"work: none, there were no events; {record.bound}")
    lines.append(f"shed: {counted(record.shed_runs, 'run')}")
    by_state: dict[str, Counter[str]] = {}
    for shed in record.shed:
        by_state.setdefault(shed.state, Counter())[shed.reason] += shed.runs
    for state, reasons in sorted(by_state.items(), key=lambda item: (-item[1].total(), item[0])):
        ranked = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        lines.append(f"  {state}: " + ", ".join(f"{runs:,} {reason}" for reason, runs in ranked))
    if record.ends:
        lines.append(searched_words(record))
    lines.append(f"estimated recall: {recall_words(record.recall)}")
    if record.audit_work is not None and record.learning is None:  # of a run that learns it is its exploration
        share = f", {percent(record.audit_work / record.work)} of the work" if record.work else ""
        lines.append(f"audit: {record.audit_work:,} run-steps{share}")
    if record.learning is not None:
        lines += [f"{name}: {fact}" for name, fact in learning_facts(record, record.learning)]
    if record.push_p99 is not None:
        lines.append(f"a push took {1000 * record.push_p99:,.3g} ms at most, 99 times of 100")
    left_out = (("late", record.late), ("malformed", record.malformed), ("without key", record.without_key))
    if any(number for _, number in left_out):
        lines.append("events not matched: " + ", ".join(f"{number:,} {name}" for name, number in left_out if number))
    return lines


def searched_words(record: RunRecord) -> str:
    """What was searched backwards, and what the budget left open."""
    ends = counted(record.ends, "possible end") + " of matches"
    kept = f"at most {counted(record.most_kept, 'event')} kept at once"
    more = f", and of {record.unlisted:,} others whether they end more matches" if record.unlisted else ""
    return f"searched backwards: {ends}, {record.unsearched:,} of them left open by the budget{more}; {kept}"


def recall_words(estimate: RecallEstimate | None) -> str:
    """The estimate with its interval; the interval alone, where it rests on too little; or why there is none.

    Examples
    --------
    >>> from acep_approx.budget import RecallEstimate
    >>> recall_words(RecallEstimate(None, 0.21, 0.97, 4, 3, reason="4 match points audited, too few for an estimate"))
    '4 match points audited, too few for an estimate; it lies between 21% and 97%, with 95% confidence'
    >>> recall_words(RecallEstimate(0.76, 0.69, 0.82, 0, 0, ends=109, missed=14, by_past=True))
    '76% (69% to 82% with 95% confidence; by 109 possible ends of matches, 14 of them missed, and the history)'
    >>> recall_words(RecallEstimate(1.0, 1.0, 1.0, 0, 0))
    '100%: nothing was shed that a match point needs'
    """
    if estimate is None:
        return "unknown: there was no audit"
    if estimate.low is None or estimate.high is None:
        return f"unknown: {estimate.reason}"
    low, high, level = map(percent, (estimate.low, estimate.high, estimate.level))
    if estimate.recall is None:
        return f"{estimate.reason}; it lies between {low} and {high}, with {level} confidence"
    if estimate.is_certain:
        return f"{percent(estimate.recall)}: nothing was shed that a match point needs"
    return f"{percent(estimate.recall)} ({low} to {high} with {level} confidence; {basis_words(estimate)})"


def basis_words(estimate: RecallEstimate) -> str:
    """What an estimate rests on.

    Examples
    --------
    >>> from acep_approx.budget import RecallEstimate
    >>> basis_words(RecallEstimate(0.9, 0.84, 0.94, points=40, cells=11, outside=100))
    '40 match points audited in 11 cells'
    """
    audited = f"{counted(estimate.points, 'match point')} audited in {counted(estimate.cells, 'cell')}"
    if not estimate.ends and not estimate.by_past:
        return audited
    parts = [audited] if estimate.points else []
    if estimate.ends:
        tried = "1 possible end of a match" if estimate.ends == 1 else f"{estimate.ends:,} possible ends of matches"
        parts.append(f"{tried}, {estimate.missed:,} of them missed")
    parts += ["the history"] if estimate.by_past else []
    return f"by {', '.join(parts[:-1])}{', and ' if len(parts) > 1 else ''}{parts[-1]}"


def spent(record: SpentRecord) -> list[tuple[str, str]]:
    """Numbers to know, each with what it is: what a run used of its budget, shed and found."""
    used = percent(record.work / record.allowed) if record.allowed else "none"
    left_out = (f"{record.shed_runs:,}", "runs shed")
    if isinstance(record, RunRecord) and record.ends and not record.shed_runs:
        left_out = (f"{record.unsearched:,}", f"of {record.ends:,} possible ends of matches left open")
    return [
        (used, f"of the budget used: {record.work:,} of {record.allowed:,} run-steps"),
        left_out,
        (f"{record.found:,}", f"match points found in {record.events:,} events"),
    ]


def learning_facts(record: RunRecord, known: Learning) -> Iterator[tuple[str, str]]:
    """Names and texts: what was seen and what came of it, without what is drawn.

    Parameters
    ----------
    record : RunRecord
    known : Learning
        Of this record.
    """

    def times(number: int) -> str:
        return "once" if number == 1 else f"{number:,} times"

    rescored = "runs were never rescored"
    if known.revalued:
        rescored = f"runs rescored {times(len(known.revalued))}, the last after {known.revalued[-1].events:,} events"
    yield "learned", f"{counted(known.tests, 'test')} seen; {rescored}"
    if known.brier is None:
        yield "calibration", "no outcome of the cohort is known: nothing to hold chances against"
    else:
        alone = f"the mean alone would have {known.plain_brier:.3g}"
        yield "calibration", f"Brier score {known.brier:.3g} over {counted(known.cases, 'case')} ({alone})"
    drift = "no alarm"
    if known.alarms:
        when = f"{moment_text(known.alarms[-1].tick, is_time=record.is_time)}, {known.alarms[-1].where}"
        drift = f"{counted(len(known.alarms), 'alarm')},{' the last' if len(known.alarms) > 1 else ''} at {when}"
    yield "drift", drift
    explored = "none"
    if known.explores:
        share = f"{percent(known.explored / record.work)} of the work" if record.work else "no work"
        of_budget = f"{percent(known.explores)} of the budget is for it"
        given_up = f"; given up {times(known.given_up)}, for want of budget" if known.given_up else ""
        explored = f"{known.explored:,} run-steps, {share} ({of_budget}){given_up}"
    yield "exploration", explored
    share = f", {percent(known.seconds / record.seconds)} of the time" if record.seconds else ""
    yield "learning took", f"{known.seconds:,.2f} s{share}"
