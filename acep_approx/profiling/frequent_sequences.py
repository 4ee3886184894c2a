"""What follows what within a key: the most frequent pairs and triples of types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Ints

ENOUGH = 3
"""Places at which a sequence must be found to be preferred to a shorter one."""
SHARE = 0.05
"""Of the places of the most frequent pair."""


@dataclass(frozen=True)
class Sequence:
    """Types that follow one another.

    Attributes
    ----------
    types : tuple of int
        Their codes.
    places : int
        At how many places they follow one another, with nothing of the key between them.
    spans : numpy.ndarray of int64
        From the first event to the last at each of these places, in ticks.
    """

    types: tuple[int, ...]
    places: int
    spans: Ints

    def within(self, share: float) -> int:
        """Ticks within which such a share of the places lie."""
        return int(np.quantile(self.spans, share, method="inverted_cdf"))


class KeyedEvents:
    """Events of each key in order of time, then of arrival.

    Parameters
    ----------
    ticks, types, keys : numpy.ndarray of int64, shape (n,)
        Codes of types and keys; -1: none, and such events are left out.
    """

    def __init__(self, ticks: Ints, types: Ints, keys: Ints) -> None:
        kept = np.flatnonzero((types >= 0) & (keys >= 0))
        order = kept[np.lexsort((ticks[kept], keys[kept]))]
        self.ticks, self.types, self.keys = ticks[order], types[order], keys[order]

    def typical(self) -> float | None:
        """The median distance from the event before of the same key; None where no key has two events."""
        steps = np.diff(self.ticks)[self.keys[1:] == self.keys[:-1]]
        return float(np.median(steps)) if len(steps) else None

    def are_dense(self, ticks: float, most: int) -> bool:
        """Whether somewhere more than ``most`` events of one key lie within so many ticks."""
        first, last = slice(0, max(len(self.keys) - most, 0)), slice(most, None)
        is_near = self.ticks[last] - self.ticks[first] <= ticks
        return bool((is_near & (self.keys[last] == self.keys[first])).any())

    def most_frequent(self) -> Sequence | None:
        """The sequence for a first query: three different types if there are such, else what comes next.

        Events of a type that is followed by itself say little, so these come last.
        """
        pairs, triples = self._sequences(2), self._sequences(3)
        best = pairs[1].max(initial=0)
        least = min(best, max(ENOUGH, SHARE * best))
        kinds: tuple[tuple[tuple[Ints, Ints], Callable[[Ints], Bools], float], ...] = (
            (triples, lambda codes: (codes[0] != codes[1]) & (codes[1] != codes[2]) & (codes[0] != codes[2]), least),
            (triples, lambda codes: (codes[0] != codes[1]) & (codes[1] != codes[2]), least),
            (pairs, lambda codes: codes[0] != codes[1], 1),
            (pairs, lambda codes: codes[0] == codes[1], 1),
        )
        for (codes, counts), fits, enough in kinds:
            chosen = np.flatnonzero(fits(codes) & (counts >= enough))
            if len(chosen):
                best = chosen[np.argmax(counts[chosen])]
                types = tuple(int(code) for code in codes[:, best])
                return Sequence(types, int(counts[best]), self._spans(types))
        return None

    def _starts(self, length: int) -> Ints:
        """Where events stand that are followed by others of their key."""
        return np.flatnonzero(self.keys[length - 1 :] == self.keys[: len(self.keys) - length + 1])

    def _sequences(self, length: int) -> tuple[Ints, Ints]:
        """The different sequences of some length, one a column, and at how many places each is found."""
        starts = self._starts(length)
        rows = np.stack([self.types[starts + i] for i in range(length)])
        width = int(self.types.max(initial=0)) + 1
        code = rows[0]
        for row in rows[1:]:
            code = code * width + row
        _, first, counts = np.unique(code, return_index=True, return_counts=True)
        return rows[:, first], counts

    def _spans(self, types: tuple[int, ...]) -> Ints:
        starts = self._starts(len(types))
        for place, type_ in enumerate(types):
            starts = starts[self.types[starts + place] == type_]
        return self.ticks[starts + len(types) - 1] - self.ticks[starts]
