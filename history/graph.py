"""The history graph: match vectors, bundles, the edges between them, and what each vector led to.

Source: Li and Ge, PVLDB 2016, Definition 4 and Example 5; what is built on it is reconstruction
(docs/how-it-works/paper.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt
from bitarray import bitarray
from bitarray.util import count_and, zeros

from history.arrays import Floats
from history.counting import Counts, count, group_maps, join
from history.errors import HistoryError
from history.trace import Trace
from history.vectors import Scheme

MOST_BUNDLES = 65_536


@dataclass(frozen=True)
class Path:
    """A way from a first event to a match.

    Parameters
    ----------
    vertices : tuple of int
        In order of visit.
    count : float
        How many completions took it, as far as edges tell.
    share : float
        The same as a share of all completions.
    """

    vertices: tuple[int, ...]
    count: float
    share: float


def _best(source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], chance: Floats, last: Floats) -> Floats:
    """The likeliest way on from each vertex to a match: a bound that never cuts off the best path."""
    best = last.copy()
    while True:
        before = best.copy()
        np.maximum.at(best, source, chance * before[target])
        if (best == before).all():
            return best


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
    counts : Counts, optional
        All that was counted; default: nothing yet.

    Examples
    --------
    >>> from history import Place
    >>> graph = Graph(Scheme((Place("a", 0),), window=80))
    >>> int(graph.counts.visits.sum()), len(graph.counts.bundles)
    (0, 0)
    """

    def __init__(
        self, scheme: Scheme, gap: int = -1, most_bundles: int = MOST_BUNDLES, counts: Counts | None = None
    ) -> None:
        self.scheme = scheme
        self.gap = gap
        self.most_bundles = most_bundles
        self.counts = Counts.empty(scheme.vertices) if counts is None else counts

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
        counts = join(self.counts, other.counts, self.gap, self.most_bundles)
        return Graph(self.scheme, self.gap, self.most_bundles, counts)

    def map(self, vertex: int) -> bitarray:
        """Match map of a vertex; of zeros where nothing was reached."""
        found = self.counts.maps.get(vertex)
        return found if found is not None else zeros(len(self.counts.bundles), endian="big")

    def group_map(self, group: int) -> bitarray:
        """Union of the match maps of a group's vertices (groups are numbered over all places)."""
        found = group_maps(self.scheme, self.counts.maps).get(group)
        return found if found is not None else zeros(len(self.counts.bundles), endian="big")

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
        """The most travelled paths to a match.

        Only edges are recorded, not whole paths: how often a path was taken is what follows if the next move depends on
        the vertex alone. The shares of all paths add up to 1.

        Parameters
        ----------
        number : int
            Paths at most.

        Returns
        -------
        list of Path
            By falling share; where equal, by their vertices.

        Complexity: O(edges · longest path) to bound what each vertex can still reach; then best first, in about
        number · length · edges of a vertex steps.
        """
        counts = self.counts
        total = int(counts.completed.sum())
        if not total:
            return []
        passed = counts.passed > 0
        source, target, flow = counts.source[passed], counts.target[passed], counts.passed[passed]
        out = counts.completed + np.bincount(source, weights=flow, minlength=len(counts.visits))
        chance = flow / out[source]
        last = np.divide(counts.completed, out, out=np.zeros(len(out)), where=out > 0)
        best = _best(source, target, chance, last)
        heap: list[tuple[float, tuple[int, ...], float, bool]] = []
        for vertex in np.flatnonzero(counts.started).tolist():
            share = float(counts.started[vertex] / total)
            heappush(heap, (-share * best[vertex], (vertex,), share, False))
        found: list[Path] = []
        while heap and len(found) < number:
            _, path, share, done = heappop(heap)
            if done:
                found.append(Path(path, share * total, share))
                continue
            at = path[-1]
            if last[at] > 0:
                ended = share * float(last[at])
                heappush(heap, (-ended, path, ended, True))
            for edge in range(*np.searchsorted(source, (at, at + 1)).tolist()):
                onward = share * float(chance[edge])
                after = int(target[edge])
                heappush(heap, (-onward * best[after], (*path, after), onward, False))
        return found
