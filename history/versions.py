"""Versions of a history that is refreshed while others read it: which is pointed to, and getting rid of old ones.

A version is never changed once it is there. Who reads asks for ``pointed`` before each batch, which costs two small
reads, and loads only what is new.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from history import store
from history.errors import HistoryError


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
    return store._latest(Path(path))


def point_to_newest(path: str | os.PathLike[str]) -> None:
    """Point to the newest version where there is no pointer: for a writer that was killed before it had written one.

    Only the one writer of a history knows that this is what has happened; to anyone else a pointer that is missing is
    damage. A history with a pointer, whole or not, stays as it is.
    """
    home = Path(path)
    there = versions(home)
    if there and not (home / store.LATEST).exists():
        store._point(home, there[0])


def versions(path: str | os.PathLike[str]) -> list[int]:
    """All versions that are there, the newest first; whether they are whole is not looked at."""
    return store._versions(Path(path))[::-1]


def written(path: str | os.PathLike[str], version: int) -> int:
    """When a version was written, in ns: another history in the same place has another time; -1 if it is not there."""
    try:
        return (Path(path) / store._name(version) / store.MANIFEST).stat().st_mtime_ns
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
    A version is renamed before it is deleted, so that nobody reads half of it. Complexity: O(files).
    """
    home = Path(path)
    try:
        latest = store._latest(home)
    except HistoryError:
        return []
    old = [version for version in versions(home)[keep:] if version != latest and version > since]
    for version in old:
        gone = home / f".gone-{store._name(version)}"
        shutil.rmtree(gone, ignore_errors=True)
        (home / store._name(version)).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    store.clear_left_over(home)
    return old
