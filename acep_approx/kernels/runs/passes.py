"""Passes over pools: the runs that are no longer worth their price, or do not fit into what may be done, are shed.

The youngest of a pool are weighed first, the others beside those that stay. A histogram of scores says which go where
only so many can stay. See ``kernel_shed`` for scores and prices.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import called, inline, ix
from acep_approx.kernels.runs.layout import CLASS_FIRST, LIVE, POOLS, SHED, SOURCE_WORDS, SOURCES, WINDOW
from acep_approx.kernels.runs.pools import (
    AGE,
    ALIKE,
    BASE,
    COLUMNS,
    COUNTED,
    HEAD,
    NEVER,
    OLDEST,
    POOL,
    ROOM,
    RUNS,
    TESTED,
    index_runs,
)
from acep_approx.kernels.runs.scores import (
    ADMITTED,
    BINS,
    BOUND,
    BROKEN,
    COUNTS,
    ENTRY,
    HISTOGRAM,
    LOG_SHED,
    LOGS,
    LOWEST,
    MOST,
    MOST_RUNS,
    NEWEST,
    NORMAL,
    PASS_EVERY,
    PASS_TOKENS,
    PASS_UNITS,
    PASSES,
    PATHS_SIZE,
    PLACE,
    PLACES,
    PRICE,
    PRICE_NOW,
    PROXIED,
    REASONS,
    SHIFT,
    TOKENS,
    TOO_OLD_PRICE,
    WOULD_GO,
    bits_of,
    cover_of,
    grant,
    group_of,
    left,
    move_run,
    note,
    score_of,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@called
def weigh(
    shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, shed: Ints, worth: Floats, lookup: Ints,
    pool: int, now: int, row: int, key: int, threshold: int,
) -> None:  # fmt: skip
    """Note the bin of the score of each run of a pool beside its mark, and count them.

    The youngest are seen first: those behind them are weighed beside those in front that stay, which are in the bin
    ``threshold`` or above. -1: the bound asks; then all may stay, and protected runs are in the highest bin. Those too
    old are in none (0 beside the mark; the others begin at 1).
    """
    p, at = pool * POOL, shed[PLACES] + pool * PLACE
    base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
    marks = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room
    low = now - shape[WINDOW]
    newest = shed[NEWEST] + pool
    shed[ix(newest)] = NEVER
    for back in range(pools[ix(p + RUNS)] - pools[ix(p + HEAD)]):
        run = pools[ix(p + RUNS)] - 1 - back
        start, mark = words[ix(base + run)], words[ix(marks + run)]
        if start < low:
            continue
        group = group_of(at, pools, p, words, floats, shed, worth, lookup, run, key)
        cover = cover_of(shed, pool, 0)
        link = words[ix(base + room + run)]
        score = score_of(
            at, group, cover, start, words[ix(marks + room + run)], link, now, row, key, shape, shed, worth, lookup,
            links,
        )  # fmt: skip
        place = BINS - 1 if threshold < 0 and mark != NORMAL else bin_of(shed, worth, score)
        shed[ix(shed[HISTOGRAM] + place)] += 1
        words[ix(marks + run)] = mark | (place + 1) << 2
        if mark != WOULD_GO and place >= threshold:
            shed[ix(newest)] = max(shed[ix(newest)], start)


@inline
def bin_of(shed: Ints, worth: Floats, score: float) -> int:
    """The bin of a score."""
    if score <= 0.0:
        return 0
    return int(min(max((bits_of(shed, worth, score) >> SHIFT) - LOWEST, 0), BINS - 1))


@called
def cut(
    header: Ints, shape: Ints, pools: Ints, words: Ints, index: Ints, shed: Ints, log: Ints, pool: int,
    threshold: int, spare: int, now: int, row: int, key: int, reason: int,
) -> int:  # fmt: skip
    """Shed the runs of a pool below the bin ``threshold``, and those in it but ``spare``; too old ones go as well.

    Returns how many of ``spare`` are left. Without a bound (``reason`` TOO_OLD_PRICE) protected runs are only marked.
    """
    p = pool * POOL
    base, room, runs = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + RUNS)]
    marks = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room
    low = now - shape[WINDOW]
    kept, oldest = 0, -NEVER
    for run in range(runs):
        start, word = words[ix(base + run)], words[ix(marks + run)]
        if start < low or run < pools[ix(p + HEAD)]:
            continue
        mark, place = word & 3, (word >> 2) - 1
        words[ix(marks + run)] = mark
        goes = place < threshold
        if place == threshold and reason != TOO_OLD_PRICE:
            goes = spare <= 0
            spare -= 1
        if goes and mark != NORMAL and reason == TOO_OLD_PRICE:
            words[ix(marks + run)] = WOULD_GO
            goes = False
        if goes:
            shed[ix(shed[COUNTS] + pool * REASONS + reason)] += 1
            header[SHED] += 1
            shed[BROKEN] += mark != NORMAL
            if shed[LOGS] & LOG_SHED:
                entry = note(reason, header, pools, p, words, shed, log, run, now, row, key)
                log[ix(entry + 9)] = (place + LOWEST) << SHIFT
                log[ix(entry + 10)] = (threshold + LOWEST) << SHIFT
            continue
        oldest = min(oldest, start)
        move_run(pools, p, words, kept, run)
        kept += 1
    header[LIVE] -= pools[ix(p + COUNTED)] - kept
    pools[ix(p + COUNTED)] = kept
    pools[ix(p + RUNS)] = kept
    pools[ix(p + HEAD)] = 0
    pools[ix(p + OLDEST)] = oldest
    pools[ix(p + AGE)] = 0
    pools[ix(p + TESTED)] = 0
    if kept < runs:
        index_runs(p, pools, words, index)
    return int(spare)


@inline
def pass_over(
    header: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, index: Ints, shed: Ints,
    worth: Floats, lookup: Ints, log: Ints, pool: int, now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Shed the runs of a pool that are no longer worth the price."""
    runs = pools[ix(pool * POOL + RUNS)]
    pay(shed, worth, runs)
    threshold = bin_of(shed, worth, worth[PRICE_NOW])
    weigh(shape, pools, words, floats, links, shed, worth, lookup, pool, now, row, key, threshold)
    cut(header, shape, pools, words, index, shed, log, pool, threshold, 0, now, row, key, TOO_OLD_PRICE)


