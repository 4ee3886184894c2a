"""Match points found backwards are those of the exact run and of brute force: in any order, split, restarted."""

from __future__ import annotations

import json
from itertools import permutations, product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, QueryError, compile_query
from acep_approx.automaton.paths import NoPathsError, paths
from acep_approx.engines.search.searches import Searches
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.search.end_search import ANY
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.training.searching import SearchCost
from tests.cases import cases
from tests.naive import expected_matches, match_points
from tests.numbered_worlds import numbered_world, numbers
from tests.one_reading import learned
from tests.rich_worlds import RichWorld
from tests.searched import (
    CONDITIONS,
    LONG,
    PATTERNS,
    SearchingLoad,
    backward,
    batches_of,
    forward,
    made_tests,
    some_orders,
)
from tests.smaller_worlds import holds_for


def agrees_backwards(world: RichWorld, seed: int) -> bool:
    """Both ways give the same points, errors and starts, and so does brute force; False: there is but one way."""
    try:
        query = compile_query(world.text, engine="runs")
    except QueryError:
        return False
    known = query.plan.paths
    if not known:
        return False
    dice, table = Random(seed), world.table()
    expected = forward(query, table)
    found = backward(query, table, some_orders(known, dice))
    assert found.equals(expected), (world.text, world.rows)
    assert errors_of(found) == match_points(world.expected())
    split = backward(query, table, some_orders(known, dice), dice)
    assert split.equals(expected), (world.text, world.rows)
    some = backward(query, table, some_orders(known, dice, ANY), dice)
    assert some.select(["errors", "row"]).equals(expected.select(["errors", "row"])), (world.text, world.rows)
    return True


def test_any_world_that_can_be_searched() -> None:
    """Worlds over the whole language; about one in twelve can be searched backwards."""
    searched = 0
    for number in numbers(cases(12_000, 1500)):
        world = numbered_world(number)
        if _can_be_searched(world):
            searched += 1
            holds_for(world, lambda world, seed=number: searched_or_not(world, seed))
    assert searched > 20


def errors_of(found: pa.Table) -> dict[int, int]:
    """The errors of match points, by their rows."""
    return dict(zip(found["row"].to_pylist(), found["errors"].to_pylist(), strict=True))


def searched_or_not(world: RichWorld, seed: int) -> None:
    """As ``agrees_backwards``, where it does not matter whether there is another way."""
    agrees_backwards(world, seed)


def _can_be_searched(world: RichWorld) -> bool:
    try:
        return bool(compile_query(world.text, engine="runs").plan.paths)
    except QueryError:
        return False


@pytest.mark.parametrize("pattern", PATTERNS)
def test_exhaustively(pattern: str) -> None:
    """All short streams of two kinds of events with two values, each as a key of one input, in every order of joins."""
    letters = [("A", 1), ("A", 2), ("B", 1), ("B", 2)]
    streams = [one for many in range(1, 5) for one in product(letters, repeat=many)]
    rows = [
        {"ts": ts, "g": str(number), "type": kind, "x": x}
        for ts in range(4) for number, one in enumerate(streams) if ts < len(one) for kind, x in [one[ts]]
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    for condition, window, errors in product(("", *CONDITIONS), ("2", "9", "3 events"), (0, 1)):
        where = " AND ".join(part for part in ("[g]", condition) if part)
        try:
            query = compile_query(f"PATTERN {pattern} WHERE {where} WITHIN {window} ERRORS {errors}", engine="runs")
        except QueryError:
            continue
        known = query.plan.paths
        if not known:
            continue
        expected = forward(query, table)
        if window == "9":
            truth = match_points(expected_matches(query.plan.query, rows))
            assert errors_of(expected) == truth
        for order in permutations(range(len(known[0]) - 1)):
            orders = tuple(order if len(path) == len(known[0]) else tuple(range(len(path) - 1)) for path in known)
            assert backward(query, table, Searches(known, orders)).equals(expected), (str(query), order)


WHY = {
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.x > a.x } WITHIN 5": "passed over",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity { b.x > a.x } WITHIN 5": "passed over",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE sum(b[].x) > a.x WITHIN 5": "several events",
    "PATTERN SEQ(A a, B{2,3} b[], C c) WITHIN 5": "more than one event",
    "PATTERN SEQ(A a, B b, ~(C n)) WHERE b.x > a.x WITHIN 5": "tested once more",
    "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 NON OVERLAP": "those before it",
}


@pytest.mark.parametrize("text", WHY)
def test_what_cannot_be_searched_is_told(text: str) -> None:
    """With the reason."""
    registers = compile_query(text, engine="runs").plan.registers
    assert registers is not None
    with pytest.raises(NoPathsError, match=WHY[text]):
        paths(registers)


def test_what_is_compared_with_rounding_implies_nothing() -> None:
    """Both whole numbers are equal to one with a fraction, as far as that can tell them apart; they differ."""
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.y AND b.y <= c.x AND a.x <= c.x WITHIN 20"
    query, large = compile_query(text, engine="runs"), 2**53
    columns = {"ts": [1, 2, 3], "type": ["A", "B", "C"], "x": [large + 1, 0, large], "y": [0.0, float(large), 0.0]}
    table = pa.table(columns)
    assert forward(query, table).num_rows == 0
    for order in permutations(range(2)):
        assert backward(query, table, Searches(query.plan.paths, (order,))).num_rows == 0, order


