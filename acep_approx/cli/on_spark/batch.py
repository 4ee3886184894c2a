"""``acep run --spark``: its options, which of them go together, and batches of files."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli.options import Format, Output
from acep_approx.cli.terminal import amount, say, words
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from acep_approx.api import Query
    from acep_approx.cli.budgeted import Asked
    from acep_approx.cli.write import Results
    from acep_approx.spark.plan.matcher import SparkMatcher

Id = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        show_default=False,
        help="With --spark: the column that names an event. Matches show it, and it orders events of the same time; "
        "by default their content does.",
    ),
]
Shards = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        show_default=False,
        help="With --spark: how many groups of keys are matched side by side; by default as many as Spark finds good. "
        "A stream keeps the number that it began with.",
    ),
]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="With --spark: INPUT is a folder whose files grow in number; matches are written to the folder of -o, as "
        "Parquet, as soon as they are found.",
    ),
]
Watermark = Annotated[
    str | None,
    typer.Option(
        metavar="DELAY",
        show_default=False,
        help="With --stream: how late events may come, e.g. '10 seconds'. Later ones are left out.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default=False,
        help="With --stream: where the state is kept; after a stop or a crash the same command goes on from there.",
    ),
]
Trigger = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        show_default=False,
        help="With --stream: how often new files are looked for, e.g. '10 seconds'; by default as often as possible.",
    ),
]
UntilDone = Annotated[bool, typer.Option("--until-done", help="With --stream: stop when all that is there is done.")]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=0,
        max=65535,
        show_default=False,
        help="With --stream: serve the numbers of the job for Prometheus, on this port of this machine; 0: a free one.",
    ),
]

SPARK_ONLY = ("master", "id", "shards", "stream")
STREAM_ONLY = ("watermark", "checkpoint", "trigger", "until_done", "metrics_port", "late", "learn")
BATCH_ONLY = {
    "limit": "a stream is written as it comes",
    "format": "a stream is written as Parquet",
}
HERE_ONLY = {
    "merge": "leave it out: it changes no result",
    "sort": "leave it out: on Spark events are always put in order",
    "on_malformed": "repair the rows, or leave out --spark",
    "rejects": "repair the rows, or leave out --spark",
    "on_late": "leave it out: a batch is put in order, and a stream leaves late events out",
    "save": "leave it out: what --learn learns becomes a new version of --history",
    "save_every": "leave it out: with --learn a stream saves as soon as there is something new",
    "learn_log": "leave it out, or leave out --spark",
    "report": "leave it out, or leave out --spark",
    "shed": "leave it out, or leave out --spark",
    "expand": "leave it out, or leave out --spark",
}
"""Options of a run here that have no meaning on Spark, and what to do."""
UNFINISHED = "_temporary"
"""What Spark's workers write to until their job is done."""
OUTPUTS = {Output.MATCHES: "matches", Output.POINTS: "points", Output.COUNT: "counts"}


def check_options(context: typer.Context, output: Output, *, spark: bool, stream: bool) -> None:
    """Refuse options that do not go together.

    Parameters
    ----------
    context : typer.Context
        Of the command; knows which options were given.
    output : Output
    spark, stream : bool

    Raises
    ------
    UsageError
        ``ACEP-S037``, ``ACEP-S071``: an option that is for Spark, or for streams, without them; ``ACEP-S072``: one
        that does not go with them.
    """
    given = {
        str(option.name): option.opts[0]
        for option in context.command.params
        if (source := context.get_parameter_source(str(option.name))) is not None and source.name == "COMMANDLINE"
    }
    also_here = ("late", "learn")
    for name, option in given.items():
        if not spark and name in (*SPARK_ONLY, *STREAM_ONLY) and name not in also_here:
            code = "ACEP-S037" if name == "master" else "ACEP-S071"
            raise UsageError(f"{option} is of use with --spark only", code=code, hint="add --spark, or leave it out")
        if spark and not stream and name in STREAM_ONLY:
            raise UsageError(
                f"on Spark {option} is of use with --stream only",
                code="ACEP-S071",
                hint="add --stream, or leave it out",
            )
        if spark and name in HERE_ONLY:
            raise UsageError(f"{option} does not go with --spark", code="ACEP-S072", hint=HERE_ONLY[name])
        if stream and name in BATCH_ONLY:
            raise UsageError(f"{option} does not go with --stream", code="ACEP-S072", hint=BATCH_ONLY[name])
    if spark and output not in OUTPUTS:
        raise UsageError(
            f"--output {output.value} does not go with --spark",
            code="ACEP-S072",
            hint=f"choose {', '.join(OUTPUTS)}, or leave out --spark",
        )
    if stream and output is Output.COUNT:
        raise UsageError(
            "--output count does not go with --stream",
            code="ACEP-S072",
            hint="count the rows that were written, or those of --output points",
        )
    if "trigger" in given and "until_done" in given:
        raise UsageError("--trigger does not go with --until-done", code="ACEP-S072", hint="leave one of them out")


