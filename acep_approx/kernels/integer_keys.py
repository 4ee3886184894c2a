"""The slots of keys that are whole numbers, by an open hash table."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.kernels.arithmetic import hashed

FREE = -1
"""The slot of a place of the table where no key is."""
NEW = -2
"""What stands for the slot of the first key that is new; for that of the next one stands one less, and so on."""


class KeyTable(NamedTuple):
    """Keys and their slots, by place: a power of two."""

    key: Ints
    slot: Ints


class NewKeys(NamedTuple):
    """Keys that are new: the row of the first event of each, and its place in the table."""

    row: Ints
    place: Ints


@kernel
def find_slots(values: Ints, table: KeyTable, found: Ints, new: NewKeys) -> int:
    """Look up the key of each event; put those that are new into the table.

    Parameters
    ----------
    values : array of int64
    table : KeyTable
        At least half of its places are free once ``new`` is full.
    found : array of int64
        Is given the slots; ``NEW`` and below for keys that are new.
    new : NewKeys

    Returns
    -------
    int
        How many are new; -1: there was no room for all.
    """
    size, used = len(table.key), 0
    for i in range(len(values)):
        value = values[i]
        place = hashed(value ^ (value >> 31), size)  # which goes by the lower half alone
        while table.slot[place] != FREE and table.key[place] != value:
            place = (place + 1) & (size - 1)
        if table.slot[place] == FREE:
            if used == len(new.row):
                return -1
            table.key[place], table.slot[place] = value, NEW - used
            new.row[used], new.place[used] = i, place
            used += 1
        found[i] = table.slot[place]
    return used
