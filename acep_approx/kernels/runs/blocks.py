"""What the steps of a source do with a block of runs."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.children import make_children, runs_in_place
from acep_approx.kernels.runs.pools import BASE, COLUMNS, FIELDS, KEPT, POOL, ROOM
from acep_approx.kernels.runs.records import Arena, Event, Lanes, Lineage, Pools, Program, RunBlock, Taken
from acep_approx.kernels.runs.sample import is_sampled, note_tests
from acep_approx.kernels.runs.vm import run_program


@inline
def run_part(program: Program, pools: Pools, lanes: Lanes, block: RunBlock, part: int) -> int:
    """Run the program that ``tables[part]`` names on a block; returns 1 where an integer passed 64 bits."""
    if program.tables[part + 1] == 0:
        return 0
    return run_program(program, pools, part, block.registers, block.room, lanes.mask, block.n)


@inline
def choose(program: Program, lanes: Lanes, block: RunBlock, step: int) -> int:
    """Collect the runs that take a step; returns how many there are."""
    mask, chosen, m = lanes.mask, lanes.chosen, 0
    if program.tables[step + at.STEP_IN_PLACE] and program.shape[at.KEEPS_LINEAGE] == at.NO_LINEAGE:
        for j in range(block.n):
            m += mask[j]
    else:
        for j in range(block.n):
            chosen[m] = j
            m += mask[j]
    return m


@inline
def test_step(program: Program, pools: Pools, lanes: Lanes, event: Event, block: RunBlock, step: int) -> int:
    """Find the runs that take a step; returns how many there are, -1 where an integer passed 64 bits."""
    mask, stay = lanes.mask, lanes.stay
    if (
        block.has_old
    ):  # they must have no children: where runs branch, those would be as many as the runs that are young
        for j in range(block.n):
            mask[j] = pools.words[block.starts + j] >= event.low
    else:
        for j in range(block.n):
            mask[j] = 1
    if run_part(program, pools, lanes, block, step + at.STEP_CHECKS):
        return -1
    if block.removes and program.tables[step + at.STEP_INHIBITS]:
        for j in range(block.n):
            stay[j] &= 1 - mask[j]
    if run_part(program, pools, lanes, block, step + at.STEP_GUARDS):
        return -1
    m = choose(program, lanes, block, step)
    if m > 0 and run_part(program, pools, lanes, block, step + at.STEP_UPDATES):
        return -1
    return m


@inline
def is_open(tables: Ints, step: int, now: int) -> bool:
    """Whether a step can be taken now."""
    return bool(tables[step + at.STEP_FROM] <= now < tables[step + at.STEP_UNTIL])


@inline
def begin_staying(program: Program, pools: Pools, lanes: Lanes, event: Event, block: RunBlock) -> int:
    """Which runs of a block the event leaves where they are if no step inhibits; returns 1 as ``run_part`` does."""
    how = program.tables[block.source + at.SOURCE_STAYS]
    for j in range(block.n):
        lanes.stay[j] = how != at.LEAVE
    if program.more is not None and how == at.MAY_STAY:
        for j in range(block.n):
            lanes.mask[j] = pools.words[block.starts + j] >= event.low
        if run_part(program, pools, lanes, block, block.source + at.SOURCE_IGNORE):
            return 1
        for j in range(block.n):
            lanes.stay[j] = lanes.mask[j]
    return 0


@inline
def take_step(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    block: RunBlock,
    taken: Taken,
    is_in_place: int,
) -> None:
    """Let the chosen runs take a step."""
    control[at.MADE] += taken.m
    if is_in_place:
        runs_in_place(program, pools, lanes, lineage, block, taken)
        if block.removes:
            for j in range(block.n):
                lanes.stay[j] |= lanes.mask[j]
    else:
        merged = make_children(program, pools, lanes, lineage, block, taken)
        control[at.MERGED] += merged
        control[at.HASHED_NOW] += taken.m - merged
    if program.shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE:
        control[at.LINKS] = taken.link + taken.m


@inline
def run_block(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    shedding: Arena | None,
    event: Event,
    block: RunBlock,
) -> int:
    """Take the steps of a source with a block of its runs; returns 1 where an integer passed 64 bits."""
    tables, shape = program.tables, program.shape
    if block.removes and begin_staying(program, pools, lanes, event, block):
        return 1
    for s in range(block.first, block.first + block.steps):
        step = shape[at.STEPS] + s * at.STEP
        if program.more is not None and not is_open(tables, step, event.now):
            continue
        m = test_step(program, pools, lanes, event, block, step)
        if m < 0:
            return 1
        if tables[step + at.STEP_TARGET] < 0:
            continue
        here = (event.id << at.ARC_BITS) | tables[step + at.STEP_ARC]
        moves, stamp = shape[at.MOVES] + 2 * tables[step + at.STEP_MOVES], control[at.STAMP] * shape[at.POOLS]
        target, fields = tables[step + at.STEP_TARGET], tables[step + at.STEP_FIELDS]
        taken = Taken(target, moves, fields, m, control[at.LINKS], here, event.key, stamp)
        if shedding is not None and is_sampled(shedding.words, block.pool, target, m):
            note_tests(program, pools, lanes.mask, shedding, event, block, taken, step)
        if m > 0:
            take_step(control, program, pools, lanes, lineage, block, taken, tables[step + at.STEP_IN_PLACE])
    return 0


@inline
def keep_staying(pools: Pools, lanes: Lanes, block: RunBlock, offset: int) -> None:
    """Close the gaps that runs of a block leave which have gone on."""
    table, words, chosen, n, p = pools.table, pools.words, lanes.chosen, block.n, block.pool * POOL
    base, room, kept = table[p + BASE], table[p + ROOM], table[p + KEPT]
    m = 0
    for j in range(n):
        chosen[m] = j
        m += lanes.stay[j]
    if m < n or kept < offset:
        for f in range(COLUMNS + table[p + FIELDS]):
            to, source = base + f * room + kept, base + f * room + offset
            for q in range(m):
                words[to + q] = words[source + chosen[q]]
    table[p + KEPT] = kept + m
