"""The kernel of the runs engine: events in, runs advanced, completed matches recorded.

Runs live in pools, one per state and number of errors, as columns: start, lineage, registers. For each event the pools
that can react are gone through in blocks; what a step makes of a block is put behind the runs of its target pool, and
becomes part of it when the event is done: so no event is used twice. It can stop before any block and go on there.

Source: Agrawal et al., SIGMOD 2008, section 5.2 (basic algorithm, merging of equivalent runs). Deviations: columns
instead of objects; the ignore edge is no work; a link keeps its own start, so no version numbers are needed.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.begin import TESTING, begin_event, event_at
from acep_approx.kernels.runs.blocks import keep_staying, run_block
from acep_approx.kernels.runs.ends import ENDING, end_event
from acep_approx.kernels.runs.few import is_over, run_while_few
from acep_approx.kernels.runs.idle import pass_idle_pairs
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    BOUNDED,
    CHILDREN,
    COLUMNS,
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
    BIRTH_TOKENS,
    BORN_FROM,
    BORN_IN,
    PAIRS,
    SAMPLE,
    SAMPLE_ENTRY,
    SAMPLE_NOW,
    UNTESTED,
    charge,
    left,
    left_for_births,
    note_lost,
)
from acep_approx.kernels.runs.vm import BLOCK
from acep_approx.kernels.runs.waiting import bound_again, leave_holes, waits, within_reach

PATIENCE = 32
"""After so many events that were run here, it is tried whether events meet few runs now: asking takes as long as ten
run-steps."""


@inline
def lacks_room(control: Ints, program: Program, pools: Pools, links: Ints, source: int, n: int) -> int:
    """What must grow before a block of ``n`` runs takes the steps of a source: several may lead to one pool."""
    tables, shape, buckets = program.tables, program.shape, pools.buckets
    first, count = tables[source + at.SOURCE_FIRST], tables[source + at.SOURCE_COUNT]
    for s in range(first, first + count):
        t = tables[shape[at.STEPS] + s * at.STEP] * POOL
        if t >= 0 and pools.table[t + RUNS] + n * count > pools.table[t + ROOM]:
            control[at.ASK] = t // POOL
            return at.GROW_POOL
    if shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE and (control[at.LINKS] + n * count) * at.LINK > len(links):
        control[at.ASK] = n * count
        return at.GROW_LINKS
    if 2 * (control[at.HASHED_NOW] + n * count) > len(buckets) // 2:
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
        count = tables[source + at.SOURCE_COUNT]
        if lacks_sample_room(shedding, n * count + 2 * AT_ONCE):
            control[at.ASK] = (BLOCK * count + 2 * AT_ONCE) * shed[SAMPLE_ENTRY]
            return at.SAMPLE_FULL
        if tables[source + at.SOURCE_PROBE] >= 0 and control[at.OFFSET] == 0 and shed[SAMPLE_NOW]:
            step = program.shape[at.STEPS] + tables[source + at.SOURCE_FIRST] * at.STEP
            note_left_out(program, pools, shedding, event, tables[source + at.SOURCE_POOL], step)
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
    pool, probe = tables[source + at.SOURCE_POOL], tables[source + at.SOURCE_PROBE]
    first, count = tables[source + at.SOURCE_FIRST], tables[source + at.SOURCE_COUNT]
    p = pool * POOL
    base, room, where = table[p + BASE], table[p + ROOM], offset
    if probe >= 0:
        base, room, where = shape[at.SCRATCH], BLOCK, 0
        n = candidates(program, pools, lanes, p, shape[at.PROBES] + probe, offset, n, event.low)
        if shedding is not None:
            allowed = left(shedding.floats)
            if n > allowed:
                shedding.words[UNTESTED] += n - int(allowed)
                note_lost(shedding, event, event.now)
                n = int(allowed)
    has_old = int(pool > 0 and table[p + OLDEST] < event.low)
    starts = base + where
    removes = tables[source + at.SOURCE_REMOVES]
    registers = starts + COLUMNS * room
    return RunBlock(pool, source, first, count, removes, starts, starts + room, registers, room, where, n, has_old)


@inline
def note_gone(program: Program, pools: Pools, lanes: Lanes, block: RunBlock) -> None:
    """Note which runs of a block leave when the tick is over: its other events still see them."""
    p, leaving = block.pool * POOL, 0
    gone = block.registers + (pools.table[block.pool * POOL + ALIKE] + program.shape[at.GONE]) * block.room
    for j in range(block.n):
        pools.words[gone + j] |= 1 - lanes.stay[j]
        leaving += pools.words[gone + j]
    if leaving > 0 and waits(pools.table, p):
        bound_again(program, pools, p, block.offset, block.offset + block.n)
    elif leaving > 0:
        pools.table[p + BOUNDED] = 0


@inline
def note_birth(program: Program, pools: Pools, shedding: Arena, source: int) -> None:
    """Note where the run that is begun will stand: where it is refused at once, it was a look and no run-step."""
    tables, shed = program.tables, shedding.words
    if tables[source + at.SOURCE_COUNT] == 1:
        step = program.shape[at.STEPS] + tables[source + at.SOURCE_FIRST] * at.STEP
        shed[BORN_IN] = tables[step + at.STEP_TARGET]
        shed[BORN_FROM] = pools.table[shed[BORN_IN] * POOL + RUNS]
    shedding.floats[BIRTH_TOKENS] -= 1.0


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
    tables, table, p = program.tables, pools.table, program.tables[source + at.SOURCE_POOL] * POOL
    runs, is_charged = table[p + CHILDREN], tables[source + at.SOURCE_CHARGED]
    if shedding is not None and p == 0 and is_charged:  # births get what the runs have left
        allowed = control[at.OFFSET] + int(left_for_births(shedding))
        shedding.words[UNTESTED] += max(runs - allowed, 0) if control[at.OFFSET] == 0 else 0
        if runs > allowed:
            note_lost(shedding, event, event.start)
        runs = min(runs, allowed)
    is_waiting = tables[source + at.SOURCE_REMOVES] and waits(table, p)
    if tables[source + at.SOURCE_REMOVES] and control[at.OFFSET] == 0 and not is_waiting:
        table[p + KEPT] = 0
    if tables[source + at.SOURCE_PROBE] < 0:
        control[at.OFFSET] = max(control[at.OFFSET], table[p + HEAD])
    while control[at.OFFSET] < runs:
        n = min(BLOCK, runs - control[at.OFFSET])
        if is_waiting:
            control[at.OFFSET], n = within_reach(program, pools, p, source, control[at.OFFSET])
            if n == 0:
                break
        if is_charged and control[at.LIMIT] >= 0:
            n = min(n, control[at.LIMIT] - control[at.DONE_STEPS])
            if n <= 0:
                return at.STOPPED
        if is_charged and is_over(control):
            return at.STOPPED
        status = lacks_room(control, program, pools, lineage.links, source, n)
        if status != at.DONE:
            return status
        if program.more is not None and tables[source + at.SOURCE_CALLS] > 0 and control[at.CALLED] == 0:
            control[at.ASK] = n
            return at.CALL
        if shedding is not None:
            status = begin_sample(control, program, pools, shedding, event, source, n)
            if status != at.DONE:
                return status
        block = find_block(program, pools, lanes, shedding, event, source, control[at.OFFSET], n)
        if block.n == 0:
            break
        if shedding is not None and p == 0 and is_charged:
            note_birth(program, pools, shedding, source)
        if run_block(control, program, pools, lanes, lineage, shedding, event, block):
            return at.TOO_LARGE
        control[at.CALLED] = 0
        if is_charged:
            control[at.DONE_STEPS] += block.n
            if shedding is not None:
                charge(pools, shedding, block)
        if program.more is not None and block.removes and program.shape[at.SIMULTANEOUS]:
            note_gone(program, pools, lanes, block)
        elif is_waiting:
            leave_holes(program, pools, lanes, block)
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
    last = program.tables[program.shape[at.CLASS_FIRST] + event.kind + 1]
    while control[at.SOURCE] < last:
        source = program.shape[at.SOURCES] + at.SOURCE_WORDS * control[at.SOURCE]
        status = try_source(control, program, pools, lanes, lineage, shedding, event, source)
        if status != at.DONE:
            return status
        control[at.SOURCE] += 1
        control[at.OFFSET] = 0
    control[at.PHASE] = ENDING
    control[at.SOURCE] = program.tables[program.shape[at.TARGETS_FIRST] + event.kind]
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
    status, patience = at.DONE, 0
    while control[at.EVENT] < len(batch.slot) and status == at.DONE:
        if program.more is None and control[at.PHASE] == 0:
            if shedding is not None:
                if shedding.words[PAIRS]:
                    pass_idle_pairs(control, batch, program, pools, keys, shedding)
                    if control[at.EVENT] == len(batch.slot):
                        break
            else:
                if patience == 0:
                    status = run_while_few(control, batch, program, pools, lanes, lineage, keys)
                    patience = PATIENCE
                    continue
                patience -= 1
        event = event_at(control, batch)
        if control[at.PHASE] == 0:
            status = begin_event(control, batch, program, pools, lineage, keys, shedding, event)
        if control[at.PHASE] == TESTING:
            status = try_steps(control, program, pools, lanes, lineage, shedding, event)
        if control[at.PHASE] == ENDING:
            status = end_event(control, program, pools, lanes, lineage, keys, shedding, event)
    return status
