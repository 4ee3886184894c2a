"""Places that count times instead of events: where events at one time cannot follow one another, they share a place."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.ranges import COUNT, Range, check_arrays

NEVER = -(2**62)


class TickPlaces:
    """Numbers the times at which the stream, or each partition, has events.

    Parameters
    ----------
    by_partition : bool
        Whether each partition has numbers of its own.
    """

    def __init__(self, *, by_partition: bool) -> None:
        self.by_partition = by_partition
        self.number = np.full(1, -1, np.int64)  # of the last time, per slot or of all
        self.tick = np.full(1, NEVER, np.int64)  # that time

    def of(self, slot: Ints, ticks: Ints) -> Ints:
        """The places of all events of a batch, whose slots (below 0: none, and no place) and ticks these are."""
        if not self.by_partition:
            slot = np.zeros(len(ticks), np.int64)
        places = np.full(len(ticks), -1, np.int64)
        order = np.argsort(slot, kind="stable")[int((slot < 0).sum()) :]
        if not len(order):
            return places
        slot, ticks = slot[order], ticks[order]
        if slot[-1] >= self.number.size:
            room = 2 * int(slot[-1]) + 2
            self.number, self.tick = extended(self.number, room, -1), extended(self.tick, room, NEVER)
        is_first = np.append(True, slot[1:] != slot[:-1])
        is_new = np.append(True, ticks[1:] != ticks[:-1])
        is_new[is_first] = ticks[is_first] != self.tick[slot[is_first]]
        new = np.cumsum(is_new)
        begin = np.flatnonzero(is_first)
        before = np.repeat(new[begin] - is_new[begin], np.diff(np.append(begin, len(slot))))
        places[order] = self.number[slot] + new - before
        last = np.append(begin[1:], len(slot)) - 1
        self.number[slot[last]], self.tick[slot[last]] = places[order[last]], ticks[last]
        return places

    def arrays(self) -> dict[str, Ints]:
        """The state as arrays."""
        return {"place_number": self.number, "place_tick": self.tick}

    def restore(self, arrays: dict[str, Ints]) -> None:
        """Take over a state.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """
        size = max(arrays["place_number"].size, 1)
        check_arrays(arrays, {"place_number": Range(size, -1, COUNT), "place_tick": Range(size)})
        self.number, self.tick = arrays["place_number"], arrays["place_tick"]
