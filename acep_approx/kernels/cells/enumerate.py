"""List the matches that end at given events, by walking the arc logs backwards.

A depth-first walk with its stack in arrays, so that it can stop anywhere (output full) and go on later. All matches
that share their later events are below one frame. Its cursors stand in the logs that lead on. The latest event of all
is taken first, and first events last: so matches of one start are written in the order in which they are put out (see
``order``), but for first events of one time, or on several arcs, and for arcs that bind nothing.

Complexity: O(length of the output x arcs into a state) plus O(arcs into a state x log of the entries in the window) per
visited event.
"""

from __future__ import annotations

from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import called, inline
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
    Logs,
    Tables,
    Walk,
)
from acep_approx.kernels.cells.ranges import Origin, entries_of, first_with, unbroken
from acep_approx.kernels.columns import Columns
from acep_approx.kernels.listing import COLUMNS_FULL, DEEPER, DONE, OUT_FULL, Listing, has_room_for, put_in_order
from acep_approx.kernels.order import Found, Limits

NO_LABEL = -1
"""Before the first label."""


@inline
def _write(walk: Walk, found: Found, place: int, label: int, start: int, length: int) -> bool:
    """Write the match that begins with an event and goes on with the path; False where there is no room."""
    header, path = walk.header, walk.path
    m, v = header[MATCHES], header[WRITTEN_EVENTS]
    if m == len(found.hit) or v + length + 1 > len(found.id):
        return False
    found.hit[m] = header[HIT]
    found.start[m] = start
    found.id[v] = place
    found.bound_by[v] = label
    for x in range(length):
        found.id[v + 1 + x] = path[2 * (length - 1 - x)]
        found.bound_by[v + 1 + x] = path[2 * (length - 1 - x) + 1]
    found.begin[m + 1] = v + length + 1
    header[MATCHES] = m + 1
    header[WRITTEN_EVENTS] = v + length + 1
    return True


@inline
def _lead_on(walk: Walk, origin: Origin, state: int, bound: int, tables: Tables, logs: Logs) -> None:
    """Put cursors before ``bound`` into the logs of all arcs into a state."""
    words, cursors, header = tables.words, walk.cursors, walk.header
    into = tables.offsets[INTO] + state
    reset = words[tables.offsets[RESET] + state]
    for x in range(words[into], words[into + 1]):
        a = words[tables.offsets[INTO_ARC] + x]
        first, end = entries_of(a, origin, walk.ranges, logs)
        end = first_with(logs.arena, first, end, ENTRY_PLACE, bound)
        if reset >= 0 and first < end:
            first = unbroken(reset, origin, first, end, bound, logs)
        if first < end:
            cursor, arc = header[CURSORS] * CURSOR, tables.offsets[ARC] + ARC_COLUMNS * a
            begins = words[arc + ARC_SOURCE] == 0
            cursors[cursor + CURSOR_ARC] = arc
            cursors[cursor + BINDS] = BEGINS if begins else words[arc + ARC_LABEL]
            cursors[cursor + LOW], cursors[cursor + HIGH] = first, end
            header[CURSORS] += 1


