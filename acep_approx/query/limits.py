"""How large a query may be, and the checks that keep every later module safe from deep recursion."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from acep_approx.errors import LimitError, QueryError
from acep_approx.query.shape import Node, walk_with_depth
from acep_approx.visible import broken_at

MAX_TEXT = 1_000_000
"""Characters of a query text."""

MAX_WORDS = 32_000
"""Words and signs of a query text: a list of 10,000 numbers takes 20,000, with a minus each 30,000."""

MAX_NODES = 32_000
"""Nodes of the pattern and all expressions together."""

MAX_DEPTH = 100
"""Nesting of brackets in a text, and of nodes in a pattern or an expression."""

MAX_POSITIONS = 1000
"""Positions of a pattern when its bounded repeats are written out."""

_QUOTED = r"'[^']*(?:''[^']*)*'|`[^`]*`"
_BRACKETS = re.compile(_QUOTED + r"|--[^\n]*|[()]")
_WORDS = re.compile(rf"--[^\n]*|({_QUOTED}|\d[\w.]*|\w+|[<>=!]+|\S)")


def refuse_large_text(text: str) -> None:
    """Refuse a text that is too long or nested too deep, whatever language it is in.

    Raises
    ------
    LimitError, QueryError
        As ``refuse_long_text``, ``refuse_deep_text`` and ``refuse_many_words``.
    """
    refuse_long_text(text)
    refuse_deep_text(text)
    refuse_many_words(text)


def refuse_long_text(text: str) -> None:
    """Refuse a text of more than `MAX_TEXT` characters, and one that is none.

    Parameters
    ----------
    text : str
        A query.

    Raises
    ------
    LimitError
        ACEP-Q020.
    QueryError
        ACEP-Q190: it holds half of a character.
    """
    if (place := broken_at(text)) is not None:
        raise QueryError(
            "this is no text: it holds half of a character, or bytes that are not UTF-8",
            code="ACEP-Q190",
            hint="write the query in UTF-8",
            text=text,
            start=place,
            end=place + 1,
        )
    if len(text) > MAX_TEXT:
        raise LimitError(
            f"the query has {len(text):,} characters, the limit is {MAX_TEXT:,}",
            code="ACEP-Q020",
            given=len(text),
            limit=MAX_TEXT,
            hint="was a data file given in the place of the query?",
        )


def refuse_many_words(text: str, begin: int = 0, end: int = 0) -> None:
    """Refuse a text of more than `MAX_WORDS` words and signs; comments do not count.

    Parameters
    ----------
    text : str
        A query.
    begin, end : int, optional
        Where a bare regular expression stands in it, of which each character is a word.

    Raises
    ------
    LimitError
        ACEP-Q023, at the first word that is too much.
    """
    words, first = end - begin, begin
    for found in _WORDS.finditer(text, end):
        words += found.group(1) is not None
        if words == MAX_WORDS + 1:
            first = found.start()
    if words > MAX_WORDS:
        raise LimitError(
            f"the query has {words:,} words and signs, the limit is {MAX_WORDS:,}",
            code="ACEP-Q023",
            given=words,
            limit=MAX_WORDS,
            hint="shorten its lists; what depends on many values is better computed into a column before",
            text=text,
            start=first,
            end=first + 1,
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


def refuse_many_nodes(trees: Iterable[Node], text: str) -> None:
    """Refuse trees of more than `MAX_NODES` nodes in all; the builder has no text whose words could be counted.

    Parameters
    ----------
    trees : iterable of Pattern or Expression
        The pattern, conditions and outputs of a query.
    text : str
        What their spans refer to; may be empty.

    Raises
    ------
    LimitError
        ACEP-Q024.
    """
    nodes = sum(1 for _ in islice((node for tree in trees for node in walk_with_depth(tree)), MAX_NODES + 1))
    if nodes > MAX_NODES:  # a tree built in Python may hold one part twice, and so grow without end
        raise LimitError(
            f"the pattern and the expressions have more than {MAX_NODES:,} parts",
            code="ACEP-Q024",
            given=nodes,
            limit=MAX_NODES,
            hint="shorten its lists; what depends on many values is better computed into a column before",
            text=text,
        )


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
