"""Throughput on Spark, against the same plans without a matcher; and where the time goes.

A pass-through does all that the matcher's plan does but match: the same columns through the same shuffle, sort,
packing and stateful step, identity in Python. In a stream there are two: one hands events on as they come, the other
keeps them in the state until the next micro-batch, as the matcher has to, because they wait there for the watermark.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from rich.markup import escape

from acep_approx import Matcher, compile_query
from acep_approx.ipc import from_ipc
from acep_approx.spark import observed
from acep_approx.spark.plan import packing
from acep_approx.spark.plan.packing import GROUP, SHARD, Batches, packer, unpacker
from acep_approx.spark.worker.program import MATCHES
from acep_approx.spark.worker.shard import Shard
from experiments.on_spark.plans import CORES, Done, Place, drained, rates, spread, steady
from experiments.report import Column, Report
from experiments.report import Row as Line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from acep_approx.spark import SparkMatcher
    from acep_approx.spark.plan.flow import Flow
    from acep_approx.spark.worker.job import Job

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 500 ms ERRORS 1"
KEYS = 10_000
APART = 100
"""Microseconds between events."""
DELAY = 1_000_000
"""Microseconds that events may be late."""
SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("type", pa.string()), ("k", pa.int64()), ("id", pa.int64())])
MATCHER, HANDED_ON, KEPT = "matcher", "pass-through", "pass-through with state"
WANTED = 0.6
SIMULATED = 4
"""Micro-batches that are done outside of Spark, to see what their parts take."""


def events(first: int, number: int, seed: int) -> pa.Table:
    """Events ``first`` to ``first + number - 1`` of a stream: of ten types and ``KEYS`` keys, all as likely."""
    dice = np.random.default_rng((seed, first))
    row = np.arange(first, first + number)
    letters = pa.DictionaryArray.from_arrays(dice.integers(0, 10, number, np.int32), pa.array(list("ABCDEFGHIJ")))
    columns = [pa.array((row + 1) * APART), letters.cast(pa.string()), pa.array(dice.integers(0, KEYS, number)), row]
    return pa.table(
        [pa.array(column).cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@dataclass(frozen=True)
class Recorded:
    """A stream of a seed in files: ``CORES`` of them hold the events of a micro-batch."""

    where: Place
    name: str

    @classmethod
    def written(cls, where: Place, each: int, batches: int, seed: int) -> Recorded:
        """Write ``batches`` times ``each`` events; files get times at which Spark takes them in this order."""
        made = cls(where, f"events-{each}-{batches}-{seed}")
        folder = where.folder / made.name
        folder.mkdir(exist_ok=True)
        part = each // CORES
        for number in range(batches * CORES):
            path = folder / f"{number:04}.parquet"
            pq.write_table(events(number * part, part, seed), path)
            os.utime(path, (1e9 + number, 1e9 + number))
        return made

    def batch(self) -> DataFrame:
        """All of it."""
        return self.where.spark.read.schema(from_arrow_schema(SCHEMA)).parquet(str(self.where.folder / self.name))

    def stream(self) -> DataFrame:
        """All of it, micro-batch by micro-batch."""
        reader = self.where.spark.readStream.schema(from_arrow_schema(SCHEMA)).option("maxFilesPerTrigger", CORES)
        return reader.parquet(str(self.where.folder / self.name))


def matcher(unit: str | None = None) -> SparkMatcher:
    """The query on Spark, a shard for each core; ``unit`` is that of times that are numbers."""
    return compile_query(QUERY).spark(
        time="ts", unit=unit, key="k", id="id", shards=CORES, watermark=f"{DELAY // 1000} milliseconds"
    )


# --- plans ----------------------------------------------------------------------------------------------------------


class PassThrough(StatefulProcessor):
    """Gives out the events of a shard as they come in, or those that came in before.

    Parameters
    ----------
    keeps : bool
        Whether events wait in the state for the next micro-batch.
    """

    def __init__(self, *, keeps: bool) -> None:
        self.keeps = keeps

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Ask for the state."""
        self._kept = handle.getValueState("kept", "payloads array<binary>")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """New events of a shard, packed."""
        payloads = [row.payload for row in rows]
        if self.keeps:
            state = self._kept.get()
            kept = [] if state is None else list(state[0])
            self._kept.update((payloads,))
            payloads = kept
        nothing = dict.fromkeys(packing.NUMBERS)
        for payload in payloads:
            yield Row(shard=key[0], kind=MATCHES, payload=payload, **nothing)

    def close(self) -> None:
        """Nothing is open."""


