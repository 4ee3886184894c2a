"""``acep explain``: how a query will be run, or its automaton as a diagram."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from acep_approx.cli.commands.describe_queries import explain_folder_of_queries
from acep_approx.cli.commands.describe_rules import explain_rules_text
from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.queries import FolderOptions, OneQuery, check_queries, needed, refuse_one_query
from acep_approx.cli.terminal import read_query, tell
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
    check_queries(context, many)
    if many.queries is not None:
        refuse_one_query(query, "leave it out: the queries are those of the folder")
        explain_folder_of_queries(many, format.value)
        return
    if query is None:
        raise needed("QUERY")
    text = read_query(query)
    if is_rules(text):
        explain_rules_text(text, format.value)
        return

    from acep_approx.api import compile_query

    tell(compile_query(text).explain(format.value))
