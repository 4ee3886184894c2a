"""Shrink a world that fails: leave out events, conditions, clauses and parts of the pattern while it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from acep_approx.errors import AcepError
from acep_approx.query.shape import all_of, choice_of, sequence_of
from acep_approx.query.syntax import LISTS_ALL, AllOf, Either, Pattern, QuerySyntax, Repeat, Sequence, Spaced
from tests.rich_worlds import RichWorld, world_of


def smallest(world: RichWorld, fails: Callable[[RichWorld], bool]) -> RichWorld:
    """A world that fails like ``world``, of which nothing can be left out."""
    for smaller in smaller_worlds(world):
        if fails(smaller):
            return smallest(smaller, fails)
    return world


def smaller_worlds(world: RichWorld) -> Iterator[RichWorld]:
    """Worlds with one thing less, as far as the checks let them be."""
    for i in range(len(world.rows)):
        yield replace(world, rows=(*world.rows[:i], *world.rows[i + 1 :]))
    for query in smaller_queries(world.query):
        try:
            yield world_of(query, world.rows)
        except AcepError:
            continue


def smaller_queries(query: QuerySyntax) -> Iterator[QuerySyntax]:
    """Queries with one clause, one condition or one part of the pattern less."""
    for i in range(len(query.predicates)):
        yield replace(query, predicates=(*query.predicates[:i], *query.predicates[i + 1 :]))
    yield from (replace(query, equivalences=query.equivalences[1:]),) if query.equivalences else ()
    yield from (replace(query, weights=query.weights[1:]),) if query.weights else ()
    yield from (replace(query, errors=query.errors - 1),) if query.errors else ()
    for name in ("maximal", "first", "skip", "consume", "every"):
        fewer = replace(query.selection, **{name: getattr(LISTS_ALL, name)})
        if fewer != query.selection and not fewer.is_all:
            yield replace(query, selection=fewer)
    for pattern in smaller_patterns(query.pattern):
        yield replace(query, pattern=pattern)


def smaller_patterns(pattern: Pattern) -> Iterator[Pattern]:
    """Patterns with one part less, or one repetition."""
    match pattern:
        case Repeat(part=part) | Spaced(part=part):
            yield part
            for word in ("between", "prefers", "until") if isinstance(pattern, Repeat) else ():
                yield from (replace(pattern, **{word: None}),) if getattr(pattern, word) else ()
            yield from (replace(pattern, part=smaller) for smaller in smaller_patterns(part))
        case Sequence(parts=parts) | Either(options=parts) | AllOf(parts=parts):
            join = {Sequence: sequence_of, Either: choice_of, AllOf: all_of}[type(pattern)]
            for i, part in enumerate(parts):
                yield join([*parts[:i], *parts[i + 1 :]])
                yield from (join([*parts[:i], smaller, *parts[i + 1 :]]) for smaller in smaller_patterns(part))


def holds_for(world: RichWorld, check: Callable[[RichWorld], None]) -> None:
    """Check a world; where the check fails, show the smallest world like it that fails too."""

    def fails(smaller: RichWorld) -> bool:
        try:
            check(smaller)
        except Exception:  # noqa: BLE001  whatever it is, a smaller world shows it better
            return True
        return False

    if fails(world):
        small = smallest(world, fails)
        try:
            check(small)
        except Exception as error:
            error.add_note(f"{small.text}\n{small.rows}\nexpected {small.expected()}")
            raise
        check(world)  # the smaller one failed by chance
