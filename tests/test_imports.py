"""Asking for help is quick: nothing heavy is imported before it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent
HEAVY = {"numba", "pyspark", "pandas", "sklearn", "datasketch", "matplotlib", "pyarrow", "lark", "numpy"}
COMMAND = "import sys; sys.argv = ['acep', *{}]; from acep_approx.cli.main import main; main()"


def imported(code: str) -> set[str]:
    """Packages that are loaded when a fresh interpreter has run some code."""
    show = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    program = f"import atexit; atexit.register(lambda: exec({show!r}, {{}}))\n{code}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


COMMANDS = ("run", "train", "tune", "replay", "why", "check", "explain")


@pytest.mark.parametrize("arguments", ["--help", "--version", *(f"{command} --help" for command in COMMANDS)])
def test_help_imports_nothing_heavy(arguments):
    assert not imported(COMMAND.format(arguments.split())) & HEAVY


def test_the_package_imports_nothing_heavy():
    found = imported("import acep_approx")
    assert "acep_approx" in found
    assert not found & HEAVY


def test_what_is_imported_is_seen():
    assert {"numpy", "json"} <= imported("import json, numpy")
