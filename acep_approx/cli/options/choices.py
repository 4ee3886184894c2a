"""What options choose from."""

from __future__ import annotations

from enum import StrEnum


class ResultKind(StrEnum):
    """What ``acep run`` puts out."""

    MATCHES = "matches"
    EVENTS = "events"
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
    JSON = "json"
    LINES = "lines"


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
