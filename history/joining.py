"""Join what two traces hold, as if they had been one.

All of it is sums and unions, so the order does not matter: several processes can count and join in any order (ours;
the paper has one process).
"""

from __future__ import annotations

import numpy as np
from bitarray import bitarray

from history.arrays import Ints
from history.bundles import Bundles, chain
from history.counting import Counts, packed, sums


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
    bundles, places = chain(_both(left.bundles, right.bundles), gap, most_bundles)
    split = len(left.bundles)
    vertices = len(left.visits)
    edges, moves, passed = sums(
        np.concatenate([left.source * vertices + left.target, right.source * vertices + right.target]),
        np.concatenate([left.moves, right.moves]),
        np.concatenate([left.passed, right.passed]),
    )
    ends_bundle = np.concatenate([places[left.ends_bundle], places[split:][right.ends_bundle]])
    kept = ends_bundle >= 0
    ends_vertex = np.concatenate([left.ends_vertex, right.ends_vertex])[kept]
    pairs, shareable, shared = sums(
        np.concatenate([left.covered * vertices + left.cover, right.covered * vertices + right.cover]),
        np.concatenate([left.shareable, right.shareable]),
        np.concatenate([left.shared, right.shared]),
    )
    size = max(len(bundles), 1)
    ends, times = sums(ends_vertex * size + ends_bundle[kept], np.concatenate([left.ends, right.ends])[kept])
    return Counts(
        visits=left.visits + right.visits,
        reached=left.reached + right.reached,
        led=left.led + right.led,
        cost=left.cost + right.cost,
        started=left.started + right.started,
        completed=left.completed + right.completed,
        source=edges // vertices,
        target=edges % vertices,
        moves=moves,
        passed=passed,
        ends_vertex=ends // size,
        ends_bundle=ends % size,
        ends=times,
        covered=pairs // vertices,
        cover=pairs % vertices,
        shareable=shareable,
        shared=shared,
        bundles=bundles,
        maps=_union(_moved(left.maps, places[:split], len(bundles)), _moved(right.maps, places[split:], len(bundles))),
    )


def _both(left: Bundles, right: Bundles) -> Bundles:
    columns = ("first", "last", "slot", "row", "points")
    return Bundles(*(np.concatenate([getattr(left, name), getattr(right, name)]) for name in columns))


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
        before = np.unpackbits(np.frombuffer(bits.tobytes(), np.uint8), count=len(bits))
        flags = np.zeros(bundles, np.bool_)
        flags[there] = np.maximum.reduceat(before[order], heads)
        if flags.any():
            moved[vertex] = packed(flags)
    return moved


def _union(left: dict[int, bitarray], right: dict[int, bitarray]) -> dict[int, bitarray]:
    union = dict(left)
    for vertex, bits in right.items():
        union[vertex] = union[vertex] | bits if vertex in union else bits
    return dict(sorted(union.items()))
