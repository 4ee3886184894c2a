"""The runs engine and odd input, through the public face: what it refuses and how, and what it makes of odd values."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import Query, compile_query
from acep_approx.errors import AcepError, DataError, QueryError, UsageError

LOWEST, BIG = -(2**63), 2**62


def pair(condition: str) -> Query:
    """An A and a later B of which a condition holds."""
    return compile_query(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 9", engine="runs")


def two(first: Any, second: Any, kind: pa.DataType | None = None) -> pa.Table:
    """An A and a B with values of x."""
    return pa.table({"ts": [0, 1], "type": ["A", "B"], "x": pa.array([first, second], kind)})


def holds(condition: str, events: Any) -> bool:
    """Whether a condition holds between an A and a B; listed, counted and detected alike."""
    found = {}
    for merge in ("equal,pareto,chain", "none"):
        matches = pair(condition).match(events, merge=merge)
        assert len(matches) == matches.points().num_rows == matches.counts().num_rows
        found[merge] = len(matches)
    assert len(set(found.values())) == 1
    return found["none"] == 1


@pytest.mark.parametrize(
    ("condition", "events"),
    [
        ("b.x + a.x > 0", two(BIG, BIG)),
        ("b.x - a.x > 0", two(-BIG, BIG + 1)),
        ("b.x * a.x > 0", two(2**40, 2**40)),
        ("b.x > a.x + 9223372036854775807", two(1, 2)),
        ("b.x > a.x", two(LOWEST, 1)),
        ("b.x > a.x", two(1, LOWEST)),
        ("b.x > a.x", two(2**63, 2**63 + 1, pa.uint64())),
        ("(b.x > a.x OR b.x + a.x = 1)", two(BIG, BIG)),
    ],
)
def test_whole_numbers_beyond_64_bits(condition: str, events: pa.Table) -> None:
    """Refused, not wrapped around."""
    with pytest.raises(DataError) as caught:
        holds(condition, events)
    assert caught.value.code == "ACEP-D201"
    assert caught.value.hint


def test_a_sum_beyond_64_bits() -> None:
    """A running aggregate is refused where it gets too large (or so near to it that a float cannot tell)."""
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE sum(a[].x) > b.x WITHIN 9", engine="runs")
    events = pa.table({"ts": [0, 1, 2], "type": ["A", "A", "B"], "x": [BIG, BIG - 2**10, 1]})
    assert len(query.match(events)) == 3
    with pytest.raises(DataError, match="ACEP-D201"):
        len(query.match(events.set_column(2, "x", pa.array([BIG, BIG, 1]))))


@pytest.mark.parametrize(
    ("condition", "first", "second", "expected"),
    [
        ("-a.x > b.x", LOWEST + 1, 2**63 - 2, True),
        ("b.x > a.x", 2**63 - 2, 2**63 - 1, True),
        ("b.x % a.x = 0", 0, 1, False),
        ("b.x % a.x IS NULL", 0, 1, True),
        ("b.x % a.x = 0", -1, LOWEST + 1, True),
        ("b.x / a.x > 1", 0, 1, False),
        ("b.x >= a.x", None, 1, False),
        ("NOT b.x >= a.x", None, 1, False),
        ("b.x = a.x", math.nan, math.nan, False),
        ("b.x != a.x", math.nan, 1.0, False),
        ("NOT b.x > a.x", 1.0, math.nan, False),
        ("b.x + a.x IS NULL", 1.0, math.nan, True),
        ("b.x > a.x", -math.inf, math.inf, True),
        ("b.x = a.x", 0.0, -0.0, True),
        ("b.x = a.x", True, True, True),
        ("b.x != a.x", True, False, True),
        ("NOT (b.x AND a.x)", True, None, False),
        ("NOT (b.x AND a.x)", False, None, True),
        ("b.x OR a.x", None, True, True),
        ("b.x > a.x", Decimal("1.10"), Decimal("1.2"), True),
        ("b.x < a.x + 0.05", Decimal("1.10"), Decimal("1.20"), False),
        ("b.x = a.x", Decimal("1.10"), Decimal("1.10"), True),
        ("b.x > a.x", date(2020, 1, 1), date(2020, 1, 2), True),
        ("(b.x < a.x OR b.x > '2020-01-01')", date(2020, 1, 1), date(2020, 1, 2), True),
    ],
)
def test_odd_values(condition: str, first: Any, second: Any, expected: bool) -> None:
    """NULL and not-a-number equal nothing, and NOT does not change that; the ends of the range count as numbers."""
    assert holds(condition, two(first, second)) == expected


TEXTS = ["", "A", "Z", "a", "aa", "ss", "z", "ß", "é", "ê", "\uffff", "\U0001f600"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_are_ordered_by_code_points(kind: pa.DataType) -> None:
    """Across events as within one, also where they are not ASCII, whatever the column's encoding."""
    rows = [(x, y) for x in [*TEXTS, None] for y in [*TEXTS, None]]
    events = pa.table(
        {
            "ts": range(2 * len(rows)),
            "type": ["A", "B"] * len(rows),
            "x": pa.array([x for row in rows for x in row]).cast(kind),
        }
    )
    query = compile_query("PATTERN SEQ(A a, B b) WHERE strict_contiguity { b.x > a.x } WITHIN 9", engine="runs")
    expected = [2 * i for i, (x, y) in enumerate(rows) if x is not None and y is not None and y > x]
    assert query.match(events).to_arrow().column("a").to_pylist() == expected


