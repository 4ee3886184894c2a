"""Which groups of a history cover which: the containment of their match maps, and what few of them hold together.

Source: match maps, and that runs of nearly the same map are worth little more than one of them, are Li and Ge's (PVLDB
2016, Definitions 3 and 4, Example 5, section 3.2); groups, and to look for few covers of each by greedy coverage, ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from bitarray import bitarray

from history.counting import group_maps
from history.coverage.group_covers import GroupCovers
from history.coverage.selection import lazy_greedy
from history.coverage.sketch import HashedMap, overlap, size
from history.graph import Graph

EXACT_BUNDLES = 65_536
"""Match maps of more bundles are sketched before they are compared."""
PERMUTATIONS = 128
"""Of a sketch."""


def sketch_error(graph: Graph) -> float:
    """Standard error of the Jaccard index of two maps as they are compared here; 0: they are compared exactly.

    Examples
    --------
    >>> from history import Place, Scheme
    >>> sketch_error(Graph(Scheme((Place("a", 0),), 80)))
    0.0
    """
    return 0.5 / PERMUTATIONS**0.5 if len(graph.counts.bundles) > EXACT_BUNDLES else 0.0


def covers_by_maps(graph: Graph, places: Sequence[Sequence[int]], most: int) -> GroupCovers:
    """Which groups hold most of each group's match map.

    Parameters
    ----------
    graph : Graph
    places : sequence of sequence of int
        Per place those whose groups may cover its own.
    most : int
        Covers of each group at most.

    Returns
    -------
    GroupCovers
        ``share`` is the containment of the group's map in that of the cover. The group itself comes first. The others
        come in the order of greedy coverage, each with what it adds to those before it; when they hold all that any
        does, it begins anew with the rest. From sketches only the largest shares are known, and nothing of ``more``.

    Complexity: O(groups² · bundles / 64), for sketches 128 steps for each bundle of a group, and
    ``selection.lazy_greedy`` for each group.
    """
    scheme = graph.scheme
    union = sorted((group, bits) for group, bits in group_maps(scheme, graph.counts.maps).items() if bits.any())
    maps: dict[int, bitarray | HashedMap] = dict(union)
    if sketch_error(graph):
        maps = {group: HashedMap.of(bits, permutations=PERMUTATIONS) for group, bits in union}
    lists: list[list[tuple[int, float, float]]] = []
    for group, place in enumerate(scheme.place_of_group.tolist()):
        rows = [(group, 1.0, 0.0)]
        if group in maps:
            allowed = set(places[place])
            others = [g for g in maps if g != group and int(scheme.place_of_group[g]) in allowed]
            rows += _covers(maps[group], {other: maps[other] for other in others}, most - 1)
        lists.append(rows)
    return GroupCovers.of(lists)


def _covers(
    mine: bitarray | HashedMap, others: dict[int, bitarray | HashedMap], most: int
) -> list[tuple[int, float, float]]:
    if isinstance(mine, HashedMap):
        shares = {name: overlap(mine, other) / size(mine) for name, other in others.items()}
        best = sorted(shares, key=lambda name: (-shares[name], name))
        return [(name, shares[name], 0.0) for name in best[:most] if shares[name] > 0]
    held = {name: mine & other for name, other in others.items() if isinstance(other, bitarray)}
    names, whole = list(held), mine.count()
    choice = lazy_greedy(list(held.values()), budget=most, refill=True)
    rows, together = [], 0.0
    for item, gain in zip(choice.items, choice.gains, strict=True):
        is_first = together < choice.covered
        together += gain
        rows.append((names[item], held[names[item]].count() / whole, gain / whole if is_first else 0.0))
    return rows
