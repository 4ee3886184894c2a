"""Folders of queries with versions: which queries there are, and since when, while others read them.

    queries/LATEST                name of the newest version
    queries/v0002/queries.json    format, folder, version, queries (id, since, text), and the SHA-256 of all of that

A version is made whole (``history.versions``), and never changes. Then LATEST is replaced. So a reader sees this
version or the one before. A history is laid out in the same way. The folder may be in an object store.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from acep_approx.errors import DataError, UsageError
from history.files import read_json
from history.versions import (
    LATEST,
    clear_left_over,
    has_versions,
    is_unfinished,
    make_version,
    name_of,
    point,
    pointed_to,
    versions,
)

FORMAT = 1
"""Changes when the layout does."""
QUERIES = "queries.json"
DIGEST = "sha256"
_WEIGHT = re.compile(r"^\s*--\s*weight:\s*(\S+)\s*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class KeptQuery:
    """A query of a version.

    Attributes
    ----------
    id : str
    since : int
        The version that it came with. A query that was replaced is another query with the same id.
    text : str
    """

    id: str
    since: int
    text: str


@dataclass(frozen=True)
class Version:
    """The queries of a folder, as they are from one change to the next.

    Attributes
    ----------
    folder : str
        Tells the folder from others, also from one that takes its place later.
    number : int
        From 1; 0: there is no version yet.
    queries : tuple of KeptQuery
        In the order in which they were added.
    """

    folder: str
    number: int = 0
    queries: tuple[KeptQuery, ...] = ()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return name_of(self.number)

    @classmethod
    def from_json(cls, held: Any) -> Version:
        """Return what ``asdict`` made plain data of.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is something else.
        """
        queries = tuple(KeptQuery(**one) for one in held["queries"])
        made = cls(held["folder"], held["number"], queries)
        is_right = isinstance(made.folder, str) and _is_number(made.number, 0) and all(map(_is_right, queries))
        if not is_right or len({one.id for one in queries}) < len(queries):
            raise ValueError("these are no queries of a version")
        return made


def _is_right(query: KeptQuery) -> bool:
    return isinstance(query.id, str) and isinstance(query.text, str) and _is_number(query.since, 1)


def _is_number(value: object, least: int) -> bool:
    return type(value) is int and value >= least


def weight_of(text: str) -> str | float:
    r"""Return what match points of a query count for, as its text says: a number, or a column of its table.

    Examples
    --------
    >>> weight_of("-- weight: 5\nPATTERN Stock a WITHIN 5"), weight_of("PATTERN Stock a WITHIN 5")
    (5.0, 1.0)
    """
    found = _WEIGHT.search(text)
    try:
        return float(found[1]) if found else 1.0
    except ValueError:
        return str(found[1]) if found else 1.0


def newest_number(home: Path) -> int:
    """Return the number of the newest version.

    Raises
    ------
    DataError
        ``ACEP-D210``: the pointer cannot be read.
    """
    try:
        return pointed_to(home)
    except FileNotFoundError:
        if there := versions(home):  # a writer was killed before it had written the first pointer
            return there[0]
        raise _damaged(home, f"there is no {LATEST}") from None
    except OSError as error:
        raise _damaged(home, f"{LATEST} cannot be read") from error
    except ValueError as error:
        raise _damaged(home, str(error)) from error


def read_version(home: Path, number: int | None = None) -> Version:
    """Read a version, by default the newest.

    Raises
    ------
    UsageError
        ``ACEP-U231``: the folder has no such version, or none.
    DataError
        ``ACEP-D210``: it is damaged, or of a later version of acep.
    """
    if not has_versions(home):
        raise no_versions(home)
    if number is not None and number not in versions(home):
        there = ", ".join(map(str, reversed(versions(home))))
        raise UsageError(
            f"{str(home)!r} has no version {number}: it has {there}", code="ACEP-U231", hint="choose one of these"
        )
    number = newest_number(home) if number is None else number
    name = f"{name_of(number)}/{QUERIES}"
    try:
        held = read_json(home / name)
        if held["format"] == FORMAT:
            if held.pop(DIGEST) != _sum(held):
                raise _damaged(home, f"{name} is not the file that was written")
            return Version.from_json(held)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(home, f"{name} is missing or not whole") from error
    raise _damaged(home, f"{name} has format {held['format']}, and this version of acep reads format {FORMAT}")


def change(home: Path, make: Callable[[Version], Sequence[KeptQuery]]) -> Version:
    """Write the next version of a folder, or the first one of a new folder.

    Parameters
    ----------
    home : Path
    make : callable
        Gives the queries after the newest version that it is given. It is called again if another process has written
        a version in the meantime, so that no change is lost. Where it gives what is there, nothing is written.

    Returns
    -------
    Version
        The newest one.

    Raises
    ------
    UsageError
        ``ACEP-U231``: there is something else in this place.
    DataError
        ``ACEP-D210``: the newest version is damaged.
    """
    while True:
        before = _newest_whole(home)
        after = Version(before.folder, before.number + 1, tuple(make(before)))
        if after.queries == before.queries:
            return before
        if _write(home, after):
            _point(home)
            return after


def no_versions(home: Path) -> UsageError:
    """Return the error that a folder has no versions (``ACEP-U231``)."""
    files = [str(path) for suffix in (".acep", ".cel") for path in home.glob(f"*{suffix}")]
    if not files:
        hint = f"add queries first: acep queries add {home} FILE.acep"
        return UsageError(f"{str(home)!r} has no versions of queries", code="ACEP-U231", hint=hint)
    return UsageError(
        f"{str(home)!r} is a plain folder of query files, so it has no versions",
        code="ACEP-U231",
        hint=f"put its queries into a folder with versions: acep queries add {home}-versions {home}/*"
        f"{Path(files[0]).suffix}",
    )


def _newest_whole(home: Path) -> Version:
    """Return the newest version of all, also where its writer has not pointed to it yet; number 0: there is none."""
    if home.exists() and not home.is_dir():
        hint = "name a folder: acep queries add FOLDER FILE.acep"
        raise UsageError(f"{str(home)!r} is a file", code="ACEP-U231", hint=hint)
    is_free = not home.exists() or all(one.name.startswith(".") or is_unfinished(one) for one in home.iterdir())
    if there := versions(home):  # looked at last: another process may just have written the first one
        return read_version(home, there[0])
    if not is_free:
        raise no_versions(home)
    return Version(secrets.token_hex(8))


def _write(home: Path, version: Version) -> bool:
    """Write a version; False: another process has written one of this number."""
    held: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, **asdict(version)}))
    held[DIGEST] = _sum(held)
    text = json.dumps(held, indent=1, ensure_ascii=False) + "\n"
    home.mkdir(parents=True, exist_ok=True)
    clear_left_over(home)
    return make_version(home, version.number, lambda draft: (draft / QUERIES).write_text(text, encoding="utf-8"))


def _point(home: Path) -> None:
    """Point to the newest version; of two writers who are here together the last one sees the versions of both."""
    while True:
        newest = versions(home)[0]
        point(home, newest)
        if versions(home)[0] == newest:
            return


def _sum(held: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def _damaged(home: Path, what: str) -> DataError:
    return DataError(
        f"the versions of queries in {str(home)!r} are damaged: {what}",
        code="ACEP-D210",
        hint="put the folder back from a copy, or add the queries to a new folder: acep queries add FOLDER FILE.acep",
    )
