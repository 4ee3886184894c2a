"""Runs over a file that grows, killed at any moment: their output is that of a run that nobody has killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from random import Random

import pytest

from tests.cases import FULL
from tests.command_line import acep
from tests.live_kills import EVENTS, FOUND, QUERIES, REJECTS, arguments, lasting, lines
from tests.processes import ROOT, as_started

KILLS = 15 if FULL else 2
DICE = Random() if FULL else Random(3)
HEADER = "ts,type,k,x\n"


def run(folder, name, *more):
    """A process that goes on with the run."""
    command = [sys.executable, "-m", "tests.live_kills", str(folder), name, json.dumps(more)]
    environment = as_started()
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)


def grow(folder, rows, seconds):
    """Write rows piece by piece, some of which end within a line, for so long; what is left is returned."""
    text, until = "".join(rows), time.monotonic() + seconds
    with (folder / EVENTS).open("a") as file:
        while text and time.monotonic() < until:
            size = DICE.randrange(1, 4000)
            file.write(text[:size])
            file.flush()
            text = text[size:]
            time.sleep(0.003)
    return [text]


def check(folder, name):
    """All results, and all rejected rows, once, in the order of a run over the whole file."""
    acep(*arguments(folder, name, "whole.csv"), "--until-idle", "0 s")
    assert (folder / FOUND).read_text() == (folder / "whole.csv").read_text()
    assert (folder / REJECTS).read_text() == (folder / f"whole-{REJECTS}").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES if FULL else ["runs"])
def test_runs_that_are_killed_write_each_result_once(tmp_path, name):
    (tmp_path / EVENTS).write_text(HEADER)
    left = lines(6000 * KILLS)
    for _ in range(KILLS):
        process = run(tmp_path, name)
        begun = time.monotonic()
        while not (tmp_path / FOUND).exists() and process.poll() is None and time.monotonic() - begun < 60:
            left = grow(tmp_path, left, 0.05)
        left = grow(tmp_path, left, DICE.random() * 0.8)
        process.kill()
        _, said = process.communicate()
        assert process.returncode == -9, said.decode()
    grow(tmp_path, left, 60)
    acep(*arguments(tmp_path, name), *lasting(tmp_path), "--until-idle", "0 s", "--finish")
    check(tmp_path, name)


@pytest.mark.parametrize("name", QUERIES)
def test_runs_that_fail_anywhere_write_each_result_once(tmp_path, name, monkeypatch):
    """The same in one process: it fails at a random step of writing, without a chance to do anything more."""
    from acep_approx.events.writing.outfile import GrowingFile
    from acep_approx.live.checkpoint import CheckpointFolder

    class Killed(BaseException):
        """As if the process was gone."""

    dice, left = Random(name), [5]

    def step():
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    write, length = CheckpointFolder.write, GrowingFile.length
    monkeypatch.setattr(CheckpointFolder, "write", lambda *given: (step(), write(*given), step()))
    monkeypatch.setattr(GrowingFile, "length", lambda self: (step(), length(self), step())[1])
    monkeypatch.setattr("acep_approx.events.live.growing.BLOCK_BYTES", 700)
    (tmp_path / EVENTS).write_text(HEADER + "".join(lines(500)))
    times = 0
    while True:
        left[0] = dice.randrange(1, 20)
        try:
            acep(*arguments(tmp_path, name), *lasting(tmp_path), "--until-idle", "0 s", "--finish")
            break
        except Killed:
            times += 1
        except AssertionError as error:
            assert "ACEP-U144" in str(error)
            break
    left[0] = 0
    monkeypatch.undo()
    assert times > 2
    check(tmp_path, name)
