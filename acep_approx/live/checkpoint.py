"""A checkpoint: where a run stood, in its input and in its output, and the state between the two, in one file.

The files that a run writes are cut back to where its checkpoint saw them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from acep_approx.archive import FORMAT, Kind, Scope
from acep_approx.errors import DataError, UsageError
from acep_approx.events.stores import reaching
from acep_approx.events.writing.outfile import GrowingFile, check_name
from acep_approx.ranges import check
from history.files import NO_LINK, open_plain, read_plain
from history.places import StorePath, place_of

NAME = "checkpoint"
"""The file in its folder."""
LOCK = "lock"

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # not on Windows
    flock = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood.

    Parameters
    ----------
    asked : dict
        What the run was to do, as JSON: another one cannot go on from here.
    state : bytes or None
        Of the matcher; None before the first event.
    place : dict or None
        How far the input was read; see ``LiveSource.place``.
    outputs : dict of str to int
        How long the files were that it writes.
    counts : dict of str to int
        Numbers for people.
    has_ended : bool
        Whether no more events were to come.
    """

    asked: dict[str, Any]
    state: bytes | None = None
    place: dict[str, Any] | None = None
    outputs: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    has_ended: bool = False


class CheckpointFolder:
    """A folder that holds the last checkpoint of one run, and is held by one process.

    Parameters
    ----------
    path : Path
        Made if it is not there. It may be in an object store, which has no locks: there a run that finds a checkpoint
        of another one, when it is about to write its own, ends.

    Raises
    ------
    UsageError
        ``ACEP-U143``: another run uses it, it is no folder, or it cannot be written.
    DataError
        ``ACEP-H010`` to ``ACEP-H013``: the object store refuses it.

    Examples
    --------
    >>> import tempfile
    >>> with CheckpointFolder(Path(tempfile.mkdtemp())) as folder:
    ...     folder.write(Checkpoint({"query": "ab WITHIN 5"}, b"state", {"offset": 7}, {"results": 12}))
    ...     folder.read()
    Checkpoint(asked={'query': 'ab WITHIN 5'}, state=b'state', place={'offset': 7}, outputs={'results': 12}, ...)
    """

    def __init__(self, path: Path) -> None:
        self.path = path = place_of(path)
        self._file = path / NAME
        self._kind = Kind("checkpoint", self.damaged, self.other_format)
        check_name(path)
        self._lock: BinaryIO | None = None
        self._seen: int | None = None
        if isinstance(self._file, StorePath):
            with reaching():
                self._seen = _written(self._file)
            return
        try:
            path.mkdir(exist_ok=True)
            self._lock = open_plain(path / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK)
        except OSError as error:
            raise UsageError(
                f"checkpoints cannot be written to {str(path)!r}: {error.strerror}",
                code="ACEP-U143",
                hint="name a folder that exists, or can be made, and that you may write to",
            ) from error
        self._hold(self._lock)

    def _hold(self, lock: BinaryIO) -> None:
        if flock is None:
            return
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise self._used_by_another() from error
        except OSError:  # a file system without locks
            return

    def _used_by_another(self) -> UsageError:
        return UsageError(
            f"another run writes its checkpoints to {str(self.path)!r}",
            code="ACEP-U143",
            hint="name another folder, or wait until that run has ended",
        )

    def read(self) -> Checkpoint | None:
        """The last checkpoint; None where there is none.

        Raises
        ------
        DataError
            ``ACEP-D062``: it is damaged, or something else; ``ACEP-D063``: another version wrote it.
        """
        try:
            with reaching():
                blob = read_plain(self._file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.damaged() from error
        scope = self._kind.unpack(blob)
        with self._kind.reading():
            return _checked(scope)

    def write(self, checkpoint: Checkpoint) -> None:
        """Put a checkpoint in the place of the one before, as a whole: whoever reads sees the one or the other.

        Raises
        ------
        UsageError
            ``ACEP-U143``: another run has written one to the same place of a store since this one wrote its last.

        Complexity: O(state).
        """
        scope = Scope({name: getattr(checkpoint, name) for name in KINDS})
        if checkpoint.state is not None:
            scope.put("state", checkpoint.state)
        if isinstance(self._file, StorePath):
            with reaching():
                if _written(self._file) != self._seen:
                    raise self._used_by_another()
                self._file.write_bytes(self._kind.pack(scope))
                self._seen = _written(self._file)
            return
        draft = self.path / f".{NAME}"
        draft.unlink(missing_ok=True)  # of a run that did not end, or a link
        with draft.open("xb") as file:
            file.write(self._kind.pack(scope))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file)
        _sync(self.path)

    def damaged(self) -> DataError:
        """The error that what is there cannot be used."""
        return DataError(
            f"the checkpoint in {self.path} is damaged, or no checkpoint of a run",
            code="ACEP-D062",
            hint="take a copy that is whole, or begin anew with another folder",
        )

    def other_format(self, theirs: str) -> DataError:
        """The error that another version wrote what is there."""
        return DataError(
            f"the checkpoint in {self.path} has {theirs}, this version reads format {FORMAT}",
            code="ACEP-D063",
            hint="go on with the version that wrote it, or begin anew with another folder",
        )

    def check(self, found: Checkpoint, asked: dict[str, Any]) -> None:
        """Refuse to go on with another run.

        Raises
        ------
        DataError
            ``ACEP-D064``: the run was to do something else.
        UsageError
            ``ACEP-U144``: it has ended.
        """
        was, now = _each(found.asked), _each(asked)
        names = [name for name in {**was, **now} if was.get(name) != now.get(name)]
        if names:
            both = [f"{name} was {was.get(name)!r:.200}, and is {now.get(name)!r:.200}" for name in names]
            raise DataError(
                f"the checkpoint in {self.path} is of another run: {'; '.join(both)}",
                code="ACEP-D064",
                hint="give the command that was given first, or begin anew with another folder",
            )
        if found.has_ended:
            raise UsageError(
                f"the run of the checkpoint in {self.path} has ended: no more events were to come",
                code="ACEP-U144",
                hint="begin anew with another folder; a run without --finish goes on",
            )

    def close(self) -> None:
        """Let another run use it."""
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


