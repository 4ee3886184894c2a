"""A shard: the keys that are matched together. Tables of events in, tables of results, its state and its metrics out.

This is the step that Spark calls for every micro-batch, and it knows nothing of Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.archive import FORMAT, Differences, Kind, Scope
from acep_approx.engines.runs.worth import REASONS
from acep_approx.errors import DataError
from acep_approx.events.columns import encode_text, missing_column, to_arrow
from acep_approx.events.reading.formats.readings import one_batch
from acep_approx.events.source import open_source
from acep_approx.events.stream import EventBatch, check_order
from acep_approx.events.time import tick_unit
from acep_approx.ipc import to_ipc
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.bind import Wide
from acep_approx.matching.state import meaning
from acep_approx.ranges import COUNT
from acep_approx.run.left_out import LATE
from acep_approx.run.order import Order, Wait, joined
from acep_approx.run.watermarks import NEVER, Watermarks
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.job import REASON, Job

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


def _counters(matcher: Execution) -> Numbers:
    """Where the counters of a matcher stand: two readings tell what happened in between, see ``_between``."""
    progress, shedder = matcher.progress, matcher.shedding
    found = {name: getattr(progress, name) for name in ("events", "relevant", "without_key", "steps", "live")}
    if not isinstance(shedder, Shedder):
        return found
    sample, arena, budget = shedder.audited(), shedder.arena, shedder.load.budget
    is_timed = budget.unit == "ms/batch"
    return found | {
        "shed": arena.counts.sum(axis=0),
        "on_passes": arena.on_passes + shedder.beside.steps,
        "bound": shedder.granted + shedder.beside.quota,
        "left": max(arena.left, 0.0) if is_timed else 0.0,  # of a batch, after which it is gone
        "points": len(shedder.metrics.points),
        "audited": int(sample.points.sum()) if sample else 0,
        "kept": int(sample.found.sum()) if sample else 0,
        "price": arena.price,
        "version": shedder.version,
        "spent": shedder.seconds,
        "granted": budget.amount / 1e3 if is_timed else 0.0,
    }


def _between(before: Numbers, now: Numbers) -> Numbers:
    """What happened between two readings, as ``ShardMetrics`` has it."""
    found = now | {name: now[name] - before[name] for name in _GROWING if name in now}
    if "shed" not in now:
        return found
    found["steps"] += round(found.pop("on_passes"))  # over runs, and on the cohort beside them
    left = found.pop("left")
    found["bound"] = found["steps"] + round(left) if left or before["left"] else round(found["bound"])
    return found | {"shed": tuple(found["shed"].tolist())}


_GROWING = (
    "events", "relevant", "without_key", "steps", "on_passes", "bound", "points", "audited", "kept", "shed", "spent",
)  # fmt: skip
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
    order: Order = field(init=False)
    weight: float = field(init=False, default=1.0)
    _matcher: Execution | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.order = Order(Wait(Watermarks(None), ties=self.job.order))
        if self.state is not None:
            scope = SHARD.unpack(self.state, of=_identity(self.job))
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
        due = [] if watermark is None else list(self.order.close(watermark))
        came, malformed = self.hold(events)
        late = self.order.left_out.take()
        if len(late):
            *names, reason = self.job.left_out.names
            columns = late.select(names).append_column(reason, late.column(0))
            malformed = pa.concat_tables([columns.cast(malformed.schema), malformed])
        return self._match(begun, due, malformed, came)

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
        known = [tick for tick in (None if first is None else first + 1, self.matcher.waits_until) if tick is not None]
        return min(known, default=None)

    def to_bytes(self) -> bytes:
        """The state between two micro-batches; see ``describe``."""
        waiting, floor = self.order.waiting, self.order.floor
        scope = Scope(
            {
                "of": _identity(self.job),
                "events": self.matcher.progress.events,
                "waiting": len(waiting),
                "watermark": floor if floor > NEVER else None,
            }
        )
        scope.put("matcher", self.matcher.state_bytes())
        held = pa.Table.from_batches([part.data for part in waiting.parts], self.job.schema)
        scope.put("waiting", to_ipc(held, "lz4"))
        return SHARD.pack(scope)

    @property
    def matcher(self) -> Execution:
        """The matcher as it is now."""
        assert self._matcher is not None, "process events first"
        return self._matcher

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
        if self._matcher is None:  # only now is it known how much there is to do
            self._matcher = self._began(events, came + events)
        matcher = self._matcher
        before = _counters(matcher)
        tables = [self.job.results.empty_table()]
        if events:
            tables += self._run(matcher, joined(parts))
        if self.order.floor > NEVER:
            tables.append(matcher.pass_time(self.order.floor))
        if at_end:
            tables.append(matcher.finish())
        results = pa.concat_tables([table.cast(self.job.results) for table in tables if table.num_rows] or tables[:1])
        late = self.order.left_out.counts.pop(LATE, 0)
        metrics = ShardMetrics(
            **_between(before, _counters(matcher)),
            matches=len(results),
            late=late,
            malformed=len(left_out) - late,
            waiting=len(self.order.waiting),
            weight=self.weight,
            seconds=time.perf_counter() - begun,
        )
        shedder = matcher.shedding
        return Processed(results, left_out, metrics, shedder.training_sample() if isinstance(shedder, Shedder) else b"")

    def _began(self, events: int, rows: int) -> Execution:
        """The matcher, for so many events of a micro-batch in which so many rows come in or go on."""
        job = self.job
        self.weight = job.weight(self.number, events, self.batch)
        granted = job.granted(self.number, rows, events) if job.spending is not None else None
        state, self.state = self.state, None
        return job.matcher(self.number, self.weight, state, granted, events, self.batch)

    @staticmethod
    def _run(matcher: Execution, events: EventBatch) -> Iterator[pa.Table]:
        """Run a micro-batch as one batch: a budget of time is granted for each."""
        assert matcher.pipeline is not None
        names, roles = matcher.columns, matcher.pipeline.roles
        columns = [encode_text(events.data.column(name)) for name in names]
        data = pa.RecordBatch.from_arrays(columns, names=[*names])
        batch = EventBatch(matcher.arrived, events.ticks, data)
        check_order(batch, tick_unit(events.data.schema.field(roles.time).type, roles.unit))
        return matcher.run(batch)


def _identity(job: Job) -> dict[str, str]:
    same = meaning(job.query.plan)
    shown = str(job.bind) if isinstance(job.bind, str | Wide) else ", ".join(job.bind or ()) or "RETURN"
    return {
        "query": f"{same.pop('fingerprint')} within {same.pop('window')}",
        **same,
        "columns": ", ".join(f"{field.name} {field.type}" for field in job.schema),
        "events shown as": shown,
        "output": job.output,
        "shards": str(job.shards),
        "key_idle": str(job.key_idle),
    }


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
