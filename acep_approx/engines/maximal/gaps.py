"""The automaton as walks that look for maximal matches see it, in either direction of time.

A *gap* is what lies between two bound events: the state that was reached, and the letters of which no event may come
before the next one. Both directions have the same gaps; the moves of one are those of the other, turned round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import START, Automaton
from acep_approx.kernels.maximal import OUTSIDE, Gaps

MOST_COMPARED = 512
"""So many pairs of gap and errors are compared with one another; of more, a gap is compared with itself alone."""


@dataclass(frozen=True)
class Move:
    """From one gap to another, by an event that ``arc`` binds; ``OUTSIDE``: before the first and after the last."""

    origin: int
    target: int
    cost: int
    arc: int
    letter: int


class GapAutomaton:
    """Gaps and moves of an automaton without negations before the first event or after the last.

    Parameters
    ----------
    automaton : Automaton
    is_backward : bool
        Whether walks go from the last event of a match to its first.
    compares : bool, default True
        Whether it is found out what a run at one gap can do that one at another can.

    Attributes
    ----------
    moves : list of Move
    size, lanes : int
        Gaps; numbers of errors.
    """

    def __init__(self, automaton: Automaton, *, is_backward: bool, compares: bool = True) -> None:
        self.automaton = automaton
        nodes = {(arc.source, arc.guard) for arc in automaton.arcs if arc.source != START}
        self._gaps = {node: at for at, node in enumerate(sorted(nodes, key=lambda node: (node[0], sorted(node[1]))))}
        self.size, self.lanes = max(len(self._gaps), 1), automaton.errors + 1
        self.moves = [*self._moves(is_backward=is_backward)]
        self._dominated_by = self._dominance() if compares else np.zeros(0, np.int64)

    def _moves(self, *, is_backward: bool) -> list[Move]:
        after: dict[int, list[int]] = {}
        for (state, _), at in self._gaps.items():
            after.setdefault(state, []).append(at)
        ends: dict[int, int] = {}
        for final in self.automaton.finals:
            ends[final.state] = min(final.cost, ends.get(final.state, final.cost))
        moves = []
        for number, arc in enumerate(self.automaton.arcs):
            here = OUTSIDE if arc.source == START else self._gaps[arc.source, arc.guard]
            there = [(at, arc.cost) for at in after.get(arc.target, ())]
            there += [(OUTSIDE, arc.cost + ends[arc.target])] if arc.target in ends else []
            for at, cost in there:
                origin, target = (at, here) if is_backward else (here, at)
                if cost < self.lanes:
                    moves.append(Move(origin, target, cost, number, arc.letter))
        return moves

    def _dominance(self) -> Ints:
        """Per gap and errors, and per other gap, the most errors with which a run there can do all that one here can.

        The greatest simulation of the automaton by itself, where a pair of gap and errors is a state.
        """
        size, lanes = self.size, self.lanes
        count = size * lanes
        if count > MOST_COMPARED:
            found = np.full((size, lanes, size), -1, np.int64)
            found[np.arange(size), :, np.arange(size)] = np.arange(lanes)
            return found.reshape(-1)
        guards = [guard for _, guard in self._gaps] or [frozenset()]
        fewer = np.array([[here <= there for here in guards] for there in guards], np.bool_).reshape(size, size)
        does = np.repeat(np.repeat(fewer, lanes, axis=0), lanes, axis=1)  # [one, another]: the other can do all
        letters = sorted({move.letter for move in self.moves})
        steps = {letter: self._steps(letter) for letter in letters}
        while True:
            before = int(does.sum())
            for leads, is_last, pairs in steps.values():
                can = does.astype(np.float32) @ leads.T.astype(np.float32) > 0  # [where one goes, another]
                for one, to in pairs:
                    does[one] &= is_last if to == OUTSIDE else can[to]
            if int(does.sum()) == before:
                break
        most = np.where(does.reshape(size, lanes, size, lanes), np.arange(lanes), -1).max(axis=3, initial=-1)
        return np.ascontiguousarray(most, np.int64).reshape(-1)

    def _steps(self, letter: int) -> tuple[Bools, Bools, list[tuple[int, int]]]:
        """By an event of a letter: from which pair to which, which can be complete with it, and both as a list."""
        count = self.size * self.lanes
        leads, is_last = np.zeros((count, count), np.bool_), np.zeros(count, np.bool_)
        pairs = []
        for move in self.moves:
            if move.letter != letter or move.origin == OUTSIDE:
                continue
            for errors in range(self.lanes - move.cost):
                one = move.origin * self.lanes + errors
                if move.target == OUTSIDE:
                    is_last[one] = True
                    pairs.append((one, OUTSIDE))
                else:
                    to = move.target * self.lanes + errors + move.cost
                    leads[one, to] = True
                    pairs.append((one, to))
        return leads, is_last, pairs

    def tables(self, classes: list[int], lists: Ints) -> Gaps:
        """What the kernel needs for event classes (letter masks); ``lists``: with which of them walks may end."""
        ordered = sorted(self.moves, key=lambda move: move.origin != OUTSIDE)
        moves = [[move for move in ordered if mask >> move.letter & 1] for mask in classes]
        begin = [sum(move.origin == OUTSIDE for move in some) for some in moves]
        first = np.cumsum([0, *map(len, moves)], dtype=np.int64)
        kills = [
            [at for (_, guard), at in self._gaps.items() if any(mask >> letter & 1 for letter in guard)]
            for mask in classes
        ]
        flat = [(one.origin, one.target, one.cost, one.arc) for some in moves for one in some]
        return Gaps(
            sizes=np.array([self.size, self.lanes, len(self.automaton.variables)], np.int64),
            first=first,
            first_inner=first[:-1] + np.array(begin, np.int64),
            moves=np.array(flat, np.int64).reshape(-1),
            first_kill=np.cumsum([0, *map(len, kills)], dtype=np.int64),
            kills=np.array([at for some in kills for at in some], np.int64),
            dominated_by=self._dominated_by,
            lists=lists,
            label=np.array([arc.label for arc in self.automaton.arcs], np.int64),
        )


@lru_cache(maxsize=64)
def gap_automaton(automaton: Automaton, *, is_backward: bool, compares: bool = True) -> GapAutomaton:
    """The gaps of an automaton, as of ``GapAutomaton``: known from one run of a query to the next."""
    return GapAutomaton(automaton, is_backward=is_backward, compares=compares)
