"""The files of a folder in which files appear: they follow one another in the order of their names."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from acep_approx.events.reading.decoding import SUFFIXES as COMPRESSED
from acep_approx.events.reading.files import format_of

LOG = logging.getLogger("acep_approx.live")
SETTLED = 2_000_000_000
"""Nanoseconds after which a change in a folder gives it another time, however coarse its clock is."""


def is_followed(name: str) -> bool:
    """Whether a file of a followed folder is read, by its name: no hidden file, no Parquet, none that is compressed."""
    path = Path(name)
    is_text = format_of(path) not in (None, "parquet") and path.suffix not in COMPRESSED
    return is_text and name[0] not in "._"


def would_be_followed(folder: Path, file: Path) -> bool:
    """Whether a file that is to be written would be one of a followed folder, by its name or behind links."""
    root = os.path.realpath(folder)
    places = (Path(os.path.realpath(file.parent), file.name), Path(os.path.realpath(file)))
    return Path(root).is_dir() and any(str(place.parent) == root and is_followed(place.name) for place in places)


class FollowedFolder:
    """Which file comes after another one.

    Parameters
    ----------
    path : Path

    Notes
    -----
    A look costs as much as there are names; there is one only where the time of the folder says that something was
    changed in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._root = path.resolve()
        self._known: set[str] = set()
        self._passed: set[str] = set()  # names that are not those of files to read
        self._links_out: set[str] = set()
        self._waiting: list[str] = []  # from the last to the next
        self._stamp: tuple[int, int, int] | None = None
        self._has_looked = False
        self._is_settled = True

    @property
    def left_out(self) -> int:
        """How many links lead out of the folder."""
        return len(self._links_out)

    def after(self, name: str) -> str | None:
        """The first file that comes after this one, which is the one that is read; None: there is none yet."""
        status = self.path.stat()
        stamp = status.st_dev, status.st_ino, status.st_mtime_ns
        if stamp != self._stamp:
            is_old = time.time_ns() - status.st_mtime_ns > SETTLED
            self._look(name)
            self._stamp = stamp if is_old and self._is_settled else None
        while self._waiting and self._waiting[-1] <= name:
            self._waiting.pop()
        return self._waiting[-1] if self._waiting else None

    def forget(self, name: str) -> None:
        """A file was gone before it was read: should it come back, it is new."""
        self._known.discard(name)
        if self._waiting and self._waiting[-1] == name:
            self._waiting.pop()
        self._stamp = None

    def real(self, name: str) -> Path:
        """The file behind a name: itself, or that to which a link within the folder leads."""
        path = self.path / name
        return path.resolve() if path.is_symlink() and self._leads_inside(name) else path

    def _look(self, name: str) -> None:
        """Take in the names that are new; tell of those that come too late."""
        new = sorted(self._new_names())
        if self._has_looked and name:
            for late in new:
                if late < name:
                    LOG.warning("%s is not read: its name comes before %s, which is read already", late, name)
        self._has_looked = True
        self._known.update(new)
        if new:
            self._waiting = sorted([*self._waiting, *new], reverse=True)

    def _new_names(self) -> Iterator[str]:
        self._is_settled = True
        with os.scandir(self.path) as entries:
            for entry in entries:
                name = entry.name
                if name in self._known or name in self._passed:
                    continue
                if not is_followed(name):
                    self._passed.add(name)
                elif self._leads_inside(name) if entry.is_symlink() else entry.is_file(follow_symlinks=False):
                    yield name

    def _leads_inside(self, name: str) -> bool:
        """Whether a link leads to a file of the folder."""
        try:
            file = (self.path / name).resolve(strict=True)
        except (OSError, RuntimeError):  # nowhere yet, or in a circle; it may lead somewhere later
            self._is_settled = False
            return False
        if file.is_relative_to(self._root):
            self._links_out.discard(name)
            return file.is_file()
        if name not in self._links_out:
            self._links_out.add(name)
            LOG.warning("%s is not read: it is a link that leads out of %s (%d so far)", name, self.path, self.left_out)
        return False
