"""Where the rows of a micro-batch, or of a batch, go: folders of Parquet, topics of Kafka.

A micro-batch may be written twice, after a failure; each kind of place says what readers see of that.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from acep_approx.events.live.kafka_address import KafkaAddress
from acep_approx.events.live.kafka_rows import MATCH, keys_of, match_id
from acep_approx.events.writing.tables import json_lines
from acep_approx.spark.setup.control import spark_address
from history.places import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sink(Protocol):
    """A place for the rows of micro-batches."""

    def write(self, table: DataFrame, batch: int, rows: int, *, is_first: bool) -> None:
        """Write the rows of a micro-batch.

        Parameters
        ----------
        table : DataFrame
        batch : int
            Number of the micro-batch; the same one may come again, with the same rows.
        rows : int
            How many there are.
        is_first : bool
            Whether it is the first one since the job was started, so that it may come again.
        """
        ...


@dataclass(frozen=True)
class Folder:
    """A folder of Parquet, with a folder for each micro-batch, which a second attempt replaces: exactly once.

    Parameters
    ----------
    place : str
        An absolute path, or an address that Spark knows, such as ``s3a://bucket/found``.
    """

    place: str

    def write(self, table: DataFrame, batch: int, rows: int, *, is_first: bool) -> None:
        """Write the rows of a micro-batch; see ``Sink``."""
        place = f"{self.place}/batch={batch}"
        if rows:
            table.write.mode("overwrite").parquet(place)
        elif is_first and is_remote(place):  # what a crash may have left
            _empty(table, place)
        elif is_first:
            shutil.rmtree(place, ignore_errors=True)


def folder_of(place: str | Path) -> Folder:
    """Return the folder that a path or an address names.

    Examples
    --------
    >>> folder_of("s3://bucket/found").place, folder_of("/data/found").place
    ('s3a://bucket/found', '/data/found')
    """
    return Folder(spark_address(place) if is_remote(place) else str(Path(place).absolute()))


def _empty(table: DataFrame, place: str) -> None:
    """Leave no rows in a folder where only Spark can, if it has any."""
    from pyspark.errors import AnalysisException

    try:
        is_there = bool(table.sparkSession.read.parquet(place).schema)
    except AnalysisException:  # there is no such folder, or no file in it
        return
    if is_there:
        table.limit(0).write.mode("overwrite").parquet(place)


MESSAGES = "key string, value binary, headers array<struct<key: string, value: binary>>"
"""Columns from which Spark makes messages."""
BATCH = "acep_batch"
"""The header of a message that has the number of its micro-batch."""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True)
class TopicSink:
    """A topic of Kafka: each row is a message, a JSON object as ``--format jsonl`` writes it. At least once.

    A message has the header ``acep_match``, a hash of the row, and ``acep_batch``, the number of its micro-batch, if it
    is of a stream. All headers together are the same when a row is written again, and differ otherwise.

    Parameters
    ----------
    address : KafkaAddress
    keys : tuple of str
        Columns whose values are the key of messages.
    settings : dict of str to str
        Of Java's client.
    """

    address: KafkaAddress
    keys: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def write(self, table: DataFrame, batch: int, rows: int, *, is_first: bool) -> None:  # noqa: ARG002
        """Write the rows of a micro-batch; see ``Sink``."""
        if rows:
            self.send(table, batch)

    def send(self, table: DataFrame, batch: int | None = None) -> None:
        """Send all rows of a table; ``batch`` is the number of the micro-batch, if they are of a stream."""
        options = {f"kafka.{name}": value for name, value in self.settings.items()}
        options |= {"kafka.bootstrap.servers": self.address.brokers, "topic": self.address.topic}
        plain = table.toDF(*(f"_{place}" for place in range(len(table.columns))))  # PySpark takes no name with a dot
        messages = plain.mapInArrow(messages_of(table.columns, self.keys, batch), MESSAGES)
        messages.write.format("kafka").options(**options, includeHeaders="true").save()


def messages_of(
    names: Sequence[str], keys: Sequence[str], batch: int | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what makes rows into messages, for ``mapInArrow``.

    Parameters
    ----------
    names : sequence of str
        Of the columns, whatever they are called on the way.
    keys : sequence of str
        Those that are the key; names that are not there are passed over.
    batch : int or None
        Number of the micro-batch; None: rows are not of a stream.

    Notes
    -----
    Of rows that are equal the hash counts how many came before: equal rows are of one key, and so of one task.

    Examples
    --------
    >>> make = messages_of(["shop", "a"], ["shop"], 7)
    >>> rows = pa.RecordBatch.from_pydict({"_0": ["one", "one"], "_1": [5, 5]})
    >>> found = next(make(iter([rows]))).to_pylist()
    >>> found[0]["key"], found[0]["value"], found[0]["headers"][0]
    ('one', b'{"shop": "one", "a": 5}', {'key': 'acep_batch', 'value': b'7'})
    >>> found[0]["headers"][1] == found[1]["headers"][1]
    False
    """

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: Counter[str] = Counter()
        for given in batches:
            table = pa.Table.from_batches([given]).rename_columns(list(names))
            values = bytes(json_lines(table)).splitlines()
            headers = [_headers(batch, value, seen) for value in values]
            columns = [keys_of(table, keys), pa.array(values, pa.binary()), pa.array(headers, _HEADERS)]
            yield pa.RecordBatch.from_arrays(columns, names=["key", "value", "headers"])

    return make


def _headers(batch: int | None, value: bytes, seen: Counter[str]) -> list[dict[str, object]]:
    row = match_id(value)
    match = match_id(value, seen[row])
    seen[row] += 1
    found: list[dict[str, object]] = [{"key": MATCH, "value": match.encode()}]
    return found if batch is None else [{"key": BATCH, "value": str(batch).encode()}, *found]
