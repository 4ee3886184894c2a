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

from acep_approx.matching.jit import inline, kernel
from acep_approx.matching.kernel_detect import NEVER

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
    offset = logs[at]
    head = logs[at + 1]
    tail = logs[at + 2]
    room = logs[at + 3]
    if tail > head and arena[2 * (offset + tail - 1)] == row:
        return True
    if tail == room:
        floor = header[FLOOR]
        while head < tail and arena[2 * (offset + head) + 1] < floor:
            head += 1
        live = tail - head
        target = offset
        if 2 * live > room or room == 0:
            room = max(4, 2 * room)
            if 2 * (header[USED] + room) > arena.size:
                header[ASK] = room
                return False
            target = header[USED]
            header[USED] += room
        for e in range(2 * live):
            arena[2 * target + e] = arena[2 * (offset + head) + e]
        offset = target
        tail = live
        logs[at] = offset
        logs[at + 1] = 0
        logs[at + 3] = room
    arena[2 * (offset + tail)] = row
    arena[2 * (offset + tail) + 1] = value
    logs[at + 2] = tail + 1
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
    states = offsets[STATES]
    width = offsets[LOGS]
    for i in range(header[NEXT], slot.size):
        header[NEXT] = i
        s = slot[i]
        t = tick[i]
        c = cls[i]
        if s != header[SLOT]:
            header[SLOT] = s
            header[FLOOR] = t - window
        low = t - window
        base = s * states
        found = header[HITS]
        waiting = 0
        for x in range(tables[offsets[SOURCES] + c], tables[offsets[SOURCES] + c + 1]):
            at = offsets[SOURCE] + 3 * x
            d = tables[at]
            start = t if d == 0 else latest[base + d]
            if start < low:
                continue
            if tables[at + 2] == NOT_MADE:
                header[ASK] = d
                header[ASK_CLASS] = c
                return UNKNOWN
            for m in range(tables[at + 1], tables[at + 1] + tables[at + 2]):
                a = tables[offsets[MOVE] + m]
                arc = offsets[ARC] + 5 * a
                if tables[arc + 4] == 1:
                    if not _append(logs, (s * width + a) * LOG, arena, header, row[i], start):
                        return GROW
                    pending[2 * waiting] = tables[arc + 1]
                    pending[2 * waiting + 1] = start
                    waiting += 1
                if tables[arc + 3] >= 0:
                    if 2 * found + 2 > hits.size:
                        return HITS_FULL
                    hits[2 * found] = i
                    hits[2 * found + 1] = a
                    found += 1
        first = tables[offsets[PASSES] + c]
        last = tables[offsets[PASSES] + c + 1]
        for x in range(first, last):
            at = offsets[PASS] + 3 * x
            start = latest[base + tables[at]]
            if start < low:
                continue
            a = tables[at + 1]
            if a >= 0:
                if not _append(logs, (s * width + a) * LOG, arena, header, row[i], start):
                    return GROW
                pending[2 * waiting] = tables[offsets[ARC] + 5 * a + 1]
                pending[2 * waiting + 1] = start
                waiting += 1
            if not _append(logs, (s * width + tables[at + 2]) * LOG, arena, header, row[i], t):
                return GROW
        for x in range(first, last):
            latest[base + tables[offsets[PASS] + 3 * x]] = NEVER
        for x in range(waiting):
            d = base + pending[2 * x]
            latest[d] = max(latest[d], pending[2 * x + 1])
        header[HITS] = found
    header[NEXT] = slot.size
    return DONE


@kernel
def compact(logs: Ints, width: int, arena: Ints, floors: Ints, moved: Ints) -> int:
    """Copy the live entries of all logs into ``moved``, with room to double; returns the entries used there."""
    used = 0
    for log in range(logs.size // LOG):
        at = log * LOG
        offset = logs[at]
        head = logs[at + 1]
        tail = logs[at + 2]
        floor = floors[log // width]
        while head < tail and arena[2 * (offset + head) + 1] < floor:
            head += 1
        live = tail - head
        room = 0
        if live > 0:
            room = 4
            while room < 2 * live:
                room *= 2
        for e in range(2 * live):
            moved[2 * used + e] = arena[2 * (offset + head) + e]
        logs[at] = used
        logs[at + 1] = 0
        logs[at + 2] = live
        logs[at + 3] = room
        used += room
    return used
