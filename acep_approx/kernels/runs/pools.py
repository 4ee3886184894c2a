"""Pools of runs: what the kernel of the runs engine does with them between events.

A pool holds the runs of one state and number of errors as columns of one arena: start, link (lineage), registers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import block_kernel, inline, ix
from acep_approx.kernels.runs.layout import LINK
from acep_approx.kernels.runs.vm import BLOCK, NULL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NEVER = -(2**62)

# words of a pool
(
    RUNS,
    BASE,
    ROOM,
    CHILDREN,
    KEPT,
    HEAD,
    RANK,
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
    KEYS,
    KEY,
) = range(23)
MOST_KEYS = 4
"""Most registers that runs are indexed by."""
POOL = KEY + MOST_KEYS
COLUMNS = 2
"""Columns before the registers: start and link.

``FIELDS`` columns come behind them; runs are merged if they agree in the first ``ALIKE`` of these."""

APART, ALL, HASHED = 0, 1, 2
"""What happens to runs that one event brings to a pool: nothing, all become one, or those of equal registers do."""

EQUAL, LOW_INT, HIGH_INT, LOW_FLOAT, HIGH_FLOAT = range(5)
"""Which values of a register are the better ones; EQUAL: none are."""

LARGE_FRONT = 256
"""Runs in a pool beyond which no dominated ones are looked for."""

SWEEP_EVERY, SMALL_POOL = 16, 32
"""Events after which runs that may be too old are looked for in a pool, unless it has few: then at once. Runs nearly
always stand in the order of their starts, so those too old are the first: a pool is gone through from its ``HEAD`` on.
"""
TRIAL, REST_AFTER, LEAST_GAIN = 4096, 16, 256
"""Where of so many children not one in ``LEAST_GAIN`` is merged, ``REST_AFTER`` times as many are not tried."""

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
def hash_registers(words: Ints, base: int, room: int, fields: int, run: int) -> int:
    """A hash of the registers of a run."""
    h = 17
    for f in range(fields):
        h = hash_word(h, words[ix(base + (COLUMNS + f) * room + run)])
    return h ^ (h >> 13)


@inline
def same_registers(words: Ints, base: int, room: int, fields: int, one: int, other: int) -> bool:
    """Whether two runs of a pool agree in all registers, bit by bit."""
    for f in range(fields):
        at = base + (COLUMNS + f) * room
        if words[ix(at + one)] != words[ix(at + other)]:
            return False
    return True


@inline
def merge_child(
    words: Ints, base: int, room: int, fields: int, child: int, buckets: Ints, first: int, stamp: int,
) -> int:  # fmt: skip
    """The child of this event that ``child`` equals; itself, and remembered, where there is none.

    ``stamp`` is that of the pool, ``first`` the lowest of this event: places with older stamps are free.
    """
    size = buckets.size // 2
    place = hash_registers(words, base, room, fields, child) & (size - 1)
    while buckets[ix(2 * place)] >= first:
        other = buckets[ix(2 * place + 1)]
        if buckets[ix(2 * place)] == stamp and same_registers(words, base, room, fields, child, other):
            return int(other)
        place = (place + 1) & (size - 1)
    buckets[ix(2 * place)] = stamp
    buckets[ix(2 * place + 1)] = child
    return child


@inline
def head_of(words: Ints, pools: Ints, p: int, run: int) -> int:
    """Where the index of the pool at ``p`` begins the chain of a run."""
    base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
    h = 17
    for k in range(pools[ix(p + KEYS)]):
        h = hash_word(h, words[ix(base + (COLUMNS + pools[ix(p + KEY + k)]) * room + run)])
    return int(pools[ix(p + INDEX)] + ((h ^ (h >> 13)) & (pools[ix(p + INDEX_SIZE)] - 1)))


@inline
def put_in_index(words: Ints, pools: Ints, index: Ints, p: int, run: int) -> None:
    """Make a run the first of its chain."""
    head = head_of(words, pools, p, run)
    index[ix(pools[ix(p + INDEX)] + pools[ix(p + INDEX_SIZE)] + run)] = index[ix(head)]
    index[ix(head)] = run + 1


@inline
def across_events(
    p: int, pools: Ints, words: Ints, links: Ints, used: int, index: Ints, children: int, runs: int,
) -> int:  # fmt: skip
    """Merge children with runs of other events that agree in all registers.

    The links of both become alternatives under a new link: others may point to either.
    Returns where the runs end now; each child that is gone has used one link where there is lineage.
    """
    base, room, fields = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + FIELDS)]
    alike = pools[ix(p + ALIKE)]
    chains, head = pools[ix(p + INDEX)] + pools[ix(p + INDEX_SIZE)], pools[ix(p + HEAD)]
    end = children
    for child in range(children, runs):
        other = index[ix(head_of(words, pools, p, child))] - 1
        # what stands before the head is not gone through any more: nothing may join it
        while other >= 0 and (other < head or not same_registers(words, base, room, alike, child, other)):
            other = index[ix(chains + other)] - 1
        if other >= 0:
            words[ix(base + other)] = max(words[ix(base + other)], words[ix(base + child)])
            for f in range(alike, fields):
                words[ix(base + (COLUMNS + f) * room + other)] = words[ix(base + (COLUMNS + f) * room + child)]
            if words[ix(base + room + child)] >= 0:
                new = used * LINK
                links[ix(new)] = -1
                links[ix(new + 1)] = words[ix(base + room + child)]
                links[ix(new + 2)] = words[ix(base + room + other)]
                links[ix(new + 3)] = words[ix(base + other)]
                links[ix(new + 4)] = words[ix(base + other)]
                words[ix(base + room + other)] = used
                used += 1
        else:
            if end < child:
                for f in range(COLUMNS + fields):
                    words[ix(base + f * room + end)] = words[ix(base + f * room + child)]
            put_in_index(words, pools, index, p, end)
            end += 1
    return end


@inline
def fill_index(p: int, pools: Ints, words: Ints, index: Ints) -> None:
    """Index the runs of a pool anew."""
    for i in range(pools[ix(p + INDEX_SIZE)]):
        index[ix(pools[ix(p + INDEX)] + i)] = 0
    for run in range(pools[ix(p + RUNS)]):
        put_in_index(words, pools, index, p, run)


@inline
def index_runs(p: int, pools: Ints, words: Ints, index: Ints) -> None:
    """Index the runs of a pool anew, unless merging rests there."""
    if pools[ix(p + INDEX_SIZE)] > 0:
        if pools[ix(p + REST)] > 0 and not pools[ix(p + IS_PROBED)]:
            pools[ix(p + IS_STALE)] = 1
        else:
            fill_index(p, pools, words, index)
            pools[ix(p + IS_STALE)] = 0


@inline
def note_trial(p: int, pools: Ints, tried: int, joined: int) -> None:
    """Note how many children were merged; where it was not worth the trouble, let merging rest for a while."""
    pools[ix(p + TRIED)] += tried
    pools[ix(p + JOINED)] += joined
    if pools[ix(p + TRIED)] >= TRIAL:
        if pools[ix(p + JOINED)] * LEAST_GAIN < pools[ix(p + TRIED)]:
            pools[ix(p + REST)] = REST_AFTER * pools[ix(p + TRIED)]
            pools[ix(p + IS_STALE)] = pools[ix(p + INDEX_SIZE)] > 0 and not pools[ix(p + IS_PROBED)]
        pools[ix(p + TRIED)] = 0
        pools[ix(p + JOINED)] = 0


@inline
def candidates(
    p: int, pools: Ints, words: Ints, index: Ints, tables: Ints, scalars: int, skip: int, most: int, low: int,
    scratch: int, chosen: Ints,
) -> int:  # fmt: skip
    """Copy the runs that agree with ``scalars`` in the indexed registers into a block at ``scratch``.

    Runs that started before ``low`` do not count. The first ``skip`` of them are left out, and so is what is beyond
    ``most``. Returns how many were copied.
    """
    base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
    h, keys = 17, pools[ix(p + KEYS)]
    for k in range(keys):
        word = words[ix(tables[ix(scalars + k)])]
        if word == NULL:
            return 0  # NULL equals nothing
        h = hash_word(h, word)
    run = index[ix(pools[ix(p + INDEX)] + ((h ^ (h >> 13)) & (pools[ix(p + INDEX_SIZE)] - 1)))] - 1
    found = 0
    while run >= 0 and found < skip + most:
        same = words[ix(base + run)] >= low
        for k in range(keys):
            column = base + (COLUMNS + pools[ix(p + KEY + k)]) * room
            same &= words[ix(column + run)] == words[ix(tables[ix(scalars + k)])]
        if same:
            if found >= skip:
                chosen[ix(found - skip)] = run
            found += 1
        run = index[ix(pools[ix(p + INDEX)] + pools[ix(p + INDEX_SIZE)] + run)] - 1
    n = max(found - skip, 0)
    for f in range(COLUMNS + pools[ix(p + FIELDS)]):
        for q in range(n):
            words[ix(scratch + f * BLOCK + q)] = words[ix(base + f * room + chosen[ix(q)])]
    return n


@inline
def dominates(
    words: Ints, floats: Floats, tables: Ints, directions: int, base: int, room: int, fields: int, one: int,
    other: int,
) -> bool:  # fmt: skip
    """Whether run ``one`` can do all that ``other`` can: it started no earlier, and no register stands in its way."""
    if words[ix(base + one)] < words[ix(base + other)]:
        return False
    for f in range(fields):
        at = base + (COLUMNS + f) * room
        how = tables[ix(directions + f)]
        v, z = words[ix(at + one)], words[ix(at + other)]
        if how == LOW_INT:
            good = v <= z and v != NULL
        elif how == HIGH_INT:
            good = v >= z and z != NULL  # NULL can become better than any value, by an aggregate that skips it
        elif how == LOW_FLOAT:
            good = floats[ix(at + one)] <= floats[ix(at + other)]
        elif how == HIGH_FLOAT:
            good = floats[ix(at + one)] >= floats[ix(at + other)]
        else:
            good = v == z
        if not good and v != z:
            return False
    return True


@inline
def keep_front(
    p: int, pools: Ints, words: Ints, floats: Floats, tables: Ints, directions: int, children: int, runs: int,
) -> int:  # fmt: skip
    """Of runs and children of a pool keep those that no other dominates; returns where they end.

    Only where nothing is listed: the lineage of the others is lost. Where many runs are left that do not dominate each
    other, looking for more that do would cost more than it saves. Those before the head stay where they are: were they
    taken out, the head would pass over live ones.
    """
    base, room, fields = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + FIELDS)]
    alike, head = pools[ix(p + ALIKE)], pools[ix(p + HEAD)]
    if children - head > LARGE_FRONT:
        return runs
    end = children
    for child in range(children, runs):
        kept = head
        is_needed = True
        for run in range(head, end):
            if is_needed and dominates(words, floats, tables, directions, base, room, alike, run, child):
                is_needed = False
            if is_needed and dominates(words, floats, tables, directions, base, room, alike, child, run):
                continue
            if kept < run:
                for f in range(COLUMNS + fields):
                    words[ix(base + f * room + kept)] = words[ix(base + f * room + run)]
            kept += 1
        end = kept
        if is_needed:
            if end < child:
                for f in range(COLUMNS + fields):
                    words[ix(base + f * room + end)] = words[ix(base + f * room + child)]
            end += 1
    return end


@inline
def drop_expired(p: int, pools: Ints, words: Ints, index: Ints, low: int) -> int:
    """Drop the runs that started before ``low``, keeping the order of the others.

    Returns how many of those went that counted as live.
    """
    base, room, runs = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + RUNS)]
    kept = 0
    oldest = -NEVER
    for run in range(runs):
        start = words[ix(base + run)]
        if start >= low:
            oldest = min(oldest, start)
            if kept < run:
                for f in range(COLUMNS + pools[ix(p + FIELDS)]):
                    words[ix(base + f * room + kept)] = words[ix(base + f * room + run)]
            kept += 1
    gone = pools[ix(p + COUNTED)] - kept
    pools[ix(p + RUNS)] = kept
    pools[ix(p + HEAD)] = 0
    pools[ix(p + OLDEST)] = oldest
    pools[ix(p + AGE)] = 0
    pools[ix(p + COUNTED)] = kept
    if kept < runs:
        index_runs(p, pools, words, index)
    return int(gone)


@block_kernel
def index_again(pool: int, pools: Ints, words: Ints, index: Ints) -> None:
    """``index_runs`` for callers in Python."""
    index_runs(pool * POOL, pools, words, index)


@block_kernel
def hash_again(pools: Ints, count: int, words: Ints, buckets: Ints, first: int) -> None:
    """Remember the children of this event in larger, empty ``buckets``."""
    for pool in range(1, count):
        p = pool * POOL
        if pools[ix(p + MERGE)] == HASHED:
            base, room, alike = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + ALIKE)]
            for child in range(pools[ix(p + CHILDREN)], pools[ix(p + RUNS)]):
                merge_child(words, base, room, alike, child, buckets, first, first + pool)


@block_kernel
def grow_pool(pools: Ints, moved: Ints, words: Ints, new: Ints, count: int) -> None:
    """Copy all pools to where ``moved`` has them, which has more room for some."""
    for pool in range(count):
        p = pool * POOL
        for f in range(COLUMNS + pools[ix(p + FIELDS)]):
            source = pools[ix(p + BASE)] + f * pools[ix(p + ROOM)]
            to = moved[ix(p + BASE)] + f * moved[ix(p + ROOM)]
            for run in range(pools[ix(p + RUNS)]):
                new[ix(to + run)] = words[ix(source + run)]
