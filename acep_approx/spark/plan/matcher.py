"""The Spark face of a query: a function from DataFrames of events to DataFrames of matches, batch and streaming."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import missing_column, plain_type
from acep_approx.events.date_and_time import refuse_day_alone
from acep_approx.events.roles import infer_roles
from acep_approx.matching.execution import Execution, check_key_idle
from acep_approx.matching.outputs.bind import Wide, columns_of
from acep_approx.matching.outputs.kinds import KINDS, OutputName
from acep_approx.planning.durations import Duration
from acep_approx.spark.plan.columns import arrow_schema, carried_roles
from acep_approx.spark.plan.flow import Flow
from acep_approx.spark.worker.job import MESSAGE, PLACE, REASON, Job, Spending

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.planning.compiled import CompiledQuery

log = logging.getLogger("acep_approx.spark")


@dataclass(frozen=True)
class SparkMatcher:
    """Finds the matches of a query in DataFrames; made by ``Query.spark``.

    Call it with a DataFrame of events, or give it to ``DataFrame.transform``.

    Parameters
    ----------
    query : CompiledQuery
    roles : dict of str to str
        ``time``, ``key``, ``type`` and ``unit``, as far as they were given.
    id : str, optional
        Column that names an event: it stands for the events of a match, and orders events of the same time.
    bind : str, tuple of str or Wide, optional
        Columns that stand for an event instead.
    output : {"matches", "points", "counts"}
    shards : int, optional
        Groups of keys that are matched together. Default: ``spark.sql.shuffle.partitions`` for streams; Spark chooses
        for batch.
    watermark : str, optional
        How late events of a stream may come, where it has no watermark of its own.
    spending : Spending, optional
    key_idle : str or int, optional
        How long a key may have no event, as for ``Query.match``.
    skips : bool
        Whether events whose time cannot be used are left out, as those without one always are.

    Notes
    -----
    Events of the same time are matched in the order of ``id``; without one in that of their content, so that results
    do not depend on how Spark moves rows.
    """

    query: CompiledQuery
    roles: dict[str, str | None]
    id: str | None = None
    bind: str | tuple[str, ...] | Wide | None = None
    output: OutputName = "matches"
    shards: int | None = None
    watermark: str | None = None
    spending: Spending | None = None
    key_idle: Duration | None = None
    skips: bool = False

    def __post_init__(self) -> None:
        if self.key_idle is not None:
            check_key_idle(self.query.plan, self.output, self.key_idle)
        if self.shards is not None and self.shards < 1:
            raise UsageError(f"shards is {self.shards}", code="ACEP-S001", hint="at least 1")
        if self.spending is not None:
            self.query.plan.refuse_unbounded("a load budget")

    def __call__(self, events: DataFrame) -> DataFrame:
        """The matches in some events.

        Parameters
        ----------
        events : DataFrame
            Batch or streaming, in any order.

        Returns
        -------
        DataFrame
            One row a match: the columns of ``Matches.to_arrow``, with events as ``id``, or as structs of the columns
            that the query reads.

        Raises
        ------
        DataError, QueryError
            A column is missing or of the wrong type.
        UsageError
            A stream without a watermark (``ACEP-S004``); a budget that makes no sense here.
        """
        return self.flow(events).matches()

    def flow(self, events: DataFrame) -> Flow:
        """The query on some events, to ask for more than the matches: late events, and metrics."""
        session, is_stream = events.sparkSession, events.isStreaming
        cores, shards = int(session.sparkContext.defaultParallelism), self.shards or 0  # 0: as many as Spark finds good
        if not shards and is_stream:
            shards = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
        job, keys = self.job(arrow_schema(events.schema), is_stream=is_stream, shards=shards, cores=cores)
        if not keys:
            log.warning("all events are matched in one task: %s", _why_together(self.query))
        return Flow(job, events, keys, self.watermark)

    def job(
        self, schema: pa.Schema, *, is_stream: bool = False, shards: int = 1, cores: int = 1
    ) -> tuple[Job, tuple[str, ...]]:
        """What workers are told, for events of these columns, and the columns of the keys.

        Without keys all events must be matched together, in one shard.
        """
        plan = self.query.plan
        roles = infer_roles(schema, **self.roles)
        refuse_day_alone(schema, roles, self.roles.get("time"))
        _check_time(schema, roles.time, is_stream=is_stream)
        bind = self._bind(schema, roles)
        pipeline = Execution(plan, output=self.output, bind=bind, key_idle=self.key_idle).bind(schema, roles)
        # a worker checks the query as it was written, also what no result depends on
        carried = list(dict.fromkeys([*pipeline.columns, *pipeline.named, roles.time, *filter(None, (self.id,))]))
        rejected = [name for name in (*PLACE, MESSAGE, REASON) if REASON in schema.names and name in schema.names]
        carried += [name for name in rejected if name not in carried]
        # events are in the order of the time, which may be finer than ticks, the id, and what else can be put in order
        unordered = {name for name in carried if pa.types.is_nested(schema.field(name).type)} | {MESSAGE, REASON}
        plain = [name for name in carried if name not in unordered]
        keys = tuple(map(roles.column, pipeline.plan.keys))
        if keys and plan.counted == "stream":
            keys = ()  # what is next to an event may be of another key
        job = Job(
            query=self.query,
            schema=pa.schema([schema.field(name) for name in carried]),
            roles=carried_roles(roles, carried),
            order=tuple(dict.fromkeys([roles.time, *((self.id,) if self.id else ()), *plain])),
            bind=bind,
            output=self.output,
            shards=shards if keys else 1,
            spending=replace(self.spending, cores=cores) if self.spending else None,
            key_idle=self.key_idle,
            skips=self.skips,
        )
        self._check_budget(job, is_stream=is_stream)
        return job, keys

    def _bind(self, schema: pa.Schema, roles: Roles) -> str | tuple[str, ...] | Wide | None:
        """What stands for an event: what was asked for, else the id, else what the query reads of it."""
        for name in (self.id, *columns_of(self.bind)):
            if name is not None and name not in schema.names:
                raise missing_column(name, schema.names)
        names_no_events = self.query.syntax.is_algebra and KINDS[self.output].binds
        if self.bind or self.query.syntax.outputs or names_no_events:
            return replace(self.bind, id=self.id) if isinstance(self.bind, Wide) else self.bind
        return self.id or Execution(self.query.plan, output=self.output).bind(schema, roles).columns

    def _check_budget(self, job: Job, *, is_stream: bool) -> None:
        if self.spending is None:
            return
        if self.spending.budget.unit in ("ms/batch", "runs") and not is_stream:
            raise UsageError(
                f"{self.spending.budget} is a budget of a whole stream, and these events are no stream",
                code="ACEP-S006",
                hint="write '20%', '5000 steps/event' or '100k events/s'",
            )
        if self.spending.learns and not is_stream:
            raise UsageError(
                "a history is refreshed while a stream runs, and these events are no stream",
                code="ACEP-S008",
                hint="learn from past events with acep train (spark.training.train_history)",
            )
        job.matcher()


def _check_time(schema: pa.Schema, time: str, *, is_stream: bool) -> None:
    type_ = plain_type(schema.field(time).type)
    if pa.types.is_string(type_):
        raise DataError(
            f"the time {time!r} is text, which Spark cannot put in order of time",
            code="ACEP-S003",
            hint="let files hold timestamps, as Parquet does, or run without --spark, which reads text; in Python: "
            f"events.withColumn({time!r}, F.to_timestamp({time!r}))",
        )
    if is_stream and not (pa.types.is_timestamp(type_) or pa.types.is_integer(type_)):
        raise DataError(
            f"the time {time!r} of a stream is of type {type_}, and Spark has no watermark for that",
            code="ACEP-S005",
            hint="make it a timestamp",
        )


def _why_together(query: CompiledQuery) -> str:
    if query.plan.query.equivalences:
        return "with strict_contiguity the neighbours of an event may be of any key"
    if query.plan.cel is not None:
        return "not every NEXT and FOLD asks for one key, as in $2.user = $1.user, to match keys apart by"
    return "the query has no equivalence, such as [user], to match keys apart by"
