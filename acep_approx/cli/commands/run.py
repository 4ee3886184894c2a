"""``acep run``: its options and its help, and which program is run; ``cli/runs/`` has a file for each kind."""

from __future__ import annotations

from typing import Any

import typer

from acep_approx.cli.metrics import served
from acep_approx.cli.on_spark.batch import OnSpark, run_batch
from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.output import Quiet
from acep_approx.cli.options.programs import OneQuery, RunInputs
from acep_approx.cli.runs.lasting import is_pushed
from acep_approx.cli.runs.pushed_query import PushedRun
from acep_approx.cli.runs.queries import SetRun
from acep_approx.cli.runs.query import PlainRun, QueryProgram
from acep_approx.cli.runs.request import RunOptions, RunRequest
from acep_approx.cli.runs.rules import RulesRun
from acep_approx.cli.runs.run import run as start


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
        if options.many.queries is not None:
            start(SetRun(request))
        elif request.is_of_rules:
            start(RulesRun(request))
        else:
            _run_query(request)


def _run_query(request: RunRequest) -> None:
    program = QueryProgram.of(request)
    if request.options.spark.spark:
        _run_on_spark(program, request)
    elif program.revisions is not None or is_pushed(request):
        start(PushedRun(request, program))
    else:
        start(PlainRun(request, program))


def _run_on_spark(program: QueryProgram, request: RunRequest) -> None:
    from acep_approx.cli.on_spark.stream import Places, run_stream

    options, output = request.options, request.output
    revisions, malformed = options.revisions, {"on_malformed": options.source.on_malformed.value}
    more: dict[str, Any] = {"bind": output.bound, "id": revisions.id, "watermark": revisions.watermark}
    more |= {"key_idle": options.keys.key_idle, "shards": options.spark.shards, "output": output.output.pushed}
    more |= options.source.roles | malformed
    if options.spending.budget is not None:
        more |= {"budget": options.spending.budget, "learn": options.learning.learn} | options.spending.given()
    reading = options.source.on_spark | malformed
    asked = OnSpark(program.query, request.inputs, options.spark.master, reading, more, request.quiet)
    if options.stream.stream:
        places = Places.of(request.inputs, output.file, options.stream.checkpoint, options.source.late)
        run_stream(asked, places, options.stream, output.metrics_port, options.live.kafka_option or ())
    else:
        run_batch(asked, output, program.form)
