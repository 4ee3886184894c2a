"""Functions of one's own in patterns: on one event over columns, across events for runs; against brute force."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from acep_approx import DataError, Query, QueryError, afa_function, compile_query, event, seq
from acep_approx.query import parse, to_text
from acep_approx.query.checks import check
from acep_approx.query.clauses import QueryBuilder
from acep_approx.query.parser import with_functions
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression, FunctionCall, Unary
from tests.cases import cases
from tests.naive_conditions import PLAIN
from tests.rich_conditions import Names, condition
from tests.rich_worlds import Dice, RichWorld, rich_world, with_conditions
from tests.runs_engine import MERGES, agrees, chooses_as_brute_force, compiled


@afa_function(version=1, returns=float)
def gap(x: Any, y: Any) -> Any:
    """How far apart two numbers are."""
    return np.abs(x.astype(float) - y.astype(float))


@afa_function(version=1, returns=bool)
def alike(s: Any, t: Any) -> Any:
    """Whether two texts begin alike; NULL where one is."""
    return np.array([np.nan if None in (a, b) else a[:1] == b[:1] for a, b in zip(s, t, strict=True)])


@afa_function(version=1, returns=int)
def halved(x: Any) -> Any:
    """The half of a number, downwards."""
    return np.floor(x.astype(float) / 2)


FUNCTIONS = (gap, alike, halved)
PLAIN |= {
    "gap": lambda x, y: None if None in (x, y) else abs(float(x) - float(y)),
    "alike": lambda s, t: None if None in (s, t) else s[:1] == t[:1],
    "halved": lambda x: None if x is None else int(x // 2),
}


def calling(dice: Dice, names: Names) -> Expression:
    """A condition that calls a function."""
    variables = (*names.single, *names.kleene)

    def attribute(columns: tuple[str, ...]) -> Attribute:
        variable = dice.pick(variables)
        indexes = (None, "current", "previous", "first", "last", 2) if variable in names.kleene else (None,)
        return Attribute(variable, dice.pick(indexes), dice.pick(columns))

    def number() -> Expression:
        plain = attribute(("x", "y", "ts"))
        inner = FunctionCall("halved", (plain,)), Binary("+", plain, Constant(1)), Constant(2)
        return dice.pick((plain, plain, plain, *inner))  # type: ignore[no-any-return]

    match dice.pick(("gap", "gap", "alike", "halved", "or")):
        case "alike":
            found: Expression = FunctionCall("alike", (attribute(("s", "g")), attribute(("s", "g", "type"))))
            return dice.pick((found, Unary("NOT", found)))  # type: ignore[no-any-return]
        case "halved":
            return Binary(dice.pick(("=", "<=")), FunctionCall("halved", (attribute(("x", "y")),)), attribute(("x",)))
        case "or":
            first = attribute(("x",))
            test = Binary("<", FunctionCall("gap", (first, number())), Constant(1))
            return Binary("OR", test, condition(dice.pick, names))
    return Binary(dice.pick(("<", ">=")), FunctionCall("gap", (attribute(("x", "y")), number())), Constant(1.5))


def calling_world(seed: int, *, chooses: bool) -> RichWorld:
    """A world with conditions that call functions; seldom with others."""
    random = Random(seed)
    dice = Dice(random)
    world = rich_world(random, chooses=chooses)
    query = world.query
    predicates = with_conditions(query, dice, lambda names: calling(dice, names))
    made = with_functions(replace(query, predicates=predicates), FUNCTIONS)
    check(made)
    assert parse(to_text(made), FUNCTIONS) == made
    return RichWorld(made, to_text(made), world.rows)


@pytest.mark.parametrize("part", range(2))
def test_worlds_with_functions_as_by_brute_force(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed, counted and detected; chosen among; in any split."""
    def with_own(text: str, engine: str) -> Query:
        return compile_query(text, engine=engine, functions=FUNCTIONS)

    monkeypatch.setattr(f"{agrees.__module__}.compile_query", with_own)
    tried = 0
    for seed in range(part, cases(2000, 63), 2):
        try:
            world = calling_world(seed, chooses=bool(part))
        except QueryError:  # it has an index where none can stand, or is about no event
            continue
        if compiled(world) is None:
            continue
        tried += 1
        if part:
            chooses_as_brute_force(world, MERGES[seed % 3], Random(seed))
        else:
            agrees(world)
    assert tried > cases(2000, 63) // 8


