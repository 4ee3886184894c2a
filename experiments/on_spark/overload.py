"""A stream at three times the rate that can be matched exactly: whether the job keeps up, and what it finds.

The stream is the later half of ``drifts.swapped`` over and over again, with another condition and a window that
make exact matching dear; a history is learned from other events of the same kind. Capacity is the rate at which an
exact micro-batch takes the whole trigger. There is one event a tick, so a match point is known by its time, and one
repetition tells the exact answer of all: the first is matched, and the second, into which windows of the first reach.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.spark import start
from experiments.learning.drifts import swapped
from experiments.on_spark.plans import CORES, Done, Place, done, replay, steady
from experiments.report import Column, Report
from experiments.report import Row as Line

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Bools = npt.NDArray[np.bool_]

QUERY = (
    "PATTERN SEQ(A a, B b, C c, D d) WHERE [id] AND b.x < c.x"
    " AND (d.v - a.v - b.v) * (d.v - a.v - b.v) < 0.000001 WITHIN 6000"
)
"""No two of its runs are alike, so none can be merged."""
TRIGGER = 2.0
"""Seconds."""
OVERLOAD = 3
EACH = 5
"""Micro-batches of each time that capacity is looked for."""
FIRST_GUESS = 40_000
"""Events of the first of these micro-batches."""
START = 10
"""First micro-batches that are not counted: the job catches up with what came while Spark started."""
RANDOM = 0.4
"""Of the time of the run with a history that the one at random takes."""
GAIN = 1.5
"""Recall that is wanted, of that at random."""
MINUTE, EVERY = 60.0, 20.0
"""Seconds of a minute, and between two lines on how it goes."""


@dataclass(frozen=True)
class Scene:
    """A recording that is played again and again.

    Attributes
    ----------
    where : Place
    file : Path
    query : Query
    history : Path
    first : int
        Tick of the first event.
    points : tuple of two bool arrays, shape (events of the recording,)
        Which events complete a match, the first time and later.
    """

    where: Place
    file: Path
    query: Query
    history: Path
    first: int
    points: tuple[Bools, Bools]

    @classmethod
    def made(cls, where: Place, half: int, seed: int) -> Scene:
        """Write the recording, learn the history, and match two repetitions exactly: they are longer than a window."""
        stream = swapped(seed, half)
        played, others = (with_values(part, seed + n) for n, part in enumerate((stream.after, stream.fresh)))
        query = compile_query(QUERY, engine="runs")
        history = where.new("history")
        HistoryGraph(query).fit(others).save(history)
        file = where.written("overload", played)
        first = int(played.column("ts")[0].as_py())
        twice = pa.concat_tables([played, played.set_column(0, "ts", pc.add(played.column("ts"), half))])
        ends = query.match(twice).points().column("end").to_numpy() - first
        is_point = np.zeros(2 * half, np.bool_)
        is_point[ends] = True
        return cls(where, file, query, history, first, (is_point[:half], is_point[half:]))

    def matcher(self, **options: Any) -> Any:
        """The query on Spark: match points, a shard for each core."""
        return self.query.spark(time="ts", output="points", shards=CORES, watermark="1 millisecond", **options)

    def recall(self, found: npt.NDArray[np.int64], begin: int, end: int) -> tuple[float, int]:
        """Share of the match points among events ``begin`` to ``end - 1`` that was found, and how many there are."""
        first, later = self.points
        turns, rest = divmod(end, len(first))
        exact = np.concatenate([first, *[later] * turns])[: turns * len(first) + rest]
        numbers = np.unique(found - self.first)
        numbers = numbers[(numbers >= begin) & (numbers < end)]
        assert exact[numbers].all(), "a match point that the exact run does not have"
        total = int(exact[begin:].sum())
        return len(numbers) / max(total, 1), total


def with_values(events: pa.Table, seed: int) -> pa.Table:
    """The same events with a column ``v`` of numbers between 0 and 1."""
    return events.append_column("v", pa.array(np.random.default_rng(seed).random(len(events))))


def capacity(scene: Scene, trigger: float, rounds: int) -> float:
    """Events per second at which an exact micro-batch takes a whole trigger."""
    size, rows = FIRST_GUESS, len(scene.points[0])
    for _ in range(rounds):
        repeat = -(-EACH * size // rows)
        options = {"speed": "max", "most": str(size), "repeat": str(repeat)}
        events = replay(scene.where.spark, scene.file, time="ts", **options)
        to, checkpoint = scene.where.new("found"), scene.where.new("checkpoint")
        query = start(scene.matcher(), events, to=to, checkpoint=checkpoint, until_done=True)
        query.awaitTermination()
        seconds = float(np.median([one.seconds for one in steady(done(query))]))
        size = max(int(size * np.clip(trigger / seconds, 0.1, 5.0)), 1000)
    return size / trigger


@dataclass(frozen=True)
class Kept:
    """What came of an overloaded stream: its micro-batches, and ticks of the match points."""

    batches: list[Done]
    found: npt.NDArray[np.int64]

    def events(self, batches: int | None = None) -> int:
        """How many were matched, in all or in the first micro-batches."""
        return sum(one.progress.events for one in self.batches[:batches] if one.progress is not None)


def overloaded(report: Report, scene: Scene, rate: float, seconds: float, **options: Any) -> Kept:
    """Play at a rate for some time, with a budget."""
    repeat = int(2 * rate * (seconds + MINUTE) / len(scene.points[0])) + 1
    events = replay(scene.where.spark, scene.file, time="ts", rate=f"{rate:.0f}", repeat=str(repeat))
    to, checkpoint = scene.where.new("found"), scene.where.new("checkpoint")
    milliseconds = round(TRIGGER * 1000)
    matcher = scene.matcher(budget=f"{milliseconds} ms/batch", history=scene.history, **options)
    query = start(matcher, events, to=to, checkpoint=checkpoint, trigger=f"{milliseconds} milliseconds")
    try:
        wait(report, query, seconds)
        while len(done(query)) <= START:
            _let_run(query, TRIGGER / 4)
        batches = done(query)
    finally:
        query.stop()
    ends = [pq.read_table(file, columns=["end"]).column("end").to_numpy() for file in to.rglob("*.parquet")]
    return Kept(batches, np.concatenate([np.zeros(0, np.int64), *ends]))


def wait(report: Report, query: StreamingQuery, seconds: float) -> None:
    """Let a stream run for some time, and say now and then how it goes."""
    begun = time.monotonic()
    while (left := begun + seconds - time.monotonic()) > 0:
        _let_run(query, max(min(left, EVERY), 0.1))
        took = [one.seconds for one in done(query)]
        last = f"the last one took {took[-1]:.2f} s" if took else "none yet"
        passed = time.monotonic() - begun
        report.console.print(f"{passed:.0f} of {seconds:.0f} s: {len(took)} micro-batches, {last}")


def _let_run(query: StreamingQuery, seconds: float) -> None:
    """Let a stream run on; one that has ended or failed will not get further, however long it is waited for."""
    if query.awaitTermination(seconds):
        raise AssertionError("the stream has ended")


def overload(report: Report, where: Place, minutes: float, half: int, rounds: int, seed: int) -> None:
    """Duration of micro-batches at three times the capacity, and recall beside that of shedding at random.

    Parameters
    ----------
    report : Report
    where : Place
    minutes : float
        Of the run with a history; that which sheds at random takes ``RANDOM`` of it. Recall is compared on the events
        that both have matched after their start.
    half : int
        Events of the recording.
    rounds : int
        How often capacity is looked for, each time nearer: while the JVM is cold it is a third of what it is later.
    seed : int
    """
    report.console.print("overload: matching the recording exactly, and learning a history ...")
    scene = Scene.made(where, half, seed)
    report.console.print("looking for the capacity ...")
    can = capacity(scene, TRIGGER, rounds)
    rate = OVERLOAD * can
    runs = {}
    for policy, seconds in (("random", RANDOM * minutes * MINUTE), ("history", minutes * MINUTE)):
        report.console.print(f"{rate:,.0f} events/s, {policy} ...")
        runs[policy] = overloaded(report, scene, rate, seconds, **({"policy": policy} if policy == "random" else {}))
    end = min(run.events() for run in runs.values())
    begin = min(max(run.events(START) for run in runs.values()), end)
    lines = [_line(scene, policy, run, begin, end) for policy, run in runs.items()]
    columns = [
        Column("policy", "policy"),
        Column("batches", "batches", ",d"),
        Column("rows", "events each", ",.0f"),
        Column("p50", "p50 s", ".2f"),
        Column("p95", "p95 s", ".2f"),
        Column("max", "max s", ".2f"),
        Column("used", "steps/bound", ".2f"),
        Column("recall", "recall", ".3f"),
        Column("points", "of points", ",d"),
    ]
    note = (
        f"{rate:,.0f} events/s, {OVERLOAD} times the capacity by exact micro-batches of {TRIGGER:g} s; budget: the"
        f" trigger; without the first {START} micro-batches; recall of match points of events {begin:,} to {end:,}"
    )
    report.table("overload", f"{OVERLOAD} times the capacity, trigger {TRIGGER:g} s", lines, columns, note)
    random, history = lines
    ratio = history["recall"] / max(random["recall"], 1e-9)
    report.console.print(f"p95 within the trigger: {yes_or_no(history['p95'] <= TRIGGER)}")
    report.console.print(f"run-steps within the bound: {yes_or_no(history['used'] <= 1)}")
    report.console.print(f"recall {ratio:.2f} times that at random, wanted {GAIN:g}: {yes_or_no(ratio >= GAIN)}")


def yes_or_no(is_so: bool) -> str:
    """A verdict in a word."""
    return "yes" if is_so else "NO"


def _line(scene: Scene, policy: str, run: Kept, begin: int, end: int) -> Line:
    """One line of the table."""
    counted = run.batches[START:]
    took = np.array([one.seconds for one in counted])
    p50, p95 = np.percentile(took, [50, 95])
    recall, exact = scene.recall(run.found, begin, end)
    return {
        "policy": policy,
        "batches": len(counted),
        "rows": float(np.median([one.rows for one in counted])),
        "p50": p50,
        "p95": p95,
        "max": took.max(),
        "used": _used(counted),
        "recall": recall,
        "points": exact,
    }


def _used(batches: list[Done]) -> float:
    """Run-steps made as a share of those allowed."""
    told = [one.progress for one in batches if one.progress is not None]
    return sum(one.steps for one in told) / max(sum(one.bound for one in told), 1)
