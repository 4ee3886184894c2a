"""What ``acep run`` was asked for, whatever kind of run that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import typer

from acep_approx.cli.options.budget import ExpandedBudgetOptions, LearningOptions, ReportOptions
from acep_approx.cli.options.choices import Format
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.live import LiveOptions, check_live
from acep_approx.cli.options.matching import EngineOptions, KeyOptions
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.page import PageOptions, PageRequest
from acep_approx.cli.options.queries import QueriesOptions, check_queries, needed
from acep_approx.cli.options.revisions import RevisionOptions
from acep_approx.cli.options.rules import RuleOptions
from acep_approx.cli.options.spark import RunSparkOptions, StreamOptions
from acep_approx.cli.terminal import read_query
from acep_approx.query.rules.parser import is_rules


@dataclass(frozen=True)
class RunOptions:
    """The options of ``acep run``, in the order of its help."""

    matching: EngineOptions
    keys: KeyOptions
    output: OutputOptions
    page: PageOptions
    source: RunInputOptions
    live: LiveOptions
    many: QueriesOptions
    rules: RuleOptions
    revisions: RevisionOptions
    spending: ExpandedBudgetOptions
    learning: LearningOptions
    reports: ReportOptions
    spark: RunSparkOptions
    stream: StreamOptions


@dataclass(frozen=True)
class RunRequest:
    """What a run was asked for; which kind of run that is, and what goes with it, is checked by each kind.

    Attributes
    ----------
    context : typer.Context
        Of the command.
    query : str
        As it was given; empty: there is a folder of queries.
    text : str
        Of the query, or of the rules.
    inputs : list of str
    options : RunOptions
    quiet : bool
    is_live : bool
        Whether events are still being written.
    """

    context: typer.Context
    query: str
    text: str
    inputs: list[str]
    options: RunOptions
    quiet: bool
    is_live: bool

    @classmethod
    def of(
        cls, context: typer.Context, query: str | None, inputs: list[str] | None, options: RunOptions, *, quiet: bool
    ) -> Self:
        """The request of a command.

        Raises
        ------
        UsageError
            ``ACEP-U069``: no query, or no input; ``ACEP-U064``: what does not go with a folder of queries;
            ``ACEP-U138`` to ``ACEP-U140``: what does not go with live input.
        """
        check_queries(context, options.many, options.output.output)
        text = ""
        if options.many.queries is not None:  # then all that is named is input
            query, inputs = "", [name for name in (query, *(inputs or [])) if name is not None]
        if query is None or not inputs:
            raise needed("QUERY" if query is None else "INPUT")
        if query:
            text = read_query(query)
        is_live = check_live(context, options.live, inputs, options.source, options.output, is_rules=is_rules(text))
        return cls(context, query, text, inputs, options, quiet, is_live)

    @property
    def is_of_rules(self) -> bool:
        """Whether there are rules in the place of the query."""
        return is_rules(self.text)

    @property
    def output(self) -> OutputOptions:
        """What is put out; of live input these are lines, on a terminal, too."""
        output = self.options.output
        if not self.is_live:
            return output
        is_said = output.format is not None or output.file is not None
        return replace(output, flush=True, format=output.format if is_said else Format.JSONL)

    @property
    def page(self) -> PageRequest | None:
        """The page that is to be written (see ``PageRequest.of``)."""
        return PageRequest.of(self.context, self.options.page, self.inputs, query=self._asked_about)

    @property
    def _asked_about(self) -> str:
        return "" if self.is_of_rules else self.query
