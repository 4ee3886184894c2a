"""The runs engine gives what brute force gives, over the whole language: however it merges, in any split, restarted."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import QueryError, compile_query
from acep_approx.query.parser import parse
from tests.cases import cases, examples
from tests.match_tables import bindings
from tests.naive_selection import reported_matches
from tests.numbered_worlds import numbered_world
from tests.rich_worlds import Dice, RichWorld, rich_worlds, stream
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force, compiled, pushed
from tests.runs_mutants import SHOWN_BY
from tests.smaller_worlds import holds_for
from tests.worlds import World, worlds


@pytest.mark.parametrize("part", range(4))
def test_listed_counted_and_detected_as_by_brute_force(part: int) -> None:
    """Matches with their least err, in order; counts by err; match points with their least err.

    Worlds that show mutants are among them, whatever their number.
    """
    for number in (*range(cases(3000, 100)), *sorted({*SHOWN_BY.values()}))[part::4]:
        holds_for(numbered_world(number), agrees)


@settings(examples(600, shrink=False), max_examples=cases(600, 24))
@given(rich_worlds(), st.sampled_from(MERGES), st.randoms(use_true_random=True))
def test_any_split_and_any_restart_give_the_same(world: RichWorld, merge: str, random: Random) -> None:
    """Batches cut anywhere, and a state saved and restored between them, change nothing, nor does the order."""
    seed = random.random()
    holds_for(world, lambda world: agrees_in_any_split(world, merge, Random(seed)))


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_windows_of_events_close_in_the_order_of_the_stream(output: Any) -> None:
    """Each with an event of its own partition, whose numbers say nothing of other partitions; then the stream ends."""
    rows = [{"ts": i, "g": g, "type": type_} for i, (g, type_) in enumerate(["pA", "qA", "qC", "pC", "rA", "sA"])]
    query = compile_query("PATTERN SEQ(A a, ~(B b)) WHERE [g] WITHIN 1 events")
    table = pa.Table.from_pylist(rows)
    whole = pushed(query, [table], output, "equal", None)
    assert whole["g"].to_pylist() == ["q", "p", "r", "s"]
    for size in (1, 2, 3):
        batches = [table.slice(first, size) for first in range(0, len(rows), size)]
        assert pushed(query, batches, output, "equal", None).equals(whole)


@settings(examples(1000, shrink=False), max_examples=cases(1000, 30))
@given(rich_worlds())
def test_missing_names_what_the_least_err_pays_for(world: RichWorld) -> None:
    """The weights of the missing variables add up to the errors of the match."""

    def check(world: RichWorld) -> None:
        query, weights = compiled(world), dict(world.query.weights)
        for match in query.match(world.table()) if query else ():
            assert sum(weights.get(variable, 1) for variable in match.missing) == match.errors

    if not world.query.is_regex:
        holds_for(world, check)


@settings(examples(1200, shrink=False), max_examples=cases(1200, 60))
@given(rich_worlds(chooses=True), st.sampled_from(MERGES), st.randoms(use_true_random=True))
def test_what_is_listed(world: RichWorld, merge: str, random: Random) -> None:
    """Listed is what the clauses leave, with its least err, in that order: however merged, in any split, restarted."""
    seed = random.random()
    holds_for(world, lambda world: chooses_as_brute_force(world, merge, Random(seed)))


READ_IN_TWO_WAYS = (
    "SEQ(ANY a, ~(B n), A* b[])",
    "SEQ(A a, (B b | ~(C n), A* c[]))",
    "SEQ(A a, B? b, ~(C n), ANY* c[])",
    "SEQ(ANY a, (ANY b[], ~(B n)){2})",
    "SEQ(ANY a, ANY? b, ~(B n), A{0,2} c[]) WHERE n.x > a.x",
    "SEQ(ANY a, ~(B n | C m), A* b[]) WHERE skip_till_next_match",
)
"""Some matches of these can be read with a negation at the end, and without, with more errors or as few."""


@pytest.mark.parametrize("pattern", READ_IN_TWO_WAYS)
def test_matches_read_in_two_ways_wait_only_for_fewer_errors(pattern: str) -> None:
    """Where no two may overlap; also in any split, and restarted."""
    for seed in range(cases(20, 8)):
        dice = Random(seed)
        window, errors = dice.choice(("2", "3", "5", "2 events", "4 events")), dice.choice((1, 2))
        text = f"PATTERN {pattern} WITHIN {window} ERRORS {errors} WEIGHTS (a = 3) NON OVERLAP"
        world = RichWorld(parse(text), text, stream(Dice(dice)))
        query, table = compile_query(text, engine="runs"), world.table()
        merge = dice.choice(MERGES)
        listed = pushed(query, [table], "matches", merge, None)
        expected = reported_matches(world.query, world.rows, world.expected())
        assert list(bindings(listed, world.query).items()) == list(expected.items()), (text, world.rows)
        batches = [table.slice(i, 1) for i in range(table.num_rows)]
        assert pushed(query, batches, "matches", merge, dice).to_pylist() == listed.to_pylist(), (text, world.rows)


@settings(examples(300), max_examples=cases(300, 12))
@given(worlds())
def test_cells_and_runs_agree(world: World) -> None:
    """On what the cells engine can run: the same matches in the same order, counts and points, also their starts."""
    try:
        cells = compile_query(world.text, engine="cells")
    except QueryError as error:
        assert error.code == "ACEP-Q900", error
        return
    runs = compile_query(world.text, engine="runs")
    table = world.table()
    expected = cells.match(table).to_arrow().to_pylist()
    for merge in MERGES[:2]:
        matches = runs.match(table, merge=merge)
        assert matches.to_arrow().to_pylist() == expected
        assert matches.counts().to_pylist() == cells.match(table).counts().to_pylist()
        assert matches.points().to_pylist() == cells.match(table).points().to_pylist()


@pytest.mark.parametrize("merge", MERGES)
def test_work_is_counted(merge: str) -> None:
    """Merging changes the work, never the answer; what is counted adds up."""
    rows = [{"ts": i, "type": "AB"[i % 3 == 2], "x": i % 4} for i in range(60)]
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE b.x >= a[i].x WITHIN 9", engine="runs")
    matches = query.match(rows, merge=merge)
    total = matches.to_arrow().num_rows
    assert total == query.match(rows).to_arrow().num_rows > 0
    work = matches.work
    assert work.made > 0
    assert work.steps > 0
    assert 0 < work.peak <= work.made
    assert (work.merged == 0) if merge == "none" else (work.merged <= work.made)
