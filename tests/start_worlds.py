"""Worlds whose matches depend on the start of their partition: AT START, and negations since the start."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from acep_approx.query.shape import atoms, sequence_of
from acep_approx.query.syntax import Absent, Atom, QuerySyntax
from tests.rich_conditions import Names, condition
from tests.rich_worlds import Dice, RichWorld, rich_world, world_of


def start_world(seed: int, *, chooses: bool = False) -> RichWorld | None:
    """A world of a seed, with AT START, a negation since the start, or both; None: it would be too large."""
    random = Random(seed)
    world, dice = rich_world(random, chooses), Dice(random)
    query, kinds = world.query, dice.pick(("at", "since", "since", "both"))
    if kinds != "at":
        if query.is_regex or query.is_simultaneous or len(atoms(query.pattern)) > 4:
            return None
        query = since_start(query, dice)
    return world_of(replace(query, at_start=kinds != "since"), world.rows)


def since_start(query: QuerySyntax, dice: Dice) -> QuerySyntax:
    """The query behind a negation since the start, which may have a condition."""
    number = len(atoms(query.pattern))
    absent = Absent(tuple(Atom(dice.pick("ABC"), f"n{i}") for i in range(dice.pick((1, 1, 2)))), since_start=True)
    own = Names((f"n{number % len(absent.options)}",), ())
    more = (condition(dice.pick, own),) if dice.chance(3) else ()
    return replace(query, pattern=sequence_of([absent, query.pattern]), predicates=(*query.predicates, *more))
