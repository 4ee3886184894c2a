"""Shrink a world of an automaton that fails: leave out events, arcs, conditions and clauses while it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from acep_approx.errors import AcepError
from acep_approx.query.syntax import LISTS_ALL, Binary, Constant, Expression, Machine, QuerySyntax, Unary, Window
from tests.afa_worlds import AfaWorld, can_go_on, world_of

SHRINKING = 60
"""Seconds."""


def smallest(world: AfaWorld, fails: Callable[[AfaWorld], bool]) -> AfaWorld:
    """A world that fails like ``world``, of which nothing can be left out."""
    for smaller in smaller_worlds(world):
        if fails(smaller):
            return smallest(smaller, fails)
    return world


def smaller_worlds(world: AfaWorld) -> Iterator[AfaWorld]:
    """Worlds with one thing less, as far as the checks let them be."""
    for i in range(len(world.rows)):
        yield replace(world, rows=(*world.rows[:i], *world.rows[i + 1 :]))
    for query in smaller_queries(world.query):
        try:
            if isinstance(query.pattern, Machine) and can_go_on(query.pattern):
                yield world_of(query, world.rows)
        except AcepError:
            continue
    for i, row in enumerate(world.rows):
        for name in ("x", "y", "s", "g"):
            for value in (None, {"x": 1, "y": 1.0, "s": "u", "g": "p"}[name]):
                if row[name] is not None and row[name] != value:
                    yield replace(world, rows=(*world.rows[:i], {**row, name: value}, *world.rows[i + 1 :]))


def smaller_queries(query: QuerySyntax) -> Iterator[QuerySyntax]:
    """Queries with one clause, or one part of the machine, less."""
    assert isinstance(query.pattern, Machine)
    for i in range(len(query.outputs)):
        yield replace(query, outputs=(*query.outputs[:i], *query.outputs[i + 1 :]))
    yield from (replace(query, equivalences=query.equivalences[1:]),) if query.equivalences else ()
    yield from (replace(query, weights=query.weights[1:]),) if query.weights else ()
    yield from (replace(query, errors=query.errors - 1),) if query.errors else ()
    yield from (replace(query, selection=LISTS_ALL),) if query.selection.depends_on_order else ()
    yield from (replace(query, window=Window(100, "ticks")),) if query.window.unit == "events" else ()
    for machine in smaller_machines(query.pattern):
        yield replace(query, pattern=machine)


def smaller_machines(machine: Machine) -> Iterator[Machine]:
    """Machines with one part less, or a simpler one; no register is named that is not there."""
    for i, arc in enumerate(machine.arcs):
        others = machine.arcs[:i], machine.arcs[i + 1 :]
        yield replace(machine, arcs=(*others[0], *others[1]))
        changes = [replace(arc, sets=(*arc.sets[:j], *arc.sets[j + 1 :])) for j in range(len(arc.sets))]
        changes += [replace(arc, when=when) for when in smaller_conditions(arc.when)]
        changes += [replace(arc, variable=None)] if arc.variable else []
        yield from (replace(machine, arcs=(*others[0], changed, *others[1])) for changed in changes)
    for i, rule in enumerate(machine.ignores):
        rest = machine.ignores[:i], machine.ignores[i + 1 :]
        yield replace(machine, ignores=(*rest[0], *rest[1]))
        rules = [replace(rule, when=when) for when in smaller_conditions(rule.when)]
        rules += [replace(rule, states=tuple(s for s in rule.states if s != state)) for state in rule.states[1:]]
        yield from (replace(machine, ignores=(*rest[0], changed, *rest[1])) for changed in rules)
    for i in range(len(machine.finals) - 1):
        yield replace(machine, finals=(*machine.finals[:i], *machine.finals[i + 1 :]))
    is_set = {one.register for arc in machine.arcs for one in arc.sets}
    for register in machine.registers:
        others = tuple(one for one in machine.registers if one != register)
        yield replace(
            machine,
            registers=others,
            arcs=tuple(replace(a, sets=tuple(o for o in a.sets if o.register != register.name)) for a in machine.arcs),
        )
    if {register.name for register in machine.registers} - is_set:
        yield replace(machine, registers=tuple(one for one in machine.registers if one.name in is_set))


def smaller_conditions(condition: Expression | None) -> Iterator[Expression | None]:
    """None, or a part of a condition."""
    if condition is not None:
        yield None
    if isinstance(condition, Binary) and condition.op in ("AND", "OR"):
        yield from (condition.left, condition.right)
    if isinstance(condition, Unary) and condition.op == "NOT" and not isinstance(condition.operand, Constant):
        yield condition.operand


def holds_for(world: AfaWorld, check: Callable[[AfaWorld], object]) -> None:
    """Check a world; where the check fails, show the smallest world like it that fails too."""
    until = time.monotonic() + SHRINKING

    def fails(smaller: AfaWorld) -> bool:
        try:
            check(smaller)
        except Exception:  # noqa: BLE001  whatever it is, a smaller world shows it better
            return time.monotonic() < until
        return False

    try:
        check(world)
    except Exception as error:
        until = time.monotonic() + SHRINKING
        small = smallest(world, fails)
        try:
            check(small)
        except Exception as shown_better:
            shown_better.add_note(f"{small.text}\n{small.rows}\nexpected {small.expected()}")
            raise shown_better from None
        error.add_note(f"{world.text}\n{world.rows}")
        raise
