"""Which runs a better one makes superfluous; where nothing is shed and nothing listed, they are dropped here.

Inside a budget ``admission`` decides what becomes of them. Source: dominance is ours (see ``automaton.dominance``).
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import compact, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    COLUMNS,
    HEAD,
    INDEX_SIZE,
    IS_STALE,
    POOL,
    ROOM,
    copy_run,
    same_registers,
)
from acep_approx.kernels.runs.records import Pools, Program
from acep_approx.kernels.runs.scores import NORMAL, WOULD_GO, mark_at
from acep_approx.kernels.runs.vm import NULL

EQUAL, LOW_INT, HIGH_INT, LOW_FLOAT, HIGH_FLOAT = range(5)
"""Which values of a register are the better ones; EQUAL: none are."""

LARGE_FRONT = 256
"""Runs in a pool beyond which no dominated ones are looked for, where nothing is shed."""
UNRELATED, BETTER, WORSE, SAME = range(4)
"""What a run is beside a child."""


@inline
def dominates(program: Program, pools: Pools, p: int, directions: int, fields: int, one: int, other: int) -> bool:
    """Whether run ``one`` can do all that ``other`` can: it started no earlier, and no register stands in its way."""
    words, floats = pools.words, pools.floats
    base, room = pools.table[p + BASE], pools.table[p + ROOM]
    if words[base + one] < words[base + other]:
        return False
    for f in range(fields):
        column = base + (COLUMNS + f) * room
        how = program.tables[directions + f]
        v, z = words[column + one], words[column + other]
        if how == LOW_INT:
            good = v <= z and v != NULL
        elif how == HIGH_INT:
            good = v >= z and z != NULL  # NULL can become better than any value, by an aggregate that skips it
        elif how == LOW_FLOAT:
            good = floats[column + one] <= floats[column + other]
        elif how == HIGH_FLOAT:
            good = floats[column + one] >= floats[column + other]
        else:
            good = v == z
        if not good and v != z:
            return False
    return True


@compact
def keep_front(program: Program, pools: Pools, p: int, directions: int, children: int, runs: int) -> int:
    """Of runs and children of a pool keep those that no other dominates; returns where they end.

    Only where nothing is listed: the lineage of the others is lost. Where many runs are left that do not dominate each
    other, looking for more that do would cost more than it saves. Those before the head stay where they are: were they
    taken out, the head would pass over live ones.
    """
    head, fields = pools.table[p + HEAD], pools.table[p + ALIKE]
    if children - head > LARGE_FRONT:
        return runs
    end = children
    for child in range(children, runs):
        kept = head
        is_needed = True
        for run in range(head, end):
            if is_needed and dominates(program, pools, p, directions, fields, run, child):
                is_needed = False
            if is_needed and dominates(program, pools, p, directions, fields, child, run):
                continue
            copy_run(pools, p, kept, run)
            kept += 1
        end = kept
        if is_needed:
            copy_run(pools, p, end, child)
            end += 1
    return end


@inline
def flag_at(program: Program, table: Ints, p: int, run: int) -> int:
    """Where stands whether a run is dominated."""
    behind = COLUMNS + table[p + ALIKE] + program.shape[at.DOMINATED]
    return int(table[p + BASE] + behind * table[p + ROOM] + run)


@inline
def compared(program: Program, pools: Pools, pool: int, run: int, child: int, merges: bool) -> int:
    """What a run is beside a child of its pool: SAME where the two will be merged.

    A run that only the audit keeps is better than none. ``merges``: the other one will be lost: where the audit
    protects it, only one that is protected, too, is better.
    """
    table, words, p = pools.table, pools.words, pool * POOL
    base, alike = table[p + BASE], table[p + ALIKE]
    front = program.tables[program.shape[at.STATES] + pool * at.STATE + at.STATE_FRONT]
    directions = program.shape[at.FRONTS] + front
    one, other, what = run, child, BETTER
    if words[base + run] < words[base + child]:
        one, other, what = child, run, WORSE
    mark = words[mark_at(table, p, one)]
    if mark == WOULD_GO or (merges and mark == NORMAL and words[mark_at(table, p, other)] != NORMAL):
        return UNRELATED
    if not dominates(program, pools, p, directions, alike - 1, one, other):
        return UNRELATED
    if table[p + INDEX_SIZE] > 0 and not table[p + IS_STALE] and same_registers(pools, p, alike, run, child):
        return SAME
    return what
