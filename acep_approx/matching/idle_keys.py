"""Keys of which no event comes for a while: their streams end, and later events of theirs begin new ones.

A key's stream ends when no event of it comes for longer than a given time. What comes later is as if it were of another
key: it gets a slot of its own. So the results do not depend on how the stream is cut into batches, and neither does it
matter when the slots of streams that have ended are looked for.
"""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.events.keys import KeyCodes
from acep_approx.ranges import COUNT, TICK, Range, check, check_arrays, number_in

NEVER = -(2**62)
"""When the last event of a slot came that holds no key."""
LOOKS = 4
"""How often silent keys are looked for while a key that was not silent becomes so."""
NONE = np.zeros(0, np.int64)


class IdleKeys:
    """When the last event of each key came, and which streams of keys have ended.

    Parameters
    ----------
    ticks : int
        For how long a key may have no event.

    Attributes
    ----------
    dropped : int
        Streams of keys that have ended so far, as far as it was looked for them.
    """

    def __init__(self, ticks: int) -> None:
        self.ticks = ticks
        self.dropped = 0
        self._last = NONE  # per slot
        self._ended = NONE  # within the batch at hand
        self._looked = NEVER  # when silent keys were looked for

    def take_up(self, slots: Ints, now: int) -> None:
        """Know keys of which nobody knows when their events came: the last ones may have come now."""
        self._make_room(int(slots.max(initial=-1)) + 1)
        self._last[slots] = now

    def divided(self, keys: KeyCodes, slot: Ints, ticks: Ints) -> Ints:
        """The slots of the events of a batch: from where the stream of a key has ended before an event on, other ones.

        Parameters
        ----------
        keys : KeyCodes
            It gives the slots.
        slot : numpy.ndarray of int64
            The slot of the key of each event; -1 where it has none.
        ticks : numpy.ndarray of int64
            Of the events, in order.

        Complexity: O(events), and O(n log n) for the events of keys whose streams may have ended.
        """
        self._make_room(max(keys.capacity, 1))
        since = self._last[slot]
        # of a key that is new no event came before the batch: only within it one can come too late
        late = (ticks - np.where(since == NEVER, ticks[0], since) > self.ticks) & (slot >= 0)
        if late.any():
            slot = self._renewed(keys, slot, ticks, np.unique(slot[late]))
        has_key = slice(None) if slot.min() >= 0 else slot >= 0
        self._last[slot[has_key]] = ticks[has_key]  # the last write stays
        return slot

    def _renewed(self, keys: KeyCodes, slot: Ints, ticks: Ints, maybe: Ints) -> Ints:
        """The slots of the events of a batch, where the streams of some keys may end before or within it."""
        asked = np.zeros(self._last.size, np.bool_)
        asked[maybe] = True
        rows = np.flatnonzero((slot >= 0) & asked[slot])
        rows = rows[np.argsort(slot[rows], kind="stable")]
        own, tick = slot[rows], ticks[rows]
        is_first = np.append(True, own[1:] != own[:-1])
        before = np.where(is_first, self._last[own], np.append(NEVER, tick[:-1]))
        begins = np.flatnonzero((before != NEVER) & (tick - before > self.ticks))
        if not len(begins):
            return slot
        in_order = np.argsort(rows[begins])  # the last one of a key is what later batches find
        made = np.empty(len(begins), np.int64)
        made[in_order] = keys.renew(own[begins[in_order]])
        self._make_room(keys.capacity)
        latest = np.zeros(len(rows), np.int64)
        latest[begins] = 1 + np.arange(len(begins))
        latest = np.maximum.accumulate(latest)  # which stream, of all that began, each event may be of
        is_new = (latest > 0) & (own[begins[latest - 1]] == own)
        new = np.where(is_new, made[latest - 1], own)
        self._ended = np.concatenate((self._ended, np.where(is_first, own, np.append(-1, new[:-1]))[begins]))
        slot = slot.copy()
        slot[rows] = new
        return slot

    def ended(self, now: int, waits: Ints = NONE) -> Ints:
        """Take the slots of the streams that have ended, as far as it is time to look for them: they hold no key then.

        Parameters
        ----------
        now : int
            No event before this tick comes any more.
        waits : numpy.ndarray of int64
            Slots that results wait in: if the stream of one of them has ended, it is time.

        Complexity: O(1), and now and then O(slots): so often that this is O(1) per event in the long run.
        """
        ended, self._ended = self._ended, NONE
        is_due = now - self._looked > self.ticks // LOOKS or (now - self._last[waits] > self.ticks).any()
        if is_due:
            self._looked = now
            ended = np.concatenate((ended, self._silent(now)))
        ended = np.unique(ended)
        self._last[ended] = NEVER
        self.dropped += len(ended)
        return ended

    def first_end(self, slots: Ints) -> int | None:
        """The tick at which the first of the streams in some slots has ended, if no event comes; None: of no slots."""
        return int(self._last[slots].min()) + self.ticks + 1 if len(slots) else None

    def dropped_by(self, now: int) -> int:
        """Streams of keys that have ended by a tick, whether it was looked for them or not."""
        return self.dropped + len(np.setdiff1d(self._silent(now), self._ended)) + len(self._ended)

    def _silent(self, now: int) -> Ints:
        return np.flatnonzero((self._last != NEVER) & (now - self._last > self.ticks))

    def _make_room(self, slots: int) -> None:
        if slots > self._last.size:
            self._last = extended(self._last, max(slots, 2 * self._last.size), NEVER)

    # --- state ----------------------------------------------------------------------------------------------

    def save(self, slots: int) -> tuple[list[int], Ints]:
        """Its numbers, and the tick of the last event per slot; between two batches."""
        return [self.dropped, self._looked], self._last[:slots]

    @classmethod
    def restored(cls, ticks: int, numbers: list[int], last: Ints, used: Ints) -> IdleKeys:
        """What ``save`` was called on; ``used`` slots hold keys.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """
        check_arrays({"last": last}, {"last": Range(None, NEVER, TICK)})
        check("last", good=np.array_equal(np.flatnonzero(last != NEVER), np.sort(used)))
        made = cls(ticks)
        dropped, looked = numbers
        made.dropped, made._looked = number_in("dropped", dropped, 0, COUNT), number_in("looked", looked, NEVER, TICK)
        made._last = last
        return made
