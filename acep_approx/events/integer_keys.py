"""Slots of keys that are whole numbers: found by a table where batch after batch has many events of few keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import empty, to_numpy
from acep_approx.kernels.integer_keys import FREE, NEW, KeyTable, NewKeys, find_slots

FIRST_SIZE = 1 << 11


class IntegerKeys:
    """Remembers the slots of keys that were looked up.

    Parameters
    ----------
    find : callable
        Gives the slots of keys, as Python has them, in the order in which they came; new ones get one.
    """

    def __init__(self, find: Callable[[list[int]], list[int]]) -> None:
        self._find = find
        self.forget()

    def forget(self) -> None:
        """Ask for all slots again: some keys may have got others."""
        self._used = 0
        self._table = KeyTable(np.zeros(FIRST_SIZE, np.int64), np.full(FIRST_SIZE, FREE))

    def slots(self, column: pa.Array) -> Ints | None:
        """The slot of each event's key; None where the kernel is not compiled yet.

        Parameters
        ----------
        column : pyarrow.Array
            ``int64`` without nulls.

        Complexity: O(events); for keys that are new O(size of the table) at worst.
        """
        values, found = np.require(to_numpy(column), requirements="W"), empty(len(column))
        while True:
            table = self._table
            room = len(table.key) // 2 - self._used
            new = NewKeys(*np.empty((2, room), np.int64))
            count = find_slots.if_compiled(values, table, found, new)
            if count is None:
                return None
            if count >= 0:
                break
            size = 4 * len(table.key)
            self._used, self._table = 0, KeyTable(np.zeros(size, np.int64), np.full(size, FREE))
        if count:
            self._used += count
            slots = np.array(self._find(values[new.row[:count]].tolist()), np.int64)
            table.slot[new.place[:count]] = slots
            is_new = found <= NEW
            found[is_new] = slots[NEW - found[is_new]]
        return found
