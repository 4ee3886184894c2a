"""The evaluation of stream transactions again: SEI, S2PL and LWM, on a simulated machine.

    python -m experiments.active2011 [FIGURE ...] [--events 2000] [--out results/active2011]

Repeats Figures 5 to 12 of Wang, Rundensteiner and Ellison (PVLDB 4(10), 2011) with the schedulers of
``acep_approx.rules``, and prints the paper's numbers beside ours. All but Figure 9 are simulated: nothing is measured
with a clock, the same numbers come out everywhere. What reads, writes and steps take is ours (``Costs``), since the
paper has no such numbers, and was chosen with its ratios in view: compare how they go. Three more tables show on what
these depend: ``held``, ``others``, ``rows``. Figure 9 measures the real engine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from experiments.active2011 import figures
from experiments.active2011.figures import Asked
from experiments.active2011.pictures import draw
from experiments.active2011.real import figure_9
from experiments.report import Column, Part, Report, Row, chosen, measured

RATE, RATIO = ",.0f", ".2f"
THROUGHPUTS = (
    Column("sei", "SEI", RATE),
    Column("s2pl", "S2PL", RATE),
    Column("by_lock", "S2PL, lock by lock", RATE),
    Column("lwm", "LWM", RATE),
    Column("lwm_s2pl", "LWM / S2PL", RATIO),
    Column("lwm_by_lock", "LWM / lock by lock", RATIO),
    Column("lwm_sei", "LWM / SEI", RATIO),
    Column("s2pl_sei", "S2PL / SEI", RATIO),
)
PAPER = Column("paper", "paper", "s")
READ_N, WRITE_N = Column("read_n", "readN", "s"), Column("write_n", "writeN", "s")
EVENTS = "events/s; S2PL: an event starts when it has all its locks"

PARTS: dict[str, Part[Asked]] = {
    "5": ("Figure 5: reads, locks on rows, writeN = 0.25", EVENTS, figures.figure_5, (READ_N, *THROUGHPUTS)),
    "6": (
        "Figure 6: reads, locks on tables, writeN = 0.25",
        EVENTS,
        figures.figure_6,
        (READ_N, *THROUGHPUTS, PAPER),
    ),
    "7": ("Figure 7: writes, locks on rows, readN = 1", EVENTS, figures.figure_7, (WRITE_N, *THROUGHPUTS)),
    "8": (
        "Figure 8: writes, locks on tables, readN = 1",
        EVENTS,
        figures.figure_8,
        (WRITE_N, *THROUGHPUTS, PAPER),
    ),
    "9": (
        "Figure 9: a query and its rule, on the real engine",
        "microseconds of a push of one event, medians",
        figure_9,
        (
            Column("seq_l", "seqL", "d"),
            Column("query", "query", RATE),
            Column("rule", "rule", RATE),
            Column("combined", "both", RATE),
        ),
    ),
    "10": (
        "Figure 10: overhead, underloaded, locks on rows",
        "% of latency above the baseline; the paper: SEI 3-6 times S2PL, 3-5 times LWM, LWM slightly above S2PL",
        figures.figure_10,
        (
            Column("rate", "events/s", ",d"),
            Column("seq_l", "seqL", "d"),
            Column("sei", "SEI", RATIO),
            Column("s2pl", "S2PL", RATIO),
            Column("by_lock", "S2PL, lock by lock", RATIO),
            Column("lwm", "LWM", RATIO),
            Column("lwm_query", "LWM: query", RATIO),
            Column("lwm_rule", "LWM: rule", RATIO),
            Column("sei_s2pl", "SEI / S2PL", ".1f"),
            Column("sei_lwm", "SEI / LWM", ".1f"),
        ),
    ),
    "11": (
        "Figure 11: latency, readN = 1, writeN = 0.25, seqL = 3, locks on rows",
        "microseconds of output and rule, and their ratios; above: of what lies above the baseline",
        figures.figure_11,
        (
            Column("rate", "events/s", ",d"),
            *THROUGHPUTS[:4],
            Column("lwm_sei", "LWM / SEI", ".3f"),
            Column("lwm_s2pl", "LWM / S2PL", ".3f"),
            Column("above_sei", "above: LWM / SEI", ".3f"),
            Column("above_s2pl", "above: LWM / S2PL", ".3f"),
            PAPER,
        ),
    ),
    "12": (
        "Figure 12: memory, the same load",
        "the most at once: versions + buffered events",
        figures.figure_12,
        (
            Column("rate", "events/s", ",d"),
            *(
                Column(f"{key}_{kind}", f"{name}: {kind}", ",d")
                for key, name in {"sei": "SEI", "s2pl": "S2PL", "lwm": "LWM", "all": "LWM, all versions"}.items()
                for kind in ("versions", "buffered")
            ),
        ),
    ),
    "held": (
        "How long readers hold their locks behind their last read (us); locks on tables",
        EVENTS,
        figures.held,
        (Column("read_n", "readN", "d"), Column("held", "held", ",d"), *THROUGHPUTS),
    ),
    "others": (
        "What else may be supposed; locks on tables",
        EVENTS,
        figures.others,
        (
            Column("supposed", "supposed", "s"),
            Column("read_n", "readN", "d"),
            Column("write_n", "writeN", "g"),
            *THROUGHPUTS,
        ),
    ),
    "rows": (
        "How many rows there are; locks on rows",
        EVENTS,
        figures.rows_of_tables,
        (Column("rows", "rows", "d"), Column("read_n", "readN", "d"), Column("write_n", "writeN", "g"), *THROUGHPUTS),
    ),
}


def run(asked: Asked, names: Sequence[str], folder: Path, say: Callable[[str], None]) -> dict[str, list[Row]]:
    """Simulate, and write each table once it is there."""
    found = dict(measured(PARTS, names, asked, Report(folder), say))
    for path in draw(found, folder):
        say(f"drawn: {path}")
    return found


def main() -> None:
    """Print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FIGURE", help=f"only these: {', '.join(PARTS)}")
    parser.add_argument("--events", type=int, default=2_000, help="events of a run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few events and places: whether it works")
    parser.add_argument("--out", type=Path, default=Path("results/active2011"), help="folder for tables and pictures")
    given = parser.parse_args()
    names = chosen(parser, given.names, PARTS, "figure")
    asked = Asked()
    asked = replace(asked, load=replace(asked.load, events=given.events, seed=given.seed))
    if given.quick:
        asked = replace(asked, load=replace(asked.load, events=300), few_points=True)
    run(asked, names, given.out, Console(stderr=True).print)
