"""From a batch of the stream to grouped kernel input of one query: letters, event classes, counters.

Classes are numbers of letter masks, in the order in which these are met.
"""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.automaton.letters import LetterReader, Masks
from acep_approx.engines.batches import Grouped
from acep_approx.events.keys import KeyCodes
from acep_approx.kernels.group import (
    COUNTED,
    FOLD_HIGH,
    FOLD_LOW,
    ONLY_TICKS,
    TICKS,
    UNCOUNTED,
    Arrived,
    Relevant,
    SlotTable,
    classify,
    group,
)
from acep_approx.matching.since_start import SinceStart
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.stream_side import KeySlots
from acep_approx.planning.planner import Plan


class MaskNumbers:
    """Numbers masks from 0, which is "no letter holds".

    Attributes
    ----------
    masks : list of int
        By number.
    """

    def __init__(self) -> None:
        self.masks: list[int] = [0]
        self._numbers: dict[int, int] = {}
        self._known_mask = np.zeros(1024, np.uint64)
        self._known_number: Ints = np.full(1024, -1, np.int64)
        self._remember(0, 0)

    def of(self, masks: Masks) -> Ints:
        """The number of each mask; new ones get the next numbers."""
        if len(masks) == 1 and (known := self.known(masks)) is not None:
            return known
        numbers = np.empty(len(masks), np.int64)
        at = 0
        while (at := classify(masks, at, self._known_mask, self._known_number, numbers)) < len(masks):
            self.add(int(masks[at]))
        return numbers

    def known(self, masks: Masks) -> Ints | None:
        """The number of each of a few masks; None where one has none yet."""
        found = [self._numbers.get(mask) for mask in masks.tolist()]
        return None if None in found else np.array(found, np.int64)

    def add(self, mask: int) -> None:
        """Give a mask the next number."""
        self.masks.append(mask)
        if 2 * len(self.masks) > self._known_mask.size:
            self._known_mask = np.zeros(4 * self._known_mask.size, np.uint64)
            self._known_number = np.full(self._known_mask.size, -1, np.int64)
            for number, known in enumerate(self.masks):
                self._remember(known, number)
        else:
            self._remember(mask, len(self.masks) - 1)

    def _remember(self, mask: int, number: int) -> None:
        """Put a mask into the hash table of ``group.classify`` (same hash)."""
        size = self._known_mask.size
        mixed = mask ^ (mask >> int(FOLD_HIGH))
        place = (mixed ^ (mixed >> int(FOLD_LOW))) & (size - 1)
        while self._known_number[place] >= 0:
            place = (place + 1) & (size - 1)
        self._known_mask[place] = mask
        self._known_number[place] = number
        self._numbers[mask] = number


FEW = 64
"""Events up to which it is asked first whether a letter holds on any of them."""
FARTHEST = 1 << 32
"""Where windows of events are longer, what a key held before may be kept for a while after its slot is another's."""
MOST_AT_ONCE = 1 << 20
"""No batch has so many events: what leaves the window within one is kept to its end."""


