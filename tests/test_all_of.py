"""``ALL(A a, B b)``: all orders of its parts, in both engines, with errors, strategies, negations, and chosen among."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from random import Random

import pytest

from acep_approx import QueryError, compile_query
from acep_approx.query import parse, to_text
from acep_approx.query.shape import choice_of, sequence_of
from acep_approx.query.syntax import AllOf, Pattern
from tests.cases import cases
from tests.naive import expected_matches
from tests.naive_selection import reported_matches
from tests.rich_worlds import Dice, RichWorld, rich_world, stream
from tests.runs_engine import MERGES, agrees, chooses_as_brute_force

PARTS = ("A a", "B{} b", "(A c | C d)", "SEQ(A e, ~(B n), ANY f)", "ANY? g", "(A h, B i)+")
AROUND = ("{}", "SEQ(A x, {})", "SEQ({}, ~(C m), ANY z)", "SEQ(~(C m), {})", "{}{{1,2}}", "({} | B y)")


def written_out(pattern: Pattern) -> Pattern:
    """A choice of all orders in the place of each ALL that is the pattern itself or a part of its sequence."""
    if isinstance(pattern, AllOf):
        return choice_of([sequence_of(order) for order in permutations(pattern.parts)])
    if hasattr(pattern, "parts"):
        return sequence_of(map(written_out, pattern.parts))
    return pattern


def queries() -> Iterator[str]:
    """Patterns with one ALL of two or three parts, and what stands around it; a few clauses."""
    for number, (parts, around) in enumerate(product([*permutations(PARTS, 2), *permutations(PARTS, 3)], AROUND)):
        dice = Random(number)
        inner = f"ALL({', '.join(parts)})".replace("{}", dice.choice(("", "+", "{2}")))
        where = dice.choice(("", "", "skip_till_next_match", "partition_contiguity", "strict_contiguity"))
        window, errors = dice.choice(("4", "6", "9", "5 events")), dice.choice((0, 1))
        where = f" WHERE {where}" if where else ""
        yield f"PATTERN {around.format(inner)}{where} WITHIN {window} ERRORS {errors}"


def test_all_orders_are_found() -> None:
    """By both engines, as by brute force, which finds what it finds in all orders written out."""
    texts = list(queries())
    ran_in_cells = 0
    for seed, text in enumerate(Random(1).sample(texts, cases(len(texts), 35))):
        query = parse(text)
        assert parse(to_text(query)) == query
        rows = stream(Dice(Random(seed)))
        try:
            compile_query(text)
        except QueryError as error:
            assert error.code == "ACEP-Q040", text
            continue
        world = RichWorld(query, text, rows)
        spelled = replace(query, pattern=written_out(query.pattern))
        if query.strategy != "skip_till_next_match":  # an order written out waits for its next part, ALL for any
            assert world.expected() == expected_matches(spelled, rows), text
        agrees(world)
        if compile_query(text).plan.engine == "cells":
            ran_in_cells += 1
            matches = compile_query(text).match(world.table())
            assert matches.to_arrow().equals(compile_query(text, engine="runs").match(world.table()).to_arrow()), text
    assert ran_in_cells > 0


@pytest.mark.parametrize("part", range(2))
def test_in_any_mixture(part: int) -> None:
    """With conditions across events, keys and weights; and which matches are listed."""
    found = 0
    for seed in range(part, cases(4000, 63), 2):
        world = rich_world(Random(seed), chooses=bool(part), calls=True)
        if "ALL(" not in world.text:
            continue
        found += 1
        if part:
            chooses_as_brute_force(world, MERGES[seed % 3], Random(seed))
        else:
            agrees(world)
    assert found > 0


def test_maximal_takes_the_most_whatever_the_order() -> None:
    """Listed in the cells, which never make what is contained in others."""
    for seed in range(cases(300, 25)):
        text = "PATTERN ALL(A+ a[], B b) WITHIN 6 ERRORS 1 MAXIMAL"
        world = RichWorld(parse(text), text, stream(Dice(Random(seed))))
        matches = compile_query(text).match(world.table())
        expected = reported_matches(world.query, world.rows, world.expected())
        assert len(matches) == len(expected), world.rows


def test_all_is_no_reserved_word() -> None:
    """A type, a variable, an attribute; with a bracket behind it, in the place of a part, it is ALL."""
    query = parse("PATTERN SEQ(ALL all, ALL+ ALL[], all(A a, B b)) WHERE all.ALL = 1 WITHIN 5")
    assert to_text(query) == "PATTERN SEQ(ALL all, ALL+ ALL[], ALL(A a, B b))\nWHERE all.ALL = 1\nWITHIN 5"
    assert to_text(parse("PATTERN ALL(A a) WITHIN 5")) == "PATTERN A a\nWITHIN 5"
    assert isinstance(parse("PATTERN ALL(ALL(A a, B b), C c) WITHIN 5").pattern.parts[0], AllOf)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("ALL(A a, ~(B b))", "ACEP-Q097"),
        (f"ALL({', '.join(f'A v{i}' for i in range(10))})", "ACEP-Q096"),
        (f"ALL({', '.join(f'A v{i}' for i in range(400))})", "ACEP-Q096"),
        ("ALL(A a | B b)", "ACEP-Q001"),
        ("ALL(A a, B a)", "ACEP-Q031"),
        ("SEQ(A a, ~(ALL(B b, C c)))", "ACEP-Q012"),
    ],
)
def test_what_is_refused(pattern: str, code: str) -> None:
    """With a hint."""
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN {pattern} WITHIN 5")
    assert caught.value.code == code
    assert caught.value.hint


def test_nine_events_in_any_order() -> None:
    """A state for each set of them, where sequences would be 362,880."""
    events = [{"ts": i, "type": f"T{i}"} for i in (4, 0, 8, 2, 1, 7, 3, 6, 5)]
    query = compile_query(f"PATTERN ALL({', '.join(f'T{i} v{i}' for i in range(9))}) WITHIN 10")
    assert query.plan.automaton.size == 2**9
    (match,) = query.match([dict(event, ts=at) for at, event in enumerate(events)])
    assert [name for name, _ in sorted(match.values.items(), key=lambda one: one[1])] == [
        f"v{event['type'][1:]}" for event in events
    ]
