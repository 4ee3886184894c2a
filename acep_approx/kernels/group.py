"""Before matching: number the event classes of a batch, leave out what no letter holds on, group by key.

Grouping keeps a key's state in cache while its events are run: with many keys it is worth far more than it costs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import ix, kernel

Ints = npt.NDArray[np.int64]
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
    size = known_mask.size
    for i in range(first, mask.size):
        m = mask[ix(i)]
        mixed = m ^ (m >> FOLD_HIGH)
        place = np.int64(mixed ^ (mixed >> FOLD_LOW)) & (size - 1)
        while known_class[ix(place)] >= 0 and known_mask[ix(place)] != m:
            place = (place + 1) & (size - 1)
        if known_class[ix(place)] < 0:
            return i
        cls[ix(i)] = known_class[ix(place)]
    return mask.size


@kernel
def group(
    slot: Ints,
    cls: Ints,
    tick: Ints,
    first_row: int,
    counters: Ints,
    is_count: int,
    count: Ints,
    touched: Ints,
    out_slot: Ints,
    out_tick: Ints,
    out_cls: Ints,
    out_row: Ints,
    out_place: Ints,
) -> int:
    """Group the relevant events (class above 0, slot not negative) by slot, stably.

    Parameters
    ----------
    slot, cls, tick : int64, shape (n,)
    first_row : int
        Row number of the first event in the whole input.
    counters : int64, shape (slots,)
        Events seen per slot; changed in place.
    is_count : int
        0: nothing is counted; 1: events are counted per slot; 2: their numbers are also their ticks (count windows).
    count : int64, shape (slots,)
        Scratch, all zeros before and after.
    touched : int64, shape (n,)
        Scratch.
    out_slot, out_tick, out_cls, out_row, out_place : int64, shape (n,)
        The grouped events; slots in order of first appearance. ``out_place`` are their numbers within the slot.

    Returns
    -------
    int
        Number of events written.

    Complexity: O(n), independent of the number of slots.
    """
    slots = 0
    for i in range(slot.size):
        s = slot[ix(i)]
        if s >= 0 and cls[ix(i)] > 0:
            if count[ix(s)] == 0:
                touched[ix(slots)] = s
                slots += 1
            count[ix(s)] += 1
    total = 0
    for j in range(slots):
        s = touched[ix(j)]
        here = count[ix(s)]
        count[ix(s)] = total
        total += here
    for i in range(slot.size):
        s = slot[ix(i)]
        if s < 0:
            continue
        t, place = tick[ix(i)], 0
        if is_count > 0:
            place = counters[ix(s)]
            counters[ix(s)] = place + 1
            if is_count == 2:
                t = place
        if cls[ix(i)] > 0:
            at = count[ix(s)]
            count[ix(s)] = at + 1
            out_slot[ix(at)] = s
            out_tick[ix(at)] = t
            out_cls[ix(at)] = cls[ix(i)]
            out_row[ix(at)] = first_row + i
            out_place[ix(at)] = place
    for j in range(slots):
        count[ix(touched[ix(j)])] = 0
    return total
