"""Register automata that no text of a query stands for, through the real engine, held against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from acep_approx.api.matcher import Matcher
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Binding, Held
from acep_approx.automaton.states import EVERYTHING, NO_EVENT, NOTHING, Ignore, Step
from acep_approx.errors import QueryError
from acep_approx.query.syntax import Binary, Constant, OtherPattern, QuerySyntax, Window
from tests.cases import cases
from tests.machine_mutants import MUTANTS
from tests.machine_runs import bindings, disagreement
from tests.machine_worlds import COUNTER, TOP, MachineWorld, X, Y, machine_of, machine_world, plan_of
from tests.plain_python import plainly

A, B, C = range(3)
WORLDS = cases(2000, 72)
"""Its mutants need 62 of them."""


@pytest.mark.parametrize("part", range(4))
def test_machines_made_by_hand_find_what_brute_force_finds(part: int) -> None:
    """What states ignore, kill steps, computed registers: lists, points, counts, merged or not, in any split."""
    for seed in range(part, WORLDS, 4):
        assert disagreement(seed) == "", seed


@pytest.mark.parametrize("mutant", [pytest.param(m.__name__, marks=pytest.mark.slow) for m in MUTANTS[1:]])
def test_a_mutant_is_noticed(mutant: str) -> None:
    """Random machines tell a wrong variant from the right one, in a process of its own, as plain Python."""
    assert plainly("tests.machine_mutants", "noticed", mutant, WORLDS) >= 0


STOCK = QuerySyntax(OtherPattern("a fold"), Window(100, "ticks"))


def step(source: int, target: int | None, letter: int, *checks: Any, **more: Any) -> Step:
    """A step; without a target a kill step."""
    name = None if target is None else f"v{target}"
    inhibits = more.pop("inhibits", target is None)
    return Step(0, source, target, letter, Binding(name, NOTHING), checks, frozenset(), inhibits, **more)


def found(machine: RegisterAutomaton, types: str, values: Sequence[Any] = ()) -> list[list[int]]:
    """The rows of the matches, from events of these types and these ``x``, one after the other."""
    values = values or [0] * len(types)
    rows = [
        {"ts": n, "type": t, "x": x, "y": 0.0, "kind": t, "key": "k"}
        for n, (t, x) in enumerate(zip(types, values, strict=True))
    ]
    world = MachineWorld(machine, tuple(rows), 100)
    matches = bindings(Matcher(world.plan()).push(world.table()))
    assert sorted(matches) == sorted(world.expected())
    return sorted([row for row, _ in bound] for bound in matches)


def test_a_kill_step_ends_the_runs_that_a_fold_does_not_go_on_with() -> None:
    """Prices 90, 85, 95, 80 that fall from event to event: 95 ends the run, so that 80 goes on with nothing."""
    falls = {"moves": {TOP: X}}
    lower = Binary("<", X, Held(TOP))
    steps = [step(0, 1, A, moves={TOP: X}), step(1, 2, B, lower, **falls), step(2, 2, B, lower, **falls)]
    kills = [step(1, None, B), step(2, None, B)]
    everywhere = [EVERYTHING] * 3
    assert found(machine_of(STOCK, 3, steps + kills, everywhere, {2}, "nothing"), "ABBB", (90, 85, 95, 80)) == [[0, 1]]
    without = machine_of(STOCK, 3, steps, everywhere, {2}, "nothing")
    assert len(found(without, "ABBB", (90, 85, 95, 80))) == 3


@pytest.mark.parametrize(
    ("ignore", "types", "matches"),
    [
        (EVERYTHING, "ACDAB", [[0, 4], [3, 4]]),
        (NO_EVENT, "ACDAB", [[3, 4]]),
        (Ignore(frozenset({C})), "ACCB", [[0, 3]]),
        (Ignore(frozenset({C})), "ACDB", []),  # of D no letter says anything: it ends the run all the same
        (Ignore(frozenset({C})), "ACAB", [[2, 3]]),
        (Ignore(frozenset({A, C})), "ACAB", [[0, 3], [2, 3]]),
    ],
)
def test_what_a_state_ignores(ignore: Ignore, types: str, matches: list[list[int]]) -> None:
    """Everything, nothing, or events of some letters: any other event ends the run."""
    steps = [step(0, 1, A), step(1, 2, B)]
    assert found(machine_of(STOCK, 3, steps, [EVERYTHING, ignore, EVERYTHING], {2}, "partition"), types) == matches


def test_what_is_ignored_may_depend_on_the_run() -> None:
    """Small changes are noise, beside what the run began with."""
    noise = Ignore(frozenset({C}), (Binary("<", X, Held(TOP)),))
    machine = machine_of(
        STOCK, 3, [step(0, 1, A, moves={TOP: X}), step(1, 2, B)], [EVERYTHING, noise, EVERYTHING], {2}, "partition"
    )
    assert found(machine, "ACCB", (5, 4, 3, 0)) == [[0, 3]]
    assert found(machine, "ACCB", (5, 4, 6, 0)) == []


def test_registers_are_computed_by_the_steps() -> None:
    """A counter that one arc adds to and another takes from: it ends at level 0, as a pushdown automaton would."""
    up, down = Binary("+", Held(COUNTER), Constant(1)), Binary("-", Held(COUNTER), Constant(1))
    machine = machine_of(
        STOCK,
        3,
        [
            step(0, 1, A),
            step(1, 1, A, moves={COUNTER: up}, inhibits=True),
            step(1, 2, B, moves={COUNTER: down}, inhibits=True),
            step(2, 2, B, moves={COUNTER: down}, inhibits=True),
        ],
        [EVERYTHING, NO_EVENT, NO_EVENT],
        {2},
        "partition",
    )
    machine.final_checks[2] = (Binary("=", Held(COUNTER), Constant(0)),)
    assert found(machine, "AAABBB") == [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4], [2, 3]]


def test_a_register_holds_values_of_one_kind() -> None:
    """A float is nothing for a register of whole numbers; whole numbers become floats."""
    world = machine_world(Random(0))
    machine = machine_of(
        STOCK,
        3,
        [step(0, 1, A), step(1, 2, B, moves={COUNTER: Y}), step(2, 2, B, Binary("=", Held(COUNTER), X))],
        [EVERYTHING] * 3,
        {2},
        "nothing",
    )
    with pytest.raises(QueryError) as error:
        Matcher(plan_of(machine)).push(world.table())
    assert error.value.code == "ACEP-Q913"


def test_a_run_that_a_kill_step_takes_away_sooner_is_not_the_better_one() -> None:
    """Low values go further on one step and are killed by another: for points neither run may be dropped."""
    above, kept = Binary(">", X, Held(TOP)), {"moves": {TOP: Held(TOP)}}
    machine = machine_of(
        STOCK,
        4,
        [step(0, 1, A), step(1, 2, B, above, **kept), step(2, None, C, above), step(2, 3, B, **kept)],
        [EVERYTHING] * 4,
        {3},
        "nothing",
    )
    assert found(machine, "AABCB", (5, 1, 9, 3, 0)) == [[0, 2, 4]]
    rows = [
        {"ts": n, "type": t, "x": x, "y": 0.0, "kind": t, "key": "k"}
        for n, (t, x) in enumerate(zip("AABCB", (5, 1, 9, 3, 0), strict=True))
    ]
    points = Matcher(plan_of(machine), output="points").push(MachineWorld(machine, tuple(rows), 100).table())
    assert points["row"].to_pylist() == [4]
