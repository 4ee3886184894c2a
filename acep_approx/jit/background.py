"""The process that compiles kernels for this one, and for those that come later.

It is told on its standard input which kernels, in the order in which they were first called. When this process has
ended it has two minutes more, at the lowest priority; what interrupts this process ends it, too.
"""

from __future__ import annotations

import atexit
import errno
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from acep_approx.jit.cache import locked
from acep_approx.jit.kinds import like
from acep_approx.jit.marks import Compilable

MOST_TRIES = 2
"""How often a kernel is asked for that does not come."""


class _Compiler:
    """The process that compiles for this one, if there is one.

    Attributes
    ----------
    asked : dict
        How often kernels were asked for, by kernel and kind of arguments.
    wanted : set
        Those that the process was asked for.
    """

    process: subprocess.Popen[bytes] | None = None

    def __init__(self) -> None:
        self.asked: dict[tuple[Compilable, str], int] = {}
        self.wanted: set[tuple[Compilable, str]] = set()


_compiler = _Compiler()


def compiles(kernel: Compilable, kind: str, args: tuple[Any, ...]) -> bool:
    """Have a kernel compiled, unless that is under way; False where it cannot be done."""
    one = (kernel, kind)
    if is_at_work() and one in _compiler.wanted:
        return True
    tries = _compiler.asked.get(one, 0)
    if tries == MOST_TRIES:
        return False
    try:
        if not is_at_work() and not _is_started():
            return True  # there is one, of another process: ours comes after it
    except OSError:
        return False
    _compiler.asked[one] = tries + 1
    with suppress(OSError, pickle.PicklingError, AttributeError):  # it has ended; or a class has no name to find it by
        ask(_compiler.process, kernel, args)
        _compiler.wanted.add(one)
    return True


def is_at_work() -> bool:
    """Whether the process is there."""
    return _compiler.process is not None and _compiler.process.poll() is None


def ask(process: Any, kernel: Compilable, args: tuple[Any, ...]) -> None:
    """Have a process compile a kernel for arguments like these.

    Raises
    ------
    OSError
        It has ended.
    pickle.PicklingError, AttributeError
        The arguments are of a class that another process does not find.
    """
    process.stdin.write(pickle.dumps((kernel, like(args))))
    process.stdin.flush()


def _is_started() -> bool:
    """Start the process, if there is no other one on this machine.

    Raises
    ------
    OSError
        It cannot be started, or nothing says that there is only one.
    """
    close()
    lock = locked("compiler.lock")
    if lock is None:
        return False
    with lock:  # which the process has open, too, and so keeps as long as it lives
        _compiler.process = started(stdout=subprocess.DEVNULL, pass_fds=[lock.fileno()])
    _compiler.wanted.clear()
    return True


def started(**more: Any) -> subprocess.Popen[bytes]:
    """A process that compiles what it is asked for on standard input, and says of each kernel whether it could.

    Raises
    ------
    OSError
        There is no interpreter to start, or this process may not start another one.
    """
    if getattr(sys, "frozen", False) or not sys.executable:
        raise FileNotFoundError(errno.ENOENT, "there is no interpreter of Python", sys.executable)
    path = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "ACEP_JIT": "1"}
    command, pipe = [sys.executable, "-P", "-m", "acep_approx.jit.compiler"], subprocess.PIPE
    return subprocess.Popen(  # noqa: S603  (it is Python)
        command, stdin=pipe, stderr=subprocess.DEVNULL, env=environment, cwd=os.sep, **more
    )


def close(*, is_interrupted: bool = False) -> None:
    """Let go of the process, which finishes what it was asked for; or end it."""
    process, _compiler.process = _compiler.process, None
    if process is None:
        return
    if is_interrupted:
        process.kill()
    with suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]
    if process.poll() is None:
        process.returncode = 0  # nobody waits for it


def _after_fork() -> None:
    """The process belongs to who has started it."""
    if _compiler.process is not None:
        _compiler.process.returncode = 0  # here nobody may ask for it
    close()
    _compiler.asked.clear()
    _compiler.wanted.clear()


atexit.register(lambda: close(is_interrupted=isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
