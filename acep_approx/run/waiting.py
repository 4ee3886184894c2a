"""Events that wait, because the time before which others may come has not passed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import encode_text
from acep_approx.events.reading.widening import with_marks
from acep_approx.run.events import Events, sorted_events

APART = 1 << 14
"""Events from which on it is cheaper to run them by themselves than to copy them behind those that waited."""


class Waiting:
    """Events that wait for their time, in order.

    Parameters
    ----------
    ties : sequence of str, optional
        The columns that order events of one time. Default: they go on in the order of their ``tie``.
    """

    def __init__(self, ties: Sequence[str] = ()) -> None:
        self._ties = ties
        self.parts: list[Events] = []

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def first(self) -> int | None:
        """The time of the first one; None where none waits."""
        return min((int(part.tick.min()) for part in self.parts), default=None)

    def add(self, events: Events) -> None:
        """Take in events, in any order."""
        if len(events):
            self.parts.append(events)

    def at(self, tick: int) -> list[Events]:
        """The events of a time."""
        return [part.where(part.tick == tick) for part in self.parts]

    def remove(self, arrivals: Ints) -> Ints:
        """Take events out, named by their rows; returns the rows of those that were here."""
        found = [np.zeros(0, np.int64)]
        for number, part in enumerate(self.parts):
            is_gone = np.isin(part.arrival, arrivals)
            if is_gone.any():
                found.append(part.arrival[is_gone])
                self.parts[number] = part.where(~is_gone)
        self.parts = [part for part in self.parts if len(part)]
        return np.concatenate(found)

    def due(self, horizon: int | None = None) -> list[Events]:
        """Take out the events before ``horizon``, default all: in order, within each part and from part to part."""
        due, left = [], []
        for part in self._ordered():
            number = len(part) if horizon is None else int(np.searchsorted(part.tick, horizon))
            if number:
                due.append(part if number == len(part) else part.slice(0, number))
            if number < len(part):
                left.append(_alone(part.slice(number, len(part) - number)))
        self.parts = left
        return due

    def _ordered(self) -> list[Events]:
        if len(self.parts) < 2:
            return [self._sorted(part) for part in self.parts]
        *before, new = self.parts
        old, new = self._sorted(Events.joined(before)), self._sorted(new)
        both = [old, new]
        if old.tick[-1] < new.tick[0]:
            return both if len(new) >= APART else [Events.joined(both)]
        return [self._sorted(Events.joined(both))]

    def _sorted(self, events: Events) -> Events:
        return sorted_events(events, self._ties)


def _alone(events: Events) -> Events:
    """The same events without the texts of those that have gone on, which dictionaries would keep for ever."""
    columns = events.data.columns
    arrays = [encode_text(one) if pa.types.is_dictionary(one.type) else one for one in columns]
    if all(map(is_, arrays, columns)):  # the dictionaries are short
        return events
    data = pa.RecordBatch.from_arrays(arrays, names=events.data.schema.names)
    return replace(events, data=with_marks(data, events.data.schema))
