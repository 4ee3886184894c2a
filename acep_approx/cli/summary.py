"""What ``acep run`` says on stderr at its end: what was read and found, and what a budget was spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.cli.options.output import ResultKind
from acep_approx.cli.terminal import amount, first_of, say
from acep_approx.diagrams.text_layout import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from acep_approx.budget.set_ledger import SetRecord, SharedRecord
    from acep_approx.cli.write import Results
    from acep_approx.events.reading.malformed import MalformedRows
    from acep_approx.events.source import Source
    from acep_approx.results.budgeted import BudgetedRun, Expansion
    from acep_approx.results.matches import Matches
    from acep_approx.revisions.matcher import RevisedMatcher
    from acep_approx.run.watermarks import Held, Holder

MANY = 100_000
"""Events from which on a speed means something: below, starting up takes longer than matching."""
SHOWN = 5
"""Sources that are named at most."""
MORE = " and {:,} more"
LATE = "late"
REASONS = {
    LATE: "late",
    "unknown": "unknown (taken back, and not there)",
    "duplicate": "duplicate (inserted, and there already)",
    "backwards": "backwards (a watermark below the last one)",
}
"""Why rows are left out, in words."""


def say_summary(
    matches: Matches, results: Results, output: ResultKind, seconds: float, key_idle: str | None = None
) -> None:
    """Say what was read and what was found; ``key_idle``: after which time keys were dropped."""
    seen = matches.progress
    say(events_read(seen.events, seen.relevant, seconds))
    if seen.made:  # by the runs engine
        per_event, merged = seen.steps / seen.events, seen.merged / seen.made
        say(
            f"{amount(seen.steps, 'run')} met, {per_event:,.1f} per event; at most {seen.peak:,} at once; "
            f"{seen.made:,} made, {merged:.0%} merged"
        )
        if seen.most_kept:
            say(f"at most {amount(seen.most_kept, 'event')} kept at once, to be searched backwards")
    if not output.is_count:
        say_found(results, output.thing)
    if seen.without_key:
        names = ", ".join(f"[{e.name}]" for e in matches.plan.query.equivalences)
        say(f"{amount(seen.without_key, 'event')} left out: no value for {names}")
    say_dropped(seen.keys_dropped, key_idle)
    say_left_out(matches.source)


def say_how_read(source: Source) -> None:
    """Say what was found out of how the files are written, as far as a user may not expect it."""
    if notes := source.notes:
        say(f"read with {'; '.join(notes)}")


def say_dropped(keys: int, key_idle: str | None) -> None:
    """Say how many keys were dropped, if there were any: one that came back and was silent again counts twice."""
    if keys:
        say(f"{amount(keys, 'key')} dropped that had no event for more than {key_idle}")


def say_unclosed(number: int, kind: ResultKind) -> None:
    """Say how many results wait for the end of a window that later events may lie in."""
    if number:
        thing = kind.thing or "match"
        verb = "waits for its window" if number == 1 else "wait for their window"
        say(f"{amount(number, thing)} {verb} to close, since more events may follow (--open-end)")


def say_left_out(source: Source) -> None:
    """Say which unit the times may have, and how many rows could not be read or came late, each with the first.

    A unit is said where the one they were taken in puts them before 1980 or after 2200.
    """
    if text := source.likely_digits:
        say(
            f"warning: the times look like times written as digits, and are taken for plain numbers: "
            f"--time-format {text} reads them as times"
        )
    elif unit := source.likelier_unit:
        say(f"note: is the unit of the times right? In {unit} they are between 2000 and 2100: --unit {unit}")
    say_malformed(source.malformed)
    if source.late.count:
        say(f"{amount(source.late.count, 'event')} left out that came late; {source.late.reasons[0]}")


def say_malformed(skipped: MalformedRows) -> None:
    """Say how many rows could not be read, if there were any."""
    if skipped.count:
        say(f"{amount(skipped.count, 'row')} left out that could not be read; {skipped.reasons[0]}")


def events_read(events: int, relevant: int | None, seconds: float) -> str:
    """What was read, in words; ``relevant`` is None where nobody counts that.

    Examples
    --------
    >>> events_read(200_000, 3, 2.0)
    '200,000 events read, 3 relevant to the query; 2.00 s, 100,000 events/s'
    """
    rate = f", {events / seconds:,.0f} events/s" if events >= MANY else ""
    about = "" if relevant is None else f", {relevant:,} relevant to the query"
    return f"{amount(events, 'event')} read{about}; {seconds:.2f} s{rate}"


def say_found(results: Results, thing: str, target: str = "FILE") -> None:
    """Say how many results there are, and whether there would be more.

    Parameters
    ----------
    results : Results
    thing : str
        What they are.
    target : str
        What ``-o`` has to name to get them all.
    """
    found = amount(results.rows, thing)
    say(f"{found}{by_errors(results.by_errors)}")
    if results.is_cut:
        say_cut(found, target)


def say_cut(found: str, target: str = "FILE") -> None:
    """Say that there are more results than ``found``, and how to get them."""
    say(
        f"stopped after {found}, there are more: --limit N lists more of them, -o {target} writes them all, "
        "--output count counts all matches"
    )


def by_errors(counts: dict[int, int]) -> str:
    """Numbers by number of errors, in words; empty where there is nothing to tell.

    Examples
    --------
    >>> by_errors({0: 5267, 1: 3954})
    ': 5,267 with 0 errors, 3,954 with 1 error'
    """
    parts = [f"{n:,} with {amount(e, 'error')}" for e, n in sorted(counts.items())]
    return ": " + ", ".join(parts) if parts else ""


def say_budget(run: BudgetedRun, source: str, exactly: str) -> None:
    """Say whether a budget was needed, and what it was spent on.

    Parameters
    ----------
    run : BudgetedRun
        After its matches were found.
    source : str
        Name of the input.
    exactly : str
        The command that does the same without a budget.
    """
    from acep_approx.pages import summary

    record = run.record(source)
    if run.plan.registers is None:
        say(f"budget of {record.budget}: {record.bound}")
        return
    needed, *others = summary(record)
    say(needed)
    if record.is_light:
        say(f"  {exactly}")
    say(f"budget of {record.budget}, policy {record.policy}, seed {record.seed}")
    for line in others:
        say(line)


def say_expansion(beyond: Expansion) -> None:
    """Say what it took to list what a budget found in full."""
    if beyond.events:
        rounds = f", in {amount(beyond.rounds, 'round')}" if beyond.rounds else ""
        again = f"{amount(beyond.events, 'event')} matched again{rounds}"
        say(f"expanded: {beyond.steps:,} run-steps outside of the budget, {again}")


def say_measured(trained: int, measured: int) -> None:
    """Say which events recall was measured on, and what stands in brackets."""
    said = f"learned from {amount(trained, 'event')}, measured on the {measured:,} after them"
    say(f"{said}; recall is that of match points, in brackets for 95 of 100 stretches like these")


def say_needed(record: SharedRecord) -> None:
    """Say which load was meant, as far as it is known."""
    if record.full_work is not None:
        from acep_approx.pages.budget.lines import need_words

        say(f"exact run: {need_words(record)}")


def say_budget_of_set(record: SetRecord, *, has_rows: bool = False) -> None:
    """Say what the budget of a set was spent on, and which of its queries miss most.

    ``has_rows``: a file has a row for each query.
    """
    allowed = f" of {record.allowed:,}" if record.allowed != record.work else ""
    say_needed(record)
    say(f"budget of {record.budget} for all queries, policy {record.policy}, seed {record.seed}")
    say(f"{record.work:,}{allowed} run-steps, {amount(record.shed_runs, 'run')} shed")
    low, high = record.recall[1:]
    if record.shed_runs:
        about = "unknown" if low is None or high is None else f"between {low:.1%} and {high:.1%}"
        say(f"match points found, of all that there are, as far as was audited: {about}")
    known = [(query.id, query.recall) for query in record.worst(SHOWN)]
    worst = [f"{id_} {recall.recall or 0.0:.0%}" for id_, recall in known if recall is not None]
    if len(record.queries) > 1 and worst:
        say(f"fewest of their match points are found of {first_of(worst, SHOWN, MORE)}")
    elif len(record.queries) > 1 and record.shed_runs:
        say("of which queries fewest are found is not known: too little was audited of each (--audit 0.2 tells more)")
    if len(record.queries) > SHOWN and not has_rows:
        say(f"--report each.csv writes a row for each of the {len(record.queries):,} queries")
    for part in record.parts[:SHOWN]:
        share = part.piece.work / max(record.work, 1)
        say(f"  {one_line(part.name):.60}: {share:.0%} of the run-steps, {amount(part.piece.points, 'match point')}")
    if record.exact:
        say(f"answered exactly, nothing is shed: {first_of(record.exact, SHOWN, MORE)}")


# --- where events may be late or change -------------------------------------------------------------------------------


def say_rows(matcher: RevisedMatcher, late: Path | None, seconds: float) -> None:
    """Say what was read, and what became of it.

    Parameters
    ----------
    matcher : RevisedMatcher
    late : Path or None
        Where the rows are that were left out.
    seconds : float
        That it took.
    """
    counts = matcher.revisions
    became = [f"{amount(counts.inserted, 'event')} inserted"] if counts.inserted else []
    became += [f"{counts.retracted:,} retracted"] if counts.retracted else []
    rate = f", {matcher.rows / seconds:,.0f} rows/s" if matcher.rows >= MANY else ""
    say(f"{amount(matcher.rows, 'row')} read{': ' if became else ''}{', '.join(became)}; {seconds:.2f} s{rate}")
    say_rejected({name: getattr(counts, name) for name in REASONS}, late)


def say_rejected(counts: Mapping[str, int], late: Path | None) -> None:
    """Say how many rows were left out, by reason, and where they are."""
    if total := sum(counts.values()):
        where = "to keep such rows: --late FILE" if late is None else f"written to {late}"
        say(f"{amount(total, 'row')} left out: {_by_reason(counts)}; {where}")


def _by_reason(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {REASONS[name]}" for name, number in counts.items() if number)


def facts_of(matcher: RevisedMatcher, results: Results) -> list[tuple[str, str]]:
    """What became of rows and results, as a page says it."""
    counts = matcher.revisions
    facts = [("rows", f"{matcher.rows:,}: {amount(counts.inserted, 'event')} inserted, {counts.retracted:,} retracted")]
    if counts.rejected:
        facts.append(("rows left out", _by_reason({name: getattr(counts, name) for name in REASONS})))
    if results.came:
        put_out = f"{results.came:,} put out, {results.gone:,} of them taken back"
        facts.append(("results", f"{put_out}; {results.came - results.gone:,} remain"))
    return facts


def say_changes(results: Results, thing: str) -> None:
    """Say how many results were put out, how many of them were taken back, and how many there are at the end.

    Parameters
    ----------
    results : Results
    thing : str
        What they are.
    """
    if not results.gone:
        say_found(results, thing)
        return
    remaining = {errors: number for errors, number in results.remaining.items() if number}
    left = f"{amount(results.came - results.gone, thing)}{by_errors(remaining)}"
    say(f"{amount(results.came, thing)} put out, {results.gone:,} of them taken back; at the end {left}")
    if results.is_cut:
        say_cut(amount(results.rows, "row"))


def say_holding(held: Held, *, is_by_source: bool, is_time: bool) -> None:
    """Say which sources held the watermark back, and which number it waited for."""
    if held.by and (is_by_source or held.by[0].missing is not None):
        names = first_of([*map(_name, held.by)], SHOWN, MORE)
        say(f"the watermark {_stood(held.by[0].watermark, is_time=is_time)}, held back by {names}")
    if held.idle:
        say(f"idle, and not waited for: {first_of([*map(repr, held.idle)], SHOWN, MORE)}")


def _name(holder: Holder) -> str:
    """What a source is called, and what it waits for."""
    of = "" if holder.source is None else f"source {holder.source!r}"
    waiting = "" if holder.missing is None else f"number {holder.missing:,}, which never came"
    return " of ".join(filter(None, (waiting, of))) or "events without a source"


def _stood(tick: int, *, is_time: bool) -> str:
    """Where the watermark was when the stream ended; a time as in results."""
    import numpy as np

    from acep_approx.events.time import to_datetime
    from acep_approx.events.writing.tables import plain_text
    from acep_approx.run.watermarks import NEVER

    if tick == NEVER:
        return "never moved"
    return f"came to {plain_text(to_datetime(np.array([tick])), '')[0].as_py() if is_time else tick}"
