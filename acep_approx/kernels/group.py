"""Before matching: number the event classes of a batch, leave out what no letter holds on, group by key.

Grouping keeps a key's state in cache while its events are run: with many keys it is worth far more than it costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline

Masks = npt.NDArray[np.uint64]

FOLD_HIGH, FOLD_LOW = np.uint64(32), np.uint64(11)
"""Shifts that fold the bits of a mask onto its low bits: the hash of ``classify``."""


@kernel
def classify(mask: Masks, first: int, known_mask: Masks, known_class: Ints, cls: Ints) -> int:
    """Look up the class of each mask from event ``first`` on, in an open hash table (class -1: empty place).

    Returns
    -------
    int
        Index of the first event whose mask is not in the table, or the number of events.
    """
    size = len(known_mask)
    for i in range(first, len(mask)):
        m = mask[i]
        mixed = m ^ (m >> FOLD_HIGH)
        place = np.int64(mixed ^ (mixed >> FOLD_LOW)) & (size - 1)
        while known_class[place] >= 0 and known_mask[place] != m:
            place = (place + 1) & (size - 1)
        if known_class[place] < 0:
            return i
        cls[i] = known_class[place]
    return len(mask)


class Arrived(NamedTuple):
    """Events as they come: key slot (negative: none), class (0: no letter holds) and tick of each."""

    slot: Ints
    cls: Ints
    tick: Ints


class Relevant(NamedTuple):
    """The events that a letter holds on, grouped by slot.

    ``row`` is the number of each in the whole input; ``place`` that within its slot, where these are counted, else the
    row.
    """

    slot: Ints
    tick: Ints
    cls: Ints
    row: Ints
    place: Ints


class SlotTable(NamedTuple):
    """Per slot the events seen, and scratch: zeros, one for each slot before and after; one for each event."""

    seen: Ints
    begin: Ints
    touched: Ints


UNCOUNTED, COUNTED, TICKS, ONLY_TICKS = 0, 1, 2, 3
"""Whether events are counted per slot, and whether these numbers are their places, their ticks too, or only these."""


@inline
def _begin_groups(events: Arrived, slots: SlotTable) -> int:
    """Where the events of each slot will begin goes to ``begin``; returns how many slots have some."""
    used = 0
    for i in range(len(events.slot)):
        s = events.slot[i]
        if s >= 0 and events.cls[i] > 0:
            if slots.begin[s] == 0:
                slots.touched[used] = s
                used += 1
            slots.begin[s] += 1
    total = 0
    for j in range(used):
        s = slots.touched[j]
        here = slots.begin[s]
        slots.begin[s] = total
        total += here
    return used


@kernel
def group(
    events: Arrived, first_row: int, counting: int, keeps_order: int, slots: SlotTable, out: Relevant
) -> int:
    """Group the relevant events (class above 0, slot not negative) by slot, stably; or leave them as they came.

    Parameters
    ----------
    events : Arrived
    first_row : int
        Row number of the first event in the whole input.
    counting : int
        ``UNCOUNTED``, ``COUNTED``, ``TICKS`` or ``ONLY_TICKS``.
    keeps_order : int
        1: they stay in the order of the batch.
    slots : SlotTable
        Changed in place.
    out : Relevant
        Gets the events; slots in order of first appearance. Has room for all.

    Returns
    -------
    int
        Number of events written.

    Complexity: O(n), independent of the number of slots.
    """
    used = 0 if keeps_order else _begin_groups(events, slots)
    total = 0
    for i in range(len(events.slot)):
        s = events.slot[i]
        if s < 0:
            continue
        tick, place = events.tick[i], first_row + i
        if counting > UNCOUNTED:
            number = slots.seen[s]
            slots.seen[s] = number + 1
            tick = tick if counting == COUNTED else number
            place = place if counting == ONLY_TICKS else number
        if events.cls[i] > 0:
            at = total if keeps_order else slots.begin[s]
            slots.begin[s] += 1 - keeps_order
            out.slot[at] = s
            out.tick[at] = tick
            out.cls[at] = events.cls[i]
            out.row[at] = first_row + i
            out.place[at] = place
            total += 1
    for j in range(used):
        slots.begin[slots.touched[j]] = 0
    return total


@kernel
def order_by(keys: Ints, before: Ints, begin: Ints, order: Ints) -> None:
    """Put places in order of their keys, which are small; those of one key stay in the order that they had ``before``.

    Parameters
    ----------
    keys : int64
        By place.
    before, order : int64
        Places.
    begin : int64
        Zeros, two more than the largest key. Changed.

    Complexity: O(n + largest key).
    """
    for i in range(len(keys)):
        begin[keys[i] + 1] += 1
    for k in range(1, len(begin)):
        begin[k] += begin[k - 1]
    for i in range(len(before)):
        place = before[i]
        key = keys[place]
        order[begin[key]] = place
        begin[key] += 1
