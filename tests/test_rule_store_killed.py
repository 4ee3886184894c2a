"""A run that is killed, or a machine that fails: the file holds exactly one checkpoint, whatever was under way."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from acep_approx.errors import StoreError
from acep_approx.rules.durable.store import Durable
from tests.cases import FULL, cases
from tests.patience import until
from tests.processes import ROOT
from tests.rule_stores import PROGRAM, RING, SUMS, check_whole, checkpoint_of, content_of

KILLS = 20 if FULL else 4
DICE = Random() if FULL else Random(1)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "store.db"


def opened(place: Path) -> Durable:
    return Durable(place, (RING, SUMS), PROGRAM)


@contextmanager
def run(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that makes checkpoints; killed in the end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.rule_stores", str(place)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        _, said = process.communicate()
        assert process.returncode == -9, said.decode()


def committed(place: Path) -> int:
    """The number of the last checkpoint, as any tool reads it; all else that it reads must be of the same one."""
    if not place.exists():
        return 0
    connection = sqlite3.connect(place, timeout=60, isolation_level=None)
    try:
        connection.execute("BEGIN")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'acep_checkpoint'").fetchall():
            return 0
        number: int = connection.execute("SELECT offset FROM acep_checkpoint").fetchone()[0]
        read = {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in ("ring", "sums")}
        assert read == content_of(number)
        return number
    finally:
        connection.close()


def wait_for(process: subprocess.Popen[bytes], place: Path, number: int) -> int:
    """Wait until so many checkpoints have been made, and return how many."""

    def enough() -> int:
        assert process.poll() is None, "it has ended"
        found = committed(place)
        return found if found >= number else 0

    return until(enough, pause=0.005)


def test_a_run_that_is_killed_leaves_exactly_one_checkpoint(place):
    """Killed while it starts, commits, folds the log, or hands on; what is left of the log is read by the next one."""
    logs = 0
    for number in range(KILLS):
        before = committed(place)
        with run(place) as process:
            if number % 4 == 3:
                time.sleep(DICE.uniform(0, 1))  # perhaps before it has opened the file
            else:
                wait_for(process, place, before + 1)
                with pytest.raises(StoreError, match="ACEP-R204"):
                    opened(place)
                time.sleep(DICE.uniform(0, 0.2))
        logs += place.with_name("store.db-wal").exists()
        if DICE.random() < 0.5:  # or else the next process finds the file as it was left
            with opened(place) as store:
                assert check_whole(store) >= before
    assert committed(place) > KILLS // 2
    assert logs


def test_others_see_whole_checkpoints_while_a_run_writes_and_no_other_run_comes_in(place):
    """A transaction is followed by another within microseconds; it does not help to ask just then."""
    with run(place) as process:
        seen = [wait_for(process, place, 1)]
        while seen[-1] < seen[0] + 200:
            seen.append(committed(place))
            with pytest.raises(StoreError, match="ACEP-R204"):
                opened(place)
            assert process.poll() is None
    assert seen == sorted(seen)
    assert len({*seen}) > 2


def test_a_machine_that_fails_leaves_exactly_one_checkpoint(place, tmp_path):
    """The log was written up to any byte, or what came last was not: the checkpoints before are there."""
    store = opened(place)
    ends = []
    for number in range(1, 13):
        store.commit(checkpoint_of(number))
        ends.append(place.with_name("store.db-wal").stat().st_size)
    content = place.with_name("store.db-wal").read_bytes()
    for number in range(cases(200)):
        copy = tmp_path / f"copy{number}.db"
        shutil.copy(place, copy)
        length = DICE.choice([*ends, DICE.randrange(len(content) + 1)])
        log = bytearray(content[:length])
        if length and DICE.random() < 0.3:
            log[-min(length, DICE.randrange(1, 9000)) :] = bytes(min(length, 4))
        copy.with_name(copy.name + "-wal").write_bytes(log)
        with opened(copy) as other:
            whole = sum(end <= len(log) for end in ends)
            found = last_whole(other)
            assert found <= whole
            assert found == whole or len(log) != length or log != content[:length]
        copy.unlink()
    store.close()


def last_whole(store: Durable) -> int:
    """The number of the one checkpoint that a store holds, of which nothing was taken."""
    last = store.load()
    if last is None:
        return 0
    assert [kept.number for kept in store.take_matches()] == [*range(1, last.offset + 1)]
    assert store.pending_calls()["id"].to_pylist() == [f"warn:{n}:0" for n in range(1, last.offset + 1)]
    store.taken(range(1, (last.offset - 1) // 5 * 5 + 1))
    store.delivered([f"warn:{n}:0" for n in range(1, last.offset)])
    return check_whole(store)


def test_the_lock_goes_with_the_process_and_not_with_those_it_has_started(place):
    """A child that outlives the run does not keep the file from the next one."""
    code = (
        "import os, sys, time; from tests.rule_stores import *\n"
        "store = Durable(sys.argv[1], (RING, SUMS), PROGRAM); store.commit(checkpoint_of(1))\n"
        "if os.fork() == 0: time.sleep(900)\n"
        "print(os.getpid(), flush=True); time.sleep(900)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(place)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StoreError, match="ACEP-R204"):
            opened(place)
        process.kill()
        process.wait()
        with opened(place) as store:
            assert check_whole(store) == 1
    finally:
        os.killpg(process.pid, 9)
        process.stdout.close()
