"""What a matcher puts out: listed matches, match points, or counts; each turns grouped events into Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.batches import Grouped, Listed
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.cells.later import HeldEvents
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.cells.count import MOST
from acep_approx.matching.outputs.output import NO_BATCH, NO_EVENTS, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BindingColumns

CHUNK = 1 << 20
"""Bound events per table of listed matches."""


class CellPoints:
    """Match points: each event that completes a match, with the least err and the latest start."""

    def __init__(self, engine: Cells, stamps: Stamps) -> None:
        self.engine = engine
        self.stamps = stamps

    def run(self, events: Grouped, batch: EventBatch, floors: Ints) -> Iterator[pa.Table]:  # noqa: ARG002
        """One table: key, errors, start, end, row.

        In a count window instead of start: span, in events, and position, the number of the event in its partition.
        """
        points = self.engine.detect(events.slot, events.tick, events.cls)
        points = points[np.argsort(events.row[points[:, 0]], kind="stable")]
        at, errors, start = points[:, 0], points[:, 1], points[:, 2]
        ids = events.id[at]
        if self.stamps.preparer.is_count:
            extent = {"span": pa.array(events.tick[at] - start), "position": pa.array(events.tick[at])}
        else:
            extent = {"start": self.stamps.time(start)}
        columns = {
            **self.stamps.keys(events.slot[at]),
            "errors": pa.array(errors),
            **extent,
            "end": self.stamps.time(batch.ticks[events.row[at] - batch.first_row]),
        }
        named = self.stamps.events
        yield pa.table({**columns, **named.column(ids, named.of_batch(batch), list(columns))})

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return next(self.run(NO_EVENTS, NO_BATCH, np.zeros(1, np.int64)))


class CellCounts:
    """How many matches each match point completes, by number of errors; nothing is listed."""

    def __init__(self, engine: ArcLogs, stamps: Stamps) -> None:
        self.engine = engine
        self.stamps = stamps

    def run(self, events: Grouped, batch: EventBatch, floors: Ints) -> Iterator[pa.Table]:
        """One table: key, errors, time, row, matches."""
        hits = self.engine.update(events, floors)
        errors, row = self.engine.err(hits), events.row[hits[0::2]]
        order = np.lexsort((errors, row))
        first = np.flatnonzero(np.diff(row[order], prepend=-1) | np.diff(errors[order], prepend=-1))
        matches = _sums(self.engine.count(hits, events)[order], first)
        at, row, errors = hits[0::2][order][first], row[order][first], errors[order][first]
        columns = {
            **self.stamps.keys(events.slot[at]),
            "errors": pa.array(errors),
            "end": self.stamps.time(batch.ticks[row - batch.first_row]),
        }
        named = self.stamps.events
        event = named.column(events.id[at], named.of_batch(batch), [*columns, "matches"])
        yield pa.table({**columns, **event, "matches": pa.array(matches)})

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return next(self.run(NO_EVENTS, NO_BATCH, np.zeros(1, np.int64)))


def _sums(counts: Ints, first: Ints) -> Ints:
    """Sums of runs of counts that begin at ``first``; like each of the counts at most ``kernels.cells.count.MOST``."""
    if not len(first):
        return first
    estimate = np.add.reduceat(counts.astype(np.float64), first)
    return np.where(estimate >= MOST, MOST, np.add.reduceat(counts, first))


class CellListing:
    """Every match, listed once.

    Attributes
    ----------
    held : HeldEvents, optional
        What detects first, and holds back what is not to be listed yet. Default: every event is run by the arc logs.
    """

    def __init__(
        self,
        engine: ArcLogs,
        stamps: Stamps,
        bindings: BindingColumns,
        recent: Recent,
    ) -> None:
        self.engine = engine
        self.stamps = stamps
        self.bindings = bindings
        self.recent = recent
        self.held: HeldEvents | None = None

    @property
    def _needs_recent(self) -> bool:
        return bool(self.recent.columns) or self.stamps.preparer.is_count or bool(len(self.recent.rows))

    def run(self, events: Grouped, batch: EventBatch, floors: Ints) -> Iterator[pa.Table]:
        """Tables: key, errors, start, end, missing, then the variables (or what RETURN asks for)."""
        if self._needs_recent or batch.ids is not None:
            self.recent.add(events, batch)
        if self.held is not None:
            events = self.held.due(events, floors)
        hits = self.engine.update(events, floors)
        for listed in self.engine.listed(hits, events, CHUNK):
            yield self._table(hits, replace(listed, id=self.recent.ids_of(listed.id)), events, batch)
        if self._needs_recent:
            self._forget(batch, floors)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        empty = np.zeros(0, np.int64)
        return self._table(empty, Listed(empty, empty, np.zeros(1, np.int64), empty, empty), NO_EVENTS, NO_BATCH)

    def _table(self, hits: Ints, listed: Listed, events: Grouped, batch: EventBatch) -> pa.Table:
        at = hits[2 * listed.hit]
        start = listed.start
        if self.stamps.preparer.is_count:
            start = self.recent.ticks[self.recent.find(listed.id[listed.offset[:-1]])]
        errors = self.engine.err(hits)[listed.hit]
        return pa.table(
            {
                **self.stamps.keys(events.slot[at]),
                "errors": pa.array(errors),
                "start": self.stamps.time(start),
                "end": self.stamps.time(batch.ticks[events.row[at] - batch.first_row]),
                **self.bindings.described(listed, errors, self.recent),
            }
        )

    def _forget(self, batch: EventBatch, floors: Ints) -> None:
        """Let go of events that no live run can point to any more."""
        if self.stamps.preparer.is_count:
            if len(self.recent.ids) > 4 * len(batch.ticks) + CHUNK:
                self.recent.keep_only(self.recent.ids_of(self.engine.live_places(floors)))
        elif len(batch.ticks):
            self.recent.drop_before(int(batch.ticks[-1]) - self.engine.window)
