"""The automaton: the one compiled form of every query; immutable, hashable, picklable.

State 0 is the start. An arc consumes one event that satisfies its letter and binds it to its variable;
its cost is the weight of the letters that are skipped (inserted, in the words of the paper) on the way.
An arc's guard holds the letters of which no event may have passed since the source state was reached.

Source: Li and Ge, PVLDB 10(4) 2016, sections 2 and 3.1. Deviations: the epsilon states of Figure 1 are folded
into the arcs (``compile.py``); guards (negation) and weights are ours, the paper only names both as possible.
Oracle: ``tests/naive.py``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from acep_approx.ranges import impossible

if TYPE_CHECKING:
    from acep_approx.query.syntax import Expression, Repeat, Strategy

START = 0


@dataclass(frozen=True)
class Letter:
    """What an arc asks of one event alone: its type and conditions on its attributes.

    ``type`` is None where any type will do; the attributes in ``conditions`` name no variable. ``negated`` is the
    variable of a negation with conditions on other events, with a window of its own, or of a sequence: it cannot
    share a letter, however alike they are. A guard of a sequence has the letter of its last event.
    ``unseen``: no event of these letters came before it in its partition.
    """

    type: str | None
    conditions: tuple[Expression, ...] = ()
    negated: str | None = None
    unseen: tuple[Letter, ...] = ()


@dataclass(frozen=True)
class Arc:
    """A move from ``source`` to ``target`` that consumes one event.

    ``letter`` indexes ``Automaton.letters``; ``label`` indexes ``Automaton.variables``; ``cost`` is the weight of
    the skipped letters, ``skipped`` names their variables; ``guard`` holds letters of which no event may lie between.
    ``again``: the arc starts another round of a repetition that the source lies in (SASE+ calls it *take*). ``gap`` is
    what may lie between the event before and this one; None: what the strategy of the query says. Where a repetition
    prefers its rounds to what follows, or the other way round, ``first_for`` holds it on arcs that go first,
    ``after_in`` on those that wait: these neither take nor pass over an event that an arc takes which goes first.
    ``near`` holds letters that the event next to the one before must not have, unless it is that of the arc.
    """

    source: int
    target: int
    letter: int
    label: int
    cost: int = 0
    guard: frozenset[int] = frozenset()
    skipped: tuple[str, ...] = ()
    again: bool = False
    gap: Strategy | None = None
    first_for: frozenset[Repeat] = frozenset()
    after_in: frozenset[Repeat] = frozenset()
    near: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Final:
    """Acceptance at ``state`` after skipping letters of weight ``cost``.

    A ``guard`` here is a negation after the last event: only the end of the window can answer it.
    """

    state: int
    cost: int = 0
    guard: frozenset[int] = frozenset()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Component:
    """A part of the pattern that binds events, or must not: its variable, and the type it asks for (None: any)."""

    variable: str
    type: str | None = None
    is_kleene: bool = False
    is_negated: bool = False


@dataclass(frozen=True)
class Automaton:
    """States ``0 .. size-1``, arcs, finals, and the letters and variables that they index.

    ``errors`` is k. ``names`` describes each state for people (the variable bound on the way in). ``components`` are
    those of the pattern, in its order: who asks about the pattern asks them, for it need not be a tree.
    """

    size: int
    errors: int
    letters: tuple[Letter, ...]
    variables: tuple[str, ...]
    arcs: tuple[Arc, ...]
    finals: tuple[Final, ...]
    names: tuple[str, ...]
    components: tuple[Component, ...] = ()

    @property
    def kleene(self) -> frozenset[str]:
        """The variables that can bind several events."""
        return frozenset(one.variable for one in self.components if one.is_kleene)

    @property
    def negated(self) -> frozenset[str]:
        """The variables of negations."""
        return frozenset(one.variable for one in self.components if one.is_negated)

    @property
    def shown(self) -> tuple[str, ...]:
        """The variables that matches show: all that have a name."""
        return tuple(name for name in self.variables if name)

    @property
    def repeats(self) -> bool:
        """Whether a way through it can come back to a state."""
        graph: TopologicalSorter[int] = TopologicalSorter()
        for arc in self.arcs:
            graph.add(arc.target, arc.source)
        try:
            graph.prepare()
        except CycleError:
            return True
        return False

    @property
    def guards(self) -> frozenset[int]:
        """Letters that only negations ask for, or that negations ask for too."""
        used = [arc.guard for arc in self.arcs] + [final.guard for final in self.finals]
        return frozenset().union(*used)

    def missing(self, labels: tuple[int, ...], errors: int) -> tuple[str, ...]:
        """Variables whose events are missing from a match, in the order of the pattern.

        Parameters
        ----------
        labels : tuple of int
            What the events of the match are bound to, earliest first.
        errors : int
            Errors of the match. Labels do not show which guards were broken: a way with fewer errors was closed to it.

        Returns
        -------
        tuple of str
            Of the explanations that cost ``errors`` one with the fewest guards.

        Complexity: O(events x arcs x errors).
        """
        ways: dict[tuple[int, int], tuple[int, tuple[str, ...]]] = {(START, 0): (0, ())}
        for label in labels:
            reached: dict[tuple[int, int], tuple[int, tuple[str, ...]]] = {}
            for (state, paid), (guards, skipped) in ways.items():
                for arc in self.arcs:
                    place = arc.target, paid + arc.cost
                    way = guards + len(arc.guard), skipped + arc.skipped
                    if (arc.source, arc.label) == (state, label) and place[1] <= errors:
                        reached[place] = min(way, reached.get(place, way))
            ways = reached
        ends = [
            (guards, skipped + final.skipped)
            for (state, paid), (guards, skipped) in ways.items()
            for final in self.finals
            if final.state == state and paid + final.cost == errors
        ]
        if not ends:
            raise impossible("a match is none of this pattern")
        return min(ends)[1]

    def missing_between(self, arcs: tuple[int, ...], errors: int) -> tuple[str, ...]:
        """The same, where it is known which arcs the events of a match took, earliest first: labels may not tell them.

        Complexity: O(arcs + finals).
        """
        taken = [self.arcs[number] for number in arcs]
        left = errors - sum(arc.cost for arc in taken)
        ends = [final.skipped for final in self.finals if (final.state, final.cost) == (taken[-1].target, left)]
        if not ends:
            raise impossible("a match is none of this pattern")
        return (*(name for arc in taken for name in arc.skipped), *ends[0])

    def fingerprint(self) -> str:
        """Sixteen hex digits that change whenever the meaning of the automaton does."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        """Each state that is saved or restored asks for it."""
        meaning = (self.size, self.errors, self.letters, self.variables, self.arcs, self.finals)
        return hashlib.sha256(_stable(meaning).encode()).hexdigest()[:16]


def _stable(value: object) -> str:
    """Like repr, but with sets in order, so that it does not depend on the hash seed."""
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(_stable(v) for v in value)) + "}"
    if isinstance(value, tuple):
        return "(" + ",".join(_stable(v) for v in value) + ")"
    if isinstance(value, Letter) and not value.unseen:
        return "Letter" + _stable((value.type, value.conditions, value.negated))
    if isinstance(value, Arc) and not (value.gap or value.first_for or value.after_in or value.near):
        return "Arc" + _stable(tuple(vars(value).values())[:-4])  # as before there were words for gaps
    if isinstance(value, Arc | Final | Letter):
        return type(value).__name__ + _stable(tuple(vars(value).values()))
    return repr(value)
