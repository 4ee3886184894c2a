"""What detection does with one event, as a helper: several automata can see an event before the next one comes.

The recurrence is that of ``detect``, which has it written out in its own loop, as fast as can be; tests hold the two
against each other.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline, ix
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
        offsets[ix(at + ERRORS)],
        offsets[ix(at + CLEARED)],
        first + offsets[ix(at + CLASSES)],
        first + offsets[ix(at + GROUPS)],
        first + offsets[ix(at + ARCS)],
        first + offsets[ix(at + ROWS)],
        first + offsets[ix(at + CLASS_CLEARS)],
        first + offsets[ix(at + CLEARS)],
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
    first = tables[ix(of.classes + c)]
    last = tables[ix(of.classes + c + 1)]
    best_err = of.errors + 1
    best_start = t
    for g in range(first, last):
        at = of.groups + g * GROUP
        f = (g - first) * lanes
        begin = tables[ix(at + BEGIN)]
        below = 0
        for e in range(0, lanes, BLOCK):
            n0 = t if begin <= e else NEVER
            n1 = t if begin <= e + 1 else NEVER
            n2 = t if begin <= e + 2 else NEVER
            n3 = t if begin <= e + 3 else NEVER
            for a in range(tables[ix(at + FIRST_ARC)], tables[ix(at + GROUP + FIRST_ARC)]):
                p = base + tables[ix(of.arcs + a)] + e
                n0 = max(n0, cells[ix(p)])
                n1 = max(n1, cells[ix(p + 1)])
                n2 = max(n2, cells[ix(p + 2)])
                n3 = max(n3, cells[ix(p + 3)])
            fresh[ix(f + e)] = n0
            fresh[ix(f + e + 1)] = n1
            fresh[ix(f + e + 2)] = n2
            fresh[ix(f + e + 3)] = n3
            below += int(n0 < low) + int(n1 < low) + int(n2 < low) + int(n3 < low)
        err = below + tables[ix(at + FINISH)]
        start = fresh[ix(f + min(below, lanes - 1))]
        best_start = start if err < best_err else max(start, best_start) if err == best_err else best_start
        best_err = min(err, best_err)
    if of.is_guarded > 0:
        for x in range(tables[ix(of.class_clears + c)], tables[ix(of.class_clears + c + 1)]):
            p = base + tables[ix(of.clears + x)]
            for e in range(lanes):
                cells[ix(p + e)] = NEVER
    for g in range(first, last):
        at = of.groups + g * GROUP
        f = (g - first) * lanes
        for r in range(tables[ix(at + FIRST_ROW)], tables[ix(at + GROUP + FIRST_ROW)]):
            p = base + tables[ix(of.rows + r)]
            for e in range(lanes):
                cells[ix(p + e)] = max(cells[ix(p + e)], fresh[ix(f + e)])
    return best_err, best_start
