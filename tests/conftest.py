"""What several test files share: one Spark session per process, a folder to be in, and the order of the tests."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from acep_approx.jit.tiers import cores
from tests.cases import examples
from tests.command_line import csv_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.kafka_broker import Broker
    from tests.kafka_mock import Cluster

ROOT = Path(__file__).parent.parent
NUMBERS = count()
FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Writes checkpoints of streams without a process (``readlink``) for each file and link, as the usual one does here."""
PORTION = 10
"""Tests that a process is given at a time."""

os.environ.setdefault("ACEP_JIT", "1")  # tests of the tiers say otherwise
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-XX:ReservedCodeCacheSize=160m",
)
# a JVM of some minutes spends more on compiling its code well, and on verifying Spark's, than it gains; where its cache
# is full, as with the default many tests fill it, all later code is interpreted

gc.disable()  # until all tests are known: what is made before stays

settings.register_profile("ours", examples(100))
settings.load_profile("ours")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to compile the kernels: a test that needs one waits for it, and others do not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        return
    keep_bytecode(config)
    if config.getoption("numprocesses", None):
        gc.enable()  # this process runs no tests, and collects none
        warm = subprocess.Popen([sys.executable, "-m", "acep_approx.cli.main", "warm", "-q"], cwd=ROOT)
        config.add_cleanup(lambda: (warm.terminate(), warm.wait()))


def keep_bytecode(config: pytest.Config) -> None:
    """Keep Python's own compiled code in pytest's cache where nobody else keeps it.

    A program that tests start would spend a third of its time on compiling all modules again, and so would whoever
    collects the tests.
    """
    cache = getattr(config, "cache", None)  # there is none with ``-p no:cacheprovider``
    if sys.dont_write_bytecode and cache is not None:
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(cache.mkdir("bytecode"))
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


def pytest_collection_finish() -> None:
    """Look for garbage less often, and not in what was there before the first test: 6 % of the time went into it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before groups are looked for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several processes tests that share a fixture of their file stay in one, and those that take longest begin.

    Else the fixture is made in each, and one process has nothing to do at the end.
    """
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        if item.get_closest_marker("xdist_group") is None and shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("xdist_group", "slow")])


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """With ``-n auto`` one process more than there are cores: tests of Spark and Kafka wait for much of the time."""
    return cores() + 1


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand tests that are in no group out in portions: after each single one a process would wait for the next."""
    from xdist.scheduler import LoadGroupScheduling

    portions: dict[str, str] = {}

    class Portions(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            if scope != nodeid:
                return scope
            return portions.setdefault(nodeid, f"portion {len(portions) // PORTION}")  # asked in the order of the tests

    config.option.loadscopereorder = False  # the order is that of ``pytest_collection_modifyitems``
    return Portions(config, log)


def shares_a_fixture(item: pytest.Item) -> bool:
    """Whether something is made once for the tests of its file."""
    return any(one.scope == "module" for some in item._fixtureinfo.name2fixturedefs.values() for one in some)


@pytest.fixture(scope="module")
def one_reading() -> Iterator[None]:
    """Histories are learned with the first way to read a graph: which way is best, other tests ask.

    To try them all takes most of the time of learning from a short past.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep_approx.training.training.FEW_POINTS", sys.maxsize)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with a file of events."""
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text(csv_text(), encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session of two cores. A test that uses it must be marked ``xdist_group("spark")``, so that one
    process runs them all: a session takes 20 seconds to start."""
    from acep_approx.spark.setup.session import session
    from tests.spark_names import remember_names

    remember_names()
    chosen = {"spark.driver.memory": "1g", "spark.sql.streaming.checkpointFileManagerClass": FILES}
    running = session("local[2]", **chosen)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker of Kafka. A test that uses it must be marked ``xdist_group("kafka")``, so that one process runs
    them all. Skips where there can be none, which needs Java, Maven and, once, a registry of Java packages."""
    from tests.kafka_broker import Broker, NoBroker

    try:
        running = Broker(tmp_path_factory.mktemp("kafka"))
    except NoBroker as why:
        pytest.skip(f"no broker of Kafka: {why}")
    yield running
    running.kill()


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """The mock of a cluster of Kafka that the client brings: no broker, but it speaks the protocol."""
    from tests.kafka_mock import Cluster

    return Cluster()


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic of the mock, for one test."""
    name = f"t{next(NUMBERS)}"
    cluster.topic(name)
    return name
