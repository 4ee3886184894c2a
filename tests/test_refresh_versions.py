"""The newest version of a history, as workers read it while others write: whole ones only, whatever happens."""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from acep_approx import compile_query
from acep_approx.api import Query
from acep_approx.training.history_graph import HistoryGraph, newest
from history.errors import HistoryError
from history.store import point_to_newest, pointed, prune
from history.versions import LEFT_OVER, versions
from tests.cases import FULL
from tests.patience import until

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 20"
KILLS = 6 if FULL else 2
SAVER = """
import sys
from history import store
stored = store.load(sys.argv[1])
print("ready", flush=True)
while True:
    store.save(stored.graph, sys.argv[1], stored.fingerprint, new_version=True, notes=stored.notes)
"""


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY)


@pytest.fixture(scope="module")
def known(query: Query) -> HistoryGraph:
    return HistoryGraph(query).fit([{"ts": t, "type": "ABC"[t % 3], "x": t * 7 % 10} for t in range(120)])


@pytest.fixture
def home(known: HistoryGraph, tmp_path: Path) -> Path:
    """Three versions."""
    for _ in range(3):
        known.save(tmp_path / "past", new_version=True)
    return tmp_path / "past"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the logger of histories warned of."""
    return [r.getMessage() for r in caplog.records if (r.name, r.levelno) == ("acep_approx.history", logging.WARNING)]


def cut(file: Path) -> None:
    """Leave the first half of a file."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


BREAKS: list[Callable[[Path], object]] = [
    lambda home: cut(home / "v0003" / "vertices.parquet"),
    lambda home: cut(home / "v0003" / "manifest.json"),
    lambda home: (home / "v0003" / "maps.npz").unlink(),
    lambda home: shutil.rmtree(home / "v0003"),
    lambda home: (home / "LATEST").write_text("v00"),
    lambda home: (home / "LATEST").unlink(),
]


