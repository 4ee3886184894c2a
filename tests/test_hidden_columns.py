"""What runs carry behind their registers, when steps are open, and functions that the kernel asks for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.arrays import Ints
from acep_approx.automaton.registers import RegisterAutomaton, Step
from acep_approx.automaton.resolve import Call, Held
from acep_approx.engines.runs.hidden import EARLIEST, RunOptions
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.errors import DataError
from acep_approx.kernels.runs import layout
from acep_approx.kernels.runs import pools as kp
from acep_approx.kernels.runs.scores import UNTESTED
from acep_approx.query.syntax import Binary, UserFunction
from tests.engine_driver import Driver

CHAINED = "PATTERN SEQ(A a, B b, C c) WHERE c.x = b.x WITHIN 100000"
ACROSS = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 30"


def stream(seed: int, events: int, values: int = 4) -> pa.Table:
    """Random events of three types."""
    dice = Random(seed)
    return pa.Table.from_pylist(
        [{"ts": 3 * i, "type": dice.choice("ABC"), "x": dice.randrange(values)} for i in range(events)]
    )


def all_of(driver: Driver) -> range:
    """The numbers of all its events."""
    return range(len(driver.grouped.slot))


@pytest.mark.parametrize("lists", [True, False])
def test_merged_runs_are_counted(lists: bool) -> None:
    """A hit stands for as many matches as runs were merged into it."""
    query, events = compile_query(CHAINED, engine="runs"), stream(1, 200)
    driver = Driver(query, events, options=RunOptions(counts_merged=True), lists=False)
    times = Counter[int]()
    for _, _, event, _, many in driver.run(all_of(driver)):
        times[event] += many
    listing = Driver(query, events)
    assert times == Counter(match[-1][0] for match in listing.run(all_of(listing)))
    assert driver.engine.control[layout.MERGED] > 0
    if lists:  # lineage changes how runs are merged, not how often
        driver = Driver(query, events, options=RunOptions(counts_merged=True))
        driver.run(all_of(driver))
        hits = driver.engine._hits[: layout.HIT * driver.engine.control[layout.HITS]].reshape(-1, layout.HIT)
        assert hits[:, layout.HIT_TIMES].sum() == sum(times.values())


def test_the_earliest_start_survives_merging() -> None:
    """A run keeps the earliest start of those that were merged into it; its own start is the latest."""
    query, events = compile_query(CHAINED, engine="runs"), stream(2, 200)
    driver = Driver(query, events, options=RunOptions(keeps_earliest=True), lists=False)
    driver.run(all_of(driver))
    engine, rows = driver.engine, events.to_pylist()
    column = engine.tables.hidden.columns.index(EARLIEST)
    first = next(row["ts"] for row in rows if row["type"] == "A")
    seen = 0
    table = engine.arena.rows
    for number, pool in enumerate(engine.tables.pools):
        live = driver.registers.live[pool.state]
        if number and live:  # after b: one run per value of b.x, of all that ever began
            base, room, runs = (int(table[number, word]) for word in (kp.BASE, kp.ROOM, kp.RUNS))
            at = base + (kp.COLUMNS + len(live) + column) * room
            assert engine.arena.words[at : at + runs].tolist() == [first] * runs
            assert np.all(engine.arena.words[base : base + runs] > first)
            seen += runs
    assert seen == 4


def test_births_are_run_steps_where_they_are_charged() -> None:
    """Each try to begin a run is a run-step then."""
    query, events = compile_query(ACROSS, engine="runs"), stream(3, 100)
    plain, charged = Driver(query, events), Driver(query, events, options=RunOptions(charges_births=True))
    assert plain.run(all_of(plain)) == charged.run(all_of(charged))
    births = sum(row["type"] == "A" for row in events.to_pylist())
    steps = [int(driver.engine.control[layout.DONE_STEPS]) for driver in (plain, charged)]
    assert steps[1] - steps[0] == births


def test_charged_births_stay_inside_the_budget() -> None:
    """Runs are tested first, births with what is left; what nothing was left for is counted as untested."""
    query, events = compile_query(ACROSS, engine="runs"), stream(3, 300)
    rate = 0.6
    shedding = FixedLoad(Shedding(None, Allowance(rate=rate, most=60.0, price=0.01)))
    driver = Driver(query, events, options=RunOptions(charges_births=True), shedding=shedding)
    free = Driver(query, events)
    found, all_matches = driver.run(all_of(driver)), free.run(all_of(free))
    births = sum(row["type"] == "A" for row in events.to_pylist())
    assert births + free.engine.control[layout.DONE_STEPS] > 2 * rate * len(events)
    assert rate * len(events) >= driver.engine.control[layout.DONE_STEPS] > 0
    assert shedding.arena.words[UNTESTED] > 0
    assert 0 < len(found) < len(all_matches)
    assert set(found) < set(all_matches)


def test_a_run_starts_when_its_event_says() -> None:
    """Where a column tells when events began, windows are counted from there."""
    query, events = compile_query(ACROSS, engine="runs"), stream(4, 200, values=50)
    driver = Driver(query, events)
    expected = driver.run(all_of(driver))
    driver = Driver(query, events)
    dice = Random(5)
    early = np.array([dice.randrange(20) for _ in range(len(events))])
    some = driver.events(all_of(driver))
    started = list(driver.found_in(replace(some, start=some.tick - early[some.row])))
    rows = events.to_pylist()
    kept = [m for m in expected if rows[m[-1][0]]["ts"] - rows[m[2][0]]["ts"] + early[m[2][0]] <= driver.window]
    assert sorted(started) == kept
    assert 0 < len(kept) < len(expected)


def test_a_step_has_a_lifetime() -> None:
    """A step is open from its first tick until before its last: what it binds lies there."""
    query, events = compile_query(ACROSS, engine="runs"), stream(6, 200)
    registers = query.plan.registers
    assert registers is not None
    arcs, variables = registers.automaton.arcs, registers.automaton.variables

    driver = Driver(query, events)
    every = driver.run(all_of(driver))
    ticks = sorted({3 * match[3][0] for match in every})
    first, until = ticks[len(ticks) // 4], ticks[len(ticks) // 2]  # matches bind events at both

    def changed(step: Step) -> Step:
        return replace(step, lifetime=(first, until)) if variables[arcs[step.arc].label] == "b" else step

    driver = Driver(query, events, replace(registers, steps=[changed(step) for step in registers.steps]))
    kept = [match for match in every if first <= 3 * match[3][0] < until]
    assert driver.run(all_of(driver)) == kept
    assert 0 < len(kept) < len(every)


def with_function(registers: RegisterAutomaton) -> RegisterAutomaton:
    """``c.x > b.x`` and ``b.x > a.x`` by a function: greater(own, held)."""

    def changed(step: Step) -> Step:
        checks: list[Any] = []
        for check in step.checks:
            assert isinstance(check, Binary)
            checks.append(Call("greater", (check.left, check.right)))
        return replace(step, checks=tuple(checks))

    return replace(registers, steps=[changed(step) for step in registers.steps])


def test_functions_are_called_once_per_block() -> None:
    """A function decides like an expression, gets columns as long as the block, and is called seldom."""
    query, events = compile_query(ACROSS, engine="runs"), stream(7, 400, values=50)
    calls: list[int] = []

    def greater(one: Ints, other: Ints) -> Ints:
        calls.append(len(one))
        return one > other

    registers = query.plan.registers
    assert registers is not None
    options = RunOptions(functions={"greater": UserFunction("greater", 1, "truth", greater)})
    plain, driver = Driver(query, events), Driver(query, events, with_function(registers), options)
    found = driver.run(all_of(driver))
    assert found == plain.run(all_of(plain))
    assert found
    assert len(calls) <= sum(row["type"] != "A" for row in events.to_pylist())
    assert max(calls) > 1


def test_a_function_gives_as_much_as_it_gets() -> None:
    """A result of another length is refused, and names the function."""
    query, events = compile_query(ACROSS, engine="runs"), stream(8, 50)
    registers = query.plan.registers
    assert registers is not None
    options = RunOptions(functions={"greater": UserFunction("greater", 1, "truth", lambda one, _: one[:0])})
    driver = Driver(query, events, with_function(registers), options)
    with pytest.raises(DataError, match="'greater'") as caught:
        driver.run(all_of(driver))
    assert caught.value.code == "ACEP-D203"


def test_functions_compute_registers_of_floats() -> None:
    """Arguments and results of a function may be floats."""
    events = stream(9, 300, values=50)
    events = events.append_column("f", pa.array([row["x"] / 8 for row in events.to_pylist()]))
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.f > a.f WITHIN 60", engine="runs")
    registers = query.plan.registers
    assert registers is not None

    def changed(step: Step) -> Step:
        if not step.checks:
            return step
        (check,) = step.checks
        return replace(step, checks=(Binary("<", Call("half", (check.right,)), Call("half", (check.left,))),))

    options = RunOptions(functions={"half": UserFunction("half", 1, "float", lambda some: some / 2)})
    plain = Driver(query, events)
    driver = Driver(query, events, replace(registers, steps=[changed(step) for step in registers.steps]), options)
    assert driver.run(all_of(driver)) == plain.run(all_of(plain)) != []


def test_registers_change_places_where_runs_go_on_themselves() -> None:
    """A step may give a register what another one held, also where no child is made of a run."""
    text = "PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity { c.x > a.x AND c.y > a.y } WITHIN 60"
    dice = Random(11)
    rows = [{"ts": i, "type": dice.choice("ABBC"), "x": dice.randrange(4), "y": dice.randrange(4)} for i in range(4000)]
    events, query = pa.Table.from_pylist(rows), compile_query(text, engine="runs")
    registers = query.plan.registers
    assert registers is not None

    def changed(step: Step) -> Step:
        held = registers.live[step.source]
        if step.source != step.target or len(held) != 2:
            return step
        one, other = held
        return replace(step, moves={one: Held(other), other: Held(one)})

    machine = replace(registers, steps=[changed(step) for step in registers.steps])
    free = Driver(compile_query(text.replace("c.x > a.x AND c.y > a.y", "a.x >= 0"), engine="runs"), events)
    expected = []
    for match in free.run(all_of(free)):
        first, last = rows[match[2][0]], rows[match[-1][0]]
        x, y = (first["x"], first["y"]) if len(match) % 2 else (first["y"], first["x"])  # 5: one b, none more
        if last["x"] > x and last["y"] > y:
            expected.append(match)
    for merging in ((), ("equal",)):
        driver = Driver(query, events, machine, merging=merging)
        assert driver.run(all_of(driver)) == expected
    assert expected
