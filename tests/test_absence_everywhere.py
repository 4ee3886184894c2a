"""Absence in the other ways to run a query: sets, results that are taken back, shards of Spark."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import QuerySet, compile_query
from acep_approx.errors import AcepError
from acep_approx.spark.plan.flow import matching
from tests.absence_worlds import own_world, sequence_world
from tests.cases import cases
from tests.spark_cases import numbered, rows

TEXTS = (
    "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9 AT START",
    "PATTERN SEQ(~(X n) SINCE START, A a, B b) WHERE [k] WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x WITHIN 9 AT START",
    "PATTERN SEQ(A a, ~(B b, X c), B d) WHERE [k] WITHIN 9",
    "PATTERN SEQ(A a, ~(B b) WITHIN 2, X d) WHERE [k] WITHIN 9",
    "PATTERN SEQ(A a, ~(B b) WITHIN 2) WHERE [k] WITHIN 9",
)
"""With events of a type that no query names."""


def plain(tables: list[pa.Table]) -> Counter[str]:
    """The rows of some tables, without the number of their query."""
    return Counter(str({k: v for k, v in row.items() if k != "query"}) for t in tables for row in t.to_pylist())


@pytest.mark.parametrize("seed", range(6))
def test_in_a_set_each_finds_what_it_finds_alone(seed: int) -> None:
    """In batches of any size, over restarts."""
    dice, size = Random(seed), 60
    columns = {"type": dice.choices("ABXY", k=size), "k": dice.choices(range(4), k=size)}
    ts = sorted(dice.randrange(90) for _ in range(size))
    table = pa.table({"ts": ts, **columns, "x": dice.choices(range(3), k=size)})
    desk, at = QuerySet(), 0
    for number, text in enumerate(TEXTS):
        desk.add(text, id=str(number))
    found: dict[str, list[pa.Table]] = {str(number): [] for number in range(len(TEXTS))}
    while at < size:
        some = desk.push(table.slice(at, step := dice.choice((1, 3, 10))))
        at += step
        for id_, tables in found.items():
            tables.append(some[id_])
        desk = QuerySet.from_state(desk.state_bytes()) if dice.random() < 0.3 else desk
    some, matches = desk.finish(), 0
    for id_, tables in found.items():
        expected = plain([compile_query(TEXTS[int(id_)]).match(table).to_arrow()])
        assert plain([*tables, some[id_]]) == expected, TEXTS[int(id_)]
        matches += expected.total()
    assert matches > 0


@pytest.mark.parametrize("make", [own_world, sequence_world])
def test_what_is_taken_back_and_what_stays(make: Any) -> None:
    """Events in any order, results at once: what stays is what the events in order give."""
    tried = 0
    for seed in range(cases(3000, 79)):
        world = make(seed)
        try:
            query = compile_query(world.text) if world is not None and world.rows else None
        except AcepError:
            query = None
        if query is None:
            continue
        table = world.table().append_column("id", pa.array(range(len(world.rows))))
        order = Random(seed).sample(range(len(world.rows)), len(world.rows))
        matcher, left = query.matcher(emit="early", id="id", watermark=1000, bind="id"), {}
        for row in (row for step in [*order, -1] for row in changes(matcher, table, step)):
            op, match_id = row.pop("op"), row.pop("match_id")
            if op == "+I":
                left[match_id] = str(row)
            else:
                left.pop(match_id)
        assert Counter(left.values()) == plain([query.match(table, bind="id").to_arrow()]), world.text
        tried += 1
    assert tried > 0


def changes(matcher: Any, table: pa.Table, step: int) -> list[dict[str, Any]]:
    """What an event brings; -1: the end."""
    rows: list[dict[str, Any]] = (matcher.finish() if step < 0 else matcher.push(table.slice(step, 1))).to_pylist()
    return rows


@pytest.mark.parametrize("make", [own_world, sequence_world])
def test_shards_of_spark(make: Any) -> None:
    """A partition that is read as Spark sorts it."""
    tried = 0
    for seed in range(cases(600, 59)):
        world = make(seed)
        case = numbered(str(seed), world.text, world.table()) if world is not None and world.rows else None
        if case is None:
            continue
        job, shard_of = case.job(2), case.shard_of(2)
        found: Counter[str] = Counter()
        for shard in range(2):
            mine = case.events.select(job.schema.names).filter(pa.array(shard_of == shard))
            batches = iter(mine.to_batches(max_chunksize=3))
            found += sum((rows(pa.Table.from_batches([made])) for made in matching(job)(batches)), Counter())
        assert found == case.expected(), world.text
        tried += 1
    assert tried > 0
