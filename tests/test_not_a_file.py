"""A link, a pipe or a folder where a file was expected: nothing is overwritten, and nothing waits for ever."""

from __future__ import annotations

import os
import stat
import time

import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, compile_query
from acep_approx.errors import DataError, UsageError
from acep_approx.events import follow
from acep_approx.events.live.growing import FollowedFolder
from acep_approx.events.writing.outfile import whole_file
from acep_approx.live.checkpoint import LOCK, NAME, CheckpointFolder
from history.errors import HistoryError
from history.files import open_plain, replace_file
from tests.command_line import acep
from tests.live_steps import rows

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
RUNS = compile_query(QUERY, engine="runs")
EVENTS = "ts,type\n1,A\n2,B\n"


def link(place, to):
    place.symlink_to(to)


def hard_link(place, to):
    os.link(to, place)


def dangling(place, to):
    place.symlink_to(to.with_name("nowhere"))


def circle(place, _to):
    place.symlink_to(place.name)


def pipe(place, _to):
    os.mkfifo(place)


def folder(place, _to):
    place.mkdir()


ANYTHING = [link, hard_link, dangling, circle, pipe, folder]


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "victim"
    file.write_text("precious")
    return file


@pytest.mark.parametrize("make", ANYTHING)
def test_a_part_file_that_is_none_of_ours_is_left_alone(make, tmp_path, victim):
    make(tmp_path / "found.csv.part", victim)
    with pytest.raises(UsageError) as caught, whole_file(tmp_path / "found.csv") as sink:
        sink.write(b"x")
    assert caught.value.code == "ACEP-U190"
    assert victim.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "found.csv").exists()


@pytest.mark.parametrize("option", ["-o", "--page", "--rejects"])
def test_it_is_so_for_every_output(option, tmp_path, victim, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(EVENTS + "x\n")
    link(tmp_path / "out.jsonl.part", victim)
    done = acep("run", QUERY, "in.csv", "--on-malformed", "skip", option, "out.jsonl", code=2)
    assert "ACEP-U190" in done.stderr
    assert victim.read_text() == "precious"


def test_a_file_that_is_replaced_keeps_its_rights_and_a_new_one_those_of_the_mask(tmp_path):
    old = tmp_path / "old"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o077)
    try:
        for name in ("old", "new"):
            with whole_file(tmp_path / name) as sink:
                sink.write(b"x")
        replace_file(tmp_path / "state", b"x")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("old", "new", "state")] == [0o640, 0o600, 0o600]


def learned():
    return HistoryGraph(RUNS).fit(pa.table({"ts": [*range(40)], "type": ["A", "B"] * 20}))


def test_a_history_has_the_rights_of_the_mask(tmp_path):
    before = os.umask(0o077)
    try:
        learned().save(tmp_path / "past")
    finally:
        os.umask(before)
    everything = [tmp_path / "past", *(tmp_path / "past").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in everything} == {0}
    assert len(everything) > 4


def test_a_draft_is_never_written_through_a_link(tmp_path, victim, monkeypatch):
    monkeypatch.setattr("history.files.secrets.token_hex", lambda _: "0")
    link(tmp_path / f".latest-{os.getpid()}-0", victim)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "latest", b"x")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("make", [link, hard_link, dangling, circle, pipe])
def test_checkpoints_are_not_written_through_links(make, tmp_path, victim):
    place = tmp_path / "cp"
    place.mkdir()
    make(place / f".{NAME}", victim)
    with CheckpointFolder(place) as checkpoints:
        from acep_approx.live.checkpoint import Checkpoint

        checkpoints.write(Checkpoint({}, b"x", {"offset": 1}, {}))
        assert checkpoints.read().state == b"x"
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("make", ANYTHING)
def test_a_lock_that_is_no_file_is_refused_at_once(make, tmp_path, victim):
    (tmp_path / "cp").mkdir()
    make(tmp_path / "cp" / LOCK, victim)
    with pytest.raises(UsageError) as caught:
        CheckpointFolder(tmp_path / "cp")
    assert caught.value.code == "ACEP-U143"


@pytest.mark.parametrize("make", [pipe, folder, circle])
def test_a_checkpoint_that_is_no_file_is_damaged(make, tmp_path, victim):
    (tmp_path / "cp").mkdir()
    make(tmp_path / "cp" / NAME, victim)
    with CheckpointFolder(tmp_path / "cp") as checkpoints, pytest.raises(DataError) as caught:
        checkpoints.read()
    assert caught.value.code == "ACEP-D062"


@pytest.mark.parametrize("name", ["LATEST", "*/manifest.json", "*/*.parquet", "*/*.npz"])
def test_a_history_of_which_something_is_a_pipe_is_damaged(name, tmp_path):
    learned().save(tmp_path / "past")
    place = next((tmp_path / "past").glob(name))
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(HistoryError) as caught:
        HistoryGraph.load(tmp_path / "past", RUNS)
    assert caught.value.code == "ACEP-H004"


