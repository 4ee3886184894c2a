"""What a step makes of a block of runs: children, apart or merged, or the runs themselves with new values."""

from __future__ import annotations

from acep_approx.jit.marks import inline
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
    FRESH,
    HASHED,
    MERGE,
    POOL,
    REST,
    ROOM,
    RUNS,
    merge_child,
    merge_hidden,
    note_trial,
)
from acep_approx.kernels.runs.records import Lanes, Lineage, Pools, Program, RunBlock, Taken
from acep_approx.kernels.runs.vm import BLOCK, REGISTER, SCALAR


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