@inline
def _has_room(walk: Walk, length: int) -> bool:
    """Whether one more frame can be opened: for any states, and one more event on the path."""
    frames = FRAME * (walk.header[DEPTH] + 1)
    cursors = CURSOR * (walk.header[CURSORS] + len(walk.ranges) // RANGE)
    return bool(frames <= len(walk.frames) and cursors <= len(walk.cursors) and 2 * length + 2 <= len(walk.path))


@inline
def _open(walk: Walk, first: int, length: int) -> None:
    """Open a frame for the cursors from ``first`` on, if there are any."""
    header, frames = walk.header, walk.frames
    if header[CURSORS] > first:
        frame = header[DEPTH] * FRAME
        frames[frame + FIRST_CURSOR], frames[frame + LENGTH] = first, length
        header[DEPTH] += 1


@inline
def _latest(walk: Walk, first: int, logs: Logs) -> int:
    """Of the cursors from ``first`` on the one at the latest event, of several that with the lowest label; -1: none.

    Arcs that bind nothing come last; first events are left out.
    """
    cursors = walk.cursors
    best, place, label = -1, NOWHERE, 0
    for c in range(first, walk.header[CURSORS]):
        cursor = CURSOR * c
        own, high = cursors[cursor + BINDS], cursors[cursor + HIGH]
        if own != BEGINS and high > cursors[cursor + LOW]:
            here = NOWHERE if own == SILENT else logs.arena[ENTRY_COLUMNS * (high - 1)]
            if best < 0 or here > place or (here == place and own < label):
                best, place, label = cursor, here, own
    return best


@inline
def _write_range(walk: Walk, found: Found, cursor: int, label: int, length: int, logs: Logs) -> bool:
    """Write the matches that begin with the entries of a cursor, the latest first; False where there is no room."""
    header, path, low, high = walk.header, walk.path, walk.cursors[cursor + LOW], walk.cursors[cursor + HIGH]
    hit, m, v = header[HIT], header[MATCHES], header[WRITTEN_EVENTS]
    while high > low and m < len(found.hit) and v + length < len(found.id):
        high -= 1
        entry = ENTRY_COLUMNS * high
        found.hit[m] = hit
        found.start[m] = logs.arena[entry + ENTRY_START]
        found.id[v] = logs.arena[entry]
        found.bound_by[v] = label
        for x in range(length):
            v += 1
            found.id[v] = path[2 * (length - 1 - x)]
            found.bound_by[v] = path[2 * (length - 1 - x) + 1]
        v += 1
        m += 1
        found.begin[m] = v
    header[MATCHES], header[WRITTEN_EVENTS], walk.cursors[cursor + HIGH] = m, v, high
    return bool(high == low)


@inline
def _write_first_events(walk: Walk, found: Found, first: int, length: int, tables: Tables, logs: Logs) -> int:
    """Write the matches that begin with the entries of cursors from ``first`` on; returns ``DONE`` or ``OUT_FULL``."""
    cursors = walk.cursors
    for c in range(first, walk.header[CURSORS]):
        cursor = CURSOR * c
        if cursors[cursor + BINDS] == BEGINS:
            for entry in range(cursors[cursor + LOW] + 1, cursors[cursor + HIGH]):
                start = logs.arena[ENTRY_COLUMNS * entry + ENTRY_START]
                if start == logs.arena[ENTRY_COLUMNS * (entry - 1) + ENTRY_START]:
                    walk.header[HAS_TIES] = 1
            label = tables.words[cursors[cursor + CURSOR_ARC] + ARC_LABEL]
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
    frame = (header[DEPTH] - 1) * FRAME
    first, length, end = walk.frames[frame + FIRST_CURSOR], walk.frames[frame + LENGTH], header[CURSORS]
    best = _latest(walk, first, logs)
    if best < 0:
        status = _write_first_events(walk, found, first, length, tables, logs)
        if status == DONE:
            header[CURSORS] = first
            header[DEPTH] -= 1
        return status
    if not _has_room(walk, length):
        return DEEPER
    label, place = cursors[best + BINDS], logs.arena[ENTRY_COLUMNS * (cursors[best + HIGH] - 1)]
    for c in range(best // CURSOR, end):
        cursor = CURSOR * c
        high = cursors[cursor + HIGH]
        is_same = cursor == best or (label != SILENT and cursors[cursor + BINDS] == label)
        if is_same and high > cursors[cursor + LOW] and logs.arena[ENTRY_COLUMNS * (high - 1)] == place:
            cursors[cursor + HIGH] = high - 1
            _lead_on(walk, origin, words[cursors[cursor + CURSOR_ARC] + ARC_SOURCE], place, tables, logs)
    if label != SILENT:
        walk.path[2 * length], walk.path[2 * length + 1] = place, label
        length += 1
    _open(walk, end, length)
    return DONE


@inline
def _begin(walk: Walk, origin: Origin, tick: int, tables: Tables, logs: Logs, found: Found) -> int:
    """Begin with the hits of an event that bind it to its next variable; returns like ``_step``.

    Behind the last variable the walk stands before the hits that come next.
    """
    words, header, hits = tables.words, walk.header, walk.hits
    label, arcs = NO_LABEL, tables.offsets[ARC]
    for h in range(header[HIT], header[NEXT_HIT]):
        own = words[arcs + ARC_COLUMNS * hits[2 * h + 1] + ARC_LABEL]
        if own > header[LABEL] and (label == NO_LABEL or own < label):
            label = own
    if label == NO_LABEL:
        header[HIT] = header[NEXT_HIT]
        return DONE
    if not _has_room(walk, 0):
        return DEEPER
    for h in range(header[HIT], header[NEXT_HIT]):
        arc = arcs + ARC_COLUMNS * hits[2 * h + 1]
        if words[arc + ARC_LABEL] == label and words[arc + ARC_SOURCE] == 0:  # the event alone is a match
            if not _write(walk, found, origin.place, label, tick, 0):
                return OUT_FULL
    for h in range(header[HIT], header[NEXT_HIT]):
        arc = arcs + ARC_COLUMNS * hits[2 * h + 1]
        if words[arc + ARC_LABEL] == label and words[arc + ARC_SOURCE] != 0:
            _lead_on(walk, origin, words[arc + ARC_SOURCE], origin.place, tables, logs)
    walk.path[0], walk.path[1] = origin.place, label
    _open(walk, 0, 1)
    header[LABEL] = label
    return DONE


@inline
def _next_group(walk: Walk, tables: Tables) -> None:
    """Find the hits that are of one event, with as many errors: their matches are put out together."""
    words, header, hits = tables.words, walk.header, walk.hits
    first, arcs = header[HIT], tables.offsets[ARC]
    err = words[arcs + ARC_COLUMNS * hits[2 * first + 1] + ARC_ERR]
    h = first + 1
    while (
        h < len(hits) // 2
        and hits[2 * h] == hits[2 * first]
        and words[arcs + ARC_COLUMNS * hits[2 * h + 1] + ARC_ERR] == err
    ):
        h += 1
    header[NEXT_HIT], header[LABEL] = h, NO_LABEL
    header[GROUP] += 1


@called
def _walk_on(events: EventArrays, window: int, tables: Tables, logs: Logs, walk: Walk, found: Found) -> int:
    """Go on with a walk where its header says it stands; returns ``DONE``, ``OUT_FULL`` or ``DEEPER``."""
    header, hits = walk.header, walk.hits
    status = DONE
    while status == DONE and header[HIT] < len(hits) // 2:
        if header[NEXT_HIT] == header[HIT]:
            _next_group(walk, tables)
        i = hits[2 * header[HIT]]
        tick, slot = events.tick[i], events.slot[i]
        origin = Origin(header[GROUP], slot, slot * tables.offsets[LOGS], events.place[i], tick - window)
        if header[DEPTH] == 0:
            status = _begin(walk, origin, tick, tables, logs, found)
        while status == DONE and header[DEPTH] > 0:
            status = _step(walk, origin, tables, logs, found)
    return status


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
        if not has_room_for(found, out):
            return COLUMNS_FULL
        status = _walk_on(events, window, tables, logs, walk, found)
        if status == DEEPER:
            return DEEPER
        matches = header[MATCHES]
        in_order = at.keeps_order and not header[HAS_TIES]
        limits = Limits(at.most, 1 if status == DONE else 0, 1 if in_order else 0)
        bound = found.begin[matches]
        count = put_in_order(found, matches, at, limits, out)
        header[MATCHES] = matches - count
        header[HAS_TIES] = header[HAS_TIES] if matches > count else 0
        header[WRITTEN_EVENTS] = found.begin[matches - count]
        header[EVENTS_OUT] += bound - header[WRITTEN_EVENTS]
        if status == DONE or count == 0:
            return status
