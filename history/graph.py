"""The history graph: match vectors, bundles, the edges between them, and what each vector led to.

Source: Li and Ge, PVLDB 2016, Definition 4 and Example 5; what is built on it is reconstruction
(docs/how-it-works/paper.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from bitarray import bitarray
from bitarray.util import count_and, zeros

from history.counting import Counts, count
from history.errors import HistoryError
from history.joining import join
from history.paths import Path, strongest_paths
from history.trace import Trace
from history.vectors import Scheme

MOST_BUNDLES = 65_536


class Graph:
    """A history: what was seen at every vertex, and to which bundles it led.

    Parameters
    ----------
    scheme : Scheme
        The vertices; it knows the window.
    gap : int, default -1
        Match points at most this many ticks apart belong to one bundle. The window is the paper's choice; -1 makes
        every match point a bundle of its own.
    most_bundles : int, default 65,536
        The latest bundles that match maps are about. A bundle that leaves is cleared from all maps.

    Attributes
    ----------
    counts : Counts
        All that was counted.

    Examples
    --------
    >>> from history import Place
    >>> graph = Graph(Scheme((Place("a", 0),), window=80))
    >>> int(graph.counts.visits.sum()), len(graph.counts.bundles)
    (0, 0)
    """

    def __init__(self, scheme: Scheme, gap: int = -1, most_bundles: int = MOST_BUNDLES) -> None:
        self.scheme = scheme
        self.gap = gap
        self.most_bundles = most_bundles
        self.counts = Counts.empty(scheme.vertices)

    def observe(self, trace: Trace) -> None:
        """Add what a trace holds.

        Parameters
        ----------
        trace : Trace
            Of an exact run. No match point may be in two traces.

        Complexity: O(v log v) for v visits, and O(maps) to join; about a second for a million visits.
        """
        found = count(self.scheme, trace, self.gap, self.most_bundles)
        self.counts = join(self.counts, found, self.gap, self.most_bundles)

    def merge(self, other: Graph) -> Graph:
        """Both histories as one: the same as if one graph had observed all their traces, in any order.

        With a gap of 0 or more this holds as long as no bundle left the ring; with -1 always.

        Parameters
        ----------
        other : Graph
            Of the same scheme, gap and number of bundles.

        Returns
        -------
        Graph
            A new one.

        Raises
        ------
        HistoryError
            They do not go together (ACEP-H007).
        """
        for name in ("scheme", "gap", "most_bundles"):
            if getattr(self, name) != getattr(other, name):
                raise HistoryError(
                    f"these histories differ in {name.replace('_', ' ')} and cannot be joined",
                    code="ACEP-H007",
                    hint="learn both with the same buckets and bundles",
                )
        merged = Graph(self.scheme, self.gap, self.most_bundles)
        merged.counts = join(self.counts, other.counts, self.gap, self.most_bundles)
        return merged

    def map(self, vertex: int) -> bitarray:
        """Match map of a vertex; of zeros where nothing was reached."""
        found = self.counts.maps.get(vertex)
        return found if found is not None else zeros(len(self.counts.bundles), endian="big")

    def group_map(self, group: int) -> bitarray:
        """Union of the match maps of a group's vertices (groups are numbered over all places)."""
        union = zeros(len(self.counts.bundles), endian="big")
        for vertex in range(group * self.scheme.cells, (group + 1) * self.scheme.cells):
            if vertex in self.counts.maps:
                union |= self.counts.maps[vertex]
        return union

    def containment(self, groups: Sequence[int]) -> npt.NDArray[np.float64]:
        """How much of one group's match map another's holds.

        Parameters
        ----------
        groups : sequence of int
            Numbers over all places.

        Returns
        -------
        float64 array, shape (len(groups), len(groups))
            At [i, j] the share of the i-th map that the j-th holds; 0 where the i-th is empty.

        Complexity: O(groups² · bundles / 64).
        """
        maps = [self.group_map(group) for group in groups]
        held = np.array([[count_and(one, two) for two in maps] for one in maps], np.float64)
        held = held.reshape(len(maps), len(maps))
        return held / np.maximum(np.diag(held), 1)[:, None]

    def strongest_paths(self, number: int) -> list[Path]:
        """The most travelled paths to a match: see ``paths.strongest_paths``."""
        return strongest_paths(self.counts, number)
