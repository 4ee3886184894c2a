"""``acep run``: its options and its help, and which kind of run is asked for; ``cli/runs/`` has one file for each."""

from __future__ import annotations

import typer

from acep_approx.cli.metrics import served
from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.output import Quiet
from acep_approx.cli.options.queries import OneQuery, RunInputs
from acep_approx.cli.runs.live import is_pushed, over, run_live
from acep_approx.cli.runs.live_queries import run_live_queries
from acep_approx.cli.runs.on_spark import run_on_spark
from acep_approx.cli.runs.plain import run_plain
from acep_approx.cli.runs.queries import QueriesRun, run_queries
from acep_approx.cli.runs.query_run import QueryRun
from acep_approx.cli.runs.request import RunOptions, RunRequest
from acep_approx.cli.runs.revised import run_revised
from acep_approx.cli.runs.rules import RulesRun, run_rules


@grouped
def run(
    context: typer.Context,
    query: OneQuery = None,
    inputs: RunInputs = None,
    *,
    options: RunOptions,
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
    read what others PUBLISH. A wrong query is reported with its file and line, the others run, and the exit code is 3.

    A file of rules in the place of QUERY begins with TABLE or RULE: patterns that read tables, and actions that write
    them. -o FOLDER then gets the matches of each rule, --store FILE keeps the tables.
    """
    request = RunRequest.of(context, query, inputs, options, quiet=quiet)
    port = None if options.spark.spark else options.output.metrics_port
    with served(port, request.query or str(options.many.queries), request.text, quiet=quiet):
        _run(request)


def _run(request: RunRequest) -> None:
    if request.options.many.queries is not None:
        _run_queries(request)
    elif request.is_of_rules:
        over(request, RulesRun.of(request), run_rules)
    else:
        _run_query(request)


def _run_queries(request: RunRequest) -> None:
    job = QueriesRun.of(request)
    if request.is_live:
        run_live_queries(request)
    else:
        run_queries(job)


def _run_query(request: RunRequest) -> None:
    job = QueryRun.of(request)
    if is_pushed(request, job):
        run_live(job, request)
    elif job.revisions is not None:
        over(request, job, run_revised, is_in_order=False)
    elif request.options.spark.spark:
        run_on_spark(job, request)
    else:
        over(request, job, run_plain)
