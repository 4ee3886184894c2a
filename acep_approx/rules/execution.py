"""A program that is carried out: batches of events in; matches, changes of tables and calls out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import plain_type, to_arrow
from acep_approx.events.reading.widening import common_type, stacked
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import shown_type
from acep_approx.kernels.rules.rows import DELETED
from acep_approx.matching.fitting import kinds_of, with_text
from acep_approx.matching.outputs.bind import Bind, Wide
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_side import StreamSide
from acep_approx.query.rules.types import check_types
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.drivers import AnyStage, Surroundings
from acep_approx.rules.durable.notes import NO_CALLS
from acep_approx.rules.firing import Calls, Firing
from acep_approx.rules.lockstep.arenas import TableArena
from acep_approx.rules.lockstep.eligible import planned_stages
from acep_approx.rules.log import Changes, FailedActionError, TableLog
from acep_approx.rules.losses import Losses, Spending
from acep_approx.rules.matched import Moment
from acep_approx.rules.program import Driver, Program
from acep_approx.rules.stages import Detector, Found
from acep_approx.rules.table import PastRows, TableRows
from acep_approx.rules.words import Texts

EFFECTS = ("", "update", "insert", "delete")
"""What a write did, by its number in ``kernels.rules.rows``."""


def change_table(changes: Changes, rules: Sequence[str], times: pa.DataType) -> pa.Table:
    """The writes of a table in order: ``time``, ``row`` (of the event; NULL if it is none), ``rule``, ``op``, columns.

    ``op`` is update, insert or delete; of a deleted row the columns beside the key are NULL. Tables hold times in UTC:
    here they have the zone that ``times`` has, the type of times in results.
    """
    of = changes.of
    is_deleted = changes.effect == DELETED
    keys = len(changes.values) - changes.beside
    columns = {}
    for number, (name, values) in enumerate(changes.values.items()):
        is_kept = number < keys or not is_deleted.any()
        shown = values if is_kept else pc.if_else(pa.array(is_deleted), pa.scalar(None, values.type), values)
        is_both = pa.types.is_timestamp(values.type) and pa.types.is_timestamp(times)
        columns[name] = shown.cast(times) if is_both else shown
    names = _names(changes.effect, EFFECTS)
    row = to_arrow(of.row, of.row >= 0)
    own = {"time": to_arrow(of.time).view(times), "row": row, "rule": _names(changes.rule, rules)}
    return pa.table({**own, "op": names, **{_apart(name, (*own, "op")): array for name, array in columns.items()}})


def _apart(name: str, others: tuple[str, ...]) -> str:
    while name in others:
        name += "_"
    return name


def _names(numbers: Ints, names: Sequence[str]) -> pa.Array:
    if len(numbers) == 1:
        return pa.array([names[numbers[0]]], pa.string())
    return pa.array(names, pa.string()).take(to_arrow(numbers))


def called(calls: Sequence[Calls], rules: Sequence[str], times: pa.DataType) -> pa.Table:
    """All calls in order: by transaction, rule, match, action.

    The id says which rule made it, for which event, and how many this rule had made for it before: it stays the same
    however the stream is cut, and after a restart. Of the end of a window it has the time of that and the first event.
    """
    schema = NO_CALLS.schema.set(3, pa.field("time", times))
    if not calls:
        return schema.empty_table()
    some = Calls.joined(calls)
    some = some.take(np.lexsort((some.action, some.match, some.rule, some.of.start, some.of.tick, some.of.place)))
    of, ids, seen, before = some.of, list[str](), 0, ("", -1)
    for number, tick, start, row in zip(some.rule, of.tick, of.start, of.row, strict=True):
        where = str(row) if row >= 0 else f"{start // len(rules)}+{tick}"
        seen = seen + 1 if before == (where, number) else 0
        before = (where, number)
        ids.append(f"{rules[number]}:{where}:{seen}")
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "rule": _names(some.rule, rules),
            "name": pa.array(some.name, pa.string()),
            "time": to_arrow(of.time).view(times),
            "row": to_arrow(of.row, of.row >= 0),
            "arguments": pa.array([json.dumps(given, default=str) for given in some.arguments], pa.string()),
        },
        schema=schema,
    )


NO_ROWS = np.zeros(0, np.int64)
OnReads = Callable[[str, EventBatch], None]
"""Is told the name of a rule and its events."""


@dataclass(frozen=True)
class Outcome:
    """What came of some events.

    Attributes
    ----------
    matches : dict of str to pyarrow.Table
        Per rule, in the order of the file: its matches in the order in which they became known.
    changes : dict of str to pyarrow.Table
        Per table what was written to it, in order.
    calls : pyarrow.Table
        Calls in order; see ``durable.notes.CALLS``.
    last : dict of str to pyarrow.Table
        Per table the rows that were written, each once, as they are now, with a column ``deleted``.
    """

    matches: dict[str, pa.Table]
    changes: dict[str, pa.Table]
    calls: pa.Table
    last: dict[str, pa.Table] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[Outcome]) -> Outcome:
        """What came of several batches, at least one, one after the other."""
        if len(parts) == 1:
            return parts[0]
        calls = [one.calls for one in parts if one.calls.num_rows] or [parts[-1].calls]
        return cls(
            tables_of(pair for one in parts for pair in one.matches.items()),
            tables_of(pair for one in parts for pair in one.changes.items()),
            stacked(calls),
            tables_of(pair for one in parts for pair in one.last.items()),
        )


def tables_of(parts: Iterable[tuple[str, pa.Table]]) -> dict[str, pa.Table]:
    """Named tables, each name once: those of the same name one after the other."""
    found: dict[str, list[pa.Table]] = {}
    for name, table in parts:
        found.setdefault(name, []).append(table)
    return {name: stacked(tables) for name, tables in found.items()}


@dataclass
class Counters:
    """What happened so far: events, values written twice in one transaction, writes of rows that were not there."""

    events: int = 0
    conflicts: int = 0
    without_row: int = 0


@dataclass
class Bound:
    """What runs once the columns of the events are known."""

    schema: pa.Schema
    roles: Roles
    sides: list[StreamSide]
    pipelines: dict[int, Pipeline]
    logs: dict[str, TableLog]
    stages: list[AnyStage]
    columns: tuple[str, ...]
    losses: Losses | None = None
    nothing: dict[str, pa.Table] = field(default_factory=dict)
    unchanged: dict[str, pa.Table] = field(default_factory=dict)
    uncalled: pa.Table = field(default_factory=lambda: NO_CALLS)
    fitting: pa.Schema = field(default_factory=lambda: pa.schema([]))  # of the last batch, whose types are known

    @property
    def is_time(self) -> bool:
        """Whether ticks are microseconds since 1970."""
        return any(pipeline.is_time for pipeline in self.pipelines.values())

    @property
    def times(self) -> pa.DataType:
        """The type in which results show ticks: timestamps, or whole numbers."""
        type_ = self.schema.field(self.roles.time).type
        return shown_type(type_, self.roles.time_format) if self.is_time else pa.int64()


class RuleExecution:
    """Carries out a program over a stream, without the verbs that ``RuleRun`` adds.

    Parameters
    ----------
    program : Program
    driver : {"auto", "stepping"}, default "auto"
        Parts of rules that wait for one another in a circle are run in turn, all others over whole batches; or all
        in turn, to hold the one against the other.
    bind : str, sequence of str or Wide, optional
        What stands for events in matches.
    spending : Spending, optional
        How to stay inside a load budget. Default: nothing is shed.

    Attributes
    ----------
    tables : dict of str to TableRows
        The store.
    counters : Counters
    bound : Bound or None
        None until the columns of the events are known.
    keeps_last : bool
        Whether outcomes have ``last``.
    on_reads : callable or None
        Is told, rule by rule, a batch with the columns that its events have read of tables.
    """

    keeps_last = False

    def __init__(
        self, program: Program, driver: Driver = "auto", bind: Bind = None, spending: Spending | None = None
    ) -> None:
        self.program = program
        self.spending = spending
        self.on_reads: OnReads | None = None if spending is None else spending.on_reads
        self.bind_by = bind
        self.driver: Driver = driver
        self.texts = Texts()
        self.tables = {table.name: TableRows(table, self.texts) for table in program.file.tables}
        self.counters = Counters()
        self.bound: Bound | None = None

    def bind(self, schema: pa.Schema, roles: Roles, sides: Sequence[StreamSide] = ()) -> Bound:
        """Check the rules against the columns of the events, and set all up.

        Parameters
        ----------
        schema : pyarrow.Schema
        roles : Roles
        sides : sequence of StreamSide, optional
            Of a saved state, one for each stage that detects. Default: new ones.

        Raises
        ------
        DataError, QueryError
            A column is missing or has the wrong type.
        """
        program = self.program
        check_types(program.file, kinds_of(with_text(schema, ()), roles))
        programs = program.programs(schema, roles)
        logs = {name: TableLog(rows, programs[name]) for name, rows in self.tables.items()}
        firings = {rule.number: Firing(rule, logs, program.statements[rule.number], roles) for rule in program.rules}
        for firing in firings.values():
            firing.keeps_rows = isinstance(self.bind_by, Wide) and self.bind_by.keeps_rows
            firing.shows_certain = self.spending is not None
        losses = None
        if self.spending is not None:
            losses = Losses(program, logs, self.spending.begin(program))
            for firing in firings.values():
                firing.doubts = losses.doubts
        around = Surroundings(program, firings, logs, TableArena(), self.bind_by, losses)
        stages: list[AnyStage] = []
        detectors: list[Detector] = []
        for planned in planned_stages(program, self.driver, () if losses is None else losses.taint.rules):
            side = sides[len(detectors)] if sides and planned.stage.detecting else None
            stage = around.stage(planned, schema, roles, side)
            stages.append(stage)
            detectors += [] if stage.detector is None else [stage.detector]
        keys = [key for rule in program.rules for read in rule.reads for key in read.keys]
        named = [roles.column(node.name) for key in keys for node in walk(key) if isinstance(node, Attribute)]
        columns = [roles.time, *(name for one in detectors for name in one.stream.columns), *named]
        streams = [one.stream for one in detectors]
        numbers = (rule.number for one in detectors for rule in one.rules)
        pipelines = dict(zip(numbers, (pipeline for one in detectors for pipeline in one.pipelines), strict=True))
        self.bound = Bound(schema, roles, streams, pipelines, logs, stages, tuple(dict.fromkeys(columns)), losses)
        for number, one in pipelines.items():
            for read in program.rules[number].late_reads:
                past = logs[read.table].past or PastRows(len(self.tables[read.table].columns))
                past.window = max(past.window, one.window)
                logs[read.table].past = past
        self.bound.nothing = {program.rules[n].name: firings[n].nothing(one.nothing()) for n, one in pipelines.items()}
        names, times = [rule.name for rule in program.rules], self.bound.times
        self.bound.unchanged = {n: change_table(log.fold(), names, times) for n, log in logs.items()}
        self.bound.uncalled = called([], names, times)
        for log in logs.values():
            log.forget()
        return self.bound

    def run(self, batch: EventBatch) -> Outcome:
        """Run a batch.

        Raises
        ------
        FailedActionError
            An action cannot be done; the engine stands somewhere in the batch, the tables are those before it.
        """
        assert self.bound is not None, "bind first"
        if batch.ids is not None:  # rules are told of rows in the order in which they are run
            batch = replace(batch, ids=None)
        self._know_types(self.bound, batch.data.schema)
        if self.spending is None:
            return self._run(self.bound, batch)
        outcome = Outcome.joined([self._run(self.bound, piece) for piece in self.spending.pieces(batch)])
        self.spending.done()
        return outcome

    def _run(self, bound: Bound, batch: EventBatch) -> Outcome:
        """Run a batch, or a part of one."""
        moment = Moment(batch, self.counters.events, len(self.program.rules), int(batch.ticks[-1]))
        found = Found()
        with self._all_or_nothing():
            for stage in bound.stages:
                stage.run(batch, moment, found)
            if self.on_reads is not None:
                self._tell_reads(bound, batch, self.on_reads)
            outcome = self._outcome(found, moment.last_tick)
        if self.spending is not None:
            self.spending.take_log(bound.pipelines)
        self.counters.events += len(batch)
        return outcome

    def _tell_reads(self, bound: Bound, batch: EventBatch, on_reads: OnReads) -> None:
        """Hand on the events of each rule, with the columns that they have read from tables."""
        events = dict(zip(batch.data.schema.names, batch.data.columns, strict=True))
        for stage in bound.stages:
            if stage.detector is not None:
                read = stage.detector.as_read(batch)
                for rule in stage.detector.rules:
                    own = {column.name: read[column.name] for column in rule.reads}
                    on_reads(rule.name, replace(batch, data=pa.RecordBatch.from_pydict(events | own)))

    def _know_types(self, bound: Bound, found: pa.Schema) -> None:
        """Check the rules again, and make again what writes tables, where columns get wider types with a batch.

        Raises
        ------
        QueryError
            A value that comes has the wrong type; all is as it was.
        """
        if found.equals(bound.fitting):
            return
        types = {field.name: field.type for field in bound.schema}
        for name in types.keys() & {*found.names}:
            types[name] = common_type(plain_type(types[name]), plain_type(found.field(name).type)) or types[name]
        wider = pa.schema([*types.items()])
        if not wider.equals(bound.schema):
            check_types(self.program.file, kinds_of(with_text(wider, ()), bound.roles))
            programs = self.program.programs(wider, bound.roles)
            for name, log in bound.logs.items():
                log.programs = programs[name]
        bound.schema, bound.fitting = wider, found

    def close(self, before: int | None) -> Outcome:
        """No event before a tick comes any more, or none at all: what waited for windows that end before it.

        Raises
        ------
        FailedActionError
        """
        last = [side.last_tick for side in self.bound.sides] if self.bound is not None else []
        moment = Moment(None, self.counters.events, len(self.program.rules), (last and last[0]) or 0)
        found = Found()
        for side in self.bound.sides if self.bound is not None else ():
            side.ends = self.ends
        with self._all_or_nothing():
            for stage in self.bound.stages if self.bound is not None else ():
                stage.close(before, moment, found)
            return self._outcome(found, moment.last_tick)

    ends = True
    """Whether no event can come behind the last one, once what waits is closed."""

    @property
    def unclosed(self) -> int:
        """How many matches waited then for a window that later events may lie in."""
        return sum(side.unclosed for side in self.bound.sides) if self.bound is not None else 0

    def nothing(self) -> Outcome:
        """What comes of no events."""
        return self._outcome(Found())

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Where an action cannot be done none is, and the first one is told: also of an error that may come of it."""
        try:
            yield
        except (FailedActionError, DataError) as error:
            failed = [one for log in self.bound.logs.values() if (one := log.given_up())] if self.bound else []
            failed += [error] if isinstance(error, FailedActionError) else []
            if not failed:
                raise
            first = _first(failed)
            raise first from None if first is error else error

    def _outcome(self, found: Found, last_tick: int = 0) -> Outcome:
        if self.bound is None:
            return Outcome({}, {}, NO_CALLS)
        if failed := [one for calls in found.calls if (one := calls.first_failed)]:
            raise _first(failed)
        names = [rule.name for rule in self.program.rules]
        doubts = {} if self.bound.losses is None else self.bound.losses.doubts
        for doubt in doubts.values():
            doubt.settle()
        folded = {name: log.fold() for name, log in self.bound.logs.items() if log.has_writes}
        last = {}
        if self.keeps_last:
            last = {n: rows.written(folded[n].row if n in folded else NO_ROWS) for n, rows in self.tables.items()}
        for doubt in doubts.values():
            doubt.fold()
        for name, log in self.bound.logs.items():
            log.forget()
            log.keep_past(last_tick)
            if log.rows.has_many_keys:
                held = log.past.rows if log.past is not None else NO_ROWS
                if name in doubts:
                    held = np.concatenate((held, doubts[name].held))
                log.rows.forget_read_keys(held)
                if name in doubts:
                    doubts[name].forget_free_rows()
        changed = {name: change_table(one, names, self.bound.times) for name, one in folded.items()}
        calls = called(found.calls, names, self.bound.times) if found.calls else self.bound.uncalled
        self.counters.conflicts += sum(one.conflicts for one in folded.values())
        self.counters.without_row += sum(one.without_row for one in folded.values())
        matches = {rule.name: self._joined(rule, found) for rule in self.program.rules}
        if self.spending is not None:
            for name, table in matches.items():
                self.spending.note(name, table)
        return Outcome(matches, self.bound.unchanged | changed, calls, last)

    def _joined(self, rule: CompiledRule, found: Found) -> pa.Table:
        assert self.bound is not None, "something was run"
        tables = found.results.get(rule.number, [])
        nothing = self.bound.nothing[rule.name]
        return stacked([nothing, *tables]) if tables else nothing


def _first(failed: list[FailedActionError]) -> FailedActionError:
    return min(failed, key=lambda one: (one.at, one.place))
