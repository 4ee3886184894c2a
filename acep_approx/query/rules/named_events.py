"""Which events a match surely has, that actions may name, and as of which of them a table is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from acep_approx.query.checks_machine import reachable, repeated_variables
from acep_approx.query.shape import Node, all_expressions, atoms, kleene_variables, replaced, walk
from acep_approx.query.syntax import (
    Absent,
    Aggregate,
    AllOf,
    Atom,
    Attribute,
    Either,
    Expression,
    Index,
    Machine,
    OtherPattern,
    Pattern,
    QuerySyntax,
    Read,
    Repeat,
    Sequence,
    Spaced,
)


def known_variables(pattern: Pattern) -> tuple[str, ...]:
    """All variables of a pattern, in the order of the text; those of negations, too.

    Parameters
    ----------
    pattern : Pattern
    """
    if isinstance(pattern, Machine):
        return tuple(dict.fromkeys(arc.variable for arc in pattern.arcs if arc.variable is not None))
    return tuple(dict.fromkeys(atom.variable for atom in atoms(pattern)))


def several(pattern: Pattern) -> frozenset[str]:
    """The variables that can bind several events.

    Parameters
    ----------
    pattern : Pattern
    """
    return repeated_variables(pattern) if isinstance(pattern, Machine) else kleene_variables(pattern)


def certain(pattern: Pattern) -> frozenset[str]:  # noqa: PLR0911  one for each kind of node
    """The variables that every match binds, were no event missing: no choice leaves them out, nor ``?`` and ``*``.

    Parameters
    ----------
    pattern : Pattern

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> sorted(certain(parse("PATTERN SEQ(A a, (B b | C c), D? d, ~(E e), F+ f) WITHIN 5").pattern))
    ['a', 'f']
    """
    match pattern:
        case Atom(variable=variable):
            return frozenset((variable,))
        case Sequence(parts=parts) | AllOf(parts=parts):
            return frozenset[str]().union(*map(certain, parts))
        case Either(options=options):
            return frozenset.intersection(*map(certain, options))
        case Spaced(part=part):
            return certain(part)
        case Repeat(part=part, least=least):
            return certain(part) if least else frozenset()
        case Machine():
            ends = {*pattern.finals}
            return frozenset(
                name
                for name in known_variables(pattern)  # no way leads to a final state without it
                if not reachable({pattern.start}, [(a.source, a.target) for a in pattern.arcs if a.variable != name])
                & ends
            )
        case Absent() | OtherPattern():
            return frozenset()


def can_be_missing(query: QuerySyntax, variable: str) -> bool:
    """Whether ERRORS lets a match do without the events of a variable: its weight is not above them.

    Parameters
    ----------
    query : QuerySyntax
    variable : str
    """
    return dict(query.weights).get(variable, 1) <= query.errors


def last_variable(query: QuerySyntax) -> str | None:
    """The variable whose (last) event is the last event of every match; None where there is no such variable.

    Parameters
    ----------
    query : QuerySyntax

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> last_variable(parse("PATTERN SEQ(A a, B+ b[], ~(C c)) WITHIN 5"))
    'b'
    >>> last_variable(parse("PATTERN SEQ(A a, B b, C? c) WITHIN 5")) is None
    True
    """
    pattern = query.pattern
    if isinstance(pattern, Machine):
        silent = [(arc.target, arc.source) for arc in pattern.arcs if arc.kind != "on"]
        ends = reachable(set(pattern.finals), silent)
        found = frozenset(arc.variable for arc in pattern.arcs if arc.kind == "on" and arc.target in ends)
    else:
        found = _last(pattern)[0]
    variable = next(iter(found)) if len(found) == 1 else None
    return None if variable is None or can_be_missing(query, variable) else variable


def ends_late(pattern: Pattern) -> bool:
    """Whether some match is known only when its window has closed: a negation at the end, or TIMEOUT.

    Parameters
    ----------
    pattern : Pattern

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> ends_late(parse("PATTERN SEQ(A a, ~(B b)) WITHIN 5").pattern)
    True
    """
    match pattern:
        case Absent():
            return True
        case Sequence(parts=parts):
            ends = next((at for at in reversed(range(len(parts))) if not _last(parts[at])[1]), 0)
            return any(map(ends_late, parts[ends:]))
        case Either(options=below) | AllOf(parts=below):
            return any(map(ends_late, below))
        case Repeat(part=part) | Spaced(part=part):
            return ends_late(part)
        case Machine(arcs=arcs):
            return any(arc.kind == "timeout" for arc in arcs)
    return False


def _last(pattern: Pattern) -> tuple[frozenset[str | None], bool]:  # noqa: PLR0911  one for each kind of node
    """The variables that can have the last event, and whether there may be no event at all."""
    match pattern:
        case Atom(variable=variable):
            return frozenset((variable,)), False
        case Sequence(parts=parts):
            found: frozenset[str | None] = frozenset()
            for part in reversed(parts):
                more, empty = _last(part)
                found |= more
                if not empty:
                    return found, False
            return found, True
        case Spaced(part=part):
            return _last(part)
        case Either(options=parts) | AllOf(parts=parts):
            each = [_last(part) for part in parts]
            are_empty = (any if isinstance(pattern, Either) else all)(empty for _, empty in each)
            return frozenset[str | None]().union(*(one for one, _ in each)), are_empty
        case Repeat(part=part, least=least):
            inner, empty = _last(part)
            return inner, empty or least == 0
        case Absent() | OtherPattern() | Machine():
            return frozenset(), True


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
    for expression in all_expressions(query):
        yield from reads_of(expression)
