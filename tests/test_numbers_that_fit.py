"""Whole numbers of 64 bits: exact up to the last one, and an error only where the event in question is asked."""

from __future__ import annotations

import operator
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from acep_approx import AcepError, QuerySet, compile_query, compile_rules

LARGEST = 2**63 - 1
NEAR = (
    0,
    1,
    -1,
    3,
    -3,
    512,
    LARGEST,
    LARGEST - 4,
    -LARGEST,
    4 - LARGEST,
    2**62,
    -(2**62),
    2**61 - 1,
    3037000499,
    3037000500,
)
COMPUTED = {"+": operator.add, "-": operator.sub, "*": operator.mul, "%": lambda a, b: a % b if b else None}
HUGE = 2**62
"""Twice this passes 64 bits."""


def pair(a, b, key=0):
    return [{"ts": 0, "type": "A", "x": a, "k": key}, {"ts": 1, "type": "B", "x": b, "k": key}]


def outcome(text, events):
    """The values that matches return, or the code of the error."""
    try:
        return [row["r"] for row in compile_query(text).match(events).to_arrow().to_pylist()]
    except AcepError as error:
        return error.code


@pytest.mark.parametrize("op", COMPUTED)
def test_arithmetic_across_events_is_exact_at_the_limits(op):
    """All pairs of numbers near the limits, against Python's: those that fit at once, each of the others alone."""
    text = f"PATTERN SEQ(A a, B b) WHERE [k] AND NOT (a.x {op} b.x IS NULL) WITHIN 5 RETURN a.x {op} b.x AS r"
    wanted, events = {}, []
    for number, (a, b) in enumerate(product(NEAR, NEAR)):
        value = COMPUTED[op](a, b)
        if value is None or abs(value) <= LARGEST:
            wanted[number] = value
            events += pair(a, b, number)
        else:
            assert outcome(text, pair(a, b)) == "ACEP-D201", (a, b)
    events.sort(key=lambda event: event["ts"])
    rows = compile_query(text).match(events).to_arrow().to_pylist()
    assert {row["k"]: row["r"] for row in rows} == {n: value for n, value in wanted.items() if value is not None}


@pytest.mark.parametrize("numbers", [(LARGEST - 4, 4, -1), (-LARGEST + 2, -2, 5), (2**62, 2**62 - 1)])
def test_sums_of_repetitions_are_exact_at_the_limits(numbers):
    rows = [{"ts": at, "type": "A", "x": x} for at, x in enumerate(numbers)] + [
        {"ts": 9, "type": "B", "x": sum(numbers)}
    ]
    text = f"PATTERN SEQ(A{{{len(numbers)}}} a, B b) WHERE sum(a[].x) = b.x WITHIN 50 RETURN sum(a[].x) AS r"
    assert outcome(text, rows) == [sum(numbers)]
    too_many = [{"ts": -1, "type": "A", "x": 1}, *rows]
    text = f"PATTERN SEQ(A{{{len(numbers) + 1}}} a, B b) WHERE sum(a[].x) = b.x WITHIN 50 RETURN sum(a[].x) AS r"
    if max(numbers) == 2**62:
        assert outcome(text, too_many) == "ACEP-D201"


