"""A shard: the keys that are matched together. Tables of events in, tables of results and its state out.

This is the step that Spark calls for every micro-batch, and it knows nothing of Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.archive import FORMAT, Differences, Kind, Scope
from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import missing_column, to_arrow
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.events.time import tick_unit, ticks
from acep_approx.events.usable_rows import OF_A_ROW
from acep_approx.events.usable_times import usable_times
from acep_approx.ipc import to_ipc
from acep_approx.matching.execution import Execution
from acep_approx.matching.state import meaning
from acep_approx.ranges import COUNT
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.metrics import Counters, Numbers, ShardMetrics
from acep_approx.spark.worker.order import in_order

LATE, NO_TIME = "late", "no time"
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
    waiting: pa.Table = field(init=False)
    watermark: int | None = field(init=False, default=None)
    weight: float = field(init=False, default=1.0)
    _matcher: Execution | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.waiting = self.job.schema.empty_table()
        if self.state is not None:
            scope = SHARD.unpack(self.state, of=_identity(self.job))
            with SHARD.reading():
                self.state = scope.arrays["matcher"].tobytes()
                self.waiting = scope.table("waiting").cast(self.job.schema)
                self._ticks(self.waiting)
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
        tick = self._ticks(events)
        known = self._latest(watermark)
        is_late = tick < known if known is not None else np.zeros(len(tick), np.bool_)
        late = events.filter(pa.array(is_late))
        left_out = pa.concat_tables([_why(late, LATE), _why(malformed, NO_TIME)])
        self.waiting = pa.concat_tables([self.waiting, events.filter(pa.array(~is_late)) if len(late) else events])
        self.watermark = known
        ready = self._ready()
        results, metrics = self._match(ready, came=len(tick))
        counted = {
            "late": len(late),
            "malformed": len(malformed),
            "waiting": self.waiting.num_rows,
            "seconds": time.perf_counter() - begun,
        }
        return Processed(results, left_out, ShardMetrics(**{**metrics, **counted}), self._training_sample())

    def process_sorted(self, events: pa.Table) -> Processed:
        """Match events that come in order, and later than all before."""
        begun = time.perf_counter()
        events, malformed = self._with_time(events)
        results, metrics = self._match(events)
        counted = {"malformed": len(malformed), "seconds": time.perf_counter() - begun}
        return Processed(results, _why(malformed, NO_TIME), ShardMetrics(**{**metrics, **counted}))

    def finish(self) -> Processed:
        """There will be no more events: put out what the end of the stream completes."""
        begun = time.perf_counter()
        results, metrics = self._match(self.waiting.slice(0, 0), at_end=True)
        nothing = _why(self.waiting.slice(0, 0), LATE)
        return Processed(results, nothing, ShardMetrics(**{**metrics, "seconds": time.perf_counter() - begun}))

    @property
    def waits_until(self) -> int | None:
        """The watermark, as a tick, with which there is something to do though no event comes; None: never."""
        first = int(self._ticks(self.waiting).min()) + 1 if self.waiting.num_rows else None
        known = [tick for tick in (first, self.matcher.waits_until) if tick is not None]
        return min(known, default=None)

    def to_bytes(self) -> bytes:
        """The state between two micro-batches; see ``describe``."""
        scope = Scope(
            {
                "of": _identity(self.job),
                "events": self.matcher.progress.events,
                "waiting": self.waiting.num_rows,
                "watermark": self.watermark,
            }
        )
        scope.put("matcher", self.matcher.state_bytes())
        scope.put("waiting", to_ipc(self.waiting, "lz4"))
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

    def _latest(self, watermark: int | None) -> int | None:
        """The watermark never goes back, though one of a restarted query may."""
        if watermark is None or self.watermark is None:
            return self.watermark if watermark is None else watermark
        return max(watermark, self.watermark)

    def _ready(self) -> pa.Table:
        """The events that the watermark has passed, in order."""
        tick = self._ticks(self.waiting)
        if self.watermark is None or not len(tick):
            return self.waiting.slice(0, 0)
        is_ready = tick < self.watermark
        if is_ready.all():
            ready, self.waiting = self.waiting, self.waiting.slice(0, 0)
        else:
            ready = self.waiting.filter(pa.array(is_ready))
            self.waiting = self.waiting.filter(pa.array(~is_ready)).combine_chunks()
        return in_order(ready, tick[is_ready], self.job.order)[0]

    @staticmethod
    def _run(matcher: Execution, ready: pa.Table) -> Iterator[pa.Table]:
        """Run a micro-batch as one batch: a budget of time is granted for each."""
        pipeline = matcher.pipeline
        assert pipeline is not None
        first, rows = matcher.progress.events, ready.num_rows
        source = open_source(ready.combine_chunks())
        for batch in read_events(source, pipeline.roles, columns=pipeline.columns, batch_rows=rows, first_row=first):
            yield from matcher.run(batch)

    def _match(self, ready: pa.Table, *, came: int = 0, at_end: bool = False) -> tuple[pa.Table, Numbers]:
        """Run events in order; returns what they complete, and what it took."""
        if self._matcher is None:  # only now is it known how much there is to do
            self.weight = self.job.weight(self.number, ready.num_rows, self.batch)
            spending = self.job.spending
            rows = came + ready.num_rows, ready.num_rows
            granted = self.job.granted(self.number, *rows) if spending is not None else None
            state, self.state = self.state, None
            self._matcher = self.job.matcher(self.number, self.weight, state, granted, ready.num_rows, self.batch)
        matcher = self._matcher
        before = Counters.of(matcher)
        tables = [self.job.results.empty_table()]
        if ready.num_rows:
            tables += self._run(matcher, ready)
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
