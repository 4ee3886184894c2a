"""Matching in SQL: a table function for batch queries.

Spark hands a Python table function one row at a time, so this is for convenience: ``Query.spark`` moves whole columns,
and is many times faster. Functions of whole columns exist (``arrow_udtf``), but Spark 4.3 wants their result columns to
be known before the query is, and finds the borders of partitions row by row all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType, TimestampType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, SelectedColumn

from acep_approx.budget.budget import Budget
from acep_approx.errors import DataError, UsageError
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.planning.planner import plan
from acep_approx.query.parser import parse
from acep_approx.spark.plan.columns import arrow_schema, quoted
from acep_approx.spark.plan.matcher import SparkMatcher
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.shard import Shard
from acep_approx.spark.worker.spending import Spending

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


OPTIONS = ("time", "key", "type", "unit", "id", "budget", "history")
ROWS_AT_ONCE = 1 << 14
"""Rows that are held as Python objects before they become columns."""
CALL = "acep_match(TABLE(events) PARTITION BY key ORDER BY (ts), 'PATTERN ...')"


def register(spark: SparkSession, name: str = "acep_match") -> None:
    """Register the table function.

    Parameters
    ----------
    spark : SparkSession
    name : str, default "acep_match"

    Notes
    -----
    ``SELECT * FROM acep_match(TABLE(events) PARTITION BY key ORDER BY (ts), 'PATTERN ...')``. Named arguments
    ``time``, ``key``, ``type``, ``unit``, ``id``, ``budget`` and ``history`` are as for ``Query.spark``, e.g.
    ``budget => '20%'``. Each partition is matched apart and in the order of ORDER BY: partition by the keys of the
    query, or, where there are very many, by a hash of them: ``PARTITION BY pmod(hash(key), 64)``. WITH SINGLE PARTITION
    takes all together. A wrong query is refused before anything runs.
    """
    spark.udtf.register(name, udtf(cls=MatchTable))  # type: ignore[arg-type]  # without cls it is a decorator


@dataclass
class Analysed(AnalyzeResult):
    """What Spark is told of a call, and what the workers need for it."""

    job: Job | None = None


class MatchTable:
    """The table function: one instance per partition.

    Parameters
    ----------
    analysed : Analysed
    """

    def __init__(self, analysed: Analysed) -> None:
        assert analysed.job is not None
        self._job = analysed.job
        self._shard: Shard | None = None
        self._rows: list[Row] = []

    @staticmethod
    def analyze(events: AnalyzeArgument, query: AnalyzeArgument, **options: AnalyzeArgument) -> Analysed:
        """Check a call, and say which columns it reads and which it gives.

        Raises
        ------
        UsageError
            ``ACEP-S038``: arguments that are none.
        QueryError, DataError
            The query is wrong, or does not fit the table.
        """
        if not events.isTable or not isinstance(events.dataType, StructType):
            raise _wrong("the first argument is no table")
        for name, argument in {"query": query, **options}.items():
            if not isinstance(argument.value, str):
                raise _wrong(f"{name!r} is no constant text")
        if unknown := sorted(options.keys() - set(OPTIONS)):
            raise _wrong(f"there is no argument {unknown[0]!r}")
        values = {name: options[name].value if name in options else None for name in OPTIONS}
        job = _job(str(query.value), events.dataType, values)
        times = {field.name for field in events.dataType if isinstance(field.dataType, TimestampType)}
        # times come as numbers, or Python would turn them into the local time of a machine
        asked = {name: f"unix_micros({quoted(name)})" if name in times else quoted(name) for name in job.schema.names}
        select = [SelectedColumn(words, alias=name) for name, words in asked.items()]
        return Analysed(from_arrow_schema(job.results, prefer_timestamp_ntz=True), select=select, job=job)

    def eval(self, row: Row, *_: Any, **__: Any) -> Iterator[tuple[Any, ...]]:
        """Take the next event; the arguments after it are those of the call, which ``analyze`` has seen."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            yield from self._match()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """The partition has ended."""
        yield from self._match()
        if self._shard is not None:
            yield from _rows(self._shard.finish().results)

    def _match(self) -> Iterator[tuple[Any, ...]]:
        if not self._rows:
            return
        self._shard = self._shard or Shard(self._job)
        table, self._rows = _table(self._rows, self._job.schema), []
        try:
            found = self._shard.process_sorted(table).results
        except DataError as error:
            if error.code != "ACEP-D007":
                raise
            raise DataError(error.message, code=error.code, row=error.row, hint=f"put rows in order: {CALL}") from error
        yield from _rows(found)


def _job(text: str, schema: StructType, values: dict[str, str | None]) -> Job:
    budget, history = values["budget"], values["history"]
    if history is not None and budget is None:
        raise _wrong("there is a history and no budget")
    matcher = SparkMatcher(
        QueryProgram(CompiledQuery(plan(parse(text)))),
        {name: values[name] for name in ("time", "key", "type", "unit")},
        id=values["id"],
        spending=Spending(Budget.parse(budget), history) if budget is not None else None,
    )
    return matcher.job(arrow_schema(schema))


def _wrong(message: str) -> UsageError:
    return UsageError(message, code="ACEP-S038", hint=f"{CALL}, and after it {', '.join(OPTIONS)} as name => 'value'")


def _table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    columns = []
    for values, field in zip(zip(*rows, strict=True), schema, strict=True):
        is_time = pa.types.is_timestamp(field.type) and field.type.tz is not None
        column = pa.array(values, pa.int64() if is_time else field.type)
        columns.append(column.cast(pa.timestamp("us", field.type.tz)).cast(field.type) if is_time else column)
    return pa.table(columns, schema=schema)


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
