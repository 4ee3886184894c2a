"""What is looked for, by which engine, and how much work may be done for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
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


@dataclass(frozen=True)
class BudgetOptions:
    """A budget, and how it is spending."""

    panel = "Budget"

    budget: Annotated[
        str | None,
        typer.Option(
            metavar="B",
            help="Do only so much work: '20%' of the full work, '5000 steps/event', '200 runs', '2 ms/batch' or "
            "'100k events/s'.",
        ),
    ] = None
    history: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="What acep train or --learn has learned: which partial matches to keep."),
    ] = None
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What is shed first: history (default with --history), coverage, scores, random, oldest (default "
            "without) or most-advanced.",
        ),
    ] = None
    audit: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of the budget that goes into estimating recall; by default 0.05."),
    ] = None
    full_work: Annotated[
        float | None,
        typer.Option(
            metavar="STEPS",
            help="The full work, in run-steps per event; by default from --history. A run without --budget says them.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of all that is random; by default 0.")] = None

    def given(self) -> dict[str, Any]:
        """The arguments of ``Query.match_within`` that say how the budget is spending, where they are given."""
        names = ("history", "policy", "audit", "seed", "full_work")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def check(self) -> None:
        """Refuse what is no budget (``ACEP-U030``)."""
        from acep_approx.budget.budget import Budget

        if self.budget is not None:
            Budget.parse(self.budget)


@dataclass(frozen=True)
class ExpandedBudgetOptions(BudgetOptions):
    """The same, and whether more is listed than the budget found."""

    expand: Annotated[
        bool,
        typer.Option("--expand", help="List all matches that end at the points found; the input is read twice."),
    ] = False
    whole_bundles: Annotated[
        bool,
        typer.Option(
            "--whole-bundles",
            help="With --expand: go on by a window on both sides while there are more points; read once more each.",
        ),
    ] = False


@dataclass(frozen=True)
class LearningOptions:
    """What is learned on the way."""

    panel = "Learning"

    learn: Annotated[
        bool, typer.Option("--learn", help="Learn on the way which partial matches are worth keeping.")
    ] = False
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save what was learned as a new version of DIR; by default of --history."),
    ] = None
    save_every: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Save after every N batches too, if anything is new.")
    ] = None
    learn_log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the course of learning to FILE (.jsonl, .csv, .parquet)."),
    ] = None


@dataclass(frozen=True)
class ReportOptions:
    """What is written about a run inside a budget."""

    panel = "Reports"

    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page of HTML on how the budget was spent. With --queries, and of rules, also a table with a "
            "row for each: .csv, .jsonl, .parquet.",
        ),
    ] = None
    shed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what was shed, and why, to FILE (.jsonl, .csv, .parquet)."),
    ] = None
