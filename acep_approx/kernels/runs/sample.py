"""A sample of tests: at some events, chosen by a coin, tests of runs are written down with what came of them.

The coin knows the event's id and nothing of runs, so that each test has the same chance to be seen, and a run that is
shed is simply not tested any more. Passed tests are rare and tell more: those that bring a run to a pool are written
down at more events, by the same coin. Where a pool has many runs only some are looked at, at equal distances. What a
learner makes of a sample: ``rl.records.Tests``.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import called, inline
from acep_approx.kernels.runs.layout import SCRATCH, STEP_ARC, TEMPORARIES
from acep_approx.kernels.runs.pools import ALIKE, BASE, COLUMNS, POOL, ROOM, RUNS, hash_word
from acep_approx.kernels.runs.records import Arena, Event, Pools, Program, RunBlock, Taken
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
)
from acep_approx.kernels.runs.vm import BLOCK, REGISTER, SCALAR
from acep_approx.kernels.runs.weighing import cover_of

FAILED, PASSED, LEFT_OUT, ONLY_PASSED = range(4)
"""What came of a test; an index leaves out runs that it knows to fail. Of the last kind only passed ones are seen."""
(
    TEST_POOL,
    TEST_TARGET,
    TEST_ARC,
    TEST_OUTCOME,
    TEST_WEIGHT,
    TEST_START,
    TEST_LAST,
    TEST_TICK,
    TEST_SLOT,
    TEST_PACE,
    TEST_PASSED_WEIGHT,
    TEST_COVER,
) = range(12)
SAMPLE_WORDS = 12
"""Words of an entry before the registers: pool, target, arc, outcome, how many tests it stands for, start, tick of the
last event, tick, slot, pace of the key (floating point), how many passed tests it stands for, start of the run that
would cover a child. Then the registers of the run, those of its child where it passed (each as many as any pool has),
and the columns of the event."""
AT_ONCE = 16
"""Runs of a pool that are looked at, about."""


@inline
def choose_event(shed: Ints, name: int) -> None:
    """Toss the coin of an event."""
    if shed[SAMPLE] > 0:
        shed[SAMPLE_COIN] = hash_word(shed[SEED] + 2, name)
        shed[SAMPLE_NOW] = shed[SAMPLE_COIN] < shed[SAMPLE]


@inline
def is_sampled(shed: Ints, pool: int, target: int, passed: int) -> bool:
    """Whether tests of a step that ``passed`` runs took are written down."""
    if shed[SAMPLE_NOW] and pool > 0:  # at the start there is no run
        return True
    return bool(passed > 0 and shed[SAMPLE] > 0 and shed[SAMPLE_COIN] < shed[shed[SAMPLE_SHARES] + target])


@inline
def lacks_sample_room(shedding: Arena, n: int) -> bool:
    """Whether ``n`` entries may not fit."""
    shed = shedding.words
    return bool(shed[SAMPLED] + n * shed[SAMPLE_ENTRY] > len(shedding.sample))


@inline
def begin_test(
    program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, step: int, start: int
) -> int:
    """Begin an entry: what is known whatever comes of the test; returns where it stands."""
    shed, sample = shedding.words, shedding.sample
    at = shed[SAMPLED]
    sample[at + TEST_POOL] = pool
    sample[at + TEST_TARGET] = program.tables[step]
    sample[at + TEST_ARC] = program.tables[step + STEP_ARC]
    sample[at + TEST_START] = start
    sample[at + TEST_TICK] = event.now
    sample[at + TEST_SLOT] = event.key
    sample[at + TEST_PACE] = bits_of(shedding, shedding.floats[PACE_NOW])
    columns = at + SAMPLE_WORDS + 2 * shed[SAMPLE_REGISTERS]
    for c in range(shed[EVENT_WORDS]):
        sample[columns + c] = pools.words[shed[EVENT_AT] + c]
    shed[SAMPLED] = at + shed[SAMPLE_ENTRY]
    return int(at)


@inline
def write_child(program: Program, pools: Pools, sample: Ints, block: RunBlock, step: Taken, j: int, to: int) -> None:
    """Write down the registers of the child of run ``j``."""
    tables = program.tables
    for f in range(pools.table[step.target * POOL + ALIKE] - 1):
        kind, number = tables[step.moves + 2 * f], tables[step.moves + 2 * f + 1]
        if kind == SCALAR:
            word = number
        elif kind == REGISTER:
            word = block.registers + number * block.room + j
        else:
            word = program.shape[TEMPORARIES] + number * BLOCK + j
        sample[to + f] = pools.words[word]


@called
def note_tests(
    program: Program, pools: Pools, mask: Ints, shedding: Arena, event: Event, block: RunBlock, step: Taken, number: int
) -> None:
    """Write down what step ``number`` made of some runs of a block; ``mask`` says which passed."""
    shed, sample, words, table, pool = shedding.words, shedding.sample, pools.words, pools.table, block.pool
    is_scratch = block.starts - block.offset == program.shape[SCRATCH]
    distance = max((block.n if is_scratch else table[pool * POOL + RUNS]) // AT_ONCE, 1)
    own = max(table[pool * POOL + ALIKE] - 1, 0)
    phase = (hash_word(event.id, number) - block.offset) % distance
    apart = distance if step.m > 2 * AT_ONCE else 1  # of passed tests
    cover = cover_of(shed, step.target, 0)
    for j in range(block.n):
        start = words[block.starts + j]
        is_seen = shed[SAMPLE_NOW] and pool > 0 and j % distance == phase
        has_passed = mask[j] and j % apart == phase % apart
        if start < event.low or not (is_seen or has_passed):
            continue
        at = begin_test(program, pools, shedding, event, pool, number, start)
        last = words[block.registers + (own + 1) * block.room + j] if pool > 0 else event.now
        sample[at + TEST_OUTCOME] = mask[j] if is_seen else ONLY_PASSED
        sample[at + TEST_WEIGHT] = distance
        sample[at + TEST_LAST] = last
        sample[at + TEST_PASSED_WEIGHT] = apart
        sample[at + TEST_COVER] = cover
        for f in range(own):
            sample[at + SAMPLE_WORDS + f] = words[block.registers + f * block.room + j]
        if mask[j]:
            to = at + SAMPLE_WORDS + shed[SAMPLE_REGISTERS]
            write_child(program, pools, sample, block, step, j, to)


@called
def note_left_out(program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, step: int) -> None:
    """Write down some runs of a pool as they are before an index finds those that a step is tested with."""
    sample, words, p = shedding.sample, pools.words, pool * POOL
    base, room, runs = pools.table[p + BASE], pools.table[p + ROOM], pools.table[p + RUNS]
    distance = max(runs // AT_ONCE, 1)
    registers, own = base + COLUMNS * room, pools.table[p + ALIKE] - 1
    for j in range(hash_word(event.id, step) % distance, runs, distance):
        start = words[base + j]
        if start < event.low:
            continue
        at = begin_test(program, pools, shedding, event, pool, step, start)
        sample[at + TEST_OUTCOME] = LEFT_OUT
        sample[at + TEST_WEIGHT] = distance
        sample[at + TEST_LAST] = words[registers + (own + 1) * room + j]
        for f in range(own):
            sample[at + SAMPLE_WORDS + f] = words[registers + f * room + j]
