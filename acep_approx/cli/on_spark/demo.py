"""``acep demo --spark``: learn from the past, match a stream inside a budget, and learn on; on the flights."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.on_spark.live import live
from acep_approx.cli.on_spark.stream import Tally
from acep_approx.cli.terminal import say, show_table, stages

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from acep_approx.api import Query
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

Three months are the past; the other nine are replayed as a stream of {events:,} events, {days:,} days in a minute or
so, with a budget: {budget} of the work that all matches would take.
"""
NOW_BEGINS = dt.datetime(2013, 4, 1, tzinfo=dt.UTC)
BUDGET = "10%"
SECONDS = 60
"""What the replay takes."""
TRIGGER = "3 seconds"
LEAST_BATCHES = 20
"""Micro-batches of a machine that cannot keep up: with each of them the history may be refreshed."""
ID = "event"


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
    points : pyarrow.Table
        Those found in the stream.
    totals : Totals
        Of the stream.
    """

    exact: int
    random: int
    frozen: int
    refreshed: int
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
        typer.echo(STORY.format(query=shown, events=len(now), days=_days(now), budget=BUDGET))
    with TemporaryDirectory(prefix="acep-demo-") as home, clear_errors():
        found = compare(session(master), past, now, Path(home), quiet=quiet)
    if not quiet:
        _print(found)
    return _picture(found)


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
    from acep_approx.api import compile_query

    files = {name: home / f"{name}.parquet" for name in ("past", "now")}
    _write(past, files["past"])
    _write(now, files["now"])
    query = compile_query(QUERY, engine="runs")
    history, frozen = home / "history", home / "frozen"
    _train(spark, query, files["past"], [history, frozen], quiet=quiet)
    totals = _stream(spark, query, files["now"], history, home, quiet=quiet)
    points = spark.read.parquet(str(home / "found")).toArrow().combine_chunks()
    events = spark.read.parquet(str(files["now"]))
    if not quiet:
        say("\nlooking for all matches, and for what else the budget would have bought ...")
    exact = _points(query, events)
    random = _points(query, events, budget=BUDGET, history=frozen, policy="random")
    as_it_was = _points(query, events, budget=BUDGET, history=frozen)
    return Compared(exact, random, as_it_was, points.num_rows, points, totals)


def _train(spark: SparkSession, query: Query, past: Path, homes: list[Path], *, quiet: bool) -> None:
    from acep_approx.spark.past.training import train_history

    if not quiet:
        say("starting Spark, and learning from the past ...")
    with stages(enabled=not quiet) as bar:
        known = train_history(spark.read.parquet(str(past)), query, id=ID, on_progress=bar)
    for home in homes:
        known.save(home)
    if not quiet:
        say(f"learned from {known.events_:,} events with {known.points_:,} match points; now the stream ...")


def _stream(spark: SparkSession, query: Query, now: Path, history: Path, home: Path, *, quiet: bool) -> Totals:
    """Match a recording as a stream, at a speed with which it takes a minute."""
    import pyarrow.parquet as pq

    from acep_approx.spark.sources.replay import Replay
    from acep_approx.spark.streaming.stream import start

    times = pq.read_table(now, columns=["ts"])["ts"]
    speed = (times[-1].as_py() - times[0].as_py()).total_seconds() / SECONDS
    spark.dataSource.register(Replay)
    replay = {"path": str(now), "speed": f"{speed:.0f}", "most": str(-(-len(times) // LEAST_BATCHES))}
    events = spark.readStream.format("acep_replay").options(**replay).load()
    matcher = query.spark(
        id=ID, output="points", budget=BUDGET, history=history, learn=True, watermark="0 seconds", shards=_shards(spark)
    )
    with live(enabled=not quiet) as show:
        read = _RowCounter()
        told = Tally([show, read])
        running = start(
            matcher, events, to=home / "found", checkpoint=home / "state", trigger=TRIGGER, on_progress=told
        )
        try:
            while read.number < len(times) and not running.awaitTermination(1):
                continue
            running.processAllAvailable()
        finally:
            running.stop()
        told.rest(running)
    return told.totals


class _RowCounter:
    """Adds up the rows that came in."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, progress: Any) -> None:
        self.number += progress.rows


def _points(query: Query, events: DataFrame, **spending: Any) -> int:
    return events.transform(query.spark(id=ID, output="points", **spending)).count()


def _shards(spark: SparkSession) -> int:
    return max(2, int(spark.conf.get("spark.sql.shuffle.partitions") or 2))


def _write(events: pa.Table, file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(events.append_column(ID, pa.array(range(len(events)), pa.int64())), file)


def _days(events: pa.Table) -> int:
    first, last = events["ts"][0].as_py(), events["ts"][-1].as_py()
    return int((last - first).days)


def _print(found: Compared) -> None:
    rows = [
        ["everything, without a budget", f"{found.exact:,}", ""],
        [f"{BUDGET} of the work, at random", f"{found.random:,}", f"{found.random / found.exact:.0%}"],
        [f"{BUDGET}, by the history of three months", f"{found.frozen:,}", f"{found.frozen / found.exact:.0%}"],
        [f"{BUDGET}, refreshed while the stream ran", f"{found.refreshed:,}", f"{found.refreshed / found.exact:.0%}"],
    ]
    show_table(["", "match points", "recall"], rows, texts=1)
    last = found.totals.last
    version = last.version if last else 0
    typer.echo(
        f"The stream: {found.totals.counts['events']:,} events in {found.totals.batches} micro-batches; the history is "
        f"now version {version}."
    )


def _picture(found: Compared) -> str:
    """The page with what was found in the stream."""
    from acep_approx.timeline.picture import timeline_html

    subtitle = (
        f"Cancellations that longer and longer delays of the same airline announced: {found.refreshed:,} of "
        f"{found.exact:,} match points (2013; times in UTC), found with {BUDGET} of the work; at random it would have "
        f"been {found.random:,}.\n\n{QUERY}"
    )
    return timeline_html(found.points, title="Cancellations that were coming", subtitle=subtitle, is_time=True)
