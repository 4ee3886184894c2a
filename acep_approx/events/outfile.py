"""Files that are written while events are read: each takes its name only when it is whole, and has one writer."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from acep_approx.errors import UsageError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # not on Windows
    flock = None  # type: ignore[assignment]

SUFFIX = ".part"
"""What a file is called besides its name until it is whole."""
LOG = logging.getLogger("acep_approx.outfile")


class OutFile:
    """A file that is being written, under the name ``FILE.part``; a special file (a pipe, ``/dev/null``) as it is.

    Parameters
    ----------
    path : Path
        Its name once it is whole.

    Attributes
    ----------
    sink : binary file
        To write to.

    Raises
    ------
    UsageError
        ``ACEP-U025``: another run is writing this file.
    OSError
        It cannot be written.

    Notes
    -----
    The part file is locked while it is written. The system takes the lock from a process that is killed, so a part
    file without a lock is left over from a run that did not end: it is replaced, with a warning in the log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_special = path.exists() and not path.is_file()
        self._part = path if self._is_special else path.with_name(path.name + SUFFIX)
        self.sink: BinaryIO = self._part.open("wb") if self._is_special else self._locked()

    def _locked(self) -> BinaryIO:
        """The part file, locked and empty."""
        while True:
            is_left_over = False
            try:
                sink: BinaryIO = self._part.open("xb")
            except FileExistsError:
                is_left_over = True
                try:
                    sink = self._part.open("r+b")  # nothing is cut off before the lock is ours
                except FileNotFoundError:
                    continue
            self._lock(sink)
            if _is_same(sink, self._part):
                break
            sink.close()  # between the two steps another writer has finished it
        if is_left_over:
            sink.truncate()
            LOG.warning("an earlier run did not end: its unfinished file %s is replaced", self._part)
        return sink

    def _lock(self, sink: BinaryIO) -> None:
        if flock is None:
            return
        try:
            flock(sink, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            sink.close()
            raise UsageError(
                f"another run is writing {str(self.path)!r}",
                code="ACEP-U025",
                hint="name another file, or wait until that run has ended",
            ) from error
        except OSError:
            LOG.info("%s lies on a file system without locks", self._part)

    def finish(self) -> None:
        """All has been written: the file takes its name."""
        with self.sink:
            if not self._is_special:
                self.sink.flush()
                self._part.replace(self.path)

    def discard(self) -> None:
        """Leave no file, or the one that was there before."""
        if not self._is_special:
            self._part.unlink(missing_ok=True)
        with suppress(OSError):  # what is still buffered goes nowhere
            self.sink.close()


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
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
