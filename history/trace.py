"""What an exact run over the past tells: which runs were born, where they were later, and what they led to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from history.arrays import Bools, Floats, Ints, no_ints

Masks = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Trace:
    """Births, visits and match points of an exact run over the past, as columns.

    A *birth* is a run that was made. A *visit* is a moment of its life: its birth, and each time it enters the next
    part of what remains of its window. The first visit of a birth is the one of lowest number.

    Parameters
    ----------
    place : int64 array, shape (births,)
        Number of the run's place (state, err) in the scheme.
    tick : int64 array, shape (births,)
        When it was made: the tick of the event that it bound last.
    start : int64 array, shape (births,)
        Tick of its first event; it can go on until ``start + window``.
    slot : int64 array, shape (births,)
        Number of its partition: only runs and match points of one slot have to do with one another.
    columns : sequence of str
        Names of what the run remembers (registers), one for each array of ``values``. ``"key"`` is taken.
    kinds : sequence of str
        ``"int"``, ``"float"`` or ``"text"``, one for each name; ``"context"``: a number that is not of the run, but of
        the event that made it, and no feature by itself. The first of these is the tick.
    values : sequence of float64 arrays, each of shape (births,)
        Numbers as they are, NaN where there is none; of texts the position in ``texts``, below 0 where there is none.
    key : int64 array, shape (births,)
        Position of the partition key in ``texts``; below 0 where there is none.
    texts : sequence of str
        All texts that ``values`` and ``key`` point to.
    birth : int64 array, shape (visits,)
        Which run this is.
    remaining : int64 array, shape (visits,)
        Ticks until its window ends: ``start + window - now``.
    since : int64 array, shape (visits,)
        Ticks since it bound its last event: ``now - tick``.
    parent : int64 array, shape (visits,)
        The visit before in its lineage: of the same run, or, at a birth, the visit in which the run was that it was
        made from. -1: a first event.
    first_point : int64 array, shape (visits,)
        Number of the first match point at or after the visit.
    mask : uint64 array, shape (visits,)
        Bit i: the run, or one made from it, reaches match point ``first_point + i``.
    cost : float64 array, shape (visits,)
        Run-steps on the way on: its own tests until its first child and then the child's; else until its window ends.
        Whole numbers: only these add up to the same in any order.
    point_row, point_tick, point_slot : int64 arrays, shape (points,)
        Match points, sorted by slot, then by row: row of the event in the stream, its tick, its partition.
    end_visit, end_point : int64 arrays, shape (ends,), default none
        Direct completions: the visit in which a run was when its next event completed it, and the match point.
        Without them the history knows no edges from vertices to bundles, and no strongest paths.
    slots : sequence of str, default none
        Names of the slots, the same in every trace that is to go into one history. Default: their numbers.
    """

    place: Ints
    tick: Ints
    start: Ints
    slot: Ints
    columns: Sequence[str]
    kinds: Sequence[str]
    values: Sequence[Floats]
    key: Ints
    texts: Sequence[str]
    birth: Ints
    remaining: Ints
    since: Ints
    parent: Ints
    first_point: Ints
    mask: Masks
    cost: Floats
    point_row: Ints
    point_tick: Ints
    point_slot: Ints
    end_visit: Ints = field(default_factory=no_ints)
    end_point: Ints = field(default_factory=no_ints)
    slots: Sequence[str] = ()

    def column(self, name: str) -> Floats | Ints:
        """What the runs remember under a name; ``"key"`` is the partition key.

        Raises
        ------
        KeyError
            There is no such column.
        """
        if name == KEY:
            return self.key
        if name not in self.columns:
            raise KeyError(name)
        return self.values[list(self.columns).index(name)]

    def first_visits(self) -> Ints:
        """The visit at which each run was born, by number of the birth; -1: it has none. Complexity: O(visits)."""
        first = np.full(len(self.place), -1, np.int64)
        first[self.birth[::-1]] = np.arange(len(self.birth) - 1, -1, -1)
        return first

    def of_births(self, chosen: Bools) -> Trace:
        """What became of some of the births; match points stay as they are.

        Parameters
        ----------
        chosen : bool array, shape (births,)
            With a birth also those that were made from it, else what these led to would be told of nothing.

        Complexity: O(births + visits).
        """
        births, visits = np.flatnonzero(chosen), np.flatnonzero(chosen[self.birth])
        number, visit = np.cumsum(chosen) - 1, np.full(len(self.birth) + 1, -1, np.int64)
        visit[visits] = np.arange(len(visits))
        ends = visit[self.end_visit]
        of_births = ("place", "tick", "start", "slot", "key")
        of_visits = ("remaining", "since", "first_point", "mask", "cost")
        return replace(
            self,
            **{name: getattr(self, name)[births] for name in of_births},
            **{name: getattr(self, name)[visits] for name in of_visits},
            values=[column[births] for column in self.values],
            birth=number[self.birth[visits]],
            parent=visit[self.parent[visits]],
            end_visit=ends[ends >= 0],
            end_point=self.end_point[ends >= 0],
        )

    def compact(self) -> Trace:
        """The same without the texts, slots and match points that no birth can have to do with.

        Complexity: O(births + visits + match points), and the logarithm of the births.
        """
        slots, slot = np.unique(self.slot, return_inverse=True) if self.slots else (np.unique(self.slot), self.slot)
        kept = np.isin(self.point_slot, slots)
        number = np.concatenate([[0], np.cumsum(kept)])
        is_text = [kind == "text" for kind in self.kinds]
        codes = np.concatenate([self.key, *(c for c, one in zip(self.values, is_text, strict=True) if one)])
        texts = np.unique(codes[codes >= 0].astype(np.int64))

        def code(column: Floats) -> Floats:
            return np.where(column >= 0, np.searchsorted(texts, np.nan_to_num(column)), column).astype(np.float64)

        return replace(
            self,
            slot=slot.astype(np.int64),
            key=code(self.key.astype(np.float64)).astype(np.int64),
            values=[code(column) if one else column for column, one in zip(self.values, is_text, strict=True)],
            texts=[self.texts[at] for at in texts.tolist()],
            slots=[self.slots[at] for at in slots.tolist()] if self.slots else (),
            first_point=number[self.first_point],
            point_row=self.point_row[kept],
            point_tick=self.point_tick[kept],
            point_slot=np.searchsorted(slots, self.point_slot[kept]) if self.slots else self.point_slot[kept],
            end_point=number[self.end_point],
        )

    def slot_names(self, slots: Ints) -> npt.NDArray[np.str_]:
        """Names of some slots."""
        if not self.slots:
            return slots.astype(np.str_)
        return np.asarray(self.slots, dtype=np.str_)[slots]


KEY = "key"
"""Name of the partition key among the columns."""
