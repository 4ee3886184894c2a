"""``acep look``: what is in somebody's events, what acep takes the columns for, and a first query that runs on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from acep_approx.cli.commands.why import Answer, AnswerForm
from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import Inputs, SourceOptions
from acep_approx.cli.options.output import Quiet
from acep_approx.cli.tables import console as on_stdout
from acep_approx.cli.terminal import progress_bar, tell
from acep_approx.visible import visible

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

    from acep_approx.profiling.seen import Look, Section

LONGEST = 24
"""Characters of a text that is not broken."""


@grouped
def look(
    inputs: Inputs,
    *,
    format: AnswerForm = Answer.TEXT,  # noqa: A002  (the option's name)
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="Look at the first N events only; by default at all.",
            rich_help_panel=SourceOptions.panel,
        ),
    ] = None,
    source: SourceOptions,
    quiet: Quiet = False,
) -> None:
    """Look at events: what is in INPUT, what acep takes each column for, why, and how to say otherwise.

    Columns with their types, what is missing, examples and ranges; the columns of time, type and key; order, gaps and
    late events; rows that cannot be read. At the end stands a first query that has matches in INPUT, and its command.
    """
    from acep_approx.profiling.profile import look as look_at

    with progress_bar("looking", enabled=not quiet) as progress:
        seen = look_at(inputs, **(source.roles | source.reading), rows=rows, on_progress=progress.done)
    if format is Answer.JSON:
        tell(json.dumps(seen.to_dict(), ensure_ascii=False, default=str))
    else:
        show(seen)


def show(seen: Look) -> None:
    """Print what was seen on stdout."""
    from acep_approx.profiling.seen import sections

    console = on_stdout()
    for number, section in enumerate(sections(seen, console.width)):
        if number:
            console.print()
        _show(console, section)


def _show(console: Console, section: Section) -> None:
    from rich.padding import Padding
    from rich.table import Table

    from acep_approx.profiling.seen import NUMBERS

    if section.title:
        console.print(visible(section.title), style="bold")
    for line in map(visible, section.lines):
        if console.is_terminal:
            console.print(Padding(line, (0, 0, 0, 2)))
        else:
            console.print(f"  {line}", soft_wrap=True)
    if section.header:
        table = Table(header_style="bold")
        for name in section.header:
            is_whole = name in ("column", *NUMBERS) and all(len(text) <= LONGEST for text in section.column(name))
            justify: JustifyMethod = "right" if name in NUMBERS else "left"
            table.add_column(visible(name), justify=justify, overflow="fold", no_wrap=is_whole)
        for row in section.table:
            table.add_row(*map(visible, row))
        console.print(table)
    for line in section.code:  # not wrapped: it is to be copied
        console.print(f"  {line}".rstrip(), style="cyan", soft_wrap=True)
