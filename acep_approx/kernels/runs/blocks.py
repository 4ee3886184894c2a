"""What the steps of a source do with a block of runs."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.layout import (
    KEEPS_LINEAGE,
    LINK,
    LINK_BEFORE,
    LINK_HERE,
    LINK_LATEST,
    LINK_OTHER,
    LINK_START,
    NO_LINEAGE,
    TEMPORARIES,
    WITH_OWNER,
)
from acep_approx.kernels.runs.pools import (
    ALL,
    APART,
    BASE,
    COLUMNS,
    FIELDS,
    FRESH,
    HASHED,
    KEPT,
    MERGE,
    POOL,
    REST,
    ROOM,
    RUNS,
    merge_child,
    merge_hidden,
    note_trial,
)
from acep_approx.kernels.runs.records import Arena, Event, Lanes, Lineage, Pools, Program, RunBlock, Taken
from acep_approx.kernels.runs.sample import is_sampled, note_tests
from acep_approx.kernels.runs.vm import BLOCK, REGISTER, SCALAR, run_program


@inline
def write_links(program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken) -> None:
    """Links of the chosen runs."""
    links, words, chosen = lineage.links, pools.words, lanes.chosen
    for q in range(step.m):
        new, j = (step.link + q) * LINK, chosen[q]
        links[new + LINK_HERE] = step.here
        links[new + LINK_BEFORE] = words[block.before + j]
        links[new + LINK_OTHER] = -1
        links[new + LINK_START] = words[block.starts + j]
        links[new + LINK_LATEST] = words[block.starts + j]
    if program.shape[KEEPS_LINEAGE] == WITH_OWNER:
        for q in range(step.m):
            lineage.owner[step.link + q] = step.key


@inline
def write_fields(program: Program, pools: Pools, lanes: Lanes, block: RunBlock, step: Taken, to: int, m: int) -> None:
    """The registers of ``m`` children, one child after the other from ``to`` on in the first register's column."""
    tables, words, chosen = program.tables, pools.words, lanes.chosen
    room = pools.table[step.target * POOL + ROOM]
    for f in range(step.fields):
        kind, number = tables[step.moves + 2 * f], tables[step.moves + 2 * f + 1]
        if kind == SCALAR:
            value = words[number]
            for q in range(m):
                words[to + f * room + q] = value
        else:
            source = block.registers + number * block.room
            if kind != REGISTER:
                source = program.shape[TEMPORARIES] + number * BLOCK
            for q in range(m):
                words[to + f * room + q] = words[source + chosen[q]]


@inline
def children_apart(
    program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken
) -> None:
    """One child per chosen run."""
    table, words, t = pools.table, pools.words, step.target * POOL
    c, room, base = table[t + RUNS], table[t + ROOM], table[t + BASE]
    for q in range(step.m):
        words[base + c + q] = words[block.starts + lanes.chosen[q]]
    if program.shape[KEEPS_LINEAGE] != NO_LINEAGE:
        write_links(program, pools, lanes, lineage, block, step)
        for q in range(step.m):
            words[base + room + c + q] = step.link + q
    else:
        for q in range(step.m):
            words[base + room + c + q] = -1
    write_fields(program, pools, lanes, block, step, base + COLUMNS * room + c, step.m)
    table[t + RUNS] = c + step.m


@inline
def runs_in_place(program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken) -> None:
    """The runs that take a step go on themselves, in the same pool."""
    tables, words, mask = program.tables, pools.words, lanes.mask
    if program.shape[KEEPS_LINEAGE] != NO_LINEAGE:
        write_links(program, pools, lanes, lineage, block, step)
        for q in range(step.m):
            words[block.before + lanes.chosen[q]] = step.link + q
    for f in range(step.fields):
        kind, number = tables[step.moves + 2 * f], tables[step.moves + 2 * f + 1]
        to = block.registers + f * block.room
        if kind == SCALAR:
            value = words[number]
            for j in range(block.n):
                words[to + j] = value if mask[j] else words[to + j]
        elif kind != REGISTER:
            source = program.shape[TEMPORARIES] + number * BLOCK
            for j in range(block.n):
                words[to + j] = words[source + j] if mask[j] else words[to + j]


