"""Where a process can be killed between two writes, and files as a worker may find them.

Python tells of each write before it does it (audit events), whatever function was called: so nothing is replaced, and
no write can be forgotten. What Arrow writes by itself is not told of: the tables of a draft count as one write.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

WRITES = {"os.rename": 1, "os.mkdir": 0, "os.remove": 0, "os.rmdir": 0, "os.chmod": 0}
"""Audit events that are writes, and which of their arguments names the file."""
FOLDER = {"os.rename": 3, "os.mkdir": 2, "os.remove": 1, "os.rmdir": 1, "os.chmod": 2}
"""Which argument says that the name is relative to an open folder, as ``shutil.rmtree`` has it."""


class Killed(BaseException):
    """The process is gone; nothing of it may write any more."""


@dataclass
class Faults:
    """The writes of one process below a folder, and when it is killed.

    Parameters
    ----------
    folder : Path
    dice : Random
    counts : Counter of str
        How often each sort of fault has happened, over many schedules.
    """

    folder: Path
    dice: Random
    counts: Counter[str] = field(default_factory=Counter)
    left: int | None = None
    below: Path | None = None
    is_dead: bool = False
    writing: Path | None = None

    @contextmanager
    def watching(self, writes: int | None, below: Path | None = None) -> Iterator[None]:
        """Run a process, which is killed before its next write after so many, in some folder; None: it lives."""
        global _watched
        self.left, self.below, self.is_dead, self.writing = writes, below, False, None
        _watched = self
        try:
            yield
        except Killed:
            _watched = None
            self._tear()
            raise
        finally:
            _watched = None

    def point(self, where: str, file: Path | None = None) -> None:
        """A write that is about to be done; without a file it is one of Spark's own."""
        if self.is_dead:
            raise Killed(where)
        is_counted = self.below is None or (file is not None and file.is_relative_to(self.below))
        if self.left is None or not is_counted:
            return
        if not self.left:
            self.is_dead = True
            self.counts["killed"] += 1
            self.counts[f"killed before {where}"] += 1
            raise Killed(where)
        self.left -= 1

    def _tear(self) -> None:
        """The last file that was opened may be half written, whatever its name is by now not."""
        if self.writing is not None and self.writing.is_file() and self.dice.random() < 0.7:
            cut(self.writing, self.dice)
            self.counts["torn while written"] += 1

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """Python is about to do something."""
        if event == "open":
            name, _, flags = args
            if isinstance(name, int) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
        elif event in WRITES:
            name = args[WRITES[event]]
            if args[FOLDER[event]] not in (-1, None):
                self.point(f"{event} in a folder")
                return
        else:
            return
        path = Path(os.fsdecode(name))
        if not path.is_relative_to(self.folder):
            return
        self.point(f"{event} {plain(path)}", path)
        self.writing = path if event == "open" else None


_watched: Faults | None = None


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if _watched is not None:
        _watched.heard(event, args)


sys.addaudithook(_hear)  # it stays, and does nothing while nobody watches


def plain(path: Path) -> str:
    """What sort of file it is: without numbers and random names."""
    name = re.sub(r"^\.draft-.*", ".draft", path.name)
    return re.sub(r"[0-9]+(-[0-9a-f]{8}\b)?", "#", name)


def cut(file: Path, dice: Random) -> None:
    """Leave the beginning of a file."""
    content = file.read_bytes()
    file.write_bytes(content[: dice.randrange(max(len(content), 1))])


@contextmanager
def found_as(file: Path, content: bytes | None) -> Iterator[None]:
    """A file as somebody finds it who sees an older one, a part, or (None) nothing yet; then it is as it was."""
    aside = file.with_name(f".aside-{file.name}")
    was_there = file.exists()
    if was_there:
        file.rename(aside)
    try:
        if content is not None:
            file.write_bytes(content)
        yield
    finally:
        file.unlink(missing_ok=True)
        if was_there:
            aside.rename(file)
