"""``acep run QUERY INPUT``: one query over events in order of time; exactly, or within a budget."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from acep_approx.cli.learning import Saving
from acep_approx.cli.metrics import freeze, tell_query, tell_results
from acep_approx.cli.no_match import found_nothing, say_no_match
from acep_approx.cli.options.budget import ExpandedBudgetOptions
from acep_approx.cli.options.choices import Format, ResultKind
from acep_approx.cli.options.output import format_of
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.runs.query_run import QueryRun
from acep_approx.cli.summary import say_budget, say_how_read, say_summary
from acep_approx.cli.terminal import progress_bar, say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.cli.write import Results

TITLES = {ResultKind.COUNT: "matches", ResultKind.PARTIAL: "partial matches"}


def run_plain(job: QueryRun) -> None:
    """Find the matches, put them out, and say what came of it.

    Raises
    ------
    AcepError
        The events are wrong, or something cannot be written.
    """
    hide_pandas()
    request = job.budget
    saving = Saving(job.query, request.home, request.learning.save_every)
    if request.learning.save is not None:
        saving.check()
    begun = clock.perf_counter()
    is_table = job.form is Format.TABLE
    is_seen = not is_table and job.output.file is None and sys.stdout.isatty()  # rows and a bar would mix
    with progress_bar("matching", enabled=not (job.quiet or is_seen)) as progress:
        matches = _matches(job, on_progress=saving.after(progress.done))
        if request.learning.learn:
            saving.matches = matches
        progress.total = matches.source.rows
        tell_query(matches.source, lambda: matches.progress)
        results, tables = _put_out(matches, job)
    freeze()
    if is_table:
        from acep_approx.cli.write import print_table

        print_table(tables, TITLES.get(job.output.output, job.output.output.value))
    sys.stdout.flush()
    if not job.quiet:
        say_how_read(matches.source)
        say_summary(matches, results, job.output.output, clock.perf_counter() - begun, job.key_idle)
        if found_nothing(results, job.output.output):
            if matches.progress.keys_dropped:
                say("of the same run without --key-idle:")
            if matches.source.reusable or matches.progress.events:
                say_no_match(job.context, matches.no_match, is_gone=not matches.source.reusable)
            else:
                say("no match: there was no event to match")
    if job.is_within_budget:
        _conclude(matches, job, saving)
    if job.page is not None:
        job.page.write(matches)


def _matches(job: QueryRun, **more: Any) -> Any:
    """The matches: all, or those that a budget can buy."""
    from acep_approx.events.source import open_source

    events = open_source(job.inputs, **job.source.reading)
    if job.page is not None:
        events.keep()
    more |= job.source.roles
    more |= {"sort": job.source.sort, "bind": job.output.bound, "merge": job.merge}
    more |= {"key_idle": job.key_idle}
    budget = job.budget.spending.budget
    if budget is None:
        return job.query.match(events, **more)
    return job.query.match_within(events, budget, **job.budget.options(), **more)


def _put_out(matches: Any, job: QueryRun) -> tuple[Results, list[pa.Table]]:
    """Write the results, or gather them for a table on the terminal."""
    from acep_approx.cli.write import Results, write, write_compressed

    file = job.output.file
    if job.output.output is ResultKind.COMPRESSED and file is not None:
        return write_compressed(matches.compressed(), file), []
    with closing(_tables(matches, job.output.output, job.budget.spending)) as tables:
        results = Results(tables, job.output.most_rows(job.form))
        tell_results(results, are_matches=job.output.output is ResultKind.MATCHES)
        if job.form is Format.TABLE:
            return results, list(results)
        write(results, job.form, file, flush=job.output.flush)
    return results, []


def _tables(matches: Any, output: ResultKind, spending: ExpandedBudgetOptions) -> Generator[pa.Table]:
    """The results as a stream of tables."""
    from acep_approx.cli.write import count_table

    if spending.expand:
        yield matches.expanded(bundles=spending.whole_bundles)
    elif output is ResultKind.MATCHES:
        yield from matches.tables()
    elif output is ResultKind.EVENTS:
        yield from matches.event_tables()
    elif output is ResultKind.POINTS:
        yield from matches.point_tables()
    elif output is ResultKind.BUNDLES:
        yield matches.bundles()
    elif output is ResultKind.PARTIAL:
        yield from matches.partial_tables()
    else:
        yield count_table(matches.count_by_errors())


def _conclude(matches: Any, job: QueryRun, saving: Saving) -> None:
    """Say what the budget was spent on; write what is to be written about it, and save what was learned."""
    from acep_approx.cli.write import write

    request, name = job.budget, job.name
    if not job.quiet:
        say_budget(matches, name, job.exactly)
    if request.reports.report is not None:
        matches.report(request.reports.report, name)
    if request.reports.shed is not None:
        write([matches.shed()], format_of(request.reports.shed), request.reports.shed)
    if request.learning.learn_log is not None:
        write([matches.learning()], format_of(request.learning.learn_log), request.learning.learn_log)
    if request.learning.learn:
        saving.finish(quiet=job.quiet)
