"""Files that are written: whole, by one writer at a time, whatever happens to the writer."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from acep_approx import compile_query
from acep_approx.errors import UsageError
from acep_approx.events.writing.outfile import OutFile, whole_file
from tests.processes import as_started

ROOT = Path(__file__).parent.parent
KILLED = """
import os
from pathlib import Path
from acep_approx.events.writing.outfile import OutFile
{}
os.kill(os.getpid(), 9)
"""


def left_by_a_killed_run(folder: Path, do: str) -> None:
    """Let a process do something and die at once."""
    environment = as_started()
    subprocess.run([sys.executable, "-c", KILLED.format(do)], cwd=folder, env=environment, check=False)


def test_what_a_killed_run_left_is_replaced_and_told(tmp_path, caplog):
    left_by_a_killed_run(tmp_path, "file = OutFile(Path('found')).sink; file.write(b'x' * 999); file.flush()")
    part = tmp_path / "found.part"
    assert part.stat().st_size == 999
    with caplog.at_level(logging.WARNING), whole_file(tmp_path / "found") as sink:
        sink.write(b"new")
    assert (tmp_path / "found").read_bytes() == b"new"
    assert not part.exists()
    assert [f"{part} is replaced" in message for message in caplog.messages] == [True]


def test_nothing_is_told_where_nothing_was_left(tmp_path, caplog):
    for content in (b"one", b"two"):
        with whole_file(tmp_path / "found") as sink:
            sink.write(content)
    assert not caplog.messages


def test_a_file_has_one_writer(tmp_path):
    with whole_file(tmp_path / "found") as sink:
        sink.write(b"first")
        with pytest.raises(UsageError, match="ACEP-U025"):
            OutFile(tmp_path / "found")
        sink.write(b" writer")
    assert (tmp_path / "found").read_bytes() == b"first writer"
    OutFile(tmp_path / "found").discard()
    assert (tmp_path / "found").read_bytes() == b"first writer"
    assert [entry.name for entry in tmp_path.iterdir()] == ["found"]


def test_a_writer_that_fails_leaves_the_file_that_was_there(tmp_path):
    (tmp_path / "found").write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(tmp_path / "found") as sink:
        sink.writelines([b"new" * 1_000_000, None])
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("found", b"old")]


def test_of_many_writers_each_is_refused_or_leaves_a_whole_file(tmp_path):
    place, begin = tmp_path / "found", threading.Barrier(8)
    refused, written = [], []

    def work(number: int) -> None:
        begin.wait()
        for _ in range(100):
            try:
                with whole_file(place) as sink:
                    sink.write(bytes([number]) * 100)
                    sink.flush()
                    sink.write(bytes([number]) * 100)
                written.append(number)
            except UsageError as error:
                refused.append(error.code)
            else:
                assert len(set(found := place.read_bytes())) == 1
                assert len(found) == 200

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) + len(refused) == 800  # none failed in another way
    assert written
    assert set(refused) <= {"ACEP-U025"}


def test_a_special_file_is_written_as_it_is():
    with whole_file(Path("/dev/null")) as sink:
        sink.write(b"x")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_late_events_and_rejects_take_their_names_when_they_are_whole(tmp_path, suffix):
    (tmp_path / "events.csv").write_text("ts,type\n1,A\n5,B\n2,A\nx\n6,B\n", encoding="utf-8")
    late, rejects = tmp_path / f"late.{suffix}", tmp_path / "bad.jsonl"
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 9")
    how = {"on_malformed": "skip", "on_late": "skip", "rejects": rejects, "late": late}
    matches = query.match(tmp_path / "events.csv", **how)
    tables = matches.tables()
    next(tables)
    next(tables)
    assert not late.exists()
    assert not rejects.exists()
    with pytest.raises(UsageError, match="ACEP-U025"):
        query.match(tmp_path / "events.csv", **how).to_arrow()
    rest = list(tables)
    assert late.exists()
    assert rejects.read_text().count("\n") == 1
    assert matches.source.late.count == 1
    assert not list(tmp_path.glob("*.part"))
    assert sum(table.num_rows for table in rest) == 0
