"""Learn a history on Spark: the exact runs over the past, portion by portion, in many processes.

What is learned is the same, bit for bit, as ``HistoryGraph.fit`` learns from the same events in the same order: the
driver tries readings by the same functions on the same events; portions of keys are the same, and so are the batches
that they are cut into; and what was counted in them adds up to the same in any order (``history.counting``).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)

from acep_approx.errors import DataError
from acep_approx.events.columns import missing_column, to_arrow, to_numpy
from acep_approx.events.date_and_time import refuse_day_alone
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.source import BATCH_ROWS
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import LIMIT, ticks
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.planner import Plan
from acep_approx.spark.plan.columns import arrow_schema, carried_roles, column, places, rising
from acep_approx.spark.setup.failures import clear_errors
from acep_approx.training.history_graph import HistoryGraph, Measure
from acep_approx.training.past import (
    AGAIN,
    BITS,
    MOST_HELD_OUT,
    MOST_TRIED,
    PORTION,
    SPREAD,
    Past,
    event_batch,
    portion_of,
    portions,
)
from acep_approx.training.training import Counted, OnProgress, blank_of, count_portion, try_readings
from history.graph import MOST_BUNDLES, Graph
from history.tables import pack, unpack

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery

log = logging.getLogger("acep_approx.spark")
TICK, PORTION_OF = "_acep_tick", "_acep_portion"
PACKED = "graph binary, events long, points long, steps long, memory long"
BINS = 1 << 12
"""Parts of the time of the past that its end is looked for in."""
WHOLE = (ByteType, ShortType, IntegerType, LongType)
PER_UNIT = {"us": 1, "ms": 10**3, "s": 10**6}
Batches = Iterator[pa.RecordBatch]


def train_history(
    events: DataFrame,
    query: CompiledQuery,
    *,
    time: str | None = None,
    key: str | None = None,
    type: str | None = None,  # noqa: A002  (the word of the query language)
    unit: str | None = None,
    id: str | None = None,  # noqa: A002
    gap: int | str = -1,
    most_bundles: int = MOST_BUNDLES,
    shards: int | None = None,
    portion_events: int = PORTION,
    on_progress: OnProgress | None = None,
    measure: Measure | None = None,
) -> HistoryGraph:
    """Learn from past events which partial matches of a query are worth keeping.

    Parameters
    ----------
    events : DataFrame
        Of a batch, in any order. It is read four times; cache it if it is dear to make.
    query : CompiledQuery
        As for ``HistoryGraph``.
    time, key, type, unit : str, optional
        As for ``Query.match``.
    id : str, optional
        Column that orders events of the same time. Default, and where ids are the same: the columns that the query asks
        for, in the order of ``Execution.bind(schema).columns``; nulls last.
    gap, most_bundles
        As for ``HistoryGraph``.
    shards : int, optional
        Tasks that count. Default: ``spark.sql.shuffle.partitions``. It changes nothing but the speed.
    portion_events : int, default 131,072
        As for ``HistoryGraph.fit``; it changes what is learned a little, as it does there.
    on_progress, measure : callable, optional
        As for ``HistoryGraph.fit``.

    Returns
    -------
    HistoryGraph
        What ``HistoryGraph(query).fit`` learns from these events in order of (time, id, content).

    Raises
    ------
    UsageError, DataError, QueryError
        As ``HistoryGraph.fit``.

    Notes
    -----
    Workers hold one portion's open windows at a time, at least half a million links. The driver holds the end of the
    past that readings are tried on, at most 2**20 + 2**18 events as a rule. Debug messages of the logger
    ``acep_approx.spark`` tell the peak of the workers' memory.

    Complexity: one shuffle and one sort of the events by portion and time; each event is run once on the workers.
    """
    tell = on_progress or (lambda _what, _share: None)
    known = HistoryGraph(query, gap=gap, most_bundles=most_bundles)
    named = {"time": time, "key": key, "type": type, "unit": unit}
    with clear_errors():
        schema = arrow_schema(events.schema)
        roles, columns = check_past(schema, query, id=id, **named)
        job = _Training.of(events, query.plan, roles, columns, id)
        tell("looking for the end of the past", 0.0)
        past, total = job.end()
        tried = try_readings(query.plan, past, known.integer_gap(past.window), most_bundles, tell)
        counted = job.counted(tried.blank, portions(query.plan, total, portion_events), shards)
        return known.take(tried, counted, past, tell, measure)


def check_past(
    schema: pa.Schema, query: CompiledQuery, *, id: str | None = None, **named: str | None  # noqa: A002
) -> tuple[Roles, tuple[str, ...]]:
    """Refuse columns that nothing can be learned from; Spark need not run for that.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the past events.
    query : CompiledQuery
    id : str, optional
        Column that orders events of the same time.
    **named : str or None
        ``time``, ``key``, ``type`` and ``unit``, as for ``train_history``.

    Returns
    -------
    Roles, tuple of str
        The roles of the columns, and those that the query reads.

    Raises
    ------
    DataError, QueryError
        A column is missing or of the wrong type.
    """
    roles = infer_roles(schema, **named)
    refuse_day_alone(schema, roles, named.get("time"))
    if id is not None and id not in schema.names:
        raise missing_column(id, schema.names)
    return roles, tuple(Execution(query.plan, output=BARE).bind(schema, roles).columns)


@dataclass(frozen=True)
class _Training:
    """The events of a past with their ticks, as columns that the query asks for.

    Parameters
    ----------
    events : DataFrame
        With ``TICK``, in any order.
    plan : Plan
    roles : Roles
    schema : pyarrow.Schema
        Of the columns that the query asks for.
    order : tuple of str
        By which events of the same time are ordered.
    """

    events: DataFrame
    plan: Plan
    roles: Roles
    schema: pa.Schema
    order: tuple[str, ...]

    @classmethod
    def of(
        cls, events: DataFrame, plan: Plan, roles: Roles, columns: tuple[str, ...], id_: str | None
    ) -> _Training:
        """Those of a DataFrame, with what ``check_past`` says of them."""
        schema = arrow_schema(events.schema)
        roles = carried_roles(roles, columns)
        order = tuple(dict.fromkeys([*((id_,) if id_ else ()), *(name for name in columns if name != roles.time)]))
        carried = [column(name) for name in dict.fromkeys([*columns, *order])]
        tick = tick_column(events.schema[roles.time].dataType, roles)
        with_ticks = events.select(tick.alias(TICK), *carried)
        return cls(with_ticks, plan, roles, pa.schema([schema.field(name) for name in columns]), order)

    def end(self) -> tuple[Past, int]:
        """The end of the past that readings are tried on, and the number of events of all of it."""
        tick = F.col(TICK)
        row = self.events.agg(F.count("*"), F.count(tick), F.min(tick), F.max(tick)).first()
        total, timed, first, last = row if row is not None else (0, 0, 0, 0)
        first, last = first or 0, last or 0
        if timed < total:  # both as ``events.time.ticks`` has it, without a row to name
            raise DataError(
                f"{total - timed} of {total} events have no time (null)",
                code="ACEP-D004",
                hint="every event needs a time: fill it in or leave the event out before matching",
            )
        if max(abs(first), abs(last)) >= LIMIT:
            raise DataError(
                f"times reach from {first} to {last}; ticks must be below 2**60 in size",
                code="ACEP-D005",
                hint="is the unit right? 2**60 microseconds are 36,533 years",
            )
        wanted = MOST_HELD_OUT + MOST_TRIED + 1
        while True:
            since = first if total <= wanted else self._since(wanted, first, last)
            past = self._collected(since, total)
            if past.skipped == 0 or past.cut()[0] > 0:
                return past, total
            wanted *= 2  # many events of one tick

    def _since(self, wanted: int, first: int, last: int) -> int:
        """A tick from which on there are at least so many events, and not many more."""
        after = 0
        while first < last:
            width = (last - first) // BINS + 1
            number = F.expr(f"cast(({TICK} - {first}) div {width} as int)")
            inside = self.events.filter(F.col(TICK).between(first, last))
            counts = {row[0]: row[1] for row in inside.groupBy(number).count().collect()}
            size = 0
            for place in sorted(counts, reverse=True):
                size = counts[place]
                if after + size >= wanted:
                    break
                after += size
            first, last = first + place * width, min(first + (place + 1) * width - 1, last)
            if after + size <= 2 * wanted:
                break
        return first

    def _collected(self, since: int, total: int) -> Past:
        some = self.events.filter(F.col(TICK) >= since).orderBy(*rising([TICK, *self.order]))
        table = some.select(*(column(name) for name in self.schema.names)).toArrow().cast(self.schema)
        return Past(self.plan, table, self.roles.plain, skipped=total - len(table))

    def in_portions(self, number: int, shards: int | None = None) -> DataFrame:
        """The events with ``PORTION_OF``: each portion whole in one task, and in order."""
        keys = [self.roles.column(e.name) for e in self.plan.query.equivalences]
        tasks = shards or int(self.events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        portion = portion_column(self.events, keys, number)
        apart = self.events.withColumn(PORTION_OF, portion).repartitionById(min(tasks, number), PORTION_OF)
        in_order = apart.sortWithinPartitions(*rising([PORTION_OF, TICK, *self.order]))
        kept = in_order.select(PORTION_OF, TICK, *(column(name) for name in self.schema.names))
        return kept.toDF(PORTION_OF, TICK, *places(self.schema))

    def counted(self, blank: Graph, number: int, shards: int | None) -> Counted:
        """What exact runs over all portions found."""
        count = counting(self.plan, self.schema, self.roles, blank)
        rows = self.in_portions(number, shards).mapInArrow(count, PACKED).collect()
        found = [Counted(unpack(row.graph, blank), row.events, row.points, row.steps) for row in rows]
        log.debug("peak memory of a worker: %d bytes", max((row.memory for row in rows), default=0))
        return reduce(Counted.merge, found, Counted(blank))


# --- on the workers -----------------------------------------------------------------------------------------


def counting(plan: Plan, schema: pa.Schema, roles: Roles, blank: Graph) -> Callable[[Batches], Batches]:
    """For ``mapInArrow`` over partitions sorted by portion: one row of ``PACKED`` out, if there are events."""

    def run(batches: Batches) -> Batches:
        found = [count_portion(plan, schema, roles, blank_of(blank), events) for events in portions_of(batches, schema)]
        if found:
            total = reduce(Counted.merge, found)
            row = {name: [getattr(total, name)] for name in ("events", "points", "steps")}
            yield pa.RecordBatch.from_pydict({"graph": [pack(total.graph)], **row, "memory": [_peak_memory()]})

    return run


def portions_of(batches: Batches, schema: pa.Schema) -> Iterator[Iterator[EventBatch]]:
    """The batches of each portion; each must be taken before the next."""
    for _, parts in groupby(_parts(batches), key=itemgetter(0)):
        yield _filled((part for _, part in parts), schema)


def _parts(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches cut where a portion ends."""
    for batch in batches:
        if not batch.num_rows:
            continue
        portion = to_numpy(batch.column(PORTION_OF))
        heads = [0, *(np.flatnonzero(portion[1:] != portion[:-1]) + 1).tolist(), len(portion)]
        for start, end in pairwise(heads):
            yield int(portion[start]), batch.slice(start, end - start)


