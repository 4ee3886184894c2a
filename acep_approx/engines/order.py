"""The order in which matches are put out, whatever found them: by what completes them, errors, start, later events.

The walks of both engines give the matches of one event in whatever order they come upon them. Here the matches of an
event with as many errors are gathered and sorted; more than ``MOST`` of them in parts of so many, so that memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.kernels.order import EVENT_COLUMNS, MATCH_COLUMNS, Columns, Found, Order, sort_matches, write_matches

MOST = 1 << 18
"""Matches of one event, with as many errors, that are sorted together."""


def groups(event: Ints, errors: Ints) -> Ints:
    """The group of each hit: hits of one event with as many errors, which stand together, are one."""
    group: Ints = np.cumsum((np.diff(event, prepend=-1) != 0) | (np.diff(errors, prepend=-1) != 0))
    return group


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
    out_match, out_event : int64
        What the walk writes to; it begins behind what is left.
    matches, bound : int
        Matches that are left, and their events.
    """

    def __init__(self, group: Ints, labels: Ints, size: int, chunk: int) -> None:
        self.out_match = np.empty(MATCH_COLUMNS * size, np.int64)
        self.out_event = np.empty(EVENT_COLUMNS * size, np.int64)
        self.matches = self.bound = 0
        self._group = group
        self._labels = labels
        self._chunk = chunk

    @property
    def found(self) -> Found:
        """What the walk writes to, as kernels take it."""
        return Found(self.out_match, self.out_event)

    def sorted(self, walk: Callable[[], tuple[int, int, bool]]) -> Iterator[Columns]:
        """The matches of a walk, in order.

        Parameters
        ----------
        walk : callable
            Goes on until there is no room or nothing more; returns how many matches and events stand in the outputs
            then, and whether that was all.
        """
        is_done = False
        while not is_done:
            self.matches, self.bound, is_done = walk()
            columns = self._take(is_done=is_done)
            if columns is not None:
                yield columns
            if not is_done and (columns is None or self.out_event.size < EVENT_COLUMNS * self._chunk):
                self.out_match = extended(self.out_match, 2 * self.out_match.size)
                self.out_event = extended(self.out_event, 2 * self.out_event.size)

    def _take(self, *, is_done: bool) -> Columns | None:
        """The matches of groups that have ended; the others stand in front then."""
        found, at = self.found, Order(*(np.empty(self.matches + 1, np.int64) for _ in Order._fields))
        count = sort_matches(found, self.matches, self._group, self._labels, MOST, int(is_done), at)
        if count == 0:
            return None
        bound = int(at.offset[count])
        out = Columns(*(np.empty(size, np.int64) for size in (count, count, count + 1, bound, bound)))
        write_matches(found, at, count, out)
        left_matches, left_bound = self.matches - count, self.bound - bound
        rest, bound_rest = self.out_match[MATCH_COLUMNS * count :], self.out_event[EVENT_COLUMNS * bound :]
        self.out_match[: MATCH_COLUMNS * left_matches] = rest[: MATCH_COLUMNS * left_matches].copy()
        self.out_event[: EVENT_COLUMNS * left_bound] = bound_rest[: EVENT_COLUMNS * left_bound].copy()
        self.matches, self.bound = left_matches, left_bound
        return out
