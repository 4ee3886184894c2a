"""What a matcher puts out: listed matches, match points, or counts; each turns grouped events into Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.cells.listing import HeldEvents
from acep_approx.engines.cells.listing import listed as listed_matches
from acep_approx.engines.columns import Listed
from acep_approx.engines.maximal.best import BestCells
from acep_approx.events.stream import EventBatch
from acep_approx.matching.outputs.output import NO_BATCH, NO_EVENTS, NO_POINTS, Completed, Output, Points, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BindingColumns, nothing_missing, sums

CHUNK = 1 << 18
"""Bound events per table of listed matches."""


class CellPoints(Output):
    """Match points: each event that completes a match, with the least err and the latest start."""

    engine: Cells | BestCells

    def __init__(self, engine: Cells | BestCells, stamps: Stamps, *, names_missing: bool = False) -> None:
        self.engine = engine
        self.stamps = stamps
        self._names_missing = names_missing

    def run(self, events: Grouped, batch: EventBatch, floors: Ints) -> Iterator[pa.Table]:  # noqa: ARG002
        """One table; see ``Stamps.points``."""
        points = self.engine.detected(events)
        if len(points):
            yield self.table(*self._in_order(points, events), batch)

    @staticmethod
    def _in_order(points: Ints, events: Grouped) -> tuple[Points, Ints]:
        points = points[np.argsort(events.row[points[:, 0]], kind="stable")]
        at, errors, start = points[:, 0], points[:, 1], points[:, 2]
        return Points(events.slot[at], events.id[at], events.tick[at], start, errors), events.at[at]

    def table(self, points: Points, at: Ints, batch: EventBatch) -> pa.Table:
        """Points as a table, in order, of which the rows are ids; ``at``: the places of their events in the batch."""
        end, take = self.stamps.time(batch.ticks[at]), self.stamps.events.of_batch(batch)
        return self.stamps.points(points, end, points.row, take, self.more(points))

    def more(self, points: Points) -> dict[str, pa.Array]:
        """Columns that the table of points has beside those of every list of points."""
        return {"missing": nothing_missing(len(points.row))} if self._names_missing else {}

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self.table(NO_POINTS, NO_POINTS.row, NO_BATCH)


class CellCounts(Output):
    """How many matches each match point completes, by number of errors; nothing is listed."""

    engine: ArcLogs

    def __init__(self, engine: ArcLogs, stamps: Stamps) -> None:
        self.engine = engine
        self.stamps = stamps
        self._shares_events = False

    def share_events(self) -> None:
        """An event can be in several key slots: many queries run as one."""
        self._shares_events = True

    def run(self, events: Grouped, batch: EventBatch, floors: Ints) -> Iterator[pa.Table]:
        """One table: key, errors, time, row, matches, whether there are at least so many."""
        hits = self.engine.update(events, floors)
        errors, row = self.engine.err(hits), events.row[hits[0::2]]
        if self._shares_events and len(row):
            slot = events.slot[hits[0::2]]
            row = row * (int(slot.max()) + 1) + slot
        order = np.lexsort((errors, row))
        first = np.flatnonzero(np.diff(row[order], prepend=-1) | np.diff(errors[order], prepend=-1))
        matches = sums(self.engine.count(hits, events)[order], first)
        at, errors = hits[0::2][order][first], errors[order][first]
        end, take = self.stamps.time(batch.ticks[events.at[at]]), self.stamps.events.of_batch(batch)
        yield self.stamps.counts(events.slot[at], errors, end, events.id[at], take, matches)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return next(self.run(NO_EVENTS, NO_BATCH, np.zeros(1, np.int64)))


class CellListing(Output):
    """Every match, listed once.

    Attributes
    ----------
    held : HeldEvents, optional
        What detects first, and holds back what is not to be listed yet. Default: every event is run by the arc logs.
    """

    engine: ArcLogs

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
        if hits.size:
            yield from self._listed(hits, events, batch)
        if self.forgets and self._needs_recent:
            self._forget(batch, floors)

    def _listed(self, hits: Ints, events: Grouped, batch: EventBatch) -> Iterator[pa.Table]:
        at, errors = hits[0::2], self.engine.err(hits)
        completed = Completed(events.slot[at], errors, batch.ticks[events.at[at]])
        placement = replace(self.bindings.placement, keeps_first=self.stamps.preparer.is_count)
        for listed in listed_matches(self.engine, hits, events, placement, CHUNK):
            yield self._table(completed, self._with_ids(listed))

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        empty = np.zeros(0, np.int64)
        return self._table(Completed(empty, empty, empty), Listed.none(self.bindings.placement))

    def _with_ids(self, listed: Listed) -> Listed:
        """The ids of the events where the arc logs had their rows."""
        if not len(self.recent.rows):
            return listed
        single = [rows.copy() for rows in listed.single]
        for ids in single:
            is_bound = ids >= 0
            ids[is_bound] = self.recent.ids_of(ids[is_bound])
        lists = [(offsets, self.recent.ids_of(rows)) for offsets, rows in listed.lists]
        return replace(listed, single=single, lists=lists, first=self.recent.ids_of(listed.first))

    def _table(self, completed: Completed, listed: Listed) -> pa.Table:
        start = listed.start
        if self.stamps.preparer.is_count:
            start = self.recent.ticks[self.recent.find(listed.first)]
        errors = completed.errors_of(listed)
        described = self.bindings.described(listed, errors, self.recent)
        return self.stamps.matches(completed, listed, start, errors, described)

    def _forget(self, batch: EventBatch, floors: Ints) -> None:
        """Let go of events that no live run can point to any more."""
        if self.stamps.preparer.is_count:
            if len(self.recent.ids) > 4 * len(batch.ticks) + CHUNK:
                self.recent.keep_only(self.recent.ids_of(self.engine.live_places(floors)))
        elif len(batch.ticks):
            self.recent.drop_before(int(batch.ticks[-1]) - self.engine.window)
