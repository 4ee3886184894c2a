"""The Spark face of a program: a function from DataFrames of events to DataFrames of matches, batch and streaming."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import missing_column, plain_type
from acep_approx.events.date_and_time import refuse_day_alone
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.matching.outputs.bind import Bind, columns_of
from acep_approx.planning.durations import Duration
from acep_approx.planning.explain import section
from acep_approx.spark.plan.columns import arrow_schema, carried_roles
from acep_approx.spark.plan.delays import check_watermark, delay
from acep_approx.spark.plan.flow import Flow, no_watermark
from acep_approx.spark.plan.split import parts_of, split_words
from acep_approx.spark.setup.kinds import check_state_store, cores_of
from acep_approx.spark.worker.job import MESSAGE, PLACE, REASON, Job
from acep_approx.spark.worker.program import Turn
from acep_approx.spark.worker.spending import Spending

if TYPE_CHECKING:
    from acep_approx.spark.worker.program import Program

log = logging.getLogger("acep_approx.spark")


@dataclass(frozen=True)
class SparkMatcher:
    """Finds the matches of a program in DataFrames; made by ``Query.spark``, ``QuerySet.spark`` and ``RuleSet.spark``.

    Call it with a DataFrame of events, or give it to ``DataFrame.transform``.

    Parameters
    ----------
    program : Program
    roles : dict of str to str
        ``time``, ``key``, ``type`` and ``unit``, as far as they were given.
    id : str, optional
        Column that names an event: it stands for the events of a match, and orders events of the same time.
    bind : str, tuple of str or Wide, optional
        Columns that stand for an event instead.
    shards : int, optional
        Groups of keys that are matched together. Default: ``spark.sql.shuffle.partitions`` for streams; Spark chooses
        for batch.
    watermark : str or int, optional
        How late events of a stream may come, where it has no watermark of its own: ``"10 s"``, or a number of ticks.
    spending : Spending, optional
    skips : bool
        Whether events whose time cannot be used are left out, as those without one always are.

    Notes
    -----
    Events of the same time are matched in the order of ``id``; without one in that of their content, so that results
    do not depend on how Spark moves rows.
    """

    program: Program
    roles: dict[str, Any]
    id: str | None = None
    bind: Bind = None
    shards: int | None = None
    watermark: Duration | None = None
    spending: Spending | None = None
    skips: bool = False

    def __post_init__(self) -> None:
        if self.watermark is not None:
            check_watermark(self.watermark)
        if self.shards is not None and self.shards < 1:
            raise UsageError(f"shards is {self.shards}", code="ACEP-S001", hint="at least 1")
        if self.spending is not None:
            self.program.check(self.spending)

    def __call__(self, events: DataFrame) -> DataFrame:
        """The matches in some events.

        Parameters
        ----------
        events : DataFrame
            Batch or streaming, in any order.

        Returns
        -------
        DataFrame
            One row a match: the columns of a run here, with events as ``id``, or as structs of the columns that are
            read. Those of a set say whose they are in ``query``, those of rules in ``rule``.

        Raises
        ------
        DataError, QueryError
            A column is missing or of the wrong type.
        UsageError
            A stream without a watermark (``ACEP-S004``), or in a session that does not keep state in RocksDB
            (``ACEP-S041``); a budget that makes no sense here.
        """
        return self.flow(events).matches()

    def flow(self, events: DataFrame) -> Flow:
        """The program on some events, to ask for more than the matches: late events, other tables, and metrics."""
        session, is_stream = events.sparkSession, events.isStreaming
        if is_stream:
            check_state_store(session)
        cores = 1 if self.spending is None else cores_of(session)
        shards = self.shards or 0  # 0: as many as Spark finds good
        if not shards and is_stream:
            shards = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
        job = self.job(arrow_schema(events.schema), is_stream=is_stream, shards=shards, cores=cores)
        is_apart = all(part.keys for part in job.parts)
        for line in split_words(job.parts):
            log.log(logging.INFO if is_apart else logging.WARNING, line)
        return Flow(job, events, self.watermark)

    def explain(self, events: DataFrame | pa.Schema | None = None) -> str:
        """How the program is split among shards, and why, in words; the log of a job says the same.

        Parameters
        ----------
        events : DataFrame or pyarrow.Schema, optional
            Those that are to be matched. Default: columns play the roles that were named, or are called ``ts``,
            ``key`` and ``type``.

        Raises
        ------
        DataError, QueryError
            The program does not fit the events.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> print(compile_query("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 5").spark().explain())
        Spark    all events are matched apart by user: all events of a match have the same
        """
        if events is None:
            roles = Roles(**{"time": "ts", "key": "key", "type": "type"} | {k: v for k, v in self.roles.items() if v})
            parts = parts_of(self.program, roles, self.shards or 1)
        else:
            schema = events if isinstance(events, pa.Schema) else arrow_schema(events.schema)
            parts = self.job(schema, shards=self.shards or 1).parts
        return "\n".join(section("Spark", [*split_words(parts)]))

    def check(self, schema: pa.Schema, *, is_stream: bool = False) -> Job:
        """Refuse what can be known to be wrong for events of these columns; Spark need not run for that.

        Returns the job, with one shard for each of its parts if no number was given.
        """
        job = self.job(schema, is_stream=is_stream, shards=self.shards or 1)
        if is_stream and self.watermark is None:
            raise no_watermark(job.roles.time)
        if is_stream and self.watermark is not None:
            delay(self.watermark, is_time=job.has_real_times)
        return job

    def job(self, schema: pa.Schema, *, is_stream: bool = False, shards: int = 1, cores: int = 1) -> Job:
        """What workers are told, for events of these columns."""
        self.program.check_plan(is_stream=is_stream)
        roles = infer_roles(schema, **self.roles)
        refuse_day_alone(schema, roles, self.roles.get("time"))
        _check_time(schema, roles.time, is_stream=is_stream)
        for name in (self.id, *columns_of(self.bind)):
            if name is not None and name not in schema.names:
                raise missing_column(name, schema.names)
        program = self.program.decided(self.id, self.bind, schema, roles)
        needed = program.needs(schema, roles)
        carried = list(dict.fromkeys([*needed, roles.time, *filter(None, (self.id,))]))
        rejected = [name for name in (*PLACE, MESSAGE, REASON) if REASON in schema.names and name in schema.names]
        carried += [name for name in rejected if name not in carried]
        # events are in the order of the time, which may be finer than ticks, the id, and what else can be put in order
        unordered = {name for name in carried if pa.types.is_nested(schema.field(name).type)} | {MESSAGE, REASON}
        plain = [name for name in carried if name not in unordered]
        parts = parts_of(program, roles, shards, schema)
        is_one_task = len(parts) == 1 and not parts[0].keys
        job = Job(
            parts=parts,
            schema=pa.schema([schema.field(name) for name in carried]),
            roles=carried_roles(roles, carried),
            order=tuple(dict.fromkeys([roles.time, *((self.id,) if self.id else ()), *plain])),
            spending=replace(self.spending, cores=cores) if self.spending else None,
            skips=self.skips,
            width=1 if is_one_task else shards,
        )
        self._check_budget(job, is_stream=is_stream)
        return job

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
        for part in job.parts:
            part.program.begin(job.setting, Turn(budget=job.spending.budget if job.spending else None))


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
