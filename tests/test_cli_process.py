"""The program ``acep`` as a process: pipes, signals, terminals, full disks."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from acep_approx import compile_query
from tests.patience import PATIENCE, until
from tests.processes import as_started

ROOT = Path(__file__).parent.parent
AB = "PATTERN SEQ(A a, B b) WITHIN 20"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """An empty folder to be in, with a file of events."""
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text("ts,type\n1,A\n2,B\n", encoding="utf-8")


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """The kernels are in their cache: a program that has to compile them says so on stderr."""
    events = [{"ts": i, "type": "AB"[i % 2]} for i in range(20_000)]
    next(iter(compile_query(AB.replace("20", "200")).match(events)))


def program(*arguments: str, **options) -> subprocess.Popen[str]:
    """Start the program itself."""
    environment = as_started(**options.pop("env", {}))
    command = [sys.executable, "-m", "acep_approx.cli.main", *arguments]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, env=environment, text=True, **pipes)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is a thing of Linux")
def test_a_full_disk():
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = program("run", AB, "events.csv", stdout=full)
        _, words = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75
    assert words.startswith("error ACEP-E001")
    assert words.count("\n") == 1


@pytest.fixture
def many(tmp_path) -> Path:
    """Events with a million matches: far more than a pipe holds."""
    path = tmp_path / "many.csv"
    path.write_text("ts,type\n" + "".join(f"{i},{'AB'[i % 2]}\n" for i in range(20_000)), encoding="utf-8")
    return path


def test_a_reader_that_has_seen_enough_is_no_error(many):
    with program("run", AB.replace("20", "200"), str(many)) as process:
        assert json.loads(process.stdout.readline())["errors"] == 0
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=PATIENCE) == 0


def test_results_are_written_while_events_come_and_an_interrupted_run_leaves_nothing():
    process = writing()
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert words == "interrupted\n"
    assert [entry.name for entry in Path().iterdir()] == ["events.csv"]


def writing(*more: str) -> subprocess.Popen[str]:
    """A run that has written something to ``out.jsonl``, and waits for more events."""
    arguments = ("run", AB.replace("20", "1"), "-", "-o", "out.jsonl", "--input-format", "jsonl", *more)
    process = program(*arguments, stdin=subprocess.PIPE)
    process.stdin.write("".join(json.dumps({"ts": i, "type": "AB"[i % 2]}) + "\n" for i in range(400_000)))
    process.stdin.flush()
    part = Path("out.jsonl.part")
    until(lambda: part.exists() and part.stat().st_size)
    return process


def test_what_a_killed_run_left_is_replaced_and_the_next_run_says_so():
    kept = ("--on-late", "skip", "--late", "late.csv", "--on-malformed", "skip", "--rejects", "bad.jsonl")
    with writing(*kept) as process:
        process.kill()
    left = sorted(str(part) for part in Path().glob("*.part"))
    assert left == ["bad.jsonl.part", "late.csv.part", "out.jsonl.part"]
    _, words = program("run", AB, "events.csv", "-o", "out.jsonl", *kept, "-q").communicate(timeout=PATIENCE)
    said = [f"an earlier run did not end: its unfinished file {part} is replaced" for part in left]
    assert sorted(words.splitlines()) == said
    assert json.loads(Path("out.jsonl").read_text(encoding="utf-8"))["b.ts"] == 2
    assert Path("late.csv").read_text(encoding="utf-8") == "row,ts,type\n"
    assert not list(Path().glob("*.part"))
    _, words = program("run", AB, "events.csv", "-o", "out.jsonl", *kept, "-q").communicate(timeout=PATIENCE)
    assert words == ""


def test_two_runs_do_not_write_one_file():
    with writing() as process:
        _, words = program("run", AB, "events.csv", "-o", "out.jsonl").communicate(timeout=PATIENCE)
        assert words.startswith("error ACEP-U025: another run is writing 'out.jsonl'")
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        process.stderr.read()
    assert len(Path("out.jsonl").read_text(encoding="utf-8").splitlines()) == 200_000


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints on a terminal that is its stderr; stdout goes nowhere."""
    import pty

    leader, follower = pty.openpty()
    environment = {"TERM": "xterm", "COLUMNS": "100", **environment}
    process = program(*arguments, stdout=subprocess.DEVNULL, stderr=follower, env=environment)
    os.close(follower)
    printed = b""
    with io.FileIO(leader) as screen:
        try:
            while piece := screen.read(65536):
                printed += piece
        except OSError:  # how Linux says that the other side is closed
            pass
    process.wait(timeout=PATIENCE)
    return printed.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_progress_and_colours_are_for_terminals(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "matching" in on_terminal("run", AB, "events.csv")
    assert on_terminal("run", AB, "events.csv", "--quiet") == ""
    assert "\x1b[1;31merror" in on_terminal("explain", "@nowhere")
    plain = on_terminal("explain", "@nowhere", NO_COLOR="1")
    assert "error" in plain
    assert "\x1b[1;31m" not in plain


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_people_are_told_once_how_row_numbers_are_shown():
    assert on_terminal("run", AB, "events.csv").count("row numbers: --bind row") == 1
    for words in (("--quiet",), ("--bind", "row"), ("--output", "points")):
        assert "--bind row" not in on_terminal("run", AB, "events.csv", *words)
    assert "--bind row" not in program("run", AB, "events.csv").communicate(timeout=PATIENCE)[1]