@inline
def pay(shed: Ints, worth: Floats, runs: int) -> None:
    """Charge a pass to the budget, and empty the histogram for it."""
    worth[PASS_TOKENS] -= PASS_UNITS * runs
    worth[PASSES] += PASS_UNITS * runs
    for i in range(BINS):
        shed[ix(shed[HISTOGRAM] + i)] = 0


@inline
def make_fit(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, index: Ints,
    shed: Ints, worth: Floats, lookup: Ints, log: Ints, kind: int, needed: int, now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Shed runs until the tests of an event fit into what may be done."""
    first, last = tables[ix(shape[CLASS_FIRST] + kind)], tables[ix(shape[CLASS_FIRST] + kind + 1)]
    is_affordable = PASS_UNITS * needed <= worth[PASS_TOKENS]
    if is_affordable:
        pay(shed, worth, needed)
        for s in range(first, last):
            at = shape[SOURCES] + SOURCE_WORDS * s
            if tables[ix(at)] > 0 and tables[ix(at + 3)] < 0:
                weigh(shape, pools, words, floats, links, shed, worth, lookup, tables[ix(at)], now, row, key, -1)
    spare, threshold = int(left(worth)), BINS
    if is_affordable:
        while threshold > 0 and shed[ix(shed[HISTOGRAM] + threshold - 1)] <= spare:
            spare -= shed[ix(shed[HISTOGRAM] + threshold - 1)]
            threshold -= 1
        threshold -= 1  # of this bin only some can stay; -1: all can
    for s in range(first, last):
        at = shape[SOURCES] + SOURCE_WORDS * s
        pool = tables[ix(at)]
        if pool == 0 or tables[ix(at + 3)] >= 0:
            continue
        if not is_affordable:  # the youngest stay, by equal parts of each pool
            p = pool * POOL
            mine = (pools[ix(p + RUNS)] - pools[ix(p + HEAD)]) * int(left(worth)) // needed
            leave_youngest(header, pools, words, shed, log, pool, mine, now, row, key)
            index_runs(p, pools, words, index)
            continue
        spare = cut(
            header, shape, pools, words, index, shed, log, pool, threshold, spare, now, row, key, BOUND
        )  # fmt: skip


@inline
def leave_youngest(
    header: Ints, pools: Ints, words: Ints, shed: Ints, log: Ints, pool: int, most: int, now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Shed all but the ``most`` last runs of a pool, without a look at each: there is nothing left to look with."""
    p = pool * POOL
    base, room, runs = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + RUNS)]
    marks = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room
    gone = runs - pools[ix(p + HEAD)] - most
    if gone <= 0:
        return
    shed[ix(shed[COUNTS] + pool * REASONS + BOUND)] += gone
    header[SHED] += gone
    for run in range(pools[ix(p + HEAD)], runs - most):
        shed[BROKEN] += words[ix(marks + run)] != NORMAL
        if shed[LOGS] & LOG_SHED:
            note(BOUND, header, pools, p, words, shed, log, run, now, row, key)
    oldest = -NEVER
    for run in range(most):
        move_run(pools, p, words, run, runs - most + run)
        oldest = min(oldest, words[ix(base + run)])
    header[LIVE] -= pools[ix(p + COUNTED)] - most
    pools[ix(p + COUNTED)] = most
    pools[ix(p + RUNS)] = most
    pools[ix(p + HEAD)] = 0
    pools[ix(p + OLDEST)] = oldest
    pools[ix(p + AGE)] = 0


