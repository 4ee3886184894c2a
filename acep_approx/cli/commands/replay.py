"""``acep replay``: why partial matches were shed at some moment of a run inside a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import InputOptions, Inputs
from acep_approx.cli.options.matching import BudgetOptions, MergingOptions, Wanted
from acep_approx.cli.options.output import OutputOptions, Quiet
from acep_approx.cli.options.programs import QueryText, read_one_query
from acep_approx.cli.terminal import amount, progress_bar, say, tell
from acep_approx.errors import AcepError, UsageError

if TYPE_CHECKING:
    from acep_approx.results.budgeted import BudgetedMatches


@dataclass(frozen=True)
class ShedQuestionOptions:
    """Which partial matches are asked about."""

    panel = "Question"

    at: Annotated[
        str,
        typer.Option(
            "--around",
            metavar="TS",
            help="The moment in question, e.g. 2024-05-01T08:00:00Z, or a number; in a window of events a row number.",
        ),
    ]
    value: Annotated[str | None, typer.Option("--key", metavar="VALUE", help="Only partial matches of this key.")] = (
        None
    )
    state: Annotated[str | None, typer.Option(metavar="NAME", help="Only those in this state, e.g. 'b'.")] = None
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show so many, the nearest to the moment first.")] = 3


@grouped
def replay(
    query: QueryText,
    inputs: Inputs,
    *,
    question: ShedQuestionOptions,
    matching: MergingOptions,
    output: Annotated[
        Wanted,
        typer.Option(
            help="What the run in question put out: matches (or counts), or points.",
            rich_help_panel=OutputOptions.panel,
        ),
    ] = Wanted.MATCHES,
    source: InputOptions,
    spending: BudgetOptions,
    quiet: Quiet = False,
) -> None:
    """Say why partial matches were shed at a moment of acep run --budget.

    The run is done again, with the same options, and sheds the same: nothing depends on the clock. Shows each partial
    match as the history knows it, and the terms of its score against the price.
    """
    if spending.budget is None:
        raise UsageError("without a budget nothing is shed", code="ACEP-U040", hint="give the --budget of the run")
    spending.check()
    text = read_one_query(query, "acep replay")

    from acep_approx.api import compile_query
    from acep_approx.budget.budget import Budget
    from acep_approx.events.source import open_source
    from acep_approx.results.shed_replay import nearest
    from acep_approx.results.tuning import refuse_clock

    refuse_clock(Budget.parse(spending.budget))
    compiled = compile_query(text, **matching.replaced)
    more = source.roles | {"sort": source.sort, "merge": matching.merge}
    with progress_bar("running again", enabled=not quiet) as progress:
        events = open_source(inputs, **source.reading)
        matches = compiled.match_within(
            events, spending.budget, **spending.given(), log_shed=True, on_progress=progress.done, **more
        )
        progress.total = matches.source.rows
        moment = _moment(question.at, matches, source.roles)
        for _ in matches.tables() if output is Wanted.MATCHES else matches.point_tables():
            pass
    shed = matches.shed()
    if not quiet:
        say(f"{amount(shed.num_rows, 'partial match')} shed; {matches.record().bound}")
    by = "row" if matches.plan.is_count_window else "at"
    found = nearest(shed, moment, by=by, key=question.value, state=question.state, limit=question.limit)
    if not found:
        tell("no partial match was shed" + (" that fits" if shed.num_rows else ""))
    for number, run in enumerate(found):
        _show(number + 1, run, matches)


def _moment(at: str, matches: BudgetedMatches, wanted: dict[str, str | None]) -> int:
    """The moment as a tick of the events, or as a row number."""
    import pyarrow as pa

    from acep_approx.events.roles import infer_roles
    from acep_approx.events.time import tick_unit, ticks

    schema, is_time = matches.source.schema, False
    if len(schema) and not matches.plan.is_count_window:
        roles = infer_roles(schema, **wanted)
        is_time = tick_unit(schema.field(roles.time).type, roles.unit) is not None
    reason: AcepError | None = None
    try:
        if at.lstrip("+-").isdecimal():
            return int(ticks(pa.array([int(at)]), wanted["unit"] if is_time else None)[0])
        if is_time:
            return int(ticks(pa.array([at]))[0])
    except AcepError as error:
        reason, is_time = error, True
    hint = "write a time as 2024-05-01T08:00:00Z" if is_time else "write a whole number"
    raise UsageError(f"{at!r} is not a time of these events", code="ACEP-U112", hint=hint) from reason


def _show(number: int, run: dict[str, Any], matches: BudgetedMatches) -> None:
    import pyarrow as pa

    from acep_approx.events.writing.tables import plain_text
    from acep_approx.results.shed_replay import in_words

    key = f" of {run['key']}" if "key" in run else ""
    began, gone = (plain_text(pa.array([run[name]]), "")[0] for name in ("start", "at"))  # as results have them
    tell(f"{number}. a partial match{key} that began at {began} was shed at {gone} (row {run['row']})")
    for name, text in in_words(run, matches):
        tell(f"  {name:<10} {text}")
