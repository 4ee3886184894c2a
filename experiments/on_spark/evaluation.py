"""Speed and quality on Spark: throughput, large jobs, training, overload, refresh.

    python -m experiments.on_spark [throughput] [programs] [kafka] [sizes] [training] [overload] [refresh] [--quick]
                                      [--events N] [--minutes M] [--repeats N] [--seed S] [--out DIR]

Prints a table per claim, and leaves their data (CSV) in a folder. All on two cores of this machine, ``local[2]``, and
in one session; plans that are compared run in turns, and ratios are medians of runs that followed one another, so that
they hold on a noisy machine. The full run takes about an hour.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.learning.drifts import DRIFTS, swapped
from experiments.on_spark.from_kafka import from_kafka
from experiments.on_spark.overload import overload
from experiments.on_spark.plans import Place, place
from experiments.on_spark.programs import programs
from experiments.on_spark.refresh import refresh_cost, refresh_drift
from experiments.on_spark.sizes import sizes as large_jobs
from experiments.on_spark.throughput import throughput
from experiments.on_spark.training import training
from experiments.report import Report

PARTS = ("throughput", "programs", "kafka", "sizes", "training", "overload", "refresh")


@dataclass(frozen=True)
class Sizes:
    """How much is run.

    Attributes
    ----------
    events : int
        Of a micro-batch where throughput is measured; a batch has 4 times as many, training 10 times.
    batches, changing : int
        Micro-batches of a stream; of half of one that changes.
    repeats, rounds : int
        Runs of each plan; how often capacity is looked for.
    minutes : float
        Of overload.
    half : int
        Events of a generated stream before it changes, and after.
    streams : tuple of str
        Those that change, of ``learning.drifts``.
    recording : int
        Events of the stream that overload plays again and again.
    queries, sent : int
        Of a large job, and the events of its stream.
    """

    events: int
    batches: int
    changing: int
    repeats: int
    rounds: int
    minutes: float
    half: int
    streams: tuple[str, ...]
    recording: int
    queries: int
    sent: int


FULL = Sizes(1_000_000, 8, 20, 4, 4, 4.0, 100_000, tuple(DRIFTS), 24_000, 100_000, 400_000)
QUICK = Sizes(10_000, 3, 3, 1, 1, 0.5, 24_000, ("swapped",), 24_000, 4_000, 20_000)


def main() -> None:
    """Print all tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("parts", nargs="*", choices=[*PARTS, "all"], default="all", help="what is run; default: all")
    options.add_argument("--quick", action="store_true", help="short streams: a first look")
    options.add_argument("--events", type=int, help="of a micro-batch where throughput is measured")
    options.add_argument("--minutes", type=float, help="of overload")
    options.add_argument("--repeats", type=int, help="runs of each plan")
    options.add_argument("--seed", type=int, default=1, help="of generated streams")
    options.add_argument("--out", type=Path, default=Path("results/on_spark"), help="folder for the data")
    given = options.parse_args()
    sizes = QUICK if given.quick else FULL
    wanted = {name: getattr(given, name) for name in ("events", "minutes", "repeats") if getattr(given, name)}
    sizes = replace(sizes, **wanted)
    run(PARTS if "all" in given.parts else given.parts, sizes, Report(given.out), given.seed)


def run(parts: tuple[str, ...] | list[str], sizes: Sizes, report: Report, seed: int) -> None:
    """Print the tables of some parts."""
    with place() as where:
        if "throughput" in parts:
            throughput(report, where, sizes.events, sizes.repeats, sizes.batches, seed)
        if "programs" in parts:
            programs(report, where, sizes.events, sizes.repeats, sizes.batches, seed)
        if "kafka" in parts:
            from_kafka(report, where, sizes.events, sizes.repeats, sizes.batches, seed)
        if "sizes" in parts:
            large_jobs(report, where, sizes.queries, sizes.sent, seed)
        if "training" in parts:
            training(report, where, 10 * sizes.events, sizes.repeats)
        if "overload" in parts:
            overload(report, where, sizes.minutes, sizes.recording, sizes.rounds, seed)
        if "refresh" in parts:
            _refresh(report, where, sizes, seed)
    report.console.print(f"data: {report.folder}")


def _refresh(report: Report, where: Place, sizes: Sizes, seed: int) -> None:
    generated = swapped(seed, sizes.half)
    refresh_cost(report, where, generated, sizes.batches, sizes.repeats)
    for name in sizes.streams:
        stream = generated if name == generated.name else DRIFTS[name](seed)
        refresh_drift(report, where, stream, sizes.changing)
