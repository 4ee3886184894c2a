"""The paths through the history that most completions took, for people to look at."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from history.arrays import Floats
from history.counting import Counts


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


def strongest_paths(counts: Counts, number: int) -> list[Path]:
    """The most travelled paths to a match.

    Only edges are recorded, not whole paths: how often a path was taken is what follows if the next move depends on
    the vertex alone. The shares of all paths add up to 1.

    Parameters
    ----------
    counts : Counts
        Completions that began and ended at vertices and passed edges.
    number : int
        Paths at most.

    Returns
    -------
    list of Path
        By falling share; where equal, by their vertices.

    Complexity: O(edges · longest path) to bound what each vertex can still reach; then best first, in about
    number · length · edges of a vertex steps.
    """
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


def _best(source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], chance: Floats, last: Floats) -> Floats:
    """The likeliest way on from each vertex to a match: a bound that never cuts off the best path."""
    best = last.copy()
    while True:
        before = best.copy()
        np.maximum.at(best, source, chance * before[target])
        if (best == before).all():
            return best
