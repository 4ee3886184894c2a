"""A stream at three times the rate that can be matched exactly: whether the job keeps up, and what it finds.

The stream is the later half of ``drifts.swapped`` over and over again, with another condition and a window that
make exact matching dear; a history is learned from other events of the same kind. Capacity is the rate at which an
exact micro-batch takes the whole trigger. There is one event a tick, so a match point is known by its time, and one
repetition tells the exact answer of all: the first is matched, and the second, into which windows of the first reach.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from acep_approx import HistoryGraph, QuerySet, RuleHistory, compile_query, compile_rules
from acep_approx.spark import start
from experiments.learning.drifts import swapped
from experiments.on_spark.plans import CORES, Done, Place, done, replay, steady
from experiments.report import Column, Report
from experiments.report import Row as Line

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Bools, Ints = npt.NDArray[np.bool_], npt.NDArray[np.int64]

NEAR = "PATTERN SEQ(A a, B b, C c, D d) WHERE [id] AND b.x < c.x AND (d.v - a.v - b.v) * (d.v - a.v - b.v) <"
QUERY = f"{NEAR} 0.000001 WITHIN 6000"
"""No two of its runs are alike, so none can be merged."""
ROWS = 4
TEMPLATE = f"{NEAR} :near WITHIN 3000"
OTHER = "PATTERN SEQ(A a, C c, D d) WHERE [id] AND (d.v - a.v * c.v) * (d.v - a.v * c.v) < 0.000001 WITHIN 6000"
RULES = f"""
TABLE seen (id int, n int DEFAULT 0, KEY (id))
RULE count ON {QUERY} DO UPDATE seen SET n = old.n + 1 AT (d.id) END
RULE often ON {OTHER.replace(" WITHIN", " AND store.seen[d.id].n > 5 WITHIN")}
"""
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
class Kind:
    """A kind of program that is overloaded.

    Attributes
    ----------
    program : Query, QuerySet or RuleSet
        Has ``spark``.
    who : str
        The column of results that names the query or the rule; "" where there is one.
    options : dict
        Of ``spark``.
    exact : callable
        The results of some events, without Spark.
    learned : callable
        A history of some events, to be saved.
    """

    program: Any
    who: str
    options: dict[str, Any]
    exact: Callable[[pa.Table], pa.Table]
    learned: Callable[[pa.Table], Any]


def a_query() -> Kind:
    """One query, whose match points are asked for."""
    query = compile_query(QUERY, engine="runs")
    how = {"time": "ts", "output": "points"}
    return Kind(query, "", how, lambda events: query.match(events).points(), HistoryGraph(query).fit)


def a_set() -> Kind:
    """Some queries that differ in how near values must be, and two that look for something else."""
    desk = QuerySet(time="ts", output="points")
    desk.add_many(TEMPLATE, [{"near": near * 1e-6} for near in range(1, ROWS + 1)], id="near")
    desk.add(QUERY, id="nearest")
    desk.add(OTHER, id="other")
    return Kind(desk, "query", {}, lambda events: desk.match(events).table(), desk.train)


def some_rules() -> Kind:
    """A rule that counts what it finds for each key, and one that reads this."""
    rules = compile_rules(RULES)

    def exact(events: pa.Table) -> pa.Table:
        found = rules.run(events)
        return pa.concat_tables(
            of.select(["end"]).append_column("rule", pa.array([name] * len(of))) for name, of in found.items()
        )

    return Kind(rules, "rule", {"time": "ts"}, exact, RuleHistory(rules).fit)


KINDS = {"query": a_query, "set": a_set, "rules": some_rules}


@dataclass(frozen=True)
class Scene:
    """A recording that is played again and again.

    Attributes
    ----------
    where : Place
    file : Path
    kind : Kind
    history : Path
    first : int
        Tick of the first event.
    points : tuple of two dicts of str to bool array, shape (events of the recording,)
        Which events complete a match of which query or rule, the first time and later.
    """

    where: Place
    file: Path
    kind: Kind
    history: Path
    first: int
    points: tuple[dict[str, Bools], dict[str, Bools]]

    @classmethod
    def made(cls, where: Place, name: str, half: int, seed: int) -> Scene:
        """Write the recording, learn the history, and match two repetitions exactly: they are longer than a window."""
        stream, kind = swapped(seed, half), KINDS[name]()
        played, others = (with_values(part, seed + n) for n, part in enumerate((stream.after, stream.fresh)))
        history = where.new("history")
        kind.learned(others).save(history)
        file = where.written("overload", played)
        first = int(played.column("ts")[0].as_py())
        twice = pa.concat_tables([played, played.set_column(0, "ts", pc.add(played.column("ts"), half))])
        ends = {who: ticks - first for who, ticks in by_name(kind.exact(twice), kind.who).items()}
        is_point = {who: np.isin(np.arange(2 * half), ends[who]) for who in ends}
        once, later = ({who: of[part] for who, of in is_point.items()} for part in (slice(half), slice(half, None)))
        return cls(where, file, kind, history, first, (once, later))

    @property
    def half(self) -> int:
        """Events of the recording."""
        return len(next(iter(self.points[0].values())))

    def matcher(self, **options: Any) -> Any:
        """The program on Spark, a shard for each core."""
        return self.kind.program.spark(**self.kind.options, shards=CORES, watermark="1 millisecond", **options)

    def recall(self, found: dict[str, Ints], begin: int, end: int) -> tuple[float, int]:
        """Share of the match points among events ``begin`` to ``end - 1`` that was found, and how many there are."""
        right = total = 0
        for who, first in self.points[0].items():
            turns, rest = divmod(end, len(first))
            exact = np.concatenate([first, *[self.points[1][who]] * turns])[: turns * len(first) + rest]
            numbers = np.unique(found.get(who, np.zeros(0, np.int64)) - self.first)
            numbers = numbers[(numbers >= begin) & (numbers < end)]
            assert exact[numbers].all(), f"a match point that the exact run does not have: {who}"
            right, total = right + len(numbers), total + int(exact[begin:].sum())
        return right / max(total, 1), total


def by_name(results: pa.Table, who: str) -> dict[str, Ints]:
    """The ticks at which matches of each query or rule end."""
    ends = results.column("end").to_numpy()
    if not who:
        return {"": ends}
    names = results.column(who).cast(pa.string()).to_numpy(zero_copy_only=False)
    return {str(name): ends[names == name] for name in np.unique(names)}


def with_values(events: pa.Table, seed: int) -> pa.Table:
    """The same events with a column ``v`` of numbers between 0 and 1."""
    return events.append_column("v", pa.array(np.random.default_rng(seed).random(len(events))))


def capacity(scene: Scene, trigger: float, rounds: int) -> float:
    """Events per second at which an exact micro-batch takes a whole trigger."""
    size, rows = FIRST_GUESS, scene.half
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
    found: dict[str, Ints]

    def events(self, batches: int | None = None) -> int:
        """How many were matched, in all or in the first micro-batches."""
        return sum(one.progress.events for one in self.batches[:batches] if one.progress is not None)


def overloaded(report: Report, scene: Scene, rate: float, seconds: float, **options: Any) -> Kept:
    """Play at a rate for some time, with a budget."""
    repeat = int(2 * rate * (seconds + MINUTE) / scene.half) + 1
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
    who = scene.kind.who
    files = [pq.read_table(file, columns=["end", who] if who else ["end"]) for file in to.rglob("*.parquet")]
    return Kept(batches, by_name(pa.concat_tables(files), who) if files else {})


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
    for name in KINDS:
        _overload(report, Scene.made(where, name, half, seed), name, minutes * MINUTE, rounds)


def _overload(report: Report, scene: Scene, name: str, length: float, rounds: int) -> None:
    """One kind of program."""
    report.console.print(f"overload, {name}: looking for the capacity ...")
    can = capacity(scene, TRIGGER, rounds)
    rate = OVERLOAD * can
    runs = {}
    for policy, seconds in (("random", RANDOM * length), ("history", length)):
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
    title = f"{name}: {OVERLOAD} times the capacity, trigger {TRIGGER:g} s"
    report.table(f"overload_{name}", title, lines, columns, note)
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
