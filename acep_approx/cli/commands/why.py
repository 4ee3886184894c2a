"""``acep why``: why a query matched at some place of the stream, or did not."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from acep_approx.cli import options
from acep_approx.cli.options import OnLate, OnMalformed
from acep_approx.cli.terminal import read_query

if TYPE_CHECKING:
    from acep_approx.why.result import Why


class Answer(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"


def why(
    query: options.Query,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", show_default=False, help="Events, as for acep run."),
    ],
    around: Annotated[
        str,
        typer.Option(
            metavar="TS", show_default=False, help="The time in question, e.g. 2024-05-01T08:00:00Z, or a number."
        ),
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE",
            show_default=False,
            help="The value of [attribute] in question; attribute=VALUE where the query has several, once for each.",
        ),
    ] = None,
    key_column: options.Key = None,
    time: options.Time = None,
    type: options.Type = None,  # noqa: A002  (the word of the query language)
    unit: options.TimeUnit = None,
    errors: options.Errors = None,
    within: options.Within = None,
    format: Annotated[Answer, typer.Option(help="In words, or as data.")] = Answer.TEXT,  # noqa: A002
    sort: options.Sort = False,
    input_format: options.FileFormat = None,
    on_malformed: Annotated[
        OnMalformed, typer.Option(help="Stop at a row that cannot be read, or leave such rows out.")
    ] = OnMalformed.REFUSE,
    on_late: Annotated[
        OnLate, typer.Option(help="Stop at an event that comes late, or leave such events out.")
    ] = OnLate.REFUSE,
) -> None:
    """Say why QUERY has a match in INPUT around a time, or has none.

    A match is there if it begins at or before the time and ends at or after it. Where there is none: how far the
    furthest partial match came, what it waited for, what came instead, and what would have helped.
    """
    text = read_query(query)

    from acep_approx.api import compile_query

    answer = compile_query(text, errors=errors, within=within).why(
        inputs,
        around=around,
        key=key,
        key_column=key_column,
        time=time,
        type=type,
        unit=unit,
        sort=sort,
        format=input_format,
        on_malformed=on_malformed,
        on_late=on_late,
    )
    if format is Answer.JSON:
        typer.echo(json.dumps(answer.to_dict(), ensure_ascii=False, default=str))
    else:
        _show(answer)


def _show(answer: Why) -> None:
    """Print the answer for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 10_000  # a file has no edge
    console.print(answer.headline, style="bold")
    header, *rows = answer.table() or [[]]
    if header:
        shown = Table(*header, header_style="bold")
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
    for line in answer.lines:
        console.print(line)
