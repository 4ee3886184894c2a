"""The numbers of a running job: Spark adds them up over the shards, and a listener hands them on after each batch.

The rows of metrics that come out of the shards (``packing.packed``) carry numbers as columns. ``observed`` has Spark
add them up on the way; ``Progress`` is what was added up for one micro-batch, ``Totals`` for all of them so far;
``Exporter`` serves them to Prometheus, on a port of the driver.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql.streaming.listener import StreamingQueryListener

from acep_approx.engines.runs.worth import REASONS
from acep_approx.learning.judging import Verdict
from acep_approx.live.prometheus import EVENTS, LIVE, MATCHES, SHED, STEPS, TEXTS, Served
from acep_approx.spark.streaming.audit import JobAudit
from acep_approx.spark.worker.audited import ENDS, GROUPS

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

    from acep_approx.budget.audit import RecallEstimate


NAME = "acep"
"""Name of the observation, where there is one."""
TOMBSTONES = "acep_topics"
"""Name of the observation that counts messages of topics without a value."""
COUNTS = (
    "events", "relevant", "matches", "others", "points", "late", "malformed", "without_key", "steps", "bound", "live",
    "waiting", "audited", "kept",
)  # fmt: skip
SEEN = ("events", "relevant", "waiting")
"""Of these, counts of events: those that several parts of a job get count once."""
RECENT = 512
"""Micro-batches whose audit counts for the estimate of recall."""


def observed(packed: DataFrame, name: str | Observation = NAME) -> DataFrame:
    """The same rows, with their numbers added up by Spark in each micro-batch.

    Parameters
    ----------
    packed : pyspark.sql.DataFrame
        Rows as ``packing.packed`` makes them; the numbers of those that are not metrics are NULL.
    name : str or Observation, default "acep"
        Name of the observation; ``Progress.of`` asks for it. Of a batch the observation itself.

    Returns
    -------
    pyspark.sql.DataFrame
        Counts and arrays are summed up element by element, of ``price``, ``version`` and ``audit`` it is the largest.
    """
    from pyspark.sql import functions as sql

    def element_by_element(column: str, alias: str, size: int) -> list[Column]:
        return [sql.sum(sql.get(column, sql.lit(i))).alias(f"{alias}_{i}") for i in range(size)]

    seen = {name: sql.when(sql.col("is_copy") == 0, sql.col(name)) for name in SEEN}
    added = (*COUNTS, "cells", "squares", "given_up", "seconds")
    sums = [sql.sum(seen.get(column, sql.col(column))).alias(column) for column in added]
    sums += element_by_element("shed", "shed", len(REASONS)) + element_by_element("ends", "ends", ENDS)
    for column in ("audited", "kept"):
        sums += element_by_element(f"{column}_in", column, GROUPS)
    largest = [sql.max(column).alias(column) for column in ("price", "version", "audit")]
    return packed.observe(name, *sums, *largest)


def _summed(numbers: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """The counts of what was ``observed``, and runs shed by reason."""
    counts = {column: int(numbers.get(column) or 0) for column in COUNTS}
    return counts, {reason: int(numbers.get(f"shed_{i}") or 0) for i, reason in enumerate(REASONS)}


@dataclass(frozen=True)
class Progress:
    """The numbers of one micro-batch, of all shards.

    Attributes
    ----------
    query : str
        Name of the streaming query, or its id.
    batch : int
        Number of the micro-batch.
    trigger : str
        When it began: ISO 8601, UTC.
    seconds, matching_seconds : float
        How long it took, and the matcher in it: the sum over the shards.
    rows, rows_per_second : int, float
        Rows that came in, and how many a second were done.
    events, relevant : int
        Events matched, and those of them that the query is about. They may have come in before.
    matches, others, points : int
        Rows of results, rows of other tables (changes and calls of rules), and match points.
    late, malformed, without_key : int
        Events left out, by reason.
    waiting, live : int
        Events that wait for the watermark, and runs that live, at the end: of the shards that had something to do.
    steps, bound : int
        Run-steps made, and how many the budget allowed; 0 and 0 without one.
    shed : dict of str to int
        Runs shed, by reason.
    price : float
        Least score of a run that was kept, of the shard where it is highest.
    version : int
        Newest version of the history that was used; 0: none.
    audited, kept : int
        Audited match points, and those of them that were found, or would have been without protection.
    audit : JobAudit
        What tells of recall.
    lag : float or None
        Seconds from the watermark to the latest event of the micro-batch; None if it had none.
    state_rows, state_bytes : int
        What the state stores hold, all operators together.
    learned : Verdict or None
        What the driver's learner has come to by now: of jobs that learn, as ``start`` hands it on.
    tombstones : int
        Messages of topics without a value, which are no events.
    """

    query: str
    batch: int
    trigger: str
    seconds: float
    rows: int
    rows_per_second: float
    matching_seconds: float
    events: int
    relevant: int
    matches: int
    others: int
    points: int
    late: int
    malformed: int
    without_key: int
    waiting: int
    live: int
    steps: int
    bound: int
    shed: dict[str, int]
    price: float
    version: int
    audited: int
    kept: int
    lag: float | None
    state_rows: int
    state_bytes: int
    audit: JobAudit = field(default_factory=JobAudit)
    learned: Verdict | None = None
    tombstones: int = 0

    @classmethod
    def of(cls, report: StreamingQueryProgress | Mapping[str, Any], name: str = NAME) -> Self | None:
        """Read what Spark reports of a micro-batch.

        Parameters
        ----------
        report : StreamingQueryProgress or mapping
            ``query.lastProgress``, or its JSON as Python objects.
        name : str, default "acep"
            Name that ``observed`` got.

        Returns
        -------
        Progress or None
            None if nothing was observed under this name.
        """
        text = getattr(report, "json", None)
        told: Mapping[str, Any] = report if text is None else json.loads(text)
        numbers = _numbers(told, name)
        if numbers is None:
            return None
        counts, shed = _summed(numbers)
        operators = told.get("stateOperators", ())
        return cls(
            query=told.get("name") or str(told["id"]),
            batch=int(told["batchId"]),
            trigger=str(told["timestamp"]),
            seconds=told.get("durationMs", {}).get("triggerExecution", told["batchDuration"]) / 1000,
            rows=sum(source["numInputRows"] for source in told["sources"]),
            rows_per_second=float(sum(source.get("processedRowsPerSecond") or 0 for source in told["sources"])),
            matching_seconds=float(numbers.get("seconds") or 0),
            shed=shed,
            price=float(numbers.get("price") or 0),
            version=int(numbers.get("version") or 0),
            lag=_lag(told.get("eventTime", {})),
            state_rows=sum(operator["numRowsTotal"] for operator in operators),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            audit=JobAudit.of(numbers),
            tombstones=int((_numbers(told, TOMBSTONES) or {}).get("tombstones") or 0),
            **counts,
        )

    @property
    def budget_used(self) -> float | None:
        """Run-steps made, as a share of those allowed; None without a budget."""
        return self.steps / self.bound if self.bound else None


def _numbers(told: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """What was observed under a name; Spark Connect tells the names of the numbers apart from them."""
    numbers: Mapping[str, Any] | None = told.get("observedMetrics", {}).get(name)
    if numbers is None or numbers.keys() != {"values", "schema"}:
        return numbers
    names = [one["name"] for one in numbers["schema"]["fields"]]
    return dict(zip(names, numbers["values"], strict=True))


def _lag(times: Mapping[str, str]) -> float | None:
    if "max" not in times or "watermark" not in times:
        return None
    latest, watermark = (datetime.fromisoformat(times[name]) for name in ("max", "watermark"))
    return max(0.0, (latest - watermark).total_seconds()) if watermark.timestamp() > 0 else None


@dataclass
class Totals:
    """The numbers of all micro-batches so far, or of a batch.

    Attributes
    ----------
    batches : int
    rows : int
        That came in.
    seconds : float
        How long they took together.
    counts : dict of str to int
        Sums of ``COUNTS``; of the events that wait and the runs that live the last numbers.
    shed : dict of str to int
        Runs shed, by reason.
    tombstones : int
        Messages of topics without a value.
    version : int
        Of the history; 0: none.
    learned : Verdict or None
        What learning has come to; None: nothing was learned, or nobody has told.
    last : Progress or None
        The last micro-batch.
    """

    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    shed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    tombstones: int = 0
    version: int = 0
    learned: Verdict | None = None
    last: Progress | None = None
    _audits: deque[JobAudit] = field(default_factory=lambda: deque(maxlen=RECENT))

    @classmethod
    def of_batch(cls, numbers: Mapping[str, Any]) -> Self:
        """The numbers of a batch that was ``observed``."""
        counts, shed = _summed(numbers)
        made = cls(counts=counts, shed=shed, version=int(numbers.get("version") or 0))
        made.tombstones = int(numbers.get("tombstones") or 0)
        made._audits.append(JobAudit.of(numbers))
        return made

    def add(self, progress: Progress) -> None:
        """Add a micro-batch."""
        self.batches += 1
        self.rows += progress.rows
        self.seconds += progress.seconds
        self.tombstones += progress.tombstones
        for name in COUNTS:
            before = 0 if name in ("waiting", "live") else self.counts[name]
            self.counts[name] = before + getattr(progress, name)
        for reason, number in progress.shed.items():
            self.shed[reason] += number
        self._audits.append(progress.audit)
        self.version, self.learned, self.last = progress.version, progress.learned, progress

    @property
    def has_audit(self) -> bool:
        """Whether something tells of recall."""
        return any(audit.how for audit in self._audits)

    def recall(self) -> RecallEstimate:
        """Estimated recall with its interval, by the audits of the last ``RECENT`` micro-batches."""
        return reduce(JobAudit.combine, self._audits, JobAudit()).recall()


class Listener(StreamingQueryListener):
    """Hands the numbers of each micro-batch to whoever wants them.

    Parameters
    ----------
    *sinks : callable
        Each gets every ``Progress``, in a thread of its own. An error in one is logged by Spark, and does not stop the
        query.
    name : str, default "acep"
        Name that ``observed`` got. Queries that observe nothing under it are passed over.

    Examples
    --------
    >>> spark.streams.addListener(Listener(print))  # doctest: +SKIP
    """

    def __init__(self, *sinks: Callable[[Progress], object], name: str = NAME) -> None:
        self.sinks = sinks
        self.name = name

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  (Spark's names)
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Hand the numbers on."""
        progress = Progress.of(event.progress, self.name)
        if progress is not None:
            for sink in self.sinks:
                sink(progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """There will be no more."""


DURATIONS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120)
"""Bounds of the histogram of batch durations, seconds."""


