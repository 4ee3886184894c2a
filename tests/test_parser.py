"""Parsing: each clause of the language gives the tree it should."""
# ruff: noqa: E501  one line for each case

from __future__ import annotations

import subprocess
import sys

import pytest

from acep_approx.query.parser import parse, parse_condition, parse_expression, parse_window
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import (
    Absent,
    Aggregate,
    Atom,
    Attribute,
    Between,
    Binary,
    Constant,
    Definition,
    Either,
    Equivalence,
    In,
    IsNull,
    QuerySyntax,
    Repeat,
    ReturnItem,
    Sequence,
    Unary,
    Window,
)
from tests.patience import calls

A, B, C = Atom("A", "a"), Atom("B", "b"), Atom("C", "c")
X, Y = Attribute("a", None, "x"), Attribute("a", None, "y")


def pattern(text: str):
    return parse(f"PATTERN {text} WITHIN 5").pattern


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A a", A),
        ("ANY a", Atom(None, "a")),
        ("'start trip' a", Atom("start trip", "a")),
        ("'it''s' a", Atom("it's", "a")),
        ("Größe größe", Atom("Größe", "größe")),
        ("SEQ(A a, B b, C c)", Sequence((A, B, C))),
        ("seq(A a, B b)", Sequence((A, B))),
        ("(A a, B b)", Sequence((A, B))),
        ("A a, B b", Sequence((A, B))),
        ("SEQ(A a)", A),
        ("SEQ(A a, (B b, C c))", Sequence((A, B, C))),
        ("SEQ(A a, SEQ(B b, C c))", Sequence((A, B, C))),
        ("(A a | (B b | C c))", Either((A, B, C))),
        ("SEQ(A a, B b | C c)", Either((Sequence((A, B)), C))),
        ("SEQ(A a, (B b | C c))", Sequence((A, Either((B, C))))),
        ("A+ a[]", Repeat(A, 1, None)),
        ("A+ a", Repeat(A, 1, None)),
        ("A* a[]", Repeat(A, 0, None)),
        ("A? a", Repeat(A, 0, 1)),
        ("A{2} a[]", Repeat(A, 2, 2)),
        ("A{2,} a[]", Repeat(A, 2, None)),
        ("A{2,3} a[]", Repeat(A, 2, 3)),
        ("A {2, 3} a[]", Repeat(A, 2, 3)),
        ("(A a)+", Repeat(A, 1, None)),
        ("(A a[], B b)+", Repeat(Sequence((A, B)), 1, None)),
        ("((A a)+)*", Repeat(Repeat(A, 1, None), 0, None)),
        ("ANY+ a[]", Repeat(Atom(None, "a"), 1, None)),
        ("SEQ(A a, ~(B b), C c)", Sequence((A, Absent((B,)), C))),
        ("SEQ(A a, ~B b)", Sequence((A, Absent((B,))))),
        ("SEQ(~(A a | B b), C c)", Sequence((Absent((A, B)), C))),
        ("SEQ(A a, -- a comment, with 'quotes'\n B b)", Sequence((A, B))),
    ],
)
def test_patterns(text, tree):
    assert pattern(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a", Atom("a", "a")),
        ("ab", Sequence((Atom("a", "a"), Atom("b", "b")))),
        ("aa", Sequence((Atom("a", "a"), Atom("a", "a")))),
        ("a|b", Either((Atom("a", "a"), Atom("b", "b")))),
        ("(ab)+", Repeat(Sequence((Atom("a", "a"), Atom("b", "b"))), 1, None)),
        ("ab{2,3}", Sequence((Atom("a", "a"), Repeat(Atom("b", "b"), 2, 3)))),
        ("A1_?", Sequence((Atom("A", "A"), Atom("1", "1"), Repeat(Atom("_", "_"), 0, 1)))),
    ],
)
def test_regular_expressions(text, tree):
    query = parse(f"{text} WITHIN 5")
    assert query == QuerySyntax(tree, Window(5, "ticks"), is_regex=True)


