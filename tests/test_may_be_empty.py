"""Patterns that may be without any event, ``A* a``, ``(A{3} a)?``: a match has at least one."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from acep_approx import LimitError, QueryError, compile_query
from acep_approx.query import parse
from acep_approx.query.checks import lightest_match
from tests.cases import cases
from tests.match_tables import bindings
from tests.naive_selection import is_optional, reported_matches
from tests.rich_worlds import Dice, RichWorld, rich_world, stream
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force

PATTERNS = (
    "A* a[]",
    "(A{2} a)?",
    "SEQ(A? a, B? b)",
    "SEQ(~(B n), A* a[])",
    "SEQ(A* a[], ~(B n))",
    "SEQ(A? a, ~(C n), B? b)",
    "(A a | B* b[])",
    "(A{2} a[], B? b)*",
    "ALL(A? a, B* b[])",
)
CLAUSES = ("", "MAXIMAL", "NON OVERLAP", "FIRST MATCH", "CONSUME")


def test_no_match_is_empty() -> None:
    """Both engines find what brute force finds, and choose among it."""
    strategies = ("skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity")
    texts = list(product(PATTERNS, strategies, CLAUSES, ("3", "5 events")))
    in_cells = 0
    for seed, (pattern, strategy, clause, window) in enumerate(Random(5).sample(texts, cases(len(texts), 43))):
        least = lightest_match(parse(f"PATTERN {pattern} WITHIN 3").pattern, {})
        errors = f"ERRORS {least - 1}"
        text = f"PATTERN {pattern} WHERE {strategy} WITHIN {window} {errors} {clause}"
        world = RichWorld(parse(text), text, stream(Dice(Random(seed))))
        try:
            query = compile_query(text)
        except QueryError as error:
            assert error.code == "ACEP-Q919", text  # MAXIMAL of an endless list
            continue
        expected = reported_matches(world.query, world.rows, world.expected())
        found = bindings(query.match(world.table()).to_arrow(), world.query)
        assert list(found.items()) == list(expected.items()), (text, world.rows)
        in_cells += query.plan.engine == "cells"
        if clause:
            chooses_as_brute_force(world, MERGES[seed % 3], Random(seed))
        else:
            agrees(world)
    assert in_cells > 0


def test_in_any_mixture() -> None:
    """With conditions, keys, weights and what is listed; in any split."""
    found = 0
    for seed in range(cases(5000, 87)):
        world = rich_world(Random(seed), chooses=seed % 3 == 1, calls=True)
        if not is_optional(world.query.pattern):
            continue
        found += 1
        if seed % 3 == 1:
            chooses_as_brute_force(world, MERGES[seed % 2], Random(seed))
        elif seed % 3:
            agrees_in_any_split(world, MERGES[seed % 2], Random(seed))
        else:
            agrees(world)
    assert found > 2


@pytest.mark.parametrize(
    ("pattern", "weights", "least"),
    [
        ("A* a[]", {}, 1),
        ("(A{3} a)?", {}, 3),
        ("(A{3} a)?", {"a": 2}, 6),
        ("SEQ(A? a, B? b)", {"a": 3, "b": 2}, 2),
        ("SEQ(A? a, B b)", {"a": 3, "b": 2}, 2),
        ("(A? a, B{2} b){2}", {}, 4),
        ("(A? a){2}", {}, 1),
        ("SEQ(~(C n), (A{2} a | B* b[]))", {"b": 5}, 2),
        ("ALL(A? a, (B{2} b)?)", {"a": 3}, 2),
    ],
)
def test_errors_stay_below_the_lightest_match(pattern: str, weights: dict[str, int], least: int) -> None:
    """The lightest word that has an event: with so many missing, any event would be a match."""
    given = f" WEIGHTS ({', '.join(f'{name} = {weight}' for name, weight in weights.items())})" if weights else ""
    compile_query(f"PATTERN {pattern} WITHIN 5 ERRORS {least - 1}{given}")
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN {pattern} WITHIN 5 ERRORS {least}{given}")
    assert caught.value.code == "ACEP-Q040"


def test_regular_expressions_may_be_empty() -> None:
    """A match is a set of events, and has one."""
    events = [{"ts": at, "type": type_} for at, type_ in enumerate("abxa")]
    assert len(compile_query("a* WITHIN 5").match(events)) == 3
    assert len(compile_query("(ab)* WITHIN 5 ERRORS 1").match(events)) == 5
    assert len(compile_query("a? WITHIN 5").match([])) == 0


def test_what_has_no_event_at_all_is_refused() -> None:
    """No negation alone, and no repetition of nothing."""
    for pattern in ("~(B n)", "A{0} a"):
        with pytest.raises((QueryError, LimitError)):
            compile_query(f"PATTERN {pattern} WITHIN 5")
