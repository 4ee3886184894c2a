"""Whether a Spark master, or a Spark Connect server, answers: Spark itself tries for minutes."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from acep_approx.errors import AcepError, UsageError

_MASTER = re.compile(r"[/,]\[?([^/,]+?)\]?:(\d{1,5})(?=,|$)")
SERVER = "sc://"
"""How the address of a Spark Connect server begins."""
PORT = 15002
"""Of a server, where an address has none."""
PATIENCE = 10.0
"""Seconds in which a machine must answer."""


def check_master(master: str) -> None:
    """Check that a Spark master answers, where it is named by its address.

    Parameters
    ----------
    master : str
        ``spark://HOST:PORT``, or several with commas between them; others are not asked.

    Raises
    ------
    AcepError
        ``ACEP-S039``: none of them answers.
    """
    found = _MASTER.findall(master) if master.startswith("spark://") else ()
    _check(((host, int(port)) for host, port in found), f"Spark master answers at {master}")


def check_server(address: str) -> None:
    """Check that a Spark Connect server answers.

    Raises
    ------
    AcepError
        ``ACEP-S039``: it does not.
    UsageError
        ``ACEP-S043``: this is no address of a server.
    """
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:  # the port is no number, or there is no such port
        host, port = None, PORT
    if not host:
        raise UsageError(
            "the address of a Spark Connect server needs a host and a port",
            code="ACEP-S043",
            hint=f"write --master {SERVER}HOST:{PORT} (master= in Python)",
        )
    _check([(host, port)], f"Spark Connect server answers at {SERVER}{host}:{port}")


def _check(machines: Iterable[tuple[str, int]], what: str) -> None:
    """Refuse to go on where there are machines, and none answers."""
    failed: OSError | None = None
    for host, port in machines:
        try:
            socket.create_connection((host, port), PATIENCE).close()
        except OverflowError:  # there is no such port: Spark says so
            return
        except OSError as error:
            failed = error
        else:
            return
    if failed is not None:
        raise AcepError(
            f"no {what}: {failed.strerror or failed}",
            code="ACEP-S039",
            hint="start it, or see whether --master has the right address (master= in Python)",
            passes=True,
        ) from failed
