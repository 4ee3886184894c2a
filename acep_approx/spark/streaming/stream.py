"""A streaming job: results go to where they are wanted, the budget is split anew, and the history is kept fresh.

Source: ours. Spark's ``foreachBatch`` may call twice for a micro-batch, after a failure; see ``sinks`` for what comes
of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.errors import UsageError
from acep_approx.spark.plan.delays import interval
from acep_approx.spark.plan.flow import Flow
from acep_approx.spark.setup.control import control_of
from acep_approx.spark.setup.failures import clear_errors
from acep_approx.spark.setup.kinds import is_connect, numbered
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.streaming.elsewhere import TOLD, ServerSide, Watch, check_shared, log_level
from acep_approx.spark.streaming.kept_shards import check_shards, known_shards, note_shards
from acep_approx.spark.streaming.metrics import Listener, Progress, observed
from acep_approx.spark.streaming.sinks import Sink, folder_of
from acep_approx.spark.streaming.targets import result_sink, rule_sinks
from acep_approx.spark.worker.program import MATCHES
from history.places import place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from acep_approx.spark.plan.matcher import SparkMatcher
    from acep_approx.spark.worker.job import Job

PARTITIONS = "spark.sql.shuffle.partitions"
"""How many tasks a shuffle has."""


def start(
    matcher: SparkMatcher,
    events: DataFrame,
    *,
    to: str | Path | Sink,
    checkpoint: str | Path,
    late: str | Path | None = None,
    changes: str | Path | None = None,
    calls: str | Path | None = None,
    mirror: str | None = None,
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
        Of rules: folder with a folder for each table, of what was written to it; or a database,
        ``jdbc:postgresql://HOST/DATABASE?table=NAME``, where the table ``seen`` of the rules is ``NAME_seen``. Default:
        nothing is kept of that.
    calls : path, optional
        Of rules: folder for their calls, or a topic or a table, as for ``to``.
    mirror : str, optional
        Of rules: a database that gets their tables as they stand after each micro-batch, under their own names, or
        behind ``NAME_`` if the address has ``table=NAME``. Each row has the number of the micro-batch that wrote it
        last as ``batch``.
    trigger : str, optional
        How often, such as "10 s"; default: as fast as it goes.
    until_done : bool, default False
        Stop when all that is there by now was matched.
    kafka : mapping or sequence of str
        Settings of the client where ``to`` or ``calls`` is a topic, as for ``read_topics``.
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
        ``ACEP-S044``, ``ACEP-S052``: what Spark Connect cannot do; ``ACEP-U056``: ``trigger`` is no length of time.
        While it runs ``ACEP-S091``: a mirror has rows of another job.

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
    spark, control = events.sparkSession, control_of(state)
    is_elsewhere = is_connect(spark)
    if is_elsewhere and control is not None:
        check_shared(spark, control)
    flow = _flow(matcher, events, state, control)
    others = rule_sinks(flow, {"changes": changes, "calls": calls, "mirror": mirror}, kafka)
    sinks = [(MATCHES, result_sink(to, flow, kafka)), *others]
    aside = None if late is None else folder_of(late)
    driver = Driver(flow.job, control or place_of(state))  # without a budget nothing is written there
    writer = Writer(flow.job, sinks, aside, driver)
    if is_elsewhere and control is not None and (matcher.spending is not None or matcher.program.is_changing):
        (control / TOLD).unlink(missing_ok=True)
        writer.server = ServerSide(place_of(state), control, log_level())
    stream = observed(flow.outputs()).writeStream.foreachBatch(writer)
    stream = stream.option("checkpointLocation", state).outputMode("append")
    if until_done:
        stream = stream.trigger(availableNow=True)
    elif every is not None:
        stream = stream.trigger(processingTime=every)
    sink = None if on_progress is None or is_elsewhere else OwnProgress(on_progress, driver)
    if sink is not None:
        spark.streams.addListener(Listener(sink))
    with tasks_of(spark, flow.job.shards), clear_errors():  # a server unpickles what it is to call
        running = stream.start()
    if is_elsewhere and (on_progress is not None or writer.server is not None):
        Watch(running, None if writer.server is None else control, on_progress).start()
    elif not is_elsewhere:
        writer.query = running
    if sink is not None:
        sink.query.set_result(running.name or running.id)
    return running


def _flow(matcher: SparkMatcher, events: DataFrame, state: str, control: Path | None) -> Flow:
    """The program on the events, with as many shards as its checkpoint has, and what it keeps there."""
    if control is None:
        if matcher.spending is None and not matcher.program.is_changing:
            return matcher.flow(events)
        raise UsageError(
            "a job with a budget, or whose queries come and go, keeps files of its own in its checkpoint, and "
            f"{state} is for Spark alone",
            code="ACEP-S083",
            hint="name a folder of a file system that all machines have: --checkpoint /shared/checkpoint; or let "
            "Python reach that store, too: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL",
        )
    checkpoint, matcher = place_of(state), _controlled(matcher, control)
    if matcher.shards is None:
        matcher = replace(matcher, shards=known_shards(checkpoint))
    flow = matcher.flow(events)
    check_shards(flow.job.width, checkpoint)
    note_shards(flow.job.width, checkpoint)
    return flow


def _controlled(matcher: SparkMatcher, control: Path) -> SparkMatcher:
    """The matcher, told of the folder of the job."""
    control.mkdir(parents=True, exist_ok=True)
    matcher, spending = replace(matcher, program=matcher.program.controlled(control)), matcher.spending
    if spending is None:
        return matcher
    history = spending.history or (str(control / "history") if spending.learns else None)
    return replace(matcher, spending=replace(spending, control=str(control), history=history))


@contextmanager
def tasks_of(spark: SparkSession, shards: int) -> Iterator[None]:
    """Let a stream that starts here have no more tasks than shards: Spark's default, 200, leaves most without any.

    A stream keeps the settings that its session has when it starts, and a checkpoint keeps them, too.
    """
    before = spark.conf.get(PARTITIONS)
    if before is None or not before.isdecimal() or int(before) <= shards:
        yield
        return
    spark.conf.set(PARTITIONS, shards)
    try:
        yield
    finally:
        spark.conf.set(PARTITIONS, before)


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
    job : Job
    sinks : sequence of (str, Sink)
        Places of the tables of the program, with their names; of others nothing is kept.
    late : Sink or None
        Place of the events left out.
    driver : Driver
        Learns from the metrics.

    Notes
    -----
    By Spark Connect it is pickled, and works in a process of the server, which lasts as long as the query.
    """

    job: Job
    sinks: Sequence[tuple[str, Sink]]
    late: Sink | None
    driver: Driver
    is_first: bool = field(default=True, init=False)
    query: StreamingQuery | None = field(default=None, init=False)
    server: ServerSide | None = field(default=None, init=False)

    def __call__(self, packed: DataFrame, batch: int) -> None:
        """Write the results of a micro-batch, then learn from its metrics."""
        self.driver.begin(batch)
        self._look_at_the_clock(batch - 1)  # nothing of this one was matched yet
        with numbered(packed.sparkSession, batch):
            metrics = self._write(packed, batch)
        self.is_first = False
        self.driver.process(metrics, batch)
        if self.server is not None:
            self.server.tell(self.driver.verdict)

    def _write(self, packed: DataFrame, batch: int) -> list[Row]:
        """Write all tables; gives the rows of metrics."""
        packed.persist()
        flow = Flow(self.job, packed)
        try:
            metrics = flow.metrics(packed).collect()
            rows = self._rows(packed, metrics)
            for name, sink in self.sinks:
                sink.write(flow.table(name, packed), batch, rows.get(name, 0), is_first=self.is_first)
            if self.late is not None:
                left_out = sum(row.late + row.malformed for row in metrics)
                self.late.write(flow.late(packed), batch, left_out, is_first=self.is_first)
        finally:
            packed.unpersist()
        return metrics

    def _look_at_the_clock(self, batch: int) -> None:
        spending = self.job.spending
        if spending is None or not spending.budget.needs_clock:
            return
        query = self.query if self.server is None else self.server.query
        report = None if query is None else query.lastProgress
        progress = None if report is None else Progress.of(report)
        if progress is not None and progress.batch == batch:
            self.driver.measured(batch, progress.rows, progress.seconds)

    def _rows(self, packed: DataFrame, metrics: Sequence[Row]) -> dict[str, int]:
        """How many rows there are of the tables of the program; of those of rules whether there are any."""
        found = {MATCHES: sum(row.matches for row in metrics)}
        if any(row.others for row in metrics):
            found = {row.kind: 1 for row in packed.select("kind").distinct().collect()} | found
        return found
