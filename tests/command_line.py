"""The command line, called in this process."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from acep_approx.cli.main import app

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


def acep(*arguments: str, stdin: bytes = b"", code: int = 0) -> Any:
    """Run a command in this process; whatever happens, there is no traceback."""
    piped = SimpleNamespace(stdin=SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(stdin))))
    with patch("acep_approx.events.reading.files.sys", piped):  # the runner's own stdin is not buffered as a real one
        result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == code, result.output
    return result
