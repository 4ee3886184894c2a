"""What lost runs may still lead to, held against each of them followed by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import eq, ge, gt, le, lt, ne
from random import Random
from unittest.mock import patch

import numpy as np
import pytest

from acep_approx import compile_rules
from acep_approx.engines.runs import lost
from acep_approx.engines.runs.shedding import Lost, Shedding
from acep_approx.kernels.rules.lost import MAY_END, OWN, PARTS, UNKNOWN, Coming, Kept, Moves, follow_lost
from acep_approx.kernels.runs.pools import NEVER
from tests.cases import cases
from tests.rule_budgets import Budgeted, run_within, wrong_within
from tests.rule_worlds import ATTRIBUTES, RuleWorld

PLACES, REGISTERS, VALUES, EVENTS = 4, 2, 2, 12
COMPARE = (lt, le, gt, ge, eq, ne)
ANY = "any"
"""What nobody knows."""
Value = float | str | None
Test = tuple[int, float, int, tuple[tuple[int, float], ...]]


@dataclass(frozen=True)
class Run:
    """A run at a place; a register that is None is NULL."""

    place: int
    start: int
    registers: tuple[Value, ...]


@dataclass(frozen=True)
class Step:
    """How a run goes on: a letter, a target, what registers become, and tests (how, shift, value, terms)."""

    letter: int
    target: int
    moves: tuple[int, ...]
    tests: tuple[Test, ...]


@dataclass
class World:
    """Steps by place; events with slot, tick, letters and values; the runs that are lost before and behind each."""

    window: int
    steps: list[list[Step]]
    events: list[tuple[int, int, int, list[float]]]
    lost: list[tuple[list[Run], list[Run]]]


def world_of(seed: int, most_lost: int) -> World:
    """A random world; in all at most so many runs are lost."""
    random = Random(seed)
    steps: list[list[Step]] = [[] for _ in range(PLACES)]
    for place in range(1, PLACES - 1):
        for _ in range(random.choice((1, 1, 2))):
            moves = tuple(random.choice((0, 1, OWN, OWN - 1, UNKNOWN)) for _ in range(REGISTERS))
            steps[place].append(Step(random.randrange(3), random.choice((place, place + 1, place + 1)), moves,
                                     tuple(map(_test, [random] * random.choice((0, 1, 1, 2))))))  # fmt: skip
    tick, events, lost, left = 0, [], [], most_lost
    for _ in range(EVENTS):
        tick += random.choice((0, 1, 1, 3))
        numbers = [random.choice((0.0, 1.0, 1.0, 2.0, 2.0, 3.0, math.nan)) for _ in range(VALUES)]
        events.append((random.choice((0, 0, 0, 0, 1, -1)), tick, random.choice((1, 2, 3, 5, 6, 7, 7)), numbers))
        both: tuple[list[Run], list[Run]] = ([], [])
        for some in both:
            while left and events[-1][0] >= 0 and random.random() < 0.3:
                registers = tuple(random.choice((0.0, 1.0, 2.0, 3.0, None)) for _ in range(REGISTERS))
                some.append(Run(random.randrange(1, PLACES - 1), tick - random.randrange(3), registers))
                left -= 1
        lost.append(both)
    return World(random.choice((2, 5, 9)), steps, events, lost)


def _test(random: Random) -> Test:
    terms = [(random.randrange(REGISTERS), random.choice((1.0, 1.0, -1.0, 2.0)))]
    if random.random() < 0.3:
        terms = [(register, random.choice((1.0, -1.0))) for register in range(REGISTERS)]
    return random.randrange(len(COMPARE)), random.choice((0.0, 0.0, 1.0)), random.randrange(VALUES), tuple(terms)


def one_by_one(world: World) -> list[bool]:
    """At which events a lost run may complete a match, each followed by itself."""
    runs: dict[int, list[Run]] = {}
    found = []
    for (slot, tick, letters, values), (before, behind) in zip(world.events, world.lost, strict=True):
        mine = runs.setdefault(slot, []) if slot >= 0 else []
        mine += before
        came, is_open = [], False
        for run in mine:
            for step in world.steps[run.place] if run.start >= tick - world.window else ():
                if letters >> step.letter & 1 and all(_holds(run, test, values) for test in step.tests):
                    is_open |= step.target == PLACES - 1
                    came.append(Run(step.target, run.start, tuple(_after(run, move, values) for move in step.moves)))
        mine += [*came, *behind]
        found.append(is_open)
    return found


def _holds(run: Run, test: Test, values: list[float]) -> bool:
    how, shift, value, terms = test
    held = [run.registers[register] for register, _ in terms]
    if None in held or math.isnan(values[value]):
        return False
    if ANY in held:
        return True
    total = shift + sum(factor * run.registers[register] for register, factor in terms)  # type: ignore[operator]
    return bool(COMPARE[how](total, values[value]))


def _after(run: Run, move: int, values: list[float]) -> Value:
    if move >= 0:
        return run.registers[move]
    if move == UNKNOWN:
        return ANY
    return None if math.isnan(values[OWN - move]) else values[OWN - move]


def together(world: World, cut: int) -> list[bool]:
    """The same by the kernel, with an end of a batch at ``cut``."""
    flat = [step for some in world.steps for step in some]
    tests = [test for step in flat for test in step.tests]
    columns = [*zip(*tests, strict=True)] or [()] * 5
    moves = Moves(
        PLACES, REGISTERS, world.window,
        np.cumsum([0, *map(len, world.steps)]),
        np.array([step.letter for step in flat]), np.array([step.target for step in flat]),
        np.array([int(step.target == PLACES - 1) for step in flat]),
        np.array([move for step in flat for move in step.moves]),
        np.cumsum([0, *(len(step.tests) for step in flat)]),
        np.array(columns[0], np.int64), np.array(columns[1], np.float64), np.array(columns[2], np.int64),
        np.cumsum([0, *(len(test[3]) for test in tests)]),
        np.array([register for test in tests for register, _ in test[3]], np.int64),
        np.array([factor for test in tests for _, factor in test[3]], np.float64),
    )  # fmt: skip
    kept = Kept(np.full(2 * PLACES * PARTS, NEVER), np.zeros(4 * PLACES * PARTS * REGISTERS))
    found: list[bool] = []
    for first, last in ((0, cut), (cut, EVENTS)):
        coming, may = _coming(world, first, last), np.zeros(last - first, np.int64)
        follow_lost(moves, coming, kept, np.zeros(2 * REGISTERS), NEVER, may)
        found += (may & MAY_END > 0).tolist()
    return found


def _coming(world: World, first: int, last: int) -> Coming:
    events = world.events[first:last]
    starts = np.full((len(events), 1 + 2 * PLACES), NEVER)
    bounds = np.tile((math.inf, -math.inf), (len(events), 2, PLACES, REGISTERS, 1))
    for row, both in enumerate(world.lost[first:last]):
        for when, some in enumerate(both):
            for run in some:
                at = 1 + when * PLACES + run.place
                starts[row, at] = max(starts[row, at], run.start)
                for f, value in enumerate(run.registers):
                    if isinstance(value, float):
                        low, high = bounds[row, when, run.place, f]
                        bounds[row, when, run.place, f] = min(low, value), max(high, value)
    none = np.zeros(len(events), np.bool_)
    slot, tick, letters = (np.array([event[n] for event in events], np.int64) for n in range(3))
    values = np.array([event[3] for event in events], np.float64).reshape(-1, VALUES).T.ravel()
    return Coming(slot, tick, letters, values, none, none, np.arange(len(events)), starts.ravel(), bounds.ravel())


@pytest.mark.parametrize("part", range(4))
def test_what_a_lost_run_may_complete_is_told_and_of_one_alone_nothing_else(part: int) -> None:
    told = 0
    back = (1380, 1988) if part == 0 else ()  # an event leads one step further and back to the same place
    for seed in (*range(part, cases(2_000, 60), 4), *back):
        world = world_of(seed, most_lost=1 + 2 * (seed % 4))
        alone, found = one_by_one(world), together(world, seed % EVENTS)
        assert all(found[at] for at in np.flatnonzero(alone)), seed
        told += sum(alone)
        if seed % 4 == 0:
            assert found == alone, seed
    assert told > 5


# --- in rules ---------------------------------------------------------------------------------------------------------

SEES = """TABLE t (k text, s text DEFAULT 'a', KEY (k))
RULE lost ON PATTERN SEQ(A a, B b) WHERE {} WITHIN 99 DO UPDATE t SET s = 'c' AT (b.k) END
RULE see ON PATTERN F f WHERE store.t[f.k].s = 'a' WITHIN 0"""


CASES = pytest.mark.parametrize(
    ("condition", "events", "is_certain"),
    [
        ("b.x > a.x", "A3 B1 F0", True),
        ("b.x > a.x", "A3 B5 F0", False),
        ("b.x > a.x + 2", "A3 B5 F0", True),
        ("b.x > a.x + 2", "A3 B6 F0", False),
        ("2 * a.x < b.x - 1", "A3 B7 F0", True),
        ("2 * a.x < b.x - 1", "A3 B8 F0", False),
        ("b.x <> a.x", "A3 B3 F0", True),
        ("b.x = a.x", "A3 B4 F0", True),
        ("b.x = a.x", "A3 B3 F0", False),
        ("b.x % 2 > a.x % 2", "A3 B1 F0", True),
        ("b.x * a.x > 3", "A3 B1 F0", False),  # it is not asked
    ],
)


def rules_world(condition: str, events: str) -> RuleWorld:
    """A rule whose runs are lost, with this condition, and one that reads what it writes; type and ``x`` of events."""
    rows = []
    for tick, event in enumerate(events.split()):
        values = (event[0], "p", 0, int(event[1:]), 0.5, "q", True)
        rows.append(dict(zip(ATTRIBUTES, (tick, *values), strict=True)))
    return RuleWorld(SEES.format(condition), tuple(rows), {}, ())


@CASES
def test_an_event_that_no_lost_run_takes_leaves_nothing_in_doubt(
    condition: str,
    events: str,
    is_certain: bool,
) -> None:
    world = rules_world(condition, events)
    found = run_within(world, Budgeted("1 runs"))
    assert found.record.runs_shed == 1
    assert not wrong_within(world, Budgeted("1 runs"))
    assert [row["certain"] for row in found.matches["see"]] == [is_certain]


def test_runs_that_are_shed_before_the_tests_of_an_event_may_complete_a_match_there() -> None:
    world, take = rules_world("b.x > a.x", "A3 B5 F0"), Shedding.take_lost

    def all_at_last(arena: Shedding) -> Lost:
        found = take(arena)
        pools, starts = found.bounds.shape[2], found.starts.copy()
        starts[:, 1 + pools :] = np.maximum(starts[:, 1 + pools :], starts[:, 1 : 1 + pools])
        starts[:, 1 : 1 + pools] = NEVER
        return Lost(found.rows, starts, found.bounds[:, ::-1])

    with patch.object(Shedding, "take_lost", all_at_last):
        assert wrong_within(world, Budgeted("1 runs"))


@pytest.mark.parametrize("others", [0, 62])
def test_an_event_that_ends_all_runs_may_complete_them_first(others: int) -> None:
    absent = ", ".join(f"~({kind} n{n})" for n, kind in enumerate(["A", *(f"T{n}" for n in range(others)), "B"]))
    world = rules_world("b.x > a.x", "A3 B5 F0")
    world = replace(world, text=world.text.replace("SEQ(A a, B b)", f"SEQ(A a, {absent}, B b)"))
    assert compile_rules(world.text).program.rules[0].ending_letters.bit_length() == others + 2  # 64: all of a word
    way = Budgeted("0.3 steps/event")
    assert run_within(world, way).record.runs_shed == 1
    assert not wrong_within(world, way)


def test_conditions_as_tests() -> None:
    def tests(condition: str) -> Iterator[tuple[str, int, tuple[float, ...], float, float]]:
        rules = compile_rules(f"RULE r ON PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 9")
        registers = rules.program.rules[0].plan.registers
        assert registers is not None
        for step in registers.steps:
            for check in step.checks:
                test = lost.comparison_of(check)
                if test is None:
                    yield ("none", 0, (), 0, 0)
                else:
                    names, factors = zip(*((one.variable, factor) for one, factor in test.sum.factors), strict=True)
                    yield ("".join(names), test.how, factors, test.sum.shift, test.times)

    assert [*tests("b.x > a.x AND b.y <= 2 * a.y + 1")] == [("a", 2, (-1.0,), 0.0, -1.0), ("a", 1, (-1.0,), 0.0, -1.0)]
    assert [*tests("3 - 2 * (a.x + b.x) > 0")] == [("a", 2, (-2.0,), 3.0, 2.0)]
    assert [*tests("b.x * a.x > 3")] == [("none", 0, (), 0, 0)]
    assert lost.sum_of(None) is None
