"""The backtrack algorithm of SASE+ (SIGMOD 2008, section 5.2.3) for the query template of its evaluation.

One run at a time: where a run can do two things with an event, it goes on towards the end of the pattern, and the other
way is postponed; when it fails or has matched, the run postponed last reads the stream again from its event on. With
``a+, b`` and ``a+, b, c`` at most one run is postponed at any time, beside those that have not started yet: the stack
of the paper is a flag here. It is written for this template, so it pays nothing for being general: compare the events
read, not only the time.

For matches apart (NON OVERLAP) no run reads on past the earliest completion known so far.
Oracle: ``tests/naive.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from experiments.sase2008.workload import START_EVERY, SYMBOLS, VOLUME_BELOW, StockQuery

Ints = npt.NDArray[np.int64]

CODES = {"p1": 0, "p2": 1, "p3": 2, "p3max": 3, "p3avg": 4}
BLOCK = 1 << 16
"""Events of matches that are written before they are handed on."""


@dataclass(frozen=True)
class Backtracked:
    """What one pass found and did.

    ``matches``; ``length``, their events in all; ``reads``, events read by runs; ``reprocessed``, those of them that a
    run had read before.
    """

    matches: int
    length: int
    reads: int
    reprocessed: int


def backtrack(events: pa.Table, query: StockQuery) -> Backtracked:
    """Find the matches of a query, and write down the events of each.

    Parameters
    ----------
    events : pyarrow.Table
        As ``stock_stream`` makes them.
    query : StockQuery

    Returns
    -------
    Backtracked
    """
    symbol, price, volume = (events.column(name).to_numpy() for name in ("symbol", "price", "volume"))
    tally = np.zeros(4, np.int64)
    path, out = np.zeros(query.window + 3, np.int64), np.zeros(BLOCK + query.window + 3, np.int64)
    skips, tail, apart = int(query.strategy == "s3"), int(query.tail), int(query.apart)
    for key in range(1, SYMBOLS + 1):
        rows = np.flatnonzero(symbol == key)
        options = CODES[query.predicate], skips, tail, apart, query.window
        search(price[rows], volume[rows], *options, path, out, tally)
    matches, length, reads, seen = tally.tolist()
    return Backtracked(matches, length, reads, reads - seen)


@inline
def takes(code: int, price: int, value: int, count: int) -> bool:
    """Whether ``a[]`` takes an event: ``value`` is the last, least or greatest price, or the sum of ``count``."""
    return code == 0 or (price * count > value if code == 4 else price > value)


@inline
def value_after(code: int, price: int, value: int) -> int:
    """The register once ``a[]`` has taken an event."""
    if code == 1:
        return price
    if code == 2:
        return min(price, value)
    return max(price, value) if code == 3 else price + value


@inline
def note_read(at: int, tally: Ints, seen_to: int) -> int:
    """Count an event that a run reads; starts only grow, so what lies beyond ``seen_to`` is new."""
    tally[2] += 1
    if at > seen_to:
        tally[3] += 1
        return at
    return seen_to


@inline
def find_c(price: Ints, first: int, last: int, at: int, bound: int, tally: Ints, seen_to: int) -> tuple[int, int]:
    """The first event from ``at`` to ``bound`` that can be ``c``, or -1; and the new ``seen_to``."""
    while at <= bound:
        seen_to = note_read(at, tally, seen_to)
        if price[first] < price[at] < price[last]:
            return at, seen_to
        at += 1
    return -1, seen_to


@inline
def commit(size: int, used: int, tally: Ints) -> int:
    """Count the match that stands behind the ``used`` places; a full block counts as handed on."""
    tally[0] += 1
    tally[1] += size
    return used + size if used + size < BLOCK else 0


@kernel
def search(
    price: Ints,
    volume: Ints,
    code: int,
    skips: int,
    tail: int,
    apart: int,
    window: int,
    path: Ints,
    out: Ints,
    tally: Ints,
) -> int:
    """The matches in one partition.

    Parameters
    ----------
    price, volume : int64, shape (n,)
        In order of time.
    code : int
        Of the predicate, see ``CODES``.
    skips : int
        1 for skip till next match, 0 for partition contiguity.
    tail : int
        1 if the pattern goes on with ``c``.
    apart : int
        1 for matches that do not overlap: the earliest completion, then the earliest of what starts after it.
    window : int
        Events from the first to the last of a match.
    path : int64
        Scratch: the events of the current run.
    out : int64
        Where matches are written.
    tally : int64, shape (4,)
        Matches, their events, events read, different events read; counted up.

    Returns
    -------
    int
        How much of ``out`` is used.
    """
    used, seen_to = 0, -1
    size, best, free = 0, -1, 0  # with ``apart``: the best match so far and its end, and where the next may start
    for first in range(len(price)):
        if best >= 0 and first >= best:
            used = commit(size, used, tally)
            free, best = best + 1, -1
        if price[first] % START_EVERY != 0 or first < free:
            continue
        bound = min(len(price) - 1 if best < 0 else best, first + window)
        path[0], length, value = first, 1, price[first]
        at, resumed = first + 1, False
        while at <= bound:
            seen_to = note_read(at, tally, seen_to)
            can_take = takes(code, price[at], value, length)
            if volume[at] < VOLUME_BELOW and not resumed:
                path[length] = end = at
                if tail:
                    last = bound if skips else min(bound, at + 1)
                    end, seen_to = find_c(price, first, path[length - 1], at + 1, last, tally, seen_to)
                    path[length + 1] = end
                if end >= 0:
                    size = length + 1 + tail
                    for k in range(size):
                        out[used + k] = path[k]
                    if apart:
                        best = bound = end
                    else:
                        used = commit(size, used, tally)
                if not (can_take or skips):
                    break
                resumed = True  # the way postponed here reads this event again
                continue
            resumed = False
            if can_take:
                path[length], length, value = at, length + 1, value_after(code, price[at], value)
            elif not skips:
                break
            at += 1
    return used if best < 0 else commit(size, used, tally)
