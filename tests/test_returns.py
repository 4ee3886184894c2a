"""RETURN: indexed and aggregated events of a match, against the obvious evaluation of what the match binds."""

from __future__ import annotations

import math
import random
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.errors import DataError
from acep_approx.matching.outputs.aggregates import aggregate
from acep_approx.query.printer import to_text
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Attribute, Between, Binary, Constant, Expression, In, IsNull, Unary
from tests.cases import cases, examples
from tests.naive_expressions import OverflowOf64Bits, binary, clean, value_of

PATTERN = "PATTERN SEQ(A a, (B b | C c)+, D* d[], E? e) WITHIN 8 ERRORS 1 WEIGHTS (a = 2)"
LISTED = ("b", "c", "d")
DAYS = [datetime(2013, 1, 1), datetime(2013, 1, 2), datetime(1969, 1, 1)]  # noqa: DTZ001
COLUMNS: dict[str, tuple[pa.DataType, list]] = {
    "x": (pa.int64(), [*range(-20, 20), 2**62, -(2**63)]),
    "f": (pa.float64(), [-1.5, 0.25, 2.0, 3.75, 1024.0, math.inf, -math.inf, math.nan]),
    "s": (pa.string(), ["", "a", "b", "ba", "é", "z"]),
    "u": (pa.timestamp("us"), DAYS),
    "p": (pa.bool_(), [True, False]),
}


def leaves(name: str, *others: str) -> st.SearchStrategy[Expression]:
    """One value per match of an attribute."""
    listed, functions = st.sampled_from(LISTED), ("first", "last", *others)
    return st.one_of(
        st.builds(Attribute, st.sampled_from(["a", "e"]), st.none(), st.just(name)),
        st.builds(Attribute, listed, st.sampled_from(["first", "last"]), st.just(name)),
        *(st.builds(Aggregate, st.just(f), listed, st.just(name), st.just(False)) for f in functions),
    )


COUNTS = st.builds(
    Aggregate, st.just("count"), st.sampled_from(LISTED), st.sampled_from([None, *COLUMNS]), st.just(False)
)
NUMBER = st.recursive(
    leaves("x", "sum", "min", "max", "avg") | leaves("f", "sum", "min", "max", "avg") | COUNTS | st.just(Constant(2)),
    lambda inner: st.builds(Unary, st.just("-"), inner) | st.builds(Binary, st.sampled_from("+-*/%"), inner, inner),
    max_leaves=3,
)
TEXT, TIME, TRUTH = leaves("s", "min", "max"), leaves("u", "min", "max"), leaves("p")
COMPARE = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
CONDITION = st.one_of(
    *(st.builds(Binary, COMPARE, side, side) for side in (NUMBER, TEXT, TIME)),
    st.builds(Between, TEXT, TEXT, TEXT, st.booleans()),
    st.builds(In, TEXT, st.just((Constant("a"), Constant(None))), st.booleans()),
    st.builds(IsNull, NUMBER | TEXT | TIME | TRUTH, st.booleans()),
    st.builds(Binary, st.sampled_from(["AND", "OR"]), TRUTH, TRUTH),
)
OUTPUTS = st.lists(NUMBER | TEXT | TIME | TRUTH | CONDITION, min_size=2, max_size=6)


def stream(seed: int) -> pa.Table:
    """A few events with values of every type, some of them NULL."""
    dice = random.Random(seed)
    size = dice.choice([0, 3, 6, 7, 8])
    types = ["A", *dice.choices("BBCDDDEA", k=size)][:size]
    columns = {"ts": pa.array(range(size), pa.int64()), "type": pa.array(types, pa.string())}
    for name, (type_, values) in COLUMNS.items():
        made = [dice.choice(values) if dice.random() < 0.8 else None for _ in range(size)]
        columns[name] = pa.array(made, type_, from_pandas=False)
    return pa.table(columns)


def value_of_leaf(leaf: Attribute | Aggregate, match: dict, events: list[dict]) -> object:
    """What an attribute or an aggregate is for one match, by the book."""
    bound = match[leaf.variable]
    rows = bound if isinstance(bound, list) else [] if bound is None else [bound]
    if isinstance(leaf, Attribute) or leaf.function in ("first", "last"):
        last = "last" in (leaf.index if isinstance(leaf, Attribute) else leaf.function, None)
        return clean(events[rows[-1 if last else 0]][leaf.name]) if rows else None
    if leaf.name is None:
        return len(rows)
    known = [value for value in (clean(events[row][leaf.name]) for row in rows) if value is not None]
    if leaf.function == "count":
        return len(known)
    if not known:
        return None
    if leaf.function == "avg":
        return binary("/", clean(sum(known)), len(known))
    return clean({"sum": sum, "min": min, "max": max}[leaf.function](known))


