"""Finds the best match of each match point: detects as the cells do, holds the events of a window, and walks back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from acep_approx.arrays import Ints, Ragged
from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.maximal.gaps import gap_automaton
from acep_approx.engines.maximal.held import HoldingCells, Ways, far_ends
from acep_approx.kernels.best import DONE, NONE, Best, Ends, last_places, walk_back
from acep_approx.kernels.maximal import FAR
from acep_approx.ranges import impossible

AT_ONCE = 1 << 20
"""Words that a part of the walks keeps about its events; one walk may need more."""


@dataclass(frozen=True)
class BestMatches(Ragged):
    """Matches as columns: match ``m`` binds ``id[offset[m] : offset[m + 1]]`` by these labels, earliest event first."""

    PER_EVENT = ("id", "label")
    offset: Ints
    id: Ints
    label: Ints


class BestCells(HoldingCells):
    """Tells match points, and the best match of each.

    Parameters
    ----------
    automaton : Automaton
        Without guards at the start or at the end.
    window : int
        In ticks, or in events for a count window.

    Notes
    -----
    State is that of ``Cells``, and the events of the last window on which a letter holds.
    """

    def __init__(self, automaton: Automaton, window: int) -> None:
        super().__init__(automaton, window)
        self._backward = gap_automaton(automaton, is_backward=True, compares=False)

    def set_classes(self, classes: list[int]) -> None:
        """Make the tables for event classes (letter masks); what is held stays as it is."""
        super().set_classes(classes)
        self._gaps = self._backward.tables(classes, np.ones(len(classes), np.int64))

    def newest(self) -> Ints:
        """Per key slot the latest start of any run; below every tick where there is none."""
        return self.cells.newest()

    def detected(self, events: Grouped) -> Ints:
        """Match points of a batch, grouped by slot; as ``Cells.detect`` gives them. Its events are held from now on."""
        self.hold(events)
        return self.cells.detected(events)

    def best(self, slot: Ints, id: Ints, errors: Ints, start: Ints) -> BestMatches:  # noqa: A002
        """The best matches of match points of the last batch, in their order.

        Parameters
        ----------
        slot, id, errors, start : int64
            Of each its key slot, its event, its least errors, and its latest start.

        Complexity: O(events since the starts x moves), and O(events x gaps x errors) once; see ``kernels.best``.
        """
        if not len(id):
            return BestMatches.joined([])
        place = self._places(slot, id)
        low = np.full(self.slots, FAR)
        np.minimum.at(low, slot, start)
        some = np.flatnonzero(self.held.tick >= low[self.held.slot])
        events = self.held.take(some)
        ways = Ways.through(events, is_backward=True)
        at_event = np.empty(len(events), np.int64)
        is_event = ways.place >= 0
        at_event[ways.place[is_event]] = np.flatnonzero(is_event)
        at = at_event[np.searchsorted(some, place)]
        order = np.argsort(at)
        parts = [*self._walked(ways, Ends(at[order], errors[order], -start[order]))]
        found = BestMatches.joined(parts).backwards()
        found = replace(found, id=events.id[ways.place[found.id]])
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))[::-1]
        return found.take(number)

    def _places(self, slot: Ints, id: Ints) -> Ints:  # noqa: A002
        """Where events of some slots are held; an event may be in several slots."""
        held = self.held
        ids, number = np.unique(held.id, return_inverse=True)
        words = held.slot * len(ids) + number
        order = np.argsort(words, kind="stable")
        found: Ints = order[np.searchsorted(words, slot * len(ids) + np.searchsorted(ids, id), sorter=order)]
        return found

    def _walked(self, ways: Ways, ends: Ends) -> Iterator[BestMatches]:
        """The matches of walks, latest event first, in parts of so many events that not too much is kept of them."""
        size = max(AT_ONCE // int(self._gaps.sizes[0] * self._gaps.sizes[1]), 1)
        furthest, first = np.empty(len(ends.at), np.int64), 0
        last_places(ways.tick, ends, furthest)
        while first < len(furthest):
            begin = int(ends.at[first])
            last = max(int(np.searchsorted(furthest, begin + size, side="right")), first + 1)
            end = int(furthest[last - 1])
            some = Ends(ends.at[first:last] - begin, ends.errors[first:last], ends.start[first:last])
            part = self._walked_part(ways.tick[begin:end], ways.cls[begin:end], some)
            yield BestMatches(part.offset, part.id + begin, part.label)
            first = last

    def _walked_part(self, tick: Ints, cls: Ints, ends: Ends) -> BestMatches:
        gaps = self._gaps
        far = far_ends(tick, cls, gaps, gaps.lists)
        room = 4 * len(ends.at) + len(tick)
        found = Best(*(np.zeros(n, np.int64) for n in (2, len(ends.at) + 1, room, room)))
        own = np.zeros(2 * int(gaps.sizes[0]), np.int64)
        while (status := walk_back(tick, cls, gaps, far, ends, own, found)) != DONE:
            if status == NONE:
                raise impossible("a match point without a match")
            grown = (np.concatenate((column, np.zeros_like(column))) for column in (found.event, found.label))
            found = Best(found.header, found.offset, *grown)
        bound = int(found.header[1])
        return BestMatches(found.offset, found.event[:bound], found.label[:bound])
