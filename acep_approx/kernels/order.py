"""The order of the matches that one event completes with as many errors: the same for all engines.

Kernels here read matches as the walks of both engines write them: per match its hit, number of events and start; per
event its row, and what bound it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import inline, ix, kernel

Ints = npt.NDArray[np.int64]


@inline
def is_before(matches: Ints, events: Ints, offset: Ints, labels: Ints, one: int, other: int) -> bool:
    """Whether match ``one`` comes before ``other``: it started later, or has the later events, from the last one back.

    Of the same event the variable with the lower label comes first, and a match that has no more events.
    """
    mine, theirs = matches[ix(3 * one + 2)], matches[ix(3 * other + 2)]
    if mine != theirs:
        return bool(mine > theirs)
    first, second = offset[ix(one)], offset[ix(other)]
    i, j = first + matches[ix(3 * one + 1)] - 1, second + matches[ix(3 * other + 1)] - 1
    while i >= first and j >= second:
        if events[ix(2 * i)] != events[ix(2 * j)]:
            return bool(events[ix(2 * i)] > events[ix(2 * j)])
        mine, theirs = labels[ix(events[ix(2 * i + 1)])], labels[ix(events[ix(2 * j + 1)])]
        if mine != theirs:
            return bool(mine < theirs)
        i -= 1
        j -= 1
    return bool(i < first and j >= second)


@inline
def sort_group(
    matches: Ints, events: Ints, offset: Ints, labels: Ints, order: Ints, spare: Ints, first: int, last: int,
) -> None:  # fmt: skip
    """Put ``order[first:last]`` into order: neighbours are merged, and then ever longer runs of them."""
    is_sorted = True
    for k in range(first + 1, last):
        is_sorted = is_sorted and not is_before(matches, events, offset, labels, k, k - 1)
    width = last - first if is_sorted else 1
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            i, j = low, middle
            for k in range(low, high):
                is_second = i >= middle
                if not is_second and j < high:
                    is_second = is_before(matches, events, offset, labels, order[ix(j)], order[ix(i)])
                if is_second:
                    spare[ix(k)] = order[ix(j)]
                    j += 1
                else:
                    spare[ix(k)] = order[ix(i)]
                    i += 1
        for k in range(first, last):
            order[ix(k)] = spare[ix(k)]
        width *= 2


@kernel
def sort_matches(
    matches: Ints, count: int, events: Ints, group: Ints, labels: Ints, most: int, is_done: int, offset: Ints,
    order: Ints, spare: Ints,
) -> int:  # fmt: skip
    """Put the matches of each group in order; the last group is left out unless it has ended, or has many.

    Parameters
    ----------
    matches, events : int64
        The first ``count`` matches, with their events one after the other.
    group : int64
        The group of each hit. Matches of one group stand together.
    labels : int64
        The variable of each number that says what bound an event.
    most : int
        Of a group with more matches each part of so many is put in order.
    is_done : int
        Whether the last group has ended.
    offset : int64, shape (count + 1,)
        Gets where the events of each match begin.
    order : int64, shape (count,)
        Gets the matches in order.
    spare : int64, shape (count,)
        Scratch.

    Returns
    -------
    int
        How many matches are in order; the others may not be all of their group.

    Complexity: O(count log count) comparisons, O(count) where they are in order already.
    """
    at = 0
    for m in range(count):
        offset[ix(m)] = at
        order[ix(m)] = m
        at += matches[ix(3 * m + 1)]
    offset[ix(count)] = at
    first = 0
    while first < count:
        last, mine = first + 1, group[ix(matches[ix(3 * first)])]
        while last < count and last - first < most and group[ix(matches[ix(3 * last)])] == mine:
            last += 1
        if last == count and last - first < most and not is_done:
            return first
        sort_group(matches, events, offset, labels, order, spare, first, last)
        first = last
    return count


@kernel
def write_matches(
    matches: Ints, events: Ints, offset: Ints, order: Ints, count: int, hit: Ints, start: Ints, begin: Ints, row: Ints,
    bound_by: Ints,
) -> None:  # fmt: skip
    """Write the first ``count`` matches of an order as columns; ``begin`` gets where the events of each begin."""
    at = 0
    for k in range(count):
        m = order[ix(k)]
        hit[ix(k)] = matches[ix(3 * m)]
        start[ix(k)] = matches[ix(3 * m + 2)]
        begin[ix(k)] = at
        first = offset[ix(m)]
        for i in range(matches[ix(3 * m + 1)]):
            row[ix(at + i)] = events[ix(2 * (first + i))]
            bound_by[ix(at + i)] = events[ix(2 * (first + i) + 1)]
        at += matches[ix(3 * m + 1)]
    begin[ix(count)] = at
