"""Maximal matches that are listed without the others: the same as by brute force, and as by the runs engine."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from acep_approx import Query, QueryError, compile_query
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import Selection
from tests.cases import cases, examples
from tests.match_tables import bindings, counted, least, per_point
from tests.naive import match_points
from tests.naive_selection import reported_matches
from tests.rich_worlds import COLUMNS, Dice, RichWorld, rich_worlds, selection, world_of
from tests.runs_engine import pushed
from tests.worlds import World, worlds

MAXIMAL = Selection(maximal=True)


def rich(world: World, asked: Selection) -> RichWorld:
    """The same query with clauses that choose, and the same stream."""
    rows = [
        {**dict.fromkeys(COLUMNS), "ts": event.tick, "type": event.type, **event.values} for event in world.events
    ]
    text = to_text(replace(world.query, selection=asked))
    return RichWorld(parse(text), text, tuple(rows))


def walked(world: RichWorld) -> Query:
    """The query, if it is run by walks."""
    try:
        query = compile_query(world.text)
    except QueryError:
        assume(False)
    assume(query.plan.walks_maximal)
    return query


def agrees(world: RichWorld, dice: Random) -> None:
    """Lists, points and counts are those of brute force, in any split and over restarts."""
    query, table = walked(world), world.table()
    expected = reported_matches(world.query, world.rows, world.expected())
    matches = query.match(table)
    assert list(bindings(matches.to_arrow(), world.query).items()) == list(expected.items())
    assert least(matches.points()) == match_points(expected)
    assert counted(matches.counts()) == per_point(expected)
    output = dice.choice(("matches", "points", "counts"))
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(7)))
    batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    whole = pushed(query, [table], output, "equal", None)
    assert pushed(query, batches, output, "equal", dice).to_pylist() == whole.to_pylist()


@settings(examples(2500), max_examples=cases(2500, 70))
@given(worlds(), st.randoms(use_true_random=True))
def test_maximal_matches_of_cells(world: World, random: Random) -> None:
    """Alone."""
    agrees(rich(world, MAXIMAL), random)


@settings(examples(1500), max_examples=cases(1500, 40))
@given(worlds(), st.randoms(use_true_random=True))
def test_maximal_matches_among_which_clauses_choose(world: World, random: Random) -> None:
    """With FIRST MATCH, AFTER MATCH SKIP, CONSUME and EVERY."""
    asked = replace(selection(Dice(random), ()), maximal=True)
    agrees(rich(world, asked), random)


@settings(examples(1000), max_examples=cases(1000, 30))
@given(rich_worlds(), st.randoms(use_true_random=True))
def test_maximal_matches_of_the_whole_language(world: RichWorld, random: Random) -> None:
    """Those that the cells can run."""
    agrees(world_of(replace(world.query, selection=MAXIMAL), world.rows), random)


LONG = (
    "SEQ(A a, B b, C c) WITHIN {w} ERRORS 1",
    "SEQ(A a, B{1,3} b[], C c) WITHIN {w}",
    "SEQ(A a, ~(B n), C c, D? d) WITHIN {w} ERRORS 1",
    "SEQ(A{2,4} a[], (B b | C c), D d) WITHIN {w} ERRORS 2",
    "SEQ(A a, B? b, C c, D d) WITHIN {w} events ERRORS 1",
)


@pytest.mark.parametrize("text", LONG)
@pytest.mark.parametrize("keys", [1, 40])
def test_long_streams(text: str, keys: int) -> None:
    """Arrays grow and windows expire: as the runs engine, which lists all matches first; in any split, restarted."""
    dice = Random(keys)
    count = 700 if keys == 1 else 4000
    ticks = sorted(dice.randrange(2 * count) for _ in range(count))
    table = pa.table({"ts": ticks, "type": dice.choices("ABCDE", k=count), "g": dice.choices(range(keys), k=count)})
    where, width = ("WHERE [g]", 60 * (keys > 1) + 14) if keys > 1 else ("", 14)
    pattern, clauses = text.split(" WITHIN", 1)
    asked = f"PATTERN {pattern} {where} WITHIN{clauses.format(w=width if 'events' not in clauses else 6)} MAXIMAL"
    query, listing = compile_query(asked), compile_query(asked, engine="runs")
    assert query.plan.walks_maximal
    expected = listing.match(table).to_arrow()
    assert expected.num_rows > 9
    assert query.match(table).to_arrow().to_pylist() == expected.to_pylist()
    for output in ("matches", "points", "counts"):
        whole = pushed(query, [table], output, "equal", None)
        assert whole.to_pylist() == pushed(listing, [table], output, "equal", None).to_pylist()
        cuts = sorted(dice.randint(0, count) for _ in range(40))
        batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, count], strict=True)]
        assert pushed(query, batches, output, "equal", dice).to_pylist() == whole.to_pylist()


@pytest.mark.parametrize("first", range(1, 6))
def test_a_key_that_comes_after_a_restart_in_windows_of_events(first: int) -> None:
    """Counters of keys and engines make room for more of them at different times."""
    query = compile_query("PATTERN SEQ(A a, A? b) WHERE [g] WITHIN 3 events MAXIMAL")
    rows = [{"ts": at, "type": "A", "g": at} for at in range(first + 3)]
    matcher = query.matcher()
    matcher.push(rows[:first])
    matcher = query.from_state(matcher.state_bytes())
    assert sum(len(matcher.push([row])) for row in rows[first:]) + len(matcher.finish()) == len(rows)
