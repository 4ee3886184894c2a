"""Count the matches that end at one event by adding up runs per state, however many matches there are.

Goes once over the entries of the key's logs that lie in the window, in the order of their rows: the number of runs in a
state grows by the number of runs at the source of each entry into it. Where Kleene closures make matches explode
(``a+`` over n events has 2**n - 1) this stays polynomial.

Source: after GRETA (Poppe et al., PVLDB 11(1) 2017), which counts trends without building them; ours runs on arc logs,
so it holds for errors and guards too. Oracle: the walk of ``kernel_enumerate``, and ``tests/naive.py``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.cells.arclog import ARC, LOG, LOGS, RESET
from acep_approx.kernels.jit import ix, kernel

Ints = npt.NDArray[np.int64]

MOST = 2**61
"""Counts stop growing here."""

LATE = 2**62


@kernel
def count_runs(
    state: int,
    slot: int,
    bound: int,
    low: int,
    tables: Ints,
    offsets: Ints,
    logs: Ints,
    arena: Ints,
    place: Ints,
    fresh: Ints,
    runs: Ints,
) -> int:
    """Number of runs that were in ``state`` before row ``bound`` and started at ``low`` or later.

    Parameters
    ----------
    state, slot, bound, low : int
    tables, offsets, logs, arena : int64
        As for ``kernel_enumerate.walk``.
    place, fresh : int64, one for each log
        Scratch.
    runs : int64, one for each state
        Scratch.

    Returns
    -------
    int
        At most ``MOST``.

    Complexity: O(rows in the window x logs).
    """
    base = slot * offsets[ix(LOGS)]
    for s in range(runs.size):
        runs[ix(s)] = 0
    for a in range(place.size):
        log = (base + a) * LOG
        place[ix(a)] = logs[ix(log)] + logs[ix(log + 1)]
    while True:
        row = LATE
        for a in range(place.size):
            log = (base + a) * LOG
            if place[ix(a)] < logs[ix(log)] + logs[ix(log + 2)]:
                row = min(row, arena[ix(2 * place[ix(a)])])
        if row >= bound:
            return int(runs[ix(state)])
        for a in range(place.size):
            log = (base + a) * LOG
            entry = place[ix(a)]
            fresh[ix(a)] = -1
            if entry < logs[ix(log)] + logs[ix(log + 2)] and arena[ix(2 * entry)] == row:
                source = tables[ix(offsets[ix(ARC)] + 5 * a)]
                fresh[ix(a)] = 0
                if arena[ix(2 * entry + 1)] >= low:
                    fresh[ix(a)] = 1 if source == 0 else runs[ix(source)]
                place[ix(a)] = entry + 1
        for s in range(runs.size):
            reset = tables[ix(offsets[ix(RESET)] + s)]
            if reset >= 0 and fresh[ix(reset)] >= 0:
                runs[ix(s)] = 0
        for a in range(place.size):
            arc = offsets[ix(ARC)] + 5 * a
            if fresh[ix(a)] > 0 and tables[ix(arc + 4)] == 1:
                target = tables[ix(arc + 1)]
                runs[ix(target)] = min(MOST, runs[ix(target)] + fresh[ix(a)])
