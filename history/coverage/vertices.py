"""Greedy coverage of the vertices of a history: which of them lead to most bundles together."""

from __future__ import annotations

from history.coverage.selection import lazy_greedy
from history.graph import Graph


def greedy_order(graph: Graph, place: int) -> list[int]:
    """The vertices of a place in the order of greedy coverage: each adds most bundles to those before it.

    Parameters
    ----------
    graph : Graph
        The history.
    place : int
        Number of the place.

    Returns
    -------
    list of int
        Vertices that add a bundle; the others add nothing to them.

    Complexity: as ``selection.lazy_greedy``, of which the guarantees are too.
    """
    low = int(graph.scheme.first[place])
    high = low + graph.scheme.places[place].groups * graph.scheme.cells
    vertices = [vertex for vertex in graph.counts.maps if low <= vertex < high]
    chosen = lazy_greedy([graph.counts.maps[vertex] for vertex in vertices])
    return [vertices[item] for item in chosen.items]
