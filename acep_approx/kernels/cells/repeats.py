"""List the matches of a sequence whose variables come in order, and of which some repeat: ``SEQ(A a, B+ b[], C c)``.

As in ``chains`` the outermost loop goes over first events, the latest first, and matches are written where they stay.
How many events a match has is not known beforehand, so what lies inside is a stack with a frame for each event, from
the last one back. Before an event that is bound to a variable comes one that is bound to the variable before, or, where
it repeats, to the same. The later of both comes first.

Only the logs of the arcs that lead on to the next variable are read. What may stand at a repetition may also begin it,
so of the events that the first one leads to every choice is a match. Where a frame takes an event of its own variable
all later ones of the variable before have been taken, so what is left of these is known, and nothing is looked for.

Complexity: O(length of the output), plus O(log of the entries in the window) per event that leads to another variable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.cells.chains import (
    CHAIN_HIT,
    DEPTH,
    FIRSTS_END,
    HAS_BEGUN,
    LEVEL_COLUMNS,
    LEVEL_END,
    REACHED,
    Chain,
    begin_hit,
    next_firsts,
)
from acep_approx.kernels.cells.layout import ENTRY_COLUMNS, ENTRY_PLACE, ENTRY_START, NOWHERE, EventArrays, Logs
from acep_approx.kernels.cells.ranges import first_with
from acep_approx.kernels.columns import ROOM, ROOM_OF_LIST, WRITTEN, Columns

DONE, COLUMNS_FULL, DEEPER = 0, 1, 2
"""Why ``list_repeats`` returned: all hits done; no room in the columns; there must be room for more frames."""


class Stack(NamedTuple):
    """Frames, from the last event back; per level whether it repeats, the frame of its last event, and its column.

    Columns are those of single events from 0 on, of lists from -1 on downwards.
    """

    frames: Ints
    repeats: Ints
    entered: Ints
    column: Ints


# a frame: the place of its event; its level; the end of those entries of this level, and of the one below, that are
# left to come before it
FRAME_PLACE, FRAME_LEVEL, OWN, BELOW, FRAME_COLUMNS = 0, 1, 2, 3, 4


@inline
def _push(chain: Chain, stack: Stack, d: int, place: int, own: int, below: int) -> None:
    """Open a frame for an event of level ``d``."""
    depth = chain.header[DEPTH]
    frames, frame = stack.frames, FRAME_COLUMNS * depth
    if depth == 0 or frames[frame - FRAME_COLUMNS + FRAME_LEVEL] != d:
        stack.entered[d] = depth
    frames[frame + FRAME_PLACE], frames[frame + FRAME_LEVEL] = place, d
    frames[frame + OWN] = own if stack.repeats[d] else chain.levels[LEVEL_COLUMNS * d + REACHED]
    frames[frame + BELOW] = below
    chain.header[DEPTH] = depth + 1


@inline
def _begin_frames(chain: Chain, stack: Stack, logs: Logs) -> bool:
    """Open the frame of the last event for the next first events; False: none is left."""
    if not next_firsts(chain, logs):
        return False
    last, levels = len(chain.path) - 1, chain.levels
    below = levels[LEVEL_COLUMNS * (last - 1) + LEVEL_END] if last > 1 else chain.header[FIRSTS_END]
    _push(chain, stack, last, chain.path[last], levels[LEVEL_COLUMNS * last + LEVEL_END], below)
    return True


@inline
def _write(chain: Chain, stack: Stack, first: int, start: int, out: Columns) -> bool:
    """Write the match of all frames, with its first event; False where there is no room."""
    m, room, room_of_list = out.header[WRITTEN], out.header[ROOM], out.header[ROOM_OF_LIST]
    if m == room:
        return False
    end = chain.header[DEPTH]
    for d in range(1, len(chain.path)):
        begin, c = stack.entered[d], stack.column[d]
        if c >= 0:
            out.single[c * room + m] = stack.frames[FRAME_COLUMNS * begin + FRAME_PLACE]
        else:
            last = stack.entered[d - 1] if d > 1 else end
            at = (-1 - c) * (room + 1) + m
            written = np.int64(out.offsets[at])
            if written + last - begin > room_of_list:
                return False
            out.offsets[at + 1] = written + last - begin
            to = (-1 - c) * room_of_list + written
            for x in range(last - begin):
                out.values[to + x] = stack.frames[FRAME_COLUMNS * (last - 1 - x) + FRAME_PLACE]
    out.single[stack.column[0] * room + m] = first
    out.hit[m], out.start[m] = chain.header[CHAIN_HIT], start
    if len(out.first) > 0:
        out.first[m] = first
    out.header[WRITTEN] = m + 1
    return True


@inline
def _step(chain: Chain, stack: Stack, logs: Logs, out: Columns) -> int:
    """Take what comes next before the event of the last frame; returns ``DONE``, ``COLUMNS_FULL`` or ``DEEPER``."""
    frames, levels, arena = stack.frames, chain.levels, logs.arena
    depth = chain.header[DEPTH]
    frame = FRAME_COLUMNS * (depth - 1)
    d, own, below = frames[frame + FRAME_LEVEL], frames[frame + OWN], frames[frame + BELOW]
    level = LEVEL_COLUMNS * d
    own_place = below_place = NOWHERE
    if own > levels[level + REACHED]:
        own_place = arena[ENTRY_COLUMNS * (own - 1) + ENTRY_PLACE]
    if below > levels[level - LEVEL_COLUMNS + REACHED]:
        below_place = arena[ENTRY_COLUMNS * (below - 1) + ENTRY_PLACE]
    if own_place == NOWHERE and below_place == NOWHERE:
        chain.header[DEPTH] = depth - 1
    elif d == 1 and below_place >= own_place:
        if not _write(chain, stack, below_place, arena[ENTRY_COLUMNS * (below - 1) + ENTRY_START], out):
            return COLUMNS_FULL
        frames[frame + BELOW] = below - 1
    elif FRAME_COLUMNS * (depth + 1) > len(frames):
        return DEEPER
    elif below_place >= own_place:
        frames[frame + BELOW] = below - 1
        deeper = level - 2 * LEVEL_COLUMNS
        end = levels[deeper + LEVEL_END] if d > 2 else chain.header[FIRSTS_END]
        left = first_with(arena, levels[deeper + REACHED], end, ENTRY_PLACE, below_place)
        _push(chain, stack, d - 1, below_place, below - 1, left)
    else:
        frames[frame + OWN] = own - 1
        _push(chain, stack, d, own_place, own - 1, below)
    return DONE


@kernel
def list_repeats(
    events: EventArrays, window: int, width: int, logs: Logs, chain: Chain, stack: Stack, out: Columns
) -> int:
    """List the matches of a chain with repetitions in order, from where its header says it stands.

    Parameters
    ----------
    events : EventArrays
        As ``update`` saw them.
    window : int
    width : int
        Logs of each key slot.
    logs : Logs
    chain : Chain
        The hits as ``update`` wrote them, several of one event where the last variable repeats. Logs are those of the
        arcs that lead on to the next variable, levels are as many as variables; ranges are scratch, and of the
        path only the last event is used.
    stack : Stack
    out : Columns
        One for each variable; the first does not repeat. The hit of a match is the first of its event.

    Returns
    -------
    int
        ``DONE``, ``COLUMNS_FULL`` or ``DEEPER``.
    """
    header, hits = chain.header, chain.hits
    while header[CHAIN_HIT] < len(hits) // 2:
        if header[HAS_BEGUN] == 0:
            begin_hit(chain, events, window, width, logs)
        while header[DEPTH] > 0 or _begin_frames(chain, stack, logs):
            status = _step(chain, stack, logs, out)
            if status != DONE:
                return status
        header[HAS_BEGUN], i = 0, hits[2 * header[CHAIN_HIT]]
        while header[CHAIN_HIT] < len(hits) // 2 and hits[2 * header[CHAIN_HIT]] == i:
            header[CHAIN_HIT] += 1
    return DONE
