"""Load budgets: what may be done, what is learned on the way, and what is written about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from acep_approx.cli.options.output import check_folder, format_of
from acep_approx.errors import UsageError


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
        Path | None, typer.Option(metavar="FILE", help="Write a page of HTML on how the budget was spending.")
    ] = None
    shed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what was shed, and why, to FILE (.jsonl, .csv, .parquet)."),
    ] = None


@dataclass(frozen=True)
class BudgetRequest:
    """What was asked for with ``--budget`` and the options that need it."""

    spending: ExpandedBudgetOptions
    learning: LearningOptions
    reports: ReportOptions

    def check(self) -> None:
        """Refuse options that need a budget, and files that cannot be written, before any work is done.

        Raises
        ------
        UsageError
            ``ACEP-U040``: such an option without ``--budget``; ``ACEP-U049``: one that needs ``--learn`` without it,
            or nowhere to save to; ``ACEP-U030``: not a budget; ``ACEP-U016``: a folder that is not there.
        """
        if self.spending.budget is None:
            options = vars(self.spending) | vars(self.learning) | vars(self.reports)
            given = [name for name, value in options.items() if value is not None and value is not False]
            if given:
                raise UsageError(
                    f"--{given[0].replace('_', '-')} is about a load budget, and there is none",
                    code="ACEP-U040",
                    hint="say how much may be done: --budget '20%', '5000 steps/event', '200 runs' or '2 ms/batch'",
                )
            return
        self._check_learning()
        if self.spending.whole_bundles and not self.spending.expand:
            raise UsageError(
                "--whole-bundles says how far --expand goes, and nothing is expanded",
                code="ACEP-U054",
                hint="add --expand, or leave it out",
            )
        for file in (self.reports.report, self.reports.shed, self.learning.learn_log):
            check_folder(file)
        self.spending.check()

    def _check_learning(self) -> None:
        for name in ("save", "save_every", "learn_log"):
            if getattr(self.learning, name) is not None and not self.learning.learn:
                raise UsageError(
                    f"--{name.replace('_', '-')} is about what a run learns, and this one does not",
                    code="ACEP-U049",
                    hint="add --learn, or leave it out",
                )
        if self.learning.save_every is not None and self.home is None:
            raise UsageError("--save-every has nowhere to save to", code="ACEP-U049", hint="name a folder: --save DIR")

    @property
    def home(self) -> Path | None:
        """Where what is learned is saved."""
        return self.learning.save or self.spending.history

    def check_tables(self) -> None:
        """Refuse a table whose name does not say its format (``ACEP-U018``)."""
        for table in (self.reports.shed, self.learning.learn_log):
            if table is not None:
                format_of(table)

    def on_spark(self) -> dict[str, Any]:
        """The arguments of ``Query.spark`` that are about the budget."""
        if self.spending.budget is None:
            return {}
        return {"budget": self.spending.budget, "learn": self.learning.learn} | self.spending.given()

    def options(self) -> dict[str, Any]:
        """The arguments of ``Query.match_within`` behind the budget."""
        log_shed = self.reports.shed is not None
        return self.spending.given() | {"log_shed": log_shed, "learn": self.learning.learn}
