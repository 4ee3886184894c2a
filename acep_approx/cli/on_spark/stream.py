"""``acep run --spark --stream``: a folder whose files grow in number, or topics, matched until it is stopped."""

from __future__ import annotations

import signal
import threading
import time as clock
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import typer

from acep_approx.cli.metrics import say_where
from acep_approx.cli.on_spark.words import live, say_budget, say_read
from acep_approx.cli.on_spark.work import OnSpark
from acep_approx.cli.options.output import is_table, is_topic
from acep_approx.cli.options.spark import StreamOptions
from acep_approx.cli.terminal import amount, say
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import is_address
from acep_approx.masks import masked
from history.places import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from acep_approx.cli.runs.request import RunRequest
    from acep_approx.spark.streaming.metrics import Progress

EXIT_INTERRUPTED = 130
WAIT = 1
"""Seconds after which an interruption is noticed."""


@dataclass(frozen=True)
class Places:
    """Where a stream goes: paths, or addresses that Spark knows.

    Parameters
    ----------
    to : Path
        Folder, or topic, of the matches.
    checkpoint : Path
    late : Path or None
        Folder of the events left out.
    changes, calls : Path or None
        Folders, or databases, of what rules write to tables, and of their calls.
    mirror : Path or None
        Database of their tables as they stand.
    """

    to: Path
    checkpoint: Path
    late: Path | None
    changes: Path | None = None
    calls: Path | None = None
    mirror: Path | None = None

    @classmethod
    def of(cls, request: RunRequest) -> Self:
        """The places of a run, checked.

        Raises
        ------
        UsageError
            ``ACEP-S074``: there is no place for the matches or for the state, two are the same, or one lies where the
            stream is read; ``ACEP-S070``: more than one folder.
        """
        options, inputs = request.options, request.inputs
        to, checkpoint = request.output.file, options.stream.checkpoint
        if to is None or checkpoint is None:
            wanted = "-o DIR for the matches" if to is None else "--checkpoint DIR for the state"
            raise UsageError(f"a stream needs a place: {wanted}", code="ACEP-S074", hint=f"add {wanted}")
        if len(inputs) != 1 and not all(map(is_address, inputs)):
            raise UsageError(
                "a stream is read from one folder, or from topics",
                code="ACEP-S070",
                hint="start a run for each, or use one folder",
            )
        rules = options.rules
        places = cls(to, checkpoint, options.source.late, rules.changes, rules.calls, rules.mirror)
        places.check([one for one in inputs if not is_address(one)])
        return places

    def check(self, inputs: list[str]) -> None:
        """Refuse a folder for two things, or one that would be read (``ACEP-S074``)."""
        folders = [folder for folder in vars(self).values() if folder is not None]
        sources = [_resolved(one) for one in inputs]
        resolved = [_resolved(folder) for folder in folders]
        for number, folder in enumerate(resolved):
            if folder in (*sources, *resolved[:number]) or not set(sources).isdisjoint(folder.parents):
                raise _for_two_things(folders[number])
            if folder.exists() and not folder.is_dir():
                raise UsageError(
                    f"{str(folders[number])!r} is a file, and a stream writes to folders", code="ACEP-S074"
                )


def _resolved(place: Path | str) -> Path:
    """A path without links; an address as it is."""
    return Path(str(place)) if is_remote(place) else Path(place).resolve()


def _for_two_things(place: Path) -> UsageError:
    return UsageError(
        f"{str(place)!r} is a place for two things",
        code="ACEP-S074",
        hint="name folders of their own, outside of the one that is read",
    )


def open_input(asked: OnSpark, places: Places, options: StreamOptions) -> Callable[[SparkSession], DataFrame]:
    """Look at the input as far as Spark need not run for that; gives what reads it as a stream.

    Raises
    ------
    AcepError
        As ``OnSpark.topics``, or as ``OnSpark.check``.
    """
    from acep_approx.spark.sources.files import read_growing

    if asked.of_topics:
        topics = asked.topics(checkpoint=places.checkpoint)
        return lambda spark: topics.stream(spark, at_once=options.at_once)
    files, folder = asked.check(checkpoint=places.checkpoint), asked.inputs[0]
    if files is None:
        return lambda spark: read_growing(spark, folder, at_once=options.at_once, **asked.reading)
    return lambda spark: files.grow(spark, folder, options.at_once)


def check_targets(places: Places, kafka: Sequence[str]) -> None:
    """Ask the broker for the topics that results and calls go to, if they do; check the addresses of databases.

    Raises
    ------
    AcepError
        As ``check_topic``, or as ``Database.of``.
    """
    for name in ("to", "changes", "calls", "mirror"):
        if is_table(place := getattr(places, name)):
            from acep_approx.spark.streaming.targets import check_database

            check_database(name, str(place))
    for topic in filter(is_topic, (places.to, places.calls)):
        from acep_approx.spark.streaming.targets import check_topic

        check_topic(str(topic), kafka)


