"""Topics of Kafka on Spark, as streams and as batches: where reading begins and ends, and messages as events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from acep_approx.errors import DataError, UsageError
from acep_approx.events.live.kafka import other_topic
from acep_approx.events.live.kafka_address import KafkaAddress, parse_address, settings
from acep_approx.events.live.kafka_messages import HEADER
from acep_approx.events.live.kafka_sample import TopicSample, sample_topics
from acep_approx.events.live.source import check_messages
from acep_approx.events.reading.layout import Layout
from acep_approx.events.roles import BROKER_TIME
from acep_approx.spark.setup.control import control_of
from acep_approx.spark.setup.java_client import java_settings
from acep_approx.spark.sources.files import AT_ONCE
from acep_approx.spark.sources.messages import TOPIC, MessageReader
from history.files import read_json, replace_file
from history.places import place_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

EARLIEST, LATEST = -2, -1
"""How Spark calls the ends of a partition."""


def read_topics(
    spark: SparkSession,
    addresses: str | Sequence[str],
    *,
    is_stream: bool = True,
    schema: str | Path | None = None,
    kafka: Mapping[str, object] | Sequence[str] = (),
    at_once: int = AT_ONCE,
    on_malformed: str = "refuse",
    **typed: Any,
) -> DataFrame:
    """Read topics of Kafka as a stream, or the messages that they hold now as a batch.

    Parameters
    ----------
    spark : SparkSession
    addresses : str or sequence of str
        ``kafka://BROKER:9092/TOPIC?from=beginning|end&partition=0,1&headers=NAME``; several have the same brokers.
    is_stream : bool, default True
        Whether messages that come later are read, too.
    schema : path, optional
        A file of events whose columns and types messages have. Default: those of the messages that are there.
    kafka : mapping or sequence of str
        Settings of the client, as for ``events.follow``; those of Java's client alone begin with ``kafka.``.
    at_once : int, default 100,000
        Messages of a micro-batch of a stream at most.
    on_malformed : {"refuse", "skip"}
        What happens to messages that are no events: the first one is an error, or they are left out and counted.
    **typed
        What is said of the values: ``time``, ``unit``, ``column_types``, ``null``, ``thousands``.

    Returns
    -------
    DataFrame
        The fields of the objects, ``kafka_key``, ``kafka_time``, ``kafka_partition``, ``kafka_offset``, and
        ``kafka_header_NAME``; of several topics also ``kafka_topic``. The checkpoint of a job says how far a stream was
        read; a batch has the messages that are there when this function is called, however often it is used.

    Raises
    ------
    UsageError, DataError
        As ``Topics.open``.
    """
    given = [addresses] if isinstance(addresses, str) else addresses
    reading = {"schema": schema, "kafka": kafka, "on_malformed": on_malformed, **typed}
    topics = Topics.open(given, is_stream=is_stream, **reading)
    return topics.stream(spark, at_once=at_once) if is_stream else topics.batch(spark)


@dataclass(frozen=True)
class Topics:
    """Topics that a broker has, and how their messages are read; made by ``open``, without Spark.

    Parameters
    ----------
    addresses : tuple of KafkaAddress
    settings : dict of str to str
        Of Java's client.
    sample : TopicSample
    reader : MessageReader
    """

    addresses: tuple[KafkaAddress, ...]
    settings: dict[str, str] = field(repr=False)
    sample: TopicSample
    reader: MessageReader

    @classmethod
    def open(
        cls,
        addresses: Sequence[str],
        *,
        is_stream: bool = True,
        schema: str | Path | None = None,
        known: bytes | None = None,
        kafka: Mapping[str, object] | Sequence[str] = (),
        on_malformed: str = "refuse",
        time: str | None = None,
        unit: str | None = None,
        format: str | None = None,  # noqa: A002  (the option's name)
        **typed: Any,
    ) -> Self:
        """Ask the broker for the topics, and read some messages, unless the columns are known.

        Parameters
        ----------
        addresses, is_stream, schema, kafka, on_malformed, time, unit, **typed
            As for ``read_topics``.
        known : bytes, optional
            The sample of an earlier run of the job, whose types stay.
        format : str, optional
            ``json`` or ``jsonl``, where something is said at all.

        Raises
        ------
        UsageError
            ``ACEP-U135`` to ``ACEP-U137``: no client, a wrong address or setting; ``ACEP-S081``: an address that a job
            on Spark cannot read; ``ACEP-U121``: something is said of files.
        DataError
            ``ACEP-D058``: no broker answers, or there is no such topic or partition; ``ACEP-S082``: there are no
            messages that tell the columns; ``ACEP-D059``; what ``open_source`` raises of ``schema``.
        """
        parsed = tuple(map(parse_address, addresses))
        check_addresses(parsed, is_stream=is_stream)
        layout = Layout(**typed, time=time)
        check_messages(format, layout)
        ours, theirs = java_settings(settings(kafka))
        names = tuple(address.topic for address in parsed)
        headers = tuple(dict.fromkeys(name for address in parsed for name in address.headers))
        more = {"time": time, "unit": unit, "skips": on_malformed == "skip"}
        if schema is not None:
            reader = MessageReader.of_file(names, headers, schema, layout, **more)
        sample = sample_topics(parsed, ours)
        if schema is None:
            reader = MessageReader.of_lines(names, headers, sample.lines if known is None else known, layout, **more)
        return cls(parsed, theirs, sample, reader)

    @property
    def schema(self) -> pa.Schema:
        """The columns that events have on Spark."""
        return self.reader.events

    def select(self, columns: Sequence[str]) -> Self:
        """Return the same topics with some columns of events alone: the values of the others are not looked at."""
        return replace(self, reader=self.reader.select(columns))

    def stream(self, spark: SparkSession, *, at_once: int = AT_ONCE) -> DataFrame:
        """Return the events as a streaming DataFrame.

        Raises
        ------
        AcepError
            ``ACEP-S080``: Spark has no connector for Kafka.
        """
        from acep_approx.spark.streaming.metrics import TOMBSTONES

        where = {**self._where(), "maxOffsetsPerTrigger": str(at_once)}
        options = self._options(spark)
        given = spark.readStream.format("kafka").options(**options, **where).load()
        return self._events(given, TOMBSTONES)

    def batch(self, spark: SparkSession, tombstones: Observation | None = None) -> DataFrame:
        """Return the events that were there when the topics were opened as a DataFrame, which is a batch.

        Parameters
        ----------
        spark : SparkSession
        tombstones : Observation, optional
            Gets the number of messages without a value.

        Raises
        ------
        AcepError
            ``ACEP-S080``: Spark has no connector for Kafka.
        """
        from acep_approx.spark.setup.kinds import cores_of

        ends = self.sample.ends
        begins = {name: dict.fromkeys(partitions, EARLIEST) for name, partitions in ends.items()}
        where = {"assign": json.dumps({name: list(partitions) for name, partitions in ends.items()})}
        where |= {"startingOffsets": json.dumps(begins), "endingOffsets": json.dumps(ends)}
        where["minPartitions"] = str(cores_of(spark))  # else all of a partition is read by one task
        given = spark.read.format("kafka").options(**self._options(spark), **where).load()
        return self._events(given, tombstones)

    def _options(self, spark: SparkSession) -> dict[str, str]:
        """What streams and batches are told alike, where the session has the connector."""
        from acep_approx.spark.setup.connectors import add_kafka

        add_kafka(spark)
        known = {"isolation.level": "read_committed", **self.settings}  # as librdkafka does by itself
        options = {f"kafka.{name}": value for name, value in known.items()}
        options["kafka.bootstrap.servers"] = self.addresses[0].brokers
        return options | {"includeHeaders": str(bool(self.reader.headers)).lower()}

    def _events(self, given: DataFrame, tombstones: str | Observation | None) -> DataFrame:
        """Messages as events; those without a value are counted under a name, or by an observation."""
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import from_arrow_schema

        reader = self.reader
        if tombstones is not None:
            given = given.observe(tombstones, F.count_if(F.col("value").isNull()).alias("tombstones"))
        schema = from_arrow_schema(reader.events, prefer_timestamp_ntz=False)

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from reader.read(batch).to_batches()

        return given.select(*_columns(reader)).mapInArrow(read, schema)

    def _where(self) -> dict[str, str]:
        """Which topics and partitions a stream reads, and from where on, in Spark's words."""
        some, starts = self.addresses, {address.start for address in self.addresses}
        if any(address.partitions for address in some):
            which = {"assign": json.dumps({name: list(ends) for name, ends in self.sample.ends.items()})}
        else:
            which = {"subscribe": ",".join(address.topic for address in some)}
        if len(starts) == 1:
            return which | {"startingOffsets": "earliest" if starts == {"beginning"} else "latest"}
        ends = {address.topic: EARLIEST if address.start == "beginning" else LATEST for address in some}
        first = {name: dict.fromkeys(self.sample.ends[name], ends[name]) for name in ends}
        return which | {"startingOffsets": json.dumps(first)}


