"""Choices of the commands, and the arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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
        help="Do only so much work, and find what it buys: '20%' of the full work (needs --history), "
        "'5000 steps/event', '200 runs', '2 ms/batch' or '100k events/s'.",
    ),
]
History = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", show_default=False, help="What acep train learned: it ranks which partial matches to keep."
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
        help="Share of the budget spent on estimating recall; by default 0.05, with 0 there is no estimate.",
    ),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", show_default=False, help="Of the audit and of coins. By default 0.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr unless something is wrong.")]

Errors = Annotated[
    int | None,
    typer.Option("--errors", "-k", metavar="K", min=0, show_default=False, help="Replaces the query's ERRORS."),
]
Within = Annotated[str | None, typer.Option(metavar="W", show_default=False, help="Replaces the query's WITHIN.")]
Sort = Annotated[bool, typer.Option("--sort", help="Sort the events by time first.")]
