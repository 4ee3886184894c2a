"""Printing: what is printed reads back as the same tree, and has no bracket too many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.query.kept import parser
from acep_approx.query.messages import RESERVED
from acep_approx.query.parser import parse, parse_expression
from acep_approx.query.printer import is_name, to_text
from acep_approx.query.syntax import Atom, Constant, Repeat, Sequence, Unary
from tests.cases import examples
from tests.strategies import QUERIES, WITH_FUNCTIONS


@given(QUERIES)
@examples(150)
def test_parse_of_print_is_the_same_query(query):
    read = parse(to_text(query))
    assert read == query
    assert repr(read) == repr(query)  # 1, 1.0 and TRUE are equal in Python, but not the same
    assert to_text(read) == to_text(query)


@given(WITH_FUNCTIONS)
@examples(250)
def test_parse_of_print_is_the_same_expression(expression):
    assert repr(parse_expression(to_text(expression))) == repr(expression)


@given(st.text(max_size=6))
def test_is_name_agrees_with_the_grammar(word):
    import re

    pattern = parser().get_terminal("NAME").pattern.to_regexp()
    assert is_name(word) == bool(re.fullmatch(pattern, word))


def test_reserved_words_are_those_of_the_grammar():
    pattern = parser().get_terminal("NAME").pattern.value
    assert set(pattern[pattern.index("(?:") + 3 : pattern.index(r")\b")].split("|")) == RESERVED


@pytest.mark.parametrize(
    "text",
    [
        "a.x + b.x * 2",
        "(a.x + b.x) * 2",
        "a.x - (b.x - 2)",
        "a.x - b.x - 2",
        "a.x = 1 OR a.x = 2 AND a.y = 3",
        "(a.x = 1 OR a.x = 2) AND a.y = 3",
        "NOT (a.x = 1 AND a.y = 2)",
        "NOT a.x = 1",
        "-a.x * 2",
        "-(a.x * 2)",
        "-(5)",
        "-(-5)",
        "-(-a.x)",
        "a.x - -5",
        "-5 + a.x",
        "a.x NOT IN (1, -2.5, NULL, 'it''s', TRUE)",
        "a.x NOT BETWEEN -1 AND b.x + 1",
        "a.x + 1 IS NOT NULL",
        "(a.x > 1) = (b.x > 1)",
        "avg(a[..i-1].price) > a[1].price + a[i].price - a[i-1].price * a[a.LEN].price",
        "count(a[]) = 3",
        "a.`dep time` = `it``s`",
        "a.within > a.and",
    ],
)
def test_text_that_is_canonical_stays(text):
    assert to_text(parse_expression(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("pattern A a within 5 ticks", "PATTERN A a\nWITHIN 5"),
        ("PATTERN (((A a))) WITHIN 5 days", "PATTERN A a\nWITHIN 5 d"),
        ("PATTERN ((A a, B b), (C c)) WITHIN 1 event", "PATTERN SEQ(A a, B b, C c)\nWITHIN 1 events"),
        ("PATTERN SEQ(A a, B b | C c) WITHIN 0", "PATTERN (A a, B b | C c)\nWITHIN 0"),
        ("PATTERN SEQ(A a, (B b | C c)) WITHIN 1.5 s", "PATTERN SEQ(A a, (B b | C c))\nWITHIN 1.5 s"),
        ("PATTERN (A a)+ WITHIN 5", "PATTERN A+ a[]\nWITHIN 5"),
        ("PATTERN (A+ a)? WITHIN 5", "PATTERN (A+ a[])?\nWITHIN 5"),
        ("PATTERN A{1} a WITHIN 5", "PATTERN A{1} a\nWITHIN 5"),
        ("PATTERN SEQ('A' a, ~B b, 'any' c) WITHIN 5", "PATTERN SEQ(A a, ~(B b), 'any' c)\nWITHIN 5"),
        ("a((b)|(c))((d)e){0,} WITHIN 5", "a(b|c)(de)*\nWITHIN 5"),
        ("PATTERN A a WHERE STRICT_CONTIGUITY WITHIN 5", "PATTERN A a\nWHERE strict_contiguity\nWITHIN 5"),
        (
            "PATTERN A a WHERE skip_till_any_match { a.x <> 1 } WITHIN 5 ERRORS 0",
            "PATTERN A a\nWHERE a.x != 1\nWITHIN 5",
        ),
        ("PATTERN A a WITHIN 5 errors 1 non overlap", "PATTERN A a\nWITHIN 5\nERRORS 1\nNON OVERLAP"),
        (
            "PATTERN A a WITHIN 5 maximal first  match after match skip to\nlast a consume every 1.5 h",
            "PATTERN A a\nWITHIN 5\nMAXIMAL\nFIRST MATCH\nAFTER MATCH SKIP TO LAST a\nCONSUME\nEVERY 1.5 h",
        ),
        ("PATTERN A a WITHIN 5 after match skip past last row", "PATTERN A a\nWITHIN 5\nNON OVERLAP"),
        ("PATTERN A a WITHIN 5 after match skip to next row", "PATTERN A a\nWITHIN 5\nAFTER MATCH SKIP TO NEXT ROW"),
        ("PATTERN A a WITHIN 5 every 3", "PATTERN A a\nWITHIN 5\nEVERY 3"),
        ("PATTERN A a WITHIN 5 simultaneous errors 1", "PATTERN A a\nWITHIN 5\nSIMULTANEOUS\nERRORS 1"),
        ("ab DEFINE a AS x==1 WITHIN 5", "ab\nWITHIN 5\nDEFINE a AS x = 1"),
    ],
)
def test_canonical_text(text, canonical):
    assert to_text(parse(text)) == canonical


def test_a_pattern_on_its_own():
    assert to_text(Sequence((Atom("A", "a"), Repeat(Atom(None, "b"), 2, 2)))) == "SEQ(A a, ANY{2} b[])"


def test_a_minus_never_begins_a_comment():
    assert to_text(Unary("-", Unary("-", Constant(-5)))) == "-(-(-5))"
