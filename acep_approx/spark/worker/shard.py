"""A shard: the keys that are matched together. Tables of events in, tables of results, its state and its metrics out.

This is the step that Spark calls for every micro-batch, and it knows nothing of Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.archive import FORMAT, Differences, Kind, Scope
from acep_approx.arrays import Ints
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.worth import REASONS
from acep_approx.errors import DataError
from acep_approx.events.columns import missing_column, to_arrow
from acep_approx.events.source import open_source
from acep_approx.events.stream import check_order
from acep_approx.events.time import tick_unit, ticks
from acep_approx.events.usable_rows import OF_A_ROW
from acep_approx.events.usable_times import usable_times
from acep_approx.ipc import to_ipc
from acep_approx.matching.execution import Execution
from acep_approx.matching.state import meaning
from acep_approx.ranges import COUNT
from acep_approx.run.events import Events
from acep_approx.run.left_out import LATE
from acep_approx.run.waiting import Waiting
from acep_approx.run.watermarks import NEVER
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.job import Job

Numbers = dict[str, Any]


@dataclass(frozen=True)
class ShardMetrics:
    """What happened in a shard during one micro-batch.

    ``events`` matched, of them ``relevant`` to a letter and ``without_key``; ``late`` and ``malformed`` (no time) ones
    left out; ``waiting`` for the watermark. ``matches`` are rows put out, ``points`` match points inside a budget.
    ``steps`` run-steps of the ``bound`` that was granted; ``live`` runs; ``shed`` runs by reason, in the order of
    ``engines.runs.worth.REASONS``; ``price`` from which on runs are kept, ``weight`` of the
    shard in the budget; ``audited`` match points of the protected cohort and
    those of them that were found without protection (``kept``); ``version`` of the history, 0 without; ``seconds``
    that the step took, those of it that runs were matched (``spent``), and what a budget ``granted`` of these.
    """

    events: int = 0
    relevant: int = 0
    matches: int = 0
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
    version: int = 0
    shed: tuple[int, ...] = (0,) * len(REASONS)
    price: float = 0.0
    weight: float = 1.0
    seconds: float = 0.0
    spent: float = 0.0
    granted: float = 0.0


@dataclass(frozen=True)
class Counters:
    """Where the counters of a matcher stand: two of them tell what happened in between.

    ``granted`` run-steps, those ``left`` of a batch, after which they are gone (of other budgets 0), and those
    ``on_passes`` over runs and on the cohort beside it; ``points``, and those ``audited`` and ``kept``, since the
    shedder was made; the others are of the whole stream.
    """

    progress: RunProgress
    shed: tuple[int, ...] = (0,) * len(REASONS)
    on_passes: float = 0.0
    granted: float = 0.0
    left: float = 0.0
    points: int = 0
    audited: int = 0
    kept: int = 0
    price: float = 0.0
    version: int = 0
    spent: float = 0.0
    granted_seconds: float = 0.0

    @classmethod
    def of(cls, matcher: Execution) -> Self:
        """How they stand now."""
        progress, shedder = RunProgress(**vars(matcher.progress)), matcher.shedding
        if not isinstance(shedder, Shedder):
            return cls(progress)
        sample, arena = shedder.audited(), shedder.arena
        return cls(
            progress,
            tuple(arena.counts.sum(axis=0).tolist()),
            arena.on_passes + shedder.beside.steps,
            shedder.granted + shedder.beside.quota,
            max(arena.left, 0.0) if shedder.load.budget.unit == "ms/batch" else 0.0,
            len(shedder.metrics.points),
            int(sample.points.sum()) if sample else 0,
            int(sample.found.sum()) if sample else 0,
            arena.price,
            shedder.version,
            shedder.seconds,
            shedder.load.budget.amount / 1e3 if shedder.load.budget.unit == "ms/batch" else 0.0,
        )

    def since(self, before: Counters) -> Numbers:
        """What happened since another reading, as ``ShardMetrics`` has it."""
        now, then = self.progress, before.progress
        steps = now.steps - then.steps + round(self.on_passes - before.on_passes)
        return {
            "events": now.events - then.events,
            "relevant": now.relevant - then.relevant,
            "without_key": now.without_key - then.without_key,
            "points": self.points - before.points,
            "steps": steps,
            "bound": steps + round(self.left) if self.left or before.left else round(self.granted - before.granted),
            "live": now.live,
            "audited": self.audited - before.audited,
            "kept": self.kept - before.kept,
            "version": self.version,
            "shed": tuple(a - b for a, b in zip(self.shed, before.shed, strict=True)),
            "price": self.price,
            "spent": self.spent - before.spent,
            "granted": self.granted_seconds,
        }


NO_TIME = "no time"
REASON = "reason"
"""Column of the side table that says why an event was left out."""


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

    ``results``; the events that were ``left_out``, with a column ``reason``; the ``metrics``; and the training
    ``sample`` for a learner, if there is one.
    """

    results: pa.Table
    left_out: pa.Table
    metrics: ShardMetrics
    sample: bytes = b""


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
        State of another query, or of another version.
    """

    job: Job
    number: int = 0
    state: bytes | None = None
    batch: int | None = None
    waiting: Waiting = field(init=False)
    watermark: int | None = field(init=False, default=None)
    weight: float = field(init=False, default=1.0)
    _matcher: Execution | None = field(init=False, default=None)
    _came: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.waiting = Waiting(self.job.order)
        if self.state is not None:
            scope = SHARD.unpack(self.state, of=_identity(self.job))
            with SHARD.reading():
                self.state = scope.arrays["matcher"].tobytes()
                self.hold(scope.table("waiting").cast(self.job.schema))
                if scope.head["watermark"] is not None:
                    self.watermark = scope.number("watermark", -COUNT)

    def process(self, events: pa.Table, watermark: int | None) -> Processed:
        """Match the events that can be put in order by now; the others wait.

        Parameters
        ----------
        events : pyarrow.Table
            New ones, in any order, with the columns of the job.
        watermark : int or None
            Tick before which no event comes any more: those that come all the same are late, those at it or after it
            wait. None: nothing is known yet, all wait.
        """
        begun = time.perf_counter()
        events, malformed = self._with_time(events)
        came = self._events(events)
        if watermark is not None:  # it never goes back, though one of a restarted query may
            self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        known = NEVER if self.watermark is None else self.watermark
        late = events.filter(pa.array(came.tick < known))
        left_out = pa.concat_tables([_why(late, LATE), _why(malformed, NO_TIME)])
        self.waiting.add(came.where(came.tick >= known))
        results, metrics = self._match(self.waiting.due(known), came=len(came))
        counted = {
            "late": len(late),
            "malformed": len(malformed),
            "waiting": len(self.waiting),
            "seconds": time.perf_counter() - begun,
        }
        return Processed(results, left_out, ShardMetrics(**{**metrics, **counted}), self._training_sample())

    def process_sorted(self, events: pa.Table) -> Processed:
        """Match events that come in order, and later than all before."""
        begun = time.perf_counter()
        events, malformed = self._with_time(events)
        results, metrics = self._match([self._events(events)])
        counted = {"malformed": len(malformed), "seconds": time.perf_counter() - begun}
        return Processed(results, _why(malformed, NO_TIME), ShardMetrics(**{**metrics, **counted}))

    def finish(self) -> Processed:
        """There will be no more events: put out what the end of the stream completes."""
        begun = time.perf_counter()
        results, metrics = self._match([], at_end=True)
        nothing = _why(self.job.schema.empty_table(), LATE)
        return Processed(results, nothing, ShardMetrics(**{**metrics, "seconds": time.perf_counter() - begun}))

    @property
    def waits_until(self) -> int | None:
        """The watermark, as a tick, with which there is something to do though no event comes; None: never."""
        first = self.waiting.first
        known = [tick for tick in (None if first is None else first + 1, self.matcher.waits_until) if tick is not None]
        return min(known, default=None)

    def to_bytes(self) -> bytes:
        """The state between two micro-batches; see ``describe``."""
        scope = Scope(
            {
                "of": _identity(self.job),
                "events": self.matcher.progress.events,
                "waiting": len(self.waiting),
                "watermark": self.watermark,
            }
        )
        scope.put("matcher", self.matcher.state_bytes())
        scope.put("waiting", to_ipc(self._held(), "lz4"))
        return SHARD.pack(scope)

    @property
    def matcher(self) -> Execution:
        """The matcher as it is now."""
        assert self._matcher is not None, "process events first"
        return self._matcher

    # --- steps ----------------------------------------------------------------------------------------------

    def _training_sample(self) -> bytes:
        """What a learner can learn from."""
        shedder = self.matcher.shedding
        return shedder.training_sample() if isinstance(shedder, Shedder) else b""

    def _with_time(self, events: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Events that have a time, and those that have none; in the types that the job was planned with.

        Where such events are skipped, one whose time cannot be used has none.
        """
        events = self._as_planned(events)
        column = events.column(self.job.roles.time)
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        timed, others = events, events.slice(0, 0)
        if column.null_count:
            timed, others = events.filter(column.is_valid()), events.filter(column.is_null())
        if not self.job.skips:
            return timed, others
        try:
            self._ticks(timed)
        except DataError as error:
            if error.code not in OF_A_ROW:
                raise
            roles = self.job.roles
            times = timed.column(roles.time).combine_chunks()
            usable = usable_times(times, roles.unit, roles.time_format)
            others = pa.concat_tables([others, timed.take(to_arrow(np.flatnonzero(~usable)))])
            timed = timed.take(to_arrow(np.flatnonzero(usable)))
        return timed, others

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

    def _ticks(self, events: pa.Table) -> Ints:
        if not events.num_rows:
            return np.zeros(0, np.int64)
        roles = self.job.roles
        return ticks(events.column(roles.time).combine_chunks(), roles.unit, format=roles.time_format)

    def hold(self, events: pa.Table) -> None:
        """Let events wait that came in this order."""
        self.waiting.add(self._events(events))

    def _events(self, table: pa.Table) -> Events:
        """Events that came in this order."""
        (data,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        rows = open_source(data).usable_rows(self.job.roles)
        rows.taken(data)
        rows.finish(is_whole=False)
        places = self._came + np.arange(data.num_rows)
        self._came += data.num_rows
        return Events(rows.ticks, places, places, data)

    def _held(self) -> pa.Table:
        """The events that wait, in the order in which they go on or came."""
        return pa.Table.from_batches([part.data for part in self.waiting.parts], self.job.schema)

    @staticmethod
    def _run(matcher: Execution, ready: Events) -> Iterator[pa.Table]:
        """Run a micro-batch as one batch: a budget of time is granted for each."""
        assert matcher.pipeline is not None
        batch = ready.batch(matcher.pipeline.columns, matcher.progress.events)
        roles = matcher.pipeline.roles
        check_order(batch, tick_unit(ready.data.schema.field(roles.time).type, roles.unit))
        return matcher.run(batch)

    def _match(self, parts: Sequence[Events], *, came: int = 0, at_end: bool = False) -> tuple[pa.Table, Numbers]:
        """Run events in order; returns what they complete, and what it took."""
        events = sum(map(len, parts))
        if self._matcher is None:  # only now is it known how much there is to do
            self.weight = self.job.weight(self.number, events, self.batch)
            spending = self.job.spending
            rows = came + events, events
            granted = self.job.granted(self.number, *rows) if spending is not None else None
            state, self.state = self.state, None
            self._matcher = self.job.matcher(self.number, self.weight, state, granted, events, self.batch)
        matcher = self._matcher
        before = Counters.of(matcher)
        tables = [self.job.results.empty_table()]
        if events:
            tables += self._run(matcher, Events.joined(parts))
        if self.watermark is not None:
            tables.append(matcher.pass_time(self.watermark))
        if at_end:
            tables.append(matcher.finish())
        results = pa.concat_tables([table.cast(self.job.results) for table in tables if table.num_rows] or tables[:1])
        metrics = Counters.of(matcher).since(before)
        return results, {**metrics, "matches": results.num_rows, "weight": self.weight}


def _why(events: pa.Table, reason: str) -> pa.Table:
    return events.append_column(REASON, pa.array([reason] * events.num_rows, pa.string()))


def _identity(job: Job) -> dict[str, str]:
    """What must be the same for a state to be of use."""
    same = meaning(job.query.plan)
    shown = job.bind if isinstance(job.bind, str) else ", ".join(job.bind or ()) or "RETURN"
    return {
        "query": f"{same.pop('fingerprint')} within {same.pop('window')}",
        **same,
        "columns": ", ".join(f"{field.name} {field.type}" for field in job.schema),
        "events shown as": shown,
        "output": job.output,
        "shards": str(job.shards),
        "key_idle": str(job.key_idle),
    }


def ticks_per_millisecond(job: Job) -> int:
    """How many ticks a millisecond of Spark's watermark is: plain ticks are taken for milliseconds."""
    return 1000 if tick_unit(job.schema.field(job.roles.time).type, job.roles.unit) is not None else 1


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
