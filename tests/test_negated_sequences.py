"""~(B b, C c), no sequence between the neighbours: random worlds against brute force, and the language."""

from __future__ import annotations

from random import Random

import pytest

from acep_approx import compile_query
from acep_approx.errors import QueryError
from acep_approx.query.builder import absent, event, seq
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from tests.absence_worlds import sequence_world
from tests.cases import cases
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force


@pytest.mark.parametrize("part", range(4))
def test_worlds_as_by_brute_force(part: int) -> None:
    """Listed in order, counted and detected; in any split, over restarts."""
    tried = 0
    for seed in range(part, cases(12_000, 277), 4):
        world = sequence_world(seed)
        if world is not None:
            agrees(world)
            agrees_in_any_split(world, MERGES[seed % len(MERGES)], Random(seed))
            tried += 1
    assert tried > 3


def test_beside_clauses_that_choose() -> None:
    """Of the matches that are left."""
    tried = 0
    for seed in range(cases(3000, 118)):
        world = sequence_world(seed, chooses=True)
        if world is not None:
            chooses_as_brute_force(world, MERGES[seed % len(MERGES)], Random(seed))
            tried += 1
    assert tried > 2


def found(text: str, stream: str) -> bool:
    """Whether a query finds something; the events are letters."""
    return bool([*compile_query(text).match([{"ts": i, "type": type_} for i, type_ in enumerate(stream)])])


@pytest.mark.parametrize(
    ("pattern", "stream", "expected"),
    [
        ("SEQ(A a, ~(B b, C c), D d)", "ABD", True),
        ("SEQ(A a, ~(B b, C c), D d)", "ACBD", True),
        ("SEQ(A a, ~(B b, C c), D d)", "ABXCD", False),
        ("SEQ(A a, ~(B b, C c), D d)", "BACD", True),
        ("SEQ(~(B b, C c), D d)", "BXCD", False),
        ("SEQ(~(B b, C c), D d)", "CBD", True),
        ("SEQ(A a, ~(B b, C c))", "ABX", True),
        ("SEQ(A a, ~(B b, C c))", "ABC", False),
        ("SEQ(A a, ~(B b, B c, B e), D d)", "ABBD", True),
        ("SEQ(A a, ~(B b, B c, B e), D d)", "ABBBD", False),
    ],
)
def test_the_order_is_asked_for(pattern: str, stream: str, expected: bool) -> None:
    """Between, before and after."""
    assert found(f"PATTERN {pattern} WITHIN 9", stream) is expected


def test_conditions_may_compare_the_events_of_one_sequence() -> None:
    """No pair with the same x; without an event of a variable that they name, none qualifies."""
    query = compile_query("PATTERN SEQ(A a, ~(B b, C c), D d) WHERE b.x = c.x AND c.x > a.x WITHIN 9")

    def finds(*xs: int) -> bool:
        pairs = enumerate(zip("ABCD", xs, strict=True))
        return bool([*query.match([{"ts": i, "type": type_, "x": x} for i, (type_, x) in pairs])])

    assert not finds(1, 2, 2, 0)
    assert finds(1, 2, 3, 0)
    assert finds(5, 2, 2, 0)


def test_why_names_what_ends_a_sequence() -> None:
    """Not an event that none came before."""
    query = compile_query("PATTERN SEQ(A a, ~(B b, C c), D d) WITHIN 9")
    events = [{"ts": i, "type": type_} for i, type_ in enumerate("ACBCD")]
    answer = str(query.why(events, around=4))
    assert "c came, which must not happen (row 3, 3)" in answer
    assert answer.count("which must not happen") == 1


def test_the_builder_and_the_printer() -> None:
    """The same from Python; explain says why it takes runs."""
    text = "PATTERN SEQ(A a, ~(B b, C c) WITHIN 5, D d)\nWITHIN 9"
    none = absent(event("B", "b"), event("C", "c"), in_order=True, within=5)
    assert to_text(seq(event("A", "a"), none, event("D", "d")).within(9).syntax()) == text == to_text(parse(text))
    assert "B, then C" in compile_query(text).explain()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SEQ(A a, ~(B b, C+ c)) WITHIN 5", "ACEP-Q012"),
        ("SEQ(A a, ~(B b, (C c | D d)), D e) WITHIN 5", "ACEP-Q012"),
        ("SEQ(~(B b, C c) SINCE START, D d) WITHIN 5", "ACEP-Q012"),
        ("SEQ(A a, ~(B b | C c), D d) WHERE b.x = c.x WITHIN 5", "ACEP-Q052"),
        ("SEQ(A a, ~(B b, C c), D d, ~(B e, C f)) WHERE b.x = f.x WITHIN 5", "ACEP-Q052"),
    ],
)
def test_what_is_refused(text: str, code: str) -> None:
    """With a code."""
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN {text}")
    assert caught.value.code == code
