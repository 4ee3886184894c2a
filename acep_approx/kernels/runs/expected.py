"""How many events of the last window a key has that variables can be bound to: what exact work can be told by.

Source: ours; see ``engines.runs.expected_work``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from acep_approx.arrays import Floats, Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.kernels.runs.saved import SPAN
from acep_approx.kernels.runs.scores import pace_with

LEAST_LOG = -700.0
"""In the place of the logarithm of 0: a power of it is nothing, and nothing times 0 is a number."""


class Asked(NamedTuple):
    """Which of so many ``variables`` an event of each class can be bound to: one word for each."""

    binds: Ints
    variables: int
    window: int


class Law(NamedTuple):
    """Run-steps of an event, by place: ``factor * tests * (product of the counts) ** power``.

    ``counted``: which variables count, one place after the other; ``tests``: at how many groups of steps the events of
    a class are tested in each place, one class after the other; that of the first place says who begins runs.
    """

    factors: Floats
    powers: Floats
    counted: Ints
    tests: Ints


class Standing(NamedTuple):
    """Where the keys of an engine stand: ``spans`` says which have runs, see ``saved.SPAN``; all are put away.

    ``windows``: of each key, the last one that of all further keys; ``begun``: the tick of the last event of each that
    begins runs.
    """

    spans: Ints
    pace: Floats
    windows: Ints
    begun: Ints


class Seen(NamedTuple):
    """Per key the tick of its last event, and for each variable how many events of late can be bound to it."""

    last: Ints
    counts: Floats


@inline
def let_time_pass(key: int, now: int, asked: Asked, seen: Seen) -> None:
    """What came a window ago counts for a third. Where a key was silent for longer, all has left the window."""
    last, since, at = seen.last, 0, key * asked.variables
    if last[key] != NEVER:
        since = now - last[key]
    if since > 0:
        left = 0.0 if since > asked.window else math.exp(-float(since) / (float(asked.window) + 1.0))
        for variable in range(asked.variables):
            seen.counts[at + variable] *= left
    last[key] = now


@inline
def steps_at(law: Law, asked: Asked, seen: Seen, key: int, kind: int) -> float:
    """The run-steps of an event of class ``kind``, as the law says."""
    places, steps = len(law.factors), 0.0
    for place in range(places):
        tests = law.tests[kind * places + place]
        if tests > 0 and law.factors[place] > 0.0:
            product = 1.0
            for variable in range(asked.variables):
                if law.counted[place * asked.variables + variable]:
                    product *= seen.counts[key * asked.variables + variable]
            if product > 0.0:
                power = law.powers[place]
                if power == 0.5:
                    product = math.sqrt(product)
                elif power != 1.0:
                    product = math.exp(power * math.log(product))
                steps += law.factors[place] * float(tests) * product
    return steps


@block_kernel
def pick_events(
    slot: Ints, tick: Ints, cls: Ints, asked: Asked, seen: Seen, law: Law, keys: Standing, picked: Ints, steps: Floats
) -> int:
    """Pick the events that an engine must get, and write down the run-steps that the law says of each; so many.

    The others meet no run, and begin none: their run-steps stand together behind those of the last event. Events of a
    key stand together, in the order of time.
    """
    places, many, others, opened = len(law.factors), 0, 0.0, -1
    for e in range(len(slot)):
        key, now, kind = slot[e], tick[e], cls[e]
        let_time_pass(key, now, asked, seen)
        mine = steps_at(law, asked, seen, key, kind)
        for variable in range(asked.variables):
            seen.counts[key * asked.variables + variable] += asked.binds[kind * asked.variables + variable]
        if law.tests[kind * places] > 0:
            keys.begun[key] = max(keys.begun[key], now)
            opened = key
        if opened == key or keys.spans[key * SPAN + 1] > 0:
            picked[many] = e
            steps[many] = mine
            many += 1
        else:
            pace_with(keys.pace, key, now, keys.windows[min(key, len(keys.windows) - 1)])
            others += mine
    steps[len(slot)] = others
    return many


@block_kernel
def count_recent(slot: Ints, tick: Ints, cls: Ints, asked: Asked, seen: Seen, logs: Floats) -> None:
    """Write down for each event the logarithms of these numbers; events of a key stand in the order of time."""
    size, counts = asked.variables, seen.counts
    for e in range(len(slot)):
        key = slot[e]
        at = key * size
        let_time_pass(key, tick[e], asked, seen)
        for variable in range(size):
            count = counts[at + variable]
            logs[e * size + variable] = max(math.log(count), LEAST_LOG) if count > 0.0 else LEAST_LOG
            counts[at + variable] += asked.binds[cls[e] * size + variable]
