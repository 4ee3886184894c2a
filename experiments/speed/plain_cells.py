"""The detection recurrence in plain Python, as one would write it by hand: the yardstick of ``speed.cells``.

Same automaton, same recurrence, same answers (the benchmark checks that) as ``acep_approx.kernels.cells.detect``.
"""

from __future__ import annotations

from collections.abc import Sequence

from acep_approx.automaton.automaton import START, Automaton

NEVER = float("-inf")


class PlainCells:
    """Latest start per state and error, in lists; one key.

    Parameters
    ----------
    automaton : Automaton
        Without guards.
    window : int
    classes : sequence of int
        Letter mask of each event class.
    """

    def __init__(self, automaton: Automaton, window: int, classes: Sequence[int]) -> None:
        self.window = window
        self.lanes = automaton.errors + 1
        self.cells = [[NEVER] * self.lanes for _ in range(automaton.size)]
        finish = {final.state: final.cost for final in reversed(automaton.finals)}
        self.moves: list[list[tuple[int, int, int, list[tuple[int, int]]]]] = []
        for mask in classes:
            begin: dict[int, int] = {}
            reads: dict[int, list[tuple[int, int]]] = {}
            for arc in automaton.arcs:
                if mask >> arc.letter & 1:
                    reads.setdefault(arc.target, [])
                    if arc.source == START:
                        begin[arc.target] = min(arc.cost, begin.get(arc.target, self.lanes))
                    else:
                        reads[arc.target].append((arc.source, arc.cost))
            self.moves.append([(q, begin.get(q, self.lanes), finish.get(q, self.lanes), reads[q]) for q in reads])

    def run(self, ticks: Sequence[int], classes: Sequence[int]) -> list[tuple[int, int]]:
        """Match points: (event index, least err)."""
        lanes, cells, window = self.lanes, self.cells, self.window
        points = []
        for i, (tick, cls) in enumerate(zip(ticks, classes, strict=True)):
            low = tick - window
            best = lanes
            fresh = []
            for state, begin, finish, reads in self.moves[cls]:
                row = [NEVER] * begin + [tick] * (lanes - begin)
                for source, cost in reads:
                    old = cells[source]
                    for e in range(cost, lanes):
                        start = old[e - cost]
                        if start > row[e]:
                            row[e] = start
                for e in range(min(lanes - finish, best - finish)):
                    if row[e] >= low:
                        best = e + finish
                        break
                fresh.append((state, row))
            for state, row in fresh:
                cell = cells[state]
                for e in range(lanes):
                    if row[e] > cell[e]:
                        cell[e] = row[e]
            if best < lanes:
                points.append((i, best))
        return points
