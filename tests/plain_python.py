"""Functions of helpers as plain Python, each call in a process of its own: forked from one that has loaded the helper.

An index that is negative is an error there (``checked_index``).

A variant that is known to be wrong changes the package for good, so that it needs a process; loading takes longer than
most of them take to be noticed.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import traceback
from functools import cache
from importlib import import_module
from typing import Any

from tests.checked_index import check_every_index
from tests.patience import PATIENCE
from tests.processes import ROOT


def plainly(module: str, function: str, *given: Any) -> Any:
    """What a function of a module of tests returns where kernels are plain Python; values are those of JSON."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([module, function, given]) + "\n")
    server.stdin.flush()
    line = server.stdout.readline()
    assert line, "the process to fork from has ended"
    answer = json.loads(line)
    assert "failed" not in answer, answer["failed"]
    return answer["returned"]


@cache
def _server() -> subprocess.Popen[str]:
    """The process that is forked from: one for each process of pytest."""
    command = [sys.executable, "-m", "tests.plain_python"]
    server = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "ACEP_JIT": "0"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)  # it ends with what it reads
    return server


def _serve() -> None:
    check_every_index()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and with what they write this
    for line in sys.stdin:
        module, function, given = json.loads(line)
        called = getattr(import_module(module), function)
        incoming, outgoing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(incoming)
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed is no answer
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.alarm(PATIENCE)  # a wrong variant may never end
            with os.fdopen(outgoing, "w") as pipe:
                pipe.write(json.dumps(_answer(called, given)))
            os._exit(0)
        os.close(outgoing)
        with os.fdopen(incoming) as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        print(answer or json.dumps({"failed": f"the process ended with {status}"}), flush=True)


def _answer(called: Any, given: list[Any]) -> dict[str, Any]:
    try:
        return {"returned": called(*given)}
    except BaseException:  # noqa: BLE001  whoever asked says it
        return {"failed": traceback.format_exc()}


if __name__ == "__main__":
    _serve()
