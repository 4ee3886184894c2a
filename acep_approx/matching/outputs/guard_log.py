"""The events of the window that negations ask for, where the engine does not test them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from acep_approx.arrays import Ints, places
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import Grouped

LOGGED = ("slot", "row", "tick", "mask")


class Gaps(NamedTuple):
    """Where no event of a negation may lie, in some matches.

    ``match`` it is of, key ``slot``, row before it (``low``) and behind it (``high``), earliest and latest tick.
    """

    match: Ints
    slot: Ints
    low: Ints
    high: Ints
    since: Ints
    until: Ints

    def take(self, which: Ints) -> Gaps:
        """Some of them."""
        return Gaps(*(column[which] for column in self))


class GuardLog:
    """The events of the window that negations ask for and the kernel does not test.

    Attributes
    ----------
    letters : list of int
        Those of negations at the start, at the end, or with conditions on other events.
    on_arcs, on_finals : dict
        Per letter whether an arc, or a final, has to be tested for it.
    sequences : dict
        Per letter those of its negation, last event first: more than its own where a sequence is negated.
    conditions : dict
        Per letter the conditions that compare the events of its negation with others.
    names : list of str
        Per letter of the automaton the variable of its negation.
    """

    def __init__(self, automaton: RegisterAutomaton) -> None:
        inner = automaton.automaton
        late = automaton.late_guards
        at_start = {j for arc in inner.arcs if arc.source == START for j in arc.guard}
        at_end = {j for final in inner.finals for j in final.guard}
        self.letters = sorted(at_start | at_end | (late & inner.guards))
        self.on_arcs = {
            j: np.array([j in arc.guard and (arc.source == START or j in late) for arc in inner.arcs], np.bool_)
            for j in self.letters
        }
        self.on_finals = {j: np.array([j in final.guard for final in inner.finals], np.bool_) for j in self.letters}
        negations = automaton.negations
        number = {letter.negated: j for j, letter in enumerate(inner.letters)}
        sequences = automaton.negated_sequences
        before = {number[names[-1]]: tuple(number[name] for name in names[-2::-1]) for names in sequences}
        self.sequences = {j: (j, *before.get(j, ())) for j in self.letters}
        self.names = [str(letter.negated) for letter in inner.letters]
        self.conditions = {
            j: tuple(dict.fromkeys(one for i in some for one in negations.get(self.names[i], ())))
            for j, some in self.sequences.items()
        }
        self._is_simultaneous = automaton.is_simultaneous
        self.classes: list[int] = []
        self.slot, self.row, self.tick, self.mask = (np.zeros(0, np.int64) for _ in range(4))

    def add(self, events: Grouped) -> None:
        """Take in a batch; sorted by slot, then by row."""
        wanted = sum(1 << j for j in {j for some in self.sequences.values() for j in some})
        masks = np.array([mask & wanted for mask in self.classes], np.uint64).view(np.int64)[events.cls]
        some = np.flatnonzero(masks)
        slot = np.concatenate((self.slot, events.slot[some]))
        row = np.concatenate((self.row, events.row[some]))
        order = np.lexsort((row, slot))
        self.slot, self.row = slot[order], row[order]
        self.tick = np.concatenate((self.tick, events.tick[some]))[order]
        self.mask = np.concatenate((self.mask, masks[some]))[order]

    def found(self, letter: int, gaps: Gaps) -> tuple[Ints, dict[str, Ints]]:
        """Events of a negation in some gaps: the gap of each, or of each sequence, and per variable the event."""
        events: dict[str, Ints] = {}
        gap, high, until = np.arange(len(gaps.match)), gaps.high, gaps.until
        for number in self.sequences[letter]:
            here = gaps.take(gap)
            place, event = self.between(number, here.slot, (here.low, high), (here.since, until))
            events = {name: known[place] for name, known in events.items()} | {self.names[number]: event}
            gap, high, until = gap[place], self.row[event], self.tick[event] - self._is_simultaneous
        return gap, events

    def between(
        self, letter: int, slot: Ints, rows: tuple[Ints, Ints], ticks: tuple[Ints, Ints]
    ) -> tuple[Ints, Ints]:
        """Pairs (gap, event) of a letter: the event's slot is the gap's, its row lies between two, its tick in a range.

        Events of a slot are in order of time, so that of a long stream only those are looked at.
        """
        mine = np.flatnonzero((self.mask >> letter) & 1)
        by_row, by_tick = _Ordered(self.slot[mine], self.row[mine]), _Ordered(self.slot[mine], self.tick[mine])
        first = np.maximum(by_row.below(slot, rows[0], "right"), by_tick.below(slot, ticks[0], "left"))
        last = np.minimum(by_row.below(slot, rows[1], "left"), by_tick.below(slot, ticks[1], "right"))
        count = (last - first).clip(0)
        return np.repeat(np.arange(len(slot)), count), mine[places(first, count)]

    def forget(self, floor: Ints | int) -> None:
        """Let go of events with ticks before ``floor`` (per slot, or for all)."""
        keep = np.flatnonzero(self.tick >= (floor[self.slot] if isinstance(floor, np.ndarray) else floor))
        if len(keep) < len(self.row):
            for name in LOGGED:
                setattr(self, name, getattr(self, name)[keep])


class _Ordered:
    """Events that are in order of their slots, and of a number within each."""

    def __init__(self, slot: Ints, number: Ints) -> None:
        self._numbers = np.sort(number)
        self._places = self._place(slot, np.searchsorted(self._numbers, number) + 1)

    def _place(self, slot: Ints, rank: Ints) -> Ints:
        """One number per event that is ordered as (slot, number): numbers as their places among all."""
        return np.asarray(slot * (len(self._numbers) + 2) + rank, np.int64)

    def below(self, slot: Ints, number: Ints, side: Literal["left", "right"]) -> Ints:
        """How many events lie before a number in a slot, those of other slots counted; ``right``: or at it."""
        return np.searchsorted(self._places, self._place(slot, np.searchsorted(self._numbers, number, side)), "right")
