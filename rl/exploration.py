"""Exploration: a cohort in which nothing is shed, and what it tells about everything else.

What a shedding matcher sees often is what it kept, so its own counts say more about its choices than about the stream.
Hence the cohort: one coin for each key and epoch, before anything is known of it; for the lineages that start in it
nothing is shed until they are over. Each counts as one by the chance of the coin (Horvitz and Thompson, JASA 1952), and
sums weighted so are right on average, whatever is shed elsewhere.

Source: that counts and match maps are refreshed while the stream runs is Li and Ge's, PVLDB 2016; how is
reconstruction (docs/how-it-works/paper.md). The cohort and all of this is ours; one coin for a whole lineage rather
than one a step, because a chance of p a step is p to the power of the steps for an outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from bitarray import bitarray

from history.arrays import Bools, Floats, Ints
from history.bundles import Bundles, chain
from history.counting import packed
from history.coverage.sketch import finalized
from rl.records import Lineages

MOST_BUNDLES = 65_536


def in_cohort(key: npt.ArrayLike, epoch: npt.ArrayLike, chance: float, seed: int = 0) -> Bools:
    """The coins of some keys and epochs: the same wherever and whenever they are asked for.

    Parameters
    ----------
    key : int array
        A number for each key, for example a hash of its name.
    epoch : int array
        Number of the epoch in which a lineage starts.
    chance : float
        From 0 to 1.
    seed : int, default 0
        Another one is another cohort.

    Returns
    -------
    bool array
        Of the arguments' common shape.

    Notes
    -----
    The coin is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), once for each of the three numbers.

    Examples
    --------
    >>> in_cohort([1, 2, 3, 4, 5], 7, 0.4).tolist()
    [True, False, True, True, False]
    """
    bits = np.zeros(1, np.uint64)
    for number in (seed, epoch, key):
        bits = finalized((bits ^ np.asarray(number, np.int64).astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15))
    shape = np.broadcast_shapes(np.shape(key), np.shape(epoch))
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53 < chance).reshape(shape)


@dataclass
class CohortCounts:
    """What a history counts, estimated from the outcomes of the cohort.

    A visit that is one half-life older than the latest counts half. All sums are as of the latest tick that was
    observed, so neither order nor batches matter, and two of them can be merged.

    Parameters
    ----------
    vertices : int
        Of the scheme.
    half_life : float
        In ticks; above 0.
    most_bundles : int, default 65,536
        The latest bundles that match maps are about.

    Attributes
    ----------
    sums : float64 array, shape (3, vertices)
        Estimates of the visits of each vertex, of those that led to a match point, and of the match points they led
        to; ``visits``, ``led`` and ``points`` are its rows.
    tick : int or None
        What they are as of; None before the first visit.
    bundles : history.bundles.Bundles
        What match maps are about, in order.
    map_vertex, map_bundle : int64 array, shape (bits that are set,)
        Match maps: vertices and positions in ``bundles``, in this order, no pair twice.

    Examples
    --------
    >>> counts = CohortCounts(vertices=3, half_life=100.0)
    >>> outcomes = Lineages(np.array([100, 200]), np.array([1, 1]), np.array([2, 0]), np.array([20.0, 20.0]))
    >>> counts.add(outcomes)
    >>> counts.visits.tolist(), counts.led.tolist(), counts.points.tolist()
    ([0.0, 30.0, 0.0], [0.0, 10.0, 0.0], [0.0, 20.0, 0.0])
    """

    vertices: int
    half_life: float
    most_bundles: int = MOST_BUNDLES
    sums: Floats = field(init=False)
    visits: Floats = field(init=False)
    led: Floats = field(init=False)
    points: Floats = field(init=False)
    tick: int | None = field(init=False, default=None)
    bundles: Bundles = field(init=False, default_factory=Bundles)
    map_vertex: Ints = field(init=False, default_factory=lambda: np.zeros(0, np.int64))
    map_bundle: Ints = field(init=False, default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        self.visits, self.led, self.points = self.sums = np.zeros((3, self.vertices))

    def add(self, lineages: Lineages) -> None:
        """Add outcomes. Complexity: O(rows + vertices).

        Parameters
        ----------
        lineages : Lineages
            Of the cohort, each visit once, in any order.
        """
        if not len(lineages.tick):
            return
        self.forget(int(lineages.tick.max()))
        assert self.tick is not None
        weight = lineages.weight * np.exp2((lineages.tick - self.tick) / self.half_life)
        for number, each in enumerate((weight, weight * (lineages.points > 0), weight * lineages.points)):
            self.sums[number] += np.bincount(lineages.vertex, weights=each, minlength=self.vertices)

    def forget(self, to_tick: int) -> None:
        """Make the sums those of a later tick; an earlier one changes nothing."""
        if self.tick is not None and to_tick > self.tick:
            self.sums *= self._left(self.tick, to_tick)
        self.tick = to_tick if self.tick is None else max(self.tick, to_tick)

    def reach(self, bundles: Bundles, vertex: Ints, bundle: Ints) -> None:
        """Set bits of match maps.

        Parameters
        ----------
        bundles : Bundles
            That the cohort reached, in any order. Those that are known already are the same ones, not new ones.
        vertex, bundle : int64 array, shape (bits,)
            A visit of this vertex led to the bundle at this position in ``bundles``.

        Complexity: O((bits + bundles) log).
        """
        split = len(self.bundles)
        both = Bundles.joined([self.bundles, bundles])
        self.bundles, places = chain(both, -1, self.most_bundles)
        # chain adds up what it joins, but here a bundle that is there twice is one that was told of twice
        self.bundles.points[:] = 0
        np.maximum.at(self.bundles.points, places[places >= 0], both.points[places >= 0])
        known, new = places[:split][self.map_bundle], places[split:][bundle]
        self._set(np.concatenate([self.map_vertex, vertex]), np.concatenate([known, new]))

    def drop_before(self, tick: int) -> None:
        """Forget bundles whose last match point lies before a tick, and their bits. Complexity: O(bits log bits)."""
        kept = self.bundles.last >= tick
        places = np.where(kept, np.cumsum(kept) - 1, -1)
        self.bundles = self.bundles[np.flatnonzero(kept)]
        self._set(self.map_vertex, places[self.map_bundle])

    def maps(self) -> dict[int, bitarray]:
        """Match map of each vertex that has one, as ``history.counting.Counts.maps``: a bit for each bundle."""
        flags = np.zeros(len(self.bundles), np.bool_)
        vertices, heads = np.unique(self.map_vertex, return_index=True)
        found = {}
        for vertex, bits in zip(vertices.tolist(), np.split(self.map_bundle, heads[1:]), strict=False):
            flags[bits] = True
            found[vertex] = packed(flags)
            flags[bits] = False
        return found

    def merge(self, other: CohortCounts) -> CohortCounts:
        """Both as one: as if one had been given all that either was, in any order.

        Parameters
        ----------
        other : CohortCounts
            Of as many vertices, the same half-life and most bundles. What was dropped of it with ``drop_before``
            stays in the other; drop afterwards.

        Returns
        -------
        CohortCounts
            A new one.

        Raises
        ------
        ValueError
            They do not go together.
        """
        settings = ("vertices", "half_life", "most_bundles")
        if any(getattr(self, name) != getattr(other, name) for name in settings):
            raise ValueError(f"cohorts that differ in one of {', '.join(settings)} cannot be merged")
        merged = CohortCounts(self.vertices, self.half_life, self.most_bundles)
        latest = max((one.tick for one in (self, other) if one.tick is not None), default=None)
        for one in (self, other):
            if one.tick is not None and latest is not None:
                merged.sums += self._left(one.tick, latest) * one.sums
            merged.reach(one.bundles, one.map_vertex, one.map_bundle)
        merged.tick = latest
        return merged

    def _left(self, tick: int, later: int) -> float:
        """What is left of 1 after some time; ticks are Python integers, so no difference is too large."""
        return float(2.0 ** ((tick - later) / self.half_life))

    def _set(self, vertex: Ints, bundle: Ints) -> None:
        kept = bundle >= 0
        wide = max(len(self.bundles), 1)
        code = np.unique(vertex[kept] * wide + bundle[kept])
        self.map_vertex, self.map_bundle = code // wide, code % wide
