"""List or count the matches that end at given events, by walking the arc logs backwards.

A depth-first walk with its stack in an array, so that it can stop anywhere (output full) and go on later. Ranges of
entries are found by binary search; a range of first events is counted without being visited.

Complexity: O(length of the output) plus O(arcs into a state x log of a log's length) per visited entry.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.kernels.cells.layout import (
    ARC,
    ARC_COLUMNS,
    ARC_LABEL,
    ARC_SOURCE,
    ARC_TARGET,
    AT_ARC,
    BOUND,
    DEPTH,
    END,
    END_ARC,
    END_ENTRY,
    ENTRY,
    ENTRY_COLUMNS,
    ENTRY_PLACE,
    ENTRY_START,
    FIRST,
    FRAME,
    HEAD_COLUMNS,
    HIT,
    INTO,
    INTO_ARC,
    LENGTH,
    LOGS,
    MATCHES,
    NEXT_ARC,
    OFFSET,
    RESET,
    STEPS,
    TOTAL,
    WRITTEN,
    EventArrays,
    Logs,
    Tables,
    Walk,
)
from acep_approx.kernels.jit import inline, ix, kernel
from acep_approx.kernels.order import (
    BOUND_BY,
    EVENT_COLUMNS,
    MATCH_COLUMNS,
    MATCH_LENGTH,
    MATCH_START,
    Found,
)

DONE, OUT_FULL, DEEPER, PATIENCE_LOST = 0, 1, 2, 3
"""Why ``walk`` returned: all hits done; no room for the next match; the stack must grow; counting the hit at hand takes
too many steps."""


@inline
def _first_with(arena: Ints, low: int, high: int, column: int, value: int) -> int:
    """First entry in ``low .. high`` whose column is not below ``value``."""
    while low < high:
        middle = (low + high) // 2
        if arena[ix(ENTRY_COLUMNS * middle + column)] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _push(walk: Walk, tables: Tables, state: int, length: int, bound: int) -> None:
    """Open a frame for the arcs into ``state``."""
    stack, frame = walk.stack, walk.header[ix(DEPTH)] * FRAME
    into = tables.offsets[ix(INTO)] + state
    stack[ix(frame + NEXT_ARC)] = tables.words[ix(into)]
    stack[ix(frame + END_ARC)] = tables.words[ix(into + 1)]
    stack[ix(frame + ENTRY)] = 0
    stack[ix(frame + END_ENTRY)] = 0
    stack[ix(frame + LENGTH)] = length
    stack[ix(frame + BOUND)] = bound
    walk.header[ix(DEPTH)] += 1


@inline
def _write(walk: Walk, found: Found, place: int, label: int, start: int, length: int) -> bool:
    """Write the match that begins with an event and goes on with the path; False where there is no room."""
    header, path, events = walk.header, walk.path, found.events
    m, v = header[ix(MATCHES)], header[ix(WRITTEN)]
    if MATCH_COLUMNS * (m + 1) > found.matches.size or EVENT_COLUMNS * (v + length + 1) > events.size:
        return False
    found.matches[ix(MATCH_COLUMNS * m)] = header[ix(HIT)]
    found.matches[ix(MATCH_COLUMNS * m + MATCH_LENGTH)] = length + 1
    found.matches[ix(MATCH_COLUMNS * m + MATCH_START)] = start
    events[ix(EVENT_COLUMNS * v)] = place
    events[ix(EVENT_COLUMNS * v + BOUND_BY)] = label
    for x in range(length):
        events[ix(EVENT_COLUMNS * (v + 1 + x))] = path[ix(2 * (length - 1 - x))]
        events[ix(EVENT_COLUMNS * (v + 1 + x) + BOUND_BY)] = path[ix(2 * (length - 1 - x) + 1)]
    header[ix(MATCHES)] = m + 1
    header[ix(WRITTEN)] = v + 1 + length
    return True


@inline
def _take_arc(walk: Walk, frame: int, base: int, low: int, tables: Tables, logs: Logs, only_count: bool) -> None:
    """Go to the next arc into the state of a frame, and find its entries: before the place, in the window, not broken.

    Where matches are only counted, those that an arc from the start begins are so many, and none is visited.
    """
    words, offsets, heads, stack = tables.words, tables.offsets, logs.heads, walk.stack
    a = words[ix(offsets[ix(INTO_ARC)] + stack[ix(frame + NEXT_ARC)])]
    stack[ix(frame + NEXT_ARC)] += 1
    bound = stack[ix(frame + BOUND)]
    head = (base + a) * HEAD_COLUMNS
    first = heads[ix(head + OFFSET)] + heads[ix(head + FIRST)]
    end = _first_with(logs.arena, first, heads[ix(head + OFFSET)] + heads[ix(head + END)], ENTRY_PLACE, bound)
    arc = offsets[ix(ARC)] + ARC_COLUMNS * a
    reset = words[ix(offsets[ix(RESET)] + words[ix(arc + ARC_TARGET)])]
    if reset >= 0 and first < end:
        head = (base + reset) * HEAD_COLUMNS
        oldest = heads[ix(head + OFFSET)] + heads[ix(head + FIRST)]
        after = _first_with(logs.arena, oldest, heads[ix(head + OFFSET)] + heads[ix(head + END)], ENTRY_PLACE, bound)
        if after > oldest:
            broken = logs.arena[ix(ENTRY_COLUMNS * (after - 1))]
            first = _first_with(logs.arena, first, end, ENTRY_PLACE, broken)
    first = _first_with(logs.arena, first, end, ENTRY_START, low)
    if only_count and words[ix(arc + ARC_SOURCE)] == 0:
        walk.header[ix(TOTAL)] += end - first
        return
    stack[ix(frame + AT_ARC)] = arc
    stack[ix(frame + ENTRY)] = first
    stack[ix(frame + END_ENTRY)] = end


@inline
def _take_entry(walk: Walk, frame: int, tables: Tables, logs: Logs, found: Found, patience: int) -> int:
    """Write the match that begins with the next entry of a frame, or go on to what came before it.

    Returns ``DONE``, or why it has not: ``OUT_FULL``, ``DEEPER``, ``PATIENCE_LOST``.
    """
    words, header, stack = tables.words, walk.header, walk.stack
    arc, entry, length = stack[ix(frame + AT_ARC)], stack[ix(frame + ENTRY)], stack[ix(frame + LENGTH)]
    place, label = logs.arena[ix(ENTRY_COLUMNS * entry)], words[ix(arc + ARC_LABEL)]
    if words[ix(arc + ARC_SOURCE)] == 0:
        if not _write(walk, found, place, label, logs.arena[ix(ENTRY_COLUMNS * entry + ENTRY_START)], length):
            return OUT_FULL
        stack[ix(frame + ENTRY)] = entry + 1
        return DONE
    if (header[ix(DEPTH)] + 1) * FRAME > stack.size or 2 * length + 2 > walk.path.size:
        return DEEPER
    header[ix(STEPS)] += 1
    if 0 <= patience < header[ix(STEPS)]:
        return PATIENCE_LOST
    stack[ix(frame + ENTRY)] = entry + 1
    if label >= 0:
        walk.path[ix(2 * length)] = place
        walk.path[ix(2 * length + 1)] = label
        length += 1
    _push(walk, tables, words[ix(arc + ARC_SOURCE)], length, place)
    return DONE


@kernel
def walk(events: EventArrays, window: int, tables: Tables, logs: Logs, walk: Walk, found: Found, patience: int) -> int:
    """Go on with a walk where its header says it stands.

    Parameters
    ----------
    events, tables, logs, walk : records
        See ``layout``; the events and hits as ``update`` saw and wrote them.
    found : Found
        Per match its hit, number of events, and start (the tick of its first event); of the events place and label.
    patience : int
        Negative: list the matches. Else only count them: ``found.matches`` gets their number per hit, ``found.events``
        nothing, and a hit that takes more than so many steps is given up.

    Returns
    -------
    int
        ``DONE``, ``OUT_FULL``, ``DEEPER`` or ``PATIENCE_LOST``.
    """
    only_count = patience >= 0
    header, hits, words = walk.header, walk.hits, tables.words
    while header[ix(HIT)] < hits.size // 2:
        hit = header[ix(HIT)]
        i = hits[ix(2 * hit)]
        tick, place = events.tick[ix(i)], events.place[ix(i)]
        if header[ix(DEPTH)] == 0:
            arc = tables.offsets[ix(ARC)] + ARC_COLUMNS * hits[ix(2 * hit + 1)]
            source, label = words[ix(arc + ARC_SOURCE)], words[ix(arc + ARC_LABEL)]
            header[ix(TOTAL)] = 1 if source == 0 else 0  # the event alone is a match
            header[ix(STEPS)] = 0
            if source != 0:
                walk.path[ix(0)], walk.path[ix(1)] = place, label
                _push(walk, tables, source, 1, place)
            elif not only_count and not _write(walk, found, place, label, tick, 0):
                return OUT_FULL
        base = events.slot[ix(i)] * tables.offsets[ix(LOGS)]
        while header[ix(DEPTH)] > 0:
            frame = (header[ix(DEPTH)] - 1) * FRAME
            if walk.stack[ix(frame + ENTRY)] < walk.stack[ix(frame + END_ENTRY)]:
                status = _take_entry(walk, frame, tables, logs, found, patience)
                if status != DONE:
                    return status
            elif walk.stack[ix(frame + NEXT_ARC)] < walk.stack[ix(frame + END_ARC)]:
                _take_arc(walk, frame, base, tick - window, tables, logs, only_count)
            else:
                header[ix(DEPTH)] -= 1
        if only_count:
            found.matches[ix(hit)] = header[ix(TOTAL)]
        header[ix(HIT)] = hit + 1
    return DONE
