"""The automaton as a diagram: Mermaid, DOT or JSON; text that we write ourselves, no program is needed."""

from __future__ import annotations

import json

from acep_approx.automaton.automaton import START, Arc, Automaton, Letter
from acep_approx.errors import UsageError
from acep_approx.query.printer import to_text

FORMATS = ("text", "mermaid", "dot", "json")


def draw(automaton: Automaton, format: str) -> str:  # noqa: A002  (as on the command line)
    """Draw the automaton.

    Parameters
    ----------
    automaton : Automaton
    format : {"mermaid", "dot", "json"}

    Returns
    -------
    str

    Raises
    ------
    UsageError
        No such format.
    """
    drawings = {"mermaid": _mermaid, "dot": _dot, "json": _json}
    if format not in drawings:
        raise UsageError(
            f"there is no format {format!r}", code="ACEP-U003", hint="choose one of " + ", ".join(FORMATS)
        )
    return drawings[format](automaton)


def letter_text(letter: Letter) -> str:
    """A letter for people: ``DEP and delay_min > 15``."""
    parts = [letter.type or "ANY", *(to_text(condition) for condition in letter.conditions)]
    return " and ".join(parts)


def _arc_text(automaton: Automaton, arc: Arc) -> str:
    text = letter_text(automaton.letters[arc.letter])
    if arc.guard:
        text += " if no " + ", ".join(letter_text(automaton.letters[j]) for j in sorted(arc.guard)) + " since"
    if arc.cost:
        text += f" [{' '.join(arc.skipped)} missing: +{arc.cost}]"
    return text


def _ends(automaton: Automaton) -> dict[int, int]:
    return {final.state: final.cost for final in reversed(automaton.finals)}


def _state_text(automaton: Automaton, state: int) -> str:
    cost = _ends(automaton).get(state)
    return automaton.names[state] + ("" if not cost else f" (end: +{cost})")


def _mermaid(automaton: Automaton) -> str:
    ends = _ends(automaton)
    lines = ["flowchart LR"]
    for state in range(automaton.size):
        text = _escaped(_state_text(automaton, state))
        left, right = ("(((", ")))") if ends.get(state) == 0 else ("((", "))")
        lines.append(f'  s{state}{left}"{text}"{right}')
    for arc in automaton.arcs:
        line = "-.->" if arc.cost else "-->"
        lines.append(f'  s{arc.source} {line}|"{_escaped(_arc_text(automaton, arc))}"| s{arc.target}')
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """For Mermaid's quoted text."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")


def _dot(automaton: Automaton) -> str:
    ends = _ends(automaton)
    lines = ["digraph automaton {", "  rankdir=LR;", "  node [shape=circle];"]
    for state in range(automaton.size):
        shape = ", shape=doublecircle" if ends.get(state) == 0 else ""
        lines.append(f"  s{state} [label={json.dumps(_state_text(automaton, state))}{shape}];")
    for arc in automaton.arcs:
        style = ", style=dashed" if arc.cost else ""
        label = json.dumps(_arc_text(automaton, arc))
        lines.append(f"  s{arc.source} -> s{arc.target} [label={label}{style}];")
    return "\n".join([*lines, "}"])


def _json(automaton: Automaton) -> str:
    value = {
        "start": START,
        "errors": automaton.errors,
        "letters": [letter_text(letter) for letter in automaton.letters],
        "variables": list(automaton.variables),
        "states": list(automaton.names),
        "arcs": [
            {
                "source": arc.source,
                "target": arc.target,
                "letter": arc.letter,
                "variable": automaton.variables[arc.label],
                "cost": arc.cost,
                "missing": list(arc.skipped),
                "guard": sorted(arc.guard),
            }
            for arc in automaton.arcs
        ],
        "finals": [{"state": f.state, "cost": f.cost, "missing": list(f.skipped)} for f in automaton.finals],
        "fingerprint": automaton.fingerprint(),
    }
    return json.dumps(value, indent=2)
