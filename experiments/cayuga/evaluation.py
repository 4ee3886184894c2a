"""Many queries on one stream: what each thing that they can have costs.

    python -m experiments.cayuga [NAME ...] [--events 100000] [--rounds 3] [--most 100000] [--out results/cayuga]

Cayuga's paper (Demers et al., CIDR 2007) has no experiments: these are ours. Each prints a table and writes it as CSV,
in Markdown (``tables.md``), and some as a picture. CPU time of the process, the best of some rounds; reading is left
out. Sets of queries have been held against single queries and joins. ``--most``: queries, where they are many.

``real`` needs streams that are no part of the project, and leaves out those that are not in the folder ``--data``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from acep_approx.errors import UnseenTypeWarning
from experiments.cayuga import real as cayuga_real
from experiments.cayuga import runs as cayuga_runs
from experiments.cayuga import sets as cayuga_sets
from experiments.cayuga.pictures import draw
from experiments.cayuga.sets import Asked
from experiments.report import Column, Part, Report, Row, chosen, measured
from experiments.streams.real import DATA

RATE, MANY = ",.0f", ",d"
RATE_COLUMN = Column("rate", "events/s", RATE)
POINTS = Column("points", "points per event", ".3f")
GAIN = Column("gain", "of each by itself, x", ",.0f")
ADDING = Column("adding", "adding, s", ".2f")

PARTS: dict[str, Part[Asked]] = {
    "queries": (
        "1. Queries of one template",
        "events/s; no index: in a form that none is made for; joined: with the constants, the query as key",
        cayuga_sets.queries,
        (
            Column("queries", "queries", MANY),
            RATE_COLUMN,
            Column("hidden", "no index", RATE),
            Column("join", "joined", RATE),
            Column("alone", "each by itself", ",.1f"),
            GAIN,
            POINTS,
            ADDING,
        ),
    ),
    "skew": (
        "2. Hot symbols: the one of rank r comes as often as 1/r^z",
        "events/s; per event: queries of its symbol, if those and the events are skewed",
        cayuga_sets.skew,
        (
            Column("skew", "z", ".1f"),
            Column("of_queries", "of queries", RATE),
            Column("of_events", "of events", RATE),
            Column("of_both", "of both", RATE),
            Column("few_values", "both, 8 values per constant", RATE),
            Column("of_symbol", "queries per event", ",.1f"),
        ),
    ),
    "steps": (
        "3. Steps of the pattern: a price that rises",
        "",
        cayuga_sets.steps,
        (Column("steps", "steps", "d"), RATE_COLUMN, POINTS, GAIN),
    ),
    "static": (
        "4. What the first step asks of one event",
        "= a symbol, of a hundred; > < ranges; hits: queries that an event could begin, per event",
        cayuga_sets.static,
        (Column("tests", "tests", "s"), Column("hits", "hits", ".3f"), RATE_COLUMN, POINTS),
    ),
    "waiting": (
        "5. Partial matches that wait",
        "us per event; one event in a hundred ends some; scan: without bounds of pools and without chains",
        cayuga_runs.waiting,
        (
            Column("runs", "waiting", MANY),
            Column("pattern", "threshold: pattern", ".2f"),
            Column("pattern_scan", "scan", ".2f"),
            Column("next", "NEXT", ".2f"),
            Column("same_pattern", "own value: pattern", ".2f"),
            Column("same_pattern_scan", "scan", ".2f"),
            Column("key_pattern", "pattern, g as key", ".2f"),
            Column("next_same", "NEXT", ".2f"),
            Column("fold_same", "FOLD", ".2f"),
        ),
    ),
    "templates": (
        "6. Templates, with as many queries in all",
        "",
        cayuga_sets.templates,
        (
            Column("templates", "templates", MANY),
            Column("each", "queries of each", MANY),
            RATE_COLUMN,
            POINTS,
            ADDING,
        ),
    ),
    "published": (
        "7. Streams of streams: a tenth of the events is published",
        "published: events that some query read, all queries of a chain together",
        cayuga_runs.published,
        (
            Column("what", "queries", "s"),
            RATE_COLUMN,
            Column("read", "published", MANY),
        ),
    ),
    "ties": (
        "8. Events at one time",
        "events/s of: queries of a template, one query NEXT in CEL, a query that reads what another publishes",
        cayuga_sets.ties,
        (
            Column("size", "events at one time", MANY),
            Column("rate", "template", RATE),
            Column("next", "NEXT", RATE),
            Column("published", "published", RATE),
        ),
    ),
    "changes": (
        "9. Queries that come and go, with each push of 1,000 events",
        "half of the changes add, half remove; ms of the process per push with its changes",
        cayuga_runs.changes,
        (
            Column("standing", "queries", MANY),
            Column("changes", "changes per push", MANY),
            RATE_COLUMN,
            Column("changes_rate", "changes/s", RATE),
            Column("middle", "push, median, ms", ".1f"),
            Column("late", "push, p99, ms", ".1f"),
        ),
    ),
    "memory": (
        "10. Memory",
        "bytes of Python, numpy and Arrow for one of many, those for the first taken off",
        cayuga_runs.memory,
        (Column("what", "what", "s"), Column("count", "of", MANY), Column("bytes", "bytes", RATE)),
    ),
    "real": (
        "12. Real streams, constants from their quantiles",
        "",
        cayuga_real.real,
        (Column("stream", "stream", "s"), Column("queries", "queries", MANY), RATE_COLUMN, POINTS, GAIN),
    ),
}


def run(asked: Asked, names: Sequence[str], folder: Path, say: Callable[[str], None]) -> dict[str, list[Row]]:
    """Measure, and write each table once it is there."""
    found: dict[str, list[Row]] = {}
    for name, rows in measured(PARTS, names, asked, Report(folder), say):
        found[name] = rows
        (folder / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        for path in draw({name: rows}, folder):
            say(f"drawn: {path}")
    return found


def main() -> None:
    """Print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(PARTS)}")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=100_000, help="queries, where they are many")
    parser.add_argument("--quick", action="store_true", help="few queries and events: whether it works")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of real streams; generated where absent")
    parser.add_argument("--out", type=Path, default=Path("results/cayuga"), help="folder for tables and pictures")
    given = parser.parse_args()
    names = chosen(parser, given.names, PARTS, "experiment")
    warnings.simplefilter("ignore", UnseenTypeWarning)
    asked = Asked(given.events, given.rounds, given.most, given.data)
    if given.quick:
        asked = Asked(6_000, 1, 1_000, given.data)
    told = Console(stderr=True)
    run(asked, names, given.out, told.print)
