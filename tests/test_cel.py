"""Random queries in CEL through the engine, against brute force: splits, restarts, mergings, orders within a time."""

from __future__ import annotations

import pytest

from acep_approx import QueryError, compile_query
from tests.cases import cases
from tests.cel_runs import disagreement

PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_random_queries_are_as_brute_force_says(part: int) -> None:
    for seed in range(part, cases(3_000), PARTS):
        assert not disagreement(seed), seed


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


def test_what_one_automaton_cannot_do_names_the_set() -> None:
    with pytest.raises(QueryError, match="QuerySet"):
        compile_query("SELECT * FROM A NEXT{$1.x = $2.y} (SELECT x AS y FROM A NEXT{$1.x = $2.x} B)").match([])
