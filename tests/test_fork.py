"""Runs of a key that are copied and put back: the same key, or in another engine, goes on as if nothing had been."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError
from acep_approx.matching.tick_places import TickPlaces
from tests.cases import cases
from tests.engine_driver import Driver

QUERIES = (
    "PATTERN SEQ(A a, B b, C c) WHERE [g] AND b.x > a.x AND c.x > b.x WITHIN 30",
    "PATTERN SEQ(A a, ~(B n), C c) WHERE [g] AND c.x > a.x WITHIN 30 ERRORS 1",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [g] AND a[i].x >= a[i-1].x } WITHIN 20",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity { [g] AND c.x > a.x } WITHIN 30",
    "PATTERN SEQ(A a, B b, C c) WHERE [g] AND b.x = a.x AND c.y = b.y WITHIN 12 events",
)


def stream(dice: Random, events: int) -> pa.Table:
    """Random events of three types and three keys."""
    rows = [
        {"ts": i, "type": dice.choice("ABC"), "x": dice.randrange(9), "y": dice.randrange(3), "g": dice.choice("uvw")}
        for i in range(events)
    ]
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("lists", [True, False])
def test_a_key_goes_on_from_its_copy(query: str, lists: bool) -> None:
    """Whatever its key has seen since, and whatever links were dropped, a copy that is put back is what it was."""
    dice = Random(query)
    for _ in range(cases(20)):
        events = stream(dice, 150)
        driver = Driver(compile_query(query, engine="runs"), events, lists=lists)
        mine, other = driver.of_slot(0), driver.of_slot(1)
        half, third = len(mine) // 2, len(other) // 2
        first = driver.run(mine[:half])
        copy = driver.engine.fork(0)
        expected = driver.run(mine[half:])
        driver.run(other[:third])
        driver.engine.arrays(np.full(driver.engine.slots, 2**60, np.int64))  # drops all links that nothing holds
        driver.run(dice.sample(range(len(driver.grouped.slot)), 5))
        driver.engine.put(0, copy)
        assert driver.run(mine[half:]) == expected
        other_engine = Driver(compile_query(query, engine="runs"), events, lists=lists)
        assert other_engine.run(mine[:half]) == first
        assert other_engine.run(mine[half:]) == expected


@pytest.mark.parametrize("query", QUERIES)
def test_a_copy_moves_to_another_engine(query: str) -> None:
    """With the links that its runs lead to, it goes on in any engine of the same query, beside what that one has."""
    dice = Random(query)
    for _ in range(cases(20)):
        driver = Driver(compile_query(query, engine="runs"), stream(dice, 150))
        mine, other = driver.of_slot(0), driver.of_slot(1)
        half = len(mine) // 2
        driver.run(mine[:half])
        copy = driver.engine.fork(0, for_another=True)
        expected = driver.run(mine[half:])
        driver.another()
        driver.run(other[: len(other) // 2])
        driver.engine.put(0, copy)
        assert driver.run(mine[half:]) == expected


def test_what_does_not_fit_is_refused() -> None:
    """Words, links and guards of a copy are looked at before they are used."""
    driver = Driver(compile_query(QUERIES[1], engine="runs"), stream(Random(1), 150))
    mine = driver.of_slot(0)
    driver.run(mine[:20])
    copy = driver.engine.fork(0)
    assert copy.words.size > 0
    driver.engine.put(0, copy)
    for at in range(copy.words.size):
        words = copy.words.copy()
        words[at] = 2**40
        changed = replace(copy, words=words)
        try:
            driver.engine.put(0, changed)
        except DataError as error:
            assert error.code == "ACEP-D047"
        else:  # a start or a register may be any number
            driver.run(mine[20:40])
        driver.engine.put(0, copy)
    for changed in (replace(copy, guards=copy.guards[:0]), replace(copy, words=copy.words[:-1])):
        with pytest.raises(DataError, match="another query") as caught:
            driver.engine.put(0, changed)
        assert caught.value.code == "ACEP-D047"


@pytest.mark.parametrize("query", QUERIES[:4])
@pytest.mark.parametrize("lists", [True, False])
def test_a_copy_from_within_a_time(query: str, lists: bool) -> None:
    """With SIMULTANEOUS: children that wait for the end of their time, and runs that leave then, are copied as such."""
    dice, within = Random(query), 0
    text = query[: query.index("WITHIN")] + "WITHIN 10 SIMULTANEOUS" + " ERRORS 1" * ("ERRORS" in query)
    for _ in range(cases(20)):
        events = stream(dice, 150)
        events = events.set_column(0, "ts", pa.array([tick // 7 for tick in events["ts"].to_pylist()]))
        driver = Driver(compile_query(text), events, lists=lists)
        order, grouped = np.argsort(driver.grouped.row), driver.grouped
        place = np.empty(len(order), np.int64)
        place[order] = TickPlaces(by_partition=True).of(grouped.slot[order], grouped.tick[order])
        driver.grouped = replace(grouped, place=place)
        mine, other = driver.of_slot(0), driver.of_slot(1)
        half = len(mine) // 2
        within += grouped.tick[mine[half - 1]] == grouped.tick[mine[half]]
        driver.run(mine[:half])
        copy = driver.engine.fork(0)
        expected = driver.run(mine[half:])
        driver.run(other[: len(other) // 3])
        driver.engine.put(0, copy)
        assert driver.run(mine[half:]) == expected
    assert within
