"""All words of the language in any mixture, against brute force: each of them has tests of its own elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from acep_approx import compile_query
from acep_approx.errors import QueryError
from acep_approx.query.shape import atoms, negated_variables, walk, with_operands
from acep_approx.query.syntax import (
    Absent,
    AllOf,
    Atom,
    Attribute,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
    Spaced,
    Window,
)
from tests.cases import cases
from tests.gap_worlds import with_words
from tests.rich_worlds import STRATEGIES, Dice, RichWorld, rich_world, world_of
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force
from tests.smaller_worlds import holds_for
from tests.start_worlds import since_start
from tests.tied_worlds import simultaneous, tied

SENSELESS = {
    "ACEP-Q012": "a negation of the next event that is of several, or has a window",
    "ACEP-Q053": "SIMULTANEOUS beside what goes by an order",
    "ACEP-Q091": "a word for a gap before the first event",
    "ACEP-Q092": "a word for a gap before a negation",
    "ACEP-Q093": "a word for the gaps between rounds of one round",
    "ACEP-Q094": "what may not come next, or ends a repetition, compared with other events",
}
"""What the checks of a query refuse, and a mixture may say."""


def mixed_world(number: int, *, chooses: bool) -> RichWorld:
    """The world of a number: a query of the whole language, into which words are strewn."""
    random = Random(number)
    while True:
        world, dice = rich_world(random, chooses, calls=True), Dice(random)
        if world.query.is_regex:
            continue
        query, rows = strewn(world.query, dice), world.rows
        if not chooses and dice.chance(4):
            query, rows = simultaneous(query, dice), tied(rows, dice)
        try:
            return world_of(query, rows)
        except QueryError as error:
            assert error.code in SENSELESS, (error, query)


def varied(pattern: Pattern, dice: Dice, numbers: Iterator[int]) -> Pattern:
    """A pattern whose negations have windows of their own, or are of sequences."""
    if isinstance(pattern, Absent):
        if dice.chance(3):
            kinds = [dice.pick(("A", "B", "C", None)) for _ in range(dice.pick((1, 1, 2)))]
            more = tuple(Atom(kind, f"n{next(numbers)}x") for kind in kinds)
            pattern = replace(pattern, options=(*pattern.options, *more)[:3], in_order=True)
        if dice.chance(2):
            pattern = replace(pattern, within=Window(dice.pick((0, 1, 1, 2, 3, 30)), "ticks"))
        return pattern
    if isinstance(pattern, Repeat):  # what ends it is one event
        return replace(pattern, part=varied(pattern.part, dice, numbers))
    return with_operands(pattern, lambda part: varied(part, dice, numbers))


def strewn(query: QuerySyntax, dice: Dice) -> QuerySyntax:
    """A query with words for gaps, windows of negations, and what is asked of the start of a partition."""
    contiguous = dice.pick(("strict_contiguity", "partition_contiguity"))
    if dice.chance(2):
        strategy = dice.pick(STRATEGIES)
        strategy = contiguous if "contiguity" in strategy and query.equivalences else strategy
        query = replace(query, pattern=with_words(query.pattern, dice.random, contiguous), strategy=strategy)
    if dice.chance(2) and query.window.unit != "events":
        query = replace(query, pattern=varied(query.pattern, dice, count()))
    if query.selection.maximal and query.selection.depends_on_order:
        return query  # the oracle does not know when a match need not wait as its last event cannot be the first
    if dice.chance(4) and len(atoms(query.pattern)) <= 4:
        query = since_start(query, dice)
    return replace(query, at_start=dice.chance(6))


def words_of(query: QuerySyntax) -> set[str]:
    """Which of the words it has: to see that the mixture has all of them."""
    nodes: list[Pattern] = [*walk(query.pattern)]  # type: ignore[list-item]
    repeats = [node for node in nodes if isinstance(node, Repeat)]
    absent = [node for node in nodes if isinstance(node, Absent)]
    leaves = [leaf for one in query.predicates for leaf in walk(one)]
    found = {
        "ALL": any(isinstance(node, AllOf) for node in nodes),
        "gap": any(isinstance(node, Spaced) for node in nodes),
        "between": any(node.between for node in repeats),
        "prefers": any(node.prefers for node in repeats),
        "WITHIN": any(node.within for node in absent),
        "no sequence": any(node.in_order for node in absent),
        "not next": any(node.directly for node in absent),
        "UNTIL": any(node.until for node in repeats),
        "SINCE START": any(node.since_start for node in absent),
        "AT START": query.at_start,
        "a[2]": any(isinstance(leaf, Attribute) and isinstance(leaf.index, int) for leaf in leaves),
        "SIMULTANEOUS": query.is_simultaneous,
        "ERRORS": query.errors > 0,
        "MAXIMAL": query.selection.maximal,
        "negation in a sequence": bool(negated_variables(query.pattern)) and isinstance(query.pattern, Sequence),
    }
    return {name for name, there in found.items() if there}


def in_any_split(number: int) -> Callable[[RichWorld], None]:
    """A check whose cuts and restarts are the same for each world that it is given."""
    return lambda world: agrees_in_any_split(world, MERGES[number % 5], Random(number))


def as_chosen(number: int) -> Callable[[RichWorld], None]:
    """The same for clauses that choose."""

    def check(world: RichWorld) -> None:
        starts = bool(words_of(world.query) & {"AT START", "SINCE START"})
        is_ordered = not (starts and world.query.selection.maximal)
        chooses_as_brute_force(world, MERGES[number % 5], Random(number), is_ordered=is_ordered)

    return check


@pytest.mark.parametrize("part", range(4))
def test_all_matches(part: int) -> None:
    """Listed, detected and counted, however runs are merged; in any split, over restarts."""
    seen: Counter[str] = Counter()
    for number in range(part, cases(4000, 79), 4):
        world = mixed_world(number, chooses=False)
        seen.update(words_of(world.query))
        holds_for(world, agrees)
        holds_for(world, in_any_split(number))
    assert len(seen) >= 11, seen


@pytest.mark.parametrize("part", range(2))
def test_chosen_matches(part: int) -> None:
    """MAXIMAL, and what goes by the order of matches."""
    seen: Counter[str] = Counter()
    for number in range(part, cases(2000, 39), 2):
        world = mixed_world(100_000 + number, chooses=True)
        seen.update(words_of(world.query))
        holds_for(world, as_chosen(number))
    assert seen["MAXIMAL"] > 2


def test_by_whichever_engine_the_planner_chooses() -> None:
    """The cells and the walks of MAXIMAL give what the runs engine gives."""
    engines: Counter[str] = Counter()
    for number in range(cases(4000, 118)):
        world = mixed_world(200_000 + number, chooses=number % 2 == 0)
        try:
            chosen, by_runs = compile_query(world.text), compile_query(world.text, engine="runs")
        except QueryError:
            continue
        table = world.table()
        engines["maximal" if chosen.plan.walks_maximal else chosen.plan.engine] += 1
        assert chosen.match(table).to_arrow().equals(by_runs.match(table).to_arrow()), world.text
    assert engines["cells"] > 2
    assert engines["maximal"] > 0
