"""A set takes each query that runs alone, and finds as much."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from acep_approx import AcepError, QuerySet, compile_query
from acep_approx.api.query import Query
from tests.cases import cases
from tests.cel_worlds import cel_world
from tests.rich_worlds import COLUMNS, rich_world
from tests.tied_worlds import tied_world

PAIR = [{"ts": 0, "type": "A", "x": 1}, {"ts": 1, "type": "B", "x": 3}]
CHOSEN_BY_A_CONSTANT = (
    "PATTERN SEQ(A a, B b){1,2} WHERE skip_till_next_match { a[i].x < max(b[].x) + 1 } WITHIN 5",
    "PATTERN SEQ(A a, B b){1,2} WHERE skip_till_next_match { a[i].x < 2 * max(b[].x) } WITHIN 5",
)
"""With an attribute in the place of the constant, the engine cannot choose the next event."""


def rows(query: Query, events: pa.Table, output: str) -> int | None:
    """How many results; None where it cannot be asked for them."""
    try:
        matches = query.match(events)
        return {"matches": matches.to_arrow, "points": matches.points, "counts": matches.counts}[output]().num_rows
    except AcepError:
        return None


@pytest.mark.parametrize("text", CHOSEN_BY_A_CONSTANT)
def test_a_constant_says_more_than_an_attribute(text):
    desk = QuerySet()
    desk.add(text, id="q")
    desk.add_many(text.replace("1 }", ":p }").replace("2 *", ":p *"), [{"p": 1}, {"p": 2}], id="t")
    found = desk.match(PAIR)
    assert found["q"].num_rows == found["t[0]"].num_rows == len(compile_query(text).match(PAIR)) == 1


@pytest.mark.filterwarnings("ignore::acep_approx.UnseenTypeWarning")
def test_random_queries():
    taken = 0
    for seed in range(cases(400, 12)):
        random = Random(seed)
        for world in (rich_world(random, seed % 5 == 0), tied_world(random)):
            events = pa.table(
                {name: pa.array([row.get(name) for row in world.rows], kind) for name, kind in COLUMNS.items()}
            )
            try:
                query = compile_query(world.text)
            except AcepError:
                continue
            for output in ("matches", "points", "counts"):
                alone = rows(query, events, output)
                if alone is None:
                    continue
                desk = QuerySet(output=output)
                desk.add(world.text, id="q")
                found = desk.match(events)
                assert (found["q"].num_rows if alone else 0) == alone, world.text
                taken += 1
    assert taken > 60


@pytest.mark.filterwarnings("ignore::acep_approx.UnseenTypeWarning")
def test_random_queries_in_cel():
    for seed in range(cases(400, 12)):
        world = cel_world(seed)
        try:
            query = compile_query(world.text)
            query.match(world.table).to_arrow()
        except AcepError:
            continue
        desk = QuerySet()
        desk.add(world.text, id="q")
        desk.match(world.table)
