"""Figure 9: what a query and its rule take on the real engine, one event after the other."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import acep_approx
from experiments.active2011.figures import LENGTHS, Asked
from experiments.report import Row

TABLE = "TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))"
TIMES = 200
"""Matches of which the median is taken."""


def text(seq_l: int, *, acts: bool) -> str:
    """A file with a query of some length that reads the store, and its rule if it acts."""
    steps = ", ".join(f"E{n} e{n}" for n in range(seq_l))
    last = f"e{seq_l - 1}"
    action = f"FOR EACH MATCH\nDO UPDATE status SET level = 'warning' AT ({last}.hcw) END" if acts else ""
    return (
        f"{TABLE}\nRULE warn ON\n  PATTERN SEQ({steps})\n"
        f"  WHERE [hcw] AND store.status[{last}.hcw].level = 'safe'\n  WITHIN 1000\n{action}\n"
    )


def latency(rules: Any, seq_l: int, times: int) -> float:
    """Microseconds of a push of one event that completes a match: the median."""
    run, taken = rules.start(), []
    for number in range(times):
        for step in range(seq_l):
            event = [{"ts": number * 10_000 + step, "type": f"E{step}", "hcw": f"w{number}"}]
            begun = time.perf_counter()
            out = run.push(event)
            spent = time.perf_counter() - begun
        assert len(out["warn"]) == 1
        taken.append(spent * 1e6)
    return statistics.median(taken)


def figure_9(asked: Asked) -> list[Row]:
    """Length of patterns: latency of the query by itself, and what its rule adds; nothing without rules."""
    compile_rules: Callable[[str], Any] | None = getattr(acep_approx, "compile_rules", None)
    if compile_rules is None:
        return []
    rows, times = [], 5 if asked.few_points else TIMES
    for seq_l in map(int, asked.places(LENGTHS)):
        query = latency(compile_rules(text(seq_l, acts=False)), seq_l, times)
        both = latency(compile_rules(text(seq_l, acts=True)), seq_l, times)
        rows.append(Row(seq_l=seq_l, query=query, rule=both - query, combined=both))
    return rows