@dataclass(frozen=True)
class OnSpark:
    """What ``acep run --spark`` is to do with a query.

    Parameters
    ----------
    query : Query
    inputs : list of str
    master : str or None
    input_format : str or None
    options : dict of str to object
        Those of ``Query.spark``.
    quiet : bool
    """

    query: Query
    inputs: list[str]
    master: str | None
    input_format: str | None
    options: dict[str, Any]
    quiet: bool

    @cached_property
    def matcher(self) -> SparkMatcher:
        """What finds the matches."""
        return self.query.spark(**self.options)

    def session(self, *, streaming: bool = False) -> SparkSession:
        """Spark, started."""
        from acep_approx.spark.setup.session import check_spark, session

        check_spark(streaming=streaming)
        return session(self.master)


def spending(asked: Asked) -> dict[str, Any]:
    """The arguments of ``Query.spark`` that are about a budget."""
    if asked.budget is None:
        return {}
    return {"budget": asked.budget} | {name: value for name, value in asked.options().items() if name != "log_shed"}


def is_folder(file: Path | None) -> bool:
    """Whether ``-o`` names a folder for Spark to write to: it is one, or is not there and has no ending.

    Examples
    --------
    >>> is_folder(Path("found")), is_folder(Path("found.parquet")), is_folder(Path("/dev/null"))
    (True, False, False)
    """
    return file is not None and (file.is_dir() or not (file.suffix or file.exists()))


def folder_format(folder: Path, wanted: Format | None, output: Output, *, is_new: bool) -> Format:
    """How a folder is to be written.

    Parameters
    ----------
    folder : Path
    wanted : Format or None
    output : Output
    is_new : bool
        Whether there must not be anything in it.

    Raises
    ------
    UsageError
        ``ACEP-S073``: there is something in it already, or Spark cannot write that.
    """
    if is_new and (folder / UNFINISHED).exists():
        raise UsageError(
            f"an earlier job is writing to {str(folder)!r}, or it was killed and did not end",
            code="ACEP-S073",
            hint="wait for its end, or delete the folder if there is no such job",
        )
    if is_new and folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            f"there are files in {str(folder)!r} already",
            code="ACEP-S073",
            hint=f"name a new folder, or a single file: -o {folder / 'found.parquet'}",
        )
    if is_new and output is Output.COUNT:
        raise UsageError(
            "counts are a few lines, and no folder", code="ACEP-S073", hint=f"name a file: -o {folder}.jsonl"
        )
    if wanted in (Format.CSV, Format.TABLE):
        raise UsageError(
            f"a folder is written as Parquet or JSON lines, not as {wanted.value}",
            code="ACEP-S073",
            hint=f"name a file: -o {folder}.csv" if wanted is Format.CSV else "leave --format out",
        )
    return wanted or Format.PARQUET


