"""Shedding: which runs a load budget lets live; worked in beside the steps of the runs engine.

A run's *score* is what it may still lead to, by its run-steps to come; both are looked up by its vertex (place, group,
remaining window, time since its last event). What a younger run of the same place, or of one further on, reaches as
well is no gain. Runs whose score is below the *price* are shed, at birth and in passes over pools that have been tested
for a while; the price rises as the budget runs short. Before an event whose tests the budget does not cover, the runs
of the lowest scores go until it does: so the bound holds at every event.

Source: ranking by a learned history is Li and Ge, PVLDB 2016, section 3; their online algorithm is not at hand, so
scores, price and passes are ours.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import inline, ix
from acep_approx.kernels.runs.layout import (
    LINK,
    LIVE,
    LOGGED,
    POOLS,
    SHED,
    WINDOW,
)
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    COLUMNS,
    FIELDS,
    NEVER,
    POOL,
    ROOM,
    RUNS,
    TESTED,
    hash_word,
)
from acep_approx.kernels.runs.vm import NULL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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
    COUNTS,
    PATHS,
    PATHS_SIZE,
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
    EDGE,
) = range(49)
"""The first fifteen are floating point. ``RATE``: run-steps granted per event; ``TOKENS``: what is left of them for
tests, ``PASS_TOKENS`` for passes, ``AUDIT_TOKENS`` for runs that are only followed to estimate recall (below 0: lent by
the others, so that the price does not rise while there is an audit); ``PASSES``: those spent on passes; ``RESERVE``:
below 0: the price stays as it is; ``MOST_RUNS``: -1 for none; ``AUDIT``: which coins, of 2**31, are protected; the
parts of the arena by where they begin; ``UNTESTED``: tests left out; ``BROKEN``: protected runs shed for the bound;
``SAMPLE``: at which events, by coins of 2**31, tests are written down, and ``SAMPLE_SHARES`` per pool at which those
that bring a run there; ``SAMPLED``: words written so far."""
MOST_EDGES = 8
SHED_HEADER = EDGE + MOST_EDGES
TOTALS = (TOKENS, PASS_TOKENS, AUDIT_TOKENS, FACTOR, GRANTED, PASSES)

PLACE_WORDS, FEATURE_WORDS, MOST_FEATURES = 2, 5, 2
PLACE = PLACE_WORDS + FEATURE_WORDS * MOST_FEATURES
"""Words of a place: first vertex, features; per feature: kind, column, buckets, where its edges (in the
arena) or its table (in ``lookup``) begin, their number."""
WHOLE, REAL, TABLE, KEY, PACE, AHEAD_WHOLE, AHEAD_REAL = range(7)
"""Kinds of features: a number, a floating point number, a text, the key; the pace of the key: how many of its events
came of late; and by how much a number is above that of the event at hand (columns: 2**16 * that of the event + that of
the run)."""

LOW_PRICE, TOO_OLD_PRICE, BOUND, MOST, PROXIED = range(5)
REASONS = 5
"""Why runs are shed: the score at birth, or later, was below the price; the bound on run-steps, or on runs; a run that
has just been made stands for them."""
BORN = 5
"""Log entries that are births, not runs shed."""
LOG_BIRTHS, LOG_SHED = 1, 2

NORMAL, AUDITED, WOULD_GO = range(3)
"""Marks: to be shed or kept; protected; protected, and would have been shed."""
BINS = 256
SHIFT, LOWEST = 49, 1015 * 8 - 64
"""A bin is an eighth of an octave of scores; the lowest holds those near 2**-16 and below."""
PASS_UNITS = 2
"""What a pass costs per run, in run-steps (measured: docs/budget.md)."""
PASS_EVERY = 24
"""Run-steps in a pool, per run of it, between two passes."""
ON_PASSES, SAVED_FOR_PASSES = 0.1, 0.01
"""Share of the budget that is for passes, and what may be saved up of it."""
ADAPT = 1.0 / 1024
"""How much of the way the price goes per event."""
LOG = 13
"""Words of a log entry before the registers (``ENTRY``: in all): reason, pool, row, tick, slot, start, tick of the last
event, link, mark, score and price (floating point), start of the run that covers it, pace of the key (floating point);
then the registers, and behind the most registers of any pool the columns of the event."""


@inline
def group_of(
    at: int, pools: Ints, p: int, words: Ints, floats: Floats, shed: Ints, worth: Floats, lookup: Ints, run: int,
    key: int,
) -> int:  # fmt: skip
    """The group of a run: a number made of the buckets of its features."""
    group = 0
    base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
    for f in range(shed[ix(at + 1)]):
        feature = at + PLACE_WORDS + f * FEATURE_WORDS
        kind, buckets, first = shed[ix(feature)], shed[ix(feature + 2)], shed[ix(feature + 3)]
        many, column = shed[ix(feature + 4)], shed[ix(feature + 1)]
        word = base + (COLUMNS + (column & 0xFFFF)) * room + run
        bucket = buckets - 1
        if kind == KEY:
            if key < many:
                bucket = lookup[ix(first + key)]
        elif kind == TABLE:
            if 0 <= words[ix(word)] < many:
                bucket = lookup[ix(first + words[ix(word)])]
        else:
            value, is_known = worth[PACE_NOW], True
            if kind == REAL:
                value = floats[ix(word)]
            elif kind == WHOLE:
                value, is_known = float(words[ix(word)]), words[ix(word)] != NULL
            elif kind == AHEAD_REAL:
                value = floats[ix(word)] - floats[ix(column >> 16)]
            elif kind == AHEAD_WHOLE:
                value = float(words[ix(word)]) - float(words[ix(column >> 16)])
                is_known = words[ix(word)] != NULL and words[ix(column >> 16)] != NULL
            if value == value and is_known:
                bucket = 0
                for i in range(many):
                    bucket += value >= worth[ix(first + i)]
        group = group * buckets + bucket
    return int(group)


@inline
def slice_of(shed: Ints, window: int, left: int) -> int:
    """Bucket of a remaining window."""
    return int(max(left, 0) * shed[REMAINING] // (window + 1))


@inline
def cover_of(shed: Ints, pool: int, least: int) -> int:
    """The latest start of a run that reaches what a run of this pool does.

    The first of the pools that cover it is itself; ``least`` is 1 to leave that out.
    """
    cover = NEVER
    for i in range(shed[ix(shed[COVERS] + pool)] + least, shed[ix(shed[COVERS] + pool + 1)]):
        cover = max(cover, shed[ix(shed[NEWEST] + shed[ix(shed[COVERING] + i)])])
    return cover


@inline
def known_score(lookup: Ints, shed: Ints, links: Ints, start: int, link: int, row: int) -> float:
    """The score of a run whose future is known: by its last event and arc, its start, and when it is needed last."""
    while link >= 0 and links[ix(link * LINK)] < 0:
        link = links[ix(link * LINK + 1)]
    if link < 0:
        return 0.0
    wanted = links[ix(link * LINK)]
    size = shed[PATHS_SIZE]
    place = hash_word(17, wanted) & (size - 1)
    while lookup[ix(shed[PATHS] + 4 * place)] >= 0:
        at = shed[PATHS] + 4 * place
        if lookup[ix(at)] == wanted:
            good = start >= lookup[ix(at + 1)] and row < lookup[ix(at + 2)]
            return lookup[ix(at + 3)] / 65536.0 if good else 0.0
        place = (place + 1) & (size - 1)
    return 0.0


@inline
def score_of(
    at: int, group: int, cover: int, start: int, last: int, link: int, now: int, row: int, key: int, shape: Ints,
    shed: Ints, worth: Floats, lookup: Ints, links: Ints,
) -> float:  # fmt: skip
    """What a run is worth per run-step, beside one that started at ``cover``."""
    if shed[PATHS_SIZE] > 0:
        return known_score(lookup, shed, links, start, link, row)
    window = shape[WINDOW]
    since = 0
    while since < shed[SINCE] - 1 and now - last > shed[ix(EDGE + since)]:
        since += 1
    first = shed[ix(at)] + group * shed[REMAINING] * shed[SINCE] + since
    vertex = first + slice_of(shed, window, start + window - now) * shed[SINCE]
    gain = worth[ix(shed[GAINS] + vertex)]
    if cover + window >= now:
        other = worth[ix(shed[GAINS] + first + slice_of(shed, window, cover + window - now) * shed[SINCE])]
        gain -= worth[ix(shed[OVERLAPS] + (at - shed[PLACES]) // PLACE)] * min(gain, other)
    h = hash_word(hash_word(shed[SEED] + 1, start), key)
    if shed[COIN]:
        h = hash_word(h, last)
    coin = (h & 0xFFFF) / 65536.0
    return float(gain / worth[ix(shed[COSTS] + vertex)] * worth[SPREAD] / (worth[SPREAD] + coin))


@inline
def bits_of(shed: Ints, worth: Floats, value: float) -> int:
    """The bits of a floating point number; of those above 0 the greater have greater ones."""
    worth[BITS] = value
    return int(shed[BITS])


@inline
def note(
    reason: int, header: Ints, pools: Ints, p: int, words: Ints, shed: Ints, log: Ints, run: int, now: int, row: int,
    key: int,
) -> int:  # fmt: skip
    """Write a log entry of a run, but its score, price and cover; returns where it stands."""
    base, room, at = pools[ix(p + BASE)], pools[ix(p + ROOM)], header[LOGGED]
    mark = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room + run
    log[ix(at)] = reason
    log[ix(at + 1)] = p // POOL
    log[ix(at + 2)] = row
    log[ix(at + 3)] = now
    log[ix(at + 4)] = key
    log[ix(at + 5)] = words[ix(base + run)]
    log[ix(at + 6)] = words[ix(mark + room)]
    log[ix(at + 7)] = words[ix(base + room + run)]
    log[ix(at + 8)] = words[ix(mark)] & 3
    log[ix(at + 9)] = 0
    log[ix(at + 10)] = 0
    log[ix(at + 11)] = NEVER
    log[ix(at + 12)] = shed[PACE_NOW]
    for f in range(pools[ix(p + ALIKE)] - 1):
        log[ix(at + LOG + f)] = words[ix(base + (COLUMNS + f) * room + run)]
    for c in range(shed[EVENT_WORDS]):
        log[ix(at + shed[ENTRY] - shed[EVENT_WORDS] + c)] = words[ix(shed[EVENT_AT] + c)]
    header[LOGGED] = at + shed[ENTRY]
    return int(at)


@inline
def move_run(pools: Ints, p: int, words: Ints, to: int, run: int) -> None:
    """Copy a run of a pool to another place in it."""
    if to < run:
        base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
        for f in range(COLUMNS + pools[ix(p + FIELDS)]):
            words[ix(base + f * room + to)] = words[ix(base + f * room + run)]


@inline
def left(worth: Floats) -> float:
    """Run-steps that may be spent on tests now."""
    return float(max(worth[TOKENS] + min(worth[AUDIT_TOKENS], 0.0), 0.0))


@inline
def charge(
    shed: Ints, worth: Floats, words: Ints, pools: Ints, p: int, base: int, room: int, at: int, n: int,
) -> None:  # fmt: skip
    """Take the tests of a block from what may be done; those of runs that only the audit keeps from its own share."""
    audited = 0
    if shed[AUDIT] > 0:
        marks = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room + at
        for j in range(n):
            audited += words[ix(marks + j)] == WOULD_GO
    worth[AUDIT_TOKENS] -= audited
    worth[TOKENS] -= n - audited
    pools[ix(p + TESTED)] += n


@inline
def grant(header: Ints, shed: Ints, worth: Floats) -> None:
    """A further event: more may be done, and the price follows what is left."""
    room = worth[TOKENS]
    worth[TOKENS] = min(room + (1.0 - ON_PASSES - worth[AUDIT_SHARE]) * worth[RATE], worth[MOST_TOKENS])
    worth[PASS_TOKENS] += ON_PASSES * worth[RATE]
    worth[AUDIT_TOKENS] += worth[AUDIT_SHARE] * worth[RATE]
    worth[GRANTED] += worth[RATE]
    spare = worth[PASS_TOKENS] - SAVED_FOR_PASSES * worth[GRANTED]
    if spare > 0.0:  # few passes were needed
        spare = min(spare, worth[MOST_TOKENS] - worth[TOKENS])
        worth[PASS_TOKENS] -= spare
        worth[TOKENS] += spare
    reserve = min(max(worth[RESERVE], worth[RESERVE_SHARE] * worth[GRANTED]), worth[MOST_TOKENS] / 4.0)
    if shed[MOST_RUNS] >= 0:
        room = float(shed[MOST_RUNS] - header[LIVE])
        reserve = shed[MOST_RUNS] / 8.0
    elif worth[RESERVE] < 0.0:
        worth[PRICE_NOW] = worth[PRICE]
        return
    else:  # what is lent to the audit counts when it is more than half of what is held back
        room += min(worth[AUDIT_TOKENS] + reserve / 2.0, 0.0)
    ratio = reserve / (max(room, 0.0) + reserve / 16.0)
    worth[FACTOR] *= 1.0 + ADAPT * min(max(ratio - 1.0, -1.0), 1.0)
    worth[PRICE_NOW] = worth[PRICE] * worth[FACTOR] * ratio


@inline
def note_pace(shape: Ints, worth: Floats, pace: Floats, now: int, key: int) -> None:
    """One more event of a key: what came a window ago counts for a third, as much again ago for a ninth."""
    before = float(now) - pace[ix(2 * key)]
    value = pace[ix(2 * key + 1)] * math.exp(-before / (shape[WINDOW] + 1.0)) + 1.0
    pace[ix(2 * key)] = float(now)
    pace[ix(2 * key + 1)] = value
    worth[PACE_NOW] = value


@inline
def mark_of_event(shape: Ints, shed: Ints, now: int, key: int) -> int:
    """Whether runs that begin here are protected: a match point of theirs can lie in a chosen cell of key and epoch.

    ``budget.audit.Cohort`` chooses the same cells.
    """
    if shed[AUDIT] == 0:
        return NORMAL
    h = hash_word(shed[SEED], key)
    first = hash_word(hash_word(h, now // shed[EPOCH]), key)
    last = hash_word(hash_word(h, (now + shape[WINDOW]) // shed[EPOCH]), key)
    return AUDITED if min(first, last) < shed[AUDIT] else NORMAL


@inline
def admit(
    header: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, links: Ints, shed: Ints,
    worth: Floats, lookup: Ints, log: Ints, pool: int, children: int, runs: int, now: int, row: int, key: int,
) -> int:  # fmt: skip
    """Shed children that are not worth the price; returns where the others end."""
    p, at = pool * POOL, shed[PLACES] + pool * PLACE
    base, room = pools[ix(p + BASE)], pools[ix(p + ROOM)]
    marks = base + (COLUMNS + pools[ix(p + ALIKE)] - 1) * room
    end, price = children, worth[PRICE_NOW]
    live = header[LIVE]
    for child in range(children, runs):
        if shed[LOGS] & LOG_BIRTHS:
            note(BORN, header, pools, p, words, shed, log, child, now, row, key)
        if price <= 0.0 and shed[MOST_RUNS] < 0:
            end += 1
            continue
        start, mark = words[ix(base + child)], words[ix(marks + child)]
        group = group_of(at, pools, p, words, floats, shed, worth, lookup, child, key)
        cover = cover_of(shed, pool, 0)
        score = score_of(
            at, group, cover, start, now, words[ix(base + room + child)], now, row, key, shape, shed, worth, lookup,
            links,
        )  # fmt: skip
        is_full = shed[MOST_RUNS] >= 0 and live + end - children >= shed[MOST_RUNS]
        if is_full or (score < price and mark == NORMAL):
            reason = MOST if is_full else LOW_PRICE
            shed[ix(shed[COUNTS] + pool * REASONS + reason)] += 1
            header[SHED] += 1
            shed[BROKEN] += mark != NORMAL
            if shed[LOGS] & LOG_SHED:
                entry = note(reason, header, pools, p, words, shed, log, child, now, row, key)
                log[ix(entry + 9)] = bits_of(shed, worth, score)
                log[ix(entry + 10)] = bits_of(shed, worth, price)
                log[ix(entry + 11)] = cover
            continue
        if score < price and mark == AUDITED:
            words[ix(marks + child)] = WOULD_GO
        newest = shed[NEWEST] + pool
        if words[ix(marks + child)] != WOULD_GO:  # what the policy would have shed covers nothing
            shed[ix(newest)] = max(shed[ix(newest)], start)
            shed[ADMITTED] = max(shed[ADMITTED], start)
        move_run(pools, p, words, end, child)
        end += 1
    return end


@inline
def find_newest(shape: Ints, pools: Ints, words: Ints, shed: Ints) -> None:
    """Look for the latest start in each pool, after the runs of another key were brought in."""
    for pool in range(1, shape[POOLS]):
        p, newest = pool * POOL, NEVER
        for run in range(pools[ix(p + RUNS)]):
            newest = max(newest, words[ix(pools[ix(p + BASE)] + run)])
        shed[ix(shed[NEWEST] + pool)] = newest