@pytest.mark.parametrize("text", LONG)
def test_long_streams(text: str) -> None:
    """Columns grow, windows expire, texts are forgotten; NULL equals nothing and passes no threshold."""
    dice = Random(7)
    rows = [
        {
            "ts": ts // 3, "type": dice.choice("ABC"), "s": dice.choice(("p", "q", "r", None)),
            "x": dice.choice((*range(9), None)), "y": dice.choice((0.5, -0.0, 0.0, 3.25, None, -2.0)),
        }
        for ts in range(cases(30_000, 5000))
    ]  # fmt: skip
    table, query = pa.Table.from_pylist(rows), compile_query(text, engine="runs")
    expected = forward(query, table)
    assert expected.num_rows > 100
    for _ in range(3):
        assert backward(query, table, some_orders(query.plan.paths, dice), dice).equals(expected)


def test_rows_may_begin_anew_with_each_batch() -> None:
    """As they do where another process runs each batch: what tells which event came first is that it was kept first."""
    text = "PATTERN SEQ(A a, B b, C c, A d) WHERE c.s = a.s AND d.x > b.x WITHIN 40"
    dice, query = Random(3), compile_query(text, engine="runs")
    kinds = {"type": "ABC", "s": "pqr", "x": range(9)}
    rows = [{"ts": ts, **{name: dice.choice(some) for name, some in kinds.items()}} for ts in range(600)]
    table = pa.Table.from_pylist(rows)
    expected, (batch,) = forward(query, table)["end"].to_pylist(), batches_of(query, table)[1]
    for orders in permutations(range(3)):
        load, found, first = SearchingLoad(Searches(query.plan.paths, (orders,))), [], 0
        matcher = Execution(query.plan, output=BARE, shedding=load)
        matcher.bind(table.schema)
        while first < len(batch):
            piece = batch.slice(first, dice.randint(1, 90))
            for part in matcher.run(EventBatch(0, piece.ticks, piece.data)):
                found += part["end"].to_pylist()
            first += len(piece)
        assert found == expected


def test_what_is_not_to_blame_is_left_out() -> None:
    """No ``a`` fits the end: that is found out once, and not for each ``b`` and ``c``."""
    rows = [{"ts": ts, "type": kind, "x": 1, "y": 1} for ts, kind in enumerate("A" * 40 + "B" * 40 + "C" * 40 + "D")]
    for condition in ("a.x > d.x", "b.x != a.x AND d.x = b.x AND c.y = d.y"):
        query = compile_query(f"PATTERN SEQ(A a, B b, C c, D d) WHERE {condition} WITHIN 200", engine="runs")
        table = pa.Table.from_pylist(rows)
        assert forward(query, table).num_rows == 0
        assert made_tests(query, table, Searches(query.plan.paths, ((2, 1, 0),))) <= 42


@pytest.mark.parametrize("text", LONG[:3])
@pytest.mark.parametrize("rate", [0.2, 2.0, 30.0])
def test_inside_a_budget(text: str, rate: float) -> None:
    """What is found is true, no more tests are made than were granted, and more is found for more."""
    dice = Random(11)
    rows = [
        {"ts": ts // 3, "type": dice.choice("ABC"), "s": dice.choice("pqr"), "x": dice.randrange(9),
         "y": dice.choice((0.5, 3.25, -2.0))} for ts in range(4000)
    ]  # fmt: skip
    table, query = pa.Table.from_pylist(rows), compile_query(text, engine="runs")
    exact = set(forward(query, table)["row"].to_pylist())
    found = []
    for most in (rate, 50 * rate):
        load = SearchingLoad(some_orders(query.plan.paths, Random(1), ANY), rate=most)
        matcher = Execution(query.plan, output=BARE, shedding=load)
        matcher.bind(table.schema)
        rows_found = []
        for batch in batches_of(query, table)[1]:
            for part in matcher.run(batch):
                rows_found += part["row"].to_pylist()
        assert set(rows_found) <= exact
        assert matcher.progress.steps <= load.arena.granted
        assert load.arena.untested > 0 or len(rows_found) == len(exact)
        found.append(len(rows_found))
    assert found[0] <= found[1]


def test_what_was_learned_is_kept_with_the_history(tmp_path) -> None:
    """Orders, what they take, and the trees; what cannot be that is refused."""
    dice, query = Random(5), compile_query("PATTERN SEQ(A a, B b, A c) WHERE b.x > a.x AND c.y = a.y WITHIN 60")
    kinds = {"type": "AB", "x": range(9), "y": range(99)}
    rows = [{"ts": ts, **{name: dice.choice(some) for name, some in kinds.items()}} for ts in range(12_000)]
    known = learned(HistoryGraph(query), rows)
    assert known.search_ is not None
    assert known.search_.trees is not None
    known.save(tmp_path / "known")
    assert HistoryGraph.load(tmp_path / "known", query).search_ == known.search_
    good = json.loads(json.dumps(known.search_.as_json()))
    assert SearchCost.from_json(good, query.plan.paths) == known.search_
    wrong: list[dict[str, Any]] = [
        {"orders": [[0, 0]]}, {"orders": []}, {"ladder": []}, {"whole": -1.0}, {"ladder": [[4, -1.0, 0.5, 0.0]]},
        {"ladder": [[4.5, 1.0, 0.5, 0.0]]}, {"trees": good["trees"] | {"inputs": ["tick", "nobody"]}}, {"whole": None},
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises((ValueError, TypeError, LookupError)):
            SearchCost.from_json(good | change, query.plan.paths)
