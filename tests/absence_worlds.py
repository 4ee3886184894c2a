"""Worlds with negations that have a window of their own, and with negations of sequences."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, kleene_variables, negated_sequences, negated_variables, variables
from acep_approx.query.syntax import Absent, Atom, Either, Pattern, Repeat, Sequence, Window
from tests.rich_conditions import Names, condition
from tests.rich_worlds import Dice, RichWorld, rich_world, world_of


def shortened(pattern: Pattern, dice: Dice) -> Pattern:
    """The pattern in which most negations have a window of their own."""
    match pattern:
        case Absent() if not dice.chance(5):
            return replace(pattern, within=Window(dice.pick((0, 1, 1, 2, 3, 30)), "ticks"))
        case Sequence(parts=parts):
            return replace(pattern, parts=tuple(shortened(part, dice) for part in parts))
        case Either(options=options):
            return replace(pattern, options=tuple(shortened(part, dice) for part in options))
        case Repeat(part=part):
            return replace(pattern, part=shortened(part, dice))
    return pattern


def own_world(seed: int, *, chooses: bool = False) -> RichWorld | None:
    """A world of a seed; None: it has no negation, or its window counts events."""
    random = Random(seed)
    world, dice = rich_world(random, chooses), Dice(random)
    query = replace(world.query, pattern=shortened(world.query.pattern, dice))
    if query == world.query or query.window.unit == "events":
        return None
    return world_of(replace(query, is_simultaneous=not chooses and dice.chance(5)), world.rows)


def in_sequence(pattern: Pattern, dice: Dice, numbers: count[int]) -> Pattern:
    """The pattern in which most negations are of a sequence, of two or three events."""
    match pattern:
        case Absent() if not dice.chance(4):
            kinds = [dice.pick(("A", "B", "C", "C", None)) for _ in range(dice.pick((1, 1, 1, 2)))]
            more = tuple(Atom(kind, f"n{next(numbers)}") for kind in kinds)
            within = Window(dice.pick((1, 2, 4)), "ticks") if dice.chance(6) else None
            options = dice.pick(((*pattern.options[:1], *more), (*more, *pattern.options[:1])))
            return Absent(options, in_order=True, within=within)
        case Sequence(parts=parts):
            return replace(pattern, parts=tuple(in_sequence(part, dice, numbers) for part in parts))
        case Either(options=options):
            return replace(pattern, options=tuple(in_sequence(part, dice, numbers) for part in options))
        case Repeat(part=part):
            return replace(pattern, part=in_sequence(part, dice, numbers))
    return pattern


def sequence_world(seed: int, *, chooses: bool = False) -> RichWorld | None:
    """A world of a seed, with conditions on the events of negations; None: no sequence is negated."""
    random = Random(seed)
    world, dice = rich_world(random, chooses), Dice(random)
    query = world.query
    pattern = in_sequence(query.pattern, dice, count())
    sequences = negated_sequences(pattern)
    negated, known = negated_variables(pattern), {atom.variable for atom in atoms(pattern)}
    if not sequences or (query.window.unit == "events" and "WITHIN" in to_text(pattern)):
        return None
    predicates = tuple(one for one in query.predicates if variables(one) <= known - negated)
    kleene = kleene_variables(pattern) - negated
    if dice.chance(2):
        chosen = {*dice.pick(sequences)[-2:], dice.pick(sorted(known - negated))}
        names = Names(tuple(sorted(chosen - kleene)), tuple(sorted(chosen & kleene)))
        predicates = (*predicates, condition(dice.pick, names))
    query = replace(query, pattern=pattern, predicates=predicates)
    is_simultaneous = not chooses and dice.chance(6) and query.window.unit != "events"
    return world_of(replace(query, is_simultaneous=is_simultaneous), world.rows)
