"""Points show the errors, the start, what is missing and what RETURN asks for of the best match of their event."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import QueryError, QuerySet, compile_query
from acep_approx.engines.maximal import best
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.query.parser import parse
from tests.afa_runs import compiled as of_machine
from tests.afa_worlds import afa_world
from tests.best_matches import of_points, points_show_the_best, returning, stream
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
def test_a_later_event_with_which_no_match_begins_is_passed_over(engine: str) -> None:
    """The second B comes after what must not stand before it."""
    text = "PATTERN SEQ(A a, ~(D n), B b, C c) WITHIN 10 RETURN b.ts AS at"
    (point,) = compile_query(text, engine=engine).match(
        [{"ts": i, "type": type_} for i, type_ in enumerate("ABDBC")]
    ).points().to_pylist()  # fmt: skip
    assert (point["start"], point["at"]) == (0, 1)


@pytest.mark.parametrize("engine", ["cells", "runs"])
def test_what_has_no_variables_has_no_such_columns(engine: str) -> None:
    """A regular expression names no events; a query that can miss none has an empty list."""
    assert "missing" not in compile_query("ab WITHIN 5 ERRORS 1", engine=engine).match(EVENTS).points().column_names
    points = compile_query("PATTERN SEQ(A a, B b) WITHIN 5", engine=engine).match(EVENTS).points()
    assert points.column("missing").to_pylist() == [[]] * points.num_rows
    assert points.num_rows == 4


@settings(examples(2000), max_examples=cases(2000, 50))
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


@pytest.mark.parametrize("part", range(4))
def test_runs_show_the_best_match(part: int) -> None:
    """The whole language, however runs are merged."""
    for seed in range(part, cases(3000, 80), 4):
        world = rich_world(Random(seed), chooses=False)
        if compiled(world) is not None:
            points_show_the_best(world.text, "runs", world.table(), world.rows, world.expected(), MERGES, Random(seed))


LONG = (
    "PATTERN SEQ(A a, B+ b[], ~(D n), C c) WHERE [g] WITHIN {} ERRORS 1",
    "PATTERN SEQ(A a, (B b | C{{1,2}} c[])+, D d) WITHIN {} ERRORS 2 WEIGHTS (d = 2)",
    "PATTERN SEQ(A a, B? b, C c) WHERE a.x > 3 AND [g] WITHIN {}",
)


@pytest.mark.parametrize("size", [1 << 20, 64])
@pytest.mark.parametrize("text", LONG)
def test_cells_and_runs_show_the_same_of_long_streams(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where walks go through few events at a time, and where room for what they write must grow."""
    monkeypatch.setattr(best, "AT_ONCE", size)
    dice = Random(text)
    for window in ("30", "12 events", "0"):
        plain = compile_query(text.format(window))
        query = returning(plain.syntax, text.format(window), dice)
        events = stream(dice, 2_000)
        cells = compile_query(query, engine="cells").match(events).points()
        assert of_points(cells) == of_points(compile_query(query, engine="runs").match(events).points())
        assert cells.num_rows > 20 or window == "0"


@pytest.mark.parametrize("text", [*(text.format("30") for text in LONG), "PATTERN SEQ(A a, B b) WHERE [g] WITHIN 9"])
def test_sets_show_what_queries_show(text: str) -> None:
    """Whatever queries share: each is there twice with other constants, and beside a regular expression."""
    dice = Random(text)
    events = stream(dice, 600)
    texts = [returning(parse(text), text, dice), text, text.replace("30", "20").replace("9", "8"), "ab WITHIN 3"]
    desk = QuerySet(output="points")
    for number, one in enumerate(texts):
        desk.add(one, id=str(number))
    parts = [desk.push(events.slice(0, 250)), desk.push(events.slice(250)), desk.finish()]
    for number, one in enumerate(texts):
        together = [row for part in parts for row in part[str(number)].drop_columns("query").to_pylist()]
        assert together == compile_query(one).match(events).points().to_pylist()


FEW = (
    "PATTERN SEQ(A a, B b, ~(D n), C c) WHERE [g] WITHIN 20 ERRORS 1",
    "PATTERN SEQ(A a, B? b, C c) WHERE c.x > a.x AND [g] WITHIN 30",
    "PATTERN SEQ(A a, B b, C c, D d) WHERE d.x > a.x AND d.x > b.x WITHIN 15 ERRORS 2",
)


@pytest.mark.parametrize("text", FEW)
def test_a_budget_shows_a_true_match_for_the_same_work(text: str) -> None:
    """Points inside a budget are those that are found without these columns; what they show is of a match that is."""
    dice = Random(text)
    plain = compile_query(text)
    query = compile_query(returning(plain.syntax, text, dice))
    events = stream(dice, 500)
    names = [output.name for output in query.syntax.outputs]

    def shown(row: dict[str, object]) -> str:
        return str([row[name] for name in ("errors", "start", "end", "missing", *names)])

    true = {shown(row) for row in query.match(events).to_arrow().to_pylist()}
    for budget in ("2 steps/event", "5 runs", "30 steps/event"):
        some, bare = (query.match_within(events, budget, seed=1) for _ in range(2))
        points = some.points()
        ends = pa.concat_tables(bare.found_by(bare.begun(BARE)))
        assert points.select(ends.column_names).to_pylist() == ends.to_pylist()
        assert some.progress.steps == bare.progress.steps
        assert {shown(row) for row in points.to_pylist()} <= true


@settings(examples(600), max_examples=cases(600, 40))
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


@pytest.mark.parametrize("part", range(4))
def test_automata_show_a_match_that_there_is(part: int) -> None:
    """What a point shows is what one of the best matches of its event shows, registers too."""
    seen = 0
    for seed in range(part, cases(1200, 64), 4):
        world = afa_world(seed)
        if isinstance(query := of_machine(world), str):
            continue
        matches = query.match(world.table())
        names = set(matches.points().column_names) - {"row", "span", "position"}
        listed: dict[object, list[tuple[int, str]]] = {}
        for row in matches.to_arrow().to_pylist():
            shown = {name: value for name, value in row.items() if name in names}
            listed.setdefault((row["end"], row["start"]), []).append((row["errors"], str(shown)))
        for merge in MERGES:
            for row in matches.asking(merge=merge).points().to_pylist():
                seen += 1
                if "start" in row:
                    shown = {name: value for name, value in row.items() if name in names}
                    assert (row["errors"], str(shown)) in listed[row["end"], row["start"]], (seed, merge)
    assert seen > 100
