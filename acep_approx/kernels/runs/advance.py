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
from acep_approx.kernels.runs.blocks import run_block
from acep_approx.kernels.runs.ends import end_event_in, record_hits
from acep_approx.kernels.runs.layout import (
    ASK,
    CLASS_FIRST,
    COLUMNS_AT,
    CONTIGUOUS,
    DONE,
    DONE_STEPS,
    EVENT,
    EVENT_COLUMNS,
    EXPIRED,
    GROW_BUCKETS,
    GROW_HITS,
    GROW_LINKS,
    GROW_POOL,
    GROW_STORE,
    GUARD_LETTERS,
    GUARDS,
    GUARDS_FIRST,
    HASHED_NOW,
    HIT,
    HITS,
    HITS_BEFORE,
    KEEPS_LINEAGE,
    LIMIT,
    LINK,
    LINKS,
    LIVE,
    LOG_FULL,
    LOGGED,
    NO_LINEAGE,
    NON_OVERLAP,
    NOW_AT,
    OFFSET,
    PEAK,
    PHASE,
    PROBES,
    SAMPLE_FULL,
    SCRATCH,
    SLOT,
    SOURCE,
    SOURCE_COUNT,
    SOURCE_FIRST,
    SOURCE_POOL,
    SOURCE_PROBE,
    SOURCE_REMOVES,
    SOURCE_WORDS,
    SOURCES,
    STAMP,
    STATE,
    STATE_ENDS,
    STATE_STAYS,
    STATES,
    STEP,
    STEPS,
    STOPPED,
    STORED,
    STRATEGY,
    TARGETS,
    TARGETS_FIRST,
    TOO_LARGE,
    WINDOW,
)
from acep_approx.kernels.runs.passes import end_shedding, log_room, make_room
from acep_approx.kernels.runs.pools import (
    AGE,
    BASE,
    CHILDREN,
    COLUMNS,
    FIELDS,
    HEAD,
    IS_STALE,
    KEPT,
    OLDEST,
    POOL,
    RANK,
    REST,
    ROOM,
    RUNS,
    SMALL_POOL,
    SWEEP_EVERY,
    candidates,
    drop_expired,
    index_runs,
)
from acep_approx.kernels.runs.records import Batch, Block, Event, Keys, Lanes, Lineage, Pools, Program, Shedding
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
            control[LIVE] -= drop_expired(pools, p, low)


@inline
def change_key(control: Ints, pools: Pools, keys: Keys, key: int) -> int:
    """Save the runs of the key at hand and bring in those of ``key``."""
    if control[SLOT] >= 0:
        drop_all_expired(control, pools, control[EXPIRED])
        needed = save_words(pools.table)
        if control[STORED] + needed > keys.stored.size:
            control[ASK] = needed
            return GROW_STORE
        control[STORED] = save_runs(pools, keys, control[SLOT], control[STORED])
        control[SLOT] = -1
    lacking = load_runs(pools, keys, key)
    if lacking >= 0:
        control[ASK] = lacking
        return GROW_POOL
    control[SLOT] = key
    return DONE


@inline
def write_scalars(batch: Batch, program: Program, pools: Pools, keys: Keys, event: Event) -> None:
    """The values of this event that programs ask for."""
    words, shape, letters = pools.words, program.shape, program.shape[GUARD_LETTERS]
    words[0] = event.row
    for g in range(letters):
        words[ix(1 + g)] = keys.guards[ix(event.key * letters + g)]
    for c in range(shape[EVENT_COLUMNS]):
        words[ix(shape[COLUMNS_AT] + c)] = batch.columns[ix(c * batch.slot.size + event.number)]
    words[ix(pools.table[ix(BASE)])] = event.now  # the pool of the start holds one run, which has bound nothing