class Exporter(Served):
    """Serves the numbers of micro-batches at ``http://ADDRESS:PORT/metrics``; a sink for ``metrics.Listener``.

    Parameters
    ----------
    port : int
        0: any free one; see ``port``.
    address : str, default "127.0.0.1"
        Who may ask: by default only this machine; ``0.0.0.0``: everyone.

    Attributes
    ----------
    port : int
    registry : prometheus_client.CollectorRegistry

    Raises
    ------
    UsageError
        ``ACEP-S053``: prometheus-client is not installed; ``ACEP-S054``: the port cannot be used.

    Examples
    --------
    >>> spark.streams.addListener(Listener(Exporter(9464)))  # doctest: +SKIP
    """

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self._totals: dict[str, Totals] = {}
        super().__init__(port, address)

    def _define(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, ["pattern", *labels], registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, ["pattern"], registry=registry)

        self._events = counter(EVENTS, TEXTS[EVENTS], "result")
        self._matches = counter(MATCHES, TEXTS[MATCHES])
        self._shed = counter(SHED, TEXTS[SHED], "reason")
        self._steps = counter(STEPS, TEXTS[STEPS])
        self._updates = counter("acep_policy_update", "New versions of the history that were taken up.")
        self._seconds = Histogram(
            "acep_batch_seconds", "Duration of micro-batches.", ["pattern"], buckets=DURATIONS, registry=registry
        )
        self._gauges = {
            "live": gauge(LIVE, TEXTS[LIVE]),
            "waiting": gauge("acep_waiting_events", "Events that wait for the watermark."),
            "budget_used": gauge("acep_budget_used_ratio", "Run-steps of the last micro-batch / run-steps allowed."),
            "price": gauge("acep_price", "Least score of a run that is kept, of the shard where it is highest."),
            "version": gauge("acep_history_version", "Version of the history in use; 0: none."),
            "lag": gauge("acep_watermark_lag_seconds", "From the watermark to the latest event, in event time."),
            "rows_per_second": gauge("acep_rows_per_second", "Rows done per second of the last micro-batch."),
            "state_rows": gauge("acep_state_rows", "Rows in the state stores."),
            "state_bytes": gauge("acep_state_bytes", "Memory used by the state stores."),
        }
        self._made = {
            "versions": counter("acep_history_versions", "Versions of the history that this job has made."),
            "refused": counter(
                "acep_history_refused", "Those in which what was learned was not found to be better, and does not rank."
            ),
            "broken": counter("acep_history_broken_promises", "How often far less came than was promised."),
        }
        self._judged = {
            "gained": gauge(
                "acep_history_gained", "Match points of the cohort that what was learned would have found and it not."
            ),
            "lost": gauge("acep_history_lost", "Match points of the cohort that it would have found, the other not."),
        }
        self._recall = {
            "recall": gauge(
                "acep_estimated_recall",
                "Estimated share of match points that were found, by the audits of the last 512 micro-batches.",
            ),
            **{
                end: gauge(f"acep_estimated_recall_{end}", f"Where that share {words}, with 95% confidence.")
                for end, words in (("low", "lies at least"), ("high", "lies at most"))
            },
        }

    def __call__(self, progress: Progress) -> None:
        """Take the numbers of a micro-batch."""
        pattern = progress.query
        totals = self._totals.setdefault(pattern, Totals())
        before = totals.last
        totals.add(progress)
        results = {
            "matched": progress.relevant,
            "ignored": progress.events - progress.relevant,
            "late": progress.late,
            "malformed": progress.malformed,
            "without_key": progress.without_key,
        }
        for result, number in results.items():
            self._events.labels(pattern, result).inc(number)
        for reason, number in progress.shed.items():
            self._shed.labels(pattern, reason).inc(number)
        self._matches.labels(pattern).inc(progress.matches)
        self._steps.labels(pattern).inc(progress.steps)
        self._updates.labels(pattern).inc(int(before is not None and progress.version > before.version))
        self._seconds.labels(pattern).observe(progress.seconds)
        told = [(self._gauges, progress), (self._recall, totals.recall())]
        if progress.learned is not None:
            told.append((self._judged, progress.learned))
            for name, counter in self._made.items():  # of the job: after a restart they go on from the checkpoint
                number, known = getattr(progress.learned, name), getattr(before and before.learned, name, 0)
                counter.labels(pattern).inc(number - known if number >= known else number)  # less: a job begun anew
        for gauges, of in told:
            for name, gauge in gauges.items():
                if (value := getattr(of, name)) is not None:
                    gauge.labels(pattern).set(value)
