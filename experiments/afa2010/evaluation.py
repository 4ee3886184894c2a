"""The evaluation of hand-made automata over disordered streams again, on the runs engine.

``python -m experiments.afa2010`` repeats section 6 and appendix D of Chandramouli, Goldstein and Maier (PVLDB 3(1),
2010), prints a table for each figure with the paper's numbers beside ours, and with ``--write FOLDER`` draws them.
Theirs are of StreamInsight on a Core 2 Duo: compare shapes and ratios. CPU time of the process, medians of rounds that
are taken in turns; whatever is compared has found the same matches, and those of Algorithm 1 on the first events.

Figure 9, patterns that change while they run, is not here: patterns cannot change yet. Of YHOO's prices the authors
give no copy; SPY's of ``ticks.parquet`` stand for them where that file is (``--data``).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from acep_approx.errors import UnseenTypeWarning
from experiments.afa2010 import figures
from experiments.afa2010.figures import Asked
from experiments.afa2010.pictures import write
from experiments.afa2010.same import functions, queries, same
from experiments.report import Column, Part, Row, in_markdown, of_columns
from experiments.streams.real import DATA, is_here

RATE = ",.2f"

PARTS: dict[str, Part[Asked]] = {
    "8": (
        "Figure 8: Q1, k = 2, W = 2,000, in order",
        "M events/s; AFA: ready for late events, results early; AFA, ordered: a plain run; IPM: joins, in pandas",
        figures.figure_8,
        (
            Column("data", "data", "s"),
            Column("way", "way", "s"),
            Column("rate", "M events/s", RATE),
            Column("of_plain", "of AFA, ordered", ".2f"),
            Column("of_ignore", "of AFA+ignore", ".2f"),
            Column("paper", "paper", "s"),
        ),
    ),
    "10": (
        "Figures 10 and 11: 5% late by 1-5,000, one event per ms, W = 500; rows put out, and ms that they waited",
        (
            "x: of sigma = 0. Algorithm 1: all matches that span a late event are taken back and put out again; "
            "D: unless it is ignorable. By length: 1 + 2 * late ticks * mean length of a match; by window: the same if "
            "all matches were as long as the window"
        ),
        figures.figure_10,
        (
            Column("query", "query", "s"),
            Column("ignorable", "I, %", "d"),
            Column("sigma", "sigma", "s"),
            Column("ours", "rows", ",d"),
            Column("ours_ratio", "x", ".2f"),
            Column("pushes_ratio", "pushes of W, x", ".2f"),
            Column("special_ratio", "Algorithm 1, D, x", ".2f"),
            Column("algorithm_ratio", "Algorithm 1, x", ".2f"),
            Column("paper", "paper, x", "s"),
            Column("length", "length", ",.1f"),
            Column("by_length", "by length, x", ".2f"),
            Column("by_window", "by window, x", ".1f"),
            Column("wait", "waited, ms", ",.0f"),
            Column("cpu", "10 events, ms", ".2f"),
        ),
    ),
    "12": (
        "Figures 12 and 13: Q2, p = 0.7, W = 500, late by 1-1,000",
        (
            "M events/s in pushes of 1,000 and 10,000; held: events at most, and kB of these, snapshots and results; "
            "nodes: partial matches that Algorithm 1 holds at most; the paper: about 0.2 in order"
        ),
        figures.figure_12,
        (
            Column("late", "late, %", "d"),
            Column("plain", "ordered", RATE),
            Column("early_few", "AFA, 1,000", RATE),
            Column("early_many", "AFA, 10,000", RATE),
            Column("of_ordered", "of 0%", ".2f"),
            Column("sequence_few", "AFA+O, 1,000", RATE),
            Column("sequence_many", "AFA+O, 10,000", RATE),
            Column("early_held", "AFA held", ",d"),
            Column("early_kb", "kB", ",.0f"),
            Column("sequence_held", "AFA+O held", ",d"),
            Column("sequence_kb", "kB", ",.0f"),
            Column("nodes", "nodes", ",d"),
        ),
    ),
    "16": (
        "Figures 16 and 17: Q1, k = 1, delta = 0, W = 500, in order",
        (
            "M events/s; made: runs made per event; runs: held at most; nodes: partial matches that Algorithm 1 holds "
            "at most, one punctuation per window; the paper: special handling is faster from I = 80% on"
        ),
        figures.figure_16,
        (
            Column("ignorable", "I, %", "d"),
            Column("ignore", "IGNORE", RATE),
            Column("loop", "an arc", RATE),
            Column("ratio", "x", ".2f"),
            Column("ignore_made", "IGNORE: made", ".2f"),
            Column("loop_made", "an arc: made", ".2f"),
            Column("ignore_runs", "IGNORE: runs", ",d"),
            Column("loop_runs", "an arc: runs", ",d"),
            Column("special_nodes", "D: nodes", ",d"),
            Column("loop_nodes", "Algorithm 1: nodes", ",d"),
        ),
    ),
    "queries": (
        "The queries of section 6, W = 500, in order",
        "M events/s",
        queries,
        (
            Column("query", "query", "s"),
            Column("ordered", "plain run", RATE),
            Column("early", "ready for late events", RATE),
            Column("bare", "plain, without RETURN", RATE),
            Column("paper", "paper", "s"),
        ),
    ),
    "same": (
        "The same query as SEQ and as a machine by hand",
        "M events/s; ratio: time of the machine, of that of SEQ; engine: one, or that of each",
        same,
        (
            Column("query", "query", "s"),
            Column("output", "output", "s"),
            Column("results", "results", ",d"),
            Column("engine", "engine", "s"),
            Column("seq", "SEQ", RATE),
            Column("machine", "machine", RATE),
            Column("ratio", "ratio", ".2f"),
            Column("wanted", "wanted", "s"),
        ),
    ),
    "functions": (
        "A user's function in a condition that each run-step asks",
        "ratio: time, of that of the same condition without a function",
        functions,
        (
            Column("function", "function", "s"),
            Column("steps", "run-steps per event", ",.1f"),
            Column("rate", "M events/s", RATE),
            Column("step_rate", "M run-steps/s", RATE),
            Column("ratio", "ratio", ".2f"),
            Column("wanted", "wanted", "s"),
        ),
    ),
}
PAIRS = {"11": "10", "13": "12", "17": "16"}
"""Figures that are measured together."""


def measured(asked: Asked, names: Sequence[str], say: Callable[[str], None]) -> dict[str, list[Row]]:
    """The rows of some figures."""
    found: dict[str, list[Row]] = {}
    for name in names:
        say(PARTS[name][0])
        found[name] = PARTS[name][2](asked)
    return found


def main() -> None:
    """Print the tables, and draw them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", choices=[*PARTS, *PAIRS], action="append", help="only this one; may be repeated")
    parser.add_argument("--events", type=int, default=100_000, help="ticks of a stream (100,000 as in the paper)")
    parser.add_argument("--live", type=int, default=20_000, help="ticks of figure 10, where ten are a push")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few events, one round: whether it works")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of ticks.parquet; left out where absent")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="draw afa2010.svg, and print tables in Markdown")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UnseenTypeWarning)
    asked = Asked(given.events, given.live, given.rounds, given.data)
    if given.quick:
        asked = Asked(2_000, 500, 1, given.data)
    names = list(dict.fromkeys(PAIRS.get(name, name) for name in given.figure or PARTS))
    told, console = Console(stderr=True), Console(width=150)
    if not is_here("ticks", asked.data):
        console.print(f"there is no {asked.data / 'ticks.parquet'}: measured on generated streams only", style="yellow")
    found = measured(asked, names, lambda title: told.print(f"{title} ..."))
    for name, rows in found.items():
        title, note, _, columns = PARTS[name]
        console.print(of_columns(title, rows, columns, note))
    if given.write is not None:
        for name, rows in found.items():
            print(f"\n{in_markdown(PARTS[name], rows)}", end="")
        path = write(found, given.write)
        told.print("nothing to draw" if path is None else f"drawn: {path}")
