"""The query that reads a stream from its end: it begins where the other one ends, and its matches are the same sets.

An event completes a match of a query if a match of the reversed one begins with it, in the events before it read
backwards. That takes a run for this event alone, where going forwards takes all runs of the window before it.
Source: ours; that the reverse of a regular language is one is Rabin and Scott, IBM Journal 1959, theorem 12.
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from acep_approx.query.shape import walk
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    Aggregate,
    AllOf,
    Atom,
    Attribute,
    Either,
    Equivalence,
    Expression,
    FunctionCall,
    Parameter,
    Pattern,
    QuerySyntax,
    Read,
    Repeat,
    Sequence,
)

ORDERED = frozenset({"first", "last"})
"""Aggregates that depend on the order of the events that they are of."""
PLAIN = frozenset(get_args(Expression)) - {FunctionCall, Parameter, Read}


def backwards(query: QuerySyntax, name: str) -> QuerySyntax | None:
    """The query that finds the matches of another one in a stream that is read backwards, with a given last event.

    Parameters
    ----------
    query : QuerySyntax
    name : str
        Column that is the same in the events that belong to one last event, which is the first of them.

    Returns
    -------
    QuerySyntax or None
        None where a match depends on what lies between its events, on their order beyond that of the pattern, or on
        other matches. Complexity: linear in the query.

    Examples
    --------
    >>> from acep_approx.query import parse, to_text
    >>> print(to_text(backwards(parse("PATTERN SEQ(A a, B+ b[], C c) WHERE [key] AND a.x < c.x WITHIN 5"), "end")))
    PATTERN SEQ(C c, B+ b[], A a)
    WHERE [end] AND a.x < c.x
    WITHIN 5
    AT START
    >>> backwards(parse("PATTERN SEQ(A a, ~(B b), C c) WITHIN 5"), "end") is None
    True
    """
    is_free = query.strategy == DEFAULT_STRATEGY and query.selection.is_all
    is_known = query.window.unit != "events" and query.window.parameter is None
    if not is_free or not is_known or query.at_start or query.is_simultaneous or query.is_regex:
        return None
    pattern = _turned(query.pattern)
    if pattern is None or not all(_is_plain(condition) for condition in query.predicates):
        return None
    return replace(
        query, pattern=pattern, equivalences=(Equivalence(name),), at_start=True, outputs=(), publish=None, text=""
    )


def _turned(pattern: Pattern) -> Pattern | None:
    """A pattern from its end to its beginning."""
    if isinstance(pattern, Atom):
        return pattern
    if isinstance(pattern, Repeat):
        part = _turned(pattern.part)
        if part is None or pattern.between is not None or pattern.prefers is not None or pattern.until is not None:
            return None
        return replace(pattern, part=part)
    if isinstance(pattern, Either):
        options = [found for option in pattern.options if (found := _turned(option)) is not None]
        return replace(pattern, options=tuple(options)) if len(options) == len(pattern.options) else None
    if isinstance(pattern, Sequence | AllOf):
        parts = [found for part in reversed(pattern.parts) if (found := _turned(part)) is not None]
        return replace(pattern, parts=tuple(parts)) if len(parts) == len(pattern.parts) else None
    return None


def _is_plain(condition: Expression) -> bool:
    """Whether a condition says the same of events in either order."""
    for node in walk(condition):
        if type(node) not in PLAIN:
            return False
        if isinstance(node, Attribute) and node.index not in (None, "current"):
            return False
        if isinstance(node, Aggregate) and (node.prior or node.upto is not None or node.function in ORDERED):
            return False
    return True
