"""A query changed in one way, to see what it is that no event passes: its beginnings, and what each part forbids.

Every change here asks for less: what matches the query, or begins a match of it, matches the changed one too. So where
a changed query finds nothing, neither does the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from acep_approx.planning.planner import LARGEST_WINDOW, MICROSECONDS
from acep_approx.query.checks import lightest
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, choice_of, is_static, negated_variables, sequence_of, variables, walk
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    Absent,
    Either,
    Expression,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
)

WIDEST = LARGEST_WINDOW // 2
"""A window that nothing leaves, in ticks or events."""


@dataclass(frozen=True)
class Beginning:
    """The first parts of a pattern as a query, and the variables of the last of them."""

    query: QuerySyntax
    names: tuple[str, ...]


def plain(query: QuerySyntax) -> QuerySyntax:
    """The query without what is about the form and the choice of its matches."""
    return replace(query, outputs=(), non_overlap=False, publish=None)


def beginnings(query: QuerySyntax) -> list[Beginning]:
    """The beginnings of a query, the shortest first; the last one is the query as ``plain`` gives it.

    Left out are those that can be missing as a whole: a match need not bind any event of them.
    """
    parts = query.pattern.parts if isinstance(query.pattern, Sequence) else (query.pattern,)
    found = []
    most = max((number for number, part in enumerate(parts) if not isinstance(part, Absent)), default=0)
    for number in range(1, most + 1):
        pattern = sequence_of(parts[:number])
        if not isinstance(parts[number - 1], Absent) and lightest(pattern, dict(query.weights)) > query.errors:
            found.append(Beginning(_beginning(plain(query), pattern), _names(parts[number - 1])))
    return [*found, Beginning(plain(query), _names(parts[most]))]


def _names(part: Pattern) -> tuple[str, ...]:
    negated = negated_variables(part)
    return tuple(dict.fromkeys(atom.variable for atom in atoms(part) if atom.variable not in negated))


def _beginning(query: QuerySyntax, pattern: Pattern) -> QuerySyntax:
    """The query of some first parts, with the conditions that are about nothing else."""
    known = {atom.variable for atom in atoms(pattern)}
    kept: list[Expression] = []
    lost: set[str] = set()
    for predicate in query.predicates:
        if variables(predicate) <= known:
            kept.append(predicate)
        else:
            lost |= variables(predicate)
    for negation in [part for part in walk(pattern) if isinstance(part, Absent)]:
        if lost & {atom.variable for atom in negation.options}:  # without its conditions it would forbid more
            pattern = without_negation(pattern, negation)
    known = {atom.variable for atom in atoms(pattern)}
    return replace(
        query,
        pattern=pattern,
        predicates=tuple(predicate for predicate in kept if variables(predicate) <= known),
        weights=tuple(one for one in query.weights if one[0] in known),
        definitions=tuple(one for one in query.definitions if one.letter in known),
    )


def loose(query: QuerySyntax) -> QuerySyntax:
    """Only what single events are asked for, their key, their order and the window."""
    pattern = query.pattern
    for negation in [part for part in walk(pattern) if isinstance(part, Absent)]:
        pattern = without_negation(pattern, negation)
    known = {atom.variable for atom in atoms(pattern)}
    kept = tuple(one for one in query.predicates if is_static(one) and variables(one) <= known)
    return replace(query, pattern=pattern, predicates=kept, strategy=DEFAULT_STRATEGY, is_simultaneous=False)


def wide(query: QuerySyntax) -> QuerySyntax:
    """The same in a window that nothing leaves."""
    return replace(query, window=replace(query.window, amount=WIDEST // MICROSECONDS.get(query.window.unit, 1)))


def relaxations(query: QuerySyntax) -> Iterator[tuple[str, QuerySyntax]]:
    """The query without one thing that is about several events, and what that is: in the words of the query."""
    negated = negated_variables(query.pattern)
    for predicate in query.predicates:
        if not is_static(predicate) and not variables(predicate) & negated:
            kept = tuple(other for other in query.predicates if other is not predicate)
            yield to_text(predicate), replace(query, predicates=kept)
    for negation in [part for part in walk(query.pattern) if isinstance(part, Absent)]:
        gone = {atom.variable for atom in negation.options}
        kept = tuple(one for one in query.predicates if not variables(one) & gone)
        yield to_text(negation), replace(query, pattern=without_negation(query.pattern, negation), predicates=kept)
    if query.strategy != DEFAULT_STRATEGY:
        yield query.strategy, replace(query, strategy=DEFAULT_STRATEGY)
    if query.is_simultaneous:
        yield "SIMULTANEOUS", replace(query, is_simultaneous=False)


def without_negation(pattern: Pattern, negation: Absent) -> Pattern:
    """A pattern without one of its negations."""
    match pattern:
        case Sequence(parts=parts):
            return sequence_of([without_negation(part, negation) for part in parts if part != negation])
        case Either(options=options):
            return choice_of([without_negation(option, negation) for option in options])
        case Repeat(part=part):
            return replace(pattern, part=without_negation(part, negation))
    return pattern
