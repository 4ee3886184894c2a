"""``acep demo --spark``: learn from the past, match a stream inside a budget, and learn on; on the flights."""

from __future__ import annotations

import datetime as dt
import time as clock
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any

from acep_approx.cli.on_spark.stream import Tally
from acep_approx.cli.on_spark.words import Pulse, live, waiting
from acep_approx.cli.tables import show_table
from acep_approx.cli.terminal import amount, say, tell

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from acep_approx.api import Query
    from acep_approx.arrays import Ints
    from acep_approx.learning.judging import Tally as Judged
    from acep_approx.learning.judging import Verdict
    from acep_approx.spark.streaming.metrics import Totals

QUERY = """\
PATTERN SEQ(DEP a, DEP b, CXL c)
WHERE [carrier] AND b.delay_min > a.delay_min AND b.origin = a.origin AND c.dest = a.dest
WITHIN 2 h"""

STORY = """\
Flights out of New York in 2013. Which cancellations were coming? A flight leaves (a), another one of the same airline
leaves the same airport with a longer delay (b), and within two hours a flight of the airline to where a went is
cancelled (c):

{query}

Three months are the past; the other nine are replayed as a stream of {events:,} events, {days:,} days in less than a
minute, if this machine keeps up, with a budget: {budget} of the work that all matches would take.
"""
NOW_BEGINS = dt.datetime(2013, 4, 1, tzinfo=dt.UTC)
BUDGET = "10%"
SECONDS = 40
"""What the replay takes."""
TRIGGER = "2 seconds"
LEAST_BATCHES = 20
"""Micro-batches of a machine that cannot keep up: with each of them the history may be refreshed."""
ID = "event"
FEW = 500
"""Events that kernels are compiled with while Spark starts."""
LAST_NEWS = 5
"""Seconds in which Spark tells of the last micro-batch."""


@dataclass(frozen=True)
class Compared:
    """What was found, in match points.

    Attributes
    ----------
    exact : int
        All there are.
    random, frozen : int
        Inside the budget: with coins, and with the history of the past alone.
    refreshed : int
        With a history that learned on while the stream ran.
    judged : Judged
        Those that only the last found, and those that only the one before it found.
    points : pyarrow.Table
        Those found in the stream.
    totals : Totals
        Of the stream.
    """

    exact: int
    random: int
    frozen: int
    refreshed: int
    judged: Judged
    points: pa.Table
    totals: Totals


def demo_on_spark(master: str | None, *, quiet: bool) -> str:
    """Run the demo, print what was found, and draw it.

    Parameters
    ----------
    master : str or None
        The cluster; it must see the temporary folders of this machine.
    quiet : bool
        Only draw.

    Returns
    -------
    str
        The picture, a page of HTML.
    """
    import pyarrow.compute as pc

    from acep_approx.events.demo import flights
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.setup.session import check_spark, session

    check_spark(streaming=True)
    events = flights()
    is_past = pc.less(events["ts"], NOW_BEGINS)
    past, now = events.filter(is_past), events.filter(pc.invert(is_past))
    if not quiet:
        shown = "\n".join(f"    {line}" for line in QUERY.splitlines())
        days = (now["ts"][-1].as_py() - now["ts"][0].as_py()).days
        tell(STORY.format(query=shown, events=len(now), days=days, budget=BUDGET))
    with TemporaryDirectory(prefix="acep-demo-") as home, clear_errors():
        with waiting("starting Spark", enabled=not quiet):
            Thread(target=compile_kernels, args=(past.slice(0, FEW),), daemon=True).start()
            spark = session(master)
        found = compare(spark, past, now, Path(home), quiet=quiet)
    if not quiet:
        _print(found)
    return _picture(found)


def compile_kernels(events: pa.Table) -> None:
    """Have the kernels that take longest compiled, if this is the first time: Spark's start leaves a core idle."""
    from acep_approx.api import compile_query

    query = compile_query(QUERY, engine="runs")
    query.match_within(events, "10 steps/event", learn=True).points()
    query.match(events).points()


def compare(spark: SparkSession, past: pa.Table, now: pa.Table, home: Path, *, quiet: bool = False) -> Compared:
    """Train on some events, match others as a stream inside the budget, and see what else would have been found.

    Parameters
    ----------
    spark : SparkSession
    past, now : pyarrow.Table
        Flights.
    home : Path
        An empty folder.
    quiet : bool, default False
    """
    import numpy as np

    from acep_approx.api import compile_query
    from acep_approx.learning.judging import Tally as Judged

    files = {name: home / f"{name}.parquet" for name in ("past", "now")}
    _write(past, files["past"])
    _write(now, files["now"])
    query = compile_query(QUERY, engine="runs")
    history, frozen = home / "history", home / "frozen"
    _train(spark, query, files["past"], [history, frozen], quiet=quiet)
    totals = _stream(spark, query, files["now"], history, home, quiet=quiet)
    points = spark.read.parquet(str(home / "found")).toArrow().combine_chunks()
    events = spark.read.parquet(str(files["now"]))
    with waiting("looking for all matches, and for what else the budget would have bought", enabled=not quiet) as tell:
        exact = _points(query, events)
        tell("what it buys at random", 0.5)
        random = _points(query, events, budget=BUDGET, history=frozen, policy="random")
        tell("what it buys without learning on", 0.75)
        as_it_was = _points(query, events, budget=BUDGET, history=frozen)
    judged, refreshed = Judged(), points[ID].to_numpy()
    either = np.union1d(refreshed, as_it_was)
    judged.add(np.isin(either, refreshed), np.isin(either, as_it_was))
    return Compared(len(exact), len(random), len(as_it_was), len(refreshed), judged, points, totals)


