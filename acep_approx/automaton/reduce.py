"""Merge states that have the same future: fewer cells, and fewer states when the automaton is determinised.

Two states are merged when the same events lead from them to merged states at the same cost and they accept at
the same cost (bisimulation, by partition refinement; compare Kanellakis and Smolka 1983). The language does not
change: a test holds both automata against the oracle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from acep_approx.automaton.automaton import START, Arc, Automaton


def merge_equal_futures(automaton: Automaton) -> Automaton:
    """The smallest automaton whose states behave as those of ``automaton`` do; the start stays alone.

    Complexity: O(rounds x arcs), at most ``size`` rounds, in practice as many as the longest repeat.
    """
    block = _blocks(automaton)
    order = {b: i for i, b in enumerate(dict.fromkeys(block))}
    number = [order[b] for b in block]
    names: dict[int, list[str]] = {}
    for state, name in enumerate(automaton.names):
        names.setdefault(number[state], []).append(name)
    first = {number[state]: state for state in reversed(range(automaton.size))}
    arcs = (
        replace(arc, source=number[arc.source], target=number[arc.target])
        for arc in automaton.arcs
        if first[number[arc.source]] == arc.source
    )
    finals = (
        replace(final, state=number[final.state])
        for final in automaton.finals
        if first[number[final.state]] == final.state
    )
    return replace(
        automaton,
        size=len(order),
        arcs=tuple(_undominated(arcs)),
        finals=tuple(sorted(set(finals), key=lambda f: (f.state, f.cost, sorted(f.guard)))),
        names=tuple("|".join(dict.fromkeys(names[i])) for i in range(len(order))),
    )


def _blocks(automaton: Automaton) -> list[int]:
    """The coarsest stable partition: for each state the number of its block."""
    out: list[list[Arc]] = [[] for _ in range(automaton.size)]
    accepts: list[set[tuple[int, frozenset[int]]]] = [set() for _ in range(automaton.size)]
    for arc in automaton.arcs:
        out[arc.source].append(arc)
    for final in automaton.finals:
        accepts[final.state].add((final.cost, final.guard))
    seen: dict[object, int] = {}
    block = [
        seen.setdefault((state == START, frozenset(accepts[state])), len(seen)) for state in range(automaton.size)
    ]
    while True:
        seen = {}
        finer = [
            seen.setdefault(
                (block[s], frozenset((a.letter, a.label, block[a.target], a.cost, a.guard) for a in out[s])), len(seen)
            )
            for s in range(automaton.size)
        ]
        if len(set(finer)) == len(set(block)):
            return block
        block = finer


def _undominated(arcs: Iterable[Arc]) -> list[Arc]:
    """Without the arcs that another arc between the same states makes needless (cheaper, fewer guards)."""
    groups: dict[tuple[int, int, int, int], list[Arc]] = {}
    for arc in sorted(arcs, key=lambda a: (a.source, a.target, a.letter, a.label, a.cost, len(a.guard))):
        kept = groups.setdefault((arc.source, arc.target, arc.letter, arc.label), [])
        if not any(other.cost <= arc.cost and other.guard <= arc.guard for other in kept):
            kept.append(arc)
    return [arc for kept in groups.values() for arc in kept]
