"""Random worlds in which gaps have strategies of their own: worlds of the whole language, with words strewn in."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from acep_approx.errors import QueryError
from acep_approx.query.shape import all_of, choice_of, gap_words, negated_variables, sequence_of
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    Absent,
    AllOf,
    Atom,
    Attribute,
    Binary,
    Constant,
    Either,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
    Spaced,
    Strategy,
)
from tests.rich_worlds import STRATEGIES, RichWorld, rich_world, world_of

WORDS: tuple[Strategy, ...] = (
    *("skip_till_next_match",) * 3,
    *("skip_till_any_match",) * 2,
    *("strict_contiguity",) * 2,
    "partition_contiguity",
)


def gap_world(number: int, *, chooses: bool = False) -> RichWorld:
    """The world of a number, with at least one word; in some repetitions are greedy or reluctant."""
    random = Random(number)
    while True:
        world = rich_world(random, chooses)
        if world.query.is_regex:
            continue
        contiguous: Strategy = random.choice(("strict_contiguity", "partition_contiguity"))
        fewer = world.query.predicates[: random.choice((0, 0, 1, 3))]
        query = replace(world.query, strategy=random.choice(STRATEGIES), predicates=fewer)
        for _ in range(5):
            spaced = replace(query, pattern=with_words(query.pattern, random, contiguous))
            if query.equivalences and "contiguity" in query.strategy:
                spaced = replace(spaced, strategy=contiguous)
            ending = sorted(name for name in negated_variables(spaced.pattern) if name.startswith("u"))
            if ending and random.randrange(2):
                asked = Binary(">", Attribute(ending[0], None, "x"), Constant(1))
                spaced = replace(spaced, predicates=(*spaced.predicates, asked))
            try:
                found = world_of(spaced, world.rows)
            except QueryError as error:
                assert error.code in ("ACEP-Q091", "ACEP-Q092", "ACEP-Q093", "ACEP-Q094"), error
                continue
            if gap_words(spaced.pattern):
                return found


def with_words(pattern: Pattern, random: Random, contiguous: Strategy) -> Pattern:
    """A pattern with some words; of the two that count events mostly one, as keys allow no other."""

    def word() -> Strategy:
        chosen = random.choice(WORDS)
        return contiguous if "contiguity" in chosen else chosen

    has_preferences = not random.randrange(3)

    def until(node: Repeat) -> Absent | None:
        if has_preferences or node.most == 1 or random.randrange(4):
            return None
        ending.append(f"u{len(ending)}")
        return Absent((Atom(random.choice(("A", "B", "C", None)), ending[-1]),))

    ending: list[str] = []

    def walk(node: Pattern, *, is_first: bool) -> Pattern:
        made = node
        match node:
            case Absent() if random.randrange(2) and not is_first:
                return replace(node, directly=contiguous)
            case Sequence(parts=parts):
                walked = [walk(part, is_first=is_first and not i) for i, part in enumerate(parts)]
                if random.randrange(2) and not isinstance(walked[-1], Absent):  # words in one another
                    walked[1:] = [Spaced(word(), sequence_of(walked[1:]))]
                made = sequence_of(walked)
            case Either(options=options):
                made = choice_of([walk(option, is_first=is_first) for option in options])
            case AllOf(parts=parts):
                made = all_of([walk(part, is_first=is_first) for part in parts])
            case Repeat(part=part):
                between = word() if random.randrange(2) and node.most != 1 else None
                is_again = node.most != 1 and random.randrange(3) == 0
                inner = walk(part, is_first=is_first and not is_again)
                prefers = random.choice((None, "GREEDY", "RELUCTANT")) if has_preferences else None
                made = replace(node, part=inner, between=between, prefers=prefers, until=until(node))
        if is_first or random.randrange(3):
            return made
        return Spaced(word(), made)

    return walk(pattern, is_first=True)


def everywhere(pattern: Pattern, strategy: Strategy, *, is_first: bool = True) -> Pattern:
    """A pattern in which each gap has a word, the same."""
    match pattern:
        case Sequence(parts=parts):
            first = next((i for i, part in enumerate(parts) if not isinstance(part, Absent)), 0)
            made = [everywhere(part, strategy, is_first=is_first and i <= first) for i, part in enumerate(parts)]
            return sequence_of(made)
        case Either(options=options):
            return choice_of([everywhere(option, strategy, is_first=is_first) for option in options])
        case Repeat(part=part, most=most):
            inner = everywhere(part, strategy, is_first=is_first)
            return replace(pattern, part=inner, between=strategy if most != 1 else None)
        case Atom() if not is_first:
            return Spaced(strategy, pattern)
    return pattern


def only_any(query: QuerySyntax) -> QuerySyntax:
    """A query without conditions across events, and each of its words changed to ANY."""

    def changed(node: Pattern) -> Pattern:
        match node:
            case Sequence(parts=parts):
                return sequence_of(map(changed, parts))
            case Either(options=options):
                return choice_of(map(changed, options))
            case Spaced(part=part):
                return Spaced(DEFAULT_STRATEGY, changed(part))
            case Repeat(part=part, between=between):
                return replace(node, part=changed(part), between=between and DEFAULT_STRATEGY)
        return node

    return replace(query, pattern=changed(query.pattern), strategy=DEFAULT_STRATEGY, predicates=())
