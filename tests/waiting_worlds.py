"""Runs that wait for an event beyond a threshold: random streams, with the bounds of the engine and without them.

For plain Python, where the size of parts can be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import Query
from acep_approx.kernels.runs import advance, ends, waiting
from acep_approx.query.parser import parse
from tests.rich_worlds import RichWorld
from tests.runs_engine import agrees_in_any_split, compiled

PATTERNS = {
    "SEQ(A a, B b)": ("b.x {} a.x", "b.x {} a.x AND b.y >= a.y", "b.x {} 1.5 * a.x", "b.y {} a.x", "b.x {} a.y"),
    "SEQ(A a, B b, C c)": ("b.x {} a.x AND c.y {} b.y", "c.x {} a.x", "b.x {} a.x"),
    "SEQ(A a, (B b | C c))": ("b.x {} a.x AND c.x {} a.x", "b.x {} a.x AND c.y < a.y"),
    "SEQ(A+ a[], B b)": ("b.x {} a[a.LEN].x", "a[i].x {} a[i-1].x"),
    "SEQ(A a, ~(C c), B b)": ("b.x {} a.x", "b.x {} a.x AND c.x > a.x"),
}
LARGE = 2**53
INTS = (*range(-3, 4), None, LARGE - 1, LARGE, LARGE + 1, 2**63 - 1, -(2**63) + 1)
FLOATS = (0.0, -0.0, 0.5, -1.5, 1.0, 2.0, 3.0, None, float("nan"), float("inf"), float("-inf"), float(LARGE), 5e-324)
COLUMNS = {"ts": pa.int64(), "type": pa.string(), "g": pa.int64()}
OFF, ON = "equal", "equal,chain"


class World(RichWorld):
    """A world of which both columns are of some type."""

    kinds: tuple[pa.DataType, pa.DataType]

    def table(self) -> pa.Table:
        """Its events."""
        schema = pa.schema({**COLUMNS, "x": self.kinds[0], "y": self.kinds[1]})
        return pa.Table.from_pylist(self.rows, schema=schema)


def waiting_world(dice: Random, most: int = 12) -> World:
    """A query of ``skip_till_next_match`` and up to ``most`` events."""
    pattern = dice.choice(list(PATTERNS))
    condition = dice.choice(PATTERNS[pattern])
    for _ in range(2):
        condition = condition.replace("{}", dice.choice(("<", "<=", ">", ">=")), 1)
    condition = "[g] AND " * (dice.random() < 0.3) + condition
    ticks = " SIMULTANEOUS" * dice.randrange(2)
    window = dice.choice((2, 5, 30, 100))
    text = f"PATTERN {pattern} WHERE skip_till_next_match {{ {condition} }} WITHIN {window}{ticks}"
    kinds = dice.choice((pa.int64(), pa.float64())), dice.choice((pa.int64(), pa.float64()))
    of_kind = {pa.int64(): dice.choice((INTS, INTS[:8])), pa.float64(): dice.choice((FLOATS, FLOATS[:8]))}
    ts, rows = 0, []
    for _ in range(dice.randint(1, most)):
        ts += dice.choice((0, 0, 1, 1, 2))
        x, y = (dice.choice(of_kind[kind]) for kind in kinds)
        rows.append({"ts": ts, "type": dice.choice("AAABC"), "g": dice.randrange(2), "x": x, "y": y})
    world = World(parse(text), text, rows)
    world.kinds = kinds
    return world


def set_sizes(part: int, many: int) -> None:
    """Runs per bound, and up to how many runs none is asked for."""
    waiting.PART, waiting.MANY = part, many


def outcome(query: Query, world: World, merge: str, seed: int) -> tuple[list[Any], list[int], int]:
    """Rows, what was counted but run-steps, and these; batches and restarts are those of a seed."""
    dice, table = Random(seed), world.table()
    matcher = query.matcher(output=dice.choice(("matches", "points", "counts")), merge=merge)
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(4)))
    rows = []
    for first, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        rows += matcher.push(table.slice(first, end - first)).to_pylist()
        if dice.randrange(3) == 0:
            matcher = query.from_state(matcher.state_bytes())
    rows += matcher.finish().to_pylist()
    work = vars(matcher.progress)
    return rows, [number for name, number in work.items() if name != "steps"], work["steps"]


def differing(worlds: int, most: int = 60) -> int:
    """The first world that bounds change something of, or make more work; -1 if there is none.

    Some are small enough for brute force, which they are held against.
    """
    saved = 0
    for number in range(worlds):
        dice = Random(number)
        set_sizes(dice.choice((2, 3, 8)), dice.choice((0, 0, 2)))
        is_small = number % 8 == 0
        world = waiting_world(dice, 9 if is_small else most)
        query = compiled(world)
        if query is None:
            continue
        try:
            if is_small:
                agrees_in_any_split(world, ON, Random(number))
            off, on = (repr_of(query, world, merge, number) for merge in (OFF, ON))
        except AssertionError:
            return number
        if on[0] != off[0] or on[1] > off[1]:
            return number
        saved += off[1] - on[1]
    assert saved > worlds, "bounds are hardly ever asked for"
    return -1


def repr_of(query: Query, world: World, merge: str, seed: int) -> tuple[str, int]:
    """An outcome in which NaN equals itself, and its run-steps."""
    rows, counted, steps = outcome(query, world, merge, seed)
    return repr((rows, counted)), steps


def strict(bound: int, scalar: int, or_equal: int) -> bool:
    """``<`` where it should be ``<=``."""
    return bound < scalar


def one_above(*run: Any) -> int:
    """Bounds that are too narrow by one."""
    return BOUND_OF_RUN(*run) + 1


def nothing(*_: Any) -> None:
    """In the place of what must be done."""


BOUND_OF_RUN = waiting.bound_of_run
MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "less for less or equal": (waiting, "reaches", strict),
    "a bound too narrow by one": (waiting, "bound_of_run", one_above),
    "bounds are not made again": (waiting, "bound_all", nothing),
    "holes are runs": (advance, "leave_holes", nothing),
    "a tick takes nothing away": (ends, "leave_holes_of_tick", nothing),
}


def differing_mutant(name: str, worlds: int) -> int:
    """The first world in which a mutant is noticed."""
    module, function, mutant = MUTANTS[name]
    setattr(module, function, mutant)
    return differing(worlds)