@pytest.mark.parametrize("text", ["ab DEFINE a AS type = 'A' AND price > 10 WITHIN 5", "ab WITHIN 5 DEFINE a AS type='A' and price>10"])  # fmt: skip
def test_define(text):
    query = parse(text)
    condition = Binary(
        "AND",
        Binary("=", Attribute(None, None, "type"), Constant("A")),
        Binary(">", Attribute(None, None, "price"), Constant(10)),
    )
    assert query.definitions == (Definition("a", condition),)
    assert query.pattern == Sequence((Atom(None, "a"), Atom("b", "b")))


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("5", Window(5, "ticks")),
        ("0", Window(0, "ticks")),
        ("1 event", Window(1, "events")),
        ("5 EVENTS", Window(5, "events")),
        ("10s", Window(10, "s")),
        ("10 sec", Window(10, "s")),
        ("1 second", Window(1, "s")),
        ("1.5 minutes", Window(1.5, "min")),
        ("12 h", Window(12, "h")),
        ("2 days", Window(2, "d")),
        ("7 us", Window(7, "us")),
        ("7 ms", Window(7, "ms")),
        ("-1 s", Window(-1, "s")),
    ],
)
def test_windows(text, window):
    assert parse_window(text) == window
    assert parse(f"PATTERN A a WITHIN {text}").window == window


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a.x", X),
        ("a[1].x", Attribute("a", "first", "x")),
        ("a[i].x", Attribute("a", "current", "x")),
        ("a[ i - 1 ].x", Attribute("a", "previous", "x")),
        ("a[a.LEN].x", Attribute("a", "last", "x")),
        ("a[a.len].x", Attribute("a", "last", "x")),
        ("a.type", Attribute("a", None, "type")),
        ("a.within", Attribute("a", None, "within")),
        ("a.`dep time`", Attribute("a", None, "dep time")),
        ("price", Attribute(None, None, "price")),
        ("`AND`", Attribute(None, None, "AND")),
        ("count(a[])", Aggregate("count", "a", None, False)),
        ("COUNT(a[..i-1])", Aggregate("count", "a", None, True)),
        ("avg(a[].x)", Aggregate("avg", "a", "x", False)),
        ("Max ( a[..i - 1].x )", Aggregate("max", "a", "x", True)),
        ("count", Attribute(None, None, "count")),
        ("1", Constant(1)),
        ("1.5", Constant(1.5)),
        (".5e2", Constant(50.0)),
        ("-3", Constant(-3)),
        ("- 3", Constant(-3)),
        ("-(3)", Unary("-", Constant(3))),
        ("-9223372036854775808", Constant(-(2**63))),
        ("'it''s'", Constant("it's")),
        ("''", Constant("")),
        ("true", Constant(True)),
        ("NULL", Constant(None)),
        ("1 + 2 * 3", Binary("+", Constant(1), Binary("*", Constant(2), Constant(3)))),
        ("1 - 2 - 3", Binary("-", Binary("-", Constant(1), Constant(2)), Constant(3))),
        ("(1 + 2) % 3", Binary("%", Binary("+", Constant(1), Constant(2)), Constant(3))),
        ("a.x == 1", Binary("=", X, Constant(1))),
        ("a.x <> 1", Binary("!=", X, Constant(1))),
        ("a.x >= 1", Binary(">=", X, Constant(1))),
        ("a.x IN (1, -2, 'b', NULL)", In(X, tuple(Constant(v) for v in (1, -2, "b", None)), False)),
        ("a.x not in (TRUE)", In(X, (Constant(True),), True)),
        ("a.x BETWEEN 1 AND 2", Between(X, Constant(1), Constant(2), False)),
        ("a.x NOT BETWEEN 1 AND a.y + 1", Between(X, Constant(1), Binary("+", Y, Constant(1)), True)),
        ("a.x IS NULL", IsNull(X, False)),
        ("a.x is not null", IsNull(X, True)),
        ("NOT a.x = a.y", Unary("NOT", Binary("=", X, Y))),
        ("a.x OR a.y AND a.x", Binary("OR", X, Binary("AND", Y, X))),
    ],
)
def test_expressions(text, tree):
    assert repr(parse_expression(text)) == repr(tree)


