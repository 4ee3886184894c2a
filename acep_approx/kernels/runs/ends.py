"""The end of an event: children that complete a match are recorded, and all become runs of their pools."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import inline, ix
from acep_approx.kernels.runs.layout import (
    ENDS,
    FRONTS,
    HIT,
    HITS,
    KEEPS_LINEAGE,
    LINKS,
    LIVE,
    MERGED,
    NO_LINEAGE,
    SHEDS,
    STATE,
    STATES,
    TEMPORARIES,
    WITH_OWNER,
)
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    CHILDREN,
    COLUMNS,
    COUNTED,
    FIELDS,
    HEAD,
    INDEX_SIZE,
    IS_STALE,
    KEPT,
    OLDEST,
    POOL,
    RANK,
    REST,
    ROOM,
    RUNS,
    across_events,
    keep_front,
    note_trial,
)
from acep_approx.kernels.runs.vm import BLOCK, run_program

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@inline
def record_hits(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, ranks: Ints, mask: Ints,
    hits: Ints, pool: int, children: int, runs: int, event: int,
) -> int:  # fmt: skip
    """Record the children that complete a match; returns 1 where an integer passed 64 bits."""
    state, p = shape[STATES] + pool * STATE, pool * POOL
    base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
    marks = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room
    for offset in range(children, runs, BLOCK):
        n = min(BLOCK, runs - offset)
        for j in range(n):
            mask[ix(j)] = 1
        if tables[ix(state + 4)] > 0 and run_program(
            tables, tables[ix(state + 3)], tables[ix(state + 4)], words, floats, ranks, base + COLUMNS * room + offset,
            room, shape[TEMPORARIES], mask, n,
        ):  # fmt: skip
            return 1
        for j in range(n):
            if mask[ix(j)]:
                for i in range(tables[ix(state + 2)]):
                    end = shape[ENDS] + 2 * (tables[ix(state + 1)] + i)
                    hit = header[HITS] * HIT
                    hits[ix(hit)] = event
                    hits[ix(hit + 1)] = tables[ix(end)]
                    hits[ix(hit + 2)] = tables[ix(end + 1)]
                    hits[ix(hit + 3)] = words[ix(base + room + offset + j)]
                    hits[ix(hit + 4)] = words[ix(base + offset + j)]
                    hits[ix(hit + 5)] = words[ix(marks + offset + j)] & 3 if shape[SHEDS] else 0
                    header[HITS] += 1
    return 0


@inline
def end_event_in(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, owner: Ints,
    index: Ints, pool: int, children: int, runs: int, now: int, rank: int, key: int,
) -> None:  # fmt: skip
    """Children of the event become runs of their pool."""
    state, p = shape[STATES] + pool * STATE, pool * POOL
    base, room, kept = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + KEPT)]
    made = runs - children
    if tables[ix(state)] == 0:
        runs = children
    elif tables[ix(state + 5)] >= 0:
        front = shape[FRONTS] + tables[ix(state + 5)]
        runs = keep_front(p, pools, words, floats, tables, front, children, runs)
        header[MERGED] += children + made - runs
        if runs < children + made:  # those that are left have moved up: any may be a child, and start before the others
            children = pools[ix(p + HEAD)]
        kept = children
    elif pools[ix(p + INDEX_SIZE)] > 0 and pools[ix(p + IS_STALE)]:
        pools[ix(p + REST)] = max(pools[ix(p + REST)] - made, 0)
    elif pools[ix(p + INDEX_SIZE)] > 0 and made > 0:
        runs = across_events(p, pools, words, links, header[LINKS], index, children, runs)
        gone = made - (runs - children)
        header[MERGED] += gone
        note_trial(p, pools, made, gone)
        if shape[KEEPS_LINEAGE] != NO_LINEAGE:
            if shape[KEEPS_LINEAGE] == WITH_OWNER:
                for link in range(header[LINKS], header[LINKS] + gone):
                    owner[ix(link)] = key
            header[LINKS] += gone
    if runs > children:
        oldest = now if kept == 0 else pools[ix(p + OLDEST)]
        for j in range(children, runs):
            oldest = min(oldest, words[ix(base + j)])
        pools[ix(p + OLDEST)] = oldest
    if kept < children:
        for f in range(COLUMNS + pools[ix(p + FIELDS)]):
            to, source = base + f * room + kept, base + f * room + children
            for q in range(runs - children):
                words[ix(to + q)] = words[ix(source + q)]
        runs = kept + runs - children
        pools[ix(p + HEAD)] = 0
    live = runs - pools[ix(p + HEAD)]
    header[LIVE] += live - pools[ix(p + COUNTED)]
    pools[ix(p + COUNTED)] = live
    pools[ix(p + RUNS)] = runs
    pools[ix(p + CHILDREN)] = runs  # all are indexed: should another pool grow, they must be again
    pools[ix(p + RANK)] = rank
