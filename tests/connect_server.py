"""A server of Spark Connect in a process of its own, on a free port of the loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from tests.patience import until

ROOT = Path(__file__).parent.parent
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
GUARD = 'exec 3<&0; "$@" & server=$!; (read -r _ <&3; kill -9 $server) & wait $server; kill $!'
"""A shell that kills the server when its standard input ends: when the process of the tests is gone."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.session.timeZone": "America/New_York",  # answers do not depend on it
    "spark.sql.shuffle.partitions": "2",
    "spark.python.daemon.module": "acep_approx.spark.daemon",
}


def free_port() -> int:
    """A port that nobody has just now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A server, with its log in a folder; gives its address."""
    port = free_port()
    settings = {**SETTINGS, "spark.connect.grpc.binding.port": str(port), "spark.sql.warehouse.dir": str(folder / "w")}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    # by the class, as Spark's own script would start it in the background
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]", "--class", CLASS]
    known = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_REMOTE", "PYSPARK_"))}
    known |= {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "guard", *command, *options, "spark-internal"],
            stdin=subprocess.PIPE, stdout=log, stderr=log, env=known, cwd=folder,
        )  # fmt: skip
    try:
        until(lambda: server.poll() is not None or _answers(port))
        assert server.poll() is None, (folder / "server.log").read_text()[-2000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
