"""Which events a match surely has: those that an action may name."""

from __future__ import annotations

from collections.abc import Iterable

from acep_approx.query.checks_machine import repeated_variables
from acep_approx.query.shape import atoms, kleene_variables
from acep_approx.query.syntax import (
    Absent,
    Atom,
    Either,
    Machine,
    MachineArc,
    OtherPattern,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
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


def certain(pattern: Pattern) -> frozenset[str]:
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
        case Sequence(parts=parts):
            return frozenset[str]().union(*map(certain, parts))
        case Either(options=options):
            return frozenset.intersection(*map(certain, options))
        case Repeat(part=part, least=least):
            return certain(part) if least else frozenset()
        case Machine():
            return frozenset(name for name in known_variables(pattern) if not _passes(pattern, name))
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
    found = _last_of_machine(query.pattern) if isinstance(query.pattern, Machine) else _last(query.pattern)[0]
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
        case Either(options=below):
            return any(map(ends_late, below))
        case Repeat(part=part):
            return ends_late(part)
        case Machine(arcs=arcs):
            return any(arc.kind == "timeout" for arc in arcs)
    return False


def _last(pattern: Pattern) -> tuple[frozenset[str | None], bool]:
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
        case Either(options=options):
            each = [_last(option) for option in options]
            return frozenset[str | None]().union(*(one for one, _ in each)), any(empty for _, empty in each)
        case Repeat(part=part, least=least):
            inner, empty = _last(part)
            return inner, empty or least == 0
        case Absent() | OtherPattern() | Machine():
            return frozenset(), True


def _last_of_machine(machine: Machine) -> frozenset[str | None]:
    silent = [arc for arc in machine.arcs if arc.kind != "on"]
    ends = set(machine.finals)
    while more := {arc.source for arc in silent if arc.target in ends} - ends:
        ends |= more
    return frozenset(arc.variable for arc in machine.arcs if arc.kind == "on" and arc.target in ends)


def _passes(machine: Machine, variable: str) -> bool:
    """Whether some way leads to a final state without a variable."""
    return bool(_reached(machine, (arc for arc in machine.arcs if arc.variable != variable)) & {*machine.finals})


def _reached(machine: Machine, arcs: Iterable[MachineArc]) -> set[str]:
    found, left = {machine.start}, list(arcs)
    while more := {arc.target for arc in left if arc.source in found} - found:
        found |= more
    return found
