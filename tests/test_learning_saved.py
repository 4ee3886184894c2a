"""A run that learns, saved and restored: it goes on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.learning.learner import Learner
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.history_graph import HistoryGraph
from history.counting import count
from history.trace import Trace
from tests.counted_histories import assert_same
from tests.naive_history import SCHEME, random_trace
from tests.one_reading import learned

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 200"
EVENTS, BATCH = 9000, 500


def stream(seed: int, *, events: int = EVENTS, first: int = 0, least: int = 10) -> pa.Table:
    """One event a tick, ten keys that are texts; x of C lies from ``least`` to 5 above, of the others from 0 to 99."""
    rng = np.random.default_rng(seed)
    letter, x = rng.choice(3, events, p=[0.4, 0.4, 0.2]), rng.integers(0, 100, events)
    x[letter == 2] = least + rng.integers(0, 6, (letter == 2).sum())
    key = np.char.add("k", rng.integers(0, 10, events).astype(str))
    ticks = np.arange(first, first + events)
    return pa.table({"ts": ticks, "type": np.array(list("ABC"))[letter], "x": x, "id": key})


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY, engine="runs")


@pytest.fixture(scope="module")
def known(query: Query) -> HistoryGraph:
    return learned(HistoryGraph(query), stream(1))


def ran(query: Query, table: pa.Table, load: Load, stops: set[int]) -> tuple[list[Any], Shedder]:
    """All results of a run that is saved and restored after the batches of these numbers."""
    shedder = Shedder(query.plan, load)
    matcher = Matcher(query.plan, shedding=shedder)
    found = []
    for number, at in enumerate(range(0, len(table), BATCH)):
        found += matcher.push(table.slice(at, BATCH)).to_pylist()
        if number in stops:
            state = matcher.state_bytes()
            shedder = Shedder(query.plan, load)
            matcher = Matcher.from_state(query.plan, state, shedder)
    found += matcher.finish().to_pylist()
    return found, shedder


def learner_of(shedder: Shedder) -> Learner:
    assert shedder.online is not None
    return shedder.online.learner


CHANGED = [stream(2, first=EVENTS), stream(3, first=2 * EVENTS, least=80)]
Across = Callable[[bool, tuple[int, ...]], tuple[list[Any], Shedder]]
"""A run across the change, with the history or without, saved and restored after some batches."""


@pytest.fixture(scope="module")
def across(query: Query, known: HistoryGraph) -> Across:
    """Each run is made once."""

    @cache
    def one(history: bool, stops: tuple[int, ...]) -> tuple[list[Any], Shedder]:
        load = Load(
            Budget.parse("20%"), known if history else None, audit=0.3, learns=True, full_work=known.steps_per_event_
        )
        return ran(query, pa.concat_tables(CHANGED), load, set(stops))

    return one


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("stops", [(11,), (2, 3, 20, 30), tuple(range(0, 36, 3))], ids=lambda some: str(set(some)))
def test_a_run_that_learns_goes_on_as_if_it_had_never_stopped(
    across: Across, history: bool, stops: tuple[int, ...]
) -> None:
    """The same matches, values, graph, cohort and drift alarms; across a change of the stream."""
    (found, ours), (expected, theirs) = across(history, stops), across(history, ())
    assert len(expected) > 100
    assert found == expected
    mine, other = learner_of(ours), learner_of(theirs)
    assert mine.alarms == other.alarms
    assert mine.refreshes == other.refreshes
    assert len(mine.refreshes) > 3
    assert mine.ranking is not None
    assert other.ranking is not None
    assert mine.ranking.scheme == other.ranking.scheme
    assert mine.ranking.values.gain.tolist() == other.ranking.values.gain.tolist()
    assert vars(mine.tally) == vars(other.tally)
    assert_same(mine.live.now().counts, other.live.now().counts)
    assert mine.live.visits > 100
    assert ours.recall() == theirs.recall()
    assert ours.online is not None
    assert theirs.online is not None
    assert ours.online.beside.steps == theirs.online.beside.steps
    assert ours.online.rescored == theirs.online.rescored


def test_a_restored_run_keeps_how_its_price_follows_the_work(query: Query, known: HistoryGraph) -> None:
    """What is learned anew replaces how the price follows the work in the history; also in what is restored."""
    load = Load(Budget.parse("2%"), known, audit=0.3, learns=True, full_work=known.steps_per_event_)
    assert known.prices_.elasticity(0.02) < 0.5
    (_, ours), (_, theirs) = (ran(query, pa.concat_tables(CHANGED), load, some) for some in ({20}, set()))
    assert learner_of(theirs).refreshes
    assert theirs.arena.allowance.elasticity == 1.0
    assert ours.arena.allowance == theirs.arena.allowance


def counted_alike(one: Trace, other: Trace) -> None:
    """The same counts; only match points of other partitions may be missing."""
    mine, theirs = (count(SCHEME, trace, -1, 1000) for trace in (one, other))
    for name in ("visits", "reached", "led", "cost", "started", "completed", "source", "target", "moves", "passed"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), name)

    def reached(counts: Any) -> dict[int, set[Any]]:
        identity = [*zip(counts.bundles.slot.tolist(), counts.bundles.row.tolist(), strict=True)]
        return {at: {identity[n] for n in np.flatnonzero(bits.tolist())} for at, bits in counts.maps.items()}

    assert reached(mine) == reached(theirs)
    assert mine.ends.sum() == theirs.ends.sum()


@pytest.mark.parametrize("seed", range(6))
def test_outcomes_are_the_same_after_they_were_bytes(seed: int) -> None:
    from acep_approx.learning.cohort import Outcomes

    trace = random_trace(seed, births=60, points=40)
    trace = trace_of_own_points(trace)
    chosen: npt.NDArray[np.bool_] = trace.slot != 1
    part = trace.of_births(chosen)
    again = Outcomes.from_bytes(Outcomes([part, trace], 3.5).to_bytes())
    assert again.weight == 3.5
    for made, was in zip(again.traces, (part, trace), strict=True):
        counted_alike(made, was)
        vertices = [Outcomes([one]).lineages(SCHEME) for one in (made, was)]
        for name in ("tick", "vertex", "points"):
            assert getattr(vertices[0], name).tolist() == getattr(vertices[1], name).tolist()
    assert len(again.traces[0].slots) == 2
    assert len(again.traces[0].point_row) < len(trace.point_row)


def trace_of_own_points(trace: Trace) -> Trace:
    """Each visit reaches match points of its own partition only, as in truth."""
    from dataclasses import replace

    order = np.lexsort((trace.point_row, trace.point_slot))
    slot = trace.point_slot[order]
    first, last = (np.searchsorted(slot, trace.slot[trace.birth], side=side) for side in ("left", "right"))
    room = np.minimum(last - first, 63).astype(np.uint64)
    mask = trace.mask & ((np.uint64(1) << room) - np.uint64(1))
    mine = [np.flatnonzero(slot == of) for of in trace.slot[trace.birth[trace.end_visit]]]
    end = np.array([here[n % len(here)] for n, here in enumerate(mine)])
    return replace(
        trace, point_row=trace.point_row[order], point_tick=trace.point_tick[order], point_slot=slot,
        first_point=first, mask=mask, end_point=end,
    )  # fmt: skip
