"""``acep run --spark`` on a batch: files, or what topics hold now."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.cli.no_match import found_nothing
from acep_approx.cli.on_spark.work import OnSpark
from acep_approx.cli.options.output import Format, OutputOptions, ResultKind, is_folder, is_topic
from acep_approx.cli.terminal import amount, say, words
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import is_address
from acep_approx.masks import masked
from acep_approx.spark.setup.control import spark_address
from history.places import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

    from acep_approx.cli.write import Results
    from acep_approx.spark.plan.flow import Flow
    from acep_approx.spark.plan.matcher import SparkMatcher

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


def open_batch(asked: OnSpark) -> Callable[[SparkSession, Observation], DataFrame]:
    """Look at the input as far as Spark need not run for that, and return what reads it.

    Messages without a value are observed: an observation gets their number.

    Raises
    ------
    AcepError
        As ``OnSpark.topics``, or as ``OnSpark.check``.
    """
    from acep_approx.spark.sources.files import read_files

    if asked.of_topics:
        return asked.topics().batch
    files = asked.check()
    if files is None:
        return lambda spark, _: read_files(spark, asked.inputs, **asked.reading)
    return lambda spark, _: files.read(spark)


def run_batch(asked: OnSpark, output: OutputOptions, form: Format, others: dict[str, Path | None]) -> None:
    """Match files, or what topics hold now, on Spark, and write what is found.

    Parameters
    ----------
    asked : OnSpark
    output : OutputOptions
        A folder, or a topic, is written by the workers; a file, or standard output, by this process, which has to hold
        it all.
    form : Format
    others : dict of str to Path
        Of rules: folders of ``changes`` and of ``calls``, or a topic of these; None: nothing is kept of that.

    Raises
    ------
    AcepError
        As a run here; what goes wrong in a worker too.
    """
    import pyarrow as pa
    from pyspark.sql import Observation

    from acep_approx.cli.on_spark.words import say_budget, say_read
    from acep_approx.spark.plan.columns import arrow_schema
    from acep_approx.spark.setup.failures import clear_errors
    from acep_approx.spark.streaming.metrics import NAME, TOMBSTONES, Totals, observed
    from acep_approx.spark.streaming.targets import check_topic, topic_sink

    file, limit, is_sent = output.file, output.most_rows(form), is_topic(output.file)
    begun, console = clock.perf_counter(), words()
    is_seen = console.is_terminal and not asked.quiet
    with clear_errors(), console.status("matching on Spark") if is_seen else nullcontext():
        for topic in filter(is_topic, (file, others["calls"])):
            check_topic(str(topic), asked.kafka)
        read, spark = open_batch(asked), asked.session()
        tombstones = Observation(TOMBSTONES)
        events = read(spark, tombstones)
        matcher = asked.matcher(arrow_schema(events.schema))
        flow, observation = matcher.flow(events), Observation(NAME)
        packed = observed(flow.outputs(), observation)
        if is_sent or any(others.values()):
            packed = packed.persist()  # all tables come of one run
        if is_sent:
            packed.count()  # Spark does not tell what it observes while it sends rows to a topic
        found = flow.matches(packed)
        results = _gathered(found, matcher, output, limit)
        some = found if limit is None else found.limit(limit)
        if is_sent:
            rows = some if results is None else spark.createDataFrame(pa.concat_tables(results))
            topic_sink(str(file), flow, asked.kafka).send(rows)
        elif results is None:
            _write_folder(some, str(file), form)
        _write_others(flow, packed, others, asked.kafka)
        numbers = Totals.of_batch(observation.get | (tombstones.get if asked.of_topics else {}))
    if results is not None and not is_sent:
        _put_out(results, output, form)
    if not asked.quiet:
        say_read(numbers, matcher.program, clock.perf_counter() - begun, of_topics=asked.of_topics)
        if results is None:
            all_of_them = amount(numbers.counts["matches"], output.output.thing)
            written = f"at most {amount(limit, 'row')}" if limit is not None else all_of_them
            say(f"{written} written to {masked(str(file))}")
        else:
            _say_found(results, output.output, is_one=matcher.program.single is not None)
        if matcher.spending is not None:
            say_budget(numbers, matcher.spending, matcher.program)


def _gathered(found: DataFrame, matcher: SparkMatcher, output: OutputOptions, limit: int | None) -> Results | None:
    """The results that come to this process; None: workers write them."""
    if output.output.is_count:
        query = matcher.program.single
        return _counted(found, None if query is None else query.plan.automaton.errors)
    return None if is_topic(output.file) or is_folder(output.file) else _collect(found, limit)


def _put_out(results: Results, output: OutputOptions, form: Format) -> None:
    """Write the results that are in this process to their file, or to standard output."""
    from acep_approx.cli.write import print_table, write

    if form is Format.TABLE:
        print_table(list(results), output.output.heading)
    else:
        write(results, form, output.file)
    sys.stdout.flush()


def _say_found(results: Results, kind: ResultKind, *, is_one: bool) -> None:
    """Say on stderr how many results were put out here."""
    from acep_approx.cli.summary import say_found

    if not kind.is_count:
        say_found(results, kind.thing, "FOLDER")
    if is_one and found_nothing(results, kind):  # a set is not what acep why is asked about
        say("acep why QUERY INPUT, which needs no Spark, says which step no event passed")


def _write_folder(found: DataFrame, folder: str, form: Format) -> None:
    """Write results to a folder that is empty: each worker writes its part."""
    writer, where = found.write.mode("append"), spark_address(folder)
    if form is Format.PARQUET:
        writer.parquet(where)
    else:
        writer.option("ignoreNullFields", "false").json(where)


def _write_others(
    flow: Flow, packed: DataFrame, others: dict[str, Path | None], kafka: Sequence[str]
) -> None:
    """Write the changes and the calls of rules to their folders, or calls to a topic."""
    from acep_approx.results.rules import CALL_KEYS
    from acep_approx.spark.streaming.targets import places_of, topic_sink

    for name, place in places_of(flow.job.tables, others).items():
        if is_address(place):
            topic_sink(place, flow, kafka, CALL_KEYS).send(flow.table(name, packed))
        else:
            flow.table(name, packed).write.mode("overwrite").parquet(place)


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
