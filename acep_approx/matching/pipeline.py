"""The query side: what one query does with the batches of a stream, from letters through its engine to results.

What queries share, and what is done once per batch, is the stream side (``StreamSide``). Which engine and which output
a query gets is said in ``choice``, how much of a batch is run at a time in ``pieces``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.determinize import MAX_DETERMINISED
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.events.columns import missing_column
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.matching.binding import bound, has_times, with_times
from acep_approx.matching.choice import PLAIN, Parts, Shown, Way, planned, way
from acep_approx.matching.fitting import check_columns, columns_as_text, columns_in_order, compared_columns, with_text
from acep_approx.matching.outputs.bind import BoundEvents, Wide
from acep_approx.matching.outputs.kinds import KINDS
from acep_approx.matching.outputs.output import RawStamps, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import joined, results_in
from acep_approx.matching.pieces import Pieces
from acep_approx.matching.prepare import Preparer
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.stream_side import QuerySide, StreamSide
from acep_approx.planning.planner import MERGING, Plan
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Expression
from acep_approx.ranges import COUNT, Range, check_arrays, number_in

BeforeBatch = Callable[["Pipeline", EventBatch], bool]
"""Is called with each batch before it is run, as long as it returns true."""


class Pipeline(QuerySide):
    """Runs batches of a stream through the engine that a plan and an output ask for.

    Parameters
    ----------
    stream : StreamSide
        What it takes its batches from; it takes part in all that come from now on.
    plan : Plan
    output : str
    state_cap : int
        Most determinised states for listing and counting.
    merging : frozenset of str
        Which lossless mergings the runs engine uses.
    shedding : LoadShedder, optional
        How the runs engine stays inside a load budget.
    bind : tuple of str or Wide
        Columns of the events that stand for them in the results; none for row numbers.
    is_raw : bool, default False
        Whether results have key slots, ticks and row numbers in the places of what they stand for.
    is_stamped : bool, default False
        Whether raw results show keys and times all the same.
    joins : bool, default True
        Whether it takes part in the batches at once; if not, when ``join`` is called.
    shown : Shown, optional
        What tables of matches show beside what the query asks for.
    columns_of : dict of str to tuple of str, optional
        The columns of the events of each stream that a query in CEL reads. Default: those that there are now.
    made_by : Way, optional
        How the output is made. Default: as ``choice`` has it.
    may_search : bool, default False
        Whether match points may be found backwards; then keys cannot be copied.

    Attributes
    ----------
    reads : tuple of str
        Columns that must be in each batch.
    columns : tuple of str
        Those of them that must be read: none that is derived.
    named : tuple of str
        Columns that the query names. Without one of them it is refused, also where no result depends on that one.
    schema : pyarrow.Schema
        Of the events, with the types that they have for this query.
    window : int
        In ticks, or in events for a count window.
    every : int
        The length of EVERY in ticks, 0 where the query has none.
    progress : RunProgress
        Numbers of events seen so far.
    columns_of : dict of str to tuple of str, or None
        See above; None where the query is not in CEL.
    engine : Engine
    results : Output
    preparer : Preparer
        Tells which letters hold on events.
    recent : Recent
        The events that results may still show.

    Raises
    ------
    DataError, QueryError
        A column is missing or has the wrong type.
    """

    lookout: BeforeBatch | None = None
    lost_from: Callable[[Ints], Ints] | None = None
    """Gives for key slots the latest start of a run that was shed, where somebody must know that as long as it could
    have lived."""

    def __init__(
        self,
        stream: StreamSide,
        plan: Plan,
        output: str,
        state_cap: int = MAX_DETERMINISED,
        merging: frozenset[str] = frozenset(MERGING),
        shedding: LoadShedder | None = None,
        bind: tuple[str, ...] | Wide = (),
        *,
        is_raw: bool = False,
        is_stamped: bool = False,
        joins: bool = True,
        shown: Shown = PLAIN,
        columns_of: dict[str, tuple[str, ...]] | None = None,
        made_by: Way | None = None,
        may_search: bool = False,
    ) -> None:
        self.stream = stream
        self.output = KINDS[output]
        self.plan = planned(plan, self.output)
        self.roles = stream.roles
        self.as_text = columns_as_text(self.plan.query, stream.roles)
        self.in_order = columns_in_order(self.plan.query, stream.roles)
        self.progress = RunProgress()
        self.columns_of = columns_of
        self._state_cap = state_cap
        self._merging = merging
        self._shedding = shedding
        self._bind = bind
        self._is_raw, self._is_stamped = is_raw, is_stamped or not is_raw
        self._shown = shown
        self._made_by, self._may_search = made_by, may_search
        self._kept_from: tuple[int, Ints] | None = None
        self._seconds_before = 0.0  # what preparing the batch took, for each event
        self.set_up()
        if joins:
            stream.add(self)

    def set_up(self) -> None:
        """Make an engine and what stands around it for events of the columns that the stream has now."""
        self.known = self.stream.schema
        self._nothing: pa.Table | None = None
        made_by = self._made_by or way(self.plan, self.output)
        if self.plan.cel is not None:
            if self.columns_of is None:
                self.columns_of = dict.fromkeys(self.plan.reads, tuple(self.known.names))
            self.plan = bound(self.plan, self.known, self.roles, self.columns_of, made_by.shows)
            self.as_text = columns_as_text(self.plan.query, self.roles)
            self.in_order = columns_in_order(self.plan.query, self.roles)
        else:
            self.plan = with_times(self.plan, with_text(self.known, self.as_text), self.roles)
        plan, self.is_time = self.plan, has_times(self.plan, self.known, self.roles)
        self.key_slots = self.stream.slots_of(tuple(map(self.roles.column, plan.keys)))
        self.schema = with_text(self.known, self.as_text)
        named = check_columns(plan.query, self.schema, self.roles)
        self.named = tuple(name for name in named if name not in self.stream.derived)
        unit = "us" if self.is_time else None
        self.window, self.every = plan.window_ticks(unit), plan.every_ticks(unit)
        self.preparer = Preparer(plan, self.key_slots)
        derived = self.stream.derived
        self._events = BoundEvents(
            self._bind, self.schema, self.roles, plan.query, is_time=self.is_time, derived=derived
        )
        stamps = Stamps if self._is_stamped else RawStamps
        self.stamps = stamps(self.preparer, self.schema, self._events, is_time=self.is_time)
        parts = Parts(
            plan=plan,
            stream=self.stream,
            schema=self.schema,
            window=self.window,
            every=self.every,
            spans=plan.negation_ticks(unit),
            preparer=self.preparer,
            events=self._events,
            stamps=self.stamps,
            recent=Recent(self.schema, ()),
            state_cap=self._state_cap,
            merging=self._merging,
            shedding=self._shedding,
            shown=self._shown,
            may_search=self._may_search,
        )
        self.results = made_by.make(parts)
        self.engine, self.recent = self.results.engine, parts.recent
        if self._is_raw:
            self.results.go_by_key()
        self.reads = self._columns()
        self.columns = tuple(name for name in self.reads if name not in self.stream.derived)
        keys = self.preparer.key_columns
        beside = () if plan.registers is None else (name for name in self.reads if name not in keys)
        self.compared = compared_columns(plan.query, self.roles).union(beside)  # of the runs engine all but keys
        self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(max(self.key_slots.slots, 1))
        self.pieces = Pieces(self.engine, self.progress, may_grow=made_by.may_grow)

    def widen(self, schema: pa.Schema) -> None:
        """Go on with wider types of columns: programs are made anew, and what is held is converted.

        Raises
        ------
        pyarrow.ArrowInvalid
            What is held cannot be held exactly; then all is as it was.
        """
        schema = with_text(schema, self.as_text)
        check_columns(self.plan.query, schema, self.roles)
        recent = self.recent.widened(schema)
        self.results.know(schema)
        self.engine.widen(EventColumns(schema, self.roles.column, self.stream.texts))
        self.recent.data = recent
        self._events.know(schema)
        self.stamps.know(schema)
        self.schema = schema
        self._nothing = None

    def _columns(self) -> tuple[str, ...]:
        readers = self.preparer.letters, self.preparer.since_start.reader
        asked = (*readers[0].conditions, *readers[1].conditions, *self.engine.expressions)
        read = [node.name for one in asked for node in walk(one) if isinstance(node, Attribute)]
        names = [self.roles.time, *([self.roles.start] if self.plan.cel is not None and self.roles.start else [])]
        names += [*self.preparer.key_columns, *map(self.roles.column, read)]
        names += [*self.recent.columns, *self._events.names]
        if any(reader.needs_type for reader in readers):
            names.append(self.roles.column("type"))
        for name in names:
            if name not in self.schema.names:
                raise missing_column(name, self.schema.names)
        asked_for = dict.fromkeys([*names, *self._shown.reads])
        return tuple(name for name in asked_for if name not in self.stream.left_out)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        if self._nothing is None:
            self._nothing = self.results.nothing()
        return self._nothing

    def joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Tables of results as one, with the types that the columns have got by now."""
        return joined(tables, self.nothing().schema) if tables else self.nothing()

    def save(self, scope: Scope) -> None:
        """Save where it stands: its classes, the engine, the events that results may still show, and what waits."""
        preparer, recent = self.preparer, self.recent
        slots = self.key_slots.slots
        counters = preparer.counters[: slots * preparer.counts_events]
        scope.head["classes"] = preparer.classes
        scope.arrays |= {"counters": counters, "began": preparer.began[:slots]}
        preparer.since_start.save(scope, slots)
        kept = {"ids": recent.ids, "ticks": recent.ticks, "rows": recent.rows}
        scope.sub("recent", arrays=kept).put("data", recent.data)
        floors = self.floors_after(self.stream.last_tick or 0)
        scope.sub("engine", self.engine.header(), self.engine.arrays(floors))
        numbers = {"progress": vars(self.progress), "piece": self.pieces.size}
        scope.sub("output", numbers, self.results.arrays())

    def restore(self, scope: Scope) -> None:
        """Go on from what ``save`` saved, before anything was run."""
        preparer, recent = self.preparer, scope.parts["recent"]
        engine, output = scope.parts["engine"], scope.parts["output"]
        for mask in scope.head["classes"][1:]:
            preparer.add_class(number_in("classes", mask, 0, 1 << len(self.plan.letters)))
        slots = self.key_slots.slots
        counters, began = scope.arrays["counters"], scope.arrays["began"]
        check_arrays(scope.arrays, {"counters": Range(min(counters.size, slots), 0, COUNT)})
        preparer.began = began
        check_arrays(scope.arrays, {"began": Range(min(began.size, slots) * preparer.is_count, 0, COUNT)})
        preparer.set_counters(counters, room=max(slots, 1))
        preparer.since_start.restore(scope)
        ids, ticks, rows = (recent.arrays[name] for name in ("ids", "ticks", "rows"))
        self.recent.restore(ids, rows, ticks, recent.table("data"))
        self.engine.restore(engine.head, engine.arrays, preparer.classes)
        progress = {name: number_in(name, number, 0, COUNT) for name, number in output.head["progress"].items()}
        vars(self.progress).update(vars(RunProgress(**progress)))
        self.pieces.size = number_in("piece", output.head["piece"], 1, COUNT)
        self.results.restore(output.arrays)

    def prepare(self, batch: StreamBatch) -> None:
        """Take from a batch what this query asks of it: key slots, letters, words."""
        if self.lookout is not None and not self.lookout(self, batch):
            self.lookout = None
        begun, known = time.perf_counter(), len(self.preparer.classes)
        self.preparer.read(batch)
        if len(self.preparer.classes) > known:
            self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(self.key_slots.slots)
        for expression in self.engine.expressions:
            batch.words(expression, partial(self._is_read, batch, expression))
        self._seconds_before = (time.perf_counter() - begun) / max(len(batch), 1)

    def _is_read(self, batch: StreamBatch, expression: Expression) -> Bools:
        classes = batch.here(batch.computed.classes[self.preparer])
        return self.engine.is_read(expression)[classes] & (batch.slots(self.preparer.key_columns) >= 0)

    def run(self, batch: StreamBatch) -> Iterator[pa.Table]:
        """Run a batch that was prepared; results come as they are made, and must all be taken before the next batch."""
        for piece in self.pieces.of(batch, self._seconds_before):
            yield from self.run_piece(piece)
        if self.engine.shedding is not None and self.engine.shedding.logs:
            yield self.nothing()  # who takes the log must do so before keys are forgotten

    def run_piece(self, piece: StreamBatch) -> Iterator[pa.Table]:
        """Run a piece of a batch that was prepared as a whole."""
        shedder = self.engine.load_shedder
        events = self.preparer.grouped(piece, keeps_order=shedder is not None and shedder.keeps_order)
        self.progress.events += len(piece)
        self.progress.relevant += len(events.row)
        if shedder is not None:
            shedder.begin_piece(piece, events)
        yield from self.results.run(events, piece, self._floors(piece))
        self.engine.report(self.progress)

    @property
    def sees_all(self) -> bool:
        """Whether each event counts, also those that no letter holds on."""
        return self.preparer.counts_events or self.results.tick_places is not None

    def pass_time(self, tick: int) -> Iterator[pa.Table]:
        """What waited for windows that end before ``tick``; nothing earlier comes any more."""
        return self.results.pass_time(tick)

    @property
    def waits(self) -> tuple[int, int]:
        """How long after its first and after its last event a match waits at most."""
        finder = self.results.finder
        return self.window, self.window if finder is None else finder.waits_for

    @property
    def waits_until(self) -> int | None:
        """The tick that ``pass_time`` must be given for the next match that waits; None where none does."""
        first, idle, finder = self.results.waits_until, self.key_slots.idle, self.results.finder
        ends = None if idle is None or finder is None else idle.first_end(finder.waits_in)
        return earliest((first, ends))

    def finish(self) -> Iterator[pa.Table]:
        """What was still waiting for the end of its window; if more events may come, only what they cannot change."""
        last_tick = self.stream.last_tick
        if self.key_slots.idle is not None and last_tick is not None:
            self.progress.keys_dropped = self.key_slots.idle.dropped_by(last_tick)
        if self.stream.ends:
            yield from self.results.finish()
            return
        if last_tick is not None:
            yield from self.results.pass_time(last_tick)
        self.stream.unclosed += sum(map(results_in, self.results.finish()))

    def done(self) -> None:
        """All queries on the stream are done with the batch."""
        if self.plan.implied_key is None:  # what has no value there is in no result, as nothing equals NULL
            self.progress.without_key = self.key_slots.without_key
        self.progress.keys = max(len(self.key_slots.keys), 1)
        if self.key_slots.idle is not None:
            self.progress.keys_dropped = self.key_slots.idle.dropped

    def _floors(self, batch: EventBatch) -> Ints:
        """Starts from which on entries may still be asked for while this batch is listed; per slot or for all."""
        if not self.preparer.is_count:
            first = int(batch.ticks[0])
            return np.array([(first if self._kept_from is None else min(first, self._kept_from[0])) - self.window])
        if self._kept_from is not None:
            return self._floors_of(self._kept_from[1], 1)
        return self._floors_of(self.preparer.counters, len(batch))

    def floors_after(self, tick: int) -> Ints:
        """Starts from which on entries may be asked for once the events up to ``tick`` are done; as for ``_floors``."""
        return self._floors_of(self.preparer.counters, 1) if self.preparer.is_count else np.array([tick - self.window])

    def _floors_of(self, counters: Ints, events: int) -> Ints:
        """Per slot, in windows of events: where a window begins that ends so many events before a count."""
        floors = np.zeros(self.engine.slots, np.int64)
        known = min(self.engine.slots, counters.size)
        floors[:known] = counters[:known] - events - self.window
        return floors

    def keep_from(self, tick: int, counters: Ints) -> None:
        """Forget nothing that a run may point to which lived at ``tick``, or once so many events had come per slot.

        From the first call on events are only forgotten by ``recent.drop_before`` and ``forget_all_but``.
        """
        self._kept_from = tick, counters
        self.results.forgets = False

    def forget_all_but(self, others: Ints) -> Ints:
        """In windows of events: let go of events but those that something points to, and ``others``; gives these."""
        floors = self._floors_of(self._kept_from[1] if self._kept_from else self.preparer.counters, 1)
        reached = np.concatenate((self.results.reachable(floors), others))
        self.recent.keep_only(reached)
        return reached

    # --- what the stream side asks --------------------------------------------------------------------------

    def is_silent(self, slots: Ints, now: int) -> Bools:
        """Per key slot whether its last event has left the window at ``now``, and no result of it is to come."""
        if self.preparer.is_count or self.preparer.since_start:  # a key that is forgotten would start once more
            return np.zeros(len(slots), np.bool_)
        newest = self.results.newest()[slots]
        if self.lost_from is not None:
            newest = np.maximum(newest, self.lost_from(slots))
        silent = newest < now - self.window
        return silent & ~np.isin(slots, self.results.slots())

    def clear(self, slots: Ints) -> None:
        """Forget some key slots, whose keys are forgotten."""
        self.results.clear(slots)
        self.preparer.since_start.clear(slots)
        self.engine.report(self.progress)

    def outlives(self, ticks: int) -> bool:
        """Whether an event can play a role when no event of its key has come for longer than so many ticks.

        In windows of events it can, and where matches begin at the start of a partition. No user names the key of a
        query in CEL, so that its stream has no end either.
        """
        preparer = self.preparer
        lasts = preparer.is_count or bool(preparer.since_start) or max(self.window, self.every) > ticks
        return self.plan.cel is None and lasts

    def waits_in(self) -> Ints:
        """The key slots of results that wait."""
        return self.results.slots()

    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:
        """The streams of some keys have ended: what waits for them comes, and their slots are those of new ones."""
        yield from self.results.end_keys(slots)
        self.clear(slots)
        self.preparer.end_keys(slots, self.window)
