"""A Spark session that suits matching, and what must be there: before one can start, and on its executors.

Spark copies what its Python processes print to the stderr of the JVM, past any log. For each stream one of them says in
plain prints that it starts, what it was given, and that it is done. These lines are left out: they tell a user nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import TYPE_CHECKING

from acep_approx.errors import AcepError
from acep_approx.spark.setup.answering import check_master
from acep_approx.spark.setup.connecting import ANYWHERE, address_of_server, connected, running_session
from acep_approx.spark.setup.failures import clear_errors
from acep_approx.spark.setup.kinds import ROCKSDB, STATE_STORE
from acep_approx.spark.setup.package import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CHATTER = re.compile(rb"(Starting )?Streaming TransformWithStateInPandas Python worker")


def filter_stderr(spark: SparkSession) -> None:
    """Let what the JVM of a session prints on stderr come through this process, which leaves ``_CHATTER`` out.

    Errors that Spark logs keep their own way, and come through if this process hangs. Nothing changes where there are
    no named pipes (Windows).
    """
    machine = spark.sparkContext._jvm
    if not hasattr(os, "mkfifo") or machine is None:
        return
    folder = Path(mkdtemp(prefix="acep-stderr-"))
    pipe = folder / "stderr"
    os.mkfifo(pipe)

    def pass_on() -> None:
        with pipe.open("rb", buffering=0) as lines:
            for line in worth_reading(lines):
                sys.stderr.write(line.decode(errors="replace"))
                sys.stderr.flush()

    Thread(target=pass_on, name="stderr of Spark", daemon=True).start()
    java = machine.java
    java.lang.System.setErr(java.io.PrintStream(java.io.FileOutputStream(str(pipe)), True))  # waits for the thread
    shutil.rmtree(folder)


def worth_reading(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""The lines that are not ``_CHATTER``; each of those has an empty line after it.

    Examples
    --------
    >>> chatter = b"Starting Streaming TransformWithStateInPandas Python worker.\n"
    >>> list(worth_reading([chatter, b"\n", b"out of memory\n", b"\n"]))
    [b'out of memory\n', b'\n']
    """
    follows = False
    for line in lines:
        is_chatter = _CHATTER.match(line) is not None
        if not is_chatter and not (follows and line == b"\n"):
            yield line
        follows = is_chatter


OLDEST_JAVA = 17
OLDEST_SPARK = (4, 1)
INSTALL_JAVA = (
    "install OpenJDK 17 or newer: apt install openjdk-17-jre-headless (Debian, Ubuntu), "
    "brew install openjdk@17 (macOS), winget install Microsoft.OpenJDK.17 (Windows); or set JAVA_HOME to one"
)
SETTINGS = {
    "spark.app.name": "acep",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    STATE_STORE: ROCKSDB,
    **ANYWHERE,
}
"""Settings of every session that we start; see ``docs/reference/spark.md`` for why."""
STACK = "-Xss64m"
"""A stream that is stopped looks for a word in the trace of its Python side, by an expression that recurs with each
letter (``StreamExecution.isInterruptionException``): with Java's megabyte the stack overflows, which is printed."""


def check_java(home: str | None = None) -> int:
    """The version of Java that Spark will run on.

    Parameters
    ----------
    home : str, optional
        Folder of a Java; by default ``JAVA_HOME`` of the environment, else the ``java`` of ``PATH``.

    Returns
    -------
    int
        E.g. 17.

    Raises
    ------
    AcepError
        ``ACEP-S030``: there is none; ``ACEP-S031``: it is too old.
    """

    def wrong(what: str, code: str = "ACEP-S030") -> AcepError:
        return AcepError(f"Spark needs Java{what}", code=code, hint=INSTALL_JAVA)

    home = home or os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        raise wrong(f", and there is none in JAVA_HOME, {home}" if home else ", and there is none in PATH")
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise wrong(f", and {java} does not run: {error}") from error
    said = done.stderr + done.stdout
    version = java_version(said)
    if version is None:
        first = said.strip().partition("\n")[0]
        raise wrong(f", and {java} does not tell its version: {first!r}")
    if version < OLDEST_JAVA:
        raise wrong(f" {OLDEST_JAVA} or newer, and {java} is Java {version}", "ACEP-S031")
    return version


