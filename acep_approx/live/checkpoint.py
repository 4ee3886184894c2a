"""A checkpoint: where a run stood, in its input and in its output, and the state between the two, in one file.

Layout: see ``matching.blob``, which refuses bytes that have changed; the state as it was given. ``FORMAT`` changes when
the layout does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from acep_approx.errors import DataError, UsageError
from acep_approx.events.writing.outfile import check_name
from acep_approx.matching.blob import joined, split
from history.files import NO_LINK, open_plain, read_plain

FORMAT = 1
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
        Made if it is not there.

    Raises
    ------
    UsageError
        ``ACEP-U143``: another run uses it, it is no folder, or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with CheckpointFolder(Path(tempfile.mkdtemp())) as folder:
    ...     folder.write(Checkpoint({"query": "ab WITHIN 5"}, b"state", {"offset": 7}, {"results": 12}))
    ...     folder.read()
    Checkpoint(asked={'query': 'ab WITHIN 5'}, state=b'state', place={'offset': 7}, outputs={'results': 12}, ...)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path / NAME
        check_name(path)
        try:
            path.mkdir(exist_ok=True)
            self._lock = open_plain(path / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK)
        except OSError as error:
            raise UsageError(
                f"checkpoints cannot be written to {str(path)!r}: {error.strerror}",
                code="ACEP-U143",
                hint="name a folder that exists, or can be made, and that you may write to",
            ) from error
        self._hold()

    def _hold(self) -> None:
        if flock is None:
            return
        try:
            flock(self._lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise UsageError(
                f"another run writes its checkpoints to {str(self.path)!r}",
                code="ACEP-U143",
                hint="name another folder, or wait until that run has ended",
            ) from error
        except OSError:  # a file system without locks
            return

    def read(self) -> Checkpoint | None:
        """The last checkpoint; None where there is none.

        Raises
        ------
        DataError
            ``ACEP-D062``: it is damaged, or something else; ``ACEP-D063``: another version wrote it.
        """
        try:
            blob = read_plain(self._file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.damaged() from error
        try:
            header, arrays = split(blob)
            format_ = header["format"]
        except (ValueError, KeyError) as error:
            raise self.damaged() from error
        if format_ != FORMAT:
            raise DataError(
                f"the checkpoint in {self.path} has format {format_}, this version reads format {FORMAT}",
                code="ACEP-D063",
                hint="go on with the version that wrote it, or begin anew with another folder",
            )
        try:
            return _checked(header, arrays)
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged() from error

    def write(self, checkpoint: Checkpoint) -> None:
        """Put a checkpoint in the place of the one before, as a whole: whoever reads sees the one or the other.

        Complexity: O(state).
        """
        header = {
            "format": FORMAT,
            "asked": checkpoint.asked,
            "place": checkpoint.place,
            "outputs": checkpoint.outputs,
            "counts": checkpoint.counts,
            "has_ended": checkpoint.has_ended,
        }
        state = {} if checkpoint.state is None else {"state": np.frombuffer(checkpoint.state, np.uint8)}
        draft = self.path / f".{NAME}"
        draft.unlink(missing_ok=True)  # of a run that did not end, or a link
        with draft.open("xb") as file:
            file.write(joined(header, state))
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

    def check(self, found: Checkpoint, asked: dict[str, Any]) -> None:
        """Refuse to go on with another run.

        Raises
        ------
        DataError
            ``ACEP-D064``: the run was to do something else.
        UsageError
            ``ACEP-U144``: it has ended.
        """
        names = [name for name in {**found.asked, **asked} if found.asked.get(name) != asked.get(name)]
        if names:
            both = [f"{name} was {found.asked.get(name)!r:.200}, and is {asked.get(name)!r:.200}" for name in names]
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
        self._lock.close()

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(header: dict[str, Any], arrays: dict[str, Any]) -> Checkpoint:
    """What stands in a file, if all of it is as it must be."""
    kinds: dict[str, Any] = {
        "asked": dict,
        "place": dict | None,
        "outputs": dict,
        "counts": dict,
        "has_ended": bool,
    }
    if not all(isinstance(header[name], kind) for name, kind in kinds.items()) or arrays.keys() - {"state"}:
        raise ValueError("not a checkpoint")
    numbers = [*header["outputs"].values(), *header["counts"].values()]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise ValueError("not numbers")
    state = arrays["state"].tobytes() if "state" in arrays else None
    if (state is None) != (header["place"] is None):
        raise ValueError("a state without a place, or a place without a state")
    return Checkpoint(state=state, **{name: header[name] for name in kinds})


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
