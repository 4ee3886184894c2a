"""Cohorts of engines that are not shown the events as they come: pairs of a template, and events that have read tables.

Of pairs those of one piece of the stream are put in order of time first, and numbered; the number of a pair stands for
the row of an event. What events have read of tables is known when their batch is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.budget import granted_beside
from acep_approx.engines.batches import RunEvents
from acep_approx.events.columns import to_arrow
from acep_approx.events.reading.widening import one_table
from acep_approx.events.stream import EventBatch
from acep_approx.learning.cohort import Beside
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.ranges import COUNT, number_in


class BesideReads(Beside):
    """Matches a cohort beside a run whose events have read tables, once it is known what they have read."""

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self._held: list[RunEvents] = []

    def count(self, events: RunEvents) -> None:
        """Keep which events came, until ``show``."""
        self._held.append(events)

    def push(self, batch: EventBatch, events: RunEvents, rate: float, shown: int) -> None:  # noqa: ARG002
        """Grant for a piece."""
        self.quota += granted_beside(rate, shown, self.explores)

    def show(self, batch: EventBatch) -> None:
        """Match the cohort's part of a batch, which has what its events have read as columns."""
        held, self._held = self._held, []
        if not held or self.cohort is None:
            return
        slot, row, tick = (np.concatenate([getattr(one, name) for one in held]) for name in ("slot", "row", "tick"))
        left = self.quota - self.cohort.steps
        self._take(self.cohort.push(batch, slot, row, tick, self.arena.keys_now(), left))


class BesidePairs(Beside):
    """Matches a cohort beside the queries of a template.

    Parameters
    ----------
    arena, cohort, explores
        As for ``Beside``.
    number : str
        The column that holds the number of the query.
    """

    def __init__(self, *how: Any, number: str) -> None:
        super().__init__(*how)
        assert self.cohort is not None, "it is of one"
        self.cohort.charges_births = True
        self._number = number
        self._base = 0  # pairs before this piece
        self._pairs: StreamBatch
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._ticks: list[Ints] = []  # of all pairs of this piece
        self._found: list[Ints] = []  # places among them
        self._chosen: list[Ints] = []
        self._data: list[pa.RecordBatch] = []
        self._size = self._first = 0

    def begin_pairs(self, pairs: StreamBatch) -> None:
        """These pairs come next."""
        self._pairs = pairs

    def count(self, events: RunEvents) -> None:
        """Keep those of the pairs that lie in chosen cells."""
        cohort, keys = self.cohort, self.arena.keys_now()
        assert cohort is not None, "it is of one"
        codes = keys.codes(events.slot)
        chosen = np.flatnonzero(cohort.cells.protects(codes, events.tick))
        self._first = self._size
        self._size += len(events.tick)
        self._ticks.append(events.tick)
        if not len(chosen):
            return
        self._chosen.append(self._first + chosen)
        slots, place = events.slot[chosen], to_arrow(chosen)
        columns = {name: self._pairs.column(name).take(place) for name in cohort.columns if name != self._number}
        self._data.append(pa.RecordBatch.from_pydict({self._number: keys.values(slots)[0], **columns}))
        known, at = np.unique(slots, return_index=True)
        cohort.know(zip(keys.texts_at(known), codes[chosen][at].tolist(), strict=True))

    def note_found(self, rows: Ints) -> None:
        """The run has found match points at these places among the pairs that came last."""
        self._found.append(self._first + rows)

    def push(self, batch: EventBatch, events: RunEvents, rate: float, shown: int) -> None:  # noqa: ARG002
        """Match the cohort's part of a piece, in order of time."""
        cohort = self.cohort
        assert cohort is not None, "it is of one"
        self.quota += granted_beside(rate, shown, self.explores)
        ticks = np.concatenate(self._ticks)
        row = np.empty(len(ticks), np.int64)
        row[np.argsort(ticks, kind="stable")] = self._base + np.arange(len(ticks))
        self._base += len(ticks)
        if self._found:
            cohort.note_found(row[np.concatenate(self._found)])
        if self._chosen:
            chosen = np.concatenate(self._chosen)
            order = np.argsort(row[chosen])
            chosen = chosen[order]
            data = one_table(self._data).take(to_arrow(order)).combine_chunks().to_batches()[0]
            self._take(cohort.match(ticks[chosen], data, row[chosen], self.quota - cohort.steps))
        self._begin_anew()

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        return {**super().snapshot(), "base": self._base}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        super().restore(saved)
        self._base = number_in("base", saved["base"], 0, COUNT)
