"""What a run is worth beside the runs that are kept: its score.

What a kept run reaches as well is no gain. By *place*, the run of the latest start among those of the same place, or of
one further on, covers one share of it; where later events must be equal to what runs remember, only a run that agrees
with it in that. By *group*, each group has its own share, from what the history has recorded of
the two, and the kept run of each group that started last covers it.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import called, inline
from acep_approx.kernels.arithmetic import divided, part_of
from acep_approx.kernels.runs.layout import DOMINATED, POOLS
from acep_approx.kernels.runs.pools import BASE, COLUMNS, NEVER, POOL, ROOM, RUNS, hash_word
from acep_approx.kernels.runs.records import Arena, Event, Pools, Program
from acep_approx.kernels.runs.scores import (
    AGREED,
    AGREED_ROOM,
    BY_GROUP,
    COIN,
    COSTS,
    COVERED_BY,
    COVERING,
    COVERS,
    COVERS_OF_GROUP,
    DOMINATED_SHARE,
    EDGE,
    GAINS,
    JOIN_WORDS,
    JOINS,
    LATEST,
    LOG_SHED,
    LOGS,
    MORE_COVERED,
    NEWEST,
    OVERLAPS,
    POOLS_NOTED,
    REMAINING,
    SEED,
    SHARE_COVERED,
    SINCE,
    SPREAD,
    UNKNOWN,
    WEIGHT_NOW,
    first_group,
    known_group,
    mark_at,
    window_at,
)

SURELY = 0.999
"""Times a score: what is below that is below the score, however numbers are rounded, and the other way round."""


@inline
def slice_of(shed: Ints, window: int, left: int) -> int:
    """Bucket of a remaining window, which is none, or all of it, at most."""
    return part_of(min(max(left, 0), window), window, shed[REMAINING])


@inline
def cover_of(shed: Ints, pool: int, least: int) -> int:
    """The latest start of a run that reaches what a run of this pool does.

    The first of the pools that cover it is itself; ``least`` is 1 to leave that out.
    """
    cover = NEVER
    for i in range(shed[shed[COVERS] + pool] + least, shed[shed[COVERS] + pool + 1]):
        cover = max(cover, shed[shed[NEWEST] + shed[shed[COVERING] + i]])
    return cover


@inline
def agreed_at(pools: Pools, shed: Ints, pool: int, other: int, run: int, key: int) -> int:
    """Where the latest start stands of the kept runs of ``other`` that agree with a run; -1: none covers it."""
    at = shed[JOINS] + (pool * shed[POOLS_NOTED] + other) * JOIN_WORDS
    many, p = shed[at], pool * POOL
    if many < 0:
        return -1
    base, room, h = pools.table[p + BASE], pools.table[p + ROOM], hash_word(hash_word(7, key), other)
    for i in range(1, many + 1):
        h = hash_word(h, pools.words[base + (COLUMNS + shed[at + i]) * room + run])
    return int(shed[AGREED] + other * AGREED_ROOM + (h & (AGREED_ROOM - 1)))


@called
def agreeing_cover(pools: Pools, shed: Ints, pool: int, run: int, key: int, least: int) -> int:
    """As ``cover_of``, of the runs that agree with one in what later events must be equal to."""
    cover = NEVER
    for i in range(shed[shed[COVERS] + pool] + least, shed[shed[COVERS] + pool + 1]):
        where = agreed_at(pools, shed, pool, shed[shed[COVERING] + i], run, key)
        if where >= 0:
            cover = max(cover, shed[where])
    return int(cover)


@called
def note_agreed(pools: Pools, shed: Ints, pool: int, run: int, key: int, start: int) -> None:
    """A run is kept: those that agree with it may be covered by it."""
    where = agreed_at(pools, shed, pool, pool, run, key)
    if where >= 0:
        shed[where] = max(shed[where], start)


@inline
def gain_at(shedding: Arena, event: Event, cell: int, start: int) -> float:
    """Match points to come of a run of this start; ``cell``: the vertex it would be at with no window left."""
    shed, window = shedding.words, window_at(event)
    left = slice_of(shed, window, start + window - event.now)
    return float(shedding.floats[shed[GAINS] + cell + left * shed[SINCE]])


@inline
def covered_by_groups(
    shedding: Arena, event: Event, group: int, cell: int, start: int, gain: float, least: int
) -> float:
    """Of the match points of a run, those that kept runs of the groups from ``least`` on reach as well.

    Never less than the best of them reaches, nor than what all of them are known to reach together. One that started no
    earlier has the time for all of them.
    """
    shed, worth, best, together = shedding.words, shedding.floats, 0.0, 0.0
    low = event.low
    for i in range(shed[shed[COVERS_OF_GROUP] + group], shed[shed[COVERS_OF_GROUP] + group + 1]):
        cover = shed[shed[COVERED_BY] + i]
        latest = shed[shed[LATEST] + cover]
        if latest >= low and cover >= least:
            both = gain
            if latest < start:
                both = min(gain, gain_at(shedding, event, cell, latest))
            best = max(best, worth[shed[SHARE_COVERED] + i] * both)
            together += worth[shed[MORE_COVERED] + i] * both
    return float(max(best, together))


@inline
def score_of(
    program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, run: int, least: int, needed: float
) -> tuple[float, float, int]:
    """What a run is worth per run-step; with what kept runs take of its gain, and its group.

    A match point counts for as much as the weight of its key. ``least``: 1 if runs of its own place cover nothing of
    it. Where the score is not that which is ``needed``, nobody asks by how much: 0 stands for all that is below, and
    what is needed for all that is above. Divisions take long.
    """
    shed, worth, now = shedding.words, shedding.floats, event.now
    p = pool * POOL
    start = pools.words[pools.table[p + BASE] + run]
    last = pools.words[mark_at(pools.table, p, run) + pools.table[p + ROOM]]
    since = 0
    while since < shed[SINCE] - 1 and now - last > shed[EDGE + since]:
        since += 1
    group = known_group(pools, shedding, pool, run, event.key)
    cell = group * shed[REMAINING] * shed[SINCE] + since
    vertex = cell + slice_of(shed, window_at(event), start - event.low) * shed[SINCE]
    gain, cost, covered = worth[shed[GAINS] + vertex], worth[shed[COSTS] + vertex], 0.0
    weight, asked = worth[WEIGHT_NOW], divided(needed, worth[WEIGHT_NOW])
    too_little = SURELY * asked * cost
    if gain < too_little:
        return 0.0, 0.0, int(group)
    if shed[BY_GROUP]:
        others = first_group(shed, pool + least)
        covered = covered_by_groups(shedding, event, group, cell, start, gain, others)
    else:
        cover = cover_of(shed, pool, least)
        if shed[JOINS] > 0 and cover >= event.low:
            cover = agreeing_cover(pools, shed, pool, run, event.key, least)
        if cover >= event.low:
            covered = worth[shed[OVERLAPS] + pool] * min(gain, gain_at(shedding, event, cell, cover))
    left = gain - covered
    if program.shape[DOMINATED] >= 0:
        flag = mark_at(pools.table, p, run) + (1 + program.shape[DOMINATED]) * pools.table[p + ROOM]
        left *= worth[DOMINATED_SHARE] if pools.words[flag] else 1.0
    if left < too_little:
        return 0.0, 0.0, int(group)
    if needed > 0.0 and SURELY * left * worth[SPREAD] > asked * cost * (worth[SPREAD] + 1.0):
        return needed, covered, int(group)
    h = hash_word(hash_word(shed[SEED] + 1, start), event.key)
    if shed[COIN]:
        h = hash_word(h, last)
    coin = (h & 0xFFFF) / 65536.0
    score = divided(divided(left, cost) * worth[SPREAD], worth[SPREAD] + coin) * weight
    return float(max(score, 0.0)), float(covered), int(group)


@inline
def needed_score(shed: Ints, price: float) -> float:
    """The score that is asked for at a price; 0 where it is written down by how much runs are below."""
    return 0.0 if shed[LOGS] & LOG_SHED else price


@inline
def note_kept(shed: Ints, pool: int, group: int, start: int) -> None:
    """A run is kept: others may be covered by it."""
    shed[shed[NEWEST] + pool] = max(shed[shed[NEWEST] + pool], start)
    shed[shed[LATEST] + group] = max(shed[shed[LATEST] + group], start)


@inline
def forget_kept(shed: Ints, pool: int) -> None:
    """Nothing of a pool is known to be kept."""
    shed[shed[NEWEST] + pool] = NEVER
    if shed[JOINS] > 0:
        for i in range(AGREED_ROOM):
            shed[shed[AGREED] + pool * AGREED_ROOM + i] = NEVER
    for group in range(first_group(shed, pool), first_group(shed, pool + 1)):
        shed[shed[LATEST] + group] = NEVER


@inline
def find_newest(program: Program, pools: Pools, shed: Ints) -> None:
    """Look for the latest start in each pool, after the runs of another key were brought in."""
    for pool in range(1, program.shape[POOLS]):
        p, newest = pool * POOL, NEVER
        for run in range(pools.table[p + RUNS]):
            newest = max(newest, pools.words[pools.table[p + BASE] + run])
        shed[shed[NEWEST] + pool] = newest
    shed[UNKNOWN] = shed[BY_GROUP]


@called
def find_latest(program: Program, pools: Pools, shedding: Arena, event: Event) -> None:
    """Look for the latest start in each group."""
    shed = shedding.words
    for pool in range(1, program.shape[POOLS]):
        forget_kept(shed, pool)
        p = pool * POOL
        for run in range(pools.table[p + RUNS]):
            group = known_group(pools, shedding, pool, run, event.key)
            note_kept(shed, pool, group, pools.words[pools.table[p + BASE] + run])
    shed[UNKNOWN] = 0
