"""What a step makes of a block of runs: children, apart or merged, or the runs themselves with new values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import inline, ix
from acep_approx.kernels.runs.layout import LINK, NO_LINEAGE, WITH_OWNER
from acep_approx.kernels.runs.pools import (
    ALIKE,
    ALL,
    APART,
    BASE,
    CHILDREN,
    COLUMNS,
    HASHED,
    MERGE,
    REST,
    ROOM,
    RUNS,
    merge_child,
    note_trial,
)
from acep_approx.kernels.runs.vm import BLOCK, REGISTER, SCALAR

Ints = npt.NDArray[np.int64]


@inline
def write_links(
    links: Ints, owner: Ints, words: Ints, link: int, here: int, before: int, starts: int, chosen: Ints, m: int,
    keeps: int, key: int,
) -> None:  # fmt: skip
    """Links of ``m`` runs, from ``link`` on; ``before`` and ``starts`` are columns of the pool they come from."""
    for q in range(m):
        new, j = (link + q) * LINK, chosen[ix(q)]
        links[ix(new)] = here
        links[ix(new + 1)] = words[ix(before + j)]
        links[ix(new + 2)] = -1
        links[ix(new + 3)] = words[ix(starts + j)]
        links[ix(new + 4)] = words[ix(starts + j)]
    if keeps == WITH_OWNER:
        for q in range(m):
            owner[ix(link + q)] = key


@inline
def write_field(
    tables: Ints, words: Ints, move: int, registers: int, room: int, temporaries: int, to: int, chosen: Ints, m: int,
) -> None:  # fmt: skip
    """A register of ``m`` children, one after the other from ``to`` on."""
    kind, number = tables[ix(move)], tables[ix(move + 1)]
    if kind == SCALAR:
        value = words[ix(number)]
        for q in range(m):
            words[ix(to + q)] = value
    else:
        source = registers + number * room
        if kind != REGISTER:
            source = temporaries + number * BLOCK
        for q in range(m):
            words[ix(to + q)] = words[ix(source + chosen[ix(q)])]


@inline
def children_apart(
    tables: Ints, words: Ints, pools: Ints, links: Ints, owner: Ints, t: int, moves: int, fields: int, starts: int,
    before: int, registers: int, room: int, temporaries: int, chosen: Ints, m: int, link: int, here: int, keeps: int,
    key: int,
) -> None:  # fmt: skip
    """One child per chosen run."""
    c, troom, tbase = pools[ix(t + RUNS)], pools[ix(t + ROOM)], pools[ix(t + BASE)]
    for q in range(m):
        words[ix(tbase + c + q)] = words[ix(starts + chosen[ix(q)])]
    if keeps != NO_LINEAGE:
        write_links(links, owner, words, link, here, before, starts, chosen, m, keeps, key)
        for q in range(m):
            words[ix(tbase + troom + c + q)] = link + q
    else:
        for q in range(m):
            words[ix(tbase + troom + c + q)] = -1
    for f in range(fields):
        to = tbase + (COLUMNS + f) * troom + c
        write_field(tables, words, moves + 2 * f, registers, room, temporaries, to, chosen, m)
    pools[ix(t + RUNS)] = c + m


@inline
def runs_in_place(
    tables: Ints, words: Ints, links: Ints, owner: Ints, moves: int, fields: int, starts: int, before: int,
    registers: int, room: int, temporaries: int, chosen: Ints, mask: Ints, m: int, n: int, link: int, here: int,
    keeps: int, key: int,
) -> None:  # fmt: skip
    """The runs that take a step go on themselves, in the same pool."""
    if keeps != NO_LINEAGE:
        write_links(links, owner, words, link, here, before, starts, chosen, m, keeps, key)
        for q in range(m):
            words[ix(before + chosen[ix(q)])] = link + q
    for f in range(fields):
        kind, number = tables[ix(moves + 2 * f)], tables[ix(moves + 2 * f + 1)]
        to = registers + f * room
        if kind == SCALAR:
            value = words[ix(number)]
            for j in range(n):
                words[ix(to + j)] = value if mask[ix(j)] else words[ix(to + j)]
        elif kind != REGISTER:
            source = temporaries + number * BLOCK
            for j in range(n):
                words[ix(to + j)] = words[ix(source + j)] if mask[ix(j)] else words[ix(to + j)]


@inline
def child_of_all(
    tables: Ints, words: Ints, pools: Ints, links: Ints, owner: Ints, t: int, moves: int, fields: int, starts: int,
    before: int, registers: int, room: int, temporaries: int, chosen: Ints, m: int, link: int, here: int, keeps: int,
    key: int,
) -> int:  # fmt: skip
    """One child of all chosen runs, and of those that other steps chose; returns how many were merged."""
    c, troom, tbase = pools[ix(t + RUNS)], pools[ix(t + ROOM)], pools[ix(t + BASE)]
    child, merged = pools[ix(t + CHILDREN)], m
    if c == child:
        words[ix(tbase + c)] = words[ix(starts + chosen[0])]
        words[ix(tbase + troom + c)] = -1
        for f in range(fields):
            to = tbase + (COLUMNS + f) * troom + c
            write_field(tables, words, moves + 2 * f, registers, room, temporaries, to, chosen, 1)
        pools[ix(t + RUNS)] = c + 1
        merged = m - 1
    latest = words[ix(tbase + child)]
    if keeps != NO_LINEAGE:
        write_links(links, owner, words, link, here, before, starts, chosen, m, keeps, key)
        after = words[ix(tbase + troom + child)]
        top = links[ix(after * LINK + 4)] if after >= 0 else latest
        for q in range(m):
            new = (link + q) * LINK
            links[ix(new + 2)] = after
            top = max(top, links[ix(new + 3)])
            links[ix(new + 4)] = top
            after = link + q
        words[ix(tbase + troom + child)] = after
        latest = max(latest, top)
    else:
        for q in range(m):
            latest = max(latest, words[ix(starts + chosen[ix(q)])])
    words[ix(tbase + child)] = latest
    return merged


@inline
def children_by_registers(
    tables: Ints, words: Ints, pools: Ints, links: Ints, owner: Ints, buckets: Ints, first_stamp: int, t: int,
    moves: int, fields: int, starts: int, before: int, registers: int, room: int, temporaries: int, chosen: Ints,
    m: int, link: int, here: int, keeps: int, key: int, stamp: int,
) -> int:  # fmt: skip
    """A child per combination of registers, joining those that other steps made; returns how many were merged."""
    c, troom, tbase = pools[ix(t + RUNS)], pools[ix(t + ROOM)], pools[ix(t + BASE)]
    if keeps != NO_LINEAGE:
        write_links(links, owner, words, link, here, before, starts, chosen, m, keeps, key)
    merged = 0
    for q in range(m):
        j = chosen[ix(q)]
        for f in range(fields):
            kind, number = tables[ix(moves + 2 * f)], tables[ix(moves + 2 * f + 1)]
            at = number
            if kind == REGISTER:
                at = registers + number * room + j
            elif kind != SCALAR:
                at = temporaries + number * BLOCK + j
            words[ix(tbase + (COLUMNS + f) * troom + c)] = words[ix(at)]
        child = merge_child(words, tbase, troom, pools[ix(t + ALIKE)], c, buckets, first_stamp, stamp)
        start = words[ix(starts + j)]
        if child == c:
            words[ix(tbase + c)] = start
            words[ix(tbase + troom + c)] = -1
            c += 1
        else:
            merged += 1
            words[ix(tbase + child)] = max(words[ix(tbase + child)], start)
        if keeps != NO_LINEAGE:
            new, after = (link + q) * LINK, words[ix(tbase + troom + child)]
            links[ix(new + 2)] = after
            if after >= 0:
                links[ix(new + 4)] = max(start, links[ix(after * LINK + 4)])
            words[ix(tbase + troom + child)] = link + q
    pools[ix(t + RUNS)] = c
    return merged


@inline
def make_children(
    tables: Ints, words: Ints, pools: Ints, links: Ints, owner: Ints, buckets: Ints, first_stamp: int, t: int,
    moves: int, fields: int, starts: int, before: int, registers: int, room: int, temporaries: int, chosen: Ints,
    m: int, link: int, here: int, keeps: int, key: int, pool: int,
) -> int:  # fmt: skip
    """Children of the chosen runs in the pool at ``t``, as this pool merges them; returns how many were merged."""
    how = pools[ix(t + MERGE)]
    if how == HASHED and pools[ix(t + REST)] > 0:
        pools[ix(t + REST)] = max(pools[ix(t + REST)] - m, 0)
        how = APART
    if how == ALL:
        return child_of_all(
            tables, words, pools, links, owner, t, moves, fields, starts, before, registers, room, temporaries, chosen,
            m, link, here, keeps, key,
        )  # fmt: skip
    if how == HASHED:
        merged = children_by_registers(
            tables, words, pools, links, owner, buckets, first_stamp, t, moves, fields, starts, before, registers, room,
            temporaries, chosen, m, link, here, keeps, key, first_stamp + pool,
        )  # fmt: skip
        note_trial(t, pools, m, merged)
        return merged
    children_apart(
        tables, words, pools, links, owner, t, moves, fields, starts, before, registers, room, temporaries, chosen, m,
        link, here, keeps, key,
    )  # fmt: skip
    return 0
