"""Speed of the runs engine: its block machine against loops written by hand, merging, compiling, real streams.

``python -m experiments.speed.runs`` prints one table per claim and leaves their data (CSV) in a folder. CPU time of
the thread that does the work, medians of interleaved repetitions; ratios are medians of paired repetitions, so that
they hold on a noisy machine. Real streams are run once, on as many events as fit the time that is given.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from acep_approx import Matcher
from acep_approx.planning.planner import MERGING, plan
from acep_approx.query import parse
from experiments.report import Column, Report, Row
from experiments.sase2008.workload import StockQuery
from experiments.speed.plain_runs import Room
from experiments.speed.runs_streams import STREAMS, measure
from experiments.speed.runs_workloads import (
    Passed,
    Prepared,
    Workload,
    rising_workload,
    stock_workload,
    sums_workload,
)

NONE, EQUAL, EVERYTHING = "none", "equal", ",".join(MERGING)


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the ratios of two measurements that were repeated in turns."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def run_step(workload: Workload, rounds: int) -> list[Row]:
    """Kernel against loop, without merging, with and without lineage."""
    prepared = Prepared(workload)
    rows: list[Row] = []
    for lineage in (False, True):
        room = Room()
        workload.by_hand(lineage, room)  # compiles
        ours: list[Passed] = []
        theirs: list[float] = []
        for _ in range(rounds):
            ours.append(prepared.run(NONE, lineage=lineage))
            start = time.thread_time()
            hits = workload.by_hand(lineage, room)
            theirs.append(time.thread_time() - start)
            assert hits == ours[-1].hits, f"{workload.name}: {hits} hits by hand, {ours[-1].hits} of the engine"
        steps, events = ours[0].steps, len(workload.events)
        seconds = [one.seconds for one in ours]
        rows.append(
            {
                "query": workload.name,
                "lineage": "yes" if lineage else "no",
                "events": events,
                "live": steps / events,
                "hits": ours[0].hits,
                "step": statistics.median(seconds) / steps * 1e9,
                "by_hand": statistics.median(theirs) / steps * 1e9,
                "ratio": median_ratio(seconds, theirs),
                "event": statistics.median(seconds) / events * 1e9,
                "wanted": "1.5x, 4 ns" if workload.live >= 100 else "100 ns/ev." if workload.live <= 1 else None,
            }
        )
    return rows


def run_steps(report: Report, steps: int, rounds: int) -> None:
    """The cost of one run-step."""
    workloads = [
        *(partial(stock_workload, every, 500, steps) for every in (500, 50, 5, 1)),
        *(partial(rising_workload, window, steps) for window in (100, 300, 600)),
        *(partial(sums_workload, window, steps) for window in (100, 300)),
    ]
    rows = [row for make in workloads for row in run_step(make(), rounds)]
    columns = [
        Column("query", "query"),
        Column("lineage", "lineage"),
        Column("events", "events", ",d"),
        Column("live", "steps/event", ",.1f"),
        Column("hits", "hits", ",d"),
        Column("step", "ns/step", ".2f"),
        Column("by_hand", "by hand", ".2f"),
        Column("ratio", "ratio", ".2f"),
        Column("event", "ns/event", ",.0f"),
        Column("wanted", "wanted"),
    ]
    note = "kernel only, nothing merged; steps: run-steps; by hand: ns of the loop per run-step of the engine"
    report.table("run_steps", "one run-step of the block machine", rows, columns, note)


def merging(report: Report, steps: int, rounds: int) -> None:
    """What merging saves, and what it costs where there is nothing to merge."""
    rows: list[Row] = []
    for workload, wanted in (
        (stock_workload(5, 500, steps), ">= 8x fewer"),
        (rising_workload(300, steps), ">= 9x fewer"),
        (sums_workload(300, steps), "<= 1.4x slower"),
    ):
        prepared = Prepared(workload)
        passed: dict[str, list[Passed]] = {NONE: [], EQUAL: [], EVERYTHING: []}
        for _ in range(rounds):
            for merge, found in passed.items():
                found.append(prepared.run(merge, lineage=True))
        basic = passed[NONE]
        row: Row = {"query": workload.name, "steps": basic[0].steps, "peak": basic[0].peak}
        for key, merge in (("equal", EQUAL), ("all", EVERYTHING)):
            merged = passed[merge]
            row[f"{key}_fewer"] = basic[0].steps / merged[0].steps
            row[f"{key}_peak"] = merged[0].peak
            row[f"{key}_time"] = median_ratio([one.seconds for one in merged], [one.seconds for one in basic])
        row["wanted"] = wanted
        rows.append(row)
    columns = [
        Column("query", "query"),
        Column("steps", "run-steps", ",d"),
        Column("peak", "live at most", ",d"),
        Column("equal_fewer", "equal: fewer", ".1f"),
        Column("equal_peak", "live", ",d"),
        Column("equal_time", "time", ".2f"),
        Column("all_fewer", "all: fewer", ".1f"),
        Column("all_peak", "live", ",d"),
        Column("all_time", "time", ".2f"),
        Column("wanted", "wanted"),
    ]
    note = "kernel with lineage; time of that without merging; in sums no two runs are equal"
    report.table("merging", "merging, against none", rows, columns, note)


QUERY_3 = """
PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
    [symbol] AND a[1].volume > 1000 AND a[i].price > avg(a[..i-1].price) AND b.volume < 0.8 * a[a.LEN].volume }
