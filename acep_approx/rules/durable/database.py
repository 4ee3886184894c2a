"""The file of a store as a run has it open: one writer, many readers, transactions that are whole or not there.

A run holds SQLite's lock for writing from its start to its end, also between checkpoints: the next transaction is
begun as soon as one is committed. So a second run is refused, any other tool that wants to write is told that the
database is locked, and everybody may read, who sees the last checkpoint (WAL mode). It is a lock of the operating
system, which lets go of it when the process dies, however it dies; no file with a process number is left to be judged.

Between the two statements there is a gap of some microseconds. A run that begins would come in there once in some
hundred times; so it takes the lock and gives it back several times, at odd moments, before it keeps it. Any other tool
that comes in is noticed before anything else is written, and ends the run, as if it had come between two runs. To keep
the gap short the log is folded into the file not there, where SQLite would do it, but by a second connection.

What SQLite and the system refuse becomes errors with codes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from acep_approx.errors import StoreError, UsageError

_NO_TEXT = "Could not decode to UTF-8"
"""How Python's module begins, which has no code for it."""


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Tell what SQLite or the system refuses in our words.

    Raises
    ------
    StoreError
        ``ACEP-R203``, ``ACEP-R204``, ``ACEP-R205``, ``ACEP-R209``, ``ACEP-R211``, ``ACEP-R215``, ``ACEP-R216``.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the other bits say it more exactly
        ours = "ACEP-R211" if str(error).startswith(_NO_TEXT) else _BY_CODE.get(code, "ACEP-R209")
        raise store_error(ours, path, str(error)) from error
    except UnicodeDecodeError as error:  # of a name in the file, which SQLite has put into its message
        raise damaged(path, str(error)) from error
    except OSError as error:
        raise store_error("ACEP-R203", path, error.strerror or str(error)) from error
    except OverflowError as error:  # bytes beyond what a length can say
        raise store_error("ACEP-R215", path, str(error)) from error


_WORDS = {
    "ACEP-R203": (  # the system does not let us read or write
        "the file of the store {0} cannot be used: {1}",
        "the run needs to write the file and its folder, on a disk of this machine, with room for both",
    ),
    "ACEP-R204": (  # somebody else is writing
        "another run has the store {0} open, or another tool is writing it ({1})",
        "wait until it has ended, or name another file; reading is always possible",
    ),
    "ACEP-R205": (
        "{0} is no file of SQLite ({1})",
        "nothing was changed; name another file, or one that is not there yet",
    ),
    "ACEP-R209": (
        "the file of the store {0} is damaged: {1}",
        "nothing was changed; take a copy that is whole, or begin with a new file",
    ),
    "ACEP-R211": (  # a value of a table is none that its column can hold
        "a value in the store {0} does not fit: {1}",
        "it was changed by hand; put in a value of the type, a time as '2024-03-01 10:00:00.000000'",
    ),
    "ACEP-R215": ("a value is too large for the store {0}: {1}", "SQLite takes 1 GB at a time"),
    "ACEP-R216": (  # something that somebody has added to the tables forbids a row
        "the store {0} does not take a row: {1}",
        "take back what was added to the tables by hand: an index, a constraint",
    ),
}
"""What is wrong with a file, by code: the message, with places for the path and for what SQLite or the system says, and
what to do."""
_BY_CODE = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "ACEP-R204"),
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), "ACEP-R203"),
    **dict.fromkeys((sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PROTOCOL), "ACEP-R203"),
    sqlite3.SQLITE_NOTADB: "ACEP-R205",
    sqlite3.SQLITE_TOOBIG: "ACEP-R215",
    sqlite3.SQLITE_CONSTRAINT: "ACEP-R216",
}


def store_error(code: str, path: Path, says: str, *, passes: bool = False) -> StoreError:
    """The error of a code; ``passes``: for now."""
    message, hint = _WORDS[code]
    return StoreError(message.format(repr(str(path)), says), code=code, hint=hint, passes=passes)


def damaged(path: Path, says: str) -> StoreError:
    """The file is not whole."""
    return store_error("ACEP-R209", path, says)


Synchronous = Literal["FULL", "NORMAL"]
"""FULL: a checkpoint is on the disk when ``commit`` returns. NORMAL: the last ones may be lost if the machine fails."""
MARK = "acep_file"
"""The table by which a store is known."""
PAGE = 4096
FOLD = 4096
"""Pages written to the log after which it is folded into the file: 16 MB."""
CACHE = 32_768
"""Kilobytes of the file that are kept in memory."""
PATIENCE = 5_000
"""Milliseconds to wait for one who reads the log over after a crash, or came in between."""
ODD_MOMENTS = (0.0013, 0.0031, 0.0057)
"""Seconds between one try to take the lock and the next."""


