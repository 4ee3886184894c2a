"""``acep`` as a program that need not load anything: it is forked from a process that has loaded all.

Loading takes more than half of the time of a small run, and the pages of the docs have a hundred of them. The process
that is forked from listens at a socket: a program of a few lines sends it words, folder, environment, and its own
standard streams. Run as ``python -m tests.forked SOCKET``.
"""

from __future__ import annotations

import gc
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE

SLOW_TO_LOAD = ("pandas", "pydantic", "rich.table", "river.drift", "sklearn.ensemble", "typer._adapters")
"""What only some commands load, up to a second each time."""
PROGRAM = """
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({socket!r})
    socket.send_fds(there, [b"."], [0, 1, 2])
    there.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    there.shutdown(socket.SHUT_WR)
    answers = there.makefile()
    pid = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    sys.exit(int(answers.readline() or 1))
"""


@contextmanager
def program(folder: Path) -> Iterator[Path]:
    """A folder for ``PATH`` that holds ``acep``.

    Parameters
    ----------
    folder : Path
        Where files of ours can lie; with a short name, as sockets want it.
    """
    at, home = folder / "socket", folder / "bin"
    home.mkdir()
    client, command = folder / "client.py", home / "acep"
    client.write_text(PROGRAM.format(socket=str(at)), encoding="utf-8")
    command.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-IS", str(client)])} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    words = [sys.executable, "-m", "tests.forked", str(at)]
    with subprocess.Popen(words, cwd=Path(__file__).parent.parent, stdin=subprocess.DEVNULL) as server:
        try:
            patience = time.monotonic() + PATIENCE
            while not at.exists():
                assert server.poll() is None, "the process to fork from has ended"
                assert time.monotonic() < patience, "the process to fork from does not get ready"
                time.sleep(0.05)
            yield home
        finally:
            server.terminate()


def serve(at: str) -> None:
    """Load everything, and fork for whoever asks."""
    for name in SLOW_TO_LOAD:
        import_module(name)
    import typer.main

    from acep_approx.cli.main import app, main
    from tests import compile_kernels
    from tests.command_line import acep

    compile_kernels.main()
    for words in ("check", "explain"):
        acep(words, compile_kernels.CELLS)  # what Typer and these load when they are first used
    typer.main.get_command = cache(typer.main.get_command)  # made once for all
    typer.main.get_command(app)
    gc.freeze()  # what is shared is not copied to look for garbage in it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and these end this
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as home:
        home.bind(draft := f"{at}~")
        home.listen()
        Path(draft).rename(at)
        home.settimeout(5)
        while os.getppid() == parent:  # tests that are killed end this, too
            try:
                asked, _ = home.accept()
            except TimeoutError:
                continue
            if not os.fork():
                home.close()
                _answer(asked, main)
            asked.close()


def _answer(asked: socket.socket, main: Any) -> None:
    """Be the program that is asked for, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(PATIENCE)  # it ends, also where nobody waits for it any more
    _, places, *_ = socket.recv_fds(asked, 1, 3)
    words, folder, environment = json.load(asked.makefile())
    asked.sendall(f"{os.getpid()}\n".encode())
    for number, place in enumerate(places):
        os.dup2(place, number)
        os.close(place)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, code = ["acep", *words], 0
    try:
        main()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    asked.sendall(f"{code}\n".encode())
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
