"""Messages of Kafka as events: one JSON object each, with what the broker knows of it as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.blocks import BYTE_ORDER_MARK, Block
from acep_approx.events.live.kafka import Topic, TopicPlace
from acep_approx.events.live.text import POLL, LiveReading, LiveText, Resumed
from acep_approx.events.reading.formats.json import JsonFormat
from acep_approx.events.reading.layout import Layout
from acep_approx.events.reading.malformed import OFFSET, Row
from acep_approx.events.reading.text import TextFile
from acep_approx.events.roles import BROKER_TIME

if TYPE_CHECKING:
    from confluent_kafka import Message

COLUMNS = pa.schema(
    [
        ("kafka_key", pa.string()),
        (BROKER_TIME, pa.timestamp("ms", tz="UTC")),
        ("kafka_partition", pa.int64()),
        ("kafka_offset", pa.int64()),
    ]
)
"""What the broker knows of a message."""
HEADER = "kafka_header_"
"""How the columns of headers begin."""
ID = re.compile(r"[A-Za-z0-9+/]{22}")
"""The id of a topic: 128 bits as text."""
AS_JSON = (
    "messages are read as JSON objects in UTF-8; what is written otherwise can be passed on, one on a line: kcat -C -b "
    "BROKER -t TOPIC | acep run QUERY -"
)
"""What can be done about messages that are none."""
ROW = " acep row"
"""A field that is put into each object, so that rows are known again where some cannot be read."""


@dataclass(frozen=True)
class _Piece:
    """Messages that came together.

    ``offsets`` has the next message of partitions when these are run; of ``ends`` all is read then that is there.
    """

    messages: list[Message]
    columns: pa.RecordBatch
    offsets: dict[int, int]
    ends: set[int]


@dataclass(frozen=True)
class PartitionNews:
    """What has become of the partitions of a topic.

    Parameters
    ----------
    begun : set of int
        Those whose messages begin to come: events of others should wait for them.
    ended : set of int
        Those of which all was read that is there: if that has no events, nothing should wait for them.
    """

    begun: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)


class KafkaMessages(LiveText):
    """The messages of a topic; see ``LiveText``.

    Parameters
    ----------
    topic : Topic
    layout : Layout
        How times are written.
    reading
        As for ``LiveText``.

    Attributes
    ----------
    tombstones : int
        Messages without a value, which are no events.

    Raises
    ------
    DataError
        ``ACEP-D059``: the objects have a field that is called as one of ``COLUMNS``.
    """

    def __init__(self, topic: Topic, layout: Layout, reading: LiveReading) -> None:
        name = topic.address.topic
        columns = reading.columns
        plain = JsonFormat(name, layout, is_one_each=True)
        super().__init__(name, plain if columns is None else columns.format(name, layout), reading)
        self._topic = topic
        self._beside = columns_of(topic.address.headers)
        self._next = 1
        self._held: dict[int, _Piece] = {}
        self._news = PartitionNews()
        self.tombstones = 0

    @property
    def partitions(self) -> int:
        """How many partitions are read."""
        return len(self._topic.offsets)

    def news(self) -> PartitionNews:
        """What has become of partitions since it was asked last, when all that was given has been run."""
        news, self._news = self._news, PartitionNews()
        news.begun.update(self._topic.taken_news())
        return news

    @property
    def lag(self) -> tuple[int, str] | None:
        """How much is there that was not read yet, and in what it is counted."""
        behind = self._topic.lag
        return None if behind is None else (behind, "message")

    def close(self) -> None:
        """Let go of the broker; a group is told how far messages have been run."""
        self._topic.close()

    def _pieces(self) -> Generator[Block]:
        while not self.pace.is_stopped:
            messages = self._topic.more(POLL)
            if messages:
                self.pace.heard()
            if messages or (self._topic.ends and not self._held):
                yield self._piece(messages)
                continue
            if not self._topic.is_at_end:
                self.pace.heard()  # an outage, too, is no sign that nothing comes
            elif self.pace.is_over():
                return
            self._say_waiting()
            self.pace.border()

    def _with_marks(self, text: pa.Schema) -> pa.Schema:
        return text.append(pa.field(ROW, pa.int64()))

    def _piece(self, messages: list[Message]) -> Block:
        first, self._next = self._next, self._next + max(len(messages), 1)
        offsets = {message.partition(): (message.offset() or 0) + 1 for message in messages}
        ends, self._topic.ends = self._topic.ends, {}
        offsets |= {number: max(offsets.get(number, 0), end) for number, end in ends.items()}
        lines = [as_line(row, message.value()) for row, message in enumerate(messages, first)]
        self._held[first] = _Piece(messages, self._columns(messages), offsets, set(ends))  # type: ignore[arg-type]
        return Block(first, b"".join(lines))

    def _columns(self, messages: list[Message]) -> pa.RecordBatch:
        times = [message.timestamp() for message in messages]
        stamps = pa.array([time if kind else None for kind, time in times], pa.int64())
        arrays = [
            pa.array([as_text(message.key()) for message in messages], pa.string()),
            stamps.cast(COLUMNS.field(BROKER_TIME).type),
            pa.array([message.partition() for message in messages], pa.int64()),
            pa.array([message.offset() for message in messages], pa.int64()),
        ]
        headers = self._topic.address.headers
        found = [dict(message.headers() or ()) for message in messages] if headers else []
        arrays += [pa.array([as_text(one.get(name)) for one in found], pa.string()) for name in headers]
        return pa.RecordBatch.from_arrays(arrays, schema=self._beside)

    def _taken(self, piece: Block) -> None:
        held = self._held.pop(piece.line)
        self.tombstones += sum(message.value() is None for message in held.messages)
        self._topic.taken(held.offsets)
        self._news.ended.update(held.ends)

    def _has_news(self) -> bool:
        return self.partitions > 1 and bool(self._news.ended)

    def _place(self) -> dict[str, Any]:
        return {
            "kind": "kafka",
            "topic": self._topic.address.topic,
            "offsets": {str(number): offset for number, offset in self._topic.offsets.items()},
            "tombstones": self.tombstones,
            **({} if self._topic.id is None else {"id": self._topic.id}),
        }

    def _row(self, piece: Block, row: bytes, line: int) -> Row:
        message = self._held[piece.line].messages[line - piece.line]
        file, text = f"{self._name}[{message.partition()}]", (message.value() or row).decode(errors="backslashreplace")
        return Row(file, message.offset() or 0, text, OFFSET)

    def _text_of(self, sample: Block | None, place: Callable[[bytes, int], Row] | None = None) -> TextFile:
        try:
            return super()._text_of(sample, place or self._awaited)
        except DataError as error:
            if error.code == "ACEP-D021":
                error.hint = AS_JSON
            raise

    def _awaited(self, row: bytes, line: int) -> Row:
        """A message of those that types are inferred from, by its number among them, from 1."""
        for piece in self._waiting:
            if line <= (messages := len(self._held[piece.line].messages)):
                return self._row(piece, row, piece.line + line - 1)
            line -= messages
        raise AssertionError("all of them are held")

    def _shown(self, text: pa.Schema) -> pa.Schema:
        return with_columns(text, self._beside, self._name)

    def _text_columns(self, columns: Sequence[str], text: pa.Schema) -> list[str]:
        return [*(name for name in columns if name in text.names), ROW]

    def _with_more(self, batch: pa.RecordBatch, columns: Sequence[str], piece: Block) -> pa.RecordBatch:
        import pyarrow.compute as pc

        places = pc.subtract(batch.column(ROW), piece.line)
        known = self._held[piece.line].columns
        arrays = [
            known.column(name).take(places) if name in self._beside.names else batch.column(name) for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def columns_of(headers: Sequence[str]) -> pa.Schema:
    """Return the columns that messages have beside the fields of their objects.

    Examples
    --------
    >>> columns_of(["trace"]).names
    ['kafka_key', 'kafka_time', 'kafka_partition', 'kafka_offset', 'kafka_header_trace']
    """
    return pa.schema([*COLUMNS, *((f"{HEADER}{name}", pa.string()) for name in headers)])


def with_columns(text: pa.Schema, beside: pa.Schema, topic: str) -> pa.Schema:
    """Return the fields of objects and the columns beside them as one schema.

    Raises
    ------
    DataError
        ``ACEP-D059``: a field is called as one of these columns.
    """
    for name in beside.names:
        if name in text.names:
            raise DataError(
                f"the messages of {topic} have a field {name!r}, which is also what Kafka knows of them",
                code="ACEP-D059",
                hint="give the field another name",
            )
    return pa.schema([*(field for field in text if field.name != ROW), *beside])


def as_line(row: int, value: bytes | None) -> bytes:
    r"""Return a message as a line, with its number as one more field; a value that is no object stays as it is.

    A tombstone is a blank line, which is no event.

    Examples
    --------
    >>> as_line(3, b'{"ts": 1}'), as_line(4, b"hello"), as_line(5, None)
    (b'{" acep row": 3, "ts": 1}\n', b'hello\n', b'\n')
    """
    if value is None:
        return b"\n"
    text = value.removeprefix(BYTE_ORDER_MARK).strip().replace(b"\n", b" ").replace(b"\r", b" ") or b'""'
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return b'"not UTF-8"\n'
    if not text.startswith(b"{"):
        return text + b"\n"
    rest = text[1:].lstrip()
    return b'{"%s": %d%s%s\n' % (ROW.encode(), row, b"" if rest.startswith(b"}") else b", ", rest)


def as_text(given: bytes | str | None) -> str | None:
    r"""Return the text of a key or a header; bytes that are no text are written as ``\xff``."""
    return given.decode(errors="backslashreplace") if isinstance(given, bytes) else given


def place_in(resumed: Resumed | None, topic: str) -> TopicPlace | None:
    """Where an earlier run has ended in a topic.

    Raises
    ------
    ValueError
        It is no place in this topic.
    """
    if resumed is None:
        return None
    place = resumed.place
    offsets, name = place.get("offsets"), place.get("id")
    if place.get("kind") != "kafka" or place.get("topic") != topic or not isinstance(offsets, dict):
        raise ValueError("not the place in this topic")
    if not all(str(number).isdigit() and isinstance(offset, int) and offset >= 0 for number, offset in offsets.items()):
        raise ValueError("not the offsets of partitions")
    if name is not None and not (isinstance(name, str) and ID.fullmatch(name)):
        raise ValueError("not the id of a topic")
    return TopicPlace({int(number): offset for number, offset in offsets.items()}, name)