KEPT = "topics.json"
"""The file beside a checkpoint that says which topics a job reads, and what their columns were told from."""


def take_up(addresses: Sequence[str], checkpoint: str, *, schema: str | Path | None = None, **reading: Any) -> Topics:
    """Open the topics of a job: columns keep the types that they had when it began.

    Parameters
    ----------
    addresses, schema, **reading
        As for ``Topics.open``.
    checkpoint : str
        Of the job; where only Spark can reach it, columns are told from what is in the topics now.

    Raises
    ------
    UsageError, DataError
        As ``Topics.open``; ``ACEP-D171``: a topic is another one than it was; ``ACEP-S084``: what was kept is damaged.
    """
    control = control_of(checkpoint)
    has_begun = control is not None and any((place_of(checkpoint) / "offsets").glob("[0-9]*"))
    known = _kept(control / KEPT) if control is not None and has_begun else {}
    lines = known["lines"].encode() if "lines" in known and schema is None else None
    topics = Topics.open(addresses, schema=schema, known=lines, **reading)
    for name, now in topics.sample.ids.items():
        if known.get("ids", {}).get(name, now) != now:
            raise other_topic(name)
    if control is not None:
        control.mkdir(parents=True, exist_ok=True)
        now_kept = {"lines": topics.sample.lines.decode(), "ids": topics.sample.ids} | known
        replace_file(control / KEPT, json.dumps(now_kept).encode())
    return topics


