"""What MAXIMAL costs beside match points of the same query.

``python -m experiments.speed.maximal`` prints one row for each workload: CPU time of ``to_arrow()`` with MAXIMAL and of
``points()`` without it, of events that are in memory; medians of rounds in turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acep_approx import compile_query

Workload = tuple[str, str, pa.Table]


def failed(logins: int) -> pa.Table:
    """So many failed logins, a second apart, and one that is accepted."""
    types = ["Failed"] * logins + ["Accepted"]
    return pa.table({"ts": np.arange(len(types)), "type": types})


def letters(events: int, kinds: int, seed: int = 1) -> pa.Table:
    """Random events of so many types."""
    names = np.array([chr(65 + i) for i in range(kinds)])
    return pa.table({"ts": np.arange(events), "type": names[np.random.default_rng(seed).integers(0, kinds, events)]})


def deliveries(cases: int, lost: float, seed: int = 1) -> pa.Table:
    """Cases of five scans each, which lie among those of others; a share of the cases has lost one."""
    dice = np.random.default_rng(seed)
    case, scan = np.repeat(np.arange(cases), 5), np.tile(np.arange(5), cases)
    gone = np.where(dice.random(cases) < lost, dice.integers(0, 5, cases), -1)
    kept = np.flatnonzero(scan != gone[case])
    time_of = case[kept] + 40 * scan[kept] + dice.integers(0, 30, len(kept))
    order = kept[np.argsort(time_of, kind="stable")]
    names = np.array(["Picked", "Packed", "Loaded", "Out", "Delivered"])
    return pa.table({"ts": np.sort(time_of), "type": names[scan[order]], "case": case[order]})


def workloads() -> list[Workload]:
    """A name, a query without MAXIMAL, and events."""
    login = "PATTERN SEQ(Failed{5,} f[], Accepted s) WITHIN 100000"
    parcel = "PATTERN SEQ(Picked a, Packed b, Loaded c, Out d, Delivered e) WHERE [case] WITHIN 1000 ERRORS 1"
    return [
        *((f"{n:,} failed logins", login, failed(n)) for n in (201, 2_001, 20_001)),
        ("failed logins only", "PATTERN Failed{5,} f[] WITHIN 100000", failed(20_001)),
        ("deliveries, 5% lost a scan", parcel, deliveries(40_000, 0.05)),
        ("deliveries, 50% lost a scan", parcel, deliveries(40_000, 0.5)),
        ("A B C, 10 types", "PATTERN SEQ(A a, B b, C c) WITHIN 20", letters(200_000, 10)),
        ("A B C, ERRORS 1", "PATTERN SEQ(A a, B b, C c) WITHIN 20 ERRORS 1", letters(200_000, 10)),
        ("A B+ C", "PATTERN SEQ(A a, B+ b[], C c) WITHIN 50", letters(200_000, 20)),
        ("A B C, 50 types, ERRORS 1", "PATTERN SEQ(A a, B b, C c) WITHIN 50 ERRORS 1", letters(200_000, 50)),
    ]


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="medians of so many")
    rounds = parser.parse_args().rounds
    heads = ("workload", "events", "points", "maximal", "ms points", "ms MAXIMAL", "ratio")
    table = Table(*heads, title="MAXIMAL beside --output points")
    for name, text, events in workloads():
        plain, maximal = compile_query(text), compile_query(f"{text} MAXIMAL")
        points, matches = plain.match(events).points(), maximal.match(events).to_arrow()
        works = plain.match(events).points, maximal.match(events).to_arrow
        pairs = [(seconds(works[0]), seconds(works[1])) for _ in range(rounds)]
        for_points, for_matches = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(mine / theirs for theirs, mine in pairs)
        numbers = (events.num_rows, points.num_rows, matches.num_rows)
        table.add_row(name, *(f"{n:,}" for n in numbers), f"{for_points:.1f}", f"{for_matches:.1f}", f"{ratio:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
