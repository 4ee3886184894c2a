"""What ``acep look`` shows: tables on the terminal, as wide as they are where nobody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.profiling.seen import NUMBERS, Section, sections
from acep_approx.visible import visible

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

    from acep_approx.profiling.seen import Look

WHOLE = ("column", *NUMBERS)
"""Columns whose texts are not broken in a narrow terminal."""
LONGEST = 24
"""Characters of a text that is not broken."""


def show(look: Look) -> None:
    """Print what was seen on stdout."""
    from acep_approx.cli.tables import console as on_stdout

    console = on_stdout()
    for number, section in enumerate(sections(look, console.width)):
        if number:
            console.print()
        _show(console, section)


def _show(console: Console, section: Section) -> None:
    from rich.padding import Padding
    from rich.table import Table

    console.print(visible(section.title), style="bold")
    for line in map(visible, section.lines):
        if console.is_terminal:
            console.print(Padding(line, (0, 0, 0, 2)))
        else:
            console.print(f"  {line}", soft_wrap=True)
    if section.header:
        table = Table(header_style="bold")
        for name in section.header:
            is_whole = name in WHOLE and all(len(text) <= LONGEST for text in section.column(name))
            justify: JustifyMethod = "right" if name in NUMBERS else "left"
            table.add_column(visible(name), justify=justify, overflow="fold", no_wrap=is_whole)
        for row in section.table:
            table.add_row(*map(visible, row))
        console.print(table)
    for line in section.code:  # not wrapped: it is to be copied
        console.print(f"  {line}".rstrip(), style="cyan", soft_wrap=True)
