"""What the dearest queries take: to compile, and to match 20 events with every output of both engines.

``python -m experiments.speed.compiling`` prints the slowest and the largest. CPU time and memory of a process of its
own for each, above what the process has after the kernels are loaded. Nothing may take 2 s or 256 MB.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from acep_approx import AcepError, UnseenTypeWarning, compile_query
from experiments.report import Column, Report, Row
from experiments.speed.nasty_queries import HARD, nasty_query

OUTPUTS = ("matches", "points", "counts", "partial", "compressed", "explain", "dot")
MEMORY, SECONDS = 4 << 30, 10
"""Bytes and CPU seconds after which a trial is ended."""
EVENTS = 20
LISTED = 1000


def run(text: str, engine: str, output: str, types: str) -> str:
    """Compile a query and ask for one output; says what came out."""
    events = [{"ts": t, "type": types[t % len(types)], "x": t * 7 % 11, "y": t % 3} for t in range(EVENTS)]
    try:
        query = compile_query(text, engine=engine)
        if output in ("explain", "dot"):
            return f"{len(query.explain('text' if output == 'explain' else output)):,} characters"
        matches = query.match(events, limit=LISTED)
        if output == "compressed":
            return f"{matches.compressed().hits.num_rows:,} hits"
        found = matches.to_arrow() if output == "matches" else getattr(matches, output)()
    except AcepError as refused:
        return refused.code
    return f"{found.num_rows:,} rows"


def trial(text: str, engine: str, output: str, types: str, most: int) -> Row:
    """``run`` in a forked process, with its time, at most so many seconds, and memory."""
    receive, send = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        _measure(send, text, engine, output, types, most)
        os._exit(0)
    send.close()
    try:
        row: Row = json.loads(receive.recv_bytes())
    except EOFError:  # the process was ended
        row = {"seconds": float(most), "memory": MEMORY / 1e6, "found": "given up"}
    os.waitpid(child, 0)
    return row


def _measure(send: Connection, text: str, engine: str, output: str, types: str, most: int) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        found = run(text, engine, output, types)
    except (MemoryError, RecursionError) as error:
        found = type(error).__name__
    seconds = time.process_time() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    send.send_bytes(json.dumps({"seconds": seconds, "memory": memory, "found": found}).encode())


def queries(texts: int) -> Iterator[tuple[str, str]]:
    """Those made by hand, then random ones; with their names."""
    yield from HARD.items()
    dice = random.Random(11)
    for number in range(texts):
        yield f"random {number}", nasty_query(dice)


def main() -> None:
    """Print the slowest and the largest."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("results/speed/compiling"), help="folder for the data")
    options.add_argument("--quick", action="store_true", help="few queries and outputs: a first look")
    options.add_argument("--texts", type=int, default=100, help="random queries")
    options.add_argument("--shown", type=int, default=20, help="rows of each table")
    given = options.parse_args()
    warnings.simplefilter("ignore", UnseenTypeWarning)
    outputs, most = (OUTPUTS[:1], 1) if given.quick else (OUTPUTS, SECONDS)
    for engine in ("cells", "runs"):
        for output in outputs:  # loads the kernels
            run("PATTERN SEQ(A a, ~(C c), B b) WITHIN 5 ERRORS 1", engine, output, "AB")
    known = list(queries(0 if given.quick else given.texts))
    rows: list[Row] = []
    for number, (name, text) in enumerate(known[:2] if given.quick else known):
        if number % 10 == 0:
            print(f"query {number + 1} of {len(known)}: {name}", file=sys.stderr, flush=True)
        types = "AB" if text.startswith("PATTERN") or "\nPATTERN" in text else "ab"
        for engine in ("cells", "runs"):
            rows += [
                {"query": name, "engine": engine, "output": output, **trial(text, engine, output, types, most)}
                for output in outputs
            ]
    columns = [
        Column("query", "query"),
        Column("engine", "engine"),
        Column("output", "output"),
        Column("seconds", "CPU s", ".2f"),
        Column("memory", "MB", ",.0f"),
        Column("found", "found"),
    ]
    report = Report(given.out)
    note = f"compiling, and matching {EVENTS} events; wanted: at most 2 s, 256 MB; {len(rows):,} trials"
    for what, heading in (("seconds", "the slowest"), ("memory", "the largest")):
        rows.sort(key=lambda row: row[what], reverse=True)
        report.table(what, heading, rows[: given.shown], columns, note)
    report.console.print(f"data: {given.out}")


if __name__ == "__main__":
    main()