@inline
def begin_shedding(control: Ints, program: Program, pools: Pools, shedding: Shedding, event: Event) -> None:
    """Make room for the event, and note what its runs inherit."""
    note_pace(program, shedding, event)
    make_room(control, program, pools, shedding, event)
    pools.words[ix(program.shape[NOW_AT])] = event.now
    pools.words[ix(program.shape[NOW_AT] + 1)] = mark_of_event(program, shedding, event)
    choose_event(shedding.words, event.row)


@inline
def begin_pool(control: Ints, pools: Pools, event: Event, p: int, strategy: int) -> None:
    """Note where the runs of a pool end: what comes behind are children of this event."""
    table, low = pools.table, event.low
    if strategy == CONTIGUOUS and table[ix(p + RANK)] != event.rank - 1:
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
            control[LIVE] -= drop_expired(pools, p, low)
            runs = table[ix(p + RUNS)]
    if table[ix(p + IS_STALE)] and table[ix(p + REST)] == 0:
        index_runs(pools, p)
    table[ix(p + CHILDREN)] = runs
    table[ix(p + KEPT)] = 0 if strategy == CONTIGUOUS else runs


@inline
def begin_event(
    control: Ints,
    batch: Batch,
    program: Program,
    pools: Pools,
    keys: Keys,
    shedding: Shedding | None,
    event: Event,
) -> int:
    """The first phase: bring in the runs of the key, shed what the event would not find room for, drop old runs."""
    tables, shape = program.tables, program.shape
    if control[SLOT] != event.key:
        status = change_key(control, pools, keys, event.key)
        if status != DONE:
            return status
        if shedding is not None:
            find_newest(program, pools, shedding.words)
    write_scalars(batch, program, pools, keys, event)
    if shedding is not None:
        room = log_room(program, pools, shedding.words)
        if control[LOGGED] + room > shedding.log.size:
            control[ASK] = room
            return LOG_FULL
        begin_shedding(control, program, pools, shedding, event)
    at = shape[TARGETS_FIRST] + event.kind
    for i in range(tables[ix(at)], tables[ix(at + 1)]):
        begin_pool(control, pools, event, tables[ix(shape[TARGETS] + i)] * POOL, shape[STRATEGY])
    control[STAMP] += 1
    control[HASHED_NOW] = 0
    control[HITS_BEFORE] = control[HITS]
    control[PHASE] = TESTING
    control[SOURCE] = tables[ix(shape[CLASS_FIRST] + event.kind)]
    control[OFFSET] = 0
    return DONE


@inline
def lacks_room(control: Ints, program: Program, pools: Pools, links: Ints, source: int, n: int) -> int:
    """What must grow before a block of ``n`` runs takes the steps of a source: several may lead to one pool."""
    tables, shape, buckets = program.tables, program.shape, pools.buckets
    first, count = tables[ix(source + SOURCE_FIRST)], tables[ix(source + SOURCE_COUNT)]
    for s in range(first, first + count):
        t = tables[ix(shape[STEPS] + s * STEP)] * POOL
        if pools.table[ix(t + RUNS)] + n * count > pools.table[ix(t + ROOM)]:
            control[ASK] = t // POOL
            return GROW_POOL
    if shape[KEEPS_LINEAGE] != NO_LINEAGE and (control[LINKS] + n * count) * LINK > links.size:
        control[ASK] = n * count
        return GROW_LINKS
    if 2 * (control[HASHED_NOW] + n * count) > buckets.size // 2:
        control[ASK] = 4 * (control[HASHED_NOW] + n * count)
        return GROW_BUCKETS
    return DONE


@inline
def begin_sample(
    control: Ints, program: Program, pools: Pools, shedding: Shedding, event: Event, source: int, n: int
) -> int:
    """See to it that the tests of a block can be written down, and write down those that an index leaves out."""
    tables, shed = program.tables, shedding.words
    if shed[SAMPLE] > 0:
        count = tables[ix(source + SOURCE_COUNT)]
        if lacks_sample_room(shedding, n * count + 2 * AT_ONCE):
            control[ASK] = (BLOCK * count + 2 * AT_ONCE) * shed[SAMPLE_ENTRY]
            return SAMPLE_FULL
        if tables[ix(source + SOURCE_PROBE)] >= 0 and control[OFFSET] == 0 and shed[SAMPLE_NOW]:
            step = program.shape[STEPS] + tables[ix(source + SOURCE_FIRST)] * STEP
            note_left_out(program, pools, shedding, event, tables[ix(source + SOURCE_POOL)], step)
    return DONE


