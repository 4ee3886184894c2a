"""How long the words of an automaton are, and which of their events others can follow."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Bools
from acep_approx.automaton.automaton import START, Automaton


def lengths_differ(automaton: Automaton) -> bool:
    """Whether one match can have more events than another.

    Complexity: O(states x arcs).
    """
    lengths, waiting = {START: 0}, [START]
    for state in waiting:
        for arc in automaton.arcs:
            if arc.source != state:
                continue
            if arc.target not in lengths:
                lengths[arc.target] = lengths[state] + 1
                waiting.append(arc.target)
            elif lengths[arc.target] != lengths[state] + 1:
                return True
    return len({lengths[final.state] for final in automaton.finals if final.state in lengths}) > 1


def followed_letters(automaton: Automaton) -> frozenset[int]:
    """The letters of events that another event of the same match can follow."""
    sources = {arc.source for arc in automaton.arcs}
    return frozenset(arc.letter for arc in automaton.arcs if arc.target in sources)


def with_letters(classes: list[int], letters: frozenset[int]) -> Bools:
    """Per event class (letter mask) whether one of some letters holds on an event of it."""
    some = sum(1 << letter for letter in letters)
    return np.array([bool(mask & some) for mask in classes], np.bool_)


def may_be_followed(automaton: Automaton) -> bool:
    """Whether an event with which a match can end may be one that can be followed: as far as their types tell."""
    ends = {final.state for final in automaton.finals}
    last = {automaton.letters[arc.letter].type for arc in automaton.arcs if arc.target in ends}
    others = {automaton.letters[letter].type for letter in followed_letters(automaton)}
    return bool(last & others) or (None in last and bool(others)) or None in others
