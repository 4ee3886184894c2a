"""Large jobs: 16 shards and many queries of a template. How long until they run, what they keep, and a hot key.

Times are seconds of CPU where nothing else is said: of this process and of all that it started, Java and Python.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx import QuerySet
from acep_approx.api.on_spark.queries import SetWork
from acep_approx.spark import start
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.shard import Shard
from acep_approx.subscriptions.state import pack
from experiments.on_spark.plans import CORES, Place, replay
from experiments.on_spark.throughput import APART, DELAY, SCHEMA
from experiments.report import Column, Report
from experiments.report import Row as Line

if TYPE_CHECKING:
    from acep_approx.spark import SparkMatcher

SHARDS = 16
TEMPLATE = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.k = :k WITHIN 500 ms"
FEW = 1_000
"""Queries of a small job, and keys of a small stream: what grows with them is the difference to many."""
HOT = 0.8
"""Share of the events that one key has."""
RARE = 10_000
"""Microseconds between events where a key is hot: closer together, nearly all of its events would match each other."""
PLANS, STARTS = 10.0, 60.0
"""Seconds that a job may take to be planned, and until its first micro-batch is done."""


def many(queries: int) -> SparkMatcher:
    """As many queries, each of a key of its own."""
    desk = QuerySet(time="ts", key="k")
    desk.add_many(TEMPLATE, [{"k": number} for number in range(queries)])
    return desk.spark(id="id", shards=SHARDS, watermark=f"{DELAY // 1000} ms")


def stream(number: int, keys: int, seed: int, hot: float = 0.0, apart: int = APART) -> pa.Table:
    """Events of the three types, with keys that are all as likely, but for the first one."""
    dice, row = np.random.default_rng(seed), np.arange(number)
    key = np.where(dice.random(number) < hot, 0, dice.integers(1, keys, number))
    types = pa.DictionaryArray.from_arrays(dice.integers(0, 3, number, np.int32), pa.array(list("ABC")))
    columns = [pa.array((row + 1) * apart), types.cast(pa.string()), pa.array(key), pa.array(row)]
    return pa.table([one.cast(field.type) for one, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def sizes(report: Report, where: Place, queries: int, events: int, seed: int) -> None:
    """Print what a large job takes until it runs, what its shards keep, and what one hot key does to the others.

    Parameters
    ----------
    report : Report
    where : Place
    queries, events : int
        Of the job, and of its stream.
    seed : int
    """
    lines = [*_until_it_runs(where, queries, events, seed)]
    title = f"{queries:,} queries of a template, {SHARDS} shards, local[{CORES}]"
    report.table("until_it_runs", title, lines, UNTIL, "the first micro-batch starts workers, and makes all shards")
    report.table("kept", f"bytes of the state of {SHARDS} shards", [*_kept(queries, seed)], KEPT)
    lines = [*_hot_key(queries, events, seed)]
    report.table("hot_key", f"one key with {HOT:.0%} of the events", lines, HOT_KEY, "shards outside of Spark")


# --- until it runs --------------------------------------------------------------------------------------------------

UNTIL = [
    Column("step", "step"),
    Column("cpu", "CPU s", ".1f"),
    Column("seconds", "seconds", ".1f"),
    Column("wanted", "wanted s", ".0f"),
]


def _until_it_runs(where: Place, queries: int, events: int, seed: int) -> Iterator[Line]:
    clock = _Clock()
    matcher = many(queries)
    job = matcher.job(SCHEMA, is_stream=True, shards=SHARDS, cores=CORES)
    size = len(pickle.dumps(job)) / 1e6
    yield {"step": f"planned; {size:.1f} MB go to each worker", **clock.read(), "wanted": PLANS}
    path = where.written("many", stream(events, queries, seed))
    clock = _Clock()
    read = replay(where.spark, path, time="ts", speed="max", most=str(events // 4))
    folder, told = where.new("found"), list[float]()
    running = start(
        matcher, read, to=folder, checkpoint=where.new("checkpoint"), until_done=True,
        on_progress=lambda progress: told.append(progress.seconds),
    )  # fmt: skip
    while running.lastProgress is None and running.isActive:
        time.sleep(0.05)
    yield {"step": "started, until the first micro-batch is done", **clock.read(), "wanted": STARTS}
    clock = _Clock()
    running.awaitTermination()
    batches = max(len(running.recentProgress) - 1, 1)
    each = {name: value / batches for name, value in clock.read().items()}
    yield {"step": f"each of {batches} later micro-batches", **each, "wanted": None}


class _Clock:
    """Seconds since it was made: of CPU, and on the wall."""

    def __init__(self) -> None:
        self._cpu, self._wall = family_cpu(), time.perf_counter()

    def read(self) -> dict[str, float]:
        return {"cpu": family_cpu() - self._cpu, "seconds": time.perf_counter() - self._wall}


def family_cpu() -> float:
    """Seconds of CPU of this process, and of all that it started; of those that have ended where somebody waited."""
    of: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            _, parent, *numbers = path.read_text().rpartition(")")[2].split()
            of[int(path.parent.name)] = (int(parent), sum(map(int, numbers[9:13])) / os.sysconf("SC_CLK_TCK"))
    family, mine = [os.getpid()], 0.0
    for process in family:
        mine += of[process][1]
        family += [number for number, (parent, _) in of.items() if parent == process]
    return mine


# --- what is kept ---------------------------------------------------------------------------------------------------

KEPT = [
    Column("what", "of"),
    Column("here", "on one machine", ",.1f"),
    Column("spark", "on Spark, all shards", ",.1f"),
]


def _kept(queries: int, seed: int) -> Iterator[Line]:
    few, lots = (_states(number, FEW, seed) for number in (FEW, queries))
    more = _states(queries, min(4 * FEW, queries), seed)
    yield {"what": "an idle query", **{name: (lots[name] - few[name]) / (queries - FEW) for name in few}}
    keys = min(4 * FEW, queries) - FEW
    yield {"what": "a key with events", **{name: (more[name] - lots[name]) / keys for name in few}}
    yield {"what": "all", **lots}


def _states(queries: int, keys: int, seed: int) -> dict[str, float]:
    """Bytes of the state of a run here, and of all states of ``SHARDS`` shards."""
    events = stream(4 * keys, keys, seed)
    matcher, found = many(queries), dict[str, float]()
    for name, shards in (("here", 1), ("spark", SHARDS)):
        job = matcher.job(SCHEMA, is_stream=True, shards=shards, cores=CORES)
        found[name] = sum(len(_whole(shard) if name == "here" else shard.to_bytes()) for shard, _ in _run(job, events))
    return found


def _whole(shard: Shard) -> bytes:
    """The state of a set that keeps its queries itself."""
    assert isinstance(shard.work, SetWork)
    return pack(shard.work.running, {})


def _run(job: Job, events: pa.Table) -> Iterator[tuple[Shard, float]]:
    """The shards of a job with its events, one after the other, and the seconds of CPU per event that each took."""
    events = events.select(job.schema.names).cast(job.schema)
    shard_of = pc.bit_wise_and(events["k"], job.shards - 1)
    last = int(events["ts"][-1].value) + 1
    for number in range(job.shards):
        shard, mine = Shard(job, number), events.filter(pc.equal(shard_of, number))
        shard.process(mine.slice(0, 0), None)
        shard.process(mine, None)
        begun = time.process_time()
        shard.process(mine.slice(0, 0), last)
        yield shard, (time.process_time() - begun) / max(len(mine), 1)


# --- a hot key ------------------------------------------------------------------------------------------------------

HOT_KEY = [
    Column("shards", "shards"),
    Column("plain", "us per event, without it", ",.2f"),
    Column("hot", "us per event, with it", ",.2f"),
    Column("ratio", "ratio", ".2f"),
]


def _hot_key(queries: int, events: int, seed: int) -> Iterator[Line]:
    job = many(queries).job(SCHEMA, is_stream=True, shards=SHARDS, cores=CORES)
    others = round(events * (1 - HOT))  # as many events of other keys in the same time
    alike = stream(others, queries, seed, apart=RARE * events // others)
    for _ in _run(job, alike):  # kernels are loaded
        pass
    plain, hot = ([each for _, each in _run(job, some)] for some in (alike, stream(events, queries, seed, HOT, RARE)))
    yield _compared("that of the hot key", plain[:1], hot[:1])
    yield _compared("the others", plain[1:], hot[1:])


def _compared(shards: str, plain: Sequence[float], hot: Sequence[float]) -> Line:
    before, after = (1e6 * float(np.median(some)) for some in (plain, hot))
    return {"shards": shards, "plain": before, "hot": after, "ratio": after / before}
