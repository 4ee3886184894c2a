"""What the outputs of both engines have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.batches import Grouped
from acep_approx.events.columns import to_arrow
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import to_datetime
from acep_approx.matching.outputs.bind import BoundEvents
from acep_approx.matching.prepare import Preparer
from acep_approx.matching.stream_batch import StreamBatch


class Output(Protocol):
    """An engine with its way of putting results into columns."""

    def run(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Iterator[pa.Table]:
        """Run grouped events and give their results, in order of the rows that complete them."""

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""


NO_EVENTS = Grouped.none()
NO_BATCH = EventBatch(0, np.zeros(0, np.int64), pa.RecordBatch.from_pylist([], schema=pa.schema([])))


class Stamps:
    """Puts ticks into columns as what they are: times or integers; key slots as their values; and events."""

    is_raw = False
    """Whether results have numbers in the places of what they stand for."""

    def __init__(self, preparer: Preparer, schema: pa.Schema, events: BoundEvents, *, is_time: bool) -> None:
        self.preparer = preparer
        self.events = events
        self.is_time = is_time
        self.know(schema)

    def know(self, schema: pa.Schema) -> None:
        """Take over the schema of the events."""
        self._empty = {name: pa.nulls(0, schema.field(name).type) for name in self.preparer.shown_columns}

    def time(self, ticks: Ints) -> pa.Array:
        """Ticks as timestamps (UTC, microseconds) where they are times."""
        return to_datetime(ticks) if self.is_time else to_arrow(ticks)

    def keys(self, slots: Ints) -> dict[str, pa.Array]:
        """One column per equivalence attribute."""
        if not self._empty or not len(slots):
            return self._empty
        return dict(zip(self._empty, self.preparer.keys.values(slots), strict=False))


SLOT = " slot"
"""The column of key slots in raw results: no name of the query language has a blank."""


class RawStamps(Stamps):
    """Leaves ticks and key slots as they are: for who holds results against each other before they are put out."""

    is_raw = True

    def time(self, ticks: Ints) -> pa.Array:
        """Ticks as integers."""
        return to_arrow(ticks)

    def keys(self, slots: Ints) -> dict[str, pa.Array]:
        """One column of slots."""
        return {SLOT: to_arrow(slots)}
