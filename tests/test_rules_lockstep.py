"""Circles that run in one kernel: that they do, that they are right, and what a wrong kernel would do.

Random worlds and all pairs of small rules are in ``test_rules.py``: most of their circles run so.
"""

from __future__ import annotations

import pytest

from acep_approx import compile_rules
from acep_approx.query.rules.parser import parse_rules
from acep_approx.rules.lockstep.eligible import planned_stages
from acep_approx.rules.program import Program
from experiments.speed.rules import ACROSS, PARTS, THREE, TOGGLE, by_hand, stream
from tests.cases import FULL, cases
from tests.lockstep_mutants import MUTANTS
from tests.plain_python import plainly
from tests.rule_runs import disagreement
from tests.rule_worlds import rule_world


def runs_in_kernel(text: str) -> bool:
    """Whether all circles of some rules run in one kernel."""
    stages = planned_stages(Program.of(parse_rules(text)), "auto")
    circles = [one for one in stages if one.stage.is_cycle]
    return bool(circles) and all(one.in_kernel for one in circles)


def test_which_circles_run_in_one_kernel() -> None:
    assert runs_in_kernel(THREE)
    assert runs_in_kernel(TOGGLE)
    assert not runs_in_kernel(ACROSS)


def test_most_worlds_of_cells_reach_the_kernel_and_are_right() -> None:
    reached, seeds = 0, range(300, 324) if FULL else range(313, 323)
    for seed in seeds:
        world = rule_world(seed, "cells")
        reached += runs_in_kernel(world.text)
        assert not disagreement(world, seed)
    assert reached > len(seeds) / 3


@pytest.mark.parametrize("chunk", [1, 7, 5000])
def test_three_rules_are_what_a_loop_by_hand_says(chunk: int) -> None:
    """Long enough that tables grow and windows end."""
    events = stream(5000 if chunk > 1 else 600, 40)
    run = compile_rules(THREE).start()
    for first in range(0, events.num_rows, chunk):
        run.push(events.slice(first, chunk))
    found = {row["hcw"]: row["level"] for row in run.store["status"].to_pylist()}
    expected = by_hand(events)
    assert {who: level for who, level in found.items() if level} == {who: n for who, n in expected.items() if n}


def test_each_write_of_a_toggle_decides_the_next_read() -> None:
    """A kernel in which an event sees its own write, or reads as of the beginning of a batch, switches otherwise."""
    events = stream(101, 1, (0.0, 0.0, 0.0, 1.0))
    out = compile_rules(TOGGLE).start().push(events)
    assert out["on"].column("row").to_pylist() == list(range(0, 101, 2))
    assert out["off"].column("row").to_pylist() == list(range(1, 101, 2))


def test_every_part_of_the_benchmark_says_something() -> None:
    assert all(part(600, 1) for part in PARTS.values())


def seed_that_notices(mutant: str, worlds: int) -> int:
    """``noticed`` in a process of its own, as plain Python."""
    return int(plainly("tests.lockstep_mutants", "noticed", mutant, worlds))


def test_the_kernel_itself_is_right() -> None:
    assert seed_that_notices("nothing", cases(100)) == -1


@pytest.mark.parametrize("mutant", [mutant.__name__ for mutant in MUTANTS[1:]])
def test_a_wrong_kernel_is_noticed(mutant: str) -> None:
    assert seed_that_notices(mutant, cases(1000)) >= 0
