"""Choices of the commands, and the arguments and options that several commands share."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.errors import UsageError

COMPRESSED_FILES = ("hits.parquet", "links.parquet")
"""What compressed output is written to, in its folder."""


class Output(StrEnum):
    """What ``acep run`` puts out."""

    MATCHES = "matches"
    POINTS = "points"
    BUNDLES = "bundles"
    COUNT = "count"
    PARTIAL = "partial"
    COMPRESSED = "compressed"


class Wanted(StrEnum):
    """What a run inside a budget is about."""

    MATCHES = "matches"
    POINTS = "points"


class Engine(StrEnum):
    """Which engine runs a query."""

    AUTO = "auto"
    CELLS = "cells"
    RUNS = "runs"


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


SUFFIXES = {
    "": Format.JSONL,  # e.g. /dev/null
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
}
"""Formats of output files by the ends of their names, as for input."""


def format_of(file: Path) -> Format:
    """The format of an output file, told from its name.

    Raises
    ------
    UsageError
        ``ACEP-U018``: it cannot be told.
    """
    if (suffix := file.suffix.lower()) not in SUFFIXES:
        raise UsageError(
            f"the format of {str(file)!r} cannot be told from its name",
            code="ACEP-U018",
            hint="say it: --format jsonl, csv or parquet",
        )
    return SUFFIXES[suffix]


class InputFormat(StrEnum):
    """How events are written in files."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


class OnMalformed(StrEnum):
    """What happens to rows that cannot be read."""

    REFUSE = "refuse"
    SKIP = "skip"


class OnLate(StrEnum):
    """What happens to events that come late."""

    REFUSE = "refuse"
    SKIP = "skip"


class Unit(StrEnum):
    """Units of a time column of numbers."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"


Query = Annotated[
    str, typer.Argument(metavar="QUERY", show_default=False, help="The query, or a file that holds it (also as @FILE).")
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        show_default=False,
        help="The column that orders the events. By default the first of ts, time, timestamp, event_time, datetime, "
        "date that can be a time.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", show_default=False, help="The column that 'key' means in the query. By default key."
    ),
]
Type = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        show_default=False,
        help="The column that holds the event types. By default the first of type, event_type, event, kind.",
    ),
]
TimeUnit = Annotated[
    Unit | None,
    typer.Option(show_default=False, help="What a time column of numbers counts. By default plain ticks."),
]
FileFormat = Annotated[
    InputFormat | None,
    typer.Option(
        "--input-format",
        show_default=False,
        help="Format of the input. By default told from the names of files, and of stdin from its first bytes.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="B",
        show_default=False,
        help="Do only so much work, and find what it buys: '20%' of the full work (needs --history or --full-work), "
        "'5000 steps/event', '200 runs', '2 ms/batch' or '100k events/s'.",
    ),
]
History = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default=False,
        help="What acep train, or a run with --learn, has learned: it ranks which partial matches to keep.",
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="What is shed first: history (default with --history), scores, random, oldest (default without), "
        "most-advanced.",
    ),
]
Audit = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        show_default=False,
        help="Share of the budget spent on a small part of the stream that is not shed, to estimate recall (and with "
        "--learn to learn from); by default 0.05, with 0 there is no estimate.",
    ),
]
FullWork = Annotated[
    float | None,
    typer.Option(
        metavar="STEPS",
        show_default=False,
        help="Run-steps per event of the exact run, of which a budget like '20%' is a share; by default what the "
        "history knows. A run without --budget says them at its end: so many met per event.",
    ),
]
Expand = Annotated[
    bool,
    typer.Option(
        "--expand",
        help="List all matches that end at the match points which the budget finds, not only those whose partial "
        "matches were kept. The input is read twice; the second time costs nothing of the budget.",
    ),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", show_default=False, help="Of the audit and of coins. By default 0.")
]
Learn = Annotated[
    bool,
    typer.Option(
        "--learn",
        help="Learn while the stream runs which partial matches are worth keeping, from --history on or from nothing; "
        "what was learned is saved as a new version of it, or in --save.",
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default=False,
        help="Where --learn saves what it learned: a new folder, or one with a history of the same query, which gets a "
        "new version. By default that of --history; without either nothing is saved.",
    ),
]
SaveEvery = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        show_default=False,
        help="With --learn: save after every N batches too, so that little is lost if the run is stopped. A batch is "
        "what is read at once: at most 131,072 events.",
    ),
]
LearnLog = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="With --learn: write when partial matches were valued anew, what had been seen by then, how far what was "
        "foretold came true, and drift alarms, to FILE (.jsonl, .csv, .parquet).",
    ),
]


def _silence(quiet: bool) -> bool:
    """Kernels are compiled wherever they are first called: what says so is a log."""
    logging.getLogger("acep_approx.kernels").setLevel(logging.ERROR if quiet else logging.NOTSET)
    return quiet


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_silence, help="Say nothing on stderr unless something is wrong."),
]

Errors = Annotated[
    int | None,
    typer.Option("--errors", "-k", metavar="K", min=0, show_default=False, help="Replaces the query's ERRORS."),
]
Within = Annotated[str | None, typer.Option(metavar="W", show_default=False, help="Replaces the query's WITHIN.")]
Sort = Annotated[bool, typer.Option("--sort", help="Sort the events by time first.")]

Spark = Annotated[
    bool, typer.Option("--spark", help="Do the work on Spark: here, on all cores, or on the cluster of --master.")
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        show_default=False,
        help="With --spark: the cluster, e.g. 'local[4]', spark://host:7077, yarn or k8s://...; by default what "
        "spark-submit says, else this machine.",
    ),
]


def check_master(master: str | None, *, spark: bool) -> None:
    """Refuse a cluster for work that is not done on Spark (``ACEP-S037``)."""
    if master is not None and not spark:
        raise UsageError("--master is of use with --spark only", code="ACEP-S037", hint="add --spark, or leave it out")
