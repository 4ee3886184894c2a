"""Detect now, list later: the same tables, though arc logs see the events of a key only when it completes a match."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.cells.listing import HeldEvents
from acep_approx.errors import AcepError
from acep_approx.matching.outputs.of_cells import CellListing
from tests.cases import examples
from tests.worlds import World, worlds


def listed(query: Query, parts: list[pa.Table], *, later: bool, run: list[int]) -> pa.Table:
    """The matches of a stream in parts; ``run`` gets how many events the arc logs see each time."""
    matcher = query.matcher()
    pipeline = matcher.bind(parts[0].schema)
    logs, output = pipeline.engine, pipeline.results
    assert isinstance(logs, ArcLogs)
    assert isinstance(output, CellListing)
    if later:
        output.held = HeldEvents(Cells(query.plan.automaton, pipeline.window), logs)
    update = logs.update

    def counted(events, floors):
        run.append(len(events.slot))
        return update(events, floors)

    logs.update = counted
    return pa.concat_tables([matcher.push(part) for part in parts])


@examples(1000)
@given(world=worlds(), cuts=st.lists(st.integers(0, 8), max_size=4).map(sorted))
def test_listing_later_is_listing_at_once(world: World, cuts: list[int]) -> None:
    try:
        query = compile_query(world.text, engine="cells")
    except AcepError:
        return
    table = world.table()
    cuts = [min(cut, table.num_rows) for cut in cuts]
    parts = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    at_once = listed(query, parts, later=False, run=[])
    assert listed(query, parts, later=True, run=[]).equals(at_once)


@pytest.mark.parametrize("window", ["30", "30 events"])
def test_keys_without_points_are_not_run(window: str) -> None:
    """One key of ten completes matches; of the others only what comes in its batches is looked at, by detection."""
    rows = [{"ts": i, "type": "AB"[i // 10 % 2] if i % 10 == 3 else "A", "g": str(i % 10)} for i in range(4000)]
    table = pa.Table.from_pylist(rows)
    query = compile_query(f"PATTERN SEQ(A a, B b) WHERE [g] WITHIN {window}")
    parts, seen = [table.slice(i, 50) for i in range(0, 4000, 50)], []
    found = listed(query, parts, later=True, run=seen)
    assert found.num_rows
    assert found.equals(listed(query, parts, later=False, run=[]))
    assert sum(seen) == 400, "the events of the one key"
