"""Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent
HEAVY = {"numba", "pyspark", "pandas", "sklearn", "datasketch", "matplotlib", "pyarrow", "lark", "numpy"}


def as_started(**more: str) -> dict[str, str]:
    """The environment of a program of this tree that a user starts: it loads kernels only where that is worth it.

    Tests themselves wait for compiled ones (``ACEP_JIT=1``); to load these takes a third of the time of a small run.
    """
    mine = {name: value for name, value in os.environ.items() if (name, value) != ("ACEP_JIT", "1")}
    return {**mine, "PYTHONPATH": str(ROOT), **more}


def ended(*command: str) -> subprocess.CompletedProcess[bytes]:
    """A program that has come to its end by itself."""
    return subprocess.run(command, cwd=ROOT, env=as_started(), capture_output=True, check=False, timeout=PATIENCE)


def python(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the project's root."""
    env = {**os.environ, **environment}
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE)


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
