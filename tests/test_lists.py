"""Columns of lists: ``x IN a.ips`` on one event and across events, ``length(a.ips)``; against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import QueryError, compile_query, compile_rules
from acep_approx.engines.runs.membership import members
from acep_approx.kernels.runs.vm import NULL
from acep_approx.query import parse, to_text
from acep_approx.query.evaluate import evaluate, spread
from acep_approx.query.syntax import Apply, Attribute, Binary, Constant, Expression, Unary
from tests.cases import cases
from tests.naive_functions import is_in
from tests.rich_conditions import Names, condition
from tests.rich_worlds import Dice, RichWorld, Row, rich_world, stream, with_conditions, world_of
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force

LISTS = {"texts": pa.list_(pa.string()), "wholes": pa.list_(pa.int64()), "floats": pa.large_list(pa.float64())}
VALUES: dict[str, Sequence[Any]] = {
    "texts": ("u", "v", "uv", "", None),
    "wholes": (1, 2, 3, 0, None),
    "floats": (1.0, 0.5, 2.5, None, float("nan")),
}
NUMBERS = ("x", "y", "ts")


@dataclass(frozen=True)
class ListWorld(RichWorld):
    """A world whose events have lists beside other attributes."""

    def table(self) -> pa.Table:
        """The stream as columns."""
        found = super().table()
        for name, type_ in LISTS.items():
            found = found.append_column(name, pa.array([row[name] for row in self.rows], type_))
        return found


def about_lists(dice: Dice, names: Names) -> Expression:
    """A value of one event, or a constant, that is in a list of one event, or not; or how long a list is."""
    variables = (*names.single, *names.kleene)

    def attribute(columns: Sequence[str]) -> Attribute:
        variable = dice.pick(variables)
        indexes = (None, "current", "previous", "first", "last", 2) if variable in names.kleene else (None,)
        return Attribute(variable, dice.pick(indexes), dice.pick(columns))

    column = dice.pick(("texts", "texts", "wholes", "floats"))
    several = attribute((column,))
    if column == "texts":
        text = attribute(("s", "g"))
        items: tuple[Expression, ...] = (text, text, Apply("lower", (text,)), Constant(dice.pick(("u", "", None))))
    else:
        number = attribute(NUMBERS)
        items = (number, number, Binary("+", number, Constant(1)), Constant(dice.pick((1, 2, 0.5, None))))
    match dice.pick(("in", "in", "in", "not", "length", "or")):
        case "length":
            return Binary(dice.pick((">", "=", "<=")), Apply("length", (several,)), attribute(("x",)))
        case "not":
            return Unary("NOT", Apply("IN", (dice.pick(items), several)))
        case "or":
            return Binary("OR", Apply("IN", (dice.pick(items), several)), condition(dice.pick, names))
    return Apply("IN", (dice.pick(items), several))


def with_lists(dice: Dice, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows with a list of each kind, which may be empty or NULL."""

    def some(values: Sequence[Any]) -> list[Any] | None:
        return None if dice.chance(8) else [dice.pick(values) for _ in range(dice.pick((2, 1, 3, 2, 0)))]

    return tuple(row | {name: some(values) for name, values in VALUES.items()} for row in rows)


def list_world(seed: int, *, chooses: bool = False) -> ListWorld:
    """A world with conditions on lists; seldom with others."""
    random = Random(seed)
    dice = Dice(random)
    world = rich_world(random, chooses=chooses)
    query, rows = world.query, world.rows
    predicates = with_conditions(query, dice, lambda names: about_lists(dice, names))
    found = world_of(replace(query, predicates=predicates), with_lists(dice, rows))
    return ListWorld(found.query, found.text, found.rows)


