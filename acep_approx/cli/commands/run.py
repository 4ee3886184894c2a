"""``acep run``: find the matches of a query in events, and write them."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.commands.run_live import LiveJob, over, run_live
from acep_approx.cli.commands.run_live_queries import run_live_queries
from acep_approx.cli.commands.run_queries import QueriesRun, run_queries
from acep_approx.cli.commands.run_revised import RevisedRun, run_revised
from acep_approx.cli.commands.run_rules import RulesRun, run_rules
from acep_approx.cli.exact_command import exact_command
from acep_approx.cli.learning import Saving
from acep_approx.cli.no_match import found_nothing, say_no_match
from acep_approx.cli.on_spark import batch
from acep_approx.cli.options.budget import BudgetRequest, ExpandedBudgetOptions, LearningOptions, ReportOptions
from acep_approx.cli.options.choices import Format, ResultKind
from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.live import LiveOptions, by_partition, check_live
from acep_approx.cli.options.matching import EngineOptions
from acep_approx.cli.options.output import OutputOptions, Quiet, check_file, format_of
from acep_approx.cli.options.page import PageOptions, PageRequest
from acep_approx.cli.options.queries import OneQuery, QueriesOptions, RunInputs, check_queries, needed
from acep_approx.cli.options.revisions import RevisionOptions, check_id, check_revisions
from acep_approx.cli.options.rules import RuleOptions, refuse_without_rules
from acep_approx.cli.options.spark import OUTPUTS, RunSparkOptions, StreamOptions, check_options
from acep_approx.cli.process import leave_pandas_out
from acep_approx.cli.summary import say_budget, say_how_read, say_summary
from acep_approx.cli.terminal import progress_bar, read_query
from acep_approx.query.rules.parser import is_rules

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api import Query
    from acep_approx.cli.write import Results

TITLES = {ResultKind.COUNT: "matches", ResultKind.PARTIAL: "partial matches"}


@dataclass(frozen=True)
class LocalRun:
    """What a run here is to do, after all checks."""

    context: typer.Context
    query: Query
    inputs: Any
    name: str
    source: RunInputOptions
    merge: str
    output: OutputOptions
    form: Format
    request: BudgetRequest
    page: PageRequest | None
    quiet: bool
    exactly: str
    """The command that does the same without a budget."""


@grouped
def run(
    context: typer.Context,
    query: OneQuery = None,
    inputs: RunInputs = None,
    *,
    matching: EngineOptions,
    output: OutputOptions,
    page: PageOptions,
    source: RunInputOptions,
    live: LiveOptions,
    many: QueriesOptions,
    rules: RuleOptions,
    revisions: RevisionOptions,
    spending: ExpandedBudgetOptions,
    learning: LearningOptions,
    reports: ReportOptions,
    spark: RunSparkOptions,
    stream: StreamOptions,
    quiet: Quiet = False,
) -> None:
    """Find the matches of QUERY in the events of INPUT, or with --queries FOLDER those of all its queries.

    Results go to stdout or FILE, words to stderr. Where nothing is found, they say which step no event passed.

    Events must be ordered by time. --sort sorts them first, --watermark DELAY waits for those that come so late.
    With --op COLUMN rows update events or take them back; --emit early puts results out at once, and takes them back.

    With --follow, and of Kafka, events are matched as they come; --checkpoint DIR keeps where the run stands.

    QUERY is a pattern, a bare regular expression, an automaton written by hand (PATTERN AUTOMATON), or a query in CEL
    (SELECT .. FROM .., whose events may begin before they end: --start).

    --queries FOLDER runs the queries of a folder together. Rows say whose they are in the column query, and queries may
    read what others PUBLISH. A query that is wrong is told with its file and line, the others run, and the exit code is
    3.

    A file of rules in the place of QUERY begins with TABLE or RULE: patterns that read tables, and actions that write
    them. -o FOLDER then gets the matches of each rule, --store FILE keeps the tables.
    """
    check_queries(context, many, output.output)
    if many.queries is not None:
        given = [name for name in (query, *(inputs or [])) if name is not None]
        is_live = check_live(context, live, given, source, output)
        asked_live = LiveJob.asked(given[0], live, rules, stream, source, output, quiet=quiet) if is_live else None
        shown = PageRequest.of(context, page, given)
        _run_folder(QueriesRun(many.queries, many, given, source, output, output.form(), quiet, shown), asked_live)
        return
    if query is None or not inputs:
        raise needed("QUERY" if query is None else "INPUT")
    text = read_query(query)
    is_live = check_live(context, live, inputs, source, output, is_rules=is_rules(text))
    live_job = LiveJob.asked(inputs[0], live, rules, stream, source, output, quiet=quiet) if is_live else None
    output = output if live_job is None else live_job.output
    if is_rules(text):
        shown = PageRequest.of(context, page, inputs)
        of_rules = RulesRun.asked(
            context, text, inputs, rules, source, output, quiet=quiet, is_live=is_live, page=shown
        )
        over(live_job, of_rules, run_rules)
        return
    refuse_without_rules(context, is_live=is_live)
    check_options(context, output.output, spark=spark.spark, stream=stream.stream)
    check_id(context, spark=spark.spark)
    asked = None if spark.spark else check_revisions(context, revisions, source, output.output, inputs)
    asked = by_partition(asked, inputs)
    form = batch.folder_form(output, is_new=not stream.stream) if _is_folder(output, spark, stream) else output.form()
    output.check(form, is_expanded=spending.expand)
    request = BudgetRequest(spending, learning, reports)
    request.check()
    left_out = {"rejected rows": source.rejects, "late events": None if stream.stream else source.late}
    request.check_files(output, left_out, inputs)
    shown = PageRequest.of(context, page, inputs, query=query)
    from acep_approx.api import compile_query

    compiled = compile_query(text, **matching.replaced, engine=matching.engine.value)
    if live_job is not None and live_job.is_pushed and spending.budget is None:
        run_live(live_job, compiled, matching.merge, asked)
        return
    if asked is not None:
        revised = RevisedRun(context, compiled, inputs, asked, source, matching.merge, output, form, quiet)
        over(live_job, revised, run_revised, is_in_order=False)
        return
    if not spark.spark:
        exactly, name = exact_command(context), ", ".join(inputs)
        args = (source, matching.merge, output, form, request, shown, quiet, exactly)
        over(live_job, LocalRun(context, compiled, inputs, name, *args), _run_here)
        return
    more = {"bind": output.bound, "id": revisions.id, "shards": spark.shards, "watermark": revisions.watermark}
    more |= {"output": OUTPUTS[output.output]} | request.on_spark()
    job = batch.OnSpark(compiled, inputs, spark.master, source.input_format, source.roles | more, quiet)
    if stream.stream:
        from acep_approx.cli.on_spark.stream import Places, run_stream

        run_stream(job, Places.of(inputs, output.file, stream.checkpoint, source.late), stream)
    else:
        batch.run_batch(job, output, form)


def _run_folder(job: QueriesRun, live: LiveJob | None) -> None:
    """Run the queries of a folder."""
    job.output.check(job.form, is_expanded=False)
    if not job.inputs:
        raise needed("INPUT")
    if job.output.file is not None:
        check_file(job.output.file, {"rejected rows": job.source.rejects, "late events": job.source.late}, job.inputs)
    if live is not None:
        run_live_queries(live, job.options)
    else:
        run_queries(job)


def _is_folder(output: OutputOptions, spark: RunSparkOptions, stream: StreamOptions) -> bool:
    """Whether the workers of Spark write the results, to a folder."""
    return output.file is not None and spark.spark and (stream.stream or batch.is_folder(output.file))


def _run_here(job: LocalRun) -> None:
    leave_pandas_out()
    request = job.request
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
        results, tables = _put_out(matches, job)
    if is_table:
        from acep_approx.cli.write import print_table

        print_table(tables, TITLES.get(job.output.output, job.output.output.value))
    sys.stdout.flush()
    if not job.quiet:
        say_how_read(matches.source)
        say_summary(matches, results, job.output.output, clock.perf_counter() - begun)
        if found_nothing(results, job.output.output):
            say_no_match(job.context, matches.no_match, is_gone=not matches.source.reusable)
    if request.spending.budget is not None:
        _conclude(matches, job, saving)
    if job.page is not None:
        job.page.write(matches)


def _matches(job: LocalRun, **more: Any) -> Any:
    """The matches: all, or those that a budget can buy."""
    from acep_approx.events.source import open_source

    events = open_source(job.inputs, **job.source.reading)
    more |= job.source.roles
    more |= {"sort": job.source.sort, "bind": job.output.bound, "merge": job.merge}
    if job.request.spending.budget is None:
        return job.query.match(events, **more)
    return job.query.match_within(events, job.request.spending.budget, **job.request.options(), **more)


def _put_out(matches: Any, job: LocalRun) -> tuple[Results, list[pa.Table]]:
    """Write the results, or gather them for a table on the terminal."""
    from acep_approx.cli.write import Results, write, write_compressed

    file = job.output.file
    if job.output.output is ResultKind.COMPRESSED and file is not None:
        return write_compressed(matches.compressed(), file), []
    with closing(_tables(matches, job.output.output, job.request.spending)) as tables:
        results = Results(tables, job.output.most_rows(job.form))
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


def _conclude(matches: Any, job: LocalRun, saving: Saving) -> None:
    """Say what the budget was spent on; write what is to be written about it, and save what was learned."""
    from acep_approx.cli.write import write

    request, name = job.request, job.name
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
