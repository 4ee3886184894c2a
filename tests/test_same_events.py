"""Matches that bind the same events to other variables come in the order of the pattern, wherever they are found.

``docs/reference/language.md`` and ``docs/how-it-works/rules.md`` say it in words.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.query.parser import parse
from acep_approx.query.rules.parser import parse_rules
from tests.naive import expected_matches
from tests.naive_order import in_order
from tests.naive_rules import run_rules

PATTERNS = (
    "SEQ((A b | A a), B c)",
    "SEQ(A* b[], A* a[], B c)",
    "SEQ((A z | A y | A x), (A y2 | A z2), B c)",
    "SEQ(A{1,2} a[], A? b, B c)",
)
ROWS = [{"ts": ts, "type": kind, "k": "p", "x": ts} for ts, kind in enumerate("AAAB")]


def bindings(table: pa.Table) -> list[tuple[tuple[int, str], ...]]:
    """The events of each match, with their variables."""
    names = [name for name in table.column_names if name not in ("query", "k", "errors", "start", "end", "missing")]
    found = []
    for row in table.to_pylist():
        bound = [(number, name) for name in names for number in numbers(row[name])]
        found.append(tuple(sorted(bound)))
    return found


def numbers(value: Any) -> list[int]:
    return value if isinstance(value, list) else [] if value is None else [value]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_lists_sets_and_templates_keep_to_the_order_of_queries(pattern: str) -> None:
    text = f"PATTERN {pattern} WHERE [k] WITHIN 9"
    query = parse(text)
    expected = in_order(query, ROWS, expected_matches(query, ROWS))
    assert len({tuple(row for row, _ in bound) for bound in expected}) < len(expected)
    for engine in ("auto", "runs"):
        assert bindings(compile_query(text, engine=engine).match(ROWS).to_arrow()) == expected
    made = QuerySet()
    made.add(text, id="alone")
    made.add_many(f"PATTERN {pattern} WHERE [k] AND c.x > :p WITHIN 9", [{"p": 1}, {"p": 2}], id="many")
    found = made.match(ROWS)
    for name in ("alone", "many[0]", "many[1]"):
        assert bindings(found[name]) == expected, name
    matcher = compile_query(text).matcher()
    parts = [matcher.push([row]) for row in ROWS]
    assert bindings(pa.concat_tables([part for part in parts if part.num_rows])) == expected


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rules_fire_by_events_and_then_by_variables(pattern: str) -> None:
    """At the first event that two matches bind to other variables the one that stands first in the pattern decides."""
    text = f"""TABLE t (k text, n int DEFAULT 0, KEY (k))
        RULE r ON PATTERN {pattern} WITHIN 9 DO UPDATE t SET n = old.n + 1 AT (c.k) END"""
    outcome = run_rules(parse_rules(text), ROWS, {})
    expected = [tuple(sorted(match.bound)) for match in outcome.matches["r"]]
    assert bindings(compile_rules(text).run(ROWS)["r"]) == expected
    variables = [name for name in ("z", "y", "x", "y2", "z2", "b", "a") if name in pattern]
    if "a[], A? b" in pattern:
        variables = ["a", "b"]
    firing = [(-ROWS[bound[0][0]]["ts"], [row for row, _ in bound]) for bound in expected]
    assert firing == sorted(firing)
    for one, two in pairwise(expected):
        if [row for row, _ in one] == [row for row, _ in two]:
            differ = next(i for i in range(len(one)) if one[i] != two[i])
            assert variables.index(one[differ][1]) < variables.index(two[differ][1])
