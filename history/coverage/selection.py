"""Which items to keep when their match maps overlap: greedy coverage, one-by-one acceptance, ranking by own count.

An item is a vertex of the history (or a run, or a group of runs) and covers the bundles of its match map. With a
budget for few items, two that lead to the same bundles are worth little more than one. So items are chosen by what
they *add*: budgeted maximum coverage. Guarantees are relative to the best choice by the same maps, which is to what
the history has recorded: nothing can be promised about bundles that nobody has seen.

Maps are bitarrays of one length or sketches of one kind (see ``sketch``). Greedy coverage over a `FoldedMap`
is best done over its ``bits``, which is the same choice and faster.

Source: that runs should be kept by the bundles that they lead to together is Li and Ge's (PVLDB 2016, section 3.2, of
which only the beginning is known to us); the algorithms are named at each function. The hysteresis is ours.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol

import numpy as np
from bitarray import bitarray
from bitarray.util import any_and, count_or, zeros

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


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes
    ----------
    items
        Indices of the chosen items, in the order of choice.
    gains
        What each of them added to those before it: bundles, or their weight.
    covered
        Bundles (or their weight) that they cover together.
    cost
        What they cost together.
    """

    items: tuple[int, ...]
    gains: tuple[float, ...]
    covered: float
    cost: float


# --- all at once --------------------------------------------------------------------------------------------


@dataclass
class _Greedy:
    """One greedy choice; `heap` holds items below the highest rank that they can still have."""

    cover: Cover
    costs: Floats
    left: float
    bonus: float
    waiting: list[int]
    own: list[float]
    heap: list[tuple[float, int]] = field(default_factory=list)
    items: list[int] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)

    def run(self, refill: bool) -> Choice:
        """Choose until nothing adds anything; with ``refill`` go on with the rest, until the budget is spent."""
        taken: set[int] = set()
        self._round(taken)
        covered = math.fsum(self.gains)
        before = 0
        while refill and len(self.items) > before:
            before = len(self.items)
            self.cover.clear()
            self._round(taken)
        return Choice(tuple(self.items), tuple(self.gains), covered, math.fsum(self.costs[self.items]))

    def _round(self, taken: set[int]) -> None:
        """Choose until nothing that fits adds anything, and no kept item is left."""
        left = [item for item in range(len(self.own)) if item not in taken]
        self.heap = [(-self.own[item] / self.costs[item], item) for item in left]
        heapq.heapify(self.heap)
        while True:
            item = self._best(taken)
            old = self._next_kept(taken)
            if old is not None and (item is None or self._rank(old, self.bonus) >= self._rank(item)):
                item = old
            if item is None:
                return
            taken.add(item)
            self.items.append(item)
            self.gains.append(float(self.cover.gain(item)))
            self.cover.take(item)
            self.left -= self.costs[item]

    def _rank(self, item: int, bonus: float = 0.0) -> float:
        return float((self.cover.gain(item) + bonus) / self.costs[item])

    def _best(self, taken: set[int]) -> int | None:
        """The item of most gain per cost among those that fit and add something; it stays in the heap."""
        while self.heap:
            _, item = self.heap[0]
            rank = 0.0 if item in taken or self.costs[item] > self.left else self._rank(item)
            if rank <= 0:
                heapq.heappop(self.heap)
                continue
            fresh = (-rank, item)
            heapq.heapreplace(self.heap, fresh)
            if self.heap[0] == fresh:
                return item
        return None

    def _next_kept(self, taken: set[int]) -> int | None:
        """The kept item that is next in the old order, among those that fit."""
        while self.waiting:
            item = self.waiting[-1]
            if item not in taken and self.costs[item] <= self.left:
                return item
            self.waiting.pop()
        return None


