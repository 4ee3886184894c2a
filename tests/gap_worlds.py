"""Random worlds in which gaps have strategies of their own: worlds of the whole language, with words strewn in."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from acep_approx.errors import QueryError
from acep_approx.query.shape import choice_of, gap_words, sequence_of
from acep_approx.query.syntax import Either, Pattern, Repeat, Sequence, Spaced
from tests.rich_worlds import STRATEGIES, RichWorld, rich_world, world_of

WORDS = (
    *("skip_till_next_match",) * 3,
    *("skip_till_any_match",) * 2,
    *("strict_contiguity",) * 2,
    "partition_contiguity",
)


def gap_world(number: int, *, chooses: bool = False) -> RichWorld:
    """The world of a number, with at least one word."""
    random = Random(number)
    while True:
        world = rich_world(random, chooses)
        if world.query.is_regex:
            continue
        contiguous = random.choice(("strict_contiguity", "partition_contiguity"))
        fewer = world.query.predicates[: random.choice((0, 0, 1, 3))]
        query = replace(world.query, strategy=random.choice(STRATEGIES), predicates=fewer)
        for _ in range(5):
            spaced = replace(query, pattern=with_words(query.pattern, random, contiguous))
            if query.equivalences and "contiguity" in query.strategy:
                spaced = replace(spaced, strategy=contiguous)
            try:
                found = world_of(spaced, world.rows)
            except QueryError as error:
                assert error.code in ("ACEP-Q091", "ACEP-Q092", "ACEP-Q093"), error
                continue
            if gap_words(spaced.pattern):
                return found


def with_words(pattern: Pattern, random: Random, contiguous: str) -> Pattern:
    """A pattern with some words; of the two that count events mostly one, as keys allow no other."""

    def word() -> str:
        chosen = random.choice(WORDS)
        return contiguous if "contiguity" in chosen else chosen

    def walk(node: Pattern, *, is_first: bool) -> Pattern:
        made = node
        match node:
            case Sequence(parts=parts):
                made = sequence_of([walk(part, is_first=is_first and not i) for i, part in enumerate(parts)])
            case Either(options=options):
                made = choice_of([walk(option, is_first=is_first) for option in options])
            case Repeat(part=part):
                between = word() if random.randrange(2) and node.most != 1 else None
                is_again = node.most != 1 and random.randrange(3) == 0
                made = replace(node, part=walk(part, is_first=is_first and not is_again), between=between)
        if is_first or random.randrange(3):
            return made
        return Spaced(word(), made)

    return walk(pattern, is_first=True)
