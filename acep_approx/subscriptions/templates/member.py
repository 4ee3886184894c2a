"""The queries of a template on a stream: each event is run for those that it matters to, by one engine.

A pair of a query and a key has a slot of its own in the engine, as a key of a single query has. So runs, lineage,
strategies and outputs are those of a single query, and the law is plain: a set of queries is the join of the events
with the table of constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope, damaged_part
from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.letters import LetterReader
from acep_approx.kernels.classes import ClassPoints
from acep_approx.matching.binding import bound, with_usable_key
from acep_approx.matching.choice import PLAIN, Shown, way
from acep_approx.matching.keyed_events import KeyedEvents
from acep_approx.matching.outputs.bind import Wide
from acep_approx.matching.outputs.kinds import KINDS
from acep_approx.matching.outputs.output import Points
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.shared_load import EngineShedder
from acep_approx.matching.stream_batch import SomeEvents, StreamBatch
from acep_approx.matching.stream_side import QuerySide, StreamSide
from acep_approx.query.parameters import MARK
from acep_approx.query.syntax import Attribute, Expression
from acep_approx.subscriptions.graph import Entry
from acep_approx.subscriptions.members import Budgeted, Level, Member, plan_within
from acep_approx.subscriptions.templates.classes import NEVER, Classes, Loose
from acep_approx.subscriptions.templates.pair_runs import PairRuns, PointTable, QueryPoints
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import Template, asks_parameter, with_key


class TemplateSide(QuerySide):
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
    bind : tuple of str or Wide
        As for ``Pipeline``.
    budget : Budgeted, optional
        What its engine shares with those of other queries.
    shown : Shown, optional
        As for ``Pipeline``.

    Attributes
    ----------
    classes : Classes or None
        Of the queries, where they share their runs.
    runs : PairRuns

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
        bind: tuple[str, ...] | Wide = (),
        budget: Budgeted | None = None,
        shown: Shown = PLAIN,
    ) -> None:
        self._shown = shown
        self.budget, self._known_as = budget, template.plan.known_as
        self._shedder: EngineShedder | None = None
        self.stream, self.template, self.table, self.output = stream, template, table, KINDS[output]
        self._columns_of, self._bind = columns_of, bind
        self._coming: Ints = np.zeros(0, np.int64)  # rows of queries that see events from the next batch on
        self.classes: Classes | None = None
        self.set_up()

    def set_up(self) -> None:
        """Begin anew, with the schema that the stream has now."""
        stream, columns_of = self.stream, self._columns_of
        self.known = stream.schema
        shows = way(self.template.plan, self.output).shows
        plan = bound(self.template.plan, stream.schema, stream.roles, columns_of or {}, shows)
        plan = with_usable_key(with_key(plan), stream.schema, stream.roles)
        self.template = replace(self.template, plan=plan)
        table = self.table if self.classes is None else self.classes.table
        self.runs = self._new_runs(table)
        self.key_slots, pipeline = self.runs.key_slots, self.runs.pipeline
        self.engine = pipeline.engine
        self._letters = LetterReader(self.runs.pairing.asked.literal)
        self.reads = tuple(name for name in pipeline.reads if not name.startswith(MARK))
        compared = pipeline.as_text, pipeline.compared, pipeline.in_order
        own = (frozenset(name for name in names if not name.startswith(MARK)) for names in compared)
        self.as_text, self.compared, self.in_order = own

    def _new_runs(self, table: QueryTable) -> PairRuns:
        """What runs the queries: inside the budget if there is one, unless it answers without partial matches."""
        how = self.stream, self.template, table, self.output, self._columns_of, self._bind, self._shown
        made = PairRuns(*how)
        if self.budget is None or made.ladders is not None:
            return made
        plan = made.pipeline.plan
        shedder = self.budget.load.shedder(plan, self._known_as, audits_beside=False, is_of_pairs=True)
        return made if shedder is None else PairRuns(*how, shedder)

    def take_part(self) -> None:
        """Let what runs the queries now have its part of the budget, by what their match points count for."""
        if self.budget is None:
            return
        load, runs, before = self.budget.load, self.runs, self._shedder
        self._shedder = runs.shedder
        if self._shedder is None:
            if before is not None:
                load.leave(before)
            return
        weights, table = self.budget.of(self.table.numbers), self.table
        if self.classes is not None:
            weights, table = self.classes.added(weights), self.classes.table
        there = weights[table.is_there]
        mean = float(there.mean()) if there.size else 1.0
        runs.weights = weights / mean if there.size and there.min() < there.max() else np.ones(1)
        runs.are_classes = self.classes is not None
        self._shedder.weigh_keys(np.ones(1))
        load.join(self._shedder, self.template.text, there if there.size else 1.0, before)

    def leave(self) -> None:
        """Take part in the batches no more."""
        self.stream.remove(self)
        if self.budget is not None and self._shedder is not None:
            self.budget.load.leave(self._shedder)

    def widen(self, schema: pa.Schema) -> None:
        """Go on with wider types of columns."""
        self.known = schema
        self.runs.widen(schema)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self.runs.nothing()

    # --- batches ----------------------------------------------------------------------------------------------

    def prepare(self, batch: StreamBatch) -> None:
        """Take from a batch what is asked of it, before any of its events is run."""
        self._take_changes(int(batch.ticks[0]))
        own = [one for one in self.engine.expressions if not asks_parameter(one)]
        self._part = batch = self._relevant(batch, own)
        self._events = KeyedEvents.of(batch, self.key_slots.columns, self._letters)
        self.runs.pairing.ask(self._events)
        for expression in own:  # what is wrong with it is told before any event is run
            batch.words(expression, partial(self._is_read, expression))

    def _is_read(self, expression: Expression) -> Bools:
        """Tell for each event of the last batch whether the engine reads the value of an expression."""
        return self._events.has_letters(self.engine.readers(expression))

    def _relevant(self, batch: StreamBatch, own: Sequence[Expression]) -> StreamBatch:
        """The events of keys that matter to a query, where few do: a look at one event of each key tells.

        Where it asks for columns alone, and keeps no event, it takes all: they are laid out once for all templates.
        ``own`` is what the engine asks of events.
        """
        pairing, recent = self.runs.pairing, self.runs.pipeline.recent
        keeps_none = batch.ids is None and not recent.columns and not self._letters.conditions
        if keeps_none and all(isinstance(one, Attribute) for one in (*pairing.asked.owns, *own)):
            return batch
        equal = pairing.index.equal
        if equal is None or not pairing.by_key or self.template.plan.counted != "nothing":
            return batch
        events = batch.by_key(self.key_slots.columns)
        wanted = pairing.wanted(events, [batch.words(test.own) for test, _ in equal])
        if 2 * np.diff(events.first)[wanted].sum() > len(batch):
            return batch
        some = SomeEvents(batch, events.some(wanted), self.runs.words)
        if self._letters.needs_type:
            some.know_types()
        return some

    def run(self, batch: StreamBatch) -> Iterator[pa.Table]:
        """Run a batch that was prepared; points whose rows name events are put with those of other templates.

        Values of columns that stand for events are looked up now, as the events are let go behind the batch.
        """
        runs, part, events, first_tick = self.runs, self._part, self._events, int(batch.ticks[0])
        runs.arrive(batch, part)
        if len(part):
            runs.feed(part, events)
            if not runs.finds_points:
                yield from runs.tables(part, events, first_tick)
            elif len((points := runs.points(part, events, first_tick)).row):
                found, pipeline = self._of_queries(points, part), runs.pipeline
                if batch.ids is not None or self._bind:
                    table = PointTable(runs)
                    table.add(found)
                    yield table.table()
                else:
                    columns = self.key_slots.columns, tuple(runs.nothing().column_names), pipeline.is_time
                    batch.computed.together.setdefault(columns, (self, PointTable(runs)))[1].add(found)
        runs.pipeline.progress.events += len(batch)
        if self.engine.shedding is not None and self.engine.shedding.logs:
            yield self.nothing()  # who takes the log must do so before slots are free
        runs.let_go(int(batch.ticks[-1]))

    def _of_queries(self, points: Points, batch: StreamBatch) -> QueryPoints:
        pairing = self.runs.pairing
        row, key = pairing.row_of[points.slot], pairing.key_of[points.slot]
        if self.classes is not None:
            at = points.row - batch.first_row if batch.rows is None else np.searchsorted(batch.rows, points.row)
            windows = self.runs.windows_of(self.table)
            windows = np.full(self.table.room, self.runs.pipeline.window) if windows is None else windows
            owns = pairing.asked.owns
            is_point = np.isin(np.arange(len(batch)), at)
            values = [batch.words(own, is_point.copy)[at] for own in owns]
            words = np.array(values, np.int64).reshape(len(owns), len(at))
            asking = pairing.asking(self.classes.loose.tests, words, self.table)
            of_class = ClassPoints(row, points.tick, points.start, np.arange(len(at)))
            which, row = self.classes.spread(of_class, windows, asking)
            points, key = points.take(which), key[which]
        return QueryPoints(self.table.numbers[row], key, points)

    def done(self) -> None:
        """All queries on the stream are done with the batch."""
        if self.template.plan.implied_key is None:
            self.runs.pipeline.progress.without_key = self.key_slots.without_key

    # --- queries that come and go -----------------------------------------------------------------------------

    def add(self, numbers: Ints, constants: pa.Table) -> None:
        """Take in queries from the next batch on, with a column of constants for each parameter."""
        self._coming = np.append(self._coming, self.table.add(numbers, constants))

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
            self.runs.let_queries_go(left)
        self.runs.refresh()
        if came.size or left.size or self._shedder is not self.runs.shedder:
            self.take_part()

    def _loose(self) -> Loose | None:
        return Loose.of(self.template, self.runs.pairing.asked.tests, (self.runs.words.kind, self.table.kinds))

    def _take_in_classes(self, rows: Ints, since: int) -> None:
        """Let queries share their runs where it pays, which is decided when the first of them come."""
        if len(rows) == self.table.queries and not self.runs.pairing.slots and self.runs.finds_points:
            self.classes = Classes.that_pay(self._loose(), self.table)
            if self.classes is not None:
                self.set_up()
        if self.classes is not None:
            self.classes.take(rows, since)
            self.table.take_new()  # the index is over the classes

    # --- keys that nothing needs any more -----------------------------------------------------------------

    def is_silent(self, slots: Ints, now: int) -> Bools:  # noqa: ARG002  (slots that live say more)
        """Per key slot whether no query is live for it."""
        return ~np.isin(slots, self.runs.pairing.key_of[self.runs.pairing.live()])

    def clear(self, slots: Ints) -> None:
        """Keys are forgotten; no query is live for them."""
        self.runs.forget_keys(slots)

    def outlives(self, ticks: int) -> bool:
        """Whether a query has a window that is longer; no user names the key of a query in CEL."""
        return self.template.plan.cel is None and self.runs.pipeline.window > ticks

    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:
        """The streams of some keys have ended; no result waits for that."""
        self.runs.end_keys(slots)
        return iter(())

    # --- state ------------------------------------------------------------------------------------------------

    def save(self, scope: Scope) -> None:
        """Save its state."""
        last_tick = self.stream.last_tick
        self._take_changes(NEVER if last_tick is None else last_tick + 1)
        scope.put("rows", self.table.to_state())
        self.runs.save(scope, last_tick)
        if self.classes is not None:
            self.classes.save(scope.sub("classes"))

    def restore(self, scope: Scope) -> None:
        """Go on from what ``save`` saved."""
        self.table.restore(scope.table("rows"))
        if "classes" in scope.parts:
            loose = self._loose()
            if loose is None:
                raise damaged_part("the classes of queries")
            self.classes = Classes(loose, self.table)
            self.classes.restore(scope.parts["classes"])
        self.set_up()
        self.take_part()
        self.runs.restore(scope)


class TemplateMember(Member):
    """Many queries of one template, which come and go.

    Parameters
    ----------
    level : Level
    entry : Entry
        Of the first of them; none of these takes part yet.
    columns_of : dict of str to tuple of str, optional
        As for ``TemplateSide``.
    """

    side: TemplateSide

    def __init__(self, level: Level, entry: Entry, columns_of: dict[str, tuple[str, ...]] | None) -> None:
        super().__init__(level)
        assert entry.shared is not None, "it is of a template"
        self.columns_of, self._table = columns_of, entry.shared.new_table()
        how = self._table, entry.output, columns_of, level.bind_of(entry), level.budget, level.shown_of(entry)
        template = replace(entry.shared.template, plan=plan_within(level.budget, entry))
        self.side = TemplateSide(level.side, template, *how)

    @property
    def numbers(self) -> Ints:
        """The queries whose results it gives."""
        return self._table.numbers[self._table.is_there]

    @property
    def is_empty(self) -> bool:
        """Whether it has no query any more."""
        return not self._table.queries

    def take(self, entry: Entry) -> Ints:
        """Let the queries of an entry take part from the next batch on; gives their numbers."""
        assert entry.shared is not None, "it is of this template"
        numbers, constants = entry.shared.take()
        if self.is_empty:
            self.side.join()
        self.side.add(numbers, constants)
        self.take_part()
        return numbers

    def take_part(self) -> None:
        """Let its engine have a part of the budget, if there is one."""
        self.side.take_part()

    def remove(self, number: int) -> Iterator[pa.Table]:
        """Let go of a query; nothing of it waits. The last one leaves the stream, too."""
        self._table.remove(number)
        if self.is_empty:
            self.side.leave()
        return iter(())

    @property
    def pipeline(self) -> Pipeline:
        """What the pairs of events and queries go through."""
        return self.side.runs.pipeline

    def whose(self, slots: Ints) -> Ints:
        """The numbers of the queries of some key slots; -1 where several share them."""
        return self.side.runs.whose(slots)

    def constants(self, numbers: Ints) -> pa.Table:
        """The constants of some queries."""
        return self._table.of(numbers)
