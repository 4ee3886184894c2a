"""The order in which matches are put out, whatever found them: by what completes them, errors, start, later events.

The walks of both engines give the matches of one event in whatever order they come upon them. Here the matches of an
event with as many errors are gathered and sorted; more than ``MOST`` of them in parts of so many, so that memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.kernels.columns import close_up
from acep_approx.kernels.order import DIGITS, Found, Limits, Order, drop_matches, sort_matches

MOST = 1 << 18
"""Matches of one event, with as many errors, that are sorted together."""


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
    """Room for what a walk writes: so many matches of one event each, or fewer of more."""
    found = Found(*(np.empty(events + (name == "begin"), np.int64) for name in Found._fields))
    found.begin[0] = 0
    return found


def scratch(matches: int) -> Order:
    """Scratch to put so many matches in order."""
    return Order(np.empty(matches, np.int64), np.empty(matches, np.int64), np.zeros(DIGITS, np.int64))


class Ordered(NamedTuple):
    """Matches in order: match ``m`` binds the events ``offset[m] : offset[m + 1]``, earliest first."""

    hit: Ints
    start: Ints
    offset: Ints
    id: Ints
    bound_by: Ints


class Sorter:
    """What a walk has written and has not been put out.

    Parameters
    ----------
    group : int64
        Per hit, see ``groups``.
    labels : int64
        The variable of each number that a walk writes beside the id of an event.
    size : int
        Bound events that there is room for at first.
    chunk : int
        Bound events to be put out at a time.

    Attributes
    ----------
    found : Found
        What the walk writes to, behind what is left.
    matches, bound : int
        Matches that are left, and their events.
    """

    def __init__(self, group: Ints, labels: Ints, size: int, chunk: int) -> None:
        self.found = room_for(size)
        self.matches = self.bound = 0
        self._group = group
        self._labels = labels
        self._chunk = chunk
        self._at = scratch(0)

    def sorted(self, walk: Callable[[], tuple[int, bool]]) -> Iterator[Ordered]:
        """The matches of a walk, in order.

        Parameters
        ----------
        walk : callable
            Goes on until there is no room or nothing more; returns how many matches stand in ``found`` then, and
            whether that was all.
        """
        is_done = False
        while not is_done:
            self.matches, is_done = walk()
            ordered = self._in_order(is_done=is_done)
            if len(ordered.hit):
                yield ordered
                drop_matches(self.found, len(ordered.hit), self.matches)
                self.matches -= len(ordered.hit)
            self.bound = int(self.found.begin[self.matches])
            if not is_done and (not len(ordered.hit) or self.found.id.size < self._chunk):
                self.found = Found(*(extended(column, 2 * column.size) for column in self.found))

    def _in_order(self, *, is_done: bool) -> Ordered:
        """The matches of the groups that have ended."""
        found = self.found
        if self._at.order.size < self.matches:
            self._at = scratch(found.hit.size)
        limits = Limits(MOST, int(is_done), 0)
        count = sort_matches(found, self.matches, self._group, self._labels, limits, self._at)
        order = self._at.order[:count]
        offset = np.concatenate(([0], np.cumsum(found.begin[order + 1] - found.begin[order])))
        ids, bound_by = np.empty(offset[-1], np.int64), np.empty(offset[-1], np.int64)
        close_up(order, found.begin, found.id, found.bound_by, ids, bound_by)
        return Ordered(found.hit[order], found.start[order], offset, ids, bound_by)
