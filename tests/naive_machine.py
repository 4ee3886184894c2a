"""Brute force for register automata that are made by hand: every run by itself, event by event, in plain Python.

It shares the description of the automaton with the engine and nothing else: no liveness, no merging, no tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register
from acep_approx.automaton.states import Running, Step
from acep_approx.query.syntax import Attribute, Constant
from tests.naive_expressions import value_of

Row = Mapping[str, Any]
Bound = tuple[tuple[int, str], ...]
Values = dict[Register, Any]


@dataclass(frozen=True)
class Run:
    """A run: where it stands, the events it has bound, and what it has computed."""

    state: int
    bound: Bound
    values: Values


def machine_matches(
    machine: RegisterAutomaton, rows: Sequence[Row], window: int, key: str | None = None
) -> set[Bound]:
    """What a machine finds: the bound rows with their variables, earliest first.

    Parameters
    ----------
    machine : RegisterAutomaton
        As it was made: not completed.
    rows : sequence of dict
        In order of their ``ts``.
    window : int
        In ticks.
    key : str, optional
        Events of a match agree in this attribute.
    """
    found: set[Bound] = set()
    for value in dict.fromkeys(row[key] for row in rows) if key else [None]:
        found |= _of_key(machine, rows, window, [key is None or row[key] == value for row in rows])
    return found


def _of_key(machine: RegisterAutomaton, rows: Sequence[Row], window: int, is_mine: list[bool]) -> set[Bound]:
    runs: list[Run] = []
    found: set[Bound] = set()
    for number, row in enumerate(rows):
        if not is_mine[number]:
            if machine.counted == "stream":
                runs = [run for run in runs if machine.ignores[run.state].letters is None]
            continue
        runs = [run for run in runs if rows[run.bound[0][0]]["ts"] >= row["ts"] - window]
        children = [child for run in [Run(0, (), {}), *runs] for child in _children(machine, run, number, row, rows)]
        runs = [run for run in runs if _stays(machine, run, row, rows)] + children
        found |= {child.bound for child in children if _accepts(machine, child, rows)}
    return found


def _holds(machine: RegisterAutomaton, letter: int, row: Row) -> bool:
    wanted = machine.letters[letter]
    plain = {Attribute(None, None, name): value for name, value in row.items()}
    return wanted.type in (None, row["type"]) and all(value_of(one, plain) is True for one in wanted.conditions)


def _open(machine: RegisterAutomaton, run: Run, step: Step, row: Row, rows: Sequence[Row]) -> bool:
    if step.source != run.state or not _holds(machine, step.letter, row):
        return False
    return all(_value(machine, run, step, check, row, rows) is True for check in step.checks)


def _children(
    machine: RegisterAutomaton, run: Run, number: int, row: Row, rows: Sequence[Row]
) -> list[Run]:
    found = []
    for step in machine.steps:
        if step.target is not None and _open(machine, run, step, row, rows):
            values = {one.register: _becomes(machine, run, step, one.register, row, rows) for one in machine.computed}
            found.append(Run(step.target, (*run.bound, (number, str(step.binding.variable))), values))
    return found


def _stays(machine: RegisterAutomaton, run: Run, row: Row, rows: Sequence[Row]) -> bool:
    ignore = machine.ignores[run.state]
    if any(step.inhibits and _open(machine, run, step, row, rows) for step in machine.steps):
        return False
    if not any(_holds(machine, letter, row) for letter in range(len(machine.letters))):
        return ignore.letters is None
    passes = ignore.letters is None or any(_holds(machine, letter, row) for letter in ignore.letters)
    return passes and all(_value(machine, run, None, check, row, rows) is True for check in ignore.checks)


def _accepts(machine: RegisterAutomaton, run: Run, rows: Sequence[Row]) -> bool:
    last = rows[run.bound[-1][0]]
    ends = any(final.state == machine.states[run.state].position for final in machine.automaton.finals)
    return ends and all(_value(machine, run, None, one, last, rows) is True for one in machine.final_checks[run.state])


def _becomes(
    machine: RegisterAutomaton, run: Run, step: Step, register: Register, row: Row, rows: Sequence[Row]
) -> Any:
    """What a step makes of a register that is computed."""
    declared = next(one for one in machine.computed if one.register == register)
    if register in step.moves:
        value = _value(machine, run, step, step.moves[register], row, rows)
    elif run.state == 0:
        value = _value(machine, run, step, declared.init, row, rows)
    elif declared.update is not None:
        value = _value(machine, run, step, declared.update, row, rows)
    else:
        value = run.values[register]
    return float(value) if register.holds == "float" and value is not None else value


def _value(
    machine: RegisterAutomaton, run: Run, step: Step | None, node: Any, row: Row, rows: Sequence[Row]
) -> Any:
    return value_of(_grounded(machine, run, step, node, row, rows), {})


def _grounded(
    machine: RegisterAutomaton, run: Run, step: Step | None, node: Any, row: Row, rows: Sequence[Row]
) -> Any:
    """The expression with constants in the places of all that run and event know."""
    if isinstance(node, Own):
        return Constant(value_of(node.value, {Attribute(None, None, name): value for name, value in row.items()}))
    if isinstance(node, Held) and node.updated and step is not None:
        return Constant(_becomes(machine, run, step, node.register, row, rows))
    if isinstance(node, Held):
        return Constant(_held(machine, run, node.register, row, rows))
    if isinstance(node, Running):
        before, value = (_value(machine, run, step, part, row, rows) for part in (node.before, node.value))
        return Constant(_running(node.function, before, value))
    changed = {part.name: getattr(node, part.name) for part in fields(node)}
    parts = {name: part for name, part in changed.items() if is_dataclass(part)}
    return replace(node, **{name: _grounded(machine, run, step, part, row, rows) for name, part in parts.items()})


def _held(machine: RegisterAutomaton, run: Run, register: Register, row: Row, rows: Sequence[Row]) -> Any:
    if register.kind == "computed":
        if run.state == 0:  # nothing has been bound: what it begins as
            declared = next(one for one in machine.computed if one.register == register)
            return _value(machine, run, None, declared.init, row, rows)
        return run.values[register]
    assert register.kind == "last"
    assert register.of is not None
    of_variable = [rows[at] for at, variable in run.bound if variable == register.variable]
    return value_of(register.of, {Attribute(None, None, name): value for name, value in of_variable[-1].items()})


def _running(function: str, before: Any, value: Any) -> Any:
    if function == "count":
        return before + 1
    if before is None or value is None:
        return value if before is None else before
    return {"sum": before + value if not isinstance(value, str) else None, "min": min(before, value)}.get(
        function, max(before, value)
    )
