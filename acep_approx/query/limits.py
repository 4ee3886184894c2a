"""How large a query may be, and the checks that keep every later module safe from deep recursion."""

from __future__ import annotations

import re

from acep_approx.errors import LimitError
from acep_approx.query.shape import Node, walk_with_depth

MAX_TEXT = 1_000_000
"""Characters of a query text."""

MAX_DEPTH = 100
"""Nesting of brackets in a text, and of nodes in a pattern or an expression."""

MAX_POSITIONS = 1000
"""Positions of a pattern when its bounded repeats are written out."""

_BRACKETS = re.compile(r"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|[()]")


def refuse_long_text(text: str) -> None:
    """Refuse a text of more than `MAX_TEXT` characters.

    Parameters
    ----------
    text : str
        A query.

    Raises
    ------
    LimitError
        ACEP-Q020.
    """
    if len(text) > MAX_TEXT:
        raise LimitError(
            f"the query has {len(text):,} characters, the limit is {MAX_TEXT:,}",
            code="ACEP-Q020",
            given=len(text),
            limit=MAX_TEXT,
            hint="was a data file given in the place of the query?",
        )


def refuse_deep_text(text: str) -> None:
    """Refuse a text whose round brackets are nested more than `MAX_DEPTH` deep.

    Parameters
    ----------
    text : str
        A query; brackets in strings and comments do not count.

    Raises
    ------
    LimitError
        ACEP-Q021, at the first bracket that is too deep.
    """
    depth = deepest = 0
    first_too_deep = -1
    for found in _BRACKETS.finditer(text):
        if found.group() == "(":
            depth += 1
            deepest = max(deepest, depth)
            if depth > MAX_DEPTH and first_too_deep < 0:
                first_too_deep = found.start()
        elif found.group() == ")":
            depth -= 1
    if first_too_deep >= 0:
        raise _too_deep(deepest, text, (first_too_deep, first_too_deep + 1))


def refuse_deep_tree(node: Node, text: str) -> None:
    """Refuse a tree of more than `MAX_DEPTH` levels, without recursion.

    Parameters
    ----------
    node : Pattern or Expression
        The root.
    text : str
        What its spans refer to; may be empty.

    Raises
    ------
    LimitError
        ACEP-Q021.
    """
    deepest, span = 0, node.span
    for found, depth in walk_with_depth(node):
        if depth > deepest:
            deepest, span = depth, found.span
    if deepest > MAX_DEPTH:
        raise _too_deep(deepest, text, span)


def _too_deep(depth: int, text: str, span: tuple[int, int]) -> LimitError:
    return LimitError(
        f"nested {depth} levels deep, the limit is {MAX_DEPTH}",
        code="ACEP-Q021",
        given=depth,
        limit=MAX_DEPTH,
        hint="leave out brackets that change nothing; a long chain of OR is shorter as `x IN (1, 2, 3)`",
        text=text,
        start=span[0],
        end=span[1],
    )
