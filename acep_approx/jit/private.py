"""Which folders and files nobody else can change: what is loaded from a cache of code is run.

The rule, of every cache: the file, its folder and the folders above belong to this user or to root, and neither the
group nor others may write to them. Only a folder above may be open to all if it is sticky, as ``/tmp`` is: there nobody
renames what belongs to somebody else.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
from functools import cache
from pathlib import Path
from shlex import quote
from typing import NamedTuple

LOG = logging.getLogger("acep_approx.kernels")
BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
NOT_BY_OTHERS = 0o777 & ~BY_OTHERS
MOST_LINKS = 40
"""Symbolic links on the way to a folder, as Linux has it."""


class _ShowOnStderr(logging.Handler):
    """Shows records on stderr where the program has not set up logging: a minute of silence would be worse."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(f"acep: {record.getMessage()}", file=sys.stderr, flush=True)  # noqa: T201


LOG.addHandler(_ShowOnStderr())


class Fault(NamedTuple):
    """How somebody else could change what is kept."""

    place: Path
    words: str
    repair: str


def private_folder(folder: Path, mode: int | None) -> Fault | None:
    """Go to a folder as the system does, link by link; make what is missing of it.

    Parameters
    ----------
    folder : Path
    mode : int or None
        Of folders that are made; None: none are.

    Returns
    -------
    Fault or None
        The first thing on the way, or the folder itself, that breaks the rule; nothing is made behind it. None also
        where users have no numbers (Windows).

    Raises
    ------
    OSError
        The folder is not there, and cannot be made, or is not to be.
    """
    if not hasattr(os, "geteuid"):
        if mode is not None:
            folder.mkdir(parents=True, exist_ok=True)
        return None
    at, ahead, links = Path("/"), [*(Path.cwd() / folder).parts[::-1]], 0
    while ahead:
        name = ahead.pop()
        at = at.parent if name == ".." else at / name
        found = _made(at, mode)
        fault = _fault(at, found, is_above=bool(ahead))
        if fault is not None:
            return fault
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))
            ahead += at.readlink().parts[::-1]
            at = at.parent
    return None


def is_private(file: str | Path) -> bool:
    """Whether what a file of a private folder holds may be run; where it may not, this is said once.

    The folder keeps others from putting another file in its place before it is read. A file that is not there is
    nobody's: whoever reads it finds out.
    """
    if not hasattr(os, "geteuid"):
        return True
    try:
        found = os.lstat(file)
    except OSError:
        return True
    fault = _fault(Path(file), found, is_above=False)
    if fault is None and not stat.S_ISREG(found.st_mode):
        fault = Fault(Path(file), f"{file} is no plain file", "")
    if fault is not None:
        say_not_used(fault._replace(repair="it is made again"))
    return fault is None


@cache
def say_not_used(fault: Fault) -> None:
    """Say once why something that is kept is not used."""
    LOG.warning("compiled code is not taken from where others could have put it: %s; %s", fault.words, fault.repair)


def _made(place: Path, mode: int | None) -> os.stat_result:
    try:
        return place.lstat()
    except FileNotFoundError:
        if mode is None:
            raise
        place.mkdir(mode=mode & NOT_BY_OTHERS, exist_ok=True)
        return place.lstat()


def _fault(place: Path, found: os.stat_result, *, is_above: bool) -> Fault | None:
    """How others could change what lies at a place, or what a folder holds; above a cache sticky folders are right."""
    if found.st_uid not in (0, os.geteuid()):
        return Fault(place, f"{place} belongs to {_name(found.st_uid)}", "set NUMBA_CACHE_DIR to a folder of your own")
    if stat.S_ISLNK(found.st_mode) or not found.st_mode & BY_OTHERS or (is_above and found.st_mode & stat.S_ISVTX):
        return None
    return Fault(place, f"others may write to {place}", f"type: chmod go-w {quote(str(place))}")


def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
