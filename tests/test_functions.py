"""Functions of the query language: columns as in plain Python; the kernel rounds as Arrow does; no word is reserved."""

from __future__ import annotations

import math
import struct
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import afa_function, compile_query
from acep_approx.kernels.arithmetic import floor_of, rounded
from acep_approx.query.evaluate import evaluate
from acep_approx.query.functions import FUNCTIONS
from acep_approx.query.parser import parse, parse_expression
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import Expression
from tests.naive_expressions import value_of
from tests.rich_worlds import Dice, RichWorld, stream

SIGNS = ("a", "b", "A", "%", "_", "\\", "\n", ".", "(", "é", " ")
PATTERNS = ("a", "b", "%", "_", "\n", ".", "\\%", "\\_", "\\\\", "é", "(", "A")


def test_like_is_what_python_finds() -> None:
    """Random patterns with escapes on random texts, line breaks among them; a column of NULLs is NULL."""
    dice = Random(1)
    for _ in range(500):
        pattern = "".join(dice.choices(PATTERNS, k=dice.randrange(5)))
        texts = [None, *("".join(dice.choices(SIGNS, k=dice.randrange(5))) for _ in range(20))]
        column = pa.array(texts)
        for word in ("LIKE", "ILIKE"):
            expression = parse_expression(f"a.s {word} '{pattern}'")
            found = over(expression, column)
            assert found == [value_of(expression, Leaf(text)) for text in texts], (word, pattern)


def over(expression: Expression, column: pa.Array) -> list[Any]:
    """What an expression gives where each attribute has the values of a column."""
    return evaluate(expression, lambda _: column).to_pylist()


