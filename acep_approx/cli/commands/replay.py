"""``acep replay``: why partial matches were shed at some moment of a run inside a budget."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import InputOptions
from acep_approx.cli.options.matching import BudgetOptions, MergingOptions, Wanted
from acep_approx.cli.options.output import OutputOptions, Quiet
from acep_approx.cli.options.programs import FolderOptions, OneQuery, RuleOptions, RunInputs, needed
from acep_approx.cli.options.together import RULES, asked_for, check_queries, refuse
from acep_approx.cli.terminal import amount, progress_bar, read_query, say, tell
from acep_approx.errors import AcepError, UsageError
from acep_approx.query.rules.parser import is_rules

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api.rule_budget import RuleSpending
    from acep_approx.budget.set_ledger import SharedRecord
    from acep_approx.results.budgeted_set import SetSpending
    from acep_approx.results.shed_replay import ShedBy

    Shown = list[tuple[dict[str, Any], ShedBy]]


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
    whose: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="ID",
            help="With --queries and of rules: the query, or rule, that is asked about.",
        ),
    ] = None
    value: Annotated[str | None, typer.Option("--key", metavar="VALUE", help="Only partial matches of this key.")] = (
        None
    )
    state: Annotated[str | None, typer.Option(metavar="NAME", help="Only those in this state, e.g. 'b'.")] = None
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show so many, the nearest to the moment first.")] = 3

    @property
    def whom(self) -> str:
        """The query, or rule (``ACEP-U069``: it is not named)."""
        if self.whose is None:
            raise UsageError(
                "nobody says which query or rule is asked about", code="ACEP-U069", hint="name it: --query ID"
            )
        return self.whose

    @property
    def chosen(self) -> dict[str, Any]:
        """The arguments of ``shed_replay.nearest`` that choose among what was shed."""
        return {"key": self.value, "state": self.state, "limit": self.limit}


@dataclass(frozen=True)
class Again:
    """A run that is to be done again.

    Attributes
    ----------
    inputs : list of str
    question : ShedQuestionOptions
    source : InputOptions
    budget : str
    spending : BudgetOptions
    output : str
        What the run put out.
    quiet : bool
    """

    inputs: list[str]
    question: ShedQuestionOptions
    source: InputOptions
    budget: str
    spending: BudgetOptions
    output: str
    quiet: bool

    @property
    def within(self) -> dict[str, Any]:
        """The budget, and how it is spent, in the words of sets and of rules."""
        return {"budget": self.budget, "log_shed": True} | self.spending.given()

    def moment(self, schema: pa.Schema, *, is_row: bool) -> int:
        """The moment in question, as a tick of the events, or as a row number."""
        return _moment(self.question.at, schema, self.source.roles, is_row=is_row)

    def say(self, shed: int, bound: str) -> None:
        """Say how much was shed."""
        if not self.quiet:
            say(f"{amount(shed, 'partial match')} shed; {bound}")


@grouped
def replay(
    context: typer.Context,
    query: OneQuery = None,
    inputs: RunInputs = None,
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
    many: FolderOptions,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="The rows that a table began with; can be repeated.",
            rich_help_panel=RuleOptions.panel,
        ),
    ] = None,
    spending: BudgetOptions,
    quiet: Quiet = False,
) -> None:
    """Say why partial matches were shed at a moment of acep run --budget.

    The run is done again, with the same options, and sheds the same: nothing depends on the clock. Shows each partial
    match as the history knows it, and the terms of its score against the price.

    With --queries FOLDER, or a file of rules in the place of QUERY, --query says which of them is asked about.
    """
    check_queries(context, many.queries, "replay of a set", "no set to learn from")
    if many.queries is not None:  # then all that is named is input
        query, inputs = "", [name for name in (query, *(inputs or [])) if name is not None]
    if query is None or not inputs:
        raise needed("QUERY" if query is None else "INPUT")
    if spending.budget is None:
        raise UsageError("without a budget nothing is shed", code="ACEP-U040", hint="give the --budget of the run")
    from acep_approx.budget.budget import Budget
    from acep_approx.results.tuning import refuse_clock

    refuse_clock(Budget.parse(spending.budget))
    text = read_query(query) if query else ""
    again = Again(inputs, question, source, spending.budget, spending, output.value, quiet)
    if many.queries is not None:
        found = _of_set(again, many)
    elif is_rules(text):
        refuse(asked_for(context), {"replay of rules": RULES})
        found = _of_rules(again, text, table or [])
    else:
        refuse(asked_for(context), {"replay of a query": "--queries or rules"})
        refuse(asked_for(context), {"no rules": ""})
        found = _of_query(again, text, matching)
    for number, (run, by) in enumerate(found):
        _show(number + 1, run, by)


def _of_query(again: Again, text: str, matching: MergingOptions) -> Shown:
    """What was shed of one query."""
    from acep_approx.api import compile_query
    from acep_approx.events.source import open_source
    from acep_approx.results.shed_replay import nearest

    compiled = compile_query(text, **matching.replaced)
    more = again.source.roles | {"sort": again.source.sort, "merge": matching.merge}
    with progress_bar("running again", enabled=not again.quiet) as progress:
        events = open_source(again.inputs, **again.source.reading)
        matches = compiled.match_within(
            events, again.budget, **again.spending.given(), log_shed=True, on_progress=progress.done, **more
        )
        progress.total, is_row = matches.source.rows, matches.plan.is_count_window
        moment = again.moment(matches.source.schema, is_row=is_row)
        for _ in matches.tables() if again.output == "matches" else matches.point_tables():
            pass
    shed, record = matches.shed(), matches.record()
    left_open = f"{amount(record.unsearched, 'possible end')} of matches left open; " if record.ends else ""
    again.say(record.shed_runs, left_open + record.bound)
    found = nearest(shed, moment, by="row" if is_row else "at", **again.question.chosen)
    _tell_nothing(found, shed.num_rows)
    return [(run, matches) for run in found]


def _of_set(again: Again, many: FolderOptions) -> Shown:
    """What was shed of one query of a folder."""
    whose = again.question.whom
    from acep_approx.cli.query_folder import read_folder
    from acep_approx.events.source import open_source

    assert many.queries is not None, "it was given"
    folder = read_folder(
        many.queries, strict=many.strict, output=again.output, **again.source.roles, **again.within
    )
    folder.tell_wrong()
    desk = folder.desk
    desk.text(whose)  # refused where there is none
    with progress_bar("running again", enabled=not again.quiet) as progress:
        events = open_source(again.inputs, **again.source.reading)
        progress.total, is_row = events.rows, desk.spending.counts_events(whose)
        moment = again.moment(events.schema, is_row=is_row)
        how: dict[str, Any] = {"sort": again.source.sort, "on_misfit": folder.misfit, "on_progress": progress.done}
        deque(desk.batches(events, **how), maxlen=0)
    return _of_engines(again, desk.spending, desk.record(), moment, is_row=is_row)


def _of_rules(again: Again, text: str, tables: list[str]) -> Shown:
    """What was shed of one rule."""
    whose = again.question.whom
    from acep_approx.api.rule_set import compile_rules
    from acep_approx.cli.runs.rules import rows_given
    from acep_approx.events.source import open_source
    from acep_approx.results.match import named

    rules = compile_rules(text)
    is_row = named({one.name: one.plan for one in rules.program.rules}, whose, "rule").is_count_window
    with progress_bar("running again", enabled=not again.quiet) as progress:
        events = open_source(again.inputs, **again.source.reading)
        progress.total = events.rows
        moment = again.moment(events.schema, is_row=is_row)
        with rules.start(store=rows_given(tables), **again.within, **again.source.roles) as run:
            deque(run.outputs(events, sort=again.source.sort, on_progress=progress.done), maxlen=0)
            run.finish()
    record = run.record()
    assert record is not None, "there is a budget"
    return _of_engines(again, run.spending, record, moment, is_row=is_row)


def _of_engines(
    again: Again, spending: SetSpending | RuleSpending, record: SharedRecord, moment: int, *, is_row: bool
) -> Shown:
    """What engines have shed that share a budget, of the query or rule that is asked about."""
    from acep_approx.results.shed_replay import nearest_of

    logged = spending.logged(again.question.whom)
    shed = sum(one.table.num_rows for one in logged)
    again.say(shed, f"all took {record.work:,} of {record.allowed:,} run-steps, {amount(record.shed_runs, 'run')} shed")
    found = nearest_of(logged, moment, by="row" if is_row else "at", **again.question.chosen)
    _tell_nothing(found, shed)
    return found


def _tell_nothing(found: list[Any], shed: int) -> None:
    if not found:
        tell("no partial match was shed" + (" that fits" if shed else ""))


def _moment(at: str, schema: pa.Schema, wanted: dict[str, str | None], *, is_row: bool) -> int:
    import pyarrow as pa

    from acep_approx.events.roles import infer_roles
    from acep_approx.events.time import tick_unit, ticks

    is_time = False
    if len(schema) and not is_row:
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


def _show(number: int, run: dict[str, Any], by: ShedBy) -> None:
    import pyarrow as pa

    from acep_approx.events.writing.tables import plain_text
    from acep_approx.results.shed_replay import in_words
    from acep_approx.shedding.metrics import LEFT_OPEN

    key = f" of {run['key']}" if "key" in run else ""
    began, gone = (plain_text(pa.array([run[name]]), "")[0] for name in ("start", "at"))  # as results have them
    if run["reason"] == LEFT_OPEN:
        tell(f"{number}. whether a match{key} ends at {gone} (row {run['row']}) was left open: no run-steps were left")
        return
    tell(f"{number}. a partial match{key} that began at {began} was shed at {gone} (row {run['row']})")
    for name, text in in_words(run, by):
        tell(f"  {name:<10} {text}")
