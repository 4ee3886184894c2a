"""Random queries in CEL through the engine, against brute force: splits, restarts, mergings, orders within a time."""

from __future__ import annotations

from random import Random

import pytest

from acep_approx import QueryError, QuerySet, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.step_code import NOTHING
from tests.cases import cases
from tests.cel_runs import disagreement
from tests.cel_worlds import world_of

WORLDS, PARTS = cases(3_000, 72), 6
"""The mutants of ``test_cel_results`` need 64 of them."""


@pytest.mark.parametrize("part", range(PARTS))
def test_random_queries_are_as_brute_force_says(part: int) -> None:
    for seed in range(part, WORLDS, PARTS):
        assert not disagreement(seed), seed


IBM = "SELECT Price AS p FROM FILTER{Name = 'IBM'}(Stock) PUBLISH Ibm"


def test_queries_in_cel_and_patterns_in_one_set() -> None:
    desk = QuerySet()
    desk.add(IBM, id="ibm")
    desk.add("PATTERN SEQ(Stock a, Stock b) WHERE b.Price > a.Price WITHIN 9", id="up")
    events = [{"ts": t, "type": "Stock", "Name": "IBM", "Price": price} for t, price in enumerate([3, 1, 2])]
    found = desk.match(events)
    assert found["ibm"].column("p").to_pylist() == [3, 1, 2]
    assert found["Ibm"].num_rows == 3
    assert found["up"].num_rows == 1


def test_example_4_of_the_paper() -> None:
    """IBM above 83, and the next quote of Microsoft."""
    query = compile_query("""
        SELECT IBMPrice, Price AS MSFTPrice
        FROM (SELECT Price AS IBMPrice FROM FILTER{Name = 'IBM' AND Price > 83}(Stock)) NEXT{Name = 'MSFT'} Stock
    """)
    quotes = [("IBM", 90), ("IBM", 80), ("DELL", 99), ("IBM", 85), ("MSFT", 25), ("MSFT", 26)]
    events = [{"ts": t, "type": "Stock", "Name": name, "Price": price} for t, (name, price) in enumerate(quotes)]
    found = query.match(events).to_arrow().to_pylist()
    assert [(row["IBMPrice"], row["MSFTPrice"], row["start"], row["end"], row["times"]) for row in found] == [
        (90, 25, 0, 4, 1),
        (85, 25, 3, 4, 1),
    ]


def test_what_one_automaton_cannot_do_is_refused_outside_a_set() -> None:
    with pytest.raises(QueryError, match=r"a stream of its own(.|\n)*QuerySet"):
        compile_query("SELECT * FROM A NEXT{$1.x = $2.y} (SELECT x AS y FROM A NEXT{$1.x = $2.x} B)").match([])


BOUNDS = (
    "SELECT x_1 AS low, x AS high FROM A NEXT{{$2.x > {f} * $1.x}} A",
    "SELECT x_1 AS low, y AS high FROM FILTER{{y < 3}}(A) NEXT{{$1.x * {f} - 1.5 >= $2.x AND $2.g = $1.g}} B",
    "SELECT low, y FROM (SELECT x_1 + x AS low FROM A NEXT{{}} B) NEXT{{$2.y < $1.low / {f} AND $1.low * 0.5 < x}} A",
    "SELECT x_1 AS a, x AS b FROM (SELECT * FROM A) NEXT{{{f} * $1.x <= $2.x AND $2.x < $1.y * 1.5}} A WITHIN 4",
)


@pytest.mark.parametrize("text", BOUNDS)
def test_bounds_that_are_computed_when_a_run_comes_are_as_brute_force_says(text: str) -> None:
    for seed in range(cases(100)):
        factor = Random(seed).choice(("1.5", "0.5", "1.05", "-1.0"))
        world = world_of(text.format(f=factor), seed, intervals=seed % 2 == 0)
        assert not disagreement(seed, world), seed


def test_runs_wait_for_bounds_that_are_computed() -> None:
    matcher = Matcher(compile_query(BOUNDS[0].format(f=1.5)).plan)
    matcher.push([{"ts": 1, "type": "A", "x": 1}])
    assert matcher.pipeline is not None
    assert isinstance(matcher.pipeline.engine, Runs)
    assert any(pool.waits_for != NOTHING for pool in matcher.pipeline.engine.tables.pools)
