"""``acep train``: learn from past events which partial matches of a query are worth keeping."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli import options
from acep_approx.cli.budgeted import learned_query, show_table, stages
from acep_approx.cli.options import OnLate, OnMalformed
from acep_approx.cli.terminal import amount, read_query, say
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from acep_approx.api import Query
    from acep_approx.training.history_graph import HistoryGraph

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Budgets of which the summary says what they would find."""


def train(
    query: options.Query,
    past: Annotated[
        list[str],
        typer.Argument(metavar="PAST...", show_default=False, help="Past events, oldest first; read as by acep run."),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", show_default=False, help="Where the history goes, a new folder."),
    ],
    new_version: Annotated[
        bool, typer.Option("--new-version", help="Learn anew, as the next version of the history that is in DIR.")
    ] = False,
    more: Annotated[
        bool,
        typer.Option(
            "--more",
            help="Add to what the history in DIR knows: PAST is what came after. Makes a new version.",
        ),
    ] = False,
    gap: Annotated[
        str | None,
        typer.Option(
            metavar="GAP",
            show_default=False,
            help="Match points at most so far apart are one bundle: ticks (microseconds, of real times), or window. "
            "By default each is one of its own.",
        ),
    ] = None,
    time: options.Time = None,
    key: options.Key = None,
    type: options.Type = None,  # noqa: A002  (the word of the query language)
    unit: options.TimeUnit = None,
    errors: options.Errors = None,
    within: options.Within = None,
    sort: options.Sort = False,
    input_format: options.FileFormat = None,
    on_malformed: Annotated[
        OnMalformed, typer.Option(help="Stop at a row that cannot be read, or leave such rows out.")
    ] = OnMalformed.REFUSE,
    on_late: Annotated[
        OnLate, typer.Option(help="Stop at an event that comes late, or leave such events out.")
    ] = OnLate.REFUSE,
    quiet: options.Quiet = False,
    spark: options.Spark = False,
    master: options.Master = None,
    id: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="With --spark: orders events of the same time; by default their content does.",
        ),
    ] = None,
) -> None:
    """Learn from past events which partial matches of QUERY are worth keeping, for acep run --budget --history.

    The runs engine finds all matches of PAST, and writes down which partial matches led to them. The last 40% are used
    to see what budgets would find before they are learned from too. Nothing is ever overwritten.
    """
    if more and (new_version or gap is not None):
        raise UsageError(
            f"--more goes on with a history as it is, and {'--new-version' if new_version else '--gap'} does not",
            code="ACEP-U041",
            hint="leave one of them out",
        )
    options.check_master(master, spark=spark)
    _check_spark(spark=spark, more=more, skips=on_malformed == OnMalformed.SKIP, id_=id)
    text = read_query(query)
    compiled = learned_query(text, errors=errors, within=within)
    known = _history(compiled, output, gap, new_version=new_version, more=more)
    roles = {"time": time, "key": key, "type": type, "unit": unit}
    read: dict[str, Any] = {
        **roles,
        "sort": sort,
        "format": input_format,
        "on_malformed": on_malformed,
        "on_late": on_late,
    }
    before = known.events_
    with stages(enabled=not quiet) as bar:
        if spark:
            known = _on_spark(master, past, input_format, known, {**roles, "id": id}, bar)
        elif more:
            bar("learning", 0.0)
            known.partial_fit(past, **read)
        else:
            known.fit(past, on_progress=bar, **read)
    folder = known.save(output, new_version=new_version or more)
    if not quiet:
        _summary(known, known.events_ - before, folder)


def _check_spark(*, spark: bool, more: bool, skips: bool, id_: str | None) -> None:
    """Refuse what can be done here only, or on Spark only."""
    if spark and (more or skips):
        anew, repair = "learn anew from all of the past with --new-version", "repair the rows, or leave out --spark"
        raise UsageError(
            f"{'--more' if more else '--on-malformed skip'} does not go with --spark",
            code="ACEP-S023",
            hint=anew if more else repair,
        )
    if id_ is not None and not spark:
        raise UsageError(
            "--id is of use with --spark only: here, events of the same time are in the order of the input",
            code="ACEP-S024",
            hint="leave it out",
        )


def _on_spark(
    master: str | None,
    past: list[str],
    input_format: str | None,
    known: HistoryGraph,
    columns: dict[str, Any],
    bar: Callable[[str, float], None],
) -> HistoryGraph:
    from acep_approx.spark import session
    from acep_approx.spark.past.training import train_history
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.sources.files import read_files

    bar("starting Spark", 0.0)
    with clear_errors():
        events = read_files(session(master), past, input_format)
        return train_history(events, known.query, gap=known.gap, on_progress=bar, **columns)


def _history(compiled: Query, home: Path, gap: str | None, *, new_version: bool, more: bool) -> HistoryGraph:
    """What learns; refuses a place that cannot be written to before anything is learned."""
    from acep_approx.training.history_graph import HistoryGraph
    from history.store import check_free, is_history

    if more:
        return HistoryGraph.load(home, compiled)
    if new_version and is_history(home):
        HistoryGraph.load(home, compiled)  # refuses one of another query
    else:
        check_free(home)
    return HistoryGraph(compiled, **_gap(gap))


def _gap(text: str | None) -> dict[str, Any]:
    if text is None or text == "window":
        return {} if text is None else {"gap": text}
    if not text.isdecimal():
        raise UsageError(
            f"--gap is {text!r}", code="ACEP-U042", hint="give a whole number of ticks, or the word window"
        )
    return {"gap": int(text)}


def _summary(known: HistoryGraph, events: int, folder: Path) -> None:
    """What was learned, and what budgets would find."""
    counts = known.graph_.counts
    seen = int((counts.visits > 0).sum())
    all_of_them = "" if events == known.events_ else f", {known.events_:,} in all"
    say(f"{amount(events, 'event')} learned from{all_of_them}; {known.steps_per_event_:,.1f} run-steps per event")
    say(
        f"{amount(known.points_, 'match point')} in {amount(len(counts.bundles), 'bundle')}; "
        f"{seen:,} of {amount(known.graph_.scheme.vertices, 'match vector')} seen"
    )
    prices = known.prices_
    if known.points_ == 0:
        say("nothing led to a match: this history cannot tell partial matches apart")
    elif prices.replays[0].points:
        say("budgets on the last 40%, learned from what came before:")
        rows = [
            [f"{share:.0%}", f"{share * known.steps_per_event_:,.1f}", f"{prices.recall(share):.0%}"]
            for share in SHARES
        ]
        show_table(["budget", "run-steps per event", "recall"], rows)
    say(f"written to {folder} (version {int(folder.name[1:])})")
