"""Whether a percentage is one: what runs inside a budget spend of the work that the exact run takes on the same events.

    python -m experiments.shedding.percent [--only NAME,...] [--budgets 10,50,80] [--quick] [--out FILE]

On each workload, heavy (``shedding.heavy``) and light (``shedding.workloads``), a history learns from the first half of
a stream. Runs by it go over the second half as a user's do, ``Query.match_within`` with the default audit, and ask for
match points or for counts. The exact run is that of the same query and output after lossless merging. Said are

* the load that a run states, as a share of what the exact run takes, and that of the past's mean;
* what it spends, as a share of the percentage of what the exact run takes: 1 is what was asked for;
* what it finds, as a share of all match points or of all matches.

Right is from 0.9 to 1.05 of the percentage. Less is right, too, where there was nothing left to find: 99% were found.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, Matcher, Query, compile_query
from acep_approx.events.source import BATCH_ROWS
from acep_approx.training.pricing import LISTED, POINTED
from experiments.shedding.heavy import HEAVY, heavy_workloads
from experiments.shedding.workloads import GENERATED, QUERIES, Workload, workloads

BUDGETS = (10.0, 50.0, 80.0)
LEAST, MOST, ALL = 0.9, 1.05, 0.99
OUTPUTS = {"points": POINTED, "counts": LISTED}
"""Outputs, and how their exact runs merge."""


@dataclass(frozen=True)
class Spent:
    """What one run spent.

    Attributes
    ----------
    workload, output : str
    percent : float
        What was asked for.
    exact : float
        Run-steps per event of the exact run.
    past : float
        The mean of the past, as a share of these.
    stated : float
        The load that the run states, as a share of these.
    spent : float
        As a share of the percentage of these.
    found : float
        As a share of all match points or matches.
    """

    workload: str
    output: str
    percent: float
    exact: float
    past: float
    stated: float
    spent: float
    found: float

    @property
    def is_right(self) -> bool:
        """Whether a percentage was spent."""
        return (self.spent >= LEAST or self.found >= ALL) and self.spent <= MOST


def measure(workload: Workload, known: HistoryGraph, query: Query, budgets: Sequence[float]) -> Iterator[Spent]:
    """Runs over one workload, by a history of its first half."""
    unit, events = {"unit": workload.unit} if workload.unit else {}, len(workload.test)
    for output, merge in OUTPUTS.items():
        work, all_found = exact(query, workload.test, unit, output, merge)
        for percent in budgets:
            some = query.match_within(workload.test, f"{percent:g}%", history=known, **unit)
            found = _number(getattr(some, output)(), output)
            record = some.record()
            assert record.full_work is not None, "the history knows it"
            yield Spent(
                workload.name,
                output,
                percent,
                work / events,
                (record.past_work or record.full_work) * events / work,
                record.full_work * events / work,
                record.work / work / (percent / 100),
                found / max(all_found, 1),
            )


def exact(query: Query, events: pa.Table, unit: dict[str, str], output: str, merge: str) -> tuple[int, float]:
    """Run-steps of the exact run, and what it finds."""
    matcher, found = Matcher(query.plan, output=output, merge=merge, **unit), 0.0
    for first in range(0, len(events), BATCH_ROWS):
        found += _number(matcher.push(events.slice(first, BATCH_ROWS)), output)
    return matcher.progress.steps, found + _number(matcher.finish(), output)


def _number(found: pa.Table, output: str) -> float:
    return len(found) if output == "points" else pc.sum(found["matches"].cast(pa.float64())).as_py() or 0.0


def main() -> None:
    """Measure, print a line for each workload and output, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--budgets", default=",".join(f"{one:g}" for one in BUDGETS), help="percentages, with commas")
    parser.add_argument("--quick", action="store_true", help="light generated streams only")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines, as they come")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else list(GENERATED if asked.quick else (*HEAVY, *QUERIES))
    budgets = [float(one) for one in asked.budgets.split(",")]
    heavy, light = ([name for name in names if name in some] for some in (HEAVY, QUERIES))
    console, all_spent = Console(), list[Spent]()
    for make in (*heavy_workloads(heavy), *workloads(light)):
        workload = make(1)
        query = compile_query(workload.query, engine="runs")
        unit = {"unit": workload.unit} if workload.unit else {}
        found = list(measure(workload, HistoryGraph(query).fit(workload.train, **unit), query, budgets))
        all_spent += found
        if asked.out:
            with asked.out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(one)) + "\n" for one in found)
        console.print(f"{workload.name}: done")
    console.print(table_of(all_spent, budgets))
    console.print(f"right: {sum(one.is_right for one in all_spent)} of {len(all_spent)}")


def table_of(all_spent: Sequence[Spent], budgets: Sequence[float]) -> Table:
    """A line for each workload and output; ``!`` where a percentage was not spent."""
    table = Table("workload", "output", "run-steps per event", "past", "stated", *(f"{one:g}%" for one in budgets))
    for key in dict.fromkeys((one.workload, one.output) for one in all_spent):
        mine = [one for one in all_spent if (one.workload, one.output) == key]
        first = mine[0]
        spent = (f"{one.spent:.2f}" + "!" * (not one.is_right) for one in mine)
        table.add_row(*key, f"{first.exact:,.3g}", f"{first.past:.2f}", f"{first.stated:.2f}", *spent)
    return table


if __name__ == "__main__":
    main()
