"""Partial matches that timed out: by hand, and as by brute force in any split, restarted."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import QueryError, compile_query
from acep_approx.automaton.resolve import dynamic_conditions
from tests.cases import cases, examples
from tests.command_line import acep
from tests.match_tables import reports
from tests.naive_partial import expected_partials
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled, pushed
from tests.smaller_worlds import holds_for
from tests.streams import rows_of

STRATEGIES = ("skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity")


def partials(query: str, text: str) -> list[tuple[Any, ...]]:
    """Start, events bound, what is awaited, and why, of each partial match."""
    table = compile_query(query).match(rows_of(text)).partial()
    return [(row["start"], row["bound"], row["awaited"], row["why"]) for row in table.to_pylist()]


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES[:2])
def test_an_event_that_nothing_follows(strategy):
    query = f"PATTERN SEQ(A a, B b) WHERE {strategy} WITHIN 5"
    assert partials(query, "0 A, 9 A, 10 B, 20 A") == [
        (0, 1, ["b"], "window closed"),
        (20, 1, ["b"], "stream ended"),
    ]


def test_the_columns():
    rows = [{"ts": i, "key": "u", "type": kind} for i, kind in enumerate("AAB")]
    found = compile_query("PATTERN SEQ(A+ a[], B b, C c) WHERE [key] WITHIN 9").match(rows).partial()
    names = ["key", "errors", "start", "end", "bound", "awaited", "why", "a", "b", "c"]
    assert found.column_names == names
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("u", 0, 0, 2, 3, ["c"], "stream ended", [0, 1], 2, None),
        ("u", 0, 1, 2, 2, ["c"], "stream ended", [1], 2, None),
    ]
    assert compile_query("PATTERN SEQ(A a, B b) WITHIN 9").match(rows).partial().num_rows == 0


def test_furthest_is_of_most_events_then_of_fewest_errors_then_the_latest():
    query = "PATTERN SEQ(A a, B b, C c, D d) WITHIN 9 ERRORS 1"
    assert partials(query, "0 A, 1 C") == [(0, 2, ["d"], "stream ended")]
    assert partials(query, "0 A, 1 C, 2 B")[0] == (0, 2, ["c", "d"], "stream ended")
    table = compile_query(query).match(rows_of("0 A, 1 B, 2 B")).partial()
    assert table.column("b").to_pylist()[0] == 2


def test_what_waits_with_errors_comes_last():
    query = "PATTERN SEQ(A a, (B b | C c), D d) WITHIN 5 ERRORS 1"
    assert partials(query, "0 A") == [(0, 1, ["b", "c", "d"], "stream ended")]
    assert partials("(ab|ca)d WITHIN 5", "0 a") == [(0, 1, ["b"], "stream ended")]


@pytest.mark.parametrize("strategy", STRATEGIES[2:])
def test_a_neighbour_that_does_not_fit_breaks_contiguity(strategy):
    query = f"PATTERN SEQ(A a, B b) WHERE {strategy} WITHIN 5"
    assert partials(query, "0 A, 1 Z, 2 B, 20 A, 30 B, 40 A") == [
        (0, 1, ["b"], "broken"),
        (20, 1, ["b"], "window closed"),
        (40, 1, ["b"], "stream ended"),
    ]


def test_neighbours_in_a_partition_and_in_the_stream():
    rows = [{"ts": i, "key": key, "type": kind} for i, (key, kind) in enumerate(["uA", "vZ", "wA", "wZ"])]
    for strategy, why in (("partition_contiguity", "stream ended"), ("strict_contiguity", "broken")):
        query = compile_query(f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ [key] }} WITHIN 9 events")
        assert query.match(rows).partial().column("why").to_pylist() == [why, "broken"]


def test_a_neighbour_of_another_partition_counts_where_it_came():
    """Once the window is full nothing breaks a partial match any more; in any split."""
    rows = [{"ts": i, "key": key, "type": "A"} for i, key in enumerate("uuv")]
    query = compile_query("PATTERN SEQ(A a, A b, C c) WHERE strict_contiguity { [key] } WITHIN 1 events")
    expected = [(0, "window closed"), (1, "broken"), (2, "stream ended")]
    whole = query.match(rows).partial()
    table = pa.Table.from_pylist(rows)
    parts = pushed(query, [table.slice(i, 1) for i in range(3)], "partial", "none", None)
    for found in (whole, parts):
        assert list(zip(found["a"].to_pylist(), found["why"].to_pylist(), strict=True)) == expected


def test_all_came_but_it_was_refused():
    query = "PATTERN SEQ(A a, B b, ~(C c)) WITHIN 5"
    assert partials(query, "0 A, 1 B, 2 C, 20 Z") == [(0, 2, [], "refused")]
    assert partials(query, "0 A, 1 B, 6 C") == []


def test_a_name_that_a_column_has():
    with pytest.raises(QueryError, match="ACEP-Q901"):
        compile_query("PATTERN SEQ(A why, B b) WITHIN 5").match(rows_of("0 A")).partial()


def test_return_gives_values_instead_of_rows():
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AS x, b.x AS y")
    assert query.match(rows_of("0 A 3")).partial().select(["x", "y"]).to_pylist() == [{"x": 3, "y": None}]


def test_links_that_leave_the_window_are_left_behind():
    """Many short windows: links are numbered anew again and again."""
    dice = Random(1)
    rows, tick = [], 0
    for _ in range(40_000):
        tick += dice.randrange(3)
        rows.append({"ts": tick, "key": dice.randrange(7000), "type": dice.choice("AB"), "x": dice.randrange(9)})
    query = compile_query("PATTERN SEQ(A a, B+ b[]) WHERE [key] AND b[i].x > a.x WITHIN 2000")
    table = pa.Table.from_pylist(rows)
    found = query.match(table).partial()
    matched = set(query.match(table).to_arrow().column("a").to_pylist())
    began = {i for i, row in enumerate(rows) if row["type"] == "A"}
    assert set(found.column("a").to_pylist()) == began - matched
    assert found.column("start").to_pylist() == sorted(found.column("start").to_pylist())
    assert found.column("key").to_pylist() == [rows[i]["key"] for i in found.column("a").to_pylist()]
    parts = pushed(query, [table.slice(i, 7777) for i in range(0, 40_000, 7777)], "partial", "none", dice)
    assert parts.to_pylist() == found.to_pylist()


def test_the_command_line_puts_them_out(folder):
    query = "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 1 h"
    result = acep("run", query, "events.csv", "--output", "partial", "--limit", "1")
    assert json.loads(result.stdout) == {
        "key": "box 1", "errors": 0, "start": "2024-05-01T08:00:00Z", "end": "2024-05-01T08:06:00Z", "bound": 2,
        "awaited": ["d"], "why": "window closed", "p.ts": "2024-05-01T08:00:00Z",
        "l.ts": "2024-05-01T08:06:00Z", "d.ts": None,
    }  # fmt: skip
    assert "stopped after 1 partial match, there are more" in result.stderr
    assert (folder / "events.csv").exists()
    result = acep("run", query, "events.csv", "--output", "partial", "--errors", "2", "--format", "table")
    assert result.stdout == "no partial matches\n"


# --- by brute force ---------------------------------------------------------------------------------------------------


def is_as_by_brute_force(world: RichWorld, table: pa.Table) -> None:
    """The same events, each with a report that is right."""
    expected = expected_partials(world.query, world.rows)
    found = reports(table, world.query)
    assert found.keys() == expected.keys()
    for first, report in found.items():
        assert report in expected[first]
        assert table.num_rows == len(found)


@settings(examples(1500, shrink=False), max_examples=cases(1500, 50))
@given(rich_worlds())
def test_as_by_brute_force(world: RichWorld) -> None:
    """All that a world holds, over all strategies; conditions on pairs of events are tested on matches only."""

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None or query.plan.registers.filters:
            return
        if any(one.expression not in world.query.predicates for one in dynamic_conditions(world.query)):
            return  # half of a BETWEEN may be known sooner than the whole
        is_as_by_brute_force(world, query.match(world.table()).partial())

    holds_for(world, check)


@settings(examples(500, shrink=False), max_examples=cases(500, 20))
@given(rich_worlds(), st.randoms(use_true_random=True))
def test_any_split_and_any_restart_give_the_same(world: RichWorld, random: Random) -> None:
    """Batches cut anywhere, and a state saved and restored between them, change nothing, nor does the order."""
    seed = random.random()

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None:
            return
        dice = Random(seed)
        table = world.table()
        whole = pushed(query, [table], "partial", "equal", None)
        cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(5)))
        batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
        assert pushed(query, batches, "partial", "equal", dice).to_pylist() == whole.to_pylist()

    holds_for(world, check)


@examples(60)
@given(st.randoms(use_true_random=True), st.sampled_from(STRATEGIES))
def test_the_cells_hand_over_to_the_runs(random: Random, strategy: str) -> None:
    """A query that the cells engine runs gives the same partial matches as one that asks for the runs."""
    rows = [{"ts": i, "type": random.choice("ABC")} for i in range(30)]
    text = f"PATTERN SEQ(A a, B b, C c) WITHIN 4 ERRORS {random.randrange(2)}"
    auto, runs = compile_query(text), compile_query(text, engine="runs")
    assert auto.plan.engine == "cells"
    assert auto.match(rows).partial().equals(runs.match(rows).partial())
