"""Files that are written while events are read, each by one writer, and which names lead to one file.

Those of a run that ends take their name only when they are whole; those of a run that lasts grow under it. An object
of a store is written to a file of this machine, and put when it is whole. No output takes the place of an input, or
comes to lie where it would be read.
"""

from __future__ import annotations

import io
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from acep_approx.errors import DataError, UsageError
from acep_approx.events.stores import reaching
from acep_approx.shell import quoted
from history.files import NO_LINK, open_plain
from history.places import ADDRESS, StorePath, is_stored, place_of

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # not on Windows
    flock = None  # type: ignore[assignment]

SUFFIX = ".part"
"""What a file is called besides its name until it is whole."""
LOG = logging.getLogger("acep_approx.outfile")
JDBC = "jdbc:"
"""How the address of a table of a database begins."""
STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""Names of what is open already."""


def check_name(path: Path, *, may_be_stored: bool = True) -> None:
    """Refuse what no file can be called (``ACEP-U191``), and addresses (``ACEP-U170``).

    Parameters
    ----------
    path : Path
    may_be_stored : bool, default True
        Whether it may be in an object store: what is written as a whole.
    """
    try:
        is_name = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise UsageError(f"{str(path)!r:.80}: no file has such a name", code="ACEP-U191", hint="name another file")
    found = ADDRESS.match(str(path))
    if found and not (may_be_stored and is_stored(path)) and not Path(found[0]).exists():
        raise _an_address(path, found)


def _an_address(path: Path, found: re.Match[str]) -> UsageError:
    scheme, rest = found[1].lower(), str(path)[found.end() :].lstrip("/")
    if scheme == "kafka":
        hint = "name a file; to topics go results alone: acep run ... -o kafka://BROKER:9092/TOPIC"
    elif scheme == "file":
        hint = f"name the file itself: /{rest}"
    else:
        hint = "write to a file of this machine, and copy it there"
    if is_stored(path):
        what = "is in an object store, where nothing can be written bit by bit"
        return UsageError(f"{place_of(path)} {what}", code="ACEP-U170", hint=hint)
    return UsageError(
        f"{found[1]}://{rest} is an address, and only files are written", code="ACEP-U170", hint=hint
    )


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Tell of a file that cannot be opened as of a wrong option.

    Raises
    ------
    UsageError
        ``ACEP-U012``
    """
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot write to {str(path)!r}: {error.strerror}",
            code="ACEP-U012",
            hint="name a file in a folder that exists and that you may write to",
        ) from error


class OutFile:
    """A file that is being written, under the name ``FILE.part``; a special file (a pipe, ``/dev/null``) as it is.

    Parameters
    ----------
    path : Path
        Its name once it is whole.

    Attributes
    ----------
    sink : binary file
        To write to; of an object of a store a file of this machine.

    Raises
    ------
    UsageError
        ``ACEP-U025``: another run is writing this file; ``ACEP-U190``: ``FILE.part`` is a link, or something else.
    DataError
        ``ACEP-H010`` to ``ACEP-H013``: the store does not take an object.
    OSError
        It cannot be written.

    Notes
    -----
    A file that is there keeps its rights. The part file is locked while it is written. The system takes the lock from a
    process that is killed, so a part file without a lock is left over from a run that did not end: it is replaced, with
    a warning in the log.
    """

    def __init__(self, path: Path) -> None:
        check_name(path)
        self.path = path = place_of(path)
        self._is_special, self._mode = False, None
        if isinstance(path, StorePath):
            with reaching():
                path.check()
            self.sink = TemporaryFile(prefix="acep-")  # noqa: SIM115  (closed where it is whole)
            return
        self._is_special = path.exists() and not path.is_file()
        self._part = path if self._is_special else path.with_name(path.name + SUFFIX)
        self._mode = None if self._is_special or not path.exists() else stat.S_IMODE(path.stat().st_mode) & 0o777
        self.sink = self._part.open("wb") if self._is_special else self._locked()

    def _locked(self) -> BinaryIO:
        while True:
            is_left_over = False
            try:
                sink: BinaryIO = self._part.open("xb")
            except FileExistsError:
                is_left_over = True
                try:
                    sink = self._left_over()  # nothing is cut off before the lock is ours
                except FileNotFoundError:
                    continue
            _lock(sink, self.path)
            if _is_same(sink, self._part):
                break
            sink.close()  # between the two steps another writer has finished it
        if is_left_over:
            sink.truncate()
            LOG.warning("an earlier run did not end: its unfinished file %s is replaced", self._part)
        return sink

    def _left_over(self) -> BinaryIO:
        """The part file that is there: what is something else is left alone."""
        try:
            return io.BufferedRandom(open_plain(self._part, os.O_RDWR | NO_LINK))  # type: ignore[arg-type]
        except (FileNotFoundError, PermissionError):
            raise
        except OSError as error:
            raise UsageError(
                f"{str(self.path)!r} is written as {str(self._part)!r} at first, and there is a link or something else "
                "that is no file of ours",
                code="ACEP-U190",
                hint=f"see what it is: ls -l {quoted(str(self._part))}; remove it, or name another file",
            ) from error

    sink: BinaryIO
    is_empty = True
    """It begins anew."""

    def finish(self) -> None:
        """All has been written: the file takes its name."""
        with self.sink:
            if isinstance(self.path, StorePath):
                with reaching():
                    self.path.put(self.sink)
            elif not self._is_special:
                self.sink.flush()
                if self._mode is not None:  # that of the file whose place it takes
                    if hasattr(os, "fchmod"):
                        os.fchmod(self.sink.fileno(), self._mode)
                    else:  # on Windows
                        self._part.chmod(self._mode)
                self._part.replace(self.path)

    def discard(self) -> None:
        """Leave no file, or the one that was there before."""
        if not (self._is_special or isinstance(self.path, StorePath)):
            self._part.unlink(missing_ok=True)
        with suppress(OSError):  # what is still buffered goes nowhere
            self.sink.close()


