"""What the walks of both engines find, put in order and into columns: in small parts, which stay in cache."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.marks import called, inline
from acep_approx.kernels.columns import LISTS, ROOM, ROOM_OF_LIST, WRITTEN, Columns, write_events
from acep_approx.kernels.order import Found, Limits, Order, move_up, sort_found

DONE, OUT_FULL, DEEPER, COLUMNS_FULL = range(4)
"""Why a walk stops: all is listed; ``Found`` has no room for the matches of one event; what it knows of its way must
grow; ``Columns`` have no room for all that ``Found`` has room for."""


class Listing(NamedTuple):
    """How matches are put in order and into columns; see ``sort_matches`` and ``write_events``.

    ``keeps_order``: the walk comes upon matches of one start in order, but for ties. ``labels`` and ``column`` are per
    number that the walk writes beside an event.
    """

    group: Ints
    most: int
    keeps_order: int
    order: Order
    labels: Ints
    column: Ints


@inline
def _put_out(found: Found, order: Ints, count: int, at: Listing, out: Columns) -> None:
    """Write the first ``count`` matches of an order into columns."""
    for k in range(count):
        match = order[k]
        first, end, m = found.begin[match], found.begin[match + 1], out.header[WRITTEN]
        out.hit[m], out.start[m] = found.hit[match], found.start[match]
        if len(out.first) > 0:
            out.first[m] = found.id[first]
        if len(out.begin) > 0:
            written = out.begin[m]
            for i in range(end - first):
                out.labels[written + i] = found.bound_by[first + i]
            out.begin[m + 1] = written + end - first
        write_events(first, end, found.id, found.bound_by, at.column, out)


@inline
def has_room_for(found: Found, out: Columns) -> bool:
    """Whether all that there is room for in ``found`` can be put out."""
    m, room, most = out.header[WRITTEN], out.header[ROOM], 0
    for c in range(out.header[LISTS]):
        most = max(most, out.offsets[c * (room + 1) + m])
    if len(out.begin) > 0 and out.begin[m] + len(found.id) > len(out.labels):
        return False
    return bool(m + len(found.hit) <= room and most + len(found.id) <= out.header[ROOM_OF_LIST])


@called
def put_in_order(found: Found, matches: int, at: Listing, limits: Limits, out: Columns) -> int:
    """Write the matches of the groups that have ended into columns, and move the others to the front.

    Returns
    -------
    int
        The number of matches that were written.
    """
    count = sort_found(found, matches, at.group, at.labels, limits, at.order)
    _put_out(found, at.order.order, count, at, out)
    move_up(found, count, matches)
    return count