WITHIN 1 h
"""
TEN = "abcdefghij"
TEN_STEPS = (
    f"PATTERN SEQ({', '.join(f'{v.upper()} {v}' for v in TEN)})\n"
    f"WHERE {' AND '.join(f'{b}.price > {a}.price' for a, b in pairwise(TEN))}\n"
    "WITHIN 1000 ERRORS 2"
)
SCHEMA = [("type", pa.string()), ("symbol", pa.int64()), ("price", pa.float64()), ("volume", pa.int64())]


def compiling(report: Report, rounds: int) -> None:
    """From the text of a query to the tables of the kernel."""
    rows: list[Row] = []
    for name, text in (
        ("Query 3 of SASE+", QUERY_3),
        ("stock trend", StockQuery("p2", "s3", 500).text),
        ("10 steps, 9 conditions, k = 2", TEN_STEPS),
    ):
        schema = pa.schema([("ts", pa.timestamp("us") if "WITHIN 1 h" in text else pa.int64()), *SCHEMA])
        spent: list[tuple[float, float, float]] = []
        for _ in range(rounds + 1):  # the first one warms up
            start = time.thread_time()
            syntax = parse(text)
            parsed = time.thread_time()
            planned = plan(syntax, "runs")
            compiled = time.thread_time()
            Matcher(planned).bind(schema)
            spent.append((parsed - start, compiled - parsed, time.thread_time() - compiled))
        parsing, planning, binding = (1e3 * statistics.median(column) for column in zip(*spent[1:], strict=True))
        automaton = planned.automaton
        rows.append(
            {
                "query": name,
                "states": automaton.size,
                "arcs": len(automaton.arcs),
                "parse": parsing,
                "plan": planning,
                "bind": binding,
                "total": parsing + planning + binding,
            }
        )
    columns = [
        Column("query", "query"),
        Column("states", "states", ",d"),
        Column("arcs", "arcs", ",d"),
        Column("parse", "parse ms", ".2f"),
        Column("plan", "plan ms", ".2f"),
        Column("bind", "tables ms", ".2f"),
        Column("total", "total ms", ".2f"),
    ]
    note = "plan: checks, automaton, registers; tables: columns, programs, pools"
    report.table("compiling", "compiling a query, in a warm process", rows, columns, note)


def streams(report: Report, seconds: float) -> None:
    """Patterns that people ask for, on real events."""
    rows = [row for stream in STREAMS for row in measure(stream, seconds)]
    columns = [
        Column("stream", "stream"),
        Column("engine", "engine"),
        Column("rows", "events", ",d"),
        Column("rate", "events/s", ",.0f"),
        Column("kernel", "kernel %", ".0f"),
        Column("steps", "steps/event", ",.2f"),
        Column("peak", "live", ",d"),
        Column("matches", "matches", ",d"),
        Column("per_event", "m/e", ".4f"),
        Column("known", "known", "g"),
    ]
    note = (
        f"all matches listed; none: nothing merged, as many events as fit {seconds:g} s; all: merged, the same events; "
        "all+: as far as it gets; steps: run-steps; live: runs at most; known: m/e of the whole stream"
    )
    report.table("streams", "real streams", rows, columns, note)


def main() -> None:
    """Print all tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("results/speed/runs"), help="folder for the data")
    options.add_argument("--quick", action="store_true", help="short streams: a first look")
    options.add_argument("--seconds", type=float, help="for each real stream and engine; default 15, quick 0.05")
    given = options.parse_args()
    steps, rounds, seconds = (50_000, 1, 0.05) if given.quick else (30_000_000, 5, 15.0)
    report = Report(given.out)
    run_steps(report, steps, rounds)
    merging(report, steps, rounds)
    compiling(report, 20 * rounds)
    streams(report, seconds if given.seconds is None else given.seconds)
    report.console.print(f"data: {given.out}")


if __name__ == "__main__":
    main()
