"""Arc logs: everything that is needed to list the matches, kept without listing them.

Each arc of the determinised automaton has a log per key. An event that is bound on the arc from ``d`` appends
``(place, latest start of a run at d)``. Both columns only grow, so the entries that still lie in a window are one
contiguous range, and walking back from a match point lists every match once, with work linear in the output.

A state with guards is emptied when a letter of the guard passes: its runs move, by an arc that binds nothing, to the
state without those guards, and the place is noted in the state's *reset log*. Entries of such a state are sorted
between two resets, and only those since the last reset before the current place are visible.

Source: arc logs generalise the active instance stacks of SASE (Wu et al., SIGMOD 2006, which Li and Ge, PVLDB 10(4)
2016, section 3.1 take up as match trajectories) to any regular pattern with errors; the latest start is pruned as in
CORE (PVLDB 15(9) 2022). Log layout, guards and errors are ours. Oracle: ``tests/naive.py``.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.cells.detect import NEVER
from acep_approx.kernels.cells.layout import (
    ARC,
    ARC_COLUMNS,
    ARC_ERR,
    ARC_KEEPS,
    ARC_TARGET,
    ASK,
    ASK_CLASS,
    END,
    ENTRY_COLUMNS,
    ENTRY_START,
    FIRST,
    FIRST_MOVE,
    FLOOR,
    HEAD_COLUMNS,
    HITS,
    LOGS,
    MOVE,
    MOVES,
    NEXT,
    NOT_MADE,
    OFFSET,
    PASS,
    PASS_ARC,
    PASS_COLUMNS,
    PASS_RESET,
    PASS_STATE,
    PASSES,
    ROOM,
    SLOT,
    SOURCE,
    SOURCE_COLUMNS,
    SOURCE_STATE,
    SOURCES,
    STATES,
    USED,
    EventArrays,
    Logs,
    Tables,
    Update,
)

DONE, UNKNOWN, GROW, HITS_FULL = 0, 1, 2, 3
"""Why ``update`` returned: all events done; a move is not made yet; the arena is full; the hit list is full."""


@inline
def _append(logs: Logs, at: int, header: Ints, place: int, value: int) -> bool:
    """Append ``(place, value)`` to the log at ``at``; False where the arena is full. Repeating it changes nothing."""
    heads, arena = logs.heads, logs.arena
    offset = heads[at + OFFSET]
    head = heads[at + FIRST]
    tail = heads[at + END]
    room = heads[at + ROOM]
    before = NEVER
    if tail > head:
        last = ENTRY_COLUMNS * (offset + tail - 1)
        if arena[last] == place:
            return True
        before = arena[last + ENTRY_START]
    if tail == room:
        floor = header[FLOOR]
        while head < tail and arena[ENTRY_COLUMNS * (offset + head) + ENTRY_START] < floor:
            head += 1
        live = tail - head
        target = offset
        if 2 * live > room or room == 0:
            room = max(4, 2 * room)
            if ENTRY_COLUMNS * (header[USED] + room) > len(arena):
                header[ASK] = room
                return False
            target = header[USED]
            header[USED] += room
        for e in range(ENTRY_COLUMNS * live):
            arena[ENTRY_COLUMNS * target + e] = arena[ENTRY_COLUMNS * (offset + head) + e]
        offset = target
        tail = live
        heads[at + OFFSET] = offset
        heads[at + FIRST] = 0
        heads[at + ROOM] = room
    arena[ENTRY_COLUMNS * (offset + tail)] = place
    arena[ENTRY_COLUMNS * (offset + tail) + ENTRY_START] = value
    if before > value:  # a state that was reset is reached by an older run
        arena[ENTRY_COLUMNS * (offset + tail) + ENTRY_START] = before
    heads[at + END] = tail + 1
    return True


@inline
def _move(event: int, events: EventArrays, low: int, tables: Tables, latest: Ints, logs: Logs, at: Update) -> int:
    """Bind an event on every arc that a run can take with it.

    Returns how many runs wait to be entered, or less than 0: why it stopped (``-UNKNOWN``, ``-GROW``, ``-HITS_FULL``).
    """
    words, offsets, header = tables.words, tables.offsets, at.header
    tick, cls, place = events.tick[event], events.cls[event], events.place[event]
    base, log = events.slot[event] * offsets[STATES], events.slot[event] * offsets[LOGS]
    waiting, found = 0, header[HITS]
    for x in range(words[offsets[SOURCES] + cls], words[offsets[SOURCES] + cls + 1]):
        source = offsets[SOURCE] + SOURCE_COLUMNS * x
        state = words[source + SOURCE_STATE]
        start = tick if state == 0 else latest[base + state]
        if start < low:
            continue
        moves = words[source + MOVES]
        if moves == NOT_MADE:
            header[ASK], header[ASK_CLASS] = state, cls
            return -UNKNOWN
        first = words[source + FIRST_MOVE]
        for m in range(first, first + moves):
            a = words[offsets[MOVE] + m]
            arc = offsets[ARC] + ARC_COLUMNS * a
            if words[arc + ARC_KEEPS] == 1:
                if not _append(logs, (log + a) * HEAD_COLUMNS, header, place, start):
                    return -GROW
                at.pending[2 * waiting], at.pending[2 * waiting + 1] = words[arc + ARC_TARGET], start
                waiting += 1
            if words[arc + ARC_ERR] >= 0:
                if 2 * found + 2 > len(at.hits):
                    return -HITS_FULL
                at.hits[2 * found], at.hits[2 * found + 1] = event, a
                found += 1
    header[HITS] = found
    return waiting


@inline
def _pass(
    event: int, events: EventArrays, low: int, tables: Tables, latest: Ints, logs: Logs, at: Update, waiting: int
) -> int:
    """Move the runs whose guards an event breaks; returns like ``_move``."""
    words, offsets = tables.words, tables.offsets
    passes = offsets[PASSES] + events.cls[event]
    first, last = words[passes], words[passes + 1]
    if first == last:
        return waiting
    slot, place = events.slot[event], events.place[event]
    base, log = slot * offsets[STATES], slot * offsets[LOGS]
    for x in range(first, last):
        broken = offsets[PASS] + PASS_COLUMNS * x
        start = latest[base + words[broken + PASS_STATE]]
        if start < low:
            continue
        a = words[broken + PASS_ARC]
        if a >= 0:
            if not _append(logs, (log + a) * HEAD_COLUMNS, at.header, place, start):
                return -GROW
            at.pending[2 * waiting] = words[offsets[ARC] + ARC_COLUMNS * a + ARC_TARGET]
            at.pending[2 * waiting + 1] = start
            waiting += 1
        reset = (log + words[broken + PASS_RESET]) * HEAD_COLUMNS
        if not _append(logs, reset, at.header, place, events.tick[event]):
            return -GROW
    for x in range(first, last):
        latest[base + words[offsets[PASS] + PASS_COLUMNS * x + PASS_STATE]] = NEVER
    return waiting


@kernel
def update(events: EventArrays, window: int, tables: Tables, latest: Ints, logs: Logs, at: Update) -> int:
    """Run events through the logs, from ``at.header[NEXT]`` on.

    Parameters
    ----------
    events, tables, logs : records
        See ``layout``; the tables as ``arclogs`` makes them.
    window : int
    latest : int64
        Per slot and state the latest start of a run there; changed in place.
    at : Update
        Where the kernel stands; it can be called again after each return. There is room for two pending runs for each
        move of an event.

    Returns
    -------
    int
        ``DONE``, ``UNKNOWN`` (make the moves of state ``header[ASK]`` over class ``header[ASK_CLASS]``),
        ``GROW`` (the arena wants ``header[ASK]`` more entries), ``HITS_FULL``.

    Notes
    -----
    An event is either done or can be done again: appends are idempotent, its hits are taken back, everything else is
    written at its end.
    Complexity: O(live states with a move + appends) per event, appends amortised.
    """
    header = at.header
    for i in range(header[NEXT], len(events.slot)):
        header[NEXT] = i
        slot = events.slot[i]
        low = events.tick[i] - window
        if slot != header[SLOT]:
            header[SLOT], header[FLOOR] = slot, low
        found = header[HITS]
        waiting = _move(i, events, low, tables, latest, logs, at)
        if waiting >= 0:
            waiting = _pass(i, events, low, tables, latest, logs, at, waiting)
        if waiting < 0:
            header[HITS] = found
            return -waiting
        base = slot * tables.offsets[STATES]
        for x in range(waiting):
            entered = base + at.pending[2 * x]
            latest[entered] = max(latest[entered], at.pending[2 * x + 1])
    header[NEXT] = len(events.slot)
    return DONE


@kernel
def compact(logs: Logs, width: int, floors: Ints, moved: Ints) -> int:
    """Copy the live entries of all logs into ``moved``, with room to double; returns the entries used there."""
    heads, arena = logs.heads, logs.arena
    used = 0
    for log in range(len(heads) // HEAD_COLUMNS):
        at = log * HEAD_COLUMNS
        offset, head, tail = heads[at + OFFSET], heads[at + FIRST], heads[at + END]
        floor = floors[log // width]
        while head < tail and arena[ENTRY_COLUMNS * (offset + head) + ENTRY_START] < floor:
            head += 1
        live = tail - head
        room = 0
        if live > 0:
            room = 4
            while room < 2 * live:
                room *= 2
        for e in range(ENTRY_COLUMNS * live):
            moved[ENTRY_COLUMNS * used + e] = arena[ENTRY_COLUMNS * (offset + head) + e]
        heads[at + OFFSET], heads[at + FIRST], heads[at + END] = used, 0, live
        heads[at + ROOM] = room
        used += room
    return used
