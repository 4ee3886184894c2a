"""What one load budget finds for sets of queries, for early results, and for rules.

    python -m experiments.shedding.programs [--quick] [--only sets,early,rules] [--streams NAME,...]
        [--queries N,...] [--out FILE]

* *sets*: uneven sets of 1,000 and 10,000 queries on five real streams and a generated one, with and without weights:
  one budget against equal shares of the same run-steps and against chance (``shedding.set_programs``).
* *early*: results at once, where 5% of the events come late (``shedding.early_programs``).
* *rules*: see ``shedding.rule_programs``.

All learn from the events before the middle of a stream, and run on those behind it through the users' door.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from acep_approx import Histories
from experiments.shedding import early_programs, rule_programs, set_programs
from experiments.shedding.rule_workloads import RULE_WORKLOADS
from experiments.shedding.set_programs import OTHERS, OURS, SetResult
from experiments.shedding.set_workloads import EVENTS, GENERATED, PROGRAMS, load_set

QUERIES = (1_000, 10_000)
UNEVEN = 1.2
"""How many times the match points of equal shares one budget is to find."""


@dataclass(frozen=True)
class Asked:
    """What is to be measured: on which streams, with how many queries, with how many events on each side."""

    streams: tuple[str, ...]
    queries: tuple[int, ...] = QUERIES
    events: int = EVENTS
    quick: bool = False
    out: Path | None = None

    def keep(self, part: str, results: Iterable[Any]) -> None:
        """Write numbers to the file, as JSON lines."""
        if self.out is not None:
            with self.out.open("a", encoding="utf-8") as lines:
                lines.writelines(json.dumps({"part": part} | asdict(one)) + "\n" for one in results)


QUICK = Asked((GENERATED,), (60,), 1_200, quick=True)
"""What ``--quick`` asks for."""


# --- sets ---------------------------------------------------------------------------------------------------


def sets(asked: Asked) -> Iterator[Table]:
    """A table for each set, and one that has the least and the mean lead over all of them."""
    every: list[SetResult] = []
    for name in asked.streams:
        workload = load_set(name, asked.events)
        for queries in asked.queries:
            known: Histories | None = None
            for is_weighted in (False, True):
                measured = set_programs.Measured(workload, queries, is_weighted=is_weighted, known=known)
                known = measured.known
                results = [*measured.run(set_programs.BUDGETS)]
                asked.keep("sets", results)
                every += results
                yield _of_set(measured, results)
    yield _leads(every)


def _of_set(measured: set_programs.Measured, results: list[SetResult]) -> Table:
    weights = "with weights" if measured.is_weighted else "without weights"
    title = (
        f"{measured.workload.name}, {measured.queries:,} queries {weights}: {measured.steps_per_event:,.0f} run-steps"
        f" per event, {len(measured.points):,} match points"
    )
    table = Table("budget", OURS, *OTHERS, "spent", "of exact", "time", "estimate", "truth", "own", title=title)
    for percent in dict.fromkeys(one.percent for one in results):
        mine = {one.way: one for one in results if one.percent == percent}
        ours = mine[OURS]
        recalls = (f"{mine[way].recall:.3f}" for way in (OURS, *OTHERS))
        shares = (f"{share:.0%}" for share in (ours.spent, ours.of_exact, ours.seconds / ours.exact_seconds))
        table.add_row(f"{percent}%", *recalls, *shares, _estimate(ours), f"{ours.plain:.2f}", f"{ours.own:,}")
    return table


def _estimate(one: SetResult) -> str:
    if one.low is None or one.high is None:
        return "unknown"
    holds = "" if one.low - 1e-9 <= one.plain <= one.high + 1e-9 else " !"
    return f"{one.low:.2f}-{one.high:.2f}{holds}"


def _leads(results: list[SetResult]) -> Table:
    """How many times what others find one budget finds, over all sets: in the mean, and at least."""
    table = Table("budget", *(f"against {way}" for way in OTHERS), "of exact", title="one budget: mean (least) lead")
    for percent in dict.fromkeys(one.percent for one in results):
        cells = []
        for way in OTHERS:
            leads = lead_over(results, way, percent)
            cells.append(f"{np.exp(np.mean(np.log(leads))):.2f} ({min(leads):.2f})")
        shares = [one.of_exact for one in results if one.way == OURS and one.percent == percent]
        table.add_row(f"{percent}%", *cells, f"{min(shares):.2f}-{max(shares):.2f}")
    return table


def lead_over(results: Iterable[SetResult], way: str, percent: int) -> list[float]:
    """For each set how many times the weighted match points of another way one budget finds; 0.01 is added to both."""
    of: dict[tuple[str, int, bool], dict[str, float]] = {}
    for one in results:
        if one.percent == percent:
            of.setdefault((one.workload, one.queries, one.is_weighted), {})[one.way] = one.recall
    return [(mine[OURS] + 0.01) / (mine[way] + 0.01) for mine in of.values()]


# --- early results ------------------------------------------------------------------------------------------


def early(asked: Asked) -> Iterator[Table]:
    """One table for all queries."""
    heads = ("budget", "points", "recall", "in order", "came early", "taken back", "spent", "of exact", "time")
    table = Table("query", *heads, title="early results, 5% of the events late")
    names = ("tweets-spread",) if asked.quick else early_programs.NAMES
    for workload in early_programs.workloads(names):
        found = [*early_programs.measure(workload, events=min(asked.events, early_programs.EVENTS))]
        asked.keep("early", found)
        for one in found:
            shares = (one.early, one.taken_back, one.spent, one.of_exact, one.time)
            recalls = (f"{one.recall:.2f}", f"{one.in_order:.2f}")
            cells = (f"{share:.0%}" for share in shares)
            table.add_row(one.workload, f"{one.percent}%", f"{one.points:,}", *recalls, *cells)
    yield table


# --- rules --------------------------------------------------------------------------------------------------


def rules(asked: Asked) -> Iterator[Table]:
    """What is found, and how much of it is certain."""
    events, out = min(asked.events, rule_programs.EVENTS), asked.out
    if asked.quick:
        yield from rule_programs.tables(RULE_WORKLOADS[:1], events, rule_programs.BUDGETS[-1:], out)
    else:
        yield from rule_programs.tables(RULE_WORKLOADS, events, out=out)


PARTS: dict[str, Callable[[Asked], Iterator[Table]]] = {"sets": sets, "early": early, "rules": rules}
"""Each gives its tables as they are ready."""


def main() -> None:
    """Measure, print the tables, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the generated stream, few queries and events")
    parser.add_argument("--only", default=",".join(PARTS), help="names of parts, with commas")
    parser.add_argument("--streams", default=",".join(PROGRAMS), help="names of streams of sets, with commas")
    parser.add_argument("--queries", default=",".join(map(str, QUERIES)), help="sizes of sets, with commas")
    parser.add_argument("--events", type=int, default=EVENTS, help="on each side of the middle of a stream")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines, as they come")
    given = parser.parse_args()
    streams, queries = tuple(given.streams.split(",")), tuple(map(int, given.queries.split(",")))
    asked = Asked(streams, queries, given.events, out=given.out)
    if given.quick:
        asked = replace(QUICK, out=given.out)
    console = Console(width=160)
    for part in given.only.split(","):
        for table in PARTS[part](asked):
            console.print(table)


if __name__ == "__main__":
    main()
