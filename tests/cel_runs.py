"""Queries in CEL through the engine, in every way that must not matter, held against brute force."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.planning.planner import Plan
from tests.cel_worlds import CelWorld, cel_world
from tests.naive_cel import TooManyEvents, bag, run

Bag = Counter[tuple[Any, ...]]
MERGE = ("equal,pareto,chain", "none")


def found(table: pa.Table) -> Bag:
    """Rows as the oracle gives them, each as many times as it says."""
    rows: Bag = Counter()
    for row in table.to_pylist():
        start, end, times = (row.pop(name) for name in ("start", "end", "times"))
        rows[start, end, tuple(sorted(row.items()))] += times
    return rows


def split(random_: random.Random, table: pa.Table) -> list[pa.Table]:
    """The events in a few batches, cut anywhere, also within a tick."""
    cuts = sorted(random_.randrange(table.num_rows + 1) for _ in range(random_.choice((0, 1, 1, 2, 4))))
    return [table.slice(low, high - low) for low, high in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]


def shuffled(random_: random.Random, table: pa.Table) -> pa.Table:
    """The same events, those of one tick in another order."""
    order = sorted(range(table.num_rows), key=lambda row: (table["ts"][row].as_py(), random_.random()))
    return table.take(order)


def pushed(random_: random.Random, plan: Plan, table: pa.Table, **options: Any) -> pa.Table:
    """What a matcher finds that gets the events in batches, and is taken up from its state now and then."""
    matcher = Matcher(plan, **options)
    tables = []
    for batch in split(random_, table):
        if batch.num_rows:
            tables.append(matcher.push(batch))
            if random_.random() < 0.4:
                matcher = Matcher.from_state(plan, matcher.state_bytes())
    return pa.concat_tables([one for one in [*tables, matcher.finish()] if one.num_columns])


def found_with_a_stop(query: Query, matcher: Any, table: pa.Table) -> Bag:
    """What a matcher finds that is taken up from its state in the middle of the events."""
    half = table.num_rows // 2
    parts = [matcher.push(table.slice(0, half))]
    matcher = query.from_state(matcher.state_bytes())
    parts += [matcher.push(table.slice(half)), matcher.finish()]
    return sum((found(one) for one in parts if one.num_columns), Counter())


def disagreement(seed: int, world: CelWorld | None = None) -> str:
    """What the engine finds otherwise than brute force; empty if nothing."""
    world = world or cel_world(seed, subqueries=False, intervals=seed % 2 == 0)
    try:
        events = run(world.queries()[-1], world.events)
    except TooManyEvents:
        return ""
    expected, random_ = bag(events), random.Random(seed)
    starts = {"start": "start"} if seed % 2 == 0 else {}
    table = world.table if starts else world.table.drop_columns("start")
    plan = compile_query(world.text).plan
    whole = Matcher(plan, **starts).push(table)
    if found(whole) != expected:
        return f"{world.text}\n{table.to_pylist()}\nmissing {expected - found(whole)}\nmore {found(whole) - expected}"
    for merge in MERGE:
        again = pushed(random_, plan, table, merge=merge, **starts)
        if not again.cast(whole.schema).equals(whole):
            return f"{world.text}\nin batches, merged by {merge}: {again.to_pylist()}\nnot {whole.to_pylist()}"
    other = pushed(random_, plan, shuffled(random_, table), **starts)
    if found(other) != expected:
        return f"{world.text}\nin another order within ticks: {found(other) - expected}, {expected - found(other)}"
    counts = pushed(random_, plan, table, output="counts", **starts)
    if sum(counts["matches"].to_pylist()) != len(events):
        return f"{world.text}\ncounts {counts.to_pylist()}"
    points = pushed(random_, plan, table, output="points", **starts)
    ends = {event.t1 for event in events}
    if points["row"].to_pylist() != counts["row"].to_pylist() or set(points["end"].to_pylist()) != ends:
        return f"{world.text}\npoints {points.to_pylist()}"
    return ""
