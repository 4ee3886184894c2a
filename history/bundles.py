"""Match bundles: maximal chains of match points, and the ring that keeps the latest of them.

Source: Li and Ge, PVLDB 2016, Definition 3: match points at most the window apart belong to one bundle. Deviations:
with a partition key, bundles are those of each key's own stream; the gap can be chosen, because in dense streams all
match points run together to one bundle and then say nothing (9,458 match points were one bundle in a trial of ours);
with a gap of -1 every match point is a bundle of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from history.arrays import Columns, Ints, no_ints
from history.trace import Trace

Texts = npt.NDArray[np.str_]


@dataclass
class Bundles(Columns):
    """Bundles in order of their first match point (its tick, then the slot's name, then its row).

    That triple is a bundle's identity: it is the same in every process.

    Parameters
    ----------
    first, last : int64 array, shape (bundles,)
        Ticks of its first and last match point.
    slot : text array, shape (bundles,)
        Name of its partition.
    row : int64 array, shape (bundles,)
        Row of its first match point.
    points : int64 array, shape (bundles,)
        Its match points.
    """

    first: Ints = field(default_factory=no_ints)
    last: Ints = field(default_factory=no_ints)
    slot: Texts = field(default_factory=lambda: np.empty(0, np.str_))
    row: Ints = field(default_factory=no_ints)
    points: Ints = field(default_factory=no_ints)


def chain(bundles: Bundles, gap: int, most: int) -> tuple[Bundles, Ints]:
    """Join bundles that lie at most ``gap`` apart, and keep the latest.

    Maximal chains of match points are maximal chains of chains, so this also joins what several processes found.

    Parameters
    ----------
    bundles : Bundles
        In any order; single match points are bundles too. One that is there twice is joined to one.
    gap : int
        In ticks; below 0: bundles stay apart.
    most : int
        How many to keep.

    Returns
    -------
    kept : Bundles
        The ``most`` of latest first match point, in order.
    places : int64 array, shape (len(bundles),)
        Position in ``kept`` of the one that each went into, -1 if that is not kept.

    Complexity: O(n log n).
    """
    if not len(bundles):
        return bundles, no_ints()
    _, code = np.unique(bundles.slot, return_inverse=True)
    order = np.lexsort((bundles.row, bundles.first, code))
    ahead = bundles[order]
    starts = _starts(ahead, code[order], gap)
    heads = np.flatnonzero(starts)
    joined = Bundles(
        ahead.first[heads],
        np.maximum.reduceat(ahead.last, heads),
        ahead.slot[heads],
        ahead.row[heads],
        np.add.reduceat(ahead.points, heads),
    )
    in_time = np.lexsort((joined.row, code[order][heads], joined.first))
    dropped = max(0, len(joined) - most)
    position = np.empty(len(joined), np.int64)
    position[in_time] = np.arange(-dropped, len(joined) - dropped)
    places = np.empty(len(bundles), np.int64)
    places[order] = np.maximum(position, -1)[np.cumsum(starts) - 1]
    return joined[in_time[dropped:]], places


def of_trace(trace: Trace, gap: int, most: int) -> tuple[Bundles, Ints]:
    """The bundles of a trace, and for every match point the position of its bundle (-1: not kept).

    Complexity: O(p log p) for p match points.

    Parameters
    ----------
    trace : Trace
        Its match points.
    gap, most : int
        As for ``chain``.
    """
    single = Bundles(
        trace.point_tick,
        trace.point_tick,
        trace.slot_names(trace.point_slot),
        trace.point_row,
        np.ones(len(trace.point_row), np.int64),
    )
    return chain(single, gap, most)


def _starts(bundles: Bundles, code: Ints, gap: int) -> npt.NDArray[np.bool_]:
    """Which bundle, in order of slot and time, begins a new chain."""
    ticks, rank = np.unique(bundles.last, return_inverse=True)
    # the latest end so far of the same slot: a chain may lie within a longer one that began before it
    reach = ticks[np.maximum.accumulate(code * len(ticks) + rank) - code * len(ticks)]
    starts = np.ones(len(bundles), np.bool_)
    same = (bundles.first[1:] == bundles.first[:-1]) & (bundles.row[1:] == bundles.row[:-1])
    near = bundles.first[1:] - reach[:-1] <= gap if gap >= 0 else np.zeros(len(bundles) - 1, np.bool_)
    starts[1:] = (code[1:] != code[:-1]) | ~(same | near)
    return starts
