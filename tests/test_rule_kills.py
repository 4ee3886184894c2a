"""Rules whose process is killed, again and again: in the end all is as if it had never been."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import compile_rules
from tests.cases import FULL
from tests.patience import PATIENCE, until
from tests.processes import ROOT
from tests.rule_kills import (
    CALLS,
    LOG,
    ROOMS,
    RULES,
    SIZE,
    STORE,
    held,
    in_order,
    line_of_call,
    lines_of,
    stored,
    stream,
)

KILLS = 20 if FULL else 3
EVENTS = 500 * (KILLS + 1)
FATES = ("live", "call", "push")


class Unbroken:
    """The same rules in memory, in one piece: what the file must hold after so many events, and what is handed on."""

    def __init__(self) -> None:
        self.events = stream(EVENTS)
        self.lines: list[str] = []
        calls = dict.fromkeys(CALLS, lambda call: self.lines.append(line_of_call(call)))
        self.run = compile_rules(RULES).start(store={"room": ROOMS}, calls=calls)

    def after(self, offset: int) -> dict[str, list[tuple[Any, ...]]]:
        """The store after so many events, which are no fewer than before."""
        if offset > self.run.offset:
            self.lines += lines_of(self.run.push(self.events.slice(self.run.offset, offset - self.run.offset)))
        return held(self.run)

    def to_the_end(self) -> dict[str, list[tuple[Any, ...]]]:
        """The store after all events, and all windows."""
        self.after(EVENTS)
        self.lines += lines_of(self.run.finish())
        return held(self.run)


def begun(folder: Path, seed: int, fate: str) -> subprocess.Popen[bytes]:
    """A process that goes on with the rules."""
    command = [sys.executable, "-m", "tests.rule_kills", str(folder), str(seed), fate]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)


def lived(process: subprocess.Popen[bytes], folder: Path, dice: Random, *, is_killed: bool) -> bool:
    """Let a process run, or kill it a while after it has begun to write; returns whether it came to its end."""
    if is_killed:
        before = stored(folder / STORE)[0]
        until(lambda: process.poll() is not None or stored(folder / STORE)[0] > before)
        time.sleep(dice.uniform(0, 0.5))
        process.kill()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, -9), said.decode()
    return process.returncode == 0


def test_rules_that_are_killed_end_as_if_they_had_not_been(tmp_path):
    """Killed at any moment, at a call, and between a checkpoint and those who wait for its matches."""
    dice, unbroken = Random() if FULL else Random(3), Unbroken()
    (tmp_path / SIZE).write_text(str(EVENTS))
    kills, is_done = 0, False
    while not is_done:
        fate = FATES[kills % len(FATES)] if kills < KILLS else "live"
        process = begun(tmp_path, dice.randrange(10**6), fate)
        is_done = lived(process, tmp_path, dice, is_killed=fate == "live" and kills < KILLS)
        kills += not is_done
        if not is_done:
            offset, rows = stored(tmp_path / STORE)
            assert rows == (unbroken.after(offset) if rows else {}), f"after {offset} events"
    assert kills > KILLS // 2
    at_the_end = unbroken.to_the_end()
    assert stored(tmp_path / STORE) == (EVENTS, at_the_end)
    lines = (tmp_path / LOG).read_text(encoding="utf-8").splitlines()
    assert in_order(lines) == in_order(unbroken.lines)
    assert [entry.name for entry in sorted(tmp_path.iterdir())] == [LOG, SIZE, STORE]


def test_rules_that_are_run_over_a_whole_stream_leave_out_what_is_in_the_file(tmp_path):
    """The stream comes in many pieces; windows that were open at the first end are still open."""
    number = 400
    events = pa.Table.from_batches(stream(number).to_batches(max_chunksize=9))
    rules, unbroken = compile_rules(RULES), Unbroken()
    with rules.start(at=tmp_path / STORE, store={"room": ROOMS}) as run:
        run.push(events.slice(0, 150))
    assert stored(tmp_path / STORE) == (150, unbroken.after(150))
    rules.run(events, at=tmp_path / STORE)
    unbroken.after(number)
    unbroken.run.finish()
    assert stored(tmp_path / STORE) == (number, held(unbroken.run))
