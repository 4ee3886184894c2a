"""The limit: one loop per query, as one would write it in C, which writes its matches to flat arrays.

Nothing is read from tables, no batch is cut, nothing of a stream is kept for the next one. A kernel gives back how many
matches it wrote, and -1 if there was no room for them, so that a mistake in it cannot write behind an array. What it
remembers of events are their rows; a window is kept by moving on the first of those that still lie in it, so that no
loop over partial matches meets one that leads to nothing. The time of an event is its row, but for W3.

The functions that begin with ``prepare`` give what is measured: new arrays for the matches, and one pass, by machine
code. The arrays for what is remembered are made beforehand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.jit.kernel import block_kernel, kernel
from experiments.peers.workloads import START_EVERY, SYMBOLS, VOLUME_BELOW

Part = tuple[Ints | None, Ints]
"""One variable of all matches: how many events each has (one each if it is None), and the events."""

Pass = Callable[[], list[Part]]
Count = Callable[[], int]

CHAIN = 1024
"""Most events of a chain of rising prices; no window of W1 has so many."""

RUNS = 64
"""Most chains of one symbol at one time; a power of two."""


@kernel
def quadruples(
    letter: Ints, window: int, at_a: Ints, at_b: Ints, at_c: Ints, before_b: Ints, before_c: Ints,
    a: Ints, b: Ints, c: Ints, d: Ints,
) -> int:  # fmt: skip
    """W2: each B notes how many As there were, each C how many Bs; a D goes through them."""
    seen_a = seen_b = seen_c = from_a = from_b = from_c = found = 0
    for e in range(len(letter)):
        which = letter[e]
        if which == 0:
            at_a[seen_a] = e
            seen_a += 1
        elif which == 1:
            at_b[seen_b], before_b[seen_b] = e, seen_a
            seen_b += 1
        elif which == 2:
            at_c[seen_c], before_c[seen_c] = e, seen_b
            seen_c += 1
        elif which == 3:
            while from_a < seen_a and at_a[from_a] < e - window:
                from_a += 1
            while from_b < seen_b and before_b[from_b] <= from_a:
                from_b += 1
            while from_c < seen_c and before_c[from_c] <= from_b:
                from_c += 1
            for x in range(from_c, seen_c):
                for y in range(from_b, before_c[x]):
                    if found + before_b[y] - from_a > len(a):
                        return -1
                    for z in range(from_a, before_b[y]):
                        a[found], b[found] = at_a[z], at_b[y]
                        c[found], d[found] = at_c[x], e
                        found += 1
    return found


@kernel
def compared_quadruples(
    letter: Ints, value: Ints, window: int, low: int, high: int, rise: int,
    at_b: Ints, at_c: Ints, before_c: Ints, first: Ints, end: Ints, at_a: Ints, paired: Ints,
    a: Ints, b: Ints, c: Ints, d: Ints,
) -> int:  # fmt: skip
    """W2 with conditions: each B notes the As that it may follow, ``x`` of which lie ``low`` to ``high`` below its own.

    A D has an ``x`` that is at least ``rise`` above that of the C.
    """
    seen_a = seen_b = seen_c = from_a = from_b = from_c = pairs = found = 0
    for e in range(len(letter)):
        which, x = letter[e], value[e]
        if which == 0:
            at_a[seen_a] = e
            seen_a += 1
        elif which == 1:
            while from_a < seen_a and at_a[from_a] < e - window:
                from_a += 1
            if pairs + seen_a - from_a > len(paired):
                return -1
            first[seen_b] = pairs
            for z in range(from_a, seen_a):
                paired[pairs] = at_a[z]
                pairs += low <= x - value[at_a[z]] and x - value[at_a[z]] <= high
            at_b[seen_b], end[seen_b] = e, pairs
            seen_b += pairs > first[seen_b]
        elif which == 2:
            at_c[seen_c], before_c[seen_c] = e, seen_b
            seen_c += 1
        elif which == 3:
            while from_b < seen_b and paired[end[from_b] - 1] < e - window:
                from_b += 1
            for y in range(from_b, seen_b):
                while first[y] < end[y] and paired[first[y]] < e - window:
                    first[y] += 1
            while from_c < seen_c and before_c[from_c] <= from_b:
                from_c += 1
            for w in range(from_c, seen_c):
                if x - value[at_c[w]] < rise:
                    continue
                for y in range(from_b, before_c[w]):
                    if found + end[y] - first[y] > len(a):
                        return -1
                    for z in range(first[y], end[y]):
                        a[found], b[found] = paired[z], at_b[y]
                        c[found], d[found] = at_c[w], e
                        found += 1
    return found


@block_kernel
def counted_quadruples(letter: Ints, window: int, start: Ints, pairs: Ints, triples: Ints) -> int:
    """W2, counted: how many pairs and triples begin with each A."""
    first = seen = total = 0
    for e in range(len(letter)):
        which = letter[e]
        if which < 0:
            continue
        while first < seen and start[first] < e - window:
            first += 1
        if which == 0:
            start[seen], pairs[seen], triples[seen] = e, 0, 0
            seen += 1
        elif which == 1:
            for j in range(first, seen):
                pairs[j] += 1
        elif which == 2:
            for j in range(first, seen):
                triples[j] += pairs[j]
        else:
            for j in range(first, seen):
                total += triples[j]
    return total


@kernel
def closures(
    letter: Ints, window: int, at_a: Ints, at_b: Ints, before_a: Ints, a: Ints, c: Ints, length: Ints, b: Ints
) -> int:
    """W2K: the bits of a number choose among the Bs behind an A. All are written, those that count stay."""
    seen_a = seen_b = from_a = found = used = 0
    for e in range(len(letter)):
        which = letter[e]
        if which == 0:
            at_a[seen_a], before_a[seen_a] = e, seen_b
            seen_a += 1
        elif which == 1:
            at_b[seen_b] = e
            seen_b += 1
        elif which == 2:
            while from_a < seen_a and at_a[from_a] < e - window:
                from_a += 1
            for x in range(from_a, seen_a):
                first = before_a[x]
                many = seen_b - first
                if found + (1 << many) - 1 > len(a) or used + (many << many) // 2 >= len(b):
                    return -1
                for chosen in range(1, 1 << many):
                    begun = used
                    for bit in range(many):
                        b[used] = at_b[first + bit]
                        used += (chosen >> bit) & 1
                    a[found], c[found], length[found] = at_a[x], e, used - begun
                    found += 1
    return found


@block_kernel
def counted_closures(letter: Ints, window: int, start: Ints, choices: Ints) -> int:
    """W2K, counted."""
    first = seen = total = 0
    for e in range(len(letter)):
        which = letter[e]
        if which < 0:
            continue
        while first < seen and start[first] < e - window:
            first += 1
        if which == 0:
            start[seen], choices[seen] = e, 0
            seen += 1
        elif which == 1:
            for j in range(first, seen):
                choices[j] += choices[j] + 1
        elif which == 2:
            for j in range(first, seen):
                total += choices[j]
    return total


@kernel
def contiguous(
    symbol: Ints, price: Ints, volume: Ints, window: int, runs: Ints, length: Ints, begin: Ints, chain: Ints,
    lengths: Ints, b: Ints, a: Ints,
) -> int:  # fmt: skip
    """W1, contiguity: one chain of a symbol, and where runs begin in it."""
    found = used = 0
    for e in range(len(symbol)):
        now, which = price[e], symbol[e]
        base = which * CHAIN
        if runs[which] > 0:
            long = length[which]
            if volume[e] < VOLUME_BELOW:
                for j in range(runs[which]):
                    at = begin[base + j]
                    if chain[base + at] >= e - window:
                        if found == len(b) or used + long - at > len(a):
                            return -1
                        for k in range(at, long):
                            a[used] = chain[base + k]
                            used += 1
                        lengths[found], b[found] = long - at, e
                        found += 1
            if now <= price[chain[base + long - 1]]:
                runs[which] = length[which] = 0
            elif long == CHAIN:
                return -1
            else:
                chain[base + long] = e
                length[which] += 1
        if now % START_EVERY == 0:
            if runs[which] == 0:
                chain[base] = e
                length[which] = 1
            begin[base + runs[which]] = length[which] - 1
            runs[which] += 1
    return found


@kernel
def next_match(
    symbol: Ints, price: Ints, volume: Ints, window: int, first: Ints, begun: Ints, length: Ints, chain: Ints,
    lengths: Ints, b: Ints, a: Ints,
) -> int:  # fmt: skip
    """W1, skip till next match: each run has its chain, in a ring of them for each symbol; the oldest go first."""
    found = used = 0
    for e in range(len(symbol)):
        now, which = price[e], symbol[e]
        ring = which * RUNS
        while first[which] < begun[which]:
            if chain[(ring + (first[which] & (RUNS - 1))) * CHAIN] >= e - window:
                break
            first[which] += 1
        for run in range(first[which], begun[which]):
            slot = ring + (run & (RUNS - 1))
            base, long = slot * CHAIN, length[slot]
            if volume[e] < VOLUME_BELOW:
                if found == len(b) or used + long > len(a):
                    return -1
                for k in range(long):
                    a[used] = chain[base + k]
                    used += 1
                lengths[found], b[found] = long, e
                found += 1
            if now > price[chain[base + long - 1]]:
                if long == CHAIN:
                    return -1
                chain[base + long] = e
                length[slot] += 1
        if now % START_EVERY == 0:
            if begun[which] - first[which] == RUNS:
                return -1
            slot = ring + (begun[which] & (RUNS - 1))
            chain[slot * CHAIN], length[slot] = e, 1
            begun[which] += 1
    return found


@kernel
def rising(kind: Ints, time: Ints, peak: Floats, window: int, at: Ints, a: Ints, b: Ints, c: Ints) -> int:
    """W3: the bars of the stock that lie in the window, by pairs."""
    seen = first = found = 0
    for e in range(len(kind)):
        if kind[e] != 0:
            continue
        while first < seen and time[at[first]] < time[e] - window:
            first += 1
        for y in range(first + 1, seen):
            middle = peak[at[y]]
            if middle < peak[e]:
                for x in range(first, y):
                    if peak[at[x]] < middle:
                        if found == len(a):
                            return -1
                        a[found], b[found], c[found] = at[x], at[y], e
                        found += 1
        at[seen] = e
        seen += 1
    return found


def made(size: int, number: int) -> list[Ints]:
    """Some arrays, whose pages are only there when they are written to: as a result that a user keeps needs."""
    return [np.empty(size, np.int64) for _ in range(number)]


def written(found: int) -> int:
    """The matches of a pass that had room for them."""
    assert found >= 0, "a loop finds more than there is room for"
    return found


def prepare_quadruples(letter: Ints, window: int, matches: int, _: int) -> Pass:
    """A pass of ``quadruples``."""
    scratch = [np.zeros(letter.size, np.int64) for _ in range(5)]

    def run() -> list[Part]:
        rows = made(matches, 4)
        found = written(quadruples.compiled(letter, window, *scratch, *rows))
        return [(None, row[:found]) for row in rows]

    return run


def prepare_compared(
    low: int, high: int, rise: int, letter: Ints, value: Ints, window: int, matches: int, _: int
) -> Pass:
    """A pass of ``compared_quadruples``."""
    scratch = [np.zeros(letter.size, np.int64) for _ in range(6)]
    paired = np.zeros(2 * letter.size + window, np.int64)

    def run() -> list[Part]:
        rows = made(matches, 4)
        found = written(compared_quadruples.compiled(letter, value, window, low, high, rise, *scratch, paired, *rows))
        return [(None, row[:found]) for row in rows]

    return run


def prepare_closures(letter: Ints, window: int, matches: int, events: int) -> Pass:
    """A pass of ``closures``."""
    scratch = [np.zeros(letter.size, np.int64) for _ in range(3)]

    def run() -> list[Part]:
        rows = [*made(matches, 3), *made(events + 1, 1)]
        found = written(closures.compiled(letter, window, *scratch, *rows))
        a, c, length, b = rows
        return [(None, a[:found]), (length[:found], b[: length[:found].sum()]), (None, c[:found])]

    return run


def prepare_contiguous(symbol: Ints, price: Ints, volume: Ints, window: int, matches: int, events: int) -> Pass:
    """A pass of ``contiguous``."""
    symbols = max(SYMBOLS) + 1
    counts, chains = np.zeros((2, symbols), np.int64), np.zeros((2, symbols * CHAIN), np.int64)

    def run() -> list[Part]:
        counts.fill(0)
        rows = [*made(matches, 2), *made(events, 1)]
        found = written(contiguous.compiled(symbol, price, volume, window, *counts, *chains, *rows))
        lengths, b, a = rows
        return [(lengths[:found], a[: lengths[:found].sum()]), (None, b[:found])]

    return run


def prepare_next_match(symbol: Ints, price: Ints, volume: Ints, window: int, matches: int, events: int) -> Pass:
    """A pass of ``next_match``."""
    symbols = max(SYMBOLS) + 1
    ends = np.zeros((2, symbols), np.int64)
    chains = [np.zeros(symbols * RUNS * size, np.int64) for size in (1, CHAIN)]

    def run() -> list[Part]:
        ends.fill(0)
        rows = [*made(matches, 2), *made(events, 1)]
        found = written(next_match.compiled(symbol, price, volume, window, *ends, *chains, *rows))
        lengths, b, a = rows
        return [(lengths[:found], a[: lengths[:found].sum()]), (None, b[:found])]

    return run


def prepare_rising(kind: Ints, time: Ints, peak: Floats, window: int, matches: int, _: int) -> Pass:
    """A pass of ``rising``."""
    scratch = np.zeros(kind.size, np.int64)

    def run() -> list[Part]:
        rows = made(matches, 3)
        found = written(rising.compiled(kind, time, peak, window, scratch, *rows))
        return [(None, row[:found]) for row in rows]

    return run


def prepare_counted_quadruples(letter: Ints, window: int) -> Count:
    """A pass of ``counted_quadruples``."""
    scratch = [np.zeros(letter.size, np.int64) for _ in range(3)]
    return lambda: int(counted_quadruples.compiled(letter, window, *scratch))


def prepare_counted_closures(letter: Ints, window: int) -> Count:
    """A pass of ``counted_closures``."""
    scratch = [np.zeros(letter.size, np.int64) for _ in range(2)]
    return lambda: int(counted_closures.compiled(letter, window, *scratch))
