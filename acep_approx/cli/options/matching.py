"""What is looked for, and by which engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer


class Wanted(StrEnum):
    """What a run inside a budget is about."""

    MATCHES = "matches"
    POINTS = "points"


class Engine(StrEnum):
    """Which engine runs a query."""

    AUTO = "auto"
    CELLS = "cells"
    RUNS = "runs"


MERGINGS = "equal,pareto,chain"
"""All of them."""


@dataclass(frozen=True)
class MatchingOptions:
    """What of the query is replaced."""

    panel = "Matching"

    errors: Annotated[
        int | None, typer.Option("--errors", "-k", metavar="K", min=0, help="Replaces the query's ERRORS.")
    ] = None
    within: Annotated[
        str | None, typer.Option(metavar="W", help="Replaces the query's WITHIN, e.g. '10 s', '50 events'.")
    ] = None

    @property
    def replaced(self) -> dict[str, Any]:
        """The arguments of ``compile_query``."""
        return {"errors": self.errors, "within": self.within}


@dataclass(frozen=True)
class MergingOptions(MatchingOptions):
    """The same, and how the runs engine works."""

    merge: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Which runs are merged: some of the default, or none; results stay the same."
        ),
    ] = MERGINGS


@dataclass(frozen=True)
class EngineOptions(MergingOptions):
    """The same, and which engine it is."""

    engine: Annotated[Engine, typer.Option(help="What matches; auto: the cells where they can, else the runs.")] = (
        Engine.AUTO
    )


@dataclass(frozen=True)
class KeyOptions:
    """How long keys are kept."""

    panel = "Keys"

    key_idle: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Drop a key that had no event for so long: '1 h', or 5 in ticks. A later event of it begins as if the "
            "key were new. By default windows of events keep each key for ever.",
        ),
    ] = None