@pytest.mark.parametrize("part", range(3))
def test_worlds_with_lists_as_by_brute_force(part: int) -> None:
    """Listed, counted and detected; chosen among; in any split, over restarts."""
    tried = 0
    for seed in range(part, cases(3000, 82), 3):
        try:
            world = list_world(seed, chooses=part == 2)
        except QueryError:  # it has an index where none can stand, or is about no event
            continue
        tried += 1
        if part == 0:
            agrees(world)
        elif part == 1:
            agrees_in_any_split(world, MERGES[seed % len(MERGES)], Random(seed))
        else:
            chooses_as_brute_force(world, MERGES[seed % 3], Random(seed))
    assert tried > cases(3000, 82) // 8


@pytest.mark.parametrize("column", LISTS)
def test_both_evaluators_are_plain_python(column: str) -> None:
    """Over columns with Arrow, and over words with the block machine; of numbers as floats, too."""
    dice = Dice(Random(7))
    lists = [
        None if dice.chance(6) else [dice.pick(VALUES[column]) for _ in range(dice.pick((0, 1, 2, 3)))]
        for _ in range(300)
    ]
    items = [dice.pick(VALUES[column][:4] if column != "floats" else VALUES["wholes"]) for _ in lists]
    several = pa.array([[0], *lists] if column != "texts" else [["x"], *lists], LISTS[column])[1:]
    item = pa.array(items)
    columns = {"item": item, "several": several}
    call = Apply("IN", (Attribute(None, None, "item"), Attribute(None, None, "several")))
    expected = [is_in(one, other) for one, other in zip(items, lists, strict=True)]
    assert evaluate(call, lambda leaf: columns[leaf.name]).to_pylist() == expected
    constant = Apply("IN", (Constant(items[0]), call.arguments[1]))
    found = spread(evaluate(constant, lambda leaf: columns[leaf.name]), len(lists))
    assert found.to_pylist() == [is_in(items[0], other) for other in lists]


def test_words_of_numbers_and_truths() -> None:
    """A whole number is in a list of floats, and the other way round; NaN is NULL."""
    texts = ["[1,2]", "[1.0,NaN]", "[]", "[true,null]"]

    def found(items: list[int], kind: Any, codes: list[int]) -> list[int]:
        return members(np.array(items), kind, np.array(codes), texts).tolist()

    floats = np.array([1.0, 2.5, float("nan")]).view(np.int64).tolist()
    assert found(floats, "float", [0, 0, 2]) == [1, 0, 0]
    assert found([1, 2, NULL, NULL], "int", [1, 1, 1, 2]) == [1, NULL, NULL, 0]
    assert found([1, 0], "truth", [3, 3]) == [1, NULL]
    assert found([1], "int", [NULL]) == [NULL]


DIRECT = (
    ("SEQ(B b, A+ a[])", "b.s IN a[a.LEN].texts"),
    ("SEQ(B b, A+ a[])", "NOT b.s IN a[a.LEN].texts"),
    ("SEQ(A+ a[], B b)", "NOT b.x IN a[1].floats"),
    ("SEQ(A a, B+ b[])", "NOT b.y IN a.wholes"),
    ("SEQ(A a, ~(B n), ANY b)", "NOT n.s IN a.texts"),
    ("SEQ(A+ a[], ANY+ b[])", "b.s IN a[i].texts OR b.x > 2"),
)


@pytest.mark.parametrize(("pattern", "asked"), DIRECT)
def test_conditions_across_events(pattern: str, asked: str) -> None:
    """Also those that only complete matches can be tested with; an unknown value is not known to be no item."""
    found = 0
    for seed in range(cases(400, 28)):
        strategy = ("skip_till_any_match", "partition_contiguity", "skip_till_next_match")[seed % 3]
        text = f"PATTERN {pattern} WHERE {strategy} {{ {asked} }} WITHIN 7"
        world = ListWorld(parse(text), text, with_lists(Dice(Random(seed)), stream(Dice(Random(seed)))))
        agrees(world)
        found += len(world.expected())
    assert found > 3


