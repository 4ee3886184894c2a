"""What ``acep run --spark`` is to run: one query, a folder of queries, or rules; a batch, or a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.on_spark.batch import folder_form, run_batch
from acep_approx.cli.on_spark.stream import Places, run_stream
from acep_approx.cli.on_spark.work import OnSpark
from acep_approx.cli.options.output import Format, is_folder, is_table, is_topic
from acep_approx.cli.options.together import RULES, refuse
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.rules import rows_given
from acep_approx.cli.runs.spending import check_budget
from acep_approx.cli.terminal import amount, say
from acep_approx.errors import UsageError
from acep_approx.events.writing.outfile import JDBC
from history.versions import has_versions

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.cli.query_folder import Folder
    from acep_approx.spark.plan.matcher import SparkMatcher


def run_on_spark(request: RunRequest) -> None:
    """Run what was asked for on Spark.

    Raises
    ------
    AcepError
        The program or the events are wrong, or something cannot be written.
    typer.Exit
        With 130 after Ctrl-C; with the code of the first query that was left out.
    """
    form = _checked(request)
    program = _program(request)
    options = request.options
    reading = options.source.on_spark | {"on_malformed": options.source.on_malformed.value}
    asked = OnSpark(
        program.matcher,
        request.output.output,
        request.inputs,
        options.spark.master,
        reading,
        unit=options.source.unit,
        quiet=request.quiet,
        kafka=options.live.kafka_option or (),
        schema=options.live.schema,
    )
    if options.stream.stream:
        run_stream(asked, Places.of(request), options.stream, request.output.metrics_port)
    else:
        run_batch(asked, request.output, form, {"changes": options.rules.changes, "calls": options.rules.calls})
    program.end()


def _checked(request: RunRequest) -> Format:
    """How results are written, when all is refused that does not go together."""
    options, output, is_streamed = request.options, request.output, request.options.stream.stream
    kinds = {"Spark": "--spark", "stream on Spark" if is_streamed else "batch on Spark": "--stream"}
    kinds["topic on Spark" if request.is_of_topic else "files on Spark"] = "kafka://"
    if is_table(output.file) and not is_streamed:
        kinds["no stream on Spark"] = JDBC
    if request.is_of_rules:
        kinds |= {"rules": RULES, "rules on Spark": "--spark"}
    elif options.many.queries is None:
        kinds |= {"no rules": ""}
    else:
        kinds |= {"set on Spark": "--spark"}
    refuse(request.asked, kinds)
    if "trigger" in request.asked:
        refuse(request.asked, {"trigger": "--trigger"})
    is_by_workers = output.topic is None and (is_streamed or is_folder(output.file))
    form = folder_form(output, is_new=not is_streamed) if is_by_workers and output.file else output.form()
    output.check(form, is_expanded=False)
    check_budget(request)
    return form


@dataclass
class _Program:
    """What makes the matcher of a program, and what ends a run of it."""

    matcher: Callable[[pa.Schema], SparkMatcher]
    end: Callable[[], None] = lambda: None


def _program(request: RunRequest) -> _Program:
    options = request.options
    more: dict[str, Any] = {"bind": request.output.bound, "id": options.revisions.id}
    more |= {"watermark": options.revisions.watermark, "shards": options.spark.shards}
    more |= {"on_malformed": options.source.on_malformed.value}
    if options.spending.budget is not None:
        more |= {"budget": options.spending.budget, "learn": options.learning.learn} | options.spending.given()
    if options.many.queries is not None:
        return _of_set(request, options.many.queries, more)
    return _of_rules(request, more) if request.is_of_rules else _of_query(request, more)


def _of_query(request: RunRequest, more: dict[str, Any]) -> _Program:
    from acep_approx.api import compile_query

    options = request.options
    query = compile_query(request.text, **options.matching.replaced, engine=options.matching.engine.value)
    asked = {"emit": options.revisions.emit, "changelog": options.revisions.changelog or None}
    more |= {name: value for name, value in asked.items() if value is not None}
    kind = request.output.output
    more |= {"output": kind.pushed or kind.value, "key_idle": options.keys.key_idle} | options.source.roles
    matcher = query.spark(**more)
    return _Program(lambda _schema: matcher)


def _of_rules(request: RunRequest, more: dict[str, Any]) -> _Program:
    from acep_approx.api.rule_set import compile_rules

    options = request.options.rules
    rules = compile_rules(request.text)
    shed = {} if options.shed_rules is None else {"shed": options.shed_rules.value}
    for name, one in (("--changes", options.changes), ("--calls", options.calls)):
        if one is not None and one.exists() and not one.is_dir():
            raise UsageError(f"{name} {str(one)!r} is a file", code="ACEP-U019", hint="on Spark it is a FOLDER")
    if is_topic(options.changes):
        raise UsageError("--changes does not go to a topic", code="ACEP-U019", hint="name a FOLDER")
    store = rows_given(options.table or [])
    matcher = rules.spark(store=store, **request.options.source.roles, **shed, **more)
    return _Program(lambda _schema: matcher)


def _of_set(request: RunRequest, home: Path, more: dict[str, Any]) -> _Program:
    from acep_approx.cli.query_folder import read_folder

    options = request.options
    how: dict[str, Any] = {"key_idle": options.keys.key_idle, "output": request.output.output.pushed}
    folder = read_folder(home, strict=options.many.strict, **how, **options.source.roles)
    folder.tell_wrong()
    more["watermark"] = more["watermark"] or options.many.reorder

    if options.stream.stream and has_versions(home):  # the job takes each new version, and says what it leaves out
        from acep_approx.api import QuerySet

        matcher = QuerySet(**how, **options.source.roles).spark(queries=home, **more)
        return _Program(lambda schema: _checked_against(folder, schema, matcher) if options.many.strict else matcher)

    @lru_cache(1)  # the columns are the same before Spark starts and after, as a rule
    def matcher_of(schema: pa.Schema) -> SparkMatcher:
        folder.leave_out_misfits(schema, strict=options.many.strict)
        return folder.desk.spark(**more)

    return _Program(matcher_of, lambda: _end(folder))


def _checked_against(folder: Folder, schema: pa.Schema, matcher: SparkMatcher) -> SparkMatcher:
    """Refuse to begin where a query does not fit the events (``--strict``)."""
    folder.desk.check(schema, folder.misfit)
    folder.refuse()
    return matcher


def _end(folder: Folder) -> None:
    """End with the code of the first query that was left out, if there is one."""
    if folder.wrong:
        say(f"{amount(len(folder.wrong), 'query')} left out, as reported above")
        raise typer.Exit(folder.exit_code)
