"""Runs the pairs of events and queries of a template by an engine, as it runs the events of keys.

A pipeline sees a stream whose keys are a query and a key. Results of many queries stand in the order of their ends,
then of their queries; match points are one table for all templates that have the same columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Ints
from acep_approx.automaton.letters import LetterReader, Masks
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.runs import Runs
from acep_approx.events.columns import to_arrow
from acep_approx.events.keys import NO_KEY, KeyCodes
from acep_approx.kernels import group as kernel
from acep_approx.kernels.pairs import Pairs
from acep_approx.matching.choice import PLAIN, Shown
from acep_approx.matching.keyed_events import KeyedEvents
from acep_approx.matching.outputs.bind import Wide
from acep_approx.matching.outputs.output import NO_POINTS, Points
from acep_approx.matching.outputs.tables import joined
from acep_approx.matching.pieces import LINKS_AT_ONCE
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.shared_load import EngineShedder, PairsShown
from acep_approx.matching.stream_batch import SomeEvents, StreamBatch
from acep_approx.matching.stream_side import KeySlots, StreamSide
from acep_approx.planning.planner import Plan
from acep_approx.query.parameters import MARK
from acep_approx.query.syntax import MICROSECONDS, Attribute, Equivalence, Expression
from acep_approx.ranges import COUNT, Range, check, check_arrays
from acep_approx.subscriptions.published import FIRST_ID
from acep_approx.subscriptions.templates.ladders import Ladders
from acep_approx.subscriptions.templates.pairing import AT_ONCE, Pairing
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import Template, asks_parameter

NO_QUERIES = np.zeros(0, np.int64)
EVENTS_AT_ONCE = 4096
"""Events whose pairs are found at once inside a load budget."""
SPARSE = 8
"""Keys in a range of so many times their number are sorted; in a narrower one they are counted."""


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


KEY_BITS = 32
NUMBER = MARK + "query"
"""The column that says whose result a row is; in the results it is called ``query``."""


def by_query(plan: Plan) -> Plan:
    """What runs pairs of a template with this plan: that of each query by itself."""
    return replace(plan, query=replace(plan.query, equivalences=(Equivalence(NUMBER), *plan.query.equivalences)))


def numbered(table: pa.Table) -> pa.Table:
    """Results whose column of numbers has the name that it has in a set."""
    return table.rename_columns(["query" if name == NUMBER else name for name in table.column_names])


class PairKeys(KeyCodes):
    """The query and the key of each slot."""

    def __init__(self, table: QueryTable, pairing: Pairing, keys: KeySlots) -> None:
        super().__init__()
        self._table, self._pairing, self._outer = table, pairing, keys

    added = 0
    """Changes when slots may have got other queries and keys."""

    uses_again = True

    @property
    def is_empty(self) -> bool:
        """Whether there was no pair yet."""
        return not self._pairing.slots

    def codes(self, slots: Ints) -> Ints:
        """Numbers that tell pairs apart: a slot is free as soon as all runs of its pair are gone."""
        numbers, keys = self._table.numbers[self._pairing.row_of[slots]], self._pairing.key_of[slots]
        return (numbers << KEY_BITS) ^ keys

    def texts(self) -> list[str]:
        """Per slot its query and its key as text."""
        return self.texts_at(np.arange(self._pairing.slots))

    def identities(self) -> Ints:
        """Per slot a number that changes when another pair gets the slot; ``NO_KEY`` where it is free."""
        rows, keys = self._pairing.row_of[: self._pairing.slots], self._pairing.key_of[: self._pairing.slots]
        found = self._table.numbers[rows] << KEY_BITS
        if self._outer.columns:
            found = found ^ self._outer.keys.identities()[keys]
        return np.where(rows >= 0, found, NO_KEY)

    def texts_at(self, slots: Ints) -> list[str]:
        """The same of some slots."""
        columns = [column.to_pylist() for column in self.values(slots)]
        return [" | ".join(map(str, row)) for row in zip(*columns, strict=True)]

    def text(self, slot: int) -> str:
        """The same of one."""
        return self.texts_at(np.array([slot]))[0]

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
        self.know(self.schema)
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
    """Runs pairs through a pipeline of a plan whose keys are the queries, too; it takes part in no batch.

    Parameters
    ----------
    stream : StreamSide
        Of the events.
    template : Template
        Bound to the stream.
    table : QueryTable
    output : {"matches", "points", "counts"}
    columns_of : dict of str to tuple of str, optional
        If its queries are in CEL: the columns of the streams that they read.
    bind : tuple of str or Wide
        As for ``Pipeline``.
    shown : Shown, optional
        As for ``Pipeline``.
    shedder : EngineShedder, optional
        How the engine stays inside a load budget.

    Attributes
    ----------
    key_slots : KeySlots
        Of the events.
    pipeline : Pipeline
    pairing : Pairing
        Finds the pairs.
    pair_keys : PairKeys
    words : EventColumns
        Of the events.
    windows : int64 array or None
        Per row of the table, in ticks; None: all have that of the pipeline.
    ladders : Ladders or None
        What runs the pairs in the place of the engine, where the latest starts are all that matters.
    weights : float64 array
        Inside a load budget what a match point counts for, per row of the table; one: the same for all.
    are_classes : bool
        Whether the rows of the table are classes of queries.
    """

    def __init__(
        self,
        stream: StreamSide,
        template: Template,
        table: QueryTable,
        output: str,
        columns_of: dict[str, tuple[str, ...]] | None,
        bind: tuple[str, ...] | Wide = (),
        shown: Shown = PLAIN,
        shedder: EngineShedder | None = None,
    ) -> None:
        self._template, self._table = template, table
        self.shedder, self.weights, self.are_classes = shedder, np.ones(1), False
        self._arrived, self._all_arrived = NO_QUERIES, 0
        self._worth = np.zeros(0)  # of the pairs that the engine gets next, for how many events each is granted
        plan, column = template.plan, stream.roles.column
        columns = tuple(map(column, plan.keys))
        self.key_slots = stream.slots_of(columns)
        self._inner = PairStream(stream, table, columns)
        plan = by_query(plan)
        how: dict[str, Any] = {"shedding": shedder, "bind": bind, "joins": False, "columns_of": columns_of}
        self.pipeline = Pipeline(self._inner, plan, output, shown=shown, **how)
        self.pipeline.recent.is_fed = True
        results = self.pipeline.results
        results.forgets = False
        results.share_events()
        # the places that count times are those of events, not of pairs
        self._places, results.tick_places = results.tick_places, None
        self._counters = np.zeros(1, np.int64)
        self.words = EventColumns(self.pipeline.schema, column, stream.texts)

        def is_of_key(own: Expression) -> bool:
            return isinstance(own, Attribute) and column(own.name) in columns

        self.pairing = Pairing(template, self.words, stream.texts, table, is_of_key)
        self._inner.pairs.keys = self.pair_keys = PairKeys(table, self.pairing, self.key_slots)
        self.ladders: Ladders | None = None
        self._know_windows()
        self.know_ladders()

    @property
    def finds_points(self) -> bool:
        """Whether match points are told without a list of matches."""
        return self.pipeline.results.points_engine is not None

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return numbered(self.pipeline.nothing())

    # --- queries ------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take over the rows of the table that have changed since the last call."""
        if self.pairing.version != self._table.version:
            self._know_windows()
            self.pairing.refresh()
            self.know_ladders()

    def windows_of(self, table: QueryTable) -> Ints | None:
        """The windows of the rows of a table in ticks; None where all have that of the template."""
        name, window = self._template.window, self._template.syntax.window
        if name is None or window is None:
            return None
        factor = MICROSECONDS[window.unit] if self.pipeline.is_time else 1
        found: Ints = np.round(table.values(name) * factor).astype(np.int64)
        return found

    def _know_windows(self) -> None:
        pipeline = self.pipeline
        self.windows = self.windows_of(self._table)
        if self.windows is not None:
            longest = int(self.windows[self._table.is_there].max(initial=0))
            pipeline.window = pipeline.engine.window = max(pipeline.window, longest)
            if self.shedder is not None:
                self.shedder.know_window(pipeline.window)

    def know_ladders(self) -> None:
        """Find out whether the latest starts are all that matters."""
        is_cel = self._template.plan.cel is not None
        self.ladders = None if is_cel else Ladders.of(self.pipeline.results.points_engine, self.pairing, self.ladders)

    def widen(self, schema: pa.Schema) -> None:
        """Go on with wider types of columns."""
        wider = pa.schema([*schema, *(field for field in self._inner.schema if field.name.startswith(MARK))])
        self._inner.know(wider)
        self.pipeline.widen(wider)
        self.know_ladders()

    # --- batches ------------------------------------------------------------------------------------------------

    def feed(self, batch: StreamBatch, events: KeyedEvents) -> None:
        """Keep the events that results may show."""
        recent = self.pipeline.recent
        if recent.columns or batch.ids is not None:
            at = np.sort(events.groups.order)
            if isinstance(batch, SomeEvents):
                at, batch = batch.places[at], batch.outer
            row = batch.first_row + at if batch.rows is None else batch.rows[at]
            recent.feed(Grouped(at, at, at, row, row, row, at), batch)

    def tables(self, batch: StreamBatch, events: KeyedEvents, first_tick: int) -> Iterator[pa.Table]:
        """What the pairs of a batch complete: by the end of each, then in the order of the queries."""
        pipeline, made = self.pipeline, list[pa.Table]()
        progress, floors = pipeline.progress, np.array([first_tick - pipeline.window])
        for grouped, pairs in self._pairs(batch, events):
            links = progress.made
            made += map(numbered, pipeline.results.run(grouped, pairs, floors))
            pipeline.engine.report(progress)
            pipeline.pieces.learn(len(grouped.row), progress.made - links, AT_ONCE)
        if made:
            table = joined(made, self.nothing().schema)
            end = table.column("end").combine_chunks().cast(pa.int64()).to_numpy()
            yield table.take(to_arrow(in_order(table.column("query").to_numpy(), end)))

    def points(self, batch: StreamBatch, events: KeyedEvents, first_tick: int) -> Points:
        """The match points of the pairs of a batch, slot by slot."""
        pipeline = self.pipeline
        if self.ladders is not None:
            found = self.ladders.points(batch, events, self.windows)
            self._inner.pairs.slots = self.pairing.slots
        else:
            results, floors = pipeline.results, np.array([first_tick - pipeline.window])
            parts = [results.points(grouped, pairs, floors) for grouped, pairs in self._pairs(batch, events)]
            found = Points(*map(np.concatenate, zip(*parts, strict=True))) if parts else NO_POINTS
        pipeline.engine.report(pipeline.progress)
        return found

    def let_go(self, now: int) -> None:
        """The events up to ``now`` have been run: forget those, and the runs, that have left the window."""
        self._inner.last_tick = now
        self.pipeline.recent.drop_before(now - self.pipeline.window)
        live = self.pairing.live()
        if len(live):
            windows = self.pipeline.window if self.windows is None else self.windows[self.pairing.row_of[live]]
            newest = self.pipeline.engine.newest()[live]
            begun = None if self.shedder is None else self.shedder.begun(live)
            self._free(live[(newest if begun is None else np.maximum(newest, begun)) < now - windows])

    def _free(self, slots: Ints) -> None:
        if len(slots):
            self.pipeline.engine.clear(slots)
            self.pairing.free(slots)

    def let_queries_go(self, rows: Ints) -> None:
        """Let go of the runs of the queries of some rows."""
        live = self.pairing.live()
        self._free(live[np.isin(self.pairing.row_of[live], rows)])

    def end_keys(self, slots: Ints) -> None:
        """The streams of some keys have ended: let go of the runs of all queries that are live for them."""
        live = self.pairing.live()
        self._free(live[np.isin(self.pairing.key_of[live], slots)])
        self.forget_keys(slots)

    def forget_keys(self, slots: Ints) -> None:
        """Some keys are forgotten; no query is live for them."""
        if self._counters.size > 1:
            self._counters[slots[slots < self._counters.size]] = 0

    # --- state --------------------------------------------------------------------------------------------------

    def save(self, scope: Scope, last_tick: int | None) -> None:
        """Save all but the table; ``last_tick`` is that of the stream."""
        self._inner.last_tick = last_tick
        self.pipeline.save(scope.sub("pipeline"))
        slots = self.pairing.slots
        scope.arrays |= {"slot_rows": self.pairing.row_of[:slots], "slot_keys": self.pairing.key_of[:slots]}
        if self.shedder is not None:
            scope.arrays |= self.pairing.order()
        places = {} if self._places is None else self._places.arrays()
        scope.sub("runs", arrays={"partition_counters": self._counters, **places})

    def restore(self, scope: Scope) -> None:
        """Go on from what ``save`` saved, when the table has its queries."""
        rows = scope.array("slot_rows")
        self.pairing.take_slots(rows, scope.array("slot_keys", Range(rows.size)), max(self.key_slots.slots, 1))
        if self.shedder is not None:
            after = scope.array("slot_next", Range(rows.size, -1, rows.size))
            self.pairing.take_order(after, scope.array("slot_free", Range(low=0, end=rows.size)))
        self._inner.pairs.slots = self.pairing.slots
        arrays = scope.parts["runs"].arrays
        check_arrays(arrays, {"partition_counters": Range(low=0, end=COUNT)})
        self._counters = arrays["partition_counters"]
        check("counters", good=self._counters.size > 0)
        if self._places is not None:
            self._places.restore(arrays)
        self.pipeline.restore(scope.parts["pipeline"])

    # --- pairs --------------------------------------------------------------------------------------------------

    def _pairs(self, batch: StreamBatch, events: KeyedEvents) -> Iterator[tuple[Grouped, PairBatch]]:
        """The pairs of a batch, in parts, each to be run before the next."""
        if self.shedder is None:
            yield from self._pairs_of(batch, events)
        else:
            yield from self._pairs_within(batch, self.shedder)

    def _pairs_within(self, batch: StreamBatch, shedder: EngineShedder) -> Iterator[tuple[Grouped, PairBatch]]:
        """The same inside a load budget: few events at a time, so that their queries share what these grant."""
        progress, letters, seen = self.pipeline.progress, LetterReader(self.pairing.asked.literal), 0
        shedder.begin_batch(len(batch))
        for first in range(0, len(batch), EVENTS_AT_ONCE):
            begun = time.perf_counter()
            piece: Ints = np.arange(first, min(first + EVENTS_AT_ONCE, len(batch)))
            some = SomeEvents(batch, piece, self.words)
            if letters.needs_type:
                some.know_types()
            new, seen = int(self._arrived[piece[-1]]) - seen, int(self._arrived[piece[-1]])
            for grouped, pairs in self._pairs_of(some, KeyedEvents.of(some, self.key_slots.columns, letters)):
                shedder.begin_pairs(new, self.whose(grouped.slot), PairsShown(grouped, pairs, self._worth))
                self.pair_keys.added += 1
                new = 0
                if self.weights.size > 1:
                    rows = self.pairing.row_of[: self.pairing.slots]
                    shedder.weigh_keys(self.weights[np.maximum(rows, 0)])
                yield grouped, pairs
            shedder.begin_pairs(new, NO_QUERIES)
            self.pipeline.engine.report(progress)
            so_far = replace(progress, events=progress.events + seen)
            shedder.end_piece(some, so_far, time.perf_counter() - begun)
        shedder.begin_pairs(self._all_arrived - seen, NO_QUERIES)

    def whose(self, slots: Ints) -> Ints:
        """The number of the query of each slot; -1 where several share it."""
        numbers = self._table.numbers[self.pairing.row_of[slots]]
        return np.full(len(slots), -1) if self.are_classes else numbers

    def arrive(self, batch: StreamBatch, part: StreamBatch) -> None:
        """A batch has arrived, of which only a part may matter; what other queries publish is granted for by nobody."""
        arrived: Ints = np.arange(1, len(batch) + 1)
        if batch.ids is not None:
            arrived = np.cumsum(batch.ids < FIRST_ID)
        self._all_arrived = int(arrived[-1:].sum())
        self._arrived = arrived[part.places] if isinstance(part, SomeEvents) else arrived

    def _pairs_of(self, batch: StreamBatch, events: KeyedEvents) -> Iterator[tuple[Grouped, PairBatch]]:
        places, pipeline, at_once = self._event_places(batch), self.pipeline, AT_ONCE
        if pipeline.engine.makes_links and not self.finds_points:
            at_once = max(pipeline.pieces.size, LINKS_AT_ONCE >> 6)
        for found in self.pairing.find(events, at_once):
            grouped, pairs = self._grouped(batch, found, places)
            if len(grouped.row):
                yield grouped, pairs

    def _picked(self, shedder: EngineShedder, slot: Ints, tick: Ints, cls: Ints) -> Ints:
        """The places of the pairs that the engine must get inside a budget.

        Who comes first gets more: so they come in an order that a stop does not change.
        """
        engine = self.pipeline.engine
        assert isinstance(engine, Runs), "nobody else sheds"
        picked = shedder.pick(slot, tick, cls, engine)
        picked = picked.take(np.argsort(self.pair_keys.codes(slot[picked.at]), kind="stable"))
        self._worth = picked.worth
        return picked.at

    def _batch(self, batch: StreamBatch, at: Ints, slot: Ints) -> PairBatch:
        return PairBatch(batch, self._table, self.words, at, self.pairing.row_of[slot])

    def _event_places(self, batch: StreamBatch) -> Ints | None:
        """What stands for the places of events within their partition or time; None for their rows."""
        if self._places is not None:
            return self._places.of(batch.slots(self.key_slots.columns), batch.ticks)
        if self.pipeline.plan.counted != "partition":
            return None
        keys, first, order = batch.by_key(self.key_slots.columns)
        if len(keys) and keys[-1] >= self._counters.size:
            self._counters = np.concatenate((self._counters, np.zeros(2 * int(keys[-1]) + 2, np.int64)))
        lengths, places = np.diff(first), np.full(len(batch), -1, np.int64)
        places[order] = np.repeat(self._counters[keys] - first[:-1], lengths) + np.arange(len(order))
        self._counters[keys] += lengths
        return places

    def _grouped(self, batch: StreamBatch, found: Pairs, places: Ints | None) -> tuple[Grouped, PairBatch]:
        """Pairs as the engine takes them; those that conditions other than tests leave no letter are left out."""
        mask = found.mask
        if any(self.pairing.asked.others):
            mask = self._without_others(self._batch(batch, found.at, found.slot), mask)
        preparer, engine = self.pipeline.preparer, self.pipeline.engine
        known = len(preparer.classes)
        cls = preparer.classes_of(mask)
        at, slot = found.at, found.slot
        if mask is not found.mask:
            kept = np.flatnonzero(mask != 0)
            at, slot, cls = at[kept], slot[kept], cls[kept]
        if len(preparer.classes) > known or known == 1:
            engine.set_classes(preparer.classes)
        engine.reserve(self.pairing.slots)
        self._inner.pairs.slots = self.pairing.slots
        if self.windows is not None:
            engine.windows = self.windows[np.maximum(self.pairing.row_of[: self.pairing.slots], 0)]
        if self.shedder is not None:
            kept = self._picked(self.shedder, slot, batch.ticks[at], cls)
            at, slot, cls = at[kept], slot[kept], cls[kept]
        pairs = self._batch(batch, at, slot)
        assert pairs.rows is not None, "pairs have the rows of their events"
        row = pairs.rows
        place = row if places is None else places[at]
        ids = row if pairs.ids is None else pairs.ids
        return Grouped(slot.copy(), pairs.ticks, cls, row, ids, place, np.arange(len(at))), pairs

    def _without_others(self, pairs: PairBatch, mask: Masks) -> Masks:
        mask = mask.copy()
        for letter, conditions in enumerate(self.pairing.asked.others):
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
    runs : PairRuns
        Of any of them, where it finds points.
    """

    def __init__(self, runs: PairRuns) -> None:
        self._results, self._keys = runs.pipeline.results, runs.pair_keys
        self._parts: list[QueryPoints] = []

    def add(self, found: QueryPoints) -> None:
        """Take in some."""
        self._parts.append(found)

    def table(self) -> pa.Table:
        """All of them: by the end of each, then in the order of the queries."""
        keys = self._keys
        number, key, row, tick, start, errors = self._columns()
        order = in_order(number, row, tick)
        keys.named = number[order], key[order]
        points = Points(np.arange(len(order)), *(column[order] for column in (row, tick, start, errors)))
        found = self._results.points_table(points)
        keys.named = None
        return numbered(found)

    def _columns(self) -> Iterable[Ints]:
        """Number and key of each point, and what points have but slots; those of one template are as they are."""
        parts = [(part.number, part.key, *part.points[1:]) for part in self._parts]
        return parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
