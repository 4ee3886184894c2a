"""All events of a batch by their partitions: which one follows another, and which has what number."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.events.stream import EventBatch
from acep_approx.matching.outputs.output import NO_BATCH, Stamps
from acep_approx.matching.stream_batch import StreamBatch

UNKNOWN = 2**62
"""When something comes that has not come yet."""


class Neighbours:
    """All events of a batch, also those that no letter holds on, by slot.

    Parameters
    ----------
    batch : EventBatch
    slot : numpy.ndarray of int64
        Per event; -1 where it is in no partition.
    counters : numpy.ndarray of int64
        Events per slot so far, this batch included; empty where windows are of time.
    """

    def __init__(self, batch: EventBatch, slot: Ints, counters: Ints) -> None:
        self.first_row = batch.first_row
        self._rows = batch.rows
        self._ticks = batch.ticks
        self._order = np.argsort(slot, kind="stable")[int((slot < 0).sum()) :]  # by slot, then by row
        self._slot = slot[self._order]
        self._counters = counters

    @classmethod
    def none(cls) -> Neighbours:
        """No events."""
        empty = np.zeros(0, np.int64)
        return cls(NO_BATCH, empty, empty)

    @classmethod
    def of(cls, batch: StreamBatch, stamps: Stamps) -> Neighbours:
        """The events of a batch that ``preparer`` has just seen."""
        preparer = stamps.preparer
        counters = preparer.counters if preparer.is_count else np.zeros(0, np.int64)
        return cls(batch, batch.slots(preparer.key_columns), counters)

    def last_at(self, tick: Ints) -> Ints:
        """The last rows up to some ticks: of this batch, or the one before it."""
        return self.first_row + np.searchsorted(self._ticks, tick, side="right") - 1

    def in_stream(self, slot: Ints, last: Ints) -> Ints:
        """When the event after row ``last`` came: its tick, or how many of ``slot`` came before it."""
        found = np.full(len(last), UNKNOWN)
        place = last + 1 - self.first_row
        known = np.flatnonzero(place < len(self._ticks))
        place = place[known]
        if not self._counters.size:
            found[known] = self._ticks[place]
            return found
        # an event of another slot comes when the next one of this slot would
        size, mine = len(self._ticks), slot[known]
        ahead = np.searchsorted(self._slot * size + self._order, mine * size + place)
        found[known] = self._counters[mine] - (np.searchsorted(self._slot, mine, side="right") - ahead)
        return found

    def in_partition(self, slot: Ints, last: Ints) -> Ints:
        """When the first event of ``slot`` after row ``last`` came: its tick, or its number."""
        found = np.full(len(last), UNKNOWN)
        size = len(self._ticks) + 1
        place = np.searchsorted(
            self._slot * size + self._order, slot * size + (last - self.first_row).clip(-1), side="right"
        )
        known = np.flatnonzero(place < len(self._order))
        known = known[self._slot[place[known]] == slot[known]]
        place = place[known]
        found[known] = self._numbers(place) if self._counters.size else self._ticks[self._order[place]]
        return found

    def _numbers(self, place: Ints) -> Ints:
        """The numbers within their slots of the events at some places of the order by slot."""
        slot = self._slot[place]
        return self._counters[slot] - (np.searchsorted(self._slot, slot, side="right") - place)

    def row_of(self, slot: Ints, number: Ints) -> Ints:
        """The rows of the events of these numbers within their slots; they are in this batch."""
        place = np.searchsorted(self._slot, slot, side="right") - (self._counters[slot] - number)
        return self._order[place] + self.first_row if self._rows is None else self._rows[self._order[place]]
