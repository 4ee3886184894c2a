"""Count what a trace holds, whole columns at a time, and join what several traces hold.

Source: Li and Ge, PVLDB 2016, Definition 4 and Example 5: visits of match vectors, edges in order of visit, edges to
bundles for direct completions, match maps. Ours are the sums of match points and of run-steps at each vertex, the
completions that passed each edge, and what runs share.

To join is sums and unions, so the order does not matter: several processes can count and join in any order (ours; the
paper has one process).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from bitarray import bitarray
from bitarray.util import count_and

from history.arrays import Bools, Ints
from history.bundles import Bundles, chain, of_trace
from history.trace import Masks, Trace
from history.vectors import Scheme

DENSE = ("visits", "reached", "led", "cost", "started", "completed")
"""What is counted at each vertex."""
EDGES, OVERLAPS = ("source", "target", "moves", "passed"), ("covered", "cover", "shareable", "shared")
ENDS = ("ends_vertex", "ends_bundle", "ends")
"""Pairs, of vertices, of groups, and of vertices with bundles, and what is counted of each."""
CHUNK = 1 << 25
"""Bytes that match maps take at most while they are made."""


@dataclass
class Counts:
    """Everything that a history has counted.

    Parameters
    ----------
    visits : int64 array, shape (vertices,)
        Visits of each vertex.
    reached : int64 array, shape (vertices,)
        Match points that these visits led to, each counted once for each visit.
    led : int64 array, shape (vertices,)
        Visits that led to at least one.
    cost : float64 array, shape (vertices,)
        Sum of the run-steps that they still took.
    started : int64 array, shape (vertices,)
        Completions whose lineage began with a first event at this vertex.
    completed : int64 array, shape (vertices,)
        Direct completions: the run's next event completed it.
    source, target, moves, passed : int64 arrays, shape (edges,)
        Edges between vertices, in order of (source, target): how often a lineage made this move, and how many
        completions lie behind these moves.
    ends_vertex, ends_bundle, ends : int64 arrays, shape (edges to bundles,)
        Edges from vertices to bundles (position in ``bundles``), in this order, with direct completions.
    covered, cover, shareable, shared : int64 arrays, shape (pairs of groups,)
        In order of (covered, cover): match points that births of one group could share with the run of another (or the
        same) that covers them, and those that they did; see ``overlaps``.
    bundles : Bundles
        The ring.
    maps : dict of int to bitarray
        Match map of each vertex that has one: bit b: a run seen here led to bundle b. All have ``len(bundles)`` bits.
    """

    visits: Ints
    reached: Ints
    led: Ints
    cost: npt.NDArray[np.float64]
    started: Ints
    completed: Ints
    source: Ints
    target: Ints
    moves: Ints
    passed: Ints
    ends_vertex: Ints
    ends_bundle: Ints
    ends: Ints
    covered: Ints
    cover: Ints
    shareable: Ints
    shared: Ints
    bundles: Bundles
    maps: dict[int, bitarray]

    @classmethod
    def empty(cls, vertices: int) -> Counts:
        """Nothing counted yet."""
        none = np.empty(0, np.int64)
        visits, reached, led, started, completed = np.zeros((5, vertices), np.int64)
        cost = np.zeros(vertices)
        edges = pairs = (none, none, none, none)
        return cls(visits, reached, led, cost, started, completed, *edges, none, none, none, *pairs, Bundles(), {})


def count(scheme: Scheme, trace: Trace, gap: int, most_bundles: int) -> Counts:
    """What one trace holds.

    Parameters
    ----------
    scheme : Scheme
        The vertices.
    trace : Trace
        Births, visits and match points.
    gap, most_bundles : int
        As for ``bundles.chain``.

    Complexity: O(v log v + v·b + maps) for v visits that reach match points at most b numbers ahead, and ``overlaps``.
    """
    group = groups_of(scheme, trace)
    vertex = vertices_of(scheme, trace, group)
    bundles, position = of_trace(trace, gap, most_bundles)
    passed = _passed(trace)
    first = trace.parent < 0
    end = vertex[trace.end_visit]

    def total(at: Ints, weights: npt.NDArray[np.generic] | None = None) -> npt.NDArray[np.float64]:
        return np.bincount(at, weights=weights, minlength=scheme.vertices).astype(np.float64)

    moved = np.flatnonzero(trace.parent >= 0)
    once = np.ones(len(moved), np.int64)
    edges = sum_pairs(vertex[trace.parent[moved]], vertex[moved], scheme.vertices, once, passed[moved])
    bundle = position[trace.end_point]
    kept = bundle >= 0
    ends = sum_pairs(end[kept], bundle[kept], len(bundles), np.ones(int(kept.sum()), np.int64))
    maps = _maps(vertex, trace.first_point, trace.mask, position, len(bundles))
    pairs: dict[str, Any] = dict(
        zip((*EDGES, *ENDS, *OVERLAPS), (*edges, *ends, *overlaps(scheme, trace, group, maps)), strict=True)
    )
    return Counts(
        visits=total(vertex).astype(np.int64),
        reached=total(vertex, np.bitwise_count(trace.mask)).astype(np.int64),
        led=total(vertex[trace.mask != 0]).astype(np.int64),
        cost=total(vertex, trace.cost),
        started=total(vertex[first], passed[first]).astype(np.int64),
        completed=total(end).astype(np.int64),
        **pairs,
        bundles=bundles,
        maps=maps,
    )


def vertices_of(scheme: Scheme, trace: Trace, group: Ints | None = None) -> Ints:
    """The vertex of every visit of a trace, given the groups of its births, if they are known; int64, shape (visits,).

    Complexity: O(births · features + visits).
    """
    group = groups_of(scheme, trace) if group is None else group
    return scheme.encode(trace.place[trace.birth], group[trace.birth], trace.remaining, trace.since)


def groups_of(scheme: Scheme, trace: Trace) -> Ints:
    """The group of every birth of a trace, within its place; int64, shape (births,)."""
    return scheme.groups_at(trace.place, trace.column, trace.texts)


def sums(codes: Ints, *weights: npt.NDArray[np.generic]) -> tuple[Ints, ...]:
    """Distinct codes in rising order, and the sums of some int64 weights for each of them. O(n log n)."""
    if not len(codes):
        return (codes, *(np.empty(0, np.int64) for _ in weights))
    order = np.argsort(codes, kind="stable")
    ahead = codes[order]
    heads = np.flatnonzero(np.r_[True, ahead[1:] != ahead[:-1]])
    return (ahead[heads], *(np.add.reduceat(weight[order].astype(np.int64), heads) for weight in weights))


def sum_pairs(first: Ints, second: Ints, size: int, *weights: npt.NDArray[np.generic]) -> tuple[Ints, ...]:
    """Distinct pairs of numbers, the second below ``size``, in rising order, and the sums of their weights."""
    size = max(size, 1)
    code, *totals = sums(first * size + second, *weights)
    return (code // size, code % size, *totals)


def packed(flags: Bools) -> bitarray:
    """A match map of some flags."""
    bits = bitarray(endian="big")
    bits.frombytes(np.packbits(flags).tobytes())
    del bits[len(flags) :]
    return bits


def flags_of(bits: bitarray) -> Bools:
    """A match map as flags."""
    return np.unpackbits(np.frombuffer(bits.tobytes(), np.uint8), count=len(bits)).astype(np.bool_)


def _passed(trace: Trace) -> Ints:
    """How many completions have each visit in their lineage: one step up all lineages at a time."""
    passed = np.zeros(len(trace.birth), np.int64)
    at, weight = sums(trace.end_visit, np.ones(len(trace.end_visit), np.int64))
    while len(at):
        passed[at] += weight
        above = trace.parent[at]
        at, weight = sums(above[above >= 0], weight[above >= 0])
    return passed


def _maps(vertex: Ints, first_point: Ints, mask: Masks, position: Ints, bundles: int) -> dict[int, bitarray]:
    led = np.flatnonzero(mask)
    if not len(led) or not bundles:
        return {}
    # visits of one vertex that count from the same match point become one
    order = led[np.lexsort((first_point[led], vertex[led]))]
    vertex, first_point = vertex[order], first_point[order]
    new = np.r_[True, (vertex[1:] != vertex[:-1]) | (first_point[1:] != first_point[:-1])]
    mask = np.bitwise_or.reduceat(mask[order], np.flatnonzero(new))
    vertex, first_point = vertex[new], first_point[new]
    occupied, rank = np.unique(vertex, return_inverse=True)
    step = max(1, CHUNK // bundles)
    maps = {}
    for low in range(0, len(occupied), step):
        here = slice(*np.searchsorted(rank, (low, low + step)))
        flags = np.zeros((min(step, len(occupied) - low), bundles), np.bool_)
        _set(flags, rank[here] - low, first_point[here], mask[here], position)
        for number in np.flatnonzero(flags.any(axis=1)).tolist():
            maps[int(occupied[low + number])] = packed(flags[number])
    return maps


def _set(flags: Bools, row: Ints, first_point: Ints, mask: Masks, position: Ints) -> None:
    """Set the flag of every bundle that is reached; one pass for each bit of the masks."""
    for bit in range(64):
        left = mask >> np.uint64(bit)
        if not left.any():
            return
        chosen = np.flatnonzero(left & np.uint64(1))
        at = position[first_point[chosen] + bit]
        flags[row[chosen[at >= 0]], at[at >= 0]] = True


# --- several traces -----------------------------------------------------------------------------------------


def join(left: Counts, right: Counts, gap: int, most_bundles: int) -> Counts:
    """Add up two counts of one scheme.

    The result does not depend on the order. For a gap of 0 or more this holds as long as no bundle left the ring: one
    that left can no longer join two others to one.

    Parameters
    ----------
    left, right : Counts
        They are not changed.
    gap, most_bundles : int
        As for ``bundles.chain``.

    Complexity: O(vertices + edges · log edges + maps).
    """
    bundles, places = chain(Bundles.joined([left.bundles, right.bundles]), gap, most_bundles)
    split, vertices = len(left.bundles), len(left.visits)

    def both(name: str) -> Ints:
        return np.concatenate([getattr(left, name), getattr(right, name)])

    pairs: dict[str, Any] = {}
    for names in (EDGES, OVERLAPS):
        first, second, *numbers = map(both, names)
        pairs |= zip(names, sum_pairs(first, second, vertices, *numbers), strict=True)
    ends_bundle = np.concatenate([places[left.ends_bundle], places[split:][right.ends_bundle]])
    kept = ends_bundle >= 0
    ends = sum_pairs(both("ends_vertex")[kept], ends_bundle[kept], len(bundles), both("ends")[kept])
    pairs |= zip(ENDS, ends, strict=True)
    maps = _moved(left.maps, places[:split], len(bundles))
    for vertex, bits in _moved(right.maps, places[split:], len(bundles)).items():
        maps[vertex] = maps[vertex] | bits if vertex in maps else bits
    return Counts(
        **{name: getattr(left, name) + getattr(right, name) for name in DENSE},
        **pairs,
        bundles=bundles,
        maps=dict(sorted(maps.items())),
    )


def _moved(maps: dict[int, bitarray], places: Ints, bundles: int) -> dict[int, bitarray]:
    """Maps over the bundles of the joined ring. What left the ring is cleared, and a map without bits goes."""
    if len(places) == bundles and (places == np.arange(bundles)).all():
        return dict(maps)
    order = np.argsort(places, kind="stable")
    order = order[places[order] >= 0]
    if not len(order):
        return {}
    there, heads = np.unique(places[order], return_index=True)
    moved = {}
    for vertex, bits in maps.items():
        flags = np.zeros(bundles, np.bool_)
        flags[there] = np.logical_or.reduceat(flags_of(bits)[order], heads)
        if flags.any():
            moved[vertex] = packed(flags)
    return moved


# --- what runs share ----------------------------------------------------------------------------------------------

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
        ticks, at = np.unique(trace.point_tick, return_inverse=True)
        closed = np.searchsorted(ticks, start + scheme.window, side="right")  # how many ticks up to the end of a window
        size = len(ticks) + 1
        return cls(
            group=scheme.first_group[trace.place[order]] + group[order],
            rank=rank,
            by_rank=by_rank,
            first_point=trace.first_point[visit],
            mask=trace.mask[visit],
            after=np.searchsorted(trace.point_slot * size + at, slot * size + closed),
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
