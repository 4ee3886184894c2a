"""A real PostgreSQL in a folder of its own, on a free port of the loopback, for tests that write to a database."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.kafka_broker import free_ports
from tests.patience import PATIENCE


class NoServer(Exception):
    """There can be no server here, and why."""


class Server:
    """A server that runs until it is stopped; root lets the user ``postgres`` run it, as it refuses root itself.

    Parameters
    ----------
    folder : Path
        For its data, which that user may reach.

    Raises
    ------
    NoServer
        PostgreSQL is not installed, or does not start.
    """

    def __init__(self, folder: Path) -> None:
        if not all(map(shutil.which, ("initdb", "pg_ctl", "psql"))):
            raise NoServer("PostgreSQL is not installed")
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            try:
                owner = pwd.getpwnam("postgres")
            except KeyError:
                raise NoServer("there is no user postgres, and root may not run a server") from None
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            self._as = {"user": owner.pw_uid, "group": owner.pw_gid}
        (self.port,) = free_ports(1)
        self._folder = folder / "data"
        self._run("initdb", "-A", "trust", "-U", "test", "-D", str(self._folder))
        said = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {folder}"
        self._run("pg_ctl", "-w", "-D", str(self._folder), "-l", str(folder / "log"), "-o", said, "start")

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PATIENCE, **self._as
        )
        if done.returncode != 0:
            raise NoServer(f"{command[0]} fails: {done.stderr.decode()[-500:]}")

    def stop(self) -> None:
        """End it."""
        self._run("pg_ctl", "-m", "immediate", "-D", str(self._folder), "stop")

    def address(self, table: str) -> str:
        """The address of a table."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?table={table}&user=test"

    def ask(self, query: str) -> list[list[str]]:
        """The rows of a query, as texts."""
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "test", "-d", "postgres"]
        command = ["psql", *place, "-AtF", "|", "-c", query]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        return [line.split("|") for line in done.stdout.splitlines()]
