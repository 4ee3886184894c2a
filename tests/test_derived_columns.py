"""Columns that no file has: a query on a column that is given with each batch finds what it finds in the file."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, compile_query
from acep_approx.events.source import open_source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.matching.execution import Execution

DERIVED = ("level", "word", "heat")
STATIC = "PATTERN SEQ(A a, B b, C c) WHERE a.level > 3 AND b.word = 'u' WITHIN 30 ERRORS 1"
ACROSS = "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].level > a.level AND c.word != a.word AND c.heat < b[1].heat WITHIN 9"
KEYED = "PATTERN SEQ(A a, B b, ~C n, A c) WHERE [word] AND n.heat > 0.5 AND c.level >= b.level WITHIN 60"
NEXT = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [word] AND b.level > 2 } WITHIN 9 events"
SHOWN = "PATTERN SEQ(A a, B+ b[]) WHERE b[i].level = a.level WITHIN 12 RETURN a.word AS word, sum(b[].heat) AS heat"
QUERIES = [
    (STATIC, "cells"), (STATIC, "runs"), (ACROSS, "auto"), (KEYED, "auto"), (NEXT, "auto"), (SHOWN, "runs"),
    ("PATTERN SEQ(A a, B b) WHERE [word] AND a.level = 2 WITHIN 20 RETURN b.heat - a.heat AS d", "cells"),
]  # fmt: skip


def stream(events: int, seed: int) -> pa.Table:
    """Events with columns that change from one to the next; some are null."""
    dice = np.random.default_rng(seed)
    kind = pa.array(dice.choice(list("ABC"), events))
    return pa.table(
        {
            "ts": np.cumsum(dice.integers(0, 3, events)),
            "type": kind,
            "level": pa.array(dice.integers(0, 6, events), mask=dice.random(events) < 0.1),
            "word": pa.array(dice.choice(list("uvw"), events), mask=dice.random(events) < 0.1),
            "heat": dice.random(events),
        }
    )


def batches(events: pa.Table, execution: Execution, dice: Random) -> Iterator[tuple[EventBatch, dict[str, pa.Array]]]:
    """The events without their derived columns, split anyhow, and these beside them."""
    assert execution.pipeline is not None
    pipeline = execution.pipeline
    first = execution.progress.events
    while first < events.num_rows:
        part = events.slice(first, dice.randrange(1, 60))
        source = open_source(part.drop_columns(list(DERIVED)))
        for batch in read_events(source, pipeline.roles, columns=pipeline.columns, first_row=first):
            yield batch, {name: part.column(name).combine_chunks() for name in DERIVED}
        first += part.num_rows


def bound(query: str, engine: str, events: pa.Table, output: str, bind: str | None) -> Execution:
    execution = Execution(compile_query(query, engine=engine).plan, output=output, bind=bind)  # type: ignore[arg-type]
    types = {name: events.schema.field(name).type for name in DERIVED}
    execution.bind(events.drop_columns(list(DERIVED)).schema, derived=types)
    return execution


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
@pytest.mark.parametrize(("query", "engine"), QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_a_derived_column_is_a_column(query: str, engine: str, output: str, seed: int) -> None:
    """Static and across events, as key, in RETURN and bound; in batches, saved and restored between any two."""
    events, dice = stream(400, seed), Random(seed)
    bind = None if "RETURN" in query else dice.choice([None, "level"])
    expected = compile_query(query, engine=engine).matcher(output=output, bind=bind)  # type: ignore[arg-type]
    whole = [*expected.push(events).to_pylist(), *expected.finish().to_pylist()]
    execution = bound(query, engine, events, output, bind)
    assert not set(execution.pipeline.columns) & set(DERIVED), "never read from a file"  # type: ignore[union-attr]
    found = []
    for batch, derived in batches(events, execution, dice):
        for table in execution.run(batch, derived):
            found += table.to_pylist()
        if dice.randrange(3) == 0:
            execution = Execution.from_state(execution.plan, execution.state_bytes())
    found += execution.finish().to_pylist()
    assert found == whole
    assert whole


def test_what_the_file_has_under_its_name_is_not_looked_at() -> None:
    events = stream(50, 1)
    execution = bound(ACROSS, "auto", events, "matches", None)
    source = open_source(events)
    for batch in read_events(source, execution.pipeline.roles):  # type: ignore[union-attr]
        nothing = {name: pa.nulls(len(batch), events.schema.field(name).type) for name in DERIVED}
        assert not [row for table in execution.run(batch, nothing) for row in table.to_pylist()]


def test_types_of_derived_columns_may_widen() -> None:
    """As those of columns in a file: whole numbers become floats, and what runs hold with them."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9")
    execution = Execution(query.plan)
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string())])
    roles = execution.bind(schema, derived={"x": pa.int64()}).roles
    found = []
    for row, (kind, x) in enumerate([("A", pa.array([2])), ("B", pa.array([2.5])), ("B", pa.array([None], pa.null()))]):
        for batch in read_events(open_source([{"ts": row, "type": kind}]), roles, first_row=row):
            found += [table.num_rows for table in execution.run(batch, {"x": x})]
    assert sum(found) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "derived columns none; wanted: x"),
        ({"x": pa.array([1])}, "'x' has 1 values, and the batch 2 events"),
        ({"x": pa.array([1, 2]), "y": pa.array([1, 2])}, "derived columns x, y; wanted: x"),
    ],
)
def test_derived_columns_that_do_not_fit_are_refused(given: dict[str, pa.Array], message: str) -> None:
    """Before anything of the batch is run: one can go on with the right ones."""
    execution = Execution(compile_query("PATTERN SEQ(A a, B b) WHERE a.x = 1 WITHIN 9").plan)
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string())])
    roles = execution.bind(schema, derived={"x": pa.int64()}).roles
    [batch] = read_events(open_source([{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]), roles)
    with pytest.raises(DataError, match=f"ACEP-D046.*{message}"):
        list(execution.run(batch, given))
    assert sum(table.num_rows for table in execution.run(batch, {"x": pa.array([1, 0])})) == 1


@pytest.mark.parametrize("name", ["x", "ts"])
def test_derived_columns_have_names_of_their_own(name: str) -> None:
    execution = Execution(compile_query("PATTERN SEQ(A a, B b) WHERE a.x = 1 WITHIN 9").plan)
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("x", pa.int64())])
    with pytest.raises(DataError, match="ACEP-D046"):
        execution.bind(schema, derived={name: pa.int64()})
