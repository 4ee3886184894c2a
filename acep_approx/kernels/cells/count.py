"""Count the matches that end at one event by adding up runs per state, however many matches there are.

Goes once over the entries of the key's logs that lie in the window, in the order of their places: the number of runs in
a state grows by the number of runs at the source of each entry into it. Where Kleene closures make matches explode
(``a+`` over n events has 2**n - 1) this stays polynomial.

Source: after GRETA (Poppe et al., PVLDB 11(1) 2017), which counts trends without building them; ours runs on arc logs,
so it holds for errors and guards too. Oracle: the walk of ``enumerate``, and ``tests/naive.py``.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.kernels.cells.layout import (
    ARC,
    ARC_COLUMNS,
    ARC_KEEPS,
    ARC_SOURCE,
    ARC_TARGET,
    END,
    ENTRY_COLUMNS,
    ENTRY_START,
    FIRST,
    HEAD_COLUMNS,
    LOGS,
    OFFSET,
    RESET,
    CountScratch,
    Logs,
    Tables,
)
from acep_approx.kernels.jit import inline, ix, kernel

MOST = 2**61
"""Counts stop growing here."""

LATE = 2**62


@inline
def _next_event(base: int, logs: Logs, place: Ints) -> int:
    """The place of the first entry that has not been counted, ``LATE`` after the last one."""
    event = LATE
    for a in range(place.size):
        head = (base + a) * HEAD_COLUMNS
        if place[ix(a)] < logs.heads[ix(head + OFFSET)] + logs.heads[ix(head + END)]:
            event = min(event, logs.arena[ix(ENTRY_COLUMNS * place[ix(a)])])
    return event


@inline
def _count_event(event: int, base: int, low: int, tables: Tables, logs: Logs, counts: CountScratch) -> None:
    """Add the runs that go on with an event to those of the states that they enter."""
    words, arcs, runs = tables.words, tables.offsets[ix(ARC)], counts.runs
    for a in range(counts.place.size):
        head = (base + a) * HEAD_COLUMNS
        entry = counts.place[ix(a)]
        counts.fresh[ix(a)] = -1
        end = logs.heads[ix(head + OFFSET)] + logs.heads[ix(head + END)]
        if entry < end and logs.arena[ix(ENTRY_COLUMNS * entry)] == event:
            source = words[ix(arcs + ARC_COLUMNS * a + ARC_SOURCE)]
            counts.fresh[ix(a)] = 0
            if logs.arena[ix(ENTRY_COLUMNS * entry + ENTRY_START)] >= low:
                counts.fresh[ix(a)] = 1 if source == 0 else runs[ix(source)]
            counts.place[ix(a)] = entry + 1
    for s in range(runs.size):
        reset = words[ix(tables.offsets[ix(RESET)] + s)]
        if reset >= 0 and counts.fresh[ix(reset)] >= 0:
            runs[ix(s)] = 0
    for a in range(counts.place.size):
        arc = arcs + ARC_COLUMNS * a
        if counts.fresh[ix(a)] > 0 and words[ix(arc + ARC_KEEPS)] == 1:
            target = words[ix(arc + ARC_TARGET)]
            runs[ix(target)] = min(MOST, runs[ix(target)] + counts.fresh[ix(a)])


@kernel
def count_runs(state: int, slot: int, bound: int, low: int, tables: Tables, logs: Logs, counts: CountScratch) -> int:
    """Number of runs that were in ``state`` before place ``bound`` and started at ``low`` or later.

    Parameters
    ----------
    state, slot, bound, low : int
    tables, logs, counts : records
        See ``layout``.

    Returns
    -------
    int
        At most ``MOST``.

    Complexity: O(events in the window x logs).
    """
    base = slot * tables.offsets[ix(LOGS)]
    for s in range(counts.runs.size):
        counts.runs[ix(s)] = 0
    for a in range(counts.place.size):
        head = (base + a) * HEAD_COLUMNS
        counts.place[ix(a)] = logs.heads[ix(head + OFFSET)] + logs.heads[ix(head + FIRST)]
    while True:
        event = _next_event(base, logs, counts.place)
        if event >= bound:
            return int(counts.runs[ix(state)])
        _count_event(event, base, low, tables, logs, counts)