def test_a_plain_file_is_opened_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for what in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(OSError, match=r"no plain file|Is a directory"):
            open_plain(what)


# --- what is followed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pipe, folder])
def test_a_followed_file_that_becomes_something_else_ends_the_run(make, tmp_path, victim):
    place = tmp_path / "in.csv"
    place.write_text(EVENTS)

    def changed():
        place.rename(tmp_path / "in.csv.1")
        make(place, victim)

    with pytest.raises(DataError, match="no file, but a pipe") as caught:
        rows(follow(place), changed)
    assert caught.value.code == "ACEP-D190"


def test_a_followed_file_that_becomes_a_circle_of_links_ends_the_run(tmp_path):
    place = tmp_path / "in.csv"
    place.write_text(EVENTS)

    def changed():
        place.rename(tmp_path / "in.csv.1")
        circle(place, None)

    with pytest.raises(DataError) as caught:
        rows(follow(place), changed)
    assert caught.value.code in ("ACEP-D013", "ACEP-D190")


@pytest.mark.parametrize("make", [pipe, link, folder])
def test_a_file_of_a_folder_that_becomes_something_else_is_not_read(make, tmp_path, victim):
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.csv").write_text(EVENTS)
    (source / "2.csv").write_text(EVENTS)
    victim.write_text("ts,type\n7,SECRET\n")
    followed = follow(source, until_idle=0)
    followed.settle(lambda schema: schema)
    batches = followed.batches()
    next(batches)  # it knows of the second one
    (source / "2.csv").unlink()
    make(source / "2.csv", victim)
    with pytest.raises(DataError) as caught:
        list(batches)
    assert caught.value.code == "ACEP-D190"


def test_links_out_of_a_folder_are_told_counted_and_not_followed(tmp_path, caplog):
    source, outside = tmp_path / "in", tmp_path / "outside"
    (source / "below").mkdir(parents=True)
    outside.mkdir()
    (outside / "o.csv").write_text("ts,type\n9,OUT\n")
    (source / "below" / "b.csv").write_text("ts,type\n2,IN\n")
    (source / "1.csv").write_text("ts,type\n1,A\n")
    (source / "2.csv").symlink_to("below/b.csv")
    (source / "3.csv").symlink_to(outside / "o.csv")
    (source / "4.csv").symlink_to("../outside/o.csv")
    (source / "5.csv").symlink_to("5.csv")
    (source / "6.csv").symlink_to("late.data")

    def comes():
        (source / "late.data").write_text("ts,type\n3,LATE\n")

    found = rows(follow(source), comes, lambda: None)
    assert [row["type"] for row in found] == ["A", "IN", "LATE"]
    told = [one for one in caplog.messages if "leads out of" in one]
    assert sorted(one.partition(" ")[0] for one in told) == ["3.csv", "4.csv"]
    assert told[-1].endswith("(2 so far)")


def test_a_look_at_a_folder_costs_what_has_changed(tmp_path, monkeypatch):
    for number in range(50):
        (tmp_path / f"{number:02}.csv").write_text(f"ts,type\n{number},A\n")
    old = time.time() - 60
    os.utime(tmp_path, (old, old))
    looks = []
    scan, module = os.scandir, "acep_approx.events.live.growing"
    monkeypatch.setattr(f"{module}.os.scandir", lambda path: looks.append(1) or scan(path))

    def comes():
        (tmp_path / "50.csv").write_text("ts,type\n50,A\n")
        os.utime(tmp_path, (old + 1, old + 1))

    idle = [lambda: None] * 20
    assert [row["ts"] for row in rows(follow(tmp_path), *idle, comes, *idle)] == [*range(51)]
    assert len(looks) == 2


def test_a_file_that_is_gone_before_it_is_read_may_come_back(tmp_path):
    for name in ("1.csv", "2.csv", "3.csv"):
        (tmp_path / name).write_text("")
    folder = FollowedFolder(tmp_path)
    assert folder.after("") == "1.csv"
    assert folder.after("1.csv") == "2.csv"
    (tmp_path / "2.csv").unlink()
    folder.forget("2.csv")
    assert folder.after("1.csv") == "3.csv"
    (tmp_path / "2.csv").write_text("")
    assert folder.after("1.csv") == "2.csv"


def test_files_that_come_in_between_are_read_in_their_place(tmp_path):
    (tmp_path / "1.csv").write_text("")
    (tmp_path / "5.csv").write_text("")
    folder = FollowedFolder(tmp_path)
    assert folder.after("1.csv") == "5.csv"
    (tmp_path / "3.csv").write_text("")
    assert folder.after("1.csv") == "3.csv"
