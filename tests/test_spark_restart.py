"""A streaming job that is killed at random moments: what it wrote at last is what it writes unbroken.

``ACEP_SPARK_KILLS`` says how often; without it nothing is killed, for each kill costs a start of Spark.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark_application import EXACT, ID, PER_BATCH, QUERY, SHED, streams
from tests.spark_cases import rows

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.slow,
    pytest.mark.skipif("ACEP_SPARK_KILLS" not in os.environ, reason="takes minutes: ACEP_SPARK_KILLS=20"),
]

KILLS = int(os.environ.get("ACEP_SPARK_KILLS", "0"))
BATCHES = 4 + 2 * KILLS
"""Enough that every run but the last has some left to do."""
DELAY = 6
"""Files by which an event is too late."""
PATIENCE = 300
"""Seconds without a new micro-batch after which something is wrong."""
TOO_SLOW = "failed to connect back"
"""What Spark says when a Python process takes more than ten seconds to start: on a busy machine, begin again."""


# --- events -----------------------------------------------------------------------------------------------------------


def recorded(number: int, seed: int) -> pa.Table:
    """Events in order, and one in the far future, which closes all windows."""
    dice, now, events = Random(seed), datetime(2024, 3, 1, tzinfo=UTC), []
    for _ in range(number):
        now += timedelta(milliseconds=dice.choice((0, 20, 150, 300)))
        kind, key = dice.choice("AABBBC"), dice.choice("pqrstuv")
        events.append({"ts": now, "type": kind, "g": key, "x": dice.randrange(9)})
    events.append({**events[-1], "ts": now + timedelta(days=30)})
    return pa.Table.from_pylist(events).append_column(ID, pa.array(range(len(events)), pa.int64()))


def write_events(folder: Path, seed: int) -> pa.Table:
    """Write them as a recording, and as files, where some come much too late; returns them.

    Much: killed at the wrong moment, Spark's source reads two files or three into one micro-batch when it goes on, and
    then the watermark passes later.
    """
    dice, table = Random(seed), recorded(PER_BATCH * BATCHES, seed)
    pq.write_table(table, folder / "recording.parquet")
    (folder / "events").mkdir()
    file_of = [n // PER_BATCH for n in range(len(table) - 1)] + [BATCHES + 1]
    file_of = [n + DELAY if n + DELAY < BATCHES and dice.random() < 0.05 else n for n in file_of]
    for file in range(BATCHES + 2):
        path = folder / "events" / f"{file:03}.parquet"
        pq.write_table(table.filter(pa.array([mine == file for mine in file_of])), path)
        os.utime(path, (10**9 + file,) * 2)  # Spark reads the oldest first
    return table


# --- what was written -------------------------------------------------------------------------------------------------


def written(folder: Path) -> pa.Table:
    """The rows of a folder of Parquet, as any reader finds them; which micro-batch wrote them is left out."""
    return pq.read_table(folder).drop_columns(["batch"])


def as_here(folder: Path, schema: pa.Schema) -> pa.Table:
    """The same as a local run has it: Spark's times in Parquet have no zone."""
    return written(folder).select(schema.names).cast(schema)


# --- the job ----------------------------------------------------------------------------------------------------------


