"""The plan of a query in CEL in words, and its automaton as data: the AIR of Cayuga, as JSON.

In words: its states and edges, what runs wait for, and whether anything ends them.

Source: Demers et al., CIDR 2007, section 4.3: the Automaton Internal Representation between the compiler of queries and
the engine. Theirs is XML; here it is for people and programs that look at a query, and nothing reads it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.words import (
    Edge,
    Place,
    computes,
    edges,
    kept_sets,
    places,
    stream_of,
    streams_read,
    thresholds,
)
from acep_approx.errors import UsageError
from acep_approx.kernels.runs.pools import COLUMNS
from acep_approx.planning.explain import few, section
from acep_approx.planning.planner import UNBOUNDED, Plan
from acep_approx.query.printer import to_text
from acep_approx.visible import printable

FORMAT = 1


def air_text(plan: Plan) -> str:
    """The automaton of a query in CEL as JSON, indented; the same for the same query.

    Raises
    ------
    UsageError
        ``ACEP-U075``: the query is not in CEL.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> state = json.loads(air_text(compile_query("FROM A NEXT{$2.x > $1.x} A WITHIN 5").plan))["states"][1]
    >>> [(edge["kind"], edge["conditions"], edge["unless"]) for edge in state["edges"]]
    [('filter', [], ['$2.x > $1.x']), ('forward', ['$2.x > $1.x'], [])]
    """
    return json.dumps(air(plan), indent=2, ensure_ascii=False)


def air(plan: Plan) -> dict[str, Any]:
    """The automaton of a query in CEL as plain values; see ``air_text``.

    In a set a query may ask for attributes that are known with the first events only: then ``streams`` and ``schema``
    are None, and there are no ``states``.
    """
    registers = plan.registers
    if registers is None or not plan.query.is_algebra:
        raise UsageError(
            "the format 'air' has the schemas and edges of queries in CEL, and this query is a pattern",
            code="ACEP-U075",
            hint="choose json (--format json), which has the automaton of any query",
        )
    window = plan.query.window
    is_known = (
        registers.query.pattern == plan.query.pattern
    )  # else it waits for attributes of streams that others publish
    states = places(registers) if is_known else []
    return {
        "air": FORMAT,
        "query": str(plan.query.pattern.text),  # type: ignore[union-attr]
        "publish": plan.query.publish,
        "window": None if window.unit == UNBOUNDED else {"amount": window.amount, "unit": window.unit},
        "fingerprint": plan.fingerprint(),
        "streams": {one: list(names) for one, names in streams_read(registers).items()} if is_known else None,
        "schema": list(states[-1].schema) if is_known else None,
        "states": [_state_data(registers, states, number) for number in range(len(states))],
    }


def _state_data(registers: RegisterAutomaton, states: list[Place], number: int) -> dict[str, Any]:
    state = states[number]
    steps = registers.leaving(number)
    return {
        "name": state.name,
        "operator": state.operator,
        "input": stream_of(registers, steps[0]) if steps else None,
        "schema": list(state.schema),
        "kept": list(state.kept),
        "bounds": list(thresholds(registers, number)) if state.operator is not None else [],
        "edges": [
            {
                "kind": edge.kind,
                "target": None if edge.target is None else states[edge.target].name,
                "conditions": list(edge.conditions),
                "unless": list(edge.unless),
                "sets": dict(edge.sets),
            }
            for edge in edges(registers, number)
        ],
    }


NO_STATES = 2
"""States of an automaton that remembers nothing: its start and its end."""
_NAMED = "(SELECT *, 1.05 * price AS bound FROM ..)"


def explain_algebra(plan: Plan) -> str:
    """The plan of a query in CEL in words.

    Parameters
    ----------
    plan : Plan

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> text = explain_algebra(compile_query("FROM A NEXT{$2.x > $1.x} A WITHIN 5").plan)
    >>> [line.strip() for line in text.splitlines() if "unless" in line or "forward to end" in line]
    ['filter: stays there, unless $2.x > $1.x', 'forward to end: $2.x > $1.x; x_1 = $1.x, x = $2.x']
    """
    registers = plan.registers
    assert registers is not None, "the runs engine has them"
    states = places(registers)
    waiting = [state for state in states if state.operator is not None]
    streams = (f"{one}: {', '.join(names) or 'no attribute'}" for one, names in streams_read(registers).items())
    own = "which every operator asks to be the same: a run meets only events of its own"
    split = [] if plan.implied_key is None else [f"split by {plan.implied_key}, {own}"]
    sections = [
        ("engine", [f"{plan.engine} (exact)", "because the cells cannot answer CEL"]),
        ("window", [_window(plan)]),
        ("streams", [*few(streams), *split]),
        ("states", [line for number, state in enumerate(states) for line in _state(registers, states, number, state)]),
        *([("merging", ["equal runs that one event brings are one, which counts for all (times)"])] if waiting else []),
        ("work", [plan.cost.work, *_looked_at(registers, states)]),
        ("memory", [_memory(plan, registers)]),
    ]
    lines = [line for label, texts in sections for line in section(label, texts)]
    advice = (f"advice   {note}" for note in _advice(plan, registers, states))
    return printable("\n".join([to_text(plan.query), "", *lines, *advice]))


def _advice(plan: Plan, registers: RegisterAutomaton, states: list[Place]) -> Iterator[str]:
    yield from advice_on_windows(plan)
    for number, state in enumerate(states):
        if state.operator is None or thresholds(registers, number):
            continue
        for test in thresholds(registers, number, computed=True):
            yield (
                f"{test} is computed for each run at {state.name}: with a name for what it computes, as in "
                f"{_NAMED} {state.operator}, an event looks only at runs whose bound it passes"
            )


def advice_on_windows(plan: Plan) -> list[str]:
    """That nothing ends the runs of a query, where that is so, and what to do about it."""
    if not plan.is_unbounded:
        return []
    assert plan.registers is not None, "the runs engine has them"
    waiting = [state for state in places(plan.registers) if state.operator is not None]
    some = " and ".join(f"{state.name} for {state.waits_for}" for state in waiting)
    note = (
        f"there is no window: a run that waits at {some} stays until an event takes it on or ends it, for ever if none "
        "does, and memory grows; WITHIN 10 min behind FROM, or FILTER{DUR <= 10 min} around it all, lets it go"
    )
    return [note]


def _window(plan: Plan) -> str:
    if plan.is_unbounded:
        return "none: no run leaves because of its age"
    if plan.automaton.size == NO_STATES:
        return "none is needed: nothing waits"
    return f"results last at most {to_text(plan.query.window)}"


def _state(registers: RegisterAutomaton, states: list[Place], number: int, state: Place) -> Iterator[str]:
    holds = f"; remembers {', '.join(state.kept)}" if state.operator else ""
    if state.operator is not None:
        yield f"{state.name} ({state.operator}) waits for {state.waits_for}{holds}"
    elif number == START:
        yield "start"
    else:
        yield f"end: results have {', '.join(state.schema) or 'no attribute'}"
    steps = registers.leaving(number)
    for edge in edges(registers, number):
        takes = f"{stream_of(registers, steps[0])}" if number == START else ""
        yield f"  {_edge(registers, states, edge, takes)}"


def _edge(registers: RegisterAutomaton, states: list[Place], edge: Edge, takes: str) -> str:
    asked = " and ".join((*([takes] if takes else []), *edge.conditions))
    if edge.kind == "filter":
        return f"filter: stays there, unless {' and '.join(edge.unless) or 'one comes'}"
    if edge.kind == "kill":
        beside = f", unless {' and '.join(edge.unless)}" if edge.unless else ""
        return f"kill: ends at {asked or 'any event'}{beside}"
    assert edge.target is not None, "only a kill edge leads nowhere"
    sets = ", ".join(f"{one} = {value}" for one, value in kept_sets(registers, edge))
    target = states[edge.target].name
    name = f"rebind {target}" if edge.kind == "rebind" else f"forward to {target}"
    return f"{name}: {asked or 'any event'}{f'; {sets}' if sets else ''}"


def _looked_at(registers: RegisterAutomaton, states: list[Place]) -> Iterator[str]:
    """Which runs an event is held against."""
    for number, state in enumerate(states):
        if state.operator is not None:
            waits = " or ".join(thresholds(registers, number))
            beside = " of fractions" if computes(registers, number) else ""  # whole numbers may overflow
            which = f"only those that it can take by {waits}, if these are numbers{beside}" if waits else "all"
            yield f"of the runs at {state.name} an event of {state.waits_for} looks at {which}"


def _memory(plan: Plan, registers: RegisterAutomaton) -> str:
    if len(registers.states) == NO_STATES:
        return "none: nothing waits"
    shortest, widest = 8 * COLUMNS, 8 * (COLUMNS + max(map(len, registers.live)))
    sizes = f"{shortest} to {widest} bytes per run, no links between events"
    return f"{'not bounded' if plan.is_unbounded else 'bounded by the window'}: {sizes}"