def _train(spark: SparkSession, query: Query, past: Path, homes: list[Path], *, quiet: bool) -> None:
    from acep_approx.spark.past.training import train_history

    with waiting("learning from the past", enabled=not quiet) as tell:
        known = train_history(spark.read.parquet(str(past)), query, id=ID, on_progress=tell)
    for home in homes:
        known.save(home)
    if not quiet:
        say(f"learned from {known.events_:,} events with {known.points_:,} match points; now the stream ...")


def _stream(spark: SparkSession, query: Query, now: Path, history: Path, home: Path, *, quiet: bool) -> Totals:
    """Match a recording as a stream, at a speed with which it takes ``SECONDS``."""
    import pyarrow.parquet as pq

    from acep_approx.spark.sources.replay import Replay
    from acep_approx.spark.streaming.stream import start

    times = pq.read_table(now, columns=["ts"])["ts"]
    speed = (times[-1].as_py() - times[0].as_py()).total_seconds() / SECONDS
    spark.dataSource.register(Replay)
    replay = {"path": str(now), "speed": f"{speed:.0f}", "most": str(-(-len(times) // LEAST_BATCHES))}
    events = spark.readStream.format("acep_replay").options(**replay).load()
    shards = max(2, int(spark.conf.get("spark.sql.shuffle.partitions") or 2))
    matcher = query.spark(
        id=ID, output="points", budget=BUDGET, history=history, learn=True, watermark="0 seconds", shards=shards
    )
    beginning = Pulse("the first micro-batch, for which Spark starts its workers", enabled=not quiet)
    told = Tally()
    with live(told.totals, enabled=not quiet) as show, beginning as pulse:
        told.sinks += [show, lambda progress: pulse.said(f"micro-batch {progress.batch + 1}")]
        running = start(
            matcher, events, to=home / "found", checkpoint=home / "state", trigger=TRIGGER, on_progress=told
        )
        try:
            while told.totals.rows < len(times) and not running.awaitTermination(1):
                continue
            running.processAllAvailable()
            _hear(told, running)
        finally:
            running.stop()
        told.rest(running)
    return told.totals


def _hear(told: Tally, running: StreamingQuery) -> None:
    """Wait until Spark, in a thread of its own, has told of the last micro-batch, with what was learned from it."""
    last, until = running.lastProgress, clock.monotonic() + LAST_NEWS
    while last is not None and clock.monotonic() < until:
        if told.totals.last is not None and told.totals.last.batch >= last.batchId:
            return
        clock.sleep(0.1)


def _points(query: Query, events: DataFrame, **spending: Any) -> Ints:
    found = events.transform(query.spark(id=ID, output="points", **spending))
    points: Ints = found.select(ID).toArrow()[ID].to_numpy()
    return points


def _write(events: pa.Table, file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(events.append_column(ID, pa.array(range(len(events)), pa.int64())), file)


def _print(found: Compared) -> None:
    inside = {
        f"{BUDGET} of the work, at random": found.random,
        f"{BUDGET}, by the history of three months": found.frozen,
        f"{BUDGET}, refreshed while the stream ran": found.refreshed,
    }
    rows = [["everything, without a budget", f"{found.exact:,}", ""]]
    rows += [[words, f"{number:,}", f"{number / found.exact:.0%}"] for words, number in inside.items()]
    show_table(["", "match points", "recall"], rows, texts=1)
    tell(
        f"The stream: {found.totals.counts['events']:,} events in {found.totals.batches} micro-batches; the history is "
        f"now version {found.totals.version}."
    )
    tell("\n" + brought(found.random, found.frozen, found.judged, found.totals.learned))


def brought(random: int, frozen: int, judged: Judged, verdict: Verdict | None) -> str:
    """What learning brought in this run, in one sentence: that from the past, and that while the stream ran.

    Parameters
    ----------
    random, frozen : int
        As for ``Compared``.
    judged : Judged
        Likewise.
    verdict : Verdict or None
        What the job itself came to, without knowing what there was to be found.
    """
    chance = f"keeping partial matches at random found {random:,}"
    past = f"Learning from three months found {frozen:,} match points where {chance}"
    found = f"{judged.gained:,} match points that the history alone missed, and missed {judged.lost:,} that it found"
    if judged.says_better():
        end = f"{judged.gained - judged.lost:,} more in all"
    elif judged.says_worse():
        end = f"{judged.lost - judged.gained:,} fewer in all"
    else:
        end = "no more than chance explains, so it brought nothing here"
    if verdict is not None and verdict.versions and verdict.refused == verdict.versions:
        end += f" (the job itself found none of {amount(verdict.versions, 'version')} better than the history)"
    return f"{past}; learning on while the stream ran found {found}: {end}."


def _picture(found: Compared) -> str:
    from acep_approx.pages import timeline_html

    subtitle = (
        f"Cancellations that longer and longer delays of the same airline announced: {found.refreshed:,} of "
        f"{found.exact:,} match points (2013; times in UTC), found with {BUDGET} of the work; at random it would have "
        f"been {found.random:,}."
    )
    title = "Cancellations that were coming"
    return timeline_html(found.points, title=title, subtitle=subtitle, is_time=True, query=QUERY)
