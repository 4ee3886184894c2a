"""What the steps of a source do with few runs, without the block machine.

Its loops have a price before their first run, and where runs are few, that is most of what they cost. What comes of it
is the same, in the same order. Only plain sources are tried so: their steps compare registers with values of the
event, and compute nothing.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline, ix
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.blocks import begin_staying, keep_staying
from acep_approx.kernels.runs.children import copy_registers, equal_child
from acep_approx.kernels.runs.ends import ENDING
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
from acep_approx.kernels.runs.records import Event, Lanes, Lineage, Pools, Program, RunBlock, Taken
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
    code = tables[ix(part)]
    for _ in range(tables[ix(part + 1)]):
        column, scalar = block.registers + tables[ix(code + 3)] * block.room, tables[ix(code + 5)]
        flags, kept = tables[ix(code + 6)], 0
        less, equal, greater = flags & 1, (flags >> 1) & 1, (flags >> 2) & 1
        if tables[ix(code)] == TEST_FLOAT:
            y = floats[ix(scalar)]
            for q in range(m):
                x = floats[ix(column + chosen[ix(q)])]
                chosen[ix(kept)] = chosen[ix(q)]
                kept += ((x < y) & less) | ((x == y) & equal) | ((x > y) & greater)
        else:
            z = words[ix(scalar)]
            known = 1 if z != NULL else 0
            for q in range(m):
                v = words[ix(column + chosen[ix(q)])]
                chosen[ix(kept)] = chosen[ix(q)]
                kept += (((v < z) & less) | ((v == z) & equal) | ((v > z) & greater)) & (v != NULL) & known
        m = kept
        code += WIDTH
    return m


@inline
def write_link(program: Program, lineage: Lineage, step: Taken, link: int, before: int, start: int) -> None:
    """The link of a run that takes a step."""
    links, new = lineage.links, link * at.LINK
    links[ix(new + at.LINK_HERE)] = step.here
    links[ix(new + at.LINK_BEFORE)] = before
    links[ix(new + at.LINK_OTHER)] = -1
    links[ix(new + at.LINK_START)] = start
    links[ix(new + at.LINK_LATEST)] = start
    if program.shape[at.KEEPS_LINEAGE] == at.WITH_OWNER:
        lineage.owner[ix(link)] = step.key


@inline
def go_on_in_place(program: Program, pools: Pools, block: RunBlock, step: Taken, j: int, link: int) -> None:
    """Run ``j`` takes a step in its pool."""
    tables, words = program.tables, pools.words
    words[ix(block.before + j)] = link
    for f in range(step.fields):
        if tables[ix(step.moves + 2 * f)] == SCALAR:
            words[ix(block.registers + f * block.room + j)] = words[ix(tables[ix(step.moves + 2 * f + 1)])]


@inline
def new_child(program: Program, pools: Pools, block: RunBlock, step: Taken, j: int, link: int) -> None:
    """Run ``j`` has a child of its own."""
    table, words, t = pools.table, pools.words, step.target * POOL
    c, room, base = table[ix(t + RUNS)], table[ix(t + ROOM)], table[ix(t + BASE)]
    words[ix(base + c)] = words[ix(block.starts + j)]
    words[ix(base + room + c)] = link
    copy_registers(program, pools, block, step, j, base + COLUMNS * room + c)
    table[ix(t + RUNS)] = c + 1


@inline
def join_child(pools: Pools, lineage: Lineage, step: Taken, start: int, link: int) -> None:
    """One more run, which started at ``start``, leads to the only child that the event has in a pool."""
    table, words, links, t = pools.table, pools.words, lineage.links, step.target * POOL
    child = table[ix(t + BASE)] + table[ix(t + FRESH)]
    if link >= 0:
        after = words[ix(child + table[ix(t + ROOM)])]
        links[ix(link * at.LINK + at.LINK_OTHER)] = after
        links[ix(link * at.LINK + at.LINK_LATEST)] = max(links[ix(after * at.LINK + at.LINK_LATEST)], start)
        words[ix(child + table[ix(t + ROOM)])] = link
    words[ix(child)] = max(words[ix(child)], start)


@inline
def take_step_alone(
    program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken, how: int, j: int
) -> int:
    """Run ``j`` takes a step, with the link ``step.link + step.m``; returns whether it was merged."""
    table, words, t, link = pools.table, pools.words, step.target * POOL, -1
    start = words[ix(block.starts + j)]
    if program.shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE:
        link = step.link + step.m
        write_link(program, lineage, step, link, words[ix(block.before + j)], start)
    if how == IN_PLACE:
        lanes.stay[ix(j)] = 1
        go_on_in_place(program, pools, block, step, j, link)
    elif how == HASHED:
        return equal_child(program, pools, lineage, block, step, j, link)
    elif how == ALL and table[ix(t + RUNS)] > table[ix(t + FRESH)]:
        join_child(pools, lineage, step, start, link)
        return 1
    else:
        new_child(program, pools, block, step, j, link)
    return 0


@inline
def how_merged(table: Ints, t: int) -> int:
    """How the children of an event are merged now in the pool at ``t``."""
    how = table[ix(t + MERGE)]
    return int(APART if how == HASHED and table[ix(t + REST)] > 0 else how)


@inline
def note_merged(control: Ints, table: Ints, t: int, how: int, made: int, merged: int) -> None:
    """Count the children that a step made, and those of them that were merged."""
    control[at.MADE] += made
    if how != IN_PLACE:
        control[at.MERGED] += merged
        control[at.HASHED_NOW] += made - merged
        if how == HASHED:
            note_trial(table, t, made, merged)
        elif table[ix(t + MERGE)] == HASHED:
            table[ix(t + REST)] = max(table[ix(t + REST)] - made, 0)


@inline
def choose_few(program: Program, pools: Pools, lanes: Lanes, event: Event, block: RunBlock, step: int) -> int:
    """Collect the runs that take a step; returns how many there are."""
    chosen, low, m = lanes.chosen, event.low if block.has_old else NEVER, 0
    for j in range(block.n):
        chosen[ix(m)] = j
        m += pools.words[ix(block.starts + j)] >= low
    m = narrow(program, pools, lanes, block, step + at.STEP_CHECKS, m)
    if block.removes and program.tables[ix(step + at.STEP_INHIBITS)]:
        for q in range(m):
            lanes.stay[ix(chosen[ix(q)])] = 0
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
    m, target, first = choose_few(program, pools, lanes, event, block, step), tables[ix(step)], control[at.LINKS]
    if m == 0 or target < 0:
        return
    here = (event.id << at.ARC_BITS) | tables[ix(step + at.STEP_ARC)]
    moves, stamp = shape[at.MOVES] + 2 * tables[ix(step + at.STEP_MOVES)], control[at.STAMP] * shape[at.POOLS]
    fields, merged = tables[ix(step + at.STEP_FIELDS)], 0
    how = IN_PLACE if tables[ix(step + at.STEP_IN_PLACE)] else how_merged(pools.table, target * POOL)
    for q in range(m):
        taken = Taken(target, moves, fields, q, first, here, event.key, stamp)
        merged += take_step_alone(program, pools, lanes, lineage, block, taken, how, lanes.chosen[ix(q)])
    note_merged(control, pools.table, target * POOL, how, m, merged)
    if shape[at.KEEPS_LINEAGE] != at.NO_LINEAGE:
        control[at.LINKS] = first + m


@inline
def are_few(control: Ints, program: Program, pools: Pools, links: Ints, kind: int) -> bool:
    """Whether an event of class ``kind`` can be tried here: few runs, plain sources, and room for all that may come."""
    tables, shape, table = program.tables, program.shape, pools.table
    where, most, steps = shape[at.CLASS_FIRST] + kind, 0, 0
    for s in range(tables[ix(where)], tables[ix(where + 1)]):
        source = shape[at.SOURCES] + at.SOURCE_WORDS * s
        p = tables[ix(source + at.SOURCE_POOL)] * POOL
        n = table[ix(p + CHILDREN)] - table[ix(p + HEAD)]
        if n > FEW_RUNS or tables[ix(source + at.SOURCE_IS_PLAIN)] == 0:
            return False
        most += n * tables[ix(source + at.SOURCE_COUNT)]
        steps += n
    where = shape[at.TARGETS_FIRST] + kind
    for i in range(tables[ix(where)], tables[ix(where + 1)]):
        p = tables[ix(shape[at.TARGETS] + at.TARGET_WORDS * i)] * POOL
        if table[ix(p + RUNS)] + most > table[ix(p + ROOM)]:
            return False
    if control[at.LIMIT] >= 0 and control[at.DONE_STEPS] + steps > control[at.LIMIT]:
        return False
    return bool((control[at.LINKS] + most) * at.LINK <= len(links) and 4 * most <= len(pools.buckets))


@inline
def try_few(control: Ints, program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, event: Event) -> None:
    """The second phase of an event that meets few runs."""
    tables, shape, table = program.tables, program.shape, pools.table
    where = shape[at.CLASS_FIRST] + event.kind
    for s in range(tables[ix(where)], tables[ix(where + 1)]):
        source = shape[at.SOURCES] + at.SOURCE_WORDS * s
        pool, removes = tables[ix(source + at.SOURCE_POOL)], tables[ix(source + at.SOURCE_REMOVES)]
        p = pool * POOL
        head, room = table[ix(p + HEAD)], table[ix(p + ROOM)]
        n, starts = table[ix(p + CHILDREN)] - head, table[ix(p + BASE)] + head
        first, steps = tables[ix(source + at.SOURCE_FIRST)], tables[ix(source + at.SOURCE_COUNT)]
        has_old = int(pool > 0 and table[ix(p + OLDEST)] < event.low)
        registers = starts + COLUMNS * room
        block = RunBlock(pool, source, first, steps, removes, starts, starts + room, registers, room, head, n, has_old)
        if removes:
            table[ix(p + KEPT)] = 0
            begin_staying(program, pools, lanes, event, block)
        if n > 0:
            for number in range(first, first + steps):
                step_with_few(control, program, pools, lanes, lineage, event, block, shape[at.STEPS] + number * at.STEP)
            if removes:
                keep_staying(pools, lanes, block, head)
            control[at.DONE_STEPS] += n * tables[ix(source + at.SOURCE_CHARGED)]
    control[at.PHASE] = ENDING
    control[at.SOURCE] = tables[ix(shape[at.TARGETS_FIRST] + event.kind)]