def expected(expr: Expression, match: dict, events: list[dict]) -> object:
    """The value of an output for one match."""
    used = [node for node in walk(expr) if isinstance(node, (Attribute, Aggregate))]
    return value_of(expr, {leaf: value_of_leaf(leaf, match, events) for leaf in used})


@given(st.integers(0, 10**9), OUTPUTS, st.integers(1, 7))
@settings(examples(150), max_examples=cases(150, 7))
def test_agrees_with_the_obvious_evaluation_of_each_match(seed, expressions, split):
    """In any split into batches; the values of a match may come from earlier ones."""
    table = stream(seed)
    events = table.to_pylist()
    bound = compile_query(PATTERN).match(table).to_arrow().to_pylist()
    clause = ", ".join(f"{to_text(expr)} AS o{i}" for i, expr in enumerate(expressions))
    matcher = compile_query(f"{PATTERN} RETURN {clause}").matcher()
    parts = (table.slice(start, split) for start in range(0, max(len(events), 1), split))
    try:
        wanted = [{f"o{i}": expected(expr, match, events) for i, expr in enumerate(expressions)} for match in bound]
    except OverflowOf64Bits:
        with pytest.raises(DataError) as caught:
            [matcher.push(part) for part in parts]
        assert caught.value.code == "ACEP-D201"
        return
    found = pa.concat_tables([matcher.push(part) for part in parts], promote_options="default")
    assert found.select([f"o{i}" for i in range(len(expressions))]).to_pylist() == wanted


def returned(query: str, events: list[dict] | pa.Table) -> list[dict]:
    """What RETURN puts out, without the other columns."""
    table = compile_query(query).match(events).to_arrow()
    return table.drop_columns(["errors", "start", "end", "missing"]).to_pylist()


def stock(*prices: object) -> list[dict]:
    """An A, a B for each price, a C."""
    middle = [{"ts": i, "type": "B", "x": x} for i, x in enumerate(prices, 1)]
    return [{"ts": 0, "type": "A", "x": 1}, *middle, {"ts": 90, "type": "C", "x": 100}]


def test_all_functions_by_hand():
    functions = "count(b[]) AS n, count(b[].x) AS k, sum(b[].x) AS s, min(b[].x) AS low, max(b[].x) AS high, "
    functions += "avg(b[].x) AS mean, first(b[].x) AS f, last(b[].x) AS l, b[1].x AS i, b[b.LEN].x AS j"
    query = f"PATTERN SEQ(A a, B{{4}} b[], C c) WITHIN 100 RETURN {functions}"
    (row,) = returned(query, stock(7, 3, None, 6))
    assert row == {"n": 4, "k": 3, "s": 16, "low": 3, "high": 7, "mean": 16 / 3, "f": 7, "l": 6, "i": 7, "j": 6}
    (row,) = returned(query, stock(None, 3, 3, None))
    assert row == {"n": 4, "k": 2, "s": 6, "low": 3, "high": 3, "mean": 3, "f": None, "l": None, "i": None, "j": None}


def test_a_variable_without_events_counts_0_and_is_null_otherwise():
    query = "PATTERN SEQ(A a, B* b[], C c) WITHIN 100 RETURN count(b[]) AS n, count(b[].x) AS k, sum(b[].x) AS s, "
    query += "max(b[].x) AS high, avg(b[].x) AS mean, last(b[].x) AS l, b[1].x AS i, sum(b[].x) IS NULL AS none"
    nothing = {"n": 0, "k": 0, "s": None, "high": None, "mean": None, "l": None, "i": None, "none": True}
    assert returned(query, stock()) == [nothing]
    one = {"n": 1, "k": 1, "s": 5, "high": 5, "mean": 5.0, "l": 5, "i": 5, "none": False}
    assert sorted(returned(query, stock(5)), key=lambda row: row["n"]) == [nothing, one]


def test_a_missing_round_of_a_repetition_is_not_counted():
    query = "PATTERN SEQ(A a, B{2} b[], C c) WITHIN 100 ERRORS 1 WEIGHTS (a = 2, c = 2) "
    query += "RETURN count(b[]) AS n, sum(b[].x) AS s"
    assert returned(query, stock(5)) == [{"n": 1, "s": 5}]


