"""Bound events as columns of variables: one event or none in each match, or lists of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline

Offsets = npt.NDArray[np.int32]


class Columns(NamedTuple):
    """Matches as columns, with room for more.

    ``header`` says how many there are, and how much room. ``hit``, ``start`` and ``first`` (the id of the first event)
    are per match; ``single`` has the columns of single events one after the other, ``offsets`` and ``values`` those of
    lists. ``labels`` has what the events of a match are bound to, earliest first, from ``begin`` on. What is not asked
    for has no room.
    """

    header: Ints
    hit: Ints
    start: Ints
    first: Ints
    single: Ints
    offsets: Offsets
    values: Ints
    begin: Ints
    labels: Ints


# header of columns: matches; room for matches, and for the events of each column of lists; how many columns there are
WRITTEN, ROOM, ROOM_OF_LIST, SINGLES, LISTS, COLUMNS_HEADER = 0, 1, 2, 3, 4, 5


@inline
def _write_to_lists(first: int, end: int, ids: Ints, label: Ints, column: Ints, out: Columns) -> None:
    """``write_events`` where there is more than one column of lists."""
    m, room, room_of_list = out.header[WRITTEN], out.header[ROOM], out.header[ROOM_OF_LIST]
    for c in range(out.header[LISTS]):
        at = c * (room + 1) + m
        out.offsets[at + 1] = out.offsets[at]
    for i in range(first, end):
        c = column[label[i]]
        if c >= 0:
            out.single[c * room + m] = ids[i]
        else:
            at = (-1 - c) * (room + 1) + m + 1
            out.values[(-1 - c) * room_of_list + out.offsets[at]] = ids[i]
            out.offsets[at] += 1


@inline
def write_events(first: int, end: int, ids: Ints, label: Ints, column: Ints, out: Columns) -> None:
    """Write the events ``first .. end`` of the next match into their columns.

    ``label`` says what an event is bound to, ``column`` per label its column: of single events from 0 on, of lists from
    -1 on downwards.
    """
    m, room, lists = out.header[WRITTEN], out.header[ROOM], out.header[LISTS]
    if lists > 0 or end - first < out.header[SINGLES]:  # else each variable has its event
        for c in range(out.header[SINGLES]):
            out.single[c * room + m] = -1
    if lists > 1:
        _write_to_lists(first, end, ids, label, column, out)
    else:
        written = out.offsets[m] if lists == 1 else 0
        for i in range(first, end):
            c = column[label[i]]
            if c >= 0:
                out.single[c * room + m] = ids[i]
            else:
                out.values[written] = ids[i]
                written += 1
        if lists == 1:
            out.offsets[m + 1] = written
    out.header[WRITTEN] = m + 1


@kernel
def write_columns(begin: Ints, ids: Ints, label: Ints, column: Ints, out: Columns) -> None:
    """Write matches, whose events stand one after the other, into columns.

    Parameters
    ----------
    begin : int64, shape (m + 1,)
        Match ``m`` binds the events ``begin[m] : begin[m + 1]``.
    ids, label : int64
        Of each event.
    column : int64
        See ``write_events``.
    out : Columns
        With room for all of them.

    Complexity: O(bound events).
    """
    for m in range(len(begin) - 1):
        write_events(begin[m], begin[m + 1], ids, label, column, out)
