"""What ``acep run`` says on stderr at its end where events were late, updated or taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from acep_approx.cli.summary import MANY, by_errors, say_cut, say_found
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from acep_approx.cli.write import Results
    from acep_approx.revisions.matcher import RevisedMatcher
    from acep_approx.run.watermarks import Holder

SHOWN = 5
"""Sources that are named at most."""
REASONS = {
    "late": "late",
    "unknown": "unknown (taken back, and not there)",
    "duplicate": "duplicate (inserted, and there already)",
    "backwards": "backwards (a watermark below the last one)",
}
"""Why rows are left out, in words."""


class Changes:
    """Counts the results of a changelog on their way: those that come, and those that are taken back.

    Attributes
    ----------
    came, gone : int
        Results so far.
    by_errors : Counter
        Those that remain, by number of errors.
    """

    def __init__(self) -> None:
        self.came = self.gone = 0
        self.by_errors: Counter[int] = Counter()

    def counted(self, results: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same tables, counted."""
        for table in results:
            if table.num_rows:
                self.came += self._add(table, "+I", 1)
                self.gone += self._add(table, "-D", -1)
            yield table

    def _add(self, table: pa.Table, op: str, sign: int) -> int:
        import pyarrow.compute as pc

        mine = table.column("errors").filter(pc.equal(table.column("op"), op))
        for item in pc.value_counts(mine).to_pylist():
            self.by_errors[item["values"]] += sign * item["counts"]
        return len(mine)


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
    say(rows_read(matcher.rows, counts.inserted, counts.retracted, seconds))
    if counts.rejected:
        why = ", ".join(f"{number:,} {REASONS[name]}" for name in REASONS if (number := getattr(counts, name)))
        where = "to keep such rows: --late FILE" if late is None else f"written to {late}"
        say(f"{amount(counts.rejected, 'row')} left out: {why}; {where}")


def rows_read(rows: int, inserted: int, retracted: int, seconds: float) -> str:
    """What was read, in words.

    Examples
    --------
    >>> rows_read(5, 4, 1, 0.25)
    '5 rows read: 4 events inserted, 1 retracted; 0.25 s'
    """
    became = [f"{amount(inserted, 'event')} inserted"] if inserted else []
    became += [f"{retracted:,} retracted"] if retracted else []
    rate = f", {rows / seconds:,.0f} rows/s" if rows >= MANY else ""
    return f"{amount(rows, 'row')} read{': ' if became else ''}{', '.join(became)}; {seconds:.2f} s{rate}"


def facts_of(matcher: RevisedMatcher, changes: Changes) -> list[tuple[str, str]]:
    """What became of rows and results, as a page says it."""
    counts = matcher.revisions
    facts = [("rows", f"{matcher.rows:,}: {amount(counts.inserted, 'event')} inserted, {counts.retracted:,} retracted")]
    if counts.rejected:
        why = [f"{number:,} {REASONS[name]}" for name in REASONS if (number := getattr(counts, name))]
        facts.append(("rows left out", ", ".join(why)))
    if changes.came:
        put_out = f"{changes.came:,} put out, {changes.gone:,} of them taken back"
        facts.append(("results", f"{put_out}; {changes.came - changes.gone:,} remain"))
    return facts


def say_changes(results: Results, changes: Changes, thing: str) -> None:
    """Say how many results were put out, how many of them were taken back, and how many there are at the end.

    Parameters
    ----------
    results : Results
    changes : Changes
        Of these results.
    thing : str
        What they are.
    """
    if not changes.gone:
        say_found(results, thing)
        return
    remaining = {errors: number for errors, number in changes.by_errors.items() if number}
    left = f"{amount(changes.came - changes.gone, thing)}{by_errors(remaining)}"
    say(f"{amount(changes.came, thing)} put out, {changes.gone:,} of them taken back; at the end {left}")
    if results.is_cut:
        say_cut(amount(results.rows, "row"))


def say_holding(matcher: RevisedMatcher) -> None:
    """Say which sources held the watermark back, and which number it waited for."""
    held, asked = matcher.holding, matcher.asked
    if held.by and (asked.source is not None or held.by[0].missing is not None):
        names = ", ".join(_name(holder) for holder in held.by[:SHOWN])
        more = f" and {len(held.by) - SHOWN:,} more" if len(held.by) > SHOWN else ""
        say(f"the watermark {_stood(matcher, held.by[0].watermark)}, held back by {names}{more}")
    if held.idle:
        names = ", ".join(repr(source) for source in held.idle[:SHOWN])
        more = f" and {len(held.idle) - SHOWN:,} more" if len(held.idle) > SHOWN else ""
        say(f"idle, and not waited for: {names}{more}")


def _name(holder: Holder) -> str:
    """What a source is called, and what it waits for."""
    of = "" if holder.source is None else f"source {holder.source!r}"
    waiting = "" if holder.missing is None else f"number {holder.missing:,}, which never came"
    return " of ".join(filter(None, (waiting, of))) or "events without a source"


def _stood(matcher: RevisedMatcher, tick: int) -> str:
    """Where the watermark was when the stream ended; a time as in results."""
    import numpy as np

    from acep_approx.events.time import to_datetime
    from acep_approx.events.writing.tables import plain_text
    from acep_approx.run.watermarks import NEVER

    if tick == NEVER:
        return "never moved"
    is_time = matcher.stream is not None and matcher.stream.pipeline.is_time
    return f"came to {plain_text(to_datetime(np.array([tick])), '')[0].as_py() if is_time else tick}"
