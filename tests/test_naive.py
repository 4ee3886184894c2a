"""The oracle itself: cases worked by hand, and the two oracles against each other where both can answer."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.query.checks import check
from acep_approx.query.parser import parse
from acep_approx.query.shape import negated_variables, variables
from acep_approx.query.syntax import Strategy
from tests.cases import examples
from tests.naive import PartitionSearch, expected_matches, partitions
from tests.naive_selection import reported_matches
from tests.rich_worlds import RichWorld, rich_worlds
from tests.tied_worlds import shuffled, tied_world
from tests.worlds import World, worlds


def rows_of(stream: str) -> list[dict[str, Any]]:
    """``"A@3:x=1,s=u B"``: types, times (else the number of the event, from 1) and attributes (else NULL)."""
    rows = []
    for number, word in enumerate(stream.split(), start=1):
        place, _, attributes = word.partition(":")
        kind, _, tick = place.partition("@")
        values = dict(pair.split("=") for pair in attributes.split(",") if pair)
        known = {name: value if name in "sg" else int(value) for name, value in values.items()}
        rows.append({"ts": int(tick or number), "type": kind, **dict.fromkeys("xysg"), **known})
    return rows


def found(query: str, stream: str) -> dict[str, int]:
    """The matches with their errors, written ``"a1 b3"``: variables, and numbers of events from 1."""
    tree = parse(query)
    check(tree)
    matches = expected_matches(tree, rows_of(stream))
    return {" ".join(f"{variable}{row + 1}" for row, variable in bound): err for bound, err in matches.items()}


# --- strategies -------------------------------------------------------------------------------------------------------

ANY: Strategy = "skip_till_any_match"
NEXT: Strategy = "skip_till_next_match"
PARTITION: Strategy = "partition_contiguity"
STRICT: Strategy = "strict_contiguity"

# Table 4 of Agrawal et al., SIGMOD 2008: which two moves may both be open for one event, under each strategy. What a
# strategy does not allow is what is missing from the matches of the next one.
TABLE_4 = {
    "take-proceed": (
        "SEQ(A+ a[], A b)",
        "A A A",
        {STRICT: "a1 b2, a2 b3, a1 a2 b3", NEXT: "a1 b2, a2 b3, a1 a2 b3", ANY: "a1 b2, a2 b3, a1 a2 b3, a1 b3"},
    ),
    "ignore-proceed": (
        "SEQ(A+ a[], B b)",
        "A B B",
        {STRICT: "a1 b2", NEXT: "a1 b2, a1 b3", ANY: "a1 b2, a1 b3"},
    ),
    "take-ignore": (
        "SEQ(A+ a[], B b)",
        "A A B",
        {STRICT: "a2 b3, a1 a2 b3", NEXT: "a2 b3, a1 a2 b3", ANY: "a2 b3, a1 a2 b3, a1 b3"},
    ),
    "begin-ignore": (
        "SEQ(A a, B b)",
        "A B B",
        {STRICT: "a1 b2", NEXT: "a1 b2", ANY: "a1 b2, a1 b3"},
    ),
}


@pytest.mark.parametrize("kind", TABLE_4)
def test_nondeterminism_of_sase(kind: str) -> None:
    """Table 4: Y where two moves are open, N where one is."""
    pattern, stream, expected = TABLE_4[kind]
    for strategy, matches in {**expected, PARTITION: expected[STRICT]}.items():
        query = f"PATTERN {pattern} WHERE {strategy} WITHIN 9"
        assert found(query, stream) == dict.fromkeys(matches.split(", "), 0), strategy


def test_query_3_of_sase() -> None:
    """Figure 1 (c) on the stream of Figure 3: R1, R2 and R3.

    Figure 3 is a picture. These numbers give the matches it shows, and after e4 the registers of Figure 5: sums 461 and
    241, counts 4 and 2, volume 999.
    """
    query = """PATTERN SEQ(Stock a[], Stock b) WHERE skip_till_next_match(a[], b) { [symbol] AND a[1].volume > 1000
        AND a[i].price > avg(a[..i-1].price) AND b.volume < 0.8 * a[a.LEN].volume } WITHIN 1000"""
    prices = (100, 120, 120, 121, 120, 125, 120, 120)
    volumes = (1010, 990, 1005, 999, 999, 750, 950, 700)
    rows = [
        {"ts": i, "type": "Stock", "symbol": "GOOG", "price": price, "volume": volume}
        for i, (price, volume) in enumerate(zip(prices, volumes, strict=True), start=1)
    ]
    matches = expected_matches(parse(query.replace("Stock a[]", "Stock+ a[]")), rows)
    ends = {tuple(row + 1 for row, _ in bound) for bound in matches}
    assert ends == {(1, 2, 3, 4, 5, 6), (3, 4, 6), (1, 2, 3, 4, 5, 6, 7, 8)}


@pytest.mark.parametrize(
    ("strategy", "stream", "matches"),
    [
        (STRICT, "A:g=p B:g=p", {"a1 b2": 0}),
        (STRICT, "A:g=p A:g=q B:g=p", {}),
        (STRICT, "A:g=p X B:g=p", {}),  # an event without key is in the stream all the same
        (PARTITION, "A:g=p A:g=q X B:g=p", {"a1 b4": 0}),
        (PARTITION, "A:g=p X:g=p B:g=p", {}),
        (NEXT, "A:g=p X:g=p B:g=p", {"a1 b3": 0}),
        (NEXT, "A:g=p B:g=q B:g=p B:g=p", {"a1 b3": 0}),
    ],
)
def test_contiguity_is_of_the_stream_or_of_the_partition(strategy: str, stream: str, matches: dict[str, int]) -> None:
    assert found(f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ [g] }} WITHIN 9", stream) == matches


@pytest.mark.parametrize(
    ("query", "stream", "matches"),
    [
        # What does not satisfy the conditions is skipped, so the next one that does is taken.
        ("SEQ(A a, B b) WHERE skip_till_next_match { b.x > a.x }", "A:x=2 B:x=1 B:x=3 B:x=4", {"a1 b3": 0}),
        # b's last event is not known yet: the condition keeps no event from being taken.
        (
            "SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { b[b.LEN].x > 3 }",
            "A B:x=5 B:x=1 C",
            {},
        ),
        ("SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { b[i].x > 3 }", "A B:x=5 B:x=1 C", {"a1 b2 c4": 0}),
        # The step to c leaves b behind, so its last event is known then: C is no next match after too small a B.
        (
            "SEQ(B+ b[], C c) WHERE skip_till_next_match { b[b.LEN].x > 3 }",
            "B:x=1 C B:x=5 C",
            {"b3 c4": 0, "b1 b3 c4": 0},
        ),
        # A bounded repetition: when it is full there is nothing to take, and its exit inhibits.
        ("SEQ(A{1,2} a[], B b) WHERE skip_till_next_match", "A A B B", {"a1 a2 b3": 0, "a2 b3": 0, "a2 b4": 0}),
        # An optional part is no repetition: both of its continuations inhibit.
        ("SEQ(A a, B? b, C c) WHERE skip_till_next_match", "A B C C", {"a1 b2 c3": 0}),
        # Another round of a group is a take, however the round is begun; then C alone inhibits nothing.
        ("SEQ((A a, B b)+, C c) WHERE skip_till_next_match", "A B C C", {"a1 b2 c3": 0, "a1 b2 c4": 0}),
        ("SEQ((A a, B b)+, C c) WHERE skip_till_next_match", "A B A C", {}),
        # Steps that need a missing letter inhibit nothing: the first C could be bound only after a missing B.
        ("SEQ(A a, B b, C c) WHERE skip_till_next_match", "A C C", {}),
        (
            "SEQ(A a, B b, C c) WHERE skip_till_next_match WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)",
            "A C C",
            {"a1 c2": 1, "a1 c3": 1},
        ),
        # Nothing is asked of events before the first.
        ("SEQ(A a, B b) WHERE skip_till_next_match", "A A B", {"a1 b3": 0, "a2 b3": 0}),
        # Negations inhibit nothing.
        ("SEQ(A a, ~(A n), B b) WHERE skip_till_next_match", "A A B", {"a2 b3": 0}),
    ],
)
def test_skip_till_next_match(query: str, stream: str, matches: dict[str, int]) -> None:
    assert found(f"PATTERN {query}" + ("" if "WITHIN" in query else " WITHIN 9"), stream) == matches


# --- conditions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "stream", "matches"),
    [
        ("a.x > 1", "A:x=1 A:x=2 B", ["a2 b3"]),
        ("a[i].x > a[i-1].x", "A:x=1 A:x=1 B", ["a1 b3", "a2 b3"]),  # says nothing about one event
        ("a[1].x = 1 AND a[a.LEN].x = 2", "A:x=1 A:x=2 B", ["a1 a2 b3"]),
        ("count(a[]) = 2", "A A B", ["a1 a2 b3"]),
        ("count(a[].x) = 1", "A:x=5 A B", ["a1 b3", "a1 a2 b3"]),
        ("sum(a[].x) = 3", "A:x=1 A:x=2 B", ["a1 a2 b3"]),
        ("sum(a[].x) IS NULL", "A A:x=2 B", ["a1 b3"]),
        ("avg(a[].x) = 1.5", "A:x=1 A:x=2 B", ["a1 a2 b3"]),
        ("min(a[].s) = 'u'", "A:s=v A:s=u B", ["a2 b3", "a1 a2 b3"]),
        ("first(a[].x) IS NULL", "A A:x=1 B", ["a1 b3", "a1 a2 b3"]),  # not the first that is known
        ("last(a[].x) = 1", "A:x=1 A B", ["a1 b3"]),
        ("a[i].x > sum(a[..i-1].x)", "A:x=1 A:x=1 B", ["a1 b3", "a2 b3"]),
        ("a[i].x > count(a[..i-1])", "A:x=0 A:x=2 B", ["a1 b3", "a2 b3", "a1 a2 b3"]),
        ("b.x > a[i].x", "A:x=1 A:x=5 B:x=3", ["a1 b3"]),  # above each of them
        ("a.x > 1 OR b.x > 1", "A:x=0 A:x=2 B:x=0", ["a2 b3"]),
        ("a.x > 1 OR b.x > 1", "A:x=0 A:x=2 B:x=2", ["a1 b3", "a2 b3", "a1 a2 b3"]),
        ("NOT a.x > 1", "A A:x=1 B", ["a2 b3"]),
        ("a.x = a[1].x", "A:x=1 A:x=2 B", ["a1 b3", "a2 b3"]),
        ("a.x + a[i-1].x = 3", "A:x=1 A:x=1 A:x=2 B", ["a1 b4", "a2 b4", "a3 b4", "a1 a3 b4", "a2 a3 b4"]),
    ],
)
def test_conditions_over_a_repetition(conditions: str, stream: str, matches: list[str]) -> None:
    assert found(f"PATTERN SEQ(A+ a[], B b) WHERE {conditions} WITHIN 9", stream) == dict.fromkeys(matches, 0)


def test_two_repetitions_in_one_condition_range_over_all_pairs() -> None:
    query = "PATTERN SEQ(A+ a[], B+ b[]) WHERE strict_contiguity { a.x < b.x } WITHIN 9"
    assert found(query, "A:x=1 A:x=3 B:x=4 B:x=2") == {"a1 a2 b3": 0, "a2 b3": 0}
    assert "a1 a2 b3 b4" in found(query, "A:x=1 A:x=3 B:x=4 B:x=5")


@pytest.mark.parametrize(
    ("query", "stream", "matches"),
    [
        # About a variable of the other alternative, or of an optional part left out: void.
        ("SEQ((A a | B b), C c) WHERE c.x > a.x AND c.x > b.x", "A:x=1 B:x=9 C:x=5", {"a1 c3": 0}),
        ("SEQ(A a, B? b, C c) WHERE b.x > 5", "A B:x=1 C", {"a1 c3": 0}),
        ("SEQ(A a, B* b[], C c) WHERE sum(b[].x) > 5", "A B:x=1 C", {"a1 c3": 0}),
        # About a missing event: void, even in OR.
        (
            "SEQ(A a, B b, C c) WHERE b.x > 5 OR a.x > 5 WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)",
            "A:x=1 C",
            {"a1 c2": 1},
        ),
    ],
)
def test_void_conditions(query: str, stream: str, matches: dict[str, int]) -> None:
    assert found(f"PATTERN {query}" + ("" if "WITHIN" in query else " WITHIN 9"), stream) == matches


# --- negation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "stream", "matches"),
    [
        # Between.
        ("SEQ(A a, ~(N n), B b) WITHIN 9", "A N B", {}),
        ("SEQ(A a, ~(N n), B b) WITHIN 9", "N A B N", {"a2 b3": 0}),
        ("SEQ(A a, ~(N n | M m), B b) WITHIN 9", "A M B", {}),
        ("SEQ(A a, ~(N n), B b) WHERE n.x = a.x WITHIN 9", "A:x=1 N:x=2 B", {"a1 b3": 0}),
        ("SEQ(A a, ~(N n), B b) WHERE n.x = a.x WITHIN 9", "A:x=1 N:x=1 B", {}),
        ("SEQ(A a, ~(N n), B b) WHERE n.x = a.x WITHIN 9", "A:x=1 N B", {"a1 b3": 0}),  # not known to be equal
        ("SEQ(A a, ~(N n), B b, C c) WHERE n.x < c.x WITHIN 9", "A N:x=2 B C:x=1 C:x=3", {"a1 b3 c4": 0}),
        ("SEQ(A a, ~(N n), B b) WHERE n.x > 3 WITHIN 9", "A N:x=1 B", {"a1 b3": 0}),
        # A condition about a variable that has no event: what cannot be known speaks for the match.
        ("SEQ(A a, ~(N n), B b, C? c) WHERE n.x < c.x WITHIN 9", "A N:x=2 B C:x=3", {"a1 b3": 0}),
        # For each event of a repetition; with one event there is nothing to look back at.
        ("SEQ(A+ a[], ~(N n), B b) WHERE strict_contiguity { n.x > a.x }", "A:x=1 B", {"a1 b2": 0}),
        ("SEQ(A+ a[], ~(N n), B b) WHERE n.x > a.x", "A:x=1 A:x=3 N:x=2 B", {"a2 b4": 0, "a1 a2 b4": 0}),
        ("SEQ(A+ a[], ~(N n), B b) WHERE n.x > a[i-1].x", "A:x=1 A:x=3 N:x=1 B", {"a1 a2 b4": 0}),
        ("SEQ(A+ a[], ~(N n), B b) WHERE n.x > sum(a[].x)", "A:x=1 A:x=3 N:x=4 B", {"a1 a2 b4": 0}),
        # Before the first event: as far back as the window reaches from the last one, ends included.
        ("SEQ(~(N n), A a, B b) WITHIN 5", "N@1 A@4 B@6", {}),
        ("SEQ(~(N n), A a, B b) WITHIN 5", "N@0 A@4 B@6", {"a2 b3": 0}),
        ("SEQ(~(N n), A a, B b) WITHIN 5", "A@4 N@4 B@6", {"a1 b3": 0}),
        ("SEQ(~(N n), A a, B b) WITHIN 5", "N@4 A@4 B@6", {}),
        ("SEQ(~(N n), A a, B b) WITHIN 2 events", "N A B", {}),
        ("SEQ(~(N n), A a, B b) WITHIN 2 events", "N A X B", {"a2 b4": 0}),
        ("SEQ(~(N n), A a, B b) WHERE n.x = b.x WITHIN 5", "N:x=1 A B:x=2 B:x=1", {"a2 b3": 0}),
        # After the last event: as far as the window reaches from the first one, ends included.
        ("SEQ(A a, B b, ~(N n)) WITHIN 5", "A@1 B@2 N@6", {}),
        ("SEQ(A a, B b, ~(N n)) WITHIN 5", "A@1 B@2 N@7", {"a1 b2": 0}),
        ("SEQ(A a, B b, ~(N n)) WITHIN 5", "A@1 N@2 B@2", {"a1 b3": 0}),
        ("SEQ(A a, B b, ~(N n)) WITHIN 5", "A@1 B@2", {"a1 b2": 0}),  # the end of the stream ends the window
        ("SEQ(A a, B b, ~(N n)) WITHIN 3 events", "A B X N", {}),
        ("SEQ(A a, B b, ~(N n)) WITHIN 2 events", "A B X N", {"a1 b2": 0}),
        ("SEQ(A a, ~(N n)) WHERE [g] WITHIN 5", "A:g=p N:g=q N", {"a1": 0}),
        ("SEQ(A a, ~(N n)) WHERE [g] WITHIN 1 events", "A:g=p B:g=q N:g=p", {}),  # events of the partition are counted
        # In a repetition: between its rounds, and after the last.
        ("(A a, ~(N n))+ WITHIN 9", "A N A", {"a3": 0}),
        ("(A a, ~(N n))+ WITHIN 9", "A A", {"a1": 0, "a2": 0, "a1 a2": 0}),
        # Where a part between is left out, the negations on both sides of it hold for the whole gap.
        ("SEQ(A a, ~(N n), B? b, ~(M m), C c) WITHIN 9", "A M N C", {}),
        ("SEQ(A a, ~(N n), B? b, ~(M m), C c) WITHIN 9", "A M B N C", {"a1 b3 c5": 0}),
    ],
)
def test_negation(query: str, stream: str, matches: dict[str, int]) -> None:
    assert found(f"PATTERN {query}" + ("" if "WITHIN" in query else " WITHIN 9"), stream) == matches


# --- missing events ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "stream", "matches"),
    [
        ("SEQ(A a, B b, C c) WITHIN 9 ERRORS 1", "A B C", {"a1 b2 c3": 0, "a1 b2": 1, "a1 c3": 1, "b2 c3": 1}),
        ("SEQ(A a, B b, C c) WITHIN 9 ERRORS 2 WEIGHTS (b = 2)", "A C", {"a1 c2": 2}),
        ("SEQ(A a, B{3} b[], C c) WITHIN 9 ERRORS 2 WEIGHTS (a = 3, c = 3)", "A B C", {"a1 b2 c3": 2}),
        ("SEQ(A a, B+ b[], C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)", "A C", {"a1 c2": 1}),
        ("SEQ(A a, (B b | C c), D d) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, b = 2, d = 2)", "A D", {"a1 d2": 1}),
        ("SEQ(A a, (B b, C c)?, D d) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, d = 2)", "A C D", {"a1 d3": 0, "a1 c2 d3": 1}),
        ("(A a, B b)+ WITHIN 9 ERRORS 1 WEIGHTS (b = 9)", "B B", {"b1": 1, "b2": 1}),
        # A missing event beside a negation makes it void, on either side of it, and at the ends.
        ("SEQ(A a, ~(N n), B b, C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)", "A N C", {"a1 c3": 1}),
        ("SEQ(A a, B b, ~(N n), C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)", "A N C", {"a1 c3": 1}),
        ("SEQ(A a, ~(N n), B* b[], C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)", "A N C", {"a1 c3": 1}),
        ("SEQ(~(N n), A a, B b) WITHIN 9 ERRORS 1 WEIGHTS (b = 2)", "N A B", {"b3": 1}),
        ("SEQ(A a, B b, ~(N n)) WITHIN 9 ERRORS 1 WEIGHTS (a = 2)", "A B N", {"a1": 1}),
        ("SEQ(A a, ~(N n), B b) WITHIN 9 ERRORS 1 WEIGHTS (a = 2)", "A N", {"a1": 1}),
        # Not beside: the other gap is still asked.
        ("SEQ(A a, ~(N n), B b, C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, b = 2)", "A N B", {}),
    ],
)
def test_missing_events(query: str, stream: str, matches: dict[str, int]) -> None:
    assert found(f"PATTERN {query}", stream) == matches


def test_a_match_has_the_least_errors_of_its_good_readings() -> None:
    """The free reading is broken by N; the one with a missing B is not."""
    query = "PATTERN SEQ(A a, ~(N n), B* b[], C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)"
    assert found(query, "A N C C") == {"a1 c3": 1, "a1 c4": 1}
    assert found(query, "A X C") == {"a1 c3": 0}


# --- windows, identity, regular expressions ---------------------------------------------------------------------------


def test_windows_count_events_of_the_partition() -> None:
    assert found("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 1 events", "A:g=p X:g=q B:g=p") == {"a1 b3": 0}
    assert found("PATTERN SEQ(A a, B b) WITHIN 1 events", "A X B") == {}


def test_letters_are_no_variables() -> None:
    assert found("A+A+ WITHIN 9", "A A") == {"1 2": 0}
    assert found("PATTERN SEQ(A+ a[], A+ b[]) WITHIN 9", "A A A")["a1 b2 b3"] == 0
    query = "pq WHERE skip_till_next_match { q.x > 1 } WITHIN 9 DEFINE p AS type = 'A'"
    assert found(query, "A q:x=1 q:x=2 q:x=3") == {"1 3": 0}


# --- NON OVERLAP ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "stream", "reported", "expected"),
    [
        ("SEQ(A a, B b)", "A B A B", ["a1 b2", "a3 b4"], True),
        ("SEQ(A a, B b)", "A B A B", ["a1 b2"], False),  # a3 b4 is in nobody's way
        ("SEQ(A a, B b)", "A B A B", ["a1 b2", "a1 b4"], False),
        ("SEQ(A a, B b)", "A A B", ["a2 b3"], True),  # the later start is first
        ("SEQ(A a, B b)", "A A B", ["a1 b3"], False),
        ("SEQ(A a, B b)", "A@1 A@1 B@2", ["a1 b3"], False),
        ("SEQ(A a, B b)", "A@1 A@1 B@2", ["a2 b3"], True),  # a tie in time: the later event
        ("SEQ(C? c, A{2} a[])", "C@7 A@7 A@8", ["a2 a3"], True),  # and the match that needs no more
        ("SEQ(C? c, A{2} a[])", "C@7 A@7 A@8", ["c1 a2 a3"], False),
        ("SEQ(A a, B b, C c)", "A@1 A@1 B@2 B@3 C@4", ["a2 b4 c5"], True),
        ("SEQ(A a, B b, C c)", "A@1 B@2 A@1 C@4", ["a1 b2 c4"], True),
        ("SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 WEIGHTS (c = 2)", "A B C", ["a1 b2 c3"], True),  # fewest errors
        ("SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 WEIGHTS (c = 2)", "A B C", ["b2 c3"], False),
        ("SEQ(A a, B b) WHERE [g]", "A:g=p A:g=q B:g=p B:g=q", ["a1 b3", "a2 b4"], True),
        # A negation at the end holds a1 back until its window has closed: then it begins too early.
        ("SEQ((A a, ~(N n) | B b, C c)) WITHIN 3", "A@1 B@2 C@3 X@9", ["b2 c3"], True),
        ("SEQ((A a, ~(N n) | B b, C c)) WITHIN 3", "A@1 B@2 C@3 X@9", ["a1", "b2 c3"], False),
        ("SEQ((A a, ~(N n) | B b, C c)) WITHIN 3", "B@1 A@2 C@3 X@9", ["b1 c3"], True),
        # With 1 error a1 could be had at once, because a missing b voids the negation; with none it waits.
        ("SEQ(A a, ~(N n), B* b[]) WITHIN 3 ERRORS 1 WEIGHTS (a = 2)", "A@1 B@2 X@9", ["a1 b2"], True),
        ("SEQ(A a, ~(N n), B* b[]) WITHIN 3 ERRORS 1 WEIGHTS (a = 2)", "A@1 B@2 X@9", ["a1"], False),
        # With as many errors with a negation and without it, nothing waits.
        ("(A a[], ~(N n)){2} WITHIN 3 ERRORS 1", "A@1 A@2 B@3", ["a1", "a2"], True),
        ("(A a[], ~(N n)){2} WITHIN 3 ERRORS 1", "A@1 A@2 B@3", ["a1 a2"], False),
    ],
)
def test_non_overlap(query: str, stream: str, reported: list[str], expected: bool) -> None:
    tree = parse(f"PATTERN {query}" + ("" if "WITHIN" in query else " WITHIN 9") + " NON OVERLAP")
    rows = rows_of(stream)
    chosen = [tuple((int(word[1:]) - 1, word[0]) for word in match.split()) for match in reported]
    assert (set(reported_matches(tree, rows, expected_matches(tree, rows))) == set(chosen)) is expected


# --- the other clauses that say which matches are listed --------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "stream", "listed"),
    [
        # Contained in another match, whatever the errors of the two. The complete one cannot be followed.
        ("SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 MAXIMAL", "A B C", ["a1 b2 c3"]),
        ("SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 MAXIMAL", "A B X C@20", ["a1 b2"]),
        ("SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 MAXIMAL", "A B C C", ["a1 b2 c3", "a1 b2 c4"]),
        ("A+ a[] WITHIN 9 MAXIMAL", "A A A@3 A@20", ["a1 a2 a3", "a4"]),
        ("A+ a[] WITHIN 1 MAXIMAL", "A A A", ["a1 a2", "a2 a3"]),
        ("SEQ(A{2,} a[], B b) WITHIN 9 MAXIMAL", "A A B A B", ["a1 a2 b3", "a1 a2 a4 b5"]),
        ("SEQ(A a, B b) WITHIN 9 MAXIMAL", "A A B B", ["a2 b3", "a1 b3", "a2 b4", "a1 b4"]),
        # Equal sets of events: both.
        ("SEQ(A+ a[], A+ b[]) WITHIN 9 MAXIMAL", "A A A", ["a1 a2 b3", "a1 b2 b3"]),
        # What waits is known when its window has closed, after what came meanwhile.
        ("(A+ a[] | B b) WITHIN 3 MAXIMAL", "A@1 B@2 A@3 B@4 B@5", ["b2", "b4", "a1 a3", "b5"]),
        ("(A+ a[] | B b) WITHIN 3 MAXIMAL", "A@1 B@2 A@3 B@4", ["b2", "b4", "a1 a3"]),
        ("SEQ(A+ a[], ~(N n)) WITHIN 3 MAXIMAL", "A@1 A@2 N@4 A@9", ["a4"]),
        ("SEQ(A+ a[], ~(N n)) WITHIN 3 MAXIMAL", "A@1 A@2 N@5 A@9", ["a1 a2", "a4"]),
        ("(SEQ(A a, B c, ~(N n)) | A b) WITHIN 3 MAXIMAL", "A@1 B@2 N@3", ["b1"]),  # the other is no match
        ("(SEQ(A a, B c, ~(N n)) | A b) WITHIN 3 MAXIMAL", "A@1 B@2 N@9", ["a1 c2"]),
        ("SEQ(A a, B b) WHERE [g] WITHIN 9 MAXIMAL FIRST MATCH", "A:g=p A:g=q B:g=p B:g=q B:g=q", ["a1 b3", "a2 b4"]),
        ("SEQ(A a, B b) WITHIN 9 FIRST MATCH", "A A B B A B", ["a2 b3", "a1 b3", "a5 b6"]),
        ("SEQ(A a, B b) WITHIN 9 AFTER MATCH SKIP TO NEXT ROW", "A A B B A B", ["a2 b3", "a5 b6"]),
        ("SEQ(A a, B b) WITHIN 9 AFTER MATCH SKIP TO NEXT ROW", "A B A B", ["a1 b2", "a3 b4"]),
        ("SEQ(A a, B b, C c) WITHIN 9 AFTER MATCH SKIP TO NEXT ROW", "A B A C B C", ["a1 b2 c4", "a3 b5 c6"]),
        ("SEQ(A a, B b, C c) WITHIN 9 AFTER MATCH SKIP PAST LAST ROW", "A B A C B C", ["a1 b2 c4"]),
        ("A{2} a[] WITHIN 9 AFTER MATCH SKIP TO LAST a", "A A A A", ["a1 a2", "a2 a3", "a3 a4"]),
        ("A{2} a[] WITHIN 9 AFTER MATCH SKIP TO FIRST a", "A A A", ["a1 a2", "a2 a3"]),
        ("SEQ(A a, B{1,2} b[]) WITHIN 9 AFTER MATCH SKIP TO FIRST a", "A A B B", ["a2 b3", "a2 b3 b4", "a2 b4"]),
        ("(SEQ(A a, B b) | C c) WITHIN 9 AFTER MATCH SKIP TO LAST b", "A C B A B", ["c2", "a4 b5"]),
        ("(SEQ(A a, B b) | C c) WITHIN 9 AFTER MATCH SKIP TO LAST b", "A B C", ["a1 b2", "c3"]),
        ("(SEQ(A a, B b) | SEQ(B d, C c)) WITHIN 9 AFTER MATCH SKIP TO LAST b", "A B C C", ["a1 b2", "d2 c3"]),
        ("SEQ(A a, B b) WITHIN 9 CONSUME", "A A B B A B", ["a2 b3", "a1 b4", "a5 b6"]),
        ("SEQ(A a, B b) WITHIN 9 EVERY 2", "A B B B B B", ["a1 b2", "a1 b4", "a1 b6"]),
        ("SEQ(A a, B b) WITHIN 9 EVERY 0", "A B B", ["a1 b2", "a1 b3"]),
        ("SEQ(A a, B b) WITHIN 9 EVERY 30", "A@1 B@2 A@20 B@21 A@31 B@32", ["a1 b2", "a5 b6"]),
        ("SEQ(A a, B b) WITHIN 9 FIRST MATCH CONSUME EVERY 2", "A A A B B B", ["a3 b4", "a2 b6"]),
        ("SEQ((A a, ~(N n) | B b, C c)) WITHIN 3 CONSUME", "A@1 B@2 C@3 X@9", ["b2 c3", "a1"]),
        ("SEQ((A a, ~(N n) | B b, C c)) WITHIN 3 EVERY 2", "A@1 B@2 C@3 X@9", ["b2 c3"]),
        ("SEQ((A a, ~(N n) | B b, C c)) WITHIN 3 AFTER MATCH SKIP TO NEXT ROW", "A@1 B@2 C@3 X@9", ["b2 c3"]),
    ],
)
def test_what_is_listed(query: str, stream: str, listed: list[str]) -> None:
    """In this order."""
    tree = parse(f"PATTERN {query}")
    check(tree)
    rows = rows_of(stream)
    chosen = [tuple((int(word[1:]) - 1, word[0]) for word in match.split()) for match in listed]
    assert list(reported_matches(tree, rows, expected_matches(tree, rows))) == chosen


# --- SIMULTANEOUS -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "stream", "matches"),
    [
        ("SEQ(A a, B b) WITHIN 9", "A@1 B@1 B@2", "a1 b3"),
        ("SEQ(B b, A a) WITHIN 9", "A@1 B@1 B@2", ""),
        ("A+ a[] WITHIN 9", "A@1 A@1 A@2", "a1, a2, a3, a1 a3, a2 a3"),
        ("SEQ(A a, B b, C c) WITHIN 9 SIMULTANEOUS ERRORS 1", "A@1 B@1 C@2", "a1 c3, b2 c3"),
        # Every event of the next tick that can go on does so, and none after it.
        ("SEQ(A a, B b) WHERE skip_till_next_match WITHIN 9", "A@1 B@2 B@2 B@3", "a1 b2, a1 b3"),
        ("SEQ(A+ a[], C c) WHERE skip_till_next_match WITHIN 9", "A@1 A@2 C@2 C@3", "a1 c3, a1 a2 c4, a2 c4"),
        ("SEQ(A a, B b) WHERE partition_contiguity WITHIN 9", "A@1 B@1 C@2 B@2 B@3", "a1 b4"),
        ("SEQ(A a, B b) WHERE partition_contiguity WITHIN 9", "A@1 C@2 B@3", ""),
        ("SEQ(A a, B b) WHERE partition_contiguity {[g]} WITHIN 9", "A@1:g=p X@2:g=q B@3:g=p", "a1 b3"),
        ("SEQ(A a, B b) WHERE strict_contiguity {[g]} WITHIN 9", "A@1:g=p X@2:g=q B@3:g=p", ""),
        ("SEQ(A a, B b) WHERE strict_contiguity {[g]} WITHIN 9", "A@1:g=p X@3:g=q B@3:g=p", "a1 b3"),
        ("SEQ(A+ a[], B b) WHERE strict_contiguity WITHIN 9", "A@1 A@2 B@2 B@3", "a1 b3, a1 a2 b4, a2 b4"),
        # Strictly between in time.
        ("SEQ(A a, ~(N n), B b) WITHIN 9", "A@1 N@1 N@3 B@3", "a1 b4"),
        ("SEQ(A a, ~(N n), B b) WITHIN 9", "A@1 N@2 B@3", ""),
        ("SEQ(~(N n), A a) WITHIN 2", "N@1 A@1", "a2"),
        ("SEQ(~(N n), A a) WITHIN 2", "N@1 A@3", ""),
        ("SEQ(A a, ~(N n)) WITHIN 2", "A@1 N@1 N@4", "a1"),
        ("SEQ(A a, ~(N n)) WITHIN 2", "A@1 N@3", ""),
    ],
)
def test_simultaneous(query: str, stream: str, matches: str) -> None:
    query = query if "SIMULTANEOUS" in query else query + " SIMULTANEOUS"
    assert found(f"PATTERN {query}", stream).keys() == set(matches.split(", ") if matches else ())


@examples(600)
@given(st.randoms(use_true_random=True))
def test_the_order_of_events_at_one_time_plays_no_role(random: Random) -> None:
    """With SIMULTANEOUS; and no two events of a match are at one time."""
    world = tied_world(random)
    rows, before = shuffled(world.rows, random)
    expected = world.expected()
    other = {tuple(sorted((before[row], name) for row, name in bound)): err for bound, err in
             expected_matches(world.query, rows).items()}  # fmt: skip
    assert other == {tuple(sorted(bound)): err for bound, err in expected.items()}
    for bound in expected:
        assert len({world.rows[row]["ts"] for row, _ in bound}) == len(bound)


@examples(300)
@given(st.randoms(use_true_random=True))
def test_without_ties_simultaneous_says_nothing(random: Random) -> None:
    world = tied_world(random)
    rows = [{**row, "ts": number} for number, row in enumerate(world.rows)]
    assert expected_matches(world.query, rows) == expected_matches(replace(world.query, is_simultaneous=False), rows)


# --- laws -------------------------------------------------------------------------------------------------------------


@examples(400)
@given(rich_worlds())
def test_strategies_are_ordered_and_errors_only_add(world: RichWorld) -> None:
    """The stricter the strategy, the fewer the matches; with k - 1 errors the same matches but for those with k."""
    free, following, contiguous, strict = (
        expected_matches(replace(world.query, strategy=strategy), world.rows)
        for strategy in (ANY, NEXT, PARTITION, STRICT)
    )
    for fewer, more in ((strict, contiguous), (contiguous, following), (following, free)):
        assert fewer.keys() <= more.keys()
        assert all(err >= more[bound] for bound, err in fewer.items())
    for k in range(world.query.errors):
        less = expected_matches(replace(world.query, errors=k), world.rows)
        assert less == {bound: err for bound, err in world.expected().items() if err <= k}


@examples(400)
@given(rich_worlds())
def test_conditions_only_take_matches_away(world: RichWorld) -> None:
    """Where every event may be skipped; a condition on a negated event gives matches back instead."""
    query = replace(world.query, strategy=ANY)
    negated = negated_variables(query.pattern)
    about_negated = [one for one in query.predicates if variables(one) & negated]
    others = tuple(one for one in query.predicates if one not in about_negated)
    fewest = expected_matches(replace(query, predicates=others), world.rows)
    most = expected_matches(replace(query, predicates=tuple(about_negated)), world.rows)
    matches = expected_matches(query, world.rows)
    assert fewest.keys() <= matches.keys() <= most.keys()


# --- the other oracle -------------------------------------------------------------------------------------------------


@examples(400)
@given(worlds())
def test_both_oracles_agree(world: World) -> None:
    """Where no reading has a negation at its ends, which only the one for the whole language knows."""
    rows = [{"ts": event.tick, "type": event.type, **event.values} for event in world.events]
    readings = [
        path for part in partitions(world.query, rows) for path in PartitionSearch(world.query, rows, part).paths()
    ]
    if not any(path.gaps[0] or path.gaps[-1] for path in readings):
        assert expected_matches(world.query, rows) == world.expected()
