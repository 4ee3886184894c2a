"""Detection: the latest start of a run per state and number of errors, and which events are match points.

Recurrence, for an event of tick ``t`` whose class lets it be consumed at state ``q`` (read all, then write)::

    N[q][e] = max(t where e >= cost of beginning at q,  max over arcs p -> q of S[p][e - cost])
    hit at q  iff  N[q][e] >= t - w  for an e with  e + cost of finishing at q <= k

``S[q][e]`` is the latest start of a run at ``q`` with at most ``e`` errors. Exact by dominance: a run with the same
state, no more errors and no earlier start can do all that another can.

Source: the problem is Li and Ge's (PVLDB 10(4) 2016, Definition 1 and Algorithm 1); the recurrence replaces their
match nodes and is ours, an extension of episode matching (Das et al., CPM 1997). Unlike Algorithm 1 as printed, an
event advances a run once only. Oracle: ``tests/naive.py``.

A row holds ``2 * lanes`` integers: a pad of minus infinity, then one lane per number of errors, so that paying ``c``
errors is reading ``c`` places earlier, in one vector load.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import Kernel, kernel

NEVER = -(2**62)
"""Minus infinity for starts; ticks lie within +-2**60, so sums with it stay below every real tick."""

BLOCK = 4
"""Lanes that are computed at once; they stay in registers. Lanes only grow, so the first one inside the window is the
number of lanes below it: there is no branch to mispredict."""


class Keyed(NamedTuple):
    """Key slot, tick and event class of each event, grouped by slot, ordered inside."""

    slot: Ints
    tick: Ints
    cls: Ints


class CellTables(NamedTuple):
    """The automaton, its parts one after the other in ``words``; ``offsets``: sizes, and where each part begins."""

    words: Ints
    offsets: Ints


# offsets: k; cells per slot; then per class its groups, the groups, their arcs and rows; per class the rows that it
# clears, and those rows; how many there are
ERRORS, STRIDE, CLASSES, GROUPS, ARCS, ROWS, CLASS_CLEARS, CLEARS, CLEARED = range(9)

# a group, of the arcs into one state: cost of beginning, cost of finishing, first arc, first row
BEGIN, FINISH, FIRST_ARC, FIRST_ROW, GROUP = 0, 1, 2, 3, 4

# a match point: event index, least errors, latest start at these errors
POINT_EVENT, POINT_ERR, POINT_START, POINT = 0, 1, 2, 3

Detect = Kernel[[Keyed, int, CellTables, Ints, Ints, Ints], int]


def _detect(name: str, lanes: int) -> Detect:
    """The kernel for ``lanes`` lanes: the number is a constant while it compiles, so its loops are unrolled."""

    def detect(events: Keyed, window: int, program: CellTables, cells: Ints, fresh: Ints, out: Ints) -> int:
        """Run events through the cells.

        Parameters
        ----------
        events : Keyed
        window : int
            Largest ``tick - start`` of a match.
        program : CellTables
            As ``Cells`` makes it.
        cells : int64
            Rows of all slots; changed in place.
        fresh : int64
            Scratch: ``lanes`` integers for each group of the largest class.
        out : int64, shape (3 n + 3,)
            Match points: event index, least err, latest start at that err.

        Returns
        -------
        int
            Number of match points.

        Complexity: O(n x arcs into the states that the class can reach x lanes).
        """
        hits = 0
        slot, tick, cls = events
        tables, offsets = program
        k, stride, is_guarded = offsets[ERRORS], offsets[STRIDE], offsets[CLEARED] > 0
        class_off, group_off = offsets[CLASSES], offsets[GROUPS]
        arc_off, row_off = offsets[ARCS], offsets[ROWS]
        clear_off, clear_row = offsets[CLASS_CLEARS], offsets[CLEARS]
        for i in range(len(slot)):
            t = tick[i]
            c = cls[i]
            low = t - window
            base = slot[i] * stride
            first = tables[class_off + c]
            last = tables[class_off + c + 1]
            best_err = k + 1
            best_start = t
            for g in range(first, last):
                at = group_off + g * GROUP
                f = (g - first) * lanes
                begin = tables[at + BEGIN]
                below = 0
                for e in range(0, lanes, BLOCK):
                    n0 = t if begin <= e else NEVER
                    n1 = t if begin <= e + 1 else NEVER
                    n2 = t if begin <= e + 2 else NEVER
                    n3 = t if begin <= e + 3 else NEVER
                    for a in range(tables[at + FIRST_ARC], tables[at + GROUP + FIRST_ARC]):
                        p = base + tables[arc_off + a] + e
                        n0 = max(n0, cells[p])
                        n1 = max(n1, cells[p + 1])
                        n2 = max(n2, cells[p + 2])
                        n3 = max(n3, cells[p + 3])
                    fresh[f + e] = n0
                    fresh[f + e + 1] = n1
                    fresh[f + e + 2] = n2
                    fresh[f + e + 3] = n3
                    below += int(n0 < low) + int(n1 < low) + int(n2 < low) + int(n3 < low)
                err = below + tables[at + FINISH]
                start = fresh[f + min(below, lanes - 1)]
                best_start = start if err < best_err else max(start, best_start) if err == best_err else best_start
                best_err = min(err, best_err)
            if is_guarded:
                for x in range(tables[clear_off + c], tables[clear_off + c + 1]):
                    p = base + tables[clear_row + x]
                    for e in range(lanes):
                        cells[p + e] = NEVER
            for g in range(first, last):
                at = group_off + g * GROUP
                f = (g - first) * lanes
                for r in range(tables[at + FIRST_ROW], tables[at + GROUP + FIRST_ROW]):
                    p = base + tables[row_off + r]
                    for e in range(lanes):
                        cells[p + e] = max(cells[p + e], fresh[f + e])
            out[POINT * hits + POINT_EVENT] = i
            out[POINT * hits + POINT_ERR] = best_err
            out[POINT * hits + POINT_START] = best_start
            hits += int(best_err <= k)
        return hits

    detect.__name__ = name
    return kernel(detect)


FEW_LANES = 4
MANY_LANES = 16
MAX_ERRORS = MANY_LANES - 1

detect_few = _detect("detect_few", FEW_LANES)
"""For k <= 3."""

detect_many = _detect("detect_many", MANY_LANES)
"""For k <= 15."""
