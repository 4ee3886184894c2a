"""What stands for bound events: the values of columns at their row numbers; and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from acep_approx import Query, compile_query
from acep_approx.cli.main import app
from acep_approx.errors import DataError, UsageError
from acep_approx.matching.renumber import row_columns
from tests.cases import examples
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for

CELLS = (
    "PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1",
    "PATTERN SEQ(A a, B+ b[], C c) WITHIN 7",
    "PATTERN SEQ(A a, B b) WHERE [g] WITHIN 9",
    "PATTERN SEQ(A a, B? b, C c) WHERE [g] WITHIN 3 events ERRORS 1",
    "ab*c WITHIN 6 ERRORS 1",
)
OUTPUTS = ("matches", "points", "counts", "partial")
NAMES = (["name"], ["number"], ["name", "number"], "name")


def named(table: pa.Table) -> pa.Table:
    """Events with two columns that say which one it is; the numbers are no row numbers."""
    rows = range(table.num_rows)
    names = pa.array([f"e{row}" for row in rows], pa.string())
    numbers = pa.array([7 * row - 3 for row in rows], pa.int64())
    return table.append_column("name", names).append_column("number", numbers)


def looked_up(bind: Any, table: pa.Table) -> Callable[[Any], Any]:
    """From row numbers, None, and lists of them, to what should stand there."""
    columns = [bind] if isinstance(bind, str) else bind
    events = table.select(columns).to_pylist()

    def value(rows: Any) -> Any:
        if isinstance(rows, list):
            return [value(row) for row in rows]
        if rows is None:
            return None
        return events[rows] if len(columns) > 1 else events[rows][columns[0]]

    return value


def expected(found: pa.Table, query: Query, output: str, bind: Any, table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a result with row numbers, as they should be with values."""
    value, columns = looked_up(bind, table), row_columns(query.plan, output)
    names = [bind] if isinstance(bind, str) else bind
    rename = {"row": "event" if len(names) > 1 else names[0]} if "row" in columns else {}
    return [
        {rename.get(name, name): value(cell) if name in columns else cell for name, cell in row.items()}
        for row in found.to_pylist()
    ]


def pushed(query: Query, table: pa.Table, output: Any, bind: Any, dice: Random) -> pa.Table:
    """The result of random batches, now and then with the state saved and restored between them."""
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(5)))
    matcher = query.matcher(output=output, bind=bind)
    parts = []
    for first, last in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        parts.append(matcher.push(table.slice(first, last - first)))
        if dice.randrange(2):
            matcher = query.from_state(matcher.state_bytes())
    return pa.concat_tables([*parts, matcher.finish()])


def check_binds(query: Query, table: pa.Table, output: str, bind: Any, seed: int) -> None:
    by_row = pushed(query, table, output, None, Random(seed))
    by_value = pushed(query, table, output, bind, Random(seed))
    assert by_value.to_pylist() == expected(by_row, query, output, bind, table)


@examples(250, shrink=False)
@given(rich_worlds(), st.integers(0, 2**20), st.sampled_from(OUTPUTS), st.sampled_from(NAMES))
def test_runs_give_the_values_of_the_events_that_they_bind(
    world: RichWorld, seed: int, output: str, bind: Any
) -> None:
    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is not None and world.rows and not world.query.outputs:
            check_binds(query, named(world.table()), output, bind, seed)

    holds_for(world, check)


@examples(100, shrink=False)
@given(st.sampled_from(CELLS), st.integers(0, 2**20), st.sampled_from(OUTPUTS), st.sampled_from(NAMES))
def test_cells_give_the_values_of_the_events_that_they_bind(text: str, seed: int, output: str, bind: Any) -> None:
    dice = Random(seed)
    query = compile_query(text)
    assert query.plan.engine == "cells"
    letters = "abcx" if query.syntax.is_regex else "ABCX"
    rows = [{"ts": t // 2, "type": dice.choice(letters), "g": dice.choice("pq")} for t in range(dice.randrange(1, 30))]
    check_binds(query, named(pa.Table.from_pylist(rows)), output, bind, seed)


EVENTS = [
    {"ts": 1, "type": "A", "id": "x1", "n": 4},
    {"ts": 2, "type": "B", "id": "x2", "n": None},
    {"ts": 3, "type": "B", "id": None, "n": 6},
    {"ts": 4, "type": "C", "id": "x4", "n": 7},
]


def test_types_are_those_of_the_columns() -> None:
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "n": pa.array([5, 6], pa.int16()), "s": ["x", "y"]})
    query = compile_query("PATTERN SEQ(A a, B+ b[]) WITHIN 5")
    found = query.match(table, bind=["n", "s"]).to_arrow()
    struct = pa.struct([("n", pa.int16()), ("s", pa.string())])
    assert (found.schema.field("a").type, found.schema.field("b").type) == (struct, pa.list_(struct))
    assert query.match(table.slice(0, 0), bind="n").to_arrow().schema.field("b").type == pa.list_(pa.int16())
    assert query.match(table, bind="n").points().schema.field("n").type == pa.int16()


