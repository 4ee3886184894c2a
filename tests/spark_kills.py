"""A job of several streams in a process of its own that is killed at random moments, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.spark_cluster import descendants

PATIENCE = 300
"""Seconds without a new micro-batch after which something is wrong."""
TO_ITS_END = 3000
"""Seconds that the last start may take."""
TOO_SLOW = "failed to connect back"
"""What Spark says when a Python process takes more than ten seconds to start: on a busy machine, begin again."""
ENDED = "had ended"
KILLS = int(os.environ.get("ACEP_SPARK_KILLS", "0"))
SEED = os.environ.get("ACEP_SPARK_SEED", "5")


@dataclass
class Killed:
    """A job as a process of its own: ``python -m MODULE FOLDER ...``.

    Parameters
    ----------
    module : str
    folder : Path
        With ``NAME.checkpoint`` of each stream, and its results in ``NAME`` where these are a folder.
    names : sequence of str
        Of the streams, which are killed together.
    words : sequence of str
        What the module is told besides the folder.
    """

    module: str
    folder: Path
    names: Sequence[str]
    words: Sequence[str] = ()
    dice: Random = field(default_factory=lambda: Random(SEED))
    process: subprocess.Popen[bytes] = field(init=False)
    kills: int = 0
    starts: int = 0
    phases: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def run(self, kills: int) -> None:
        """Start it, kill it, and start it again; at last let it come to its end."""
        while not self._run_once(is_killed=self.kills < kills):
            assert self.starts < 6 * (kills + 1), f"{self.starts} starts for {self.kills} kills"
        print(f"\n{self.kills} kills, {self.starts} starts:", {name: {**of} for name, of in self.phases.items()})

    def at_work(self, name: str) -> int:
        """How many kills met a stream that had not come to its end."""
        return self.phases[name].total() - self.phases[name][ENDED]

    def _run_once(self, *, is_killed: bool) -> bool:
        """Returns whether it came to its end."""
        log = self.folder / f"log{self.starts}"
        self.starts += 1
        with log.open("wb") as out:
            command = [sys.executable, "-m", self.module, str(self.folder), *self.words]
            self.process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        before = self._logged()
        try:
            if is_killed and self._wait_for_the_moment():
                now = self._logged()
                found = {name: "starting" if now == before else self._phase(name) for name in self.names}
                self._kill()
                for name, phase in found.items():
                    self.phases[name][ENDED if (self.folder / f"{name}.ended").exists() else phase] += 1
                self.kills += 1
                return False
            code = self.process.wait(TO_ITS_END)
        finally:
            if self.process.poll() is None:
                self._kill()
        said = log.read_text(errors="replace")
        assert code == 0 or TOO_SLOW in said, said[-5000:]
        return code == 0

    def _wait_for_the_moment(self) -> bool:
        """Wait for a random moment; False if the job ended before."""
        if self.dice.random() < 0.15:
            return self._sleep(self.dice.uniform(2, 15))
        before, begun = self._logged(), time.monotonic()
        while self._logged() == before:
            assert time.monotonic() - begun < PATIENCE, "no micro-batch began"
            if not self._sleep(0.05):
                return False
        return self._sleep(self.dice.expovariate(1 / 2.5))

    def _sleep(self, seconds: float) -> bool:
        """Returns whether it still runs."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def _kill(self) -> None:
        """Kill the driver with its JVM, and the Python workers, which are a group of their own."""
        family = list(descendants(self.process.pid))
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for number in family:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.process.wait()

    # --- where it is ------------------------------------------------------------------------------------------------

    def _logged(self) -> list[int]:
        """The newest micro-batch that began, of each stream."""
        return [newest(self.folder / f"{name}.checkpoint" / "offsets") for name in self.names]

    def _phase(self, name: str) -> str:
        """Where a stream is by now."""
        checkpoint = self.folder / f"{name}.checkpoint"
        begun, done = newest(checkpoint / "offsets"), newest(checkpoint / "commits")
        if begun == done:
            return "between micro-batches"
        place = self.folder / name / f"batch={begun}"
        if (place / "_SUCCESS").exists():
            return "written, not committed"
        return "writing results" if place.exists() else "matching"


def newest(log: Path) -> int:
    """The newest entry of a log of Spark; -1 without any."""
    return max((int(path.name) for path in log.glob("*") if path.name.isdecimal()), default=-1)
