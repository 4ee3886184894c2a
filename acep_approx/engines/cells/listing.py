"""Lists the matches of hits from arc logs: as a walk over any automaton, or as loops where it is a sequence.

Where few keys complete anything, arc logs see the events of a key when the key completes a match, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.columns import Listed, Placement
from acep_approx.engines.order import Walk, in_columns
from acep_approx.kernels.cells import chains, layout, repeats
from acep_approx.kernels.cells import enumerate as walks
from acep_approx.kernels.columns import WRITTEN, Columns
from acep_approx.kernels.listing import DEEPER, Listing
from acep_approx.kernels.order import Found

DEEPENED = "frames", "cursors", "path"
"""What a walk has of arrays that grow with its depth."""


def listed(logs: ArcLogs, hits: Ints, events: Grouped, placement: Placement, chunk: int) -> Iterator[Listed]:
    """The matches of hits, in order, at most about ``chunk`` bound events at a time.

    Parameters
    ----------
    logs : ArcLogs
    hits : int64
        As ``logs.update`` gave them for ``events``.
    events : Grouped
    placement : Placement
        Where the events of a match go, by places in the place of ids.
    chunk : int

    Yields
    ------
    Listed
        The hit of a match is the first with its event and errors.

    Complexity: O(length of the output); see ``kernels.cells.enumerate``, ``chains`` and ``repeats``.
    """
    sequence, columns = _sequence(logs), placement.column.tolist()
    if sequence is None or placement.keeps_labels or columns[0] < 0 or len(set(columns)) < len(columns):
        yield from _by_walk(logs, hits, events, placement, chunk)
    elif sequence.repeats.any() or placement.lists:
        yield from _by_frames(logs, sequence, hits, events, placement, chunk)
    else:
        yield from _by_loops(logs, sequence, hits, events, placement, chunk)


class Sequence(NamedTuple):
    """An automaton whose variables come one after the other.

    Per variable the log of the arc that leads on to it, but for the last one where that does not repeat; and whether it
    repeats.
    """

    logs: Ints
    repeats: Ints


def _sequence(logs: ArcLogs) -> Sequence | None:
    """The sequence that an automaton is, by the arcs that were made; None where it is none, or where the first repeats.

    What may begin a repetition and what may go on with it must be the same.
    """
    automaton = logs.determinised.automaton
    names = range(len(automaton.variables))
    loops = {arc[1] for arc in logs.arcs if arc[0] == arc[2]}
    onward = sorted((arc for arc in logs.arcs if arc[0] != arc[2]), key=lambda arc: arc[1])
    sources, labels, targets = ([arc[i] for arc in onward] for i in range(3))
    if len(names) < 2 or labels != [*names] or sources != [START, *targets[:-1]]:
        return None
    if any(d == 0 or (targets[d], d, targets[d]) not in logs.arcs for d in loops):
        return None
    if any(len({arc.letter for arc in automaton.arcs if arc.label == d}) > 1 for d in loops):
        return None
    words, offsets = logs.tables
    numbers = np.array([logs.arcs[arc] for arc in onward])
    at = offsets[layout.ARC] + layout.ARC_COLUMNS * numbers
    is_last, repeats = np.arange(len(names)) == len(names) - 1, np.isin(np.arange(len(names)), [*loops])
    ends, goes_on = words[at + layout.ARC_ERR] >= 0, words[at + layout.ARC_KEEPS] == 1
    if (ends != is_last).any() or (goes_on != (~is_last | repeats)).any():
        return None
    return Sequence(numbers if repeats[-1] else numbers[:-1], repeats.astype(np.int64))


def _chain_of(logs: ArcLogs, sequence: Sequence, hits: Ints) -> chains.Chain:
    """Where loops stand before the first hit."""
    names = len(sequence.repeats)
    sizes = chains.CHAIN_HEADER, chains.LEVEL_COLUMNS * names, names, layout.RANGE * logs.width
    header, levels, path, ranges = (np.zeros(size, np.int64) for size in sizes)
    return chains.Chain(hits, header, sequence.logs, levels, path, ranges)


def _by_loops(
    logs: ArcLogs, sequence: Sequence, hits: Ints, events: Grouped, placement: Placement, chunk: int
) -> Iterator[Listed]:
    at, names, room, status = _chain_of(logs, sequence, hits), placement.singles, 2 * hits.size, chains.COLUMNS_FULL
    while status != chains.DONE:
        room = min(max(chunk // names, 1), 4 * room)
        columns = placement.room(room, 0)
        status = chains.list_chains(logs.batch(events), logs.window, logs.width, logs.held, at, columns)
        if columns.header[WRITTEN]:
            yield Listed.written(columns, is_full=True)


def _by_frames(
    logs: ArcLogs, sequence: Sequence, hits: Ints, events: Grouped, placement: Placement, chunk: int
) -> Iterator[Listed]:
    at, batch, status = _chain_of(logs, sequence, hits), logs.batch(events), repeats.COLUMNS_FULL
    entered, frames = np.zeros(len(sequence.repeats), np.int64), np.zeros(64 * repeats.FRAME_COLUMNS, np.int64)
    stack = repeats.Stack(frames, sequence.repeats, entered, placement.column)
    matches, values = min(chunk, 2 * hits.size), min(chunk, 8 * hits.size)
    while status != repeats.DONE:
        columns = placement.room(matches, values)
        listing = batch, logs.window, logs.width, logs.held, at
        while (status := repeats.list_repeats(*listing, stack, columns)) == repeats.DEEPER:
            stack = stack._replace(frames=extended(stack.frames, 2 * stack.frames.size, 0))
        written = int(columns.header[WRITTEN])
        if written:
            part = Listed.written(columns)
            lengths = [len(ids) for _, ids in part.lists]
            bound = sum(lengths) + placement.singles * written
            matches = min(8 * matches, 1 + chunk * written // bound)
            values = 1 + 9 * max(lengths, default=0) * matches // (8 * written)
            yield part
        else:  # no room for one match
            values *= 2


def _by_walk(logs: ArcLogs, hits: Ints, events: Grouped, placement: Placement, chunk: int) -> Iterator[Listed]:
    sizes = layout.WALK_HEADER, 64 * layout.FRAME, layout.CURSOR * (logs.width + 64), layout.RANGE * logs.width, 128
    at = layout.Walk(hits, *(np.zeros(size, np.int64) for size in sizes))
    walking = logs.batch(events), logs.window, logs.tables, logs.held

    def go_on(found: Found, listing: Listing, columns: Columns) -> tuple[int, int]:
        nonlocal at
        at.header[layout.EVENTS_OUT] = 0
        while (status := walks.list_matches(*walking, at, found, listing, columns)) == DEEPER:
            at = at._replace(**{name: extended(getattr(at, name), 2 * getattr(at, name).size, 0) for name in DEEPENED})
        return status, int(at.header[layout.EVENTS_OUT])

    number = hits.size // 2
    group, labels = np.arange(number), np.arange(len(placement.column))  # matches bear the first of their hits
    return in_columns(Walk(number, group, labels, go_on, bool(logs.keeps_order)), placement, chunk)


class HeldEvents:
    """Events of the window that arc logs have not seen, of all keys that have completed nothing since.

    Parameters
    ----------
    cells : Cells
        Detects.
    logs : ArcLogs
        Lists, for the same automaton and window.
    """

    def __init__(self, cells: Cells, logs: ArcLogs) -> None:
        self._cells = cells
        self._logs = logs
        self._held = Grouped.none()

    def due(self, events: Grouped, floors: Ints) -> Grouped:
        """Detect over a batch; gives the events to be listed, in their order: all that is held of keys with points.

        Parameters
        ----------
        events : Grouped
        floors : int64, shape (slots,) or (1,)
            Earliest ticks that a match of this batch may bind.
        """
        if len(self._cells.classes) < len(self._logs.determinised.classes):
            self._cells.set_classes(self._logs.determinised.classes)
        self._cells.reserve(self._logs.needed)
        points = self._cells.detect(events.slot, events.tick, events.cls)
        slots = np.zeros(self._logs.slots, np.bool_)
        slots[events.slot[points[:, 0]]] = True
        waiting = _taken(self._held, self._held.tick >= np.broadcast_to(floors, self._logs.slots)[self._held.slot])
        whole = Grouped(*(np.concatenate((getattr(waiting, f.name), getattr(events, f.name))) for f in fields(Grouped)))
        self._held = _taken(whole, ~slots[whole.slot])
        due = _taken(whole, slots[whole.slot])
        order = np.argsort(due.slot, kind="stable")
        return _taken(due, order)


def _taken(events: Grouped, which: Ints | Bools) -> Grouped:
    return Grouped(*(getattr(events, f.name)[which] for f in fields(Grouped)))