def identity(batches: Batches) -> Batches:
    """For ``mapInArrow``."""
    yield from batches


def streaming(flow: Flow, plan: str) -> DataFrame:
    """The stream of a plan: matches, or events."""
    if plan == MATCHER:
        return flow.matches(observed(flow.outputs()))
    by_shard = flow.packed_by_shard(packing.spread(flow.events.sparkSession, flow.job.shards)).groupBy(GROUP)
    processor = PassThrough(keeps=plan == KEPT)
    packed = by_shard.transformWithState(processor, packing.PACKED, "append", "eventTime")
    schema = flow.job.schema
    found = packed.filter(F.col("kind") == MATCHES)
    return found.mapInArrow(unpacker(schema), from_arrow_schema(schema))


def batch_seconds(flow: Flow, plan: str) -> float:
    """How long the plan takes on all events at once."""
    passed = None
    if plan != MATCHER:
        passed = flow._sorted(flow.job.parts[0]).mapInArrow(identity, from_arrow_schema(flow.job.schema))
    begun = time.perf_counter()
    (flow.matches() if passed is None else passed).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


# --- what the parts of a micro-batch take, outside of Spark ---------------------------------------------------------


@dataclass
class Parts:
    """Seconds of all cores for one micro-batch: Arrow, state, the step of the shards, and the kernel in it."""

    arrow: float = 0.0
    state: float = 0.0
    step: float = 0.0
    kernel: float = 0.0


class Shop:
    """Does the work of micro-batches on one core, and takes the time.

    Parameters
    ----------
    job : Job
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.states: dict[int, bytes] = {}
        (query,) = job.engines.values()
        self.local = Matcher(query.plan, bind="id")
        engine: Any = self.local.bind(job.plain, job.roles).engine
        self.in_kernel = 0.0
        engine.update = self._timed(engine.update)

    def _timed(self, update: Any) -> Any:
        def timed(*given: Any) -> Any:
            begun = time.perf_counter()
            found = update(*given)
            self.in_kernel += time.perf_counter() - begun
            return found

        return timed

    def run(self, table: pa.Table, watermark: int | None) -> Parts:
        """One micro-batch; events of a shard are those of every ``CORES``-th key."""
        parts = Parts()
        clock = _Clock()
        shard = pa.array(table.column("k").to_numpy() % CORES, pa.int32())
        carried = table.select(self.job.schema.names).append_column(SHARD, shard).to_batches(max_chunksize=100_000)
        clock.lap()
        rows = pa.Table.from_batches(list(packer(self.job.schema, range(CORES), [SHARD])(iter(carried))))
        parts.arrow += clock.lap()
        for number in range(CORES):
            of_shard = rows.filter(pa.array(rows.column(GROUP).to_numpy() == number))
            clock.lap()
            mine = pa.concat_tables([from_ipc(payload.as_py()) for payload in of_shard.column("payload")])
            parts.arrow += clock.lap()
            one = Shard(self.job, number, self.states.get(number))
            parts.state += clock.lap()
            processed = one.process(mine, watermark)
            parts.step += clock.lap()
            self.states[number] = one.to_bytes()
            parts.state += clock.lap()
            made = pa.RecordBatch.from_pylist(list(packing.packed(number, processed)), schema=packing.SCHEMA)
            found = made.filter(pa.array([kind == MATCHES for kind in made.column("kind").to_pylist()]))
            list(unpacker(self.job.results)(iter([found])))
            parts.arrow += clock.lap()
        self.in_kernel = 0.0
        self.local.push(table)
        parts.kernel = self.in_kernel
        return parts


class _Clock:
    def __init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap."""
        last, self.last = self.last, time.perf_counter()
        return self.last - last


def simulated(job: Job, each: int, seed: int) -> Parts:
    """What a micro-batch of so many events takes, the median of some; the first ones are not counted."""
    shop = Shop(job)
    found = []
    for number in range(SIMULATED + 2):
        watermark = number * each * APART - DELAY if number else None
        found.append(shop.run(events(number * each, each, seed), watermark))
    return Parts(*(statistics.median(getattr(one, name) for one in found[2:]) for name in vars(found[0])))


# --- tables ---------------------------------------------------------------------------------------------------------

RATES = [
    Column("how", "events come"),
    Column("plan", "plan"),
    Column("events", "events at once", ",d"),
    Column("median", "events/s", ",.0f"),
    Column("least", "least", ",.0f"),
    Column("most", "most", ",.0f"),
    Column("ratio", "matcher / it", ".2f"),
    Column("ratios", "in turns"),
    Column("wanted", "wanted", ".1f"),
    Column("matches", "matches/event", ".4f"),
]


