"""List the matches of a plain sequence: every match has every variable once, in order, and nothing else.

Such an automaton is a chain, and its logs are the levels of a nest of loops. The start of a match comes first in the
order in which matches are put out. So the outermost loop goes over first events, the latest first; then come the events
from the last one back. Matches are written into their columns where they stay, and nothing is sorted.

There are no dead ends. Of two runs at a state of a chain the one that started earlier can do all that the other can. So
all first events in the window that are not later than the latest start have a match, and so do all entries of a level
whose latest start is not earlier than the first event at hand.

Complexity: O(length of the output), plus O(variables x log of the entries in the window) per loop that is begun.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.cells.layout import ENTRY_COLUMNS, ENTRY_PLACE, ENTRY_START, EventArrays, Logs
from acep_approx.kernels.cells.ranges import Origin, entries_of, first_with
from acep_approx.kernels.columns import ROOM, WRITTEN, Columns

DONE, COLUMNS_FULL = 0, 1
"""Why ``list_chains`` returned: all hits done; no room in the columns."""


class Chain(NamedTuple):
    """Where the loops stand: hits, header, per variable but the last its log, its level and its event, log ranges."""

    hits: Ints
    header: Ints
    logs: Ints
    levels: Ints
    path: Ints
    ranges: Ints


# header of a chain: hit at hand; whether its loops have begun; first events of the current time, the first and the end;
# the current level, -1 where the first events of another time are to be taken; the same as frames (see ``repeats``)
CHAIN_HIT, HAS_BEGUN, FIRSTS, FIRSTS_END, LEVEL, DEPTH, CHAIN_HEADER = 0, 1, 2, 3, 4, 5, 6

# a level: the entries of its log in the window, the first and the end; first of those that the first events lead to;
# the end of those that are left before the event of the level above, or the current entry
LEVEL_FIRST, LEVEL_END, REACHED, LEFT, LEVEL_COLUMNS = 0, 1, 2, 3, 4


@inline
def begin_hit(chain: Chain, events: EventArrays, window: int, width: int, logs: Logs) -> None:
    """Find the entries of all levels that lie in the window of the current hit, and where first events begin."""
    header, levels, below = chain.header, chain.levels, LEVEL_COLUMNS * (len(chain.path) - 2)
    i = chain.hits[2 * header[CHAIN_HIT]]
    slot, place, low = events.slot[i], events.place[i], events.tick[i] - window
    origin = Origin(header[CHAIN_HIT] + 1, slot, slot * width, place, low)
    chain.path[len(chain.path) - 1] = place
    for d in range(len(chain.logs)):
        level = LEVEL_COLUMNS * d
        first, end = entries_of(chain.logs[d], origin, chain.ranges, logs)
        levels[level + LEVEL_FIRST], levels[level + LEVEL_END], levels[level + REACHED] = first, end, end
    first, end = levels[LEVEL_FIRST], levels[LEVEL_END]
    if below > 0:
        newest = logs.arena[ENTRY_COLUMNS * (levels[below + LEVEL_END] - 1) + ENTRY_START]
        end = first_with(logs.arena, first, end, ENTRY_START, newest + 1)
    header[FIRSTS], header[LEVEL], header[DEPTH], header[HAS_BEGUN] = end, -1, 0, 1


@inline
def next_firsts(chain: Chain, logs: Logs) -> bool:
    """Take the first events of the next earlier time, and reach what they lead to; False: none is left."""
    header, levels, arena = chain.header, chain.levels, logs.arena
    end = header[FIRSTS]
    if end == levels[LEVEL_FIRST]:
        return False
    start, first = arena[ENTRY_COLUMNS * (end - 1) + ENTRY_START], end - 1
    while first > levels[LEVEL_FIRST] and arena[ENTRY_COLUMNS * (first - 1) + ENTRY_START] == start:
        first -= 1
    header[FIRSTS], header[FIRSTS_END] = first, end
    levels[REACHED] = first
    for d in range(1, len(chain.logs)):
        level = LEVEL_COLUMNS * d
        reached, lowest = levels[level + REACHED], levels[level + LEVEL_FIRST]
        while reached > lowest and arena[ENTRY_COLUMNS * (reached - 1) + ENTRY_START] >= start:
            reached -= 1
        levels[level + REACHED] = reached
    return True


@inline
def _begin_loops(chain: Chain, logs: Logs) -> bool:
    """Let the outermost loop begin for the next first events; False: none is left."""
    if not next_firsts(chain, logs):
        return False
    header, levels, last = chain.header, chain.levels, len(chain.logs) - 1
    level = LEVEL_COLUMNS * last
    levels[level + LEFT] = levels[level + LEVEL_END] if last > 0 else header[FIRSTS_END]
    chain.path[0] = logs.arena[ENTRY_COLUMNS * header[FIRSTS] + ENTRY_PLACE]
    header[LEVEL] = last
    return True


@inline
def _write(chain: Chain, lowest: int, logs: Logs, out: Columns) -> bool:
    """Write the matches that differ in the event of the lowest level alone; False where there is no room for all."""
    level, m, room = LEVEL_COLUMNS * lowest, out.header[WRITTEN], out.header[ROOM]
    left, reached = chain.levels[level + LEFT], chain.levels[level + REACHED]
    hit, events = chain.header[CHAIN_HIT], len(chain.logs) + 1
    start = logs.arena[ENTRY_COLUMNS * chain.header[FIRSTS] + ENTRY_START]
    while left > reached and m < room:
        left -= 1
        chain.path[lowest] = logs.arena[ENTRY_COLUMNS * left + ENTRY_PLACE]
        out.hit[m], out.start[m] = hit, start
        for d in range(events):
            out.single[d * room + m] = chain.path[d]
        if len(out.first) > 0:
            out.first[m] = chain.path[0]
        m += 1
    chain.levels[level + LEFT] = left
    out.header[WRITTEN] = m
    return bool(left == reached)


@inline
def _write_firsts(chain: Chain, logs: Logs, out: Columns) -> bool:
    """Write the matches that begin with the first events at hand; False where there is no room for all.

    One first event stands outside the loops; of several at one time each is tried in the innermost.
    """
    header, levels, last = chain.header, chain.levels, len(chain.logs) - 1
    lowest = 1 if last > 0 and header[FIRSTS_END] == header[FIRSTS] + 1 else 0
    d = header[LEVEL]
    while d <= last:
        level = LEVEL_COLUMNS * d
        if d == lowest:
            if not _write(chain, lowest, logs, out):
                header[LEVEL] = d
                return False
            d += 1
        elif levels[level + LEFT] == levels[level + REACHED]:
            d += 1
        else:
            levels[level + LEFT] -= 1
            place = logs.arena[ENTRY_COLUMNS * levels[level + LEFT] + ENTRY_PLACE]
            chain.path[d] = place
            below = level - LEVEL_COLUMNS
            end = levels[below + LEVEL_END] if d > 1 else header[FIRSTS_END]
            reached = levels[below + REACHED]
            levels[below + LEFT] = first_with(logs.arena, reached, end, ENTRY_PLACE, place)
            d -= 1
    header[LEVEL] = -1
    return True


@kernel
def list_chains(events: EventArrays, window: int, width: int, logs: Logs, chain: Chain, out: Columns) -> int:
    """List the matches of a chain in order, from where its header says it stands.

    Parameters
    ----------
    events : EventArrays
        As ``update`` saw them.
    window : int
    width : int
        Logs of each key slot.
    logs : Logs
    chain : Chain
        The hits as ``update`` wrote them; ranges and path are scratch.
    out : Columns
        Of single events alone, one for each variable, in their order.

    Returns
    -------
    int
        ``DONE`` or ``COLUMNS_FULL``.
    """
    header, hits = chain.header, chain.hits
    while header[CHAIN_HIT] < len(hits) // 2:
        if header[HAS_BEGUN] == 0:
            begin_hit(chain, events, window, width, logs)
        while header[LEVEL] >= 0 or _begin_loops(chain, logs):
            if not _write_firsts(chain, logs, out):
                return COLUMNS_FULL
        header[CHAIN_HIT] += 1
        header[HAS_BEGUN] = 0
    return DONE
