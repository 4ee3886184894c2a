"""``acep look``: what is in somebody's events, what acep takes the columns for, and a first query that runs on them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from acep_approx.cli.commands.why import Answer
from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import Inputs, SourceOptions
from acep_approx.cli.options.output import OutputOptions, Quiet
from acep_approx.cli.terminal import progress_bar, tell


@grouped
def look(
    inputs: Inputs,
    *,
    format: Annotated[  # noqa: A002  (the option's name)
        Answer, typer.Option(help="In words, or as data.", rich_help_panel=OutputOptions.panel)
    ] = Answer.TEXT,
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
        from acep_approx.cli.look_tables import show

        show(seen)
