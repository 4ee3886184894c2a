"""``acep explain``: how a query will be run, or its automaton as a diagram."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.programs import FolderOptions, OneQuery, needed
from acep_approx.cli.options.together import check_queries, not_with_rules, refuse_one_query
from acep_approx.cli.query_folder import Folder, named, read_folder
from acep_approx.cli.terminal import read_query, tell
from acep_approx.errors import UsageError
from acep_approx.query.rules.parser import is_rules


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
) -> None:
    """Show how QUERY will be run: which engine, why, its size, and what would make it cheaper.

    Of a file of rules: who writes and reads which table, which rules wait for which, and what runs them.

    With --queries FOLDER: on which level its queries run, and which of them read what others publish.
    """
    check_queries(context, many.queries)
    if many.queries is not None:
        refuse_one_query(query, "leave it out: the queries are those of the folder")
        _explain_folder(many.queries, format, strict=many.strict)
        return
    if query is None:
        raise needed("QUERY")
    text = read_query(query)
    if is_rules(text):
        _explain_rules(text, format)
        return

    from acep_approx.api import compile_query

    tell(compile_query(text).explain(format.value))


def _explain_folder(queries: Path, format: Diagram, *, strict: bool) -> None:  # noqa: A002
    """Show who feeds whom among the queries of a folder, in words or drawn; as ``air`` their automata."""
    if format is Diagram.JSON:
        raise UsageError(
            f"--format {format} and --queries do not go together yet",
            code="ACEP-U064",
            hint="explain one query at a time, or choose text, svg, mermaid, dot or air",
        )
    folder = read_folder(queries, strict=strict)
    folder.tell_wrong()
    if format is Diagram.TEXT:
        tell("\n".join(_lines(folder, queries)))
    elif format is Diagram.AIR:
        tell(_airs(folder))
    else:
        tell(folder.desk.graph(format.value))
    if folder.wrong:
        raise typer.Exit(folder.exit_code)


def _airs(folder: Folder) -> str:
    """The automata of the queries in CEL, by the ids of these."""
    from acep_approx.planning.air import air

    some = {id_: plans for id_, plans in folder.desk.plans().items() if plans[-1].query.is_algebra}
    return json.dumps({id_: [air(one) for one in plans] for id_, plans in some.items()}, indent=2, ensure_ascii=False)


def _lines(folder: Folder, path: Path) -> Iterator[str]:
    desk = folder.desk
    yield f"{len(desk):,} queries in {path}"
    for level, ids in sorted(desk.levels().items()):
        what = "see the events of the stream" if level == 0 else "see them, and what levels below publish"
        yield f"level {level}: {named(ids)} {what}"
    for stream, (publishers, readers) in desk.streams().items():
        yield f"{stream}: published by {named(publishers)}; read by {named(readers) if readers else 'none'}"


def _explain_rules(text: str, format: Diagram) -> None:  # noqa: A002
    """Show how rules are run, or draw which tables they share."""
    from acep_approx.api.rule_set import compile_rules

    if format in (Diagram.JSON, Diagram.AIR):
        raise not_with_rules(f"--format {format}", "choose text, mermaid, dot or svg")
    rules = compile_rules(text)
    tell(rules.explain() if format is Diagram.TEXT else rules.graph(format.value))
