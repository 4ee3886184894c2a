"""List the matches that end at given events, by walking the arc logs backwards.

A depth-first walk with its stack in arrays, so that it can stop anywhere (output full) and go on later. All matches
that share their later events are below one frame. Its cursors stand in the logs that lead on. The latest event of all
is taken first, and first events last: so matches of one start are written in the order in which they are put out (see
``order``), but for first events of one time, or on several arcs, and for arcs that bind nothing.

Complexity: O(length of the output x arcs into a state) plus O(arcs into a state x log of the entries in the window) per
visited event.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import called, inline, ix
from acep_approx.kernels.cells.layout import (
    ARC,
    ARC_COLUMNS,
    ARC_ERR,
    ARC_LABEL,
    ARC_SOURCE,
    BEGINS,
    BINDS,
    CURSOR,
    CURSOR_ARC,
    CURSORS,
    DEPTH,
    ENTRY_COLUMNS,
    ENTRY_PLACE,
    ENTRY_START,
    EVENTS_OUT,
    FIRST_CURSOR,
    FRAME,
    GROUP,
    HAS_TIES,
    HIGH,
    HIT,
    INTO,
    INTO_ARC,
    LABEL,
    LENGTH,
    LOGS,
    LOW,
    MATCHES,
    NEXT_HIT,
    NOWHERE,
    RANGE,
    RESET,
    SILENT,
    WRITTEN_EVENTS,
    EventArrays,
    Listing,
    Logs,
    Tables,
    Walk,
)
from acep_approx.kernels.cells.ranges import Origin, entries_of, first_with, unbroken
from acep_approx.kernels.columns import LISTS, ROOM, ROOM_OF_LIST, WRITTEN, Columns, write_events
from acep_approx.kernels.order import Found, Limits, move_up, sort_found

DONE, OUT_FULL, DEEPER, COLUMNS_FULL = 0, 1, 2, 3
"""Why a kernel returned: all hits done; no room for the next match; the stack must grow; no room in the columns."""

NO_LABEL = -1
"""Before the first label."""


@inline
def _write(walk: Walk, found: Found, place: int, label: int, start: int, length: int) -> bool:
    """Write the match that begins with an event and goes on with the path; False where there is no room."""
    header, path = walk.header, walk.path
    m, v = header[ix(MATCHES)], header[ix(WRITTEN_EVENTS)]
    if m == len(found.hit) or v + length + 1 > len(found.id):
        return False
    found.hit[ix(m)] = header[ix(HIT)]
    found.start[ix(m)] = start
    found.id[ix(v)] = place
    found.bound_by[ix(v)] = label
    for x in range(length):
        found.id[ix(v + 1 + x)] = path[ix(2 * (length - 1 - x))]
        found.bound_by[ix(v + 1 + x)] = path[ix(2 * (length - 1 - x) + 1)]
    found.begin[ix(m + 1)] = v + length + 1
    header[ix(MATCHES)] = m + 1
    header[ix(WRITTEN_EVENTS)] = v + length + 1
    return True


@inline
def _lead_on(walk: Walk, origin: Origin, state: int, bound: int, tables: Tables, logs: Logs) -> None:
    """Put cursors before ``bound`` into the logs of all arcs into a state."""
    words, cursors, header = tables.words, walk.cursors, walk.header
    into = tables.offsets[ix(INTO)] + state
    reset = words[ix(tables.offsets[ix(RESET)] + state)]
    for x in range(words[ix(into)], words[ix(into + 1)]):
        a = words[ix(tables.offsets[ix(INTO_ARC)] + x)]
        first, end = entries_of(a, origin, walk.ranges, logs)
        end = first_with(logs.arena, first, end, ENTRY_PLACE, bound)
        if reset >= 0 and first < end:
            first = unbroken(reset, origin, first, end, bound, logs)
        if first < end:
            cursor, arc = header[ix(CURSORS)] * CURSOR, tables.offsets[ix(ARC)] + ARC_COLUMNS * a
            begins = words[ix(arc + ARC_SOURCE)] == 0
            cursors[ix(cursor + CURSOR_ARC)] = arc
            cursors[ix(cursor + BINDS)] = BEGINS if begins else words[ix(arc + ARC_LABEL)]
            cursors[ix(cursor + LOW)], cursors[ix(cursor + HIGH)] = first, end
            header[ix(CURSORS)] += 1


@inline
def _has_room(walk: Walk, length: int) -> bool:
    """Whether one more frame can be opened: for any states, and one more event on the path."""
    frames = FRAME * (walk.header[ix(DEPTH)] + 1)
    cursors = CURSOR * (walk.header[ix(CURSORS)] + len(walk.ranges) // RANGE)
    return bool(frames <= len(walk.frames) and cursors <= len(walk.cursors) and 2 * length + 2 <= len(walk.path))


@inline
def _open(walk: Walk, first: int, length: int) -> None:
    """Open a frame for the cursors from ``first`` on, if there are any."""
    header, frames = walk.header, walk.frames
    if header[ix(CURSORS)] > first:
        frame = header[ix(DEPTH)] * FRAME
        frames[ix(frame + FIRST_CURSOR)], frames[ix(frame + LENGTH)] = first, length
        header[ix(DEPTH)] += 1


@inline
def _latest(walk: Walk, first: int, logs: Logs) -> int:
    """Of the cursors from ``first`` on the one at the latest event, of several that with the lowest label; -1: none.

    Arcs that bind nothing come last; first events are left out.
    """
    cursors = walk.cursors
    best, place, label = -1, NOWHERE, 0
    for c in range(first, walk.header[ix(CURSORS)]):
        cursor = CURSOR * c
        own, high = cursors[ix(cursor + BINDS)], cursors[ix(cursor + HIGH)]
        if own != BEGINS and high > cursors[ix(cursor + LOW)]:
            here = NOWHERE if own == SILENT else logs.arena[ix(ENTRY_COLUMNS * (high - 1))]
            if best < 0 or here > place or (here == place and own < label):
                best, place, label = cursor, here, own
    return best


@inline
def _write_range(walk: Walk, found: Found, cursor: int, label: int, length: int, logs: Logs) -> bool:
    """Write the matches that begin with the entries of a cursor, the latest first; False where there is no room."""
    header, path, low, high = walk.header, walk.path, walk.cursors[ix(cursor + LOW)], walk.cursors[ix(cursor + HIGH)]
    hit, m, v = header[ix(HIT)], header[ix(MATCHES)], header[ix(WRITTEN_EVENTS)]
    while high > low and m < len(found.hit) and v + length < len(found.id):
        high -= 1
        entry = ENTRY_COLUMNS * high
        found.hit[ix(m)] = hit
        found.start[ix(m)] = logs.arena[ix(entry + ENTRY_START)]
        found.id[ix(v)] = logs.arena[ix(entry)]
        found.bound_by[ix(v)] = label
        for x in range(length):
            v += 1
            found.id[ix(v)] = path[ix(2 * (length - 1 - x))]
            found.bound_by[ix(v)] = path[ix(2 * (length - 1 - x) + 1)]
        v += 1
        m += 1
        found.begin[ix(m)] = v
    header[ix(MATCHES)], header[ix(WRITTEN_EVENTS)], walk.cursors[ix(cursor + HIGH)] = m, v, high
    return bool(high == low)


@inline
def _write_first_events(walk: Walk, found: Found, first: int, length: int, tables: Tables, logs: Logs) -> int:
    """Write the matches that begin with the entries of cursors from ``first`` on; returns ``DONE`` or ``OUT_FULL``."""
    cursors = walk.cursors
    for c in range(first, walk.header[ix(CURSORS)]):
        cursor = CURSOR * c
        if cursors[ix(cursor + BINDS)] == BEGINS:
            for entry in range(cursors[ix(cursor + LOW)] + 1, cursors[ix(cursor + HIGH)]):
                start = logs.arena[ix(ENTRY_COLUMNS * entry + ENTRY_START)]
                if start == logs.arena[ix(ENTRY_COLUMNS * (entry - 1) + ENTRY_START)]:
                    walk.header[ix(HAS_TIES)] = 1
            label = tables.words[ix(cursors[ix(cursor + CURSOR_ARC)] + ARC_LABEL)]
            if not _write_range(walk, found, cursor, label, length, logs):
                return OUT_FULL
    return DONE


@inline
def _step(walk: Walk, origin: Origin, tables: Tables, logs: Logs, found: Found) -> int:
    """Take the latest event of the last frame, and open one for what came before it.

    Where there is none left, what is left are first events: of the matches that begin with one, those with fewer events
    come later. Returns ``DONE``, or why it has not: ``OUT_FULL``, ``DEEPER``.
    """
    words, header, cursors = tables.words, walk.header, walk.cursors
    frame = (header[ix(DEPTH)] - 1) * FRAME
    first, length, end = walk.frames[ix(frame + FIRST_CURSOR)], walk.frames[ix(frame + LENGTH)], header[ix(CURSORS)]
    best = _latest(walk, first, logs)
    if best < 0:
        status = _write_first_events(walk, found, first, length, tables, logs)
        if status == DONE:
            header[ix(CURSORS)] = first
            header[ix(DEPTH)] -= 1
        return status
    if not _has_room(walk, length):
        return DEEPER
    label, place = cursors[ix(best + BINDS)], logs.arena[ix(ENTRY_COLUMNS * (cursors[ix(best + HIGH)] - 1))]
    for c in range(best // CURSOR, end):
        cursor = CURSOR * c
        high = cursors[ix(cursor + HIGH)]
        is_same = cursor == best or (label != SILENT and cursors[ix(cursor + BINDS)] == label)
        if is_same and high > cursors[ix(cursor + LOW)] and logs.arena[ix(ENTRY_COLUMNS * (high - 1))] == place:
            cursors[ix(cursor + HIGH)] = high - 1
            _lead_on(walk, origin, words[ix(cursors[ix(cursor + CURSOR_ARC)] + ARC_SOURCE)], place, tables, logs)
    if label != SILENT:
        walk.path[ix(2 * length)], walk.path[ix(2 * length + 1)] = place, label
        length += 1
    _open(walk, end, length)
    return DONE


@inline
def _begin(walk: Walk, origin: Origin, tick: int, tables: Tables, logs: Logs, found: Found) -> int:
    """Begin with the hits of an event that bind it to its next variable; returns like ``_step``.

    Behind the last variable the walk stands before the hits that come next.
    """
    words, header, hits = tables.words, walk.header, walk.hits
    label, arcs = NO_LABEL, tables.offsets[ix(ARC)]
    for h in range(header[ix(HIT)], header[ix(NEXT_HIT)]):
        own = words[ix(arcs + ARC_COLUMNS * hits[ix(2 * h + 1)] + ARC_LABEL)]
        if own > header[ix(LABEL)] and (label == NO_LABEL or own < label):
            label = own
    if label == NO_LABEL:
        header[ix(HIT)] = header[ix(NEXT_HIT)]
        return DONE
    if not _has_room(walk, 0):
        return DEEPER
    for h in range(header[ix(HIT)], header[ix(NEXT_HIT)]):
        arc = arcs + ARC_COLUMNS * hits[ix(2 * h + 1)]
        if words[ix(arc + ARC_LABEL)] == label and words[ix(arc + ARC_SOURCE)] == 0:  # the event alone is a match
            if not _write(walk, found, origin.place, label, tick, 0):
                return OUT_FULL
    for h in range(header[ix(HIT)], header[ix(NEXT_HIT)]):
        arc = arcs + ARC_COLUMNS * hits[ix(2 * h + 1)]
        if words[ix(arc + ARC_LABEL)] == label and words[ix(arc + ARC_SOURCE)] != 0:
            _lead_on(walk, origin, words[ix(arc + ARC_SOURCE)], origin.place, tables, logs)
    walk.path[ix(0)], walk.path[ix(1)] = origin.place, label
    _open(walk, 0, 1)
    header[ix(LABEL)] = label
    return DONE


@inline
def _next_group(walk: Walk, tables: Tables) -> None:
    """Find the hits that are of one event, with as many errors: their matches are put out together."""
    words, header, hits = tables.words, walk.header, walk.hits
    first, arcs = header[ix(HIT)], tables.offsets[ix(ARC)]
    err = words[ix(arcs + ARC_COLUMNS * hits[ix(2 * first + 1)] + ARC_ERR)]
    h = first + 1
    while (
        h < len(hits) // 2
        and hits[ix(2 * h)] == hits[ix(2 * first)]
        and words[ix(arcs + ARC_COLUMNS * hits[ix(2 * h + 1)] + ARC_ERR)] == err
    ):
        h += 1
    header[ix(NEXT_HIT)], header[ix(LABEL)] = h, NO_LABEL
    header[ix(GROUP)] += 1


@called
def _walk_on(events: EventArrays, window: int, tables: Tables, logs: Logs, walk: Walk, found: Found) -> int:
    """Go on with a walk where its header says it stands; returns ``DONE``, ``OUT_FULL`` or ``DEEPER``."""
    header, hits = walk.header, walk.hits
    status = DONE
    while status == DONE and header[ix(HIT)] < len(hits) // 2:
        if header[ix(NEXT_HIT)] == header[ix(HIT)]:
            _next_group(walk, tables)
        i = hits[ix(2 * header[ix(HIT)])]
        tick, slot = events.tick[ix(i)], events.slot[ix(i)]
        origin = Origin(header[ix(GROUP)], slot, slot * tables.offsets[ix(LOGS)], events.place[ix(i)], tick - window)
        if header[ix(DEPTH)] == 0:
            status = _begin(walk, origin, tick, tables, logs, found)
        while status == DONE and header[ix(DEPTH)] > 0:
            status = _step(walk, origin, tables, logs, found)
    return status


@inline
def _put_out(found: Found, order: Ints, count: int, at: Listing, out: Columns) -> None:
    """Write the first ``count`` matches of an order into columns."""
    for k in range(count):
        match = order[ix(k)]
        first, end, m = found.begin[ix(match)], found.begin[ix(match + 1)], out.header[ix(WRITTEN)]
        out.hit[ix(m)], out.start[ix(m)] = found.hit[ix(match)], found.start[ix(match)]
        if len(out.first) > 0:
            out.first[ix(m)] = found.id[ix(first)]
        if len(out.begin) > 0:
            written = out.begin[ix(m)]
            for i in range(end - first):
                out.labels[ix(written + i)] = found.bound_by[ix(first + i)]
            out.begin[ix(m + 1)] = written + end - first
        write_events(first, end, found.id, found.bound_by, at.column, out)


@inline
def _has_room_for(found: Found, out: Columns) -> bool:
    """Whether all that there is room for in ``found`` can be put out."""
    m, room, most = out.header[ix(WRITTEN)], out.header[ix(ROOM)], 0
    for c in range(out.header[ix(LISTS)]):
        most = max(most, out.offsets[ix(c * (room + 1) + m)])
    if len(out.begin) > 0 and out.begin[ix(m)] + len(found.id) > len(out.labels):
        return False
    return bool(m + len(found.hit) <= room and most + len(found.id) <= out.header[ix(ROOM_OF_LIST)])


@kernel
def list_matches(
    events: EventArrays, window: int, tables: Tables, logs: Logs, walk: Walk, found: Found, at: Listing, out: Columns
) -> int:
    """List matches in order, from where the header of the walk says it stands.

    Parameters
    ----------
    events, tables, logs, walk : records
        See ``layout``; the events and hits as ``update`` saw and wrote them.
    found : Found
        Scratch, small enough to stay in cache. The hit of a match is the first of those with its event and errors.
    at : Listing
    out : Columns
        Gets the matches. Has room for all that ``found`` has room for.

    Returns
    -------
    int
        ``DONE``, or ``COLUMNS_FULL``, ``OUT_FULL`` (``found`` has no room for the matches of one event), ``DEEPER``.
    """
    header = walk.header
    while True:
        if not _has_room_for(found, out):
            return COLUMNS_FULL
        status = _walk_on(events, window, tables, logs, walk, found)
        if status == DEEPER:
            return DEEPER
        matches = header[ix(MATCHES)]
        in_order = at.keeps_order and not header[ix(HAS_TIES)]
        limits = Limits(at.most, 1 if status == DONE else 0, 1 if in_order else 0)
        count = sort_found(found, matches, at.group, at.labels, limits, at.order)
        _put_out(found, at.order.order, count, at, out)
        header[ix(EVENTS_OUT)] += found.begin[ix(count)]
        move_up(found, count, matches)
        header[ix(MATCHES)] = matches - count
        header[ix(HAS_TIES)] = header[ix(HAS_TIES)] if matches > count else 0
        header[ix(WRITTEN_EVENTS)] = found.begin[ix(matches - count)]
        if status == DONE or count == 0:
            return status