def run_batch(asked: OnSpark, output: Output, file: Path | None, form: Format, limit: int | None) -> None:
    """Match files on Spark, and write what is found.

    Parameters
    ----------
    asked : OnSpark
    output : Output
        One of ``OUTPUTS``.
    file : Path or None
        A folder is written by the workers; a file, or standard output, by this process, which has to hold it all.
    form : Format
    limit : int or None
        Most rows.

    Raises
    ------
    AcepError
        As a run here; what goes wrong in a worker too.
    """
    from pyspark.sql import Observation

    from acep_approx.cli.on_spark.words import THINGS, Numbers, say_budget, say_found, say_read
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.sources.files import read_files
    from acep_approx.spark.streaming.metrics import NAME, observed

    begun = clock.perf_counter()
    with clear_errors(), _busy("matching on Spark", enabled=not asked.quiet):
        events = read_files(asked.session(), asked.inputs, asked.input_format)
        flow = asked.matcher.flow(events)
        observation = Observation(NAME)
        found = flow.matches(observed(flow.outputs(), observation))
        if file is not None and is_folder(file):
            _write_folder(found if limit is None else found.limit(limit), file, form)
            results = None
        else:
            results = _collect(found, output, limit, asked.query.plan.automaton.errors)
        numbers = Numbers.of_batch(observation.get)
    if results is not None:
        _write(results, output, file, form)
    if asked.quiet:
        return
    say_read(numbers, asked.query, clock.perf_counter() - begun)
    if results is not None:
        say_found(results, output)
    else:
        written = amount(numbers.counts["matches"], THINGS[output])
        say(f"{written} written to {file}" if limit is None else f"at most {amount(limit, 'row')} written to {file}")
    if asked.matcher.spending is not None:
        say_budget(numbers, asked.matcher.spending)


def _collect(found: DataFrame, output: Output, limit: int | None, most_errors: int) -> Results:
    """The results in this process."""
    from acep_approx.cli.write import Results

    if output is Output.COUNT:
        return Results([_count(found, most_errors)], None)
    table = (found if limit is None else found.limit(limit + 1)).toArrow()  # one more tells that there are more
    return Results([_in_order(table)], limit)


def _count(found: DataFrame, most_errors: int) -> pa.Table:
    """Numbers of matches by number of errors, as a run here counts them."""
    import pyarrow as pa
    from pyspark.sql import functions as sql

    summed = found.groupBy("errors").agg(sql.sum(sql.col("matches").cast("decimal(38,0)")).alias("matches"))
    counts = {row.errors: int(row.matches) for row in summed.collect()}
    numbers = [counts.get(errors, 0) for errors in range(most_errors + 1)]
    is_wide = max(numbers) >= 2**63
    return pa.table(
        {"errors": list(range(most_errors + 1)), "matches": pa.array(numbers, pa.decimal128(38) if is_wide else None)}
    )


def _in_order(table: pa.Table) -> pa.Table:
    """Rows by their end, then by whatever else can be put in order: Spark gives them in any order."""
    import pyarrow as pa

    plain = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    names = [name for name in ("end", "start") if name in plain]
    names += [name for name in plain if name not in names]
    return table.sort_by([(name, "ascending") for name in names]) if names else table


def _write(results: Results, output: Output, file: Path | None, form: Format) -> None:
    import sys

    from acep_approx.cli.write import print_table, write

    if form is Format.TABLE:
        print_table(list(results), "matches" if output is Output.COUNT else output.value)
    else:
        write(results, form, file)
    sys.stdout.flush()


def _write_folder(found: DataFrame, folder: Path, form: Format) -> None:
    """Each worker writes its part."""
    writer = found.write.mode("append")  # into an empty folder
    where = folder.absolute().as_uri()
    if form is Format.PARQUET:
        writer.parquet(where)
    else:
        writer.option("ignoreNullFields", "false").json(where)


@contextmanager
def _busy(text: str, *, enabled: bool) -> Iterator[None]:
    """A sign of life on a terminal, gone when done."""
    console = words()
    if not (enabled and console.is_terminal):
        yield
        return
    with console.status(text):
        yield
