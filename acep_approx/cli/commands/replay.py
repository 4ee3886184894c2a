"""``acep replay``: why partial matches were shed at some moment of a run inside a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli import options
from acep_approx.cli.budgeted import Asked
from acep_approx.cli.options import OnLate, OnMalformed, Wanted
from acep_approx.cli.terminal import amount, progress_bar, read_query, say
from acep_approx.errors import AcepError, UsageError

if TYPE_CHECKING:
    from acep_approx.results.budgeted import BudgetedMatches


def replay(
    query: options.Query,
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT", show_default=False, help="The events of the run in question.")
    ],
    at: Annotated[
        str,
        typer.Option(
            metavar="TS",
            show_default=False,
            help="The moment in question: 2024-05-01T08:00:00Z, or a number as in the time column; in a window of "
            "events a row number.",
        ),
    ],
    budget: options.Budget = None,
    history: options.History = None,
    policy: options.Policy = None,
    audit: options.Audit = None,
    full_work: options.FullWork = None,
    seed: options.Seed = None,
    output: Annotated[
        Wanted, typer.Option(help="What the run in question put out: all matches (or counts), or match points.")
    ] = Wanted.MATCHES,
    key: Annotated[
        str | None, typer.Option(metavar="VALUE", show_default=False, help="Only partial matches of this key.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="Only those in this state, e.g. 'b'.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show so many, the nearest to the moment first.")] = 3,
    key_column: options.Key = None,
    time: options.Time = None,
    type: options.Type = None,  # noqa: A002  (the word of the query language)
    unit: options.TimeUnit = None,
    errors: options.Errors = None,
    within: options.Within = None,
    merge: Annotated[str, typer.Option(metavar="NAMES", help="As in the run in question.")] = "equal,pareto,chain",
    sort: options.Sort = False,
    input_format: options.FileFormat = None,
    on_malformed: Annotated[
        OnMalformed, typer.Option(help="Stop at a row that cannot be read, or leave such rows out.")
    ] = OnMalformed.REFUSE,
    on_late: Annotated[
        OnLate, typer.Option(help="Stop at an event that comes late, or leave such events out.")
    ] = OnLate.REFUSE,
    quiet: options.Quiet = False,
) -> None:
    """Say why partial matches were shed at a moment of acep run --budget.

    The run is done again, with the same options, and sheds the same: nothing depends on the clock. Shows each partial
    match as the history knows it, and the terms of its score against the price.
    """
    if budget is None:
        raise UsageError("without a budget nothing is shed", code="ACEP-U040", hint="give the --budget of the run")
    asked = Asked(budget, history, policy, audit, seed, full_work=full_work)
    asked.check()
    text = read_query(query)

    from acep_approx.api import compile_query
    from acep_approx.budget.budget import Budget
    from acep_approx.results.shed_replay import nearest
    from acep_approx.results.tuning import refuse_clock

    refuse_clock(Budget.parse(budget))
    compiled = compile_query(text, errors=errors, within=within)
    with progress_bar("running again", enabled=not quiet) as progress:
        matches = compiled.match_within(
            inputs,
            budget,
            **asked.options() | {"log_shed": True},
            time=time,
            key=key_column,
            type=type,
            unit=unit,
            sort=sort,
            on_progress=progress.done,
            format=input_format,
            on_malformed=on_malformed,
            on_late=on_late,
            merge=merge,
        )
        progress.total = matches.source.rows
        moment = _moment(at, matches, {"time": time, "key": key_column, "type": type, "unit": unit})
        for _ in matches.tables() if output is Wanted.MATCHES else matches.point_tables():
            pass
    shed = matches.shed()
    if not quiet:
        say(f"{amount(shed.num_rows, 'partial match')} shed; {matches.record().bound}")
    by = "row" if matches.plan.is_count_window else "at"
    found = nearest(shed, moment, by=by, key=key, state=state, limit=limit)
    if not found:
        typer.echo("no partial match was shed" + (" that fits" if shed.num_rows else ""))
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
    try:
        if at.lstrip("+-").isdecimal():
            return int(ticks(pa.array([int(at)]), wanted["unit"] if is_time else None)[0])
        if is_time:
            return int(ticks(pa.array([at]))[0])
    except AcepError as error:
        raise _no_moment(at, is_time=True) from error
    raise _no_moment(at, is_time=is_time)


def _no_moment(at: str, *, is_time: bool) -> UsageError:
    hint = "write a time as 2024-05-01T08:00:00Z" if is_time else "write a whole number"
    return UsageError(f"{at!r} is not a time of these events", code="ACEP-U112", hint=hint)


def _show(number: int, run: dict[str, Any], matches: BudgetedMatches) -> None:
    """One partial match."""
    from acep_approx.results.shed_replay import in_words

    key = f" of {run['key']}" if "key" in run else ""
    began, gone = _text(run["start"]), _text(run["at"])
    typer.echo(f"{number}. a partial match{key} that began at {began} was shed at {gone} (row {run['row']})")
    for name, text in in_words(run, matches):
        typer.echo(f"  {name:<10} {text}")


def _text(moment: Any) -> str:
    """A time or a number as results have it."""
    import pyarrow as pa

    from acep_approx.events.plain import plain_text

    return str(plain_text(pa.array([moment]), "")[0])
