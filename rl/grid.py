"""The remaining window in slots, beside the time since the last event: where values are worked out.

Source: a grid in time is what any numerical solution needs; this one is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from history.arrays import Floats, Ints
from history.vectors import Scheme

SLOTS = 2
"""Slots that a part of the window is cut into."""


@dataclass(frozen=True)
class Grid:
    """Slots of the remaining window, and ages (slots since the last event) up to where they make no difference.

    Parameters
    ----------
    scheme : history.vectors.Scheme
        Its window and buckets; its places do not matter.

    Examples
    --------
    >>> grid = Grid(Scheme((), window=160))
    >>> grid.slots, grid.slot, grid.late.tolist()
    (16, 10.0, [1, 2, 2, 2, 3])
    """

    scheme: Scheme

    @property
    def slots(self) -> int:
        """How many there are."""
        return self.scheme.remaining * SLOTS

    @property
    def slot(self) -> float:
        """Ticks of one."""
        return self.scheme.window / self.slots

    @cached_property
    def late(self) -> Ints:
        """Bucket of the time since the last event in the middle of the slot that begins at each age."""
        middles = (np.arange(self.slots + 1) + 0.5) * self.slot
        bucket = np.searchsorted(self.scheme.since_limits, middles, side="left")
        return bucket[: 1 + int(np.argmax(bucket == bucket[-1]))].astype(np.int64)

    @property
    def ages(self) -> int:
        """How many there are."""
        return len(self.late)

    def means(self, worth: Floats) -> Floats:
        """Means of each vertex, over what is in it and can occur.

        Parameters
        ----------
        worth : float64 array, shape (kinds, groups, slots + 1, ages)
            What is known at the ends of slots.

        Returns
        -------
        float64 array, shape (kinds, vertices)
            Straight lines are drawn between the ends of slots.
        """
        kinds, groups = worth.shape[:2]
        flat, step = worth.reshape(kinds * groups, -1), SLOTS * self.ages
        means = np.empty((kinds * groups, self.scheme.remaining, len(self.scheme.since) + 1))
        for part, weights in enumerate(self._weights):
            means[:, part] = flat[:, part * step : part * step + len(weights)] @ weights
        return means.reshape(kinds, -1)

    @cached_property
    def _weights(self) -> Floats:
        """How much each end of a slot and age counts; shape (parts, (slots of a part + 1) * ages, buckets)."""
        buckets = len(self.scheme.since) + 1
        weights = np.zeros((self.scheme.remaining, SLOTS + 1, self.ages, buckets))
        for part, own, bucket in product(range(self.scheme.remaining), range(SLOTS), range(buckets)):
            for young, old in self._ages(bucket):
                # ages from here on that can occur with so much left
                most = max(self.slots - part * SLOTS - own - young, 0)
                times = most if old == young and self.late[young] == bucket else min(most, 1)
                for age in (young, old):
                    # where nothing can occur, as if a run could be that late
                    weights[part, own : own + 2, age, bucket] += times or 1e-12
        weights /= weights.sum(axis=(1, 2), keepdims=True)
        return weights.reshape(self.scheme.remaining, -1, buckets)

    def _ages(self, bucket: int) -> list[tuple[int, int]]:
        """The slots of age in a bucket, as the ages where they begin and end."""
        found = np.flatnonzero(self.late == bucket).tolist()
        if not found:  # shorter than half a slot, as "just bound" is: a moment, the age where it would begin
            moment = min(int(np.searchsorted(self.late, bucket)), self.ages - 1)
            return [(moment, moment)]
        return [(age, min(age + 1, self.ages - 1)) for age in found]


@lru_cache(maxsize=8)
def grid_of(window: int, remaining: int, since: tuple[float, ...]) -> Grid:
    """The same for all schemes of such vertices."""
    return Grid(Scheme((), window, remaining, since))
