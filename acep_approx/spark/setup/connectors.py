"""Packages of Java for Kafka and for databases, added to a session of Spark that has none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from acep_approx.errors import AcepError
from acep_approx.spark.setup.failures import PASSING
from acep_approx.spark.setup.kinds import has_kafka, is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
NEWEST = {"4.1": "4.1.3"}
"""The newest connector that was published for older versions of Spark."""
LAST = "4.2.0"
"""The newest one of all."""
PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
"""A class of the connector."""
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
"""The class that a server of Spark Connect is started by."""
IN_SPARK = (
    *("org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api", "org.slf4j:slf4j-api"),
    *("org.xerial.snappy:snappy-java", "at.yawk.lz4:lz4-java", "com.google.code.findbugs:jsr305"),
    "org.scala-lang.modules:scala-parallel-collections_2.13",
)
"""What the connector asks for and Spark brings itself."""


def kafka_connector(spark_version: str) -> str:
    """Return the package that suits a version of Spark, as ``--packages`` takes it.

    Examples
    --------
    >>> kafka_connector("4.2.0"), kafka_connector("4.3.0")
    ('org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0', 'org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0')
    """
    series = ".".join(spark_version.split(".")[:2])
    return f"{KAFKA}:{NEWEST.get(series, LAST)}"


def add_kafka(spark: SparkSession) -> None:
    """Let a session read and write topics, if it cannot yet; see ``add_package``.

    Raises
    ------
    AcepError
        ``ACEP-S080``: the connector cannot be fetched, or a server of Spark Connect was started without it.

    Notes
    -----
    The tasks of a server of Spark Connect do not see packages that a session adds with ``ADD JAR``.
    """
    if has_kafka(spark, PROVIDER):
        return
    package = kafka_connector(spark.version)
    if is_connect(spark):
        raise AcepError(
            "the Spark Connect server has no connector for Kafka",
            code="ACEP-S080",
            hint=f"start the server with it: spark-submit --packages {package} --class {SERVER} spark-internal",
        )
    add_package(spark, package, IN_SPARK)


def add_package(spark: SparkSession, package: str, without: Sequence[str] = ()) -> None:
    """Let a classic session use a package: it is fetched, once.

    It comes from where Spark gets packages (``spark.jars.repositories``, ``spark.jars.ivySettings``), and stays in its
    cache.

    Parameters
    ----------
    spark : SparkSession
    package : str
        As ``--packages`` takes it.
    without : sequence of str
        What the package asks for and the session has.

    Raises
    ------
    AcepError
        ``ACEP-S080``: it cannot be fetched.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    rest = f"?exclude={','.join(without)}" if without else ""
    try:
        with _quiet_fetch(spark):
            spark.sql(f"ADD JAR 'ivy://{package}{rest}'")
    except (PySparkException, Py4JError) as error:
        found = re.search(r"(?:Exception|Error): (.*)", str(error))
        why = found[1] if found else str(error).partition("\n")[0]
        raise AcepError(
            f"Spark needs the package {package}, and it cannot be fetched: {why}",
            code="ACEP-S080",
            hint=f"bring it along: spark-submit --packages {package}, or name its jars with spark.jars",
            passes=any(words in why for words in PASSING),
        ) from error
    _show_to_all(spark)


def _show_to_all(spark: SparkSession) -> None:
    """Let all threads of the driver find the classes of added packages, as those that it was started with.

    Spark shows them to the thread that adds them: others could not read what failed in a task, or its metrics.
    """
    session: Any = spark._jsparkSession
    added = session.sharedState().jarClassLoader()
    for url in added.getURLs():
        added.getParent().addURL(url)


@contextmanager
def _quiet_fetch(spark: SparkSession) -> Iterator[None]:
    """Keep to itself what Ivy prints while it fetches packages; its errors say enough."""
    machine: Any = spark.sparkContext._jvm
    java = machine.java
    submit = java.lang.Class.forName("org.apache.spark.deploy.SparkSubmit$").getField("MODULE$").get(None)
    before, choose = submit.printStream(), getattr(submit, "printStream_$eq")
    choose(java.io.PrintStream(java.io.ByteArrayOutputStream()))
    try:
        yield
    finally:
        choose(before)
