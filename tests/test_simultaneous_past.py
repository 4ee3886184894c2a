"""SIMULTANEOUS where runs are looked back at: what they led to and cost, what a history and learning make of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.training.trace import Tracer
from history.trace import Trace
from tests.cases import examples
from tests.match_tables import bindings
from tests.naive_trace import Futures
from tests.rich_worlds import RichWorld
from tests.runs_engine import MERGES, compiled
from tests.smaller_worlds import holds_for
from tests.tied_worlds import tied_world

TIED = st.randoms(use_true_random=True)


def traced(query: Query, world: RichWorld, merge: str) -> list[Trace]:
    """The past of a world."""
    source = open_source(world.table())
    tracer = Tracer(query.plan, source.schema, infer_roles(source.schema), merge)
    batches = read_events(source, tracer.pipeline.roles, columns=tracer.pipeline.columns)
    return [*(trace for batch in batches for trace in tracer.push(batch)), *tracer.finish()]


def begun(trace: Trace) -> Iterator[tuple[int, int]]:
    """The first visits of runs and of those they were merged into, each with its time."""
    for visit, birth in enumerate(trace.birth.tolist()):
        if trace.since[visit] == 0:
            first = int(trace.first_visits()[birth])
            window = int(trace.remaining[first] + trace.tick[birth] - trace.start[birth])
            yield visit, int(trace.start[birth]) + window - int(trace.remaining[visit])


@examples(150, shrink=False)
@given(TIED, st.sampled_from(MERGES))
def test_runs_lead_to_what_they_do_by_brute_force(random: Random, merge: str) -> None:
    """Per time the match points that its runs reach; and, of runs on their own, what they cost."""

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None or not world.rows:
            return
        futures, ticks = Futures(world.query, world.rows), [row["ts"] for row in world.rows]
        reached, costs = defaultdict(set), defaultdict(set)
        for run in futures.runs:
            if futures.waiting(run):
                last = run[0][-1]
                after = next((row for row, tick in enumerate(ticks) if tick > ticks[last]), len(ticks))
                reached[ticks[last]] |= futures.reached(run, last)
                costs[ticks[last]] |= futures.costs(run, after)
        found = defaultdict(set)
        for trace in traced(query, world, merge):
            for visit, tick in begun(trace):
                first, mask = int(trace.first_point[visit]), int(trace.mask[visit])
                found[tick] |= {int(trace.point_row[first + bit]) for bit in range(64) if mask >> bit & 1}
                if merge == "none" and world.query.strategy == "skip_till_any_match":
                    assert trace.cost[visit] in costs[tick]
        if not query.plan.registers.needs_filter:
            assert {tick: rows for tick, rows in found.items() if rows} == {
                tick: rows for tick, rows in reached.items() if rows
            }

    holds_for(tied_world(random), check)


def stream(seed: int, events: int = 3000) -> pa.Table:
    """Events of a few types and values, three at most times."""
    rng = np.random.default_rng(seed)
    columns = {"type": rng.choice(list("AAAB"), events), "x": rng.integers(0, 20, events)}
    return pa.table({"ts": np.sort(rng.integers(0, events // 3, events)), **columns})


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match", "partition_contiguity"])
def test_with_a_history_and_while_it_learns_every_match_is_a_match(strategy: str) -> None:
    """Inside its bound; and with what was learned it finds more than by chance."""
    where = "b.x > a.x AND c.x < a.x AND d.x > c.x"
    text = f"PATTERN SEQ(A a, A b, A c, B d) WHERE {strategy} {{ {where} }} WITHIN 12 SIMULTANEOUS"
    query, events = compile_query(text), stream(2)
    expected = bindings(query.match(events).to_arrow(), query.syntax)
    history = HistoryGraph(query).fit(stream(1))
    found = {}
    for name, options in {"history": {"history": history}, "learn": {"learn": True}, "chance": {}}.items():
        some = query.match_within(events, "3 steps/event", seed=1, **options)
        found[name] = bindings(some.to_arrow(), query.syntax).keys()
        assert found[name] <= expected.keys()
        assert some.work.steps <= 3 * len(events)
        assert found[name] or not expected
    if strategy == "skip_till_any_match":
        assert len(found["history"]) > len(found["chance"])
