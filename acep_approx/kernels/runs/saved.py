"""The runs of keys that are not current: kept in an arena of their own, key by key, pool by pool."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs.pools import (
    BASE,
    CHILDREN,
    COLUMNS,
    COUNTED,
    FIELDS,
    HOLES,
    INDEX_SIZE,
    IS_KEPT,
    LAST_PLACE,
    NEVER,
    OLDEST,
    POOL,
    ROOM,
    RUNS,
    empty_index,
    index_flag,
    index_runs,
    leave,
)
from acep_approx.kernels.runs.records import Keys, Pools
from acep_approx.kernels.runs.scores import GROUP_BITS
from acep_approx.kernels.runs.vm import NULL
from acep_approx.kernels.runs.waiting import close_holes

SAVED = 4
"""Words before the columns of a saved pool: pool and, from bit ``PENDING`` on, how many of its runs are children of a
tick that may not be over; runs, place of the last event, oldest start."""
PENDING = 32
POOL_MASK = (1 << PENDING) - 1
SPAN = 3
"""Words per key: where its runs are saved, how many words they take, the latest start."""


@inline
def save_words(table: Ints) -> int:
    """Words that the runs of the current key take when saved."""
    total = 0
    for pool in range(1, len(table) // POOL):
        p = pool * POOL
        if table[p + RUNS] > 0:
            total += SAVED + table[p + RUNS] * (COLUMNS + table[p + FIELDS])
    return total


@inline
def save_runs(pools: Pools, keys: Keys, key: int, end: int) -> int:
    """Save the runs of ``key`` from ``stored[end]`` on; returns where they end."""
    table, words, stored, spans = pools.table, pools.words, keys.stored, keys.spans
    at = end
    newest = NEVER
    for pool in range(1, len(table) // POOL):
        p = pool * POOL
        runs, base, room = table[p + RUNS], table[p + BASE], table[p + ROOM]
        if runs == 0:
            continue
        stored[at] = pool | (runs - table[p + CHILDREN]) << PENDING
        stored[at + 1] = runs
        stored[at + 2] = table[p + LAST_PLACE]
        stored[at + 3] = table[p + OLDEST]
        at += SAVED
        for run in range(runs):
            newest = max(newest, words[base + run])
        for f in range(COLUMNS + table[p + FIELDS]):
            for run in range(runs):
                stored[at + run] = words[base + f * room + run]
            at += runs
    spans[key * SPAN] = end
    spans[key * SPAN + 1] = at - end
    spans[key * SPAN + 2] = newest
    return at


@inline
def empty_pools(pools: Pools) -> None:
    """Take all runs out of the pools."""
    table = pools.table
    for pool in range(1, len(table) // POOL):
        p = pool * POOL
        if table[p + RUNS] > 0 and table[p + INDEX_SIZE] > 0 and pools.chains[index_flag(table, p)] == IS_KEPT:
            empty_index(pools, p)
        leave(table, p, 0, 0, -NEVER)


@inline
def load_runs(pools: Pools, keys: Keys, key: int) -> int:
    """Bring the runs of ``key`` into the pools; returns -1, or the pool that has no room for them."""
    table, words, stored = pools.table, pools.words, keys.stored
    empty_pools(pools)
    at = keys.spans[key * SPAN]
    end = at + keys.spans[key * SPAN + 1]
    while at < end:
        pool, runs = stored[at] & POOL_MASK, stored[at + 1]
        p = pool * POOL
        base, room = table[p + BASE], table[p + ROOM]
        if runs > room:
            return int(pool)
        table[p + RUNS] = runs
        table[p + CHILDREN] = runs - (stored[at] >> PENDING)
        table[p + COUNTED] = runs
        table[p + LAST_PLACE] = stored[at + 2]
        table[p + OLDEST] = stored[at + 3]
        at += SAVED
        for f in range(COLUMNS + table[p + FIELDS]):
            for run in range(runs):
                words[base + f * room + run] = stored[at + run]
            at += runs
        index_runs(pools, p)
    return -1


@block_kernel
def pack_stored(keys: Keys, moved: Ints) -> int:
    """Copy the saved runs of all keys one after the other into ``moved``; returns the words used."""
    spans, at = keys.spans, 0
    for key in range(len(spans) // SPAN):
        begin, length = spans[key * SPAN], spans[key * SPAN + 1]
        for i in range(length):
            moved[at + i] = keys.stored[begin + i]
        spans[key * SPAN] = at
        at += length
    return at


@block_kernel
def runs_of(keys: Keys, slots: Ints, pools: Ints) -> int:
    """How many runs are saved of some keys; ``pools``: the words of all pools."""
    total = 0
    for i in range(len(slots)):
        at = keys.spans[slots[i] * SPAN]
        end = at + keys.spans[slots[i] * SPAN + 1]
        while at < end:
            pool, runs = keys.stored[at] & POOL_MASK, keys.stored[at + 1]
            total += runs
            at += SAVED + runs * (COLUMNS + pools[pool * POOL + FIELDS])
    return total


@block_kernel
def put_away(pools: Pools, keys: Keys, key: int, end: int) -> int:
    """``save_runs`` for callers in Python."""
    for p in range(POOL, len(pools.table), POOL):
        if pools.table[p + HOLES] > 0:
            close_holes(pools, p)
    return save_runs(pools, keys, key, end)


ANY = -1
"""The limit of a column that may hold any word."""
GROUPS = -2
"""The limit of a column that holds groups, of which there are none; one lower for each that there is."""


@inline
def is_within(word: int, limit: int, stamp: int) -> bool:
    """Whether a word can stand in a column of a limit."""
    if limit <= GROUPS:
        return word >> GROUP_BITS != stamp or (word & ((1 << GROUP_BITS) - 1)) < GROUPS - limit
    return limit == ANY or word == NULL or 0 <= word < limit


@block_kernel
def fit(spans: Ints, stored: Ints, fields: Ints, limits: Ints, links: int, stamp: int) -> bool:
    """Whether the runs of all keys stand within ``stored``, pool by pool, and hold only what can be followed.

    Parameters
    ----------
    spans, stored : int64 arrays
        See ``saved``.
    fields : int64 array, shape (pools,)
        Per pool its columns behind start and link.
    limits : int64 array, shape (pools * widest,)
        Per pool and column behind start and link: NULL, or a word from 0 on and below this; or ``ANY``, ``GROUPS``.
    links : int
        How many links there are.
    stamp : int
        Of groups that are told apart as now; others are found out anew.

    Complexity: O(words of all runs).
    """
    pools, widest = len(fields), len(limits) // len(fields)
    for key in range(len(spans) // SPAN):
        at, length = spans[key * SPAN], spans[key * SPAN + 1]
        if at < 0 or length < 0 or length > len(stored) or at > len(stored) - length:
            return False
        end, before = at + length, 0
        while at < end:
            if end - at < SAVED:
                return False
            pool, plain, runs = stored[at] & POOL_MASK, stored[at] >> PENDING, stored[at + 1]
            if pool <= before or pool >= pools or runs < 0 or plain < 0 or plain > runs:
                return False
            width = COLUMNS + fields[pool]
            at += SAVED
            if runs > (end - at) // width:
                return False
            for run in range(runs):
                if stored[at + runs + run] >= links:
                    return False
            for f in range(fields[pool]):
                limit = limits[pool * widest + f]
                for run in range(runs if limit != ANY else 0):
                    if not is_within(stored[at + (COLUMNS + f) * runs + run], limit, stamp):
                        return False
            at += width * runs
            before = pool
    return True
