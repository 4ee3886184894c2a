"""The experiments run from a fresh checkout; timings are printed, never asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_bench_cells_prints_its_tables() -> None:
    """All four claims, and the yardstick gives the same answers as the kernel (asserted inside)."""
    command = [sys.executable, "-m", "experiments.bench_cells", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for title in ("SEQ of 5 over 10 letters", "Example 1", "arc logs", "end to end"):
        assert title in done.stdout