class Preparer:
    """Reads batches for one query; remembers event classes and, in count windows, how many events each key had.

    Parameters
    ----------
    plan : Plan
    key_slots : KeySlots
        Those of the attributes that split the stream.

    Attributes
    ----------
    classes : list of int
        Letter masks in order of discovery; class 0 is "no letter holds".
    counts_classes : bool
        Whether ``class_counts`` counts the events of each class: asked for where they cannot be read again.
    """

    def __init__(self, plan: Plan, key_slots: KeySlots) -> None:
        self.key_slots = key_slots
        self._keys_shown = len(plan.query.equivalences)
        self.letters = LetterReader(plan.letters)
        self.since_start = SinceStart(plan.letters)
        self.is_count = plan.is_count_window
        self._counts = _counting(plan)
        self.counts_events = self._counts > UNCOUNTED
        self._places_are_rows = plan.registers is None  # logs name events by their places
        self._numbers = MaskNumbers()
        self.classes = self._numbers.masks
        self.counters: Ints = np.zeros(1, np.int64)
        self._count: Ints = np.zeros(1, np.int64)
        self.began: Ints = np.zeros(0, np.int64)  # per slot, in count windows, the number of its first event
        self._is_ignored = _never if plan.registers is None else plan.registers.is_ignored_everywhere
        self._ignored = np.zeros(1024, np.bool_)  # per class
        self.counts_classes = False
        self.class_counts: Ints = np.zeros(0, np.int64)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns of the attributes that split the stream."""
        return self.key_slots.columns

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """Those of them that results show, the first: no query names an implied key."""
        return self.key_columns[: self._keys_shown]

    @property
    def keys(self) -> KeyCodes:
        """Values of these columns per slot."""
        return self.key_slots.keys

    def read(self, batch: StreamBatch) -> None:
        """Learn the key slots and the classes of a whole batch."""
        self.read_keys(batch)
        classes = None if self.since_start else self._classes_by_type(batch)
        if classes is None:
            slots = batch.slots(self.key_columns)
            masks = self.letters.masks(batch.computed.truths, lambda: slots >= 0)
            if self.since_start:
                masks = self.since_start.kept_to(masks, batch.computed.truths, slots)
            classes = self.classes_of(masks)
        batch.computed.classes[self] = classes
        if self.counts_classes:
            self.class_counts = extended(self.class_counts, len(self.classes), 0)
            self.class_counts += np.bincount(classes, minlength=self.class_counts.size)

    def _classes_by_type(self, batch: StreamBatch) -> Ints | None:
        """The classes, where the type alone says which it is, and all that a type may lead to are known."""
        found = self.letters.by_type(batch.computed.truths)
        known = None if found is None else self._numbers.known(found[0])
        return None if found is None or known is None else known[found[1]]

    def read_keys(self, batch: StreamBatch) -> None:
        """Learn the key slots alone, for who knows the classes by other ways."""
        batch.slots(self.key_columns)
        if self.key_slots.slots > self._count.size:
            self.set_counters(self.counters, room=2 * self.key_slots.slots)

    def is_relevant(self, batch: StreamBatch) -> Bools:
        """Of each event of a batch that was read, and not run, whether a letter holds on it that can matter."""
        classes = batch.here(batch.computed.classes[self])
        relevant: Bools = classes > 0
        return relevant & ~self._ignored[classes] if self._ignored[: len(self.classes)].any() else relevant

    def grouped(self, batch: StreamBatch, *, keeps_order: bool = False) -> Grouped:
        """Group the events of a batch that was read, or of a piece of it, that a letter holds on by key slot.

        ``keeps_order``: in the order of the batch, not key by key.
        """
        rows = len(batch)
        if rows == 0:
            return Grouped.none()
        classes = batch.computed.classes
        slot, cls = batch.slots(self.key_columns), batch.here(classes[self])
        if rows <= FEW and not self.counts_events and not cls.any():
            return Grouped.none()
        if self._ignored.any() and not self.is_count:  # as if they were in no partition: they come between no others
            slot = np.where(self._ignored[cls], -1, slot)
        ticks = np.require(batch.ticks, requirements="W")  # columns of a file are read-only: another type to numba
        slots = SlotTable(self.counters, self._count, np.empty(rows, np.int64))
        out = Relevant(*(np.empty(rows, np.int64) for _ in Relevant._fields))
        used = group(Arrived(slot, cls, ticks), batch.first_row, self._counts, int(keeps_order), slots, out)
        out = Relevant(*(column[:used] for column in out))
        if rows == classes[self].size:  # not a piece: its memory is free for what comes
            del classes[self]
        at, row, place = out.row - batch.first_row, out.row, out.place
        if batch.rows is not None:
            row = batch.rows[at]
            place = row if self._places_are_rows else place
        ids = row if batch.ids is None else batch.ids[at]
        return Grouped(out.slot, out.tick, out.cls, row, ids, place, at)

    def set_counters(self, counters: Ints, room: int = 0) -> None:
        """Take over the number of events per slot, with room for more slots."""
        self.counters = extended(counters, max(room, counters.size), 0)
        self._count = np.zeros(self.counters.size, np.int64)
        if self.began.size:
            self.began = extended(self.began, self.counters.size, 0)

    def end_keys(self, slots: Ints, window: int) -> None:
        """The streams of some keys have ended; those that get their slots begin with numbers outside of all windows."""
        if self.is_count:
            if not self.began.size:
                self.began = np.zeros(self.counters.size, np.int64)
            self.counters[slots] += min(window, FARTHEST) + MOST_AT_ONCE
            self.began[slots] = self.counters[slots]

    def positions(self, slot: Ints, numbers: Ints) -> Ints:
        """In count windows the numbers of events within the streams of their keys."""
        return numbers - self.began[slot] if self.began.size else numbers

    def classes_of(self, masks: Masks) -> Ints:
        """The class of each letter mask; new ones get the next numbers."""
        known, classes = len(self.classes), self._numbers.of(masks)
        for number in range(known, len(self.classes)):
            self._notice(number)
        return classes

    def add_class(self, mask: int) -> None:
        """Give a letter mask the next class number."""
        self._numbers.add(mask)
        self._notice(len(self.classes) - 1)

    def _notice(self, number: int) -> None:
        """Find out whether a new class is ignored."""
        if number >= self._ignored.size:
            self._ignored = np.concatenate((self._ignored, np.zeros_like(self._ignored)))
        self._ignored[number] = self._is_ignored(self.classes[number]) and not self.is_count


def _never(_: int) -> bool:
    return False


def _counting(plan: Plan) -> int:
    """Which events a query must have counted: its places are those in the stream, or within a key."""
    is_strict = plan.counted == "stream"
    if plan.is_count_window:
        return ONLY_TICKS if is_strict or plan.registers is None else TICKS
    if plan.query.is_simultaneous:
        return UNCOUNTED  # places count times: see ``TickPlaces``
    has_guards = plan.registers is not None and any(step.guard for step in plan.registers.steps)
    is_counted = plan.counted == "partition" or (has_guards and not is_strict)
    return COUNTED if is_counted else UNCOUNTED
