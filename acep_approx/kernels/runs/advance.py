"""The kernel of the runs engine: events in, runs advanced, completed matches recorded.

Runs live in pools, one per state and number of errors, as columns: start, lineage, registers. For each event the pools
that can react are gone through in blocks; what a step makes of a block is put behind the runs of its target pool, and
becomes part of it when the event is done: so no event is used twice. It can stop before any block and go on there.

Source: Agrawal et al., SIGMOD 2008, section 5.2 (basic algorithm, merging of equivalent runs). Deviations: columns
instead of objects; the ignore edge is no work; a link keeps its own start, so no version numbers are needed.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.kernels.jit import block_kernel, inline, ix
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.blocks import run_block
from acep_approx.kernels.runs.ends import end_tick_in, let_wait, record_hits, take_in_children
from acep_approx.kernels.runs.passes import end_shedding, log_room, make_room
from acep_approx.kernels.runs.pools import (
    AGE,
    ALIKE,
    BASE,
    CHILDREN,
    COLUMNS,
    FIELDS,
    FRESH,
    HEAD,
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
    candidates,
    drop_expired,
    index_runs,
)
from acep_approx.kernels.runs.records import Arena, Batch, Event, Keys, Lanes, Lineage, Pools, Program, RunBlock
from acep_approx.kernels.runs.sample import AT_ONCE, choose_event, lacks_sample_room, note_left_out
from acep_approx.kernels.runs.saved import load_runs, save_runs, save_words
from acep_approx.kernels.runs.scores import (
    ENTRY,
    LOGS,
    SAMPLE,
    SAMPLE_ENTRY,
    SAMPLE_NOW,
    UNTESTED,
    admit,
    charge,
    find_newest,
    left,
    mark_of_event,
    note_pace,
)
from acep_approx.kernels.runs.vm import BLOCK

TESTING, ENDING = 1, 2
"""Phases of an event after its beginning (0): steps are tried, children become runs."""


@inline
def drop_all_expired(control: Ints, pools: Pools, low: int) -> None:
    """Drop the runs of all pools that started before ``low``."""
    for p in range(POOL, pools.table.size, POOL):
        if pools.table[ix(p + RUNS)] > 0:
            control[at.LIVE] -= drop_expired(pools, p, low)


@inline
def change_key(control: Ints, pools: Pools, keys: Keys, key: int) -> int:
    """Save the runs of the key at hand and bring in those of ``key``."""
    if control[at.SLOT] >= 0:
        drop_all_expired(control, pools, control[at.EXPIRED])
        needed = save_words(pools.table)
        if control[at.STORED] + needed > keys.stored.size:
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
        is_of_tick = shape[at.SIMULTANEOUS] and keys.guards[ix(guard)] == event.place
        words[ix(1 + g)] = keys.guards[ix(guard + is_of_tick)]
    for c in range(shape[at.EVENT_COLUMNS]):
        words[ix(shape[at.COLUMNS_AT] + c)] = batch.columns[ix(c * batch.slot.size + event.number)]
    words[ix(shape[at.NOW_AT] + 2)] = event.start
    for run in range(pools.table[ix(RUNS)]):  # of the pool of the start: one, or one per owner; it has bound nothing
        words[ix(pools.table[ix(BASE)] + run)] = event.start


@inline
def note_guard(keys: Keys, shape: Ints, event: Event, letter: int) -> None:
    """Note that an event of a guard letter came, and where the last one stood that came at an earlier place."""
    at_letter = (event.key * shape[at.GUARD_LETTERS] + letter) * at.GUARD
    if keys.guards[ix(at_letter)] != event.place:
        keys.guards[ix(at_letter + 1)] = keys.guards[ix(at_letter)]
        keys.guards[ix(at_letter)] = event.place


@inline
def begin_shedding(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event) -> None:
    """Make room for the event, and note what its runs inherit."""
    note_pace(program, shedding, event)
    make_room(control, program, pools, shedding, event)
    pools.words[ix(program.shape[at.NOW_AT])] = event.now
    pools.words[ix(program.shape[at.NOW_AT] + 1)] = mark_of_event(program, shedding, event)
    choose_event(shedding.words, event.id)


@inline
def end_tick(control: Ints, program: Program, pools: Pools, lineage: Lineage, event: Event) -> int:
    """Let take effect what earlier ticks have done to the pools that an event is concerned with."""
    tables, shape, table = program.tables, program.shape, pools.table
    where = shape[at.TARGETS_FIRST] + event.kind
    for i in range(tables[ix(where)], tables[ix(where + 1)]):
        pool = tables[ix(shape[at.TARGETS] + at.TARGET_WORDS * i)]
        p = pool * POOL
        if table[ix(p + LAST_PLACE)] == event.place:
            continue
        made = table[ix(p + RUNS)] - table[ix(p + CHILDREN)]
        if shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE and (control[at.LINKS] + made) * at.LINK > lineage.links.size:
            control[at.ASK] = made
            return at.GROW_LINKS
        end_tick_in(control, program, pools, lineage, event.key, pool)
    return at.DONE


@inline
def begin_pool(control: Ints, pools: Pools, event: Event, p: int, gap: int, stays: int) -> None:
    """Note where the runs of a pool end: what comes behind are children of this event, or of its tick.

    ``gap``: they end where events have come between; ``stays``: what becomes of those that no step takes away.
    """
    table, low = pools.table, event.low
    if gap and table[ix(p + LAST_PLACE)] != event.place - 1:
        table[ix(p + RUNS)] = 0
        table[ix(p + HEAD)] = 0
    runs = table[ix(p + RUNS)]
    if table[ix(p + OLDEST)] < low and runs > 0:
        head, base = table[ix(p + HEAD)], table[ix(p + BASE)]
        while head < runs and pools.words[ix(base + head)] < low:
            head += 1
        table[ix(p + HEAD)] = head
        table[ix(p + AGE)] += 1
        if table[ix(p + AGE)] >= SWEEP_EVERY or runs <= SMALL_POOL:
            control[at.LIVE] -= drop_expired(pools, p, low)
            runs = table[ix(p + RUNS)]
    if table[ix(p + IS_STALE)] and table[ix(p + REST)] == 0:
        index_runs(pools, p)
    table[ix(p + CHILDREN)] = runs
    table[ix(p + FRESH)] = runs
    table[ix(p + KEPT)] = runs if stays == at.STAY else 0


@inline
def begin_pool_again(program: Program, pools: Pools, p: int, stays: int) -> None:
    """What comes behind the runs of a pool from here on are children of this event; those before it are of its tick."""
    table = pools.table
    table[ix(p + FRESH)] = table[ix(p + RUNS)]
    if stays == at.LEAVE:  # no run passes the event over: those that no step takes away leave, too
        gone = table[ix(p + BASE)] + (COLUMNS + table[ix(p + ALIKE)] + program.shape[at.GONE]) * table[ix(p + ROOM)]
        for run in range(table[ix(p + HEAD)], table[ix(p + CHILDREN)]):
            pools.words[ix(gone + run)] = 1


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
    if shape[at.SIMULTANEOUS]:
        status = end_tick(control, program, pools, lineage, event)
        if status != at.DONE:
            return status
    write_scalars(batch, program, pools, keys, event)
    if shedding is not None:
        room = log_room(program, pools, shedding.words)
        if control[at.LOGGED] + room > shedding.log.size:
            control[at.ASK] = room
            return at.LOG_FULL
        begin_shedding(control, program, pools, shedding, event)
    where = shape[at.TARGETS_FIRST] + event.kind
    for i in range(tables[ix(where)], tables[ix(where + 1)]):
        target = shape[at.TARGETS] + at.TARGET_WORDS * i
        p, stays = tables[ix(target)] * POOL, tables[ix(target + at.TARGET_STAYS)]
        if not shape[at.SIMULTANEOUS] or pools.table[ix(p + LAST_PLACE)] != event.place:
            begin_pool(control, pools, event, p, tables[ix(target + at.TARGET_GAP)], stays)
            pools.table[ix(p + LAST_PLACE)] = event.place
        if shape[at.SIMULTANEOUS]:
            begin_pool_again(program, pools, p, stays)
    control[at.STAMP] += 1
    control[at.HASHED_NOW] = 0
    control[at.HITS_BEFORE] = control[at.HITS]
    control[at.PHASE] = TESTING
    control[at.SOURCE] = tables[ix(shape[at.CLASS_FIRST] + event.kind)]
    control[at.OFFSET] = 0
    return at.DONE


@inline
def lacks_room(control: Ints, program: Program, pools: Pools, links: Ints, source: int, n: int) -> int:
    """What must grow before a block of ``n`` runs takes the steps of a source: several may lead to one pool."""
    tables, shape, buckets = program.tables, program.shape, pools.buckets
    first, count = tables[ix(source + at.SOURCE_FIRST)], tables[ix(source + at.SOURCE_COUNT)]
    for s in range(first, first + count):
        t = tables[ix(shape[at.STEPS] + s * at.STEP)] * POOL
        if t >= 0 and pools.table[ix(t + RUNS)] + n * count > pools.table[ix(t + ROOM)]:
            control[at.ASK] = t // POOL
            return at.GROW_POOL
    if shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE and (control[at.LINKS] + n * count) * at.LINK > links.size:
        control[at.ASK] = n * count
        return at.GROW_LINKS
    if 2 * (control[at.HASHED_NOW] + n * count) > buckets.size // 2:
        control[at.ASK] = 4 * (control[at.HASHED_NOW] + n * count)
        return at.GROW_BUCKETS
    return at.DONE


@inline
def begin_sample(
    control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, source: int, n: int
) -> int:
    """See to it that the tests of a block can be written down, and write down those that an index leaves out."""
    tables, shed = program.tables, shedding.words
    if shed[SAMPLE] > 0:
        count = tables[ix(source + at.SOURCE_COUNT)]
        if lacks_sample_room(shedding, n * count + 2 * AT_ONCE):
            control[at.ASK] = (BLOCK * count + 2 * AT_ONCE) * shed[SAMPLE_ENTRY]
            return at.SAMPLE_FULL
        if tables[ix(source + at.SOURCE_PROBE)] >= 0 and control[at.OFFSET] == 0 and shed[SAMPLE_NOW]:
            step = program.shape[at.STEPS] + tables[ix(source + at.SOURCE_FIRST)] * at.STEP
            note_left_out(program, pools, shedding, event, tables[ix(source + at.SOURCE_POOL)], step)
    return at.DONE


@inline
def find_block(
    program: Program,
    pools: Pools,
    lanes: Lanes,
    shedding: Arena | None,
    event: Event,
    source: int,
    offset: int,
    n: int,
) -> RunBlock:
    """The next ``n`` runs of a source's pool; where there is an index, those that it finds."""
    tables, table, shape = program.tables, pools.table, program.shape
    pool, probe = tables[ix(source + at.SOURCE_POOL)], tables[ix(source + at.SOURCE_PROBE)]
    first, count = tables[ix(source + at.SOURCE_FIRST)], tables[ix(source + at.SOURCE_COUNT)]
    p = pool * POOL
    base, room, where = table[ix(p + BASE)], table[ix(p + ROOM)], offset
    if probe >= 0:
        base, room, where = shape[at.SCRATCH], BLOCK, 0
        n = candidates(program, pools, lanes, p, shape[at.PROBES] + probe, offset, n, event.low)
        if shedding is not None:
            allowed = left(shedding.floats)
            if n > allowed:
                shedding.words[UNTESTED] += n - int(allowed)
                n = int(allowed)
    has_old = int(pool > 0 and table[ix(p + OLDEST)] < event.low)
    starts = base + where
    removes = tables[ix(source + at.SOURCE_REMOVES)]
    registers = starts + COLUMNS * room
    return RunBlock(pool, source, first, count, removes, starts, starts + room, registers, room, where, n, has_old)


