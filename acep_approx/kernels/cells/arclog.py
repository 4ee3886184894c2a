"""Arc logs: everything that is needed to list the matches, kept without listing them.

Each arc of the determinised automaton has a log per key. An event that is bound on the arc from ``d`` appends
``(row, latest start of a run at d)``. Both columns only grow, so the entries that still lie in a window are one
contiguous range, and walking back from a match point lists every match once, with work linear in the output.

A state with guards is emptied when a letter of the guard passes: its runs move, by an arc that binds nothing, to the
state without those guards, and the row is noted in the state's *reset log*. Entries of such a state are sorted between
two resets, and only those since the last reset before the row at hand are visible.

Source: arc logs generalise the active instance stacks of SASE (Wu et al., SIGMOD 2006, which Li and Ge, PVLDB 10(4)
2016, section 3.1 take up as match trajectories) to any regular pattern with errors; the latest start is pruned as in
CORE (PVLDB 15(9) 2022). Log layout, guards and errors are ours. Oracle: ``tests/naive.py``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.cells.detect import NEVER
from acep_approx.kernels.jit import inline, ix, kernel

Ints = npt.NDArray[np.int64]

DONE, UNKNOWN, GROW, HITS_FULL = 0, 1, 2, 3
"""Why ``update`` returned: all events done; a move is not made yet; the arena is full; the hit list is full."""

# header of update: next event, entries used in the arena, hits, slot at hand, its floor, and what is asked for
NEXT, USED, HITS, SLOT, FLOOR, ASK, ASK_CLASS = 0, 1, 2, 3, 4, 5, 6

# offsets into the tables: per class the sources and the passes, then moves; per arc and per state
SOURCES, SOURCE, MOVE, PASSES, PASS = 0, 1, 2, 3, 4
ARC, INTO, INTO_ARC, RESET = 5, 6, 7, 8
STATES, LOGS = 9, 10

NOT_MADE = -1

LOG = 4
"""Fields of a log: offset in the arena (in entries), head, tail, room."""


@inline
def _append(logs: Ints, at: int, arena: Ints, header: Ints, row: int, value: int) -> bool:
    """Append ``(row, value)`` to the log at ``at``; False where the arena is full. Repeating it changes nothing."""
    offset = logs[ix(at)]
    head = logs[ix(at + 1)]
    tail = logs[ix(at + 2)]
    room = logs[ix(at + 3)]
    if tail > head and arena[ix(2 * (offset + tail - 1))] == row:
        return True
    if tail == room:
        floor = header[ix(FLOOR)]
        while head < tail and arena[ix(2 * (offset + head) + 1)] < floor:
            head += 1
        live = tail - head
        target = offset
        if 2 * live > room or room == 0:
            room = max(4, 2 * room)
            if 2 * (header[ix(USED)] + room) > arena.size:
                header[ix(ASK)] = room
                return False
            target = header[ix(USED)]
            header[ix(USED)] += room
        for e in range(2 * live):
            arena[ix(2 * target + e)] = arena[ix(2 * (offset + head) + e)]
        offset = target
        tail = live
        logs[ix(at)] = offset
        logs[ix(at + 1)] = 0
        logs[ix(at + 3)] = room
    arena[ix(2 * (offset + tail))] = row
    arena[ix(2 * (offset + tail) + 1)] = value
    logs[ix(at + 2)] = tail + 1
    return True


@kernel
def update(
    slot: Ints,
    tick: Ints,
    cls: Ints,
    row: Ints,
    header: Ints,
    tables: Ints,
    offsets: Ints,
    latest: Ints,
    logs: Ints,
    arena: Ints,
    pending: Ints,
    hits: Ints,
    window: int,
) -> int:
    """Run events through the logs, from ``header[NEXT]`` on.

    Parameters
    ----------
    slot, tick, cls, row : int64, shape (n,)
        Grouped by slot, ordered inside.
    header : int64
        Where the kernel stands; it can be called again after each return.
    tables, offsets : int64
        As made by ``arclogs.Tables``.
    latest : int64
        Per slot and state the latest start of a run there; changed in place.
    logs, arena : int64
        Log heads per slot and arc, and their entries.
    pending : int64
        Scratch: two integers for each move of an event.
    hits : int64
        Completed matches: (event index, arc), in the order of the events given.
    window : int

    Returns
    -------
    int
        ``DONE``, ``UNKNOWN`` (make the moves of state ``header[ASK]`` over class ``header[ASK_CLASS]``),
        ``GROW`` (the arena wants ``header[ASK]`` more entries), ``HITS_FULL``.

    Notes
    -----
    An event is either done or can be done again: appends are idempotent, everything else is written at its end.
    Complexity: O(live states with a move + appends) per event, appends amortised.
    """
    states = offsets[ix(STATES)]
    width = offsets[ix(LOGS)]
    for i in range(header[ix(NEXT)], slot.size):
        header[ix(NEXT)] = i
        s = slot[ix(i)]
        t = tick[ix(i)]
        c = cls[ix(i)]
        if s != header[ix(SLOT)]:
            header[ix(SLOT)] = s
            header[ix(FLOOR)] = t - window
        low = t - window
        base = s * states
        found = header[ix(HITS)]
        waiting = 0
        for x in range(tables[ix(offsets[ix(SOURCES)] + c)], tables[ix(offsets[ix(SOURCES)] + c + 1)]):
            at = offsets[ix(SOURCE)] + 3 * x
            d = tables[ix(at)]
            start = t if d == 0 else latest[ix(base + d)]
            if start < low:
                continue
            if tables[ix(at + 2)] == NOT_MADE:
                header[ix(ASK)] = d
                header[ix(ASK_CLASS)] = c
                return UNKNOWN
            for m in range(tables[ix(at + 1)], tables[ix(at + 1)] + tables[ix(at + 2)]):
                a = tables[ix(offsets[ix(MOVE)] + m)]
                arc = offsets[ix(ARC)] + 5 * a
                if tables[ix(arc + 4)] == 1:
                    if not _append(logs, (s * width + a) * LOG, arena, header, row[ix(i)], start):
                        return GROW
                    pending[ix(2 * waiting)] = tables[ix(arc + 1)]
                    pending[ix(2 * waiting + 1)] = start
                    waiting += 1
                if tables[ix(arc + 3)] >= 0:
                    if 2 * found + 2 > hits.size:
                        return HITS_FULL
                    hits[ix(2 * found)] = i
                    hits[ix(2 * found + 1)] = a
                    found += 1
        first = tables[ix(offsets[ix(PASSES)] + c)]
        last = tables[ix(offsets[ix(PASSES)] + c + 1)]
        for x in range(first, last):
            at = offsets[ix(PASS)] + 3 * x
            start = latest[ix(base + tables[ix(at)])]
            if start < low:
                continue
            a = tables[ix(at + 1)]
            if a >= 0:
                if not _append(logs, (s * width + a) * LOG, arena, header, row[ix(i)], start):
                    return GROW
                pending[ix(2 * waiting)] = tables[ix(offsets[ix(ARC)] + 5 * a + 1)]
                pending[ix(2 * waiting + 1)] = start
                waiting += 1
            if not _append(logs, (s * width + tables[ix(at + 2)]) * LOG, arena, header, row[ix(i)], t):
                return GROW
        for x in range(first, last):
            latest[ix(base + tables[ix(offsets[ix(PASS)] + 3 * x)])] = NEVER
        for x in range(waiting):
            d = base + pending[ix(2 * x)]
            latest[ix(d)] = max(latest[ix(d)], pending[ix(2 * x + 1)])
        header[ix(HITS)] = found
    header[ix(NEXT)] = slot.size
    return DONE


@kernel
def compact(logs: Ints, width: int, arena: Ints, floors: Ints, moved: Ints) -> int:
    """Copy the live entries of all logs into ``moved``, with room to double; returns the entries used there."""
    used = 0
    for log in range(logs.size // LOG):
        at = log * LOG
        offset = logs[ix(at)]
        head = logs[ix(at + 1)]
        tail = logs[ix(at + 2)]
        floor = floors[ix(log // width)]
        while head < tail and arena[ix(2 * (offset + head) + 1)] < floor:
            head += 1
        live = tail - head
        room = 0
        if live > 0:
            room = 4
            while room < 2 * live:
                room *= 2
        for e in range(2 * live):
            moved[ix(2 * used + e)] = arena[ix(2 * (offset + head) + e)]
        logs[ix(at)] = used
        logs[ix(at + 1)] = 0
        logs[ix(at + 2)] = live
        logs[ix(at + 3)] = room
        used += room
    return used