EVENTS = [
    {"ts": 0, "type": "A", "ips": ["p", "q"], "ip": "p"},
    {"ts": 1, "type": "B", "ips": None, "ip": "q"},
    {"ts": 2, "type": "B", "ips": [], "ip": "r"},
]


def test_a_list_that_is_compared_names_in() -> None:
    """What people of other engines write first."""
    for asked, hint in (("a.ips = b.ip", "b.ip IN a.ips"), ("b.ip != a.ips", "b.ip NOT IN a.ips")):
        with pytest.raises(QueryError) as caught:
            compile_query(f"PATTERN SEQ(A a, B b) WHERE {asked} WITHIN 9").match(EVENTS).to_arrow()
        assert caught.value.code == "ACEP-Q061"
        assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("b.ip IN a.ip", "ACEP-Q176"),
        ("b.ips IN a.ips", "ACEP-Q176"),
        ("b.ts IN a.ips", "ACEP-Q176"),
        ("b.ips = a.ips", "ACEP-Q061"),
        ("lower(a.ips) = 'p'", "ACEP-Q173"),
        ("coalesce(a.ips, b.ips) IS NULL", "ACEP-Q173"),
        ("least(a.ts, b.ts) IN a.ips", "ACEP-Q177"),
        ("count(c[]) IN a.ips", "ACEP-Q177"),
        ("1 + 2 IN a.ips", "ACEP-Q177"),
        ("max(c[].ips) = 3", "ACEP-Q064"),
    ],
)
def test_mistakes(condition: str, code: str) -> None:
    """With a hint."""
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN SEQ(A a, C* c[], B b) WHERE {condition} WITHIN 9").match(EVENTS).to_arrow()
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("item", ["NULL", "a.nothing"])
def test_what_is_null_is_in_no_empty_list(item: str) -> None:
    """It may be in one that has values; in a column of which no event has a value nothing is known."""
    lists = pa.array([[], [1], None], pa.list_(pa.int64()))
    table = pa.table({"ts": [1, 2, 3], "type": ["A"] * 3, "some": lists, "nothing": pa.nulls(3)})

    def ends(condition: str) -> list[int]:
        found = compile_query(f"PATTERN A a WHERE {condition} WITHIN 5").match(table)
        return [match.end for match in found]

    assert (ends(f"{item} IN a.some"), ends(f"NOT {item} IN a.some")) == ([], [1])
    assert (ends(f"{item} IN a.nothing"), ends("NOT 1 IN a.nothing")) == ([], [])


def test_rules_and_cel_have_no_lists() -> None:
    """They say so."""
    rule = "TABLE t (k text, n int, KEY (k)) RULE r ON PATTERN SEQ(A a, B b) WHERE b.ip IN a.ips WITHIN 5"
    rule += " DO UPDATE t SET n = 3 AT (b.ip) END"
    for compile_it, text in ((compile_rules, rule), (compile_query, "SELECT * FROM FILTER {ip IN ips}(A)")):
        with pytest.raises(QueryError) as caught:
            compile_it(text)  # type: ignore[operator]
        assert caught.value.code == "ACEP-Q175"


def test_what_is_returned() -> None:
    """As other values; and a condition prints as it is written."""
    outputs = "RETURN b.ip IN a.ips AS known, length(b.ips) AS some"
    text = f"PATTERN SEQ(A a, B b)\nWHERE (NOT b.ip IN a.ips OR 'p' IN a.ips)\nWITHIN 9\n{outputs}"
    assert to_text(parse(text)) == text
    assert compile_query(text).plan.engine == "runs"
    found = compile_query(text).match(EVENTS).to_arrow().select(["known", "some"]).to_pylist()
    assert found == [{"known": True, "some": None}, {"known": False, "some": 0}]
    one = compile_query("PATTERN SEQ(A a, B b) WHERE 'p' IN a.ips AND a.ip IN a.ips AND length(a.ips) = 2 WITHIN 9")
    assert one.plan.engine == "cells"
    assert len(one.match(EVENTS)) == 2
