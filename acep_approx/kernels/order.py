"""The order of the matches that one event completes with as many errors: the same for all engines."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import called, inline


class Found(NamedTuple):
    """Matches as the walks of both engines write them.

    Per match its hit, its start, and where its events begin (``begin`` has one more, where the next ones will); per
    event, earliest first, its id and what bound it.
    """

    hit: Ints
    start: Ints
    begin: Ints
    id: Ints
    bound_by: Ints


class Order(NamedTuple):
    """The matches in order, scratch of as many integers, and ``DIGITS`` counters."""

    order: Ints
    spare: Ints
    counters: Ints


class Limits(NamedTuple):
    """Of a group with more matches than ``most`` each part of so many is put in order; whether the last has ended.

    ``in_order``: matches of one start come in order.
    """

    most: int
    is_done: int
    in_order: int


DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
"""Starts are sorted digit by digit, the lowest first."""
FEW = 32
"""Matches up to which moving each to its place is faster than counting digits."""


@inline
def _is_before(found: Found, labels: Ints, one: int, other: int) -> bool:
    """Whether match ``one`` comes before ``other``, which started with it: it has the later events, from the last back.

    Of the same event the variable with the lower label comes first, and a match that has no more events.
    """
    first, second = found.begin[one], found.begin[other]
    i, j = found.begin[one + 1] - 1, found.begin[other + 1] - 1
    while i >= first and j >= second:
        if found.id[i] != found.id[j]:
            return bool(found.id[i] > found.id[j])
        mine, theirs = labels[found.bound_by[i]], labels[found.bound_by[j]]
        if mine != theirs:
            return bool(mine < theirs)
        i -= 1
        j -= 1
    return bool(i < first and j >= second)


@inline
def _move_each(start: Ints, at: Order, first: int, last: int) -> None:
    """Put few matches in order of their starts, the latest first: each moves to its place."""
    order = at.order
    for k in range(first + 1, last):
        match = order[k]
        own, i = start[match], k
        while i > first and start[order[i - 1]] < own:
            order[i] = order[i - 1]
            i -= 1
        order[i] = match


@inline
def _sort_digits(start: Ints, at: Order, first: int, last: int, low: int, high: int) -> None:
    """Put matches whose starts lie in ``low .. high`` in order of them, the latest first, digit by digit."""
    order, spare, counters = at
    shift = 0
    while shift < 64 and (high - low) >> shift > 0:
        digits = min(DIGITS, ((high - low) >> shift) + 1)
        for digit in range(digits):
            counters[digit] = 0
        for k in range(first, last):
            counters[((high - start[order[k]]) >> shift) & (DIGITS - 1)] += 1
        place = first
        for digit in range(digits):
            place, counters[digit] = place + counters[digit], place
        for k in range(first, last):
            match = order[k]
            digit = ((high - start[match]) >> shift) & (DIGITS - 1)
            spare[counters[digit]] = match
            counters[digit] += 1
        for k in range(first, last):
            order[k] = spare[k]
        shift += DIGIT_BITS


@inline
def _sort_starts(start: Ints, at: Order, first: int, last: int) -> None:
    """Put ``order[first:last]``, matches that follow one another, in order of their starts; equal ones stay so."""
    low = high = before = start[first]
    is_sorted = True
    for k in range(first + 1, last):
        own = start[k]
        is_sorted = is_sorted and own <= before
        low, high, before = min(low, own), max(high, own), own
    if is_sorted:
        return
    if last - first <= FEW:
        _move_each(start, at, first, last)
    else:
        _sort_digits(start, at, first, last, low, high)


@inline
def _merge(found: Found, labels: Ints, at: Order, first: int, last: int) -> None:
    """Put matches of one start in order: neighbours are merged, and then ever longer runs of them."""
    order, spare = at.order, at.spare
    width = 1
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            i, j = low, middle
            for k in range(low, high):
                is_second = i >= middle
                if not is_second and j < high:
                    is_second = _is_before(found, labels, order[j], order[i])
                if is_second:
                    spare[k] = order[j]
                    j += 1
                else:
                    spare[k] = order[i]
                    i += 1
        for k in range(first, last):
            order[k] = spare[k]
        width *= 2


@inline
def _sort_group(found: Found, labels: Ints, at: Order, first: int, last: int, in_order: int) -> None:
    """Put ``order[first:last]``, matches that follow one another, in order."""
    _sort_starts(found.start, at, first, last)
    if in_order:
        return
    begun, is_sorted = first, True
    for k in range(first + 1, last + 1):
        is_same = k < last and found.start[at.order[k]] == found.start[at.order[k - 1]]
        if is_same:
            is_sorted = is_sorted and not _is_before(found, labels, at.order[k], at.order[k - 1])
        else:
            if not is_sorted:
                _merge(found, labels, at, begun, k)
            begun, is_sorted = k, True


@called
def sort_found(found: Found, count: int, group: Ints, labels: Ints, limits: Limits, at: Order) -> int:
    """See ``sort_matches``."""
    for m in range(count):
        at.order[m] = m
    first = 0
    while first < count:
        last, mine = first + 1, group[found.hit[first]]
        while last < count and last - first < limits.most and group[found.hit[last]] == mine:
            last += 1
        if last == count and last - first < limits.most and not limits.is_done:
            return first
        _sort_group(found, labels, at, first, last, limits.in_order)
        first = last
    return count


@called
def move_up(found: Found, first: int, count: int) -> None:
    """Let the matches from ``first`` on stand in front; so many there are."""
    dropped = found.begin[first]
    for i in range(found.begin[count] - dropped):
        found.id[i], found.bound_by[i] = found.id[dropped + i], found.bound_by[dropped + i]
    for m in range(count - first):
        found.hit[m], found.start[m] = found.hit[first + m], found.start[first + m]
        found.begin[m] = found.begin[first + m] - dropped
    found.begin[count - first] = found.begin[count] - dropped


@kernel
def sort_matches(found: Found, count: int, group: Ints, labels: Ints, limits: Limits, at: Order) -> int:
    """Put the matches of each group in order; the last group is left out unless it has ended, or has many.

    Parameters
    ----------
    found : Found
        The first ``count`` matches.
    group : int64
        The group of each hit. Matches of one group stand together.
    labels : int64
        The variable of each number that says what bound an event.
    limits : Limits
    at : Order
        Gets the matches in order.

    Returns
    -------
    int
        How many matches are in order; the others may not be all of their group.

    Complexity: O(count) where matches of one start come in order, as the walk of the arc logs writes them; else
    O(count log count) comparisons.
    """
    return sort_found(found, count, group, labels, limits, at)
