"""The builder makes the same tree as the text, in all its parts, and never changes in place."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given

from acep_approx.errors import QueryError, UsageError
from acep_approx.query.builder import PatternBuilder, absent, all_of, either, event, seq
from acep_approx.query.checks import check
from acep_approx.query.parser import parse
from acep_approx.query.syntax import WORD_FOR, Absent, AllOf, Atom, Either, Pattern, Repeat, Sequence, Spaced
from tests.cases import examples
from tests.strategies import PATTERN_QUERIES, renamed

a, b, c = event("A", "a"), event("B", "b"), event("C", "c")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (a, "A a"),
        (event(None, "x"), "ANY x"),
        (event("start trip", "x"), "'start trip' x"),
        (seq(a), "A a"),
        (seq(a, b, c), "SEQ(A a, B b, C c)"),
        (seq(a, seq(b, c)), "SEQ(A a, B b, C c)"),
        (either(a, either(b, c)), "(A a | B b | C c)"),
        (seq(a, either(b, c)), "SEQ(A a, (B b | C c))"),
        (either(seq(a, b), c), "(A a, B b | C c)"),
        (a.plus(), "A+ a[]"),
        (a.star(), "A* a[]"),
        (a.optional(), "A? a"),
        (a.times(3), "A{3} a[]"),
        (a.times(2, 3), "A{2,3} a[]"),
        (a.at_least(2), "A{2,} a[]"),
        (seq(a, b).plus(), "(A a, B b)+"),
        (seq(a, absent(b), c), "SEQ(A a, ~(B b), C c)"),
        (seq(a, absent(b, c)), "SEQ(A a, ~(B b | C c))"),
    ],
)
def test_patterns(built, text):
    assert str(built) == text
    assert built.within(5).syntax() == parse(f"PATTERN {text} WITHIN 5")


def test_all_clauses():
    built = (
        seq(a, b.plus())
        .where("[id]")
        .where("a.x > 10 AND b[i].x > b[i-1].x")
        .strategy("SKIP_TILL_NEXT_MATCH")
        .within("90 seconds")
        .simultaneous()
        .errors(1, weights={"b": 2})
        .returning(x="a.x", mean="avg(b[].x)")
        .returning(last="b[b.LEN].x")
    )
    text = """PATTERN SEQ(A a, B+ b[])
