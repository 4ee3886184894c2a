"""Messages of Kafka as events on Spark, read as a local run reads them: what a worker does, without Spark.

Types are those of a sample, or of a file, and stay: a value that does not fit makes its message a malformed one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.blocks import Block
from acep_approx.events.columns import to_numpy
from acep_approx.events.live.file_columns import FileColumns
from acep_approx.events.live.kafka_messages import HEADER, ROW, as_line, as_text, columns_of, with_columns
from acep_approx.events.reading.formats.json import JsonFormat
from acep_approx.events.reading.formats.readings import one_batch
from acep_approx.events.reading.layout import Layout
from acep_approx.events.reading.malformed import OFFSET, MalformedRows, Row
from acep_approx.events.reading.text import TextFile, TextRows
from acep_approx.events.roles import BROKER_TIME, Roles, infer_roles
from acep_approx.events.usable_rows import TimeColumns, UsableRows
from acep_approx.events.usable_times import usable_times
from acep_approx.spark.sources.files import TIMES, as_planned, planned_schema
from acep_approx.spark.worker.job import MESSAGE, PLACE, REASON

TOPIC, *OFFSETS = PLACE
"""The column that says which topic a message is of, where there are several; and where it stands in that."""
ALWAYS = pa.schema([("value", pa.binary()), (TOPIC, pa.string()), *((name, pa.int64()) for name in OFFSETS)])
"""What is always given of messages."""
IF_WANTED = pa.schema([("kafka_key", pa.binary()), (BROKER_TIME, TIMES)])
"""What is given where the events have it."""


class LeftOutMessages(MalformedRows):
    """The malformed messages of a batch: the first one is an error, or all are gathered, as the policy says.

    Attributes
    ----------
    found : list of (Row, str)
        Each with the reason.
    """

    shows_more = True

    def __init__(self, policy: str) -> None:
        super().__init__(policy)
        self.found: list[tuple[Row, str]] = []

    def add(self, row: Row, reason: str) -> None:
        """Report a message."""
        super().add(row, reason)
        self.found.append((row, reason))


@dataclass(frozen=True)
class MessageReader:
    """How messages become events; workers have it, too.

    Parameters
    ----------
    topics : tuple of str
    format : JsonFormat
        Knows where values stand in the objects, and how times of text are written.
    text : pyarrow.Schema
        The fields of the objects, in the types that are parsed.
    schema : pyarrow.Schema
        The columns of the events, in types that Spark has.
    roles : Roles
        Of these the time.
    skips : bool
        Whether malformed messages are left out; default: the first one is an error.
    """

    topics: tuple[str, ...]
    format: JsonFormat
    text: pa.Schema
    schema: pa.Schema
    roles: Roles
    skips: bool = False

    @classmethod
    def of_lines(cls, topics: Sequence[str], headers: Sequence[str], lines: bytes, layout: Layout, **more: Any) -> Self:
        """Return the reader for messages like some that are there.

        Parameters
        ----------
        topics, headers : sequence of str
        lines : bytes
            Messages as ``as_line`` writes them.
        layout : Layout
            What is said of the values.
        **more
            ``time``, ``unit`` and ``skips``.

        Raises
        ------
        DataError
            ``ACEP-S082``: there is no message that is an object; ``ACEP-D059``; no column can be the time.
        """
        name = ", ".join(topics)
        format_ = JsonFormat(name, layout, is_one_each=True)
        try:
            file = TextFile(name, lambda: nullcontext(BytesIO()), format_, MalformedRows("skip"), Block(1, lines))
        except DataError as error:
            if error.code != "ACEP-D021":
                raise
            raise _no_object(name, lines) from error
        if not len(file.schema):
            raise _no_object(name, lines)
        known = [field for field in file.schema if field.name != ROW]
        text = pa.schema([field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in known])
        return cls._of(tuple(topics), headers, format_, text, **more)

    @classmethod
    def of_file(
        cls, topics: Sequence[str], headers: Sequence[str], file: str | Path, layout: Layout, **more: Any
    ) -> Self:
        """Return the reader for messages with the columns and types of a file of events.

        Parameters
        ----------
        topics, headers, layout, **more
            As for ``of_lines``.
        file : path
            Parquet, CSV or JSON lines.

        Raises
        ------
        DataError
            As ``FileColumns.of``.
        """
        columns = FileColumns.of(file, layout)
        format_ = columns.format(", ".join(topics), layout)
        return cls._of(tuple(topics), headers, format_, columns.text, times=columns.stamps, **more)

    @classmethod
    def _of(
        cls,
        topics: tuple[str, ...],
        headers: Sequence[str],
        format_: JsonFormat,
        text: pa.Schema,
        *,
        time: str | None = None,
        unit: str | None = None,
        skips: bool = False,
        times: Collection[str] = (),
    ) -> Self:
        name = ", ".join(topics)
        beside = columns_of(headers)
        if len(topics) > 1:
            beside = beside.append(pa.field(TOPIC, pa.string()))
        schema = planned_schema(with_columns(text, beside, name), time)
        fields = [field.with_type(TIMES) if field.name in times else field for field in schema]
        schema = pa.schema(fields)
        roles = infer_roles(schema, time=time, unit=unit)
        return cls(topics, format_, text, schema, roles, skips)

    def select(self, columns: Sequence[str]) -> Self:
        """Return the reader of some columns alone: as in a local run nobody looks at the values of the others."""
        kept = [name for name in self.schema.names if name in columns or name == self.roles.time]
        return replace(self, schema=pa.schema([self.schema.field(name) for name in kept]))

    @property
    def headers(self) -> list[str]:
        """Names of the headers that are columns."""
        return [name.removeprefix(HEADER) for name in self.schema.names if self._is_header(name)]

    @property
    def given(self) -> pa.Schema:
        """What is given of messages: columns of Kafka, and values of headers as bytes."""
        wanted = [field for field in IF_WANTED if field.name in self.schema.names]
        return pa.schema([*ALWAYS, *wanted, *((f"{HEADER}{name}", pa.binary()) for name in self.headers)])

    @property
    def events(self) -> pa.Schema:
        """The columns of what is read; with those that malformed messages have, where these are left out."""
        if not self.skips:
            return self.schema
        beside = [ALWAYS.field(name) for name in self._places if name not in self.schema.names]
        return pa.schema([*self.schema, *beside, (MESSAGE, pa.string()), (REASON, pa.string())])

    def read(self, given: pa.RecordBatch) -> pa.Table:
        """Return messages as events.

        Parameters
        ----------
        given : pyarrow.RecordBatch
            Columns of ``given``, whatever their names.

        Returns
        -------
        pyarrow.Table
            Columns of ``events``. Messages that are malformed come last: their place, their text and the reason.

        Raises
        ------
        DataError
            ``ACEP-D020``, or one about a time, with partition and offset, where malformed messages are refused.
        """
        messages = pa.RecordBatch.from_arrays(given.columns, names=self.given.names)
        left_out = LeftOutMessages("skip" if self.skips else "refuse")
        try:
            events = self._timed(*self._parsed(messages, left_out), messages, left_out)
        except DataError as error:
            if error.hint is not None:
                error.hint = error.hint.replace("--rejects FILE", "--late FOLDER")
            raise
        name = ", ".join(self.topics)
        columns = [as_planned(events, field, name, skips=False) for field in self.schema]
        table = pa.table(columns, schema=self.schema)
        return pa.concat_tables([self._with_places(table, events), self._rejected(left_out)]) if self.skips else table

    # --- steps ----------------------------------------------------------------------------------------------------

    def _parsed(self, messages: pa.RecordBatch, left_out: LeftOutMessages) -> tuple[pa.RecordBatch, pa.Array]:
        """The wanted fields of those messages that are objects, and the rows of these."""
        values = messages.column("value").to_pylist()
        data = b"".join(as_line(row, value) for row, value in enumerate(values))

        def told(_row: bytes, line: int, reason: str) -> None:
            left_out.add(self._row(messages, line - 1), reason)

        wanted = pa.schema([*(field for field in self.text if field.name in self.schema.names), (ROW, pa.int64())])
        rows = TextRows(self.format, wanted, told, has_fixed_types=True)
        batches = [batch.cast(wanted) for batch in rows.parse(Block(1, data))]  # texts may come as dictionaries
        read = one_batch(pa.Table.from_batches(batches, wanted)).cast(wanted)
        return read.drop_columns([ROW]), read.column(ROW)

    def _timed(
        self, fields: pa.RecordBatch, rows: pa.Array, messages: pa.RecordBatch, left_out: LeftOutMessages
    ) -> pa.Table:
        """The events with all their columns, without those whose times cannot be used."""
        known = messages.take(rows)
        columns = {name: _as_column(known.column(name)) for name in self.given.names[1:]}
        columns |= {name: fields.column(name) for name in fields.schema.names}
        events = pa.RecordBatch.from_pydict(columns)

        def where(row: int) -> Row:
            return self._row(messages, rows[row].as_py())

        for name in self._other_times:
            usable = usable_times(events.column(name), None, None) | to_numpy(events.column(name).is_null())
            for row in (~usable).nonzero()[0].tolist():
                left_out.add(where(row), f"column {name!r} holds times, and this value is none")
            rows, events = rows.filter(pa.array(usable)), events.filter(pa.array(usable))
        if not events.num_rows:
            return pa.Table.from_batches([events])
        usable_rows = UsableRows(TimeColumns(self.roles, events.schema), left_out, where)
        return pa.Table.from_batches([usable_rows.taken(events)])

    @property
    def _other_times(self) -> list[str]:
        """Columns of times beside the time that are texts in messages."""
        texts = [field.name for field in self.text if pa.types.is_string(field.type)]
        times = [field.name for field in self.schema if field.type == TIMES and field.name != self.roles.time]
        return [name for name in times if name in texts]

    def _with_places(self, table: pa.Table, events: pa.Table) -> pa.Table:
        nothing = pa.nulls(len(table), pa.string())
        columns = {name: table.column(name) for name in table.column_names}
        columns |= {name: events.column(name) for name in self._places}
        return pa.table({**columns, MESSAGE: nothing, REASON: nothing}).select(self.events.names).cast(self.events)

    def _rejected(self, left_out: LeftOutMessages) -> pa.Table:
        rows = []
        for row, reason in left_out.found:
            topic, _, partition = row.file[:-1].rpartition("[")
            place = {TOPIC: topic, "kafka_partition": int(partition), "kafka_offset": row.line}
            rows.append({**place, MESSAGE: row.shown, REASON: reason})
        return pa.Table.from_pylist(rows, schema=self.events)

    @property
    def _places(self) -> list[str]:
        return [*([TOPIC] if len(self.topics) > 1 else []), *OFFSETS]

    def _row(self, messages: pa.RecordBatch, row: int) -> Row:
        value, topic, partition, offset = (messages.column(place)[row].as_py() for place in range(4))
        return Row(f"{topic}[{partition}]", offset, (value or b"").decode(errors="backslashreplace"), OFFSET)

    def _is_header(self, name: str) -> bool:
        return name.startswith(HEADER) and name not in self.text.names


def _as_column(column: pa.Array) -> pa.Array:
    """A column beside the object; bytes as the text that they are."""
    return pa.array(map(as_text, column.to_pylist()), pa.string()) if pa.types.is_binary(column.type) else column


def _no_object(topics: str, lines: bytes) -> DataError:
    what = "has no message that is a JSON object" if lines.strip() else "has no message"
    return DataError(
        f"the topic {topics} {what}, and Spark must know the columns before it reads",
        code="ACEP-S082",
        hint="name a file of events that has them: --schema events.parquet; or start the job when messages are there",
    )
