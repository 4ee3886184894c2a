"""Types: what is refused, what passes, and what the kinds of columns are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from acep_approx.errors import QueryError
from acep_approx.query.parser import parse
from acep_approx.query.types import check_types, kinds

SCHEMA = {
    "price": "number",
    "volume": "number",
    "name": "string",
    "type": "string",
    "open": "boolean",
    "ts": "time",
    "blob": "other",
    "nothing": "unknown",
}


def query(condition: str):
    return parse(f"PATTERN SEQ(A a, B+ b[]) WHERE {condition} WITHIN 5")


@pytest.mark.parametrize(
    "condition",
    [
        "a.price > 10 AND a.price + 1.5 < b[i].volume * 2",
        "a.name = 'x' AND a.name != a.type AND a.name IN ('x', NULL)",
        "a.name < 'x'",
        "a.open",
        "NOT a.open AND a.open = TRUE",
        "(a.price > 1) = a.open",
        "a.ts > '2013-01-01' AND a.ts <= b[i].ts AND a.ts BETWEEN '2013-01-01' AND '2014-01-01T12:00:00Z'",
        "a.ts IN ('2013-01-01', NULL)",
        "a.nothing > 1 AND a.nothing = 'x' AND a.nothing",
        "a.price = NULL OR a.blob IS NULL",
        "a.price BETWEEN 1 AND b[i].price",
        "avg(b[].price) > a.price AND count(b[]) > 3 AND count(b[].blob) > 3",
        "max(b[].name) = a.name AND max(b[].ts) > '2013-01-01' AND first(b[].open)",
        "-a.price % 2 = 0",
        "a.name LIKE 'x%' AND lower(a.name) = 'x' AND matches(a.nothing, 'x') AND length(a.name) > a.price",
        "least(a.price, b[i].volume, 3) > 1 AND coalesce(a.ts, '2013-01-01') > '2013-01-01'",
        "coalesce(a.open, FALSE)",
        "CASE WHEN a.open THEN a.price WHEN a.name LIKE 'x' THEN NULL ELSE 2.5 END > 3",
        "abs(a.nothing) = 1 AND coalesce(a.nothing, a.name) = 'x' AND greatest(NULL, a.price) = 3",
    ],
)
def test_well_typed(condition):
    check_types(query(condition), SCHEMA)


@pytest.mark.parametrize(
    ("condition", "code", "start", "message", "hint"),
    [
        ("a.prise > 10", "Q060", 31, "no attribute 'prise'", "did you mean `price`?"),
        ("a.Price > 10", "Q060", 31, "no attribute 'Price'", "did you mean `price`?"),
        ("[zzz] AND a.open", "Q060", 31, "no attribute 'zzz'", "attributes are price, volume, name"),
        ("sum(b[].prise) > 10", "Q060", 31, "no attribute 'prise'", "did you mean `price`?"),
        ("a.price LIKE '1%'", "Q173", 31, "LIKE takes a string, and this is a number", "--column-type price=text"),
        ("abs(a.name) = 1", "Q173", 35, "abs takes a number, and this is a string", "--column-type name=float"),
        ("least(a.open, TRUE)", "Q173", 37, "this is a boolean", "table of functions"),
        ("coalesce(a.blob, 1) = 1", "Q173", 40, "of a type without operators", "table of functions"),
        ("coalesce(a.price, 'x') = 1", "Q173", 49, "values of one kind, first a number", "table of functions"),
        ("coalesce(a.ts, 'x') = a.ts", "Q065", 46, "'x' is not a time", None),
        ("CASE WHEN a.name THEN 1 END = 1", "Q063", 41, "this is a string, not a condition", None),
        ("CASE WHEN a.open THEN 1 ELSE a.name END = 1", "Q173", 60, "values of one kind", "--column-type name=float"),
        ("lower(a.prise) = 'x'", "Q060", 37, "no attribute 'prise'", "did you mean `price`?"),
        ("length(a.name)", "Q063", 31, "this is a number, not a condition", None),
        ("a.name > 10", "Q061", 31, "a string cannot be compared with a number", "--column-type name=float"),
        ("a.price = '10'", "Q061", 31, "a number cannot be compared with a string", "without quotes: 10"),
        ("a.price = 'x'", "Q061", 31, "a number cannot be compared with a string", "one type"),
        ("a.price = a.open", "Q061", 31, "a number cannot be compared with a boolean", "one type"),
        ("a.open = 1", "Q061", 31, "a boolean cannot be compared with a number", "TRUE or FALSE"),
        ("a.open < TRUE", "Q061", 31, "booleans have no order for <", "= or !="),
        ("a.ts > 5", "Q061", 31, "a time cannot be compared with a number", "one type"),
        ("a.ts > a.name", "Q061", 31, "a time cannot be compared with a string", "one type"),
        ("a.blob = 5", "Q061", 31, "without operators", "IS NULL"),
        ("a.name IN ('x', 5)", "Q061", 31, "a string cannot be compared with a number", None),
        ("a.price BETWEEN 1 AND 'x'", "Q061", 31, "a number cannot be compared with a string", None),
        ("a.name + 1 > 2", "Q062", 31, "this is a string, not a number", "arithmetic is for numbers"),
        ("-a.open = 1", "Q062", 32, "this is a boolean, not a number", "arithmetic"),
        ("a.ts - b[i].ts < 5", "Q061", 31, "a duration cannot be compared with a number", "has a unit: 5 s, 5 min"),
        ("a.price - a.volume < 5 s", "Q061", 31, "a number cannot be compared with a duration", "--unit s"),
        ("a.ts + b[i].ts > a.ts", "Q062", 31, "there is no time + time", "time - time"),
        ("a.ts + 5 > a.ts", "Q062", 31, "there is no time + number", "time + duration is a time; where the time"),
        ("2 / (a.ts - b[i].ts) > 1", "Q062", 31, "there is no number / duration", None),
        ("a.ts % 2 > 1", "Q062", 31, "there is no time % number", None),
        ("a.ts - a.name > 1 s", "Q062", 38, "this is a string", "to_time(a.name)"),
        ("-a.ts < a.ts", "Q062", 32, "this is a time, not a number", None),
        ("a.ts - 'noon' > 1 s", "Q065", 38, "'noon' is not a time", "'2013-01-31'"),
        ("a.price", "Q063", 31, "this is a number, not a condition", "a.price > 10"),
        ("a.price > 1 OR a.volume", "Q063", 46, "not a condition", "compares values"),
        ("NOT a.name", "Q063", 35, "this is a string, not a condition", None),
        ("sum(b[].name) > 3", "Q064", 31, "'name' is a string: no sum of it", "take numbers"),
        ("max(b[].open) = TRUE", "Q064", 31, "'open' is a boolean: no max of it", "strings and times"),
        ("a.ts > 'yesterday'", "Q065", 38, "'yesterday' is not a time", "'2013-01-31'"),
    ],
)
def test_badly_typed(condition, code, start, message, hint):
    with pytest.raises(QueryError) as caught:
        check_types(query(condition), SCHEMA)
    assert caught.value.code == f"ACEP-{code}"
    assert caught.value.start == start
    assert message in caught.value.message
    assert hint is None or hint in caught.value.hint


def test_outputs_and_definitions_are_typed_too():
    check_types(parse("PATTERN A a WITHIN 5 RETURN a.blob AS x, a.price * 2 AS y"), SCHEMA)
    with pytest.raises(QueryError, match="ACEP-Q062"):
        check_types(parse("PATTERN A a WITHIN 5 RETURN a.name * 2 AS y"), SCHEMA)
    check_types(parse("ab WITHIN 5 DEFINE a AS price > 10 AND open"), SCHEMA)
    with pytest.raises(QueryError, match="ACEP-Q063"):
        check_types(parse("ab WITHIN 5 DEFINE a AS price"), SCHEMA)


def test_kinds_of_columns():
    schema = pa.schema(
        {
            "a": pa.int8(),
            "b": pa.float16(),
            "c": pa.decimal128(9, 2),
            "d": pa.string(),
            "e": pa.large_string(),
            "f": pa.dictionary(pa.int8(), pa.string()),
            "g": pa.bool_(),
            "h": pa.timestamp("ns", "UTC"),
            "i": pa.date32(),
            "j": pa.null(),
            "k": pa.list_(pa.int8()),
            "l": pa.duration("s"),
        }
    )
    expected = ["number"] * 3 + ["string"] * 3 + ["boolean", "time", "time", "unknown", "list of number", "other"]
    assert list(kinds(schema).values()) == expected
    assert list(kinds(schema)) == schema.names
