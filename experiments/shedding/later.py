"""How much of the exact answer a budget finds, as users run it: learned from the past, nothing known of what comes.

    python -m experiments.shedding.later [--groups heavy,light,twelve,near] [--only NAME,...] [--seeds N]
        [--budgets 2%,...] [--output points|matches]

For each workload of ``shedding.later_workloads``: ``query.match_within(later, budget, history=...)`` with the default
audit, where the history was fitted to the events before. Printed are, by budget, which share of the match points and
of the bundles (or of the matches, where these are asked for) was found (mean over seeds; a window apart are two
bundles), the work as a share of that of the exact run, and CPU time as a share of that of the exact run that follows
all runs.
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
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.shedding.shedder import Shedder
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
    others: float  # bundles, or matches
    work: float
    seconds: float


class Exact:
    """The exact run of a query over events, which follows all runs; ``output``: what budgets are of."""

    def __init__(self, query: Query, events: pa.Table, output: str) -> None:
        self.seconds, self.output, self.events = np.inf, output, len(events)
        for _ in range(ROUNDS):
            begun = time.process_time()
            matcher, tables = _followed(query, events, output)
            self.seconds = min(self.seconds, time.process_time() - begun)
        self.steps, self.matches = matcher.progress.steps, sum(map(len, tables))
        self.points = pa.concat_tables(tables if output == "points" else _followed(query, events, "points")[1])
        assert matcher.pipeline is not None, "it has been pushed"
        self.window = matcher.pipeline.window

    def recalls(self, some: BudgetedMatches) -> tuple[float, float]:
        """Match points that a run finds, and bundles, or matches; that none is wrong is checked."""
        if self.output == "points":
            rows, matches = some.points()["row"].to_numpy(), 0
        else:
            matches = sum(map(len, some.tables()))
            assert isinstance(some.shedder, Shedder), "it has run"
            rows = some.shedder.metrics.points.row
        assert np.isin(rows, self.points["row"].to_numpy()).all(), "a match point that is none"
        points, bundles = recalls_of_points(self.points, rows, self.window)
        return points, bundles if self.output == "points" else matches / max(self.matches, 1)


def _followed(query: Query, events: pa.Table, output: str) -> tuple[Matcher, list[pa.Table]]:
    matcher = Matcher(query.plan, output=output, unit="us")
    matcher.may_search = False
    return matcher, [matcher.push(events), matcher.finish()]


def measure(
    workload: LaterWorkload, budgets: Sequence[str], seeds: Sequence[int], output: str = "points"
) -> tuple[Exact, dict[str, Found]]:
    """Run a workload inside budgets."""
    earlier, later = workload.events()
    query = compile_query(workload.query, engine="runs")
    history = HistoryGraph(query).fit(earlier, unit="us")
    exact, found = Exact(query, later, output), {}
    for budget in budgets:
        parts = []
        for seed in seeds:
            begun = time.process_time()
            some = query.match_within(later, budget, history=history, unit="us", seed=seed)
            recalls = exact.recalls(some)
            seconds = time.process_time() - begun
            parts.append((*recalls, some.record().work / max(exact.steps, 1), seconds / exact.seconds))
        found[budget] = Found(*np.mean(parts, axis=0).tolist())
    return exact, found


def main() -> None:
    """Measure, and print a table for each group."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--groups", default=",".join(GROUPS), help="of workloads, with commas")
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--output", choices=("points", "matches"), default="points", help="what is asked for")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--budgets", default=",".join(BUDGETS), help="with commas")
    asked = parser.parse_args()
    budgets, console = asked.budgets.split(","), Console()
    for group in asked.groups.split(","):
        names = [name for name in GROUPS[group] if not asked.only or name in asked.only.split(",")]
        if not names:
            continue
        others = "bundles" if asked.output == "points" else "matches"
        table = Table(title=f"{group}: match points found / {others} found / work / CPU time, of the exact run's")
        for column in ("workload", "points", "steps/event", *budgets):
            table.add_column(column, justify="left" if column == "workload" else "right")
        all_found = []
        for name in names:
            exact, found = measure(GROUPS[group][name], budgets, range(asked.seeds), asked.output)
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
