"""The automaton as a diagram: SVG, Mermaid, DOT or JSON, all from one graph; no program is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from acep_approx.automaton.automaton import START, Arc, Automaton
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.words import (
    arc_text,
    edges,
    end_tests,
    ignore_text,
    kept_sets,
    letter_text,
    letters_text,
    places,
    register_text,
    state_names,
    step_moves,
    step_tests,
    strategy_of,
    stream_of,
)
from acep_approx.diagrams.graph import Edge, EdgeKind, Graph, Node
from acep_approx.diagrams.svg import WRITERS
from acep_approx.errors import UsageError
from acep_approx.query.printer import to_text

EVERY_EVENT = "every event"
FORMATS = ("text", "mermaid", "dot", "svg", "json", "air")


def draw(automaton: Automaton | RegisterAutomaton, format: str) -> str:  # noqa: A002  (as on the command line)
    """Draw the automaton.

    Parameters
    ----------
    automaton : Automaton or RegisterAutomaton
        Of a register automaton also what the states remember, and the conditions on the arcs.
    format : {"mermaid", "dot", "svg", "json"}

    Returns
    -------
    str

    Raises
    ------
    UsageError
        No such format.
    """
    if format == "json":
        return json.dumps(_data(automaton), indent=2)
    if format not in WRITERS:
        raise UsageError(f"there is no format {format!r}", code="ACEP-U003", hint="choose one of " + ", ".join(FORMATS))
    return WRITERS[format](graph_of(automaton))


def graph_of(automaton: Automaton | RegisterAutomaton) -> Graph:
    """The automaton as a graph to be drawn: states, arcs, and what is said of them."""
    if isinstance(automaton, Automaton):
        states = [
            _state(number, automaton.names[number], _end(automaton, number), (), EVERY_EVENT)
            for number in range(automaton.size)
        ]
        arcs = [_arc(arc.source, arc.target, arc_text(automaton, arc), _kind(arc)) for arc in automaton.arcs]
        return Graph("automaton", _waiting(states, arcs), arcs)
    return _algebra(automaton) if automaton.query.is_algebra else _registers(automaton)


def _registers(automaton: RegisterAutomaton) -> Graph:
    inner = automaton.automaton
    states = []
    for number, (name, state) in enumerate(zip(state_names(automaton), automaton.states, strict=True)):
        kept = tuple(register_text(register) for register in automaton.live[number])
        end = _end(inner, state.position, end_tests(automaton, number)) if state.ends else ("", False)
        states.append(_state(number, name, end, kept, ignore_text(automaton, number)))
    arcs = []
    for step in automaton.steps:
        if step.arc is None or step.target is None:
            killed = letter_text(automaton.letters[step.letter])
            said = " and ".join([killed, *step_tests(automaton, step)])
            arcs.append(_arc(step.source, len(states), said, "plain"))
            continue
        arc = inner.arcs[step.arc]
        text, moves = arc_text(inner, arc, step_tests(automaton, step)), step_moves(automaton, step)
        text += f" / {', '.join(moves)}" if moves else ""
        arcs.append(_arc(step.source, step.target, text, _kind(arc)))
    gone = [_gone(len(states))] if any(step.target is None for step in automaton.steps) else []
    return Graph("automaton", [*_waiting(states, arcs), *gone], arcs)


def _algebra(registers: RegisterAutomaton) -> Graph:
    states, arcs = [], []
    for number, place in enumerate(places(registers)):
        waits = f" ({place.operator}): waits for {place.waits_for}" if place.operator else ""
        kept = f"; {', '.join(place.kept)}" if place.kept else ""
        notes = [f"{place.operator}: waits for {place.waits_for}"] if place.operator else []
        is_end = number == len(registers.states) - 1
        text = f"{place.name}{waits}{kept}"
        states.append(
            Node(
                f"s{number}",
                text,
                "end" if is_end else "state",
                place.name,
                (*notes, *place.kept),
                is_start=number == START,
            )
        )
        takes = [stream_of(registers, step) for step in registers.leaving(number)][:1]
        for edge in edges(registers, number):
            asked = " and ".join([*(takes if number == START else ()), *edge.conditions])
            is_asked = edge.kind == "filter" or edge.unless
            beside = f"unless {' and '.join(edge.unless) or 'one comes'}" if is_asked else ""
            sets = ", ".join(f"{name} = {value}" for name, value in kept_sets(registers, edge))
            said = " ".join(part for part in (asked, beside) if part)
            text = f"{edge.kind}: {said or 'any event'}{f' / {sets}' if sets else ''}"
            target = len(registers.states) if edge.target is None else edge.target
            arcs.append(_arc(number, target, text, "plain" if edge.kind == "forward" else edge.kind))
    gone = [_gone(len(states))] if any(arc.kind == "kill" for arc in arcs) else []
    return Graph("automaton", [*states, *gone], arcs)


def _state(number: int, name: str, end: tuple[str, bool], kept: tuple[str, ...], passes: str) -> Node:
    said, is_free = end
    text = name + (f" ({said})" if said else "") + (f": {', '.join(kept)}" if kept else "")
    notes = (*([said] if said else []), *kept)
    passes = "" if number == START or passes == "no event" else passes
    return Node(f"s{number}", text, "end" if is_free else "state", name, notes, passes, is_start=number == START)


def _gone(number: int) -> Node:
    return Node(f"s{number}", "no more", "gone")


def _arc(source: int, target: int, text: str, kind: EdgeKind) -> Edge:
    return Edge(f"s{source}", f"s{target}", text, kind)


def _kind(arc: Arc) -> EdgeKind:
    return "missing" if arc.cost else "plain"


def _waiting(states: list[Node], arcs: list[Edge]) -> list[Node]:
    """States; of those with nothing behind them it plays no role what passes by."""
    sources = {arc.source for arc in arcs}
    return [state if state.id in sources else replace(state, passes="") for state in states]


def _end(automaton: Automaton, state: int, tests: tuple[str, ...] = ()) -> tuple[str, bool]:
    finals = [final for final in automaton.finals if final.state == state]
    if not finals:
        return "", False
    first = finals[0]
    said = [" and ".join(tests)] if tests else []
    if first.guard:
        said.append(f"no {letters_text(automaton, first.guard)} after")
    text = f"end{f': +{first.cost}' if first.cost else ''}{' if ' if said else ''}{' and '.join(said)}"
    return (text if first.cost or said else ""), first.cost == 0


def _data(automaton: Automaton | RegisterAutomaton) -> dict[str, Any]:
    inner = automaton if isinstance(automaton, Automaton) else automaton.automaton
    value: dict[str, Any] = {
        "start": START,
        "errors": inner.errors,
        "letters": [letter_text(letter) for letter in inner.letters],
        "variables": list(inner.variables),
        "states": list(inner.names),
        "arcs": [
            {"source": arc.source, "target": arc.target, **_arc_data(inner, i)} for i, arc in enumerate(inner.arcs)
        ],
        "finals": [_final_data(inner, i, final.state) for i, final in enumerate(inner.finals)],
    }
    if isinstance(automaton, RegisterAutomaton):
        value |= _register_data(automaton)
    return value | {"fingerprint": inner.fingerprint()}


def _register_data(registers: RegisterAutomaton) -> dict[str, Any]:
    inner, states = registers.automaton, range(len(registers.states))
    has_names = registers.transfers or registers.query.is_algebra
    return {
        "states": state_names(registers),
        "registers": [[register_text(register) for register in live] for live in registers.live],
        "arcs": [
            {
                "source": step.source,
                "target": step.target,
                **(_arc_data(inner, step.arc) if step.arc is not None else {"letter": step.letter}),
                "tests": list(step_tests(registers, step)),
                **({"sets": list(step_moves(registers, step))} if has_names else {}),
                "inhibits": step.inhibits,
            }
            for step in registers.steps
        ],
        "finals": [
            {**_final_data(inner, i, number), "tests": list(end_tests(registers, number))}
            for number in states
            for i in registers.finals[number]
        ],
        "complete": [to_text(condition.expression) for condition in registers.filters],
        "strategy": strategy_of(registers),
        "ignores": [ignore_text(registers, number) for number in states],
    }


def _arc_data(automaton: Automaton, number: int) -> dict[str, Any]:
    arc = automaton.arcs[number]
    return {
        "letter": arc.letter,
        "variable": automaton.variables[arc.label],
        "cost": arc.cost,
        "missing": list(arc.skipped),
        "guard": sorted(arc.guard),
    }


def _final_data(automaton: Automaton, number: int, state: int) -> dict[str, Any]:
    final = automaton.finals[number]
    return {"state": state, "cost": final.cost, "missing": list(final.skipped), "guard": sorted(final.guard)}