VALUES = (("A", 1), ("B", 2), ("B", 9), ("B", None))
EVENTS = [{"ts": at, "type": type_, "x": x} for at, (type_, x) in enumerate(VALUES)]


def test_text_builder_and_what_is_returned() -> None:
    """One event alone is computed by the cells; RETURN calls them, too."""
    text = "PATTERN SEQ(A a, B b)\nWHERE gap(a.x, b.x) < 3\nWITHIN 9\nRETURN gap(b.x, 10) AS far"
    query = compile_query(text, functions=FUNCTIONS)
    assert query.plan.engine == "runs"
    assert query.match(EVENTS).to_arrow()["far"].to_pylist() == [8.0]
    built = seq(event("A", "a"), event("B", "b")).where("gap(a.x, b.x) < 3", *FUNCTIONS).within(9)
    assert isinstance(built, QueryBuilder)
    assert len(compile_query(built).match(EVENTS)) == 1
    one = compile_query("PATTERN SEQ(A a, B b) WHERE halved(b.x) > 3 WITHIN 9", functions=FUNCTIONS)
    assert one.plan.engine == "cells"
    assert [match["b"] for match in one.match(EVENTS)] == [2]
    regex = compile_query("ab DEFINE a AS type = 'A', b AS halved(x) = 1 WITHIN 9", functions=FUNCTIONS)
    assert len(regex.match(EVENTS)) == 1


def test_a_state_that_another_version_saved_is_refused() -> None:
    """As in automata."""
    text = "PATTERN SEQ(A a, B b) WHERE gap(a.x, b.x) < 3 WITHIN 9"
    matcher = compile_query(text, functions=[gap]).matcher()
    matcher.push(EVENTS[:1])
    state = matcher.state_bytes()
    assert compile_query(text, functions=[gap]).from_state(state).push(EVENTS[1:]).num_rows == 1
    other = afa_function(version=2, returns=float, name="gap")(lambda x, y: x - y)
    with pytest.raises(DataError):
        compile_query(text, functions=[other]).from_state(state)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("nothing(a.x) > 1", "ACEP-Q011"),
        ("Gap(a.x, b.x) > 1", "ACEP-Q011"),
        ("gap(a.x + b.x, 1) > 1", "ACEP-Q177"),
        ("gap(sum(c[].x), 1) > 1", "ACEP-Q177"),
        ("gap(a.x, b.x)", "ACEP-Q063"),
        ("gap(a.x, b.y) > 1", "ACEP-Q060"),
    ],
)
def test_mistakes(asked: str, code: str) -> None:
    """With a hint."""
    text = f"PATTERN SEQ(A a, C* c[], B b) WHERE {asked} WITHIN 9"
    with pytest.raises(QueryError) as caught:
        compile_query(text, functions=FUNCTIONS).match(EVENTS).to_arrow()
    assert caught.value.code == code
    assert caught.value.hint


def test_names() -> None:
    """A name stands for one function, and for none of the language."""
    other = afa_function(version=1, returns=float, name="gap")(lambda x, y: x - y)
    for functions, code in (((gap, other), "Q073"), ((renamed(gap, "Lower"),), "Q178")):
        with pytest.raises(QueryError) as caught:
            parse("PATTERN SEQ(A a, B b) WHERE a.x > 1 WITHIN 9", functions)
        assert caught.value.code == f"ACEP-{code}"


def renamed(function: Any, name: str) -> Any:
    """The same function by another name."""
    return afa_function(version=1, returns=float, name=name)(function.compute)
