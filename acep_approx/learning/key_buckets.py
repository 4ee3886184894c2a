"""Events of each letter by bucket of keys: keys may be many, so a hash of their text says which are counted together.

A key has one bucket wherever it comes, in whatever slot, shard or run. Ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.events.keys import KeyCodes

KEY_BUCKETS = 256


def buckets_of(texts: Iterable[str]) -> Ints:
    """The buckets of some keys, given as text."""
    return np.fromiter((crc32(text.encode()) % KEY_BUCKETS for text in texts), np.int64)


class SlotBuckets:
    """The buckets of keys by slot; each key is hashed once, as long as no slot is used again."""

    def __init__(self) -> None:
        self._keys = KeyCodes()
        self._of_slot = np.zeros(0, np.int64)

    def of(self, keys: KeyCodes, slots: Ints) -> Ints:
        """The buckets of the keys that have these slots now. Complexity: O(slots + new keys)."""
        if keys.added != keys.capacity:  # a slot may have been given to another key
            known, place = np.unique(slots, return_inverse=True)
            return buckets_of(map(keys.text, known.tolist()))[place]
        if keys is not self._keys:
            self._keys, self._of_slot = keys, np.zeros(0, np.int64)
        new = range(len(self._of_slot), keys.capacity)
        if new:
            self._of_slot = np.concatenate((self._of_slot, buckets_of(map(keys.text, new))))
        return self._of_slot[slots]


def packed(counts: Floats | None) -> list[list[float]] | None:
    """Counts by bucket and letter as where there are any, and how many: most are 0."""
    if counts is None:
        return None
    at = np.flatnonzero(counts)
    return [at.tolist(), counts.ravel()[at].tolist()]


def unpacked(saved: list[list[float]] | None, letters: int) -> Floats | None:
    """What ``packed`` gave.

    Raises
    ------
    ValueError
        What was saved is of another number of letters, or damaged.
    """
    if saved is None:
        return None
    counts = np.zeros(KEY_BUCKETS * (letters + 1))
    at, found = np.array(saved[0], np.int64), np.array(saved[1], np.float64)
    if at.shape != found.shape or not ((at >= 0) & (at < len(counts)) & (found >= 0)).all():
        raise ValueError("events by bucket of keys are damaged")
    counts[at] = found
    return counts.reshape(KEY_BUCKETS, letters + 1)
