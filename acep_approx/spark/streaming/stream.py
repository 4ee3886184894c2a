"""A streaming job: results go to where they are wanted, the budget is split anew, and the history is kept fresh.

Source: ours. Spark's ``foreachBatch`` may call twice for a micro-batch, after a failure; see ``sinks`` for what comes
of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import is_address, parse_target, settings
from acep_approx.events.writing.outfile import JDBC
from acep_approx.spark.plan.delays import interval
from acep_approx.spark.setup.control import control_of
from acep_approx.spark.setup.java_client import java_settings
from acep_approx.spark.streaming.databases import Database
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.streaming.kept_shards import check_shards, known_shards, note_shards
from acep_approx.spark.streaming.metrics import Listener, Progress, observed
from acep_approx.spark.streaming.sinks import Folder, Sink, TopicSink, folder_of
from acep_approx.spark.worker.program import CALLS, CHANGES, MATCHES
from history.places import place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

    from acep_approx.spark.plan.flow import Flow
    from acep_approx.spark.plan.matcher import SparkMatcher


def start(
    matcher: SparkMatcher,
    events: DataFrame,
    *,
    to: str | Path | Sink,
    checkpoint: str | Path,
    late: str | Path | None = None,
    changes: str | Path | None = None,
    calls: str | Path | None = None,
    trigger: str | None = None,
    until_done: bool = False,
    kafka: Mapping[str, object] | Sequence[str] = (),
    on_progress: Callable[[Progress], object] | None = None,
) -> StreamingQuery:
    """Match a stream, and write what is found.

    Parameters
    ----------
    matcher : SparkMatcher
    events : DataFrame
        Streaming.
    to : path, str or Sink
        Folder of Parquet files; ``spark.read.parquet(to)`` reads all matches, with the micro-batch as ``batch``. Or a
        topic, ``kafka://BROKER:9092/TOPIC``, which gets each match at least once; or a table,
        ``jdbc:postgresql://HOST/DATABASE?table=NAME``, which has each once; or a sink of your own.
    checkpoint : path
        Where Spark keeps the state: after a stop, or a crash, the same call goes on from there.
    late : path, optional
        Folder for the events that were left out, each with a ``reason``; default: they are only counted.
    changes : path, optional
        Of rules: folder with a folder for each table, of what was written to it; default: nothing is kept of that.
    calls : path, optional
        Of rules: folder for their calls.
    trigger : str, optional
        How often, such as "10 s"; default: as fast as it goes.
    until_done : bool, default False
        Stop when all that is there by now was matched.
    kafka : mapping or sequence of str
        Settings of the client where ``to`` is a topic, as for ``read_topics``.
    on_progress : callable, optional
        Called with the numbers of each micro-batch.

    Returns
    -------
    pyspark.sql.streaming.StreamingQuery
        Running.

    Raises
    ------
    AcepError
        As ``SparkMatcher`` has it; ``ACEP-S012``: the checkpoint has another number of shards; ``ACEP-S007``: the
        events are no stream; ``ACEP-S076``: the program has no such tables; ``ACEP-S080``: Spark lacks a package;
        ``ACEP-S083``: a budget with a checkpoint that only Spark can reach; ``ACEP-S086``: no table is named;
        ``ACEP-U056``: ``trigger`` is no length of time.

    Notes
    -----
    Folders may be addresses that Spark knows, such as ``s3a://bucket/found``.
    """
    every = None if trigger is None else interval(trigger)
    if not events.isStreaming:
        raise UsageError(
            "these events are no stream: there is nothing to wait for",
            code="ACEP-S007",
            hint="read them with spark.readStream, or match them at once with events.transform(matcher)",
        )
    state = folder_of(checkpoint).place  # Spark may have been started in another folder
    control = control_of(state)
    if matcher.shards is None and control is not None:
        matcher = replace(matcher, shards=known_shards(place_of(state)))
    flow = _controlled(matcher, state).flow(events)
    if control is not None:
        control.mkdir(parents=True, exist_ok=True)
        check_shards(flow.job.width, place_of(state))
        note_shards(flow.job.width, place_of(state))
    sinks = {MATCHES: _sink(to, flow, kafka)} | sinks_of(flow.job.tables, changes=changes, calls=calls)
    aside = None if late is None else folder_of(late)
    driver = Driver(flow.job, control or place_of(state))  # without a budget nothing is written there
    writer = Writer(flow, sinks, aside, driver)
    stream = observed(flow.outputs()).writeStream.foreachBatch(writer)
    stream = stream.option("checkpointLocation", state).outputMode("append")
    if until_done:
        stream = stream.trigger(availableNow=True)
    elif every is not None:
        stream = stream.trigger(processingTime=every)
    if on_progress is None:
        writer.query = stream.start()
        return writer.query
    sink = OwnProgress(on_progress, writer.driver)
    events.sparkSession.streams.addListener(Listener(sink))
    writer.query = running = stream.start()
    sink.query.set_result(running.name or running.id)
    return running


def sinks_of(
    tables: Mapping[str, Any], *, changes: str | Path | None = None, calls: str | Path | None = None
) -> dict[str, Folder]:
    """The folders of the tables of a program beside its results, by name, as far as they are wanted.

    Raises
    ------
    UsageError
        ``ACEP-S076``: the program has no such tables.
    """
    found: dict[str, Folder] = {}
    asked = {"changes": (changes, CHANGES), "calls": (calls, CALLS)}
    for name, (folder, beginning) in asked.items():
        mine = [table for table in tables if table.startswith(beginning)]
        if folder is not None and not mine:
            raise UsageError(
                f"{name}= is about rules, and here is none that could have {name}",
                code="ACEP-S076",
                hint="leave it out",
            )
        if folder is not None:
            home = folder_of(folder).place
            found |= {table: Folder(f"{home}/{table.removeprefix(beginning)}".rstrip("/")) for table in mine}
    return found


@dataclass
class OwnProgress:
    """Hands on the numbers of one query, and what its driver learned: a listener is told of all in its session."""

    sink: Callable[[Progress], object]
    driver: Driver
    query: Future[str] = field(default_factory=Future)

    def __call__(self, progress: Progress) -> None:
        """Hand them on, if they are of this query."""
        if progress.query == self.query.result():
            self.sink(replace(progress, learned=self.driver.verdict))


@dataclass
class Writer:
    """What is done with each micro-batch.

    Parameters
    ----------
    flow : Flow
    sinks : dict of str to Sink
        Places of the tables of the program, by name; of others nothing is kept.
    late : Sink or None
        Place of the events left out.
    driver : Driver
        Learns from the metrics.
    """

    flow: Flow
    sinks: Mapping[str, Sink]
    late: Sink | None
    driver: Driver
    is_first: bool = field(default=True, init=False)
    query: StreamingQuery | None = field(default=None, init=False)

    def __call__(self, packed: DataFrame, batch: int) -> None:
        """Write the results of a micro-batch, then learn from its metrics."""
        self.driver.begin(batch)
        self._look_at_the_clock(batch - 1)  # nothing of this one was matched yet
        packed.persist()
        try:
            metrics = self.flow.metrics(packed).collect()
            rows = self._rows(packed, metrics)
            for name, sink in self.sinks.items():
                sink.write(self.flow.table(name, packed), batch, rows.get(name, 0), is_first=self.is_first)
            if self.late is not None:
                left_out = sum(row.late + row.malformed for row in metrics)
                self.late.write(self.flow.late(packed), batch, left_out, is_first=self.is_first)
        finally:
            packed.unpersist()
        self.is_first = False
        self.driver.process(metrics, batch)

    def _look_at_the_clock(self, batch: int) -> None:
        spending = self.driver.job.spending
        if self.query is None or spending is None or not spending.budget.needs_clock:
            return
        report = self.query.lastProgress
        progress = None if report is None else Progress.of(report)
        if progress is not None and progress.batch == batch:
            self.driver.measured(batch, progress.rows, progress.seconds)

    def _rows(self, packed: DataFrame, metrics: Sequence[Row]) -> dict[str, int]:
        """How many rows there are of the tables of the program; of those of rules whether there are any."""
        found = {MATCHES: sum(row.matches for row in metrics)}
        if any(row.others for row in metrics):
            found = {row.kind: 1 for row in packed.select("kind").distinct().collect()} | found
        return found


def _sink(to: str | Path | Sink, flow: Flow, kafka: Mapping[str, object] | Sequence[str]) -> Sink:
    """The place of the matches."""
    if not isinstance(to, str | Path):
        return to
    if str(to).startswith(JDBC):
        database = Database.of(str(to))
        database.prepare(flow.events.sparkSession)
        return database
    if not is_address(str(to)):
        return folder_of(to)
    from acep_approx.spark.setup.connectors import add_kafka

    address, (_, theirs) = parse_target(str(to)), java_settings(settings(kafka))
    add_kafka(flow.events.sparkSession)
    return TopicSink(address, flow.job.key_names, theirs)


def _controlled(matcher: SparkMatcher, checkpoint: str) -> SparkMatcher:
    spending, control = matcher.spending, control_of(checkpoint)
    if control is None:
        if spending is None and not matcher.program.is_changing:
            return matcher
        raise UsageError(
            "a job with a budget, or whose queries come and go, keeps files of its own in its checkpoint, and "
            f"{checkpoint} is for Spark alone",
            code="ACEP-S083",
            hint="name a folder of a file system that all machines have: --checkpoint /shared/checkpoint; or let "
            "Python reach that store, too: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL",
        )
    control.mkdir(parents=True, exist_ok=True)
    matcher = replace(matcher, program=matcher.program.controlled(control))
    if spending is None:
        return matcher
    history = spending.history or (str(control / "history") if spending.learns else None)
    return replace(matcher, spending=replace(spending, control=str(control), history=history))