@inline
def keep_staying(pools: Pools, lanes: Lanes, block: RunBlock, offset: int) -> None:
    """Close the gaps that runs of a block leave which have gone on."""
    table, words, chosen, n, p = pools.table, pools.words, lanes.chosen, block.n, block.pool * POOL
    base, room, kept = table[ix(p + BASE)], table[ix(p + ROOM)], table[ix(p + KEPT)]
    m = 0
    for j in range(n):
        chosen[ix(m)] = j
        m += lanes.stay[ix(j)]
    if m < n or kept < offset:
        for f in range(COLUMNS + table[ix(p + FIELDS)]):
            to, source = base + f * room + kept, base + f * room + offset
            for q in range(m):
                words[ix(to + q)] = words[ix(source + chosen[ix(q)])]
    table[ix(p + KEPT)] = kept + m


@inline
def note_gone(program: Program, pools: Pools, lanes: Lanes, block: RunBlock) -> None:
    """Note which runs of a block leave when the tick is over: its other events still see them."""
    gone = block.registers + (pools.table[ix(block.pool * POOL + ALIKE)] + program.shape[at.GONE]) * block.room
    for j in range(block.n):
        pools.words[ix(gone + j)] |= 1 - lanes.stay[ix(j)]


@inline
def try_source(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Arena | None,
    event: Event,
    source: int,
) -> int:
    """Take the steps of a source with the runs of its pool, block by block, from ``control[OFFSET]`` on."""
    tables, table, p = program.tables, pools.table, program.tables[ix(source + at.SOURCE_POOL)] * POOL
    runs, is_charged = table[ix(p + CHILDREN)], tables[ix(source + at.SOURCE_CHARGED)]
    if shedding is not None and p == 0 and is_charged:  # births get what the runs have left
        allowed = control[at.OFFSET] + int(left(shedding.floats))
        shedding.words[UNTESTED] += max(runs - allowed, 0) if control[at.OFFSET] == 0 else 0
        runs = min(runs, allowed)
    if tables[ix(source + at.SOURCE_REMOVES)] and control[at.OFFSET] == 0:
        table[ix(p + KEPT)] = 0
    if tables[ix(source + at.SOURCE_PROBE)] < 0:
        control[at.OFFSET] = max(control[at.OFFSET], table[ix(p + HEAD)])
    while control[at.OFFSET] < runs:
        n = min(BLOCK, runs - control[at.OFFSET])
        if is_charged and control[at.LIMIT] >= 0:
            n = min(n, control[at.LIMIT] - control[at.DONE_STEPS])
            if n <= 0:
                return at.STOPPED
        status = lacks_room(control, program, pools, lineage.links, source, n)
        if status != at.DONE:
            return status
        if tables[ix(source + at.SOURCE_CALLS)] > 0 and control[at.CALLED] == 0:
            control[at.ASK] = n
            return at.CALL
        if shedding is not None:
            status = begin_sample(control, program, pools, shedding, event, source, n)
            if status != at.DONE:
                return status
        block = find_block(program, pools, lanes, shedding, event, source, control[at.OFFSET], n)
        if block.n == 0:
            break
        if run_block(control, program, pools, lanes, lineage, shedding, event, block):
            return at.TOO_LARGE
        control[at.CALLED] = 0
        if is_charged:
            control[at.DONE_STEPS] += block.n
            if shedding is not None:
                charge(pools, shedding, block)
        if block.removes and program.shape[at.SIMULTANEOUS]:
            note_gone(program, pools, lanes, block)
        elif block.removes:
            keep_staying(pools, lanes, block, control[at.OFFSET])
        control[at.OFFSET] += block.n
    return at.DONE