WHERE skip_till_next_match { [id] AND a.x > 10 AND b[i].x > b[i-1].x }
WITHIN 90 s
SIMULTANEOUS
ERRORS 1 WEIGHTS (b = 2)
RETURN a.x AS x, avg(b[].x) AS mean, b[b.LEN].x AS last"""
    assert str(built) == text
    assert built.syntax() == parse(text)
    check(built.syntax())


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (5, "5"),
        ("5", "5"),
        ("5 events", "5 events"),
        ("10 sec", "10 s"),
        (timedelta(hours=12), "12 h"),
        (timedelta(days=2), "2 d"),
        (timedelta(minutes=90), "90 min"),
        (timedelta(milliseconds=1500), "1500 ms"),
        (timedelta(microseconds=7), "7 us"),
        (timedelta(0), "0 us"),
    ],
)
def test_windows(window, text):
    assert str(a.within(window)) == f"PATTERN A a\nWITHIN {text}"


CHOOSING = {
    "non_overlap": lambda made: made.non_overlap(),
    "maximal": lambda made: made.maximal(),
    "first_match": lambda made: made.first_match(),
    "skip_to": lambda made: made.skip_to("last a"),
    "consume": lambda made: made.consume(),
    "every": lambda made: made.every("3 s"),
}


@pytest.mark.parametrize(
    ("where", "clause"),
    [
        ("next row", "AFTER MATCH SKIP TO NEXT ROW"),
        ("Past  last ROW", "NON OVERLAP"),
        ("FIRST first", "AFTER MATCH SKIP TO FIRST first"),
        ("last b", "AFTER MATCH SKIP TO LAST b"),
    ],
)
def test_where_the_next_match_may_start(where, clause):
    built = seq(event("A", "first"), b).within(5).skip_to(where)
    assert str(built) == f"PATTERN SEQ(A first, B b)\nWITHIN 5\n{clause}"
    check(built.syntax())


@pytest.mark.parametrize("where", ["", "next", "last row row", "past", "first", "middle b", "last 1"])
def test_no_place_to_skip_to(where):
    with pytest.raises(UsageError, match="ACEP-U021"):
        a.skip_to(where)


def test_clauses_that_choose_go_together():
    built = seq(a, b).within(5)
    for call in CHOOSING.values():
        built = call(built)
    text = "MAXIMAL\nFIRST MATCH\nAFTER MATCH SKIP TO LAST a\nCONSUME\nEVERY 3 s"
    assert str(built) == f"PATTERN SEQ(A a, B b)\nWITHIN 5\n{text}"
    assert str(built.every(timedelta(minutes=1))).endswith("EVERY 1 min")


@pytest.mark.parametrize("clause", ["errors", "strategy", "returning", "where", "simultaneous", *CHOOSING])
def test_any_clause_may_come_first(clause):
    calls = {
        "errors": lambda made: made.errors(0),
        "strategy": lambda made: made.strategy("strict_contiguity"),
        "returning": lambda made: made.returning(x="a.x"),
        "where": lambda made: made.where("a.x = 1"),
        "simultaneous": lambda made: made.simultaneous(),
        **CHOOSING,
    }
    assert calls[clause](a).within(5).syntax() == calls[clause](a.within(5)).syntax()


def test_every_call_gives_a_new_object():
    first = a.where("a.x = 1")
    second = first.where("a.x = 2").within(5)
    assert len(first.predicates) == 1
    assert first.window is None
    assert len(second.predicates) == 2
    assert a.plus() is not a
    assert a == event("A", "a")
    with pytest.raises(AttributeError):
        first.window = None


def test_positions_of_a_built_query_refer_to_its_text():
    built = seq(a, b).where("c.x > 1").within(5)
    with pytest.raises(QueryError, match="ACEP-Q030") as caught:
        check(built.syntax())
    assert caught.value.text == str(built)
    assert (caught.value.line, caught.value.column) == (2, 7)


@pytest.mark.parametrize(
    ("call", "error", "code"),
    [
        (lambda: a.where("a.x >"), QueryError, "Q002"),
        (lambda: a.where("[id] OR a.x = 1"), QueryError, "Q013"),
        (lambda: a.returning(x="[id]"), QueryError, "Q013"),
        (lambda: a.within("5 parsec"), QueryError, "Q007"),
        (lambda: a.within("soon"), QueryError, "Q001"),
        (lambda: a.errors(1).syntax(), QueryError, "Q005"),
        (lambda: check(a.within(-5).syntax()), QueryError, "Q045"),
        (lambda: check(a.errors(1).within(5).syntax()), QueryError, "Q040"),
        (lambda: a.strategy("skip_till_next_mach"), UsageError, "U021"),
        (lambda: event("A", "a b"), UsageError, "U022"),
        (lambda: event("A", "within"), UsageError, "U022"),
        (lambda: a.times(-1), UsageError, "U023"),
        (lambda: seq(), UsageError, "U024"),
        (lambda: either(), UsageError, "U024"),
        (lambda: absent(), UsageError, "U024"),
        (lambda: absent(a.plus()), UsageError, "U024"),
        (lambda: absent(seq(a, b)), UsageError, "U024"),
    ],
)
def test_mistakes(call, error, code):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.code == f"ACEP-{code}"
    assert caught.value.hint or code.startswith("Q")


def rebuilt(node: Pattern) -> PatternBuilder:
    match node:
        case Atom(type=kind, variable=variable):
            return event(kind, variable)
        case Repeat(part=part, least=least, most=most, between=between, prefers=prefers, until=until):
            inner = rebuilt(part)
            built = inner.at_least(least) if most is None else inner.times(least, most)
            words = between and WORD_FOR[between], prefers, until and rebuilt(until)
            return built.rounds(*words) if any(words) else built
        case Spaced(strategy=strategy, part=part):
            return rebuilt(part).gap(WORD_FOR[strategy])
        case Sequence(parts=parts):
            return seq(*map(rebuilt, parts))
        case AllOf(parts=parts):
            return all_of(*map(rebuilt, parts))
        case Either(options=options):
            return either(*map(rebuilt, options))
        case Absent(options=options, directly=directly):
            return absent(*map(rebuilt, options), directly=directly and WORD_FOR[directly])


@given(PATTERN_QUERIES)
@examples(100)
def test_any_pattern_can_be_built(query):
    pattern = renamed(query.pattern)
    built = rebuilt(pattern)
    assert built.node == pattern
    assert built.within(5).syntax().pattern == pattern