@dataclass
class Application:
    """The job as a process of its own.

    Parameters
    ----------
    folder : Path
    dice : Random
    """

    folder: Path
    dice: Random
    process: subprocess.Popen[bytes] = field(init=False)
    kills: int = 0
    starts: int = 0
    phases: Counter[str] = field(default_factory=Counter)

    def run(self, kills: int) -> None:
        """Start it, kill it, and start it again; at last let it come to its end."""
        while not self._run_once(is_killed=self.kills < kills):
            assert self.starts < 3 * (kills + 1), f"{self.starts} starts for {self.kills} kills"

    def _run_once(self, *, is_killed: bool) -> bool:
        """Returns whether it came to its end."""
        log = self.folder / f"log{self.starts}"
        self.starts += 1
        with log.open("wb") as out:
            command = [sys.executable, "-m", "tests.spark_application", str(self.folder)]
            self.process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        before = self._logged()
        try:
            if is_killed and self._wait_for_the_moment():
                phase = "starting" if self._logged() == before else self._phase()
                self._kill()
                self.phases[phase] += 1
                self.kills += 1
                return False
            code = self.process.wait(PATIENCE + 10 * BATCHES)
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
        os.killpg(self.process.pid, signal.SIGKILL)
        for number in family:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.process.wait()

    # --- where it is ------------------------------------------------------------------------------------------------

    def _logged(self) -> list[int]:
        """The newest micro-batch that began, of each query."""
        return [newest(self.folder / f"{name}.checkpoint" / "offsets") for name in (EXACT, SHED)]

    def _phase(self) -> str:
        """Where the exact query is by now."""
        checkpoint = self.folder / f"{EXACT}.checkpoint"
        begun, done = newest(checkpoint / "offsets"), newest(checkpoint / "commits")
        if begun == done:
            return "between micro-batches"
        place = self.folder / EXACT / f"batch={begun}"
        if (place / "_SUCCESS").exists():
            return "written, not committed"
        return "writing results" if place.exists() else "matching"


def newest(log: Path) -> int:
    """The newest entry of a log of Spark; -1 without any."""
    return max((int(path.name) for path in log.glob("*") if path.name.isdecimal()), default=-1)


def descendants(process: int) -> Iterator[int]:
    """The children of a process, theirs, and so on."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    family = [process]
    for parent in family:
        family += [child for child, its in pairs if its == parent]
    yield from family[1:]


# --- proofs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Application:
    """The job, killed some times and then run to its end."""
    folder = tmp_path_factory.mktemp("killed")
    write_events(folder, seed=8)
    job = Application(folder, Random(os.environ.get("ACEP_SPARK_SEED", "5")))
    job.run(KILLS)
    print(json.dumps({"kills": job.kills, "starts": job.starts, "phases": job.phases}))
    return job


@pytest.fixture(scope="module")
def unbroken(spark, tmp_path_factory) -> Path:
    """The same job in one run."""
    folder = tmp_path_factory.mktemp("unbroken")
    write_events(folder, seed=8)
    for _ in range(5):
        if run_to_its_end(spark, folder):
            break
    return folder


def run_to_its_end(spark: SparkSession, folder: Path) -> bool:
    """Run the job in this process; returns False where the machine was too busy to begin."""
    running = streams(spark, folder, to=folder)
    try:
        for stream in running:
            stream.awaitTermination()
    except StreamingQueryException as error:
        if TOO_SLOW not in str(error):
            raise
        return False
    finally:
        for stream in running:
            stream.stop()
    return True


@pytest.fixture(scope="module")
def events(unbroken) -> pa.Table:
    """All events."""
    return pq.read_table(unbroken / "recording.parquet")


def test_an_unbroken_run_finds_what_a_local_one_does(unbroken, events):
    late = written(unbroken / "late")
    assert len(late)
    assert set(late["reason"].to_pylist()) == {"late"}
    in_time = events.filter(pc.invert(pc.is_in(events[ID], late[ID].combine_chunks())))
    expected = QUERY.match(in_time, bind=ID).to_arrow()
    assert len(expected) > 100
    assert rows(as_here(unbroken / EXACT, expected.schema)) == rows(expected)


@pytest.mark.parametrize("name", [EXACT, "late"])
def test_nothing_is_lost_and_nothing_comes_twice(killed, unbroken, name):
    assert killed.kills == KILLS
    assert rows(written(killed.folder / name)) == rows(written(unbroken / name))


def test_under_a_budget_nothing_comes_twice(killed, events):
    exact = QUERY.match(events, bind=ID).to_arrow()
    found = rows(as_here(killed.folder / SHED, exact.schema))
    assert not found - rows(exact)
    assert 0 < found.total() < len(exact)
