"""``acep explain``: how a query will be run, or its automaton as a diagram."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from acep_approx.cli.options.input import QueryText
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.terminal import read_query


class Diagram(StrEnum):
    """How to explain."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


def explain(
    query: QueryText,
    format: Annotated[  # noqa: A002  (the option's name)
        Diagram,
        typer.Option(
            help="The plan in words, or the automaton for Mermaid, for Graphviz, or as data.",
            rich_help_panel=OutputOptions.panel,
        ),
    ] = Diagram.TEXT,
) -> None:
    """Show how QUERY will be run: which engine, why, its size, and what would make it cheaper."""
    text = read_query(query)

    from acep_approx.api import compile_query

    typer.echo(compile_query(text).explain(format.value))
