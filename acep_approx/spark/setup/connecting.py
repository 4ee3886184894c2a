"""Starting a session by Spark Connect: the server runs elsewhere, and this process needs no Java."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from acep_approx.errors import AcepError, UsageError
from acep_approx.spark.setup.answering import SERVER, check_server
from acep_approx.spark.setup.failures import clear_errors, explained
from acep_approx.spark.setup.kinds import ROCKSDB, STATE_STORE
from acep_approx.spark.setup.package import write_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("acep_approx.spark")
ANYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings of every session that we start, also of a client of Spark Connect; RocksDB comes with them."""


def address_of_server(master: str | None) -> str | None:
    """Return the address of the server that is asked for; None: the session is to be a classic one.

    Parameters
    ----------
    master : str or None
        What the user named; without it ``SPARK_REMOTE`` of the environment counts, as it does for Spark.

    Examples
    --------
    >>> address_of_server("sc://host:15002"), address_of_server("local[2]")
    ('sc://host:15002', None)
    """
    asked = os.environ.get("SPARK_REMOTE") if master is None else master
    return asked if asked is not None and asked.startswith(SERVER) else None


def running_session() -> SparkSession | None:
    """Return the session of Spark Connect that this process has; None: it has none."""
    known = sys.modules.get("pyspark.sql.connect.session")
    return None if known is None else known.SparkSession.getActiveSession()


def connected(address: str, given: Mapping[str, str]) -> SparkSession:
    """Start a session on a server.

    Parameters
    ----------
    address : str
        ``sc://HOST:PORT``, with parameters as Spark has them.
    given : mapping of str to str
        Settings of Spark; they go before ours.

    Returns
    -------
    pyspark.sql.SparkSession
        Its streams keep their state in RocksDB: in that of the server, where it has one. Workers that do not find this
        package have been sent it.

    Raises
    ------
    AcepError
        ``ACEP-S039``: no server answers; ``ACEP-S040``: PySpark lacks packages for it; ``ACEP-S035``: the server
        refuses, or something else is wrong.
    UsageError
        ``ACEP-S042``: a setting that only the server has.
    """
    _check_packages()
    check_server(address)
    from pyspark.sql import SparkSession

    from acep_approx.spark.setup.retrying import ShortPatience

    with clear_errors():
        spark = SparkSession.builder.remote(address).getOrCreate()
        spark.client.set_retry_policies([ShortPatience()])
        ours = ANYWHERE if "RocksDB" in (spark.conf.get(STATE_STORE) or "") else {**ANYWHERE, STATE_STORE: ROCKSDB}
        _set(spark, {**ours, **given})
        _bring_package(spark)
    return spark


def _check_packages() -> None:
    try:
        import pyspark.sql.connect.session  # noqa: F401
    except ImportError as error:
        raise AcepError(
            "a client of Spark Connect needs packages that are not installed",
            code="ACEP-S040",
            hint="pip install 'acep-approx[connect]'",
        ) from error


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    from pyspark.errors import AnalysisException

    for name, value in settings.items():
        try:
            spark.conf.set(name, value)
        except AnalysisException as error:
            raise UsageError(
                f"{name} cannot be set by a client of Spark Connect",
                code="ACEP-S042",
                hint=f"start the server with --conf {name}={value}, or leave it out",
            ) from error


def _bring_package(spark: SparkSession) -> None:
    """Send this package to workers that do not find it."""
    from pyspark.errors import PySparkException

    try:
        spark.range(0, 1, 1, 1).mapInArrow(_same, "id long").collect()
    except PySparkException as error:
        ours = explained(error)
        if ours is None or ours.code != "ACEP-S034" or "acep_approx" not in ours.message:
            raise  # another package, which cannot be sent
        with TemporaryDirectory() as folder:
            file = Path(folder, "acep.zip")
            write_package(file)
            spark.addArtifacts(str(file), pyfile=True)
        log.info("the workers do not have this package: it is sent to them, for this session")


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: Spark finds it only where this package is installed."""
    return batches
