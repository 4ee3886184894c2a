"""Bounds tell which waiting runs an event cannot take: nothing differs but the work."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.engines.runs.runs import Runs
from acep_approx.kernels.runs import pools as kp
from tests.cases import cases
from tests.plain_python import plainly
from tests.waiting_worlds import MUTANTS, OFF, ON

STREAM, WORLDS = 4000, cases(2000, 100)


def test_bounds_change_nothing_but_the_work() -> None:
    """Rows and counters on random worlds: all comparisons, NULL, NaN, numbers beyond 2^53, ties, restarts."""
    assert plainly("tests.waiting_worlds", "differing", WORLDS) == -1


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name: str) -> None:
    assert plainly("tests.waiting_worlds", "differing_mutant", name, WORLDS) >= 0


def rises(count: int, seed: int) -> pa.Table:
    """A walk that falls slowly, so that most runs wait, with a jump upwards now and then."""
    dice, price, rows = Random(seed), 1e6, []
    for i in range(count):
        price += dice.uniform(-2, 1) + (dice.uniform(0, 400) if dice.random() < 0.002 else 0)
        rows.append({"ts": i // 2, "type": "S", "price": None if dice.random() < 0.01 else price})
    return pa.Table.from_pylist(rows)


def pushed(text: str, events: pa.Table, merge: str, every: int, is_restarted: bool) -> tuple[list[Any], dict[str, int]]:
    """Rows and counters; with restarts from a saved state."""
    query = compile_query(text)
    matcher, rows = query.matcher(merge=merge), []
    for first in range(0, events.num_rows, every):
        rows += matcher.push(events.slice(first, every)).to_pylist()
        if is_restarted:
            matcher = query.from_state(matcher.state_bytes())
    return rows + matcher.finish().to_pylist(), vars(matcher.progress)


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("ticks", ["", " SIMULTANEOUS"])
@pytest.mark.parametrize("window", [600, 100_000])
def test_pools_of_thousands(window: int, ticks: str, is_restarted: bool) -> None:
    """As without bounds, with a twentieth of the run-steps; and as by a loop written by hand."""
    events = rises(STREAM, window)
    text = f"PATTERN SEQ(S a, S b) WHERE skip_till_next_match(a, b) {{ b.price > 1.00005 * a.price }} WITHIN {window}"
    rows, work = pushed(text + ticks, events, ON, 1237, is_restarted)
    others, plain = pushed(text + ticks, events, OFF, 1237, is_restarted)
    assert rows == others
    assert work.pop("steps") < plain.pop("steps") / 20
    assert work == plain
    assert work["peak"] > 500
    assert sorted((row["a"], row["b"]) for row in rows) == by_hand(events, window, bool(ticks))


def by_hand(events: pa.Table, window: int, is_simultaneous: bool) -> list[tuple[int, int]]:
    """Each event with the next one beyond its threshold; with ``SIMULTANEOUS`` all of that time."""
    prices, ts, found = events["price"].to_pylist(), events["ts"].to_pylist(), []
    for i, price in enumerate(prices):
        last = None
        for j in range(i + 1, len(prices) if price is not None else 0):
            if ts[j] - ts[i] > window or (last is not None and ts[j] > last):
                break
            is_later = ts[j] > ts[i] or not is_simultaneous
            if is_later and prices[j] is not None and prices[j] > 1.00005 * price:
                found.append((i, j))
                last = ts[j] if is_simultaneous else -1
    return sorted(found)


def test_a_query_that_cannot_use_bounds_has_none() -> None:
    """Only where an event takes runs away, and looks at a plain threshold."""
    for where, has_bounds in (
        ("skip_till_next_match { b.x > a.x }", True),
        ("skip_till_any_match { b.x > a.x }", False),
        ("skip_till_next_match { b.x = a.x }", False),
        ("skip_till_next_match { b.x * a.x > 2 }", False),
        ("partition_contiguity { b.x > a.x }", False),
    ):
        matcher = compile_query(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 9").matcher()
        matcher.push(pa.table({"ts": [1], "type": ["A"], "x": [1]}))
        engine = matcher.pipeline.engine
        assert isinstance(engine, Runs)
        assert (engine.arena.rows[:, kp.WAITS_FOR] >= 0).any() == has_bounds, where


def test_a_pool_that_gets_many_runs_per_event_is_swept() -> None:
    """One event in a hundred brings fifty runs on: what left must not stay until an eighth of the pool has come."""
    dice, rows = np.random.default_rng(1), 60_000
    types = dice.choice(["X", "Y", "Z"], rows, p=[0.97, 0.02, 0.01])
    data = pa.table({"ts": np.arange(rows), "type": types, "v": dice.random(rows), "h": 2 + dice.random(rows)})
    text = "PATTERN SEQ(X a, Y b, Z c) WHERE skip_till_next_match(a, b, c) { c.v > a.h } WITHIN 2000"
    matcher = compile_query(text).matcher(output="points")
    matcher.push(data)
    assert matcher.pipeline is not None
    assert isinstance(matcher.pipeline.engine, Runs)
    assert int(matcher.pipeline.engine.arena.rows[:, kp.RUNS].max()) < 4_000  # about 2,000 live
