"""Events that wait for their place in the stream: columns, and the order in which they go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import ClassVar, Self

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
    in order where no columns do: ``arrival``, or that of the event in whose place an update put this one. Where ids
    say what is taken back, it is which one this is of the events with its id: 0, or more where the id was used before
    for one that the watermark had passed.
    """

    tick: Ints
    arrival: Ints
    tie: Ints
    data: pa.RecordBatch
    arrays: ClassVar[tuple[str, ...]] = ("tick", "arrival")
    """The columns of numbers beside ``tie``, which often is ``arrival``."""

    def __len__(self) -> int:
        return len(self.tick)

    def take(self, which: Ints) -> Self:
        """Some of the events, in the order given."""
        return self._with(lambda column: column[which], self.data.take(to_arrow(which)))

    def where(self, which: Bools) -> Self:
        """The events for which it is true, in their order."""
        return self if which.all() else self.take(np.flatnonzero(which))

    def slice(self, first: int, events: int) -> Self:
        """At most so many events from place ``first`` on; nothing is copied."""
        part = slice(first, first + events)
        return self._with(lambda column: column[part], self.data.slice(first, events))

    def _with(self, some: Callable[[Ints], Ints], data: pa.RecordBatch) -> Self:
        """Some of the events; ``tie`` stays the same array as ``arrival`` where it is."""
        columns = {name: some(getattr(self, name)) for name in self.arrays}
        tie = columns["arrival"] if self.tie is self.arrival else some(self.tie)
        return type(self)(**columns, tie=tie, data=data)

    def batch(self, columns: Sequence[str], first_row: int, rows: Ints | None = None) -> EventBatch:
        """The events as a query takes them, with some columns; ``rows``: their numbers, where these leave gaps."""
        data = with_all(self.data, [*columns])
        there = data.columns
        arrays = [encode_text(column) for column in there]
        if not all(map(is_, arrays, there)):
            data = pa.RecordBatch.from_arrays(arrays, names=data.schema.names)
        return EventBatch(first_row, self.tick, data, rows=rows)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Several parts, at least one, as one.

        Columns have types that hold the values of all; one that a part has not is NULL there.
        """
        if len(parts) == 1:
            return parts[0]
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.arrays}
        is_same = all(part.tie is part.arrival for part in parts)
        tie = columns["arrival"] if is_same else np.concatenate([part.tie for part in parts])
        batches = [part.data for part in parts]
        if all(batch.schema.equals(batches[0].schema) for batch in batches[1:]):
            data = pa.concat_batches(batches)
        else:
            there = dict.fromkeys(name for batch in batches for name in batch.schema.names)
            table = one_table([with_all(batch, [*there]) for batch in batches])
            (data,) = table.combine_chunks().to_batches() or batches[:1]
        return cls(**columns, tie=tie, data=data)


def with_all(data: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """A batch with all of some columns: NULL where it has them not."""
    if data.schema.names == names:
        return data
    have = set(data.schema.names)
    if have.issuperset(names):
        return data.select(names)
    arrays = [data.column(name) if name in have else pa.nulls(data.num_rows) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def sorted_events(events: Events, ties: Sequence[str]) -> Events:
    """Events in order of time, then of the columns ``ties``, then of ``tie``; see ``in_order``."""
    if (events.tick[1:] > events.tick[:-1]).all():
        return events
    order = order_of(events, ties)
    return events if (order[1:] > order[:-1]).all() else events.take(order)


def order_of(events: Events, ties: Sequence[str]) -> Ints:
    """The order of events by time, then by the columns ``ties``, then by ``tie``; see ``in_order``."""
    return in_order(events.tick, events.tie, [events.data.column(name) for name in ties])


def in_order(tick: Ints, tie: Ints, columns: Sequence[pa.Array] = ()) -> Ints:
    """The order of events: by time, then by some columns, then by ``tie``.

    Parameters
    ----------
    tick, tie : int64 array, shape (events,)
        As in ``Events``.
    columns : sequence of pyarrow.Array
        What orders the events of one time: nulls last, numbers and texts (by their bytes) rising.

    Returns
    -------
    int64 array, shape (events,)
        Where they stand, first ones first.

    Complexity: O(n) where they are in order; columns are only compared where times are the same.

    Examples
    --------
    >>> in_order(np.array([2, 1, 1]), np.arange(3), [pa.array(["a", "c", "b"])]).tolist()
    [2, 1, 0]
    """
    rises = tick[1:] > tick[:-1]
    if rises.all() or (not columns and (rises | ((tick[1:] == tick[:-1]) & (tie[1:] > tie[:-1]))).all()):
        return np.arange(len(tick))
    order = np.argsort(tick, kind="stable")
    ordered = tick[order]
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order
    is_tied = np.zeros(len(tick), np.bool_)
    is_tied[1:] |= same
    is_tied[:-1] |= same
    tied = np.flatnonzero(is_tied)
    some = order[tied]
    if not columns:
        order[tied] = some[np.lexsort((tie[some], tick[some]))]
        return order
    keys = {"tick": to_arrow(tick[some])}
    for number, column in enumerate(columns):
        part = column.take(to_arrow(some))
        keys[str(number)] = part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
    keys["tie"] = to_arrow(tie[some])  # Arrow's sort is not stable
    found = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    order[tied] = some[found.to_numpy()]
    return order
