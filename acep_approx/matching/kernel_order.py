"""The order of the matches that one event completes with as many errors: the same for all engines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.matching.jit import inline, ix, kernel

Ints = npt.NDArray[np.int64]


@inline
def is_before(start: Ints, offset: Ints, row: Ints, arc: Ints, labels: Ints, one: int, other: int) -> bool:
    """Whether match ``one`` comes before ``other``: it started later, or has the later events, from the last one back.

    Of the same event the variable with the lower label comes first, and a match that has no more events.
    """
    if start[ix(one)] != start[ix(other)]:
        return bool(start[ix(one)] > start[ix(other)])
    i, j = offset[ix(one + 1)], offset[ix(other + 1)]
    while i > offset[ix(one)] and j > offset[ix(other)]:
        i -= 1
        j -= 1
        if row[ix(i)] != row[ix(j)]:
            return bool(row[ix(i)] > row[ix(j)])
        mine, theirs = labels[ix(arc[ix(i)])], labels[ix(arc[ix(j)])]
        if mine != theirs:
            return bool(mine < theirs)
    return bool(i == offset[ix(one)] and j > offset[ix(other)])


@kernel
def sort_groups(
    group: Ints, start: Ints, offset: Ints, row: Ints, arc: Ints, labels: Ints, order: Ints, spare: Ints,
) -> int:  # fmt: skip
    """Sort the matches of each group, which stand together; returns how many groups were not in order.

    Parameters
    ----------
    group, start : int64, shape (m,)
    offset : int64, shape (m + 1,)
        Match ``m`` binds ``row[offset[m] : offset[m + 1]]`` by ``arc``, earliest first.
    labels : int64
        Variable of each arc.
    order : int64, shape (m,)
        0, 1, 2, ...; afterwards the matches in order.
    spare : int64, shape (m,)
        Scratch.

    Complexity: O(m log m) comparisons, O(m) where they are in order already.
    """
    moved, first, count = 0, 0, start.size
    while first < count:
        end, is_sorted = first + 1, True
        while end < count and group[ix(end)] == group[ix(first)]:
            is_sorted = is_sorted and not is_before(start, offset, row, arc, labels, end, end - 1)
            end += 1
        moved += not is_sorted
        width = 1
        while not is_sorted and width < end - first:  # merge neighbours, ever longer ones
            for low in range(first, end, 2 * width):
                middle, high = min(low + width, end), min(low + 2 * width, end)
                i, j = low, middle
                for k in range(low, high):
                    takes_second = i >= middle
                    if i < middle and j < high:
                        takes_second = is_before(start, offset, row, arc, labels, order[ix(j)], order[ix(i)])
                    if takes_second:
                        spare[ix(k)] = order[ix(j)]
                        j += 1
                    else:
                        spare[ix(k)] = order[ix(i)]
                        i += 1
            for k in range(first, end):
                order[ix(k)] = spare[ix(k)]
            width *= 2
        first = end
    return moved

