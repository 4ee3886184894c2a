"""Merge states that have the same future: fewer cells, and fewer states when the automaton is determinised.

Two states are merged when the same arcs leave them and they accept alike; that may make other states alike, so it is
repeated until nothing changes. (From fine to coarse every round is right, and few are needed; the coarsest
bisimulation would merge a little more where alike states form circles, and take a round per step of a long chain.)
The language does not change: every test against the oracle runs on merged automata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from acep_approx.automaton.automaton import START, Arc, Automaton


def merge_equal_futures(automaton: Automaton) -> Automaton:
    """The automaton with states of the same future merged; the start stays alone.

    Complexity: O(rounds x arcs); the rounds are as many as the longest chain of merged states.
    """
    number = list(range(automaton.size))
    while True:
        merged = _merged(automaton, number)
        if len(set(merged)) == len(set(number)):
            return _renumbered(automaton, number)
        number = merged


def _merged(automaton: Automaton, number: list[int]) -> list[int]:
    """Number the states by what leaves them, where ``number`` already tells which targets are alike."""
    leaves: list[set[object]] = [set() for _ in range(automaton.size)]
    for arc in automaton.arcs:
        leaves[arc.source].add((arc.letter, arc.label, number[arc.target], arc.cost, arc.guard, arc.again))
    for final in automaton.finals:
        leaves[final.state].add((final.cost, final.guard))
    seen: dict[object, int] = {}
    return [seen.setdefault((s == START, frozenset(leaves[s])), len(seen)) for s in range(automaton.size)]


def _renumbered(automaton: Automaton, number: list[int]) -> Automaton:
    """The automaton over the new numbers; what leaves a new state is what left the first of its old states."""
    order = {old: new for new, old in enumerate(dict.fromkeys(number))}
    number = [order[n] for n in number]
    first = {number[state]: state for state in reversed(range(automaton.size))}
    names: list[list[str]] = [[] for _ in order]
    for state, name in enumerate(automaton.names):
        names[number[state]].append(name)
    arcs = (
        replace(arc, source=number[arc.source], target=number[arc.target])
        for arc in automaton.arcs
        if first[number[arc.source]] == arc.source
    )
    finals = {
        replace(final, state=number[final.state])
        for final in automaton.finals
        if first[number[final.state]] == final.state
    }
    return replace(
        automaton,
        size=len(order),
        arcs=tuple(_undominated(arcs)),
        finals=tuple(sorted(finals, key=lambda f: (f.state, f.cost, sorted(f.guard)))),
        names=tuple("|".join(dict.fromkeys(group)) for group in names),
    )


def _undominated(arcs: Iterable[Arc]) -> list[Arc]:
    """Without the arcs that another arc between the same states makes needless (cheaper, fewer guards).

    What is left of arcs for free starts another round if any of them did.
    """
    groups: dict[tuple[int, int, int, int], list[Arc]] = {}
    for arc in sorted(arcs, key=lambda a: (a.source, a.target, a.letter, a.label, a.cost, len(a.guard))):
        kept = groups.setdefault((arc.source, arc.target, arc.letter, arc.label), [])
        better = [i for i, other in enumerate(kept) if other.cost <= arc.cost and other.guard <= arc.guard]
        if not better:
            kept.append(arc)
        elif arc.again:
            kept[better[0]] = replace(kept[better[0]], again=True)
    return [arc for kept in groups.values() for arc in kept]
