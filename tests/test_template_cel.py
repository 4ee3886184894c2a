"""Queries in CEL that differ in constants, run as one template, held against brute force and against each by itself."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import QuerySet, compile_query
from acep_approx.query.cel.syntax import CelQuery
from acep_approx.subscriptions.templates.literals import Literals, filled, text_of, tree_of
from tests.cases import cases
from tests.cel_runs import split
from tests.cel_sets import REFUSED, disagreement
from tests.cel_worlds import CelWorld, cel_world
from tests.template_worlds import members, read_as_parsed

LITERAL = re.compile(r"(?<![\w.$'])\d+(?![\w.'])")
TEMPLATES = {
    "all over": "SELECT x_1 + :plus AS a, :name AS b FROM FILTER{x > :low}(A) NEXT{$2.x > :f * $1.x} B",
    "split by g": "SELECT * FROM FILTER{g = :g}(A) NEXT{$2.g = $1.g AND $2.x >= :low} B NEXT{$2.g = $1.g} A",
    "one constant": "SELECT x_1, x FROM FILTER{g = :g}(A) NEXT{$2.g = :g AND $2.x > :f * $1.x} B",
    "a window": "SELECT * FROM FILTER{x > :low}(A) FOLD{$2.x != :x, $2.y > $.y, $.x + :plus AS c} B WITHIN :w",
    "one event": "SELECT x, y FROM FILTER{x > :low AND DUR <= 3}(A)",
    "no event is asked": "SELECT * FROM FILTER{:low = 2}(A) NEXT B",
    "a stream of its own": "SELECT y, z FROM A NEXT{$2.z > :low} (SELECT x AS z FROM B NEXT{$2.x > :x} A)",
}
NAMES = ("p", "q", "r")


def rows_for(dice: random.Random, text: str, many: int) -> list[dict[str, Any]]:
    """Constants for the parameters of a template."""
    of = {"f": (0.5, 1.0, 1.5), "g": NAMES, "name": NAMES}
    names = re.findall(r":(\w+)", text)
    return [{name: dice.choice(of.get(name, range(6))) for name in names} for _ in range(many)]


def spelled(text: str, row: dict[str, Any]) -> str:
    """The query of a row of constants as text."""
    return text_of(filled(tree_of(text), row))


def varied(dice: random.Random, world: CelWorld, queries: int) -> CelWorld | None:
    """The query of a world with other constants, several times; None where it has none."""
    tree = tree_of(world.text)
    assert isinstance(tree, CelQuery)
    read = Literals().read(text_of(replace(tree, select=replace(tree.select, publish=None))))
    if not read.values:
        return None
    rows = [{name: other(dice, value) for name, value in read.values.items()} for _ in range(queries)]
    texts = [text_of(filled(read.syntax, row)) for row in rows]
    return replace(world, texts=tuple(texts))


def other(dice: random.Random, value: Any) -> Any:
    if isinstance(value, str):
        return dice.choice([value, *NAMES])
    return value if dice.random() < 0.3 else dice.randrange(0, 6)


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_random_texts_that_differ_in_constants_are_each_query_alone(output: str) -> None:
    """With ties, intervals, NULL, any order inside an epoch, any split, restarts."""
    ran, worlds = 0, cases(600, 26)
    for seed in range(worlds):
        dice, intervals = random.Random(seed), seed % 2 == 0
        world = varied(dice, cel_world(seed, subqueries=False, intervals=intervals), dice.choice((2, 3, 6)))
        if world is not None:
            told = disagreement(seed, world, intervals=intervals, output=output)
            assert not told or told == REFUSED
            ran += 1
    assert ran > worlds / 3


def rows_of(found: Any, id_: str) -> Counter[str]:
    """The results of a query, in any order; events that were published have numbers that depend on other queries."""
    rows = found[id_].drop_columns("query").to_pylist() if id_ in found else []
    for row in rows:
        row.update({name: max(row[name], -1) for name in ("row", "p") if name in row})
    return Counter(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_the_queries_of_a_table_come_and_go_as_each_by_itself(name: str, output: Any) -> None:
    """Added and removed between batches; over restarts, with intervals or without."""
    text, results = TEMPLATES[name], 0
    for seed in range(100):
        if seed >= cases(100, 2) and results > 10:
            break
        dice = random.Random(seed)
        start = "start" if seed % 2 == 0 else None
        table = cel_world(seed, intervals=start is not None).table
        desk, alone = QuerySet(output=output, start=start), dict[str, QuerySet]()
        seen: list[pa.Table] = []
        for part in split(dice, table if start else table.drop_columns("start")):
            if part.num_rows:
                for row in rows_for(dice, text, dice.choice((0, 1, 3)) if seen else 4):
                    (added,) = desk.add_many(text, [row])
                    alone[added.id] = one = QuerySet(output=output, start=start)
                    for before in seen:
                        one.push(before)
                    one.add(spelled(text, row), id=added.id)
                if alone and dice.random() < 0.3 and (gone := dice.choice([*alone])) in desk:
                    desk.remove(gone)
                    alone[gone].remove(gone)
                here = desk.push(part)
                results += here.rows
                assert all(rows_of(here, id_) == rows_of(one.push(part), id_) for id_, one in alone.items())
                seen.append(part)
                desk = QuerySet.from_state(desk.state_bytes()) if dice.random() < 0.4 else desk
        here = desk.finish()
        assert all(rows_of(here, id_) == rows_of(one.finish(), id_) for id_, one in alone.items())
    assert results > 10


STREAMS = (
    ("SELECT g, x FROM FILTER{x > :low}(A) PUBLISH P", "FROM FILTER{x < :low}(P) NEXT{$2.x > :x} B"),
    ("SELECT x FROM FILTER{x > :low}(A) NEXT{$2.g = $1.g} B PUBLISH P", "SELECT x FROM P FOLD{, $2.x > :x,} P"),
    ("PATTERN SEQ(A a, B b) WHERE a.x > :low WITHIN 4 RETURN b.x AS x PUBLISH P", "SELECT * FROM FILTER{x < :x}(P)"),
    ("SELECT x FROM FILTER{x > :low}(A) PUBLISH P", "PATTERN SEQ(P p, B b) WHERE b.x > p.x AND p.x < :x WITHIN 9"),
)
"""Templates that publish, and those that read it."""


@pytest.mark.parametrize("texts", STREAMS)
@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_the_queries_of_a_template_publish_one_stream(texts: tuple[str, str], output: Any) -> None:
    """And read it, as the same queries that were compiled one by one, which no template runs."""
    results = 0
    for seed in range(100):
        if seed >= cases(100, 4) and results > 20:
            break
        dice = random.Random(seed)
        many, single = QuerySet(output=output), QuerySet(output=output)
        for text in texts:
            for row in rows_for(dice, text, 3):
                (one,) = many.add_many(text, [row])
                single.add(compile_query(spelled(text, row)), id=one.id)
        for part in split(dice, cel_world(seed).table.drop_columns("start")):
            here, there = many.push(part), single.push(part)
            results += here.rows
            assert all(rows_of(here, id_) == rows_of(there, id_) for id_ in many)
            many = QuerySet.from_state(many.state_bytes()) if dice.random() < 0.4 else many
        here, there = many.finish(), single.finish()
        assert all(rows_of(here, id_) == rows_of(there, id_) for id_ in many)
        assert output != "matches" or many._running.levels is None or members(many)
    assert results > 20


def test_texts_are_read_as_if_each_was_parsed() -> None:
    """Against the parser, on random queries, each with its numbers changed."""
    windows = ("", " WITHIN 12", " WITHIN 3 min")
    texts = (cel_world(seed).text + windows[seed % 3] for seed in range(cases(400)))
    assert read_as_parsed(texts, LITERAL, 9) > cases(400)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT x + 1 AS y FROM FILTER{x > 2 AND g = 'a'}(A) NEXT{$2.x > 1.05 * $1.x} B", [2, "a", 1.05]),
        ("FROM FILTER{DUR < 5 AND x > -3}(A NEXT B)", [-3]),
        ("FROM FILTER{DUR < 5 min}(A NEXT{$1.x = 3} B) WITHIN 2 h", [3, 2]),
        ("FROM A FOLD{$2.x > 1, $2.y < 2, $.c + 3 AS c} B", [1, 2]),
        ("FROM FILTER{x IN (1, 2) OR x BETWEEN 3 AND 4}(A)", [3, 4]),
        ("FROM 'A 1' NEXT B2", []),
    ],
)
def test_which_literals_are_parameters(text: str, values: list[Any]) -> None:
    """What lasts is a window, what is computed is no condition."""
    read = Literals().read(text)
    assert list(read.values.values()) == values


def test_queries_that_come_when_there_are_more_columns_show_them_as_each_by_itself() -> None:
    """Those that came before them do not: the attributes of their streams are those of then."""
    text = "SELECT * FROM FILTER{x > :low}(A)"
    desk = QuerySet()
    before = [one.id for one in desk.add_many(text, [{"low": 1}, {"low": 2}])]
    desk.push([{"ts": ts, "type": "A", "x": 3} for ts in (0, 1)])
    after = [one.id for one in desk.add_many(text, [{"low": 1}, {"low": 2}])]
    found = desk.push([{"ts": 2, "type": "A", "x": 3, "y": 4}, {"ts": 3, "type": "A", "x": 2, "y": 5}])
    assert [found[id_].column_names for id_ in before] == [["query", "x", "start", "end", "times"]] * 2
    assert [found[id_].column_names for id_ in after] == [["query", "x", "y", "start", "end", "times"]] * 2
    again = QuerySet.from_state(desk.state_bytes()).finish()
    assert [again[id_].num_rows for id_ in [*before, *after]] == [1, 0, 1, 0]


def test_one_template_runs_texts_and_rows() -> None:
    """Texts that differ in constants; a query with parts that are streams runs by itself."""
    desk = QuerySet()
    for low in range(5):
        desk.add(f"SELECT x FROM FILTER{{x > {low}}}(A) NEXT{{$2.x > {low}.5 * $1.x}} B")
        desk.add(f"SELECT x FROM FILTER{{x > {low}}}(A) NEXT{{$2.x > {low}.5 * $1.x}} B PUBLISH Out")
    desk.add_many(TEMPLATES["a stream of its own"], [{"low": 1, "x": 2}, {"low": 2, "x": 2}])
    desk.push([{"ts": ts, "type": "A", "x": 3, "y": 4} for ts in (0, 1)])
    assert [member.table.queries for member in members(desk)] == [5, 5]
