"""The automaton of a query in CEL as data: the AIR of Cayuga, as JSON.

Source: Demers et al., CIDR 2007, section 4.3: the Automaton Internal Representation between the compiler of queries and
the engine. Theirs is XML; here it is for people and programs that look at a query, and nothing reads it back.
"""

from __future__ import annotations

import json
from typing import Any

from acep_approx.automaton.algebra_words import Edge, Place, edges, places, stream_of, streams_read, thresholds
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.errors import UsageError
from acep_approx.planning.planner import UNBOUNDED, Plan

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
        "states": [_state(registers, states, number) for number in range(len(states))],
    }


def _state(registers: RegisterAutomaton, states: list[Place], number: int) -> dict[str, Any]:
    state = states[number]
    steps = [step for step in registers.steps if step.source == number]
    return {
        "name": state.name,
        "operator": state.operator,
        "input": stream_of(registers, steps[0]) if steps else None,
        "schema": list(state.schema),
        "kept": list(state.kept),
        "bounds": list(thresholds(registers, number)) if state.operator is not None else [],
        "edges": [_edge(states, edge) for edge in edges(registers, number)],
    }


def _edge(states: list[Place], edge: Edge) -> dict[str, Any]:
    return {
        "kind": edge.kind,
        "target": None if edge.target is None else states[edge.target].name,
        "conditions": list(edge.conditions),
        "unless": list(edge.unless),
        "sets": dict(edge.sets),
    }
