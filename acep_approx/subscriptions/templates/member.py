"""The queries of a template on a stream: each event is run for those that it matters to, by one engine.

A pair of a query and a key has a slot of its own in the engine, as a key of a single query has. So runs, lineage,
strategies and outputs are those of a single query, and the law is plain: a set of queries is the join of the events
with the table of constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope, damaged_part
from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.letters import LetterReader
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.kernels.classes import ClassPoints
from acep_approx.matching.binding import bound, with_usable_key
from acep_approx.matching.choice import way
from acep_approx.matching.keyed_events import KeyedEvents
from acep_approx.matching.outputs.kinds import KINDS
from acep_approx.matching.outputs.output import Points
from acep_approx.matching.outputs.tables import joined
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered, row_columns
from acep_approx.matching.state import restore_query, save_query
from acep_approx.matching.stream_batch import SomeEvents, StreamBatch
from acep_approx.matching.stream_side import StreamSide
from acep_approx.query.parameters import MARK
from acep_approx.query.syntax import Attribute, Equivalence, Expression
from acep_approx.ranges import Range
from acep_approx.subscriptions.members import rows_shown
from acep_approx.subscriptions.templates.classes import NEVER, Classes, Loose
from acep_approx.subscriptions.templates.ladders import Ladders
from acep_approx.subscriptions.templates.pair_runs import (
    NUMBER,
    PairKeys,
    PairRuns,
    PairStream,
    PointTable,
    QueryPoints,
    by_end,
    numbered,
)
from acep_approx.subscriptions.templates.pairing import Pairing
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import Template, asks_parameter, with_key


class TemplateMember:
    """Many queries of one template, as one side of a stream.

    Parameters
    ----------
    stream : StreamSide
    template : Template
    table : QueryTable
        Without rows, or with.
    output : {"matches", "points", "counts"}
    columns_of : dict of str to tuple of str, optional
        If its queries are in CEL: the columns of the streams that they read.

    Raises
    ------
    DataError, QueryError
        A column is missing, or has the wrong type for a constant.
    """

    def __init__(
        self,
        stream: StreamSide,
        template: Template,
        table: QueryTable,
        output: str,
        columns_of: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.stream, self.template, self.table, self.output = stream, template, table, KINDS[output]
        self.columns_of = columns_of
        self._rows = row_columns(template.plan, output)
        self._coming: Ints = np.zeros(0, np.int64)  # rows of queries that see events from the next batch on
        self.classes: Classes | None = None
        self.ladders: Ladders | None = None
        self.set_up()

    @property
    def run_table(self) -> QueryTable:
        """The table whose rows are run."""
        return self.table if self.classes is None else self.classes.table

    def set_up(self) -> None:
        """Begin anew, with the schema that the stream has now."""
        stream, table = self.stream, self.run_table
        self._known = stream.schema
        shows = way(self.template.plan, self.output).shows
        plan = bound(self.template.plan, stream.schema, stream.roles, self.columns_of or {}, shows)
        plan = with_usable_key(with_key(plan), stream.schema, stream.roles)
        self.template = replace(self.template, plan=plan)
        columns = tuple(map(stream.roles.column, plan.keys))
        self.key_slots = stream.slots_of(columns)
        self._inner = PairStream(stream, table, columns)
        keyed = replace(plan.query, equivalences=(Equivalence(NUMBER), *plan.query.equivalences))
        self.pipeline = Pipeline(
            self._inner, replace(plan, query=keyed), self.output, joins=False, columns_of=self.columns_of
        )
        self.pipeline.recent.is_fed = True
        self.pipeline.results.forgets = False
        self.pipeline.results.share_events()
        self._words = EventColumns(self.pipeline.schema, stream.roles.column, stream.texts)
        self.pairing = Pairing(self.template, self._words, stream.texts, table, self._is_of_key)
        self.letters = LetterReader(self.pairing.asked.literal)
        self._inner.pairs.keys = PairKeys(table, self.pairing, self.key_slots)
        self._runs = PairRuns(self._inner, self.pipeline, self.pairing, self._words)
        self._know_windows()
        self._know_ladders()

    def _know_windows(self) -> None:
        """Take over the longest window, and the window of each row that is run."""
        self._windows = self._runs.windows = self._windows_of(self.run_table)
        if self._windows is not None:
            longest = int(self._windows[self.run_table.is_there].max(initial=0))
            self.pipeline.window = max(self.pipeline.window, longest)
            self.pipeline.engine.window = self.pipeline.window

    def _know_ladders(self) -> None:
        """Find out whether the latest starts are all that matters."""
        before, is_cel = self.ladders, self.template.plan.cel is not None
        self.ladders = None if is_cel else Ladders.of(self.pipeline.results.points_engine, self.pairing)
        if before is not None and self.ladders is not None:
            self.ladders.use_room_of(before)

    @property
    def _finds_points(self) -> bool:
        """Whether the engine tells match points without a list of matches."""
        return self.pipeline.results.points_engine is not None

    def _windows_of(self, table: QueryTable) -> Ints | None:
        """The windows of the rows of a table in ticks; None where all have that of the template."""
        if self.template.window is None:
            return None
        factor = self.template.window_factor(is_time=self.pipeline.is_time)
        found: Ints = np.round(table.values(self.template.window) * factor).astype(np.int64)
        return found

    # --- batches ----------------------------------------------------------------------------------------------

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns that must be in each batch."""
        return tuple(name for name in self.pipeline.reads if not name.startswith(MARK))

    @property
    def as_text(self) -> frozenset[str]:
        """Columns whose bytes are text to it."""
        return frozenset(name for name in self.pipeline.as_text if not name.startswith(MARK))

    @property
    def compared(self) -> frozenset[str]:
        """Columns whose values it compares otherwise than as keys."""
        return frozenset(name for name in self.pipeline.compared if not name.startswith(MARK))

    @property
    def in_order(self) -> frozenset[str]:
        """Columns whose values it compares by their order."""
        return frozenset(name for name in self.pipeline.in_order if not name.startswith(MARK))

    def prepare(self, batch: StreamBatch) -> None:
        """Take from a batch what is asked of it, before any of its events is run."""
        self._take_changes(int(batch.ticks[0]))
        own = self._own_expressions
        self._part = batch = batch if self._takes_whole(batch, own) else self._relevant(batch)
        self._events = KeyedEvents.of(batch, self.key_slots.columns, self.letters)
        self.pairing.ask(self._events)
        for expression in own:  # what is wrong with it is told before any event is run
            batch.words(expression, partial(self._is_read, expression))

    @property
    def _own_expressions(self) -> list[Expression]:
        """What the engine asks of events alone."""
        return [expression for expression in self.pipeline.engine.expressions if not asks_parameter(expression)]

    def _is_read(self, expression: Expression) -> Bools:
        """Tell for each event of the last batch whether the engine reads the value of an expression."""
        return self._events.has_letters(self.pipeline.engine.readers(expression))

    def _takes_whole(self, batch: StreamBatch, own: list[Expression]) -> bool:
        """Whether it asks for columns alone, which are laid out once for all templates, and keeps no event."""
        if batch.ids is not None or self.pipeline.recent.columns or self.letters.conditions:
            return False
        return all(isinstance(one, Attribute) for one in (*self.pairing.asked.owns, *own))

    def _relevant(self, batch: StreamBatch) -> StreamBatch:
        """The events of keys that matter to a query, where few do: a look at one event of each key tells."""
        equal = self.pairing.index.equal
        if equal is None or not self.pairing.by_key or self.template.plan.counted != "nothing":
            return batch
        events = batch.by_key(self.key_slots.columns)
        wanted = self.pairing.wanted(events, [batch.words(test.own) for test, _ in equal])
        if 2 * np.diff(events.first)[wanted].sum() > len(batch):
            return batch
        some = SomeEvents(batch, events.some(wanted), self._words)
        if self.letters.needs_type:
            some.know_types()
        return some

    def _is_of_key(self, own: Expression) -> bool:
        """Whether all events of a key have the same value of an expression."""
        return isinstance(own, Attribute) and self.stream.roles.column(own.name) in self.key_slots.columns

    def run(self, batch: StreamBatch) -> Iterator[pa.Table]:
        """Run a batch that was prepared."""
        pipeline, first_tick = self.pipeline, int(batch.ticks[0])
        if len(self._part):
            self._feed(self._part)
            if self._finds_points:
                yield from self._point_tables(batch, first_tick)
            else:
                yield from map(partial(self._shown, batch), self._tables(self._part, first_tick))
        pipeline.progress.events += len(batch)
        now = int(batch.ticks[-1])
        self._inner.last_tick = now
        pipeline.forget_before(now - pipeline.window)
        self._sweep(now)

    def _shown(self, batch: StreamBatch, table: pa.Table) -> pa.Table:
        """Results as users see them: where events have names of their own, some were published, which have no row."""
        return table if batch.ids is None else renumbered(table, self._rows, rows_shown)

    def _tables(self, batch: StreamBatch, first_tick: int) -> Iterator[pa.Table]:
        """What the pairs of the events that matter complete: by the end of each, then in the order of the queries."""
        if made := [*map(numbered, self._runs.tables(batch, self._events, first_tick))]:
            yield by_end(self.joined(made))

    def _point_tables(self, batch: StreamBatch, first_tick: int) -> Iterator[pa.Table]:
        """Points of the events that matter; where rows name events they are put with those of other templates."""
        points = self._points(self._part, first_tick)
        if not len(points.row):
            return
        found = self._of_queries(points, self._part)
        if batch.ids is not None:
            table = PointTable(self.pipeline)
            table.add(found)
            yield self._shown(batch, table.table())
            return
        pipeline = self.pipeline
        columns = self.key_slots.columns, pipeline.preparer.shown_columns, pipeline.is_time
        _, known = batch.computed.together.setdefault(columns, (self, PointTable(pipeline)))
        assert isinstance(known, PointTable), "nothing else is put there"
        known.add(found)

    def _points(self, batch: StreamBatch, first_tick: int) -> Points:
        """The points of what is run."""
        if self.ladders is None:
            return self._runs.points(batch, self._events, first_tick)
        found = self.ladders.points(batch, self._events, self._windows)
        self._inner.pairs.slots = self.pairing.slots
        self._runs.note_work()
        return found

    def _of_queries(self, points: Points, batch: StreamBatch) -> QueryPoints:
        """Points of what is run as those of the queries."""
        row, key = self.pairing.row_of[points.slot], self.pairing.key_of[points.slot]
        if self.classes is not None:
            at = points.row - batch.first_row if batch.rows is None else np.searchsorted(batch.rows, points.row)
            windows = self._windows_of(self.table)
            windows = np.full(self.table.room, self.pipeline.window) if windows is None else windows
            owns = self.pairing.asked.owns
            is_point = np.isin(np.arange(len(batch)), at)
            values = [batch.words(own, is_point.copy)[at] for own in owns]
            words = np.array(values, np.int64).reshape(len(owns), len(at))
            asking = self.pairing.asking(self.classes.loose.tests, words, self.table)
            of_class = ClassPoints(row, points.tick, points.start, np.arange(len(at)))
            which, row = self.classes.spread(of_class, windows, asking)
            points, key = points.take(which), key[which]
        return QueryPoints(self.table.numbers[row], key, points)

    def _feed(self, batch: StreamBatch) -> None:
        """Keep the events that results may show."""
        recent = self.pipeline.recent
        if recent.columns or batch.ids is not None:
            at = np.sort(self._events.groups.order)
            if isinstance(batch, SomeEvents):
                at, batch = batch.places[at], batch.outer
            row = batch.first_row + at if batch.rows is None else batch.rows[at]
            recent.feed(Grouped(at, at, at, row, row, row, at), batch)

    # --- queries that come and go -----------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether it has no query."""
        return not self.table.queries

    @property
    def numbers(self) -> tuple[int, ...]:
        """The queries whose results it gives, in the order of adding."""
        return tuple(sorted(self.table.numbers[self.table.is_there].tolist()))

    def add(self, numbers: Ints, constants: pa.Table) -> None:
        """Take in queries from the next batch on, with a column of constants for each parameter."""
        if self.is_empty:
            self.join()
        self._coming = np.append(self._coming, self.table.add(numbers, constants))

    def remove(self, number: int) -> Iterator[pa.Table]:
        """Let go of a query; nothing of it waits. The last one leaves the stream, too."""
        self.table.remove(number)
        if self.is_empty:
            self.stream.remove(self)
        yield from ()

    # --- keys that go -----------------------------------------------------------------------------

    def _take_changes(self, since: int) -> None:
        """Let queries come that were added, and let go of the runs of those that were removed.

        Those that come see the events from the tick ``since`` on.
        """
        came, self._coming = self._coming, np.zeros(0, np.int64)
        left = np.setdiff1d(self.table.release(), came)  # others went before they saw an event
        if np.any(stay := self.table.is_there[came]):
            self._take_in_classes(came[stay], since)
        if left.size and self.classes is not None:
            self.classes.leave(left)
            left = self.classes.table.release()
        if left.size:
            live = self.pairing.live()
            self._clear(live[np.isin(self.pairing.row_of[live], left)])
        if self.pairing.version != self.run_table.version:
            self._know_windows()
            self.pairing.refresh()
            self._know_ladders()

    def _loose(self) -> Loose | None:
        return Loose.of(self.template, self.pairing.asked.tests, (self._words.kind, self.table.kinds))

    def _take_in_classes(self, rows: Ints, since: int) -> None:
        """Let queries share their runs where it pays, which is decided when the first of them come."""
        if len(rows) == self.table.queries and not self.pairing.slots and self._finds_points:
            self.classes = Classes.that_pay(self._loose(), self.table)
            if self.classes is not None:
                self.set_up()
        if self.classes is not None:
            self.classes.take(rows, since)
            self.table.take_new()  # the index is over the classes

    def _sweep(self, now: int) -> None:
        """Let go of slots whose runs have all left the window."""
        live = self.pairing.live()
        if len(live):
            longest = self.pipeline.window
            windows = longest if self._windows is None else self._windows[self.pairing.row_of[live]]
            self._clear(live[self.pipeline.engine.newest()[live] < now - windows])

    def _clear(self, slots: Ints) -> None:
        if len(slots):
            self.pipeline.engine.clear(slots)
            self.pairing.free(slots)

    def is_silent(self, slots: Ints, now: int) -> Bools:  # noqa: ARG002  (slots that live say more)
        """Per key slot whether no query is live for it."""
        return ~np.isin(slots, self.pairing.key_of[self.pairing.live()])

    def clear(self, slots: Ints) -> None:
        """Keys are forgotten; no query is live for them."""
        self._runs.clear(slots)

    def outlives(self, ticks: int) -> bool:
        """Whether a query has a window that is longer; no user names the key of a query in CEL."""
        return self.template.plan.cel is None and self.pipeline.window > ticks

    def waits_in(self) -> Ints:
        """None: no result waits."""
        return np.zeros(0, np.int64)

    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:
        """The streams of some keys have ended: let go of the runs of all queries that are live for them."""
        live = self.pairing.live()
        self._clear(live[np.isin(self.pairing.key_of[live], slots)])
        self.clear(slots)
        yield from ()

    # --- what the stream side asks ----------------------------------------------------------------------------

    def join(self) -> None:
        """Take part in the batches from now on."""
        if not self.stream.schema.equals(self._known):
            self.set_up()  # types have become wider since
        self.stream.add(self)

    def widen(self, schema: pa.Schema) -> None:
        """Go on with wider types of columns."""
        names = [field for field in self._inner.schema if field.name.startswith(MARK)]
        wider = pa.schema([*schema, *names])
        self._known = schema
        self._inner._know(wider)
        self.pipeline.widen(wider)
        self._know_ladders()

    def done(self) -> None:
        """All queries on the stream are done with the batch."""
        if self.template.plan.implied_key is None:
            self.pipeline.progress.without_key = self.key_slots.without_key

    def pass_time(self, tick: int) -> Iterator[pa.Table]:  # noqa: ARG002  (nothing waits)
        """Nothing: no result waits for the end of a window."""
        yield from ()

    def finish(self) -> Iterator[pa.Table]:
        """Nothing: no result waits for the end of a window."""
        yield from ()

    def texts_held(self) -> Ints:
        """Codes of the texts that its runs hold."""
        return self.pipeline.texts_held()

    def recode_texts(self, codes: Ints) -> None:
        """Texts have got new codes, per code so far."""
        self.pipeline.recode_texts(codes)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return numbered(self.pipeline.nothing())

    def joined(self, tables: list[pa.Table]) -> pa.Table:
        """Tables of results as one, with the types that the columns have got by now."""
        return joined(tables, self.nothing().schema)

    # --- state ------------------------------------------------------------------------------------------------

    def save_side(self, scope: Scope) -> None:
        """Save its state."""
        self._take_changes(NEVER if self.stream.last_tick is None else self.stream.last_tick + 1)
        self._inner.last_tick = self.stream.last_tick
        save_query(self.pipeline, scope.sub("pipeline"))
        slots = self.pairing.slots
        scope.put("rows", self.table.to_state())
        scope.arrays |= {"slot_rows": self.pairing.row_of[:slots], "slot_keys": self.pairing.key_of[:slots]}
        scope.sub("runs", arrays=self._runs.arrays())
        if self.classes is not None:
            self.classes.save(scope.sub("classes"))

    def restore_side(self, scope: Scope) -> None:
        """Go on from what ``save_side`` saved."""
        self.table.restore(scope.table("rows"))
        if "classes" in scope.parts:
            loose = self._loose()
            self.classes = None if loose is None else Classes(loose, self.table)
            if self.classes is None:
                raise damaged_part("the classes of queries")
            self.classes.restore(scope.parts["classes"])
        self.set_up()
        rows = scope.array("slot_rows")
        self.pairing.take_slots(rows, scope.array("slot_keys", Range(rows.size)), max(self.key_slots.slots, 1))
        self._inner.pairs.slots = self.pairing.slots
        self._runs.restore(scope.parts["runs"].arrays)
        restore_query(self.pipeline, scope.parts["pipeline"])


