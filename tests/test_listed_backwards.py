"""Matches that are listed backwards are those of the exact run, row by row: in any order, split, restarted, turning."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import Matcher, Query, compile_query
from acep_approx.engines.search import exact_ways
from acep_approx.engines.search.exact_ways import ExactSearch
from acep_approx.matching import choice
from tests.cases import cases
from tests.numbered_worlds import numbered_world, numbers
from tests.rich_worlds import RichWorld
from tests.searched import CONDITIONS, LONG, PATTERNS, QUERY, forward_listed, listed, stream
from tests.smaller_worlds import holds_for


class Turning(ExactSearch):
    """Searches from the first event on, or changes over at random. The orders of joins are drawn at the beginning."""

    dice = Random(0)
    turns = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.doing = exact_ways.SEARCHES
        others = [range(len(path) - 1) for path in self.searches.paths]
        self._search_by(tuple(tuple(self.dice.sample(some, len(some))) for some in others))

    most_events = 50

    def _look(self, tick: int) -> None:
        if not self.turns or tick <= self._until:
            return
        if self.doing in (exact_ways.SEARCHES, exact_ways.FOLLOWS):
            following = {exact_ways.SEARCHES: exact_ways.LEAVES, exact_ways.FOLLOWS: exact_ways.GETS_READY}
            if self.dice.random() < 0.3:
                self._do(following[self.doing], tick + self.window)
        else:
            self._do(exact_ways.FOLLOWS if self.doing == exact_ways.LEAVES else exact_ways.SEARCHES)


@pytest.fixture(autouse=True)
def _turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "ExactSearch", Turning)
    monkeypatch.setattr(Turning, "turns", False)


def backward(query: Query, table: pa.Table, dice: Random, *, splits: bool = True) -> pa.Table:
    """In any split, and restarted."""
    Turning.dice = dice
    matcher, parts, first = Matcher(query.plan), [], 0
    while first < len(table) or not parts:
        size = dice.randint(1, max(len(table) // 8, 2)) if splits else len(table)
        parts.append(matcher.push(table.slice(first, size)))
        assert matcher.pipeline is not None
        assert isinstance(matcher.pipeline.engine, Turning)
        first += size
        if splits and dice.random() < 0.3:
            matcher = Matcher.from_state(query.plan, matcher.state_bytes())
    return pa.concat_tables([*parts, matcher.finish()])


def test_any_world_that_can_be_listed_backwards() -> None:
    """Worlds over the whole language; about one in twenty can."""
    some = 0

    def agrees(world: RichWorld, number: int) -> None:
        query = listed(world.text)
        if query is not None and not query.plan.is_count_window:
            found = backward(query, world.table(), Random(number))
            assert found.equals(forward_listed(query, world.table())), (world.text, world.rows)

    for number in numbers(cases(12_000, 800)):
        world = numbered_world(number)
        if listed(world.text) is not None:
            some += 1
            holds_for(world, lambda world, number=number: agrees(world, number))
    assert some > 20


@pytest.mark.parametrize("pattern", [one for one in PATTERNS if "+" not in one])
def test_exhaustively(pattern: str) -> None:
    """All short streams of two kinds of events with two values, each as a key of one input."""
    letters = [("A", 1), ("A", 2), ("B", 1), ("B", 2)]
    streams = [one for many in range(1, 5) for one in product(letters, repeat=many)]
    table = pa.Table.from_pylist([
        {"ts": ts, "g": str(number), "type": kind, "x": x}
        for ts in range(4) for number, one in enumerate(streams) if ts < len(one) for kind, x in [one[ts]]
    ])  # fmt: skip
    compared = 0
    for condition, window, errors in product(("", *CONDITIONS), ("2", "9"), (0, 1)):
        where = " AND ".join(part for part in ("[g]", condition) if part)
        query = listed(f"PATTERN {pattern} WHERE {where} WITHIN {window} ERRORS {errors}")
        if query is not None:
            expected = forward_listed(query, table)
            for seed in range(2):
                assert backward(query, table, Random(seed), splits=False).equals(expected), str(query)
            compared += 1
    assert compared > 3


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("text", [QUERY, *(one for one in LONG if "events" not in one)])
def test_long_streams(text: str, turns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits and links grow while an end is searched, events leave the window, and the run turns around many times."""
    monkeypatch.setattr(Turning, "turns", turns)
    query, dice = compile_query(text, engine="runs"), Random(5)
    if text == QUERY:
        table = stream(4000, 3)
    else:
        kinds = {"type": "ABC", "s": ("p", "q", None), "x": (*range(9), None), "y": (0.5, 3.25, None, -2.0)}
        rows = [{"ts": ts // 3, **{name: dice.choice(some) for name, some in kinds.items()}} for ts in range(4000)]
        table = pa.Table.from_pylist(rows)
    expected = forward_listed(query, table)
    assert len(expected) > 1000
    for seed in range(2):
        assert backward(query, table, Random(seed)).equals(expected)


def test_lists_change_over_where_it_takes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves: few matches among many partial ones."""
    monkeypatch.setattr(choice, "ExactSearch", ExactSearch)
    monkeypatch.setattr(exact_ways, "LEAST_STEPS", 2.0)
    monkeypatch.setattr(exact_ways, "TRIED_EVENTS", 256)
    dice = Random(8)
    rows = [{"ts": ts, "type": dice.choice("AB"), "x": dice.randrange(1000)} for ts in range(8000)]
    table = pa.Table.from_pylist(rows)
    query = compile_query("PATTERN SEQ(A a, B b, A c) WHERE b.x > a.x AND c.x > b.x + 990 WITHIN 200", engine="runs")
    matcher = Matcher(query.plan)
    assert matcher.push(table).equals(forward_listed(query, table))
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, ExactSearch)
    assert engine.doing == exact_ways.SEARCHES