def test_within_an_expression_over_several_variables():
    query = "PATTERN SEQ(A a, B{2} b[], C c) WITHIN 100 "
    query += "RETURN (max(b[].x) - a.x) * 2 > c.x / count(b[]) AS steep, b[1].ts + 1 AS t"
    assert returned(query, stock(5, 40)) == [{"steep": True, "t": 2}]


def test_in_a_window_of_events_values_stay_as_long_as_a_run_may_point_to_them():
    query = compile_query("PATTERN SEQ(A a, B+ b[], C c) WITHIN 3 events RETURN sum(b[].x) AS s, b[1].x AS first")
    events = [{"ts": i, "type": t, "x": i} for i, t in enumerate("ABBCABBC")]
    matcher = query.matcher()
    parts = [matcher.push([event]).select(["s", "first"]).to_pylist() for event in events]
    longest = [max(part, key=lambda row: row["s"]) if part else None for part in parts]
    assert longest == [None, None, None, {"s": 3, "first": 1}, None, None, None, {"s": 11, "first": 5}]


@pytest.mark.parametrize("prices", [(2**62, 2**62), (-(2**63), -1), (2**63 - 1, 1)])
@pytest.mark.parametrize("function", ["sum", "avg"])
def test_a_sum_beyond_64_bits_is_an_error(prices, function):
    query = compile_query(f"PATTERN SEQ(A a, B{{2}} b[], C c) WITHIN 100 RETURN {function}(b[].x) AS s")
    with pytest.raises(DataError, match="64 bits") as caught:
        query.match(stock(*prices)).to_arrow()
    assert caught.value.code == "ACEP-D201"


@pytest.mark.parametrize(
    ("prices", "total"),
    [((2**62, 2**62 - 1), 2**63 - 1), ((-(2**62), -(2**62)), -(2**63)), ((2**63 - 1, 2**63 - 1, -(2**63)), 2**63 - 2)],
)
def test_sums_are_exact_up_to_64_bits_in_any_order(prices, total):
    query = f"PATTERN SEQ(A a, B{{{len(prices)}}} b[], C c) WITHIN 100 RETURN sum(b[].x) AS s"
    assert returned(query, stock(*prices)) == [{"s": total}]


def test_types_of_the_columns_do_not_depend_on_the_matches():
    types = {"ts": pa.int64(), "type": pa.string(), "x": pa.int32(), "f": pa.float32(), "s": pa.string()}
    schema = pa.schema(types.items())
    query = "PATTERN SEQ(A+ a[], C c) WITHIN 9 RETURN count(a[]) AS n, sum(a[].x) AS s, avg(a[].x) AS m, "
    query += "max(a[].s) AS t, sum(a[].f) AS f, a[1].x AS x"
    rows = {"ts": [0, 1], "type": ["A", "C"], "x": [1, 2], "f": [0.5, 1], "s": ["u", "v"]}
    nothing = compile_query(query).match(schema.empty_table()).to_arrow()
    one = compile_query(query).match(pa.table(rows, schema)).to_arrow()
    assert one.schema.equals(nothing.schema)
    wanted = [pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.float64(), pa.int64()]
    assert [one.schema.field(name).type for name in "nsmtfx"] == wanted


def test_a_column_of_nulls():
    query = "PATTERN SEQ(A+ a[], C c) WITHIN 9 "
    query += "RETURN count(a[].x) AS n, sum(a[].x) AS s, avg(a[].x) AS m, min(a[].x) AS low"
    events = pa.table({"ts": [0, 1], "type": ["A", "C"], "x": pa.nulls(2)})
    assert returned(query, events) == [{"n": 0, "s": None, "m": None, "low": None}]


@pytest.mark.parametrize("function", ["count", "sum", "min", "max", "avg"])
def test_many_lists_at_once(function):
    """Lists of all lengths, empty ones at both ends and in a row, with NULL anywhere."""
    dice = np.random.default_rng(1)
    lengths = np.concatenate(([0, 0], dice.integers(0, 5, 3000), [0]))
    values = [None if value == 0 else int(value) for value in dice.integers(-8, 8, lengths.sum())]
    found = aggregate(function, pa.array(values, pa.int64()), lengths).to_pylist()
    ends = np.cumsum(lengths).tolist()
    naive = {"count": len, "sum": sum, "min": min, "max": max, "avg": lambda known: sum(known) / len(known)}[function]
    for end, length, value in zip(ends, lengths.tolist(), found, strict=True):
        known = [v for v in values[end - length : end] if v is not None]
        assert value == (naive(known) if known or function == "count" else None)