ONE = [
    {"ts": 0, "type": "A", "x": 3, "k": 1, "s": 0},
    {"ts": 1, "type": "B", "x": HUGE, "k": None, "s": 1},
    {"ts": 2, "type": "C", "x": 5, "k": 1, "s": 0},
]
UNASKED = {
    "another type": ("PATTERN A a WHERE a.x * 2 > 3 WITHIN 5 RETURN a.x AS r", [3]),
    "another condition excludes it": ("PATTERN ANY a WHERE a.x * 2 > 3 AND a.s = 0 WITHIN 5 RETURN a.x AS r", [3, 5]),
    "that condition stands first": ("PATTERN ANY a WHERE a.s = 0 AND a.x * 2 > 3 WITHIN 5 RETURN a.x AS r", [3, 5]),
    "it has no key": ("PATTERN SEQ(ANY a, ANY b) WHERE [k] AND b.x * 2 > a.x WITHIN 5 RETURN b.x AS r", [5]),
    "it has no key, alone": ("PATTERN ANY a WHERE [k] AND a.x * 2 > 3 WITHIN 5 RETURN a.x AS r", [3, 5]),
    "another variable": ("PATTERN SEQ(A a, B b, C c) WHERE c.x * 2 > a.x WITHIN 5 RETURN c.x AS r", [5]),
    "another variable, carried": ("PATTERN SEQ(A a, B b, C c) WHERE a.x * 2 > c.x WITHIN 5 RETURN c.x AS r", [5]),
    "a negation that stands elsewhere": (
        "PATTERN SEQ(A a, ~(D d), C c) WHERE d.x * 2 > a.x WITHIN 5 RETURN c.x AS r",
        [5],
    ),
    "a result of CEL": ("SELECT x * 2 AS r FROM A", [6]),
    "a filter of CEL": ("SELECT x AS r FROM FILTER{x * 2 > 3} A", [3]),
    "a sequence of CEL": ("SELECT x_1 * 2 AS r FROM A NEXT{$2.x * 2 > $1.x} C", [6]),
    "an automaton": (
        """PATTERN AUTOMATON (
          REGISTERS n INT
          a -> b ON A t SET n = t.x * 2
          b -> b ON B v
          b -> c ON C u WHEN u.x * 2 > n
          FINAL c) WITHIN 5 RETURN n AS r""",
        [6],
    ),
    "RETURN": ("PATTERN SEQ(A a, C c) WITHIN 5 RETURN a.x * 2 AS r", [6]),
}


@pytest.mark.parametrize("what", UNASKED)
def test_an_event_that_is_not_asked_refuses_no_batch(what):
    text, wanted = UNASKED[what]
    assert outcome(text, ONE) == wanted
    matcher = compile_query(text).matcher()
    found = [row["r"] for event in ONE for row in matcher.push([event]).to_pylist()]
    assert found + [row["r"] for row in matcher.finish().to_pylist()] == wanted
    if "AUTOMATON" in text:
        return  # which no set takes
    desk = QuerySet()
    desk.add(text, id="q")
    assert [row["r"] for row in desk.match(ONE)["q"].to_pylist()] == wanted


ASKED = (
    "PATTERN B b WHERE b.x * 2 > 3 WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE b.x * 2 > a.x WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE a.x + b.x * 4 > 1 WITHIN 5",
    "PATTERN B b WITHIN 5 RETURN b.x * 2 AS r",
    "SELECT x * 2 AS r FROM B",
)


@pytest.mark.parametrize("text", ASKED)
def test_an_event_that_is_asked_does(text):
    assert outcome(text, ONE) == "ACEP-D201"


def test_large_unsigned_numbers_and_decimals_matter_where_they_are_asked():
    events = pa.table(
        {
            "ts": [0, 1],
            "type": ["A", "B"],
            "u": pa.array([3, 2**63], pa.uint64()),
            "d": pa.array([Decimal("1.5"), Decimal("123456789012345678.9")], pa.decimal128(20, 1)),
        }
    )
    for text in ("PATTERN A a WHERE a.u > 1 WITHIN 5", "PATTERN A a WHERE a.d > 1 WITHIN 5"):
        assert len(compile_query(text).match(events)) == 1
    for text, code in (
        ("PATTERN B b WHERE b.u > 1 WITHIN 5", "ACEP-D201"),
        ("PATTERN B b WHERE b.d > 1 WITHIN 5", "ACEP-D202"),
    ):
        with pytest.raises(AcepError, match=code):
            len(compile_query(text).match(events))


