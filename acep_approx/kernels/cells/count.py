"""Count the matches that end at given events by adding up ways per state, however many matches there are.

From an event back over the entries of its key's logs that lead to it, each event once: the number of ways from a state
to the end grows by the number of ways from where an entry leads on to. Where Kleene closures make matches explode
(``a+`` over n events has 2**n - 1) this stays polynomial. Ranges of first events are counted without being visited.

Source: after GRETA (Poppe et al., PVLDB 11(1) 2017), which counts trends without building them. Ours runs on arc logs,
so it holds for errors and guards too, and backwards, so it sees no entry that leads elsewhere. Oracle: the walk of
``enumerate``, and ``tests/naive.py``.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.arithmetic import MOST, added_up
from acep_approx.kernels.cells.layout import (
    ARC,
    ARC_COLUMNS,
    ARC_SOURCE,
    ARC_TARGET,
    CHANGED,
    CURSOR,
    CURSOR_ARC,
    ENTRY_COLUMNS,
    ENTRY_PLACE,
    HIGH,
    IN_USE,
    INTO,
    INTO_ARC,
    LOGS,
    LOW,
    NOWHERE,
    RESET,
    SEEN,
    TOTAL,
    Count,
    EventArrays,
    Logs,
    Tables,
)
from acep_approx.kernels.cells.ranges import Origin, entries_of, first_with

IS_SEEN, IS_CHANGED, IS_RESET = 1, 2, 4
"""Marks of a state: its logs are looked at; the current event changes its ways; it leaves none of those before."""


@inline
def _look_at(count: Count, origin: Origin, log: int, stands_for: int, place: int, logs: Logs) -> None:
    """Put a cursor before ``place`` into a log."""
    first, end = entries_of(log, origin, count.ranges, logs)
    end = first_with(logs.arena, first, end, ENTRY_PLACE, place)
    if first < end:
        cursor = count.header[IN_USE] * CURSOR
        count.cursors[cursor + CURSOR_ARC] = stands_for
        count.cursors[cursor + LOW], count.cursors[cursor + HIGH] = first, end
        count.header[IN_USE] += 1


@inline
def _look_before(count: Count, origin: Origin, state: int, place: int, tables: Tables, logs: Logs) -> None:
    """Put cursors before ``place`` into all logs of a state: of the arcs into it, and of what resets it."""
    words, offsets = tables.words, tables.offsets
    for x in range(words[offsets[INTO] + state], words[offsets[INTO] + state + 1]):
        a = words[offsets[INTO_ARC] + x]
        _look_at(count, origin, a, offsets[ARC] + ARC_COLUMNS * a, place, logs)
    reset = words[offsets[RESET] + state]
    if reset >= 0:
        _look_at(count, origin, reset, -1 - state, place, logs)


@inline
def _latest(count: Count, tables: Tables, logs: Logs) -> int:
    """Place of the latest event that any cursor stands at, but for those of first events; or ``NOWHERE``."""
    place = NOWHERE
    for c in range(count.header[IN_USE]):
        cursor = CURSOR * c
        arc, high = count.cursors[cursor + CURSOR_ARC], count.cursors[cursor + HIGH]
        if high > count.cursors[cursor + LOW] and (arc < 0 or tables.words[arc + ARC_SOURCE] != 0):
            place = max(place, logs.arena[ENTRY_COLUMNS * (high - 1)])
    return place


@inline
def _add_first_events(count: Count, place: int, tables: Tables, logs: Logs) -> None:
    """Count matches that begin at ``place`` or later, with states whose ways change there; all if it is ``NOWHERE``."""
    words, cursors, header = tables.words, count.cursors, count.header
    for c in range(header[IN_USE]):
        cursor = CURSOR * c
        arc = cursors[cursor + CURSOR_ARC]
        if arc < 0 or words[arc + ARC_SOURCE] != 0:
            continue
        target = words[arc + ARC_TARGET]
        if place == NOWHERE or count.marks[target] & IS_CHANGED:
            low, high = cursors[cursor + LOW], cursors[cursor + HIGH]
            left = low if place == NOWHERE else first_with(logs.arena, low, high, ENTRY_PLACE, place)
            cursors[cursor + HIGH] = left
            ways, begun = count.ways[target], high - left
            if begun > 0:
                more = MOST if ways > MOST // begun else ways * begun
                header[TOTAL] = added_up(header[TOTAL], more)


@inline
def _change(count: Count, state: int, added: int, mark: int) -> None:
    """Note that the current event changes the ways of a state."""
    if not count.marks[state] & IS_CHANGED:
        count.changed[count.header[CHANGED]] = state
        count.header[CHANGED] += 1
        count.added[state] = 0
    count.marks[state] |= mark
    count.added[state] = added_up(count.added[state], added)


@inline
def _take(count: Count, place: int, tables: Tables, logs: Logs) -> None:
    """Take the entries of an event: find out which states it changes, and by how much."""
    words, cursors = tables.words, count.cursors
    for c in range(count.header[IN_USE]):
        cursor = CURSOR * c
        arc, high = cursors[cursor + CURSOR_ARC], cursors[cursor + HIGH]
        if arc >= 0 and words[arc + ARC_SOURCE] == 0:
            continue
        if high > cursors[cursor + LOW] and logs.arena[ENTRY_COLUMNS * (high - 1)] == place:
            cursors[cursor + HIGH] = high - 1
            if arc < 0:
                _change(count, -1 - arc, 0, IS_CHANGED | IS_RESET)
            else:
                _change(count, words[arc + ARC_SOURCE], count.ways[words[arc + ARC_TARGET]], IS_CHANGED)


@inline
def _enter(count: Count, origin: Origin, place: int, tables: Tables, logs: Logs) -> None:
    """Give the states that an event changes their new ways; look at the logs of those that are new."""
    for x in range(count.header[CHANGED]):
        state = count.changed[x]
        mark = count.marks[state]
        before = 0 if mark & IS_RESET else count.ways[state]
        count.ways[state] = added_up(before, count.added[state])
        count.marks[state] = IS_SEEN
        if not mark & IS_SEEN:
            count.seen[count.header[SEEN]] = state
            count.header[SEEN] += 1
            _look_before(count, origin, state, place, tables, logs)
    count.header[CHANGED] = 0


@inline
def _forget(count: Count) -> None:
    """Make ready for the next event."""
    for x in range(count.header[SEEN]):
        count.ways[count.seen[x]] = 0
        count.marks[count.seen[x]] = 0
    count.header[IN_USE] = count.header[SEEN] = count.header[TOTAL] = 0


@kernel
def count_matches(
    events: EventArrays, hits: Ints, window: int, tables: Tables, logs: Logs, count: Count, counts: Ints
) -> None:
    """Number of matches of each hit.

    Parameters
    ----------
    events, hits, tables, logs
        See ``layout``; the events and hits as ``update`` saw and wrote them.
    count : Count
        Zeros; room for two cursors for each log.
    counts : int64
        Gets the numbers, at most ``MOST``.

    Complexity: per hit O(entries that lead to it x logs that do), however many matches there are.
    """
    for h in range(len(hits) // 2):
        i, arc = hits[2 * h], tables.offsets[ARC] + ARC_COLUMNS * hits[2 * h + 1]
        source = tables.words[arc + ARC_SOURCE]
        if source == 0:  # the event alone is a match
            counts[h] = 1
            continue
        slot, place = events.slot[i], events.place[i]
        origin = Origin(h + 1, slot, slot * tables.offsets[LOGS], place, events.tick[i] - window)
        _change(count, source, 1, IS_CHANGED)
        _enter(count, origin, place, tables, logs)
        place = _latest(count, tables, logs)
        while place > NOWHERE:
            _take(count, place, tables, logs)
            _add_first_events(count, place, tables, logs)
            _enter(count, origin, place, tables, logs)
            place = _latest(count, tables, logs)
        _add_first_events(count, NOWHERE, tables, logs)
        counts[h] = count.header[TOTAL]
        _forget(count)
