"""Passes over pools: the runs that are no longer worth their price, or do not fit into what may be done, are shed.

The youngest of a pool are weighed first, the others beside those that stay. A histogram of scores says which go where
only so many can stay. See ``kernel_shed`` for scores and prices.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import called, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import (
    BASE,
    CHILDREN,
    COUNTED,
    HEAD,
    NEVER,
    POOL,
    ROOM,
    RUNS,
    TESTED,
    copy_run,
    index_runs,
    leave,
)
from acep_approx.kernels.runs.records import Arena, Cut, Event, Pools, Program
from acep_approx.kernels.runs.scores import (
    ADMITTED,
    AGAIN,
    AT_LAST,
    BINS,
    BITS,
    BOUND,
    COUNTS,
    ENTRY,
    HISTOGRAM,
    JOINS,
    LOG_COVERED,
    LOG_PRICE,
    LOG_SCORE,
    LOG_SHED,
    LOGS,
    LOOK_WORDS,
    LOOKS,
    LOWEST,
    MOST,
    MOST_RUNS,
    NORMAL,
    NOT_KNOWN,
    PASS_EVERY,
    PASS_TOKENS,
    PASS_UNITS,
    PASSES,
    PRICE,
    PRICE_NOW,
    PROXIED,
    REASONS,
    REFUSED,
    SHIFT,
    TOKENS,
    TOO_OLD_PRICE,
    UNKNOWN,
    WOULD_GO,
    bits_of,
    grant,
    left,
    log_score,
    mark_at,
    note,
    note_run_lost,
    refuse,
)
from acep_approx.kernels.runs.weighing import (
    cover_of,
    find_latest,
    forget_kept,
    needed_score,
    note_agreed,
    note_kept,
    score_of,
)


@inline
def bin_of(shedding: Arena, score: float) -> int:
    """The bin of a score."""
    if score <= 0.0:
        return 0
    return int(min(max((bits_of(shedding, score) >> SHIFT) - LOWEST, 0), BINS - 1))


@inline
def least_of(shedding: Arena, place: int) -> float:
    """The least score of a bin; of the first one, or of none, 0."""
    if place <= 0:
        return 0.0
    shedding.words[BITS] = (place + LOWEST) << SHIFT
    return float(shedding.floats[BITS])


@called
def weigh(program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, threshold: int) -> None:
    """Note the bin of the score of each run of a pool beside its mark, and count them.

    The youngest are seen first: those behind them are weighed beside those in front that stay, which are in the bin
    ``threshold`` or above. -1: the bound asks; then all may stay, and protected runs are in the highest bin. Those too
    old are in none (0 beside the mark; the others begin at 1).
    """
    shed, words, p = shedding.words, pools.words, pool * POOL
    base, runs = pools.table[p + BASE], pools.table[p + RUNS]
    needed, marks = needed_score(shed, least_of(shedding, threshold)), mark_at(pools.table, p, 0)
    forget_kept(shed, pool)
    for back in range(runs - pools.table[p + HEAD]):
        run = runs - 1 - back
        where = marks + run
        start, mark = words[base + run], words[where]
        if start < event.low:
            continue
        score, _, group = score_of(program, pools, shedding, event, pool, run, 0, needed)
        place = BINS - 1 if threshold < 0 and mark != NORMAL else bin_of(shedding, score)
        shed[shed[HISTOGRAM] + place] += 1
        words[where] = mark | (place + 1) << 2
        if mark != WOULD_GO and place >= threshold:
            note_kept(shed, pool, group, start)
            if shed[JOINS] > 0:
                note_agreed(pools, shed, pool, run, event.key, start)


@called
def cut(control: Ints, pools: Pools, shedding: Arena, event: Event, pool: int, below: Cut) -> int:
    """Shed the runs of a pool that are ``below`` a threshold; too old ones go as well.

    Returns how many of those spared are left. Without a bound (TOO_OLD_PRICE) protected runs are only marked.
    """
    table, words, log, p = pools.table, pools.words, shedding.log, pool * POOL
    base, runs, head, marks = table[p + BASE], table[p + RUNS], table[p + HEAD], mark_at(table, p, 0)
    kept, visible, oldest, spare, children = 0, 0, -NEVER, below.spare, table[p + CHILDREN]
    for run in range(head, runs):
        where = marks + run
        start, word = words[base + run], words[where]
        if start < event.low:
            continue
        mark, place = word & 3, (word >> 2) - 1
        words[where] = mark
        goes = place < below.threshold
        if place == below.threshold and below.reason != TOO_OLD_PRICE:
            goes = spare <= 0
            spare -= 1
        if goes and mark != NORMAL and below.reason == TOO_OLD_PRICE:
            words[where] = WOULD_GO
            goes = False
        if goes:
            entry = refuse(control, pools, shedding, event, pool, run, below.reason)
            if entry >= 0:
                log[entry + LOG_SCORE] = (place + LOWEST) << SHIFT
                log[entry + LOG_PRICE] = (below.threshold + LOWEST) << SHIFT
                log[entry + LOG_COVERED] = NOT_KNOWN
            continue
        oldest = min(oldest, start)
        copy_run(pools, p, kept, run)
        kept += 1
        visible += run < children
    control[at.LIVE] -= table[p + COUNTED] - kept
    leave(table, p, kept, visible, oldest)
    table[p + TESTED] = 0
    if kept < runs:
        index_runs(pools, p)
    return int(spare)


@called
def pass_over(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int) -> None:
    """Shed the runs of a pool that are no longer worth the price."""
    pay(shedding, pools.table[pool * POOL + RUNS])
    threshold = bin_of(shedding, shedding.floats[PRICE_NOW])
    weigh(program, pools, shedding, event, pool, threshold)
    cut(control, pools, shedding, event, pool, Cut(threshold, 0, TOO_OLD_PRICE))


@inline
def empty_histogram(shed: Ints) -> None:
    """No run is counted in any bin."""
    for i in range(BINS):
        shed[shed[HISTOGRAM] + i] = 0


@inline
def pay(shedding: Arena, runs: int) -> None:
    """Charge a pass to the budget, and empty the histogram for it."""
    shedding.floats[PASS_TOKENS] -= PASS_UNITS * runs
    shedding.floats[PASSES] += PASS_UNITS * runs
    empty_histogram(shedding.words)


@inline
def threshold_for(shed: Ints, spare: int) -> tuple[int, int]:
    """The bin of which only some of ``spare`` runs can stay, and how many (-1: all runs can)."""
    threshold = BINS
    while threshold > 0 and shed[shed[HISTOGRAM] + threshold - 1] <= spare:
        spare -= shed[shed[HISTOGRAM] + threshold - 1]
        threshold -= 1
    return threshold - 1, spare


@called
def make_fit(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, needed: int) -> None:
    """Shed runs until the tests of an event fit into what may be done."""
    tables, table, worth = program.tables, pools.table, shedding.floats
    classes = program.shape[at.CLASS_FIRST] + event.kind
    first, last = tables[classes], tables[classes + 1]
    is_affordable = PASS_UNITS * needed <= worth[PASS_TOKENS]
    spare, threshold = int(left(worth)), BINS
    if is_affordable:
        pay(shedding, needed)
        for s in range(first, last):
            where = program.shape[at.SOURCES] + at.SOURCE_WORDS * s
            if tables[where + at.SOURCE_POOL] > 0 and tables[where + at.SOURCE_PROBE] < 0:
                weigh(program, pools, shedding, event, tables[where + at.SOURCE_POOL], -1)
        threshold, spare = threshold_for(shedding.words, spare)
    for s in range(first, last):
        where = program.shape[at.SOURCES] + at.SOURCE_WORDS * s
        pool = tables[where + at.SOURCE_POOL]
        if pool == 0 or tables[where + at.SOURCE_PROBE] >= 0:
            continue
        if not is_affordable:  # the youngest stay, by equal parts of each pool
            p = pool * POOL
            mine = (table[p + RUNS] - table[p + HEAD]) * int(left(worth)) // needed
            leave_youngest(control, pools, shedding, event, pool, mine)
            index_runs(pools, p)
            continue
        spare = cut(control, pools, shedding, event, pool, Cut(threshold, spare, BOUND))


@inline
def leave_youngest(control: Ints, pools: Pools, shedding: Arena, event: Event, pool: int, most: int) -> None:
    """Shed all but the ``most`` last runs of a pool, without a look at each: there is nothing left to look with."""
    table, p = pools.table, pool * POOL
    base, runs = table[p + BASE], table[p + RUNS]
    if runs - table[p + HEAD] <= most:
        return
    for run in range(table[p + HEAD], runs - most):
        if pools.words[base + run] >= event.low:  # the others are over, or were counted when they were dominated
            refuse(control, pools, shedding, event, pool, run, BOUND)
    oldest = -NEVER
    for run in range(most):
        copy_run(pools, p, run, runs - most + run)
        oldest = min(oldest, pools.words[base + run])
    control[at.LIVE] -= table[p + COUNTED] - most
    leave(table, p, most, max(table[p + CHILDREN] - (runs - most), 0), oldest)


@called
def make_fewer(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event) -> None:
    """Shed the runs of the lowest scores until a quarter of the places is free: then births need not be refused."""
    shed, last, here = shedding.words, program.shape[at.POOLS] - 1, 0
    empty_histogram(shed)
    for back in range(last):  # those furthest on first: they cover the others
        here += pools.table[(last - back) * POOL + COUNTED]
        weigh(program, pools, shedding, event, last - back, -1)
    shedding.floats[PASSES] += PASS_UNITS * here
    threshold, spare = threshold_for(shed, max(3 * shed[MOST_RUNS] // 4 - (control[at.LIVE] - here), 0))
    for back in range(last):
        if pools.table[(last - back) * POOL + RUNS] > 0:
            spare = cut(control, pools, shedding, event, last - back, Cut(threshold, spare, MOST))


@inline
def make_room(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event) -> None:
    """Before an event: grant its run-steps, weigh pools that are due, and see to it that its tests fit.

    For an event that is run once more nothing is granted, and its runs meet the price that those of the first time met.
    """
    tables, table, shed, worth = program.tables, pools.table, shedding.words, shedding.floats
    if shed[AGAIN]:
        worth[PRICE_NOW] = shedding.prices[event.number]
    else:
        grant(control, shedding, event)
        shedding.prices[event.number] = worth[PRICE_NOW]
    if worth[PRICE] <= 0.0 and shed[MOST_RUNS] < 0:
        return
    if shed[UNKNOWN]:
        find_latest(program, pools, shedding, event)
    if shed[MOST_RUNS] >= 0 and control[at.LIVE] >= shed[MOST_RUNS]:
        make_fewer(control, program, pools, shedding, event)
    needed, classes = 0, program.shape[at.CLASS_FIRST] + event.kind
    for s in range(tables[classes], tables[classes + 1]):
        where = program.shape[at.SOURCES] + at.SOURCE_WORDS * s
        p = tables[where + at.SOURCE_POOL] * POOL
        if p > 0 and table[p + RUNS] > 0:
            is_due = worth[PRICE_NOW] > 0.0 and table[p + TESTED] >= PASS_EVERY * table[p + RUNS]
            if is_due and PASS_UNITS * table[p + RUNS] <= worth[PASS_TOKENS]:
                pass_over(control, program, pools, shedding, event, tables[where + at.SOURCE_POOL])
            if tables[where + at.SOURCE_PROBE] < 0:
                needed += table[p + RUNS] - table[p + HEAD]
    if needed > left(worth):
        make_fit(control, program, pools, shedding, event, needed)


PAYS, MOST_WAITS = 32, 63
"""Of so many runs that are looked at one should go: else the pool is passed over more often between two looks, in the
end so many times. A look is a run-step and takes as long as two or three; a run that goes saves some dozens."""
PER_LOOK, ENOUGH = 16, 4096
"""Runs that are gone through in the time of a look; and after how many it is decided that looks do not pay. That they
do is seen at once."""


@inline
def is_due(shed: Ints, pool: int) -> bool:
    """Whether the runs of a pool are looked at now that children may stand for them."""
    wait = shed[LOOKS] + LOOK_WORDS * pool
    shed[wait] -= 1
    return bool(shed[wait] < 0)


@inline
def note_looks(shed: Ints, pool: int, runs: int, looks: int, gone: int) -> None:
    """Note how many runs of a pool were gone through, looked at and shed, and how long it is passed over now."""
    at = shed[LOOKS] + LOOK_WORDS * pool
    shed[at + 2] += runs + PER_LOOK * looks
    shed[at + 3] += gone
    pays = PAYS * PER_LOOK * shed[at + 3] >= shed[at + 2]
    if pays or shed[at + 2] >= ENOUGH:
        shed[at + 1] = shed[at + 1] // 4 if pays else min(2 * shed[at + 1] + 1, MOST_WAITS)
    if shed[at + 2] >= ENOUGH:
        shed[at + 2] = 0
        shed[at + 3] = 0
    shed[at] = shed[at + 1]


@called
def let_proxies_stand(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int) -> None:
    """Shed the runs of a pool for which the children of this event stand, where the rest is not worth the price.

    Looking at a run is a run-step of the budget: it has just been tested, and most often has made that child.
    """
    shed, worth, table, words, p = shedding.words, shedding.floats, pools.table, pools.words, pool * POOL
    runs, kept, latest = table[p + RUNS], table[p + HEAD], min(cover_of(shed, pool, 1), shed[ADMITTED])
    base, room, children = table[p + BASE], table[p + ROOM], table[p + CHILDREN]
    marks, needed, visible, looks = mark_at(table, p, 0), needed_score(shed, worth[PRICE_NOW]), kept, 0
    for run in range(kept, runs):
        start, where, goes = words[base + run], marks + run, False
        is_covered = event.low <= start <= latest
        if is_covered and words[where + room] < event.now and words[where] != WOULD_GO:
            looks += 1
            score, covered, _ = score_of(program, pools, shedding, event, pool, run, 1, needed)
            goes = score < worth[PRICE_NOW]
            if goes and words[where] != NORMAL:
                words[where] = WOULD_GO
                goes = False
            if goes and shed[LOGS] & LOG_SHED:
                entry = note(control, pools, shedding, event, pool, run, PROXIED)
                log_score(shedding, entry, score, worth[PRICE_NOW], covered)
        if goes:
            note_run_lost(pools, shedding, event, pool, run, AT_LAST)
        else:
            copy_run(pools, p, kept, run)
            kept += 1
            visible += run < children
    worth[TOKENS] -= looks
    worth[PASSES] += looks
    note_looks(shed, pool, runs - table[p + HEAD], looks, runs - kept)
    if kept < runs:
        gone = runs - kept
        shed[shed[COUNTS] + pool * REASONS + PROXIED] += gone
        control[at.SHED] += gone
        shed[REFUSED] = event.now
        control[at.LIVE] -= gone
        table[p + COUNTED] -= gone
        table[p + RUNS] = kept
        table[p + CHILDREN] = visible
        index_runs(pools, p)


@inline
def end_shedding(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event) -> None:
    """After an event: where children were admitted, see for whom they stand."""
    tables, shed = program.tables, shedding.words
    if shed[ADMITTED] > NEVER and shedding.floats[PRICE_NOW] > 0.0:
        classes = program.shape[at.CLASS_FIRST] + event.kind
        for s in range(tables[classes], tables[classes + 1]):
            pool = tables[program.shape[at.SOURCES] + at.SOURCE_WORDS * s + at.SOURCE_POOL]
            runs = pools.table[pool * POOL + RUNS] - pools.table[pool * POOL + HEAD]
            if pool > 0 and 0 < runs <= left(shedding.floats) and is_due(shed, pool):
                let_proxies_stand(control, program, pools, shedding, event, pool)
    shed[ADMITTED] = NEVER


@inline
def log_room(program: Program, pools: Pools, shed: Ints) -> int:
    """Words that passes before an event may add to the log, at most."""
    if shed[LOGS] == 0:
        return 0
    runs = 0
    for pool in range(1, program.shape[at.POOLS]):
        runs += pools.table[pool * POOL + RUNS]
    return int(2 * runs * shed[ENTRY])
