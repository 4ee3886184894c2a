"""Compiles the kernels that another process asks for, on standard input: ``background`` starts it."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread, Timer
from typing import Any

COMPILED, FAILED = "+", "-"
"""What is said of each kernel, on standard output."""
AFTERWARDS = 120.0
"""Seconds that are left when the other process has ended."""
LOWEST = 19
IDLE = 3.0
"""Seconds after which nothing more is expected; should there be something, the other process starts a new one."""


def main() -> None:
    """Compile until there is nothing to do any more."""
    requests: SimpleQueue[tuple[Any, tuple[Any, ...]] | None] = SimpleQueue()
    Thread(target=_read, args=(requests,), daemon=True).start()
    with suppress(Empty, BrokenPipeError):
        while (request := requests.get(timeout=IDLE)) is not None:
            kernel, args = request
            said = COMPILED
            try:
                kernel.prepare(args)
            except Exception:  # noqa: BLE001  (whatever numba or LLVM lack; who asked goes on without)
                said = FAILED
            sys.stdout.write(said)
            sys.stdout.flush()


def _read(requests: SimpleQueue[Any]) -> None:
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            requests.put(pickle.load(sys.stdin.buffer))  # noqa: S301  (from the process that started this one)
    requests.put(None)
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, os.getpid(), LOWEST)  # of the thread that compiles, not of this one
    last = Timer(AFTERWARDS, os._exit, [1])
    last.daemon = True
    last.start()


if __name__ == "__main__":
    main()