@called
def make_fewer(
    header: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, index: Ints, shed: Ints,
    worth: Floats, lookup: Ints, log: Ints, now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Shed the runs of the lowest scores until a quarter of the places is free: then births need not be refused."""
    here = 0
    for i in range(BINS):
        shed[ix(shed[HISTOGRAM] + i)] = 0
    for back in range(shape[POOLS] - 1):  # those furthest on first: they cover the others
        pool = shape[POOLS] - 1 - back
        here += pools[ix(pool * POOL + COUNTED)]
        weigh(shape, pools, words, floats, links, shed, worth, lookup, pool, now, row, key, -1)
    worth[PASSES] += PASS_UNITS * here
    spare = max(3 * shed[MOST_RUNS] // 4 - (header[LIVE] - here), 0)
    threshold = BINS
    while threshold > 0 and shed[ix(shed[HISTOGRAM] + threshold - 1)] <= spare:
        spare -= shed[ix(shed[HISTOGRAM] + threshold - 1)]
        threshold -= 1
    threshold -= 1
    for back in range(shape[POOLS] - 1):
        pool = shape[POOLS] - 1 - back
        if pools[ix(pool * POOL + RUNS)] > 0:
            spare = cut(
                header, shape, pools, words, index, shed, log, pool, threshold, spare, now, row, key, MOST
            )  # fmt: skip


@inline
def make_room(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, index: Ints,
    shed: Ints, worth: Floats, lookup: Ints, log: Ints, kind: int, now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Before an event: grant its run-steps, weigh pools that are due, and see to it that its tests fit."""
    grant(header, shed, worth)
    if worth[PRICE] <= 0.0 and shed[MOST_RUNS] < 0:
        return
    if shed[MOST_RUNS] >= 0 and header[LIVE] >= shed[MOST_RUNS]:
        make_fewer(header, shape, pools, words, floats, links, index, shed, worth, lookup, log, now, row, key)
    needed = 0
    for s in range(tables[ix(shape[CLASS_FIRST] + kind)], tables[ix(shape[CLASS_FIRST] + kind + 1)]):
        at = shape[SOURCES] + SOURCE_WORDS * s
        p = tables[ix(at)] * POOL
        if p > 0 and pools[ix(p + RUNS)] > 0:
            is_due = pools[ix(p + TESTED)] >= PASS_EVERY * pools[ix(p + RUNS)]
            if is_due and PASS_UNITS * pools[ix(p + RUNS)] <= worth[PASS_TOKENS]:
                pass_over(
                    header, shape, pools, words, floats, links, index, shed, worth, lookup, log, tables[ix(at)], now,
                    row, key,
                )  # fmt: skip
            if tables[ix(at + 3)] < 0:
                needed += pools[ix(p + RUNS)] - pools[ix(p + HEAD)]
    if needed > left(worth):
        make_fit(
            header, tables, shape, pools, words, floats, links, index, shed, worth, lookup, log, kind, needed, now, row,
            key,
        )  # fmt: skip


@called
def let_proxies_stand(
    header: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, index: Ints, shed: Ints,
    worth: Floats, lookup: Ints, log: Ints, pool: int, now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Shed the runs of a pool for which the children of this event stand, where the rest is not worth the price.

    Looking at a run is a run-step of the budget: it has just been tested, and most often has made that child.
    """
    p, at = pool * POOL, shed[PLACES] + pool * PLACE
    base, room, runs = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + RUNS)]
    marks = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room
    low, head = now - shape[WINDOW], pools[ix(p + HEAD)]
    kept, cover = head, cover_of(shed, pool, 1)
    for run in range(head, runs):
        start, mark = words[ix(base + run)], words[ix(marks + run)]
        goes = False
        last = words[ix(marks + room + run)]
        if low <= start <= cover and start <= shed[ADMITTED] and last < now and mark != WOULD_GO:
            worth[TOKENS] -= 1.0
            worth[PASSES] += 1.0
            group = group_of(at, pools, p, words, floats, shed, worth, lookup, run, key)
            link = words[ix(base + room + run)]
            score = score_of(
                at, group, cover, start, last, link, now, row, key, shape, shed, worth, lookup, links
            )  # fmt: skip
            goes = score < worth[PRICE_NOW]
            if goes and mark != NORMAL:
                words[ix(marks + run)] = WOULD_GO
                goes = False
            if goes and shed[LOGS] & LOG_SHED:
                entry = note(PROXIED, header, pools, p, words, shed, log, run, now, row, key)
                log[ix(entry + 9)] = bits_of(shed, worth, score)
                log[ix(entry + 10)] = bits_of(shed, worth, worth[PRICE_NOW])
                log[ix(entry + 11)] = cover
        if not goes:
            move_run(pools, p, words, kept, run)
            kept += 1
    if kept < runs:
        gone = runs - kept
        shed[ix(shed[COUNTS] + pool * REASONS + PROXIED)] += gone
        header[SHED] += gone
        header[LIVE] -= gone
        pools[ix(p + COUNTED)] -= gone
        pools[ix(p + RUNS)] = kept
        index_runs(p, pools, words, index)


@inline
def end_shedding(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, index: Ints,
    shed: Ints, worth: Floats, lookup: Ints, log: Ints, kind: int, now: int, row: int, key: int,
) -> None:  # fmt: skip
    """After an event: where children were admitted, see for whom they stand."""
    if shed[ADMITTED] > NEVER and worth[PRICE] > 0.0 and shed[PATHS_SIZE] == 0:
        for s in range(tables[ix(shape[CLASS_FIRST] + kind)], tables[ix(shape[CLASS_FIRST] + kind + 1)]):
            pool = tables[ix(shape[SOURCES] + SOURCE_WORDS * s)]
            runs = pools[ix(pool * POOL + RUNS)] - pools[ix(pool * POOL + HEAD)]
            if pool > 0 and runs > 0 and runs <= left(worth):
                let_proxies_stand(
                    header, shape, pools, words, floats, links, index, shed, worth, lookup, log, pool, now, row, key
                )
    shed[ADMITTED] = NEVER


@inline
def log_room(pools: Ints, shape: Ints, shed: Ints) -> int:
    """Words that passes before an event may add to the log, at most."""
    if shed[LOGS] == 0:
        return 0
    runs = 0
    for pool in range(1, shape[POOLS]):
        runs += pools[ix(pool * POOL + RUNS)]
    return int(2 * runs * shed[ENTRY])
