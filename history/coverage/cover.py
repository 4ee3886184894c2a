"""What some match maps cover together, and what one more would add: exact, weighted, or estimated from sketches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol

import numpy as np
from bitarray import bitarray
from bitarray.util import count_or, zeros

from history.arrays import Floats
from history.coverage.sketch import MapT, overlap, size, union


class Cover(Protocol):
    """The union of the maps that were taken."""

    def gain(self, item: int) -> float:
        """What an item adds."""

    def take(self, item: int) -> None:
        """Add its map."""

    def clear(self) -> None:
        """Nothing is covered any more."""


class _Bits:
    """Exact maps, every bundle counts 1."""

    def __init__(self, maps: Sequence[bitarray]) -> None:
        self.maps = maps
        self.covered = zeros(len(maps[0]))
        self.total = 0

    def gain(self, item: int) -> float:
        return count_or(self.covered, self.maps[item]) - self.total

    def take(self, item: int) -> None:
        self.covered |= self.maps[item]
        self.total = self.covered.count()

    def clear(self) -> None:
        self.covered.setall(0)
        self.total = 0


class _WeightedBits(_Bits):
    """Exact maps, bundles of different weights."""

    def __init__(self, maps: Sequence[bitarray], weights: Floats) -> None:
        super().__init__(maps)
        self.weights = weights

    def gain(self, item: int) -> float:
        fresh = self.maps[item] & ~self.covered
        return float(self.weights[np.frombuffer(fresh.unpack(), bool)].sum())


class _Sketched(Generic[MapT]):
    """Sketches: what an item adds is estimated, and never below 0."""

    def __init__(self, maps: Sequence[MapT]) -> None:
        self.maps = maps
        self.covered: MapT | None = None

    def gain(self, item: int) -> float:
        own = size(self.maps[item])
        return own if self.covered is None else max(own - overlap(self.maps[item], self.covered), 0.0)

    def take(self, item: int) -> None:
        self.covered = self.maps[item] if self.covered is None else union(self.covered, self.maps[item])

    def clear(self) -> None:
        self.covered = None


def cover_of(maps: Sequence[MapT], weights: Floats | None) -> Cover:
    """Nothing covered yet, of the kind that the maps ask for.

    Parameters
    ----------
    maps
        At least one map; bitarrays of one length, or sketches of one kind.
    weights
        float64, weight >= 0 of each bundle, exact maps only; None counts bundles.

    Raises
    ------
    ValueError
        Maps that do not go together, weights with sketches, or weights that are not one for each bundle.
    """
    exact = [bundles for bundles in maps if isinstance(bundles, bitarray)]
    if len(exact) < len(maps):
        if exact or weights is not None:
            raise ValueError("weights, and maps of different kinds side by side, need exact maps (bitarrays)")
        return _Sketched(maps)
    if len({len(bundles) for bundles in exact}) > 1:
        raise ValueError("exact maps must be over the same bundles, so of one length")
    if weights is None:
        return _Bits(exact)
    if len(weights) != len(exact[0]) or np.min(weights, initial=0.0) < 0:
        raise ValueError(f"there must be a weight >= 0 for each of the {len(exact[0])} bundles")
    return _WeightedBits(exact, np.asarray(weights, np.float64))


def coverage(maps: Sequence[MapT], items: Iterable[int], weights: Floats | None = None) -> float:
    """Bundles, or their weight, that some items cover together.

    Examples
    --------
    >>> coverage([bitarray("0110"), bitarray("0011"), bitarray("1000")], [0, 1])
    3.0
    """
    taken, total = cover_of(maps, weights) if maps else None, 0.0
    for item in items:
        assert taken is not None
        total += taken.gain(item)
        taken.take(item)
    return total
