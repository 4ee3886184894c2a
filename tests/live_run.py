"""``acep run`` as a process that is fed line by line."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from pathlib import Path

from tests.patience import PATIENCE
from tests.processes import as_started

ROOT = Path(__file__).parent.parent


class Run:
    """``acep run`` with a pipe at both ends."""

    def __init__(self, *arguments: str, **options) -> None:
        command = [sys.executable, "-m", "acep_approx.cli.main", "run", *arguments, "-q"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **options}
        self.process = subprocess.Popen(command, env=as_started(), **pipes)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)

    def write(self, data: str | bytes) -> None:
        """Feed it something."""
        self.process.stdin.write(data.encode() if isinstance(data, str) else data)
        self.process.stdin.flush()

    def line(self) -> str:
        """The next line that it prints."""
        return self._lines.get(timeout=PATIENCE).decode().rstrip("\n")

    def end(self) -> list[str]:
        """Close its input; what it prints until it has ended well."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        self._reader.join()
        self.process.stdout.close()
        return [self.line() for _ in range(self._lines.qsize())]
