"""How long a person waits on a machine that has compiled nothing: for a first row, a first table, the end of a run.

``python -m experiments.speed.first_use`` prints a table. Every run is a process of its own, as a user would start it,
with an empty directory for compiled kernels; what compiles is ended with it. Seconds are those of a clock on the wall;
of the small query on a machine that has compiled everything those of the processor, user and system. Least of some
repetitions. What is wanted holds on an idle machine of two cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent.parent
ACEP = ("-m", "acep_approx.cli.main")

SCANS = """when,box,scan
2024-05-01 08:00,A7,packed
2024-05-01 08:10,B2,packed
2024-05-01 08:30,A7,loaded
2024-05-01 09:00,C4,packed
2024-05-01 09:15,C4,loaded
2024-05-01 11:00,A7,delivered
2024-05-01 11:20,B2,delivered
2024-05-01 12:00,C4,delivered
"""
BOX = "WHERE [box] WITHIN 12 h"
EIGHT_ROWS = {
    "README": f"PATTERN SEQ(packed a, loaded b, delivered c) {BOX} ERRORS 1 WEIGHTS (a = 2, c = 2)",
    "across": "PATTERN SEQ(packed a, loaded b, delivered c) WHERE [box] AND c.when > b.when WITHIN 12 h",
    "negation": f"PATTERN SEQ(packed a, ~(loaded b), delivered c) {BOX}",
    "two errors": f"PATTERN SEQ(packed a, loaded b, delivered c) {BOX} ERRORS 2",
    "repetition": f"PATTERN SEQ(packed a, loaded+ b[], delivered c) {BOX} RETURN a.box AS box, count(b[]) AS readings",
}
CONDITIONS = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.x > a.x AND b.y < c.y WITHIN 30 ERRORS 1"

SMALL = """
from acep_approx import compile_query
query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.x > a.x WITHIN 10 ERRORS 1")
events = [{"ts": i, "type": "ABC"[i % 3], "key": 1, "x": 7 * i % 11} for i in range(300)]
assert list(query.match(events))
"""


@dataclass(frozen=True)
class Seconds:
    """What a process took: until something was on the screen, to its end, and of the processor."""

    shown: float
    end: float
    cpu: float


def run(words: tuple[str, ...], place: Path, kernels: Path, until: str = "", **more: str) -> Seconds:
    """Run Python with some words in a folder; whatever it has started ends with it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": str(ROOT), **more}
    for name in ("PYTHONDONTWRITEBYTECODE", "ACEP_JIT"):
        if name not in more:
            environment.pop(name, None)
    before, begun, shown = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0.0
    with (place / "stderr").open("w+") as errors, subprocess.Popen(
        [sys.executable, *words], cwd=place, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if not shown and until in line:
                shown = time.perf_counter() - begun
        code = process.wait()
        end, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what compiles
        if code != 0:
            errors.seek(0)
            sys.exit(errors.read())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(shown, end, cpu)


def least(rounds: int, once: Callable[[Path], Seconds]) -> Seconds:
    """The least of some runs, each with an empty directory for kernels."""
    results = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as kernels:
            results.append(once(Path(kernels)))
    return Seconds(*(min(getattr(one, name) for one in results) for name in ("shown", "end", "cpu")))


class Bench:
    """Measures the rows of the table in a folder.

    Each method gives rows: what was done, the seconds that were measured in words, those that are wanted.
    """

    def __init__(self, place: Path, rounds: int, events: int) -> None:
        self.place = place
        self.rounds = rounds
        self.events = events

    def readme(self) -> list[tuple[str, str, str]]:
        """README's eight rows, with its query and with others."""
        (self.place / "scans.csv").write_text(SCANS)
        rows = []
        for name, query in EIGHT_ROWS.items():
            words = (*ACEP, "run", query, "scans.csv", "--type", "scan", "--time", "when")
            found = least(self.rounds, lambda kernels, words=words: run(words, self.place, kernels))
            rows.append((f"eight rows, {name}: first row", f"{found.shown:.2f}", "1.5"))
        return rows

    def conditions(self) -> list[tuple[str, str, str]]:
        """Conditions across events, on some thousand of them."""
        pq.write_table(stream(20_000), self.place / "events.parquet")
        rows = []
        for name, more in (("", ()), (", 5 steps/event", ("--budget", "5 steps/event"))):
            words = (*ACEP, "run", CONDITIONS, "events.parquet", "--output", "points", "-o", "found.csv", *more)
            found = least(self.rounds, lambda kernels, words=words: run(words, self.place, kernels))
            rows.append((f"20,000 events, conditions across events{name}", f"{found.end:.2f}", "3"))
        return rows

    def demo(self) -> list[tuple[str, str, str]]:
        """``acep demo``."""
        found = least(self.rounds, lambda kernels: run((*ACEP, "demo"), self.place, kernels, "match points"))
        return [("acep demo: first table", f"{found.shown:.2f}", "5"), ("acep demo", f"{found.end:.2f}", "8")]

    def train(self) -> list[tuple[str, str, str]]:
        """``acep train``, beside the same with kernels that are there, and what it takes to compile them."""
        pq.write_table(stream(200_000), self.place / "past.parquet")
        pq.write_table(stream(2_000), self.place / "few.parquet")

        def words(events: str) -> tuple[str, ...]:
            return (*ACEP, "train", CONDITIONS, events, "-o", f"history-{time.perf_counter_ns()}")

        name = "acep train, 200,000 events"
        return [self.beside(name, words, "past.parquet", "few.parquet", lambda total: 0.1 * total)]

    def long(self) -> list[tuple[str, str, str]]:
        """A long run, beside the same with kernels that are there, and what it takes to compile them."""
        pq.write_table(stream(self.events), self.place / "long.parquet")
        pq.write_table(stream(2_000), self.place / "few.parquet")

        def words(events: str) -> tuple[str, ...]:
            return (*ACEP, "run", CONDITIONS, events, "--output", "points", "-o", "found.parquet")

        return [self.beside(f"{self.events:,} events", words, "long.parquet", "few.parquet", lambda _: 2.0)]

    def beside(
        self,
        name: str,
        words: Callable[[str], tuple[str, ...]],
        many: str,
        few: str,
        allowed: Callable[[float], float],
    ) -> tuple[str, str, str]:
        """A run with nothing compiled, and one with all compiled plus the time to compile it."""
        with tempfile.TemporaryDirectory() as folder:
            kernels = Path(folder)
            first = run(words(few), self.place, kernels, ACEP_JIT="1").end
            compiling = first - run(words(few), self.place, kernels, ACEP_JIT="1").end
            warm = run(words(many), self.place, kernels).end
        cold = least(1, lambda kernels: run(words(many), self.place, kernels)).end
        total = warm + compiling
        wanted = f"{total + allowed(total):.1f} = ({warm:.1f} warm + {compiling:.1f} compiling) + {allowed(total):.1f}"
        return (f"{name}, nothing compiled", f"{cold:.1f}", wanted)

    def small(self) -> list[tuple[str, str, str]]:
        """A small query where all is compiled: processor time."""
        with tempfile.TemporaryDirectory() as folder:
            kernels = Path(folder)
            run(("-c", SMALL), self.place, kernels, ACEP_JIT="1")
            found = [run(("-c", SMALL), self.place, kernels).cpu for _ in range(max(self.rounds, 3))]
        return [("a small query, all compiled: processor", f"{min(found):.2f}", "0.9")]


def stream(events: int) -> pa.Table:
    """Events of four types and some keys, with two numbers each."""
    random = np.random.default_rng(7)
    types = pa.DictionaryArray.from_arrays(random.integers(0, 4, events).astype(np.int8), list("ABCD"))
    columns = {name: random.integers(0, 100, events) for name in ("x", "y")}
    return pa.table({"ts": np.arange(events), "type": types, "key": random.integers(0, 20, events), **columns})


ROWS = (Bench.readme, Bench.conditions, Bench.demo, Bench.train, Bench.long, Bench.small)
CASES = {rows.__name__: rows for rows in ROWS}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cases", nargs="*", metavar="CASE", help=f"some of: {', '.join(CASES)}; by default all")
    options.add_argument("--rounds", type=int, default=3, help="processes for each case (default 3)")
    options.add_argument("--events", type=int, default=10_000_000, help="of the long run (default 10,000,000)")
    given = options.parse_args()
    chosen = given.cases or list(CASES)
    if unknown := set(chosen) - set(CASES):
        options.error(f"there is no case {min(unknown)!r}: there are {', '.join(CASES)}")

    from rich.console import Console

    from experiments.report import of_texts

    table = of_texts("first use: seconds", ("what", "measured", "wanted"), left=("what", "wanted"))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.rounds, given.events)
        run(("-c", SMALL), bench.place, bench.place, ACEP_JIT="0")  # writes bytecode
        for name in chosen:
            for row in CASES[name](bench):
                table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
