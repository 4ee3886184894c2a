"""The command line, called in this process."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from typer import testing
from typer.testing import CliRunner

from acep_approx.cli.main import app

testing._get_command = cache(testing._get_command)
"""The command is made once in a process, as by the program: to make it takes as long as a small run."""

ROWS = [
    ("2024-05-01T08:00:00Z", "box 1", "Packed", 12.0),
    ("2024-05-01T08:05:00.500Z", "box 2", "Packed", 7.5),
    ("2024-05-01T08:06:00Z", "box 1", "Loaded", 12.0),
    ("2024-05-01T09:30:00Z", "box 1", "Delivered", 12.0),
    ("2024-05-01T10:00:00Z", "box 2", "Delivered", 7.5),
]
NAMES = ("ts", "key", "type", "kg")


def csv_text(rows=ROWS, names=NAMES) -> str:
    """Rows as CSV."""
    return "".join(",".join(map(str, row)) + "\n" for row in [names, *rows])


class Pieces(io.RawIOBase):
    """A stream that comes in these pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    def readable(self) -> bool:
        """As ``io`` asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next piece, or as much of it as there is room for."""
        piece = self._pieces.pop(0) if self._pieces else b""
        size = min(len(piece), len(buffer))
        buffer[:size] = piece[:size]
        if size < len(piece):
            self._pieces.insert(0, piece[size:])
        return size


def acep(*arguments: str, stdin: bytes | Sequence[bytes] = b"", code: int | None = 0) -> Any:
    """Run a command in this process, with an input that comes as a whole or in pieces; there is never a traceback."""
    raw = Pieces([stdin] if isinstance(stdin, bytes) else stdin)
    piped = SimpleNamespace(stdin=SimpleNamespace(buffer=io.BufferedReader(raw)))
    with patch("acep_approx.events.reading.files.sys", piped):  # the runner's own stdin is not buffered as a real one
        result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert code is None or result.exit_code == code, result.output
    return result
