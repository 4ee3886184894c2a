"""``acep run --spark`` on a batch of files."""

from __future__ import annotations

import sys
import time as clock
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.cli.no_match import found_nothing
from acep_approx.cli.on_spark.work import OnSpark
from acep_approx.cli.options.output import Format, OutputOptions, ResultKind, is_folder
from acep_approx.cli.terminal import amount, say, words
from acep_approx.errors import UsageError
from acep_approx.spark.setup.control import spark_address
from history.places import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from acep_approx.cli.write import Results
    from acep_approx.spark.plan.flow import Flow

UNFINISHED = "_temporary"
"""What Spark's workers write to until their job is done."""


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
    is_looked_at = is_new and not is_remote(folder)  # where Spark may be the only one that can look
    if is_looked_at and (folder / UNFINISHED).exists():
        raise UsageError(
            f"an earlier job is writing to {str(folder)!r}, or it was killed and did not end",
            code="ACEP-S073",
            hint="wait for its end, or delete the folder if there is no such job",
        )
    if is_looked_at and folder.is_dir() and any(folder.iterdir()):
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


def run_batch(asked: OnSpark, output: OutputOptions, form: Format, others: dict[str, Path | None]) -> None:
    """Match files on Spark, and write what is found.

    Parameters
    ----------
    asked : OnSpark
    output : OutputOptions
        A folder is written by the workers; a file, or standard output, by this process, which has to hold it all.
    form : Format
    others : dict of str to Path
        Of rules: folders of ``changes`` and of ``calls``; None: nothing is kept of that.

    Raises
    ------
    AcepError
        As a run here; what goes wrong in a worker too.
    """
    from pyspark.sql import Observation

    from acep_approx.cli.on_spark.words import say_budget, say_read
    from acep_approx.cli.write import print_table, write
    from acep_approx.spark.plan.columns import arrow_schema
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.sources.files import read_files
    from acep_approx.spark.streaming.metrics import NAME, Totals, observed

    file, kind, limit = output.file, output.output, output.most_rows(form)
    begun, console = clock.perf_counter(), words()
    is_seen = console.is_terminal and not asked.quiet
    with clear_errors(), console.status("matching on Spark") if is_seen else nullcontext():
        files, spark = asked.check(), asked.session()
        events = read_files(spark, asked.inputs, **asked.reading) if files is None else files.read(spark)
        matcher = asked.matcher(arrow_schema(events.schema))
        flow, observation = matcher.flow(events), Observation(NAME)
        packed = observed(flow.outputs(), observation)
        if any(others.values()):
            packed = packed.persist()  # all tables come of one run
        found = flow.matches(packed)
        if file is not None and is_folder(file):
            writer = (found if limit is None else found.limit(limit)).write.mode("append")  # into an empty folder
            where = spark_address(file)  # each worker writes its part
            if form is Format.PARQUET:
                writer.parquet(where)
            else:
                writer.option("ignoreNullFields", "false").json(where)
            results = None
        else:
            query = matcher.program.single
            most = None if query is None else query.plan.automaton.errors
            results = _counted(found, most) if kind.is_count else _collect(found, limit)
        _write_others(flow, packed, others)
        numbers = Totals.of_batch(observation.get)
    if results is not None:
        if form is Format.TABLE:
            print_table(list(results), kind.heading)
        else:
            write(results, form, file)
        sys.stdout.flush()
    if not asked.quiet:
        say_read(numbers, matcher.program, clock.perf_counter() - begun)
        if results is None:
            all_of_them = amount(numbers.counts["matches"], kind.thing)
            some = f"at most {amount(limit, 'row')}" if limit is not None else all_of_them
            say(f"{some} written to {file}")
        else:
            _say_found(results, kind, is_one=matcher.program.single is not None)
        if matcher.spending is not None:
            say_budget(numbers, matcher.spending, matcher.program)


def _say_found(results: Results, kind: ResultKind, *, is_one: bool) -> None:
    """Say on stderr how many results were put out here."""
    from acep_approx.cli.summary import say_found

    if not kind.is_count:
        say_found(results, kind.thing, "FOLDER")
    if is_one and found_nothing(results, kind):  # a set is not what acep why is asked about
        say("acep why QUERY INPUT, which needs no Spark, says which step no event passed")


def _write_others(flow: Flow, packed: DataFrame, others: dict[str, Path | None]) -> None:
    """Write the changes and the calls of rules to their folders."""
    from acep_approx.spark.streaming.targets import folders_of

    for name, folder in folders_of(flow.job.tables, others).items():
        flow.table(name, packed).write.mode("overwrite").parquet(folder)


def _counted(found: DataFrame, most_errors: int | None) -> Results:
    """How many matches there are, by number of errors, as a run here counts them; of a set for each query."""
    import pyarrow as pa
    from pyspark.sql import functions as sql

    from acep_approx.cli.write import Results, count_table, with_at_least
    from acep_approx.matching.outputs.tables import warn_at_least

    by = ["errors"] if most_errors is not None else ["query", "errors"]
    summed = found.groupBy(*by).agg(sql.sum(sql.col("matches").cast("decimal(38,0)")).alias("matches"))
    counts = {tuple(row[name] for name in by): int(row.matches) for row in summed.collect()}
    warn_at_least(counts.values())
    if most_errors is not None:
        return Results([count_table({errors: counts.get((errors,), 0) for errors in range(most_errors + 1)})], None)
    keys = sorted(counts)
    columns = {"query": pa.array([id_ for id_, _ in keys], pa.string())}
    columns["errors"] = pa.array([errors for _, errors in keys], pa.int64())
    return Results([with_at_least(columns, [counts[key] for key in keys])], None)


def _collect(found: DataFrame, limit: int | None) -> Results:
    """The results in this process, in order."""
    import pyarrow as pa

    from acep_approx.cli.write import Results

    table = (found if limit is None else found.limit(limit + 1)).toArrow()  # one more tells that there are more
    # Spark gives rows in any order: here by their end and start, bundles by their first point, then by whatever else
    # can be put in order
    names = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    names.sort(key=lambda name: (name != "end", name not in ("start", "first")))
    return Results([table.sort_by([(name, "ascending") for name in names]) if names else table], limit)
