"""Whether runs inside budgets find what their history promised, and what measuring that takes.

    python -m experiments.shedding.promises [--light] [--quick] [--seeds N] [--only NAME,...] [--out FILE]

On each workload a history learns from the half of a stream before its middle, as ``acep train`` does, and promises what
budgets find. Then runs by the saved history go over the events that this was measured on, and over as many that follow.
Each is a user's run: ``Query.match_within`` with the default audit. A promise is held where its interval has the recall
that came of it; said are shares of all budgets, outputs and seeds, the mean width of intervals, and the share by which
measuring made learning longer. On heavy workloads (``shedding.heavy``), or light ones
(``shedding.workloads``).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.shedding.promising import MERGES, promised
from acep_approx.training.promise import Part, Promise, Promises
from experiments.shedding.heavy import HEAVY, HEAVY_GENERATED, heavy_workloads
from experiments.shedding.workloads import GENERATED, QUERIES, Workload, workloads

SEEDS = 2
SAME, NEXT = "the same events", "the events behind them"


@dataclass(frozen=True)
class Held:
    """A promise, and the recall that came of one run."""

    workload: str
    promise: Promise
    on: str
    seed: int
    recall: float

    @property
    def is_held(self) -> bool:
        """Whether the interval has it."""
        return self.promise.low <= self.recall <= self.promise.high


@dataclass(frozen=True)
class Learned:
    """A history that has promised, and CPU seconds: of all of the learning, and of measuring alone."""

    known: HistoryGraph
    seconds: float
    measuring: float


def learn(query: Query, workload: Workload, unit: dict[str, str]) -> Learned:
    """Learn as ``acep train`` does."""
    took = [0.0]

    def measured(known: HistoryGraph, part: Part) -> Promises:
        begun = time.process_time()
        found = promised(known, part)
        took[0] = time.process_time() - begun
        return found

    begun = time.process_time()
    known = HistoryGraph(query).fit(workload.train, measure=measured, **unit)
    return Learned(known, time.process_time() - begun, took[0])


def measure(workload: Workload, seeds: int, learned: list[Learned]) -> Iterator[Held]:
    """Hold the promises of one workload against runs; what was learned is added to a list."""
    query = compile_query(workload.query, engine="runs")
    unit = {"unit": workload.unit} if workload.unit else {}
    learned.append(learn(query, workload, unit))
    known = learned[-1].known
    promises = known.promises_
    if promises is None:
        return
    parts = {SAME: workload.train.slice(promises.trained), NEXT: workload.test.slice(0, promises.measured)}
    for on, events in parts.items():
        exact = _rows(query, events, unit)
        for promise in promises.rows if exact else ():
            for seed in range(seeds):
                more = {"history": known, "merge": MERGES[promise.output], "seed": seed, **unit}
                found = query.match_within(events, f"{100 * promise.share:g}%", **more).points()["row"].to_pylist()
                yield Held(workload.name, promise, on, seed, len(set(found)) / len(exact))


def _rows(query: Query, events: pa.Table, unit: dict[str, str]) -> set[int]:
    return set(query.match(events, **unit).points()["row"].to_pylist())


def main() -> None:
    """Measure, print a line for each workload and the shares that were held, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--light", action="store_true", help="the workloads with little load")
    parser.add_argument("--quick", action="store_true", help="generated streams only, one seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines, as they come")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else list(QUERIES if asked.light else HEAVY)
    if asked.quick:
        names, asked.seeds = [name for name in names if name in (GENERATED if asked.light else HEAVY_GENERATED)], 1
    console, held, learned = Console(), [], list[Learned]()
    table = Table("workload", "points", "width", "held: same", "held: next", "measuring")
    for make in workloads(names) if asked.light else heavy_workloads(names):
        found = list(measure(make(1), asked.seeds, learned))
        held += found
        if asked.out:
            with asked.out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(one)) + "\n" for one in found)
        if found:
            table.add_row(*_row(found, learned[-1]))
            console.print(f"{found[0].workload}: done")
    if held:
        table.add_section()
        table.add_row("all", "", _width(held), *_shares(held), _time(learned))
    console.print(table)


def _row(found: list[Held], learned: Learned) -> list[str]:
    promises = learned.known.promises_
    assert promises is not None, "it has promised"
    return [found[0].workload, f"{promises.points:,}", _width(found), *_shares(found), _time([learned])]


def _width(held: list[Held]) -> str:
    return f"{sum(one.promise.high - one.promise.low for one in held) / len(held):.2f}"


def _shares(held: list[Held]) -> Iterator[str]:
    for on in (SAME, NEXT):
        mine = [one.is_held for one in held if one.on == on]
        yield f"{sum(mine) / len(mine):.0%} of {len(mine)}" if mine else "-"


def _time(learned: list[Learned]) -> str:
    """Of the rest of the learning."""
    measuring = sum(one.measuring for one in learned)
    return f"+{measuring / max(sum(one.seconds for one in learned) - measuring, 1e-9):.0%}"


if __name__ == "__main__":
    main()
