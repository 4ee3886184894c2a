"""The end of an event: children that complete a match are recorded, and all become runs of their pools."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.kernels.jit import inline, ix
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    CHILDREN,
    COLUMNS,
    COUNTED,
    FIELDS,
    HEAD,
    INDEX_SIZE,
    IS_STALE,
    KEPT,
    LAST_PLACE,
    OLDEST,
    POOL,
    REST,
    ROOM,
    RUNS,
    across_events,
    keep_front,
    note_trial,
)
from acep_approx.kernels.runs.records import Arena, Event, Lanes, Lineage, Pools, Program
from acep_approx.kernels.runs.vm import BLOCK, run_program


@inline
def write_hits(
    control: Ints,
    program: Program,
    pools: Pools,
    hits: Ints,
    shedding: Arena | None,
    event: int,
    pool: int,
    run: int,
) -> None:
    """Record one run, once for each way in which it completes a match."""
    tables, table, words, p = program.tables, pools.table, pools.words, pool * POOL
    state = program.shape[at.STATES] + pool * at.STATE
    base, room = table[ix(p + BASE)], table[ix(p + ROOM)]
    mark = 0
    if shedding is not None:
        mark = words[ix(base + (COLUMNS + table[ix(p + ALIKE)] - 1) * room + run)] & 3
    for i in range(tables[ix(state + 2)]):
        end = program.shape[at.ENDS] + 2 * (tables[ix(state + 1)] + i)
        hit = control[at.HITS] * at.HIT
        hits[ix(hit + at.HIT_EVENT)] = event
        hits[ix(hit + at.HIT_FINAL)] = tables[ix(end)]
        hits[ix(hit + at.HIT_ERRORS)] = tables[ix(end + 1)]
        hits[ix(hit + at.HIT_LINK)] = words[ix(base + room + run)]
        hits[ix(hit + at.HIT_START)] = words[ix(base + run)]
        hits[ix(hit + at.HIT_MARK)] = mark
        control[at.HITS] += 1


@inline
def record_hits(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Arena | None,
    event: Event,
    pool: int,
) -> int:
    """Record the children that complete a match; returns 1 where an integer passed 64 bits."""
    table, mask, p = pools.table, lanes.mask, pool * POOL
    check = program.shape[at.STATES] + pool * at.STATE + 3
    base, room, runs = table[ix(p + BASE)], table[ix(p + ROOM)], table[ix(p + RUNS)]
    for offset in range(table[ix(p + CHILDREN)], runs, BLOCK):
        n = min(BLOCK, runs - offset)
        for j in range(n):
            mask[ix(j)] = 1
        registers = base + COLUMNS * room + offset
        if program.tables[ix(check + 1)] > 0 and run_program(program, pools, check, registers, room, mask, n):
            return 1
        for j in range(n):
            if mask[ix(j)]:
                write_hits(control, program, pools, lineage.hits, shedding, event.number, pool, offset + j)
    return 0


@inline
def merge_across(
    control: Ints, program: Program, pools: Pools, lineage: Lineage, event: Event, p: int, runs: int
) -> int:
    """Merge children with runs of other events; returns where the runs end."""
    table, children, first = pools.table, pools.table[ix(p + CHILDREN)], control[at.LINKS]
    made = runs - children
    runs = across_events(pools, p, lineage.links, first, children, runs)
    gone = made - (runs - children)
    control[at.MERGED] += gone
    note_trial(table, p, made, gone)
    if program.shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE:
        if program.shape[at.KEEPS_LINEAGE] == at.WITH_OWNER:
            for link in range(first, first + gone):
                lineage.owner[ix(link)] = event.key
        control[at.LINKS] = first + gone
    return runs


@inline
def close_gap(pools: Pools, p: int, kept: int, children: int, runs: int) -> int:
    """Let children follow the runs that are kept; returns where they end."""
    words, base, room = pools.words, pools.table[ix(p + BASE)], pools.table[ix(p + ROOM)]
    for f in range(COLUMNS + pools.table[ix(p + FIELDS)]):
        to, source = base + f * room + kept, base + f * room + children
        for q in range(runs - children):
            words[ix(to + q)] = words[ix(source + q)]
    pools.table[ix(p + HEAD)] = 0
    return kept + runs - children


@inline
def end_event_in(
    control: Ints, program: Program, pools: Pools, lineage: Lineage, event: Event, pool: int, runs: int
) -> None:
    """Children of the event become runs of their pool, which end at ``runs``."""
    table, state, p = pools.table, program.shape[at.STATES] + pool * at.STATE, pool * POOL
    kept, children = table[ix(p + KEPT)], table[ix(p + CHILDREN)]
    made, front = runs - children, program.tables[ix(state + 5)]
    if program.tables[ix(state)] == 0:
        runs = children
    elif front >= 0:
        runs = keep_front(program, pools, p, program.shape[at.FRONTS] + front, children, runs)
        control[at.MERGED] += children + made - runs
        if runs < children + made:  # those that are left have moved up: any may be a child, and start before the others
            children = table[ix(p + HEAD)]
        kept = children
    elif table[ix(p + INDEX_SIZE)] > 0 and table[ix(p + IS_STALE)]:
        table[ix(p + REST)] = max(table[ix(p + REST)] - made, 0)
    elif table[ix(p + INDEX_SIZE)] > 0 and made > 0:
        runs = merge_across(control, program, pools, lineage, event, p, runs)
    if runs > children:
        base, oldest = table[ix(p + BASE)], event.now if kept == 0 else table[ix(p + OLDEST)]
        for j in range(children, runs):
            oldest = min(oldest, pools.words[ix(base + j)])
        table[ix(p + OLDEST)] = oldest
    if kept < children:
        runs = close_gap(pools, p, kept, children, runs)
    live = runs - table[ix(p + HEAD)]
    control[at.LIVE] += live - table[ix(p + COUNTED)]
    table[ix(p + COUNTED)] = live
    table[ix(p + RUNS)] = runs
    table[ix(p + CHILDREN)] = runs  # all are indexed: should another pool grow, they must be again
    table[ix(p + LAST_PLACE)] = event.place
