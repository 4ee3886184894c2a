"""Shedding: which runs a load budget lets live; worked in beside the steps of the runs engine.

A run's *score* is what it may still lead to, by its run-steps to come; both are looked up by its vertex (place, group,
remaining window, time since its last event). What a younger run of the same place, or of one further on, reaches as
well is no gain. Runs whose score is below the *price* are shed, at birth and in passes over pools that have been tested
for a while; the price rises as the budget runs short. Before an event whose tests the budget does not cover, the runs
of the lowest scores go until it does: so the bound holds at every event.

Source: ranking by a learned history is Li and Ge, PVLDB 2016, section 3; scores, price and passes are
ours, see ``docs/how-it-works/paper.md``.
"""

from __future__ import annotations

import math

from acep_approx.arrays import Floats, Ints
from acep_approx.jit.marks import called, inline
from acep_approx.kernels.arithmetic import divided
from acep_approx.kernels.runs.layout import LIVE, LOGGED, SHED
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    COLUMNS,
    NEVER,
    POOL,
    ROOM,
    TESTED,
    hash_word,
)
from acep_approx.kernels.runs.records import Arena, Event, Pools, RunBlock
from acep_approx.kernels.runs.vm import NULL

# words of the arena: how much may be done
(
    TOKENS,
    RATE,
    MOST_TOKENS,
    PRICE,
    FACTOR,
    PRICE_NOW,
    SPREAD,
    GRANTED,
    PASSES,
    PASS_TOKENS,
    AUDIT_TOKENS,
    AUDIT_SHARE,
    RESERVE,
    RESERVE_SHARE,
    PACE_NOW,
    CONTEXT_NOW,
    DOMINATED_SHARE,
    ELASTICITY,
    MOST_PRICE,
    WEIGHT_NOW,
    BIRTH_TOKENS,
    ADAPTS,
    KEEPS_ALL,
    MOST_RUNS,
    AUDIT,
    EPOCH,
    COIN,
    LOGS,
    REMAINING,
    SINCE,
    PLACES,
    GAINS,
    COSTS,
    OVERLAPS,
    NEWEST,
    COVERS,
    COVERING,
    BY_GROUP,
    LATEST,
    COVERS_OF_GROUP,
    COVERED_BY,
    SHARE_COVERED,
    MORE_COVERED,
    UNKNOWN,
    STAMP,
    WORTH,
    REFUSED,
    BEGUN,
    COUNTS,
    UNTESTED,
    BROKEN,
    HISTOGRAM,
    BITS,
    ENTRY,
    SEED,
    EVENT_WORDS,
    EVENT_AT,
    ADMITTED,
    SAMPLE,
    SAMPLE_NOW,
    SAMPLE_COIN,
    SAMPLE_SHARES,
    SAMPLED,
    SAMPLE_ENTRY,
    SAMPLE_REGISTERS,
    TREES,
    FLAG,
    AGAIN,
    LOOKS,
    BORN_IN,
    BORN_FROM,
    POOLS_NOTED,
    LOST_KINDS,
    PAIRS,
    CONTEXT_DUE,
    JOINS,
    AGREED,
    EDGE,
) = range(78)
"""The first twenty-three are floating point.

``RATE``: run-steps granted per event; ``TOKENS``: what is left of them for tests, ``PASS_TOKENS`` for passes,
``AUDIT_TOKENS`` for runs that are only followed to estimate recall (below 0: lent by the others, so that the price
does not rise while there is an audit); ``PASSES``: those spent on passes; ``RESERVE``: below 0: the price stays as it
is; ``DOMINATED_SHARE``: what is left of the score of a run that another of its pool dominates; ``ELASTICITY``: by
which power of what is left the price changes; ``MOST_PRICE``: no run is worth more; ``WEIGHT_NOW``: what a match point
of the current key counts for; ``BIRTH_TOKENS``: what may be spent on births that are run-steps; ``ADAPTS``: how much
of the way the price goes per event; ``KEEPS_ALL``: a price below which all is kept; ``MOST_RUNS``: -1 for none;
``AUDIT``: which coins, of 2**31, are protected; the parts of the arena by where they begin; ``BY_GROUP``: whether
groups cover each other: then ``LATEST`` has the latest start of a kept run of each, unless that is ``UNKNOWN``, and
``COVERS_OF_GROUP`` says where the covers of each begin; ``STAMP``: of the features by which groups are told apart;
``WORTH``: how often runs were scored anew; ``REFUSED``: tick at which a run was shed last; ``BEGUN``: tick of the
first event; ``UNTESTED``: tests left out; ``BROKEN``: protected runs shed for the bound; ``SAMPLE``: at which events,
by coins of 2**31, tests are written down, and ``SAMPLE_SHARES`` per pool at which those that bring a run there;
``SAMPLED``: words written so far; ``TREES``: those of the context, 0: none, and ``CONTEXT_NOW``: what they say of the
current event; ``FLAG``: which column behind the mark says whether a run is dominated, -1: none; ``AGAIN``: whether
events are run once more, each at the price that is given with it; ``LOOKS``: of each pool, see ``LOOK_WORDS``;
``BORN_IN`` and ``BORN_FROM``: the pool of the run that the current event began as a run-step, -1: none, and the first
place that it may have there; ``POOLS_NOTED``: how many pools there are; ``LOST_KINDS``: per pool and register whether
it holds numbers, see ``note_run_lost``; ``PAIRS``: whether events come as pairs of an event and a query;
``CONTEXT_DUE``: the tick of the current event until somebody asks what the trees say of it, then ``NEVER``; ``JOINS``:
of each pair of pools in which registers runs must agree that one covers the other, see ``JOIN_WORDS``, 0: in none;
``AGREED``: per pool, and by a hash of these registers, the latest start of a kept run."""
JOIN_WORDS = 8
"""Of a run and what covers it, by their pools: how many registers they must agree in (-1: it cannot cover), and where
the run has these."""
AGREED_ROOM = 1 << 12
LOOK_WORDS = 4
"""Of a pool: how many more times children stand for nobody there, how many times between two looks; runs that were gone
through of late, those looked at with more weight; and how many of them went."""
MOST_EDGES = 8
SHED_HEADER = EDGE + MOST_EDGES
TOTALS = (TOKENS, PASS_TOKENS, AUDIT_TOKENS, FACTOR, GRANTED, PASSES)

