"""The query side: what one query does with the batches of a stream, from letters through its engine to results.

What queries share, and what is done once per batch, is the stream side (``StreamSide``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.determinize import MAX_DETERMINISED
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import leaves
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.engines.runs.options import NO_OPTIONS, RunOptions
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.tables import RunTables
from acep_approx.errors import DataError
from acep_approx.events.columns import missing_column
from acep_approx.events.stream import EventBatch
from acep_approx.matching.binding import bound, has_times
from acep_approx.matching.fitting import check_columns, columns_as_text, compared_columns, with_text
from acep_approx.matching.outputs.bind import BoundEvents
from acep_approx.matching.outputs.completed import Finder
from acep_approx.matching.outputs.of_algebra import AlgebraCounts, AlgebraResults
from acep_approx.matching.outputs.of_cells import CellCounts, CellListing, CellPoints
from acep_approx.matching.outputs.of_runs import RunCounts, RunListing, RunOutput, RunPoints
from acep_approx.matching.outputs.output import Output, RawStamps, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.registers import MachineMatches
from acep_approx.matching.outputs.returns import ReturnColumns
from acep_approx.matching.outputs.tables import BindingColumns, joined
from acep_approx.matching.outputs.verify import Verifier
from acep_approx.matching.prepare import Preparer
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.stream_side import StreamSide
from acep_approx.matching.text_order import columns_in_order
from acep_approx.matching.tracing.compressed import Compressed
from acep_approx.matching.tracing.compressing import RunShared, SharedRuns, compressed_plan
from acep_approx.matching.tracing.partial import RunPartial, TracedRuns, partial_plan
from acep_approx.matching.tracing.traced import Hindsight, RunTrace, Traced, traced_plan
from acep_approx.planning.planner import MERGING, Plan
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Expression
from acep_approx.ranges import COUNT, number_in

OutputKind = Literal["matches", "points", "counts", "partial", "compressed", "trace"]

PIECE, LEAST_PIECE = 1 << 14, 64
"""Most and fewest events that the runs engine takes at a time, at first and under a load budget."""
LARGE_PIECE = 1 << 17
"""Most events at a time where they make few links: there what is done once per piece takes a fifth of the time. Only
once a piece of ``PIECE`` events was run: fewer say too little of what is to come, and do not end it either."""
MOST_PER_EVENT = 1.5
"""Links per event that are few. Where there are more, there are more matches, too, and listing many at once is slow."""
LINKS_AT_ONCE = 1 << 20
"""Links that so many events should make: the lineage of a piece must fit into memory."""


class Pipeline:
    """Runs batches of a stream through the engine that a plan and an output ask for.

    Parameters
    ----------
    stream : StreamSide
        What it takes its batches from; it takes part in all that come from now on.
    plan : Plan
    output : {"matches", "points", "counts", "partial", "compressed", "trace"}
    state_cap : int
        Most determinised states for listing and counting.
    merging : frozenset of str
        Which lossless mergings the runs engine uses.
    shedding : LoadShedder, optional
        How the runs engine stays inside a load budget.
    bind : tuple of str
        Columns of the events that stand for them in the results; none for row numbers.
    is_raw : bool, default False
        Whether results have key slots, ticks and row numbers in the places of what they stand for.
    joins : bool, default True
        Whether it takes part in the batches at once; if not, when ``join`` is called.

    Attributes
    ----------
    reads : tuple of str
        Columns that must be in each batch.
    named : tuple of str
        Columns that the query names. Without one of them it is refused, also where no result depends on that one.
    schema : pyarrow.Schema
        Of the events, with the types that they have for this query.
    window : int
        In ticks, or in events for a count window.
    progress : RunProgress
        Numbers of events seen so far.
    columns_of : dict of str to tuple of str, or None
        The columns of the events of each stream that a query in CEL reads: those that there were when it was set up.

    Raises
    ------
    DataError, QueryError
        A column is missing or has the wrong type.
    """

    columns_of: dict[str, tuple[str, ...]] | None = None
    listing: type[RunListing] = RunListing
    """What lists the matches of the runs engine."""

    def __init__(
        self,
        stream: StreamSide,
        plan: Plan,
        output: OutputKind,
        state_cap: int = MAX_DETERMINISED,
        merging: frozenset[str] = frozenset(MERGING),
        shedding: LoadShedder | None = None,
        bind: tuple[str, ...] = (),
        *,
        is_raw: bool = False,
        joins: bool = True,
    ) -> None:
        if output == "partial":
            plan = partial_plan(plan)
        elif output == "compressed":
            plan = compressed_plan(plan)
        elif output == "trace":
            plan = traced_plan(plan)
        self.stream = stream
        self.plan = plan
        self.output = output
        self.roles = stream.roles
        self.as_text = columns_as_text(plan.query, stream.roles)
        self.in_order = columns_in_order(plan.query, stream.roles)
        self.progress = RunProgress()
        self._state_cap = state_cap
        self._merging = merging
        self._shedding = shedding
        self._bind = bind
        self._is_raw = is_raw
        self._kept_from: tuple[int, Ints] | None = None
        self.set_up()
        if joins:
            stream.add(self)

    def join(self) -> None:
        """Take part in the batches from now on, if it does not yet."""
        if not self.stream.schema.equals(self._known):
            self.set_up()  # types have become wider since
        self.stream.add(self)

    def set_up(self) -> None:
        """Make an engine and what stands around it for events of the columns that the stream has now."""
        output = self.output
        self._known = self.stream.schema
        self._nothing: pa.Table | None = None
        if self.plan.cel is not None:
            if self.columns_of is None:
                self.columns_of = dict.fromkeys(self.plan.reads, tuple(self._known.names))
            self.plan = bound(self.plan, self._known, self.roles, self.columns_of, output)
            self.as_text = columns_as_text(self.plan.query, self.roles)
            self.in_order = columns_in_order(self.plan.query, self.roles)
        plan, is_time = self.plan, has_times(self.plan, self._known, self.roles)
        self.key_slots = self.stream.slots_of(tuple(map(self.roles.column, plan.keys)))
        schema = with_text(self._known, self.as_text)
        named = check_columns(plan.query, schema, self.roles)
        self.named = tuple(name for name in named if name not in self.stream.derived)
        self.schema = schema
        self.window = plan.window_ticks("us" if is_time else None)
        self.preparer = Preparer(plan, self.key_slots)
        self.recent = Recent(schema, ())
        self.engine: Cells | ArcLogs | Runs
        self.results: Output
        self._events = BoundEvents(self._bind, schema, self.roles)
        self.is_time = is_time
        self._stamps = (RawStamps if self._is_raw else Stamps)(self.preparer, schema, self._events, is_time=is_time)
        if plan.registers is not None:
            self.engine, self.results = self._runs(plan.registers)
            if plan.cel is not None:
                self.results.roles = self.roles
            if self._is_raw:
                self.results.go_by_key()
        elif output == "points":
            self.engine = Cells(plan.automaton, self.window)
            self.results = CellPoints(self.engine, self._stamps)
        elif output == "counts":
            self.engine = ArcLogs(plan.automaton, self.window, cap=self._state_cap)
            self.results = CellCounts(self.engine, self._stamps)
        else:
            self.engine = ArcLogs(plan.automaton, self.window, cap=self._state_cap)
            self.results = self._listing(self.engine)
        self.reads = self._columns()
        self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(max(self.key_slots.slots, 1))
        self._piece = LEAST_PIECE
        # a load budget is planned anew for each piece, and traces are kept for each
        self._may_grow = self._shedding is None and output in ("matches", "points", "counts", "partial")

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
        if isinstance(self.engine, Runs):
            if isinstance(self.results, RunOutput):
                self.results.finder.machine.check(schema)
            self.engine.widen(EventColumns(schema, self.roles.column, self.stream.texts))
        self.recent.data = recent
        self._events.know(schema)
        self._stamps.know(schema)
        self.schema = schema
        self._nothing = None

    def _runs(self, registers: RegisterAutomaton) -> tuple[Runs, RunOutput]:
        """The runs engine with its way of putting results out."""
        output, shedding, merging, stamps = self.output, self._shedding, self._merging, self._stamps
        columns = EventColumns(self.schema, self.roles.column, self.stream.texts)
        is_algebra = self.plan.cel is not None
        lists = output == "trace" if is_algebra else output != "points" or registers.needs_filter
        is_count = self.preparer.is_count
        if output == "partial":
            merging = frozenset()
        if shedding is not None:
            shedding.arena.keys_now = lambda: self.preparer.keys
            shedding.begin_stream(self.schema, self.roles)
        kind = {"partial": TracedRuns, "compressed": SharedRuns, "trace": Traced}.get(output, Runs)
        engine = kind(
            registers,
            columns,
            self.window,
            merging,
            keeps_lineage=lists,
            is_count=is_count,
            shedding=shedding,
            options=self._options(),
        )
        bindings = self._bindings() if not is_algebra and output in ("matches", "partial", "compressed") else None
        wanted = bindings.needed if bindings else self._events.names
        conditions = [*registers.filters, *(c for some in registers.negations.values() for c in some)]
        named = [self.roles.column(leaf.name) for c in conditions for leaf in leaves(c.expression) if leaf.name]
        machine = MachineMatches(registers, self.roles, self.schema)
        self.recent = Recent(self.schema, tuple(dict.fromkeys([*wanted, *named, *machine.needed])))
        finder = Finder(registers, engine, Verifier(self.roles, self.recent), machine)
        if bindings is not None and isinstance(engine, TracedRuns):
            return engine, RunPartial(engine, finder, stamps, self.recent, bindings)
        if bindings is not None and isinstance(engine, SharedRuns):
            return engine, RunShared(engine, finder, stamps, self.recent, bindings)
        if isinstance(engine, Traced):
            return engine, RunTrace(engine, finder, stamps, self.recent)
        if bindings is not None:
            return engine, self.listing(engine, finder, stamps, self.recent, bindings)
        if is_algebra and output == "matches":
            return engine, AlgebraResults(engine, finder, stamps, self.recent)
        counts = AlgebraCounts if is_algebra else RunCounts
        return engine, (RunPoints if output == "points" else counts)(engine, finder, stamps, self.recent)

    def _options(self) -> RunOptions:
        """What the runs engine is asked for beside its automaton."""
        functions = self.plan.query.functions
        if self.plan.cel is not None and self.output not in ("points", "trace"):
            return RunOptions(counts_merged=True)
        return RunOptions(functions={function.name: function for function in functions}) if functions else NO_OPTIONS

    def _listing(self, engine: ArcLogs) -> CellListing:
        bindings = self._bindings()
        self.recent = Recent(self.schema, bindings.needed)
        return CellListing(engine, self._stamps, bindings, self.recent)

    def _bindings(self) -> BindingColumns:
        query = self.plan.query
        returns = ReturnColumns(() if self._is_raw else query.outputs, self.roles)
        taken = set(self.preparer.key_columns) & set(self.plan.automaton.variables)
        if taken and not returns:
            raise DataError(
                f"{min(taken)!r} is a variable and a key column: the result would have two columns of that name",
                code="ACEP-D043",
                hint="choose another name for the variable",
            )
        return BindingColumns(self.plan.automaton, returns, self._events, is_regex=query.is_regex)

    @property
    def compared(self) -> frozenset[str]:
        """Columns whose values are compared otherwise than as keys; of the runs engine all but keys."""
        keys = self.preparer.key_columns
        beside = () if self.plan.registers is None else (name for name in self.reads if name not in keys)
        return compared_columns(self.plan.query, self.roles).union(beside)

    def _columns(self) -> tuple[str, ...]:
        reader = self.preparer.letters
        read = [a.name for c in reader.conditions for a in walk(c) if isinstance(a, Attribute)]
        if isinstance(self.engine, Runs):
            read += [a.name for e in self.engine.columns.expressions for a in walk(e) if isinstance(a, Attribute)]
        names = [self.roles.time, *([self.roles.start] if self.plan.cel is not None and self.roles.start else [])]
        names += [*self.preparer.key_columns, *map(self.roles.column, read)]
        names += [*self.recent.columns, *self._events.names]
        if reader.needs_type:
            names.append(self.roles.column("type"))
        for name in names:
            if name not in self.schema.names:
                raise missing_column(name, self.schema.names)
        return tuple(dict.fromkeys(names))

    def give_up_after(self, steps: int) -> None:
        """Let ``run`` raise ``run_outputs.TooManyStepsError`` when the runs engine has taken so many run-steps."""
        if isinstance(self.results, RunOutput):
            self.results.engine.limit = steps
            self.results.gives_up = True

    def look_back_after(self, events: int) -> None:
        """With the output "trace": look at runs whose windows have closed whenever so many links or events are kept."""
        assert isinstance(self.results, RunTrace), "another output was asked for"
        self.results.chunk = events

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        if self._nothing is None:
            self._nothing = self.results.nothing()
        return self._nothing

    def joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Tables of results as one, with the types that the columns have got by now."""
        return joined(tables, self.nothing().schema) if tables else self.nothing()

    def compressed(self, hits: pa.Table) -> Compressed:
        """With the output "compressed": what was found so far, ``hits`` being all tables of results."""
        assert isinstance(self.results, RunShared), "another output was asked for"
        return self.results.compressed(hits)

    def hindsight(self) -> list[Hindsight]:
        """With the output "trace": what became known since the last call."""
        assert isinstance(self.results, RunTrace), "another output was asked for"
        return self.results.take()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the events that must be read; those that are derived are not among them."""
        return tuple(name for name in self.reads if name not in self.stream.derived)

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays: its numbers, and how many events are run at a time."""
        return {"progress": vars(self.progress), "piece": self._piece}

    def arrays(self) -> dict[str, Ints]:
        """The state of what is not in the engine, as arrays."""
        return self.results.arrays() if isinstance(self.results, RunOutput) else {}

    def restore(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Take over what ``header`` and ``arrays`` gave."""
        numbers = {name: number_in(name, number, 0, COUNT) for name, number in header["progress"].items()}
        self.progress = RunProgress(**numbers)
        self._piece = number_in("piece", header["piece"], 1, COUNT)
        if isinstance(self.results, RunOutput):
            self.results.restore(arrays)

    def prepare(self, batch: StreamBatch) -> None:
        """Take from a batch what this query asks of it: key slots, letters, words."""
        begun, known = time.perf_counter(), len(self.preparer.classes)
        self.preparer.read(batch)
        if len(self.preparer.classes) > known:
            self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(self.key_slots.slots)
        if isinstance(self.engine, Runs):
            for expression in self.engine.columns.expressions:
                batch.words(expression, partial(self._is_read, batch, self.engine.tables, expression))
        self._seconds_before = (time.perf_counter() - begun) / max(len(batch), 1)

    def _is_read(self, batch: StreamBatch, tables: RunTables, expression: Expression) -> Bools:
        """Tell for each event of a batch whether the runs engine reads the value of an expression."""
        classes = batch.here(batch.computed.classes[self.preparer])
        return tables.is_read(expression)[classes] & (batch.slots(self.preparer.key_columns) >= 0)

    def run(self, batch: StreamBatch) -> Iterator[pa.Table]:
        """Run a batch that was prepared; results come as they are made, and must all be taken before the next batch."""
        if not isinstance(self.engine, Runs):
            yield from self._run(batch)
            return
        first, progress = 0, self.progress
        self.engine.load_shedder.begin_batch(len(batch))
        while first < len(batch):
            most = min(self._piece, self.engine.load_shedder.most_events)
            piece, made, begun = batch.piece(first, most), progress.made, time.perf_counter()
            yield from self._run(piece)
            first += len(piece)
            seconds = time.perf_counter() - begun + len(piece) * self._seconds_before
            self.engine.load_shedder.end_piece(piece, progress, seconds)
            per_event = max((progress.made - made) / len(piece), 1.0)
            says_enough = len(piece) >= PIECE or self._piece > PIECE
            is_quiet = self._may_grow and says_enough and per_event <= MOST_PER_EVENT
            most = LARGE_PIECE if is_quiet else PIECE
            self._piece = int(min(most, max(LEAST_PIECE, LINKS_AT_ONCE / per_event)))
        if self.engine.shedding.logs:  # who takes the log must do so before keys are forgotten
            yield self.nothing()

    def run_piece(self, piece: StreamBatch) -> Iterator[pa.Table]:
        """Run a piece of a batch that was prepared as a whole; nothing is shed."""
        return self._run(piece)

    @property
    def sees_all(self) -> bool:
        """Whether each event counts, also those that no letter holds on."""
        counts_times = isinstance(self.results, RunOutput) and self.results.tick_places is not None
        return self.preparer.counts_events or counts_times

    def pass_time(self, tick: int) -> Iterator[pa.Table]:
        """What waited for windows that end before ``tick``; nothing earlier comes any more."""
        if isinstance(self.results, RunOutput):
            yield from self.results.pass_time(tick)

    @property
    def waits_until(self) -> int | None:
        """The tick that ``pass_time`` must be given for the next match that waits; None where none does."""
        if not isinstance(self.results, RunOutput):
            return None
        first, idle = self.results.waits_until, self.key_slots.idle
        ends = None if idle is None else idle.first_end(self.results.finder.waiting.slot)
        return min((tick for tick in (first, ends) if tick is not None), default=None)

    def finish(self) -> Iterator[pa.Table]:
        """What was still waiting for the end of its window."""
        if self.key_slots.idle is not None and self.stream.last_tick is not None:
            self.progress.keys_dropped = self.key_slots.idle.dropped_by(self.stream.last_tick)
        if isinstance(self.results, RunOutput):
            yield from self.results.finish()

    def _run(self, batch: StreamBatch) -> Iterator[pa.Table]:
        at_once = self.engine.load_shedder.grouped_at_once if isinstance(self.engine, Runs) else None
        events = self.preparer.grouped(batch, at_once)
        self.progress.events += len(batch)
        self.progress.relevant += len(events.row)
        if isinstance(self.engine, Runs):
            self.engine.load_shedder.begin_piece(batch, events.row)
        yield from self.results.run(events, batch, self._floors(batch))
        if isinstance(self.engine, Runs):
            self.progress.take(self.engine.work())

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

        From the first call on events are only forgotten by ``forget_events``.
        """
        self._kept_from = tick, counters
        if isinstance(self.results, RunOutput | CellListing):
            self.results.forgets = False

    def forget_before(self, floor: int) -> None:
        """Let go of events before a tick, in windows of time."""
        self.recent.drop_before(floor)

    def forget_all_but(self, others: Ints) -> Ints:
        """In windows of events: let go of events but those that something points to, and ``others``; gives these."""
        reached = others
        if isinstance(self.results, RunOutput):
            reached = np.concatenate((self.results.reachable(), others))
        elif isinstance(self.engine, ArcLogs):
            floors = self._floors_of(self._kept_from[1] if self._kept_from else self.preparer.counters, 1)
            reached = np.concatenate((self.engine.live_places(floors), others))
        self.recent.keep_only(reached)
        return reached

    # --- what the stream side asks --------------------------------------------------------------------------

    def is_silent(self, slots: Ints, now: int) -> Bools:
        """Per key slot whether its last event has left the window at ``now``, and no result of it is to come."""
        if self.preparer.is_count:
            return np.zeros(len(slots), np.bool_)
        silent = self.engine.newest()[slots] < now - self.window
        if isinstance(self.results, RunOutput):
            silent &= ~np.isin(slots, self.results.slots())
        return silent

    def clear(self, slots: Ints) -> None:
        """Forget some key slots, whose keys are forgotten."""
        self.engine.clear(slots)
        if isinstance(self.engine, Runs):
            self.progress.take(self.engine.work())

    def outlives(self, ticks: int) -> bool:
        """Whether an event can play a role when no event of its key has come for longer than so many ticks.

        In windows of events it can. No user names the key of a query in CEL, so that its stream has no end either.
        """
        return self.plan.cel is None and (self.preparer.is_count or self.window > ticks)

    def waits_in(self) -> Ints:
        """The key slots of results that wait."""
        return self.results.slots() if isinstance(self.results, RunOutput) else np.zeros(0, np.int64)

    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:
        """The streams of some keys have ended: what waits for them comes, and their slots are those of new ones."""
        if isinstance(self.results, RunOutput):
            yield from self.results.end_keys(slots)
        self.clear(slots)
        self.preparer.end_keys(slots, self.window)

    def texts_held(self) -> Ints:
        """Codes of the texts that its runs hold."""
        return self.engine.texts_held() if isinstance(self.engine, Runs) else np.zeros(0, np.int64)

    def recode_texts(self, codes: Ints) -> None:
        """Texts have got new codes, per code so far."""
        if isinstance(self.engine, Runs):
            self.engine.recode_texts(codes)
