"""``acep run --queries``: many queries over one input, their results as one stream of rows."""

from __future__ import annotations

import sys
import time as clock
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.metrics import freeze, tell_events, tell_results
from acep_approx.cli.no_match import SilentOnes
from acep_approx.cli.options.choices import Format, ResultKind
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.page import PageRequest
from acep_approx.cli.options.queries import OUTPUTS, QueriesOptions
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.query_folder import Folder, read_folder
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.summary import SINGULAR, say_dropped, say_found, say_how_read, say_late, say_malformed, say_unit
from acep_approx.cli.terminal import EventBar, amount, progress_bar, say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.cli.write import Results
    from acep_approx.events.source import Source
    from acep_approx.results.explorer.many_queries import GatheredMatches
    from acep_approx.subscriptions.results import Found

SHOWN = 5
"""Queries that the summary names, those with the most results first."""


@dataclass(frozen=True)
class QueriesRun:
    """What a run is to do, after all checks."""

    context: typer.Context
    folder: Path
    options: QueriesOptions
    inputs: list[str]
    source: RunInputOptions
    output: OutputOptions
    form: Format
    quiet: bool
    page: PageRequest | None = None
    key_idle: str | None = None

    @classmethod
    def of(cls, request: RunRequest) -> QueriesRun:
        """What was asked for.

        Raises
        ------
        UsageError
            What does not go together, or cannot be written where it was said.
        """
        options, source, output, inputs = request.options.many, request.options.source, request.output, request.inputs
        assert options.queries is not None, "it was checked"
        page, form = request.page, output.form()
        output.check(form, is_expanded=False)
        how = (source, output, form, request.quiet, page, request.options.keys.key_idle)
        return cls(request.context, options.queries, options, inputs, *how)


def run_queries(job: QueriesRun) -> None:
    """Read the queries and the events, put out what is found, and say what came of it.

    Parameters
    ----------
    job : QueriesRun

    Raises
    ------
    AcepError
        As for a run of one query; with ``--strict`` where a query is wrong.
    typer.Exit
        With the code of the first query that was left out.
    """
    hide_pandas()
    from acep_approx.events.source import open_source

    begun = clock.perf_counter()
    more: dict[str, Any] = {"reorder": job.options.reorder, "stamp": job.options.stamp, "key_idle": job.key_idle}
    more |= job.source.roles
    folder = read_folder(job.folder, strict=job.options.strict, output=OUTPUTS[job.output.output], **more)
    folder.tell_wrong()
    source = open_source(job.inputs, **job.source.reading)
    if job.options.strict:
        folder.desk.check(source.schema, folder.misfit)
        folder.refuse()
    taken = Taken(Counter(), None if job.page is None else gathered_of(folder))
    if job.page is not None:
        source = _stamped(source, **job.source.roles) if job.options.stamp else source
        source.keep()
    results, events = _put_out(job, folder, source, taken)
    sys.stdout.flush()
    folder.tell_wrong()
    if not job.quiet:
        say_how_read(source)
        read = f"{amount(events, 'event')} read, {queries_in_words(len(folder.desk))}"
        say(f"{read}; {clock.perf_counter() - begun:.2f} s")
        say_found_by(results, taken.by_query, job.output.output)
        if not results.is_cut:
            _say_silent(job, folder, source, taken.by_query)
        say_unit(source)
        say_malformed(source.malformed)
        say_late(source.late)
        if folder.desk.late_in_match:
            say(f"{amount(folder.desk.late_in_match, 'event')} left out that came late")
        say_dropped(folder.desk.keys_dropped_in_match, job.key_idle)
    if job.page is not None and taken.gathered is not None:
        taken.gathered.late = folder.desk.late_in_match
        job.page.gathered(taken.gathered, job.source, source, alone_in(folder, job.options))
    if folder.wrong:
        say(f"{queries_in_words(len(folder.wrong))} left out, as reported above")
        raise typer.Exit(folder.exit_code)


def _put_out(job: QueriesRun, folder: Folder, source: Source, taken: Taken) -> tuple[Results, int]:
    """Write the results, or show them as a table; gives these, and how many events were read."""
    from acep_approx.cli.write import Results, print_table, write

    is_table = job.form is Format.TABLE
    is_seen = not is_table and job.output.file is None and sys.stdout.isatty()  # rows and a bar would mix
    with progress_bar("matching", enabled=not (job.quiet or is_seen)) as bar:
        bar.total = source.rows
        events = _Events(bar)
        tell_events(source, lambda: events.done)
        with closing(_tables(folder, source, job, taken, events)) as tables:
            results = Results(tables, job.output.most_rows(job.form))
            tell_results(results, are_matches=job.output.output is ResultKind.MATCHES)
            shown = list(results) if is_table else []
            if not is_table:
                write(results, job.form, job.output.file, flush=job.output.flush)
            if taken.gathered is not None:
                deque(tables, maxlen=0)  # a page has all, however few rows are shown
    freeze()
    if is_table:
        print_table(shown, job.output.output.value)
    return results, events.done


