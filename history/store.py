"""Histories on disk: a directory that people can read and processes can share.

    past/LATEST               name of the version that holds
    past/v0001/manifest.json  format, query, scheme, notes, sizes, SHA-256 of the files and of the manifest itself
    past/v0001/vertices.parquet, edges.parquet, overlaps.parquet, bundles.parquet
    past/v0001/maps.npz       match maps of the vertices that have one, and edges to bundles
    past/v0001/learned.npz    arrays of a learner, where one has refreshed it

A version is made whole (``history.versions``), beside the others; then LATEST is replaced. So a reader sees a whole
version or the one before. The directory may be in an object store, at ``s3://bucket/past``. The same history gives the
same bytes. Nothing is pickled.

A history may be refreshed while others read it: who reads asks for ``pointed`` before each batch, which costs two small
reads, and loads only what is new.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from history.checking import Array, check_manifest, require, scheme_of
from history.errors import HistoryError
from history.files import read_json, read_plain
from history.graph import Graph
from history.places import StorePath, place_of
from history.tables import TABLES, read_npz, read_tables, write_npz, write_tables
from history.versions import (
    LATEST,
    clear_left_over,
    delete_version,
    has_versions,
    is_unfinished,
    make_version,
    name_of,
    point,
    pointed_to,
    versions,
)

FORMAT = 2
"""Changes when the layout does."""
MANIFEST = "manifest.json"
LEARNED = "learned.npz"
DIGEST = "sha256"
"""Key of the manifest: what the rest of it adds up to. Histories of earlier versions have none."""


@dataclass(frozen=True)
class Stored:
    """A history as it was saved.

    Parameters
    ----------
    graph : Graph
        The history.
    fingerprint : str
        Of the query that it is about.
    version : int
        From 1.
    notes : dict
        What the caller gave to be kept with it.
    learned : dict of str to array
        The arrays that the caller gave.
    """

    graph: Graph
    fingerprint: str
    version: int
    notes: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, Array] = field(default_factory=dict)


def save(
    graph: Graph,
    path: str | os.PathLike[str],
    fingerprint: str,
    *,
    new_version: bool = False,
    notes: dict[str, Any] | None = None,
    learned: Mapping[str, Array] | None = None,
) -> Path:
    """Write a history. What is there is never overwritten.

    Parameters
    ----------
    graph : Graph
        The history.
    path : path
        A directory: new, empty, or (with ``new_version``) that of a history of the same query.
    fingerprint : str
        Of the query that it is about.
    new_version : bool, default False
        Add a version where there is a history already. It is the one that is loaded from then on.
    notes : dict, default none
        Kept in the manifest, as JSON.
    learned : mapping of str to array, default none
        Kept beside it.

    Returns
    -------
    Path
        The directory of the version.

    Raises
    ------
    HistoryError
        There is a history already (ACEP-H005) or something else (ACEP-H006); it is of another query (ACEP-H002) or
        damaged (ACEP-H004).

    Complexity: O(history).
    """
    home = _home_at(path)
    version = 1
    if new_version and is_history(home):
        _same_query(_manifest(home, pointed(home)), fingerprint, home)
        version = versions(home)[0] + 1
    else:
        check_free(home)
    home.mkdir(parents=True, exist_ok=True)
    clear_left_over(home)
    return _write(graph, home, version, {"fingerprint": fingerprint, "notes": notes or {}}, learned or {})


def _home_at(path: str | os.PathLike[str]) -> Path:
    """The directory of a history; there need be none yet.

    Raises
    ------
    HistoryError
        ``ACEP-H009``: none can have this name.
    """
    home = place_of(path)
    if isinstance(home, StorePath):
        return home
    try:
        home.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            why = getattr(error, "strerror", None) or str(error)
            raise HistoryError(
                f"no directory is called {str(home)!r:.80}: {why}", code="ACEP-H009", hint="choose another place"
            ) from error
    return home


def is_history(path: str | os.PathLike[str]) -> bool:
    """Whether there is a history, whole or damaged."""
    return has_versions(_home_at(path))


SHOWN = 3
"""Histories that an error names."""


def histories_in(path: str | os.PathLike[str]) -> list[str]:
    """The names of the histories that lie in a directory, as those of a set of queries do."""
    home = _home_at(path)
    return sorted(one.name for one in home.iterdir() if is_history(one)) if home.is_dir() else []


LEARN_ONE = "learn one first: acep train QUERY PAST -o DIR"


def nothing_at(path: str | os.PathLike[str], hint: str = LEARN_ONE, mine: str = "") -> HistoryError:
    """The error that there is not what is wanted at a place (``ACEP-H001``), which says what is there instead.

    Parameters
    ----------
    path : path
    hint : str
        What to do.
    mine : str, optional
        What that which is wanted is called, if it lies among others.
    """
    home, inside = _home_at(path), histories_in(path)
    text = f"there is {'the history of one query' if is_history(home) else 'no history'} at {str(home)!r}"
    if mine in inside:
        text, hint = f"{text}: that of this query lies in it", f"name it: --history {home / mine}"
    elif inside:
        more = f" and {len(inside) - SHOWN:,} more" if len(inside) > SHOWN else ""
        text += f": it holds those of several queries or rules: {', '.join(inside[:SHOWN])}{more}"
    return HistoryError(text, code="ACEP-H001", hint=hint)


def check_free(path: str | os.PathLike[str]) -> None:
    """Refuse a place where a new history cannot be written: before it is learned, rather than after.

    Raises
    ------
    HistoryError
        There is a history already (ACEP-H005) or something else (ACEP-H006).
    """
    home = _home_at(path)
    if is_history(home):
        raise HistoryError(
            f"there is a history at {str(home)!r} already",
            code="ACEP-H005",
            hint="choose another place, or ask for a new version of it",
        )
    if home.exists() and (not home.is_dir() or not all(map(is_unfinished, home.iterdir()))):
        raise HistoryError(
            f"{str(home)!r} is neither a history nor an empty directory",
            code="ACEP-H006",
            hint="choose another place",
        )


def load(path: str | os.PathLike[str], fingerprint: str | None = None, *, version: int | None = None) -> Stored:
    """Read a history.

    Parameters
    ----------
    path : path
        Its directory.
    fingerprint : str, optional
        Of the query that it is wanted for.
    version : int, optional
        Default: the latest.

    Raises
    ------
    HistoryError
        None there (ACEP-H001), of another query (ACEP-H002), of another format (ACEP-H003), damaged (ACEP-H004).

    Complexity: O(history).
    """
    home = _home_at(path)
    if not is_history(home):
        raise nothing_at(home)
    number = pointed(home) if version is None else version
    if version is not None and version not in versions(home):
        there = ", ".join(map(str, reversed(versions(home))))
        raise HistoryError(f"the history at {str(home)!r} has no version {version}: it has {there}", code="ACEP-H001")
    manifest = _manifest(home, number)
    if fingerprint is not None:
        _same_query(manifest, fingerprint, home)
    folder = home / name_of(number)
    with _here(folder) as files:
        for name, digest in manifest["files"].items():
            if digest != _digest(files / name, home):
                raise damaged(home, f"{name} is not the file that was written")
        try:
            graph = Graph(scheme_of(manifest["scheme"]), manifest["gap"], manifest["most_bundles"])
            read_tables(graph, files)
            learned = read_npz(files / LEARNED) if LEARNED in manifest["files"] else {}
        except (OSError, ValueError, LookupError, TypeError, OverflowError, MemoryError, pa.ArrowException) as error:
            raise damaged(home, str(error)) from error
    return Stored(graph, manifest["fingerprint"], number, manifest["notes"], learned)


@contextmanager
def _here(folder: Path) -> Iterator[Path]:
    """A version as a folder of this machine: of an object store it is fetched."""
    if not isinstance(folder, StorePath):
        yield folder
        return
    with TemporaryDirectory(prefix="acep-history-") as files:
        for one in folder.iterdir():
            Path(files, one.name).write_bytes(one.read_bytes())
        yield Path(files)


# --- what a version is -----------------------------------------------------------------------------------------------


def pointed(path: str | os.PathLike[str]) -> int:
    """The version that holds.

    Parameters
    ----------
    path : path
        Directory of the history.

    Raises
    ------
    HistoryError
        ``ACEP-H004``: the pointer is missing or not whole.
    """
    home = place_of(path)
    try:
        return pointed_to(home)
    except OSError as error:
        raise damaged(home, f"{LATEST} cannot be read") from error
    except ValueError as error:
        raise damaged(home, str(error)) from error


def damaged(home: str | os.PathLike[str], what: str) -> HistoryError:
    """The error of a history that is not as it was written."""
    return HistoryError(
        f"the history at {str(home)!r} is damaged: {what}",
        code="ACEP-H004",
        hint="load another version of it, or learn it again",
    )


def _manifest(home: Path, version: int) -> dict[str, Any]:
    file = home / name_of(version) / MANIFEST
    try:
        manifest: dict[str, Any] = read_json(file)
        found = manifest["format"]
        if found == FORMAT:
            is_as_written = DIGEST not in manifest or manifest.pop(DIGEST) == _sum(manifest)
            require(is_as_written, "it is not the one that was written")
            check_manifest(manifest, TABLES, (LEARNED,))
    except (OSError, KeyError, TypeError) as error:
        raise damaged(home, f"{name_of(version)}/{MANIFEST} is missing or not whole") from error
    except ValueError as error:
        raise damaged(home, f"{name_of(version)}/{MANIFEST} is not whole: {error}") from error
    if found != FORMAT:
        raise HistoryError(
            f"the history at {str(home)!r} has format {found}, this version reads format {FORMAT}",
            code="ACEP-H003",
            hint="read it with the version that wrote it, or learn it again",
        )
    return manifest


def _sum(manifest: dict[str, Any]) -> str:
    """The SHA-256 of what a manifest says, however it is spaced."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _same_query(manifest: dict[str, Any], fingerprint: str, home: Path) -> None:
    if manifest["fingerprint"] != fingerprint:
        raise HistoryError(
            f"the history at {str(home)!r} is of another query: fingerprint {manifest['fingerprint']}; "
            f"this one has fingerprint {fingerprint}",
            code="ACEP-H002",
            hint="learn a history with this query",
        )


