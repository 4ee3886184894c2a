"""``acep check`` and ``acep explain``: what is said of a query, a folder of them or rules, without running them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import IntervalOptions
from acep_approx.cli.options.matching import BudgetOptions, Wanted
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.programs import CheckInputs, FolderOptions, OneQuery, needed
from acep_approx.cli.options.spark import SplitOptions
from acep_approx.cli.options.together import RULES, asked_for, check_queries, not_with_rules, refuse
from acep_approx.cli.query_folder import Folder, read_folder
from acep_approx.cli.query_folder import many as in_words
from acep_approx.cli.summary import say_how_read
from acep_approx.cli.terminal import amount, first_of, read_query, tell
from acep_approx.errors import UsageError
from acep_approx.query.rules.parser import is_rules

if TYPE_CHECKING:
    from acep_approx.api.query import Query
    from acep_approx.api.query_set import QuerySet
    from acep_approx.api.rule_set import RuleSet
    from acep_approx.events.source import Source


NAMED = 5
"""Queries of a level, or of a stream, that are named."""


def _text_of(context: typer.Context, query: str | None, many: FolderOptions) -> str:
    """The text of a query or of rules; empty where there is a folder, beside which there must be no query."""
    check_queries(context, many.queries)
    if many.queries is None:
        if query is None:
            raise needed("QUERY")
        return read_query(query)
    if query is not None:
        hint = "leave it out: the queries are those of the folder"
        raise UsageError(f"{query!r} and --queries do not go together", code="ACEP-U064", hint=hint)
    return ""


# --- acep check ---------------------------------------------------------------------------------------------------


@grouped
def check(
    context: typer.Context,
    query: OneQuery = None,
    inputs: CheckInputs = None,
    *,
    source: IntervalOptions,
    many: FolderOptions,
) -> None:
    """Check QUERY: its grammar, its names and types, and whether it can be run; say what it costs.

    A file of rules is checked as a whole: its tables, its rules, and what they read and write.

    With --queries FOLDER all queries of the folder are checked, and those that are wrong are told with file and line.
    """
    if many.queries is not None:  # then all that is named is input
        query, inputs = None, [name for name in (query, *(inputs or [])) if name is not None]
    text = _text_of(context, query, many)
    if many.queries is not None:
        _check_folder(many.queries, source, inputs, strict=many.strict)
        return
    if is_rules(text):
        refuse(asked_for(context), {"rules": RULES})
        _check_rules(text, source, inputs)
        return

    from acep_approx.api import compile_query
    from acep_approx.planning.explain import advice_on_windows
    from acep_approx.planning.many_matches import REMEDY, why_many
    from acep_approx.results.beginning import much

    compiled = compile_query(text)
    plan, cost = compiled.plan, compiled.plan.cost
    lines = [
        *("the query is right and can be run", "", str(compiled), ""),
        f"automaton  {cost.states} states, {cost.arcs} arcs, {cost.letters} letters, k = {plan.automaton.errors}",
        f"work       {cost.work}",
        f"memory     {cost.memory}",
        *(f"warning    {note}" for note in advice_on_windows(plan)),
    ]
    if (why := why_many(plan)) is not None:
        lines.append(f"warning    {why}: {REMEDY}")
    if inputs:
        matcher, events = compiled.matcher(**source.roles), _columns_of(inputs, source)
        pipeline = matcher.bind(events.schema)
        roles = pipeline.roles
        played = {roles.time: "time", roles.key: "key", roles.type: "type", roles.start: "start"}
        shown = [
            f"{name} ({', '.join(filter(None, (played.get(name), str(pipeline.schema.field(name).type))))})"
            for name in pipeline.columns
        ]
        lines.append(f"reads      {', '.join(shown)}")
        if (found := much(compiled.match(events, **source.roles))) is not None:
            lines.append(f"matches    {found}")
        matcher.look_for_types(events)
        say_how_read(events)
    tell("\n".join(lines))


def _columns_of(inputs: list[str], source: IntervalOptions) -> Source:
    """Events of which only columns and types matter."""
    from acep_approx.events.source import open_source

    return open_source(inputs, **source.reading, on_malformed="skip")


def _check_folder(queries: Path, source: IntervalOptions, inputs: list[str] | None, *, strict: bool) -> None:
    folder = read_folder(queries, strict=False, **source.roles)
    if inputs:
        folder.desk.check(_columns_of(inputs, source).schema, folder.misfit)
    if strict:
        folder.refuse()
    folder.tell_wrong()
    misfits = sum(one.is_misfit for one in folder.wrong)
    tell(f"{in_words(len(folder.desk) - misfits)} right and can be run")
    endless = [id_ for id_, plans in folder.desk.plans().items() if any(plan.is_unbounded for plan in plans)]
    if endless:
        tell(f"warning: there is no window in {first_of(endless, NAMED)}: what waits there may stay for ever")
    if folder.wrong:
        tell(f"{in_words(len(folder.wrong))} wrong")
        raise typer.Exit(folder.exit_code)


def _check_rules(text: str, source: IntervalOptions, inputs: list[str] | None) -> None:
    from acep_approx.api.rule_set import compile_rules

    rules = compile_rules(text)
    tables, number = amount(len(rules.file.tables), "table"), amount(len(rules.file.rules), "rule")
    lines = [f"{tables} and {number} are right and can be run"]
    lines += [f"warning    {rule}: {why}" for rule, why in rules.many_matches.items()]
    if inputs:
        lines.append(f"reads      {', '.join(rules.check(_columns_of(inputs, source), **source.roles))}")
    tell("\n".join(lines))


# --- acep explain -------------------------------------------------------------------------------------------------


class Diagram(StrEnum):
    """How to explain."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"
    AIR = "air"


