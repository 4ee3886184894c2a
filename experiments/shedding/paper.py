"""The first paper's own setting: no merging, and a budget in match nodes (live runs), on the pattern of its Example 1.

    python -m experiments.shedding.paper

Two tweets or more that hint at a rise, then two or more with good news about Apple, in the letters of the paper's own
text. Every match node is a run of its own here, as in its Algorithm 1; beside it what merging solves without any loss.
Source: Li and Ge, PVLDB 2016, Example 1 and section 3.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, Query, compile_query
from experiments.streams.real import load

PATTERN = (
    "PATTERN SEQ((S s, a a, (b b | d d | w w | r r), E e){2,}, (S s2, a a2, (g g | e f | u u), E e2){2,})"
    " WITHIN 1 d ERRORS {errors}"
)
NODES = (50, 200, 1000, 5000)
POLICIES = ("history", "most-advanced", "oldest", "random")
SEEDS = 3
OVERLAP = 0.99
"""Learned with merging, where hardly a run covers another; without it nearly all do."""


def found(query: Query, test: pa.Table, nodes: int, history: HistoryGraph, policy: str, seed: int) -> set[int]:
    """Rows of the match points found with so many match nodes."""
    budgeted = query.match_within(
        test, f"{nodes} runs", history=history, policy=policy, seed=seed, audit=0, merge="none", unit="us"
    )
    return set(budgeted.points()["row"].to_pylist())


def main() -> None:
    """Learn on the first half of Apple's tweets, measure on the second."""
    console = Console()
    events = load("tweets_tokens")
    events = events.filter(pc.equal(events["key"], "AAPL"))
    half = len(events) // 2
    past, test = events.slice(0, half), events.slice(half)
    for errors in (0, 1):
        query = compile_query(PATTERN.replace("{errors}", str(errors)), engine="runs")
        history = HistoryGraph(query).fit(past, unit="us")
        history.overlap_ = OVERLAP
        begun = time.perf_counter()
        matches = query.match(test, unit="us")
        exact = set(matches.points()["row"].to_pylist())
        table = Table(
            title=f"ERRORS {errors}: {len(exact)} match points; merged, all are found with at most "
            f"{matches.work.peak} live runs in {time.perf_counter() - begun:.2f} s"
        )
        table.add_column("policy")
        for nodes in NODES:
            table.add_column(f"{nodes} nodes", justify="right")
        for policy in POLICIES:
            cells = []
            for nodes in NODES:
                some = [found(query, test, nodes, history, policy, seed) for seed in range(SEEDS)]
                assert all(one <= exact for one in some), "a match point that is none"
                recalls = [len(one) / max(len(exact), 1) for one in some]
                cells.append(f"{np.mean(recalls):.2f} [{min(recalls):.2f}-{max(recalls):.2f}]")
            table.add_row(policy, *cells)
        console.print(table)


if __name__ == "__main__":
    main()
