"""The two ways in which the runs engine tries runs, few by few and block by block, held against each other.

For plain Python, where thresholds can be changed.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import Query
from acep_approx.kernels.runs import few, pools
from tests.archives import arrays_of
from tests.numbered_worlds import numbered_world
from tests.runs_engine import MERGES, compiled

MANY = 1 << 30
Outcome = tuple[list[str], dict[str, int], dict[str, list[Any]]]


def set_threshold(runs: int) -> None:
    """Up to so many runs are few; below 0 no event is passed over either."""
    few.FEW_RUNS = runs
    pools.FEW = runs
    few.pass_idle = PASS_IDLE if runs >= 0 else lambda *_: None  # type: ignore[assignment]


PASS_IDLE = few.pass_idle


def outcome(query: Query, batches: list[pa.Table], output: Any, merge: str) -> Outcome:
    """What comes of some batches: rows in their order, what was counted, and all arrays of the state."""
    matcher = query.matcher(output=output, merge=merge)
    tables = [matcher.push(batch) for batch in batches]
    arrays = arrays_of(matcher.state_bytes())
    tables.append(matcher.finish())
    state = {name: array.tolist() for name, array in arrays.items()}
    return [repr(row) for table in tables for row in table.to_pylist()], vars(matcher.progress), state


def differing(worlds: int) -> int:
    """The first world of which both ways, or a way between, do not make the same; -1 if there is none."""
    for number in range(worlds):
        world, dice = numbered_world(number), Random(number)
        query = compiled(world)
        if query is None or not world.rows:
            continue
        table, cut = world.table(), dice.randrange(len(world.rows) + 1)
        batches = [table.slice(0, cut), table.slice(cut)]
        output, merge = dice.choice(("matches", "points", "counts")), dice.choice(MERGES)
        found = []
        for threshold in (-1, 1, MANY):
            set_threshold(threshold)
            found.append(outcome(query, batches, output, merge))
        if any(one != found[0] for one in found[1:]):
            return number
    return -1
