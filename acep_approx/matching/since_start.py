"""Events before which none of some letters came in their partition: AT START, ~(B b) SINCE START.

A partition starts with its first event. Where the streams of keys end (``IdleKeys``), the next event starts another.
"""

from __future__ import annotations

import numpy as np

from acep_approx.archive import Scope
from acep_approx.arrays import Ints, extended
from acep_approx.automaton.automaton import Letter
from acep_approx.automaton.letters import LetterReader, Masks, Truths
from acep_approx.ranges import Range, check_arrays

NOT_HERE = 2**62


class SinceStart:
    """Per partition, which letters an event has satisfied since its start, among those that must not have come.

    Parameters
    ----------
    letters : tuple of Letter
        At most 64.

    Attributes
    ----------
    reader : LetterReader
        Of the letters of which no event may have come.
    """

    def __init__(self, letters: tuple[Letter, ...]) -> None:
        asked = tuple(dict.fromkeys(unseen for letter in letters for unseen in letter.unseen))
        self.reader = LetterReader(asked)
        self._excluded = [
            np.uint64(sum(1 << j for j, letter in enumerate(letters) if unseen in letter.unseen)) for unseen in asked
        ]
        self._seen: Ints = np.zeros(1, np.int64)  # per slot, as masks
        self._place: Ints = np.full(1, NOT_HERE, np.int64)  # per slot, while a batch is looked at

    def __bool__(self) -> bool:
        return bool(self._excluded)

    def kept_to(self, masks: Masks, truths: Truths, slots: Ints) -> Masks:
        """Add the events of a batch, and clear letters that an earlier event of the same partition excludes.

        Parameters
        ----------
        masks : numpy.ndarray of uint64
        truths : Truths
        slots : numpy.ndarray of int64
            Key slots; -1 for events that are in no partition.

        Complexity: O(rows x distinct letters of which none may have come).
        """
        found = self.reader.masks(truths, lambda: slots >= 0)
        self._make_room(int(slots.max(initial=0)) + 1)
        masks = masks.copy()
        for number, excluded in enumerate(self._excluded):
            bit = 1 << number
            at = np.flatnonzero(((found & np.uint64(bit)) != 0) & (slots >= 0))
            self._place[slots[at[::-1]]] = at[::-1]  # the last write stays: the first event of each slot
            is_late = (self._seen[slots] & bit != 0) | (self._place[slots] < np.arange(len(slots)))
            masks[is_late] &= ~excluded
            self._seen[slots[at]] |= bit
            self._place[slots[at]] = NOT_HERE
        return masks

    def clear(self, slots: Ints) -> None:
        """Forget the keys in some slots, whose streams have ended."""
        self._seen[slots[slots < self._seen.size]] = 0

    def _make_room(self, slots: int) -> None:
        if slots > self._seen.size:
            self._seen = extended(self._seen, 2 * slots, 0)
            self._place = extended(self._place, 2 * slots, NOT_HERE)

    # --- state ----------------------------------------------------------------------------------------------

    def save(self, scope: Scope, slots: int) -> None:
        """Save the state of the first ``slots`` key slots."""
        if self:
            self._make_room(slots)
            scope.arrays["since start"] = self._seen[:slots]

    def restore(self, scope: Scope) -> None:
        """Go on from what ``save`` saved.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """
        if self:
            check_arrays(scope.arrays, {"since start": Range(None, 0, 1 << len(self._excluded))})
            self._seen = np.zeros(0, np.int64)
            self._make_room(len(scope.arrays["since start"]))
            self._seen[: len(scope.arrays["since start"])] = scope.arrays["since start"]
