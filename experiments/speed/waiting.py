"""Runs that wait for an event beyond a threshold: CPU time per event, with the bounds of their pools and without.

``python -m experiments.speed.waiting`` prints a line per number of waiting runs. CPU time of the process
(``time.process_time``), reading the events included, the best of some repetitions; each is short, so that a busy
machine disturbs few of them.

*Probes*: nearly all runs wait for ever; of a thousand events one is beyond the lowest thresholds. *Walk*: each event
begins a run, may take others, and one expires; prices are a random walk. Keys: the same runs and events, spread over a
hundred keys.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher

KEYS = 100
BOUNDS, NONE = "equal,chain", "equal"
BEGIN = 1 << 17
"""Events that begin runs in one batch."""


def probes(waiting: int, events: int, keys: int) -> tuple[pa.Table, pa.Table]:
    """Events that begin runs, and events that nearly none of them waits for."""
    dice = np.random.default_rng(waiting)
    begin = table(np.arange(waiting), "A", dice.uniform(100, 200, waiting), dice.integers(0, keys, waiting))
    prices = np.where(dice.random(events) < 0.001, 105.2, dice.uniform(90, 105, events))
    return begin, table(waiting + np.arange(events), "B", prices, dice.integers(0, keys, events))


def walk(waiting: int, events: int, keys: int) -> tuple[pa.Table, pa.Table]:
    """Prices that fall on the whole: about as many runs wait as the window has events."""
    dice = np.random.default_rng(waiting)
    steps = np.cumsum(dice.normal(-0.5, 20, waiting + events))
    whole = table(np.arange(waiting + events), "A", 1e6 + steps, dice.integers(0, keys, waiting + events))
    return whole.slice(0, waiting), whole.slice(waiting)


def table(ts: np.ndarray, kind: str, price: np.ndarray, key: np.ndarray) -> pa.Table:
    """Events of one type."""
    return pa.table({"ts": ts, "type": pa.array([kind]).take(np.zeros(len(ts), int)), "price": price, "g": key})


def query_text(stream: str, waiting: int, *, has_key: bool, is_simultaneous: bool) -> str:
    """The query of a stream."""
    key, ticks = "[g] AND " * has_key, " SIMULTANEOUS" * is_simultaneous
    if stream == "probes":
        condition, types, window = "b.price > 1.05 * a.price", "A a, B b", 10 * waiting + 10_000_000
    else:
        condition, types, window = "b.price > 1.0001 * a.price", "A a, A b", waiting
    return f"PATTERN SEQ({types}) WHERE skip_till_next_match(a, b) {{ {key}{condition} }} WITHIN {window}{ticks}"


def measured(text: str, begin: pa.Table, events: pa.Table, merge: str, rounds: int) -> tuple[float, float, int]:
    """CPU time per event in us, run-steps per event, and runs that are alive at the end."""
    matcher = Matcher(compile_query(text).plan, output="points", merge=merge)
    for first in range(0, begin.num_rows, BEGIN):
        matcher.push(begin.slice(first, BEGIN))
    part, best, before = events.num_rows // rounds, float("inf"), matcher.progress.steps
    for i in range(rounds):
        batch = events.slice(i * part, part)
        start = time.process_time()
        matcher.push(batch)
        best = min(best, time.process_time() - start)
    work = matcher.progress
    return 1e6 * best / part, (work.steps - before) / (part * rounds), work.live


def main() -> None:
    """Print one line per stream, number of runs, and key."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000, help="most waiting runs")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print("CPU time per event, us; run-steps per event in brackets")
    print(f"{'stream':8}{'waiting':>9} {'key':4}{'ticks':6}{'alive':>8}{'bounds':>20}{'none':>22}")
    for stream, make in (("probes", probes), ("walk", walk)):
        for waiting in (n for n in (100, 1_000, 10_000, 100_000) if n <= args.most):
            for has_key, is_simultaneous in ((False, False), (False, True), (True, False)):
                text = query_text(stream, waiting, has_key=has_key, is_simultaneous=is_simultaneous)
                cells, alive = [], 0
                for merge in (BOUNDS, NONE):
                    events = args.rounds * (20_000 if merge == BOUNDS else max(10_000_000 // waiting, 200))
                    begin, rest = make(waiting, min(events, args.rounds * 20_000), KEYS if has_key else 1)
                    us, steps, alive = measured(text, begin, rest, merge, args.rounds)
                    cells.append(f"{us:9.2f} ({steps:9.1f})")
                ticks = "sim" if is_simultaneous else "-"
                print(f"{stream:8}{waiting:9} {'g' if has_key else '-':4}{ticks:6}{alive:8} {cells[0]} {cells[1]}")


if __name__ == "__main__":
    main()