class GrowingFile:
    """A file that others read while it is written, under its own name; what was written to it is kept.

    Parameters
    ----------
    path : Path
    length : int, optional
        Bytes that are kept of what is there, for a run that goes on. Default: none, the file begins anew.

    Attributes
    ----------
    sink : binary file
        To write to.

    Raises
    ------
    UsageError
        ``ACEP-U025``: another run is writing this file; ``ACEP-U170``: it is an address: objects cannot grow.
    DataError
        ``ACEP-D065``: less is there than is to be kept.
    OSError
        It cannot be written.
    """

    def __init__(self, path: Path, length: int | None = None) -> None:
        check_name(path, may_be_stored=False)
        self.path = path
        self._is_special = path.exists() and not path.is_file()
        self._length = 0
        self.sink: BinaryIO = path.open("wb") if self._is_special else self._cut(length or 0)

    def _cut(self, length: int) -> BinaryIO:
        sink = self.path.open("r+b" if self.path.exists() else "w+b")
        _lock(sink, self.path)
        there = sink.seek(0, os.SEEK_END)
        if there < length:
            sink.close()
            raise DataError(
                f"{self.path} has {there:,} bytes, and {length:,} were written to it up to the checkpoint",
                code="ACEP-D065",
                hint="put the file back as it was, or begin anew with another checkpoint",
            )
        sink.truncate(length)
        sink.seek(length)
        return sink

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written to it, now or by the run that this one goes on with."""
        return self._is_special or not self.sink.tell()

    def length(self) -> int:
        """Bytes that are in it now, for good."""
        if not self.sink.closed and not self._is_special:
            self.sink.flush()
            os.fsync(self.sink.fileno())
            self._length = self.sink.tell()
        return self._length

    def finish(self) -> None:
        """All has been written."""
        self.length()
        self.sink.close()

    discard = finish
    """What was written stays."""


def _lock(sink: BinaryIO, path: Path) -> None:
    if flock is None:
        return
    try:
        flock(sink, LOCK_EX | LOCK_NB)
    except BlockingIOError as error:
        sink.close()
        raise UsageError(
            f"another run is writing {str(path)!r}",
            code="ACEP-U025",
            hint="name another file, or wait until that run has ended",
        ) from error
    except OSError:
        LOG.info("%s lies on a file system without locks", path)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file whole or not at all; see :class:`OutFile`.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "found.txt"
    >>> with whole_file(place) as sink:
    ...     _ = sink.write(b"all of it")
    ...     place.exists()
    False
    >>> place.read_text()
    'all of it'
    """
    file = OutFile(path)
    try:
        yield file.sink
        file.finish()
    except BaseException:
        file.discard()
        raise


def _is_same(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def known_as(path: Path) -> set[object]:
    """What a file is known by: its name without links, and its number, if it is there."""
    if is_stored(path):
        return {str(place_of(path))}
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
    if is_stored(path):
        return known_as(path)
    if _is_special(path):
        return set()
    return known_as(path) | known_as(path.with_name(path.name + SUFFIX)) if path.name else known_as(path)


def _is_special(path: Path) -> bool:
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
