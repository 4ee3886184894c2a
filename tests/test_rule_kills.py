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
from acep_approx.rules import checkpoints
from tests.cases import FULL
from tests.patience import PATIENCE, until
from tests.processes import ROOT, as_started
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
    environment = as_started()
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


SLOW = """
RULE each ON PATTERN A a WITHIN 1
DO CALL act(a.ts) END
"""
CALLS_OF_A_LIFE, WAITING = 4, 9


def life_of_slow_calls(folder: Path) -> None:
    """Take up the calls that wait, and be killed within one of them."""
    left = CALLS_OF_A_LIFE
    checkpoints.NOTED_WITHIN = 0.0  # as if each call took longer than to note it, however slow the disk is now

    def act(call: Any) -> None:
        nonlocal left
        with (folder / LOG).open("a") as log:
            log.write(f"{call.arguments[0]}\n")
        left -= 1
        if not left:
            os.kill(os.getpid(), 9)

    with compile_rules(SLOW).start(at=folder / STORE, calls={"act": act}, checkpoint=1_000) as run:
        run.push([{"ts": n, "type": "A"} for n in range(run.offset, WAITING)])
        run.finish()


def test_a_run_that_is_killed_within_slow_calls_repeats_that_call_alone(tmp_path: Path) -> None:
    """However often: what was made is noted while calls are made, and not when the next checkpoint comes."""
    lives, is_done = 0, False
    while not is_done:
        lives += 1
        assert lives <= WAITING, "the same calls are made again and again"
        child = os.fork()
        if not child:
            life_of_slow_calls(tmp_path)
            os._exit(0)
        is_done = os.waitpid(child, 0)[1] == 0
    made = [int(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert list(dict.fromkeys(made)) == [*range(WAITING)], "each was made, in order"
    assert len(made) - WAITING <= lives - 1
    assert lives == -(-WAITING // (CALLS_OF_A_LIFE - 1))