PLACE_WORDS, FEATURE_WORDS, MOST_FEATURES = 2, 5, 2
PLACE = PLACE_WORDS + FEATURE_WORDS * MOST_FEATURES
"""Words of a place: first group, features; per feature: kind, column, buckets, where its edges (in the
arena) or its table (in ``lookup``) begin, their number."""
WHOLE, REAL, TABLE, KEY, PACE, CONTEXT = range(6)
AHEAD, LESS, PLUS = 8, 12, 16
"""Kinds of features: a number, a floating point number, a text, the key; the pace of the key: how many of its events
came of late; what trees make of the context of the current event; by how much a number is above that of the event at
hand (columns: 2**16 * that of the event + that of the run); the difference and the sum of two numbers of the run (2**16
* the second + the first). The last three are higher by ``FIRST_REAL`` where the first number is a floating point
number, by ``SECOND_REAL`` where the second is."""
FIRST_REAL, SECOND_REAL = 1, 2
TREES_HEADER, NODE = 2, 4
"""Words of the trees: their number, ticks of a day, where each begins; then the nodes: what is looked at (below 0: a
leaf), the number that it is compared with or the leaf's, the nodes to the left and to the right."""
OF_TICK, OF_PACE, OF_COLUMNS = range(3)
"""What nodes look at: time of day, pace of the key, columns of the event: twice the column, 1 more for floats."""
NO_NUMBER = -1e300
"""What stands for NULL; as in ``history.trees``."""

