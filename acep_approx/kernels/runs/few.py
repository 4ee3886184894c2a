"""Events that meet few runs, one after the other, without the block machine.

Its loops have a price before their first run, and where runs are few, that is most of what they cost. What comes of it
is the same, in the same order. Only plain sources are tried so: their steps compare registers with values of the
event, and compute nothing.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import compact, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.begin import begin_event, event_at
from acep_approx.kernels.runs.blocks import begin_staying, copy_registers, equal_child, keep_staying
from acep_approx.kernels.runs.ends import ENDING, end_event
from acep_approx.kernels.runs.idle import pass_idle
from acep_approx.kernels.runs.pools import (
    ALL,
    APART,
    BASE,
    CHILDREN,
    COLUMNS,
    FRESH,
    HASHED,
    HEAD,
    KEPT,
    MERGE,
    NEVER,
    OLDEST,
    POOL,
    REST,
    ROOM,
    RUNS,
    note_trial,
)
from acep_approx.kernels.runs.records import Batch, Event, Keys, Lanes, Lineage, Pools, Program, RunBlock, Taken
from acep_approx.kernels.runs.vm import NULL, SCALAR, TEST_FLOAT, WIDTH

FEW_RUNS = 8
"""An event that meets no more than so many runs of each pool is tried here; from ten on blocks are faster."""
IN_PLACE = -1
"""In the place of how children are merged: there are none, runs go on in their pool."""


@inline
def narrow(program: Program, pools: Pools, lanes: Lanes, block: RunBlock, part: int, m: int) -> int:
    """Of the ``m`` chosen runs keep those that pass the plain program which ``tables[part]`` names: so many.

    It counts on instead of asking, so that there is no branch to predict.
    """
    tables, words, floats, chosen = program.tables, pools.words, pools.floats, lanes.chosen
    code = tables[part]
    for _ in range(tables[part + 1]):
        column, scalar = block.registers + tables[code + 3] * block.room, tables[code + 5]
        flags, kept = tables[code + 6], 0
        less, equal, greater = flags & 1, (flags >> 1) & 1, (flags >> 2) & 1
        if tables[code] == TEST_FLOAT:
            y = floats[scalar]
            for q in range(m):
                x = floats[column + chosen[q]]
                chosen[kept] = chosen[q]
                kept += ((x < y) & less) | ((x == y) & equal) | ((x > y) & greater)
        else:
            z = words[scalar]
            known = 1 if z != NULL else 0
            for q in range(m):
                v = words[column + chosen[q]]
                chosen[kept] = chosen[q]
                kept += (((v < z) & less) | ((v == z) & equal) | ((v > z) & greater)) & (v != NULL) & known
        m = kept
        code += WIDTH
    return m


@inline
def write_link(program: Program, lineage: Lineage, step: Taken, link: int, before: int, start: int) -> None:
    """The link of a run that takes a step."""
    links, new = lineage.links, link * at.LINK
    links[new + at.LINK_HERE] = step.here
    links[new + at.LINK_BEFORE] = before
    links[new + at.LINK_OTHER] = -1
    links[new + at.LINK_START] = start
    links[new + at.LINK_LATEST] = start
    if program.shape[at.KEEPS_LINEAGE] == at.WITH_OWNER:
        lineage.owner[link] = step.key


@inline
def go_on_in_place(program: Program, pools: Pools, block: RunBlock, step: Taken, j: int, link: int) -> None:
    """Run ``j`` takes a step in its pool."""
    tables, words = program.tables, pools.words
    words[block.before + j] = link
    for f in range(step.fields):
        if tables[step.moves + 2 * f] == SCALAR:
            words[block.registers + f * block.room + j] = words[tables[step.moves + 2 * f + 1]]


@inline
def new_child(program: Program, pools: Pools, block: RunBlock, step: Taken, j: int, link: int) -> None:
    """Run ``j`` has a child of its own."""
    table, words, t = pools.table, pools.words, step.target * POOL
    c, room, base = table[t + RUNS], table[t + ROOM], table[t + BASE]
    words[base + c] = words[block.starts + j]
    words[base + room + c] = link
    copy_registers(program, pools, block, step, j, base + COLUMNS * room + c)
    table[t + RUNS] = c + 1


@inline
def join_child(pools: Pools, lineage: Lineage, step: Taken, start: int, link: int) -> None:
    """One more run, which started at ``start``, leads to the only child that the event has in a pool."""
    table, words, links, t = pools.table, pools.words, lineage.links, step.target * POOL
    child = table[t + BASE] + table[t + FRESH]
    if link >= 0:
        after = words[child + table[t + ROOM]]
        links[link * at.LINK + at.LINK_OTHER] = after
        links[link * at.LINK + at.LINK_LATEST] = max(links[after * at.LINK + at.LINK_LATEST], start)
        words[child + table[t + ROOM]] = link
    words[child] = max(words[child], start)


@inline
def take_step_alone(
    program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken, how: int, j: int
) -> int:
    """Run ``j`` takes a step, with the link ``step.link + step.m``; returns whether it was merged."""
    table, words, t, link = pools.table, pools.words, step.target * POOL, -1
    start = words[block.starts + j]
    if program.shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE:
        link = step.link + step.m
        write_link(program, lineage, step, link, words[block.before + j], start)
    if how == IN_PLACE:
        lanes.stay[j] = 1
        go_on_in_place(program, pools, block, step, j, link)
    elif how == HASHED:
        return equal_child(program, pools, lineage, block, step, j, link)
    elif how == ALL and table[t + RUNS] > table[t + FRESH]:
        join_child(pools, lineage, step, start, link)
        return 1
    else:
        new_child(program, pools, block, step, j, link)
    return 0


@inline
def how_merged(table: Ints, t: int) -> int:
    """How the children of an event are merged now in the pool at ``t``."""
    how = table[t + MERGE]
    return int(APART if how == HASHED and table[t + REST] > 0 else how)


@inline
def note_merged(control: Ints, table: Ints, t: int, how: int, made: int, merged: int) -> None:
    """Count the children that a step made, and those of them that were merged."""
    control[at.MADE] += made
    if how != IN_PLACE:
        control[at.MERGED] += merged
        control[at.HASHED_NOW] += made - merged
        if how == HASHED:
            note_trial(table, t, made, merged)
        elif table[t + MERGE] == HASHED:
            table[t + REST] = max(table[t + REST] - made, 0)


@inline
def choose_few(program: Program, pools: Pools, lanes: Lanes, event: Event, block: RunBlock, step: int) -> int:
    """Collect the runs that take a step; returns how many there are."""
    chosen, low, m = lanes.chosen, event.low if block.has_old else NEVER, 0
    for j in range(block.n):
        chosen[m] = j
        m += pools.words[block.starts + j] >= low
    m = narrow(program, pools, lanes, block, step + at.STEP_CHECKS, m)
    if block.removes and program.tables[step + at.STEP_INHIBITS]:
        for q in range(m):
            lanes.stay[chosen[q]] = 0
    return narrow(program, pools, lanes, block, step + at.STEP_GUARDS, m)


@inline
def step_with_few(
    control: Ints,
    program: Program,
    pools: Pools,
    lanes: Lanes,
    lineage: Lineage,
    event: Event,
    block: RunBlock,
    step: int,
) -> None:
    """Let those of few runs take a step that pass its tests."""
    tables, shape = program.tables, program.shape
    m, target, first = choose_few(program, pools, lanes, event, block, step), tables[step], control[at.LINKS]
    if m == 0 or target < 0:
        return
    here = (event.id << at.ARC_BITS) | tables[step + at.STEP_ARC]
    moves, stamp = shape[at.MOVES] + 2 * tables[step + at.STEP_MOVES], control[at.STAMP] * shape[at.POOLS]
    fields, merged = tables[step + at.STEP_FIELDS], 0
    how = IN_PLACE if tables[step + at.STEP_IN_PLACE] else how_merged(pools.table, target * POOL)
    for q in range(m):
        taken = Taken(target, moves, fields, q, first, here, event.key, stamp)
        merged += take_step_alone(program, pools, lanes, lineage, block, taken, how, lanes.chosen[q])
    note_merged(control, pools.table, target * POOL, how, m, merged)
    if shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE:
        control[at.LINKS] = first + m


@inline
def are_few(control: Ints, program: Program, pools: Pools, links: Ints, kind: int) -> bool:
    """Whether an event of class ``kind`` can be tried here: few runs, plain sources, and room for all that may come."""
    tables, shape, table = program.tables, program.shape, pools.table
    where, most, steps = shape[at.CLASS_FIRST] + kind, 0, 0
    for s in range(tables[where], tables[where + 1]):
        source = shape[at.SOURCES] + at.SOURCE_WORDS * s
        p = tables[source + at.SOURCE_POOL] * POOL
        n = table[p + CHILDREN] - table[p + HEAD]
        if n > FEW_RUNS or tables[source + at.SOURCE_IS_PLAIN] == 0:
            return False
        most += n * tables[source + at.SOURCE_COUNT]
        steps += n
    where = shape[at.TARGETS_FIRST] + kind
    for i in range(tables[where], tables[where + 1]):
        p = tables[shape[at.TARGETS] + at.TARGET_WORDS * i] * POOL
        if table[p + RUNS] + most > table[p + ROOM]:
            return False
    if control[at.LIMIT] >= 0 and control[at.DONE_STEPS] + steps > control[at.LIMIT]:
        return False
    return bool((control[at.LINKS] + most) * at.LINK <= len(links) and 4 * most <= len(pools.buckets))


@inline
def try_few(control: Ints, program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, event: Event) -> None:
    """The second phase of an event that meets few runs."""
    tables, shape, table = program.tables, program.shape, pools.table
    where = shape[at.CLASS_FIRST] + event.kind
    for s in range(tables[where], tables[where + 1]):
        source = shape[at.SOURCES] + at.SOURCE_WORDS * s
        pool, removes = tables[source + at.SOURCE_POOL], tables[source + at.SOURCE_REMOVES]
        p = pool * POOL
        head, room = table[p + HEAD], table[p + ROOM]
        n, starts = table[p + CHILDREN] - head, table[p + BASE] + head
        first, steps = tables[source + at.SOURCE_FIRST], tables[source + at.SOURCE_COUNT]
        has_old = int(pool > 0 and table[p + OLDEST] < event.low)
        registers = starts + COLUMNS * room
        block = RunBlock(pool, source, first, steps, removes, starts, starts + room, registers, room, head, n, has_old)
        if removes:
            table[p + KEPT] = 0
            begin_staying(program, pools, lanes, event, block)
        if n > 0:
            for number in range(first, first + steps):
                step_with_few(control, program, pools, lanes, lineage, event, block, shape[at.STEPS] + number * at.STEP)
            if removes:
                keep_staying(pools, lanes, block, head)
            control[at.DONE_STEPS] += n * tables[source + at.SOURCE_CHARGED]
    control[at.PHASE] = ENDING
    control[at.SOURCE] = tables[shape[at.TARGETS_FIRST] + event.kind]


@inline
def is_over(control: Ints) -> bool:
    """Whether a call has done what it was asked for; it stops where this changes nothing: before a whole block."""
    return bool(control[at.LIMIT] < -1 and control[at.DONE_STEPS] >= -2 - control[at.LIMIT])


@compact
def run_while_few(
    control: Ints, batch: Batch, program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, keys: Keys
) -> int:
    """Run events up to one that has begun, and must be tried block by block; returns as the kernel does."""
    status = at.DONE
    while status == at.DONE and control[at.PHASE] == 0:
        pass_idle(control, batch, program, pools, keys)
        if control[at.EVENT] >= len(batch.slot):
            break
        if is_over(control):
            return at.STOPPED
        event = event_at(control, batch)
        status = begin_event(control, batch, program, pools, lineage, keys, None, event)
        if status == at.DONE and are_few(control, program, pools, lineage.links, event.kind):
            try_few(control, program, pools, lanes, lineage, event)
            status = end_event(control, program, pools, lanes, lineage, keys, None, event)
    return status
