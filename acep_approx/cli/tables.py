"""Tables for people on stdout: nothing in them is cut off, however narrow the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from acep_approx.cli import terminal
from acep_approx.cli.terminal import say
from acep_approx.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LEAST = 8
"""Characters of a line that a column should have room for, unless all of its texts are shorter."""
TIME = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d:\S+)")
"""A day, and a time of the day, which may stand on a line of its own."""
NO_EDGE = 10_000
"""The width of a file."""


def console() -> Console:
    """A console on stdout; a file has no edge."""
    made = terminal.console()
    if not made.is_terminal:
        made.width = NO_EDGE
    return made


def show(
    table: Table, whole: Collection[int] = (), to: Console | None = None, events: Collection[int] = ()
) -> None:
    """Print a table; where the terminal is too narrow its texts go on in the next line.

    Columns in which nothing stands are left out of a table that is too wide.

    Parameters
    ----------
    table : rich.table.Table
    whole : collection of int
        Columns whose texts are not broken as long as the others still have room: times and numbers.
    to : rich.console.Console, optional
        Where it is printed. Default: a new ``console()``.
    events : collection of int
        Columns of events, and of the end: of a table that is too wide they say no day that the row has said before.
    """
    _laid_out(_remade(table, change=visible), whole, console() if to is None else to, events)


def _laid_out(table: Table, whole: Collection[int], out: Console, events: Collection[int] = ()) -> None:
    from rich.measure import Measurement

    options = out.options.update(width=NO_EDGE)
    widths = [
        max(Measurement.get(out, options, cell).maximum for cell in (column.header, *column.cells))
        for column in table.columns
    ]
    edges = 3 * len(widths) + 1
    if sum(widths) + edges <= out.width:
        out.print(table)
        return
    if empty := [number for number, column in enumerate(table.columns) if not any(column.cells)]:
        left = [number for number in range(len(table.columns)) if number not in empty]
        whole, events = ([left.index(number) for number in some if number in left] for some in (whole, events))
        _laid_out(_remade(table, empty), whole, out, events)
        return
    if events:
        _laid_out(_without_days(table, events), whole, out)
        return
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    least = [min(width, LEAST) for width in widths]
    if sum(least) + edges > out.width:
        say(f"the table is {sum(widths) + edges} characters wide, and the terminal {out.width}: its lines go on below")
        out.width = sum(widths) + edges
        out.print(table, soft_wrap=True)
        return
    kept = [width if number in whole else least[number] for number, width in enumerate(widths)]
    if sum(kept) + edges > out.width and any(TIME.match(str(c)) for column in table.columns for c in column.cells):
        _laid_out(_remade(table, change=lambda text: TIME.sub(r"\1\n\2", text)), whole, out)
        return
    given = kept if sum(kept) + edges <= out.width else least
    for column, width in zip(table.columns, _filled(given, widths, out.width - edges), strict=True):
        column.width = width
    out.print(table)


def _remade(table: Table, left_out: Collection[int] = (), change: Callable[[str], str] = str) -> Table:
    """The table without some columns, or with other texts in its cells."""
    from rich.table import Table

    made = Table(header_style=table.header_style, box=table.box, pad_edge=table.pad_edge)
    kept = [column for number, column in enumerate(table.columns) if number not in left_out]
    for column in kept:
        header = change(column.header) if isinstance(column.header, str) else column.header
        made.add_column(header, justify=column.justify, no_wrap=column.no_wrap, overflow=column.overflow)
    for row in zip(*(column.cells for column in kept), strict=True):
        made.add_row(*(change(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def _without_days(table: Table, columns: Collection[int]) -> Table:
    """The table without the days of times in some columns, where they are of the day of the first time of their row."""
    made = _remade(table, range(len(table.columns)))
    for column in table.columns:
        made.add_column(column.header, justify=column.justify)
    for row in zip(*(column.cells for column in table.columns), strict=True):
        made.add_row(*_of_one_day([str(cell) for cell in row], columns))
    return made


def _of_one_day(cells: list[str], columns: Collection[int]) -> list[str]:
    """The cells of a row, in some columns without its day, which the first time says, and the zone.

    Examples
    --------
    >>> _of_one_day(["x", "2024-05-01T08:00:00Z", "2024-05-01T08:01:00Z, 2024-05-02T08:00:00Z"], [2])
    ['x', '2024-05-01T08:00:00Z', '08:01:00, 2024-05-02T08:00:00Z']
    """
    first = next((number for number, cell in enumerate(cells) if TIME.match(cell)), len(cells))
    shorter = list(cells)
    for number in columns:
        if number > first:
            shorter[number] = re.sub(rf"\b{cells[first][:11]}(\d\d:[\d:.]+)Z?", r"\1", cells[number])
    return shorter


def _filled(given: list[int], wanted: list[int], room: int) -> list[int]:
    """Widths that use up the room: more for those that have least, and no more than they want."""
    found = list(given)
    for _ in range(room - sum(given)):
        short = [number for number, width in enumerate(found) if width < wanted[number]]
        if short:
            found[min(short, key=lambda number: found[number])] += 1
    return found


def show_table(header: list[str], rows: list[list[str]], texts: int = 0) -> None:
    """Print a table for people on stdout; the first ``texts`` columns stand to the left, numbers to the right."""
    from rich.table import Table

    table = Table(header_style="bold")
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < texts else "right")
    for row in rows:
        table.add_row(*row)
    show(table, range(texts, len(header)))
