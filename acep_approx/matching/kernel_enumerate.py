"""List or count the matches that end at given events, by walking the arc logs backwards.

A depth-first walk with its stack in an array, so that it can stop anywhere (output full) and go on later. Ranges of
entries are found by binary search; a range of first events is counted without being visited.

Complexity: O(length of the output) plus O(arcs into a state x log of a log's length) per visited entry.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.matching.jit import inline, kernel
from acep_approx.matching.kernel_arclog import ARC, INTO, INTO_ARC, LOG, LOGS, RESET

Ints = npt.NDArray[np.int64]

DONE, OUT_FULL, DEEPER = 0, 1, 2
"""Why ``walk`` returned: all hits done; no room for the next match; the stack must grow."""

# header: hit at hand, depth of the stack, matches written, events written, matches counted for the hit at hand
HIT, DEPTH, MATCHES, EVENTS, TOTAL = 0, 1, 2, 3, 4

# a frame: next arc into the state, end of the arcs, arc at hand, next entry, end of the entries, events so far, row
NEXT_ARC, END_ARC, AT_ARC, ENTRY, END_ENTRY, LENGTH, BOUND = 0, 1, 2, 3, 4, 5, 6
FRAME = 7


@inline
def _first_with(arena: Ints, low: int, high: int, column: int, value: int) -> int:
    """First entry in ``low .. high`` whose column is not below ``value``."""
    while low < high:
        middle = (low + high) // 2
        if arena[2 * middle + column] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _push(stack: Ints, depth: int, tables: Ints, offsets: Ints, state: int, length: int, bound: int) -> None:
    """Open a frame for the arcs into ``state``."""
    frame = depth * FRAME
    stack[frame + NEXT_ARC] = tables[offsets[INTO] + state]
    stack[frame + END_ARC] = tables[offsets[INTO] + state + 1]
    stack[frame + ENTRY] = 0
    stack[frame + END_ENTRY] = 0
    stack[frame + LENGTH] = length
    stack[frame + BOUND] = bound


@kernel
def walk(
    hits: Ints,
    slot: Ints,
    tick: Ints,
    row: Ints,
    header: Ints,
    tables: Ints,
    offsets: Ints,
    logs: Ints,
    arena: Ints,
    stack: Ints,
    path: Ints,
    window: int,
    only_count: int,
    out_match: Ints,
    out_event: Ints,
) -> int:
    """Go on with the walk where ``header`` says it stands.

    Parameters
    ----------
    hits : int64, shape (2 h,)
        (event index, arc) pairs, as ``kernel_arclog.update`` wrote them.
    slot, tick, row : int64
        The events that ``update`` saw.
    header, stack, path : int64
        Where the walk stands; ``path`` holds (row, label) pairs, latest event first.
    only_count : int
        1: ``out_match`` gets the number of matches per hit, ``out_event`` nothing.
    out_match : int64
        Per match: hit, number of events, start (the tick of its first event).
    out_event : int64
        Per event of a match: row, label; earliest first.

    Returns
    -------
    int
        ``DONE``, ``OUT_FULL`` or ``DEEPER``.
    """
    width = offsets[LOGS]
    while header[HIT] < hits.size // 2:
        h = header[HIT]
        i = hits[2 * h]
        low = tick[i] - window
        base = slot[i] * width
        if header[DEPTH] == 0:
            arc = offsets[ARC] + 5 * hits[2 * h + 1]
            path[0] = row[i]
            path[1] = tables[arc + 2]
            if tables[arc] == 0:
                if only_count == 0:
                    m = header[MATCHES]
                    v = header[EVENTS]
                    if 3 * m + 3 > out_match.size or 2 * v + 2 > out_event.size:
                        return OUT_FULL
                    out_match[3 * m] = h
                    out_match[3 * m + 1] = 1
                    out_match[3 * m + 2] = tick[i]
                    out_event[2 * v] = path[0]
                    out_event[2 * v + 1] = path[1]
                    header[MATCHES] = m + 1
                    header[EVENTS] = v + 1
                else:
                    out_match[h] = 1
                header[HIT] = h + 1
                continue
            _push(stack, 0, tables, offsets, tables[arc], 1, row[i])
            header[DEPTH] = 1
            header[TOTAL] = 0
        while header[DEPTH] > 0:
            frame = (header[DEPTH] - 1) * FRAME
            if stack[frame + ENTRY] == stack[frame + END_ENTRY]:
                if stack[frame + NEXT_ARC] == stack[frame + END_ARC]:
                    header[DEPTH] -= 1
                    continue
                a = tables[offsets[INTO_ARC] + stack[frame + NEXT_ARC]]
                stack[frame + NEXT_ARC] += 1
                log = (base + a) * LOG
                first = logs[log] + logs[log + 1]
                end = _first_with(arena, first, logs[log] + logs[log + 2], 0, stack[frame + BOUND])
                arc = offsets[ARC] + 5 * a
                reset = tables[offsets[RESET] + tables[arc + 1]]
                if reset >= 0 and first < end:
                    log = (base + reset) * LOG
                    oldest = logs[log] + logs[log + 1]
                    after = _first_with(arena, oldest, logs[log] + logs[log + 2], 0, stack[frame + BOUND])
                    if after > oldest:
                        first = _first_with(arena, first, end, 0, arena[2 * (after - 1)])
                first = _first_with(arena, first, end, 1, low)
                if only_count == 1 and tables[arc] == 0:
                    header[TOTAL] += end - first
                    continue
                stack[frame + AT_ARC] = arc
                stack[frame + ENTRY] = first
                stack[frame + END_ENTRY] = end
                continue
            arc = stack[frame + AT_ARC]
            entry = stack[frame + ENTRY]
            length = stack[frame + LENGTH]
            here = arena[2 * entry]
            if tables[arc] == 0:
                m = header[MATCHES]
                v = header[EVENTS]
                if 3 * m + 3 > out_match.size or 2 * (v + length) + 2 > out_event.size:
                    return OUT_FULL
                out_match[3 * m] = h
                out_match[3 * m + 1] = length + 1
                out_match[3 * m + 2] = arena[2 * entry + 1]
                out_event[2 * v] = here
                out_event[2 * v + 1] = tables[arc + 2]
                for x in range(length):
                    out_event[2 * (v + 1 + x)] = path[2 * (length - 1 - x)]
                    out_event[2 * (v + 1 + x) + 1] = path[2 * (length - 1 - x) + 1]
                header[MATCHES] = m + 1
                header[EVENTS] = v + 1 + length
                stack[frame + ENTRY] = entry + 1
                continue
            if (header[DEPTH] + 1) * FRAME > stack.size or 2 * length + 2 > path.size:
                return DEEPER
            stack[frame + ENTRY] = entry + 1
            if tables[arc + 2] >= 0:
                path[2 * length] = here
                path[2 * length + 1] = tables[arc + 2]
                length += 1
            _push(stack, header[DEPTH], tables, offsets, tables[arc], length, here)
            header[DEPTH] += 1
        if only_count == 1:
            out_match[h] = header[TOTAL]
        header[HIT] = h + 1
    return DONE
