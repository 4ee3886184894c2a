"""The runs of keys that are not at hand: kept in an arena of their own, key by key, pool by pool."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import block_kernel, inline, ix
from acep_approx.kernels.runs.pools import (
    AGE,
    BASE,
    CHILDREN,
    COLUMNS,
    COUNTED,
    FIELDS,
    HEAD,
    INDEX,
    INDEX_SIZE,
    NEVER,
    OLDEST,
    POOL,
    RANK,
    ROOM,
    RUNS,
    index_runs,
)

Ints = npt.NDArray[np.int64]

SAVED = 4
"""Words before the columns of a saved pool: pool, runs, rank, oldest start."""
PLACE = 3
"""Words per key: where its runs are saved, how many words they take, the latest start."""


@inline
def save_words(pools: Ints, count: int) -> int:
    """Words that the runs of the key at hand take when saved."""
    total = 0
    for pool in range(1, count):
        p = pool * POOL
        if pools[ix(p + RUNS)] > 0:
            total += SAVED + pools[ix(p + RUNS)] * (COLUMNS + pools[ix(p + FIELDS)])
    return total


@inline
def save_runs(key: int, end: int, pools: Ints, count: int, words: Ints, stored: Ints, places: Ints) -> int:
    """Save the runs of ``key`` from ``stored[end]`` on; returns where they end."""
    at = end
    newest = NEVER
    for pool in range(1, count):
        p = pool * POOL
        runs, base, room = pools[ix(p + RUNS)], pools[ix(p + BASE)], pools[ix(p + ROOM)]
        if runs == 0:
            continue
        stored[ix(at)] = pool
        stored[ix(at + 1)] = runs
        stored[ix(at + 2)] = pools[ix(p + RANK)]
        stored[ix(at + 3)] = pools[ix(p + OLDEST)]
        at += SAVED
        for run in range(runs):
            newest = max(newest, words[ix(base + run)])
        for f in range(COLUMNS + pools[ix(p + FIELDS)]):
            for run in range(runs):
                stored[ix(at + run)] = words[ix(base + f * room + run)]
            at += runs
    places[ix(key * PLACE)] = end
    places[ix(key * PLACE + 1)] = at - end
    places[ix(key * PLACE + 2)] = newest
    return at


@inline
def load_runs(key: int, pools: Ints, count: int, words: Ints, stored: Ints, places: Ints, index: Ints) -> int:
    """Bring the runs of ``key`` into the pools; returns -1, or the pool that has no room for them."""
    for pool in range(1, count):
        p = pool * POOL
        if pools[ix(p + RUNS)] > 0 and pools[ix(p + INDEX_SIZE)] > 0:
            for i in range(pools[ix(p + INDEX_SIZE)]):
                index[ix(pools[ix(p + INDEX)] + i)] = 0
        pools[ix(p + RUNS)] = 0
        pools[ix(p + HEAD)] = 0
        pools[ix(p + COUNTED)] = 0
        pools[ix(p + OLDEST)] = -NEVER
        pools[ix(p + AGE)] = 0
    at = places[ix(key * PLACE)]
    end = at + places[ix(key * PLACE + 1)]
    while at < end:
        pool, runs = stored[ix(at)], stored[ix(at + 1)]
        p = pool * POOL
        base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
        if runs > room:
            return int(pool)
        pools[ix(p + RUNS)] = runs
        pools[ix(p + CHILDREN)] = runs
        pools[ix(p + COUNTED)] = runs
        pools[ix(p + RANK)] = stored[ix(at + 2)]
        pools[ix(p + OLDEST)] = stored[ix(at + 3)]
        at += SAVED
        for f in range(COLUMNS + pools[ix(p + FIELDS)]):
            for run in range(runs):
                words[ix(base + f * room + run)] = stored[ix(at + run)]
            at += runs
        index_runs(p, pools, words, index)
    return -1


@block_kernel
def pack_stored(places: Ints, stored: Ints, moved: Ints) -> int:
    """Copy the saved runs of all keys one after the other into ``moved``; returns the words used."""
    at = 0
    for key in range(places.size // PLACE):
        begin, length = places[ix(key * PLACE)], places[ix(key * PLACE + 1)]
        for i in range(length):
            moved[ix(at + i)] = stored[ix(begin + i)]
        places[ix(key * PLACE)] = at
        at += length
    return at


@block_kernel
def put_away(key: int, end: int, pools: Ints, count: int, words: Ints, stored: Ints, places: Ints) -> int:
    """``save_runs`` for callers in Python."""
    return save_runs(key, end, pools, count, words, stored, places)
