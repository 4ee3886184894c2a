"""What a notebook shows of an answer to ``why``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from acep_approx.diagrams.fragments import table, title, view
from acep_approx.visible import escape


def why_view(answer: Any) -> str:
    """The headline, the events, and line by line what came and what would have helped."""
    return view(*_parts(answer))


def _parts(answer: Any) -> Iterator[str]:
    yield title(answer.headline, "good" if answer.matched else "bad")
    if rows := answer.table():
        yield table(rows[0], rows[1:], numbers=[i for i, name in enumerate(rows[0]) if name == "row"])
    yield from _lines(answer.lines)


def no_match_view(answer: Any) -> str:
    """The headline, how many events came to each step, what would make a match, and the furthest partial match."""
    return view(*no_match_parts(answer))


def no_match_parts(answer: Any) -> Iterator[str]:
    """The same as parts of a larger view."""
    yield title(answer.headline, "good" if answer.reason == "found" else "bad")
    if rows := answer.table():
        yield table(rows[0], rows[1:], numbers=(2, 3, 4))
    yield from _lines(answer.more)
    if answer.furthest is not None:
        yield from _parts(answer.furthest)


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
