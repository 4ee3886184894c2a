"""Automata written in Python: lambdas become the trees that their text stands for, or are refused with their line."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import functools
import json
import math
import operator
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Afa, afa_function, compile_query, event
from acep_approx.errors import LimitError, QueryError, UsageError
from acep_approx.query.parser import parse, parse_expression
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import (
    Assignment,
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    FunctionCall,
    IgnoreRule,
    In,
    IsNull,
    MachineArc,
    RegisterValue,
    Unary,
    UserFunction,
)
from tests.cases import examples
from tests.strategies import CONSTANTS, FIELDS, TYPES

HERE = __file__


@afa_function(version=1, returns=float)
def slope(x, y, by=1.0):
    """How steep it is."""
    return x / y * by


@Afa.function(version=2, returns=bool, name="rises")
def _rises(x, y, since=None, at=None):
    return x < y


def some(registers=("level", "top")):
    return Afa(registers=dict.fromkeys(registers, 0))


def condition(when, name="t", **arguments):
    """The text that a condition becomes."""
    arc = some().arc("a", "b", on="Tick", name=name, when=when, **arguments).machine.arcs[0]
    return to_text(arc.when)


def head_and_shoulders():
    afa = Afa(registers={"level": 0, "patterns": 0})
    afa.arc("q0", "q1", on="Tick", name="t", when=lambda e: e.change < -0.25)
    for target in ("q1", "q2"):
        afa.arc("q1", target, "Tick", "t", lambda e: e.change < 0, lambda e, r: {"level": r.level + 1})
    afa.arc("q2", "q2", "Tick", "t", when="t.change > 0", then={"level": "level - 1"})
    afa.arc(
        "q2",
        "q1",
        "Tick",
        "t",
        when=lambda e, r: (e.change > 0) & (r.patterns + 1 < 2),
        then=lambda _, r: {"level": r.level - 1, "patterns": r.patterns + 1},
    )
    afa.arc(
        "q2",
        "done",
        "Tick",
        "t",
        when=lambda e, r: (e.change > 0) & (r.patterns + 1 == 2) & (r.level == 1),
        then={"level": 0, "patterns": 2},
    )
    return afa.ignore("q1", "q2", when=lambda e: e.size < 0.01).final("done")


TEXT = """AUTOMATON (
  REGISTERS level = 0, patterns = 0
  q0 -> q1 ON Tick t WHEN t.change < -0.25
  q1 -> q1 ON Tick t WHEN t.change < 0 SET level = level + 1
  q1 -> q2 ON Tick t WHEN t.change < 0 SET level = level + 1
  q2 -> q2 ON Tick t WHEN t.change > 0 SET level = level - 1
  q2 -> q1 ON Tick t WHEN t.change > 0 AND patterns + 1 < 2 SET level = level - 1, patterns = patterns + 1
  q2 -> done ON Tick t WHEN t.change > 0 AND patterns + 1 = 2 AND level = 1 SET level = 0, patterns = 2
  IGNORE q1, q2 WHEN size < 0.01
  FINAL done
)"""


# --- the same as the text -------------------------------------------------------------------------------------


def test_the_worked_example_is_its_text():
    afa = head_and_shoulders()
    assert str(afa) == TEXT
    query = afa.within("2000 events").by("symbol").errors(1, {"t": 1}).returning("patterns", gain="last(t[].price)")
    text = f"""PATTERN {TEXT}
