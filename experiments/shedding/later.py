"""How much of the exact answer a budget finds, as users run it: learned from the past, nothing known of what comes.

    python -m experiments.shedding.later [--groups heavy,light,twelve] [--only NAME,...] [--seeds N] [--budgets 2%,...]

For each workload of ``shedding.later_workloads``: ``query.match_within(later, budget, history=...)`` with the default
audit, where the history was fitted to the events before. Printed are, by budget, which share of the match points and
of the bundles was found (mean over seeds; a window apart are two bundles), the work as a share of that of the exact
run, and CPU time as a share of that of the exact run that follows all runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, Matcher, Query, compile_query
from experiments.shedding.later_workloads import GROUPS, LaterWorkload
from experiments.shedding.metrics import recalls_of_points

BUDGETS = ("2%", "5%", "10%", "20%")
SEEDS = 5
ROUNDS = 3
"""Of the exact run: the fastest counts."""


@dataclass(frozen=True)
class Found:
    """What runs inside one budget found and took, as shares of the exact run; means over seeds."""

    points: float
    bundles: float
    work: float
    seconds: float


class Exact:
    """The exact run of a query over events, which follows all runs."""

    def __init__(self, query: Query, events: pa.Table) -> None:
        self.seconds = np.inf
        for _ in range(ROUNDS):
            matcher, begun = Matcher(query.plan, output="points", unit="us"), time.process_time()
            matcher.may_search = False
            tables = [matcher.push(events), matcher.finish()]
            self.seconds = min(self.seconds, time.process_time() - begun)
        self.points = pa.concat_tables(tables)
        self.steps, self.events = matcher.progress.steps, len(events)
        assert matcher.pipeline is not None, "it has been pushed"
        self.window = matcher.pipeline.window


def measure(workload: LaterWorkload, budgets: Sequence[str], seeds: Sequence[int]) -> tuple[Exact, dict[str, Found]]:
    """Run a workload inside budgets; that no match point is wrong is checked."""
    earlier, later = workload.events()
    query = compile_query(workload.query, engine="runs")
    history = HistoryGraph(query).fit(earlier, unit="us")
    exact = Exact(query, later)
    rows, found = exact.points["row"].to_numpy(), {}
    for budget in budgets:
        parts = []
        for seed in seeds:
            some, begun = query.match_within(later, budget, history=history, unit="us", seed=seed), time.process_time()
            mine = some.points()["row"].to_numpy()
            seconds = time.process_time() - begun
            assert np.isin(mine, rows).all(), "a match point that is none"
            points, bundles = recalls_of_points(exact.points, mine, exact.window)
            parts.append((points, bundles, some.record().work / max(exact.steps, 1), seconds / exact.seconds))
        found[budget] = Found(*np.mean(parts, axis=0).tolist())
    return exact, found


def main() -> None:
    """Measure, and print a table for each group."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--groups", default=",".join(GROUPS), help="of workloads, with commas")
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--budgets", default=",".join(BUDGETS), help="with commas")
    asked = parser.parse_args()
    budgets, console = asked.budgets.split(","), Console()
    for group in asked.groups.split(","):
        names = [name for name in GROUPS[group] if not asked.only or name in asked.only.split(",")]
        if not names:
            continue
        table = Table(title=f"{group}: match points found / bundles found / work / CPU time, of the exact run's")
        for column in ("workload", "points", "steps/event", *budgets):
            table.add_column(column, justify="left" if column == "workload" else "right")
        all_found = []
        for name in names:
            exact, found = measure(GROUPS[group][name], budgets, range(asked.seeds))
            all_found.append([vars(found[budget]).values() for budget in budgets])
            cells = [_cell(vars(found[budget]).values()) for budget in budgets]
            table.add_row(name, str(len(exact.points)), f"{exact.steps / exact.events:.1f}", *cells)
            console.print(f"{name:12} {exact.steps / exact.events:9.1f} steps/event  " + "  ".join(cells))
        means = np.mean([[[*numbers] for numbers in row] for row in all_found], axis=0)
        table.add_row("mean", "", "", *map(_cell, means.tolist()))
        console.print(table)


def _cell(numbers: Sequence[float]) -> str:
    points, bundles, work, seconds = numbers
    return f"{points:.2f} {bundles:.2f} {work:.1%} {seconds:.0%}"


if __name__ == "__main__":
    main()
