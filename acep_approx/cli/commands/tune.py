"""``acep tune``: try errors, windows and budgets on past events, and recommend some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acep_approx.cli import options
from acep_approx.cli.budgeted import check_folder, learned_query, show_table, stages
from acep_approx.cli.options import OnLate, OnMalformed, Wanted
from acep_approx.cli.terminal import amount, read_query, say
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from acep_approx.results.advice import Advice
    from acep_approx.results.tuning import Elsewhere, Tuning

BUDGETS = "5%,10%,20%,50%"


def tune(
    query: options.Query,
    past: Annotated[
        list[str],
        typer.Argument(metavar="PAST...", show_default=False, help="Past events, oldest first; read as by acep run."),
    ],
    errors: Annotated[
        str | None,
        typer.Option(
            "--errors", "-k", metavar="K,K", show_default=False, help="ERRORS to try. By default the query's."
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="W,W", show_default=False, help="Windows to try, e.g. '10 s,20 s'. By default the query's."
        ),
    ] = None,
    budgets: Annotated[
        str, typer.Option(metavar="B,B", help="Budgets to try, as for acep run; not those of time.")
    ] = BUDGETS,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Draw the curves: a page of HTML that loads nothing."),
    ] = None,
    output: Annotated[
        Wanted, typer.Option(help="What the runs to come will put out: all matches, or match points alone (less work).")
    ] = Wanted.MATCHES,
    most_steps: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0,
            help="Leave out what takes more run-steps per event than this, at the beginning of PAST.",
        ),
    ] = 20_000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of all coins.")] = 0,
    time: options.Time = None,
    key: options.Key = None,
    type: options.Type = None,  # noqa: A002  (the word of the query language)
    unit: options.TimeUnit = None,
    sort: options.Sort = False,
    input_format: options.FileFormat = None,
    on_malformed: Annotated[
        OnMalformed, typer.Option(help="Stop at a row that cannot be read, or leave such rows out.")
    ] = OnMalformed.REFUSE,
    on_late: Annotated[
        OnLate, typer.Option(help="Stop at an event that comes late, or leave such events out.")
    ] = OnLate.REFUSE,
    spark: options.Spark = False,
    master: options.Master = None,
    quiet: options.Quiet = False,
) -> None:
    """Try ERRORS, windows and budgets for QUERY on PAST: what each finds, at which load. Recommends some of them.

    A history is learned from the first 70% of PAST; what budgets find is measured on the rest, which it has not seen.
    """
    check_folder(plot)
    if plot is not None and plot.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"the curves are a page, and {str(plot)!r} is none", code="ACEP-U044", hint="name a FILE.html")
    wanted_errors = [_whole(item) for item in _items(errors)] or [None]
    wanted_windows: list[str | None] = [*_items(within)] or [None]
    options.check_master(master, spark=spark)
    text = read_query(query)

    from acep_approx.events.source import open_source
    from acep_approx.results.advice import advise
    from acep_approx.results.tuning import PastTable
    from acep_approx.results.tuning import tune as try_all

    with stages(enabled=not quiet) as bar:
        source = open_source(past, format=input_format, on_malformed=on_malformed, on_late=on_late)
        table = PastTable.read(source, sort=sort, time=time, key=key, type=type, unit=unit)
        tuning = try_all(
            lambda k, window: learned_query(text, errors=k, within=window),
            table,
            errors=wanted_errors,
            within=wanted_windows,
            budgets=_items(budgets),
            output="points" if output is Wanted.POINTS else "counts",
            most_steps=most_steps,
            seed=seed,
            on_progress=bar,
            elsewhere=_on_spark(master) if spark else None,
        )
    advice = advise(tuning)
    if not quiet:
        said = f"learned from {amount(tuning.trained, 'event')}, measured on the {tuning.measured:,} after them"
        say(f"{said}; recall is that of match points")
    _show(tuning)
    _recommend(advice)
    if plot is not None:
        _draw(tuning, advice, text, output, plot)


def _on_spark(master: str | None) -> Elsewhere:
    from acep_approx.spark import session
    from acep_approx.spark.past.tuning import on_spark

    return on_spark(session(master))


def _items(text: str | None) -> list[str]:
    """The items of a list with commas."""
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _whole(text: str) -> int | None:
    if not text.isdecimal():
        raise UsageError(f"--errors has {text!r}", code="ACEP-U045", hint="give whole numbers, e.g. 0,1,2")
    return int(text)


def _show(tuning: Tuning) -> None:
    """The table of all choices."""
    header = ["WITHIN", "ERRORS", "match points", "matches", "run-steps per event"]
    header += [f"recall at {budget}" for budget in tuning.budgets]
    rows = []
    for trial in tuning.trials:
        row = [trial.within, str(trial.errors)]
        if trial.skipped:
            row += ["-", "-", f"left out: {trial.skipped}", *("-" for _ in tuning.budgets)]
        else:
            row += [f"{trial.points:,}", f"{trial.matches:,}" if trial.matches else "-", f"{trial.steps:,.3g}"]
            row += [f"{recall:.0%}" if trial.points else "-" for recall in trial.recalls]
        rows.append(row)
    show_table(header, rows, texts=1)


def _recommend(advice: Advice) -> None:
    if advice.within is None:
        typer.echo("no recommendation")
    else:
        budget = f" --budget '{advice.budget}'" if advice.budget else ""
        typer.echo(f"recommended: --errors {advice.errors} --within '{advice.within}'{budget}")
    for reason in advice.reasons:
        typer.echo(f"  {reason}")


def _draw(tuning: Tuning, advice: Advice, text: str, output: Wanted, file: Path) -> None:
    """The curves as a page."""
    from acep_approx.report.curves import Curve, curves_page

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
    said = [f"{advice.errors} errors, {advice.within}, {advice.budget}"] if advice.within is not None else []
    page = curves_page(text.strip(), [*said, *advice.reasons], recall, grown, load)
    file.write_text(page, encoding="utf-8")
