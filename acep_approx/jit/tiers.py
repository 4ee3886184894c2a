"""Which tier a kernel runs in: at first the function that stands in the source, its machine code once that is worth it.

To compile a kernel takes from half a second to twenty, to load compiled ones a third of a second; most first queries
have their answer before. So another process compiles (``background``), and this one looks now and then whether the
machine code is there.

``ACEP_JIT=0`` in the environment: nothing is compiled or loaded. ``ACEP_JIT=1``: kernels are compiled, or loaded,
before they run, for services, benchmarks and tests.
"""

from __future__ import annotations

import math
import os
import sys
import time
from functools import cache
from importlib.util import find_spec
from threading import RLock
from typing import Any

from acep_approx.jit import background
from acep_approx.jit.cache import directory, is_kept
from acep_approx.jit.kinds import kind_of
from acep_approx.jit.marks import Compilable
from acep_approx.jit.private import LOG

LOADING = 0.15
"""Seconds of work from which on machine code that is there is loaded: that takes twice as long."""
MANY_EVENTS = 4096
"""Events of which the same is known before."""
LONG = 2.0
"""Seconds from which on a run says that it waits for machine code, or, on a single core, does wait."""
COMPILING = 15.0
"""Seconds in a kernel after which it is compiled here, where no other process can do so: about what that takes."""
BETWEEN = 0.02
"""Seconds between two looks for machine code."""

IN_THE_MEANTIME = (
    "kernels are being compiled in another process, once per machine (up to a minute for some queries); "
    "until then this run is slower"
)
WAITING = "kernels are being compiled, once per machine (a few seconds, up to a minute for some queries) ..."
HERE = (
    "compiling kernels (a few seconds, up to a minute for some queries) ...\n"
    "      each process must do so: they cannot be kept, set NUMBA_CACHE_DIR to a directory that can be written"
)


class _Process:
    """What this process knows.

    Attributes
    ----------
    mode : {"0", "1", ""}
        ``ACEP_JIT``.
    seconds : float
        In kernels that were interpreted.
    events : int
        That came so far, of all streams.
    next_look : dict
        By kernel and kind of arguments, when to look for its machine code.
    """

    def __init__(self) -> None:
        self.mode = os.environ.get("ACEP_JIT", "")
        if self.mode not in ("", "0", "1"):
            LOG.warning("ACEP_JIT is 0 (never compile) or 1 (compile first), not %r: it is not looked at", self.mode)
            self.mode = ""
        if find_spec("numba") is None:
            self.mode = "0"
        self.seconds = 0.0
        self.events = 0
        self.next_look: dict[tuple[Compilable, str], float] = {}
        self.lock = RLock()


_process = _Process()


def compiled_first() -> None:
    """From now on compile, or load, kernels before they run: where seconds are counted."""
    if _process.mode == "":
        _process.mode = "1"


def expect(events: int) -> None:
    """So many events are about to be run."""
    _process.events += events


def load_at_once() -> None:
    """Load machine code that is there, however little is to be done: for a process that others are forked from."""
    _process.events = MANY_EVENTS


def note(kernel: Compilable, seconds: float) -> None:
    """A kernel was interpreted for so long."""
    kernel.seconds += seconds
    _process.seconds += seconds


def may_interpret() -> bool:
    """Whether a kernel without machine code is run by Python."""
    return _process.mode != "1"


def machine_code(kernel: Compilable, args: tuple[Any, ...]) -> Any:
    """What runs a kernel on these arguments; None where Python does."""
    if _process.mode == "0":
        return None
    if _process.mode == "1":
        return made_now(kernel, args)
    kind = kind_of(args)
    if kind in kernel.kinds:
        return kernel.made
    now = time.perf_counter()
    if now < _process.next_look.get((kernel, kind), 0.0):
        return None
    with _process.lock:
        _process.next_look[kernel, kind] = now + BETWEEN
        if is_kept(kernel, kind):
            return _loaded(kernel, kind, args)
        return _in_another_process(kernel, kind, args)


def _loaded(kernel: Compilable, kind: str, args: tuple[Any, ...]) -> Any:
    """Load machine code that is kept, if that pays; None if it does not, or if the code is of another machine."""
    if "numba" not in sys.modules and _process.seconds < LOADING and _process.events < MANY_EVENTS:
        return None
    from acep_approx.jit import compiling  # loads numba

    made = compiling.loaded(kernel, kind, args)
    return _in_another_process(kernel, kind, args) if made is None else made


def _in_another_process(kernel: Compilable, kind: str, args: tuple[Any, ...]) -> Any:
    """See to it that a kernel is compiled: elsewhere if that can be, here if it pays all the same."""
    if directory() is not None and background.compiles(kernel, kind, args):
        if _process.seconds > LONG:
            _say(WAITING if cores() == 1 else IN_THE_MEANTIME)
            while cores() == 1 and background.is_at_work() and not is_kept(kernel, kind):
                time.sleep(BETWEEN)
        return None
    if kernel.seconds <= COMPILING:
        return None
    try:
        return made_now(kernel, args)
    except Exception as error:  # noqa: BLE001  (whatever numba or LLVM lack)
        _process.next_look[kernel, kind] = math.inf
        LOG.warning("%s cannot be compiled, and this run is slower: %s", kernel.__name__, error)
        return None


def made_now(kernel: Compilable, args: tuple[Any, ...], *, says: bool = True) -> Any:
    """The machine code of a kernel for these arguments, loaded or compiled here, and whether that is said."""
    from acep_approx.jit import compiling  # loads numba

    kind = kind_of(args)
    with _process.lock:
        if kind in kernel.kinds:
            return kernel.made
        made = compiling.loaded(kernel, kind, args)
        if made is None:
            if says:
                _say(WAITING if directory() else HERE)
            made = compiling.compiled(kernel, kind, args)
        return made


@cache
def _say(words: str) -> None:
    LOG.warning("%s", words)


@cache
def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
