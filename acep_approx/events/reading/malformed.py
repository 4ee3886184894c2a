"""Rows that cannot be read: refused at once, or skipped, counted and written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from acep_approx.errors import DataError, UsageError
from acep_approx.events.writing.outfile import GrowingFile, OutFile

POLICIES = ("refuse", "skip")
_SHOWN = 200  # characters of a row's text in a message and in the file of rejects


class MalformedRows:
    """What happens to rows that cannot be read, and how many there were.

    Parameters
    ----------
    policy : str
        ``"refuse"`` (default): the first such row is an error. ``"skip"``: it is left out and counted.
    rejects : str or Path, optional
        File that gets one JSON object per skipped row: ``file``, ``line``, ``reason``, ``text``.

    Attributes
    ----------
    count : int
        Rows skipped in the current pass over the events.
    reasons : list of str
        The first few, as "file, line: reason".
    opens : callable
        Makes the file of rejects. Default: one that takes its name when it is whole.

    Raises
    ------
    UsageError
        ``ACEP-U105`` no such policy; ``ACEP-U106`` rejects without ``"skip"``.
    """

    def __init__(self, policy: str = "refuse", rejects: str | Path | None = None) -> None:
        if policy not in POLICIES:
            raise UsageError(
                f"on_malformed is {policy!r}", code="ACEP-U105", hint="it is 'refuse' (the default) or 'skip'"
            )
        if rejects is not None and policy != "skip":
            raise UsageError(
                "a file for rejected rows is given, but malformed rows are refused, not skipped",
                code="ACEP-U106",
                hint="add on_malformed='skip' (--on-malformed skip)",
            )
        self.policy = policy
        self.rejects = None if rejects is None else Path(rejects)
        self.count = 0
        self.reasons: list[str] = []
        self.opens: Callable[[Path], OutFile | GrowingFile] = OutFile
        self._file: OutFile | GrowingFile | None = None

    def restart(self) -> None:
        """Begin a new pass over the events: forget the count, empty the file of rejects."""
        self.close()
        self.count = 0
        self.reasons = []
        if self.rejects is not None:
            try:
                self._file = self.opens(self.rejects)
            except OSError as error:
                raise UsageError(
                    f"cannot write rejected rows to {self.rejects}: {error.strerror}", code="ACEP-U106"
                ) from error

    def add(self, file: str, line: int, reason: str, text: str, unit: str = "line") -> None:
        """Report a row that cannot be read.

        Parameters
        ----------
        file : str
            Where it stands.
        line : int
            Its (first) line in the file, from 1.
        reason : str
            What is wrong with it.
        text : str
            The row itself; cut when long.
        unit : str
            What ``line`` counts, in a word: of a topic of Kafka offsets, of a JSON array events. Default lines.

        Raises
        ------
        DataError
            ``ACEP-D020``, if the policy is to refuse.
        """
        text = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
        if self.policy == "refuse":
            raise DataError(
                f"{file}, {unit} {line}: {reason}: {text!r}",
                code="ACEP-D020",
                hint="correct the line, or leave such rows out: on_malformed='skip' (--on-malformed skip)",
            )
        self.count += 1
        if len(self.reasons) < 5:
            self.reasons.append(f"{file}, {unit} {line}: {reason}")
        if self._file is not None:
            row = {"file": file, unit: line, "reason": reason, "text": text}
            self._file.sink.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Close the file of rejects, if one is open."""
        if self._file is not None:
            self._file.finish()
            self._file = None
