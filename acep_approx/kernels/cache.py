"""Where compiled kernels are kept between processes, and the parser of queries; which sources kernels were made of.

The first of these that can be written, and that nobody else can write (``private``): ``NUMBA_CACHE_DIR``; the package's
own ``__pycache__``; the user's directory for caches; a directory of this user under the temporary one.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from acep_approx.kernels.private import private_folder, say_not_used

PACKAGE = "acep_approx.kernels"
NAME = "acep-approx"


@cache
def sources() -> str:
    """A digest of the sources of all kernels."""
    digest = sha256()
    for source in _sources_in(files(PACKAGE)):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _sources_in(folder: Traversable) -> Iterator[Traversable]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name.endswith(".py"):
            yield item
        elif item.is_dir() and item.name != "__pycache__":
            yield from _sources_in(item)


@cache
def directory() -> Path | None:
    """The directory for compiled kernels; None where there is none, so that each process compiles anew.

    Outside the package the sources name it, not their path: a zip lies elsewhere in each job of Spark.
    """
    own, name = Path(__file__).parent, sources()[:16]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen and _can_be_used(path := Path(chosen) / f"{NAME}-{name}", is_chosen=True):
        return path
    if own.is_dir() and _can_be_used(path := own / "__pycache__"):  # inside a zip there are no directories
        return path
    for folder in filter(None, (_among_caches(), _for_this_user())):
        if _can_be_used(path := folder / name, 0o700):
            return path
    return None


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


def _for_this_user() -> Path:
    """Our directory among temporary files."""
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""  # Windows: each user has their own temporary files
    return Path(tempfile.gettempdir()) / f"{NAME}{user}"


def _can_be_used(folder: Path, mode: int = 0o755, *, is_chosen: bool = False) -> bool:
    """Whether we can write to the folder, which is made if need be, and nobody else can: the code in it is run."""
    with suppress(OSError):
        fault = private_folder(folder, mode)
        if fault is None:
            tempfile.TemporaryFile(dir=folder).close()
            return True
        if is_chosen:  # else another one is taken, and nothing is lost
            say_not_used(fault)
    return False