LOW_PRICE, TOO_OLD_PRICE, BOUND, MOST, PROXIED, DOMINATED = range(6)
REASONS = 6
"""Why runs are shed: the score at birth, or later, was below the price; the bound on run-steps, or on runs; a run that
has just been made stands for them, or another of their pool can do all that they can."""
BORN = 6
"""Log entries that are births, not runs shed."""
LOG_BIRTHS, LOG_SHED = 1, 2

NORMAL, AUDITED, WOULD_GO = range(3)
"""Marks: to be shed or kept; protected; protected, and would have been shed."""
BINS = 256
SHIFT, LOWEST = 49, 1015 * 8 - 64
"""A bin is an eighth of an octave of scores; the lowest holds those near 2**-16 and below."""
PASS_UNITS = 2
"""What a pass costs per run, in run-steps (measured: docs/how-it-works/budget.md)."""
PASS_EVERY = 24
"""Run-steps in a pool, per run of it, between two passes."""
ON_PASSES, SAVED_FOR_PASSES = 0.1, 0.01
"""Share of the budget that is for passes, and what may be saved up of it, and of what the audit has."""
MOST_LEFT = 1e18
"""Run-steps that are left count as no more: as a whole number, four times as many fit into 64 bits."""
ADAPT = 1.0 / 1024
"""How much of the way the price goes per event of the stream."""
WAITS = 0.0
"""In the place of what the price has come to: nothing is shed for it until less is left than should be."""
LEAST_RESERVE = 1e-6
"""Run-steps that are held back at least, also where none are granted."""
ON_BIRTHS = 0.5
"""Share of the budget that births take at most which are run-steps: where there are more, it depends on when an event
comes whether it may begin a run, and the price is that of the tests."""
HEADROOM = 16.0
"""The price rises no higher than so many times what the best run is worth."""
IDLE, IDLE_WINDOWS = 0.5, 4
"""Share of the budget that is not used, and windows since the first event, from which on the price falls faster."""
(
    LOG_REASON,
    LOG_POOL,
    LOG_ID,
    LOG_TICK,
    LOG_SLOT,
    LOG_START,
    LOG_LAST,
    LOG_LINK,
    LOG_MARK,
    LOG_SCORE,
    LOG_PRICE,
    LOG_COVERED,
    LOG_PACE,
    LOG_GROUP,
    LOG_WORTH,
    LOG_DOMINATED,
) = range(16)
LOG = 16
"""Words of a log entry before the registers (``ENTRY``: in all): reason, pool, id, tick, slot, start, tick of the last
event, link, mark; score, price, gain that kept runs take, pace of the key (floating point); group; how often runs had
been scored anew; whether another run dominates it. Then the registers, and behind the most registers of any pool the
columns of the event."""
NOT_KNOWN = -1
"""In the place of the gain that kept runs take (as a floating point number it is none): the score is that of a bin."""
GROUP_BITS = 20
"""Of a run's group within its pool; the bits above tell of which features."""


@inline
def window_at(event: Event) -> int:
    """The window of the event's key: queries that are keys, too, have one each."""
    return event.now - event.low


@inline
def mark_at(table: Ints, p: int, run: int) -> int:
    """Where the mark of a run stands; the tick of its last event is a column further, its group another one."""
    return int(table[p + BASE] + (COLUMNS + table[p + ALIKE] - 1) * table[p + ROOM] + run)


@inline
def number_at(pools: Pools, word: int, is_real: int) -> float:
    """A word of the pools as a number, NaN for NULL."""
    if is_real:
        return float(pools.floats[word])
    return math.nan if pools.words[word] == NULL else float(pools.words[word])


