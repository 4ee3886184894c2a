"""As of which event a table is read in WHERE and RETURN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from acep_approx.query.rules.bound import several
from acep_approx.query.shape import Node, expressions_of, replaced, walk
from acep_approx.query.syntax import Aggregate, Attribute, Expression, Index, Machine, QuerySyntax, Read

Event = tuple[str | None, Index | None]
"""A variable, and which of its events: None where it is one, else as in ``query.syntax.Index``."""


def event_of(node: Attribute, query: QuerySyntax) -> Event:
    """The event that an attribute is of; ``c.x`` of a Kleene variable is of each event, as ``c[i].x``.

    Parameters
    ----------
    node : Attribute
    query : QuerySyntax
    """
    each = node.index is None and node.variable in several(query.pattern)
    return node.variable, "current" if each else node.index


def events_of_key(read: Read, query: QuerySyntax) -> tuple[Attribute, ...]:
    """The events that a key names, each once, as attributes without a name.

    Parameters
    ----------
    read : Read
    query : QuerySyntax
    """
    found: dict[Event, Attribute] = {}
    for node in nodes_of_key(read):
        if isinstance(node, Attribute):
            event = event_of(node, query)
            found.setdefault(event, Attribute(event[0], event[1], "", node.span))
    return tuple(found.values())


def nodes_of_key(read: Read) -> Iterator[Node]:
    """All nodes of the expressions that name the row of a read.

    Parameters
    ----------
    read : Read
    """
    for key in read.keys:
        yield from walk(key)


def rewritten(read: Read, query: QuerySyntax) -> Read:
    """The same read with a key that is of the event behind AT, where ``[attr]`` allows it.

    Where ``[attr]`` is in force all events of a match have the same value of it: ``a.attr AT c`` is ``c.attr``.

    Parameters
    ----------
    read : Read
        Of WHERE or RETURN.
    query : QuerySyntax
        The query it stands in.

    Examples
    --------
    >>> from acep_approx.query import parse_rules
    >>> text = "WHERE [id] AND store.t[a.id, c.x AT c].y = 1 WITHIN 5"
    >>> query = parse_rules(f"RULE r ON PATTERN SEQ(A a, C c) {text}").rules[0].query
    >>> rewritten(query.predicates[0].left, query).keys
    (Attribute(variable='c', index=None, name='id'), Attribute(variable='c', index=None, name='x'))
    """
    at, shared = read.at, {one.name for one in query.equivalences}
    if at is None:
        return read

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Attribute) and node.name in shared and event_of(node, query) != event_of(at, query):
            return replace(node, variable=at.variable, index=at.index)
        return None

    return replace(read, keys=tuple(replaced(key, change) for key in read.keys))


def as_of(read: Read, query: QuerySyntax) -> Attribute | None:
    """The event as of which a table is read: that behind AT, else the one that the key names.

    Parameters
    ----------
    read : Read
        Of WHERE or RETURN.
    query : QuerySyntax
        The query it stands in.

    Returns
    -------
    Attribute or None
        A variable and an index, without a name; of a Kleene variable without an index, ``"current"``. None where the
        key names no event, or several: `acep_approx.query.rules.checks` refuses such reads.
    """
    if read.at is not None:
        variable, index = event_of(read.at, query)
        return Attribute(variable, index, "", read.at.span)
    events = events_of_key(read, query)
    return events[0] if len(events) == 1 else None


def is_late(read: Read, query: QuerySyntax) -> bool:
    """Whether the key is of other events than AT: the read is known only when the match is complete.

    Parameters
    ----------
    read : Read
        Of WHERE or RETURN.
    query : QuerySyntax
        The query it stands in.

    Examples
    --------
    >>> from acep_approx.query import parse_rules
    >>> text = "WHERE [id] AND store.t[a.id AT c].y = 1 AND store.t[a.x AT c].y = 1 WITHIN 5"
    >>> query = parse_rules(f"RULE r ON PATTERN SEQ(A a, C c) {text}").rules[0].query
    >>> [is_late(one.left, query) for one in query.predicates]
    [False, True]
    """
    if read.at is None:
        return False
    at, key = event_of(read.at, query), rewritten(read, query)
    if any(isinstance(node, Aggregate) for node in nodes_of_key(key)):
        return True
    return any((one.variable, one.index) != at for one in events_of_key(key, query))


def reads_of(expression: Expression) -> Iterator[Read]:
    """The reads of an expression, in the order of the text.

    Parameters
    ----------
    expression : Expression
    """
    for node in walk(expression):
        if isinstance(node, Read):
            yield node


def reads_of_query(query: QuerySyntax) -> Iterator[Read]:
    """The reads of a query: of its conditions, of an automaton's arcs, and of RETURN.

    Parameters
    ----------
    query : QuerySyntax
    """
    inside = expressions_of(query.pattern) if isinstance(query.pattern, Machine) else ()
    for expression in (*query.predicates, *inside, *(output.value for output in query.outputs)):
        yield from reads_of(expression)
