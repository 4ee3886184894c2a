"""Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def python(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the project's root."""
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, *args], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
