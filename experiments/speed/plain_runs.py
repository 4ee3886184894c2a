"""What a programmer would write for one query each: the yardstick of ``speed.runs`` for the block machine.

One loop over the events, pools of runs as arrays, the window tested for each run, hits and links written: the work of
the runs engine without merging. With lineage each completed run is a hit; without it an event has one hit, with the
latest start. All conditions are part of the loop; nothing is read from tables. Loops over runs write without asking and
count on only where a condition holds, so that there is no branch to predict.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROOM = 1 << 15
"""Most runs of a pool."""

LINKS = 1 << 18
"""Links that are kept, the newest; a link is an event and the link before."""

HITS = 1 << 16
"""Hits that are kept, the newest; a hit is an event, a link and a start."""

SWEEP_EVERY = 16
"""Visits of a pool after which runs that are too old are dropped."""


class Room:
    """The arrays of one pass: two pools with start, link and two registers each, links, hits."""

    def __init__(self) -> None:
        self.starts = np.zeros(2 * ROOM, np.int64)
        self.origins = np.zeros(2 * ROOM, np.int64)
        self.x = np.zeros(2 * ROOM, np.float64)
        self.y = np.zeros(2 * ROOM, np.float64)
        self.prices = np.zeros(2 * ROOM, np.int64)
        self.links = np.zeros(2 * LINKS, np.int64)
        self.hits = np.zeros(3 * HITS, np.int64)


@block_kernel
def stock(
    tick: Ints, price: Ints, begins: Ints, ends: Ints, window: int, lineage: bool,
    starts: Ints, origins: Ints, prices: Ints, links: Ints, hits: Ints,
) -> int:  # fmt: skip
    """``SEQ(STOCK+ a[], STOCK b)`` with rising prices, skip till next match; returns the number of hits.

    A run that takes an event goes on in its place: there is never a reason to copy it.
    """
    runs = used = found = 0
    for e in range(len(tick)):
        now = price[e]
        low = tick[e] - window
        if ends[e] and lineage:
            for j in range(runs):
                new = used & (LINKS - 1)
                links[2 * new] = e
                links[2 * new + 1] = origins[j]
                hit = 3 * (found & (HITS - 1))
                hits[hit] = e
                hits[hit + 1] = new
                hits[hit + 2] = starts[j]
                used += starts[j] >= low
                found += starts[j] >= low
        elif ends[e]:
            latest = low - 1
            for j in range(runs):
                latest = max(latest, starts[j])
            hit = 3 * (found & (HITS - 1))
            hits[hit] = e
            hits[hit + 2] = latest
            found += latest >= low
        kept = 0
        if lineage:
            for j in range(runs):
                start, origin, last = starts[j], origins[j], prices[j]
                takes = now > last
                new = used & (LINKS - 1)
                links[2 * new] = e
                links[2 * new + 1] = origin
                used += takes & (start >= low)
                starts[kept] = start
                origins[kept] = new if takes else origin
                prices[kept] = now if takes else last
                kept += start >= low
        else:
            for j in range(runs):
                start, last = starts[j], prices[j]
                starts[kept] = start
                prices[kept] = max(now, last)
                kept += start >= low
        runs = kept
        if begins[e]:
            starts[runs], prices[runs], origins[runs] = tick[e], now, -1
            if lineage:
                new = used & (LINKS - 1)
                links[2 * new], links[2 * new + 1] = e, -1
                origins[runs] = new
                used += 1
            runs += 1
    return found


@inline
def drop_old(base: int, runs: int, low: int, starts: Ints, origins: Ints, x: Floats, y: Floats) -> int:
    """Drop the runs from ``base`` on that started before ``low``; returns how many stay."""
    kept = 0
    for j in range(runs):
        start = starts[base + j]
        starts[base + kept] = start
        origins[base + kept] = origins[base + j]
        x[base + kept] = x[base + j]
        y[base + kept] = y[base + j]
        kept += start >= low
    return kept


@block_kernel
def rising(
    tick: Ints, letter: Ints, value: Floats, window: int, lineage: bool, small: float,
    starts: Ints, origins: Ints, x: Floats, y: Floats, links: Ints, hits: Ints,
) -> int:  # fmt: skip
    """``SEQ(A a, B b, C c)`` with ``b.x > a.x`` and ``c.x > b.x + small``, skip till any match; returns the hits."""
    ones = twos = used = found = 0
    for e in range(len(tick)):
        low, now = tick[e] - window, value[e]
        which = letter[e]
        if e & (2 * SWEEP_EVERY - 1) == 0:  # each pool is visited by two events in three
            ones = drop_old(0, ones, low, starts, origins, x, y)
            twos = drop_old(ROOM, twos, low, starts, origins, x, y)
        if which == 0:
            starts[ones], x[ones], origins[ones] = tick[e], now, -1
            if lineage:
                new = used & (LINKS - 1)
                links[2 * new], links[2 * new + 1] = e, -1
                origins[ones] = new
                used += 1
            ones += 1
        elif which == 1:
            for j in range(ones):
                start = starts[j]
                holds = (start >= low) & (now > x[j])
                starts[ROOM + twos] = start
                x[ROOM + twos] = now
                if lineage:
                    new = used & (LINKS - 1)
                    links[2 * new] = e
                    links[2 * new + 1] = origins[j]
                    origins[ROOM + twos] = new
                    used += holds
                twos += holds
        elif lineage:
            for j in range(twos):
                start = starts[ROOM + j]
                holds = (start >= low) & (now > x[ROOM + j] + small)
                new = used & (LINKS - 1)
                links[2 * new] = e
                links[2 * new + 1] = origins[ROOM + j]
                hit = 3 * (found & (HITS - 1))
                hits[hit] = e
                hits[hit + 1] = new
                hits[hit + 2] = start
                used += holds
                found += holds
        else:
            latest = low - 1
            for j in range(twos):
                start = starts[ROOM + j]
                latest = max(latest, start if now > x[ROOM + j] + small else latest)
            hit = 3 * (found & (HITS - 1))
            hits[hit] = e
            hits[hit + 2] = latest
            found += latest >= low
    return found


@block_kernel
def sums(
    tick: Ints, letter: Ints, value: Floats, window: int, lineage: bool,
    starts: Ints, origins: Ints, x: Floats, y: Floats, links: Ints, hits: Ints,
) -> int:  # fmt: skip
    """``SEQ(A a, B b, C c)`` with ``a.x + b.x < c.x``, skip till any match; returns the number of hits."""
    ones = twos = used = found = 0
    for e in range(len(tick)):
        low, now = tick[e] - window, value[e]
        which = letter[e]
        if e & (2 * SWEEP_EVERY - 1) == 0:
            ones = drop_old(0, ones, low, starts, origins, x, y)
            twos = drop_old(ROOM, twos, low, starts, origins, x, y)
        if which == 0:
            starts[ones], x[ones], origins[ones] = tick[e], now, -1
            if lineage:
                new = used & (LINKS - 1)
                links[2 * new], links[2 * new + 1] = e, -1
                origins[ones] = new
                used += 1
            ones += 1
        elif which == 1:
            for j in range(ones):
                start = starts[j]
                holds = start >= low
                starts[ROOM + twos] = start
                x[ROOM + twos] = x[j]
                y[ROOM + twos] = now
                if lineage:
                    new = used & (LINKS - 1)
                    links[2 * new] = e
                    links[2 * new + 1] = origins[j]
                    origins[ROOM + twos] = new
                    used += holds
                twos += holds
        elif lineage:
            for j in range(twos):
                start = starts[ROOM + j]
                holds = (start >= low) & (x[ROOM + j] + y[ROOM + j] < now)
                new = used & (LINKS - 1)
                links[2 * new] = e
                links[2 * new + 1] = origins[ROOM + j]
                hit = 3 * (found & (HITS - 1))
                hits[hit] = e
                hits[hit + 1] = new
                hits[hit + 2] = start
                used += holds
                found += holds
        else:
            latest = low - 1
            for j in range(twos):
                start = starts[ROOM + j]
                latest = max(latest, start if x[ROOM + j] + y[ROOM + j] < now else latest)
            hit = 3 * (found & (HITS - 1))
            hits[hit] = e
            hits[hit + 2] = latest
            found += latest >= low
    return found
