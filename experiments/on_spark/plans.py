"""What the benchmarks on Spark share: a place to work in, streams that are run to their end, and what Spark tells."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from acep_approx.spark import Progress, Replay, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CORES = 2
SETTINGS = {"spark.driver.memory": "4g", "spark.sql.streaming.numRecentProgressUpdates": "100000"}
WARM = 3
"""First micro-batches of a stream that are not counted: kernels are loaded, files are opened, the state is empty."""


@dataclass(frozen=True)
class Place:
    """Spark, and a folder that is gone afterwards.

    Attributes
    ----------
    spark : SparkSession
    folder : Path
    """

    spark: SparkSession
    folder: Path

    def new(self, name: str) -> Path:
        """A folder that is not there yet, to be made by whoever wants it."""
        return Path(mkdtemp(prefix=f"{name}-", dir=self.folder)) / name

    def written(self, name: str, table: pa.Table) -> Path:
        """The Parquet file of a table."""
        path = self.folder / f"{name}.parquet"
        pq.write_table(table, path)
        return path


@contextmanager
def place() -> Iterator[Place]:
    """Spark on two cores of this machine, or the session that runs already; only one of its own is stopped."""
    from pyspark.sql import SparkSession

    runs_already = SparkSession.getActiveSession() is not None
    spark = session(f"local[{CORES}]", **SETTINGS)
    spark.dataSource.register(Replay)
    folder = Path(mkdtemp(prefix="bench_spark-"))
    try:
        yield Place(spark, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not runs_already:
            spark.stop()


@dataclass(frozen=True)
class Done:
    """One micro-batch.

    Attributes
    ----------
    rows : int
        That came in.
    seconds, commit : float
        How long it took, and writing the state in it: the sum over the shards.
    progress : Progress or None
        What the shards counted; None for a plan that counts nothing.
    """

    rows: int
    seconds: float
    commit: float
    progress: Progress | None


def done(query: StreamingQuery) -> list[Done]:
    """The micro-batches of a stream so far that had events."""
    told = [json.loads(report.json) for report in query.recentProgress]
    return [_done(one) for one in told if sum(source["numInputRows"] for source in one["sources"])]


def _done(told: dict[str, Any]) -> Done:
    rows = sum(source["numInputRows"] for source in told["sources"])
    commit = sum(operator["commitTimeMs"] for operator in told["stateOperators"]) / 1e3
    return Done(rows, told["durationMs"]["triggerExecution"] / 1e3, commit, Progress.of(told))


def drained(stream: DataFrame, checkpoint: Path) -> list[Done]:
    """Run a stream through to nowhere until nothing is left; its micro-batches."""
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return done(query)


def steady(batches: Sequence[Done]) -> Sequence[Done]:
    """Those of the size of the largest, without the first ones where there are enough."""
    most = max(one.rows for one in batches)
    full = [one for one in batches if one.rows == most]
    return full[min(WARM, len(full) - 1) :]


def rates(batches: Sequence[Done]) -> list[float]:
    """Events per second of each."""
    return [one.rows / one.seconds for one in batches]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def replay(spark: SparkSession, path: Path, *, time: str, **options: str) -> DataFrame:
    """A recorded file as a stream; see ``acep_approx.spark.sources.replay``."""
    return spark.readStream.format("acep_replay").options(path=str(path), time=time, **options).load()
