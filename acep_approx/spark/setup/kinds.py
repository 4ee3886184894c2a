"""The two kinds of session: classic, with a JVM that belongs to this process, and Spark Connect, with one elsewhere.

A client of Spark Connect has no JVM to ask. What both kinds can do, in different ways, stands here, so that callers
need not know which kind they have. Who must know, because only one kind can do something, asks ``is_connect``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES_SEEN = 1 << 16
"""Rows of a range that Spark cuts into as many parts as it has cores, unless it has more cores than this."""
BATCH, TAGS = "streaming.sql.batchId", "spark.job.tags"
"""What Spark calls the number of a micro-batch, and the tags of a job, among the properties of its tasks."""
TAG = "acep-batch-"
BROADCAST_ABOVE = "spark.broadcast.UDFCompressionThreshold"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def cores_of(spark: SparkSession) -> int:
    """Return how many tasks run at once.

    Complexity: by Spark Connect one small job.
    """
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as F

    return spark.range(CORES_SEEN).select(F.spark_partition_id()).distinct().count()


def send_file(spark: SparkSession, place: str) -> None:
    """Send a file to each worker, where ``SparkFiles.get`` finds it by its name."""
    if is_connect(spark):
        spark.addArtifacts(place, file=True)
    else:
        spark.sparkContext.addFile(place)


@contextmanager
def sent_whole(spark: SparkSession) -> Iterator[None]:
    """Let Spark send functions that are made here with their tasks, however large they are.

    Above a megabyte, which is that of some 30,000 queries, they would be broadcast, and the process with which Spark
    begins a stateful stream cannot read what is broadcast (``BROADCAST_VARIABLE_NOT_LOADED``).
    """
    if is_connect(spark):  # it is the server that would broadcast, by its own settings
        yield
        return
    context: Any = spark.sparkContext
    settings = context._jsc.sc().conf()
    before = settings.get(BROADCAST_ABOVE, "1m")
    settings.set(BROADCAST_ABOVE, "1g")
    try:
        yield
    finally:
        settings.set(BROADCAST_ABOVE, before)


def has_class(spark: SparkSession, name: str) -> bool:
    """Return whether a classic session has a class of Java."""
    machine: Any = spark.sparkContext._jvm
    return bool(machine.org.apache.spark.util.Utils.classIsLoadable(name))


def has_kafka(spark: SparkSession, provider: str) -> bool:
    """Return whether a session has the connector for Kafka, of which ``provider`` is a class."""
    if not is_connect(spark):
        return has_class(spark, provider)
    from pyspark.errors import AnalysisException

    unread = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "any"}  # nobody connects to it
    try:
        return bool(spark.read.format("kafka").options(**unread).load().schema)
    except AnalysisException as error:
        if "KAFKA" in str(error):
            return False
        raise


@contextmanager
def numbered(spark: SparkSession, batch: int) -> Iterator[None]:
    """Let tasks that ``foreachBatch`` starts know the number of their micro-batch; see ``batch_of_task``.

    By Spark Connect the stream and these tasks are in different threads of the server, and the tasks know nothing of
    the stream: a tag tells them.
    """
    if not is_connect(spark):
        yield
        return
    tag = f"{TAG}{batch}"
    spark.addTag(tag)
    try:
        yield
    finally:
        spark.removeTag(tag)


def batch_of_task() -> int | None:
    """Return the number of the micro-batch, in a task; None where Spark does not say."""
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return None
    told = task.getLocalProperty(BATCH)
    if told is None and (found := re.search(rf"{TAG}(\d+)", task.getLocalProperty(TAGS) or "")):
        told = found[1]
    return None if told is None else int(told)


def check_state_store(spark: SparkSession) -> None:
    """Refuse a session that keeps the state of streams where it cannot be kept for matching (``ACEP-S041``).

    The setting is not changed here: a session of a user has the settings that the user gave it.
    """
    held = spark.conf.get(STATE_STORE) or ""
    if "RocksDB" not in held:  # clusters may have a RocksDB of their own
        raise UsageError(
            f"the session keeps the state of streams in {held.rpartition('.')[2]}, and matching a stream needs RocksDB",
            code="ACEP-S041",
            hint=f'spark.conf.set("{STATE_STORE}", "{ROCKSDB}")',
        )