@called
def note_context(pools: Pools, shedding: Arena) -> None:
    """What the trees say of the current event: see ``history.trees``, which evaluates the same trees.

    It is asked for where a run is born: most events bring none.
    """
    shed, worth, at, now = shedding.words, shedding.floats, shedding.words[TREES], shedding.words[CONTEXT_DUE]
    nodes, total = at + TREES_HEADER + shed[at], 0.0
    for tree in range(shed[at]):
        node = nodes + NODE * shed[at + TREES_HEADER + tree]
        while shed[node] >= 0:
            value, which = worth[PACE_NOW], shed[node]
            if which == OF_TICK:
                value = 0.0 if shed[at + 1] == 0 else float(now % shed[at + 1]) / float(shed[at + 1])
            elif which >= OF_COLUMNS:
                value = number_at(pools, shed[EVENT_AT] + (which - OF_COLUMNS) // 2, (which - OF_COLUMNS) % 2)
                if value != value:
                    value = NO_NUMBER
            side = 2 if value <= worth[node + 1] else 3
            node = nodes + NODE * shed[node + side]
        total += worth[node + 1]
    worth[CONTEXT_NOW] = total
    shed[CONTEXT_DUE] = NEVER


@inline
def bucket_of(pools: Pools, shedding: Arena, feature: int, word: int, other: int, key: int) -> int:
    """The bucket of a feature; ``word``: where the register stands, if it is one, and what it is held against."""
    shed, worth, lookup, words = shedding.words, shedding.floats, shedding.lookup, pools.words
    kind, first, many = shed[feature], shed[feature + 3], shed[feature + 4]
    bucket = shed[feature + 2] - 1
    if kind == KEY:
        if key < many:
            bucket = lookup[first + key]
    elif kind == TABLE:
        if 0 <= words[word] < many:
            bucket = lookup[first + words[word]]
    else:
        if kind == CONTEXT and shed[CONTEXT_DUE] > NEVER:
            note_context(pools, shedding)
        value = worth[CONTEXT_NOW] if kind == CONTEXT else worth[PACE_NOW]
        if kind != PACE and kind != CONTEXT:
            value = number_at(pools, word, kind == REAL or (kind >= AHEAD and kind & FIRST_REAL != 0))
        if kind >= AHEAD:
            sign = 1.0 if kind >= PLUS else -1.0
            value += sign * number_at(pools, other, kind & SECOND_REAL != 0)
        if value == value:
            bucket = 0
            for i in range(many):
                bucket += value >= worth[first + i]
    return int(bucket)


@inline
def group_of(pools: Pools, shedding: Arena, pool: int, run: int, key: int) -> int:
    """The group of a run: a number made of the buckets of its features."""
    shed, group = shedding.words, 0
    at = shed[PLACES] + pool * PLACE
    base, room = pools.table[pool * POOL + BASE], pools.table[pool * POOL + ROOM]
    for f in range(shed[at + 1]):
        feature = at + PLACE_WORDS + f * FEATURE_WORDS
        word, other = base + (COLUMNS + (shed[feature + 1] & 0xFFFF)) * room + run, shed[feature + 1] >> 16
        if shed[feature] >= LESS:
            other = base + (COLUMNS + other) * room + run
        group = group * shed[feature + 2] + bucket_of(pools, shedding, feature, word, other, key)
    return int(group)


@inline
def first_group(shed: Ints, pool: int) -> int:
    """The first group of a pool; those of all pools are numbered in a row."""
    return int(shed[shed[PLACES] + pool * PLACE])


@inline
def known_group(pools: Pools, shedding: Arena, pool: int, run: int, key: int) -> int:
    """The group of a run among those of all pools: the one that it was born in, whatever the current event is.

    Where features have changed since, it is the one that it would be born in now.
    """
    p, stamp = pool * POOL, shedding.words[STAMP]
    at = mark_at(pools.table, p, run) + 2 * pools.table[p + ROOM]
    if pools.words[at] >> GROUP_BITS != stamp:
        pools.words[at] = stamp << GROUP_BITS | group_of(pools, shedding, pool, run, key)
    return first_group(shedding.words, pool) + int(pools.words[at] & ((1 << GROUP_BITS) - 1))


@inline
def bits_of(shedding: Arena, value: float) -> int:
    """The bits of a floating point number; of those above 0 the greater have greater ones."""
    shedding.floats[BITS] = value
    return int(shedding.words[BITS])


@called
def note(control: Ints, pools: Pools, shedding: Arena, event: Event, pool: int, run: int, reason: int) -> int:
    """Write a log entry of a run, but its score, price and what is covered; returns where it stands."""
    shed, log, table, words, p = shedding.words, shedding.log, pools.table, pools.words, pool * POOL
    base, room, at = table[p + BASE], table[p + ROOM], control[LOGGED]
    mark = mark_at(table, p, run)
    log[at + LOG_REASON] = reason
    log[at + LOG_POOL] = pool
    log[at + LOG_ID] = event.id
    log[at + LOG_TICK] = event.now
    log[at + LOG_SLOT] = event.key
    log[at + LOG_START] = words[base + run]
    log[at + LOG_LAST] = words[mark + room]
    log[at + LOG_LINK] = words[base + room + run]
    log[at + LOG_MARK] = words[mark] & 3
    log[at + LOG_SCORE] = 0
    log[at + LOG_PRICE] = 0
    log[at + LOG_COVERED] = 0
    log[at + LOG_GROUP] = known_group(pools, shedding, pool, run, event.key)
    log[at + LOG_PACE] = shed[PACE_NOW]
    log[at + LOG_WORTH] = shed[WORTH]
    log[at + LOG_DOMINATED] = words[mark + (1 + shed[FLAG]) * room] if shed[FLAG] >= 0 else 0
    for f in range(table[p + ALIKE] - 1):
        log[at + LOG + f] = words[base + (COLUMNS + f) * room + run]
    for c in range(shed[EVENT_WORDS]):
        log[at + shed[ENTRY] - shed[EVENT_WORDS] + c] = words[shed[EVENT_AT] + c]
    control[LOGGED] = at + shed[ENTRY]
    return int(at)


@inline
def left(worth: Floats) -> float:
    """Run-steps that may be spent on tests now."""
    return float(min(max(worth[TOKENS] + min(worth[AUDIT_TOKENS], 0.0), 0.0), MOST_LEFT))


@inline
def left_for_births(shedding: Arena) -> float:
    """Run-steps that may be spent on births now, where these are run-steps."""
    worth = shedding.floats
    if shedding.words[MOST_RUNS] < 0 and worth[PRICE] > 0.0 and worth[RESERVE] >= 0.0:
        return float(min(left(worth), max(worth[BIRTH_TOKENS], 0.0)))
    return left(worth)


@inline
def charge(pools: Pools, shedding: Arena, block: RunBlock) -> None:
    """Take the tests of a block from what may be done; those of runs that only the audit keeps from its own share."""
    worth, p, audited = shedding.floats, block.pool * POOL, 0
    if shedding.words[AUDIT] > 0:
        marks = block.registers + (pools.table[p + ALIKE] - 1) * block.room
        for j in range(block.n):
            audited += pools.words[marks + j] == WOULD_GO
    worth[AUDIT_TOKENS] -= audited
    worth[TOKENS] -= block.n - audited
    pools.table[p + TESTED] += block.n


@inline
def pull_of(shedding: Arena, event: Event, ratio: float) -> float:
    """How fast the price follows what is left.

    A lower price keeps no more where nothing was shed for a window. Where most of the budget is not used, windows
    after the first event, the load is another one than that of the past, and so is how the price follows the work.
    """
    shed, worth = shedding.words, shedding.floats
    if shed[BEGUN] == NEVER:
        shed[BEGUN] = event.now
    if ratio < 1.0 and event.now - shed[REFUSED] > window_at(event):
        return 0.0
    idle = divided(worth[TOKENS], min(worth[MOST_TOKENS], worth[GRANTED]))
    if idle > IDLE and event.now - shed[BEGUN] > IDLE_WINDOWS * window_at(event):
        return float(max(worth[ELASTICITY], idle))
    return float(worth[ELASTICITY])


@inline
def give_back(worth: Floats, word: int) -> None:
    """Let tests have what is saved up for passes, or for the audit, beyond what may be."""
    spare = worth[word] - SAVED_FOR_PASSES * worth[GRANTED]
    if spare > 0.0:
        spare = min(spare, worth[MOST_TOKENS] - worth[TOKENS])
        worth[word] -= spare
        worth[TOKENS] += spare


@inline
def let_spend(worth: Floats, steps: float) -> None:
    """So many more run-steps may be done."""
    worth[TOKENS] = min(worth[TOKENS] + (1.0 - ON_PASSES - worth[AUDIT_SHARE]) * steps, worth[MOST_TOKENS])
    worth[PASS_TOKENS] += ON_PASSES * steps
    worth[AUDIT_TOKENS] += worth[AUDIT_SHARE] * steps
    worth[GRANTED] += steps


@inline
def grant(control: Ints, shedding: Arena, event: Event) -> None:
    """A further event: more may be done, also for those of no interest before it; the price follows what is left."""
    shed, worth = shedding.words, shedding.floats
    room, steps = worth[TOKENS], worth[RATE] * shedding.stands_for[event.number]
    let_spend(worth, steps)
    give_back(worth, PASS_TOKENS)  # few passes were needed
    give_back(worth, AUDIT_TOKENS)  # few runs would have been shed
    most = min(worth[MOST_TOKENS], worth[GRANTED]) / 4.0  # at first there is little that could be held back
    reserve = min(max(worth[RESERVE], worth[RESERVE_SHARE] * worth[GRANTED]), most)
    if shed[MOST_RUNS] >= 0:
        room = float(shed[MOST_RUNS] - control[LIVE])
        reserve = shed[MOST_RUNS] / 8.0
    elif worth[RESERVE] < 0.0:
        worth[PRICE_NOW] = worth[PRICE]
        return
    else:  # what is lent to the audit counts when it is more than half of what is held back
        room += min(worth[AUDIT_TOKENS] + reserve / 2.0, 0.0)
    reserve = max(reserve, LEAST_RESERVE)
    worth[BIRTH_TOKENS] = min(worth[BIRTH_TOKENS] + ON_BIRTHS * steps, max(reserve, 1.0))
    ratio = reserve / (max(room, 0.0) + reserve / 16.0)
    if worth[FACTOR] == WAITS:
        is_short = ratio > 1.0 and worth[GRANTED] > steps  # nothing can be left before the first event
        worth[FACTOR] = 1.0 if is_short else 0.0
    elif worth[PRICE] > 0.0:  # beyond what any run is worth it would take long to come back
        pull = worth[ADAPTS] * pull_of(shedding, event, ratio)
        factor = worth[FACTOR] * (1.0 + pull * min(max(ratio - 1.0, -1.0), 1.0))
        most = HEADROOM * worth[MOST_PRICE] / worth[PRICE]
        worth[FACTOR] = factor if factor < most else most  # also where it is no number
    price = worth[PRICE] * worth[FACTOR] * ratio ** worth[ELASTICITY]
    worth[PRICE_NOW] = price if price > worth[KEEPS_ALL] else 0.0  # also what the past says leads to nothing


@inline
def note_weight(shedding: Arena, event: Event) -> None:
    """What a match point of the event's key counts for: keys have a weight each, or all have one."""
    weights = shedding.weights
    shedding.floats[WEIGHT_NOW] = weights[min(event.key, len(weights) - 1)]


@inline
def pace_with(pace: Floats, key: int, now: int, window: int) -> float:
    """The pace of a key after one more event: what came a window ago counts for a third, two ago for a ninth."""
    value, at = 1.0, 2 * key
    if pace[at + 1] > 0.0:
        value += pace[at + 1] * math.exp(-max(float(now) - pace[at], 0.0) / (float(window) + 1.0))
    pace[at] = float(now)
    pace[at + 1] = value
    return value


@inline
def note_pace(shedding: Arena, event: Event) -> None:
    """One more event of a key comes, which the engine gets."""
    shedding.floats[PACE_NOW] = pace_with(shedding.pace, event.key, event.now, window_at(event))


@inline
def mark_of_event(shedding: Arena, event: Event) -> int:
    """Whether runs that begin here are protected: a match point of theirs can lie in a chosen cell of key and epoch.

    ``budget.audit.Cohort`` chooses the same cells.
    """
    shed, key = shedding.words, event.key
    if shed[AUDIT] == 0:
        return NORMAL
    h = hash_word(shed[SEED], key)
    first = hash_word(hash_word(h, event.now // shed[EPOCH]), key)
    last = hash_word(hash_word(h, (event.now + window_at(event)) // shed[EPOCH]), key)
    return AUDITED if min(first, last) < shed[AUDIT] else NORMAL


AT_FIRST, AT_LAST = range(2)
"""When a run is lost at an event: before its tests, or behind them."""


@inline
def note_lost(shedding: Arena, event: Event, start: int) -> None:
    """What runs of this start, or of an earlier one, would have led to at an event is lost."""
    at = event.number * (1 + 2 * shedding.words[POOLS_NOTED])
    if at < len(shedding.lost):
        shedding.lost[at] = max(shedding.lost[at], start)


@inline
def note_run_lost(pools: Pools, shedding: Arena, event: Event, pool: int, run: int, when: int) -> None:
    """A run is lost: note its start, and its registers that hold numbers, as the least and the greatest of the pool."""
    shed, words, table, p = shedding.words, pools.words, pools.table, pool * POOL
    many, registers = shed[POOLS_NOTED], shed[SAMPLE_REGISTERS]
    if event.number * (1 + 2 * many) >= len(shedding.lost):
        return
    at = event.number * (1 + 2 * many) + 1 + when * many + pool
    shedding.lost[at] = max(shedding.lost[at], words[table[p + BASE] + run])
    to, kinds = ((event.number * 2 + when) * many + pool) * 2 * registers, shed[LOST_KINDS] + pool * registers
    for f in range(registers):
        if shed[kinds + f] > 0:
            value = number_at(pools, table[p + BASE] + (COLUMNS + f) * table[p + ROOM] + run, shed[kinds + f] - 1)
            if value == value:  # what is compared with NULL does not hold
                shedding.lost_bounds[to + 2 * f] = min(shedding.lost_bounds[to + 2 * f], value)
                shedding.lost_bounds[to + 2 * f + 1] = max(shedding.lost_bounds[to + 2 * f + 1], value)


@inline
def refuse(control: Ints, pools: Pools, shedding: Arena, event: Event, pool: int, run: int, reason: int) -> int:
    """Count a run as shed; returns where it is logged, -1 if it is not.

    Those that are born below the price, or are dominated, go behind the tests of the event, others before them.
    """
    shed = shedding.words
    shed[shed[COUNTS] + pool * REASONS + reason] += 1
    control[SHED] += 1
    shed[REFUSED] = event.now
    shed[BROKEN] += pools.words[mark_at(pools.table, pool * POOL, run)] & 3 != NORMAL
    is_behind = reason == LOW_PRICE or reason == DOMINATED
    note_run_lost(pools, shedding, event, pool, run, AT_LAST if is_behind else AT_FIRST)
    if shed[LOGS] & LOG_SHED:
        return note(control, pools, shedding, event, pool, run, reason)
    return -1


@inline
def log_score(shedding: Arena, entry: int, score: float, price: float, covered: float) -> None:
    """Add to a log entry what decided."""
    shedding.log[entry + LOG_SCORE] = bits_of(shedding, score)
    shedding.log[entry + LOG_PRICE] = bits_of(shedding, price)
    shedding.log[entry + LOG_COVERED] = bits_of(shedding, covered)