WHERE [symbol]
WITHIN 2000 events
ERRORS 1 WEIGHTS (t = 1)
RETURN patterns, last(t[].price) AS gain"""
    assert str(query) == text
    assert query.syntax() == parse(text)
    assert query.syntax().pattern == afa.machine


def test_a_query_finds_what_its_text_finds():
    afa = head_and_shoulders()
    rng = np.random.default_rng(1)
    changes = np.where(np.arange(60) % 7 < 3, -1, 1) * rng.random(60).round(2)
    rows = [
        {"ts": i, "type": "Tick", "change": float(change), "size": i % 2, "price": 1.0 * i}
        for i, change in enumerate(changes)
    ]
    built = compile_query(afa.within(20).returning("patterns"))
    written = compile_query(f"PATTERN {TEXT} WITHIN 20 RETURN patterns")
    found = [(m.start, m.end, m.values) for m in built.match(rows)]
    assert found == [(m.start, m.end, m.values) for m in written.match(rows)]
    assert found


def test_all_kinds_of_parts():
    afa = Afa(registers={"n": 0, "late": bool})
    same = afa.arc("a", "b").arc("b", "b", None, "x", then=lambda e, r: {"n": r.n + 1, "late": e.ts.is_null()})
    same.epsilon("b", "c", when=lambda r: r.n > 3, then=lambda r: {"n": -r.n}).epsilon("c", "b", when="n < 0")
    same.timeout("c", "d", when=lambda e, r: ~r.late, then={"late": True}).timeout("c", "d")
    same.ignore("b").ignore("b", "c", on="Tick").ignore("c", on="start trip", name="y", when=lambda e: e.x == "it's")
    same.ignore("c", name="z", when="z.x > n").ignore("b", "c", otherwise=True).final("d", "b").final("b", "c")
    assert same is afa
    assert (
        str(afa)
        == """AUTOMATON (
  REGISTERS n = 0, late BOOLEAN
  a -> b ON ANY
  b -> b ON ANY x SET n = n + 1, late = x.ts IS NULL
  b -> c EPSILON WHEN n > 3 SET n = -n
  c -> b EPSILON WHEN n < 0
  c -> d TIMEOUT WHEN NOT late SET late = TRUE
  c -> d TIMEOUT
  IGNORE b
  IGNORE b, c ON Tick
  IGNORE c ON 'start trip' y WHEN y.x = 'it''s'
  IGNORE c ON ANY z WHEN z.x > n
  IGNORE b, c OTHERWISE
  FINAL d, b, c
)"""
    )
    assert afa.within(5).syntax().pattern == afa.machine
    assert afa.machine.start == "a"


def test_the_tree():
    afa = some().arc("a", "b", on="T", when=lambda e, r: e.x > r.top, then={"level": "x + top", "top": 1})
    x, top = Attribute(None, None, "x"), RegisterValue("top")
    sets = (Assignment("level", Binary("+", x, top)), Assignment("top", Constant(1)))
    assert afa.machine.arcs == (MachineArc("a", "b", "on", "T", None, Binary(">", x, top), sets),)
    named = afa.ignore("a", on="T", name="t", when=lambda e: e.x.is_null()).machine.ignores
    assert named == (IgnoreRule(("a",), "T", "t", IsNull(Attribute("t", None, "x"), negated=False)),)


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (lambda e: e.x + 1 - 2 * e.y / 3 % e.z == 1, "t.x + 1 - 2 * t.y / 3 % t.z = 1"),
        (lambda e: 1 - e.x > 2 / (3 % e.y), "1 - t.x > 2 / (3 % t.y)"),
        (lambda e: -e.x != +e.y, "-t.x != t.y"),
        (lambda e: 5 < e.x, "t.x > 5"),  # noqa: SIM300
        (lambda e: e.x.between(1, e.y) & (e.x >= 2), "t.x BETWEEN 1 AND t.y AND t.x >= 2"),
        (lambda e: (e.x <= 1) | ~(e.y < 2) & True, "t.x <= 1 OR NOT t.y < 2 AND TRUE"),
        (lambda e: (False | (e.x <= 1)) & (True & (e.x > 0)), "(FALSE OR t.x <= 1) AND (TRUE AND t.x > 0)"),
        (lambda e: e.x.is_null() | e["dep time"].is_not_null(), "t.x IS NULL OR t.`dep time` IS NOT NULL"),
        (lambda e: e.kind.is_in(("b", "a")), "t.kind IN ('b', 'a')"),
        (lambda e: e.kind.is_in({"c", "a", "b"}), "t.kind IN ('a', 'b', 'c')"),
        (lambda e: e.x.is_in(np.arange(2)), "t.x IN (0, 1)"),
        (lambda e: e.x.is_in(pd.Series([1.5, None])[:1]), "t.x IN (1.5)"),
        (lambda e, r: e.level > r["level"], "t.level > level"),
        (lambda e: e._x > e.within, "t._x > t.within"),
        (lambda e, least=3: e.x > least, "t.x > 3"),
        (lambda e: True, "TRUE"),
        (lambda e: np.bool_(False), "FALSE"),
        (lambda e: np.float64(0.5) * e.x > np.int32(3), "0.5 * t.x > 3"),
        (lambda e: np.True_ & (np.float32(0.5) < e.x), "TRUE AND 0.5 < t.x"),
        (lambda e: e.at > dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC), "t.at > '2026-07-01T12:00:00+00:00'"),
        (lambda e: e.at > dt.date(2026, 7, 1), "t.at > '2026-07-01'"),
        (lambda e: e.at > pd.Timestamp("2026-07-01"), "t.at > '2026-07-01T00:00:00'"),
        (lambda e: e.at > np.datetime64("2026-07-01T00:00:00.000000001"), "t.at > '2026-07-01T00:00:00.000000001'"),
        (lambda e: e.kind == enum.Enum("Kind", {"BUY": "buy"}, type=str).BUY, "t.kind = 'buy'"),
        (lambda e, r: slope(e.x, r.top) > 2, "slope(t.x, top) > 2"),
        (lambda e, r: slope(y=3, x=e.x) > slope(1, 4), "slope(t.x, 3) > 0.25"),
        (lambda e, r: slope(e.x, 3, 2) > slope(e.x, by=r.top, y=1), "slope(t.x, 3, 2) > slope(t.x, 1, top)"),
        (lambda e: _rises(e.x, 1, at=1) & _rises(e.x, e.y, since=2), "rises(t.x, 1, NULL, 1) AND rises(t.x, t.y, 2)"),
        (lambda e, r: _rises(slope(e.x, 2), None), "rises(slope(t.x, 2), NULL)"),
        (functools.partial(lambda bound, e: e.x > bound, 7), "t.x > 7"),
        ("t.x > level AND y = 1", "t.x > level AND y = 1"),
    ],
)
def test_conditions(when, text):
    assert condition(when) == text


def test_a_method_is_as_good_as_a_lambda():
    class Limits:
        least = 3

        def holds(self, e):
            return e.x > self.least

        def __call__(self, e, r):
            return e.x > r.top

    assert condition(Limits().holds) == "t.x > 3"
    assert condition(Limits()) == "t.x > top"


def test_without_a_name_attributes_are_bare():
    assert condition(lambda e: e.x > e["top speed"], name=None) == "x > `top speed`"


def test_a_lambda_is_called_once():
    calls = []
    afa = some().arc("a", "b", when=lambda e: calls.append(1) or e.x > 1).final("b")
    compile_query(Afa().arc("a", "b", when=lambda e: calls.append(1) or e.x > 1).final("b").within(5))
    assert len(calls) == 2
    assert afa.machine == afa.machine
    assert len(calls) == 2


# --- any expression -------------------------------------------------------------------------------------------

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "AND": operator.and_,
    "OR": operator.or_,
}
ANY_CALL = UserFunction("f", 1, "int", lambda *values: 0)
KNOWN = CONSTANTS.filter(lambda one: one.value is not None)
TRUTHS = st.booleans().map(Constant)


def symbolic_trees():
    """Trees that operators on symbols make: what has no symbol in it is computed by Python."""
    leaves = st.builds(Attribute, st.just("t"), st.none(), FIELDS) | st.builds(
        RegisterValue, st.sampled_from(["level", "top"])
    )

    def deeper(inner):
        arithmetic, logic = st.sampled_from("+-*/%"), st.sampled_from(["AND", "OR"])
        return st.one_of(
            st.builds(
                Binary,
                st.sampled_from([op for op in OPERATORS if op.islower() or not op.isalpha()]),
                inner,
                inner | KNOWN,
            ),
            st.builds(Binary, arithmetic, KNOWN.filter(lambda one: not isinstance(one.value, str)), inner),
            st.builds(Binary, logic, inner, inner | TRUTHS),
            st.builds(Binary, logic, TRUTHS, inner),
            st.builds(Unary, st.sampled_from(["NOT", "-"]), inner),
            st.builds(In, inner, st.lists(CONSTANTS, min_size=1, max_size=3).map(tuple), st.just(False)),
            st.builds(Between, inner, inner | KNOWN, inner | KNOWN, st.just(False)),
            st.builds(IsNull, inner, st.booleans()),
            st.builds(FunctionCall, st.just("f"), st.tuples(inner, inner | CONSTANTS)),
        )

    return st.recursive(leaves, deeper, max_leaves=8)


def computed(tree: Expression, e, r):
    """What the operators of Python make of a tree."""
    match tree:
        case Constant(value=value):
            return value
        case Attribute(name=name):
            return e[name]
        case RegisterValue(name=name):
            return r[name]
        case Binary(op=op, left=left, right=right):
            return OPERATORS[op](computed(left, e, r), computed(right, e, r))
        case Unary(op=op, operand=operand):
            return operator.inv(computed(operand, e, r)) if op == "NOT" else -computed(operand, e, r)
        case In(operand=operand, values=values):
            return computed(operand, e, r).is_in([one.value for one in values])
        case Between(operand=operand, low=low, high=high):
            return computed(operand, e, r).between(computed(low, e, r), computed(high, e, r))
        case IsNull(operand=operand, negated=negated):
            found = computed(operand, e, r)
            return found.is_not_null() if negated else found.is_null()
        case FunctionCall(arguments=arguments):
            return ANY_CALL(*(computed(one, e, r) for one in arguments))


WORDS = st.sampled_from(["q1", "1", "on", "WHEN", "final", "IGNORE", "größe", "_"])
NAMES = st.none() | st.sampled_from(["t", "on", "epsilon", "registers", "int", "count"])


@given(symbolic_trees(), st.lists(symbolic_trees(), max_size=2), WORDS, WORDS, TYPES, NAMES)
@examples(500)
def test_any_tree_is_traced_and_its_text_is_read_again(tree, moves, source, target, kind, name):
    values = dict(zip(("top", "level"), moves, strict=False))
    afa = some().arc(
        source,
        target,
        on=kind,
        name="t",
        when=lambda e, r: computed(tree, e, r),
        then=lambda e, r: {register: computed(value, e, r) for register, value in values.items()},
    )
    afa.arc(target, source, kind, name).ignore(source, target, on=kind, name=name).final(target)
    arc = afa.machine.arcs[0]
    assert arc.when == tree
    assert arc.sets == tuple(Assignment(*item) for item in values.items())
    query = afa.within(5)
    assert query.syntax().pattern == afa.machine
    assert query.syntax() == parse(str(query), query.functions)


# --- registers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (0, "x = 0"),
        (0.0, "x = 0.0"),
        (-3, "x = -3"),
        ("it's", "x = 'it''s'"),
        (True, "x = TRUE"),
        (np.int64(3), "x = 3"),
        (np.float32(0.5), "x = 0.5"),
        (int, "x INT"),
        (float, "x FLOAT"),
        (str, "x TEXT"),
        (bool, "x BOOLEAN"),
        (dt.datetime, "x TIME"),
        (dt.datetime(2026, 7, 1, tzinfo=dt.UTC), "x TIME = '2026-07-01T00:00:00+00:00'"),
        (np.datetime64("2026-07-01"), "x TIME = '2026-07-01'"),
        ((float, 0), "x = 0.0"),
        ((float, None), "x FLOAT"),
        ((dt.datetime, "2026-07-01"), "x TIME = '2026-07-01'"),
        ((str, "a"), "x = 'a'"),
    ],
)
def test_registers(given, text):
    afa = Afa({"x": given}).arc("a", "b", on="T")
    assert str(afa).splitlines()[1] == f"  REGISTERS {text}"
    assert afa.within(5).syntax().pattern == afa.machine


# --- functions ------------------------------------------------------------------------------------------------


def test_a_function_computes_as_before():
    assert slope(3, 2) == 1.5
    assert slope(np.array([1.0, 2.0]), y=2, by=2).tolist() == [1, 2]
    assert (slope.name, slope.version, slope.holds) == ("slope", 1, "float")
    assert (_rises.name, _rises.version, _rises.holds) == ("rises", 2, "truth")
    assert slope.__doc__ == "How steep it is."
    assert slope.__name__ == "slope"
    assert slope.__module__ == __name__


def test_a_query_calls_them():
    afa = (
        some(["top"])
        .arc("a", "b", "T", "t", then=lambda e: {"top": e.x})
        .ignore("b", when=lambda e, r: _rises(e.x, r.top))
    )
    afa.arc("b", "c", "T", "u", when=lambda e, r: slope(e.x, r.top, by=2) > 6).final("c")
    events = [{"ts": i, "type": "T", "x": x} for i, x in enumerate([2, 7, 2, 1, 8])]
    found = compile_query(afa.within(9).returning("top")).match(events)
    assert sorted((match.start, match.end, match.values["top"]) for match in found) == [(0, 1, 2), (2, 4, 2), (3, 4, 1)]


def test_the_functions_of_all_lambdas_are_collected():
    afa = some().arc("a", "b", when=lambda e: slope(e.x, 1) > 2, then=lambda e: {"top": slope(e.x, 2)})
    afa.ignore("b", when=lambda e, r: _rises(r.top, e.x))
    assert afa.within(5).functions == (slope, _rises)
    assert afa.within(5).syntax().functions == (slope, _rises)
    assert afa.final("b").within(5).syntax() == parse(str(afa.within(5)), (slope, _rises))


def test_functions_of_texts_are_given():
    afa = Afa(functions=[slope]).arc("a", "b", "T", "t", when="slope(t.x, 2) > 1").final("b")
    found = compile_query(afa.within(5)).match([{"ts": i, "type": "T", "x": 1.0 * i} for i in range(5)])
    assert [match.start for match in found] == [3, 4]
    with pytest.raises(QueryError, match="ACEP-Q073"):
        Afa(functions=[slope, UserFunction("slope", 1, "float", abs)])
    with pytest.raises(UsageError, match="ACEP-U053"):
        Afa(functions=[len])


def test_a_function_without_a_signature():
    hypotenuse = afa_function(version=1, returns=float)(np.hypot)
    assert condition(lambda e: hypotenuse(e.x, 3) > 2) == "hypot(t.x, 3) > 2"
    with pytest.raises(QueryError, match="ACEP-Q070"):
        condition(lambda e: hypotenuse(e.x, x2=3) > 2)
    greatest = afa_function(version=1, returns=float, name="greatest")(max)  # has none at all
    assert condition(lambda e: greatest(e.x, 3) > 2) == "greatest(t.x, 3) > 2"
    with pytest.raises(QueryError, match="no named arguments"):
        condition(lambda e: greatest(e.x, key=3) > 2)


def test_a_function_that_takes_arguments_by_name_alone():
    @afa_function(version=1, returns=float)
    def strict(*x, y=1, **more):
        return x * y

    assert condition(lambda e: strict(e.x, e.z) > 2) == "strict(t.x, t.z) > 2"
    for named in ({"y": 1}, {"z": 1}):
        with pytest.raises(QueryError, match="by name alone"):
            condition(lambda e, named=named: strict(e.x, e.z, **named) > 2)


def test_two_functions_of_one_name():
    @afa_function(version=2, returns=float, name="slope")
    def other(x, y):
        return x

    again = UserFunction("slope", 1, "float", lambda x, y: x)
    for one in (other, again):
        afa = some().arc("a", "b", when=lambda e: slope(e.x, 1) > 2)
        before = str(afa)
        with pytest.raises(QueryError, match=r"ACEP-Q073.*\n.*another name"):
            afa.arc("a", "b", when=lambda e, one=one: one(e.x, 1) > 1)
        with pytest.raises(QueryError, match="ACEP-Q073"):
            condition(lambda e, one=one: one(e.x, 1) > slope(e.x, 1))
        assert str(afa) == before
        assert afa.within(5).functions == (slope,)


def test_a_lambda_that_fails_leaves_no_function():
    afa = some()
    with pytest.raises(QueryError, match="ACEP-Q071"):
        afa.arc("a", "b", when=lambda e: slope(e.x, 1) > 2, then=lambda e, r: {"lvel": 1})
    assert afa.within(5).functions == ()
    assert afa.machine.arcs == ()


def test_pickling_needs_no_lambdas():
    query = some().arc("a", "b", when=lambda e: slope(e.x, 1) > 2).final("b").within(5)
    again = pickle.loads(pickle.dumps(query))
    assert again == query
    assert again.functions[0] is slope
    assert pickle.loads(pickle.dumps(query.syntax())) == query.syntax()
    assert copy.deepcopy(slope) is slope


def test_functions_of_notebooks_travel_as_they_are():
    from pyspark import cloudpickle

    @afa_function(version=1, returns=int)
    def inner(x):
        return x + 1

    again = pickle.loads(cloudpickle.dumps(inner))
    assert (again, again(1)) == (inner, 2)
    assert hash(again) == hash(inner)


# --- clauses --------------------------------------------------------------------------------------------------


def test_any_clause_may_come_first():
    afa = Afa({"n": 0}).arc("a", "b", "T", "t", then={"n": "n + 1"}).final("b")
    calls = {
        "by": lambda made: made.by("k", "dep time"),
        "errors": lambda made: made.errors(1, {"t": 2}),
        "non_overlap": lambda made: made.non_overlap(),
        "maximal": lambda made: made.maximal(),
        "first_match": lambda made: made.first_match(),
        "skip_to": lambda made: made.skip_to("last t"),
        "consume": lambda made: made.consume(),
        "every": lambda made: made.every(3),
        "returning": lambda made: made.returning("n", x="t.x", twice="2 * n"),
    }
    for call in calls.values():
        assert call(afa).within(5).syntax() == call(afa.within(5)).syntax()
    query = afa.within(5).by("a").by("b").returning("n").returning(x="t.x")
    assert str(query).endswith("WHERE [a] AND [b]\nWITHIN 5\nRETURN n, t.x AS x")


def test_keys_of_other_patterns():
    built = event("A", "a").by("k").where("[l] AND a.x = 1").within(5)
    assert built.syntax() == parse("PATTERN A a WHERE [k] AND [l] AND a.x = 1 WITHIN 5")


def test_a_query_is_of_the_automaton_as_it_was():
    afa = Afa().arc("a", "b").final("b")
    query = afa.within(5)
    before = str(query)
    afa.arc("b", "c").final("c")
    assert str(query) == before
    assert str(afa.within(5)) != before


def test_half_an_automaton_can_be_printed():
    assert str(Afa()) == "AUTOMATON (\n)"
    assert repr(some().arc("a", "b")) == "<Afa, arcs: 1>"
    with pytest.raises(QueryError):
        Afa().within(5).syntax()


# --- mistakes -------------------------------------------------------------------------------------------------


def sets_a_register(e, r):
    r.level = 3
    return True


def adds_to_a_register(e, r):
    r["level"] += 3
    return True


LEAKED = []
some().arc("a", "b", when=lambda e: LEAKED.append(e.x) or e.x > 1)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (lambda e: e.x > 1 and e.y < 2, "`t.x > 1`.*write & for `and`"),
        (lambda e: e.x > 1 or e.y < 2, "`t.x > 1`.*| for `or`"),
        (lambda e: not e.x, "`not`.*~ for `not`"),
        (lambda e: 1 if e.x > 1 else 0, "`if`"),
        (lambda e: 0 < e.x < 5, r"chained.*\(e.x > 1\) & \(e.x < 5\)"),
        (lambda e: e.x in (1, 2), r"`in`.*is_in"),
        (lambda e: e.x in {1, 2}, r"sets and dicts.*is_in"),
        (lambda e: 3 in e.x, "`in`"),
        (lambda e: "x" in e, "`in`"),
        (lambda e: bool(e), "the event"),
        (lambda e, r: r or e.x, "the set of registers"),
        (lambda e: e.x is None, r"looks at `t.x`, but gives False.*is_null"),
        (lambda e: e.x == None, r"None.*is_null"),  # noqa: E711
        (lambda e: e.x + None > 1, "None"),
        (lambda e: e.x.between(None, 1), "None"),
        (lambda e: e.x > 1 & e.y < 2, "& and | bind more strongly"),
        (lambda e: (e.x > 1) | 3, "OR joins conditions, and 3 is none"),
        (lambda e: math.sqrt(e.x) > 2, r"float\(\) needs a value, and `t.x` is a symbol.*@afa.function"),
        (lambda e: np.sqrt(e.x) > 2, r"numpy.sqrt.*@afa.function"),
        (lambda e: np.add.reduce(e.x) > 2, "numpy.add"),
        (lambda e: np.sum(e.x) > 2, "numpy.sum"),
        (lambda e: np.where(e.x > 1, 1, 2), "numpy.where"),
        (lambda e: np.array([e.x, 1]) > 2, "numpy"),
        (lambda e: np.asarray(e.x) > 2, "numpy"),
        (lambda e: np.array([1, 2]) * e.x > 2, r"array\(\[1, 2\]\) is no value"),
        (lambda e: np.sqrt(e), "the event"),
        (lambda e: int(e.x) > 2, r"int\(\)"),
        (lambda e: complex(e.x), r"complex\(\)"),
        (lambda e: range(e.x), "a place or a count"),
        (lambda e: [1, 2][e.x], "a place or a count"),
        (lambda e: abs(e.x) > 2, r"abs\(\)"),
        (lambda e: round(e.x) > 2, r"round\(\)"),
        (lambda e: math.floor(e.x) > 2, r"floor\(\)"),
        (lambda e: math.ceil(e.x) > 2, r"ceil\(\)"),
        (lambda e: math.trunc(e.x) > 2, r"trunc\(\)"),
        (lambda e: max(e.x, 3) > 2, "`if`"),
        (lambda e: len(e.x) > 2, r"len\(\)"),
        (lambda e: list(e.x), "going through it"),
        (lambda e: [*e], "going through it.*the event"),
        (lambda e: e.x[0] > 2, r"\[\.\.\.\]"),
        (lambda e: e.x() > 2, r"\(\.\.\.\)"),
        (lambda e: e.kind.lower() == "a", "has no 'lower'"),
        (lambda e: e.kind == f"{e.x}", r"format\(\)"),
        (lambda e: e.kind == str(e.x), r"str\(\)"),
        (lambda e: e.kind == "%s" % e.x, r"str\(\)"),  # noqa: UP031
        (lambda e: e.x**2 > 2, r"\*\* needs"),
        (lambda e: 2**e.x > 2, r"\*\* needs"),
        (lambda e: e.x // 2 > 2, "// needs"),
        (lambda e: e.x ^ 2 > 2, "unsupported operand"),
        (lambda e: decimal.Decimal(e.x), "Decimal"),
        (lambda e: re.match("a", e.kind), "expected string"),
        (lambda e: json.dumps(e.x), "JSON"),
        (lambda e: e > 3, "an operator.*e.price"),
        (lambda e: e == None, "an operator.*e.price"),  # noqa: E711
        (lambda e, r: 1 + r, "an operator.*r.level"),
        (lambda e: slope(e, 1) > 2, r"slope\(\) takes values, and the event is none"),
        (lambda e, r: slope(e.x, r) > 2, "the set of registers is no value"),
        (lambda e: slope(e.x) > 2, r"missing a required argument: 'y'.*slope\(x, y, by=1.0\)"),
        (lambda e: slope(e.x, []) > 2, r"\[\] is no value"),
        (lambda e: e[0] > 2, "0 is no name of an attribute"),
        (lambda e: e[""] > 2, "'' is no name"),
        (lambda e: e.x > float("nan"), "nan is no number"),
        (lambda e: e.x > decimal.Decimal(3), "is no value of the query language"),
        (lambda e: e.x > dt.timedelta(1), "is no value of the query language"),
        (lambda e: e.x > np.timedelta64(1, "ns"), "is no value of the query language"),
        (lambda e: e.x.is_in([]), "lists no constants"),
        (lambda e: e.x.is_in("abc"), "lists no constants"),
        (lambda e: e.x.is_in(3), "lists no constants"),
        (lambda e: e.x.is_in([1, e.y]), "lists no constants"),
        (lambda e: LEAKED[0] > 1, "`x > 1` is a symbol of another lambda"),
        (lambda e: e.x > LEAKED[0], "`x` is a symbol of another lambda"),
        (lambda e: None, "gives None, not a condition"),
        (lambda e: 3, "gives 3, not a condition"),
        (lambda e: [e.x > 3], "not a condition"),
        (lambda e: "x > 3", "not a condition"),
        (lambda e: e, "not a condition"),
        (sets_a_register, "'level' cannot be set here.*then="),
        (adds_to_a_register, "'level' cannot be set here.*then="),
        (lambda: True, "one or two parameters"),
        (lambda e, r, x: True, "one or two parameters"),
        (lambda *both: True, "one or two parameters"),
        (lambda e, r, *, x: True, "missing 1 required keyword-only argument"),
        (print, "one or two parameters"),
    ],
)
def test_what_symbols_cannot_do(when, words):
    with pytest.raises(QueryError, match=f"(?s){words}") as caught:
        condition(when)
    assert caught.value.code == "ACEP-Q070"
    assert caught.value.hint
    line = f"{HERE}:{when.__code__.co_firstlineno}" if hasattr(when, "__code__") else repr(when)
    assert f"in WHEN of a -> b ({line})" in caught.value.message


@pytest.mark.parametrize(
    ("then", "code", "words"),
    [
        (lambda e: None, "Q070", "gives None, not a mapping"),
        (lambda e: [("level", 1)], "Q070", "not a mapping"),
        (lambda e: e.x, "Q070", "not a mapping"),
        (lambda e: {"level": [1]}, "Q070", r"\[1\] is no value"),
        (lambda e, r: {"level": math.inf}, "Q070", "inf is no number"),
        (lambda e, r: {r.level: 1}, "Q070", "sets and dicts"),
        (
            lambda e, r: {"lvel": 1},
            "Q071",
            f"no register 'lvel', in SET of a -> b .{re.escape(HERE)}.*did you mean `level`",
        ),
        (lambda e, r: {3: 1}, "Q071", "registers are level, top"),
        (lambda e, r: {"level": r.lvel}, "Q071", "did you mean `level`. registers are level, top"),
        ({"lvel": 1}, "Q071", "no register 'lvel', in SET of a -> b\n.*did you mean `level`"),
        ({"level": "1 +"}, "Q002", "ends too early"),
        ({"level": "[x]"}, "Q013", "no value"),
    ],
)
def test_moves_that_are_none(then, code, words):
    with pytest.raises(QueryError, match=f"(?s)ACEP-{code}.*{words}"):
        some().arc("a", "b", then=then)


def test_an_attribute_that_has_the_name_of_a_register():
    with pytest.raises(QueryError, match=r"(?s)ACEP-Q072.*'level'.*name='t'.*r\.level"):
        condition(lambda e: e.level > 1, name=None)
    with pytest.raises(QueryError, match="ACEP-Q072"):
        some().ignore("a", when=lambda e: e["level"] > 1)
    assert condition(lambda e: e.level > 1) == "t.level > 1"


def test_what_consumes_nothing_has_no_event():
    afa = some()
    for add in (afa.epsilon, afa.timeout):
        with pytest.raises(QueryError, match=r"(?s)ACEP-Q070.*there is no event whose 'x'.*registers only"):
            add("a", "b", when=lambda e, r: e.x > 1)
        with pytest.raises(QueryError, match=r"ACEP-Q071.*no register 'x'"):
            add("a", "b", then=lambda r: {"level": r.x})
    with pytest.raises(QueryError, match=r"(?s)ACEP-Q070.*or lambda r:"):
        afa.epsilon("a", "b", when=lambda: True)


def test_a_condition_that_is_too_deep():
    def deep(e):
        return functools.reduce(operator.add, [e.x] * 200) > 3

    with pytest.raises(LimitError, match="ACEP-Q021"):
        condition(deep)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: Afa({"within": 0}), "U022"),
        (lambda: Afa({"a b": 0}), "U022"),
        (lambda: Afa({3: 0}), "U022"),
        (lambda: Afa({"x": None}), "U053"),
        (lambda: Afa({"x": [1]}), "U053"),
        (lambda: Afa({"x": list}), "U053"),
        (lambda: Afa({"x": math.inf}), "U053"),
        (lambda: Afa({"x": (int, 1.5)}), "U053"),
        (lambda: Afa({"x": (str, 1)}), "U053"),
        (lambda: Afa({"x": (bool, 1)}), "U053"),
        (lambda: Afa({"x": ("a", "b")}), "U053"),
        (lambda: Afa({"x": (1, 2, 3)}), "U053"),
        (lambda: Afa().arc("a b", "c"), "U022"),
        (lambda: Afa().arc("a", None), "U022"),
        (lambda: Afa().final(""), "U022"),
        (lambda: Afa().ignore("->"), "U022"),
        (lambda: Afa().arc("a", "b", name="a b"), "U022"),
        (lambda: Afa().arc("a", "b", name="WHERE"), "U022"),
        (lambda: Afa().arc("a", "b", name="when"), "U022"),
        (lambda: Afa().ignore("a", name="Final"), "U022"),
        (lambda: Afa().arc("a", "b", on=3), "U053"),
        (lambda: Afa().arc("a", "b", when=3), "U053"),
        (lambda: Afa().arc("a", "b", then=3), "U053"),
        (lambda: Afa({"x": 0}).arc("a", "b", then={"x": [1]}), "U053"),
        (lambda: Afa({"x": 0.0}).arc("a", "b", then={"x": math.nan}), "U053"),
        (lambda: Afa().final(), "U024"),
        (lambda: Afa().ignore(), "U024"),
        (lambda: Afa().ignore("a", on="T", otherwise=True), "U024"),
        (lambda: afa_function(version=1.5, returns=int), "U053"),
        (lambda: afa_function(version=True, returns=int), "U053"),
        (lambda: afa_function(version=1, returns="int"), "U053"),
        (lambda: afa_function(version=1, returns=list), "U053"),
        (lambda: afa_function(version=1, returns=int)(lambda x: x), "U022"),
        (lambda: afa_function(version=1, returns=int)(min), "U022"),
        (lambda: afa_function(version=1, returns=int, name="a b")(min), "U022"),
        (lambda: afa_function(version=1, returns=int)(functools.partial(min)), "U022"),
    ],
)
def test_arguments_that_make_no_sense(call, code):
    with pytest.raises(UsageError, match=f"ACEP-{code}") as caught:
        call()
    assert caught.value.hint


@pytest.mark.parametrize(
    "made", [Afa({"n": 0}).arc("a", "b"), Afa({"n": 0}).arc("a", "b").within(5), event("A", "a").within(5)]
)
def test_returning_what_is_no_register(made):
    with pytest.raises(QueryError, match=r"ACEP-Q071: no register 'm' to return(?s:.*)registers are (n|none)"):
        made.returning("m")


def test_texts_are_read_as_in_the_language():
    tree = parse_expression("x IN (1, 2)")
    assert some().arc("a", "b", when="x IN (1, 2)").machine.arcs[0].when == tree
    with pytest.raises(QueryError, match="ACEP-Q002"):
        some().arc("a", "b", when="x >")