class Leaf(dict[Any, Any]):
    """One value for every leaf."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __missing__(self, leaf: Any) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("substr(a.s, 2)", ["bÉ ", "", None]),
        ("substr(a.s, 1, 2)", ["Ab", "x", None]),
        ("substr(a.s, 9, 2)", ["", "", None]),
        ("length(a.s)", [4, 1, None]),
        ("lower(a.s)", ["abé ", "x", None]),
        ("UPPER(trim(a.s))", ["ABÉ", "X", None]),
        ("contains(a.s, 'b') OR starts_with(a.s, 'x')", [True, True, None]),
        ("ends_with(a.s, ' ')", [True, False, None]),
        ("matches(a.s, '^[A-Z]b')", [True, False, None]),
        ("coalesce(a.s, '-')", ["AbÉ ", "x", "-"]),
        ("CASE WHEN a.s = 'x' THEN 1 WHEN a.s > 'x' THEN 2 END", [None, 1, None]),
    ],
)
@pytest.mark.parametrize("is_encoded", [False, True])
def test_texts(expression: str, expected: list[Any], is_encoded: bool) -> None:
    column = pa.array(["AbÉ ", "x", None])
    assert over(parse_expression(expression), column.dictionary_encode() if is_encoded else column) == expected


@pytest.mark.parametrize("call", ["least(a.x, a.y)", "greatest(NULL, a.x)", "coalesce(a.x, NULL)", "abs(a.x)"])
def test_columns_of_nothing_but_nulls_keep_an_open_type(call: str) -> None:
    """Their type may become known with a later batch."""
    for text in (call, f"CASE WHEN a.x > 1 THEN a.x ELSE {call} END"):
        assert evaluate(parse_expression(text), lambda _: pa.nulls(2)).equals(pa.nulls(2))


def test_the_kernel_rounds_as_columns_are_rounded() -> None:
    """Numbers of every size, infinite ones, and those beside a half."""
    dice = Random(3)
    edges = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 0.49999999999999994, 2.0**52, 2.0**51 + 0.5, math.inf, -math.inf, 1.005]
    bits = (struct.unpack("d", dice.randbytes(8))[0] for _ in range(2000))
    values = [*edges, *(dice.uniform(-10, 10) for _ in range(2000)), *(one for one in bits if not math.isnan(one))]
    column = pa.array(values)
    for digits in (0, 1, 2, 7, 15):
        found = FUNCTIONS["round"].compute(column, digits).to_pylist()
        assert found == [rounded(value, float(10**digits)) for value in values]
    assert FUNCTIONS["floor"].compute(column).to_pylist() == [floor_of(value) for value in values]
    assert FUNCTIONS["ceil"].compute(column).to_pylist() == [-floor_of(-value) for value in values]


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(case a, lower b, like like) WHERE like.like LIKE 'x' AND a.case = b.then WITHIN 5",
        "ab WITHIN 5 DEFINE a AS case > 1, b AS end = 2 AND like LIKE 'x' AND lower = 1",
        "PATTERN AUTOMATON (case -> end ON A case WHEN case.x > 1 end -> then ON B FINAL then) WITHIN 5",
        "PATTERN AUTOMATON (REGISTERS n = 1 q -> case ON A WHEN x > n case -> like ON B SET n = n FINAL like) WITHIN 5",
    ],
)
def test_no_word_is_reserved(text: str) -> None:
    assert parse(to_text(parse(text))) == parse(text)


def test_in_automata_and_in_what_is_returned() -> None:
    """LIKE of events and CASE of registers, while runs go on; functions of aggregates of complete matches."""
    rows = [{"ts": 1, "type": "A", "s": "Ab", "x": 1.25}, {"ts": 2, "type": "B", "s": None, "x": 2.5}]
    text = """PATTERN AUTOMATON (
      REGISTERS low = 0.0
      q -> r ON A a WHEN a.s LIKE 'A%' SET low = a.x
      r -> f ON B b WHEN CASE WHEN b.x > low THEN 1 ELSE 0 END = 1 SET low = CASE WHEN low > 1 THEN 5 ELSE low END
      FINAL f
    ) WITHIN 5 RETURN low, coalesce(b.s, a.s) AS s"""
    with_words = text.replace("coalesce(b.s, a.s)", "CASE WHEN b.s IS NULL THEN a.s ELSE b.s END")
    found = compile_query(with_words).match(rows).to_arrow().select(["low", "s"]).to_pylist()
    assert found == [{"low": 5.0, "s": "Ab"}]
    returned = "lower(max(a[].s)) AS s, abs(min(a[].x) - max(a[].x)) AS d, round(avg(a[].x), 1) AS m"
    query = compile_query(f"PATTERN ANY{{2}} a[] WITHIN 5 RETURN {returned}")
    assert query.match(rows).to_arrow().select(["s", "d", "m"]).to_pylist() == [{"s": "ab", "d": 1.25, "m": 1.9}]


def test_in_automata_functions_are_those_of_the_language() -> None:
    """They give what they give in a pattern; one of the user's that has the name goes first, as ever."""
    pattern = "SEQ(A x, B y) WHERE lower(x.s) = 'u' AND abs(y.x - x.x) < 2 AND length(y.s) > 0 WITHIN 20"
    machine = """AUTOMATON (
      REGISTERS low INT
      a -> b ON A x WHEN Lower(x.s) = 'u' SET low = x.x
      b -> c ON B y WHEN abs(y.x - low) < 2 AND length(y.s) > 0
      IGNORE b
      FINAL c
    ) WITHIN 20"""
    table = RichWorld(parse("PATTERN A a WITHIN 5"), "", tuple(row for n in range(9) for row in later(n))).table()
    found = [(m["x"], m["y"]) for m in compile_query(f"PATTERN {pattern}").match(table)]
    assert [(m["x"], m["y"]) for m in compile_query(f"PATTERN {machine}").match(table)] == found
    assert found
    own = afa_function(version=1, returns=int, name="length")(lambda s: np.zeros(len(s)))
    assert not compile_query(f"PATTERN {machine}", functions=[own]).match(table)


def later(seed: int) -> list[dict[str, Any]]:
    """A random stream that begins after those of the seeds before."""
    return [row | {"ts": row["ts"] + 30 * seed} for row in stream(Dice(Random(seed)))]


def test_times_keep_their_type() -> None:
    times = pa.array([5, None], pa.timestamp("us", "UTC"))
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "w": times})
    text = "PATTERN SEQ(A a, B b) WHERE coalesce(b.w, a.w) = a.w WITHIN 5 RETURN coalesce(b.w, a.w) AS w"
    query = compile_query(text)
    assert query.match(table).to_arrow()["w"].combine_chunks().equals(times[:1])
