"""``acep run``: find the matches of a query in events, and write them."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli import options
from acep_approx.cli.budgeted import Asked, conclude
from acep_approx.cli.learning import Saving
from acep_approx.cli.on_spark import batch as on_spark
from acep_approx.cli.options import COMPRESSED_FILES, Engine, Format, OnLate, OnMalformed, Output, format_of
from acep_approx.cli.terminal import amount, progress_bar, read_query, say
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api import Query
    from acep_approx.cli.write import Results
    from acep_approx.engines.progress import Progress
    from acep_approx.results.matches import Matches

SHOWN = 20
"""Rows that a table shows by default."""
WIDE = 2**63
"""Counts from here on do not fit 64 bits; they are written as decimals."""
MANY = 100_000
"""Events from which on a speed means something: below, starting up takes longer than matching."""
SINGULAR = {
    Output.MATCHES: "match",
    Output.POINTS: "point",
    Output.BUNDLES: "bundle",
    Output.PARTIAL: "partial match",
    Output.COMPRESSED: "hit",
}
TITLES = {Output.COUNT: "matches", Output.PARTIAL: "partial matches"}


def run(
    context: typer.Context,
    query: options.Query,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            show_default=False,
            help="Parquet, CSV or JSON lines (the text formats also gzipped), folders of such files, or - for stdin.",
        ),
    ],
    time: options.Time = None,
    key: options.Key = None,
    type: options.Type = None,  # noqa: A002  (the word of the query language)
    unit: options.TimeUnit = None,
    errors: options.Errors = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="W", show_default=False, help="Replaces the query's WITHIN, e.g. '10 s', '50 events'."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="The engine to use; auto takes the cells where they can answer, else the runs.")
    ] = Engine.AUTO,
    merge: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Which lossless mergings the runs engine uses: some of equal,pareto,chain, or none. "
            "They change the work, not the results.",
        ),
    ] = "equal,pareto,chain",
    output: Annotated[
        Output,
        typer.Option(
            help="All matches; only the points, i.e. the events that complete a match (fast however many matches there "
            "are); bundles, i.e. chains of points; only a count of the matches; partial, i.e. how far each event came "
            "with which a match could have begun, and none did; or compressed, i.e. all matches as what they share."
        ),
    ] = Output.MATCHES,
    format: Annotated[  # noqa: A002  (the option's name)
        Format | None,
        typer.Option(
            show_default=False,
            help="How to write them. By default as the name of FILE says; else a table on a terminal, jsonl elsewhere.",
        ),
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="Show this column of the events that a match binds, not their row numbers; again for more of them.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "-o", metavar="FILE", show_default=False, help="Write to a file, not to stdout; to a folder if compressed."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, show_default=False, help=f"Stop after N rows. By default {SHOWN} in a table."),
    ] = None,
    sort: Annotated[
        bool, typer.Option("--sort", help="Sort the events by time first; takes memory for all of them.")
    ] = False,
    input_format: options.FileFormat = None,
    on_malformed: Annotated[
        OnMalformed, typer.Option(help="Stop at a row that cannot be read, or leave such rows out and count them.")
    ] = OnMalformed.REFUSE,
    rejects: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Write rows left out to FILE; with --on-malformed skip."),
    ] = None,
    on_late: Annotated[
        OnLate,
        typer.Option(help="Stop at an event whose time is before that of an earlier one, or leave such events out."),
    ] = OnLate.REFUSE,
    late: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Write late events, with all their columns, to FILE (.jsonl, .csv, .parquet); with --on-late skip. "
            "With --stream: to a folder.",
        ),
    ] = None,
    budget: options.Budget = None,
    history: options.History = None,
    policy: options.Policy = None,
    audit: options.Audit = None,
    full_work: options.FullWork = None,
    expand: options.Expand = False,
    seed: options.Seed = None,
    learn: options.Learn = False,
    save: options.Save = None,
    save_every: options.SaveEvery = None,
    learn_log: options.LearnLog = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Write a page of HTML on how the budget was spent."),
    ] = None,
    shed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Write the partial matches that were shed, and why, to FILE (.jsonl, .csv, .parquet).",
        ),
    ] = None,
    quiet: options.Quiet = False,
    spark: options.Spark = False,
    master: options.Master = None,
    id: on_spark.Id = None,  # noqa: A002
    shards: on_spark.Shards = None,
    stream: on_spark.Stream = False,
    watermark: on_spark.Watermark = None,
    checkpoint: on_spark.Checkpoint = None,
    trigger: on_spark.Trigger = None,
    until_done: on_spark.UntilDone = False,
    metrics_port: on_spark.MetricsPort = None,
) -> None:
    """Find the matches of QUERY in the events of INPUT.

    Results go to stdout or FILE, words to stderr. Events must be ordered by time.
    """
    on_spark.check_options(context, output, spark=spark, stream=stream)
    is_compressed = output is Output.COMPRESSED
    if file is not None and spark and (stream or on_spark.is_folder(file)):
        form = on_spark.folder_format(file, format, output, is_new=not stream)
    else:
        form = _format(format, file, output)
    _check(form, output, file, limit, is_expanded=expand)
    asked = Asked(
        budget, history, policy, audit, seed, report, shed, full_work, learn, save, save_every, learn_log, expand
    )
    asked.check()
    targets = [] if file is None else [file / name for name in COMPRESSED_FILES] if is_compressed else [file]
    _check_written(targets, {"rejected rows": rejects, "late events": None if stream else late}, asked, inputs)
    text = read_query(query)

    from acep_approx.api import compile_query
    from acep_approx.cli.write import Results, print_table, write, write_compressed

    compiled = compile_query(text, errors=errors, within=within, engine=engine.value)
    columns: dict[str, Any] = {"time": time, "key": key, "type": type, "unit": unit}
    columns["bind"] = bind if bind is None or len(bind) > 1 else bind[0]
    if spark:
        more = {"id": id, "shards": shards, "watermark": watermark, "output": on_spark.OUTPUTS[output]}
        job = on_spark.OnSpark(compiled, inputs, master, input_format, columns | more | on_spark.spending(asked), quiet)
        later = (checkpoint, late, trigger, until_done, metrics_port) if stream else None
        _on_spark(job, output, file, form, limit, later)
        return
    saving = Saving(compiled, asked.home, save_every)
    if save is not None:
        saving.check()
    begun = clock.perf_counter()
    is_seen = form is not Format.TABLE and file is None and sys.stdout.isatty()  # rows and a bar would mix
    with progress_bar("matching", enabled=not (quiet or is_seen)) as progress:
        matches = _matches(
            compiled,
            asked,
            inputs,
            **columns,
            sort=sort,
            on_progress=saving.after(progress.done),
            format=input_format,
            on_malformed=on_malformed,
            rejects=rejects,
            on_late=on_late,
            late=late,
            merge=merge,
        )
        if learn:
            saving.matches = matches
        progress.total = matches.source.rows
        if is_compressed and file is not None:
            results = write_compressed(matches.compressed(), file)
        else:
            with closing(_tables(matches, output, is_expanded=expand)) as tables:
                results = Results(tables, SHOWN if limit is None and form is Format.TABLE else limit)
                if form is Format.TABLE:
                    found = list(results)
                else:
                    write(results, form, file)
    if form is Format.TABLE:
        print_table(found, TITLES.get(output, output.value))
    sys.stdout.flush()
    if not quiet:
        _summary(matches, results, output, clock.perf_counter() - begun)
    if asked.budget is not None:
        conclude(matches, asked, ", ".join(inputs), saving, quiet=quiet)


def _matches(compiled: Query, asked: Asked, inputs: list[str], **more: Any) -> Any:
    """The matches: all, or those that a budget can buy."""
    if asked.budget is None:
        return compiled.match(inputs, **more)
    return compiled.match_within(inputs, asked.budget, **asked.options(), **more)


def _on_spark(
    job: on_spark.OnSpark, output: Output, file: Path | None, form: Format, limit: int | None, later: Any
) -> None:
    """Run the query on Spark: on a batch, or on a stream, of which ``later`` says the rest of ``Places.of``."""
    if later is None:
        on_spark.run_batch(job, output, file, form, SHOWN if limit is None and form is Format.TABLE else limit)
        return
    from acep_approx.cli.on_spark.stream import Places, run_stream

    run_stream(job, Places.of(job.inputs, file, *later))


def _format(wanted: Format | None, file: Path | None, output: Output) -> Format:
    if output is Output.COMPRESSED:
        if file is None or wanted not in (None, Format.PARQUET):
            raise UsageError(
                "compressed output is two Parquet files in a folder", code="ACEP-U019", hint="name a folder: -o FOLDER"
            )
        return Format.PARQUET
    if wanted is not None:
        return wanted
    if file is not None:
        return format_of(file)
    return Format.TABLE if sys.stdout.isatty() else Format.JSONL


def _check(form: Format, output: Output, file: Path | None, limit: int | None, *, is_expanded: bool) -> None:
    """Refuse options that do not go together, before any work is done."""
    if form is Format.PARQUET and file is None:
        raise UsageError("Parquet cannot be written to stdout", code="ACEP-U011", hint="name a file: -o FILE")
    if form is Format.TABLE and file is not None:
        raise UsageError(
            "a table is for reading on the terminal, not for a file",
            code="ACEP-U014",
            hint="use --format jsonl, csv or parquet with -o",
        )
    if output in (Output.COUNT, Output.COMPRESSED) and limit is not None:
        raise UsageError(f"--limit means nothing for --output {output.value}", code="ACEP-U015", hint="leave it out")
    if is_expanded and output is not Output.MATCHES:
        raise UsageError(f"--expand lists matches, not {output.value}", code="ACEP-U054", hint="leave one of them out")


def _check_written(targets: list[Path], more: dict[str, Path | None], asked: Asked, inputs: list[str]) -> None:
    """Refuse to write results, and what is said about a budget, over one another or over what is read."""
    tables = {"shed runs": asked.shed, "the learning log": asked.learn_log}
    pages = {"the report": asked.report}
    for target in targets:
        _check_files(target, more | pages | tables, inputs)
    for other in (*pages.values(), *tables.values()):
        if other is not None:
            _check_files(other, {}, inputs)
    for table in tables.values():
        if table is not None:
            format_of(table)


def _check_files(file: Path, others: dict[str, Path | None], inputs: list[str]) -> None:
    """Refuse to overwrite what is read, or what else is written."""
    if any(_is_input(file.resolve(), Path(name).resolve()) for name in inputs if name != "-"):
        raise UsageError(f"the output {str(file)!r} is one of the inputs", code="ACEP-U013", hint="name another file")
    for what, other in others.items():
        if other is not None and file.resolve() == other.resolve() and not file.is_char_device():
            raise UsageError(
                f"results and {what} cannot both go to {str(file)!r}", code="ACEP-U017", hint="name another file"
            )


def _is_input(file: Path, given: Path) -> bool:
    return file == given or (file.exists() and given in file.parents)


def _tables(matches: Any, output: Output, *, is_expanded: bool) -> Generator[pa.Table]:
    """The results as a stream of tables."""
    if is_expanded:
        yield matches.expanded()
    elif output is Output.MATCHES:
        yield from matches.tables()
    elif output is Output.POINTS:
        yield from matches.point_tables()
    elif output is Output.BUNDLES:
        yield matches.bundles()
    elif output is Output.PARTIAL:
        yield from matches.partial_tables()
    else:
        import pyarrow as pa

        counts = matches.count_by_errors()
        wide = pa.decimal128(38) if max(counts.values()) >= WIDE else pa.int64()
        yield pa.table({"errors": list(counts), "matches": pa.array(list(counts.values()), wide)})


def _summary(matches: Matches, results: Results, output: Output, seconds: float) -> None:
    """Say on stderr what was read and what was found."""
    seen = matches.progress
    rate = f", {seen.events / seconds:,.0f} events/s" if seen.events >= MANY else ""
    say(f"{amount(seen.events, 'event')} read, {seen.relevant:,} relevant to the query; {seconds:.2f} s{rate}")
    if seen.made:  # by the runs engine
        say(work_done(seen))
    if output is not Output.COUNT:
        say(f"{amount(results.rows, SINGULAR[output])}{by_errors(results.by_errors)}")
    if results.is_cut:
        say(
            f"stopped after {amount(results.rows, SINGULAR[output])}, there are more: --limit N lists more of them, "
            "-o FILE writes them all, --output count counts all matches"
        )
    if seen.without_key:
        names = ", ".join(f"[{e.name}]" for e in matches.plan.query.equivalences)
        say(f"{amount(seen.without_key, 'event')} left out: no value for {names}")
    skipped = matches.source.malformed
    if skipped.count:
        say(f"{amount(skipped.count, 'row')} left out that could not be read; {skipped.reasons[0]}")
    late = matches.source.late
    if late.count:
        say(f"{amount(late.count, 'event')} left out that came late; {late.reasons[0]}")


def work_done(seen: Progress) -> str:
    """What the runs engine did, in words.

    Parameters
    ----------
    seen : Progress
        Of at least one run.
    """
    return (
        f"{amount(seen.steps, 'run')} met, {seen.steps / seen.events:,.1f} per event; "
        f"at most {seen.peak:,} at once; {seen.made:,} made, {seen.merged / seen.made:.0%} merged"
    )


def by_errors(counts: dict[int, int]) -> str:
    """Numbers by number of errors, in words; empty where there is nothing to tell.

    Examples
    --------
    >>> by_errors({0: 5267, 1: 3954})
    ': 5,267 with 0 errors, 3,954 with 1 error'
    """
    parts = [f"{n:,} with {amount(e, 'error')}" for e, n in sorted(counts.items())]
    return ": " + ", ".join(parts) if parts else ""
