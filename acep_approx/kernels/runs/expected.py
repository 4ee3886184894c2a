"""How many events of the last window a key has that variables can be bound to: what exact work can be told by.

Source: ours; see ``engines.runs.expected_work``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from acep_approx.arrays import Floats, Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.kernels.runs.pools import NEVER

LEAST_LOG = -700.0
"""In the place of the logarithm of 0: a power of it is nothing, and nothing times 0 is a number."""


class Asked(NamedTuple):
    """Which of so many ``variables`` an event of each class can be bound to: one word for each."""

    binds: Ints
    variables: int
    window: int


class Seen(NamedTuple):
    """Per key the tick of its last event, and for each variable how many events of late can be bound to it."""

    last: Ints
    counts: Floats


@block_kernel
def count_recent(slot: Ints, tick: Ints, cls: Ints, asked: Asked, seen: Seen, logs: Floats) -> None:
    """Write down for each event the logarithms of these numbers; events of a key stand in the order of time.

    What came a window ago counts for a third. Where a key was silent for longer, all has left the window.
    """
    size, last, counts = asked.variables, seen.last, seen.counts
    for e in range(len(slot)):
        key, now = slot[e], tick[e]
        at, since = key * size, 0
        if last[key] != NEVER:
            since = now - last[key]
        if since > 0:
            left = 0.0 if since > asked.window else math.exp(-float(since) / (float(asked.window) + 1.0))
            for variable in range(size):
                counts[at + variable] *= left
        last[key] = now
        for variable in range(size):
            count = counts[at + variable]
            logs[e * size + variable] = max(math.log(count), LEAST_LOG) if count > 0.0 else LEAST_LOG
            counts[at + variable] += asked.binds[cls[e] * size + variable]
