"""What a load budget costs in time, at 1,000 and more run-steps per event: ``python -m experiments.shedding.time``.

The exact run lists nothing, after merging that loses no match of a listing; a budget is a share of its run-steps. CPU
seconds of this process: the least of several repetitions in alternation, so that what else the machine does counts
little. The history is learned before, from the first part of the stream, and kept where ``--histories`` says.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, Query, compile_query
from experiments.shedding.heavy import load_heavy
from experiments.shedding.recall import LISTING
from experiments.shedding.workloads import Workload, ds1
from history.store import is_history

BUDGETS = ("10%", "2%")
SPENT: dict[str, dict[str, Any]] = {
    "no audit": {"audit": 0.0},
    "audit": {},
    "learning": {"learn": True},
}
"""Ways to spend a budget: the audit and what is learned are inside of it."""

MADE = {
    "DS1-near-long": (
        "PATTERN SEQ(A a, B b, C c, F f) WHERE a.id = b.id AND b.id = c.id AND b.v + c.v < f.v"
        " AND ((a.x - f.x) * (a.x - f.x) + (a.y - f.y) * (a.y - f.y)) * 2000 <= f.v WITHIN 2500"
    ),
}
"""Of the generated stream DS1, but longer: no value of ``a.x`` and ``a.y`` is the better one."""
EVENTS, PAST = 120_000, 20_000


def load(name: str) -> Workload:
    """A workload: generated, or of ``shedding.heavy``."""
    if name not in MADE:
        return load_heavy(name)
    stream = ds1(EVENTS, 1)
    return Workload(name, MADE[name], stream.slice(0, PAST), stream.slice(PAST), None)


def known(query: Query, workload: Workload, folder: Path | None) -> HistoryGraph:
    """The history of a workload, learned only if it was not kept."""
    kept = folder / workload.name if folder is not None else None
    if kept is not None and is_history(kept):
        return HistoryGraph.load(kept, query)
    made = HistoryGraph(query).fit(workload.train, **_unit(workload))
    if kept is not None:
        made.save(kept)
    return made


def _unit(workload: Workload) -> dict[str, str]:
    return {"unit": workload.unit} if workload.unit else {}


def measure(workload: Workload, folder: Path | None, repeats: int, budgets: tuple[str, ...]) -> Table:
    """The table of a workload."""
    query, events, unit = compile_query(workload.query, engine="runs"), workload.test, _unit(workload)
    history = known(query, workload, folder)
    exact = query.match(events, merge=LISTING, **unit)
    points, steps = exact.points().num_rows, exact.progress.steps / len(events)
    runs: dict[tuple[str, str], Callable[[], Any]] = {("exact", ""): lambda: query.match(events, merge=LISTING, **unit)}
    for budget in budgets:
        for name, how in SPENT.items():
            runs[budget, name] = lambda budget=budget, how=how: query.match_within(  # type: ignore[misc]
                events, budget, history=history, full_work=steps, **how, **unit
            )
    least = dict.fromkeys(runs, float("inf"))
    last: dict[tuple[str, str], tuple[Any, pa.Table]] = {}
    for _ in range(repeats):
        for name, make in runs.items():
            begun = time.process_time()
            some = make()
            found = some.points()
            least[name] = min(least[name], time.process_time() - begun)
            last[name] = some, found
    whole = least["exact", ""]
    table = Table(title=f"{workload.name}: {steps:,.0f} run-steps per event, {points:,} match points, {whole:.2f} s")
    for column in ("budget", "with", "run-steps", "time", "us per event", "recall", "learning"):
        table.add_column(column, justify="right")
    for (budget, name), seconds in least.items():
        some, found = last[budget, name]
        if budget == "exact":
            continue
        record = some.record()
        learning = f"{record.learning.seconds / record.seconds:.0%}" if record.learning is not None else ""
        table.add_row(
            budget, name, f"{record.work / (steps * len(events)):.1%}", f"{seconds / whole:.1%}",
            f"{seconds / len(events) * 1e6:.1f}", f"{found.num_rows / max(points, 1):.2f}", learning,
        )  # fmt: skip
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="zeek-dns,DS1-near-long", help="names of workloads, with commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budgets", default=",".join(BUDGETS), help="with commas")
    parser.add_argument("--histories", type=Path, help="where histories are kept from one call to the next")
    asked = parser.parse_args()
    console = Console()
    for name in asked.only.split(","):
        console.print(measure(load(name), asked.histories, asked.repeats, tuple(asked.budgets.split(","))))


if __name__ == "__main__":
    main()
