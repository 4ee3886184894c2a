"""From hits back along the links to the matches that they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from acep_approx.arrays import Bools, Ints, Ragged, extended
from acep_approx.engines.columns import Listed, Placement
from acep_approx.engines.order import Walk, groups, in_columns
from acep_approx.kernels.columns import Columns
from acep_approx.kernels.listing import DEEPER, Listing
from acep_approx.kernels.order import Found
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs.layout import ARC_BITS, ARC_MASK, LINK
from acep_approx.ranges import impossible


@dataclass(frozen=True)
class Hits:
    """Completed matches, or groups of merged ones: parallel columns, in order of row, then of errors.

    ``event`` indexes the batch, ``final`` the finals of the automaton; ``start`` is the latest; ``mark`` says
    whether the run was protected from being shed (see ``kernels.runs.scores``); ``times`` how
    many were merged into it; ``shown`` has the words of the registers that results show, one row per hit.
    """

    event: Ints
    final: Ints
    errors: Ints
    link: Ints
    start: Ints
    mark: Ints
    times: Ints
    shown: Ints

    def __len__(self) -> int:
        return len(self.event)

    def where(self, which: Bools) -> Hits:
        """Those for which it is true."""
        return self if which.all() else Hits(*(getattr(self, one.name)[which] for one in fields(self)))


@dataclass(frozen=True)
class Bound(Ragged):
    """Listed matches: per match its hit, start and ``offset .. offset + 1`` of ``id`` and ``arc``, earliest first."""

    hit: Ints
    start: Ints
    offset: Ints
    id: Ints
    arc: Ints


def listed(
    links: Ints, hits: Hits, lows: Ints, labels: Ints, placement: Placement, chunk: int, expected: int = 0
) -> Iterator[Listed]:
    """The matches of ``hits`` as columns, in order, about ``chunk`` bound events at a time.

    Parameters
    ----------
    links : numpy.ndarray of int64
        See ``kernels.runs.layout.LINK``.
    hits : Hits
    lows : numpy.ndarray of int64
        Per hit the earliest start of its matches.
    labels : numpy.ndarray of int64
        The variable of each arc.
    placement : Placement
        Where the events of a match go. What it says of labels is said of arcs.
    chunk : int
    expected : int, default 0
        How many matches there may be.

    Complexity: O(bound events), but for putting them in order; see ``kernels.runs.lineage``, ``order``.
    """
    header = np.zeros(kernel_lineage.WALK, np.int64)
    way = kernel_lineage.Way(hits.link, lows, links, np.zeros(256, np.int64), np.zeros(128, np.int64))

    def go_on(found: Found, at: Listing, columns: Columns) -> tuple[int, int]:
        nonlocal way
        header[kernel_lineage.EVENTS_OUT] = 0
        while (status := kernel_lineage.list_matches(header, way, found, at, columns)) == DEEPER:
            way = way._replace(
                stack=extended(way.stack, 2 * way.stack.size), path=extended(way.path, 2 * way.path.size)
            )
        return status, int(header[kernel_lineage.EVENTS_OUT])

    walk = Walk(len(hits), groups(hits.event, hits.errors), labels, go_on)
    return in_columns(walk, placement, chunk, expected)


def spelled(links: Ints, hits: Hits, lows: Ints, labels: Ints, chunk: int) -> Iterator[Bound]:
    """What ``listed`` gives with the events of each match in a row."""
    in_a_row = Placement(np.full(int(labels.max(initial=0)) + 1, -1), keeps_labels=True)
    for part in listed(links, hits, lows, labels, in_a_row, chunk):
        yield Bound(part.hit, part.start, part.begin, part.lists[0][1], part.labels)


class WaysCounter:
    """Counts the matches of hits without listing them; from ``kernels.arithmetic.MOST`` on, at least so many."""

    def __init__(self) -> None:
        self._marks = 0
        self._asked, self._ways, self._waiting = (np.full(0, -1, np.int64) for _ in range(3))

    def count(self, links: Ints, hit: Ints, lows: Ints) -> Ints:
        """Number of matches per hit; ``hit`` and ``lows`` are their links and their earliest starts.

        Complexity: O(links that hits of the same earliest start lead to).
        """
        size = links.size // LINK
        if size > len(self._asked):
            self._asked, self._ways = np.full(2 * size, -1, np.int64), np.zeros(2 * size, np.int64)
            self._waiting = np.zeros(4 * size + 2, np.int64)
        total = np.zeros(len(hit), np.int64)
        kernel_lineage.count(hit, lows, links, self._marks, self._asked, self._ways, self._waiting, total)
        self._marks += len(hit)
        return total


def chosen(links: Ints, hits: Hits, labels: Ints, *, spells: bool) -> tuple[Hits, Bound]:
    """One match per event: the first of those that ``spelled`` gives.

    ``spells``: whether it matters which arcs took the events, if their labels are the same.

    Returns
    -------
    Hits
        One per event.
    Bound
        One match for each of them.

    Complexity: O(links between each event and the start of its match).
    """
    order = np.lexsort((-hits.start, hits.errors, hits.event))
    first = order[np.flatnonzero(np.diff(hits.event[order], prepend=-1))]
    first = first[np.argsort(first)]  # by row, as hits come
    best = Hits(*(column[first] for column in vars(hits).values()))
    ends = np.append(np.flatnonzero(np.diff(hits.event, prepend=-1)), len(hits))  # hits of one event stand together
    number = np.repeat(np.arange(len(best)), np.diff(ends))
    is_best = (hits.errors == best.errors[number]) & (hits.start == best.start[number])
    room = links.size // LINK + 1
    sizes = (room, room, room, 4 * room if spells else 0)
    walking = kernel_lineage.Walking(*(np.empty(size if len(best) else 0, np.int64) for size in sizes))
    of_events = kernel_lineage.Chosen(ends, best.start, hits.link, is_best.astype(np.int64))
    offset, words, done = np.zeros(len(best) + 1, np.int64), np.empty(8 * len(best), np.int64), 0
    while done < len(best):
        done = kernel_lineage.latest_of_each(links, of_events, labels, int(spells), walking, offset, words, done)
        if done < 0:
            raise impossible("links lead to no match")
        if done < len(best):
            words = extended(words, 2 * words.size)
    lengths = np.diff(offset)
    words = words[np.repeat(offset[:-1] + offset[1:] - 1, lengths) - np.arange(offset[-1])]  # earliest event first
    return best, Bound(np.arange(len(best)), best.start, offset, words >> ARC_BITS, words & ARC_MASK)


def first_of_equal(errors: Ints, offset: Ints, ids: Ints, label: Ints) -> Bools:
    """Of matches that bind the same events to the same variables, the first of those with the fewest errors.

    Match ``m`` binds ``ids[offset[m] : offset[m + 1]]`` to variables by ``label``. Complexity: O(bound events).
    """
    keep: Bools = firsts_of_equal(errors, offset, ids, label) == np.arange(len(errors))
    return keep


def firsts_of_equal(errors: Ints, offset: Ints, ids: Ints, label: Ints) -> Ints:
    """For each match the number of the one that ``first_of_equal`` keeps of those that equal it."""
    first = np.zeros(len(errors), np.int64)
    table = np.full(1 << (2 * len(errors)).bit_length(), -1, np.int64)
    kernel_lineage.distinct(np.argsort(errors, kind="stable"), offset, ids, label, table, first)
    return first