def run_stream(
    asked: OnSpark,
    places: Places,
    options: StreamOptions,
    metrics_port: int | None,
) -> None:
    """Match a folder, or topics, as a stream, until all is done, or until Ctrl-C.

    Parameters
    ----------
    asked : OnSpark
    places : Places
    options : StreamOptions
    metrics_port : int or None
        Where numbers are served; None: nowhere.

    Raises
    ------
    AcepError
        As ``acep_approx.spark.start``; what goes wrong in a worker too.
    typer.Exit
        130: it was stopped by Ctrl-C.
    """
    from acep_approx.spark.plan.columns import arrow_schema
    from acep_approx.spark.plan.delays import interval
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.streaming.elsewhere import finish_watches
    from acep_approx.spark.streaming.stream import start

    begun = clock.perf_counter()
    if options.trigger is not None:
        interval(options.trigger)  # refused before Spark starts
    with clear_errors(), ExitStack() as stack:
        check_targets(places, asked.kafka)
        read = open_input(asked, places, options)
        if not asked.quiet:
            say("starting Spark ...")
        events = read(asked.session(streaming=True))
        told = Tally()
        told.sinks.append(stack.enter_context(live(told.totals, enabled=not asked.quiet)))
        if metrics_port is not None:
            from acep_approx.spark.streaming.metrics import Exporter

            told.sinks.append(exporter := stack.enter_context(Exporter(metrics_port)))
            if not asked.quiet:
                say_where(exporter)
        matcher = asked.matcher(arrow_schema(events.schema))
        query = start(
            matcher,
            events,
            to=str(places.to),
            checkpoint=str(places.checkpoint),
            late=None if places.late is None else str(places.late),
            changes=places.changes,
            calls=places.calls,
            mirror=None if places.mirror is None else str(places.mirror),
            trigger=options.trigger,
            until_done=options.until_done,
            kafka=asked.kafka,
            on_progress=told,
        )
        try:
            stopped = wait(query)
        finally:
            finish_watches()
        told.rest(query)
    if not asked.quiet:
        numbers = told.totals
        say_read(numbers, matcher.program, clock.perf_counter() - begun, of_topics=asked.of_topics)
        say(f"{amount(numbers.counts['matches'], asked.kind.thing or 'row')} written to {masked(str(places.to))}")
        if places.late is not None and numbers.counts["late"] + numbers.counts["malformed"]:
            say(f"events that were left out: {places.late}")
        if matcher.spending is not None:
            say_budget(numbers, matcher.spending, matcher.program)
    if stopped:
        raise typer.Exit(EXIT_INTERRUPTED)


def wait(query: StreamingQuery) -> bool:
    """Wait for the end of a stream, or for Ctrl-C, which stops it.

    Parameters
    ----------
    query : StreamingQuery

    Returns
    -------
    bool
        Whether it was stopped. What the last micro-batch had begun is done again when the stream goes on.
    """
    interrupted, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def note(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the second one breaks off
        interrupted.set()

    signal.signal(signal.SIGINT, note)
    try:
        while not query.awaitTermination(WAIT):
            if interrupted.is_set():
                query.stop()
                return True
    finally:
        signal.signal(signal.SIGINT, before)
    return False


class Tally:
    """Hands on the numbers of each micro-batch, and adds them up; none twice, and in the end none is lost.

    Spark tells them in a thread of its own, the last ones often when the stream has ended.

    Parameters
    ----------
    *sinks : callable
        Each gets every ``Progress``, when it has been added.

    Attributes
    ----------
    totals : Totals
        Of all micro-batches so far.
    """

    def __init__(self, *sinks: Callable[[Progress], object]) -> None:
        from acep_approx.spark.streaming.metrics import Totals

        self.sinks = [*sinks]
        self.totals = Totals()
        self._lock = threading.Lock()

    def __call__(self, progress: Progress) -> None:
        """Hand on the numbers of a micro-batch."""
        with self._lock:
            last = self.totals.last
            if last is None or progress.batch > last.batch:
                self.totals.add(progress)
                for sink in self.sinks:
                    sink(progress)

    def rest(self, query: StreamingQuery) -> None:
        """Hand on what Spark knows of a stream that has ended, and has not told yet."""
        from acep_approx.spark.streaming.metrics import Progress

        for report in query.recentProgress:
            progress = Progress.of(report)
            if progress is not None:
                self(replace(progress, learned=self.totals.learned))  # what was learned since nobody tells any more
