"""Where compiled kernels are kept between processes, and the parser of queries; which sources kernels were made of.

The places, of which only those count that nobody else can write (``private``): ``NUMBA_CACHE_DIR``; the package's own
``__pycache__``; the user's directory for caches; a directory of this user under the temporary one. What is kept is
put into the first that can be written, and looked for in all of them, unless that is the one that the user has chosen.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO

from acep_approx.jit.marks import Compilable
from acep_approx.jit.private import private_folder, say_not_used

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

KERNELS = "acep_approx.kernels"
COMPILES = ("marks.py", "compiling.py", "helpers.py")
"""The files beside this one that say how kernels are compiled."""
NAME = "acep-approx"
TURN = 120.0
"""Seconds that a process waits for its turn to compile: one that was stopped would keep all others waiting."""


@cache
def sources() -> str:
    """A digest of the sources of all kernels, and of what compiles them."""
    digest, here = sha256(), files("acep_approx.jit")
    for source in (*_sources_in(files(KERNELS)), *(here / name for name in COMPILES)):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _sources_in(folder: Traversable) -> Iterator[Traversable]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name.endswith(".py"):
            yield item
        elif item.is_dir() and item.name != "__pycache__":
            yield from _sources_in(item)


def stem(kernel: Compilable, kind: str) -> str:
    """What the names of files with the machine code of a kernel for some kinds of arguments begin with."""
    module, made_of = kernel.__module__, sources()
    if not module.startswith(KERNELS):
        made_of += Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")
    digest = sha256(repr((made_of, kind, sys.version_info[:2])).encode()).hexdigest()[:16]
    return f"{module.removeprefix(KERNELS + '.')}.{kernel.__name__}-{digest}"


def is_kept(kernel: Compilable, kind: str) -> bool:
    """Whether there is machine code of a kernel for some kinds of arguments, of this machine or of another one."""
    begin = stem(kernel, kind) + "-"
    for folder in folders():
        with suppress(OSError), os.scandir(folder) as found:
            if any(file.name.startswith(begin) and file.name.endswith(".code") for file in found):
                return True
    return False


@cache
def directory() -> Path | None:
    """The directory for what is compiled; None where there is none, so that each process compiles for itself.

    The first one that we can write to, and nobody else can: the code in it is run. It is made if need be.
    """
    for folder, mode in _places():
        with suppress(OSError):
            fault = private_folder(folder, mode)
            if fault is None:
                tempfile.TemporaryFile(dir=folder).close()
                return folder
            if _is_chosen(folder):  # else another one is taken, and nothing is lost
                say_not_used(fault)
    return None


@cache
def folders() -> tuple[Path, ...]:
    """The directories to look in, ``directory()`` among them: an image may have been filled by another user.

    The one that the user has chosen is the only one, if it can be written.
    """
    kept = directory()
    found = [] if kept is None else [kept]
    if kept is not None and _is_chosen(kept):
        return (kept,)
    for folder, _ in _places():
        with suppress(OSError):
            if private_folder(folder, None) is None:
                found.append(folder)
    return tuple(dict.fromkeys(found))


def _is_chosen(folder: Path) -> bool:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return bool(chosen) and folder.is_relative_to(Path(str(chosen)))


def _places() -> Iterator[tuple[Path, int]]:
    """The places that there may be, each with the mode of folders that are made for it.

    Outside the package the sources name them, not their path: a zip lies elsewhere in each job of Spark.
    """
    own, name = Path(__file__).parent, sources()[:16]
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / f"{NAME}-{name}", 0o755
    if own.is_dir():  # inside a zip there are no directories
        yield own / "__pycache__", 0o755
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""  # Windows: each user has their own temporary files
    for folder in filter(None, (_among_caches(), Path(tempfile.gettempdir()) / f"{NAME}{user}")):
        yield folder / name, 0o700


def _among_caches() -> Path | None:
    """Our directory among the user's caches, by the rule of the platform; None for a user without a home."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or "~"
    elif sys.platform == "darwin":
        caches = "~/Library/Caches"
    with suppress(RuntimeError):  # no home
        folder = Path(caches).expanduser() / NAME
        return folder if folder.is_absolute() else None
    return None


@contextmanager
def compiling_alone(stem: str) -> Iterator[None]:
    """Wait until no other process of this machine compiles the same, and keep others from it meanwhile.

    The system lets go of the lock of a process that ends, however it ends. Where it has no such locks, or somebody
    keeps one for too long, nothing is waited for.
    """
    lock, until = None, time.monotonic() + TURN
    with suppress(OSError):
        place = int(stem.rpartition("-")[2], 16) >> 2  # the largest place in a file has 63 bits
        while (lock := locked("compiling.lock", place)) is None and time.monotonic() < until:
            time.sleep(0.05)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def locked(name: str, place: int | None = None) -> BinaryIO | None:
    """Lock a file beside what is kept; None where somebody else has.

    Parameters
    ----------
    name : str
    place : int, optional
        A place in the file, which is locked until this process closes the file. By default the whole file is, until
        it is closed by this process and those that it has given it to.

    Raises
    ------
    OSError
        There is no such file, or there are no such locks.
    """
    folder = directory()
    if folder is None or fcntl is None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), name)
    lock = (folder / name).open("ab")
    try:
        if place is None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):
        lock.close()
        return None
    except OSError:
        lock.close()
        raise
    return lock
