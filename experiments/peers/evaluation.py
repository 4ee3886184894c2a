"""Our side of the workloads on which other engines were measured, against yardsticks that live here.

``python -m experiments.peers`` prints two tables. The first has nanoseconds per event, from events in memory to
all results in memory. Ours begins with a pyarrow table whose types are texts. The yardsticks get their columns as lists
or as arrays, which are prepared beforehand: plain Python, as a good programmer would write it for the one query, and
the limit, a loop compiled for it that writes its matches to flat arrays. The second table has what else one waits for:
one event that is pushed, a call with few events, and the whole command from a Parquet file to another.

CPU time of this process, or of the one that is started; medians of repetitions, all in turns. Ratios are medians of
paired repetitions, so that they hold on a noisy machine; below 1 we are behind. Where another engine was measured
beside a loop in C++, the target is what it would need here: its time there, times the loop here, by the loop there;
the least of the loop, most of which is new memory where there are many matches. That each yardstick finds the same
matches is looked at before, match by match.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console

from experiments.peers.processes import OUTPUTS, Cost, FewEvents, Processes, Pushes
from experiments.peers.ways import Contest
from experiments.peers.workloads import WORKLOADS, Published
from experiments.report import of_texts

ROUNDS = 7
PUSHES = 1000
EVENTS = 1_000_000
"""Of the file for the whole command."""

CALLS = 100
"""Of ``match`` with few events."""

CALL_TARGETS = {"push": 60, "push-rules": 150, "few": 1000}
"""Microseconds."""

CPU_TARGETS = {"points": 0.9, "listed": 1.0}
"""Seconds."""

PEAK_TARGET = 80
"""MB above five events."""

ELSE = {
    "push": "push of one event",
    "push-rules": "push of one event to rules",
    "few": "match of 1,000 events",
    "run-points": "acep run, points",
    "run-listed": "acep run, listed",
}
NAMES = (*WORKLOADS, *ELSE)
console = Console(width=120)


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of one call; what it returns is let go of later."""
    start = time.process_time()
    result = work()
    spent = time.process_time() - start
    del result
    return spent


@contextmanager
def out_of_sight() -> Iterator[None]:
    """The garbage collector does not go through what is there already: else streams slow the yardsticks down."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Median, least and most."""
    middle, least, most = (f"{x:,.{digits}f}" for x in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least}-{most})"


class Measured:
    """One workload in all three ways, in ns per event."""

    def __init__(self, contest: Contest) -> None:
        self._contest = contest
        self._ours: list[float] = []
        self._plain: list[float] = []
        self._loop: list[float] = []

    def round(self) -> None:
        """Once more, one way after the other."""
        contest = self._contest
        per_event = 1e9 / len(contest.events)
        self._ours.append(timed(contest.ours) * per_event)
        self._plain.append(timed(contest.plain) * per_event)
        self._loop.append(timed(contest.loop) * per_event)

    def cells(self) -> list[str]:
        """A row of the table."""
        contest = self._contest
        return [
            contest.workload.title,
            f"{contest.matches / len(contest.events):.3f}",
            spread(self._ours),
            self._target(),
            f"{contest.yardsticks.label} {statistics.median(self._plain):,.0f}",
            self._ratio(self._plain),
            f"{statistics.median(self._loop):,.1f}",
            self._ratio(self._loop),
        ]

    def _target(self) -> str:
        target = self._contest.workload.target
        return f"{target.here(min(self._loop)):.0f}" if isinstance(target, Published) else f"{target:g}"

    def _ratio(self, yardstick: Sequence[float]) -> str:
        return f"{statistics.median(a / b for a, b in zip(yardstick, self._ours, strict=True)):.2g}"


class Small:
    """The time of a call with one event, or with a few, in microseconds."""

    def __init__(self, name: str, calls: Pushes | FewEvents) -> None:
        self._name, self._calls = name, calls
        calls.run()  # binds the columns, compiles
        self._spent: list[float] = []

    def round(self) -> None:
        """Some more calls."""
        self._spent.append(self._calls.run() * 1e6)

    def rows(self) -> list[list[str]]:
        """A row of the table."""
        return [[ELSE[self._name], "us", spread(self._spent), "-", f"{CALL_TARGETS[self._name]}"]]


class Started:
    """The whole command with one output."""

    def __init__(self, processes: Processes, output: str) -> None:
        self._processes, self._output = processes, output
        processes.warm(output)
        self._costs: list[tuple[Cost, Cost]] = []

    def round(self) -> None:
        """Once more."""
        self._costs.append(self._processes.run(self._output))

    def rows(self) -> list[list[str]]:
        """Two rows of the table."""
        title = ELSE[f"run-{self._output}"]
        few, many = zip(*self._costs, strict=True)
        above = [more.peak - less.peak for less, more in self._costs]
        return [
            [
                title,
                "CPU s",
                spread([cost.cpu for cost in many], 2),
                spread([cost.cpu for cost in few], 2),
                f"{CPU_TARGETS[self._output]:g}",
            ],
            [
                title,
                "peak MB above five events",
                spread(above),
                spread([cost.peak for cost in few]),
                f"{PEAK_TARGET}",
            ],
        ]


def run(names: Sequence[str], rounds: int, divided_by: int) -> None:
    """Measure and print."""
    with ExitStack() as stack:
        measured = [Measured(Contest(name, divided_by)) for name in WORKLOADS if name in names]
        calls: dict[str, Callable[[], Pushes | FewEvents]] = {
            "push": partial(Pushes.to_matcher, PUSHES),
            "push-rules": partial(Pushes.to_rules, PUSHES),
            "few": partial(FewEvents, CALLS),
        }
        others: list[Small | Started] = [Small(name, begin()) for name, begin in calls.items() if name in names]
        if outputs := [output for output in OUTPUTS if f"run-{output}" in names]:
            processes = Processes(Path(stack.enter_context(tempfile.TemporaryDirectory())), EVENTS // divided_by)
            others += [Started(processes, output) for output in outputs]
        stack.enter_context(out_of_sight())
        for _ in range(rounds):
            for one in (*measured, *others):
                one.round()
    if measured:
        headings = ("workload", "matches/event", "ours", "target", "plain Python", "/ ours", "loop", "/ ours")
        title = "from events in memory to results in memory, CPU ns/event"
        console.print(of_texts(title, headings, [one.cells() for one in measured], {"workload"}))
    if others:
        title = f"one event, few; a process, {EVENTS // divided_by:,} events of W2 with 20 letters, Parquet to Parquet"
        headings = ("what", "unit", "ours", "on five events", "target")
        console.print(of_texts(title, headings, [row for other in others for row in other.rows()], {"what", "unit"}))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables, or some rows of them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    options.add_argument("--rounds", type=int, default=ROUNDS, help=f"repetitions (default {ROUNDS})")
    options.add_argument("--events-divided-by", type=int, default=1, metavar="N", help="shorter streams: a first look")
    given = options.parse_args(arguments)
    run(given.only, given.rounds, given.events_divided_by)
