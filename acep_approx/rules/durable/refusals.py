"""What SQLite and the system say, as errors with codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acep_approx.errors import StoreError

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
        raise _in_our_words(path, error) from error
    except UnicodeDecodeError as error:  # of a name in the file, which SQLite has put into its message
        raise damaged(path, str(error)) from error
    except OSError as error:
        raise refused(path, error.strerror or str(error)) from error
    except OverflowError as error:  # bytes beyond what a length can say
        raise too_large(path, str(error)) from error


def refused(path: Path, says: str, *, passes: bool = False) -> StoreError:
    """The system does not let us read or write; ``passes``: for now."""
    return StoreError(
        f"the file of the store {str(path)!r} cannot be used: {says}",
        code="ACEP-R203",
        hint="the run needs to write the file and its folder, on a disk of this machine, with room for both",
        passes=passes,
    )


def held(path: Path, says: str) -> StoreError:
    """Somebody else is writing."""
    return StoreError(
        f"another run has the store {str(path)!r} open, or another tool is writing it ({says})",
        code="ACEP-R204",
        hint="wait until it has ended, or name another file; reading is always possible",
    )


def no_sqlite(path: Path, says: str) -> StoreError:
    """The file has nothing to do with SQLite."""
    return StoreError(
        f"{str(path)!r} is no file of SQLite ({says})",
        code="ACEP-R205",
        hint="nothing was changed; name another file, or one that is not there yet",
    )


def damaged(path: Path, says: str) -> StoreError:
    """The file is not whole."""
    return StoreError(
        f"the file of the store {str(path)!r} is damaged: {says}",
        code="ACEP-R209",
        hint="nothing was changed; take a copy that is whole, or begin with a new file",
    )


def unfit(path: Path, what: str) -> StoreError:
    """A value of a table is none that its column can hold."""
    return StoreError(
        f"a value in the store {str(path)!r} does not fit: {what}",
        code="ACEP-R211",
        hint="it was changed by hand; put in a value of the type, a time as '2024-03-01 10:00:00.000000'",
    )


def too_large(path: Path, says: str) -> StoreError:
    """SQLite does not take so much at once."""
    return StoreError(
        f"a value is too large for the store {str(path)!r}: {says}",
        code="ACEP-R215",
        hint="SQLite takes 1 GB at a time",
    )


def not_taken(path: Path, says: str) -> StoreError:
    """Something that somebody has added to the tables forbids a row."""
    return StoreError(
        f"the store {str(path)!r} does not take a row: {says}",
        code="ACEP-R216",
        hint="take back what was added to the tables by hand: an index, a constraint",
    )


_BY_CODE = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), held),
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), refused),
    **dict.fromkeys((sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PROTOCOL), refused),
    sqlite3.SQLITE_NOTADB: no_sqlite,
    sqlite3.SQLITE_TOOBIG: too_large,
    sqlite3.SQLITE_CONSTRAINT: not_taken,
}


def _in_our_words(path: Path, error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest of the bits say it more exactly
    tell = unfit if str(error).startswith(_NO_TEXT) else _BY_CODE.get(code, damaged)
    return tell(path, str(error))
