"""Files that other processes read while they are written, and files that might be something else.

A name may be a link to somebody's file, or a pipe on which a program waits for ever: what we make ourselves is neither.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

from history.places import StorePath, place_of

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_plain(place: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a file of bytes, unbuffered, without waiting for anything.

    Parameters
    ----------
    place : Path
    flags : int
        Of ``os.open``, e.g. ``os.O_RDWR | NO_LINK``.

    Raises
    ------
    OSError
        It is no plain file but a pipe, a device, a socket or a folder; with ``NO_LINK`` also a link, or, to be written,
        a file that has other names, too; or it cannot be opened.
    """
    number = os.open(place, flags | _AT_ONCE, 0o666)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(place))
        if flags & NO_LINK and flags & (os.O_WRONLY | os.O_RDWR) and status.st_nlink > 1:
            raise OSError(errno.EMLINK, "it is a link to another file", str(place))
        return os.fdopen(number, "rb" if not flags & (os.O_WRONLY | os.O_RDWR) else "r+b", buffering=0)
    except BaseException:
        os.close(number)
        raise


def replace_file(place: Path, content: bytes, rights: int = 0o777) -> None:
    """Write a file so that whoever reads it sees all of it, or the one before.

    Parameters
    ----------
    place : Path
        In a folder that is there, or an object of a store.
    content : bytes
    rights : int
        The most that it grants, whatever the umask; objects have none.

    Raises
    ------
    OSError
        It cannot be written.
    PlaceError
        The store does not take it.
    """
    if isinstance(place, StorePath):
        place.write_bytes(content)
        return
    draft = place.with_name(f".{place.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:  # never through a link
            file.write(content)
        if rights != 0o777:
            draft.chmod(draft.stat().st_mode & rights)
        draft.replace(place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


class JsonFile:
    """For a dataclass that is kept in a file of JSON."""

    FILE: ClassVar[str]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the file; who reads sees the one before or this one."""
        held: Any = self
        replace_file(place_of(folder) / self.FILE, json.dumps(asdict(held)).encode())

    @classmethod
    def read(cls, folder: str | os.PathLike[str], make: Callable[[Any], Self]) -> Self | None:
        """What is made of the JSON in the file; None where there is none, or it is not whole."""
        try:
            return make(read_json(place_of(folder) / cls.FILE))
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None


def read_plain(place: Path) -> bytes:
    """What is in a plain file, or an object.

    Raises
    ------
    OSError
        It is not there, is something else, or cannot be read.
    PlaceError
        The store does not give it.
    """
    if isinstance(place, StorePath):
        return place.read_bytes()
    with open_plain(place) as file:
        return file.read()


def read_json(place: Path) -> Any:
    """What a file of JSON holds.

    Raises
    ------
    OSError
        It is not there, or cannot be read.
    ValueError
        It is not JSON, or not whole.
    """
    try:
        return json.loads(read_plain(place).decode())
    except RecursionError as error:
        raise ValueError(f"{place.name} is too deep") from error
