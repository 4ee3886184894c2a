"""``acep tune``: try errors, windows and budgets on past events, and recommend some."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.budget.ledger import LIGHT
from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import InputOptions, TrainInputs
from acep_approx.cli.options.matching import Wanted
from acep_approx.cli.options.output import OutputOptions, Quiet, check_folder
from acep_approx.cli.options.programs import FolderOptions, OneQuery, Tables, needed
from acep_approx.cli.options.spark import SparkOptions, refuse_how_written
from acep_approx.cli.options.together import RULES, asked_for, check_queries, refuse
from acep_approx.cli.runs.rules import rows_given
from acep_approx.cli.summary import say_how_read, say_measured
from acep_approx.cli.tables import show_table
from acep_approx.cli.terminal import read_query, stages, tell
from acep_approx.errors import UsageError
from acep_approx.query.rules.parser import is_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.results.shared_tuning import SharedTuning
    from acep_approx.results.tuning import Advice, Elsewhere, HowTried, PastTable, Trial, Tuning

BUDGETS = "5%,10%,20%,50%"


@dataclass(frozen=True)
class TrialOptions:
    """What is tried, and for which runs."""

    panel = "Matching"

    errors: Annotated[
        str | None,
        typer.Option("--errors", "-k", metavar="K,K", help="ERRORS to try; by default the query's."),
    ] = None
    within: Annotated[
        str | None, typer.Option(metavar="W,W", help="Windows to try, e.g. '10 s,20 s'; by default the query's.")
    ] = None
    output: Annotated[
        Wanted, typer.Option(help="What the runs to come will put out; points take less work than matches.")
    ] = Wanted.MATCHES
    most_steps: Annotated[
        float, typer.Option(metavar="N", min=0, help="Leave out what takes more run-steps per event than this.")
    ] = 20_000

    def wanted_errors(self) -> list[int | None]:
        """The numbers of errors to try; None: the query's."""
        wanted = _items(self.errors)
        wrong = next((item for item in wanted if not item.isdecimal()), None)
        if wrong is not None:
            raise UsageError(f"--errors has {wrong!r}", code="ACEP-U045", hint="give whole numbers, e.g. 0,1,2")
        return [*map(int, wanted)] or [None]


@dataclass(frozen=True)
class TrialBudgetOptions:
    """The budgets that are tried."""

    panel = "Budget"

    budgets: Annotated[str, typer.Option(metavar="B,B", help="Budgets to try, as for acep run; not those of time.")] = (
        BUDGETS
    )
    seed: Annotated[int, typer.Option(metavar="N", help="Of all that is random.")] = 0


@grouped
def tune(
    context: typer.Context,
    query: OneQuery = None,
    past: TrainInputs = None,
    *,
    trials: TrialOptions,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Draw the curves: a page of HTML that loads nothing.",
            rich_help_panel=OutputOptions.panel,
        ),
    ] = None,
    source: InputOptions,
    many: FolderOptions,
    one: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="ID",
            show_default=False,
            help="With --queries: only this query gets --errors and --within; by default all but those in CEL.",
            rich_help_panel=FolderOptions.panel,
        ),
    ] = None,
    table: Tables = None,
    spending: TrialBudgetOptions,
    spark: SparkOptions,
    quiet: Quiet = False,
) -> None:
    """Try ERRORS, windows and budgets for QUERY on PAST: what each finds, at which load. Recommends some of them.

    A history is learned from the first 70% of PAST; what budgets find is measured on the rest, which it has not seen.
    In brackets stands where the recall of a stretch like that lies, in 95 of 100 cases.

    With --queries FOLDER, or a file of rules in the place of QUERY, the budgets are those of all queries or rules
    together, learned from the first 60%: what is found of all, by weight, and of those that miss most.
    """
    check_queries(context, many.queries, "tuning of a set", "no set to tune")
    check_folder(plot)
    if plot is not None and plot.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"the curves are a page, and {str(plot)!r} is none", code="ACEP-U044", hint="name a FILE.html")
    trials.wanted_errors()  # refuses what is no number before anything is read
    spark.check()
    if spark.spark:
        refuse_how_written(source)
    if many.queries is not None:  # then all that is named is the past
        names = [name for name in (query, *(past or [])) if name is not None]
        shared = _tuned_set(context, names, many, one, trials, source, spending, quiet=quiet)
        _tell_shared(shared, f"acep tune --queries {many.queries}", plot, quiet=quiet)
        return
    if query is None or not past:
        raise needed("QUERY" if query is None else "PAST")
    if is_rules(text := read_query(query)):
        refuse(asked_for(context), {"tuning of rules": RULES})
        tables = rows_given(table or [])
        _tell_shared(_tuned_rules(context, text, past, tables, source, spending, quiet=quiet), text, plot, quiet=quiet)
        return
    refuse(asked_for(context), {"no rules": query})

    from acep_approx.api import compile_query
    from acep_approx.events.source import open_source
    from acep_approx.results.tuning import PastTable, advise
    from acep_approx.results.tuning import tune as try_all

    with stages(enabled=not quiet) as bar:
        events = open_source(past, **source.reading)
        known = PastTable.read(events, sort=source.sort, **source.roles)
        say_how_read(events)
        tuning = try_all(
            lambda errors, within: compile_query(text, errors=errors, within=within, engine="runs"),
            known,
            errors=trials.wanted_errors(),
            within=[*_items(trials.within)] or [None],
            budgets=_items(spending.budgets),
            output="points" if trials.output is Wanted.POINTS else "counts",
            most_steps=trials.most_steps,
            seed=spending.seed,
            on_progress=bar,
            elsewhere=_on_spark(spark.master) if spark.spark else None,
        )
    advice = advise(tuning)
    if not quiet:
        say_measured(tuning.trained, tuning.measured)
    _say_need(tuning)
    _show(tuning)
    _recommend(advice)
    if plot is not None:
        _draw(tuning, str(advice).splitlines(), text, trials.output, plot)


