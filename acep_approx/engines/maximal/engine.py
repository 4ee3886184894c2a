"""Finds maximal matches: detects as the cells do, holds the events of two windows, and walks where a match ends.

A match whose last event no other can follow is known at that event: a walk from there, back in time, lists it. Any
other waits until its window has closed; then a walk from its first event lists it, and all that could contain it has
come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from acep_approx.arrays import Bools, Ints, Ragged, extended
from acep_approx.automaton.automaton import Automaton
from acep_approx.automaton.lengths import followed_letters, with_letters
from acep_approx.engines.batches import Grouped
from acep_approx.engines.maximal.gaps import gap_automaton
from acep_approx.engines.maximal.held import LONG_AGO, Held, HoldingCells, Ways, far_ends
from acep_approx.kernels import maximal as kernel

ROOM = 1 << 12
"""Bound events that there is room for at first, beside those of the walk, in what it writes."""
DEEP = 1 << 20
"""Words of the largest array that walks have room in at first: what they do not touch costs nothing."""


@dataclass(frozen=True)
class MaximalMatches(Ragged):
    """Matches as columns: match ``m`` binds the held events ``id[offset[m] : offset[m + 1]]`` by the arcs ``arc``."""

    errors: Ints
    offset: Ints
    id: Ints
    arc: Ints


class MaximalCells(HoldingCells):
    """Lists the matches that are in no larger one.

    Parameters
    ----------
    automaton : Automaton
        Without guards at the start or at the end.
    window : int
        In ticks, or in events for a count window.
    is_count : bool
        Whether the window counts events.

    Notes
    -----
    State is that of ``Cells``, and the events of the last two windows on which a letter holds: those with which a
    match can begin that is not known yet, and those with which a larger one can. Per slot, ``done`` is the first tick
    of which the matches that wait have not been listed, ``last_followed`` that of the last match point which can be
    followed.
    """

    MARKS = ("done", "last_followed")
    done: Ints
    last_followed: Ints

    def __init__(self, automaton: Automaton, window: int, *, is_count: bool) -> None:
        super().__init__(automaton, window)
        self.is_count = is_count
        self.forward = gap_automaton(automaton, is_backward=False)
        self.backward = gap_automaton(automaton, is_backward=True)
        self._followed = followed_letters(automaton)
        self._ends: Ints = np.zeros(0, np.int64)

    def set_classes(self, classes: list[int]) -> None:
        """Make the tables for event classes (letter masks); what is held stays as it is."""
        super().set_classes(classes)
        self.is_followed = with_letters(classes, self._followed)
        every = np.ones(len(classes), np.int64)
        self._tables = (
            self.forward.tables(classes, self.is_followed.astype(np.int64)),
            self.backward.tables(classes, every),
        )
        origins = _moves(self._tables[0], kernel.MOVE_FROM)
        self._begins = np.array([(some == kernel.OUTSIDE).any() for some in origins], np.bool_)

    def newest(self) -> Ints:
        """Per key slot the latest event that is held; below every tick where there is none."""
        newest = np.full(self.slots, LONG_AGO)
        np.maximum.at(newest, self.held.slot, self.held.tick)
        return newest

    @property
    def keeps_lineage(self) -> bool:
        """Whether matches can be listed: always."""
        return True

    def ids(self) -> Ints:
        """The events that are held."""
        return self.held.id

    # --- matches --------------------------------------------------------------------------------------------

    def add(self, events: Grouped) -> None:
        """Take in a batch, grouped by slot."""
        points = self.cells.detect(events.slot, events.tick, events.cls)[:, 0]
        waits = self.is_followed[events.cls[points]]
        slot = events.slot[points[waits]]
        np.maximum.at(self.last_followed, slot, events.tick[points[waits]])
        self._ends = events.row[points[~waits]]
        self.hold(events)

    def at_once(self) -> tuple[Held, MaximalMatches]:
        """The matches of the last batch that nothing can contain which comes later, with the events that they name.

        Complexity: of the walks; see ``kernels.maximal``.
        """
        ends, self._ends = self._ends, np.zeros(0, np.int64)
        if not len(ends):
            return self._nothing()
        is_end = np.isin(self.held.row, ends)
        low = np.full(self.slots, 2**62)
        np.minimum.at(low, self.held.slot[is_end], self.held.tick[is_end] - self.window)
        some = np.flatnonzero(self.held.tick >= low[self.held.slot])
        events, asked = self.held.take(some), is_end[some]
        return events, self._walked(events, asked, is_backward=True)

    def closed(self, limit: Ints | int) -> tuple[Held, MaximalMatches]:
        """The matches that waited, and whose window ends before ``limit`` (per slot, or for all)."""
        limits = self._by_slot(limit)
        first, last = self.done, limits - self.window  # starts from ``first`` on and before ``last``
        is_due = (self.last_followed >= first) & (last > first)
        self.done = np.maximum(first, last)
        if not is_due.any():
            return self._nothing()
        slot, tick = self.held.slot, self.held.tick
        asked = is_due[slot] & (tick >= first[slot]) & (tick < last[slot]) & self._begins[self.held.cls]
        asked &= tick <= self.last_followed[slot]
        if not asked.any():
            return self._nothing()
        low, high = np.full(self.slots, 2**62), np.full(self.slots, LONG_AGO)
        np.minimum.at(low, slot[asked], tick[asked] - self.window)
        np.maximum.at(high, slot[asked], tick[asked] + self.window)
        some = np.flatnonzero((tick >= low[slot]) & (tick <= high[slot]))
        events = self.held.take(some)
        return events, self._walked(events, asked[some], is_backward=False)

    def first_pending(self) -> int | None:
        """The earliest start of a match that may wait; None where none does."""
        pending = self.held.tick[self._pending()]
        return int(pending.min()) if len(pending) else None

    def pending_slots(self) -> Ints:
        """The slots in which matches may wait."""
        return np.unique(self.held.slot[self._pending()])

    def _pending(self) -> Bools:
        """The held events with which matches may begin that wait."""
        slot, tick = self.held.slot, self.held.tick
        is_pending: Bools = (tick >= self.done[slot]) & (tick <= self.last_followed[slot]) & self._begins[self.held.cls]
        return is_pending

    def _nothing(self) -> tuple[Held, MaximalMatches]:
        return Held.none(), MaximalMatches.joined([])

    def _walked(self, events: Held, asked: Bools, *, is_backward: bool) -> MaximalMatches:
        """The matches of walks from the events that are ``asked``, each earliest event first."""
        gaps = self._tables[is_backward]
        ways = Ways.through(events, is_backward=is_backward)
        place, tick, cls = ways.place, ways.tick, ways.cls
        last = np.empty(len(tick), np.int64)
        kernel.last_ends(tick, cls, self.window, gaps.lists * _can_end(gaps), last)
        walked = kernel.Walked(tick, cls, ((place >= 0) & asked[place]).astype(np.int64), last)
        far = far_ends(tick, cls, gaps, np.ones(len(gaps.lists), np.int64))
        listed = far if gaps.lists.all() else far_ends(tick, cls, gaps, gaps.lists)
        found = _walk_all(walked, self.window, gaps, far, listed, begins_count=not is_backward)
        if is_backward:
            found = found.backwards()
        return replace(found, id=place[found.id])


def _moves(gaps: kernel.Gaps, column: int) -> list[Ints]:
    """A column of the moves of each class."""
    values = gaps.moves[column :: kernel.MOVE]
    return [values[a:b] for a, b in pairwise(gaps.first.tolist())]


def _can_end(gaps: kernel.Gaps) -> Ints:
    """Per class whether a walk can end with an event of it."""
    return np.array([(some == kernel.OUTSIDE).any() for some in _moves(gaps, kernel.MOVE_TO)], np.int64)


def _walk_all(
    events: kernel.Walked, window: int, gaps: kernel.Gaps, far: Ints, listed: Ints, *, begins_count: bool
) -> MaximalMatches:
    """The matches of all walks, with their events in the direction of these."""
    size, lanes = int(gaps.sizes[0]), int(gaps.sizes[1])
    depth = min(len(events.tick) + 2, max(DEEP // (size * lanes), 2))
    walks, room, parts = _walks(depth, size, lanes, begins_count=begins_count), len(events.tick) + ROOM, []
    status = kernel.OUT_FULL
    while status != kernel.DONE:
        found = kernel.Maximal(*(np.zeros(n, np.int64) for n in (2, room, room + 1, room, room)))
        while (status := kernel.walk(events, window, gaps, far, listed, walks, found)) == kernel.DEEPER:
            walks = _deeper(walks)
        matches, bound = found.header.tolist()
        if matches:
            columns = found.errors[:matches], found.offset[: matches + 1], found.event[:bound], found.arc[:bound]
            parts.append(MaximalMatches(*columns))
        room *= 2
    return MaximalMatches.joined(parts)


def _walks(depth: int, size: int, lanes: int, *, begins_count: bool) -> kernel.Walks:
    header = np.zeros(kernel.HEADER, np.int64)
    header[kernel.BEFORE] = begins_count
    by_gap, words = max(size, 1) * depth, size * lanes
    return kernel.Walks(
        header=header,
        before=np.full(2 * words, kernel.NEVER),
        own=np.zeros(by_gap, np.int64),
        more=np.zeros(words * depth, np.int64),
        taken=np.zeros(by_gap, np.int64),
        path=np.zeros(depth, np.int64),
        at=np.zeros(depth, np.int64),
        rest=np.zeros(by_gap, np.int64),
        arc=np.zeros(by_gap, np.int64),
        onward=np.zeros(by_gap, np.int64),
        tried=np.zeros(depth, np.int64),
    )


def _deeper(walks: kernel.Walks) -> kernel.Walks:
    grown = {name: extended(array, 2 * array.size, 0) for name, array in walks._asdict().items()}
    return kernel.Walks(**{**grown, "header": walks.header, "before": walks.before})
