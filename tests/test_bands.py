"""Band joins in a search: what lies near is found through bins, whatever the numbers, and nothing is left out."""

from __future__ import annotations

from itertools import permutations
from math import inf
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.engines.search.bands import bands, differences
from acep_approx.engines.search.searches import Searches
from tests.cases import cases, examples
from tests.naive import expected_matches, match_points
from tests.searched import backward, forward, made_tests

NEAR = {
    "abs(b.x - a.x) < 5": {1: (5.0, 5.0)},
    "5 >= abs(a.x - b.x)": {1: (5.0, 5.0)},
    "2 * abs(b.x - a.x) <= 5": {1: (2.5, 2.5)},
    "abs(-(b.x - a.x)) <= 5": {1: (5.0, 5.0)},
    "b.x - a.x BETWEEN -1 AND 4": {1: (1.0, 4.0)},
    "b.x > a.x AND b.x < a.x + 4": {1: (0.0, 4.0)},
    "b.x - 1 > a.x + 1 AND 3 + a.x > b.x": {1: (0.0, 1.0)},
    "b.x BETWEEN a.x - 1 AND a.x + 2": {1: (0.0, 3.0)},
    "(b.x - a.x) * (b.x - a.x) + abs(b.y - a.y) < 9": {1: (3.0, 3.0)},
    "abs(b.x - a.x) < 5 AND abs(c.x - b.x) < 2": {1: (5.0, 5.0), 2: (2.0, 2.0)},
    "abs(c.x - a.x) < 5 AND abs(c.x - b.x) < 2": {1: (7.0, 7.0), 2: (2.0, 2.0)},
    "abs(b.x - a.x) = 5": {1: (5.0, 5.0)},
    "abs(b.x - a.x) > 5": {},
    "b.x > a.x AND c.x > b.x": {},
    "b.x = a.x": {},
    "abs(b.x + a.x) < 5": {},
    "abs(b.x - a.x) < c.x": {},
    "abs(b.x - a.x) - abs(b.y - a.y) < 5": {},
    "abs(b.x - a.x) < 5 OR b.y > a.y": {},
    "NOT b.x BETWEEN a.x - 1 AND a.x + 2": {},
    "coalesce(abs(b.x - a.x), 0) < 5": {},
    "abs(b.x - a.x) < -1": {},
    "abs(b.s - a.s) < 5": {},
}
"""By condition what each position is near to, by the first value of its event, if the positions are bound in order."""


@pytest.mark.parametrize("condition", NEAR)
def test_what_conditions_say_of_differences(condition: str) -> None:
    """As they are written, and taken together; ``s`` is no number."""
    (path,) = compile_query(f"PATTERN SEQ(A a, B b, C c) WHERE {condition} WITHIN 9", engine="runs").plan.paths
    known = differences(path, lambda at: "text" if "name='s'" in repr(at.value) else "float")
    found = {position: some[0] for position, some in bands(known, (0, 1, 2)).items() if some}
    assert {position: (one.below, one.above) for position, one in found.items()} == NEAR[condition]


CONDITIONS = (
    "abs(b.x - a.x) <= 1 AND c.x BETWEEN b.x - 0.5 AND b.x + 1",
    "abs(b.x - a.x) < 2 AND abs(b.y - a.y) < 1 AND abs(c.x - a.x) <= 1",
    "(b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y) <= 2 AND c.y > b.y AND c.y <= b.y + 2",
    "b.x = a.x AND abs(c.y - b.y) < 1.5 AND abs(c.x - a.y) < 3",
    "b.x > a.x - 2 AND b.x <= a.x + 2 AND b.y < a.y AND c.y < b.y",
)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("ends", ["WITHIN 9", "WITHIN 6 events", "WITHIN 12 ERRORS 1"])
@pytest.mark.parametrize("key", ["", "[g] AND "])
def test_points_are_those_of_runs_and_of_brute_force(condition: str, ends: str, key: str) -> None:
    """Whole numbers and others, below 0, missing; in every order of joins."""
    text, dice = f"PATTERN SEQ(A a, B b, A c) WHERE {key}{condition} {ends}", Random(ends)
    query = compile_query(text, engine="runs")
    for _ in range(cases(40, 4)):
        rows = [
            {"ts": dice.randrange(40), "type": dice.choice("AAB"), "g": dice.choice("pq"),
             "x": dice.choice([None, *range(-3, 4)]), "y": dice.choice([None, -1.5, -0.5, 0.0, -0.0, 0.75, 1.25])}
            for _ in range(30)
        ]  # fmt: skip
        rows.sort(key=lambda row: float(str(row["ts"])))
        table = pa.Table.from_pylist(rows)
        expected = forward(query, table)
        errors = dict(zip(expected["row"].to_pylist(), expected["errors"].to_pylist(), strict=True))
        assert errors == match_points(expected_matches(query.plan.query, rows))
        known = query.plan.paths
        for order in permutations(range(2)):
            orders = tuple(order if len(path) == 3 else tuple(range(len(path) - 1)) for path in known)
            assert backward(query, table, Searches(known, orders), dice).equals(expected), (order, rows)


