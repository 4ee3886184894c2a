"""What a notebook shows of an answer to ``why``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from acep_approx.diagrams.fragments import table, title, view

if TYPE_CHECKING:
    from acep_approx.why.result import Why


def why_view(answer: Why) -> str:
    """The headline, the events, and line by line what came and what would have helped."""
    rows = answer.table()
    return view(
        title(answer.headline, "good" if answer.matched else "bad"),
        table(rows[0], rows[1:], numbers=_numbers(rows)) if rows else "",
        *_lines(answer.lines),
    )


def _numbers(rows: Sequence[Sequence[str]]) -> list[int]:
    return [i for i, name in enumerate(rows[0]) if name == "row"]


def _lines(lines: Sequence[str]) -> Iterator[str]:
    """Lines as paragraphs; those that are indented are what the one before them leads to."""
    under: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("  "):
            under.append(f"<li>{escape(line.strip())}</li>")
            continue
        if under:
            yield f"<ul>{''.join(under)}</ul>"
            under = []
        if line:
            yield f"<p>{escape(line)}</p>"
