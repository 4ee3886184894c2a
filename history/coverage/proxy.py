"""Approximate proxy match: one run stands for others that lead to nearly the same bundles, and is expanded again.

Where many runs lead to the same bundles it is enough to advance one of them, their *proxy*. When it completes a match
at match point ``m``, everything that the others could have completed there lies in ``[m - w, m]`` of its key, and is
found by matching this region once more, exactly. So what a proxy may lose is a whole bundle that it does not reach
itself, and the maps of the history say how many these are.

Where one run reaches all that another one does, whatever comes (dominance, see docs/how-it-works/runs.md), runs are
merged without loss and need no proxy; this is for the others.

Source: Li and Ge, PVLDB 2016: of section 3.3 we know the name and two hints ("we only need to keep one match node", "do
a match in the local area of t"). The rule, the bound and the regions are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from history.arrays import Floats, Ints
from history.coverage.sketch import MapT, overlap, size


def proxies(
    maps: Sequence[MapT],
    theta: float,
    order: Sequence[int] | Ints | None = None,
    measure: Literal["containment", "jaccard"] = "containment",
) -> Ints:
    """Proxy of each item: itself, or one ranked before it whose map is alike.

    Items are taken in order. One whose map is alike to that of an item which stands for itself is represented by it,
    by the most alike, of equal ones by the first in order; all others stand for themselves.

    Parameters
    ----------
    maps
        Match map of each item: bitarrays of one length, or sketches of one kind.
    theta
        Least likeness, in (0, 1].
    order
        All indices of ``maps``, the one that shall rather be a proxy first: the one with the larger map, or the one
        that costs less. Default: as they stand.
    measure
        ``containment``: share of the item's bundles that the proxy also has, 1 for an empty map. ``jaccard``: share of
        the bundles of either that both have; it also asks that the proxy does not have many more.

    Returns
    -------
    numpy.ndarray
        int64, index of the proxy of each item.

    Raises
    ------
    ValueError
        ``theta`` outside of (0, 1], or ``order`` is not a permutation.

    Notes
    -----
    At most one overlap for each item and item that stands for itself. With both measures an item misses at most
    ``1 - theta`` of its bundles (`missed`), because ``|A & P| >= theta |A | P|`` implies ``|A & P| >= theta |A|``; with
    sketches up to their error. So if a set of items covers F bundles, their proxies cover at least F minus the sum of
    ``(1 - theta) |A|`` over the represented ones.

    Examples
    --------
    >>> from bitarray import bitarray
    >>> proxies([bitarray("1111"), bitarray("1100"), bitarray("0011")], theta=1).tolist()
    [0, 0, 0]
    >>> proxies([bitarray("1111"), bitarray("1110"), bitarray("0011")], theta=0.75, measure="jaccard").tolist()
    [0, 0, 2]
    """
    if not 0 < theta <= 1:
        raise ValueError(f"theta must be above 0 and at most 1, not {theta}")
    ranked = np.arange(len(maps)) if order is None else np.asarray(order, np.int64)
    if not np.array_equal(np.sort(ranked), np.arange(len(maps))):
        raise ValueError(f"order must hold each of the {len(maps)} indices once")
    sizes = [float(size(bundles)) for bundles in maps]
    proxy = np.arange(len(maps), dtype=np.int64)
    leaders: list[int] = []
    for item in ranked.tolist():
        best, likeness = item, 0.0
        for leader in leaders:
            both = float(overlap(maps[item], maps[leader]))
            whole = sizes[item] if measure == "containment" else sizes[item] + sizes[leader] - both
            alike = both / whole if whole else 1.0
            if alike >= theta and alike > likeness:
                best, likeness = leader, alike
        proxy[item] = best
        if best == item:
            leaders.append(item)
    return proxy


def missed(maps: Sequence[MapT], proxy: Ints) -> Floats:
    """Share of each item's bundles that its proxy does not lead to: 0 for an item that stands for itself.

    Examples
    --------
    >>> from bitarray import bitarray
    >>> missed([bitarray("1110"), bitarray("1111")], np.array([0, 0])).tolist()
    [0.0, 0.25]
    """
    shares = np.zeros(len(maps))
    for item, leader in enumerate(proxy.tolist()):
        own = float(size(maps[item]))
        if leader != item and own:
            shares[item] = 1.0 - overlap(maps[item], maps[leader]) / own
    return shares


def regions(points: Ints, window: int, slots: Ints | None = None) -> tuple[Ints, Ints, Ints]:
    """What to match again, exactly, when proxies complete: ``[m - window, m]`` for each match point, made disjoint.

    Every match that ends at a match point lies in its region, because a match is no longer than the window.

    Parameters
    ----------
    points
        int64, ticks of match points, in any order.
    window
        Ticks, at least 0.
    slots
        int64, partition of each match point; regions of different partitions stay apart. Default: one partition.

    Returns
    -------
    tuple of numpy.ndarray
        int64 each: partition, first and last tick (both included) of each region, in order; regions of one partition
        share no tick. Sorting takes most of the time.

    Raises
    ------
    ValueError
        A window below 0.

    Examples
    --------
    >>> [column.tolist() for column in regions(np.array([30, 12, 17]), window=5)]
    [[0, 0], [7, 25], [17, 30]]
    """
    if window < 0:
        raise ValueError(f"a window is at least 0 ticks, not {window}")
    where = np.zeros(len(points), np.int64) if slots is None else np.asarray(slots, np.int64)
    by_place = np.lexsort((points, where))
    where, last = where[by_place], np.asarray(points, np.int64)[by_place]
    # A region begins anew where it shares no tick with the one of the match point before.
    first = np.ones(len(last), bool)
    first[1:] = (where[1:] != where[:-1]) | (last[1:] - window > last[:-1])
    begin = np.flatnonzero(first)
    end = np.append(begin[1:], len(last)) - 1 if len(last) else begin
    return where[begin], last[begin] - window, last[end]
