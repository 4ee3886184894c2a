"""The automaton as a diagram: Mermaid, DOT or JSON; text that we write ourselves, no program is needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from acep_approx.automaton.algebra_words import edges, kept_sets, places, stream_of
from acep_approx.automaton.automaton import START, Arc, Automaton
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.words import (
    arc_text,
    end_tests,
    ignore_text,
    letter_text,
    letters_text,
    register_text,
    state_names,
    step_moves,
    step_tests,
    strategy_of,
)
from acep_approx.errors import UsageError
from acep_approx.query.printer import to_text

FORMATS = ("text", "mermaid", "dot", "json", "air")


Style = Literal["plain", "missing", "filter", "rebind", "kill"]
"""How an arc is drawn: one on which something is missing, and the edges of queries in CEL."""
_MERMAID: dict[Style, str] = {"plain": "-->", "missing": "-.->", "filter": "-.->", "rebind": "==>", "kill": "--x"}
_DOT: dict[Style, str] = {
    "plain": "",
    "missing": ", style=dashed",
    "filter": ", style=dotted",
    "rebind": ", style=bold",
    "kill": ", style=dashed, arrowhead=tee",
}


@dataclass(frozen=True)
class _Drawing:
    """Texts and kinds of the states, and of the arcs: source, target, text, style."""

    states: list[tuple[str, bool]]
    arcs: list[tuple[int, int, str, Style]]


def draw(automaton: Automaton | RegisterAutomaton, format: str) -> str:  # noqa: A002  (as on the command line)
    """Draw the automaton.

    Parameters
    ----------
    automaton : Automaton or RegisterAutomaton
        Of a register automaton also what the states remember, and the conditions on the arcs.
    format : {"mermaid", "dot", "json"}

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
    drawings = {"mermaid": _mermaid, "dot": _dot}
    if format not in drawings:
        raise UsageError(f"there is no format {format!r}", code="ACEP-U003", hint="choose one of " + ", ".join(FORMATS))
    return drawings[format](_picture(automaton))


def _picture(automaton: Automaton | RegisterAutomaton) -> _Drawing:
    if isinstance(automaton, Automaton):
        ends = {state: _end(automaton, state) for state in range(automaton.size)}
        return _Drawing(
            [(automaton.names[state] + text, is_free) for state, (text, is_free) in ends.items()],
            [(arc.source, arc.target, arc_text(automaton, arc), _style(arc)) for arc in automaton.arcs],
        )
    if automaton.query.is_algebra:
        return _algebra(automaton)
    inner = automaton.automaton
    states = []
    for number, (name, state) in enumerate(zip(state_names(automaton), automaton.states, strict=True)):
        text, is_free = _end(inner, state.position, end_tests(automaton, number))
        kept = [register_text(register) for register in automaton.live[number]]
        states.append((name + text + (f": {', '.join(kept)}" if kept else ""), is_free))
    arcs: list[tuple[int, int, str, Style]] = []
    for step in automaton.steps:
        if step.arc is None or step.target is None:
            killed = letter_text(automaton.letters[step.letter])
            arcs.append((step.source, len(states), " and ".join([killed, *step_tests(automaton, step)]), "plain"))
            continue
        arc = inner.arcs[step.arc]
        text, moves = arc_text(inner, arc, step_tests(automaton, step)), step_moves(automaton, step)
        text += f" / {', '.join(moves)}" if moves else ""
        arcs.append((step.source, step.target, text, _style(arc)))
    if any(step.target is None for step in automaton.steps):
        states.append(("no more", False))
    return _Drawing(states, arcs)


def _style(arc: Arc) -> Style:
    return "missing" if arc.cost else "plain"


def _algebra(registers: RegisterAutomaton) -> _Drawing:
    """The automaton of a query in CEL: filter edges dotted, rebind edges bold, kill edges to a state of their own."""
    states: list[tuple[str, bool]] = []
    arcs: list[tuple[int, int, str, Style]] = []
    for number, place in enumerate(places(registers)):
        waits = f" ({place.operator}): waits for {place.waits_for}" if place.operator else ""
        kept = f"; {', '.join(place.kept)}" if place.kept else ""
        states.append((f"{place.name}{waits}{kept}", number == len(registers.states) - 1))
        takes = [stream_of(registers, step) for step in registers.steps if step.source == number][:1]
        for edge in edges(registers, number):
            asked = " and ".join([*(takes if number == START else ()), *edge.conditions])
            is_asked = edge.kind == "filter" or edge.unless
            beside = f"unless {' and '.join(edge.unless) or 'one comes'}" if is_asked else ""
            sets = ", ".join(f"{name} = {value}" for name, value in kept_sets(registers, edge))
            said = " ".join(part for part in (asked, beside) if part)
            text = f"{edge.kind}: {said or 'any event'}{f' / {sets}' if sets else ''}"
            target = len(registers.states) if edge.target is None else edge.target
            arcs.append((number, target, text, "plain" if edge.kind == "forward" else edge.kind))
    if any(style == "kill" for *_, style in arcs):
        states.append(("no more", False))
    return _Drawing(states, arcs)


def _end(automaton: Automaton, state: int, tests: tuple[str, ...] = ()) -> tuple[str, bool]:
    """What there is to say of a match that ends at a state, and whether it ends there at no cost."""
    finals = [final for final in automaton.finals if final.state == state]
    if not finals:
        return "", False
    first = finals[0]
    said = [" and ".join(tests)] if tests else []
    if first.guard:
        said.append(f"no {letters_text(automaton, first.guard)} after")
    text = f"end{f': +{first.cost}' if first.cost else ''}{' if ' if said else ''}{' and '.join(said)}"
    return (f" ({text})" if first.cost or said else ""), first.cost == 0


def _mermaid(picture: _Drawing) -> str:
    lines = ["flowchart LR"]
    for state, (text, ends) in enumerate(picture.states):
        left, right = ("(((", ")))") if ends else ("((", "))")
        lines.append(f'  s{state}{left}"{_escaped(text)}"{right}')
    for source, target, text, style in picture.arcs:
        lines.append(f'  s{source} {_MERMAID[style]}|"{_escaped(text)}"| s{target}')
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """For Mermaid's quoted text."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")


def _dot(picture: _Drawing) -> str:
    lines = ["digraph automaton {", "  rankdir=LR;", "  node [shape=circle];"]
    for state, (text, ends) in enumerate(picture.states):
        lines.append(f"  s{state} [label={json.dumps(text)}{', shape=doublecircle' if ends else ''}];")
    for source, target, text, style in picture.arcs:
        lines.append(f"  s{source} -> s{target} [label={json.dumps(text)}{_DOT[style]}];")
    return "\n".join([*lines, "}"])


def _data(automaton: Automaton | RegisterAutomaton) -> dict[str, Any]:
    """The automaton as values that JSON has."""
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
    """What a register automaton has instead, and beside."""
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
