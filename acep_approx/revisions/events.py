"""Events that may still change: with their places in the order of the stream, so that others can come in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import encode_text, to_arrow
from acep_approx.events.reading.widening import one_table
from acep_approx.events.stream import EventBatch


@dataclass(frozen=True)
class Events:
    """Events as columns.

    ``tick`` is the time of each, ``arrival`` the number of its row in the whole input. ``tie`` puts events of one time
    in order where they have no ids: ``arrival``, or that of the event in whose place an update put this one. Where ids
    say what is taken back, it is which one this is of the events with its id: 0, or more where the id was used before
    for one that the watermark had passed.
    """

    tick: Ints
    arrival: Ints
    tie: Ints
    data: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.tick)

    def take(self, which: Ints) -> Self:
        """Some of the events, in the order given."""
        columns = {f.name: getattr(self, f.name)[which] for f in fields(self) if f.name != "data"}
        return type(self)(**columns, data=self.data.take(to_arrow(which)))

    def where(self, which: Bools) -> Self:
        """The events for which it is true, in their order."""
        return self if which.all() else self.take(np.flatnonzero(which))

    def slice(self, first: int, events: int) -> Self:
        """At most so many events from place ``first`` on; nothing is copied."""
        part = slice(first, first + events)
        columns = {f.name: getattr(self, f.name)[part] for f in fields(self) if f.name != "data"}
        return type(self)(**columns, data=self.data.slice(first, events))

    def batch(self, columns: Sequence[str], first_row: int, rows: Ints | None = None) -> EventBatch:
        """The events as a query takes them, with some columns; ``rows``: their numbers, where these leave gaps."""
        arrays = [encode_text(self.data.column(name)) for name in columns]
        return EventBatch(first_row, self.tick, pa.RecordBatch.from_arrays(arrays, names=list(columns)), rows=rows)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Several parts, at least one, as one; columns in types that hold the values of all."""
        if len(parts) == 1:
            return parts[0]
        columns = {f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls) if f.name != "data"}
        batches = [part.data for part in parts]
        are_alike = all(batch.schema.equals(batches[0].schema) for batch in batches[1:])
        table = pa.Table.from_batches(batches) if are_alike else one_table(batches)
        (data,) = table.combine_chunks().to_batches() or batches[:1]
        return cls(**columns, data=data)


@dataclass(frozen=True)
class PlacedEvents(Events):
    """Events in the order of the stream, with their places in it.

    ``place`` rises from event to event, with gaps for those that come late; ``slot`` is that of the key, -1 where a
    change of the event changes nothing.
    """

    place: Ints
    slot: Ints

    @classmethod
    def of(cls, events: Events, place: Ints, slot: Ints) -> PlacedEvents:
        """Events that are in order, with their places and slots."""
        return cls(events.tick, events.arrival, events.tie, events.data, place, slot)


def order_of(events: Events, id: str | None) -> Ints:  # noqa: A002  (what users call it)
    """The order of events by time, then by the column ``id``, else by ``tie``; see ``in_order``."""
    return in_order(events.tick, events.tie, None if id is None else events.data.column(id))


def in_order(tick: Ints, tie: Ints, ids: pa.Array | None) -> Ints:
    """The order of events: by time, then by id, else by ``tie``.

    Parameters
    ----------
    tick, tie : int64 array, shape (events,)
        As in ``Events``.
    ids : pyarrow.Array, optional
        What names the events: nulls last, numbers and texts rising.

    Returns
    -------
    int64 array, shape (events,)
        Where they stand, first ones first.

    Complexity: O(n) where they are in order; ids are only compared where times are the same.

    Examples
    --------
    >>> in_order(np.array([2, 1, 1]), np.arange(3), pa.array(["a", "c", "b"])).tolist()
    [2, 1, 0]
    """
    rises = tick[1:] > tick[:-1]
    if rises.all() or (ids is None and (rises | ((tick[1:] == tick[:-1]) & (tie[1:] > tie[:-1]))).all()):
        return np.arange(len(tick))
    order = np.argsort(tick, kind="stable")
    same = tick[order[1:]] == tick[order[:-1]]
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    if not len(tied):
        return order
    some = order[tied]
    if ids is None:
        order[tied] = some[np.lexsort((tie[some], tick[some]))]
        return order
    ids = ids.take(to_arrow(some))
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    columns = {"tick": to_arrow(tick[some]), "id": ids, "tie": to_arrow(tie[some])}
    found = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    order[tied] = some[found.to_numpy()]
    return order


def places_between(old: Ints, is_new: Bools, low: int, high: int) -> Ints | None:
    """Places for events that come in between others.

    Parameters
    ----------
    old : int64 array
        In the order of all, without the new ones: the places of the others.
    is_new : bool array, shape (all,)
    low, high : int
        The places before and behind all of them.

    Returns
    -------
    int64 array or None
        Of the new ones, in order; None where there is no room.

    Examples
    --------
    >>> places_between(np.array([100, 200]), np.array([True, False, True, True, False]), 0, 300).tolist()
    [50, 133, 166]
    """
    borders = np.concatenate(([low], old, [high]))
    before = np.cumsum(~is_new)[is_new]  # how many of the others come before each
    first, last = borders[before], borders[before + 1]
    at = np.arange(len(before))
    begins = np.searchsorted(before, before, side="left")
    count = np.searchsorted(before, before, side="right") - begins
    if (last - first <= count).any():
        return None
    found: Ints = first + (last - first) * (at - begins + 1) // (count + 1)
    return found
