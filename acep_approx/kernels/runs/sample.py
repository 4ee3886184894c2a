"""A sample of tests: at some events, chosen by a coin, tests of runs are written down with what came of them.

The coin knows the event's row and nothing of runs, so that each test has the same chance to be seen, and a run that is
shed is simply not tested any more. Passed tests are rare and tell more: those that bring a run to a pool are written
down at more events, by the same coin. Where a pool has many runs only some are looked at, at equal distances. What a
learner makes of a sample: ``rl.records.Tests``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import called, inline, ix
from acep_approx.kernels.runs.layout import SCRATCH, TEMPORARIES
from acep_approx.kernels.runs.pools import ALIKE, BASE, COLUMNS, POOL, ROOM, RUNS, hash_word
from acep_approx.kernels.runs.scores import (
    EVENT_AT,
    EVENT_WORDS,
    PACE_NOW,
    SAMPLE,
    SAMPLE_COIN,
    SAMPLE_ENTRY,
    SAMPLE_NOW,
    SAMPLE_REGISTERS,
    SAMPLE_SHARES,
    SAMPLED,
    SEED,
    bits_of,
    cover_of,
)
from acep_approx.kernels.runs.vm import BLOCK, REGISTER, SCALAR

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FAILED, PASSED, LEFT_OUT, ONLY_PASSED = range(4)
"""What came of a test; an index leaves out runs that it knows to fail. Of the last kind only passed ones are seen."""
SAMPLE_WORDS = 12
"""Words of an entry before the registers: pool, target, arc, outcome, how many tests it stands for, start, tick of the
last event, tick, slot, pace of the key (floating point), how many passed tests it stands for, start of the run that
would cover a child. Then the registers of the run, those of its child where it passed (each as many as any pool has),
and the columns of the event."""
AT_ONCE = 16
"""Runs of a pool that are looked at, about."""
HIDDEN = 2


@inline
def choose_event(shed: Ints, row: int) -> None:
    """Toss the coin of an event."""
    if shed[SAMPLE] > 0:
        shed[SAMPLE_COIN] = hash_word(shed[SEED] + 2, row)
        shed[SAMPLE_NOW] = shed[SAMPLE_COIN] < shed[SAMPLE]


@inline
def is_sampled(shed: Ints, pool: int, target: int, passed: int) -> bool:
    """Whether tests of a step that ``passed`` runs took are written down."""
    if shed[SAMPLE_NOW] and pool > 0:  # at the start there is no run
        return True
    return bool(passed > 0 and shed[SAMPLE] > 0 and shed[SAMPLE_COIN] < shed[ix(shed[SAMPLE_SHARES] + target)])


@inline
def lacks_sample_room(shed: Ints, sample: Ints, n: int) -> bool:
    """Whether ``n`` entries may not fit."""
    return bool(shed[SAMPLED] + n * shed[SAMPLE_ENTRY] > sample.size)


@called
def note_tests(
    tables: Ints, shape: Ints, pools: Ints, words: Ints, mask: Ints, shed: Ints, worth: Floats, sample: Ints,
    pool: int, step: int, m: int, moves: int, fields: int, base: int, room: int, offset: int, n: int, low: int,
    now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Write down what a step made of some runs of a block; ``mask`` says which ``m`` of them passed."""
    p = pool * POOL
    is_scratch = base == shape[SCRATCH]
    distance = max((n if is_scratch else pools[ix(p + RUNS)]) // AT_ONCE, 1)
    registers = base + COLUMNS * room + offset
    own = max(pools[ix(p + ALIKE)] - 1, 0)
    phase = (hash_word(row, step) - offset) % distance
    apart = distance if m > 2 * AT_ONCE else 1  # of passed tests
    cover = cover_of(shed, tables[ix(step)], 0)
    for j in range(n):
        start = words[ix(base + offset + j)]
        is_seen = shed[SAMPLE_NOW] and pool > 0 and j % distance == phase
        has_passed = mask[ix(j)] and j % apart == phase % apart
        if start < low or not (is_seen or has_passed):
            continue
        at = shed[SAMPLED]
        sample[ix(at)] = pool
        sample[ix(at + 1)] = tables[ix(step)]
        sample[ix(at + 2)] = tables[ix(step + 1)]
        sample[ix(at + 3)] = mask[ix(j)] if is_seen else ONLY_PASSED
        sample[ix(at + 4)] = distance
        sample[ix(at + 5)] = start
        sample[ix(at + 6)] = words[ix(registers + (own + 1) * room + j)] if pool > 0 else now
        sample[ix(at + 7)] = now
        sample[ix(at + 8)] = key
        sample[ix(at + 9)] = bits_of(shed, worth, worth[PACE_NOW])
        sample[ix(at + 10)] = apart
        sample[ix(at + 11)] = cover
        at += SAMPLE_WORDS
        for f in range(own):
            sample[ix(at + f)] = words[ix(registers + f * room + j)]
        at += shed[SAMPLE_REGISTERS]
        if mask[ix(j)]:
            for f in range(fields - HIDDEN):
                kind, number = tables[ix(moves + 2 * f)], tables[ix(moves + 2 * f + 1)]
                if kind == SCALAR:
                    word = number
                elif kind == REGISTER:
                    word = registers + number * room + j
                else:
                    word = shape[TEMPORARIES] + number * BLOCK + j
                sample[ix(at + f)] = words[ix(word)]
        at += shed[SAMPLE_REGISTERS]
        for c in range(shed[EVENT_WORDS]):
            sample[ix(at + c)] = words[ix(shed[EVENT_AT] + c)]
        shed[SAMPLED] += shed[SAMPLE_ENTRY]


@called
def note_left_out(
    tables: Ints, pools: Ints, words: Ints, shed: Ints, worth: Floats, sample: Ints, pool: int, step: int, low: int,
    now: int, row: int, key: int,
) -> None:  # fmt: skip
    """Write down some runs of a pool as they are before an index finds those that a step is tested with."""
    p = pool * POOL
    base, room, runs = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + RUNS)]
    distance = max(runs // AT_ONCE, 1)
    registers, own = base + COLUMNS * room, pools[ix(p + ALIKE)] - 1
    for j in range(hash_word(row, step) % distance, runs, distance):
        start = words[ix(base + j)]
        if start < low:
            continue
        at = shed[SAMPLED]
        sample[ix(at)] = pool
        sample[ix(at + 1)] = tables[ix(step)]
        sample[ix(at + 2)] = tables[ix(step + 1)]
        sample[ix(at + 3)] = LEFT_OUT
        sample[ix(at + 4)] = distance
        sample[ix(at + 5)] = start
        sample[ix(at + 6)] = words[ix(registers + (own + 1) * room + j)]
        sample[ix(at + 7)] = now
        sample[ix(at + 8)] = key
        sample[ix(at + 9)] = bits_of(shed, worth, worth[PACE_NOW])
        for f in range(own):
            sample[ix(at + SAMPLE_WORDS + f)] = words[ix(registers + f * room + j)]
        at += SAMPLE_WORDS + 2 * shed[SAMPLE_REGISTERS]
        for c in range(shed[EVENT_WORDS]):
            sample[ix(at + c)] = words[ix(shed[EVENT_AT] + c)]
        shed[SAMPLED] += shed[SAMPLE_ENTRY]
