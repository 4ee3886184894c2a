"""An automaton written by hand as a graph to be drawn, finished or not."""

from __future__ import annotations

from acep_approx.diagrams.graph import Edge, Graph, Node
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import Machine, MachineArc


def machine_graph(machine: Machine) -> Graph:
    """States in the order in which arcs name them, arcs with their conditions, and what states pass over.

    Parameters
    ----------
    machine : Machine
        May have no arcs yet, and no final states.
    """
    states = [*dict.fromkeys(name for arc in machine.arcs for name in (arc.source, arc.target))]
    number = {name: f"s{i}" for i, name in enumerate(states)}
    passed: dict[str, list[str]] = {}
    for rule in machine.ignores:
        said = _asked(rule.type, None if rule.when is None else to_text(rule.when))
        for name in rule.states:
            passed.setdefault(name, []).append(said)
    nodes = [
        Node(
            number[name],
            name,
            "end" if name in machine.finals else "state",
            passes=" or ".join(passed.get(name, ())),
            is_start=name == machine.start,
        )
        for name in states
    ]
    return Graph("automaton", nodes, [Edge(number[arc.source], number[arc.target], _said(arc)) for arc in machine.arcs])


def _said(arc: MachineArc) -> str:
    what = {"on": arc.type or "ANY", "epsilon": "EPSILON", "timeout": "TIMEOUT"}[arc.kind]
    sets = ", ".join(f"{one.register} = {to_text(one.value)}" for one in arc.sets)
    return _asked(what, None if arc.when is None else to_text(arc.when)) + (f" / {sets}" if sets else "")


def _asked(what: str | None, when: str | None) -> str:
    return f"{what or 'ANY'} and {when}" if when else what or "ANY"