def throughput(report: Report, where: Place, each: int, repeats: int, batches: int, seed: int) -> None:
    """Events per second, and shares of the time.

    Parameters
    ----------
    report : Report
    where : Place
    each : int
        Events of a micro-batch; a batch has four times as many.
    repeats : int
        How often each plan is run, in turns.
    batches : int
        Micro-batches of a stream.
    seed : int
    """
    lines, runs = _streams(Recorded.written(where, each, batches, seed), repeats)
    lines += _batches(Recorded.written(where, 4 * each, 1, seed), 4 * each, repeats)
    note = "ratios: medians of runs in turns; a pass-through with state keeps events for a micro-batch, as the matcher"
    report.table("throughput", escape(f"{QUERY}, {KEYS:,} keys, local[{CORES}]"), lines, RATES, note)
    job = matcher().flow(Recorded(where, f"events-{4 * each}-1-{seed}").batch()).job
    _shares(report, runs, simulated(job, each, seed))


def _streams(recorded: Recorded, repeats: int) -> tuple[list[Line], list[Done]]:
    plans = (MATCHER, HANDED_ON, KEPT)
    found: dict[str, list[list[Done]]] = {plan: [] for plan in plans}
    for turn in range(repeats):
        for plan in plans[turn % 3 :] + plans[: turn % 3]:
            stream = streaming(matcher().flow(recorded.stream()), plan)
            found[plan].append(list(steady(drained(stream, recorded.where.new("checkpoint")))))
    of_run = {plan: [statistics.median(rates(run)) for run in found[plan]] for plan in plans}
    ours = [one for run in found[MATCHER] for one in run]
    counted = [one.progress for one in ours if one.progress is not None]
    per_event = sum(one.matches for one in counted) / max(sum(one.events for one in counted), 1)
    return in_lines("stream", ours[0].rows, of_run, per_event), ours


def _batches(recorded: Recorded, size: int, repeats: int) -> list[Line]:
    plans = (MATCHER, HANDED_ON)
    of_run: dict[str, list[float]] = {plan: [] for plan in plans}
    flow = matcher().flow(recorded.batch())
    found = flow.matches().count()  # also loads the kernels
    for turn in range(repeats):
        for plan in plans[:: 1 if turn % 2 else -1]:
            of_run[plan].append(size / batch_seconds(flow, plan))
    return in_lines("batch", size, of_run, found / size)


def in_lines(
    how: str, size: int, of_run: dict[str, list[float]], per_event: float | None = None, wanted: float = WANTED
) -> list[Line]:
    """The rates of some plans, and how that of the matcher compares with the others."""
    lines: list[Line] = []
    for plan, found in of_run.items():
        line: Line = {"how": how, "plan": plan, "events": size, **spread(found)}
        line |= dict.fromkeys(("ratio", "ratios", "wanted", "matches"))
        if plan == MATCHER:
            line["matches"] = per_event
        else:
            line |= in_turns(of_run[MATCHER], found) | {"wanted": wanted}
        lines.append(line)
    return lines


def in_turns(ours: list[float], theirs: list[float]) -> Line:
    """The ratios of runs that took turns."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    shown = " ".join(f"{one:.2f}" for one in ratios)
    return {"ratio": statistics.median(ratios), "ratios": shown}


def _shares(report: Report, runs: list[Done], parts: Parts) -> None:
    """Where the seconds of the cores go in a micro-batch of the matcher."""
    wall = statistics.median(one.seconds for one in runs)
    step = statistics.median(one.progress.matching_seconds for one in runs if one.progress is not None)
    commit = statistics.median(one.commit for one in runs)
    cores = CORES * wall
    took = {
        "kernel": parts.kernel,
        "rest of the step": max(step - parts.kernel, 0.0),
        "state as bytes": parts.state,
        "RocksDB commit": commit,
        "Arrow: pack, unpack": parts.arrow,
    }
    took["Spark, waiting"] = cores - sum(took.values())
    lines: list[Line] = [{"part": part, "seconds": of, "share": 100 * of / cores} for part, of in took.items()]
    lines.append({"part": "all", "seconds": cores, "share": 100.0})
    columns = [Column("part", "part"), Column("seconds", "seconds", ".3f"), Column("share", "%", ".1f")]
    note = (
        f"stream, medians: {wall:.2f} s a micro-batch on {CORES} cores; the step as the shards took its time (alone it "
        f"takes {parts.step:.2f} s); kernel, state as bytes and Arrow as they take outside of Spark on the same events"
    )
    report.table("shares", "where the time of the cores goes", lines, columns, note)
