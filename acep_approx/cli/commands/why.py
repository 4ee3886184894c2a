"""``acep why``: why a query matched at some place of the stream, or did not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import Inputs, QuestionInputOptions
from acep_approx.cli.options.matching import MatchingOptions
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.programs import QueryText, read_one_query
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.summary import say_how_read
from acep_approx.cli.terminal import tell

if TYPE_CHECKING:
    from acep_approx.why.result import NoMatch, Why


class Answer(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"


AnswerForm = Annotated[Answer, typer.Option(help="In words, or as data.", rich_help_panel=OutputOptions.panel)]


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked."""

    panel = "Question"

    around: Annotated[
        str | None,
        typer.Option(
            metavar="TS",
            help="The time in question, e.g. 2024-05-01T08:00:00Z, or a number; by default that of the first match, or "
            "else of the partial match that came furthest, of all events or of --key.",
        ),
    ] = None
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="VALUE",
            help="The value of \\[attribute] in question; of several, attribute=VALUE, once for each.",
        ),
    ] = None


@grouped
def why(
    query: QueryText,
    inputs: Inputs,
    *,
    question: QuestionOptions,
    matching: MatchingOptions,
    format: AnswerForm = Answer.TEXT,  # noqa: A002  (the option's name)
    source: QuestionInputOptions,
) -> None:
    """Say why QUERY has a match in INPUT around a time, or has none.

    Without --around it looks at all of INPUT, or at all events of --key. Where nothing matches it says which step of
    the pattern no event passed. With --around it looks at one place: a match is there if it begins at or before the
    time and ends at or after it. Where there is none: how far the furthest partial match came, what it waited for, what
    came instead, and what would have helped.
    """
    text = read_one_query(query, "acep why")
    hide_pandas()

    from acep_approx.api import compile_query
    from acep_approx.events.source import open_source

    events = open_source(inputs, **source.reading)
    answer = compile_query(text, **matching.replaced).why(
        events,
        around=question.around,
        key=question.keys,
        key_column=source.key,
        time=source.time,
        type=source.type,
        unit=source.unit,
        start=source.start,
        sort=source.sort,
        time_format=source.roles.get("time_format"),
    )
    say_how_read(events)
    if format is Answer.JSON:
        tell(json.dumps(answer.to_dict(), ensure_ascii=False, default=str))
    else:
        _show(answer)
        if (furthest := getattr(answer, "furthest", None)) is not None:
            tell()
            _show(furthest)


def _show(answer: Why | NoMatch) -> None:
    from rich.table import Table

    from acep_approx.cli.tables import console, show

    out = console()
    out.soft_wrap = True
    out.print(answer.headline, style="bold")
    header, *rows = answer.table() or [[]]
    if header:
        shown = Table(*header, header_style="bold")
        for row in rows:
            shown.add_row(*row)
        show(shown)
    for line in answer.more:
        out.print(line)
