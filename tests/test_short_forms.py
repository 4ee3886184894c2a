"""``[a, b]`` and values of ``IN`` that are of events: short for conditions that are joined by AND and OR."""

from __future__ import annotations

from itertools import product

import pytest

from acep_approx import QueryError, compile_query
from acep_approx.query import parse, parse_rules, to_text


def where(condition: str) -> str:
    return f"PATTERN SEQ(A a, B b, C+ c[]) WHERE {condition} WITHIN 9"


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("[x, y]", "[x] AND [y]"),
        ("a.z = 1 AND [x , `y y`, meta.z]", "a.z = 1 AND [x] AND [`y y`] AND [meta.z]"),
        ("b.x IN (a.x)", "b.x = a.x"),
        ("b.x IN (a.x, 3, -4, a.y + 1)", "(b.x IN (3, -4) OR b.x = a.x OR b.x = a.y + 1)"),
        ("b.x NOT IN (a.x, 3)", "NOT (b.x IN (3) OR b.x = a.x)"),
        ("c[i].x IN (a.x, c[i-1].x)", "(c[i].x = a.x OR c[i].x = c[i-1].x)"),
        ("b.x IN (5, -4)", "b.x IN (5, -4)"),
    ],
)
def test_what_they_are_short_for(short: str, long: str) -> None:
    """The same tree, which prints as what it is short for."""
    assert parse(where(short)) == parse(where(long))
    assert parse(to_text(parse(where(short)))) == parse(where(short))


def test_null_in_a_list_is_what_it_is_in_sql() -> None:
    """Not known to be in the list is not known not to be in it."""
    values = (None, 1, 2)
    rows = list(product(values, values, values))
    found: dict[str, set[tuple[int | None, ...]]] = {"IN": set(), "NOT IN": set()}
    for number, (x, y, z) in enumerate(rows):
        events = [{"ts": 0, "type": "A", "x": y, "y": z}, {"ts": 1, "type": "B", "x": x, "y": None}]
        events.append({"ts": 2, "type": "C", "x": 0, "y": 0})
        for word, those in found.items():
            if compile_query(where(f"b.x {word} (a.x, a.y, 2)")).match(events):
                those.add(rows[number])
    for x, y, z in rows:
        assert ((x, y, z) in found["IN"]) == (x is not None and x in (y, z, 2))
        assert ((x, y, z) in found["NOT IN"]) == (None not in (x, y, z) and x not in (y, z, 2))


def test_in_rules_values_of_tables_can_be_listed() -> None:
    """As what they are short for."""
    table = "TABLE status (who text, n int, KEY (who))\n"
    rule = "RULE r ON PATTERN SEQ(A a, B b) WHERE {} WITHIN 5 DO UPDATE status SET n = 3 AT (b.who) END"
    short = parse_rules(table + rule.format("b.x IN (store.status[a.who].n, 7)"))
    long = parse_rules(table + rule.format("(b.x IN (7) OR b.x = store.status[a.who].n)"))
    assert short.rules[0].query == long.rules[0].query


@pytest.mark.parametrize(
    ("condition", "code", "hint"),
    [
        ("NOT [x, y]", "ACEP-Q013", "outside OR"),
        ("[x,]", "ACEP-Q001", ""),
        ("b.x IN 3", "ACEP-Q001", "IN (3)"),
        ("b.x IN ()", "ACEP-Q001", "empty"),
        ("b.x IN (q.x, 3)", "ACEP-Q030", "variables are"),
    ],
)
def test_mistakes(condition: str, code: str, hint: str) -> None:
    """With what to write instead."""
    with pytest.raises(QueryError) as caught:
        compile_query(where(condition))
    assert caught.value.code == code
    assert hint in (caught.value.hint or "")
