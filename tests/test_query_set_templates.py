"""Queries of a set that differ in constants alone run as one, and nobody can tell but by the time it takes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from acep_approx import QueryError, QuerySet, UsageError, compile_query
from acep_approx.query.parameters import with_values
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.subscriptions.templates.member import TemplateSide

TEMPLATES = [
    "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > :p AND b.y > :f * a.y WITHIN :w",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { [k] AND b[i].x >= :p AND a.y < :f } WITHIN :w",
    "PATTERN SEQ(A a, ~C c, B b) WHERE c.x > :p AND b.y > :f WITHIN :w ERRORS 1 WEIGHTS (b = 2)",
]


def events(seed: int, rows: int) -> list[dict[str, Any]]:
    dice = Random(seed)
    return [
        {"ts": i // 2, "type": dice.choice("ABC"), "k": dice.choice("uv"), "x": dice.randrange(10), "y": dice.random()}
        for i in range(rows)
    ]


def constants(dice: Random, queries: int) -> list[dict[str, Any]]:
    return [
        {"p": dice.randrange(9), "f": dice.choice([0.25, 0.5, 1.0]), "w": dice.randrange(3, 20)} for _ in range(queries)
    ]


def members_of(desk: QuerySet) -> list[bool]:
    assert desk._running.levels is not None
    return [isinstance(member, TemplateSide) for member in desk._running.levels.base.queries]


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
@pytest.mark.parametrize("way", ["table", "texts", "one by one"])
def test_a_set_of_templates_is_each_query_alone(output: Any, way: str) -> None:
    """Queries come and go while the stream runs, and it is interrupted."""
    dice = Random(len(output) + len(way))
    stream, plain, shared = events(3, 360), QuerySet(output=output), QuerySet(output=output)
    found: list[list[str]] = [[], []]
    for part in range(9):
        template, rows = dice.choice(TEMPLATES), constants(dice, dice.choice([1, 2, 6]))
        filled = [to_text(with_values(parse(template), row)) for row in rows]
        for text in filled:
            plain.add(compile_query(text))  # what was compiled runs by itself
        if way == "table":
            shared.add_many(template, rows)
        else:
            for text in filled:
                shared.add(text)
        gone = dice.choice(list(shared))
        if part % 2:
            plain.remove(gone)
            shared.remove(gone)
        if part in (3, 6):
            plain, shared = (QuerySet.from_state(desk.state_bytes()) for desk in (plain, shared))
        for rows_found, desk in zip(found, (plain, shared), strict=True):
            rows_found += map(str, desk.push(stream[40 * part : 40 * part + 40]).to_arrow().to_pylist())
    for rows_found, desk in zip(found, (plain, shared), strict=True):
        rows_found += map(str, desk.finish().to_arrow().to_pylist())
    assert len(found[0]) > 100
    assert sorted(found[0]) == sorted(found[1])
    assert not any(members_of(plain))
    assert any(members_of(shared))
    assert len(members_of(shared)) < len(members_of(plain))


def test_a_query_by_itself_is_run_by_itself() -> None:
    desk = QuerySet()
    desk.add("PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 5")
    desk.push(events(1, 20))
    assert members_of(desk) == [False]
    desk.add_many("PATTERN SEQ(A a, B b) WHERE a.x > :p WITHIN 5", [{"p": 1}, {"p": 2}])
    desk.push([{**event, "ts": event["ts"] + 50} for event in events(1, 20)])
    assert members_of(desk) == [False, True]


def test_a_template_that_is_given_again_is_the_same_one() -> None:
    desk = QuerySet(output="points")
    for number in range(5):
        desk.add_many(TEMPLATES[0], constants(Random(number), 2))
    desk.push(events(1, 10))
    assert members_of(desk) == [True]


def test_mistakes_are_those_of_a_single_query() -> None:
    desk = QuerySet()
    for bad in ("a.x > ", "a.x >> 3", "q.x > 3"):
        with pytest.raises(QueryError):
            desk.add(f"PATTERN SEQ(A a, B b) WHERE {bad} WITHIN 5")
    desk.add("PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 5")
    with pytest.raises(QueryError, match="a window of 2\\.5"):
        desk.add("PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 2.5")
    with pytest.raises(QueryError, match="window of -1"):
        desk.add_many("PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN :w", [{"w": 3}, {"w": -1}])
    with pytest.raises(UsageError, match=r"U070.*'p'"):
        desk.add_many("PATTERN SEQ(A a, B b) WHERE a.x > :p WITHIN 5", [{"q": 3}])
    assert list(desk) == ["q1"]
    desk.add_many("PATTERN SEQ(A a, B b) WHERE a.k > :p WITHIN 5", [{"p": 1}, {"p": 2}])
    with pytest.raises(QueryError, match=r"a\.k > 1|string"):
        desk.push(events(1, 20))


def test_thousands_of_queries_are_one_member() -> None:
    desk, stream = QuerySet(output="points"), events(5, 200)
    desk.add_many(TEMPLATES[0], constants(Random(4), 3000))
    rows = desk.push(stream).rows + desk.finish().rows
    assert members_of(desk) == [True]
    alone = QuerySet(output="points")
    for row in constants(Random(4), 3000)[:40]:
        alone.add(to_text(with_values(parse(TEMPLATES[0]), row)))
    some = QuerySet(output="points")
    some.add_many(TEMPLATES[0], constants(Random(4), 3000)[:40])
    assert alone.match(stream).to_arrow().to_pylist() == some.match(stream).to_arrow().to_pylist()
    assert rows > 10_000


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
@pytest.mark.parametrize("pattern", ["SEQ(S a, S b) WHERE b.p > a.p AND", "SEQ(Up a, S b) WHERE"])
def test_rows_are_those_of_the_stream_out_of_order_and_above_others(pattern: str, output: Any) -> None:
    """Many queries show what each shows by itself: events by their arrival, and published ones without a row."""
    events = [{"ts": ts, "type": "S", "p": p} for ts, p in ((1, 2), (0, 1), (2, 4), (4, 3), (3, 9), (5, 3))]
    publisher = "PATTERN SEQ(S a, S b) WHERE b.p > a.p WITHIN 5 RETURN b.p AS p PUBLISH Up"
    texts = {f"c{low}": f"PATTERN {pattern} b.p >= {low} AND a.p <= {low} WITHIN 5" for low in (2, 3, 4)}

    def results(ids: list[str]) -> dict[str, list[dict[str, Any]]]:
        desk, found = QuerySet(reorder=2, output=output), {}
        desk.add(publisher, id="up")
        for id_ in ids:
            desk.add(texts[id_], id=id_)
        for part in (desk.push(events[:3]), desk.push(events[3:]), desk.finish()):
            for id_ in (id_ for id_ in ids if id_ in part):
                found.setdefault(id_, []).extend(part[id_].to_pylist())
        return {id_: sorted(rows, key=repr) for id_, rows in found.items()}

    together = results([*texts])
    assert together == {id_: rows for one in texts for id_, rows in results([one]).items()}
    assert together


def test_points_of_templates_name_the_events_that_they_end_with():
    desk = QuerySet(time="ts", output="points", bind="id")
    desk.add_many("PATTERN C c WHERE c.x > :low WITHIN 1", [{"low": 0}, {"low": 5}])
    desk.add_many("PATTERN SEQ(C c, C d) WHERE d.x > c.x - :low WITHIN 1", [{"low": 1}, {"low": 2}])
    events = [{"ts": tick, "type": "C", "x": 6, "id": tick} for tick in range(9)]
    found = [row for some in (events[:4], events[4:]) for row in desk.push(some).table().to_pylist()]
    assert len(found) == 30
    assert all(row["id"] == row["end"] for row in found)