def lazy_greedy(
    maps: Sequence[MapT],
    weights: Floats | None = None,
    costs: Floats | None = None,
    budget: float = math.inf,
    *,
    kept: Sequence[int] = (),
    bonus: float = 0.0,
    refill: bool = False,
) -> Choice:
    """Choose items, one after the other, by what each adds per cost to those before it (budgeted maximum coverage).

    What an item adds only shrinks while others are taken, so an old value is an upper bound: an item is looked at
    again only when it comes to the top of the heap. The choice is that of the plain greedy rule. Items that add
    nothing are not chosen; of equal ones the one with the least index is.

    Parameters
    ----------
    maps
        Match map of each item: bitarrays of one length, or sketches of one kind.
    weights
        float64, weight >= 0 of each bundle; exact maps only. Default: 1 each, so bundles are counted.
    costs
        float64, cost > 0 of each item. Default: 1 each, so the budget is a number of items.
    budget
        What the chosen items may cost together. Default: no limit, so that all items that add something come in the
        order of the greedy choice.
    kept
        Items that live now, in the order in which they were chosen.
    bonus
        What a kept item is preferred by, in units of gain: give what it costs to make it anew. The next one in the
        old order stays if its gain and the bonus, per cost, reach the gain per cost of every other item. So at equal
        costs, while no gain has changed by more than half the bonus since the last choice, all of them are chosen
        again, in the same order: the set does not flicker. Each step falls short of the best one by at most the bonus.
    refill
        When nothing adds anything while budget is left: go on as if nothing were covered, with the items that are
        left. For sketches, whose bits are all set before all bundles are covered.

    Returns
    -------
    Choice
        Without bonus and costs it covers at least ``1 - (1 - 1/n)^n >= 1 - 1/e`` of what the best ``n`` items cover
        (with a bonus: of that less ``n * bonus``); with costs, at least ``(1 - 1/e) / 2`` of the best choice within
        the budget: where one item alone is better than the greedy choice, it is taken instead.

        With sketches this holds for exact maps of the same union counts, so up to the error of the counts.

    Raises
    ------
    ValueError
        A cost that is not above 0, lists of different lengths, weights with sketches, an unknown kept item.

    Notes
    -----
    About one union count per item, and some per item chosen; at worst their product. Sources: 1 - 1/e, Nemhauser,
    Wolsey, Fisher 1978; lazy, Minoux 1978; costs, Khuller, Moss, Naor 1999. Tested against brute force.

    Examples
    --------
    >>> maps = [bitarray("111100"), bitarray("111000"), bitarray("000011")]
    >>> lazy_greedy(maps, budget=2)
    Choice(items=(0, 2), gains=(4.0, 2.0), covered=6.0, cost=2.0)
    >>> lazy_greedy(maps, budget=1, kept=[1], bonus=1.5).items
    (1,)
    """
    prices = _prices(len(maps), costs)
    if not all(0 <= item < len(maps) for item in kept):
        raise ValueError(f"kept items must be indices of the {len(maps)} maps")
    if not maps:
        return Choice((), (), 0.0, 0.0)
    cover = cover_of(maps, weights)
    own = [float(cover.gain(item)) for item in range(len(maps))]
    waiting = list(reversed(kept)) if bonus > 0 else []
    choice = _Greedy(cover, prices, budget, bonus, waiting, own).run(refill)
    return choice if costs is None else _or_single(choice, own, prices, budget, set(kept), bonus)


def _prices(count: int, costs: Floats | None) -> Floats:
    if costs is None:
        return np.ones(count)
    prices = np.asarray(costs, np.float64)
    if prices.shape != (count,) or not np.all(prices > 0):
        raise ValueError(f"there must be a cost > 0 for each of the {count} maps")
    return prices


def _or_single(choice: Choice, own: list[float], prices: Floats, budget: float, kept: set[int], bonus: float) -> Choice:
    """The choice, or the one item within the budget that is worth more alone, kept items with their bonus."""
    fits = [item for item in range(len(own)) if prices[item] <= budget]
    if not fits:
        return choice
    single = max(fits, key=lambda item: (own[item] + bonus * (item in kept), -item))
    if own[single] + bonus * (single in kept) <= choice.covered + bonus * len(kept.intersection(choice.items)):
        return choice
    return Choice((single,), (own[single],), own[single], float(prices[single]))


def own_count(
    maps: Sequence[MapT], weights: Floats | None = None, costs: Floats | None = None, budget: float = math.inf
) -> Choice:
    """Choose items by what each covers on its own per cost, blind to overlap: what to compare coverage with.

    Parameters as in `lazy_greedy`. No guarantee: many items that all lead to the same bundles are taken together.

    Examples
    --------
    >>> own_count([bitarray("111100"), bitarray("111000"), bitarray("000011")], budget=2)
    Choice(items=(0, 1), gains=(4.0, 0.0), covered=4.0, cost=2.0)
    """
    prices = _prices(len(maps), costs)
    if not maps:
        return Choice((), (), 0.0, 0.0)
    cover = cover_of(maps, weights)
    own = [float(cover.gain(item)) for item in range(len(maps))]

    def fits(item: int, gain: float) -> bool:  # noqa: ARG001
        nonlocal budget
        if prices[item] > budget:
            return False
        budget -= prices[item]
        return True

    return _taken(cover, prices, sorted(range(len(maps)), key=lambda item: (-own[item] / prices[item], item)), fits)


def _taken(cover: Cover, prices: Floats, order: Iterable[int], accepts: Callable[[int, float], bool]) -> Choice:
    """Items one by one, each of them if it is accepted, given what it adds to those before it."""
    items: list[int] = []
    gains: list[float] = []
    for item in order:
        gain = float(cover.gain(item))
        if accepts(item, gain):
            items.append(item)
            gains.append(gain)
            cover.take(item)
    return Choice(tuple(items), tuple(gains), math.fsum(gains), math.fsum(prices[items]))


# --- one by one ---------------------------------------------------------------------------------------------


