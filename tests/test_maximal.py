"""Maximal matches that are listed without the others: the same as by brute force, and as by the runs engine."""

from __future__ import annotations

from dataclasses import replace
from random import Random

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


@settings(examples(2500), max_examples=cases(2500, 100))
@given(worlds(), st.randoms(use_true_random=True))
def test_maximal_matches_of_cells(world: World, random: Random) -> None:
    """Alone."""
    agrees(rich(world, MAXIMAL), random)


@settings(examples(1500), max_examples=cases(1500, 60))
@given(worlds(), st.randoms(use_true_random=True))
def test_maximal_matches_among_which_clauses_choose(world: World, random: Random) -> None:
    """With FIRST MATCH, AFTER MATCH SKIP, CONSUME and EVERY."""
    asked = replace(selection(Dice(random), ()), maximal=True)
    agrees(rich(world, asked), random)


@settings(examples(1000), max_examples=cases(1000, 40))
@given(rich_worlds(), st.randoms(use_true_random=True))
def test_maximal_matches_of_the_whole_language(world: RichWorld, random: Random) -> None:
    """Those that the cells can run."""
    agrees(world_of(replace(world.query, selection=MAXIMAL), world.rows), random)
