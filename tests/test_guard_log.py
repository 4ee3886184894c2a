"""Negations that are tested on complete matches: the events between, against plain Python, and at what cost."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa

from acep_approx import compile_query
from acep_approx.matching.outputs.guard_log import GuardLog
from tests.cases import cases


def logged(random: np.random.Generator, events: int) -> GuardLog:
    """A log with events of some slots in order of time; times may be shared."""
    log = GuardLog.__new__(GuardLog)
    slot = np.sort(random.integers(0, 3, events))
    log.slot, log.row = slot, np.concatenate([np.sort(random.choice(40, n, replace=False)) for n in np.bincount(slot)])
    log.tick = np.concatenate([np.sort(random.integers(0, 12, n)) for n in np.bincount(slot)])
    log.mask = random.integers(0, 4, events)
    return log


def test_the_events_between_are_those_that_plain_python_finds():
    random = np.random.default_rng(11)
    for _ in range(cases(2_000)):
        log = logged(random, int(random.integers(1, 25)))
        slot = random.integers(0, 4, 6)
        low, high = random.integers(-1, 40, 6), random.integers(-1, 45, 6)
        since, until = random.integers(-2, 12, 6), random.integers(-2, 14, 6)
        letter = int(random.integers(0, 2))
        gap, event = log.between(letter, slot, (low, high), (since, until))
        assert sorted(zip(gap.tolist(), event.tolist(), strict=True)) == [
            (g, e)
            for g in range(6)
            for e in range(len(log.slot))
            if log.slot[e] == slot[g] and log.mask[e] >> letter & 1 and low[g] < log.row[e] < high[g]
            and since[g] <= log.tick[e] <= until[g]
        ]  # fmt: skip


def test_memory_grows_with_the_events_of_a_window_not_of_the_stream():
    events = pa.table({"ts": range(20_000)})
    query = compile_query("PATTERN SEQ(ANY a, ~(ANY n)) WITHIN 5")
    tracemalloc.start()
    try:
        assert query.match(events).count_by_errors() == {0: 1}
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20  # all pairs would take 1.6 GB
    finally:
        tracemalloc.stop()
