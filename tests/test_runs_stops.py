"""The runs engine can stop before any run-step and go on: nothing differs from one go, and no bound is passed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs import runs as runs_module
from acep_approx.engines.runs.runs import Runs
from acep_approx.kernels.runs.layout import DONE_STEPS
from tests.archives import arrays_of
from tests.cases import examples
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import MERGES, compiled
from tests.smaller_worlds import holds_for

Stop = Callable[[Runs], float | None]
"""Sets the limit of an engine before it goes on; gives the deadline, or None."""


class Stops:
    """An engine's ``advance`` that is stopped by ``stop`` again and again; it counts how often."""

    def __init__(self, engine: Runs, stop: Stop) -> None:
        self.engine = engine
        self.stop = stop
        self.stopped = 0
        self._advance = engine.advance

    def __call__(self, events: RunEvents, floors: Any) -> bool:
        """One go, up to the next stop."""
        deadline = self.stop(self.engine)
        is_done = self._advance(events, floors, deadline)
        steps, limit = int(self.engine.control[DONE_STEPS]), self.engine.limit
        assert limit < 0 or steps <= limit
        assert is_done or limit == steps or deadline is not None
        self.stopped += not is_done
        return is_done


def at_random_steps(dice: Random, most: int) -> Stop:
    """The limit goes up by a random number of run-steps, which may be none."""

    def stop(engine: Runs) -> None:
        engine.limit = int(engine.control[DONE_STEPS]) + dice.choice((0, 1, 1, 2, 3, dice.randint(0, most)))

    return stop


def by_the_clock(engine: Runs) -> float:
    """The deadline has always passed."""
    engine.limit = -1
    return 0.0


def by_both(dice: Random, most: int) -> Stop:
    """A deadline that has passed or is far away, and a limit, which may be absent before a deadline that has passed."""

    def stop(engine: Runs) -> float | None:
        deadline = dice.choice((0.0, float("inf")))
        is_limited = deadline or dice.randrange(2)
        engine.limit = int(engine.control[DONE_STEPS]) + dice.randint(1, most) if is_limited else -1
        return deadline

    return stop


def all_of(
    query: Query, batches: list[pa.Table], options: dict[str, Any], stop: Stop | None, saves: list[bool]
) -> tuple[list[str], dict[str, int], dict[str, int], int]:
    """What comes of some batches: rows, numbers counted, sizes of the state, and how often the engine stopped."""
    matcher: Matcher = query.matcher(**options)
    pipeline = matcher.bind(batches[0].schema)
    stops = stopping(matcher, stop)
    tables = [pipeline.nothing()]
    for batch, save in zip(batches, saves, strict=True):
        tables.append(matcher.push(batch))
        if save:
            matcher = query.from_state(matcher.state_bytes())
            stops.append(*stopping(matcher, stop))
    arrays = arrays_of(matcher.state_bytes())
    state = {name: len(array) for name, array in arrays.items()}
    tables.append(matcher.finish())
    rows = sorted(map(repr, pa.concat_tables(tables).to_pylist()))
    return rows, vars(matcher.progress), state, sum(one.stopped for one in stops)


def assert_near(counted: dict[str, int], numbers: dict[str, int]) -> None:
    """A stop may change the order of the runs in a pool, and with it how soon runs outside the window are let go."""
    for name, number in numbers.items():
        assert abs(counted[name] - number) <= max(2, number // 100), name


def stopping(matcher: Matcher, stop: Stop | None) -> list[Stops]:
    """Let a matcher's engine be stopped; nothing is done where ``stop`` is None."""
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    stops = Stops(engine, stop or (lambda _: None))
    engine.advance = stops  # type: ignore[assignment, method-assign]
    return [stops]


def split(table: pa.Table, dice: Random, most: int) -> list[pa.Table]:
    """A table in up to ``most`` batches, some of them empty."""
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(most)))
    return [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]


