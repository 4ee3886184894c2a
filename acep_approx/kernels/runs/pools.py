"""Pools of runs: what the kernel of the runs engine does with them between events.

A pool holds the runs of one state and number of errors as columns of one arena: start, link (lineage), registers.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import apart, inline
from acep_approx.kernels.arithmetic import added_up
from acep_approx.kernels.runs.layout import (
    HIDDEN,
    LINK,
    LINK_BEFORE,
    LINK_HERE,
    LINK_LATEST,
    LINK_OTHER,
    LINK_START,
    SCRATCH,
)
from acep_approx.kernels.runs.records import Lanes, Pools, Program
from acep_approx.kernels.runs.vm import BLOCK, NULL

NEVER = -(2**62)
HOLE = NULL
"""The start of a run that has left, and whose place is not filled yet: too old for every event."""

# words of a pool
(
    RUNS,
    BASE,
    ROOM,
    CHILDREN,
    KEPT,
    HEAD,
    LAST_PLACE,
    OLDEST,
    AGE,
    COUNTED,
    MERGE,
    FIELDS,
    INDEX,
    INDEX_SIZE,
    IS_PROBED,
    IS_STALE,
    TRIED,
    JOINED,
    REST,
    ALIKE,
    TESTED,
    FRESH,
    WAITS_FOR,
    BOUNDS,
    BOUNDED,
    HOLES,
    KEYS,
    KEY,
) = range(28)
MOST_KEYS = 4
"""Most registers that runs are indexed by."""
POOL = KEY + MOST_KEYS
COLUMNS = 2
"""Columns before the registers: start and link.

``FIELDS`` columns come behind them; runs are merged if they agree in the first ``ALIKE`` of these. The others are
hidden columns that merged runs share (``merge_hidden``).

Runs stand in front of ``CHILDREN``, those that the current tick has made behind it, those of the current event behind
``FRESH``: where each event is a tick of its own, both are the same.

