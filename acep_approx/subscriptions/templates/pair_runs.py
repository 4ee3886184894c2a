"""Runs the pairs of events and queries of a template by an engine, as it runs the events of keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.automaton.letters import Masks
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.runs import Runs
from acep_approx.matching.keyed_events import KeyedEvents
from acep_approx.matching.outputs.of_runs import NO_POINTS, Points, RunOutput
from acep_approx.matching.outputs.output import Output
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.tick_places import TickPlaces
from acep_approx.ranges import COUNT, Range, check, check_arrays
from acep_approx.subscriptions.templates.pair_stream import PairBatch, PairPipeline, PairStream
from acep_approx.subscriptions.templates.pairing import Found, Pairing


class PairRuns:
    """Runs pairs through a pipeline.

    Parameters
    ----------
    inner : PairStream
        The stream of the pipeline.
    pipeline : PairPipeline
    pairing : Pairing
        Finds the pairs.
    words : EventColumns
        Of the events.

    Attributes
    ----------
    windows : int64 array, optional
        Per row of the table of ``pairing``, in ticks; None: all have that of the pipeline.
    """

    def __init__(self, inner: PairStream, pipeline: PairPipeline, pairing: Pairing, words: EventColumns) -> None:
        self.windows: Ints | None = None
        self._slots = inner.pairs
        self._key_columns = inner.pairs.columns[1:]  # behind the number of the query
        self._pipeline = pipeline
        self._pairing = pairing
        self._words = words
        self._places = _taken(pipeline.results)
        self._counters = np.zeros(1, np.int64)

    def tables(self, batch: StreamBatch, events: KeyedEvents, first_tick: int) -> Iterator[pa.Table]:
        """What the pairs of a batch complete, part by part; each query is in one part."""
        for grouped, pairs in self._pairs(batch, events):
            yield from self._pipeline.run_pairs(pairs, grouped, first_tick)

    def points(self, batch: StreamBatch, events: KeyedEvents, first_tick: int) -> Points:
        """The match points of the pairs of a batch, slot by slot."""
        pairs = self._pairs(batch, events)
        parts = [self._pipeline.points_of(some, grouped, first_tick) for grouped, some in pairs]
        return Points(*map(np.concatenate, zip(*parts, strict=True))) if parts else NO_POINTS

    def clear(self, slots: Ints) -> None:
        """Keys are forgotten."""
        if self._counters.size > 1:
            self._counters[slots[slots < self._counters.size]] = 0

    def arrays(self) -> dict[str, Any]:
        """The state of what is not in the engine."""
        places = {} if self._places is None else self._places.arrays()
        return {"partition_counters": self._counters, **places}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what ``arrays`` gave."""
        check_arrays(arrays, {"partition_counters": Range(low=0, end=COUNT)})
        check("counters", good=arrays["partition_counters"].size > 0)
        self._counters = arrays["partition_counters"]
        if self._places is not None:
            self._places.restore(arrays)

    def _batch(self, batch: StreamBatch, at: Ints, slot: Ints) -> PairBatch:
        return PairBatch(batch, self._pairing.table, self._words, at, self._pairing.row_of[slot])

    def _pairs(self, batch: StreamBatch, events: KeyedEvents) -> Iterator[tuple[Grouped, PairBatch]]:
        """The pairs of a batch, in parts, each to be run before the next."""
        places = self._event_places(batch)
        for found in self._pairing.find(events, self._pipeline.at_once):
            grouped, pairs = self._grouped(batch, found, places)
            if len(grouped.row):
                yield grouped, pairs

    def _event_places(self, batch: StreamBatch) -> Ints | None:
        """What stands for the places of events within their partition or time; None for their rows."""
        if self._places is not None:
            return self._places.of(batch.slots(self._key_columns), batch.ticks)
        if self._pipeline.plan.counted != "partition":
            return None
        keys, first, order = batch.by_key(self._key_columns)
        if len(keys) and keys[-1] >= self._counters.size:
            self._counters = np.concatenate((self._counters, np.zeros(2 * int(keys[-1]) + 2, np.int64)))
        lengths, places = np.diff(first), np.full(len(batch), -1, np.int64)
        places[order] = np.repeat(self._counters[keys] - first[:-1], lengths) + np.arange(len(order))
        self._counters[keys] += lengths
        return places

    def _grouped(self, batch: StreamBatch, found: Found, places: Ints | None) -> tuple[Grouped, PairBatch]:
        """Pairs as the engine takes them; those that conditions other than tests leave no letter are left out."""
        mask, pairs = found.mask, self._batch(batch, found.at, found.slot)
        if any(self._pairing.asked.others):
            mask = self._without_others(pairs, mask)
        preparer, engine = self._pipeline.preparer, self._pipeline.engine
        known = len(preparer.classes)
        cls = preparer.classes_of(mask)
        at, slot = found.at, found.slot
        if mask is not found.mask:
            kept = np.flatnonzero(mask != 0)
            at, slot, cls = at[kept], slot[kept], cls[kept]
            pairs = self._batch(batch, at, slot)
        if len(preparer.classes) > known or known == 1:
            engine.set_classes(preparer.classes)
        engine.reserve(self._pairing.slots)
        self._slots.slots = self._pairing.slots
        if isinstance(engine, Runs) and self.windows is not None:
            engine.windows = self.windows[np.maximum(self._pairing.row_of[: self._pairing.slots], 0)]
        assert pairs.rows is not None, "pairs have the rows of their events"
        row = pairs.rows
        place = row if places is None else places[at]
        ids = row if pairs.ids is None else pairs.ids
        return Grouped(slot.copy(), pairs.ticks, cls, row, ids, place, np.arange(len(at))), pairs

    def _without_others(self, pairs: PairBatch, mask: Masks) -> Masks:
        """Letters whose other conditions hold, too."""
        mask = mask.copy()
        for letter, conditions in enumerate(self._pairing.asked.others):
            bit = np.uint64(1 << letter)
            for condition in conditions:
                asked = (mask & bit) != 0
                holds = pairs.computed.truths.holds_on(condition, asked.copy)
                mask &= np.where(holds, np.uint64(2**64 - 1), ~bit)
        return mask


def _taken(results: Output) -> TickPlaces | None:
    """The places that count times, taken from results: they are those of events, not of pairs."""
    if not isinstance(results, RunOutput) or results.tick_places is None:
        return None
    places, results.tick_places = results.tick_places, None
    return places
