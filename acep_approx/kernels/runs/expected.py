"""How many events of the last window brought runs of a key to places: what the work of an exact run can be told by.

Source: ours; see ``engines.runs.expected_work``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from acep_approx.arrays import Floats, Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.kernels.runs.pools import NEVER


class Asked(NamedTuple):
    """Which of the ``places`` an event of each class brings runs to: one word for each."""

    brings: Ints
    places: int
    window: int


class Seen(NamedTuple):
    """Per key the tick of its last event, and for each place how many events of late brought a run there."""

    last: Ints
    counts: Floats


@block_kernel
def count_recent(slot: Ints, tick: Ints, cls: Ints, asked: Asked, seen: Seen, mean: Floats) -> None:
    """Write down for each event the geometric mean of these numbers; events of a key stand in the order of time.

    What came a window ago counts for a third. Where a key was silent for longer, all has left the window.
    """
    places, last, counts = asked.places, seen.last, seen.counts
    for e in range(len(slot)):
        key, now = slot[e], tick[e]
        at, since, logs = key * places, 0, 0.0
        if last[key] != NEVER:
            since = now - last[key]
        if since > 0:
            left = 0.0 if since > asked.window else math.exp(-float(since) / (float(asked.window) + 1.0))
            for place in range(places):
                counts[at + place] *= left
        last[key] = now
        for place in range(places):
            logs += math.log(1.0 + counts[at + place])
            counts[at + place] += asked.brings[cls[e] * places + place]
        mean[e] = math.exp(logs / places) - 1.0 if places > 0 else 0.0
