"""List or count the matches that end at given events, by walking the arc logs backwards.

A depth-first walk with its stack in an array, so that it can stop anywhere (output full) and go on later. Ranges of
entries are found by binary search; a range of first events is counted without being visited.

Complexity: O(length of the output) plus O(arcs into a state x log of a log's length) per visited entry.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.cells.arclog import ARC, INTO, INTO_ARC, LOG, LOGS, RESET
from acep_approx.kernels.jit import inline, ix, kernel

Ints = npt.NDArray[np.int64]

DONE, OUT_FULL, DEEPER, PATIENCE_LOST = 0, 1, 2, 3
"""Why ``walk`` returned: all hits done; no room for the next match; the stack must grow; counting the hit at hand takes
too many steps."""

# header: hit at hand, depth of the stack, matches and events written; matches counted and steps for the hit at hand
HIT, DEPTH, MATCHES, EVENTS, TOTAL, STEPS = 0, 1, 2, 3, 4, 5

# a frame: next arc into the state, end of the arcs, arc at hand, next entry, end of the entries, events so far, row
NEXT_ARC, END_ARC, AT_ARC, ENTRY, END_ENTRY, LENGTH, BOUND = 0, 1, 2, 3, 4, 5, 6
FRAME = 7


@inline
def _first_with(arena: Ints, low: int, high: int, column: int, value: int) -> int:
    """First entry in ``low .. high`` whose column is not below ``value``."""
    while low < high:
        middle = (low + high) // 2
        if arena[ix(2 * middle + column)] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _push(stack: Ints, depth: int, tables: Ints, offsets: Ints, state: int, length: int, bound: int) -> None:
    """Open a frame for the arcs into ``state``."""
    frame = depth * FRAME
    stack[ix(frame + NEXT_ARC)] = tables[ix(offsets[ix(INTO)] + state)]
    stack[ix(frame + END_ARC)] = tables[ix(offsets[ix(INTO)] + state + 1)]
    stack[ix(frame + ENTRY)] = 0
    stack[ix(frame + END_ENTRY)] = 0
    stack[ix(frame + LENGTH)] = length
    stack[ix(frame + BOUND)] = bound


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
    patience: int,
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
    patience : int
        Negative: list the matches. Else only count them: ``out_match`` gets their number per hit, ``out_event``
        nothing, and a hit that takes more than so many steps is given up.
    out_match : int64
        Per match: hit, number of events, start (the tick of its first event).
    out_event : int64
        Per event of a match: row, label; earliest first.

    Returns
    -------
    int
        ``DONE``, ``OUT_FULL``, ``DEEPER`` or ``PATIENCE_LOST``.
    """
    only_count = patience >= 0
    width = offsets[ix(LOGS)]
    while header[ix(HIT)] < hits.size // 2:
        h = header[ix(HIT)]
        i = hits[ix(2 * h)]
        low = tick[ix(i)] - window
        base = slot[ix(i)] * width
        if header[ix(DEPTH)] == 0:
            arc = offsets[ix(ARC)] + 5 * hits[ix(2 * h + 1)]
            path[ix(0)] = row[ix(i)]
            path[ix(1)] = tables[ix(arc + 2)]
            if tables[ix(arc)] == 0:
                if not only_count:
                    m = header[ix(MATCHES)]
                    v = header[ix(EVENTS)]
                    if 3 * m + 3 > out_match.size or 2 * v + 2 > out_event.size:
                        return OUT_FULL
                    out_match[ix(3 * m)] = h
                    out_match[ix(3 * m + 1)] = 1
                    out_match[ix(3 * m + 2)] = tick[ix(i)]
                    out_event[ix(2 * v)] = path[ix(0)]
                    out_event[ix(2 * v + 1)] = path[ix(1)]
                    header[ix(MATCHES)] = m + 1
                    header[ix(EVENTS)] = v + 1
                else:
                    out_match[ix(h)] = 1
                header[ix(HIT)] = h + 1
                continue
            _push(stack, 0, tables, offsets, tables[ix(arc)], 1, row[ix(i)])
            header[ix(DEPTH)] = 1
            header[ix(TOTAL)] = 0
            header[ix(STEPS)] = 0
        while header[ix(DEPTH)] > 0:
            frame = (header[ix(DEPTH)] - 1) * FRAME
            if stack[ix(frame + ENTRY)] == stack[ix(frame + END_ENTRY)]:
                if stack[ix(frame + NEXT_ARC)] == stack[ix(frame + END_ARC)]:
                    header[ix(DEPTH)] -= 1
                    continue
                a = tables[ix(offsets[ix(INTO_ARC)] + stack[ix(frame + NEXT_ARC)])]
                stack[ix(frame + NEXT_ARC)] += 1
                log = (base + a) * LOG
                first = logs[ix(log)] + logs[ix(log + 1)]
                end = _first_with(arena, first, logs[ix(log)] + logs[ix(log + 2)], 0, stack[ix(frame + BOUND)])
                arc = offsets[ix(ARC)] + 5 * a
                reset = tables[ix(offsets[ix(RESET)] + tables[ix(arc + 1)])]
                if reset >= 0 and first < end:
                    log = (base + reset) * LOG
                    oldest = logs[ix(log)] + logs[ix(log + 1)]
                    after = _first_with(arena, oldest, logs[ix(log)] + logs[ix(log + 2)], 0, stack[ix(frame + BOUND)])
                    if after > oldest:
                        first = _first_with(arena, first, end, 0, arena[ix(2 * (after - 1))])
                first = _first_with(arena, first, end, 1, low)
                if only_count and tables[ix(arc)] == 0:
                    header[ix(TOTAL)] += end - first
                    continue
                stack[ix(frame + AT_ARC)] = arc
                stack[ix(frame + ENTRY)] = first
                stack[ix(frame + END_ENTRY)] = end
                continue
            arc = stack[ix(frame + AT_ARC)]
            entry = stack[ix(frame + ENTRY)]
            length = stack[ix(frame + LENGTH)]
            here = arena[ix(2 * entry)]
            if tables[ix(arc)] == 0:
                m = header[ix(MATCHES)]
                v = header[ix(EVENTS)]
                if 3 * m + 3 > out_match.size or 2 * (v + length) + 2 > out_event.size:
                    return OUT_FULL
                out_match[ix(3 * m)] = h
                out_match[ix(3 * m + 1)] = length + 1
                out_match[ix(3 * m + 2)] = arena[ix(2 * entry + 1)]
                out_event[ix(2 * v)] = here
                out_event[ix(2 * v + 1)] = tables[ix(arc + 2)]
                for x in range(length):
                    out_event[ix(2 * (v + 1 + x))] = path[ix(2 * (length - 1 - x))]
                    out_event[ix(2 * (v + 1 + x) + 1)] = path[ix(2 * (length - 1 - x) + 1)]
                header[ix(MATCHES)] = m + 1
                header[ix(EVENTS)] = v + 1 + length
                stack[ix(frame + ENTRY)] = entry + 1
                continue
            if (header[ix(DEPTH)] + 1) * FRAME > stack.size or 2 * length + 2 > path.size:
                return DEEPER
            header[ix(STEPS)] += 1
            if only_count and header[ix(STEPS)] > patience:
                return PATIENCE_LOST
            stack[ix(frame + ENTRY)] = entry + 1
            if tables[ix(arc + 2)] >= 0:
                path[ix(2 * length)] = here
                path[ix(2 * length + 1)] = tables[ix(arc + 2)]
                length += 1
            _push(stack, header[ix(DEPTH)], tables, offsets, tables[ix(arc)], length, here)
            header[ix(DEPTH)] += 1
        if only_count:
            out_match[ix(h)] = header[ix(TOTAL)]
        header[ix(HIT)] = h + 1
    return DONE