NUMBERS = st.floats(width=64, allow_nan=False) | st.integers(-40, 40).map(lambda tenths: tenths / 10)


@examples(1200)
@given(st.lists(st.tuples(st.booleans(), NUMBERS), min_size=2, max_size=40), st.sampled_from([0.1, 0.3, 1.0, 7.0, 1e9]))
def test_any_numbers_that_floats_hold(values: list[tuple[bool, float]], width: float) -> None:
    """Rounding leaves nothing out: what numpy says is near is found."""
    query = compile_query(f"PATTERN SEQ(A a, B b) WHERE abs(b.x - a.x) <= {width!r} WITHIN 1000", engine="runs")
    types = ["A" if is_first else "B" for is_first, _ in values]
    table = pa.table({"ts": range(len(values)), "type": types, "x": [value for _, value in values]})
    found = backward(query, table, Searches(query.plan.paths, ((0,),)))["row"].to_pylist()
    x = table["x"].to_numpy()
    with np.errstate(invalid="ignore"):
        near = np.abs(x[:, None] - x[None, :]) <= width
    is_first = np.array(types) == "A"
    assert found == [row for row in range(len(x)) if not is_first[row] and near[row, :row][is_first[:row]].any()]


@examples(1200)
@given(st.lists(st.tuples(st.booleans(), st.integers(2**53 - 4, 2**53 + 12)), min_size=2, max_size=30))
def test_whole_numbers_that_floats_do_not_hold(values: list[tuple[bool, int]]) -> None:
    """They are compared as they are, though their bins are not."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE abs(b.x - a.x) <= 1 WITHIN 1000", engine="runs")
    types = ["A" if is_first else "B" for is_first, _ in values]
    table = pa.table({"ts": range(len(values)), "type": types, "x": [value for _, value in values]})
    assert backward(query, table, Searches(query.plan.paths, ((0,),))).equals(forward(query, table))


def test_numbers_without_bounds() -> None:
    """They are near nothing, not even themselves: their difference is no number."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE abs(b.x - a.x) <= 1 WITHIN 1000", engine="runs")
    table = pa.table({"ts": range(5), "type": ["A", "A", "A", "B", "B"], "x": [inf, 1.0, -inf, inf, 1.5]})
    found = backward(query, table, Searches(query.plan.paths, ((0,),)))
    assert found["row"].to_pylist() == [4]
    assert found.equals(forward(query, table))


def test_a_band_saves_tests() -> None:
    """Hardly any event of the window is tested but those that lie in both bands."""
    dice, events = np.random.default_rng(3), 1000
    columns = {"x": dice.uniform(0, 100, events), "y": dice.uniform(0, 100, events)}
    table = pa.table({"ts": np.arange(events), "type": dice.choice(["A", "B"], events), **columns})
    tests, near, given = [], "{0} < 1 AND {1} < 1", ("abs(b.x - a.x)", "abs(b.y - a.y)")
    for condition in (near, near.replace("{0}", "coalesce({0}, 9)").replace("{1}", "coalesce({1}, 9)")):
        query = compile_query(f"PATTERN SEQ(A a, B b) WHERE {condition.format(*given)} WITHIN 500", engine="runs")
        tests.append(made_tests(query, table, Searches(query.plan.paths, ((0,),))))
    assert tests[0] < tests[1] / 50