def test_the_greatest_text() -> None:
    """Aggregates of texts, with new texts in every batch."""
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE max(a[].x) < b.x WITHIN 99", engine="runs")
    matcher, found = query.matcher(), 0
    for i, (kind, x) in enumerate([("A", "é"), ("A", "z"), ("B", "ê"), ("A", "\U0001f600"), ("B", "\uffff")]):
        found += matcher.push([{"ts": i, "type": kind, "x": x}]).num_rows
    assert found == 6  # each of e, z and both, before both B; what holds the last A is greater than all B


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("b.ms > a.ns", True),  # 2 ms, 1.5 ms
        ("b.ns > a.ms", True),  # 1.999999 ms, 1 ms
        ("b.ns > b.ms OR b.ns < a.ms", False),
        ("b.s <= a.ns", True),
        ("b.day = a.s", True),
        ("b.zone > a.ns", True),
        ("b.ns = a.ns", False),
    ],
)
def test_times_of_different_units(condition: str, expected: bool) -> None:
    """Compared as points in time, to the nanosecond."""
    events = pa.table(
        {
            "ts": [0, 1],
            "type": ["A", "B"],
            "ms": pa.array([1, 2], pa.timestamp("ms")),
            "ns": pa.array([1_500_000, 1_999_999], pa.timestamp("ns")),
            "s": pa.array([0, 0], pa.timestamp("s")),
            "day": pa.array([0, 0], pa.date32()),
            "zone": pa.array([1, 2], pa.timestamp("ms", "UTC")),
        }
    )
    assert holds(condition, events) == expected


def test_a_time_that_nanoseconds_cannot_reach() -> None:
    """The finest unit of the schema must hold all times that are compared."""
    events = pa.table(
        {
            "ts": [0, 1],
            "type": ["A", "B"],
            "x": pa.array([2**40] * 2, pa.timestamp("s")),
            "y": pa.array([1] * 2, pa.timestamp("ns")),
        }
    )
    with pytest.raises(DataError, match="ACEP-D201"):
        holds("b.x > a.y", events)


def test_few_events() -> None:
    """None, none with columns, one, and many alike."""
    assert not holds("b.x > a.x", [])
    assert not holds("b.x > a.x", two(1, 2).slice(0, 0))
    assert not holds("b.x > a.x", two(1, 2).slice(0, 1))
    assert not holds("b.x > a.x", two(None, None))
    alike = pa.table({"ts": [7] * 10, "type": ["A"] * 10, "x": [1] * 10})
    query = compile_query("PATTERN A+ a[] WHERE a[i].x = a[i-1].x WITHIN 0", engine="runs")
    assert len(query.match(alike)) == 2**10 - 1
    assert len(query.match(alike, merge="none")) == 2**10 - 1


@pytest.mark.parametrize(
    ("condition", "events"),
    [
        ("b.x > a.x", two([1], [2])),
        ("b.x > a.x", two(True, False)),
        ("b.x = a.x", two([1], [1])),
        ("b.x > a.type", two(1, 2)),
    ],
)
def test_types_that_cannot_be_compared(condition: str, events: pa.Table) -> None:
    """Refused before anything runs."""
    with pytest.raises(QueryError, match="ACEP-Q061"):
        holds(condition, events)


def test_names_that_are_unknown() -> None:
    """Of a merging and of an engine."""
    with pytest.raises(UsageError, match="ACEP-U006"):
        len(pair("b.x > a.x").match(two(1, 2), merge="equal,both"))
    with pytest.raises(UsageError, match="ACEP-U005"):
        compile_query("PATTERN SEQ(A a, B b) WITHIN 9", engine="fast")


def test_the_state_of_another_query() -> None:
    """Another condition, another window, another engine: refused."""
    matcher = pair("b.x > a.x").matcher()
    matcher.push(two(1, 2))
    state = matcher.state_bytes()
    others = ["WHERE b.x >= a.x WITHIN 9", "WHERE b.x > a.x WITHIN 8", "WITHIN 9", "WHERE b.x > a.x WITHIN 9 events"]
    for rest in others:
        with pytest.raises(AcepError) as caught:
            compile_query("PATTERN SEQ(A a, B b) " + rest).from_state(state)
        assert caught.value.code == "ACEP-D042", rest
    with pytest.raises(DataError, match="ACEP-D040"):
        pair("b.x > a.x").from_state(state[:100])