TEMPLATES = (
    ("PATTERN A a WHERE a.x * 2 > :p WITHIN 5", 3),
    ("PATTERN SEQ(A a, C c) WHERE c.x * 2 > :p WITHIN 5", 3),
    ("PATTERN SEQ(A a, B b, C c) WHERE c.x * 2 > a.x * :p WITHIN 5", 1),
    ("PATTERN ANY a WHERE a.s = 0 AND a.x * :p > 3 WITHIN 5", 2),
    ("SELECT x * :p AS r FROM A", 2),
)


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
@pytest.mark.parametrize(("text", "constant"), TEMPLATES)
def test_templates_ask_the_same_events(text, constant, output):
    desk = QuerySet(output=output)
    desk.add_many(text, [{"p": constant}, {"p": 0}], id="t")
    desk.add_many(text.replace("A a", "B b").replace("a.", "b."), [{"p": 0}], id="other") if "*" not in text else None
    alone = compile_query(text.replace(":p", str(constant))).match(ONE)
    found = desk.match(ONE)["t[0]"]
    assert found.num_rows == (alone.to_arrow() if output == "matches" else getattr(alone, output)()).num_rows > 0


TABLES = "TABLE t (k int, n int DEFAULT 1, KEY (k))\n"
ACT = "DO UPSERT t SET n = old.n + c.x * 2 AT (c.x * 2) END"
RULES = (
    f"RULE r ON PATTERN C c WHERE c.x * 2 > 3 WITHIN 5 {ACT}",
    f"RULE r ON PATTERN C c WHERE store.t[1 AT c].n < c.x * 2 WITHIN 5 {ACT}",
    f"RULE r ON PATTERN SEQ(A a, C c) WHERE store.t[c.x * 2].n < c.x * 2 AND a.x < c.x WITHIN 5 {ACT}",
    f"RULE r ON PATTERN SEQ(A a, C c) WHERE (store.t[1 AT c].n < 0 OR c.x * 2 > 3) WITHIN 5 {ACT}",
    f"RULE r ON PATTERN C c WITHIN 5 WHEN store.t[1].n < c.x * 2 {ACT}",
    f"RULE r ON PATTERN C c WITHIN 5 WHEN store.t[c.x * 2].n < c.x * 2 {ACT}",
    f"RULE r ON PATTERN C c WITHIN 5 WHEN c.x * 2 > 3 {ACT}",
)


@pytest.mark.parametrize("driver", ["auto", "stepping"])
@pytest.mark.parametrize("text", RULES)
def test_rules_ask_the_same_events(text, driver):
    rules = compile_rules(TABLES + text)
    run = rules.start(driver=driver)
    run.push(ONE)
    run.finish()
    assert run.store["t"].to_pylist() == [{"k": 10, "n": 11}]
    asked = [event | {"type": {"B": "C", "C": "D"}.get(event["type"], "A")} for event in ONE]
    with pytest.raises(AcepError):
        rules.run(asked)


@pytest.mark.parametrize(
    "clause", ["WHERE a.u IS NOT NULL AND a.d IS NOT NULL WITHIN 5 RETURN 1 AS r", "WITHIN 5 RETURN a.u IS NULL AS r"]
)
def test_whether_a_number_is_there_can_be_asked_of_any(clause):
    wide = [Decimal("123456789012345678.9"), None]
    events = pa.table(
        {
            "ts": [0, 1],
            "type": ["A", "A"],
            "u": pa.array([2**63, None], pa.uint64()),
            "d": pa.array(wide, pa.decimal128(20, 1)),
        }
    )
    assert outcome(f"PATTERN A a {clause}", events) == ([1] if "WHERE" in clause else [False, True])


def test_large_unsigned_keys_of_reads_are_refused_with_a_code():
    tables = "TABLE f (k float, n int, KEY (k))"
    rule = "RULE r ON PATTERN A a WHERE store.f[a.u].n IS NULL WITHIN 1 DO UPSERT f AT (1.5) END"
    rules = compile_rules(f"{tables}\n{rule}")
    with pytest.raises(AcepError, match="ACEP-D201"):
        rules.run(pa.table({"ts": [0], "type": ["A"], "u": pa.array([2**63], pa.uint64())}))