@inline
def find_block(
    program: Program,
    pools: Pools,
    lanes: Lanes,
    shedding: Shedding | None,
    event: Event,
    source: int,
    offset: int,
    n: int,
) -> Block:
    """The next ``n`` runs of a source's pool; where there is an index, those that it finds."""
    tables, table, shape = program.tables, pools.table, program.shape
    pool, probe = tables[ix(source + SOURCE_POOL)], tables[ix(source + SOURCE_PROBE)]
    first, count = tables[ix(source + SOURCE_FIRST)], tables[ix(source + SOURCE_COUNT)]
    p = pool * POOL
    base, room, at = table[ix(p + BASE)], table[ix(p + ROOM)], offset
    if probe >= 0:
        base, room, at = shape[SCRATCH], BLOCK, 0
        n = candidates(program, pools, lanes, p, shape[PROBES] + probe, offset, n, event.low)
        if shedding is not None:
            allowed = left(shedding.floats)
            if n > allowed:
                shedding.words[UNTESTED] += n - int(allowed)
                n = int(allowed)
    has_old = int(pool > 0 and table[ix(p + OLDEST)] < event.low)
    starts = base + at
    return Block(
        pool, first, count, tables[ix(source + SOURCE_REMOVES)], starts, starts + room, starts + COLUMNS * room, room,
        at, n, has_old,
    )  # fmt: skip


@inline
def keep_staying(pools: Pools, lanes: Lanes, block: Block, offset: int) -> None:
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
def try_source(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Shedding | None,
    event: Event,
    source: int,
) -> int:
    """Take the steps of a source with the runs of its pool, block by block, from ``control[OFFSET]`` on."""
    tables, table, p = program.tables, pools.table, program.tables[ix(source + SOURCE_POOL)] * POOL
    runs = table[ix(p + CHILDREN)] if p > 0 else 1
    if tables[ix(source + SOURCE_REMOVES)] and control[OFFSET] == 0:
        table[ix(p + KEPT)] = 0
    if tables[ix(source + SOURCE_PROBE)] < 0:
        control[OFFSET] = max(control[OFFSET], table[ix(p + HEAD)])
    while control[OFFSET] < runs:
        n = min(BLOCK, runs - control[OFFSET])
        if p > 0 and control[LIMIT] >= 0:
            n = min(n, control[LIMIT] - control[DONE_STEPS])
            if n <= 0:
                return STOPPED
        status = lacks_room(control, program, pools, lineage.links, source, n)
        if status != DONE:
            return status
        if shedding is not None:
            status = begin_sample(control, program, pools, shedding, event, source, n)
            if status != DONE:
                return status
        block = find_block(program, pools, lanes, shedding, event, source, control[OFFSET], n)
        if block.n == 0:
            break
        if run_block(control, program, pools, lanes, lineage, shedding, event, block):
            return TOO_LARGE
        if p > 0:
            control[DONE_STEPS] += block.n
            if shedding is not None:
                charge(pools, shedding, block)
            if block.removes:
                keep_staying(pools, lanes, block, control[OFFSET])
        control[OFFSET] += block.n
    return DONE


@inline
def try_steps(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Shedding | None,
    event: Event,
) -> int:
    """The second phase: the steps that the event allows, source by source."""
    last = program.tables[ix(program.shape[CLASS_FIRST] + event.kind + 1)]
    while control[SOURCE] < last:
        source = program.shape[SOURCES] + SOURCE_WORDS * control[SOURCE]
        status = try_source(control, program, pools, lanes, lineage, shedding, event, source)
        if status != DONE:
            return status
        control[SOURCE] += 1
        control[OFFSET] = 0
    control[PHASE] = ENDING
    control[SOURCE] = program.tables[ix(program.shape[TARGETS_FIRST] + event.kind)]
    return DONE


