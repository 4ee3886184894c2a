"""A job with each kind of program, killed at random moments: what it wrote at last is what it writes unbroken.

``ACEP_SPARK_KILLS`` says how often; without it nothing is killed, for each kill costs a start of Spark. A kill meets
two or three kinds at once. ``tests/test_spark_cluster.py`` kills the worker of a cluster in any case.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from acep_approx.learning.learner import LEARNER as KIND
from acep_approx.learning.online import LEARNER
from acep_approx.spark.setup.control import CONTROL
from tests.spark_application import (
    COUNTS,
    EARLY,
    EXACT,
    ID,
    LEARNING,
    OF_RULES,
    PER_BATCH,
    QUERY,
    RULES,
    SET,
    SHED,
    TOGETHER,
    desk,
    streams,
)
from tests.spark_application import run as to_the_end
from tests.spark_cases import rows
from tests.spark_kills import KILLS, TOO_SLOW, Killed

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not KILLS, reason="takes minutes: ACEP_SPARK_KILLS=20"),
]

BATCHES = 6 + 4 * KILLS
"""Enough that every kind has some left to do at each kill."""
DELAY = 6
"""Files by which an event is too late."""


# --- events -----------------------------------------------------------------------------------------------------------


def recorded(number: int, seed: int) -> pa.Table:
    """Events in order, and one in the far future, which closes all windows."""
    dice, now, events = Random(seed), datetime(2024, 3, 1, tzinfo=UTC), []
    for _ in range(number):
        now += timedelta(milliseconds=dice.choice((0, 20, 150, 300)))
        kind, key = dice.choice("AABBBC"), dice.choice("pqrstuv")
        events.append({"ts": now, "type": kind, "g": key, "x": dice.randrange(9)})
    events.append({**events[-1], "type": "A", "ts": now + timedelta(days=30)})  # ends no match: it waits for ever
    return pa.Table.from_pylist(events).append_column(ID, pa.array(range(len(events)), pa.int64()))


def write_events(folder: Path, seed: int) -> None:
    """Write them as a recording, and as files, where some come much too late.

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


# --- what was written -------------------------------------------------------------------------------------------------


def written(folder: Path) -> pa.Table:
    """The rows of a folder of Parquet, as any reader finds them; which micro-batch wrote them is left out."""
    return pq.read_table(folder).drop_columns(["batch"])


def as_here(folder: Path, schema: pa.Schema) -> pa.Table:
    """The same as a local run has it: Spark's times in Parquet have no zone."""
    return written(folder).select(schema.names).cast(schema)


def outcome(folder: Path, kind: str) -> Counter[str]:
    """What the results of a kind come to, however its stream was cut."""
    found = written(folder / kind)
    if kind == COUNTS:
        summed = found.group_by("errors").aggregate([("matches", "sum")])
        return Counter({str(row["errors"]): row["matches_sum"] for row in summed.to_pylist()})
    if kind != EARLY:
        return rows(found)
    there: Counter[str] = Counter()
    came = rows(found)
    assert max(came.values()) == 1, "a change comes twice"
    for row in found.to_pylist():
        there[str({**row, "op": ""})] += 1 if row["op"] == "+I" else -1
    assert min(there.values()) >= 0, "what never came is taken back"
    return Counter({row.replace("'op': '', ", ""): number for row, number in there.items() if number})


# --- proofs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[str, Killed]:
    """The jobs by kind, killed some times and then run to their ends."""
    found = {}
    for kinds in TOGETHER:
        folder = tmp_path_factory.mktemp("killed")
        write_events(folder, seed=8)
        job = Killed("tests.spark_application", folder, kinds, kinds)
        job.run(KILLS)
        found |= dict.fromkeys(kinds, job)
    return found


@pytest.fixture(scope="module")
def unbroken(spark, tmp_path_factory) -> Path:
    """The same jobs in one run each."""
    folder = tmp_path_factory.mktemp("unbroken")
    write_events(folder, seed=8)
    for kinds in TOGETHER:
        for _ in range(5):
            if run_to_its_end(spark, folder, kinds):
                break
    return folder


def run_to_its_end(spark: SparkSession, folder: Path, kinds: Sequence[str]) -> bool:
    """Run a job in this process; returns False where the machine was too busy to begin."""
    running = streams(spark, folder, kinds, to=folder)
    try:
        to_the_end(running, folder)
    except StreamingQueryException as error:
        if TOO_SLOW not in str(error):
            raise
        return False
    finally:
        for stream in running.values():
            stream.stop()
    return True


@pytest.fixture(scope="module")
def events(unbroken) -> pa.Table:
    """All events."""
    return pq.read_table(unbroken / "recording.parquet")


@pytest.fixture(scope="module")
def in_time(unbroken, events) -> pa.Table:
    """The events that come before the watermark passes them."""
    late = written(unbroken / "late")
    assert len(late)
    assert set(late["reason"].to_pylist()) == {"late"}
    return events.filter(pc.invert(pc.is_in(events[ID], late[ID].combine_chunks())))


def test_an_unbroken_run_finds_what_a_local_one_does(unbroken, in_time):
    expected = QUERY.match(in_time, bind=ID).to_arrow()
    assert len(expected) > 100
    assert rows(as_here(unbroken / EXACT, expected.schema)) == rows(expected)
    by_errors = {str(errors): number for errors, number in QUERY.match(in_time).count_by_errors().items()}
    assert outcome(unbroken, COUNTS) == Counter(by_errors)
    together = desk(bind=ID).match(in_time).table()
    assert len({*together["query"].to_pylist()}) == 9
    assert rows(as_here(unbroken / SET, together.schema)) == rows(together)
    out = RULES.run(in_time, bind=ID)
    assert len(written(unbroken / OF_RULES)) == sum(map(len, out.values())) > 100
    assert len(written(unbroken / "changes" / "seen")) == len(out.changes["seen"]) > 100
    assert len(written(unbroken / "calls")) == len(out.calls) > 10
    assert outcome(unbroken, EARLY).total() == len(expected)


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        *((kind, kind) for kind in (EXACT, SET, OF_RULES, EARLY, COUNTS)),
        (EXACT, "late"), (OF_RULES, "changes/seen"), (OF_RULES, "calls"),
    ],
)  # fmt: skip
def test_nothing_is_lost_and_nothing_comes_twice(killed, unbroken, kind, table):
    assert outcome(killed[kind].folder, table) == outcome(unbroken, table)


@pytest.mark.parametrize("kind", [kind for kinds in TOGETHER for kind in kinds])
def test_each_kill_meets_each_kind_at_work(killed, kind):
    assert killed[kind].kills == killed[kind].at_work(kind) == KILLS


@pytest.mark.parametrize("kind", [SHED, LEARNING])
def test_under_a_budget_nothing_comes_twice(killed, events, kind):
    exact = QUERY.match(events, bind=ID).to_arrow()
    found = rows(as_here(killed[kind].folder / kind, exact.schema))
    assert not found - rows(exact)
    assert 0 < found.total() < len(exact)


def test_what_is_learned_is_learned_from_each_event_once(killed, unbroken, events):
    def learned(folder: Path) -> int:
        saved = (folder / f"{LEARNING}.checkpoint" / CONTROL / LEARNER).read_bytes()
        return KIND.unpack(saved).head["caller"]["events"]

    assert 0.9 * len(events) < learned(killed[LEARNING].folder) == learned(unbroken) <= len(events)
