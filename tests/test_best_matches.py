"""Points show the errors, the start, what is missing and what RETURN asks for of the best match of their event."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import QueryError, compile_query
from tests.best_matches import of_points, points_show_the_best, returning
from tests.cases import cases, examples
from tests.rich_worlds import rich_world
from tests.runs_engine import MERGES, compiled, pushed
from tests.worlds import World, worlds

EVENTS = [{"ts": i, "type": type_, "x": 10 * i} for i, type_ in enumerate("ABCABDABBCC")]


def rows_of(world: World) -> list[dict[str, object]]:
    """The stream as the oracle of the order reads it."""
    return world.table().to_pylist()


@pytest.mark.parametrize("engine", ["cells", "runs"])
def test_the_columns_of_points(engine: str) -> None:
    """They come behind the others; of equal errors and starts the match of the later events is shown."""
    text = "PATTERN SEQ(A a, B+ b[], C c) WITHIN 10 ERRORS 1 RETURN a.x AS x, b[1].ts AS at"
    query = compile_query(text, engine=engine)
    points = query.match(EVENTS).points()
    assert points.column_names == ["errors", "start", "end", "row", "missing", "x", "at"]
    assert [tuple(row.values()) for row in points.to_pylist()] == [
        (1, 0, 1, 1, ["c"], 0, 1),
        (0, 0, 2, 2, [], 0, 1),
        (1, 3, 4, 4, ["c"], 30, 4),
        (1, 6, 7, 7, ["c"], 60, 7),
        (1, 6, 8, 8, ["c"], 60, 7),
        (0, 6, 9, 9, [], 60, 7),
        (0, 6, 10, 10, [], 60, 7),
    ]


@pytest.mark.parametrize("engine", ["cells", "runs"])
def test_what_has_no_variables_has_no_such_columns(engine: str) -> None:
    """A regular expression names no events; a query that can miss none has an empty list."""
    assert "missing" not in compile_query("ab WITHIN 5 ERRORS 1", engine=engine).match(EVENTS).points().column_names
    points = compile_query("PATTERN SEQ(A a, B b) WITHIN 5", engine=engine).match(EVENTS).points()
    assert points.column("missing").to_pylist() == [[]] * points.num_rows
    assert points.num_rows == 4


@settings(examples(2000), max_examples=cases(2000, 120))
@given(worlds(), st.randoms(use_true_random=False))
def test_cells_show_the_best_match(world: World, dice: Random) -> None:
    """Whatever the cells can run."""
    try:
        compile_query(world.text, engine="cells")
    except QueryError:
        return
    rows, expected = rows_of(world), world.expected()
    points_show_the_best(world.text, "cells", world.table(), rows, expected, MERGES[:1], dice)
    points_show_the_best(world.text, "runs", world.table(), rows, expected, MERGES[:2], dice)


@pytest.mark.parametrize("seed", range(cases(3000, 250)))
def test_runs_show_the_best_match(seed: int) -> None:
    """The whole language, however runs are merged."""
    world = rich_world(Random(seed), non_overlap=False)
    if compiled(world) is not None:
        points_show_the_best(world.text, "runs", world.table(), world.rows, world.expected(), MERGES, Random(seed))


@settings(examples(600), max_examples=cases(600, 60))
@given(worlds(), st.randoms(use_true_random=False))
def test_any_split_and_any_restart_show_the_same(world: World, dice: Random) -> None:
    """Batches cut anywhere, and a state saved and restored between them."""
    try:
        query = compile_query(returning(world.query, world.text, dice), engine=dice.choice(("cells", "runs")))
    except QueryError:
        return
    table = world.table()
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(5)))
    batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    parts = pushed(query, batches, "points", MERGES[0], dice)
    assert of_points(parts) == of_points(query.match(table).points())
    assert parts.schema.names == query.match(table).points().schema.names or not table.num_rows