``WAITS_FOR``: the column that runs wait in for an event to pass it, and how (-1: in none); ``BOUNDS``: where the bounds
of its parts begin among the chains; of the first ``BOUNDED`` runs they are known; ``HOLES`` of those from the head on
have left (``waiting``)."""

APART, ALL, HASHED = 0, 1, 2
"""What happens to runs that one event brings to a pool: nothing, all become one, or those of equal registers do."""

KEEP_NEW, KEEP_LEAST, ADD_UP = range(3)
"""What becomes of a hidden column when a run is merged with one that was there before."""

SWEEP_EVERY, SMALL_POOL = 16, 32
"""Events after which runs that may be too old are looked for in a pool, unless it has few: then at once. Runs nearly
always stand in the order of their starts, so those too old are the first: a pool is gone through from its ``HEAD`` on.
"""
TRIAL, REST_AFTER, LEAST_GAIN = 4096, 16, 256
"""Where of so many children not one in ``LEAST_GAIN`` is merged, ``REST_AFTER`` times as many are not tried."""

SWEEP_PART = 8
"""A pool with holes is swept after as many events as an eighth of its runs, if these are more."""

FEW = 8
"""Up to so many runs a child is compared with each of its pool: to keep an index would cost more than it saves."""

MOST_TRIED = 256
"""Runs of a chain that a child is compared with at most, where the index is not over all registers."""

SMALL = 0x7FFFFFFF
MIX = 1640531527


def seed_word(seed: int) -> int:
    """What the hashes of all coins begin with: 31 bits."""
    return (seed * 2654435761 + 0x3C6EF372) & 0x7FFFFFFF


@inline
def hash_word(h: int, word: int) -> int:
    """One more word of a hash, 31 bits; no step leaves 63 bits, so plain Python computes the same."""
    h = ((h ^ (word & SMALL)) * MIX) & SMALL
    return ((h ^ (h >> 15) ^ ((word >> 31) & SMALL)) * MIX) & SMALL


@inline
def hash_registers(pools: Pools, p: int, fields: int, run: int) -> int:
    """A hash of the registers of a run."""
    base, room, h = pools.table[p + BASE], pools.table[p + ROOM], 17
    for f in range(fields):
        h = hash_word(h, pools.words[base + (COLUMNS + f) * room + run])
    return h ^ (h >> 13)


@inline
def same_registers(pools: Pools, p: int, fields: int, one: int, other: int) -> bool:
    """Whether two runs of a pool agree in all registers, bit by bit."""
    base, room, words = pools.table[p + BASE], pools.table[p + ROOM], pools.words
    for f in range(fields):
        at = base + (COLUMNS + f) * room
        if words[at + one] != words[at + other]:
            return False
    return True


@inline
def merge_child(pools: Pools, p: int, child: int, first: int, stamp: int) -> int:
    """The child of this event that ``child`` equals; itself, and remembered, where there is none.

    ``stamp`` is that of the pool, ``first`` the lowest of this event: places with older stamps are free.
    """
    buckets, alike = pools.buckets, pools.table[p + ALIKE]
    size = len(buckets) // 2
    place = hash_registers(pools, p, alike, child) & (size - 1)
    while buckets[2 * place] >= first:
        other = buckets[2 * place + 1]
        if buckets[2 * place] == stamp and same_registers(pools, p, alike, child, other):
            return int(other)
        place = (place + 1) & (size - 1)
    buckets[2 * place] = stamp
    buckets[2 * place + 1] = child
    return child


@inline
def copy_run(pools: Pools, p: int, to: int, run: int) -> None:
    """Copy a run of a pool to a place before it."""
    if to < run:
        words, base, room = pools.words, pools.table[p + BASE], pools.table[p + ROOM]
        for f in range(COLUMNS + pools.table[p + FIELDS]):
            words[base + f * room + to] = words[base + f * room + run]


@inline
def head_of(pools: Pools, p: int, run: int) -> int:
    """Where the index of the pool at ``p`` begins the chain of a run."""
    table = pools.table
    base, room = table[p + BASE], table[p + ROOM]
    h = 17
    for k in range(table[p + KEYS]):
        h = hash_word(h, pools.words[base + (COLUMNS + table[p + KEY + k]) * room + run])
    return int(table[p + INDEX] + ((h ^ (h >> 13)) & (table[p + INDEX_SIZE] - 1)))


@inline
def agree(pools: Pools, p: int, one: int, other: int) -> bool:
    """Whether two runs agree in the registers that the index of their pool is over."""
    table, base, room = pools.table, pools.table[p + BASE], pools.table[p + ROOM]
    for k in range(table[p + KEYS]):
        column = base + (COLUMNS + table[p + KEY + k]) * room
        if pools.words[column + one] != pools.words[column + other]:
            return False
    return True


@inline
def index_flag(table: Ints, p: int) -> int:
    """Where among the chains stands whether the index of a pool is kept: behind its heads and its chains."""
    return int(table[p + INDEX] + 3 * table[p + ROOM])


NOT_KEPT, IS_KEPT, IS_EMPTY = 0, 1, 2
"""Whether the index of a pool has all of its runs; IS_EMPTY: it has, and there are none: it need not be emptied."""


@inline
def equal_of_few(pools: Pools, p: int, child: int, end: int, low: int) -> int:
    """``equal_run`` among the runs before ``end`` without an index: the last one, as a chain would have it."""
    table, words = pools.table, pools.words
    base, head, alike, run = table[p + BASE], table[p + HEAD], table[p + ALIKE], end - 1
    while run >= head:
        if words[base + run] >= low and same_registers(pools, p, alike, run, child):
            return int(run)
        run -= 1
    return -1


@inline
def equal_run(pools: Pools, p: int, child: int, low: int) -> int:
    """The run that a child can be merged with; -1: none.

    ``low``: of those in the window, which agree with it in what is indexed, only the last ``MOST_TRIED`` are tried;
    ``NEVER``: all are.
    """
    table, words, index = pools.table, pools.words, pools.chains
    base, chains, head = table[p + BASE], table[p + INDEX] + table[p + INDEX_SIZE], table[p + HEAD]
    alike, other, tried = table[p + ALIKE], index[head_of(pools, p, child)] - 1, 0
    while other >= 0:
        # what stands before the head is not gone through any more: nothing may join it
        if other >= head and words[base + other] >= low:
            if same_registers(pools, p, alike, child, other):
                return int(other)
            if low > NEVER and agree(pools, p, child, other):
                tried += 1
                if tried >= MOST_TRIED:
                    return -1
        other = index[chains + other] - 1
    return -1


@inline
def put_in_index(pools: Pools, p: int, run: int) -> None:
    """Make a run the first of its chain."""
    table, index = pools.table, pools.chains
    head = head_of(pools, p, run)
    index[table[p + INDEX] + table[p + INDEX_SIZE] + run] = index[head]
    index[head] = run + 1


@inline
def merge_hidden(program: Program, pools: Pools, p: int, to: int, run: int) -> None:
    """Join the hidden columns of a run with those of the run ``to``, which it is merged with."""
    table, words, tables = pools.table, pools.words, program.tables
    base, room, alike = table[p + BASE], table[p + ROOM], table[p + ALIKE]
    for f in range(alike, table[p + FIELDS]):
        column, how = base + (COLUMNS + f) * room, tables[program.shape[HIDDEN] + f - alike]
        old, new = words[column + to], words[column + run]
        if how == KEEP_LEAST:
            new = min(old, new)
        elif program.more is not None and how == ADD_UP:
            new = added_up(new, old)
        words[column + to] = new


@inline
def empty_index(pools: Pools, p: int) -> None:
    """Take all runs of a pool out of its index."""
    table = pools.table
    for i in range(table[p + INDEX_SIZE]):
        pools.chains[table[p + INDEX] + i] = 0
    pools.chains[index_flag(table, p)] = IS_EMPTY


@inline
def fill_index(pools: Pools, p: int) -> None:
    """Index the runs of a pool anew, without children of the current tick: they are put in when it is done."""
    table = pools.table
    if pools.chains[index_flag(table, p)] != IS_EMPTY:
        empty_index(pools, p)
    for run in range(table[p + CHILDREN]):
        put_in_index(pools, p, run)
    pools.chains[index_flag(table, p)] = IS_KEPT


@inline
def across_events(
    program: Program, pools: Pools, p: int, links: Ints, used: int, children: int, runs: int, low: int
) -> tuple[int, int]:
    """Merge children with runs of other events that agree in all registers.

    The links of both become alternatives under a new link: others may point to either. A child that has none, or whose
    own has left the window while it waited for the end of its tick, needs no new one.
    ``low`` as for ``equal_run``. Returns where the runs end now, and how many links are used.
    """
    words, base, room = pools.words, pools.table[p + BASE], pools.table[p + ROOM]
    flag, end = index_flag(pools.table, p), children
    if pools.chains[flag] == NOT_KEPT and runs > FEW:
        fill_index(pools, p)
    is_indexed = pools.chains[flag] != NOT_KEPT
    for child in range(children, runs):
        other = equal_run(pools, p, child, low) if is_indexed else equal_of_few(pools, p, child, end, low)
        if other >= 0:
            words[base + other] = max(words[base + other], words[base + child])
            merge_hidden(program, pools, p, other, child)
            if words[base + room + child] >= 0:
                new = used * LINK
                links[new + LINK_HERE] = -1
                links[new + LINK_BEFORE] = words[base + room + child]
                links[new + LINK_OTHER] = words[base + room + other]
                links[new + LINK_START] = words[base + other]
                links[new + LINK_LATEST] = words[base + other]
                words[base + room + other] = used
                used += 1
        else:
            copy_run(pools, p, end, child)
            if is_indexed:
                put_in_index(pools, p, end)
                pools.chains[flag] = IS_KEPT
            end += 1
    return end, used


@inline
def index_runs(pools: Pools, p: int) -> None:
    """Index the runs of a pool anew, unless merging rests there, or the runs are few and no event asks for them."""
    table = pools.table
    if table[p + INDEX_SIZE] > 0:
        rests = table[p + REST] > 0 and not table[p + IS_PROBED]
        table[p + IS_STALE] = rests
        if not rests and (table[p + CHILDREN] > FEW or table[p + IS_PROBED]):
            fill_index(pools, p)
        elif not rests:
            pools.chains[index_flag(table, p)] = NOT_KEPT


@inline
def note_trial(table: Ints, p: int, tried: int, joined: int) -> None:
    """Note how many children were merged; where it was not worth the trouble, let merging rest for a while."""
    table[p + TRIED] += tried
    table[p + JOINED] += joined
    if table[p + TRIED] >= TRIAL:
        if table[p + JOINED] * LEAST_GAIN < table[p + TRIED]:
            table[p + REST] = REST_AFTER * table[p + TRIED]
            table[p + IS_STALE] = table[p + INDEX_SIZE] > 0 and not table[p + IS_PROBED]
        table[p + TRIED] = 0
        table[p + JOINED] = 0


@inline
def first_candidate(program: Program, pools: Pools, p: int, scalars: int) -> int:
    """The first run of the chain of those that may agree with ``scalars``; -1 where one is NULL, or there is none."""
    table, h = pools.table, 17
    for k in range(table[p + KEYS]):
        word = pools.words[program.tables[scalars + k]]
        if word == NULL:
            return -1  # NULL equals nothing
        h = hash_word(h, word)
    return int(pools.chains[table[p + INDEX] + ((h ^ (h >> 13)) & (table[p + INDEX_SIZE] - 1))] - 1)


@inline
def candidates(
    program: Program, pools: Pools, lanes: Lanes, p: int, scalars: int, skip: int, most: int, low: int
) -> int:
    """Copy the runs that agree with ``scalars`` in the indexed registers into the scratch block.

    Runs that started before ``low`` do not count. The first ``skip`` of them are left out, and so is what is beyond
    ``most``. Returns how many were copied.
    """
    table, words, index, chosen = pools.table, pools.words, pools.chains, lanes.chosen
    base, room, scratch = table[p + BASE], table[p + ROOM], program.shape[SCRATCH]
    run = first_candidate(program, pools, p, scalars)
    found = 0
    while run >= 0 and found < skip + most:
        same = words[base + run] >= low
        for k in range(table[p + KEYS]):
            column = base + (COLUMNS + table[p + KEY + k]) * room
            same &= words[column + run] == words[program.tables[scalars + k]]
        if same:
            if found >= skip:
                chosen[found - skip] = run
            found += 1
        run = index[table[p + INDEX] + table[p + INDEX_SIZE] + run] - 1
    n = max(found - skip, 0)
    for f in range(COLUMNS + table[p + FIELDS]):
        for q in range(n):
            words[scratch + f * BLOCK + q] = words[base + f * room + chosen[q]]
    return n


@inline
def drop_old(pools: Pools, p: int, low: int, stays: bool) -> int:
    """``drop_expired``, compiled into where it is called."""
    table, words = pools.table, pools.words
    base, runs = table[p + BASE], table[p + RUNS]
    kept, visible = 0, 0
    oldest = -NEVER
    for run in range(runs):
        start = words[base + run]
        if start >= low:
            oldest = min(oldest, start)
            copy_run(pools, p, kept, run)
            kept += 1
            visible += run < table[p + CHILDREN]
    gone = table[p + COUNTED] - kept
    leave(table, p, kept, visible, oldest)
    if kept < runs and stays:
        index_runs(pools, p)
    elif kept < runs and table[p + INDEX_SIZE] > 0 and pools.chains[index_flag(table, p)] == IS_KEPT:
        empty_index(pools, p)
    return int(gone)


@apart
def drop_expired(pools: Pools, p: int, low: int, stays: bool) -> int:
    """Drop the runs that started before ``low``, keeping the order of the others.

    ``stays``: whether these are indexed once more; where another key comes next, they leave the index as well.
    Returns how many of those went that counted as live.
    """
    table = pools.table
    if table[p + OLDEST] >= low and table[p + HEAD] == 0 and table[p + HOLES] == 0:
        return 0
    return drop_old(pools, p, low, stays)


@inline
def leave(table: Ints, p: int, kept: int, visible: int, oldest: int) -> None:
    """Note that only the first ``kept`` runs of a pool are left, all of them live; behind ``visible`` are children."""
    table[p + RUNS] = kept
    table[p + CHILDREN] = visible
    table[p + HEAD] = 0
    table[p + OLDEST] = oldest
    table[p + AGE] = 0
    table[p + COUNTED] = kept
    table[p + HOLES] = 0
    table[p + BOUNDED] = 0


@block_kernel
def index_again(pools: Pools, pool: int) -> None:
    """``index_runs`` for callers in Python."""
    index_runs(pools, pool * POOL)


@block_kernel
def hash_again(pools: Pools, first: int) -> None:
    """Remember the children of this event in larger, empty buckets."""
    table = pools.table
    for pool in range(1, len(table) // POOL):
        p = pool * POOL
        if table[p + MERGE] == HASHED:
            for child in range(table[p + FRESH], table[p + RUNS]):
                merge_child(pools, p, child, first, first + pool)


@block_kernel
def grow_pool(table: Ints, moved: Ints, words: Ints, new: Ints) -> None:
    """Copy all pools to where ``moved`` has them, which has more room for some."""
    for pool in range(len(table) // POOL):
        p = pool * POOL
        for f in range(COLUMNS + table[p + FIELDS]):
            source = table[p + BASE] + f * table[p + ROOM]
            to = moved[p + BASE] + f * moved[p + ROOM]
            for run in range(table[p + RUNS]):
                new[to + run] = words[source + run]