def test_a_version_is_loaded_once_and_a_new_one_at_the_next_call(
    query: Query, known: HistoryGraph, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = newest(home, query)
    assert first.version_ == 3
    assert newest(home, query) is first
    assert newest(home, compile_query(QUERY)) is first  # another object of the same query
    known.save(home, new_version=True)
    second = newest(home, query)
    assert (second.version_, newest(home, query)) == (4, second)
    assert not warnings(caplog)


def test_a_history_learned_anew_in_the_same_place_is_another_one(query: Query, known: HistoryGraph, home: Path) -> None:
    first = newest(home, query)
    shutil.rmtree(home)
    for _ in range(3):
        known.save(home, new_version=True)
    os.utime(home / "v0003" / "manifest.json", ns=(1, 1))  # whatever the clock of the file system
    assert newest(home, query) is not first


@pytest.mark.parametrize("damage", BREAKS)
@pytest.mark.parametrize("has_one", [True, False])
def test_what_cannot_be_read_is_warned_of_once_and_the_last_good_one_serves(
    damage: Callable[[Path], object],
    has_one: bool,
    query: Query,
    known: HistoryGraph,
    home: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    points_elsewhere = damage in BREAKS[4:]
    if has_one:
        pointer = home / "LATEST"
        pointer.write_text("v0001\n")
        held = newest(home, query)
        pointer.write_text("v0003\n")
    damage(home)
    served = newest(home, query)
    assert newest(home, query) is served
    if has_one:
        assert served is held
    else:
        assert served.version_ == (3 if points_elsewhere else 2)
    assert len(warnings(caplog)) == 1
    assert warnings(caplog)[0].startswith(("ACEP-H004", "ACEP-H001"))
    assert f"version {served.version_} is used" in warnings(caplog)[0]
    if not points_elsewhere:
        known.save(home / "other")  # the next good version is taken, without another word
        shutil.copytree(home / "other" / "v0001", home / "v0004")
        (home / "LATEST").write_text("v0004\n")
        assert newest(home, query).version_ == 4
        assert len(warnings(caplog)) == 1


def test_of_several_damaged_versions_the_newest_whole_one_serves(
    query: Query, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cut(home / "v0003" / "maps.npz")
    cut(home / "v0002" / "manifest.json")
    assert newest(home, query).version_ == 1
    assert len(warnings(caplog)) == 1


def test_where_the_pointer_is_older_than_any_version_that_is_left_the_next_one_serves(query: Query, home: Path) -> None:
    (home / "LATEST").write_text("v0001\n")  # as a shared disk may still have it
    shutil.rmtree(home / "v0001")
    assert newest(home, query).version_ == 2


def test_without_any_good_version_it_is_refused(query: Query, home: Path, tmp_path: Path) -> None:
    for version in versions(home):
        cut(home / f"v{version:04d}" / "manifest.json")
    with pytest.raises(HistoryError, match="ACEP-H004"):
        newest(home, query)
    with pytest.raises(HistoryError, match="ACEP-H001"):
        newest(tmp_path / "nothing", query)


def test_a_history_of_another_query_is_refused_at_once_even_where_a_good_one_is_held(
    query: Query, home: Path, tmp_path: Path
) -> None:
    other = compile_query(QUERY.replace("b.x > a.x", "b.x < a.x"))
    with pytest.raises(HistoryError, match="ACEP-H002"):
        newest(home, other)
    newest(home, query)
    of_other = HistoryGraph(other).fit([{"ts": t, "type": "ABC"[t % 3], "x": t * 7 % 10} for t in range(120)])
    of_other.save(tmp_path / "other")
    shutil.copytree(tmp_path / "other" / "v0001", home / "v0004")
    (home / "LATEST").write_text("v0004\n")
    with pytest.raises(HistoryError, match="ACEP-H002"):
        newest(home, query)


def test_where_a_writer_was_killed_before_it_pointed_to_its_first_version_the_next_one_is_written(
    query: Query, known: HistoryGraph, tmp_path: Path
) -> None:
    home = tmp_path / "past"
    known.save(home, new_version=True)
    (home / "LATEST").unlink()
    point_to_newest(home)
    known.save(home, new_version=True)
    assert (pointed(home), versions(home)) == (2, [2, 1])
    other = HistoryGraph(compile_query(QUERY.replace("b.x > a.x", "b.x < a.x")))
    other.fit([{"ts": t, "type": "ABC"[t % 3], "x": t * 7 % 10} for t in range(120)])
    (home / "LATEST").unlink()
    point_to_newest(home)
    with pytest.raises(HistoryError, match="ACEP-H002"):
        other.save(home, new_version=True)


def test_pruning_keeps_the_newest_and_that_which_holds(query: Query, known: HistoryGraph, home: Path) -> None:
    for _ in range(3):
        known.save(home, new_version=True)
    (home / "LATEST").write_text("v0002\n")
    old, young = home / ".draft-old", home / ".draft-young"
    for draft in (old, young):
        draft.mkdir()
    os.utime(old, (time.time() - 2 * LEFT_OVER,) * 2)
    assert prune(home, keep=2) == [4, 3, 1]
    assert versions(home) == [6, 5, 2]
    assert sorted(entry.name for entry in home.iterdir() if entry.name.startswith(".")) == [young.name]
    assert newest(home, query).version_ == pointed(home) == 2
    (home / "LATEST").write_text("?")
    assert prune(home, keep=0) == []


def test_a_writer_that_is_killed_at_any_moment_leaves_whole_versions(
    query: Query, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def new_from(number: int) -> int:
        seen.append(newest(home, query).version_)
        return seen[-1] if seen[-1] >= number else 0

    dice = random.Random(6)
    seen = [newest(home, query).version_]
    for _ in range(KILLS):
        saver = subprocess.Popen([sys.executable, "-c", SAVER, str(home)], stdout=subprocess.PIPE)
        assert saver.stdout is not None
        assert saver.stdout.readline() == b"ready\n"
        more = seen[-1] + dice.randint(1, 3)
        until(partial(new_from, more), pause=0)
        time.sleep(dice.uniform(0, 0.05))  # so that it is killed anywhere within the next one
        saver.send_signal(signal.SIGKILL)
        saver.communicate()
        seen.append(newest(home, query).version_)
    assert seen == sorted(seen)
    assert seen[-1] >= 3 + KILLS
    assert not warnings(caplog)
    prune(home)
    assert newest(home, query).version_ == pointed(home)
