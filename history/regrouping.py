"""A history that goes on: counts that fade with age, and counts of vertices that are cut into other groups.

The runs that were counted are the same whatever tells them apart, so what an old group counted belongs to the new
groups in the shares in which its runs fall into them. Bundles stay. Ours; the paper never cuts its vertices anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from bitarray import bitarray

from history.arrays import Bools, Floats, Ints
from history.counting import DENSE, Counts, flags_of, packed, sum_pairs
from history.vectors import Scheme

WIDEST = 8
"""New groups at most that the edges of an old one go to: those of its largest shares."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, less their whole parts, lie evenly between 0 and 1."""
Numbers = npt.NDArray[Any]


def whole(numbers: Numbers) -> Ints:
    """Numbers rounded one after the other, so that their total stays.

    Examples
    --------
    >>> whole(np.array([0.4, 0.4, 0.4, 2.8])).tolist()
    [0, 1, 0, 3]
    """
    return np.asarray(np.diff(np.rint(np.cumsum(numbers)), prepend=0.0), np.int64)


def faded(counts: Counts, scheme: Scheme, left: Floats) -> Counts:
    """What is left of some counts. Bundles, and which vertices led to them, stay: the ring lets go of these.

    Parameters
    ----------
    counts : Counts
    scheme : Scheme
        Their vertices.
    left : float64 array, shape (groups,)
        By what the counts of each group are multiplied, from 0 to 1.

    Complexity: O(vertices + edges).
    """
    of_vertex = np.repeat(left, scheme.cells)
    made = replace(counts, **_dense(counts, lambda column: column * of_vertex))
    edges = _fewer((counts.source, counts.target), (counts.moves, counts.passed), of_vertex[counts.source])
    pairs = _fewer((counts.covered, counts.cover), (counts.shareable, counts.shared), left[counts.covered])
    made.source, made.target, made.moves, made.passed = edges
    made.covered, made.cover, made.shareable, made.shared = pairs
    return made


def since(counts: Counts, tick: int) -> Counts:
    """Some counts without the bundles whose last match point lies before a tick. Complexity: O(maps)."""
    kept = counts.bundles.last >= tick
    if kept.all():
        return counts
    chosen, place = np.flatnonzero(kept), np.cumsum(kept) - 1
    maps = {vertex: packed(flags_of(bits)[chosen]) for vertex, bits in counts.maps.items()}
    ends = kept[counts.ends_bundle]
    return replace(
        counts,
        bundles=counts.bundles[chosen],
        maps={vertex: bits for vertex, bits in maps.items() if bits.any()},
        ends_vertex=counts.ends_vertex[ends],
        ends_bundle=place[counts.ends_bundle[ends]],
        ends=counts.ends[ends],
    )


def regrouped(counts: Counts, before: Scheme, after: Scheme, shares: Sequence[Floats]) -> Counts:
    """The counts of vertices that are cut into other groups.

    Parameters
    ----------
    counts : Counts
    before, after : Scheme
        Of the same places, window and cells; only features differ.
    shares : sequence of float64 arrays, shape (groups before, groups after), one for each place
        Which share of the runs of a group falls into each of the new ones; rows add up to 1.

    Notes
    -----
    Counts are spread by these shares. A bit of a match map goes to one new group, drawn by the shares, which is the
    same for all vertices of the old group: they led there by the same runs. A run that only grew older stays in its
    group, so both ends of such an edge go together; other edges are spread at each end by itself, over the eight new
    groups of the largest shares. Complexity: O(vertices · groups + edges + maps).
    """
    table = _table(before, after, shares)

    def spread(column: Numbers) -> Floats:
        return np.asarray((table.T @ column.reshape(before.groups, before.cells).astype(np.float64)).reshape(-1))

    made = replace(counts, **_dense(counts, spread))
    few = _largest(table)
    group, cell = np.divmod(np.stack([counts.source, counts.target]), before.cells)
    is_older = group[0] == group[1]
    edges, source, target = _spread_pairs(group, (counts.moves, counts.passed), few, is_older)
    vertices = (source * after.cells + cell[0, edges[0]], target * after.cells + cell[1, edges[0]])
    made.source, made.target, made.moves, made.passed = _summed(vertices, edges[1:], after.vertices)
    group = np.stack([counts.covered, counts.cover])
    is_one = np.zeros(len(counts.covered), np.bool_)
    pairs, covered, cover = _spread_pairs(group, (counts.shareable, counts.shared), few, is_one)
    made.covered, made.cover, made.shareable, made.shared = _summed((covered, cover), pairs[1:], after.groups)
    drawn = _drawn(table, len(counts.bundles))
    made.maps = _moved_maps(counts, before.cells, drawn)
    group_of_end, cell_of_end = np.divmod(counts.ends_vertex, before.cells)
    at = drawn[group_of_end, counts.ends_bundle] * before.cells + cell_of_end
    ends = sum_pairs(at, counts.ends_bundle, len(counts.bundles), counts.ends)
    made.ends_vertex, made.ends_bundle, made.ends = ends
    return made


