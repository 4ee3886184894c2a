"""The beginning of an event: the runs of its key come in, what earlier ticks did takes effect, too old runs leave."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import compact, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.ends import drop_all_expired, end_tick_in
from acep_approx.kernels.runs.idle import begins_none
from acep_approx.kernels.runs.passes import log_room, make_room
from acep_approx.kernels.runs.pools import (
    AGE,
    ALIKE,
    BASE,
    CHILDREN,
    COLUMNS,
    FRESH,
    HEAD,
    HOLE,
    HOLES,
    IS_STALE,
    KEPT,
    LAST_PLACE,
    OLDEST,
    POOL,
    REST,
    ROOM,
    RUNS,
    SMALL_POOL,
    SWEEP_EVERY,
    SWEEP_PART,
    WAITS_FOR,
    drop_old,
    index_runs,
)
from acep_approx.kernels.runs.records import Arena, Batch, Event, Keys, Lineage, Pools, Program
from acep_approx.kernels.runs.sample import choose_event
from acep_approx.kernels.runs.saved import load_runs, save_runs, save_words
from acep_approx.kernels.runs.scores import (
    BORN_IN,
    CONTEXT_DUE,
    NORMAL,
    mark_of_event,
    note_pace,
    note_weight,
)
from acep_approx.kernels.runs.weighing import find_newest

TESTING = 1
"""The phase of an event after its beginning: steps are tried."""


@compact
def change_key(control: Ints, pools: Pools, keys: Keys, key: int) -> int:
    """Save the runs of the current key and bring in those of ``key``."""
    if control[at.SLOT] >= 0:
        drop_all_expired(control, pools, control[at.EXPIRED], False)
        needed = save_words(pools.table)
        if control[at.STORED] + needed > len(keys.stored):
            control[at.ASK] = needed
            return at.GROW_STORE
        control[at.STORED] = save_runs(pools, keys, control[at.SLOT], control[at.STORED])
        control[at.SLOT] = -1
    lacking = load_runs(pools, keys, key)
    if lacking >= 0:
        control[at.ASK] = lacking
        return at.GROW_POOL
    control[at.SLOT] = key
    return at.DONE


@inline
def write_scalars(batch: Batch, program: Program, pools: Pools, keys: Keys, event: Event) -> None:
    """The values of this event that programs ask for."""
    words, shape, letters = pools.words, program.shape, program.shape[at.GUARD_LETTERS]
    words[0] = event.place
    for g in range(letters):
        guard = (event.key * letters + g) * at.GUARD
        is_of_tick = shape[at.SIMULTANEOUS] and keys.guards[guard] == event.place
        words[1 + g] = keys.guards[guard + is_of_tick]
    for c in range(shape[at.EVENT_COLUMNS]):
        words[shape[at.COLUMNS_AT] + c] = batch.columns[c * len(batch.slot) + event.number]
    words[shape[at.NOW_AT]] = event.now
    words[shape[at.NOW_AT] + 2] = event.start
    words[pools.table[BASE]] = event.start  # of the run of the start, which has bound nothing


@inline
def begin_shedding(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event) -> None:
    """Make room for the event, and note what its runs inherit."""
    shedding.words[BORN_IN] = -1
    note_pace(shedding, event)
    note_weight(shedding, event)
    shedding.words[CONTEXT_DUE] = event.now
    make_room(control, program, pools, shedding, event)
    begins = not begins_none(program, event.kind)
    pools.words[program.shape[at.NOW_AT] + 1] = mark_of_event(shedding, event) if begins else NORMAL
    choose_event(shedding.words, event.id)


@inline
def end_tick(control: Ints, program: Program, pools: Pools, lineage: Lineage, event: Event) -> int:
    """Let take effect what earlier ticks have done to the pools that an event is concerned with."""
    tables, shape, table = program.tables, program.shape, pools.table
    where = shape[at.TARGETS_FIRST] + event.kind
    for i in range(tables[where], tables[where + 1]):
        pool = tables[shape[at.TARGETS] + at.TARGET_WORDS * i]
        p = pool * POOL
        if table[p + LAST_PLACE] == event.place:
            continue
        made = table[p + RUNS] - table[p + CHILDREN]
        if shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE and (control[at.LINKS] + made) * at.LINK > len(lineage.links):
            control[at.ASK] = made
            return at.GROW_LINKS
        end_tick_in(control, program, pools, lineage, event, pool)
    return at.DONE


@inline
def begin_pool(control: Ints, pools: Pools, event: Event, p: int, gap: int, stays: int) -> None:
    """Note where the runs of a pool end: what comes behind are children of this event, or of its tick.

    ``gap``: they end where events have come between; ``stays``: what becomes of those that no step takes away.
    """
    table, low = pools.table, event.low
    if gap and table[p + LAST_PLACE] != event.place - 1:
        table[p + RUNS] = 0
        table[p + HEAD] = 0
    runs = table[p + RUNS]
    if table[p + OLDEST] < low and runs > 0:
        head, base = table[p + HEAD], table[p + BASE]
        while head < runs and pools.words[base + head] < low:
            table[p + HOLES] -= pools.words[base + head] == HOLE
            head += 1
        table[p + HEAD] = head
        table[p + AGE] += 1
        is_full = 4 * (head + table[p + HOLES]) <= runs  # with runs: few have left, though many may come per event
        every = max(SWEEP_EVERY, runs // SWEEP_PART) if table[p + WAITS_FOR] >= 0 and is_full else SWEEP_EVERY
        if table[p + AGE] >= every or runs <= SMALL_POOL:
            control[at.LIVE] -= drop_old(pools, p, low, True)
            runs = table[p + RUNS]
    if table[p + IS_STALE] and table[p + REST] == 0:
        index_runs(pools, p)
    table[p + CHILDREN] = runs
    table[p + FRESH] = runs
    table[p + KEPT] = runs if stays == at.STAY else 0


@inline
def begin_pool_again(program: Program, pools: Pools, p: int, stays: int) -> None:
    """What comes behind the runs of a pool from here on are children of this event; those before it are of its tick."""
    table = pools.table
    table[p + FRESH] = table[p + RUNS]
    if stays == at.LEAVE:  # no run passes the event over: those that no step takes away leave, too
        gone = table[p + BASE] + (COLUMNS + table[p + ALIKE] + program.shape[at.GONE]) * table[p + ROOM]
        for run in range(table[p + HEAD], table[p + CHILDREN]):
            pools.words[gone + run] = 1


@inline
def event_at(control: Ints, batch: Batch) -> Event:
    """The current event."""
    e = control[at.EVENT]
    now = batch.tick[e]
    slot, cls, low = batch.slot[e], batch.cls[e], batch.low[e]
    return Event(e, now, batch.start[e], slot, cls, batch.id[e], batch.place[e], low)


@inline
def begin_event(
    control: Ints,
    batch: Batch,
    program: Program,
    pools: Pools,
    lineage: Lineage,
    keys: Keys,
    shedding: Arena | None,
    event: Event,
) -> int:
    """The first phase: bring in the runs of the key, shed what the event would not find room for, drop old runs."""
    tables, shape = program.tables, program.shape
    if control[at.SLOT] != event.key:
        status = change_key(control, pools, keys, event.key)
        if status != at.DONE:
            return status
        if shedding is not None:
            find_newest(program, pools, shedding.words)
    if program.more is not None and shape[at.SIMULTANEOUS]:
        status = end_tick(control, program, pools, lineage, event)
        if status != at.DONE:
            return status
    write_scalars(batch, program, pools, keys, event)
    if shedding is not None:
        room = log_room(program, pools, shedding.words)
        if control[at.LOGGED] + room > len(shedding.log):
            control[at.ASK] = room
            return at.LOG_FULL
        begin_shedding(control, program, pools, shedding, event)
    where = shape[at.TARGETS_FIRST] + event.kind
    for i in range(tables[where], tables[where + 1]):
        target = shape[at.TARGETS] + at.TARGET_WORDS * i
        p, stays = tables[target] * POOL, tables[target + at.TARGET_STAYS]
        if program.more is None or not shape[at.SIMULTANEOUS] or pools.table[p + LAST_PLACE] != event.place:
            begin_pool(control, pools, event, p, tables[target + at.TARGET_GAP], stays)
            pools.table[p + LAST_PLACE] = event.place
        if program.more is not None and shape[at.SIMULTANEOUS]:
            begin_pool_again(program, pools, p, stays)
    control[at.STAMP] += 1
    control[at.HASHED_NOW] = 0
    control[at.HITS_BEFORE] = control[at.HITS]
    control[at.PHASE] = TESTING
    control[at.SOURCE] = tables[shape[at.CLASS_FIRST] + event.kind]
    control[at.OFFSET] = 0
    return at.DONE
