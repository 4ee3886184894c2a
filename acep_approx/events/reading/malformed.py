"""Rows that cannot be read: refused at once, or skipped, counted and written down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from acep_approx.errors import DataError, UsageError
from acep_approx.events.writing.outfile import GrowingFile, OutFile
from acep_approx.shell import quoted

POLICIES = ("refuse", "skip")
OFFSET = "offset"
"""What messages of a partition are counted by."""
_REASONS = 5
_SHOWN = 200  # characters of a row's text in a message and in the file of rejects
CHANGES = re.compile(r"Column\(/([^/]*)\) changed from (?:string|number|boolean) to (?:string|number|boolean)")
"""Of the parser of JSON: a field is of one type in some rows and of another in others."""
LEAVE_OUT = "leave such rows out: --on-malformed skip (on_malformed='skip'), with --rejects FILE to keep them"


class Row(NamedTuple):
    """Where a row stands, and what it is: its (first) ``line`` in the ``file``, or what else ``unit`` counts."""

    file: str
    line: int
    text: str
    unit: str = "line"

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"{self.file}, {self.unit} {self.line}"

    @property
    def is_message(self) -> bool:
        """Whether it is a message of a topic."""
        return self.unit == OFFSET

    @property
    def shown(self) -> str:
        """Its text; cut when long."""
        return self.text if len(self.text) <= _SHOWN else self.text[:_SHOWN] + "..."


def row_of(file: str, first: int, batch: pa.RecordBatch, row: int) -> Row:
    """A row of a batch whose first one has the number ``first``: its number, and what was read of it, as JSON."""
    values = batch.slice(row, 1).to_pylist()[0]
    return Row(file, first + row, json.dumps(values, ensure_ascii=False, default=str), "row")


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

    goes_on = False
    """Whether more events may come when those of a source have ended."""

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
        MalformedRows.close(self)
        self.count = 0
        self.reasons = []
        if self.rejects is not None:
            try:
                self._file = self.opens(self.rejects)
            except OSError as error:
                raise UsageError(
                    f"cannot write rejected rows to {self.rejects}: {error.strerror}", code="ACEP-U106"
                ) from error

    def add(self, row: Row, reason: str) -> None:
        """Report a row that cannot be read.

        Parameters
        ----------
        row : Row
        reason : str
            What is wrong with it.

        Raises
        ------
        DataError
            ``ACEP-D020``, if the policy is to refuse.
        """
        if self.policy == "refuse":
            changes = CHANGES.search(reason)
            as_text = f" or read {changes[1]!r} as text: --column-type {quoted(changes[1])}=text;" if changes else ""
            raise DataError(
                f"{row.place}: {reason}: {row.shown!r}",
                code="ACEP-D020",
                hint=f"correct the line;{as_text} or {LEAVE_OUT}",
            )
        self.count += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(f"{row.place}: {reason}")
        if self._file is not None:
            written = {"file": row.file, row.unit: row.line, "reason": reason, "text": row.shown}
            self._file.sink.write(json.dumps(written, ensure_ascii=False).encode() + b"\n")

    @property
    def shows_more(self) -> bool:
        """Whether it is shown which row the next one is, and why: otherwise it is only counted."""
        return self._file is not None or len(self.reasons) < _REASONS

    def close(self) -> None:
        """Close the file of rejects, if one is open."""
        if self._file is not None:
            self._file.finish()
            self._file = None


class PushedRows(MalformedRows):
    """The same of events that are pushed, some after others: all that were left out are counted, in one file."""

    goes_on = True

    def __init__(self, policy: str = "refuse", rejects: str | Path | None = None) -> None:
        super().__init__(policy, rejects)
        self.opens = GrowingFile

    def restart(self) -> None:
        """More are pushed."""
        if self._file is None:
            before = self.count, self.reasons
            super().restart()
            self.count, self.reasons = before

    def close(self) -> None:
        """Others may be pushed later."""
        if self._file is not None:
            self._file.sink.flush()

    def finish(self) -> None:
        """No others will be."""
        super().close()
