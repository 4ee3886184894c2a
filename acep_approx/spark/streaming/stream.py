"""A streaming job: results go to files exactly once, the budget is split anew, and the history is kept fresh.

Source: ours. Spark's ``foreachBatch`` may call twice for a micro-batch, after a failure; so each micro-batch writes
folders of its own name, which a second call replaces.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.errors import UsageError
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.streaming.metrics import Listener, Progress, observed
from acep_approx.spark.worker.program import CALLS, CHANGES, MATCHES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

    from acep_approx.spark.plan.flow import Flow
    from acep_approx.spark.plan.matcher import SparkMatcher

CONTROL = "acep"
"""Folder beside the checkpoint's own for what the driver tells the workers."""


def start(
    matcher: SparkMatcher,
    events: DataFrame,
    *,
    to: str | Path,
    checkpoint: str | Path,
    late: str | Path | None = None,
    changes: str | Path | None = None,
    calls: str | Path | None = None,
    trigger: str | None = None,
    until_done: bool = False,
    on_progress: Callable[[Progress], object] | None = None,
) -> StreamingQuery:
    """Match a stream, and write what is found.

    Parameters
    ----------
    matcher : SparkMatcher
    events : DataFrame
        Streaming.
    to : path
        Folder of Parquet files; ``spark.read.parquet(to)`` reads all matches, with the micro-batch as ``batch``.
    checkpoint : path
        Where Spark keeps the state: after a stop, or a crash, the same call goes on from there.
    late : path, optional
        Folder for the events that were left out, each with a ``reason``; default: they are only counted.
    changes : path, optional
        Of rules: folder with a folder for each table, of what was written to it; default: nothing is kept of that.
    calls : path, optional
        Of rules: folder for their calls.
    trigger : str, optional
        How often, such as "10 seconds"; default: as fast as it goes.
    until_done : bool, default False
        Stop when all that is there by now was matched.
    on_progress : callable, optional
        Called with the numbers of each micro-batch.

    Returns
    -------
    pyspark.sql.streaming.StreamingQuery
        Running.

    Raises
    ------
    AcepError
        As ``SparkMatcher`` has it; ``ACEP-S007``: the events are no stream; ``ACEP-S075``: the program has no such
        tables.
    """
    if not events.isStreaming:
        raise UsageError(
            "these events are no stream: there is nothing to wait for",
            code="ACEP-S007",
            hint="read them with spark.readStream, or match them at once with events.transform(matcher)",
        )
    # Spark may have been started in another folder
    state, aside = Path(checkpoint).absolute(), Path(late).absolute() if late else None
    control = state / CONTROL
    control.mkdir(parents=True, exist_ok=True)
    flow = _controlled(matcher, control).flow(events)
    places = {MATCHES: Path(to).absolute()} | places_of(flow.job.tables, changes=changes, calls=calls)
    writer = Writer(flow, places, aside, Driver(flow.job, control))
    stream = observed(flow.outputs()).writeStream.foreachBatch(writer)
    stream = stream.option("checkpointLocation", str(state)).outputMode("append")
    if until_done:
        stream = stream.trigger(availableNow=True)
    elif trigger is not None:
        stream = stream.trigger(processingTime=trigger)
    if on_progress is None:
        writer.query = stream.start()
        return writer.query
    sink = OwnProgress(on_progress, writer.driver)
    events.sparkSession.streams.addListener(Listener(sink))
    writer.query = running = stream.start()
    sink.query.set_result(running.name or running.id)
    return running


def places_of(
    tables: Mapping[str, Any], *, changes: str | Path | None = None, calls: str | Path | None = None
) -> dict[str, Path]:
    """The folders of the tables of a program beside its results, by name, as far as they are wanted.

    Raises
    ------
    UsageError
        ``ACEP-S075``: the program has no such tables.
    """
    found: dict[str, Path] = {}
    asked = {"changes": (changes, CHANGES), "calls": (calls, CALLS)}
    for name, (folder, beginning) in asked.items():
        mine = [table for table in tables if table.startswith(beginning)]
        if folder is not None and not mine:
            raise UsageError(
                f"{name}= is about rules, and here is none that could have {name}",
                code="ACEP-S075",
                hint="leave it out",
            )
        if folder is not None:
            found |= {table: Path(folder).absolute() / table.removeprefix(beginning) for table in mine}
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
    places : dict of str to Path
        Folders of the tables of the program, by name; of others nothing is kept.
    late : Path or None
        Folder of the events left out.
    driver : Driver
        Learns from the metrics.
    """

    flow: Flow
    places: dict[str, Path]
    late: Path | None
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
            there = self._there(packed, metrics)
            for name, place in self.places.items():
                self._write(self.flow.table(name, packed), place, batch, name in there)
            if self.late is not None:
                self._write(self.flow.late(packed), self.late, batch, any(row.late or row.malformed for row in metrics))
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

    def _there(self, packed: DataFrame, metrics: Sequence[Row]) -> set[str]:
        """The tables of the program that have rows."""
        if any(row.others for row in metrics):
            return {row.kind for row in packed.select("kind").distinct().collect()}
        return {MATCHES} if any(row.matches for row in metrics) else set()

    def _write(self, table: DataFrame, folder: Path, batch: int, has_rows: bool) -> None:
        place = folder / f"batch={batch}"
        if has_rows:
            table.write.mode("overwrite").parquet(str(place))
        elif self.is_first:  # what a crash may have left
            shutil.rmtree(place, ignore_errors=True)


def _controlled(matcher: SparkMatcher, control: Path) -> SparkMatcher:
    matcher = replace(matcher, program=matcher.program.controlled(control))
    spending = matcher.spending
    if spending is None:
        return matcher
    history = spending.history or (str(control / "history") if spending.learns else None)
    return replace(matcher, spending=replace(spending, control=str(control), history=history))
