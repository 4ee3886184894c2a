"""Runs the pairs of events and queries of a template by an engine, as it runs the events of keys.

A pipeline sees a stream whose keys are a query and a key. Results of many queries stand in the order of their ends,
then of their queries; match points are one table for all templates that have the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.automaton.letters import Masks
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.events.columns import to_arrow
from acep_approx.events.keys import KeyCodes
from acep_approx.kernels import group as kernel
from acep_approx.matching.keyed_events import KeyedEvents
from acep_approx.matching.outputs.output import NO_POINTS, Points
from acep_approx.matching.pieces import LINKS_AT_ONCE
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_batch import SomeEvents, StreamBatch
from acep_approx.matching.stream_side import KeySlots, StreamSide
from acep_approx.query.parameters import MARK
from acep_approx.query.syntax import Expression
from acep_approx.ranges import COUNT, Range, check, check_arrays
from acep_approx.subscriptions.templates.pairing import AT_ONCE, Found, Pairing
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import asks_parameter

SPARSE = 8
"""Keys in a range of so many times their number are sorted; in a narrower one they are counted."""


def by_end(table: pa.Table) -> pa.Table:
    """Results in the order of their ends, then of their queries: parts of a batch have all of some queries."""
    end = table.column("end").combine_chunks().cast(pa.int64()).to_numpy()
    return table.take(to_arrow(in_order(table.column("query").to_numpy(), end)))


def in_order(*keys: Ints) -> Ints:
    """Places in the order of the last key, then of the one before, and so on, as ``numpy.lexsort`` has it.

    Keys in a narrow range are counted. Complexity: O(rows + ranges); O(rows x log rows) where they are wide.
    """
    size = len(keys[0])
    order = np.arange(size)
    for key in keys:
        low = int(key.min()) if size else 0
        span = int(key.max()) - low + 1 if size else 0
        if span > SPARSE * size:
            order = order[np.argsort(key[order], kind="stable")]
            continue
        before, order = order, np.empty(size, np.int64)
        kernel.order_by(key - low, before, np.zeros(span + 1, np.int64), order)
    return order


NUMBER = MARK + "query"
"""The column that says whose result a row is; in the results it is called ``query``."""


def numbered(table: pa.Table) -> pa.Table:
    """Results whose column of numbers has the name that it has in a set."""
    return table.rename_columns(["query" if name == NUMBER else name for name in table.column_names])


class PairKeys(KeyCodes):
    """The query and the key of each slot."""

    def __init__(self, table: QueryTable, pairing: Pairing, keys: KeySlots) -> None:
        super().__init__()
        self._table, self._pairing, self._outer = table, pairing, keys

    named: tuple[Ints, Ints] | None = None
    """Numbers of queries and slots of keys, where results are numbered: then they stand for slots."""

    def values(self, slots: Ints) -> list[pa.Array]:
        """The number of the query, then the values of the key."""
        if self.named is None:
            numbers, keys = self._table.numbers[self._pairing.row_of[slots]], self._pairing.key_of[slots]
        else:
            numbers, keys = (column[slots] for column in self.named)
        return [to_arrow(numbers), *(self._outer.keys.values(keys) if self._outer.columns else ())]


class PairStream(StreamSide):
    """What a pipeline sees of the stream: its columns, those that bring constants, and the pairs as keys."""

    def __init__(self, outer: StreamSide, table: QueryTable, columns: tuple[str, ...]) -> None:
        super().__init__(outer.schema, outer.roles, {**table.fields(), NUMBER: pa.int64()})
        self.texts = outer.texts
        self._know(self.schema)
        self.last_tick = outer.last_tick
        self.pairs = KeySlots((NUMBER, *columns))

    def slots_of(self, key_columns: tuple[str, ...]) -> KeySlots:
        """The slots of the pairs, whatever is asked."""
        assert key_columns == self.pairs.columns, "queries have the keys of their template"
        return self.pairs


class PairBatch(SomeEvents):
    """Pairs as a batch: events that were looked up for queries, and what these ask of them.

    Parameters
    ----------
    outer : StreamBatch
        The events.
    table : QueryTable
    columns : EventColumns
        Of the pipeline that reads it.
    at, rows : int64 arrays
        Per pair the place of the event and the row of the query.
    """

    def __init__(
        self, outer: StreamBatch, table: QueryTable, columns: EventColumns, at: Ints, rows: Ints
    ) -> None:
        super().__init__(outer, at, columns)
        self._table, self._rows = table, rows

    def column(self, name: str) -> pa.Array:
        """A column of the events, or the constants of a parameter, per pair."""
        if name.startswith(MARK):
            return self._table.arrow(name.removeprefix(MARK), self._rows)
        return super().column(name)

    def all_words(self, expression: Expression) -> Ints:
        """The value of an expression per pair: of that which asks no constant there is one for each event."""
        if not asks_parameter(expression):
            return self.outer.words(expression)[self.places]
        return StreamBatch.all_words(self, expression)


class PairRuns:
    """Runs pairs through a pipeline.

    Parameters
    ----------
    inner : PairStream
        The stream of the pipeline.
    pipeline : Pipeline
        Of a plan whose keys are the queries, too; it takes part in no batch.
    pairing : Pairing
        Finds the pairs.
    words : EventColumns
        Of the events.

    Attributes
    ----------
    windows : int64 array, optional
        Per row of the table of ``pairing``, in ticks; None: all have that of the pipeline.
    """

    def __init__(self, inner: PairStream, pipeline: Pipeline, pairing: Pairing, words: EventColumns) -> None:
        self.windows: Ints | None = None
        self._slots = inner.pairs
        self._key_columns = inner.pairs.columns[1:]  # behind the number of the query
        self._pipeline = pipeline
        self._pairing = pairing
        self._words = words
        # the places that count times are those of events, not of pairs
        self._places, pipeline.results.tick_places = pipeline.results.tick_places, None
        self._counters = np.zeros(1, np.int64)

    def tables(self, batch: StreamBatch, events: KeyedEvents, first_tick: int) -> Iterator[pa.Table]:
        """What the pairs of a batch complete, part by part; each query is in one part."""
        progress, floors = self._pipeline.progress, np.array([first_tick - self._pipeline.window])
        for grouped, pairs in self._pairs(batch, events):
            made = progress.made
            yield from self._pipeline.results.run(grouped, pairs, floors)
            self.note_work()
            self._pipeline.pieces.learn(len(grouped.row), progress.made - made, AT_ONCE)

    def points(self, batch: StreamBatch, events: KeyedEvents, first_tick: int) -> Points:
        """The match points of the pairs of a batch, slot by slot."""
        results, floors = self._pipeline.results, np.array([first_tick - self._pipeline.window])
        parts = [results.points(grouped, pairs, floors) for grouped, pairs in self._pairs(batch, events)]
        self.note_work()
        return Points(*map(np.concatenate, zip(*parts, strict=True))) if parts else NO_POINTS

    def note_work(self) -> None:
        """Take over what the engine has counted."""
        self._pipeline.engine.report(self._pipeline.progress)

    @property
    def _at_once(self) -> int:
        """How many pairs should be run at a time."""
        if self._pipeline.results.points_engine is not None or not self._pipeline.engine.makes_links:
            return AT_ONCE
        return max(self._pipeline.pieces.size, LINKS_AT_ONCE >> 6)

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
        for found in self._pairing.find(events, self._at_once):
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
        if self.windows is not None:
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


class QueryPoints(NamedTuple):
    """Match points with the number of the query and the slot of the key of each."""

    number: Ints
    key: Ints
    points: Points


class PointTable:
    """The points that templates found in a batch.

    Parameters
    ----------
    pipeline : Pipeline
        Of any of them; it has a ``points_engine``.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._parts: list[QueryPoints] = []

    def add(self, found: QueryPoints) -> None:
        """Take in some."""
        self._parts.append(found)

    def table(self) -> pa.Table:
        """All of them: by the end of each, then in the order of the queries."""
        parts, results = self._parts, self._pipeline.results
        number, key = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        points = Points(*map(np.concatenate, zip(*(part.points for part in parts), strict=True)))
        order, keys = in_order(number, points.row, points.tick), self._pipeline.key_slots.keys
        assert isinstance(keys, PairKeys), "these are the keys of pairs"
        keys.named = number[order], key[order]
        found = results.points_table(Points(np.arange(len(order)), *points.take(order)[1:]))
        keys.named = None
        return numbered(found)