@inline
def end_pool(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Shedding | None,
    event: Event,
    pool: int,
) -> int:
    """Children in a pool complete matches, and become its runs."""
    table, state = pools.table, program.shape[STATES] + pool * STATE
    children, runs = table[ix(pool * POOL + CHILDREN)], table[ix(pool * POOL + RUNS)]
    if runs > children:
        made, ends = runs - children, program.tables[ix(state + STATE_ENDS)]
        if program.shape[KEEPS_LINEAGE] != NO_LINEAGE and (control[LINKS] + made) * LINK > lineage.links.size:
            control[ASK] = made
            return GROW_LINKS
        if shedding is not None and shedding.words[LOGS]:
            control[ASK] = 2 * made * shedding.words[ENTRY] + log_room(program, pools, shedding.words)
            if control[LOGGED] + control[ASK] > shedding.log.size:
                return LOG_FULL
        if (control[HITS] + made * ends) * HIT > lineage.hits.size:
            control[ASK] = made * ends
            return GROW_HITS
        if ends > 0 and record_hits(control, program, pools, lanes, lineage, shedding, event, pool):
            return TOO_LARGE
        if shedding is not None and program.tables[ix(state + STATE_STAYS)]:
            runs = admit(control, program, pools, shedding, event, pool)
            table[ix(pool * POOL + RUNS)] = runs
    end_event_in(control, program, pools, lineage, event, pool, runs)
    return DONE


@inline
def end_event(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    keys: Keys,
    shedding: Shedding | None,
    event: Event,
) -> int:
    """The third phase: children become runs."""
    tables, shape = program.tables, program.shape
    last = tables[ix(shape[TARGETS_FIRST] + event.kind + 1)]
    while control[SOURCE] < last:
        pool = tables[ix(shape[TARGETS] + control[SOURCE])]
        status = end_pool(control, program, pools, lanes, lineage, shedding, event, pool)
        if status != DONE:
            return status
        control[SOURCE] += 1
    control[PEAK] = max(control[PEAK], control[LIVE])
    if shape[NON_OVERLAP] and control[HITS] > control[HITS_BEFORE]:
        drop_all_expired(control, pools, event.now + 1)
    if shedding is not None:
        end_shedding(control, program, pools, shedding, event)
    control[EXPIRED] = event.low
    at = shape[GUARDS_FIRST] + event.kind
    for i in range(tables[ix(at)], tables[ix(at + 1)]):
        keys.guards[ix(event.key * shape[GUARD_LETTERS] + tables[ix(shape[GUARDS] + i)])] = event.row
    control[PHASE] = 0
    control[EVENT] += 1
    return DONE


@block_kernel
def advance(
    control: Ints,
    batch: Batch,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    keys: Keys,
    shedding: Shedding | None,
) -> int:
    """Run grouped events from where ``control`` says.

    Returns
    -------
    int
        DONE, STOPPED (the limit of run-steps), TOO_LARGE (an integer passed 64 bits), or which array must grow or be
        emptied (``control[ASK]`` says by how much, or which pool): then call again.
    """
    status = DONE
    while control[EVENT] < batch.slot.size and status == DONE:
        e = control[EVENT]
        now = batch.tick[ix(e)]
        low = now - program.shape[WINDOW]
        event = Event(e, now, batch.slot[ix(e)], batch.cls[ix(e)], batch.row[ix(e)], batch.rank[ix(e)], low)
        if control[PHASE] == 0:
            status = begin_event(control, batch, program, pools, keys, shedding, event)
        if control[PHASE] == TESTING:
            status = try_steps(control, program, pools, lanes, lineage, shedding, event)
        if control[PHASE] == ENDING:
            status = end_event(control, program, pools, lanes, lineage, keys, shedding, event)
    return status