def _kept(file: Path) -> dict[str, Any]:
    """What was kept of a job, if anything was."""
    try:
        found = read_json(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _damaged(file) from error
    if not (isinstance(found, dict) and isinstance(found.get("lines"), str) and isinstance(found.get("ids"), dict)):
        raise _damaged(file)
    return found


def _damaged(file: Path) -> DataError:
    return DataError(
        f"{file} is damaged, or not what a job has kept of its topics",
        code="ACEP-S084",
        hint="say which columns messages have: --schema events.parquet; or begin with another checkpoint",
    )


def check_addresses(addresses: Sequence[KafkaAddress], *, is_stream: bool = True) -> None:
    """Refuse addresses that one job on Spark cannot read (``ACEP-S081``).

    Examples
    --------
    >>> check_addresses([parse_address("kafka://broker:9092/a"), parse_address("kafka://broker:9092/b?from=end")])
    """

    def wrong(what: str, hint: str) -> UsageError:
        return UsageError(what, code="ACEP-S081", hint=hint)

    for address in addresses:
        if address.group is not None:
            raise wrong(
                f"group={address.group} does not go with --spark: a stream keeps its offsets in its checkpoint",
                "leave group= out; which group brokers show is said by --kafka-option kafka.group.id=NAME",
            )
        if address.start == "end" and not is_stream:
            raise wrong(
                f"a batch ends where the topic {address.topic!r} ends now, so with from=end it has no message",
                "leave from=end out; or follow the topic: --stream (is_stream=True in Python)",
            )
    if len({address.brokers for address in addresses}) > 1:
        raise wrong("topics of different brokers cannot be read by one job", "start a job for each of the clusters")
    names = [address.topic for address in addresses]
    if len(set(names)) < len(names):
        raise wrong(f"the topic {max(names, key=names.count)!r} is named twice", "name it once: ?partition=0,1")


def _columns(reader: MessageReader) -> list[Column]:
    """Columns of Spark's source as a reader wants them."""
    from pyspark.sql import functions as F

    def last(name: str) -> Column:
        found = F.filter("headers", lambda header: header["key"] == name)
        return F.try_element_at(found, F.lit(-1))["value"]

    known = {
        "value": F.col("value"),
        TOPIC: F.col("topic"),
        "kafka_partition": F.col("partition").cast("bigint"),
        "kafka_offset": F.col("offset"),
        "kafka_key": F.col("key"),
        BROKER_TIME: F.when(F.col("timestampType") >= 0, F.col("timestamp")),
        **{f"{HEADER}{name}": last(name) for name in reader.headers},
    }
    return [known[name].alias(f"_{place}") for place, name in enumerate(reader.given.names)]
