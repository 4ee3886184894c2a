"""The order of the matches that one event completes with as many errors: the same for all engines."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.kernels.jit import inline, ix, kernel


class Found(NamedTuple):
    """Matches as the walks of both engines write them, and their events one after the other, earliest first."""

    matches: Ints
    events: Ints


# a match: its hit, number of events, and start; an event of a match: its id, and what bound it
MATCH_HIT, MATCH_LENGTH, MATCH_START, MATCH_COLUMNS = 0, 1, 2, 3
EVENT_ID, BOUND_BY, EVENT_COLUMNS = 0, 1, 2


class Order(NamedTuple):
    """Per match where its events begin (and one more); the matches in order; scratch of as many integers."""

    offset: Ints
    order: Ints
    spare: Ints


class Columns(NamedTuple):
    """Per match its hit, its start, and where its events begin (one more at the end); per event id and binding."""

    hit: Ints
    start: Ints
    begin: Ints
    id: Ints
    bound_by: Ints


@inline
def is_before(found: Found, offset: Ints, labels: Ints, one: int, other: int) -> bool:
    """Whether match ``one`` comes before ``other``: it started later, or has the later events, from the last one back.

    Of the same event the variable with the lower label comes first, and a match that has no more events.
    """
    matches, events = found
    at, beside = MATCH_COLUMNS * one, MATCH_COLUMNS * other
    mine, theirs = matches[ix(at + MATCH_START)], matches[ix(beside + MATCH_START)]
    if mine != theirs:
        return bool(mine > theirs)
    first, second = offset[ix(one)], offset[ix(other)]
    i, j = first + matches[ix(at + MATCH_LENGTH)] - 1, second + matches[ix(beside + MATCH_LENGTH)] - 1
    while i >= first and j >= second:
        if events[ix(EVENT_COLUMNS * i)] != events[ix(EVENT_COLUMNS * j)]:
            return bool(events[ix(EVENT_COLUMNS * i)] > events[ix(EVENT_COLUMNS * j)])
        mine = labels[ix(events[ix(EVENT_COLUMNS * i + BOUND_BY)])]
        theirs = labels[ix(events[ix(EVENT_COLUMNS * j + BOUND_BY)])]
        if mine != theirs:
            return bool(mine < theirs)
        i -= 1
        j -= 1
    return bool(i < first and j >= second)


@inline
def sort_group(found: Found, labels: Ints, at: Order, first: int, last: int) -> None:
    """Put ``order[first:last]`` into order: neighbours are merged, and then ever longer runs of them."""
    offset, order, spare = at
    is_sorted = True
    for k in range(first + 1, last):
        is_sorted = is_sorted and not is_before(found, offset, labels, k, k - 1)
    width = last - first if is_sorted else 1
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            i, j = low, middle
            for k in range(low, high):
                is_second = i >= middle
                if not is_second and j < high:
                    is_second = is_before(found, offset, labels, order[ix(j)], order[ix(i)])
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
def sort_matches(found: Found, count: int, group: Ints, labels: Ints, most: int, is_done: int, at: Order) -> int:
    """Put the matches of each group in order; the last group is left out unless it has ended, or has many.

    Parameters
    ----------
    found : Found
        The first ``count`` matches, with their events.
    group : int64
        The group of each hit. Matches of one group stand together.
    labels : int64
        The variable of each number that says what bound an event.
    most : int
        Of a group with more matches each part of so many is put in order.
    is_done : int
        Whether the last group has ended.
    at : Order
        Gets where the events of each match begin, and the matches in order.

    Returns
    -------
    int
        How many matches are in order; the others may not be all of their group.

    Complexity: O(count log count) comparisons, O(count) where they are in order already.
    """
    matches = found.matches
    begin = 0
    for m in range(count):
        at.offset[ix(m)] = begin
        at.order[ix(m)] = m
        begin += matches[ix(MATCH_COLUMNS * m + MATCH_LENGTH)]
    at.offset[ix(count)] = begin
    first = 0
    while first < count:
        last, mine = first + 1, group[ix(matches[ix(MATCH_COLUMNS * first)])]
        while last < count and last - first < most and group[ix(matches[ix(MATCH_COLUMNS * last)])] == mine:
            last += 1
        if last == count and last - first < most and not is_done:
            return first
        sort_group(found, labels, at, first, last)
        first = last
    return count


@kernel
def write_matches(found: Found, at: Order, count: int, out: Columns) -> None:
    """Write the first ``count`` matches of an order as columns."""
    matches, events = found
    written = 0
    for k in range(count):
        m = at.order[ix(k)]
        out.hit[ix(k)] = matches[ix(MATCH_COLUMNS * m)]
        out.start[ix(k)] = matches[ix(MATCH_COLUMNS * m + MATCH_START)]
        out.begin[ix(k)] = written
        first, length = at.offset[ix(m)], matches[ix(MATCH_COLUMNS * m + MATCH_LENGTH)]
        for i in range(length):
            out.id[ix(written + i)] = events[ix(EVENT_COLUMNS * (first + i))]
            out.bound_by[ix(written + i)] = events[ix(EVENT_COLUMNS * (first + i) + BOUND_BY)]
        written += length
    out.begin[ix(count)] = written