def _budgets(context: typer.Context, spending: TrialBudgetOptions) -> list[str] | None:
    """The budgets that were asked for; None: those that acep train promises for."""
    return _items(spending.budgets) if "budgets" in asked_for(context) else None


def _tuned_set(
    context: typer.Context,
    past: list[str],
    many: FolderOptions,
    query: str | None,
    trials: TrialOptions,
    source: InputOptions,
    spending: TrialBudgetOptions,
    *,
    quiet: bool,
) -> SharedTuning:
    """Tune the queries of a folder."""
    if not past:
        raise needed("PAST")
    from acep_approx.cli.query_folder import read_folder
    from acep_approx.events.source import open_source

    assert many.queries is not None, "it was given"
    output = "points" if trials.output is Wanted.POINTS else "matches"
    folder = read_folder(many.queries, strict=many.strict, output=output, **source.roles)
    folder.tell_wrong()
    with stages(enabled=not quiet) as bar:
        events = open_source(past, **source.reading)
        say_how_read(events)
        found: SharedTuning = folder.desk.tune(
            events,
            errors=trials.wanted_errors(),
            within=[*_items(trials.within)] or [None],
            query=query,
            budgets=_budgets(context, spending),
            seed=spending.seed,
            on_progress=bar,
            on_misfit=folder.misfit,
            sort=source.sort,
        )
    folder.tell_wrong()
    return found


def _tuned_rules(
    context: typer.Context,
    text: str,
    past: list[str],
    tables: dict[str, str],
    source: InputOptions,
    spending: TrialBudgetOptions,
    *,
    quiet: bool,
) -> SharedTuning:
    """Tune a file of rules."""
    from acep_approx.api.rule_set import compile_rules
    from acep_approx.events.source import open_source

    rules = compile_rules(text)
    with stages(enabled=not quiet) as bar:
        events = open_source(past, **source.reading)
        say_how_read(events)
        how: dict[str, Any] = {"store": tables or None, "sort": source.sort, **source.roles}
        budgets = _budgets(context, spending)
        return rules.tune(events, budgets=budgets, seed=spending.seed, on_progress=bar, **how)


def _tell_shared(tuning: SharedTuning, asked: str, plot: Path | None, *, quiet: bool) -> None:
    """Show what budgets find that many share."""
    if not quiet:
        say_measured(tuning.trained, tuning.measured)
    header, *rows = tuning.table()
    show_table(header, rows, texts=tuning.texts)
    for line in tuning.recommended():
        tell(line)
    if plot is not None:
        _draw(tuning.as_one(), tuning.recommended(), asked, Wanted.POINTS, plot)


def _on_spark(master: str | None) -> Elsewhere:
    def try_all(queries: Sequence[CompiledQuery], past: PastTable, how: HowTried) -> Sequence[Trial]:
        from acep_approx.events.columns import plain_schema
        from acep_approx.matching.execution import Execution
        from acep_approx.matching.outputs.kinds import BARE
        from acep_approx.spark import session
        from acep_approx.spark.past.tuning import on_spark

        schema = plain_schema(past.first.schema, "the past")
        for query in queries:  # what is wrong is said before Spark starts, which takes seconds
            Execution(query.plan, output=BARE).bind(schema, past.roles)
        return on_spark(session(master))(queries, past, how)

    return try_all


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _say_need(tuning: Tuning) -> None:
    """Whether a budget is needed: work and time of the exact run, and the time of the least budget."""
    tell("is a budget needed?")
    for trial in tuning.trials:
        if trial.skipped:
            continue
        choice = f"  ERRORS {trial.errors} WITHIN {trial.within}: {trial.steps:,.3g} run-steps per event"
        if trial.steps < LIGHT:
            tell(f"{choice}: no, below {LIGHT:g} it saves no time")
            continue
        least = min(range(len(tuning.budgets)), key=lambda i: trial.work[i])
        times = f"{trial.exact_seconds:,.2g} s exactly, {trial.seconds[least]:,.2g} s inside {tuning.budgets[least]}"
        tell(f"{choice}; {times}")


def _show(tuning: Tuning) -> None:
    header, *rows = tuning.table()
    show_table(header, rows, texts=1)


def _recommend(advice: Advice) -> None:
    if advice.within is None:
        tell("no recommendation")
    else:
        budget = f" --budget '{advice.budget}'" if advice.budget else ""
        tell(f"recommended: --errors {advice.errors} --within '{advice.within}'{budget}")
    for reason in advice.reasons:
        tell(f"  {reason}")


def _draw(tuning: Tuning, advice: list[str], text: str, output: Wanted, file: Path) -> None:
    from acep_approx.pages.curves import Curve, curves_page
    from acep_approx.pages.shell import write_page

    tried = [trial for trial in tuning.trials if not trial.skipped]
    recall = [
        Curve(
            f"ERRORS {one.errors} WITHIN {one.within}", [(0.0, 0.0), *sorted(zip(one.work, one.recalls, strict=True))]
        )
        for one in tried
        if one.points
    ]
    windows = list(dict.fromkeys(trial.within for trial in tried))
    grown = [
        Curve(f"WITHIN {window}", [(one.errors, one.matches) for one in tried if one.within == window])
        for window in windows
        if output is Wanted.MATCHES
    ]
    load = [
        Curve(f"WITHIN {window}", [(one.errors, one.steps) for one in tried if one.within == window])
        for window in windows
    ]
    page = curves_page(text.strip(), advice, recall, grown, load)
    write_page(page, file)