def above_price(
    maps: Sequence[MapT], price: float, weights: Floats | None = None, costs: Floats | None = None
) -> Choice:
    """Accept or refuse items in the order in which they come: whatever adds at least ``price`` per cost is kept.

    This is how the runs engine sheds: the price is what makes the budget last. It needs no list of what is kept, only
    what is covered, and nothing that was accepted has to leave.

    Parameters as in `lazy_greedy`; ``price``: above 0.

    Returns
    -------
    Choice
        It covers at least half of what the best items of the same cost cover: of the best items for a budget ``B``,
        with ``cost`` spent, at least ``1 / (1 + B / cost)``. Proof: let S be what was accepted. What was refused added
        less than price times its cost then, and adds no more to S now; so the best choice covers at most S and price *
        B. And S covers at least price * cost, since each item added at least price times its own.

    Notes
    -----
    One union count per item. Source: thresholds on what is added are those of Badanidiyuru et al. (KDD 2014) and of
    Badanidiyuru and Vondrak (SODA 2014), which look for the right one; here the budget has set it. The form of the
    bound is ours. Tested against brute force.

    Examples
    --------
    >>> above_price([bitarray("111100"), bitarray("111000"), bitarray("000011")], price=2).items
    (0, 2)
    """
    prices = _prices(len(maps), costs)
    if not maps:
        return Choice((), (), 0.0, 0.0)
    cover = cover_of(maps, weights)
    return _taken(cover, prices, range(len(maps)), lambda item, gain: bool(gain >= price * prices[item]))


class Swap:
    """Keep at most ``most`` items while they come one by one; each is accepted or refused at once, for good.

    Every bundle covered is *credited* to one kept item. A new item is accepted while there is room and it adds
    something, and later if what it adds is at least twice the least credit of a kept item, which it replaces. Credits
    of the one that leaves go to the new item or to other kept ones that also cover the bundle.

    At any time the kept items cover at least a quarter of what the best ``most`` of all items so far cover. Proof: let
    C be the bundles covered, W their number. A swap adds at least twice what it drops, so all that was ever dropped
    is at most W, and all that was ever covered at most 2 W. An item of the best choice either was accepted, and lies
    in what was ever covered; or was refused, and then fewer than 2 W / most of its bundles were not covered; so the
    best choice covers at most 2 W + 2 W.

    Parameters
    ----------
    most
        Greatest number of items kept, at least 1.

    Raises
    ------
    ValueError
        ``most`` below 1.

    Notes
    -----
    An offer takes one count; a swap also takes a few operations on bitarrays per kept item. Exact maps only (or the
    ``bits`` of folded ones): credits are differences of maps. Source: the rule and the ratio 1/4 are Saha and Getoor's
    (SDM 2009); how credits move on, and the proof above, are ours. Whether the bound that Li and Ge prove (PVLDB 2016,
    section 3.2) is of this kind is not known to us.

    Examples
    --------
    >>> swap = Swap(1)
    >>> swap.offer(7, bitarray("110000")), swap.offer(8, bitarray("011100")), swap.offer(9, bitarray("001111"))
    (None, 8, 7)
    >>> swap.items, swap.covered
    ((9,), 4)
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"at least one item must have room, not {most}")
        self._most = most
        self._maps: dict[int, bitarray] = {}
        self._credits: dict[int, bitarray] = {}
        self._all = bitarray()

    def offer(self, item: int, bundles: bitarray) -> int | None:
        """Accept or refuse an item that is not kept already.

        Returns
        -------
        int or None
            Who is out now: ``item`` itself if refused, the kept item that it replaced (of those with the least credit
            the one with the least number), or None if there was room.

        Raises
        ------
        ValueError
            The item is kept already, or its map has another length.
        """
        if item in self._maps:
            raise ValueError(f"item {item} is kept already")
        if not self._maps:
            self._all = zeros(len(bundles))
        gain = count_or(self._all, bundles) - self._all.count()
        out = None
        if len(self._maps) == self._most:
            out = min(self._credits, key=lambda kept: (self._credits[kept].count(), kept))
        if gain == 0 or (out is not None and gain < 2 * self._credits[out].count()):
            return item
        free = zeros(len(bundles))  # bundles without owner
        if out is not None:
            del self._maps[out]
            free = self._credits.pop(out)
        self._maps[item] = bundles.copy()
        self._credits[item] = bundles & (~self._all | free)
        self._all |= bundles
        self._settle(free & ~bundles)
        return out

    def _settle(self, free: bitarray) -> None:
        """Give bundles without owner to the kept items that cover them, the first accepted first."""
        for item, bundles in self._maps.items():
            if any_and(free, bundles):
                self._credits[item] |= free & bundles
                free &= ~bundles
        self._all &= ~free

    @property
    def items(self) -> tuple[int, ...]:
        """Items kept, in the order in which they were accepted."""
        return tuple(self._maps)

    @property
    def covered(self) -> int:
        """Number of bundles that the kept items cover together."""
        return self._all.count()

    def credit(self, item: int) -> int:
        """Number of bundles that are credited to a kept item."""
        return self._credits[item].count()