def _filled(parts: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[EventBatch]:
    """The same events in batches of ``BATCH_ROWS``, numbered from 0."""
    held: list[pa.RecordBatch] = []
    first = rows = 0
    for part in parts:
        rest = part
        while rest.num_rows:
            some = rest.slice(0, BATCH_ROWS - rows)
            held.append(some)
            rows += some.num_rows
            rest = rest.slice(some.num_rows)
            if rows == BATCH_ROWS:
                yield _batch(first, held, schema)
                first, rows, held = first + rows, 0, []
    if held:
        yield _batch(first, held, schema)


def _batch(first: int, held: Sequence[pa.RecordBatch], schema: pa.Schema) -> EventBatch:
    table = pa.Table.from_batches(held)
    tick = to_numpy(table.column(TICK).combine_chunks())
    events = table.drop_columns([PORTION_OF, TICK]).rename_columns(schema.names)
    return event_batch(first, tick, events.cast(schema))


def _peak_memory() -> int:
    """Of this process, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# --- columns ------------------------------------------------------------------------------------------------


def tick_column(type_: DataType, roles: Roles) -> Column:
    """``events.time.ticks`` as a column of Spark: computed by Spark where that gives the same."""
    time = column(roles.time)
    if isinstance(type_, TimestampType):
        return F.unix_micros(time)
    if isinstance(type_, WHOLE) and roles.unit != "ns":
        return time.cast("long") * PER_UNIT[roles.unit or "us"]

    def tick(values: pa.Array) -> pa.Array:
        return to_arrow(ticks(values, roles.unit, format=roles.time_format))

    return arrow_udf(tick, "long")(time)  # type: ignore[call-overload,no-any-return]


def portion_column(events: DataFrame, keys: Sequence[str], number: int) -> Column:
    """``portion_of`` as a column of Spark: computed by Spark where that gives the same."""
    if number == 1:
        return F.lit(0)
    types = [events.schema[name].dataType for name in keys]
    columns = [column(name) for name in keys]
    if not all(isinstance(type_, (StringType, BooleanType, DateType, TimestampType, *WHOLE)) for type_ in types):

        def portion(*values: pa.Array) -> pa.Array:
            return to_arrow(portion_of(values, number)).cast(pa.int32())

        return arrow_udf(portion, "int")(*columns)  # type: ignore[call-overload,no-any-return]
    most = (1 << BITS) - 1
    found, known = F.lit(0).cast("long"), F.lit(True)
    for one, type_ in zip(columns, types, strict=True):
        words = _words(one, type_)
        for by in (32, 16):
            words = words.bitwiseXOR(F.shiftrightunsigned(words, by))
        found = (found * AGAIN + words.bitwiseAND(most)).bitwiseAND(most)
        known = known & one.isNotNull()
    spread = (found * SPREAD).bitwiseAND(most)
    return F.when(known, F.shiftright(spread * number, BITS)).otherwise(0).cast("int")


def _words(one: Column, type_: DataType) -> Column:
    """64 bits for each value, as ``training.past`` has them."""
    if isinstance(type_, StringType):
        return F.crc32(one)
    if isinstance(type_, TimestampType):
        return F.unix_micros(one)
    if isinstance(type_, DateType):
        return F.unix_date(one).cast("long")
    return one.cast("long")
