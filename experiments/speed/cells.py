"""Speed of the cells engine: kernels against plain Python, and the whole way from a Parquet file.

``python -m experiments.speed.cells`` prints one table per claim. CPU time of this process, one core, medians of
interleaved repetitions; ratios are medians of paired repetitions, so that they hold on a noisy machine.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from acep_approx import compile_query
from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.cells.listing import listed as listed_matches
from acep_approx.engines.columns import Placement
from experiments.speed.plain_cells import PlainCells

EXAMPLE_1 = "(Sa(b|d|w|r)E){2,}(Sa(g|e|u)E){2,}"
ROUNDS = 5
BATCH = 1 << 17
console = Console(width=120)


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def letters_of(automaton: Automaton) -> list[str]:
    """The letters of a bare regular expression, in the automaton's order."""
    return [str(letter.type) for letter in automaton.letters]


def random_classes(automaton: Automaton, alphabet: str, events: int, seed: int) -> np.ndarray:
    """Event classes of a uniform random stream over ``alphabet``: 0 for letters that the pattern does not have."""
    names = letters_of(automaton)
    table = np.array([names.index(letter) + 1 if letter in names else 0 for letter in alphabet])
    return table[np.random.default_rng(seed).integers(0, len(alphabet), events)]


def detection(title: str, pattern: str, alphabet: str, window: int, errors: int, wanted: int, events: int) -> None:
    """Kernel against plain Python on the same stream; all events, relevant or not, go through both."""
    automaton = compile_query(f"{pattern} WITHIN {window} ERRORS {errors}").automaton
    classes = [0, *(1 << j for j in range(len(automaton.letters)))]
    cls = random_classes(automaton, alphabet, events, seed=1)
    tick, slot = np.arange(events), np.zeros(events, np.int64)
    share = max(events // 50, 1)
    plain_ticks, plain_classes = tick[:share].tolist(), cls[:share].tolist()

    cells = Cells(automaton, window)
    cells.set_classes(classes)
    cells.reserve(1)

    batches = [slice(at, at + BATCH) for at in range(0, events, BATCH)]  # as a matcher gets them

    def kernel(keep: Callable[[slice, np.ndarray], object] = lambda *_: None) -> None:
        for batch in batches:
            keep(batch, cells.detect(slot[batch], tick[batch], cls[batch]))

    def plain() -> list[tuple[int, int]]:
        return PlainCells(automaton, window, classes).run(plain_ticks, plain_classes)

    expected = plain()
    found: list[tuple[int, int]] = []
    kernel(lambda batch, points: found.extend((batch.start + i, e) for i, e, _ in points.tolist()))
    assert found[: len(expected)] == expected, "the yardstick gives other answers"
    fast, slow, ratio = [], [], []
    for _ in range(ROUNDS):
        cells.clear(np.array([0]))
        fast.append(timed(kernel) / events * 1e9)
        slow.append(timed(plain) / share * 1e9)
        ratio.append(slow[-1] / fast[-1])
    row = Table(title=title)
    for heading in ("states", "arcs", "match points", "kernel ns/event", "plain Python ns/event", "ratio", "wanted"):
        row.add_column(heading, justify="right")
    row.add_row(
        str(automaton.size),
        str(len(automaton.arcs)),
        f"{len(expected) / share:.1%}",
        f"{statistics.median(fast):.1f}",
        f"{statistics.median(slow):,.0f}",
        f"{statistics.median(ratio):.0f}x ({min(ratio):.0f}-{max(ratio):.0f})",
        f"{wanted}x",
    )
    console.print(row)


def listing(errors: int, window: int, events: int) -> None:
    """Arc-log update of SEQ of 5 over 10 letters, then counting and listing what it found."""
    automaton = compile_query(f"abcde WITHIN {window} ERRORS {errors}").automaton
    classes = [0, *(1 << j for j in range(len(automaton.letters)))]
    cls = random_classes(automaton, "abcdefghij", events, seed=2)
    rows = np.flatnonzero(cls)
    placement = Placement.of([False] * len(automaton.variables))
    update, count, write = [], [], []
    total = 0
    for _ in range(ROUNDS):
        logs = ArcLogs(automaton, window)
        logs.set_classes(classes)
        logs.reserve(1)
        spent = [0.0, 0.0, 0.0]
        total = 0
        for at in range(0, len(rows), 1 << 16):
            row = rows[at : at + (1 << 16)]
            group = Grouped(np.zeros(len(row), np.int64), row, cls[row], row, row, row, row)
            floors = np.array([int(row[0]) - window])
            start = time.process_time()
            hits = logs.update(group, floors)
            middle = time.process_time()
            total += int(logs.count(hits, group).sum())
            counted = time.process_time()
            listed = sum(len(part.hit) for part in listed_matches(logs, hits, group, placement, 1 << 16))
            spent = [
                spent[0] + middle - start,
                spent[1] + counted - middle,
                spent[2] + time.process_time() - counted,
            ]
            assert listed >= 0
        update.append(spent[0] / events * 1e9)
        count.append(total / spent[1] / 1e6)
        write.append(total / spent[2] / 1e6)
    table = Table(title=f"arc logs: SEQ of 5 over 10 letters, k = {errors}, w = {window}")
    for heading in ("matches per event", "update ns/event", "counted M/s", "listed M/s", "wanted"):
        table.add_column(heading, justify="right")
    table.add_row(
        f"{total / events:.1f}",
        f"{statistics.median(update):.1f} ({min(update):.0f}-{max(update):.0f})",
        f"{statistics.median(count):.0f}",
        f"{statistics.median(write):.0f}",
        "about 60 ns, 30 M/s",
    )
    console.print(table)


QUERY = (
    "PATTERN SEQ(a a, b b, c c, d d, e e) WHERE [key]"
    + "".join(f" AND {v}.x > 0.2 AND {v}.y < 0.9 AND {v}.z >= {i}" for i, v in enumerate("abcde"))
    + " WITHIN 100000 ERRORS 1"
)


def write_events(path: Path, events: int) -> None:
    """A Parquet file of random events: 10 types, 1,000 keys, three numbers."""
    rng = np.random.default_rng(3)
    names = pa.array(list("abcdefghij"))
    writer = None
    for start in range(0, events, 1_000_000):
        size = min(1_000_000, events - start)
        table = pa.table(
            {
                "ts": np.arange(start, start + size),
                "key": rng.integers(0, 1000, size).astype(np.int32),
                "type": pa.DictionaryArray.from_arrays(rng.integers(0, 10, size).astype(np.int32), names),
                "x": rng.random(size),
                "y": rng.random(size),
                "z": rng.integers(0, 100, size).astype(np.int32),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def run_file(path: Path) -> str:
    """Detect in a file; the figures of this process, for the parent to print."""
    query = compile_query(QUERY)
    spent = 0.0
    inside = Cells.detect

    def clocked(self: Cells, slot: np.ndarray, tick: np.ndarray, cls: np.ndarray) -> np.ndarray:
        nonlocal spent
        start = time.process_time()
        points = inside(self, slot, tick, cls)
        spent += time.process_time() - start
        return points

    query.match([{"ts": 0, "type": "a", "key": 1, "x": 0.5, "y": 0.5, "z": 9}]).points()  # compiles the kernels
    Cells.detect = clocked  # type: ignore[method-assign]
    matches = query.match(path)
    begun, cpu = time.perf_counter(), time.process_time()
    points = sum(table.num_rows for table in matches.point_tables())
    wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{matches.progress.events} {points} {wall} {cpu} {spent} {peak}"


def end_to_end(sizes: list[int]) -> None:
    """From Parquet to match points, each size in a process of its own."""
    table = Table(title="end to end: Parquet -> match points, 5 letters with 3 comparisons each, 1,000 keys, k = 1")
    for heading in ("events", "match points", "M events/s", "ns/event", "kernel share", "peak MiB"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / f"{size}.parquet"
            write_events(path, size)
            command = [sys.executable, "-m", "experiments.speed.cells", "--file", str(path)]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            events, points, wall, cpu, spent, peak = (float(x) for x in out)
            table.add_row(
                f"{events:,.0f}",
                f"{points:,.0f}",
                f"{events / wall / 1e6:.2f}",
                f"{cpu / events * 1e9:.0f}",
                f"{spent / cpu:.0%}",
                f"{peak:,.0f}",
            )
    console.print(table)


def main() -> None:
    """Print all tables; ``--quick`` for a first look."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="few events: whether it works")
    options.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.file:
        print(run_file(given.file))
        return
    events = 40_000 if given.quick else 2_000_000
    detection("detect: SEQ of 5 over 10 letters, k = 2", "abcde", "abcdefghij", 50, 2, 60, events)
    detection("detect: Example 1 of Li and Ge 2016, k = 3", EXAMPLE_1, "SabdwrEgeu", 60, 3, 100, events)
    listing(1, 50, events // 2)
    listing(1, 96, events // 4)
    end_to_end([20_000, 100_000] if given.quick else [1_000_000, 10_000_000])


if __name__ == "__main__":
    main()