def test_conjuncts_and_equivalences_are_split():
    equivalences, predicates = parse_condition("[id] AND (a.x > 1 AND [`dep time`]) AND (a.x = 1 OR a.y = 1)")
    assert equivalences == (Equivalence("id"), Equivalence("dep time"))
    assert [type(predicate) for predicate in predicates] == [Binary, Binary]
    assert predicates[1] == Binary("OR", Binary("=", X, Constant(1)), Binary("=", Y, Constant(1)))
    between = parse_condition("a.x BETWEEN 1 AND 2 AND a.y = 1")[1]
    assert between == (Between(X, Constant(1), Constant(2), False), Binary("=", Y, Constant(1)))


@pytest.mark.parametrize(
    "where",
    [
        "WHERE skip_till_next_match { a.x = 1 }",
        "WHERE Skip_Till_Next_Match(a, b[]) { a.x = 1 }",
        "where skip_till_next_match(b, a) { (a.x == 1) }",
    ],
)
def test_strategies(where):
    query = parse(f"PATTERN SEQ(A a, B+ b[]) {where} WITHIN 5")
    assert query.strategy == "skip_till_next_match"
    assert query.predicates == (Binary("=", X, Constant(1)),)


@pytest.mark.parametrize(
    "where", ["", "WHERE a.x = 1", "WHERE skip_till_any_match", "WHERE skip_till_any_match { }"]
)
def test_the_default_strategy(where):
    assert parse(f"PATTERN A a {where} WITHIN 5").strategy == "skip_till_any_match"


def test_errors_weights_and_outputs():
    query = parse(
        "PATTERN SEQ(A a, B+ b[]) WITHIN 5 ERRORS 1 WEIGHTS (b = 2, a = 1) RETURN a.x AS x, avg(b[].y) AS `the mean`"
    )
    assert (query.errors, query.weights) == (1, (("b", 2), ("a", 1)))
    assert query.outputs == (ReturnItem("x", X), ReturnItem("the mean", Aggregate("avg", "b", "y", False)))


def test_non_overlap_stands_after_errors_and_reserves_no_word():
    assert not parse("PATTERN A a WITHIN 5").selection.skip
    assert parse("ab WITHIN 5 NON OVERLAP DEFINE a AS non = 1").selection.skip
    query = parse("PATTERN SEQ(A non, B overlap) WITHIN 5 ERRORS 1 non -- two words\n Overlap RETURN non.non AS overlap")
    assert query.selection.depends_on_order
    assert [(part.type, part.variable) for part in query.pattern.parts] == [("A", "non"), ("B", "overlap")]
    assert query.outputs == (ReturnItem("overlap", Attribute("non", None, "non")),)


@pytest.mark.parametrize(
    ("clause", "words", "field"),
    [
        ("MAXIMAL", ["maximal"], "maximal"),
        ("First Match", ["first", "match"], "first"),
        ("after match skip to next row", ["after", "match", "skip", "to", "next", "row"], "skip"),
        ("After match skip to last {}", ["after", "match", "skip", "to", "last"], "skip"),
        ("CONSUME", ["consume"], "consume"),
        ("every 3 s", ["every"], "every"),
    ],
)
def test_clauses_that_choose_stand_after_errors_and_reserve_no_word(clause: str, words: list[str], field: str):
    for word in words:
        text = f"PATTERN SEQ(A {word}, {word} b) WHERE b.{word} > {word}.x AND {word}.{word} = 1 WITHIN 5"
        assert parse(text).selection.is_all
        query = parse(f"{text} ERRORS 1 {clause.format(word)} RETURN b.{word} AS {word}")
        assert getattr(query.selection, field)
        parts = [(part.type, part.variable) for part in query.pattern.parts]
        assert parts == [("A", word), (word, "b")]
        assert parse(to_text(query)) == query
    if "{}" not in clause:
        defined = parse(f"ab WITHIN 5 s {clause} DEFINE a AS {words[0]} = 1")
        assert getattr(defined.selection, field)


