"""A standalone cluster of Spark in processes of its own, on free ports of the loopback: a master, and workers.

Executors have this package from nowhere but the zip that a job sends: no PYTHONPATH leads here.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kafka_broker import GUARD
from tests.patience import until

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_ANSWERS = re.compile(r"Starting Spark master at (spark://\S+)")
WORKER_MEMORY = "1200m"
"""Of two executors."""


@dataclass
class SparkCluster:
    """A cluster that runs.

    Parameters
    ----------
    folder : Path
        For its logs, and for what its executors work in.
    """

    folder: Path
    address: str = field(init=False)
    _begun: dict[str, subprocess.Popen[bytes]] = field(init=False, default_factory=dict)

    def begin(self, workers: int) -> None:
        """Start the master, and workers with two cores each."""
        self._start("master", MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        found: Any = until(lambda: _ANSWERS.search(self.log("master")))
        self.address = found[1]
        for number in range(workers):
            self.start_worker(f"worker{number}")
        until(lambda: self.log("master").count("Registering worker") >= workers)

    def start_worker(self, name: str) -> None:
        """Start a worker with two cores."""
        here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--cores", "2", "--memory", WORKER_MEMORY)
        self._start(name, WORKER, *here, "--work-dir", str(self.folder / name), self.address)

    def kill_worker(self, name: str) -> list[int]:
        """Let a worker die at once, with its executors and their Python, as a machine that fails does."""
        family = self._family(name)
        for process in family:
            with suppress(ProcessLookupError):  # the guard of one that is gone ends by itself
                os.kill(process, signal.SIGKILL)
        gone = self._begun.pop(name)
        gone.wait()
        assert gone.stdin is not None
        gone.stdin.close()
        return family

    def stop(self) -> None:
        """Kill all of it."""
        for name in [*self._begun]:
            self.kill_worker(name)

    def log(self, name: str) -> str:
        """What a process has printed so far."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def _start(self, name: str, program: str, *words: str) -> None:
        import pyspark

        home = str(Path(pyspark.__file__).parent)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", "")}
        with (self.folder / f"{name}.log").open("wb") as log:
            self._begun[name] = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", f"{home}/bin/spark-class", program, *words],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _family(self, name: str) -> list[int]:
        process = self._begun[name].pid
        return [*descendants(process), process]


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[SparkCluster]:
    """A cluster that is gone in the end."""
    cluster = SparkCluster(folder)
    try:
        cluster.begin(workers)
        yield cluster
    finally:
        cluster.stop()


def descendants(process: int) -> Iterator[int]:
    """The children of a process, theirs, and so on."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    family = [process]
    for parent in family:
        family += [child for child, its in pairs if its == parent]
    yield from family[1:]
