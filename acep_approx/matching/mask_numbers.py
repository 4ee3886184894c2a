"""Numbers of letter masks, in the order in which they are met."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.automaton.letters import Masks
from acep_approx.kernels.group import FOLD_HIGH, FOLD_LOW, classify


class MaskNumbers:
    """Numbers masks from 0, which is "no letter holds".

    Attributes
    ----------
    masks : list of int
        By number.
    """

    def __init__(self) -> None:
        self.masks: list[int] = [0]
        self._known_mask = np.zeros(1024, np.uint64)
        self._known_number: Ints = np.full(1024, -1, np.int64)
        self._remember(0, 0)

    def of(self, masks: Masks) -> Ints:
        """The number of each mask; new ones get the next numbers."""
        numbers = np.empty(len(masks), np.int64)
        at = 0
        while (at := classify(masks, at, self._known_mask, self._known_number, numbers)) < len(masks):
            self.add(int(masks[at]))
        return numbers

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
