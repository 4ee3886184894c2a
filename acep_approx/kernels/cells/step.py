"""What detection does with one event, as a helper: several automata can see an event before the next one comes.

The recurrence is that of ``detect``, which has it written out in its own loop, as fast as can be; tests hold the two
against each other.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.cells.detect import (
    ARCS,
    BEGIN,
    BLOCK,
    CLASS_CLEARS,
    CLASSES,
    CLEARED,
    CLEARS,
    ERRORS,
    FINISH,
    FIRST_ARC,
    FIRST_ROW,
    GROUP,
    GROUPS,
    NEVER,
    ROWS,
)


class Part(NamedTuple):
    """An automaton among the tables of several: k, whether it has guards, and where each of its parts begins."""

    errors: int
    is_guarded: int
    classes: int
    groups: int
    arcs: int
    rows: int
    class_clears: int
    clears: int


@inline
def part(offsets: Ints, at: int, first: int) -> Part:
    """The automaton whose ``offsets`` begin at ``at``, and whose tables begin at ``first``."""
    return Part(
        offsets[at + ERRORS],
        offsets[at + CLEARED],
        first + offsets[at + CLASSES],
        first + offsets[at + GROUPS],
        first + offsets[at + ARCS],
        first + offsets[at + ROWS],
        first + offsets[at + CLASS_CLEARS],
        first + offsets[at + CLEARS],
    )


@inline
def step(
    lanes: int, tables: Ints, of: Part, cells: Ints, base: int, t: int, c: int, low: int, fresh: Ints
) -> tuple[int, int]:
    """Run an event of tick ``t`` and class ``c`` through the cells of its slot, which begin at ``base``.

    ``lanes`` must be a constant where this is compiled. ``low``: the earliest start inside the window; ``fresh``:
    scratch, ``lanes`` integers for each group of the largest class.

    Returns
    -------
    tuple of int
        The least errors of a match that ends here, more than k where there is none, and its latest start.
    """
    first = tables[of.classes + c]
    last = tables[of.classes + c + 1]
    best_err = of.errors + 1
    best_start = t
    for g in range(first, last):
        at = of.groups + g * GROUP
        f = (g - first) * lanes
        begin = tables[at + BEGIN]
        below = 0
        for e in range(0, lanes, BLOCK):
            n0 = t if begin <= e else NEVER
            n1 = t if begin <= e + 1 else NEVER
            n2 = t if begin <= e + 2 else NEVER
            n3 = t if begin <= e + 3 else NEVER
            for a in range(tables[at + FIRST_ARC], tables[at + GROUP + FIRST_ARC]):
                p = base + tables[of.arcs + a] + e
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
    if of.is_guarded > 0:
        for x in range(tables[of.class_clears + c], tables[of.class_clears + c + 1]):
            p = base + tables[of.clears + x]
            for e in range(lanes):
                cells[p + e] = NEVER
    for g in range(first, last):
        at = of.groups + g * GROUP
        f = (g - first) * lanes
        for r in range(tables[at + FIRST_ROW], tables[at + GROUP + FIRST_ROW]):
            p = base + tables[of.rows + r]
            for e in range(lanes):
                cells[p + e] = max(cells[p + e], fresh[f + e])
    return best_err, best_start
