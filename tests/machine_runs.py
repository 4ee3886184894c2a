"""Machines made by hand through the real engine: what it finds, and where that is not what brute force finds."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx.api.matcher import Matcher
from tests.machine_worlds import MachineWorld, machine_world
from tests.match_tables import counted, least
from tests.naive_machine import Bound


def bindings(table: pa.Table) -> list[Bound]:
    """Rows with their variables, as brute force writes them."""
    found = []
    for row in table.to_pylist():
        pairs = [(event, name) for name, events in row.items() if name[0] == "v" for event in events or ()]
        found.append(tuple(sorted(pairs)))
    return found


def pushed(world: MachineWorld, output: Any, merge: str, dice: Random) -> pa.Table:
    """In a random split, with the state saved and restored now and then."""
    plan, table, first, parts = world.plan(), world.table(), 0, []
    matcher = Matcher(plan, output=output, merge=merge)
    while first < len(table):
        length = dice.randrange(1, 6)
        parts.append(matcher.push(table.slice(first, length)))
        first += length
        if dice.random() < 0.4:
            matcher = Matcher.from_state(plan, matcher.state_bytes())
    return pa.concat_tables([*parts, matcher.finish()])


def disagreement(seed: int) -> str:
    """What the engine finds otherwise than brute force in the world of a seed; empty if nothing."""
    dice = Random(seed)
    world = machine_world(dice)
    expected = world.expected()
    per_point = Counter((bound[-1][0], 0) for bound in expected)
    for merge in ("equal,pareto,chain", "none"):
        listed = bindings(pushed(world, "matches", merge, dice))
        if sorted(listed) != sorted(expected):
            return f"matches, merge={merge}: {sorted(set(listed) ^ expected)}, {len(listed) - len(set(listed))} twice"
        if least(pushed(world, "points", merge, dice)) != {row: 0 for row, _ in per_point}:
            return f"points, merge={merge}"
        if counted(pushed(world, "counts", merge, dice)) != per_point:
            return f"counts, merge={merge}"
    return ""
