"""Events on their way into a set: those of the open epoch wait, and with a delay those that others may still precede.

An epoch is all events of one time. It is complete when an event of a later time has come.

Source: Demers et al., CIDR 2007, section 4.2 (a priority queue with a bound) and 4.3 (epochs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import encode_text, to_arrow
from acep_approx.events.reading.widening import one_table
from acep_approx.events.stream import EventBatch

FEW = 1 << 12
"""Events up to which it is cheaper to copy them behind those that waited than to run two batches."""
NONE = -(2**62)
"""A time before all others."""


class Epochs:
    """Holds events back until their epochs are complete.

    Parameters
    ----------
    delay : int, optional
        Events may come out of order by so many ticks: those of a time wait until one has come that is later by more
        than this, and are put in order. Default: they come in order, and one that does not is an error.

    Attributes
    ----------
    arrived : int
        Events so far.
    passed : int
        Events given on so far.
    newest : int or None
        The latest time so far.
    floor : int
        Before this time no event comes any more.
    late : int
        Events that came all the same, and were left out.
    is_joining : bool
        Whether all that is pushed is copied behind what waited: two batches cost many queries more than that.
    """

    def __init__(self, delay: int | None = None) -> None:
        self.delay = delay
        self.arrived = self.passed = self.late = 0
        self.is_joining = False
        self.newest: int | None = None
        self.floor = NONE
        self.held: list[EventBatch] = []
        self.late_events: list[pa.Table] = []

    def push(self, batch: EventBatch) -> Iterator[EventBatch]:
        """Take in events; gives those of epochs that are complete now, in order.

        Raises
        ------
        DataError
            ``ACEP-D007``: time runs backwards.
        """
        self.arrived += len(batch)
        if self.delay is None:
            yield from self._in_order(batch)
        else:
            yield from self._put_in_order(batch, self.delay)

    def close(self, before: int | None = None) -> Iterator[EventBatch]:
        """No event before this time comes any more, none at all by default: gives those that waited for it."""
        if self.held:
            held = self._sorted(joined(self.held))
            cut = len(held) if before is None else int(np.searchsorted(held.ticks, before))
            self.held = [held.slice(cut, len(held) - cut)] if cut < len(held) else []
            if cut:
                yield self._passed(held.slice(0, cut))
        if before is not None:
            self.floor = max(self.floor, before)
        elif self.newest is not None:
            self.floor = max(self.floor, self.newest + 1)

    def take_late(self) -> pa.Table:
        """The events that came too late since the last call: ``row``, then their columns."""
        late, self.late_events = self.late_events, []
        return pa.concat_tables(late, promote_options="permissive") if late else pa.table({})

    def _in_order(self, batch: EventBatch) -> Iterator[EventBatch]:
        first, last = int(batch.ticks[0]), int(batch.ticks[-1])
        since = self.floor if self.newest is None else max(self.newest, self.floor)
        if first < since:
            raise DataError(
                f"row {batch.first_row}: time runs backwards from batch to batch, {first} after {since}",
                code="ACEP-D007",
                row=batch.first_row,
                hint="push events in order of time, or let the set put them in order: --reorder '5 s' (reorder= in "
                "Python)",
            )
        if self.held and last == self.newest:
            self.held.append(batch)
            return
        open_from = int(np.searchsorted(batch.ticks, last))
        waited, self.held = self.held, [_copied(batch, open_from)]
        of_theirs = int(np.searchsorted(batch.ticks, since, side="right")) if waited else 0
        self.newest = last
        if waited and (self.is_joining or open_from - of_theirs <= FEW):
            of_theirs = open_from
        if waited:
            yield self._passed(joined([*waited, *([batch.slice(0, of_theirs)] if of_theirs else [])]))
        if of_theirs < open_from:
            yield self._passed(batch.slice(of_theirs, open_from - of_theirs))

    def _put_in_order(self, batch: EventBatch, delay: int) -> Iterator[EventBatch]:
        ids = batch.first_row + np.arange(len(batch))
        batch = replace(batch, ids=ids)
        before = NONE if self.newest is None else self.newest
        newest = np.maximum.accumulate(np.maximum(batch.ticks, before))
        passed = np.insert(newest[:-1], 0, before) - delay
        late = batch.ticks < np.maximum(passed, self.floor)
        if late.any():
            self._leave_out(batch, np.flatnonzero(late))
            batch = _taken(batch, np.flatnonzero(~late))
        self.newest = int(newest[-1])
        if len(batch):
            self.held.append(batch)
        yield from self.close(max(self.newest - delay, self.floor))

    def _leave_out(self, batch: EventBatch, places: np.ndarray) -> None:
        self.late += len(places)
        late = _taken(batch, places)
        assert late.ids is not None, "they have the numbers of their arrival"
        columns = dict(zip(late.data.schema.names, late.data.columns, strict=True))
        self.late_events.append(pa.table({"row": late.ids} | columns))

    def _sorted(self, events: EventBatch) -> EventBatch:
        if (events.ticks[1:] >= events.ticks[:-1]).all():
            return events
        return _taken(events, np.argsort(events.ticks, kind="stable"))

    def _passed(self, events: EventBatch) -> EventBatch:
        first = self.passed
        self.passed += len(events)
        return replace(events, first_row=first)


def joined(parts: Sequence[EventBatch]) -> EventBatch:
    """Several parts, at least one, as one; a column that nobody asked for in one of them is NULL there."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    names = list(dict.fromkeys(name for part in parts for name in part.data.schema.names))
    table = one_table([_with_all(part.data, names) for part in parts]).combine_chunks()
    arrays = [encode_text(column.combine_chunks()) for column in table.columns]
    ids = None if first.ids is None else np.concatenate([part.ids for part in parts if part.ids is not None])
    ticks = np.concatenate([part.ticks for part in parts])
    return EventBatch(first.first_row, ticks, pa.RecordBatch.from_arrays(arrays, names=names), ids)


def _with_all(data: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    if data.schema.names == names:
        return data
    have = set(data.schema.names)
    arrays = [data.column(name) if name in have else pa.nulls(data.num_rows) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _taken(events: EventBatch, places: np.ndarray) -> EventBatch:
    ids = None if events.ids is None else events.ids[places]
    return EventBatch(events.first_row, events.ticks[places], events.data.take(to_arrow(places)), ids)


def _copied(batch: EventBatch, first: int) -> EventBatch:
    """The events from a place on, without the memory of those before it."""
    places = np.arange(first, len(batch))
    return replace(_taken(batch, places), first_row=batch.first_row + first) if first else batch