KINDS: dict[str, Any] = {"asked": dict, "place": dict | None, "outputs": dict, "counts": dict, "has_ended": bool}
"""What stands in the head of a checkpoint."""


def _checked(scope: Scope) -> Checkpoint:
    """What stands in a file, if all of it is as it must be."""
    head = {name: scope.head[name] for name in KINDS}
    check("head", good=all(isinstance(head[name], kind) for name, kind in KINDS.items()))
    numbers = [*head["outputs"].values(), *head["counts"].values()]
    check("numbers", good=all(isinstance(number, int) and number >= 0 for number in numbers))
    check("arrays", good=not scope.arrays.keys() - {"state"})
    state = scope.arrays["state"].tobytes() if "state" in scope.arrays else None
    check("place", good=(state is None) == (head["place"] is None))
    return Checkpoint(state=state, **head)


def _each(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, one by one: options too, which stand together."""
    parts = [value if isinstance(value, dict) else {name: value} for name, value in asked.items()]
    return {name: value for part in parts for name, value in part.items()}


def _written(file: StorePath) -> int | None:
    """When an object was put; None where there is none."""
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _sync(folder: Path) -> None:
    """Make the new name of a file last, should the machine fail."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:  # not on Windows
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)


class Outputs:
    """Files by what is written to them.

    Parameters
    ----------
    lengths : mapping of str to int, optional
        Bytes of each that are kept, where a run goes on. Default: all begin anew.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "found.jsonl"
    >>> _ = place.write_bytes(b"one two")
    >>> outputs = Outputs({"results": 4})
    >>> file = outputs.opener("results")(place)
    >>> _ = file.sink.write(b"three")
    >>> outputs.lengths(), place.read_bytes()
    ({'results': 9}, b'one three')
    >>> file.finish()
    """

    def __init__(self, lengths: Mapping[str, int] | None = None) -> None:
        self._lengths = dict(lengths or {})
        self._files: dict[str, GrowingFile] = {}

    def opener(self, name: str) -> Callable[[Path], GrowingFile]:
        """What opens the file of this name, at its length."""

        def opens(path: Path) -> GrowingFile:
            self._files[name] = GrowingFile(path, self._lengths.get(name))
            return self._files[name]

        return opens

    def lengths(self) -> dict[str, int]:
        """How long they are now, for good."""
        return self._lengths | {name: file.length() for name, file in self._files.items()}

    def close(self) -> None:
        """All has been written."""
        for file in self._files.values():
            file.finish()