@pytest.mark.parametrize("engine", ["auto", "runs"])
def test_nothing_is_said_of_an_event_whose_column_is_empty(engine: str) -> None:
    query = compile_query("PATTERN SEQ(A a, B? b, C c) WITHIN 5", engine=engine)
    assert sorted(str(m.values["b"]) for m in query.match(EVENTS, bind="id")) == ["None", "None", "x2"]
    assert sorted(map(str, (m.values["b"] for m in query.match(EVENTS, bind=["id", "n"])))) == [
        "None", "{'id': 'x2', 'n': None}", "{'id': None, 'n': 6}",
    ]  # fmt: skip


@pytest.mark.parametrize("bind", [[], ["id", "id"]])
def test_what_is_no_bind(bind: Any) -> None:
    with pytest.raises(UsageError) as error:
        compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(EVENTS, bind=bind)
    assert error.value.code == "ACEP-U051"


def test_what_shows_no_events_refuses_to_bind_them() -> None:
    returning = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.n AS n")
    with pytest.raises(UsageError, match="RETURN") as error:
        returning.match(EVENTS, bind="id")
    assert error.value.code == "ACEP-U051"
    with pytest.raises(UsageError, match="compressed output"):
        compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(EVENTS, bind="id").compressed()


def test_columns_that_are_not_there_or_there_twice() -> None:
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 5")
    events = [{"ts": 1, "type": "A", "g": 1}, {"ts": 2, "type": "B", "g": 1}]
    with pytest.raises(DataError, match="idd"):
        query.match(events, bind="idd").to_arrow()
    with pytest.raises(DataError) as error:
        query.match(events, bind="g").points()
    assert error.value.code == "ACEP-D043"
    assert query.match(events, bind="g").to_arrow().to_pylist()[0]["a"] == 1


def test_bundles_and_late_events_and_a_budget_know_rows_all_the_same() -> None:
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.n > 0 AND b.n > a.n WITHIN 5")
    events = named(pa.Table.from_pylist([{"ts": t, "type": "AB"[t % 2], "n": t} for t in (1, 2, 0, 3, 20, 21, 22, 23)]))
    late: dict[str, Any] = {"on_late": "skip"}
    assert query.match(events, bind="name", **late).bundles().equals(query.match(events, **late).bundles())
    found = query.match(events, bind="name", **late).to_arrow()
    rows = query.match(events, **late).to_arrow()
    assert len(rows) > 3
    assert found.column("b").to_pylist() == [f"e{row}" for row in rows.column("b").to_pylist()]
    bought = query.match_within(events, "1000 runs", bind="name", **late)
    assert bought.to_arrow().column("a").to_pylist() == found.column("a").to_pylist()


def test_acep_run_binds(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("".join(f'{{"ts": {t}, "type": "{k}", "id": "x{t}"}}\n' for t, k in enumerate("ABB")))
    done_with = ["run", "PATTERN SEQ(A a, B b) WITHIN 5", str(file), "--quiet"]
    done = CliRunner().invoke(app, [*done_with, "--bind", "id", "--format", "csv"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1:] == ['0,0,1,"",x0,x1', '0,0,2,"",x0,x2']
    both = CliRunner().invoke(app, [*done_with, "--bind", "id", "--bind", "ts", "--format", "jsonl"])
    assert list(json.loads(both.stdout.splitlines()[0]).items())[4:6] == [("a.id", "x0"), ("a.ts", 0)]
    table = CliRunner().invoke(app, [*done_with, "--bind", "id", "--bind", "ts", "--format", "table"])
    assert "x0" in table.stdout, table.output
    parquet = CliRunner().invoke(app, [*done_with, "--bind", "id", "--bind", "ts", "-o", str(tmp_path / "f.parquet")])
    assert parquet.exit_code == 0, parquet.output
