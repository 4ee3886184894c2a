"""How well a run that learns does inside a load budget: from a cold start, after a change, and what learning costs.

    python -m experiments.learning [--quick] [--seeds N] [--only cold,drift,learners,cost]
                                          [--streams T7,zeek,...] [--out FILE]

* ``cold``: learning from nothing against a history of the first half of a stream, over the whole stream.
* ``drift``: a history of what was before a change, frozen or learning on from it, against one of what came after it
  and against learning from nothing at the change. What was saved up before the change is lost, for all alike.
* ``learners``: other learners in worlds where the true values are known, see ``learning.world``.
* ``cost``: CPU time of learning, cohort included, as a share of that of a run that does not learn.

All runs have a tenth of the exact run's run-steps, see ``learning.runs``. On real streams seeds change coins alone; of
generated ones there is another for each seed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, compile_query
from experiments.learning import world as online_world
from experiments.learning.drifts import DRIFTS, HALF, Drift, swapped
from experiments.learning.runs import Found, answer, offline, run
from experiments.report import of_texts
from experiments.shedding.workloads import EVENTS, GENERATED, QUERIES, REAL, Workload, load

SEEDS = 6
TENTH, HALF_STREAM = "after a tenth", "second half"
SOON, LATER, AFTER = "ten windows", "later", "after the change"
WINDOWS = 10
TOLERANCE, RECOVERED, AHEAD, COST = 0.05, 0.9, 0.10, 0.05
COSTLY = {"T7": 0, "S4": 0, "F4": 0, "DS1-sum": 1_000_000}
"""Streams that learning is timed on; events of the generated one."""
REPEATS = 5
PAST = 100_000
"""Events that a history is learned from where learning is timed."""
WIDTH = 150


@dataclass(frozen=True)
class Result:
    """One run: recall of match points in sections of its stream, and what it took.

    Attributes
    ----------
    part, stream, run : str
    seed : int
    recall : dict
        By section; NaN where it has no match point.
    work : float
        Share of the exact run's run-steps.
    seconds, learning : float
        CPU time, and that part of it which is learning.
    alarms : int
    """

    part: str
    stream: str
    run: str
    seed: int
    recall: dict[str, float]
    work: float
    seconds: float
    learning: float
    alarms: int

    @classmethod
    def of(
        cls, part: str, stream: str, run: str, seed: int, found: Found, recall: dict[str, float], steps: float
    ) -> Result:
        """Of what a run found."""
        work = found.work / max(steps, 1)
        return cls(part, stream, run, seed, recall, work, found.seconds, found.learning, found.alarms)


# --- cold start ---------------------------------------------------------------------------------------------------


def cold(names: Iterable[str], seeds: int, events: int) -> Iterator[Result]:
    """Learning from nothing, and an offline history, on the workloads of load shedding.

    Parameters
    ----------
    names : iterable of str
        Of ``shedding.workloads``.
    seeds, events : int
        Events of a generated stream.
    """
    for name in names:
        if name in REAL:
            yield from _cold(load(name), range(seeds))
        else:
            for seed in range(seeds):
                yield from _cold(load(name, seed + 1, events), [seed])


def _cold(workload: Workload, seeds: Iterable[int]) -> Iterator[Result]:
    query = compile_query(workload.query, engine="runs")
    stream = pa.concat_tables([workload.train, workload.test]).combine_chunks()
    exact = answer(query, stream, workload.unit)
    known = offline(query, workload.train, workload.unit)
    parts = {TENTH: exact.rows >= len(stream) // 10, HALF_STREAM: exact.rows >= len(workload.train)}
    for seed in seeds:
        for name, history in (("offline", known), ("learning", None)):
            found = run(
                query, [stream], workload.unit, exact.steps / len(stream), seed=seed, history=history,
                learns=history is None,
            )  # fmt: skip
            recall = {part: found.recall(exact, rows) for part, rows in parts.items()}
            yield Result.of("cold", workload.name, name, seed, found, recall, exact.steps)


def cold_verdicts(results: Sequence[Result]) -> Iterator[tuple[bool, str]]:
    """Whether learning is as good as an offline history, and whether a seed locked in; with words."""
    names = _streams(results)
    both = [[mean(results, name, run, TENTH) for run in ("offline", "learning")] for name in names]
    lag = float(np.mean([before - learned for before, learned in both]))
    means = " and ".join(f"{of:.3f}" for of in np.mean(both, axis=0))
    yield (
        lag <= TOLERANCE,
        f"offline and learning, mean over {len(names)} workloads {TENTH}: {means}; behind by {lag:+.3f}",
    )
    locked = []
    for name in names:
        some = recalls(results, name, "learning", TENTH)
        locked += [f"{name} {one:.2f}" for one in some if one < np.mean(some) / 2]
    yield not locked, f"seeds below half of the mean of their workload: {', '.join(locked) or 'none'}"


# --- drift --------------------------------------------------------------------------------------------------------


def drift(names: Iterable[str], seeds: int, half: int) -> Iterator[Result]:
    """Four runs over each stream that changes.

    Parameters
    ----------
    names : iterable of str
        Of ``drifts.DRIFTS``.
    seeds, half : int
        Events of half a generated stream.
    """
    for name in names:
        if name == "swapped":
            for seed in range(seeds):
                yield from _drift(swapped(seed, half), [seed])
        else:
            yield from _drift(DRIFTS[name](0), range(seeds))


def _drift(stream: Drift, seeds: Iterable[int]) -> Iterator[Result]:
    query = compile_query(stream.query, engine="runs")
    exact = answer(query, stream.after, stream.unit)
    old, new = (offline(query, events, stream.unit) for events in (stream.before, stream.fresh))
    soon = exact.ticks < stream.after.column("ts")[0].as_py() + WINDOWS * exact.window
    parts = {SOON: soon, LATER: ~soon, AFTER: np.ones(len(soon), np.bool_)}
    whole, later = [stream.before, stream.after], [stream.after]
    plans: list[tuple[str, list[pa.Table], HistoryGraph | None, bool]] = [
        ("frozen", whole, old, False),
        ("learning", whole, old, True),
        ("fresh", later, new, False),
        ("cold", later, None, True),
    ]
    for seed in seeds:
        for name, events, history, learns in plans:
            found = run(
                query, events, stream.unit, exact.steps / len(stream.after), seed=seed, history=history, learns=learns
            )
            recall = {part: found.recall(exact, rows) for part, rows in parts.items()}
            yield Result.of("drift", stream.name, name, seed, found, recall, exact.steps)


def drift_verdicts(results: Sequence[Result]) -> Iterator[tuple[bool, str]]:
    """Whether learning recovers to what a fresh history finds, and gets ahead of a frozen one; with words."""
    for name in _streams(results):
        learned, fresh = (mean(results, name, run, LATER) for run in ("learning", "fresh"))
        words = f"{name}: learning / fresh after {WINDOWS} windows: {learned:.3f} / {fresh:.3f}"
        yield learned >= RECOVERED * fresh, f"{words} = {learned / max(fresh, 1e-9):.2f}"
        if name == "swapped":
            learned, frozen = (mean(results, name, run, AFTER) for run in ("learning", "frozen"))
            yield learned >= frozen + AHEAD, f"{name}: learning - frozen {AFTER}: {learned - frozen:+.3f}"


# --- cost ---------------------------------------------------------------------------------------------------------


def cost(streams: dict[str, int], repeats: int) -> Iterator[Result]:
    """Runs that learn and one that does not, in turns.

    Parameters
    ----------
    streams : dict
        Events of each workload, where it is generated.
    repeats : int
    """
    for name, events in streams.items():
        workload = load(name, events=events or EVENTS)
        query = compile_query(workload.query, engine="runs")
        stream = pa.concat_tables([workload.train, workload.test]).combine_chunks()
        exact = answer(query, stream, workload.unit)
        known = offline(query, workload.train.slice(0, PAST), workload.unit)
        plans = (("no learning", known, False), ("learning on", known, True), ("from nothing", None, True))
        for seed in range(repeats):
            for how, history, learns in plans:
                found = run(
                    query, [stream], workload.unit, exact.steps / len(stream), seed=seed, history=history, learns=learns
                )
                recall = {"all": found.recall(exact, np.ones(len(exact.rows), np.bool_))}
                yield Result.of("cost", name, how, seed, found, recall, exact.steps)


def shares(results: Sequence[Result], stream: str, run: str) -> tuple[float, float]:
    """CPU time of learning, and by how much the run takes longer than without it; medians of shares of the latter."""
    mine, base = ([r for r in results if (r.stream, r.run) == (stream, name)] for name in (run, "no learning"))
    learning = [one.learning / other.seconds for one, other in zip(mine, base, strict=True)]
    longer = [one.seconds / other.seconds - 1 for one, other in zip(mine, base, strict=True)]
    return float(np.median(learning)), float(np.median(longer))


def cost_verdicts(results: Sequence[Result]) -> Iterator[tuple[bool, str]]:
    """Whether learning is cheap, with words."""
    for how in ("learning on", "from nothing"):
        most, name = max((shares(results, name, how)[0], name) for name in _streams(results))
        yield most <= COST, f"{how}: learning takes {most:.1%} of the time without it at most ({name})"


# --- tables -------------------------------------------------------------------------------------------------------


def recalls(results: Iterable[Result], stream: str, run: str, section: str) -> list[float]:
    """Of all seeds that have a match point there."""
    some = [result.recall[section] for result in results if (result.stream, result.run) == (stream, run)]
    return [one for one in some if one == one]


def mean(results: Iterable[Result], stream: str, run: str, section: str) -> float:
    """Mean recall over seeds; NaN where there is none."""
    some = recalls(results, stream, run, section)
    return float(np.mean(some)) if some else float("nan")


def _streams(results: Iterable[Result]) -> list[str]:
    return list(dict.fromkeys(result.stream for result in results))


def table(title: str, results: Sequence[Result]) -> Table:
    """Streams and runs by section: mean [min-max] of the recalls; work and time."""
    made = Table(title=title)
    for head in ("stream", "run"):
        made.add_column(head, no_wrap=True)
    sections = list(results[0].recall)
    for head in (*sections, "work", "CPU s", "learning s", "alarms"):
        made.add_column(head, justify="right", no_wrap=True)
    for stream, name in dict.fromkeys((result.stream, result.run) for result in results):
        mine = [result for result in results if (result.stream, result.run) == (stream, name)]
        cells = [_spread(recalls(mine, stream, name, section)) for section in sections]
        cells.append(f"{np.mean([result.work for result in mine]):.1%}")
        cells += [f"{np.median([getattr(result, of) for result in mine]):.2f}" for of in ("seconds", "learning")]
        made.add_row(stream, name, *cells, f"{np.mean([result.alarms for result in mine]):.1f}")
    return made


def _spread(some: Sequence[float]) -> str:
    return f"{np.mean(some):.3f} [{min(some):.2f}-{max(some):.2f}]" if some else "no match point"


def cost_table(results: Sequence[Result]) -> Table:
    """Streams and runs: learning, and all that it adds, as shares of the time without it."""
    return of_texts(
        "CPU time, as a share of that of a run that does not learn (medians)",
        ("stream", "run", "learning", "the run takes longer by"),
        [
            (stream, how, *(f"{share:.1%}" for share in shares(results, stream, how)))
            for stream in _streams(results)
            for how in ("learning on", "from nothing")
        ],
        left=("stream", "run"),
    )


# --- main ---------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print tables and verdicts; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="generated streams only, short ones, one seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="cold,drift,learners,cost", help="parts, with commas")
    parser.add_argument("--streams", default="", help="names of workloads and of streams that change, with commas")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines")
    asked = parser.parse_args(arguments)
    console, failed, found = Console(width=WIDTH), 0, list[Result]()
    for part in asked.only.split(","):
        begun = time.perf_counter()
        if part == "learners":
            failed |= online_world.main(["--seeds", str(asked.seeds), *(["--quick"] if asked.quick else [])])
        else:
            some = list(_measure(part, asked))
            found += some
            failed |= _show(part, some, console) if some else 0
        console.print(f"{part}: {time.perf_counter() - begun:.0f} s")
    if asked.out:
        asked.out.write_text("".join(json.dumps(asdict(result)) + "\n" for result in found), encoding="utf-8")
    return failed


def _measure(part: str, asked: argparse.Namespace) -> Iterator[Result]:
    """The runs of a part, on those of its streams that were asked for."""
    names: Sequence[str] = {"cold": list(QUERIES), "drift": list(DRIFTS), "cost": list(COSTLY)}[part]
    if asked.streams:
        names = [name for name in names if name in asked.streams.split(",")]
    if asked.quick:
        names = [name for name in names if name in GENERATED or name == "swapped"]
    seeds = 1 if asked.quick else asked.seeds
    if part == "cold":
        return cold(names, seeds, EVENTS // 10 if asked.quick else EVENTS)
    if part == "drift":
        return drift(names, seeds, HALF // 2 if asked.quick else HALF)
    return cost({name: EVENTS // 10 if asked.quick else COSTLY[name] for name in names}, 1 if asked.quick else REPEATS)


def _show(part: str, results: Sequence[Result], console: Console) -> int:
    """Print tables and verdicts; 1 if one fails."""
    console.print(table(f"{part}: recall of match points with a tenth of the work", results))
    if part == "cost":
        console.print(cost_table(results))
    judged = list(VERDICTS[part](results))
    for is_right, words in judged:
        console.print(f"{'yes' if is_right else 'NO '} {words}", style=None if is_right else "red")
    return int(not all(is_right for is_right, _ in judged))


VERDICTS: dict[str, Callable[[Sequence[Result]], Iterator[tuple[bool, str]]]] = {
    "cold": cold_verdicts,
    "drift": drift_verdicts,
    "cost": cost_verdicts,
}
"""Part: what it is judged by."""
