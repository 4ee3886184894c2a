"""Keys that are lists: events are of one key where their whole lists are equal, as if the key were their JSON text."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, Query, QuerySet, UsageError, compile_query
from acep_approx.events.keys import KeyCodes, as_key
from tests.cases import cases

VALUES: dict[pa.DataType, tuple[Any, ...]] = {
    pa.list_(pa.string()): (["a", "b"], ["b", "a"], ["a"], [], ['"', "é,"], [None], None),
    pa.list_(pa.int64()): ([1, 2], [1], [-1], [2**60], [], None),
    pa.list_(pa.float64()): ([0.0], [-0.0], [1.0, 0.5], [float("nan")], [1e300], None),
    pa.large_list(pa.bool_()): ([True], [False, None], [], None),
    pa.list_(pa.int8(), 2): ([1, 2], [2, 1], None),
}
QUERIES = (
    "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20 ERRORS 1",
    "PATTERN SEQ(A a, B+ b[]) WHERE [k] AND [g] AND b[i].x >= a.x WITHIN 15",
    "PATTERN SEQ(A a, ~(B n), C c) WHERE skip_till_next_match { [k] } WITHIN 20 ERRORS 1 MAXIMAL",
)


def events(type_: pa.DataType, seed: int, rows: int = 90) -> tuple[pa.Table, pa.Table]:
    """A stream with a key that is a list, and the same with its texts."""
    dice = Random(seed)
    lists = pa.array(dice.choices(VALUES[type_], k=rows), type_)
    columns = {
        "ts": sorted(dice.choices(range(2 * rows), k=rows)),
        "type": dice.choices("ABC", k=rows),
        "g": dice.choices((1, 2), k=rows),
        "x": dice.choices(range(4), k=rows),
    }
    return pa.table(columns | {"k": lists}), pa.table(columns | {"k": as_key(lists)})


def pushed(query: Query, table: pa.Table, **options: Any) -> list[list[dict[str, Any]]]:
    """What a matcher gives that gets the events in batches of seven."""
    matcher = query.matcher(**options)
    found = [matcher.push(table.slice(start, 7)) for start in range(0, len(table), 7)]
    return [one.to_pylist() for one in (*found, matcher.finish())]


def within_half(query: Query, table: pa.Table) -> list[dict[str, Any]]:
    """Match points found with half of the work, with a history of the first half of the events."""
    if query.plan.engine != "runs":
        return []
    known = HistoryGraph(query).fit(table.slice(0, len(table) // 2))
    return query.match_within(table, "50%", history=known).points().to_pylist()


def in_a_set(query: Query, table: pa.Table) -> list[dict[str, Any]]:
    """Matches of two queries that share the stream and its keys."""
    desk = QuerySet()
    desk.add(query, id="p")
    desk.add("PATTERN SEQ(B a, C b) WHERE [k] WITHIN 9", id="q")
    found = desk.match(table)
    return [row for name in ("p", "q") for row in found[name].to_pylist()]


WAYS: dict[str, Callable[[Query, pa.Table], Any]] = {
    "matches": lambda query, table: query.match(table).to_arrow().to_pylist(),
    "table": lambda query, table: query.match(table, bind="x").table().to_pylist(),
    "points": lambda query, table: query.match(table).points().to_pylist(),
    "counts": lambda query, table: query.match(table).counts().to_pylist(),
    "bundles": lambda query, table: query.match(table).bundles().to_pylist(),
    "partial": lambda query, table: query.match(table).partial().to_pylist(),
    "keys": lambda query, table: [match.key for match in query.match(table)],
    "pushed": pushed,
    "early": lambda query, table: pushed(query, table, emit="early", watermark=10),
    "budget": within_half,
    "set": in_a_set,
}


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_they_are_as_their_texts(type_: pa.DataType) -> None:
    """In every output and kind of run; keys are shown as JSON."""
    found = 0
    for seed in range(cases(30, 3)):
        lists, texts = events(type_, seed)
        query = compile_query(QUERIES[seed % len(QUERIES)], engine="auto" if seed % 2 else "runs")
        for name, way in WAYS.items():
            expected = way(query, texts)
            assert way(query, lists) == expected, name
            found += len(expected)
    assert found > 100


def test_types_may_change_and_state_is_kept() -> None:
    """From a batch of empty lists to one with values; a whole number is the same key as a float."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9")
    matcher = query.matcher()
    found = [matcher.push([{"ts": at, "type": "AB"[at % 2], "k": key}]) for at, key in enumerate(([], [], [1], [1.0]))]
    assert [len(one) for one in found] == [0, 1, 0, 1]
    keys = KeyCodes()
    column = pa.array([["a"], None, []])
    assert keys.encode([column]).tolist() == [0, -1, 1]
    assert KeyCodes.from_state(keys.to_state()).encode([column.take([2, 0])]).tolist() == [1, 0]


def test_why_takes_a_list_as_json() -> None:
    """With blanks or without; what is no list is refused."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9")
    rows = [{"ts": 0, "type": "A", "k": ["p", "q"]}, {"ts": 3, "type": "B", "k": ["q"]}]
    for key in ('["p", "q"]', {"k": ["p", "q"]}):
        assert "B" in str(query.why(rows, around=0, key=key))
        assert "B" in str(query.why(rows, key=key))
    key = query.match([*rows, {"ts": 4, "type": "B", "k": ["q", "p"]}]).no_match().key
    assert key in ({"k": '["p","q"]'}, {"k": '["q"]'})
    with pytest.raises(UsageError) as caught:
        query.why(rows, around=0, key="p")
    assert caught.value.code == "ACEP-U111"
    assert "k=[" in str(caught.value.hint)
