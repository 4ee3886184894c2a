"""Matches as columns: which variable stands in which, and room for a number of matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Ints
from acep_approx.events.columns import empty
from acep_approx.kernels.columns import COLUMNS_HEADER, LISTS, ROOM, ROOM_OF_LIST, SINGLES, Columns, write_columns


@dataclass(frozen=True)
class Placement:
    """In which columns the variables of a query stand.

    Parameters
    ----------
    column : int64
        Per variable its column: of single events from 0 on, of lists from -1 on downwards.
    keeps_labels : bool
        Whether it is asked, of each match, what its events are bound to.
    keeps_first : bool
        Whether it is asked for the first event of each match.
    """

    column: Ints
    keeps_labels: bool = False
    keeps_first: bool = False

    @classmethod
    def of(cls, is_list: Sequence[bool]) -> Placement:
        """One column for each variable, in their order; ``is_list`` per variable."""
        lists = np.array(is_list, np.int64)
        return cls(np.where(lists, -np.cumsum(lists), np.cumsum(1 - lists) - 1))

    @property
    def singles(self) -> int:
        """Columns of single events."""
        return int(self.column.max(initial=-1)) + 1

    @property
    def lists(self) -> int:
        """Columns of lists."""
        return -int(self.column.min(initial=0))

    def room(self, matches: int, events: int, *, bare: bool = False) -> Columns:
        """Room for so many matches, with so many events; ``bare``: only columns of variables."""
        header = np.zeros(COLUMNS_HEADER, np.int64)
        header[[ROOM, ROOM_OF_LIST, SINGLES, LISTS]] = matches, events, self.singles, self.lists
        return Columns(
            header=header,
            hit=np.empty(0 if bare else matches, np.int64),
            start=empty(0 if bare else matches),
            first=np.empty(matches * (self.keeps_first and not bare), np.int64),
            single=empty(self.singles * matches),
            offsets=np.zeros(self.lists * (matches + 1), np.int32),
            values=empty(self.lists * events),
            begin=np.zeros((matches + 1) * (self.keeps_labels and not bare), np.int64),
            labels=np.empty(events * (self.keeps_labels and not bare), np.int64),
        )


@dataclass(frozen=True)
class Listed:
    """Matches as columns.

    Attributes
    ----------
    hit, start, first : int64
        Per match the index of its hit, the tick and the id of its first event; where they were asked for.
    single : list of int64
        Columns of single events: the id in each match, -1 where none is bound.
    lists : list of (int32, int64)
        Columns of lists: offsets, with one more at the end, and ids.
    begin, labels : int64
        What the events of match ``m`` are bound to, earliest first: ``labels[begin[m] : begin[m + 1]]``.
    is_full : bool
        Whether it is known that the columns of single events have one in each match.
    """

    hit: Ints
    start: Ints
    first: Ints
    single: list[Ints]
    lists: list[tuple[npt.NDArray[np.int32], Ints]]
    begin: Ints
    labels: Ints
    is_full: bool = False

    def __len__(self) -> int:
        return len(self.hit)

    @classmethod
    def written(cls, columns: Columns, *, is_full: bool = False) -> Listed:
        """What a kernel has written."""
        matches, room, room_of_list, singles, lists = columns.header.tolist()
        offsets = columns.offsets.reshape(lists, room + 1)[:, : matches + 1]
        values = columns.values.reshape(lists, room_of_list)
        single = columns.single.reshape(singles, room)
        begin = columns.begin[: matches + 1]
        return cls(
            hit=columns.hit[:matches],
            start=_trimmed(columns.start, matches),
            first=columns.first[:matches],
            single=[_trimmed(column, matches) for column in single],
            lists=[(own, _trimmed(ids, own[-1])) for own, ids in zip(offsets, values, strict=True)],
            begin=begin,
            labels=columns.labels[: begin[-1]] if begin.size else columns.labels,
            is_full=is_full,
        )

    @classmethod
    def of(cls, placement: Placement, hit: Ints, start: Ints, begin: Ints, ids: Ints, label: Ints) -> Listed:
        """Matches whose events stand one after the other: match ``m`` binds ``begin[m] : begin[m + 1]``."""
        columns = placement.room(len(hit), len(ids), bare=True)
        write_columns(begin, ids, label, placement.column, columns)
        columns = columns._replace(hit=hit, start=start, first=ids[begin[:-1]], begin=begin, labels=label)
        return cls.written(columns)

    @classmethod
    def none(cls, placement: Placement) -> Listed:
        """No matches."""
        none = np.zeros(0, np.int64)
        return cls.of(placement, none, none, np.zeros(1, np.int64), none, none)


def _trimmed(column: Ints, used: int) -> Ints:
    """The part of a column that is used; apart from the rest where that would be held for nothing."""
    if 4 * used >= 3 * column.size:
        return column[:used]
    part = empty(used)
    part[:] = column[:used]
    return part