@grouped
def explain(
    context: typer.Context,
    query: OneQuery = None,
    *,
    format: Annotated[  # noqa: A002  (the option's name)
        Diagram,
        typer.Option(
            help="The plan in words, or the automaton as a picture (svg), for Mermaid, for Graphviz, or as data: air "
            "has the states and edges of a query in CEL.",
            rich_help_panel=OutputOptions.panel,
        ),
    ] = Diagram.TEXT,
    many: FolderOptions,
    output: Annotated[
        Wanted,
        typer.Option(help="With --budget: what the run is to put out.", rich_help_panel=BudgetOptions.panel),
    ] = Wanted.MATCHES,
    spending: BudgetOptions,
    spark: SplitOptions,
) -> None:
    """Show how QUERY will be run: which engine, why, its size, and what would make it cheaper.

    Of a file of rules: who writes and reads which table, which rules wait for which, and what runs them.

    With --queries FOLDER: on which level its queries run, and which of them read what others publish.

    With --budget also what that comes to: what the exact run is expected to take, and who begins with which part.

    With --spark also which tasks of a job on Spark get which events, and why.
    """
    text = _text_of(context, query, many)
    asked, kinds = asked_for(context), dict[str, str]()
    if spending.budget is None:
        kinds["no budget"] = "--budget"
    if not spark.spark:
        kinds["here"] = "--spark"
    if format is not Diagram.TEXT:
        kinds["words in a picture"] = f"--format {format}"
    refuse(asked, kinds)
    given = {} if spending.budget is None else {"budget": spending.budget, **spending.given()}
    if many.queries is not None:
        _explain_folder(many.queries, format, output, given, spark, strict=many.strict)
        return
    if is_rules(text):
        _explain_rules(text, format, given, spark)
        return

    from acep_approx.api import compile_query

    compiled = compile_query(text)
    tell(compiled.explain(format.value, **given, **({"output": output.value} if given else {})))
    _tell_split(compiled, spark)


def _tell_split(program: Query | QuerySet | RuleSet, asked: SplitOptions) -> None:
    """Say how the work is split on Spark, where that is asked for."""
    if asked.spark:
        from acep_approx.spark.setup.session import check_spark

        check_spark()
        tell(program.spark(shards=asked.shards).explain())


def _explain_folder(
    queries: Path,
    format: Diagram,  # noqa: A002
    output: Wanted,
    spending: dict[str, Any],
    spark: SplitOptions,
    *,
    strict: bool,
) -> None:
    """Show who feeds whom among the queries of a folder, in words or drawn; as ``air`` their automata."""
    if format is Diagram.JSON:
        raise UsageError(
            f"--format {format} and --queries do not go together yet",
            code="ACEP-U064",
            hint="explain one query at a time, or choose text, svg, mermaid, dot or air",
        )
    horizon = spending.pop("horizon", None)
    folder = read_folder(queries, strict=strict, output=output.value, horizon=horizon)
    folder.tell_wrong()
    if format is Diagram.TEXT:
        tell("\n".join([*_lines(folder, queries), *([folder.desk.explain(**spending)] if spending else [])]))
        _tell_split(folder.desk, spark)
    elif format is Diagram.AIR:
        from acep_approx.planning.explain import air

        plans = {id_: plans for id_, plans in folder.desk.plans().items() if plans[-1].query.is_algebra}
        automata = {id_: [air(one) for one in plans_] for id_, plans_ in plans.items()}
        tell(json.dumps(automata, indent=2, ensure_ascii=False))
    else:
        tell(folder.desk.graph(format.value))
    if folder.wrong:
        raise typer.Exit(folder.exit_code)


def _lines(folder: Folder, path: Path) -> Iterator[str]:
    desk = folder.desk
    yield f"{len(desk):,} queries in {path}"
    for level, ids in sorted(desk.levels().items()):
        what = "see the events of the stream" if level == 0 else "see them, and what levels below publish"
        yield f"level {level}: {first_of(ids, NAMED)} {what}"
    for stream, (publishers, readers) in desk.streams().items():
        read = first_of(readers, NAMED) or "none"
        yield f"{stream}: published by {first_of(publishers, NAMED)}; read by {read}"


def _explain_rules(text: str, format: Diagram, spending: dict[str, Any], spark: SplitOptions) -> None:  # noqa: A002
    from acep_approx.api.rule_set import compile_rules

    if format in (Diagram.JSON, Diagram.AIR):
        raise not_with_rules(f"--format {format}", "choose text, mermaid, dot or svg")
    rules = compile_rules(text)
    tell(rules.explain(**spending) if format is Diagram.TEXT else rules.graph(format.value))
    _tell_split(rules, spark)