class Database:
    """A file of SQLite that is held for writing.

    Parameters
    ----------
    path : Path
        Of a file of SQLite, or one that is to be made.
    synchronous : {"FULL", "NORMAL"}

    Attributes
    ----------
    connection : sqlite3.Connection
        Inside a transaction, always.

    Raises
    ------
    UsageError
        ``ACEP-R201``, ``ACEP-R202``: there can be no file.
    StoreError
        ``ACEP-R203``: the system refuses; ``ACEP-R204``: somebody else is writing; ``ACEP-R205``: it is no file of
        SQLite; ``ACEP-R206``: something else is in it; ``ACEP-R209``: it is damaged.
    """

    def __init__(self, path: Path, synchronous: Synchronous) -> None:
        self.path = path
        with store_errors(path):
            _check_place(path)
            self.connection = _connect(path)
        self.is_closed = False
        self._written = 0
        self._folder: sqlite3.Connection | None = None
        try:
            with store_errors(path):
                self._prepare(synchronous)
                self._take()
                self._version = self._data_version()
                self.connection.execute(f"PRAGMA busy_timeout = {PATIENCE}")
        except BaseException:
            self.close()
            raise

    def _prepare(self, synchronous: Synchronous) -> None:
        """Look before anything is changed, then set what holds for this connection."""
        do = self.connection.execute
        do("PRAGMA trusted_schema = OFF")
        self.is_empty()
        if (mode := do("PRAGMA journal_mode = WAL").fetchone()[0]) != "wal":  # waits for readers of a new file
            says = f"it cannot be written while others read it (journal mode {mode})"
            raise store_error("ACEP-R203", self.path, says, passes=True)
        do("PRAGMA busy_timeout = 0")  # whoever writes now may do so for long
        do(f"PRAGMA synchronous = {synchronous}")
        do("PRAGMA wal_autocheckpoint = 0")
        do(f"PRAGMA cache_size = -{CACHE}")

    def is_empty(self) -> bool:
        """Whether nothing is in the file yet.

        Raises
        ------
        StoreError
            ``ACEP-R206``: something else than a store is in it.
        """
        names = [name for (name,) in self.rows("SELECT name FROM sqlite_master")]
        if names and MARK not in names:
            some = ", ".join(repr(name) for name in names[:3]) + (", ..." if len(names) > 3 else "")
            raise StoreError(
                f"{str(self.path)!r} is a database of something else: it has {some}",
                code="ACEP-R206",
                hint="nothing was changed; name another file, or one that is not there yet",
            )
        return not names

    def _take(self) -> None:
        """Take the lock where nobody has it, rather than where one who has it is between two transactions."""
        for pause in ODD_MOMENTS:
            self._hold()
            self.connection.execute("ROLLBACK")
            time.sleep(pause)
        self._hold()

    def _hold(self) -> None:
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def _data_version(self) -> int:
        """A number that changes if, and only if, another connection has committed something."""
        version: int = self.connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit what is done inside, or nothing of it.

        Raises
        ------
        StoreError
            As ``store_errors`` says; ``ACEP-R212``: somebody has written meanwhile, and the file is closed.
        """
        self._check_open()
        with store_errors(self.path):
            self._hold()
            self._check_alone()
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                self._hold()

    def wrote(self, size: int) -> None:
        """Count what was written, in bytes, and fold the log into the file when it has become long.

        Without this the log would grow without end; with it, it is written anew from its beginning, unless somebody
        reads an old state of the file all the while.
        """
        self._written += size // PAGE + 1
        if self._written < FOLD:
            return
        self._written = 0
        with store_errors(self.path):
            if self._folder is None:
                self._folder = _connect(self.path)
            self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self.connection.execute("ROLLBACK")  # the next transaction sees that the log can begin anew
            self._hold()

    def _check_open(self) -> None:
        if self.is_closed:
            raise UsageError(
                f"the store {str(self.path)!r} was closed", code="ACEP-R217", hint="start again, to go on from there"
            )

    def _check_alone(self) -> None:
        if self._data_version() != self._version:
            self.close()
            raise StoreError(
                f"another tool has written the store {str(self.path)!r} while the run had it open",
                code="ACEP-R212",
                hint="start again: the run goes on from its last checkpoint, with the rows as they are in the file now",
                passes=True,
            )

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """What a statement reads."""
        self._check_open()
        with store_errors(self.path):
            return self.connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Let go of the file; what was not committed is not there. May be called twice."""
        self.is_closed = True
        if self._folder is not None:
            self._folder.close()
        self.connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    # transactions are begun by hand; a run is in one thread at a time, but need not stay in it
    return sqlite3.connect(path.absolute(), isolation_level=None, check_same_thread=False, timeout=PATIENCE / 1000)


def _check_place(path: Path) -> None:
    """Refuse what can be no file, before SQLite says that it "cannot open" it."""
    if path.exists():
        if not path.is_file():
            raise UsageError(
                f"the store is to be in {str(path)!r}, which is {'a folder' if path.is_dir() else 'no ordinary file'}",
                code="ACEP-R201",
                hint="name a file in it" if path.is_dir() else "name a file",
            )
    elif not path.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.absolute().parent)!r} for the store",
            code="ACEP-R202",
            hint="make the folder first",
        )
