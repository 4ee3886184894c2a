"""What ``acep run`` was asked for, and what of it cannot be done with its input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import typer

from acep_approx.cli.options.arrivals import REVISING, LiveOptions, RevisionOptions, may_be_late
from acep_approx.cli.options.groups import command_line, option_words
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.matching import (
    EngineOptions,
    ExpandedBudgetOptions,
    KeyOptions,
    LearningOptions,
    ReportOptions,
)
from acep_approx.cli.options.output import (
    Format,
    OutputOptions,
    PageOptions,
    ResultKind,
    check_folder,
    format_of,
    is_topic,
)
from acep_approx.cli.options.programs import QueriesOptions, RuleOptions, needed
from acep_approx.cli.options.spark import RunSparkOptions, StreamOptions
from acep_approx.cli.options.together import NOT_WITH, asked_for, check_queries, refuse
from acep_approx.cli.runs.page import ASKED, PageRequest
from acep_approx.cli.terminal import read_query
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import is_address
from acep_approx.query.rules.parser import is_rules
from acep_approx.shell import command_of

WHOLE = (Format.TABLE, Format.PARQUET)
"""Forms that are not written row by row."""


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
    """What a run was asked for. What goes with its program is checked where that is compiled.

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
    asked : dict of str to str
        See ``asked_for``.
    """

    context: typer.Context
    query: str
    text: str
    inputs: list[str]
    options: RunOptions
    quiet: bool
    asked: dict[str, str]

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
        check_queries(context, options.many.queries)
        if options.many.queries is not None:  # then all that is named is input
            query, inputs = "", [name for name in (query, *(inputs or [])) if name is not None]
        if query is None or not inputs:
            raise needed("QUERY" if query is None else "INPUT")
        text = read_query(query) if query else ""
        if not options.spark.spark:
            refuse(asked_for(context), dict.fromkeys(("no cluster", "here"), "--spark"))
        made = cls(context, query, text, inputs, options, quiet, asked_for(context))
        if "open_end" in made.asked:
            refuse(made.asked, {"open end": "--open-end"})
        if "flush" in made.asked:
            form = made._form()
            if form in WHOLE or options.output.output is ResultKind.COMPRESSED:
                shown = "--output compressed" if form is None else f"--format {form.value}"
                raise _apart(shown, "--flush", "choose jsonl or csv, which are written row by row")
        if made.is_live:
            made._check_live()
        else:
            other = {"checkpoint": options.spark.spark, "checkpoint_every": made.is_of_rules}  # have a use there, too
            other["schema"] = options.spark.spark
            other["kafka_option"] = made.is_with_topic
            asked = {name: option for name, option in made.asked.items() if not other.get(name)}
            refuse(asked, {"whole input": "live input"})
        return made

    @property
    def is_of_topic(self) -> bool:
        """Whether a topic of Kafka is read."""
        return any(map(is_address, self.inputs))

    @property
    def is_with_topic(self) -> bool:
        """Whether a topic of Kafka is read or written."""
        return self.is_of_topic or is_topic(self.options.output.file) or is_topic(self.options.rules.calls)

    @property
    def is_live(self) -> bool:
        """Whether a run here reads events that are still being written."""
        return self.options.live.follow or (self.is_of_topic and not self.options.spark.spark)

    @cached_property
    def is_of_rules(self) -> bool:
        """Whether there are rules in the place of the query."""
        return is_rules(self.text)

    @cached_property
    def output(self) -> OutputOptions:
        """What is put out; of live input these are lines, on a terminal, too."""
        output = self.options.output
        if not self.is_live:
            return output
        is_said = output.format is not None or output.file is not None
        return replace(output, flush=True, format=output.format if is_said else Format.JSONL)

    @property
    def page(self) -> PageRequest | None:
        """The page that is to be written; of several queries nobody can be asked why one has no match.

        Raises
        ------
        UsageError
            ``ACEP-U152``: what does not go with a page; ``ACEP-U016``: it cannot be written there.
        """
        file = self.options.page.page
        if file is None:
            return None
        if "queries" in self.asked:
            refuse(self.asked, {"page of a set": "--page"})
        if self.is_live:
            refuse(self.asked, {"page of live input": "--page"})
        check_folder(file)
        given = [(ASKED[name], self.context.params[name]) for name in ASKED if name in self.asked]
        same = [word for spelled, value in given for word in option_words(spelled, value)]
        if may_be_late(self.asked):
            same.append("--sort")
        is_one = bool(self.query) and not self.is_of_rules
        ask = command_of(["acep", "why", self.query, *self.inputs, *same]) if is_one else ""
        return PageRequest(file, self.inputs, command_line(self.context), ask)

    def waits(self, *kinds: str) -> bool:
        """Whether events may be late or change; refuses what does not go with that, or with runs of these kinds."""
        mine = next((self.asked[name] for name in REVISING if name in self.asked), None)
        if mine is None:
            return False
        refuse(self.asked, dict.fromkeys(("late events", *kinds), mine))
        if self.options.revisions.changelog:
            refuse(self.asked, {"changelog": "--changelog"})
        if self.options.source.late is not None:
            format_of(self.options.source.late)
        return True

    # --- what does not go with the input --------------------------------------------------------------------------

    def _check_live(self) -> None:
        mine = "--follow" if self.options.live.follow else "kafka://"
        refuse(self.asked, {"live input": mine} | ({} if self.is_of_topic else {"file that grows": mine}))
        if len(self.inputs) > 1:
            raise UsageError(
                f"{len(self.inputs)} inputs cannot be followed at once",
                code="ACEP-U140",
                hint="name one file, one topic, or a folder, whose files follow one another",
            )
        if not self.is_of_topic:
            asked = {name: option for name, option in self.asked.items() if name != "kafka_option"}
            refuse(asked if self.is_with_topic else self.asked, {"no topic": ""})
        refuse(self.asked, {"compressed": mine})
        if (form := self._form()) is not None and form in WHOLE:
            raise _apart(f"--format {form.value}", mine, "results are written as they come: choose jsonl or csv")
        if "checkpoint" not in self.asked:
            if not self.is_of_rules:
                refuse(self.asked, {"no checkpoint": "--checkpoint"})
            return
        if self.is_of_rules:
            refuse(self.asked, {"rules on live input": "rules"})
        refuse(self.asked, {"checkpoint": "--checkpoint"})
        late = self.options.source.late
        if late is not None and format_of(late) is Format.PARQUET:
            raise _apart(f"--late {late}", "--checkpoint", "name it .jsonl or .csv: rows are added as they come")

    def _form(self) -> Format | None:
        """The format of the results, where it is said, or the name of the output says it: rules write to a folder."""
        output = self.options.output
        if is_topic(output.file):
            return output.form()
        if output.format is not None or output.file is None or not output.file.suffix or output.file.is_dir():
            return output.format
        return format_of(output.file)


def _apart(option: str, mine: str, hint: str) -> UsageError:
    return UsageError(NOT_WITH.format(option=option, mine=mine), code="ACEP-U138", hint=hint)
