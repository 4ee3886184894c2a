"""What runs that live at the same time lead to together: overlap, counted run by run.

Whether one run covers another cannot be seen from the maps of their groups: over all time two groups may lead to the
same match points though no two runs of theirs ever do, because what they remember differs (the same place, a rising
price). So every birth is asked what the run that would cover it reaches as well.

Source: ours. As far as we can tell, Li and Ge, PVLDB 2016, choose by the match maps of vertices
(docs/how-it-works/paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from bitarray import bitarray
from bitarray.util import count_and

from history.arrays import Ints
from history.trace import Masks, Trace
from history.vectors import Scheme

ALL_PAIRS = 64
"""With so many groups all pairs are counted."""
CANDIDATES = 8
"""Other groups that are counted for each group where there are more."""
BITS = 64
"""Of a mask."""


def overlaps(scheme: Scheme, trace: Trace, group: Ints, maps: dict[int, bitarray]) -> tuple[Ints, Ints, Ints, Ints]:
    """Count what births share with the run that covers them.

    The *cover* of a birth among the runs of a group is the one that started last of those born before it (by tick,
    then number) in the same slot, if its window is still open; of several it is the one that was born last. A birth
    without a cover, or whose cover is its own ancestor, says nothing: what is made from a run is no reason to do
    without it. Of the others these match points count: reached by the birth; not behind the end of the cover's
    window; and, as a mask tells of 64 match points at most, within the mask that the cover was born with.

    Parameters
    ----------
    scheme : Scheme
        Places and groups.
    trace : Trace
        Births, their first visits, and match points by slot and row.
    group : int64 array, shape (births,)
        As from ``counting.groups_of``.
    maps : dict of int to bitarray
        Match maps of the trace's vertices, for ``candidates``.

    Returns
    -------
    covered, cover : int64 arrays, shape (pairs,)
        Groups over all places, in order of (covered, cover).
    shareable, shared : int64 arrays, shape (pairs,)
        Match points that count, and those of them that the cover reaches too. Pairs without any are left out.

    Complexity: O(n log n + g·m log n) for n births, m of them that reach a match point, and g groups. A million births
    took 1.5 s for one group, and 3 s (a tenth of them reach one) to 16 s (all do) for 64 groups of one place.
    """
    births = _Births.of(scheme, trace, group)
    wanted = candidates(scheme, maps)
    led = np.flatnonzero(births.mask)
    none = np.empty(0, np.int64)
    covered, cover, shareable, shared = [none], [none], [none], [none]
    by_group = np.argsort(births.group, kind="stable")
    groups, heads, sizes = np.unique(births.group[by_group], return_index=True, return_counts=True)
    for number, head, size in zip(groups.tolist(), heads.tolist(), sizes.tolist(), strict=True):
        mine = by_group[head : head + size]
        asking = led[wanted[births.group[led], number]]
        asking, found = births.covers(asking, mine)
        can, does = births.points(asking, found)
        total = np.bincount(births.group[asking], can, scheme.groups).astype(np.int64)
        kept = np.flatnonzero(total)
        covered.append(kept)
        cover.append(np.full(len(kept), number))
        shareable.append(total[kept])
        shared.append(np.bincount(births.group[asking], does, scheme.groups).astype(np.int64)[kept])
    columns = [np.concatenate(column) for column in (covered, cover, shareable, shared)]
    order = np.lexsort((columns[1], columns[0]))
    first, second, third, fourth = (column[order] for column in columns)
    return first, second, third, fourth


def candidates(scheme: Scheme, maps: dict[int, bitarray]) -> npt.NDArray[np.bool_]:
    """Which pairs of groups are counted.

    Each group with itself; of the others those of the same place or one of a higher number (places are numbered
    breadth first: it is not behind). With more than 64 groups only the 8 that hold most of the group's match map, the
    lowest number first where they hold as much. That depends on the trace alone, so traces can be counted anywhere and
    in any order.

    Parameters
    ----------
    scheme : Scheme
        Places and groups.
    maps : dict of int to bitarray
        Match maps of vertices.

    Returns
    -------
    bool array, shape (groups, groups)
        At [g, h]: whether h is asked to cover g.

    Complexity: O(groups² · bundles / 64).
    """
    place = scheme.place_of_group
    if scheme.groups <= ALL_PAIRS:
        return np.asarray(place[:, None] <= place[None, :])
    wanted = np.eye(scheme.groups, dtype=np.bool_)
    union = group_maps(scheme, maps)
    for group, bits in union.items():
        others = [other for other in union if other != group and place[other] >= place[group]]
        held = sorted((-count_and(bits, union[other]), other) for other in others)
        wanted[group, [other for share, other in held[:CANDIDATES] if share]] = True
    return wanted


def group_maps(scheme: Scheme, maps: dict[int, bitarray]) -> dict[int, bitarray]:
    """The union of the match maps of the vertices of each group that has any. Complexity: O(maps · bundles / 64)."""
    union: dict[int, bitarray] = {}
    for vertex, bits in maps.items():
        group = vertex // scheme.cells
        union[group] = union[group] | bits if group in union else bits
    return union


@dataclass(frozen=True)
class _Births:
    """Births that were visited, in order of (slot, tick, number).

    ``group`` counts over all places; ``rank`` orders by (slot, start, order of birth), and ``by_rank`` is its inverse;
    ``first_point`` and ``mask`` are those of the first visit; ``after`` is the number of the first match point of the
    slot behind the window; ``parent`` is the run that it was made from, -1: none.
    """

    group: Ints
    rank: Ints
    by_rank: Ints
    first_point: Ints
    mask: Masks
    after: Ints
    parent: Ints

    @classmethod
    def of(cls, scheme: Scheme, trace: Trace, group: Ints) -> _Births:
        """Those of a trace."""
        visit = trace.first_visits()
        order = np.lexsort((trace.tick, trace.slot))
        order = order[visit[order] >= 0]
        slot, start, visit = trace.slot[order], trace.start[order], visit[order]
        number = np.arange(len(order))
        by_rank = np.lexsort((start, slot))
        rank = np.empty_like(number)
        rank[by_rank] = number
        position = np.full(len(trace.place), -1, np.int64)
        position[order] = number
        above = trace.parent[visit]
        parent = np.where(above >= 0, position[trace.birth[above]], -1)
        return cls(
            group=scheme.first_group[trace.place[order]] + group[order],
            rank=rank,
            by_rank=by_rank,
            first_point=trace.first_point[visit],
            mask=trace.mask[visit],
            after=_after(trace, slot, start + scheme.window),
            parent=np.where(parent < number, parent, -1),
        )

    def covers(self, asking: Ints, others: Ints) -> tuple[Ints, Ints]:
        """Those of some births that have a cover among others, and the covers.

        One of another slot, or whose window is over, is found as well: it has no match point to share.
        """
        latest = self.by_rank[np.maximum.accumulate(self.rank[others])]
        before = np.searchsorted(others, asking) - 1
        found, asking = latest[before[before >= 0]], asking[before >= 0]
        good = ~self._is_ancestor(found, asking)
        return asking[good], found[good]

    def points(self, asking: Ints, cover: Ints) -> tuple[Ints, Ints]:
        """Match points that each birth could share with its cover, and those that it does."""
        behind = self.first_point[asking] - self.first_point[cover]
        seen = np.clip(np.minimum(self.after[cover] - self.first_point[asking], BITS - behind), 0, BITS)
        mine = self.mask[asking] & (np.uint64(2**BITS - 1) >> (BITS - seen).astype(np.uint64))
        theirs = self.mask[cover] >> behind.astype(np.uint64)  # 0 where it is shifted by more than it is long
        return np.bitwise_count(mine).astype(np.int64), np.bitwise_count(mine & theirs).astype(np.int64)

    def _is_ancestor(self, one: Ints, of: Ints) -> npt.NDArray[np.bool_]:
        """Whether one run is in the lineage of another: up all lineages at a time, as far as needed."""
        found = np.zeros(len(one), np.bool_)
        at, open_ = self.parent[of], np.arange(len(one))
        while len(open_):
            found[open_] = at == one[open_]
            onward = at > one[open_]  # parents are born before their children
            at, open_ = self.parent[at[onward]], open_[onward]
        return found


def _after(trace: Trace, slot: Ints, end: Ints) -> Ints:
    """How many match points there are up to some ends of windows, all slots before counted in."""
    ticks, rank = np.unique(trace.point_tick, return_inverse=True)
    size = len(ticks) + 1
    return np.searchsorted(trace.point_slot * size + rank, slot * size + np.searchsorted(ticks, end, side="right"))