def _digest(file: Path, home: Path) -> str:
    try:
        return hashlib.sha256(read_plain(file)).hexdigest()
    except OSError as error:
        raise damaged(home, f"{file.name} cannot be read") from error


# --- files --------------------------------------------------------------------------------------------------


def _write(graph: Graph, home: Path, version: int, manifest: dict[str, Any], learned: Mapping[str, Array]) -> Path:
    def write(draft: Path) -> None:
        write_tables(graph, draft)
        files = [*TABLES, *([LEARNED] if learned else [])]
        if learned:
            write_npz(draft / LEARNED, learned)
        manifest.update(
            format=FORMAT,
            gap=graph.gap,
            most_bundles=graph.most_bundles,
            scheme=graph.scheme.to_json(),
            visits=int(graph.counts.visits.sum()),
            bundles=len(graph.counts.bundles),
            files={name: _digest(draft / name, home) for name in files},
        )
        held = json.loads(json.dumps(manifest))  # as it will be read
        held[DIGEST] = _sum(held)
        text = json.dumps(held, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        (draft / MANIFEST).write_text(text, encoding="utf-8")

    folder = home / name_of(version)
    if not make_version(home, version, write):
        raise FileExistsError(errno.EEXIST, "another process has just written this version", str(folder))
    point(home, version)
    return folder


# --- while it is refreshed ----------------------------------------------------------------------------------


def point_to_newest(path: str | os.PathLike[str]) -> None:
    """Point to the newest version where there is no pointer: for a writer that was killed before it had written one.

    Only the one writer of a history knows that this is what has happened; to anyone else a pointer that is missing is
    damage. A history with a pointer, whole or not, stays as it is.
    """
    home = place_of(path)
    there = versions(home)
    if there and not (home / LATEST).exists():
        point(home, there[0])


def written(path: str | os.PathLike[str], version: int) -> int:
    """When a version was written, in ns: another history in the same place has another time; -1 if it is not there."""
    try:
        return (place_of(path) / name_of(version) / MANIFEST).stat().st_mtime_ns
    except OSError:
        return -1


def prune(path: str | os.PathLike[str], keep: int = 8, since: int = 0) -> list[int]:
    """Delete the oldest versions, and what killed writers left behind more than an hour ago.

    Parameters
    ----------
    path : path
        Directory of the history.
    keep : int, default 8
        How many of the newest stay; that which holds stays in any case.
    since : int, default 0
        Versions up to this one stay, too: those that somebody trained.

    Returns
    -------
    list of int
        The versions that were deleted. None are where the pointer cannot be read.

    Notes
    -----
    Nobody reads half of a version that is deleted. Complexity: O(files).
    """
    home = place_of(path)
    try:
        latest = pointed(home)
    except HistoryError:
        return []
    old = [version for version in versions(home)[keep:] if version != latest and version > since]
    for version in old:
        delete_version(home, version)
    clear_left_over(home)
    return old
