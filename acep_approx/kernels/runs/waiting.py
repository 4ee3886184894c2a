"""Runs that wait for an event beyond a threshold: a bound per part of their pool tells which runs it cannot take.

The test compares a register, the threshold, with a scalar of the event. Per ``PART`` runs the first threshold is kept
that a scalar on its way would pass. An event that does not pass it changes nothing there. Bounds may be too wide, never
too narrow. A run that leaves makes a hole, which is as a run that is too old: so the others stay where they are, in
their order, and are moved up only now and then.

Source: Demers et al., CIDR 2007, section 3.3 (indexes over instances); ours in that bounds of parts take the place of a
tree: parts are columns that stand together, and adding a run costs one comparison.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    BOUNDED,
    BOUNDS,
    CHILDREN,
    COLUMNS,
    HEAD,
    HOLE,
    HOLES,
    NEVER,
    OLDEST,
    POOL,
    ROOM,
    RUNS,
    WAITS_FOR,
    copy_run,
    leave,
)
from acep_approx.kernels.runs.records import Lanes, Pools, Program, RunBlock
from acep_approx.kernels.runs.vm import BLOCK, NULL

PART = 64
"""Runs that share a bound."""
MANY = 64
"""Up to so many runs a pool is gone through."""
IS_FLOAT, IS_FALLING = 1, 2
"""What thresholds are, and whether a scalar passes them on its way down; ``WAITS_FOR`` has this in its lowest bits."""
HOW = 3
OR_EQUAL, IS_INT = 1, 2
"""How the scalar of a source passes thresholds: whether by equal, and whether it is a whole number and they are floats.
"""
WIDEST, UNREACHED = -(2**63), 2**63 - 1
"""The bounds of parts that every event looks at, as runs there are about to leave, and of those where nothing waits."""
SIGNLESS, INFINITE = 2**63 - 1, 0x7FF0000000000000


@inline
def is_known(word: int, how: int) -> bool:
    """Whether a word is neither NULL nor NaN: these pass no test."""
    return (word & SIGNLESS) <= INFINITE if how & IS_FLOAT else word != NULL


@inline
def ordered(word: int, how: int) -> int:
    """A known word as an integer: a scalar passes the lower first. As floats are, both zeros are equal."""
    if how & IS_FLOAT and word < 0:
        word = -(word & SIGNLESS)
    return ~word if how & IS_FALLING else word


@inline
def waits(table: Ints, p: int) -> bool:
    """Whether bounds are kept of a pool, and it has many runs."""
    return bool(table[p + WAITS_FOR] >= 0 and table[p + CHILDREN] - table[p + HEAD] > MANY)


@inline
def bound_of_run(program: Program, pools: Pools, p: int, run: int) -> int:
    """What the bound of a part may not be above because of a run."""
    table, words = pools.table, pools.words
    base, room, waits_for = table[p + BASE], table[p + ROOM], table[p + WAITS_FOR]
    if words[base + run] == HOLE:
        return UNREACHED
    if program.more is not None and program.shape[at.GONE] != at.NOT_HIDDEN:
        if words[base + (COLUMNS + table[p + ALIKE] + program.shape[at.GONE]) * room + run]:
            return WIDEST
    word, how = words[base + (COLUMNS + (waits_for >> 2)) * room + run], waits_for & HOW
    return ordered(word, how) if is_known(word, how) else UNREACHED


@inline
def bound_from(program: Program, pools: Pools, p: int, first: int, end: int) -> None:
    """Make the bounds of runs ``first .. end - 1``, the first of which may stand within a part whose bound is known."""
    chains, bounds = pools.chains, pools.table[p + BOUNDS]
    for run in range(first, end):
        part = bounds + run // PART
        if run % PART == 0:
            chains[part] = UNREACHED
        chains[part] = min(chains[part], bound_of_run(program, pools, p, run))


@inline
def bound_all(program: Program, pools: Pools, p: int) -> None:
    """See to it that all parts of a pool have bounds."""
    table = pools.table
    if table[p + BOUNDED] < table[p + CHILDREN]:
        bound_from(program, pools, p, table[p + BOUNDED], table[p + CHILDREN])
        table[p + BOUNDED] = table[p + CHILDREN]


@inline
def bound_again(program: Program, pools: Pools, p: int, first: int, end: int) -> None:
    """Make the bounds of the parts anew that runs ``first .. end - 1`` stand in."""
    end = min((end + PART - 1) // PART * PART, pools.table[p + CHILDREN])
    bound_from(program, pools, p, first // PART * PART, end)


@inline
def scalar_of(program: Program, pools: Pools, source: int) -> int:
    """The word that an event compares with thresholds, in their kind."""
    word = pools.words[program.tables[source + at.SOURCE_SCALAR]]
    if program.tables[source + at.SOURCE_PASSES] & IS_INT:
        temporary = program.shape[at.TEMPORARIES]
        pools.floats[temporary] = float("nan") if word == NULL else float(word)
        word = pools.words[temporary]
    return int(word)


@inline
def reaches(bound: int, scalar: int, or_equal: int) -> bool:
    """Whether a scalar passes a bound."""
    return bound < scalar or (bound == scalar and or_equal > 0)


@inline
def within_reach(program: Program, pools: Pools, p: int, source: int, first: int) -> tuple[int, int]:
    """The next runs from ``first`` on, in parts that follow each other, which the event may take: where, how many."""
    tables, table, chains = program.tables, pools.table, pools.chains
    runs, bounds, how = table[p + CHILDREN], table[p + BOUNDS], table[p + WAITS_FOR] & HOW
    if tables[source + at.SOURCE_SCALAR] < 0:
        return first, min(BLOCK, runs - first)
    word, or_equal = scalar_of(program, pools, source), tables[source + at.SOURCE_PASSES] & OR_EQUAL
    if not is_known(word, how):
        return runs, 0
    bound_all(program, pools, p)
    word, part, end = ordered(word, how), first // PART, (runs + PART - 1) // PART
    while part < end and not reaches(chains[bounds + part], word, or_equal):
        part += 1
    first, end = max(first, part * PART), min(end, part + BLOCK // PART)
    part += 1
    while part < end and reaches(chains[bounds + part], word, or_equal):
        part += 1
    return first, max(min(part * PART, runs) - first, 0)


@inline
def make_hole(pools: Pools, p: int, run: int) -> None:
    """Take a run out of its pool; the others stay where they are."""
    pools.words[pools.table[p + BASE] + run] = HOLE
    pools.table[p + HOLES] += 1
    pools.table[p + OLDEST] = HOLE


@inline
def leave_holes(program: Program, pools: Pools, lanes: Lanes, block: RunBlock) -> None:
    """Take the runs of a block out of their pool that have gone on."""
    p, gone = block.pool * POOL, 0
    for j in range(block.n):
        if lanes.stay[j] == 0:
            make_hole(pools, p, block.offset + j)
            gone += 1
    if gone > 0:
        bound_again(program, pools, p, block.offset, block.offset + block.n)


@inline
def leave_holes_of_tick(program: Program, pools: Pools, p: int) -> None:
    """Take out the runs that an event of the tick has taken away: the bounds of their parts are the widest."""
    table, words, chains = pools.table, pools.words, pools.chains
    gone = table[p + BASE] + (COLUMNS + table[p + ALIKE] + program.shape[at.GONE]) * table[p + ROOM]
    bound_all(program, pools, p)
    for part in range(table[p + HEAD] // PART, (table[p + CHILDREN] + PART - 1) // PART):
        if chains[table[p + BOUNDS] + part] == WIDEST:
            first, end = part * PART, min((part + 1) * PART, table[p + CHILDREN])
            for run in range(max(first, table[p + HEAD]), end):
                if words[gone + run] != 0:
                    words[gone + run] = 0
                    make_hole(pools, p, run)
            bound_again(program, pools, p, first, end)


@inline
def close_holes(pools: Pools, p: int) -> None:
    """Move up the runs behind holes, and behind those that the head has passed; all that live are left."""
    table, words, kept, visible, oldest = pools.table, pools.words, 0, 0, -NEVER
    for run in range(table[p + HEAD], table[p + RUNS]):
        start = words[table[p + BASE] + run]
        if start != HOLE:
            oldest = min(oldest, start)
            copy_run(pools, p, kept, run)
            kept += 1
            visible += run < table[p + CHILDREN]
    leave(table, p, kept, visible, oldest)