def test_simultaneous_stands_after_within_and_reserves_no_word():
    assert not parse("PATTERN A a WITHIN 5").is_simultaneous
    assert parse("ab WITHIN 5 s simultaneous DEFINE a AS simultaneous = 1").is_simultaneous
    assert not parse("ab DEFINE a AS simultaneous WITHIN 5").is_simultaneous
    text = "PATTERN SEQ(A simultaneous, simultaneous b) WHERE b.simultaneous > simultaneous.x WITHIN 5"
    assert not parse(text).is_simultaneous
    query = parse(text + " Simultaneous ERRORS 1 RETURN b.x AS simultaneous")
    assert query.is_simultaneous
    assert [(part.type, part.variable) for part in query.pattern.parts] == [("A", "simultaneous"), ("simultaneous", "b")]
    assert parse(to_text(query)) == query


def test_positions_refer_to_the_text():
    text = "-- what\nPATTERN SEQ(Shelf a, (Exit b | Exit c)) WHERE [id] AND (a.x > 1) WITHIN 12 h SIMULTANEOUS ERRORS 1 WEIGHTS (b = 2) NON OVERLAP"
    query = parse(text)
    show = lambda node: text[slice(*node.span)]  # noqa: E731
    assert show(query.pattern) == "SEQ(Shelf a, (Exit b | Exit c))"
    assert show(query.pattern.parts[0]) == "Shelf a"
    assert show(query.pattern.parts[1]) == "(Exit b | Exit c)"
    assert show(query.predicates[0]) == "(a.x > 1)"
    assert show(query.equivalences[0]) == "[id]"
    assert show(query.window) == "12 h"
    places = {"SIMULTANEOUS": "SIMULTANEOUS", "ERRORS": "1", "WEIGHTS b": "b = 2", "NON OVERLAP": "NON OVERLAP"}
    assert {name: text[slice(*span)] for name, span in query.places} == places
    text = "PATTERN SEQ(A a, B b) WITHIN 5 s MAXIMAL FIRST  MATCH AFTER MATCH SKIP TO LAST b CONSUME EVERY 2 s"
    query = parse(text)
    whole = ["MAXIMAL", "FIRST  MATCH", "AFTER MATCH SKIP TO LAST b", "CONSUME", "EVERY 2 s"]
    assert [text[slice(*span)] for _, span in query.places] == whole
    assert (show(query.selection.skip), show(query.selection.every)) == ("b", "2 s")
    regex = "\n ab(c)+ DEFINE c AS x > 1 WITHIN 5"
    assert regex[slice(*parse(regex).pattern.span)] == "ab(c)+"
    assert regex[slice(*parse(regex).definitions[0].condition.span)] == "x > 1"


def test_equality_ignores_positions():
    first, second = parse("PATTERN A a WITHIN 5"), parse("pattern\n(A a)\nwithin 5 ticks")
    assert first == second
    assert hash(first) == hash(second)


def test_keywords_ignore_case_names_do_not():
    assert parse("pattern seq(a A, A a) within 5").pattern == Sequence((Atom("a", "A"), Atom("A", "a")))


def test_a_normal_query_is_read_with_a_few_thousand_calls():
    text = "PATTERN SEQ(Shelf a, ~(Register b), Exit+ c[]) WHERE [tag_id] AND a.x > 3 AND c[i].y > c[i-1].y WITHIN 12 h ERRORS 1"
    parse(text)
    assert calls(lambda: parse(text)) < 10_000


def test_importing_the_language_is_cheap():
    code = (
        "import sys; import acep_approx.query.parser, acep_approx.query.checks, acep_approx.query.types, "
        "acep_approx.query.builder, acep_approx.query.printer, acep_approx.query.shape; "
        "print(sorted({'lark', 'pyarrow', 'pandas', 'numba', 'numpy'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