def _dense(counts: Counts, change: Callable[[Numbers], Floats]) -> dict[str, Any]:
    """Columns of vertices after a change. Means stay what they are: all follow the visits as these are rounded."""
    visits = change(counts.visits)
    found: dict[str, Any] = {"visits": whole(visits)}
    factor = np.divide(found["visits"], visits, out=np.zeros(len(visits)), where=visits > 0)
    for name in DENSE[1:]:
        found[name] = whole(change(getattr(counts, name)) * factor)
    found["led"] = np.minimum(found["led"], found["visits"])
    found["cost"] = found["cost"].astype(np.float64)
    return found


def _fewer(pair: tuple[Ints, Ints], numbers: tuple[Ints, Ints], left: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """Pairs with what is left of their counts; those that have none left go."""
    first, second = whole(numbers[0] * left), whole(numbers[1] * left)
    kept = first > 0
    return pair[0][kept], pair[1][kept], first[kept], second[kept]


def _table(before: Scheme, after: Scheme, shares: Sequence[Floats]) -> Floats:
    table = np.zeros((before.groups, after.groups))
    for number, share in enumerate(shares):
        row, column = int(before.first_group[number]), int(after.first_group[number])
        table[row : row + share.shape[0], column : column + share.shape[1]] = share
    return table


def _largest(table: Floats) -> Floats:
    """The largest shares of each group alone, which add up to 1 again."""
    if table.shape[1] > WIDEST:
        least = np.partition(table, -WIDEST, axis=1)[:, -WIDEST]
        table = np.where(table >= np.maximum(least, 1e-300)[:, None], table, 0.0)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _spread_pairs(
    group: Ints, numbers: tuple[Ints, Ints], table: Floats, is_one: Bools
) -> tuple[tuple[Ints, Floats, Floats], Ints, Ints]:
    """Pairs of groups, spread over pairs of new ones; where ``is_one``, both are of one run and stay together.

    Returns
    -------
    what : tuple of int64 array and two float64 arrays
        Of which pair each is a part, and its part of the numbers.
    first, second : int64 arrays
        The new groups.
    """
    old, new = np.nonzero(table)
    width = np.bincount(old, minlength=len(table))
    begin = np.cumsum(width) - width
    sizes = np.where(is_one, width[group[0]], width[group[0]] * width[group[1]])
    of = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    same, across = is_one[of], width[group[1, of]]
    one = begin[group[0, of]] + np.where(same, rank, rank // across)
    other = np.where(same, one, begin[group[1, of]] + rank % across)
    share = table[old[one], new[one]] * np.where(same, 1.0, table[old[other], new[other]])
    return (of, numbers[0][of] * share, numbers[1][of] * share), new[one], new[other]


def _summed(pair: tuple[Ints, Ints], numbers: Sequence[Floats], size: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Each pair once, in order, with the sums of its numbers as whole ones; those without any go."""
    code, at = np.unique(pair[0] * size + pair[1], return_inverse=True)
    first, second = (whole(np.bincount(at, some, len(code))) for some in numbers)
    kept = first > 0
    return code[kept] // size, code[kept] % size, first[kept], second[kept]


def _drawn(table: Floats, bundles: int) -> Ints:
    """For each old group and bundle the new group that the bundle goes to; int64, shape (groups before, bundles)."""
    quantile = (np.arange(bundles) + 0.5) * GOLDEN % 1.0
    upto = np.cumsum(table, axis=1)
    found = [np.searchsorted(row / row[-1], quantile, side="right") for row in upto]
    return np.array(found, np.int64).reshape(len(table), bundles)


def _moved_maps(counts: Counts, cells: int, drawn: Ints) -> dict[int, bitarray]:
    flags: dict[int, Bools] = {}
    for vertex, bits in counts.maps.items():
        group, cell = divmod(vertex, cells)
        led = np.flatnonzero(flags_of(bits))
        for other in np.unique(drawn[group, led]).tolist():
            mine = flags.setdefault(other * cells + cell, np.zeros(len(bits), np.bool_))
            mine[led[drawn[group, led] == other]] = True
    return {vertex: packed(flags[vertex]) for vertex in sorted(flags)}
