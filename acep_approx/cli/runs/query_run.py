"""A run of one query, whichever way it is run: what was asked for, after all checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.exact_command import exact_command
from acep_approx.cli.on_spark.batch import folder_form, is_folder
from acep_approx.cli.options.budget import BudgetRequest
from acep_approx.cli.options.choices import Format
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.live import by_partition
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.page import PageRequest
from acep_approx.cli.options.revisions import check_id, check_revisions
from acep_approx.cli.options.rules import refuse_without_rules
from acep_approx.cli.options.spark import check_options
from acep_approx.cli.runs.request import RunRequest

if TYPE_CHECKING:
    from acep_approx.api import Query
    from acep_approx.revisions.request import Revisions


@dataclass(frozen=True)
class QueryRun:
    """What a run of one query is to do.

    Attributes
    ----------
    inputs : list of str, or Source
        Where events come from.
    name : str
        What they are called.
    form : Format
        How results are written.
    merge : str
        Which runs are merged.
    key_idle : str or None
        How long a key may have no event.
    revisions : Revisions or None
        How events may be late or change; None: they come in order and stay.
    budget : BudgetRequest
    page : PageRequest or None
        The page that is to be written.
    """

    context: typer.Context
    query: Query
    inputs: Any
    name: str
    source: RunInputOptions
    output: OutputOptions
    form: Format
    merge: str
    key_idle: str | None
    revisions: Revisions | None
    budget: BudgetRequest
    page: PageRequest | None
    quiet: bool

    @classmethod
    def of(cls, request: RunRequest) -> QueryRun:
        """What was asked for.

        Raises
        ------
        UsageError
            What does not go together, or cannot be written where it was said.
        QueryError
            The query is wrong.
        """
        context, options, inputs, output = request.context, request.options, request.inputs, request.output
        is_on_spark, is_streamed = options.spark.spark, options.stream.stream
        refuse_without_rules(context, is_live=request.is_live)
        check_options(context, output.output, spark=is_on_spark, stream=is_streamed)
        check_id(context, spark=is_on_spark)
        asked = (context, by_partition(options.revisions, inputs), options.source, output.output)
        revisions = None if is_on_spark else check_revisions(*asked)
        is_by_workers = is_on_spark and output.file is not None and (is_streamed or is_folder(output.file))
        form = folder_form(output, is_new=not is_streamed) if is_by_workers else output.form()
        output.check(form, is_expanded=options.spending.expand)
        budget = BudgetRequest(options.spending, options.learning, options.reports)
        budget.check()
        budget.check_tables()
        page = request.page
        from acep_approx.api import compile_query

        query = compile_query(request.text, **options.matching.replaced, engine=options.matching.engine.value)
        merge, key_idle = options.matching.merge, options.keys.key_idle
        how = (output, form, merge, key_idle, revisions, budget, page, request.quiet)
        return cls(context, query, inputs, ", ".join(inputs), options.source, *how)

    @property
    def is_within_budget(self) -> bool:
        """Whether a budget says how much work it may do."""
        return self.budget.spending.budget is not None

    @property
    def exactly(self) -> str:
        """The command that does the same without a budget."""
        return exact_command(self.context)
