"""How wide the intervals of estimated recall are, and how often they hold the truth.

``python -m experiments.shedding.estimates`` runs the workloads of ``shedding.heavy`` and the two queries of the
tutorial inside budgets, as a user does: a history of what came before, the default audit. Each real stream is cut at
several places into a past and a present; of a generated one there is another for each. Each is run with several seeds.
Printed are recall, what the past promised, the mean and the widest interval, the share of intervals at most 0.2 and 0.4
wide, and how often they hold the truth: recall of match points against the exact run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from acep_approx import Query, compile_query
from acep_approx.results.budgeted import BudgetedMatches
from experiments.shedding.heavy import HEAVY, HEAVY_REAL, load_heavy
from experiments.shedding.workloads import Workload
from experiments.streams import real

BUDGETS = (0.05, 0.10, 0.20)
NARROW, USABLE = 0.2, 0.4
TUTORIAL: dict[str, tuple[str, int, str]] = {
    "tutorial-late": (
        "flights",
        120_000,
        "PATTERN SEQ(DEP a, ARR b, DEP c) WHERE [key] AND a.delay_min >= 60 AND c.delay_min >= 60 WITHIN 24 h",
    ),
    "tutorial-wave": (
        "flights",
        60_000,
        (
            "PATTERN SEQ(DEP a, DEP b, DEP c, CXL d) WHERE [origin] AND b.delay_min > a.delay_min"
            " AND c.delay_min > b.delay_min AND b.carrier <> a.carrier AND c.carrier <> b.carrier AND d.dest = a.dest"
            " WITHIN 3 h"
        ),
    ),
}
"""The queries of docs/tutorial/flights.md."""


@dataclass(frozen=True)
class Result:
    """One run: its recall in truth, and as it was estimated."""

    workload: str
    place: int
    seed: int
    budget: float
    recall: float
    promised: float
    low: float
    high: float
    has_number: bool
    tried: int
    audited: int

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.high - self.low

    @property
    def holds(self) -> bool:
        """Whether it holds the truth."""
        return self.low - 1e-9 <= self.recall <= self.high + 1e-9


def workload_at(name: str, place: int, places: int) -> Workload:
    """A past and a present of one workload: a real stream is cut at one of some places, spread over it evenly."""
    if name not in HEAVY_REAL | TUTORIAL:
        return load_heavy(name, place + 1)
    file, events, query = (HEAVY_REAL | TUTORIAL)[name]
    stream = real.load(file)
    events = min(events, int(0.35 * len(stream)))
    cut = events + int((len(stream) - 2 * events) * (place + 0.5) / places)
    return Workload(name, query, stream.slice(cut - events, events), stream.slice(cut, events), "us")


def measure(workload: Workload, place: int, seeds: Sequence[int]) -> Iterator[Result]:
    """Run one workload inside all budgets."""
    query: Query = compile_query(workload.query, engine="runs")
    unit: dict[str, Any] = {"unit": workload.unit} if workload.unit else {}
    known = query.train(workload.train, **unit)
    exact = query.match(workload.test, **unit).points()["row"].to_numpy()
    points = len(np.unique(exact))
    assert known.promises_ is not None, "it has measured them"
    promises = {promise.share: promise.recall for promise in known.promises_.of("points")}
    for budget in BUDGETS:
        for seed in seeds:
            some = query.match_within(workload.test, f"{100 * budget:g}%", history=known, seed=seed, **unit)
            promised = promises[budget]
            yield judged(some, points, Result(workload.name, place, seed, budget, 0, promised, 0, 1, False, 0, 0))


def judged(some: BudgetedMatches, points: int, blank: Result) -> Result:
    """What came of a run, beside its truth."""
    found_points = len(np.unique(some.points()["row"].to_numpy()))
    recall = found_points / points if points else 1.0  # nothing is missed
    estimate = some.record().recall
    assert estimate is not None, "it was audited"
    found = asdict(blank) | {"recall": recall}
    if estimate.low is not None and estimate.high is not None:
        found |= {"low": estimate.low, "high": estimate.high, "has_number": estimate.recall is not None}
    return Result(**found | {"tried": estimate.ends, "audited": estimate.points})


def shown(results: Sequence[Result]) -> Table:
    """A row for each workload and budget, and one for all together."""
    table = Table("workload", "budget", "recall", "promised", "width", "widest", "<= 0.2", "<= 0.4", "holds", "tried")
    keys = dict.fromkeys((result.workload, result.budget) for result in results)
    for name, budget in keys:
        some = [result for result in results if (result.workload, result.budget) == (name, budget)]
        table.add_row(name, f"{budget:.0%}", *row(some))
    table.add_row("all", "", *row(results))
    return table


def row(some: Sequence[Result]) -> list[str]:
    """Means over some runs, and how many of them held."""
    widths = np.array([result.width for result in some])
    means = (np.mean([getattr(result, name) for result in some]) for name in ("recall", "promised"))
    held = sum(result.holds for result in some)
    return [
        *(f"{mean:.2f}" for mean in means),
        f"{widths.mean():.2f}",
        f"{widths.max():.2f}",
        f"{(widths <= NARROW).mean():.0%}",
        f"{(widths <= USABLE).mean():.0%}",
        f"{held} of {len(some)}",
        f"{np.mean([result.tried for result in some]):,.0f}",
    ]


def main() -> None:
    """Measure, print the table, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--places", type=int, default=3, help="pasts and presents of each stream")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines, as they come")
    asked = parser.parse_args()
    console, results = Console(width=140), list[Result]()
    for name in asked.only.split(",") if asked.only else (*TUTORIAL, *HEAVY):
        for place in range(asked.places):
            mine = list(measure(workload_at(name, place, asked.places), place, range(asked.seeds)))
            results += mine
            if asked.out:
                with asked.out.open("a", encoding="utf-8") as lines:
                    lines.writelines(json.dumps(asdict(result)) + "\n" for result in mine)
    console.print(shown(results))


if __name__ == "__main__":
    main()