@inline
def try_steps(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Arena | None,
    event: Event,
) -> int:
    """The second phase: the steps that the event allows, source by source."""
    last = program.tables[ix(program.shape[at.CLASS_FIRST] + event.kind + 1)]
    while control[at.SOURCE] < last:
        source = program.shape[at.SOURCES] + at.SOURCE_WORDS * control[at.SOURCE]
        status = try_source(control, program, pools, lanes, lineage, shedding, event, source)
        if status != at.DONE:
            return status
        control[at.SOURCE] += 1
        control[at.OFFSET] = 0
    control[at.PHASE] = ENDING
    control[at.SOURCE] = program.tables[ix(program.shape[at.TARGETS_FIRST] + event.kind)]
    return at.DONE


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
    children, runs = table[ix(pool * POOL + FRESH)], table[ix(pool * POOL + RUNS)]
    if runs > children:
        made, ends = runs - children, program.tables[ix(state + at.STATE_ENDS)]
        keeps_lineage = program.shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE
        if keeps_lineage and (control[at.LINKS] + made) * at.LINK > lineage.links.size:
            control[at.ASK] = made
            return at.GROW_LINKS
        if shedding is not None and shedding.words[LOGS]:
            control[at.ASK] = 2 * made * shedding.words[ENTRY] + log_room(program, pools, shedding.words)
            if control[at.LOGGED] + control[at.ASK] > shedding.log.size:
                return at.LOG_FULL
        if (control[at.HITS] + made * ends) * at.HIT > lineage.hits.size:
            control[at.ASK] = made * ends
            return at.GROW_HITS
        if ends > 0 and record_hits(control, program, pools, lanes, lineage, shedding, event, pool):
            return at.TOO_LARGE
        if shedding is not None and program.tables[ix(state + at.STATE_STAYS)]:
            runs = admit(control, program, pools, shedding, event, pool)
            table[ix(pool * POOL + RUNS)] = runs
    if program.shape[at.SIMULTANEOUS]:
        let_wait(control, program, table, pool)
    else:
        take_in_children(control, program, pools, lineage, event.key, pool, runs)
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
    last = tables[ix(shape[at.TARGETS_FIRST] + event.kind + 1)]
    while control[at.SOURCE] < last:
        pool = tables[ix(shape[at.TARGETS] + at.TARGET_WORDS * control[at.SOURCE])]
        status = end_pool(control, program, pools, lanes, lineage, shedding, event, pool)
        if status != at.DONE:
            return status
        control[at.SOURCE] += 1
    control[at.PEAK] = max(control[at.PEAK], control[at.LIVE])
    if shape[at.NON_OVERLAP] and control[at.HITS] > control[at.HITS_BEFORE]:
        drop_all_expired(control, pools, event.now + 1)
    if shedding is not None:
        end_shedding(control, program, pools, shedding, event)
    control[at.EXPIRED] = event.low
    where = shape[at.GUARDS_FIRST] + event.kind
    for i in range(tables[ix(where)], tables[ix(where + 1)]):
        note_guard(keys, shape, event, tables[ix(shape[at.GUARDS] + i)])
    control[at.PHASE] = 0
    control[at.EVENT] += 1
    return at.DONE


@block_kernel
def advance(
    control: Ints,
    batch: Batch,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    keys: Keys,
    shedding: Arena | None,
) -> int:
    """Run grouped events from where ``control`` says.

    Returns
    -------
    int
        DONE, STOPPED (the limit of run-steps), TOO_LARGE (an integer passed 64 bits), or which array must grow or be
        emptied (``control[ASK]`` says by how much, or which pool): then call again.
    """
    status = at.DONE
    while control[at.EVENT] < batch.slot.size and status == at.DONE:
        e = control[at.EVENT]
        now = batch.tick[ix(e)]
        low = now - program.shape[at.WINDOW]
        slot, cls = batch.slot[ix(e)], batch.cls[ix(e)]
        event = Event(e, now, batch.start[ix(e)], slot, cls, batch.id[ix(e)], batch.place[ix(e)], low)
        if control[at.PHASE] == 0:
            status = begin_event(control, batch, program, pools, lineage, keys, shedding, event)
        if control[at.PHASE] == TESTING:
            status = try_steps(control, program, pools, lanes, lineage, shedding, event)
        if control[at.PHASE] == ENDING:
            status = end_event(control, program, pools, lanes, lineage, keys, shedding, event)
    return status
