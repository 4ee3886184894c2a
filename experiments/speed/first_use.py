"""What the first query costs on a fresh machine, and what a later one does: processor time of whole processes.

``python -m experiments.speed.first_use`` prints a table; every process is new, with an empty directory for compiled
kernels, but for the warm start, which finds what one before it has compiled. Least of some repetitions. Processor time
is that of the process and its children, user and system; what is asked of it holds on an idle machine of two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
from acep_approx import compile_query
query = compile_query({query!r})
events = [{{"ts": i, "type": "ABC"[i % 3], "key": 1, "x": 7 * i % 11}} for i in range(300)]
assert list(query.{call})
"""

LISTENER = """
import atexit, json, sys, time
from numba.core import event

class Compiled(event.Listener):
    def __init__(self):
        self.begun, self.seconds = [], {}

    def on_start(self, event):
        self.begun.append(time.process_time())

    def on_end(self, event):
        seconds = time.process_time() - self.begun.pop()
        if not self.begun:  # helpers are compiled inside their kernels
            name = event.data["dispatcher"].py_func.__name__
            self.seconds[name] = self.seconds.get(name, 0) + seconds

compiled = Compiled()
event.register("numba:compile", compiled)
atexit.register(lambda: print(json.dumps(compiled.seconds)))
"""


@dataclass(frozen=True)
class Case:
    """A query, what is called on it, and the processor time that it may take."""

    query: str
    call: str
    seconds: float
    is_warm: bool = False

    @property
    def program(self) -> str:
        """What a user would write."""
        return PROGRAM.format(query=self.query, call=self.call)


CELLS = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.x > 1 WITHIN 10 ERRORS 1"
RUNS = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.x > a.x WITHIN 10 ERRORS 1"
CASES = {
    "cells": Case(CELLS, "match(events)", 6),
    "runs": Case(RUNS, "match(events)", 15),
    "budget": Case(RUNS, 'match_within(events, "90%", full_work=1000)', 20),
    "warm": Case(CELLS, "match(events)", 1.2, is_warm=True),
}


@dataclass(frozen=True)
class Measured:
    """Seconds of a process, and of its kernels."""

    cpu: float
    wall: float
    kernels: dict[str, float]


def run(program: str, cache: Path, **more: str) -> Measured:
    """Run a program in a process of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), **more}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(cpu, wall, json.loads(done.stdout or "{}"))


def measured(case: Case, rounds: int) -> Measured:
    """The least of some processes."""
    results = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            if case.is_warm:
                run(case.program, Path(cache))
                results.append(run(case.program, Path(cache)))
            else:
                results.append(run(LISTENER + case.program, Path(cache)))
    return min(results, key=lambda result: result.cpu)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cases", nargs="*", metavar="CASE", help=f"some of: {', '.join(CASES)}; by default all")
    options.add_argument("--rounds", type=int, default=3, help="processes for each case (default 3)")
    given = options.parse_args()
    chosen = given.cases or list(CASES)
    if unknown := set(chosen) - set(CASES):
        options.error(f"there is no case {min(unknown)!r}: there are {', '.join(CASES)}")

    from rich.console import Console

    from experiments.report import of_texts

    headings = ("case", "CPU", "wanted", "wall", "compiled")
    table = of_texts("first use: seconds of a process", headings, left=("case", "compiled"))
    with tempfile.TemporaryDirectory() as nowhere:
        for name in chosen:
            case = CASES[name]
            run(case.program, Path(nowhere), ACEP_JIT="0")  # writes bytecode
            best = measured(case, given.rounds)
            kernels = sorted(best.kernels.items(), key=lambda item: -item[1])
            compiled = ", ".join(f"{kernel} {seconds:.1f}" for kernel, seconds in kernels)
            table.add_row(name, f"{best.cpu:.2f}", f"{case.seconds:g}", f"{best.wall:.2f}", compiled)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
