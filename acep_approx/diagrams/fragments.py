"""Fragments of HTML that notebooks show: they load nothing, run nothing, and never fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from acep_approx.diagrams.colours import COLOURS, VIEW
from acep_approx.diagrams.graph import Graph
from acep_approx.diagrams.text_layout import shortened
from acep_approx.visible import escape

SMALLEST = 0.74
"""To which share of its size a picture shrinks."""
TALL, PHONE = 900, 600
"""Pictures of more pixels than fit on a page, and boxes of fewer than a desk has."""
MOST_LETTERS, MOST_LINES = 60, 40
"""Most letters of a value in a table; most lines of a text."""
FIRST, OF_EACH, COPIED = 10, 5, 200_000
"""Rows that are shown, and of each of some tables; most rows of a table that is copied to be looked at."""


def view(*parts: str) -> str:
    """Parts, one below the other, with their style."""
    return f'<div class="acep-view"><style>{COLOURS}{VIEW}</style>{"".join(parts)}</div>'


def title(text: str, kind: str = "") -> str:
    """A heading; ``kind``: "good" or "bad"."""
    return f'<p class="title {kind}">{escape(text)}</p>' if kind else f'<p class="title">{escape(text)}</p>'


def soft(text: str) -> str:
    """A sentence beside the matter."""
    return f'<p class="soft">{escape(text)}</p>' if text else ""


def plain(text: str) -> str:
    """A text as it is."""
    return f"<pre>{escape(bounded(text))}</pre>"


def bounded(text: str) -> str:
    """A text without the middle of its lines, if they are many."""
    lines, half = text.strip().splitlines(), MOST_LINES // 2
    if len(lines) > MOST_LINES:
        lines = [*lines[:half], f"… {len(lines) - 2 * half:,} more lines …", *lines[-half:]]
    return "\n".join(lines)


def tiles(facts: Iterable[tuple[str, str]]) -> str:
    """Numbers to know: each big, with what it is."""
    shown = (f'<div class="tile"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in facts)
    return f'<div class="tiles">{"".join(shown)}</div>'


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", numbers: Iterable[int] = ()
) -> str:
    """A table of plain texts; the columns of these numbers are to the right."""
    right = {*numbers}

    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = (' class="n"' if i in right else "" for i in range(len(row)))
        return "".join(
            f"<{tag}{kind}>{escape(shortened(one, MOST_LETTERS))}</{tag}>" for kind, one in zip(kinds, row, strict=True)
        )

    top = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head_row = f"<thead><tr>{cells('th', head)}</tr></thead>"
    return f'<div class="scroll"><table class="rows">{top}{head_row}<tbody>{body}</tbody></table></div>'


def listed(texts: Iterable[str]) -> str:
    """Sentences as a list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def folded(summary: str, *parts: str) -> str:
    """What one opens to see."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def drawn(graph: Graph) -> str:
    """A graph: to the right where the box has room for that, else down; a long one goes down on a phone only."""
    from acep_approx.diagrams.svg import svg  # what objects show is imported with them, and few are shown

    if not graph.nodes:
        return ""
    wide, narrow = svg(graph), svg(graph, "down")
    least = round(SMALLEST * _size(wide, "width"))
    if _size(narrow, "height") > TALL:
        least = min(least, PHONE)
    mine = f".acep-view .from{least}"
    turns = f"@container (max-width:{least}px){{{mine}>.wide{{display:none}}{mine}>.narrow{{display:block}}}}"
    pictures = f'<div class="wide">{readable(wide)}</div><div class="narrow">{readable(narrow)}</div>'
    return f'<style>{turns}</style><div class="from{least}">{pictures}</div>'


def readable(picture: str) -> str:
    """An SVG that is never larger than it is, and never so small that its texts cannot be read: then it scrolls."""
    width = _size(picture, "width")
    return picture.replace("<svg ", f'<svg style="max-width:{width}px;min-width:{round(SMALLEST * width)}px" ', 1)


def _size(picture: str, side: str) -> int:
    return int(picture.partition(f' {side}="')[2].partition('"')[0])


def never_raises(draw: Callable[[Any], str]) -> Callable[[Any], str]:
    """A method that notebooks call: whatever goes wrong, the object is shown by its text."""

    @wraps(draw)
    def shown(self: Any) -> str:
        try:
            return draw(self)
        except Exception as error:  # noqa: BLE001  a display that fails hides the object
            return view(plain(repr(self)), soft(f"It cannot be drawn: {type(error).__name__}: {error}"))

    return shown


def rows_of(columns: Sequence[str], rows: Iterable[dict[str, Any]], total: int, caption: str = "") -> str:
    """Rows as a table; ``total`` is how many there are, of which those given are the first."""
    shown = []
    for row in rows:
        gone = row.get("missing") or ()
        shown.append([_cell(row[name], "missing" if name in gone else "-") for name in columns])
    said = caption or (f"the first {len(shown)} of {total:,} rows" if len(shown) < total else "")
    values = [[row[i] for row in shown] for i in range(len(columns))]
    numbers = [i for i, column in enumerate(values) if column and all(map(_is_number, column))]
    return table(columns, shown, said, numbers)


def _cell(value: Any, none: str) -> str:
    if value is None:
        return none
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
