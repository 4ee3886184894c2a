"""``acep train``: learn from past events which partial matches of a query are worth keeping."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.input import InputOptions, OnMalformed, TrainInputs
from acep_approx.cli.options.matching import HORIZON, LearningOptions, MatchingOptions
from acep_approx.cli.options.output import Quiet
from acep_approx.cli.options.programs import FolderOptions, OneQuery, Tables, needed
from acep_approx.cli.options.spark import OrderedSparkOptions, refuse_how_written
from acep_approx.cli.options.together import asked_for, check_queries, not_with_rules, refuse
from acep_approx.cli.runs.rules import rows_given
from acep_approx.cli.summary import say_how_read, say_measured
from acep_approx.cli.tables import show_table
from acep_approx.cli.terminal import amount, read_query, say, stages
from acep_approx.errors import UsageError
from acep_approx.query.rules.parser import is_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from acep_approx.api import Query
    from acep_approx.training.history_graph import HistoryGraph
    from acep_approx.training.promise import Promises
    from acep_approx.training.shared_promise import SharedPromises


@dataclass(frozen=True)
class HistoryOptions:
    """Where the history goes, and what becomes of one that is there."""

    panel = "Output"

    output: Annotated[Path, typer.Option("-o", metavar="DIR", help="Where the history goes, a new folder.")]
    new_version: Annotated[
        bool, typer.Option("--new-version", help="Learn anew, as the next version of the history that is in DIR.")
    ] = False
    more: Annotated[
        bool,
        typer.Option("--more", help="Add to what the history in DIR knows: PAST came after. Makes a new version."),
    ] = False

    def check(self, gap: str | None) -> None:
        """Refuse to go on with a history and to change it (``ACEP-U041``)."""
        changed = "--new-version" if self.new_version else "--gap"
        if self.more and (self.new_version or gap is not None):
            raise UsageError(
                f"--more goes on with a history as it is, and {changed} does not",
                code="ACEP-U041",
                hint="leave one of them out",
            )


@grouped
def train(
    context: typer.Context,
    query: OneQuery = None,
    past: TrainInputs = None,
    *,
    matching: MatchingOptions,
    history: HistoryOptions,
    source: InputOptions,
    many: FolderOptions,
    table: Tables = None,
    horizon: Annotated[
        str | None, typer.Option(metavar="TIME", help=HORIZON, rich_help_panel=LearningOptions.panel)
    ] = None,
    gap: Annotated[
        str | None,
        typer.Option(
            metavar="GAP",
            show_default=False,
            help="Match points at most so far apart are one bundle: ticks (microseconds, of real times), or window.",
            rich_help_panel=LearningOptions.panel,
        ),
    ] = None,
    spark: OrderedSparkOptions,
    quiet: Quiet = False,
) -> None:
    """Learn from past events which partial matches of QUERY are worth keeping, for acep run --budget --history.

    The runs engine finds all matches of PAST, and writes down which partial matches led to them. Runs inside budgets
    over the last 40% show what such runs find, before these are learned from too. Nothing is ever overwritten.

    With --queries FOLDER a history is learned for each query of a folder, and one for those that differ in constants.
    A file of rules in the place of QUERY is run exactly over PAST, and each rule with partial matches gets a history.
    """
    check_queries(context, many.queries, "training of a set", "no set to learn from")
    if many.queries is not None:  # then all that is named is the past
        names = [name for name in (query, *(past or [])) if name is not None]
        _train_set(names, many, history.output, source, gap, horizon, quiet=quiet)
        return
    if query is None or not past:
        raise needed("QUERY" if query is None else "PAST")
    history.check(gap)
    spark.check()
    _check_spark(spark, history, source)
    if is_rules(text := read_query(query)):
        asked = {"--gap": gap, "--horizon": horizon, "--more": history.more, "--spark": spark.spark}
        asked |= {"--sort": source.sort} | {f"--{name}": value for name, value in matching.replaced.items()}
        for option, value in asked.items():
            if value not in (None, False):
                raise not_with_rules(option, "leave it out")
        train_rules(text, past, history, source, rows_given(table or []), quiet=quiet)
        return
    refuse(asked_for(context), {"no rules": query})

    from acep_approx.api import compile_query
    from acep_approx.events.source import open_source
    from acep_approx.planning.changed import check_horizon, until
    from acep_approx.shedding.promising import promised

    compiled = compile_query(text, **matching.replaced, engine="runs")  # the engine that sheds, and so learns
    if horizon is not None:
        check_horizon(compiled.plan, horizon)
        compiled = type(compiled)(until(compiled.plan, horizon))
    known = _history(compiled, history, gap)
    before = known.events_
    with stages(enabled=not quiet) as bar:
        if spark.spark:
            known = _on_spark(known, past, source, spark, bar)
        else:
            if history.more:
                bar("learning", 0.0)
            events = open_source(past, **source.reading)
            say_how_read(events)
            how = source.roles | {"sort": source.sort}
            if history.more:
                known = known.partial_fit(events, **how)
            else:
                known = known.fit(events, on_progress=bar, measure=promised, **how)
    folder = known.save(history.output, new_version=history.new_version or history.more)
    if not quiet:
        _summary(known, known.events_ - before, folder)


def _train_set(
    past: list[str],
    many: FolderOptions,
    place: Path,
    source: InputOptions,
    gap: str | None,
    horizon: str | None,
    *,
    quiet: bool,
) -> None:
    """Learn a history for each query of a folder, or each template."""
    if not past:
        raise needed("PAST")
    from acep_approx.cli.query_folder import read_folder
    from acep_approx.events.source import open_source
    from history.store import check_free

    check_free(place)
    assert many.queries is not None, "it was given"
    folder = read_folder(many.queries, strict=many.strict, output="points", horizon=horizon, **source.roles)
    folder.tell_wrong()
    with stages(enabled=not quiet) as bar:
        events = open_source(past, **source.reading)
        say_how_read(events)
        known = folder.desk.train(
            events, on_misfit=folder.misfit, sort=source.sort, gap=_gap(gap), on_progress=bar
        )
    folder.tell_wrong()
    known.save(place)
    if not quiet:
        say(f"learned: {len(known):,} of the queries and templates of {amount(len(folder.desk), 'query')}")
        _promise_of_all(known.promises_, folder.desk.output, "queries")
        say(f"written to {place}")
    if folder.wrong:
        raise typer.Exit(folder.exit_code)


def _gap(gap: str | None) -> int | str:
    """What ``--gap`` means (``ACEP-U042``)."""
    if gap is None or gap == "window":
        return -1 if gap is None else gap
    if not gap.isdecimal():
        raise UsageError(
            f"--gap is {gap!r}", code="ACEP-U042", hint="give a whole number of ticks, or the word window"
        )
    return int(gap)


def train_rules(
    text: str, past: list[str], wanted: HistoryOptions, source: InputOptions, tables: dict[str, str], *, quiet: bool
) -> None:
    """Learn a history for each rule of a file that has partial matches.

    Raises
    ------
    HistoryError
        Something is at the place of a history already.
    UsageError
        ``ACEP-U046``: nothing to learn from.
    """
    from acep_approx.api.rule_history import RuleHistory
    from acep_approx.api.rule_set import compile_rules
    from acep_approx.events.source import open_source
    from history.store import check_free, is_history

    rules = compile_rules(text)
    for name in RuleHistory(rules).names:
        place = wanted.output / name
        if not (wanted.new_version and is_history(place)):
            check_free(place)
    with stages(enabled=not quiet) as bar:
        events = open_source(past, **source.reading)
        say_how_read(events)
        known = rules.train(events, store=tables or None, on_progress=bar, **source.roles)
    folder = known.save(wanted.output, new_version=wanted.new_version)
    for name, graph in () if quiet else known.items():
        say(f"rule {name}:")
        _summary(graph, graph.events_, max((folder / name).glob("v[0-9]*")))
    if not quiet:
        _promise_of_all(known.promises_, "matches", "rules")


def _check_spark(spark: OrderedSparkOptions, history: HistoryOptions, source: InputOptions) -> None:
    skips = source.on_malformed is OnMalformed.SKIP
    if spark.spark and (history.more or skips):
        anew, repair = "learn anew from all of the past with --new-version", "repair the rows, or leave out --spark"
        raise UsageError(
            f"{'--more' if history.more else '--on-malformed skip'} does not go with --spark",
            code="ACEP-S023",
            hint=anew if history.more else repair,
        )
    if spark.spark:
        refuse_how_written(source)
    if spark.id is not None and not spark.spark:
        raise UsageError(
            "--id is of use with --spark only: here, events of the same time are in the order of the input",
            code="ACEP-S024",
            hint="leave it out",
        )


def _on_spark(
    known: HistoryGraph,
    past: list[str],
    source: InputOptions,
    spark: OrderedSparkOptions,
    bar: Callable[[str, float], None],
) -> HistoryGraph:
    from acep_approx.shedding.promising import promised
    from acep_approx.spark import session
    from acep_approx.spark.past.training import check_past, train_history
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.sources.files import EventFiles, read_files
    from history.places import is_remote

    files = None if any(map(is_remote, past)) else EventFiles.of(past, **source.on_spark)
    if files is not None:  # what is wrong is said before Spark starts, which takes seconds
        check_past(files.schema, known.query, id=spark.id, **source.roles)
    bar("starting Spark", 0.0)
    with clear_errors():
        running = session(spark.master)
        events = read_files(running, past, **source.on_spark) if files is None else files.read(running)
        return train_history(
            events, known.query, gap=known.gap, on_progress=bar, measure=promised, id=spark.id, **source.roles
        )


def _history(compiled: Query, wanted: HistoryOptions, gap: str | None) -> HistoryGraph:
    """What learns; refuses a place that cannot be written to before anything is learned."""
    from acep_approx.training.history_graph import HistoryGraph
    from history.store import check_free, is_history

    if wanted.more:
        return HistoryGraph.load(wanted.output, compiled)
    if wanted.new_version and is_history(wanted.output):
        HistoryGraph.load(wanted.output, compiled)  # refuses one of another query
    else:
        check_free(wanted.output)
    return HistoryGraph(compiled, gap=_gap(gap))


def _summary(known: HistoryGraph, events: int, folder: Path) -> None:
    from history.coverage.groups import sketch_error

    counts = known.graph_.counts
    seen = int((counts.visits > 0).sum())
    all_of_them = "" if events == known.events_ else f", {known.events_:,} in all"
    say(f"{amount(events, 'event')} learned from{all_of_them}; {known.steps_per_event_:,.1f} run-steps per event")
    say(
        f"{amount(known.points_, 'match point')} in {amount(len(counts.bundles), 'bundle')}; "
        f"{seen:,} of {amount(known.graph_.scheme.vertices, 'match vector')} seen"
    )
    if error := sketch_error(known.graph_):
        say(f"their match maps are compared by sketches: shares are off by {error:.2f} or so")
    if known.points_ == 0:
        say("nothing led to a match: this history cannot tell partial matches apart")
    elif known.promises_ is not None:
        _promise(known.promises_)
    say(f"written to {folder} (version {int(folder.name[1:])})")


def _promise_of_all(promises: SharedPromises | None, output: str, things: str) -> None:
    """What all find inside a budget that they share: the same numbers as those of acep tune."""
    if promises is None or not promises.total:
        say(f"what budgets find of all {things} is not known: there was too little to measure it on")
        return
    from acep_approx.results.shared_tuning import PROMISED, SharedTrial, SharedTuning

    trials = (SharedTrial(None, None, promises),)
    tuning = SharedTuning(PROMISED, trials, promises.trained, promises.measured, things)
    say(f"what runs inside a budget of all {things} find, with --output {output}:")
    say_measured(promises.trained, promises.measured)
    header, *rows = tuning.table()
    show_table(header, rows, texts=tuning.texts)


def _promise(promises: Promises) -> None:
    """What runs inside budgets find, and on which events that was measured."""
    part = f"the {promises.measured:,} events behind {promises.trained:,} that were learned from"
    if not promises.points:
        say(f"what budgets find is not known: there is no match point in {part}")
        return
    say(f"what runs inside a budget find, measured on {part}, with {amount(promises.points, 'match point')}:")
    header = ["budget", "run-steps per event", "recall", "95 of 100 times"]
    rows = [
        [f"{one.share:.0%}", f"{one.steps:,.3g}", f"{one.recall:.0%}", f"{one.low:.0%} to {one.high:.0%}"]
        for one in (promises.rows if promises.differ else promises.of("points"))
    ]
    if promises.differ:
        header = ["output", *header]
        rows = [[one.output, *row] for one, row in zip(promises.rows, rows, strict=True)]
    show_table(header, rows, texts=int(promises.differ))
