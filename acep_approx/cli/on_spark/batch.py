"""``acep run --spark`` on a batch of files."""

from __future__ import annotations

import sys
import time as clock
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from acep_approx.cli.no_match import found_nothing
from acep_approx.cli.options.output import Format, OutputOptions, ResultKind, is_folder
from acep_approx.cli.terminal import amount, say, words
from acep_approx.errors import UsageError
from acep_approx.events.writing.outfile import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from acep_approx.api import Query
    from acep_approx.cli.write import Results
    from acep_approx.spark.plan.matcher import SparkMatcher

UNFINISHED = "_temporary"
"""What Spark's workers write to until their job is done."""


@dataclass(frozen=True)
class OnSpark:
    """What ``acep run --spark`` is to do with a query.

    Parameters
    ----------
    query : Query
    inputs : list of str
    master : str or None
    reading : dict of str to object
        Arguments of ``read_files``.
    options : dict of str to object
        Those of ``Query.spark``.
    quiet : bool
    """

    query: Query
    inputs: list[str]
    master: str | None
    reading: dict[str, Any]
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


def folder_form(output: OutputOptions, *, is_new: bool) -> Format:
    """How a folder is to be written.

    Parameters
    ----------
    output : OutputOptions
        Names a folder.
    is_new : bool
        Whether there must not be anything in it.

    Raises
    ------
    UsageError
        ``ACEP-S073``: there is something in it already, or Spark cannot write that.
    """
    folder, wanted = output.file, output.format
    assert folder is not None
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
    if is_new and output.output.is_count:
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


def run_batch(asked: OnSpark, output: OutputOptions, form: Format) -> None:
    """Match files on Spark, and write what is found.

    Parameters
    ----------
    asked : OnSpark
    output : OutputOptions
        A folder is written by the workers; a file, or standard output, by this process, which has to hold it all.
    form : Format

    Raises
    ------
    AcepError
        As a run here; what goes wrong in a worker too.
    """
    from pyspark.sql import Observation

    from acep_approx.cli.on_spark.words import say_budget, say_read
    from acep_approx.cli.summary import say_found
    from acep_approx.cli.write import print_table, write
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.sources.files import read_files
    from acep_approx.spark.streaming.metrics import NAME, Totals, observed

    file, kind, limit = output.file, output.output, output.most_rows(form)
    begun, console = clock.perf_counter(), words()
    is_seen = console.is_terminal and not asked.quiet
    with clear_errors(), console.status("matching on Spark") if is_seen else nullcontext():
        events = read_files(asked.session(), asked.inputs, **asked.reading)
        flow = asked.matcher.flow(events)
        observation = Observation(NAME)
        found = flow.matches(observed(flow.outputs(), observation, by_part=True))
        if file is not None and is_folder(file):
            writer = (found if limit is None else found.limit(limit)).write.mode("append")  # into an empty folder
            where = str(file) if is_remote(file) else file.absolute().as_uri()  # each worker writes its part
            if form is Format.PARQUET:
                writer.parquet(where)
            else:
                writer.option("ignoreNullFields", "false").json(where)
            results = None
        else:
            results = _collect(found, kind, limit, asked.query.plan.automaton.errors)
        numbers = Totals.of_batch(observation.get)
    if results is not None:
        if form is Format.TABLE:
            print_table(list(results), kind.heading)
        else:
            write(results, form, file)
        sys.stdout.flush()
    if asked.quiet:
        return
    say_read(numbers, asked.query, clock.perf_counter() - begun)
    if results is None:
        written = amount(numbers.counts["matches"], kind.thing)
        say(f"{written} written to {file}" if limit is None else f"at most {amount(limit, 'row')} written to {file}")
    elif not kind.is_count:
        say_found(results, kind.thing, "FOLDER")
    if results is not None and found_nothing(results, kind):
        say("acep why QUERY INPUT, which needs no Spark, says which step no event passed")
    if asked.matcher.spending is not None:
        say_budget(numbers, asked.matcher.spending, asked.query)


def _collect(found: DataFrame, output: ResultKind, limit: int | None, most_errors: int) -> Results:
    """The results in this process: counts by number of errors, as a run here counts them, or rows in order."""
    import pyarrow as pa
    from pyspark.sql import functions as sql

    from acep_approx.cli.write import Results, count_table
    from acep_approx.matching.outputs.tables import warn_at_least

    if output.is_count:
        summed = found.groupBy("errors").agg(sql.sum(sql.col("matches").cast("decimal(38,0)")).alias("matches"))
        counts = {row.errors: int(row.matches) for row in summed.collect()}
        warn_at_least(counts.values())
        return Results([count_table({errors: counts.get(errors, 0) for errors in range(most_errors + 1)})], None)
    table = (found if limit is None else found.limit(limit + 1)).toArrow()  # one more tells that there are more
    # Spark gives rows in any order: here by their end and start, then by whatever else can be put in order
    names = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    names.sort(key=lambda name: (name != "end", name != "start"))
    return Results([table.sort_by([(name, "ascending") for name in names]) if names else table], limit)
