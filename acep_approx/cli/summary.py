"""What ``acep run`` says on stderr at its end: what was read and found, and what a budget was spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.cli.options.choices import ResultKind
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    from acep_approx.cli.write import Results
    from acep_approx.engines.progress import RunProgress
    from acep_approx.events.late import LateEvents
    from acep_approx.events.reading.malformed import MalformedRows
    from acep_approx.events.source import Source
    from acep_approx.results.budgeted import BudgetedMatches
    from acep_approx.results.matches import Matches

MANY = 100_000
"""Events from which on a speed means something: below, starting up takes longer than matching."""
SINGULAR = {
    ResultKind.MATCHES: "match",
    ResultKind.EVENTS: "event",
    ResultKind.POINTS: "point",
    ResultKind.BUNDLES: "bundle",
    ResultKind.PARTIAL: "partial match",
    ResultKind.COMPRESSED: "hit",
}


def say_summary(
    matches: Matches, results: Results, output: ResultKind, seconds: float, key_idle: str | None = None
) -> None:
    """Say what was read and what was found; ``key_idle``: after which time keys were dropped."""
    seen = matches.progress
    say(events_read(seen.events, seen.relevant, seconds))
    if seen.made:  # by the runs engine
        say(work_done(seen))
    if output is not ResultKind.COUNT:
        say_found(results, SINGULAR[output])
    if seen.without_key:
        names = ", ".join(f"[{e.name}]" for e in matches.plan.query.equivalences)
        say(f"{amount(seen.without_key, 'event')} left out: no value for {names}")
    say_dropped(seen.keys_dropped, key_idle)
    say_unit(matches.source)
    say_malformed(matches.source.malformed)
    say_late(matches.source.late)


def say_how_read(source: Source) -> None:
    """Say what was found out of how the files are written, as far as a user may not expect it."""
    if notes := source.notes:
        say(f"read with {'; '.join(notes)}")


def say_dropped(keys: int, key_idle: str | None) -> None:
    """Say how many keys were dropped, if there were any: one that came back and was silent again counts twice."""
    if keys:
        say(f"{amount(keys, 'key')} dropped that had no event for more than {key_idle}")


def say_unit(source: Source) -> None:
    """Say which unit of the times is likelier, where the one they were taken in puts them before 1980 or after 2200."""
    if text := source.likely_digits:
        say(
            f"warning: the times look like times written as digits, and are taken for plain numbers: "
            f"--time-format {text} reads them as times"
        )
    elif unit := source.likelier_unit:
        say(f"note: is the unit of the times right? In {unit} they are between 2000 and 2100: --unit {unit}")


def say_late(late: LateEvents) -> None:
    """Say how many events were left out as they came late, and which was the first."""
    if late.count:
        say(f"{amount(late.count, 'event')} left out that came late; {late.reasons[0]}")


def say_malformed(skipped: MalformedRows) -> None:
    """Say how many rows could not be read, if there were any."""
    if skipped.count:
        say(f"{amount(skipped.count, 'row')} left out that could not be read; {skipped.reasons[0]}")


def events_read(events: int, relevant: int, seconds: float) -> str:
    """What was read, in words.

    Examples
    --------
    >>> events_read(200_000, 3, 2.0)
    '200,000 events read, 3 relevant to the query; 2.00 s, 100,000 events/s'
    """
    rate = f", {events / seconds:,.0f} events/s" if events >= MANY else ""
    return f"{amount(events, 'event')} read, {relevant:,} relevant to the query; {seconds:.2f} s{rate}"


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


def work_done(seen: RunProgress) -> str:
    """What the runs engine did, in words.

    Parameters
    ----------
    seen : RunProgress
        Of at least one run.
    """
    return (
        f"{amount(seen.steps, 'run')} met, {seen.steps / seen.events:,.1f} per event; "
        f"at most {seen.peak:,} at once; {seen.made:,} made, {seen.merged / seen.made:.0%} merged"
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


def say_budget(matches: BudgetedMatches, source: str, exactly: str) -> None:
    """Say whether a budget was needed, and what it was spent on.

    Parameters
    ----------
    matches : BudgetedMatches
        After its matches were found.
    source : str
        Name of the input.
    exactly : str
        The command that does the same without a budget.
    """
    from acep_approx.pages import summary

    record = matches.record(source)
    if matches.plan.registers is None:
        say(f"budget of {record.budget}: {record.bound}")
        return
    needed, *others = summary(record)
    say(needed)
    if record.is_light:
        say(f"  {exactly}")
    say(f"budget of {record.budget}, policy {record.policy}, seed {record.seed}")
    for line in others:
        say(line)
    beyond = matches.expansion
    if beyond.events:
        rounds = f", in {amount(beyond.rounds, 'round')}" if beyond.rounds else ""
        again = f"{amount(beyond.events, 'event')} matched again{rounds}"
        say(f"expanded: {beyond.steps:,} run-steps outside of the budget, {again}")
