"""A shard: the keys that are matched together. Tables of events in, tables of results, its state and its metrics out.

This is the step that Spark calls for every micro-batch, and it knows nothing of Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.archive import FORMAT, Differences, Kind, Scope
from acep_approx.engines.runs.worth import REASONS
from acep_approx.errors import DataError
from acep_approx.events.columns import missing_column, to_arrow
from acep_approx.events.reading.formats.readings import one_batch
from acep_approx.events.source import open_source
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.ipc import to_ipc
from acep_approx.ranges import COUNT
from acep_approx.run.left_out import LATE
from acep_approx.run.order import Order, Wait, joined
from acep_approx.run.watermarks import NEVER, Watermarks
from acep_approx.spark.worker.audited import ENDS, GROUPS
from acep_approx.spark.worker.counters import between
from acep_approx.spark.worker.job import REASON, Job
from acep_approx.spark.worker.program import MATCHES, PASSED, Named, Turn, Work


@dataclass(frozen=True)
class ShardMetrics:
    """What happened in a shard during one micro-batch.

    ``events`` matched, of them ``relevant`` to a letter and ``without_key``; ``late`` and ``malformed`` (no time) ones
    left out; ``waiting`` for the watermark. ``matches`` are rows put out as results, ``others`` in other tables;
    ``points`` match points inside a budget.
    ``steps`` run-steps of the ``bound`` that was granted; ``live`` runs; ``shed`` runs by reason, in the order of
    ``engines.runs.worth.REASONS``; ``price`` from which on runs are kept, ``weight`` of the shard in the budget;
    ``is_copy`` is 1 where other shards have the same events; ``audited`` match points, and those of them that the run
    has found, or would have without protection (``kept``), with what else tells of recall (see
    ``audited.audit_so_far``); ``version`` of the history, 0 without; ``seconds`` that the step took, those of it that
    runs were matched (``spent``), and what a budget ``granted`` of these.
    """

    events: int = 0
    relevant: int = 0
    matches: int = 0
    others: int = 0
    points: int = 0
    late: int = 0
    malformed: int = 0
    without_key: int = 0
    waiting: int = 0
    steps: int = 0
    bound: int = 0
    live: int = 0
    audited: int = 0
    kept: int = 0
    audited_in: tuple[int, ...] = (0,) * GROUPS
    kept_in: tuple[int, ...] = (0,) * GROUPS
    cells: int = 0
    squares: int = 0
    given_up: int = 0
    ends: tuple[float, ...] = (0.0,) * ENDS
    audit: int = 0
    version: int = 0
    shed: tuple[int, ...] = (0,) * len(REASONS)
    price: float = 0.0
    weight: float = 1.0
    is_copy: int = 0
    seconds: float = 0.0
    spent: float = 0.0
    granted: float = 0.0


NO_TIME = "no time"


def _damaged() -> DataError:
    return DataError(
        "these bytes are not the state of a shard, or not all as they were written",
        code="ACEP-S010",
        hint="start the query with a new checkpoint directory",
    )


def _other_format(theirs: str) -> DataError:
    return DataError(
        f"the checkpoint holds state of {theirs}, and this version reads format {FORMAT}",
        code="ACEP-S011",
        hint="go on with the version that wrote it, or start the query with a new checkpoint directory",
    )


def _of_another(different: Differences) -> DataError:
    what, (theirs, ours) = next(iter(different.items()))
    return DataError(
        f"the checkpoint is of another query or of other events: {what}: {theirs}; now {ours}",
        code="ACEP-S012",
        hint="start this query with a checkpoint directory of its own",
    )


SHARD = Kind("shard", _damaged, _other_format, _of_another)
"""Archives of a shard, which Spark keeps: people can see what is in a checkpoint. They are of a job (``_identity``)."""


@dataclass(frozen=True)
class Processed:
    """What came of some events.

    ``tables`` by name; the events that were ``left_out``, with a column ``reason``; the ``metrics``; the training
    ``sample`` for a learner, if there is one; and what is ``passed`` on to a second stage.
    """

    tables: dict[str, pa.Table]
    left_out: pa.Table
    metrics: ShardMetrics
    sample: bytes = b""
    passed: pa.Table | None = None

    @property
    def results(self) -> pa.Table:
        """The results of the program."""
        return self.tables[MATCHES]


@dataclass
class Shard:
    """The keys of one shard.

    Parameters
    ----------
    job : Job
    number : int
    state : bytes, optional
        What ``to_bytes`` gave after the micro-batch before.
    batch : int, optional
        Number of the micro-batch, where it is known: of a split budget nothing is then given twice.

    Raises
    ------
    DataError
        State of another program, or of another version.
    """

    job: Job
    number: int = 0
    state: bytes | None = None
    batch: int | None = None
    order: Order = field(init=False)
    weight: float = field(init=False, default=1.0)
    _work: Work | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.part = self.job.part_of(self.number)
        self.program = self.part.program
        self.order = Order(Wait(Watermarks(None), ties=self.job.order))
        if self.state is not None:
            scope = SHARD.unpack(self.state, of=self._identity)
            with SHARD.reading():
                self.state = scope.arrays["matcher"].tobytes()
                self.hold(scope.table("waiting").cast(self.job.schema))
                if scope.head["watermark"] is not None:
                    list(self.order.close(scope.number("watermark", -COUNT)))

    def process(self, events: pa.Table, watermark: int | None) -> Processed:
        """Match the events that can be put in order by now; the others wait.

        Parameters
        ----------
        events : pyarrow.Table
            New ones, in any order, with the columns of the job.
        watermark : int or None
            Tick before which no event comes any more: those that come all the same are late, those at it or after it
            wait. None: nothing is known yet, all wait. It never goes back, though one of a restarted query may.
        """
        begun = time.perf_counter()
        if self.program.stage.is_second:  # all that is passed on lies before the watermark that it comes with
            came, malformed = self.hold(events)
            due = [] if watermark is None else list(self.order.close(watermark))
            return self._match(begun, due, malformed, came)
        due = [] if watermark is None else list(self.order.close(watermark))
        if self.program.orders:
            batch, malformed = self._read(events)
            return self._match(begun, [batch] if len(batch) else [], malformed)
        came, malformed = self.hold(events)
        return self._match(begun, due, self._with_late(self.order.left_out.take(), malformed), came)

    def process_sorted(self, events: pa.Table) -> Processed:
        """Match events that come in order, and later than all before."""
        begun = time.perf_counter()
        batch, malformed = self._read(events)
        return self._match(begun, [batch], malformed)

    def finish(self) -> Processed:
        """There will be no more events: put out what the end of the stream completes."""
        return self._match(time.perf_counter(), [], self.job.left_out.empty_table(), at_end=True)

    def hold(self, events: pa.Table) -> tuple[int, pa.Table]:
        """Let events wait that came in this order; returns how many have a time, and those that have none."""
        batch, malformed = self._read(events)
        if len(batch):
            list(self.order.push(batch))
        return len(batch), malformed

    @property
    def waits_until(self) -> int | None:
        """The watermark, as a tick, with which there is something to do though no event comes; None: never."""
        first = self.order.waiting.first
        return earliest((None if first is None else first + 1, self.work.waits_until))

    def to_bytes(self) -> bytes:
        """The state between two micro-batches; see ``describe``."""
        waiting, floor = self.order.waiting, self.order.floor
        scope = Scope(
            {
                "of": self._identity,
                "events": self.work.arrived,
                "waiting": len(waiting),
                "watermark": floor if floor > NEVER else None,
            }
        )
        scope.put("matcher", self.work.state_bytes())
        held = pa.Table.from_batches([part.data for part in waiting.parts], self.job.schema)
        scope.put("waiting", to_ipc(held, "lz4"))
        return SHARD.pack(scope)

    @property
    def _identity(self) -> dict[str, str]:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.job.schema)
        return {**self.program.identity, "columns": columns, "shards": str(self.job.shards)}

    @property
    def work(self) -> Work:
        """The program at work, as it is now."""
        assert self._work is not None, "process events first"
        return self._work

    # --- steps ----------------------------------------------------------------------------------------------

    def _read(self, events: pa.Table) -> tuple[EventBatch, pa.Table]:
        """Events that have a time, and those that have none; in the types that the job was planned with.

        Where such events are skipped, one whose time cannot be used has none.
        """
        events, roles = self._as_planned(events), self.job.roles
        column = events.column(roles.time)
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        timed, others = events, [events.slice(0, 0)]
        if column.null_count:
            timed, others = events.filter(column.is_valid()), [events.filter(column.is_null())]
        read = one_batch(timed)
        rows = open_source(read, on_malformed="skip" if self.job.skips else "refuse").usable_rows(roles)
        data = rows.taken(read)
        rows.finish(is_whole=False)
        if rows.places is not None:
            unusable = np.delete(np.arange(read.num_rows), rows.places)
            others.append(timed.take(to_arrow(unusable)))
        malformed = pa.concat_tables(others)
        reasons = pa.chunked_array([pa.array([NO_TIME] * len(malformed), pa.string())])
        if REASON in malformed.column_names:
            reasons = pc.coalesce(malformed.column(REASON), NO_TIME)
        malformed = malformed.append_column(self.job.left_out[-1], reasons).select(self.job.left_out.names)
        return EventBatch(self.order.arrived, rows.ticks, data), malformed

    def _with_late(self, late: pa.Table, malformed: pa.Table) -> pa.Table:
        """The events that were left out: those that came late, each with the reason in its first column, and others."""
        if not len(late):
            return malformed
        *names, reason = self.job.left_out.names
        columns = late.select(names).append_column(reason, late.column(0))
        return pa.concat_tables([columns.cast(malformed.schema), malformed])

    def _as_planned(self, events: pa.Table) -> pa.Table:
        schema = self.job.schema
        if events.schema.equals(schema):
            return events
        for name in schema.names:
            if name not in events.column_names:
                raise missing_column(name, events.column_names)
        try:
            return events.select(schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"columns of the events have changed their types since the query began: {error}",
                code="ACEP-D024",
                hint="give each column one type in all events",
            ) from error

    def _match(
        self,
        begun: float,
        parts: Sequence[EventBatch],
        left_out: pa.Table,
        came: int = 0,
        *,
        at_end: bool = False,
    ) -> Processed:
        events = sum(map(len, parts))
        if self._work is None:  # only now is it known how much there is to do
            self._work = self._began(events, came + events)
        work = self._work
        before = work.counters()
        ready = work.ready(self.batch)
        run = work.run(joined(parts)) if events else ()
        passed = work.pass_time(self.order.floor) if self.order.floor > NEVER else ()
        steps = chain(passed, run) if self.program.orders else chain(run, passed)
        tables = self._gathered(chain(ready, steps, work.finish() if at_end else ()))
        passed = tables.pop(PASSED, None)
        if not at_end:
            work.pause()
        late = self.order.left_out.counts.pop(LATE, 0)
        if self.program.orders:
            late = len(rejected := work.rejected())
            left_out = self._with_late(rejected, left_out)
        if self.part.is_copy:
            left_out, late = left_out.slice(0, 0), 0
        metrics = ShardMetrics(
            **between(before, work.counters()),
            matches=len(tables[MATCHES]),
            others=sum(len(table) for name, table in tables.items() if name != MATCHES),
            late=late,
            malformed=len(left_out) - late,
            waiting=len(self.order.waiting) + work.held,
            weight=self.weight,
            is_copy=int(self.part.is_copy),
            seconds=time.perf_counter() - begun,
        )
        return Processed(tables, left_out, metrics, work.sample(), passed)

    def _gathered(self, found: Iterable[Named]) -> dict[str, pa.Table]:
        """All tables of the program, each with its rows in the order in which they came."""
        schemas = dict(self.job.tables)
        passed = self.program.stage.passed(self.job.plain)
        if passed is not None:
            schemas[PASSED] = passed
        parts: dict[str, list[pa.Table]] = {name: [] for name in schemas}
        for name, table in found:
            if table.num_rows:
                parts[name].append(table.cast(schemas[name]))
        return {name: pa.concat_tables(some) if some else schemas[name].empty_table() for name, some in parts.items()}

    def _began(self, events: int, rows: int) -> Work:
        """The program at work, for so many events of a micro-batch in which so many rows come in or go on."""
        self.weight = self.job.weight(self.number, events, self.batch)
        budget = self.job.granted(self.number, rows, events) if self.job.spending is not None else None
        state, self.state = self.state, None
        turn = Turn(self.number, self.weight, budget, events, self.batch)
        return self.program.begin(self.job.setting, turn, state)


def describe(state: bytes) -> dict[str, Any]:
    """What the state of a shard says about itself, for debugging.

    Parameters
    ----------
    state : bytes
        A value of ``spark.read.format("statestore").option("stateVarName", "shard").load(checkpoint)``.

    Returns
    -------
    dict
        ``format``; ``query``, ``columns`` and what else must stay the same; ``events`` matched so far; ``waiting`` for
        the watermark; ``watermark`` before which all events were matched, as a tick; and the ``bytes`` of its parts.
    """
    scope = SHARD.unpack(state)
    sizes = {name: part.nbytes for name, part in scope.arrays.items()}
    with SHARD.reading():
        return {"format": FORMAT, **scope.head.pop("of"), **scope.head, "bytes": sizes}