def _say_silent(job: QueriesRun, folder: Folder, source: Source, by_query: Counter[str]) -> None:
    """Say which queries have no match, and of the first ones why."""
    desk = folder.desk
    silent = [id_ for id_ in desk if not by_query[id_]]
    reasons = {
        id_: f"it reads {stream}, which other queries publish: {', '.join(publishers[:SHOWN])}"
        for stream, (publishers, readers) in desk.streams().items()
        for id_ in readers
    }
    ones = SilentOnes(silent, "query", desk.text, job.context, job.inputs, reasons)
    is_sorted = job.source.sort or job.options.reorder is not None
    ones.say(None if job.options.stamp else source, sort=is_sorted, **job.source.roles)


def gathered_of(folder: Folder) -> GatheredMatches:
    """What gets the matches of each query, for a page."""
    from acep_approx.results.explorer.many_queries import GatheredMatches

    return GatheredMatches(folder.asked())


def _stamped(source: Source, *, time: str | None, unit: str | None, **_: Any) -> Source:
    """The events with the time of the clock where they have none, which is kept: it is not the same again."""
    from acep_approx.events.source import Source
    from acep_approx.events.stamped import StampedEvents

    stamped = Source(StampedEvents(source, time or "ts", unit), source.malformed, source.late)
    stamped.reusable = False
    return stamped


def alone_in(folder: Folder, options: QueriesOptions) -> Callable[[str], str | None] | None:
    """What gives the text of a query, unless it reads what others publish; None where events come out of order."""
    if options.reorder is not None:
        return None
    readers = {id_ for _, ids in folder.desk.streams().values() for id_ in ids}
    return lambda id_: None if id_ in readers or id_ not in folder.desk else folder.desk.text(id_)


@dataclass
class _Events:
    """How many events were read."""

    bar: EventBar
    done: int = 0

    def __call__(self, events: int) -> None:
        self.done = events
        self.bar.done(events)


@dataclass
class Taken:
    """What has been found: numbers by query, and the matches, where there is to be a page."""

    by_query: Counter[str]
    gathered: GatheredMatches | None

    def take(self, found: Found) -> None:
        """Take in what a batch has brought."""
        for id_, rows in found.items():
            self.by_query[id_] += rows.num_rows
            if self.gathered is not None:
                self.gathered.take(id_, rows)


def _tables(
    folder: Folder, source: Source, job: QueriesRun, taken: Taken, progress: _Events
) -> Generator[pa.Table]:
    """The results as a stream of tables; the first one has rows, if any has."""
    counts: Counter[tuple[str, int]] = Counter()
    is_empty = True
    options: dict[str, Any] = {"sort": job.source.sort, "on_progress": progress, "on_misfit": folder.misfit}
    for found in folder.desk.batches(source, **options):
        table = found.to_arrow()
        if job.output.output is ResultKind.COUNT:
            _count(table, counts)
            continue
        taken.take(found)
        if table.num_rows:
            is_empty = False
            yield table
    if job.output.output is ResultKind.COUNT:
        yield _counted(counts, taken.by_query)
    elif is_empty:
        yield table.slice(0, 0)


def _count(table: pa.Table, counts: Counter[tuple[str, int]]) -> None:
    """Add the matches of each query by number of errors."""
    import json

    for row in table.select(["query", "errors", "values"]).to_pylist():
        counts[row["query"], row["errors"]] += json.loads(row["values"])["matches"]


def _counted(counts: Counter[tuple[str, int]], by_query: Counter[str]) -> pa.Table:
    import pyarrow as pa

    from acep_approx.cli.write import with_at_least
    from acep_approx.matching.outputs.counted import warn_at_least

    for (id_, _), matches in counts.items():
        by_query[id_] += matches
    columns = {
        "query": pa.array([id_ for id_, _ in counts], pa.string()),
        "errors": pa.array([errors for _, errors in counts], pa.int64()),
    }
    warn_at_least(counts.values())
    return with_at_least(columns, counts.values())


def say_found_by(results: Any, by_query: Counter[str], output: ResultKind) -> None:
    """Say how many results there are, and which queries have most of them."""
    if output is not ResultKind.COUNT:
        say_found(results, SINGULAR[output])
    if by_query:
        from acep_approx.events.counts import said

        most = ", ".join(f"{id_} {said(number)}" for id_, number in by_query.most_common(SHOWN))
        more = f", and {len(by_query) - SHOWN:,} others" if len(by_query) > SHOWN else ""
        say(f"{queries_in_words(len(by_query))} with results: {most}{more}")


def queries_in_words(number: int) -> str:
    """A number of queries in words."""
    return "1 query" if number == 1 else f"{number:,} queries"
