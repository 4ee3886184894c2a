"""Which queries of a class have a match point: those whose window it fits, and whose thresholds its event passes."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.kernels.pairs import TEST, Letters, Queries, holds


class ClassPoints(NamedTuple):
    """Match points of classes: the class, the tick of the event and the latest start, the place of the event."""

    cls: Ints
    tick: Ints
    start: Ints
    at: Ints


class Members(NamedTuple):
    """The queries of each class, from ``first`` on, in ``row``: what passes one of them first passes all before it.

    ``window`` and ``since`` are by row.
    """

    first: Ints
    row: Ints
    window: Ints
    since: Ints


@kernel
def spread(points: ClassPoints, members: Members, letters: Letters, queries: Queries, point: Ints, row: Ints) -> int:
    """Write out which point is one of which query.

    Parameters
    ----------
    points : ClassPoints
    members : Members
        In the order of the first test, the weakest first; without tests in that of windows, the longest first.
    letters, queries : Letters, Queries
        The tests of the queries, all of one letter, with what they ask of events, and the constants.
    point, row : int64
        Get what is found, as far as there is room.

    Returns
    -------
    int
        How many there are.

    Complexity: O(points x queries that pass their first test).
    """
    used, tests = 0, len(letters.tests) // TEST
    for p in range(len(points.cls)):
        at, since = points.at[p], points.start[p]
        length = points.tick[p] - since
        first, end = members.first[points.cls[p]], members.first[points.cls[p] + 1]
        for m in range(first, end):
            query = members.row[m]
            fits = length <= members.window[query]
            if tests == 0 and not fits:
                break
            if tests > 0 and not holds(letters, queries, len(letters.literal), at, query, 0):
                break
            for t in range(1, tests):
                fits = fits and holds(letters, queries, len(letters.literal), at, query, t * TEST)
            if fits and since >= members.since[query]:
                if used < len(point):
                    point[used] = p
                    row[used] = query
                used += 1
    return used