def java_version(said: str) -> int | None:
    """The major version in what ``java -version`` says; None if it is not there.

    Examples
    --------
    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_version('java version "1.8.0_202"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


def check_spark(*, streaming: bool = False) -> None:
    """Check PySpark, and what it needs for streams.

    Parameters
    ----------
    streaming : bool, default False
        Whether a stream is to be matched.

    Raises
    ------
    AcepError
        ``ACEP-S032``: no PySpark, or one that is too old; ``ACEP-S033``: no protobuf, which streams need.
    """
    try:
        from pyspark import __version__ as version
    except ImportError:
        version = ""
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_SPARK:
        wanted = ".".join(map(str, OLDEST_SPARK))
        found = f"this is {version}" if version else "it is not installed"
        raise AcepError(
            f"PySpark {wanted} or newer is needed, and {found}",
            code="ACEP-S032",
            hint=f"pip install 'pyspark[sql]>={wanted}', the version of your cluster if you have one",
        )
    if streaming and not (find_spec("google") and find_spec("google.protobuf")):
        raise AcepError(
            "matching a stream needs the package protobuf, on the workers too, and it is not installed",
            code="ACEP-S033",
            hint="pip install protobuf",
        )


def session(master: str | None = None, **conf: str) -> SparkSession:
    """Start Spark, or take the session that runs already.

    Parameters
    ----------
    master : str, optional
        E.g. ``local[4]``, or ``sc://HOST:15002`` for Spark Connect. By default what ``spark-submit`` or
        ``SPARK_REMOTE`` says, else this machine with all its cores.
    **conf : str
        More settings of Spark, by their names; they go before ours, and ours before those of Spark.

    Returns
    -------
    pyspark.sql.SparkSession
        Its time zone is UTC, its streams keep their state in RocksDB.

    Raises
    ------
    AcepError
        ``ACEP-S030`` to ``ACEP-S032``: Java or PySpark are missing or too old; ``ACEP-S039``: no master, or no server,
        answers; ``ACEP-S040``: packages for Spark Connect are missing; ``ACEP-S035``: Spark cannot be started for
        another reason.
    UsageError
        ``ACEP-S042``: a setting that a client of Spark Connect cannot set; ``ACEP-S043``: no address of a server.

    Examples
    --------
    >>> spark = session("local[2]", **{"spark.driver.memory": "2g"})  # doctest: +SKIP
    """
    check_spark()
    if master is None and (running := running_session()) is not None:
        return running
    if (address := address_of_server(master)) is not None:
        return connected(address, conf)
    from pyspark import SparkConf, SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    is_submitted, is_running = "PYSPARK_GATEWAY_PORT" in os.environ, SparkContext._active_spark_context is not None
    is_ours = not is_submitted and not is_running
    if is_ours:
        check_java()
    elif not is_running:
        SparkContext._ensure_initialized()  # what spark-submit says is known from now on
    settings = SparkConf()
    for name, value in conf.items():
        settings.set(name, value)
    if master is not None:
        settings.set("spark.master", master)
    settings.setIfMissing("spark.master", "local[*]")
    if not is_running:
        check_master(settings.get("spark.master") or "")
    for name, value in {**SETTINGS, **_defaults(settings.get("spark.master") or "")}.items():
        settings.setIfMissing(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel("CRITICAL")  # they print every error that is raised all the same
    with clear_errors():
        spark = SparkSession.builder.config(conf=settings).getOrCreate()
    if is_ours:
        filter_stderr(spark)
    return spark


def cores(master: str) -> int | None:
    """How many tasks run at once on this machine; None for a cluster.

    Examples
    --------
    >>> cores("local[3]"), cores("local"), cores("yarn")
    (3, 1, None)
    """
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", master)
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def _defaults(master: str) -> dict[str, str]:
    log = Path(__file__).resolve().with_name("log4j2.properties").as_uri()
    settings = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log} {STACK}"}
    number = cores(master)
    if number is None:
        return settings
    settings |= {
        "spark.sql.shuffle.partitions": str(number),  # the default, 200, is for clusters
        "spark.default.parallelism": str(number),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.python.daemon.module": "acep_approx.spark.daemon",
    }
    if str(ROOT) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        settings["spark.executorEnv.PYTHONPATH"] = path  # workers find us where this process has
    return settings
