"""Rows of tables in a notebook: the first few, however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acep_approx.diagrams.fragments import soft, table, title, view

FIRST, OF_EACH, COPIED = 10, 5, 200_000
"""Rows that are shown, and of each of some tables; most rows of a table that is copied to be looked at."""


def rows_of(columns: Sequence[str], rows: Iterable[dict[str, Any]], total: int, caption: str = "") -> str:
    """Rows as a table; ``total`` is how many there are, of which those given are the first."""
    shown = [[_cell(name, row) for name in columns] for row in rows]
    said = caption or (f"the first {len(shown)} of {total:,} rows" if len(shown) < total else "")
    values = [[row[i] for row in shown] for i in range(len(columns))]
    numbers = [i for i, column in enumerate(values) if column and all(map(_is_number, column))]
    return table(columns, shown, said, numbers)


def _cell(name: str, row: dict[str, Any]) -> str:
    """A value for people; that of a variable whose event is missing says so."""
    value = row[name]
    if value is None:
        return "missing" if name in (row.get("missing") or ()) else "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()


def first_rows(rows: Any, name: str, most: int = FIRST) -> str:
    """The first rows of an Arrow table, or of what has ``to_arrow``, with its name."""
    count = len(rows)
    if hasattr(rows, "to_arrow"):
        if count > COPIED:
            return soft(f"{name}: {count:,} rows")
        rows = rows.to_arrow()
    first = rows.slice(0, most)
    some = f"the first {most} of {count:,} rows" if count > most else f"{count} row{'' if count == 1 else 's'}"
    return rows_of(first.column_names, first.to_pylist(), count, f"{name}: {some}")


def tables_view(head: str, tables: Iterable[tuple[str, Any]], most: int = 5) -> str:
    """Some tables, the first rows of the first few."""
    some = [*tables]
    shown = [first_rows(rows, name, OF_EACH) for name, rows in some[:most]]
    return view(title(head), *shown, soft(f"and {len(some) - most:,} more" if len(some) > most else ""))