@inline
def join_links(pools: Pools, lineage: Lineage, step: Taken, child: int, latest: int) -> int:
    """Make the new links of a child alternatives of those it has; returns the latest start of all."""
    links, words, t = lineage.links, pools.words, step.target * POOL
    at = pools.table[t + BASE] + pools.table[t + ROOM] + child
    after = words[at]
    top = links[after * LINK + LINK_LATEST] if after >= 0 else latest
    for q in range(step.m):
        new = (step.link + q) * LINK
        links[new + LINK_OTHER] = after
        top = max(top, links[new + LINK_START])
        links[new + LINK_LATEST] = top
        after = step.link + q
    words[at] = after
    return max(latest, top)


@inline
def child_of_all(program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken) -> int:
    """One child of all chosen runs, and of those that other steps chose; returns how many were merged."""
    table, words, chosen, t = pools.table, pools.words, lanes.chosen, step.target * POOL
    c, room, base = table[t + RUNS], table[t + ROOM], table[t + BASE]
    child, merged = table[t + FRESH], step.m
    if c == child:
        words[base + c] = words[block.starts + chosen[0]]
        words[base + room + c] = -1
        write_fields(program, pools, lanes, block, step, base + COLUMNS * room + c, 1)
        table[t + RUNS] = c + 1
        merged = step.m - 1
    latest = words[base + child]
    if program.shape[KEEPS_LINEAGE] != NO_LINEAGE:
        write_links(program, pools, lanes, lineage, block, step)
        latest = join_links(pools, lineage, step, child, latest)
    else:
        for q in range(step.m):
            latest = max(latest, words[block.starts + chosen[q]])
    words[base + child] = latest
    return merged


@inline
def copy_registers(program: Program, pools: Pools, block: RunBlock, step: Taken, j: int, to: int) -> None:
    """The registers of the child of run ``j``, from ``to`` on."""
    tables, words = program.tables, pools.words
    room = pools.table[step.target * POOL + ROOM]
    for f in range(step.fields):
        kind, number = tables[step.moves + 2 * f], tables[step.moves + 2 * f + 1]
        at = number
        if kind == REGISTER:
            at = block.registers + number * block.room + j
        elif kind != SCALAR:
            at = program.shape[TEMPORARIES] + number * BLOCK + j
        words[to + f * room] = words[at]


@inline
def equal_child(
    program: Program, pools: Pools, lineage: Lineage, block: RunBlock, step: Taken, j: int, link: int
) -> int:
    """A child of run ``j``, unless one has its registers: then ``link`` leads there. Returns whether it was merged."""
    table, words, links, t = pools.table, pools.words, lineage.links, step.target * POOL
    c, room, base = table[t + RUNS], table[t + ROOM], table[t + BASE]
    copy_registers(program, pools, block, step, j, base + COLUMNS * room + c)
    child = merge_child(pools, t, c, step.stamp, step.stamp + step.target)
    start = words[block.starts + j]
    if child == c:
        words[base + c] = start
        words[base + room + c] = -1
        table[t + RUNS] = c + 1
    else:
        if program.more is not None:
            merge_hidden(program, pools, t, child, c)
        words[base + child] = max(words[base + child], start)
    if link >= 0:
        after = words[base + room + child]
        links[link * LINK + LINK_OTHER] = after
        if after >= 0:
            links[link * LINK + LINK_LATEST] = max(start, links[after * LINK + LINK_LATEST])
        words[base + room + child] = link
    return int(child != c)


@inline
def children_by_registers(
    program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken
) -> int:
    """A child per combination of registers, joining those that other steps made; returns how many were merged."""
    keeps = program.shape[KEEPS_LINEAGE] != NO_LINEAGE
    if keeps:
        write_links(program, pools, lanes, lineage, block, step)
    merged = 0
    for q in range(step.m):
        link = step.link + q if keeps else -1
        merged += equal_child(program, pools, lineage, block, step, lanes.chosen[q], link)
    return merged


@inline
def make_children(program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, block: RunBlock, step: Taken) -> int:
    """Children of the chosen runs in the target's pool, as it merges them; returns how many were merged."""
    table, t = pools.table, step.target * POOL
    how = table[t + MERGE]
    if how == HASHED and table[t + REST] > 0:
        table[t + REST] = max(table[t + REST] - step.m, 0)
        how = APART
    if how == ALL:
        return child_of_all(program, pools, lanes, lineage, block, step)
    if how == HASHED:
        merged = children_by_registers(program, pools, lanes, lineage, block, step)
        note_trial(table, t, step.m, merged)
        return merged
    children_apart(program, pools, lanes, lineage, block, step)
    return 0


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
