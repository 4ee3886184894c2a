"""The numbers of a running job for Prometheus, on a port of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.live.prometheus import EVENTS, LIVE, MATCHES, SHED, STEPS, TEXTS, Served
from acep_approx.spark.streaming.metrics import Progress, Totals

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from acep_approx.learning.judging import Verdict

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
        self._recall = gauge(
            "acep_estimated_recall",
            "Estimated share of match points found by the policy alone: from audited cells in which nothing is shed, "
            "of the last 512 micro-batches. From 30 audited match points on.",
        )
        self._recall_ends = {
            end: gauge(f"acep_estimated_recall_{end}", f"Where that share {words}, with 95% confidence.")
            for end, words in (("low", "lies at least"), ("high", "lies at most"))
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
        for name, gauge in self._gauges.items():
            value = getattr(progress, name)
            if value is not None:
                gauge.labels(pattern).set(value)
        if progress.learned is not None:
            self._tell_learned(pattern, progress.learned, before.learned if before is not None else None)
        self._tell_recall(pattern, totals)

    def _tell_learned(self, pattern: str, now: Verdict, before: Verdict | None) -> None:
        """Counts of the job, not of this process: after a restart they go on from those of the checkpoint."""
        for name, counter in self._made.items():
            number, known = getattr(now, name), getattr(before, name, 0)
            counter.labels(pattern).inc(number - known if number >= known else number)  # less: a job that began anew
        for name, gauge in self._judged.items():
            gauge.labels(pattern).set(getattr(now, name))

    def _tell_recall(self, pattern: str, totals: Totals) -> None:
        """The interval as soon as there is one; the number only where enough was audited."""
        estimate = totals.recall()
        if estimate.recall is not None:
            self._recall.labels(pattern).set(estimate.recall)
        for end, gauge in self._recall_ends.items():
            value = getattr(estimate, end)
            if value is not None:
                gauge.labels(pattern).set(value)
