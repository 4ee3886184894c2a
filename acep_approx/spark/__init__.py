"""The shell around Spark: it moves Arrow columns into the same steps as the local matcher, and state back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy, moved

if TYPE_CHECKING:
    from acep_approx.spark.past.training import train_history
    from acep_approx.spark.plan.matcher import SparkMatcher
    from acep_approx.spark.plan.sql import register
    from acep_approx.spark.setup.session import session
    from acep_approx.spark.sources.files import read_growing
    from acep_approx.spark.sources.replay import Replay
    from acep_approx.spark.sources.topics import read_topics
    from acep_approx.spark.streaming.changes import net
    from acep_approx.spark.streaming.metrics import Exporter, Listener, Progress, observed
    from acep_approx.spark.streaming.stream import start
    from acep_approx.spark.worker.shard import describe
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.spark.past.training": "train_history",
            "acep_approx.spark.plan.matcher": "SparkMatcher",
            "acep_approx.spark.plan.sql": "register",
            "acep_approx.spark.setup.session": "session",
            "acep_approx.spark.sources.files": "read_growing",
            "acep_approx.spark.sources.replay": "Replay",
            "acep_approx.spark.sources.topics": "read_topics",
            "acep_approx.spark.streaming.changes": "net",
            "acep_approx.spark.streaming.metrics": "Exporter Listener Progress observed",
            "acep_approx.spark.streaming.stream": "start",
            "acep_approx.spark.worker.shard": "describe",
        },
    )

__all__ = [
    "Exporter",
    "Listener",
    "Progress",
    "Replay",
    "SparkMatcher",
    "describe",
    "net",
    "observed",
    "read_growing",
    "read_topics",
    "register",
    "session",
    "start",
    "train_history",
]

_FORMER = ("blobs", "growing", "metrics", "prometheus", "replay", "session", "sql", "stream", "training")

moved([f"{__name__}.{name}" for name in _FORMER], __name__)
