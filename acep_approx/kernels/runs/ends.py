"""The end of an event: children that complete a match are recorded, and all become runs of their pools."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.fronts import admit, keep_front
from acep_approx.kernels.runs.idle import note_guards
from acep_approx.kernels.runs.passes import end_shedding, log_room
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    BOUNDED,
    CHILDREN,
    COLUMNS,
    COUNTED,
    FIELDS,
    FRESH,
    HEAD,
    HOLES,
    INDEX_SIZE,
    IS_STALE,
    KEPT,
    NEVER,
    OLDEST,
    POOL,
    REST,
    ROOM,
    RUNS,
    across_events,
    copy_run,
    drop_expired,
    note_trial,
)
from acep_approx.kernels.runs.records import Arena, Event, Keys, Lanes, Lineage, Pools, Program
from acep_approx.kernels.runs.scores import ENTRY, LOGS
from acep_approx.kernels.runs.vm import BLOCK, run_rare_program
from acep_approx.kernels.runs.waiting import leave_holes_of_tick, waits

ENDING = 2
"""The phase of an event after ``TESTING``: children become runs."""


@inline
def write_shown(control: Ints, program: Program, pools: Pools, shown: Ints, pool: int, run: int) -> None:
    """Write down the registers of a run that results show, beside its hit."""
    table, width, p = pools.table, program.shape[at.SHOWN_WORDS], pool * POOL
    base, room = table[p + BASE], table[p + ROOM]
    columns, to = program.shape[at.SHOWN] + pool * width, control[at.HITS] * width
    for f in range(width):
        column = COLUMNS + program.tables[columns + f]
        shown[to + f] = pools.words[base + column * room + run]


@inline
def write_hits(
    control: Ints,
    program: Program,
    pools: Pools,
    lineage: Lineage,
    shedding: Arena | None,
    event: int,
    pool: int,
    run: int,
) -> None:
    """Record one run, once for each way in which it completes a match."""
    tables, table, words, p, hits = program.tables, pools.table, pools.words, pool * POOL, lineage.hits
    state = program.shape[at.STATES] + pool * at.STATE
    base, room = table[p + BASE], table[p + ROOM]
    hidden, mark = base + (COLUMNS + table[p + ALIKE]) * room + run, 0
    if shedding is not None:
        mark = words[hidden - room] & 3
    times = 1
    if program.more is not None and program.shape[at.TIMES] != at.NOT_HIDDEN:
        times = words[hidden + program.shape[at.TIMES] * room]
    for i in range(tables[state + 2]):
        end = program.shape[at.ENDS] + 2 * (tables[state + 1] + i)
        hit = control[at.HITS] * at.HIT
        hits[hit + at.HIT_EVENT] = event
        hits[hit + at.HIT_FINAL] = tables[end]
        hits[hit + at.HIT_ERRORS] = tables[end + 1]
        hits[hit + at.HIT_LINK] = words[base + room + run]
        hits[hit + at.HIT_START] = words[base + run]
        hits[hit + at.HIT_MARK] = mark
        hits[hit + at.HIT_TIMES] = times
        if program.more is not None and program.shape[at.SHOWN_WORDS] > 0:
            write_shown(control, program, pools, lineage.shown, pool, run)
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
    base, room, runs = table[p + BASE], table[p + ROOM], table[p + RUNS]
    for offset in range(table[p + FRESH], runs, BLOCK):
        n = min(BLOCK, runs - offset)
        for j in range(n):
            mask[j] = 1
        registers = base + COLUMNS * room + offset
        if program.tables[check + 1] > 0 and run_rare_program(program, pools, check, registers, room, mask, n):
            return 1
        for j in range(n):
            if mask[j]:
                write_hits(control, program, pools, lineage, shedding, event.number, pool, offset + j)
    return 0


@inline
def merge_across(
    control: Ints, program: Program, pools: Pools, lineage: Lineage, event: Event, pool: int, runs: int
) -> int:
    """Merge children with runs of other events; returns where the runs end."""
    p, state, low = pool * POOL, program.shape[at.STATES] + pool * at.STATE, NEVER
    if program.shape[at.DOMINATED] >= 0 and program.tables[state + at.STATE_FRONT] >= 0:
        # a chain may be long, and what is too old stands there
        low = event.low
    table, children, first = pools.table, pools.table[p + CHILDREN], control[at.LINKS]
    made = runs - children
    runs, used = across_events(program, pools, p, lineage.links, first, children, runs, low)
    gone = made - (runs - children)
    control[at.MERGED] += gone
    note_trial(table, p, made, gone)
    if program.shape[at.KEEPS_LINEAGE] == at.WITH_OWNER:
        for link in range(first, used):
            lineage.owner[link] = event.key
    control[at.LINKS] = used
    return runs


@inline
def close_gap(pools: Pools, p: int, kept: int, children: int, runs: int) -> int:
    """Let children follow the runs that are kept; returns where they end."""
    words, base, room = pools.words, pools.table[p + BASE], pools.table[p + ROOM]
    for f in range(COLUMNS + pools.table[p + FIELDS]):
        to, source = base + f * room + kept, base + f * room + children
        for q in range(runs - children):
            words[to + q] = words[source + q]
    pools.table[p + HEAD] = 0
    pools.table[p + BOUNDED] = 0
    return kept + runs - children


@inline
def count_live(control: Ints, table: Ints, p: int) -> None:
    """Count the runs of a pool among those that live, also children of a tick that is not over."""
    live = table[p + RUNS] - table[p + HEAD] - table[p + HOLES]
    control[at.LIVE] += live - table[p + COUNTED]
    table[p + COUNTED] = live


@inline
def let_wait(control: Ints, program: Program, table: Ints, pool: int) -> None:
    """Children wait in their pool until the tick is over, unless they can go nowhere from there."""
    p = pool * POOL
    if program.tables[program.shape[at.STATES] + pool * at.STATE + at.STATE_STAYS] == 0:
        table[p + RUNS] = table[p + FRESH]
    count_live(control, table, p)


@inline
def take_in_children(
    control: Ints, program: Program, pools: Pools, lineage: Lineage, event: Event, pool: int, runs: int
) -> None:
    """The children in a pool, which end at ``runs``, become its runs."""
    table, state, p = pools.table, program.shape[at.STATES] + pool * at.STATE, pool * POOL
    kept, children = table[p + KEPT], table[p + CHILDREN]
    made, front = runs - children, program.tables[state + at.STATE_FRONT]
    if program.tables[state] == 0:
        runs = children
    elif front >= 0 and program.shape[at.DOMINATED] < 0:
        if made > 0:
            runs = keep_front(program, pools, pool, children, runs)
        control[at.MERGED] += children + made - runs
        if runs < children + made:  # those that are left have moved up: any may be a child, and start before the others
            children = table[p + HEAD]
        kept = children
    elif table[p + INDEX_SIZE] > 0 and table[p + IS_STALE]:
        table[p + REST] = max(table[p + REST] - made, 0)
    elif table[p + INDEX_SIZE] > 0 and made > 0:
        runs = merge_across(control, program, pools, lineage, event, pool, runs)
    if runs > children:
        base, oldest = table[p + BASE], -NEVER if kept == 0 else table[p + OLDEST]
        for j in range(children, runs):
            oldest = min(oldest, pools.words[base + j])
        table[p + OLDEST] = oldest
    if kept < children:
        runs = close_gap(pools, p, kept, children, runs)
    table[p + RUNS] = runs
    count_live(control, table, p)
    table[p + CHILDREN] = runs  # all are indexed: should another pool grow, they must be again


@inline
def leave_gone(program: Program, pools: Pools, p: int) -> None:
    """Close the gaps that runs leave which an event of the tick has taken away."""
    table, words = pools.table, pools.words
    if waits(table, p):
        leave_holes_of_tick(program, pools, p)
        return
    base, room, kept = table[p + BASE], table[p + ROOM], 0
    gone = base + (COLUMNS + table[p + ALIKE] + program.shape[at.GONE]) * room
    for run in range(table[p + HEAD], table[p + CHILDREN]):
        if words[gone + run] == 0:
            copy_run(pools, p, kept, run)
            kept += 1
    table[p + HEAD] = 0
    table[p + KEPT] = kept


@inline
def end_tick_in(control: Ints, program: Program, pools: Pools, lineage: Lineage, event: Event, pool: int) -> None:
    """What the last tick that a pool was concerned with has done to it takes effect."""
    table, p = pools.table, pool * POOL
    table[p + KEPT] = table[p + CHILDREN]
    if program.shape[at.GONE] != at.NOT_HIDDEN:
        leave_gone(program, pools, p)
    take_in_children(control, program, pools, lineage, event, pool, table[p + RUNS])


@inline
def drop_all_expired(control: Ints, pools: Pools, low: int, stay: bool) -> None:
    """Drop the runs of all pools that started before ``low``; ``stay``: as in ``drop_expired``."""
    for p in range(POOL, len(pools.table), POOL):
        if pools.table[p + RUNS] > 0:
            control[at.LIVE] -= drop_expired(pools, p, low, stay)


@inline
def end_pool(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Arena | None,
    event: Event,
    pool: int,
) -> int:
    """Children in a pool complete matches, and become its runs."""
    table, state = pools.table, program.shape[at.STATES] + pool * at.STATE
    children, runs = table[pool * POOL + FRESH], table[pool * POOL + RUNS]
    if runs > children:
        made, ends = runs - children, program.tables[state + at.STATE_ENDS]
        keeps_lineage = program.shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE
        if keeps_lineage and (control[at.LINKS] + made) * at.LINK > len(lineage.links):
            control[at.ASK] = made
            return at.GROW_LINKS
        if shedding is not None and shedding.words[LOGS]:
            control[at.ASK] = 2 * made * shedding.words[ENTRY] + log_room(program, pools, shedding.words)
            if control[at.LOGGED] + control[at.ASK] > len(shedding.log):
                return at.LOG_FULL
        if (control[at.HITS] + made * ends) * at.HIT > len(lineage.hits):
            control[at.ASK] = made * ends
            return at.GROW_HITS
        if ends > 0 and record_hits(control, program, pools, lanes, lineage, shedding, event, pool):
            return at.TOO_LARGE
        if shedding is not None and program.tables[state + at.STATE_STAYS]:
            runs = admit(control, program, pools, shedding, event, pool)
            table[pool * POOL + RUNS] = runs
    if program.more is not None and program.shape[at.SIMULTANEOUS]:
        let_wait(control, program, table, pool)
    else:
        take_in_children(control, program, pools, lineage, event, pool, runs)
    return at.DONE


@inline
def end_event(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    keys: Keys,
    shedding: Arena | None,
    event: Event,
) -> int:
    """The third phase: children become runs."""
    tables, shape = program.tables, program.shape
    last = tables[shape[at.TARGETS_FIRST] + event.kind + 1]
    while control[at.SOURCE] < last:
        pool = tables[shape[at.TARGETS] + at.TARGET_WORDS * control[at.SOURCE]]
        status = end_pool(control, program, pools, lanes, lineage, shedding, event, pool)
        if status != at.DONE:
            return status
        control[at.SOURCE] += 1
    control[at.PEAK] = max(control[at.PEAK], control[at.LIVE])
    if shape[at.NON_OVERLAP] and control[at.HITS] > control[at.HITS_BEFORE]:
        drop_all_expired(control, pools, event.now + 1, True)
    if shedding is not None:
        end_shedding(control, program, pools, shedding, event)
    control[at.EXPIRED] = event.low
    note_guards(program, keys, event.key, event.place, event.kind)
    control[at.PHASE] = 0
    control[at.EVENT] += 1
    return at.DONE
