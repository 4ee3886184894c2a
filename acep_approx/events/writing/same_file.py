"""Which names lead to one file: no output takes the place of an input, or comes to lie where it would be read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from acep_approx.errors import UsageError
from acep_approx.events.writing.outfile import SUFFIX, check_name
from acep_approx.shell import quoted

STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""Names of what is open already."""


def known_as(path: Path) -> set[object]:
    """What a file is known by: its name without links, and its number, if it is there."""
    keys: set[object] = set()
    with suppress(OSError, ValueError):  # nothing has such a name, or nobody may look
        keys.add(os.path.realpath(path))
        status = path.stat()
        keys.add((status.st_dev, status.st_ino))
    return keys


def written_as(path: Path) -> set[object]:
    """The same of a file that is to be written, and of ``FILE.part``; pipes and devices are nobody's place.

    Raises
    ------
    UsageError
        ``ACEP-U191``: no file can have such a name.
    """
    check_name(path)
    if _is_special(path):
        return set()
    return known_as(path) | known_as(path.with_name(path.name + SUFFIX)) if path.name else known_as(path)


def _is_special(path: Path) -> bool:
    """Whether it is a pipe or a device, or a stream that is open already by another name."""
    if str(path).startswith(STREAMS):
        return True
    with suppress(OSError, ValueError):
        mode = path.stat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def refuse_input(file: Path | None, what: str, inputs: Iterable[Path], code: str = "ACEP-U013") -> None:
    """Refuse to write over a file that is read, by this or another name.

    Parameters
    ----------
    file : Path or None
        To be written; None: nothing is.
    what : str
        That goes there, in words.
    inputs : iterable of Path
        Files that are read.
    code : str
        Of the error.
    """
    keys = set() if file is None else written_as(file)
    if keys and any(not keys.isdisjoint(known_as(path)) for path in inputs):
        raise UsageError(f"{what} would overwrite the input {str(file)!r}", code=code, hint="name another file")


def read_again(file: Path, what: str, folder: Path | str) -> UsageError:
    """The error that an output would be read with the files of an input (``ACEP-U193``)."""
    return UsageError(
        f"{what} would go to {str(file)!r}, and be read with the files of {str(folder)!r}",
        code="ACEP-U193",
        hint="name a file elsewhere; in a folder files are not read whose names begin with _: "
        + quoted(str(file.with_name(f"_{file.name}"))),
    )
