"""The order in which matches are put out, whatever found them: by what completes them, errors, start, later events.

The walks of both engines give the matches of one event in whatever order they come upon them. Here the matches of an
event with as many errors are gathered, sorted and put into columns; more than ``MOST`` of them in parts of so many, so
that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.engines.columns import Listed, Placement
from acep_approx.kernels.columns import WRITTEN, Columns
from acep_approx.kernels.listing import DONE, OUT_FULL, Listing
from acep_approx.kernels.order import DIGITS, Found, Order

MOST = 1 << 18
"""Matches of one event, with as many errors, that are sorted together."""
IN_CACHE = 1 << 12
"""Bound events that a walk writes before they are put in order and into columns."""


def groups(event: Ints, errors: Ints) -> Ints:
    """The group of each hit: hits of one event with as many errors, which stand together, are one."""
    group: Ints = np.cumsum((np.diff(event, prepend=-1) != 0) | (np.diff(errors, prepend=-1) != 0))
    return group


def hits_in_order(row: Ints, event: Ints, rank: Ints) -> Ints | None:
    """Put hits in the order of their rows, then events, then ranks; None if they are in this order already.

    Parameters
    ----------
    row : int64, shape (events,)
        Of each event. In sets of queries an event may stand there several times, once for each query.
    event, rank : int64, shape (hits,)

    Examples
    --------
    >>> hits_in_order(np.array([7, 7]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])).tolist()
    [0, 2, 1, 3]
    """
    place = row[event] * (rank.max(initial=0) + 1) + rank
    is_sorted = bool((place[1:] >= place[:-1]).all())
    order = np.arange(len(place)) if is_sorted else np.argsort(place, kind="stable")  # nearly sorted: it is fastest
    ordered = event[order]
    changes = ordered[1:] != ordered[:-1]
    if (changes & (row[ordered[1:]] == row[ordered[:-1]])).any():
        return np.lexsort((rank, event, row[event]))
    return None if is_sorted else order


def room_for(events: int) -> Found:
    """Room for what a walk writes: matches with so many events, four in each; of fewer each, fewer in all."""
    matches = max(events // 4, 1)
    found = Found(*(np.empty(size, np.int64) for size in (matches, matches, matches + 1, events, events)))
    found.begin[0] = 0
    return found


def scratch(matches: int) -> Order:
    """Scratch to put so many matches in order."""
    return Order(np.empty(matches, np.int64), np.empty(matches, np.int64), np.zeros(DIGITS, np.int64))


class Walk(NamedTuple):
    """A walk that writes matches.

    Attributes
    ----------
    hits : int
        Of how many it lists the matches.
    group : int64
        Per hit; see ``groups``.
    labels : int64
        The variable of each number that the walk writes beside an event.
    go_on : callable
        Goes on until there is no room or nothing more; returns why it stopped, see ``kernels.listing``, and how many
        events the matches have that it put into the columns.
    keeps_order : bool
        Whether it comes upon matches of one start in order, but for ties.
    """

    hits: int
    group: Ints
    labels: Ints
    go_on: Callable[[Found, Listing, Columns], tuple[int, int]]
    keeps_order: bool = False


def in_columns(walk: Walk, placement: Placement, chunk: int, expected: int = 0) -> Iterator[Listed]:
    """Yield the matches of a walk in order, about ``chunk`` bound events at a time.

    ``expected``: about how many matches there are, where that is known.
    """
    found, status = room_for(min(chunk, IN_CACHE, 16 * walk.hits)), OUT_FULL
    column = placement.column[walk.labels]
    at = Listing(walk.group, MOST, int(walk.keeps_order), scratch(found.hit.size), walk.labels, column)
    matches, values = found.hit.size, found.id.size  # at first, to learn how many there are to so many events
    if not placement.lists and not placement.keeps_labels:
        matches += min(expected, chunk // placement.singles)
    while status != DONE:
        columns = placement.room(matches, values)
        status, events = walk.go_on(found, at, columns)
        if status == OUT_FULL:
            found = Found(*(extended(column, 2 * column.size) for column in found))
            at = at._replace(order=scratch(found.hit.size))
        written = int(columns.header[WRITTEN])
        if written:
            matches = min(8 * matches, chunk * written // events)
            part = Listed.written(columns)
            most = events if placement.keeps_labels else max((len(ids) for _, ids in part.lists), default=0)
            values = 11 * matches * most // (10 * written)
            yield part
        matches, values = max(matches, found.hit.size), values + found.id.size
