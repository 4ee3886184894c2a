"""Match points, straight from hits: per event the fewest errors, and the latest start at that."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.kernels.runs.layout import HIT, HIT_ERRORS, HIT_EVENT, HIT_START


@kernel
def best_hits(hits: Ints, count: int, event: Ints, errors: Ints, start: Ints) -> int:
    """Write the best hit of each event; those of an event follow each other, as the engine runs events one by one.

    Returns
    -------
    int
        How many events complete something.
    """
    used = 0
    for hit in range(0, count * HIT, HIT):
        e, k, t = hits[hit + HIT_EVENT], hits[hit + HIT_ERRORS], hits[hit + HIT_START]
        last = used - 1
        if used == 0 or event[last] != e:
            event[used] = e
            errors[used] = k
            start[used] = t
            used += 1
        elif k < errors[last] or (k == errors[last] and t > start[last]):
            errors[last] = k
            start[last] = t
    return used
