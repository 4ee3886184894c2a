"""Vectorised evaluation against the naive row-by-row evaluator, and SQL's truth tables by hand."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.errors import DataError
from acep_approx.query.evaluate import evaluate
from acep_approx.query.parser import parse_expression
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Between, Binary, Constant, In, IsNull, Unary
from tests.cases import examples
from tests.naive_expressions import OverflowOf64Bits, value_of

ROWS = 5
WHOLE = st.integers(-4, 4) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])
FLOAT = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5, 1e308, math.inf, -math.inf, math.nan])
WORDS = st.sampled_from(["", "a", "b", "ba", "é"])
MOMENTS = st.sampled_from([datetime(2013, 1, 1), datetime(2013, 1, 1, 0, 0, 0, 500), datetime(1969, 1, 1)])  # noqa: DTZ001
ISO = st.sampled_from(["2013-01-01", "2013-01-01T00:00:00.000500", "2013-01-01T02:00:00+02:00"])
VALUES = {"number": WHOLE, "float": FLOAT, "string": WORDS, "boolean": st.booleans(), "time": MOMENTS}
NAMES = {
    "number": ("x", "y"),
    "float": ("f", "g"),
    "string": ("s", "t"),
    "boolean": ("p", "q"),
    "time": ("u", "v"),
}
COMPARE = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def attribute(name: str) -> Attribute:
    return Attribute("a", None, name)


def leaf(kind: str) -> st.SearchStrategy:
    named = st.sampled_from(NAMES[kind]).map(attribute)
    return named | st.builds(
        Constant, (WORDS if kind == "string" else VALUES[kind]).filter(finite) | st.none()
    )


def finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


NUMBERS = st.recursive(
    leaf("number") | leaf("float"),
    lambda inner: (
        st.builds(Unary, st.just("-"), inner)
        | st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner)
    ),
    max_leaves=4,
)
WORD = leaf("string")
TIME = st.sampled_from(["u", "v"]).map(attribute)
CONSTANT_NUMBERS = st.builds(Constant, WHOLE | FLOAT.filter(finite) | st.none())
BASIC = st.one_of(
    st.builds(Binary, COMPARE, NUMBERS, NUMBERS),
    st.builds(Binary, COMPARE, WORD, WORD),
    st.builds(Binary, COMPARE, TIME, TIME | st.builds(Constant, ISO)),
    st.builds(Binary, st.sampled_from(["=", "!="]), leaf("boolean"), leaf("boolean")),
    st.builds(In, NUMBERS, st.lists(CONSTANT_NUMBERS, min_size=1, max_size=4).map(tuple), st.booleans()),
    st.builds(
        In,
        WORD,
        st.lists(st.builds(Constant, WORDS | st.none()), min_size=1, max_size=4).map(tuple),
        st.booleans(),
    ),
    st.builds(In, TIME, st.lists(st.builds(Constant, ISO), min_size=1, max_size=2).map(tuple), st.booleans()),
    st.builds(Between, NUMBERS, NUMBERS, NUMBERS, st.booleans()),
    st.builds(Between, WORD, WORD, WORD, st.booleans()),
    st.builds(IsNull, NUMBERS | WORD | TIME | leaf("boolean"), st.booleans()),
    leaf("boolean"),
)
CONDITIONS = st.recursive(
    BASIC,
    lambda inner: (
        st.builds(Unary, st.just("NOT"), inner)
        | st.builds(Binary, st.sampled_from(["AND", "OR"]), inner, inner)
        | st.builds(IsNull, inner, st.booleans())
    ),
    max_leaves=4,
)
ARROW = {
    "number": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us"),
}


@st.composite
def cases(draw: st.DrawFn, expressions: st.SearchStrategy) -> tuple:
    """An expression and the columns it names."""
    expr = draw(expressions)
    used = {node.name for node in walk(expr) if isinstance(node, Attribute)}
    made = {}
    for kind, names in NAMES.items():
        for name in used.intersection(names):
            values = draw(st.lists(VALUES[kind] | st.none(), min_size=ROWS, max_size=ROWS))
            array = pa.array(values, ARROW[kind], from_pandas=False)
            made[name] = array.dictionary_encode() if kind == "string" and draw(st.booleans()) else array
    return expr, made


def naive(expr, data):
    lists = {name: array.to_pylist() for name, array in data.items()}
    rows = [{attribute(name): values[row] for name, values in lists.items()} for row in range(ROWS)]
    return [value_of(expr, row) for row in rows]


def spread(result) -> list:
    return [result.as_py()] * ROWS if isinstance(result, pa.Scalar) else result.to_pylist()


@given(cases(CONDITIONS) | cases(NUMBERS))
@examples(1000)
def test_agrees_with_the_naive_evaluator(case):
    expr, data = case
    try:
        expected = naive(expr, data)
    except OverflowOf64Bits:
        with pytest.raises(DataError) as caught:
            evaluate(expr, lambda leaf: data[leaf.name])
        assert caught.value.code == "ACEP-D201"
        return
    assert spread(evaluate(expr, lambda leaf: data[leaf.name])) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x > 1", [False, None, True]),
        ("NOT x > 1", [True, None, False]),
        ("x > 1 AND FALSE", [False, False, False]),
        ("x > 1 AND NULL", [False, None, None]),
        ("x > 1 OR TRUE", [True, True, True]),
        ("x > 1 OR NULL", [None, None, True]),
        ("x = NULL", [None, None, None]),
        ("x IN (1, 5)", [True, None, False]),
        ("x IN (1, NULL)", [True, None, None]),
        ("x NOT IN (5, NULL)", [None, None, None]),
        ("x NOT IN (5, 6)", [True, None, True]),
        ("x BETWEEN 1 AND 2", [True, None, True]),
        ("x BETWEEN 2 AND NULL", [False, None, None]),
        ("x IS NULL", [False, True, False]),
        ("x / 0 IS NULL", [True, True, True]),
        ("x / 2", [0.5, None, 1.0]),
        ("x % 0", [None, None, None]),
        ("-x % 3", [2, None, 1]),
        ("x % -3", [-2, None, -1]),
        ("NULL + x", [None, None, None]),
        ("NULL > x AND x > 0", [None, None, None]),
        ("NOT NULL", None),
        ("1 + 2 = 3", True),
        ("7 % 0 IS NULL", True),
    ],
)
def test_three_valued_logic(text, expected):
    result = evaluate(parse_expression(text), lambda _: pa.array([1, None, 2]))
    assert (result.as_py() if isinstance(result, pa.Scalar) else result.to_pylist()) == expected


def test_nan_is_null():
    data = pa.array([1.0, math.nan, None])
    assert evaluate(parse_expression("x IS NULL"), lambda _: data).to_pylist() == [False, True, True]
    assert evaluate(parse_expression("x != 2"), lambda _: data).to_pylist() == [True, None, None]
    assert evaluate(parse_expression("x"), lambda _: data).null_count == 2
    assert evaluate(parse_expression("x - x IS NULL"), lambda _: pa.array([math.inf])).to_pylist() == [True]


@pytest.mark.parametrize(
    ("text", "type_"),
    [("x + 1", pa.int64()), ("x * 2", pa.int64()), ("-x - 2", pa.int64()), ("x > 1", pa.uint64())],
)
def test_whole_numbers_do_not_wrap(text, type_):
    largest = 2**63 - 1 if type_ == pa.int64() else 2**64 - 1
    with pytest.raises(DataError, match="64 bits") as caught:
        evaluate(parse_expression(text), lambda _: pa.array([1, largest], type_))
    assert caught.value.code == "ACEP-D201"


@pytest.mark.parametrize("by", [1, -1, 3, -7, 500, 2**62, -(2**62), 2**63 - 1])
def test_rests_of_the_largest_numbers(by):
    numbers = [0, 1, -1, 499, -501, 2**62, -(2**62) - 1, 2**63 - 1, -(2**63)]
    expression = Binary("%", attribute("x"), Constant(by))
    found = evaluate(expression, lambda _: pa.array(numbers))
    assert found.to_pylist() == [number % by for number in numbers]
    assert found.equals(evaluate(expression, lambda _: pa.array([*numbers, None])).slice(0, len(numbers)))


def test_overflow_of_null_rows_is_no_overflow():
    data = pa.array([2**63 - 1, 1]).filter(pa.array([False, True]))
    assert evaluate(parse_expression("x + 1"), lambda _: data).to_pylist() == [2]


@pytest.mark.parametrize(
    "type_", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.float32(), pa.decimal128(21, 2)]
)
def test_narrow_numbers_are_widened(type_):
    data = pa.array([100, 120, None], pa.int64()).cast(type_)
    assert evaluate(parse_expression("x * x > 12000"), lambda _: data).to_pylist() == [False, True, None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime(2013, 1, 1), datetime(2013, 1, 2)], pa.timestamp("s")),  # noqa: DTZ001
        pa.array([datetime(2013, 1, 1), datetime(2013, 1, 2)], pa.timestamp("ns")),  # noqa: DTZ001
        pa.array(
            [datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC)],
            pa.timestamp("ms", "Asia/Tokyo"),
        ),
        pa.array([date(2013, 1, 1), date(2013, 1, 2)]),
    ],
    ids=lambda column: str(column.type),
)
def test_times_compare_with_iso_strings(column):
    for text in ("x > '2013-01-01T00:00:00.5'", "x >= '2013-01-02'", "'2013-01-02T01:00:00+01:00' = x"):
        assert evaluate(parse_expression(text), lambda _: column).to_pylist() == [False, True]
    assert evaluate(parse_expression("x IN ('2013-01-02', NULL)"), lambda _: column).to_pylist() == [
        None,
        True,
    ]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_strings_of_every_kind(type_):
    data = pa.array(["a", "b", None], type_)
    for text in ("x = 'b'", "x IN ('b', 'c')", "x > 'a'", "x BETWEEN 'b' AND 'c'"):
        assert evaluate(parse_expression(text), lambda _: data).to_pylist() == [False, True, None]


def test_encoded_strings_are_evaluated_once_for_each_distinct_value(monkeypatch):
    import pyarrow.compute as pc

    on_rows = set()
    original = pc.call_function

    def spy(name, values, *rest):
        if any(isinstance(value, pa.Array) and len(value) > 3 for value in values):
            on_rows.add(name)
        return original(name, values, *rest)

    monkeypatch.setattr(pc, "call_function", spy)
    data = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0] * 100, pa.int8()), pa.array(["a", "b"]))
    found = evaluate(parse_expression("NOT (x = 'a' OR x IS NULL)"), lambda _: data)
    assert found.to_pylist() == [False, True, False, False] * 100
    assert on_rows <= {"cast", "coalesce", "take", "array_take"}  # what is done with the codes


def test_null_inside_the_dictionary_and_a_full_code_range():
    words = [f"w{number}" for number in range(255)] + [None]
    codes = pa.array(list(range(256)) * 2, pa.uint8())
    data = pa.DictionaryArray.from_arrays(codes, pa.array(words))
    assert sum(evaluate(parse_expression("x IS NULL"), lambda _: data).to_pylist()) == 2


def test_empty_columns_and_columns_of_nulls():
    for type_ in (pa.int64(), pa.string(), pa.float64()):
        assert len(evaluate(parse_expression("x IS NULL"), lambda _, t=type_: pa.array([], t))) == 0
    nothing = pa.nulls(2)
    for text in ("x > 1", "x = 'a'", "x IN (1, 2)", "x BETWEEN 1 AND 2", "NOT x"):
        assert evaluate(parse_expression(text), lambda _: nothing).to_pylist() == [None, None]
    assert evaluate(parse_expression("x IS NULL"), lambda _: nothing).to_pylist() == [True, True]


def test_each_column_is_asked_for_once():
    asked = []

    def column(leaf):
        asked.append(leaf)
        return pa.array([1, 2])

    evaluate(parse_expression("a.x + a.x > a.y AND avg(b[].x) < a.x"), column)
    assert len(asked) == len(set(asked)) == 3


def test_constants_that_are_equal_keep_their_own_types():
    """Python takes 1, 1.0 and True for one value."""
    for value, type_ in ((1, pa.int64()), (1.0, pa.float64()), (True, pa.bool_()), (1, pa.int64())):
        assert evaluate(Constant(value), lambda _: None).type == type_