@examples(150, shrink=False)
@given(rich_worlds(), st.sampled_from(MERGES), st.randoms(use_true_random=True))
def test_stops_change_nothing(world: RichWorld, merge: str, random: Random) -> None:
    """Results, numbers and the size of the state are those of one go over the same batches."""
    seed = random.random()

    def check(world: RichWorld) -> None:
        query, dice = compiled(world), Random(seed)
        if query is None or not world.rows:
            return
        options = {"output": dice.choice(("matches", "points", "counts")), "merge": merge}
        batches = split(world.table(), dice, 4)
        saves = [dice.randrange(2) == 0 for _ in batches]
        table, numbers, state, _ = all_of(query, batches, options, None, saves)
        for stop in (at_random_steps(dice, 9), by_both(dice, 9)):
            again, counted, left, _ = all_of(query, batches, options, stop, saves)
            assert again == table
            assert_near(counted, numbers)
            assert_near(left, state)

    holds_for(world, check)


LARGE = [
    "PATTERN SEQ(A+ a[], B b) WHERE b.x > a[i].x AND a[i].x >= a[i-1].x WITHIN 9",
    "PATTERN SEQ(A a, B+ b[], A c) WHERE [g] AND b[i].x = a.x AND c.y > sum(b[].y) WITHIN 40 ERRORS 1",
    "PATTERN SEQ(A a, ~(B n), A b, B c) WHERE skip_till_next_match { [g] AND n.x<a.x AND b.x>a.x } WITHIN 50 events",
    "PATTERN SEQ(A+ a[], B b) WHERE partition_contiguity { [g] AND a[i].y > a[i-1].y AND b.y < avg(a[].y) } WITHIN 30",
    "PATTERN SEQ(A+ a[], B+ b[]) WHERE skip_till_next_match { [g] AND a[i].x > a[i-1].x } WITHIN 90 ERRORS 1",
    "a(b|c)dc DEFINE a AS x > 2, b AS x < 2, c AS type = 'B', d AS y > 0.5 WITHIN 9 ERRORS 1",
]


def large(rows: int, seed: int) -> pa.Table:
    """A longer stream with three keys, in which pools, links, hits and the store must grow."""
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(dice.integers(0, 3, rows)),
            "type": pa.array(np.where(dice.random(rows) < 0.7, "A", "B")),
            "x": dice.integers(0, 5, rows),
            "y": dice.random(rows),
            "g": pa.array(np.array(["p", "q", "r"])[dice.integers(0, 3, rows)]),
        }
    )


@pytest.mark.parametrize("text", LARGE)
@pytest.mark.parametrize("merge", ["none", "equal,pareto,chain"])
@pytest.mark.parametrize("output", ["matches", "points"])
def test_stops_while_everything_grows(text: str, merge: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop within a block, between growing arrays: the same tables and numbers."""
    monkeypatch.setattr(runs_module, "SLICE", 7)
    query = compile_query(text, engine="runs")
    dice = Random(text + merge)
    batches = split(large(400, len(text)), dice, 4)
    saves = [dice.randrange(2) == 0 for _ in batches]
    options = {"output": output, "merge": merge}
    table, numbers, _, never = all_of(query, batches, options, None, saves)
    assert never == 0
    assert numbers["steps"] > 400
    for stop in (at_random_steps(dice, numbers["steps"] // 30), by_the_clock, by_both(dice, 40)):
        again, counted, _, stopped = all_of(query, batches, options, stop, saves)
        assert stopped > 5
        assert again == table
        assert_near(counted, numbers)


def test_a_limit_of_nothing_lets_nothing_through() -> None:
    """With limit 0 events that only begin runs pass; the first run-step does not."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9", engine="runs")
    matcher = query.matcher()
    table = pa.table({"ts": [0, 1, 2], "type": ["A", "A", "B"], "x": [1, 2, 3]})
    engine = matcher.bind(table.schema).engine
    assert isinstance(engine, Runs)
    seen: list[tuple[int, int]] = []

    def stop(engine: Runs) -> None:
        engine.limit = len(seen)
        seen.append((int(engine.control[DONE_STEPS]), engine.work()[1]))

    engine.advance = Stops(engine, stop)  # type: ignore[assignment, method-assign]
    assert matcher.push(table).num_rows == 2
    assert seen == [(0, 0), (0, 2), (1, 3)]
