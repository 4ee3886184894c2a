"""A driver and its shards without Spark: shards are called as Spark would call them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pyarrow as pa

from acep_approx import compile_query
from acep_approx.budget.budget import Budget
from acep_approx.events.roles import Roles
from acep_approx.spark.plan import packing
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.shard import Shard
from acep_approx.spark.worker.spending import Spending

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x + 3 WITHIN 60"
QUERY = compile_query(TEXT)
SHARDS = 3
BATCH = 2_500


def stream(batches: int, seed: int = 1) -> pa.Table:
    """Events of 40 keys; few of the runs that begin late in x can end well."""
    dice = np.random.default_rng(seed)
    number = batches * BATCH
    return pa.table({
        "ts": np.sort(dice.integers(1, number // 25, number)),
        "k": pa.array([f"k{i}" for i in dice.integers(0, 40, number)]),
        "x": dice.integers(0, 10, number),
        "type": pa.array(np.array(list("ABC"))[dice.integers(0, 3, number)].tolist()),
        "id": np.arange(number),
    })  # fmt: skip


def job_of(events: pa.Table, control: Path, shards: int = SHARDS, **spending: object) -> Job:
    """The job of a stream within a fifth of the full work."""
    load = Spending(Budget.parse("20%"), control=str(control), full_work=2.0, **spending)  # type: ignore[arg-type]
    program = QueryProgram(QUERY, "id", "points")
    return Job.of(program, events.schema, Roles("ts", None, "type", None), ("id",), shards, load)


def micro_batches(
    job: Job,
    events: pa.Table,
    states: dict[int, bytes],
    *,
    key: str = "k",
    size: int = BATCH,
    finds: Callable[[pa.Table], None] = lambda _: None,
) -> Iterator[list[SimpleNamespace]]:
    """Match a stream as Spark would: gives the metrics of each micro-batch, which the driver takes before the next.

    Events wait for the watermark, as on Spark: when they are matched a shard knows how many there are. ``finds`` takes
    what is found.
    """
    shard_of = np.array([crc32(str(one).encode()) % job.shards for one in events[key].to_pylist()])
    for at in range(0, len(events), size):
        piece = np.arange(at, min(at + size, len(events)))
        last = int(events["ts"][int(piece[-1])].as_py())
        metrics = []
        for number in range(job.shards):
            shard = Shard(job, number, states.get(number))
            shard.hold(events.take(piece[shard_of[piece] == number]))
            processed = shard.process(events.slice(0, 0), last)
            finds(processed.results)
            states[number] = shard.to_bytes()
            rows = packing.packed(number, processed)
            metrics += [SimpleNamespace(**row) for row in rows if row["kind"] == packing.METRICS]
        yield metrics


def run(job: Job, control: Path, events: pa.Table, *, restart_at: int = -1) -> list[int]:
    """Match a stream; the driver may be another one from some micro-batch on. Returns the match points of each."""
    driver, states, found = Driver(job, control), {}, []
    for number, metrics in enumerate(micro_batches(job, events, states)):
        if number == restart_at:
            driver = Driver(job, control)
        driver.process(metrics, number)
        found.append(sum(row.points for row in metrics))
    return found
