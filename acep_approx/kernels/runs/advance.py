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
from acep_approx.kernels.runs.admission import admit
from acep_approx.kernels.runs.begin import TESTING, begin_event, drop_all_expired
from acep_approx.kernels.runs.blocks import run_block
from acep_approx.kernels.runs.ends import let_wait, record_hits, take_in_children
from acep_approx.kernels.runs.passes import end_shedding, log_room
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    CHILDREN,
    COLUMNS,
    FIELDS,
    FRESH,
    HEAD,
    KEPT,
    OLDEST,
    POOL,
    ROOM,
    RUNS,
    candidates,
)
from acep_approx.kernels.runs.records import Arena, Batch, Event, Keys, Lanes, Lineage, Pools, Program, RunBlock
from acep_approx.kernels.runs.sample import AT_ONCE, lacks_sample_room, note_left_out
from acep_approx.kernels.runs.scores import (
    ENTRY,
    LOGS,
    SAMPLE,
    SAMPLE_ENTRY,
    SAMPLE_NOW,
    UNTESTED,
    charge,
    left,
)
from acep_approx.kernels.runs.vm import BLOCK

ENDING = 2
"""The phase of an event after ``TESTING``: children become runs."""


@inline
def note_guard(keys: Keys, shape: Ints, event: Event, letter: int) -> None:
    """Note that an event of a guard letter came, and where the last one stood that came at an earlier place."""
    at_letter = (event.key * shape[at.GUARD_LETTERS] + letter) * at.GUARD
    if keys.guards[ix(at_letter)] != event.place:
        keys.guards[ix(at_letter + 1)] = keys.guards[ix(at_letter)]
        keys.guards[ix(at_letter)] = event.place


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
        if program.more is not None and tables[ix(source + at.SOURCE_CALLS)] > 0 and control[at.CALLED] == 0:
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
        if program.more is not None and block.removes and program.shape[at.SIMULTANEOUS]:
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
