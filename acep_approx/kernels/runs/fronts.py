"""Runs that a better one makes superfluous: dropped where only match points are asked for, the first to be shed else.

Source: dominance is ours (see ``automaton.dominance``).
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.kernels.jit import called, inline, ix
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    COLUMNS,
    FRESH,
    HEAD,
    INDEX,
    INDEX_SIZE,
    IS_STALE,
    NEVER,
    OLDEST,
    POOL,
    ROOM,
    RUNS,
    agree,
    copy_run,
    head_of,
    same_registers,
)
from acep_approx.kernels.runs.records import Arena, Event, Pools, Program
from acep_approx.kernels.runs.scores import (
    DOMINATED,
    DOMINATED_SHARE,
    MOST_RUNS,
    NORMAL,
    PASSES,
    PRICE,
    PRICE_NOW,
    TOKENS,
    WOULD_GO,
    left,
    log_score,
    mark_at,
    refuse,
)
from acep_approx.kernels.runs.vm import NULL
from acep_approx.kernels.runs.weighing import score_of

EQUAL, LOW_INT, HIGH_INT, LOW_FLOAT, HIGH_FLOAT = range(5)
"""Which values of a register are the better ones; EQUAL: none are."""

LARGE_FRONT = 256
"""Runs in a pool beyond which no dominated ones are looked for, where nothing is shed."""
MOST_LOOKS = 64
"""Runs that a child is compared with at most, where some are shed: the last ones made."""
LOOK = 0.25
"""What a comparison costs, in run-steps (measured: docs/budget.md)."""
UNRELATED, BETTER, WORSE, SAME = range(4)
"""What a run is beside a child."""


@inline
def dominates(program: Program, pools: Pools, p: int, directions: int, fields: int, one: int, other: int) -> bool:
    """Whether run ``one`` can do all that ``other`` can: it started no earlier, and no register stands in its way."""
    words, floats = pools.words, pools.floats
    base, room = pools.table[ix(p + BASE)], pools.table[ix(p + ROOM)]
    if words[ix(base + one)] < words[ix(base + other)]:
        return False
    for f in range(fields):
        column = base + (COLUMNS + f) * room
        how = program.tables[ix(directions + f)]
        v, z = words[ix(column + one)], words[ix(column + other)]
        if how == LOW_INT:
            good = v <= z and v != NULL
        elif how == HIGH_INT:
            good = v >= z and z != NULL  # NULL can become better than any value, by an aggregate that skips it
        elif how == LOW_FLOAT:
            good = floats[ix(column + one)] <= floats[ix(column + other)]
        elif how == HIGH_FLOAT:
            good = floats[ix(column + one)] >= floats[ix(column + other)]
        else:
            good = v == z
        if not good and v != z:
            return False
    return True


@inline
def keep_front(program: Program, pools: Pools, p: int, directions: int, children: int, runs: int) -> int:
    """Of runs and children of a pool keep those that no other dominates; returns where they end.

    Only where nothing is listed: the lineage of the others is lost. Where many runs are left that do not dominate each
    other, looking for more that do would cost more than it saves. Those before the head stay where they are: were they
    taken out, the head would pass over live ones.
    """
    head, fields = pools.table[ix(p + HEAD)], pools.table[ix(p + ALIKE)]
    if children - head > LARGE_FRONT:
        return runs
    end = children
    for child in range(children, runs):
        kept = head
        is_needed = True
        for run in range(head, end):
            if is_needed and dominates(program, pools, p, directions, fields, run, child):
                is_needed = False
            if is_needed and dominates(program, pools, p, directions, fields, child, run):
                continue
            copy_run(pools, p, kept, run)
            kept += 1
        end = kept
        if is_needed:
            copy_run(pools, p, end, child)
            end += 1
    return end


@inline
def flag_at(program: Program, table: Ints, p: int, run: int) -> int:
    """Where stands whether a run is dominated."""
    behind = COLUMNS + table[ix(p + ALIKE)] + program.shape[at.DOMINATED]
    return int(table[ix(p + BASE)] + behind * table[ix(p + ROOM)] + run)


@called
def compared(program: Program, pools: Pools, pool: int, run: int, child: int) -> int:
    """What a run is beside a child of its pool: SAME where the two will be merged.

    A run that only the audit keeps is better than none.
    """
    table, words, p = pools.table, pools.words, pool * POOL
    base, alike = table[ix(p + BASE)], table[ix(p + ALIKE)]
    front = program.tables[ix(program.shape[at.STATES] + pool * at.STATE + at.STATE_FRONT)]
    directions = program.shape[at.FRONTS] + front
    one, other, what = run, child, BETTER
    if words[ix(base + run)] < words[ix(base + child)]:
        one, other, what = child, run, WORSE
    elif words[ix(mark_at(table, p, run))] == WOULD_GO:
        return UNRELATED
    if not dominates(program, pools, p, directions, alike - 1, one, other):
        return UNRELATED
    if table[ix(p + INDEX_SIZE)] > 0 and not table[ix(p + IS_STALE)] and same_registers(pools, p, alike, run, child):
        return SAME
    return what


@called
def dominate(
    control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, run: int
) -> bool:
    """Note that a run is dominated; returns whether it is not worth the price any more, and is counted as shed."""
    words, p = pools.words, pool * POOL
    flag, mark = flag_at(program, pools.table, p, run), mark_at(pools.table, p, run)
    if words[ix(flag)] or words[ix(mark)] == WOULD_GO:
        return False
    words[ix(flag)] = 1
    price = shedding.floats[PRICE_NOW]
    score, covered, _ = score_of(program, pools, shedding, event, pool, run, 0)
    is_merged = shedding.floats[DOMINATED_SHARE] == 0.0
    if score >= price and not is_merged:
        return False
    if words[ix(mark)] != NORMAL:
        words[ix(mark)] = WOULD_GO
        return False
    if is_merged:
        control[at.MERGED] += 1
        return True
    entry = refuse(control, pools, shedding, event, pool, run, DOMINATED)
    if entry >= 0:
        log_score(shedding, entry, score, price, covered)
    return True


@called
def meet(
    control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, run: int, child: int
) -> bool:
    """Whether a run dominates a child; where it is the other way round, the run goes if it is not worth the price."""
    what = compared(program, pools, pool, run, child)
    if what == WORSE and dominate(control, program, pools, shedding, event, pool, run):
        p = pool * POOL
        pools.words[ix(pools.table[ix(p + BASE)] + run)] = NEVER  # it leaves with those that are too old
        pools.table[ix(p + OLDEST)] = NEVER
    return what == BETTER


@called
def is_dominated(
    control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, child: int
) -> bool:
    """Whether a run of its pool dominates a child, as far as the budget lets us look: at the last runs made first."""
    table, words, worth, p = pools.table, pools.words, shedding.floats, pool * POOL
    base, head, fresh = table[ix(p + BASE)], table[ix(p + HEAD)], table[ix(p + FRESH)]
    in_chain = program.tables[ix(program.shape[at.STATES] + pool * at.STATE + at.STATE_IN_CHAIN)]
    most, looks, found, run = min(MOST_LOOKS, int(left(worth) / LOOK)), 0, False, child - 1
    while run >= (fresh if in_chain else head) and looks < most and not found:
        if words[ix(base + run)] >= event.low:
            looks += 1
            found = meet(control, program, pools, shedding, event, pool, run, child)
        run -= 1
    if in_chain:
        links, run = table[ix(p + INDEX)] + table[ix(p + INDEX_SIZE)], pools.chains[ix(head_of(pools, p, child))] - 1
        while run >= head and looks < most and not found:
            if words[ix(base + run)] >= event.low and agree(pools, p, run, child):
                looks += 1
                found = meet(control, program, pools, shedding, event, pool, run, child)
            run = pools.chains[ix(links + run)] - 1
    worth[TOKENS] -= LOOK * looks
    worth[PASSES] += LOOK * looks
    return found


@called
def shed_dominated(
    control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int
) -> int:
    """Shed children that a run of their pool dominates, unless there is plenty of budget; returns where they end."""
    table, words, p = pools.table, pools.words, pool * POOL
    fresh, runs = table[ix(p + FRESH)], table[ix(p + RUNS)]
    state = program.shape[at.STATES] + pool * at.STATE
    share, is_bounded = shedding.floats[DOMINATED_SHARE], shedding.floats[PRICE] > 0.0 or shedding.words[MOST_RUNS] >= 0
    is_ranked = share == 0.0 or (share < 1.0 and is_bounded)
    if program.shape[at.DOMINATED] < 0 or program.tables[ix(state + at.STATE_FRONT)] < 0 or not is_ranked:
        return int(runs)
    end = fresh
    for child in range(fresh, runs):
        copy_run(pools, p, end, child)
        goes = False
        if words[ix(mark_at(table, p, end))] != WOULD_GO:
            goes = is_dominated(control, program, pools, shedding, event, pool, end)
            goes = goes and dominate(control, program, pools, shedding, event, pool, end)
        end += not goes
    return int(end)
