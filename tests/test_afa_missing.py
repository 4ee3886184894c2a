"""What is missing from a match of an automaton written by hand: the names of the arcs that were taken without an event.

The oracle of ``naive_afa``, which writes these names down. Where several ways cost the same, any of them may be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import Query, UsageError, compile_query
from acep_approx.query.syntax import MachineArc
from tests.afa_runs import as_tuple, compiled, variables_of
from tests.afa_worlds import AfaWorld, afa_world, world_of
from tests.cases import cases
from tests.naive_afa import Configuration, Operator, partitions

SMALL = (
    "a -> b ON A o  b -> c ON B  c -> d ON C  FINAL d",
    "a -> b ON A o  b -> c ON ANY  c -> d ON C  FINAL d",
    "a -> b ON B d  b -> c ON ANY b  b -> e ON C d  FINAL c, e",
    "a -> b ON A v  b -> c ON B v  c -> d ON A v  FINAL d",
    "a -> b ON A  b -> b ON B WHEN x > 1  b -> c ON B  c -> d ON C  FINAL d",
    "a -> b ON A  b -> c EPSILON  b -> c ON B  c -> d ON C  d -> e ON ANY  FINAL d, e",
)


@dataclass(frozen=True)
class Named(Configuration):
    """A configuration that knows which arcs it took without their events."""

    missing: tuple[str, ...] = ()


class Naming(Operator):
    """Writes down what is missing."""

    def without_event(self, one: Configuration, arc: MachineArc) -> Iterator[Configuration]:
        for after in super().without_event(one, arc):
            name = (arc.variable or arc.type or "event",) if after.errors > one.errors else ()
            yield named(after, (*getattr(one, "missing", ()), *name))

    def consuming(self, one: Configuration, row: int) -> Iterator[Configuration]:
        for after in super().consuming(one, row):
            yield named(after, getattr(one, "missing", ()))


def named(one: Configuration, missing: tuple[str, ...]) -> Named:
    values = {field.name: getattr(one, field.name) for field in fields(Configuration)}
    return Named(**values, missing=missing)


Shown = tuple[Any, ...]


def expected(world: AfaWorld) -> dict[Shown, set[tuple[str, ...]]]:
    """What may be told as missing from each match, as it is shown; of the ways with the fewest errors."""
    least: dict[Any, int] = {}
    ways: dict[Any, dict[int, set[tuple[str, ...]]]] = {}
    head: dict[Any, Shown] = {}
    for key, part in partitions(world.query, world.rows).items():
        operator = Naming(world.query, world.rows, part, {}, 5000)
        for one in operator.matches():
            match = key, one.first, one.last, operator.per_variable(one), operator.returned(one)
            least[match] = min(one.errors, least.get(match, one.errors))
            ways.setdefault(match, {}).setdefault(one.errors, set()).add(getattr(one, "missing", ()))
            head[match] = key, world.rows[one.first]["ts"], world.rows[one.last]["ts"], match[4] or tuple(
                bound for _, bound in match[3]
            )
    found: dict[Shown, set[tuple[str, ...]]] = {}
    for match, errors in least.items():
        found.setdefault((errors, *head[match]), set()).update(ways[match][errors])
    return found


def told(world: AfaWorld, table: pa.Table) -> list[tuple[Shown, tuple[str, ...]]]:
    """What is told as missing from each match."""
    keys = [one.name for one in world.query.equivalences]
    outputs = [output.name for output in world.query.outputs]
    return [
        (
            (
                row["errors"],
                tuple(row[name] for name in keys),
                row["start"],
                row["end"],
                tuple(row[name] for name in outputs)
                or tuple(as_tuple(row[name]) for name in variables_of(world.query)),
            ),
            tuple(row["missing"]),
        )
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("text", SMALL)
def test_small_machines(text: str) -> None:
    """Arcs without variables, variables on several arcs: all streams of up to three events."""
    query = compile_query(f"PATTERN AUTOMATON ({text}) WITHIN 9 ERRORS 1")
    seen = 0
    for events in ("A", "C", "AC", "AB", "BC", "BA", "AAC", "ABC", "BBC", "ACC", "ABBC"):
        rows = [{"ts": ts, "type": kind, "x": ts, "y": 0.5, "s": "u", "g": "p"} for ts, kind in enumerate(events)]
        seen += check(world_of(query.syntax, rows), query)
    assert seen


def test_random_machines() -> None:
    seen = 0
    for seed in range(cases(200, 20)):
        world = afa_world(seed)
        query = compiled(world)
        if world.query.errors and not world.query.functions and not isinstance(query, str):
            seen += check(world, query)
    assert seen


def check(world: AfaWorld, query: Query) -> int:
    """Holds a world against brute force; returns how many matches lack something."""
    right, lacking = expected(world), 0
    found = query.match(world.table())
    tables = [found.to_arrow(), query.match(world.table(), merge="none").to_arrow()]
    with suppress(UsageError):  # not every machine can
        tables.append(found.compressed().expand())
    for table in tables:
        for match, missing in told(world, table):
            assert missing in right[match], (world.text, world.rows, match, missing, right[match])
            lacking += bool(missing)
    return lacking
