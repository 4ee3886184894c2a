"""Events that arrive on standard input as text: each is there as soon as its line has come."""

from __future__ import annotations

import io
import logging
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from acep_approx.errors import AcepError, DataError, QueryError
from acep_approx.events.blocks import (
    BLOCK_BYTES,
    BYTE_ORDER_MARK,
    LONGEST_ROW,
    UNREADABLE,
    Block,
    blocks,
    checked,
    decodable,
    last_line_end,
    unreadable,
)
from acep_approx.events.reading.decoding import (
    HEAD_BYTES,
    MARKS,
    PARQUET,
    compression_of,
    encoding_of,
    in_utf8,
    inflated,
)
from acep_approx.events.reading.files import (
    FileEvents,
    ParquetFile,
    as_lines,
    check_layout,
    format_of,
    lines_or_objects,
    standard_input,
)
from acep_approx.events.reading.formats.csv_headers import TITLES
from acep_approx.events.reading.formats.json_documents import HEAD_BYTES as DOCUMENT_BYTES
from acep_approx.events.reading.formats.json_documents import document_of, starts_array
from acep_approx.events.reading.formats.readings import TextFormat
from acep_approx.events.reading.layout import Layout, Stored, Understood
from acep_approx.events.reading.malformed import MalformedRows, Row
from acep_approx.events.reading.text import TextFile, text_format

LOG = logging.getLogger("acep_approx.waiting")
NOT_ONE_ROW = "ACEP-D021"
"""Of all rows so far none can be read."""
MISSING = ("ACEP-D002", "ACEP-D008", "ACEP-Q060")
"""Errors that say that a column is not there."""
Bound = TypeVar("Bound")
FIRST_BYTES = 1 << 16
"""What is read at once to tell the format."""
PIPE_BYTES = 1 << 20
"""What a pipe is asked to hold, so that its writer can go on while we match. By default it holds 64 KiB."""


def open_stdin(
    format: str | None,  # noqa: A002
    malformed: MalformedRows,
    layout: Layout,
) -> FileEvents | ArrivingEvents:
    """Standard input as a reader that can be read once; text is streamed, Parquet is read whole first.

    Parameters
    ----------
    format : str or None
        None: told from the first bytes (Parquet's mark, ``{`` for JSON lines, else CSV).
    malformed : MalformedRows
        Told of rows that cannot be read.
    layout : Layout
        What is said of how it is written.

    Returns
    -------
    FileEvents or ArrivingEvents
        Named ``standard input``.
    """
    return _opened("standard input", standard_input(), format, malformed, layout)


def is_pipe(path: str | Path) -> bool:
    """Whether a path can be read once only: a named pipe, ``/dev/stdin``, ``<(...)`` of a shell."""
    try:
        return Path(path).is_fifo() or Path(path).is_char_device() or Path(path).is_socket()
    except OSError:  # no name of a file, which is told when it is opened
        return False


def open_pipe(
    path: Path,
    format: str | None,  # noqa: A002
    malformed: MalformedRows,
    layout: Layout,
) -> FileEvents | ArrivingEvents:
    """What ``is_pipe`` says as a reader, as ``open_stdin``; the format may also be told from its name."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise unreadable(str(path), error) from error
    return _opened(str(path), stream, format or format_of(path), malformed, layout)


def _opened(
    name: str,
    piped: io.BufferedReader,
    format: str | None,  # noqa: A002
    malformed: MalformedRows,
    layout: Layout,
) -> FileEvents | ArrivingEvents:
    stream = Arriving(piped, _number(piped))
    try:
        compression = compression_of(_head(stream), name)
        if compression is not None:
            stream = Arriving(inflated(stream, compression, name), stream.number)
        stored = Stored(compression, encoding_of(_head(stream) if compression else stream.ahead, layout.encoding, name))
        if stored.encoding != "utf-8":
            stream = Arriving(in_utf8(stream, stored.encoding, name), stream.number)
        start = stream.peek(len(PARQUET)).removeprefix(BYTE_ORDER_MARK).lstrip()
    except UNREADABLE as error:
        raise unreadable(name, error) from error
    sniffed = "parquet" if start.startswith(PARQUET) else "jsonl" if start[:1] in (b"{", b"[") else "csv"
    format = format or sniffed  # noqa: A001
    check_layout(format, name, layout)
    if format == "parquet":
        return FileEvents([ParquetFile(name, pa.BufferReader(stream.read_all()))], reusable=False)
    document = None
    if format in ("json", "jsonl"):
        is_array = starts_array(stream.ahead)
        if format == "json" and not is_array:
            document = document_of(stream.peek(DOCUMENT_BYTES))
        else:
            document = document_of(stream.ahead) if is_array else lines_or_objects(stream.ahead)
        stream = Arriving(as_lines(stream, document, name), stream.number)
    return ArrivingEvents(name, stream, text_format(format, name, layout, stored, document), malformed)


def _head(stream: Arriving) -> bytes:
    return stream.peek(max(map(len, MARKS.values())))[:HEAD_BYTES]


class Arriving:
    """Bytes as they come: a read waits for the first of them, then takes what else is there by now.

    Parameters
    ----------
    stream : buffered binary file
        Read to its end, never closed.
    number : int or None
        Of the file: with it the system can be asked if more is there. None: it cannot.

    Attributes
    ----------
    ahead : bytes
        What has come, and was not read.
    """

    def __init__(self, stream: Any, number: int | None) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self.ahead = b""
        self._has_ended = False
        self.number = number
        if number is not None:
            with suppress(ImportError, OSError):  # no pipe, or a system that cannot do this
                from fcntl import F_SETPIPE_SZ, fcntl

                fcntl(number, F_SETPIPE_SZ, PIPE_BYTES)

    def peek(self, size: int) -> bytes:
        """The first bytes, ``size`` of them and more, blanks at the begin not counted; fewer if it ends there."""
        while len(self.ahead.lstrip()) < size and (more := self._next(FIRST_BYTES)):
            self.ahead += more
        return self.ahead

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        """At least one byte, and ``size`` at most; none at the end."""
        pieces = [self.ahead[:size] or self._next(size)]
        self.ahead = self.ahead[size:]
        got = len(pieces[0])
        while got < size and self._has_more() and (more := self._next(size - got)):
            pieces.append(more)
            got += len(more)
        return b"".join(pieces)

    def unread(self, data: bytes) -> None:
        """Let these bytes be read once more, before all others."""
        self.ahead = data + self.ahead

    def read_all(self) -> bytes:
        """Everything up to the end."""
        return b"".join(iter(self.read, b""))

    def _next(self, size: int) -> bytes:
        """Wait for some bytes; none at the end, which is asked for once: a terminal would go on after it."""
        data = b"" if self._has_ended else self._read(size)
        self._has_ended = not data
        return data

    @property
    def would_wait(self) -> bool:
        """Whether it is known that a read would wait."""
        return not (self.ahead or self._has_ended or self.number is None or self._has_more())

    def _has_more(self) -> bool:
        return self.number is not None and bool(select.select([self.number], [], [], 0)[0])


def _number(stream: io.BufferedReader) -> int | None:
    """The number under which the system knows a file, if it can be asked whether there is something to read."""
    try:
        number = stream.fileno()
        select.select([number], [], [], 0)
    except (OSError, ValueError):
        return None
    return number


class ArrivingEvents:
    """CSV or JSON lines as they arrive; can be read once.

    Parameters
    ----------
    name : str
        For messages.
    stream : Arriving
    format : TextFormat
    malformed : MalformedRows
        Told of rows that cannot be read.

    Notes
    -----
    Types are inferred from the first rows. ``settle`` takes as few of them as it can, so that the first event does not
    wait for others; ``schema`` takes 4 MiB of them, as for a file. How many rows ``settle`` takes depends on the rows
    alone, not on the pieces in which they come.
    """

    rows: int | None = None
    reusable = False

    def __init__(self, name: str, stream: Arriving, format: TextFormat, malformed: MalformedRows) -> None:  # noqa: A002
        self._name = name
        self._format = format
        self._malformed = malformed
        self._stream = stream
        self._head = b""
        self._has_ended = False
        self._events: FileEvents | None = None
        self._bind: Callable[[pa.Schema], object] | None = None
        self._has_reported = False

    @property
    def understood(self) -> Understood:
        """How the input is read, as far as that is known: after ``settle``, or when the columns were asked for."""
        return self._format.understood

    @property
    def notes(self) -> list[str]:
        """What is to be said of it."""
        return self.understood.notes

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types: as ``settle`` has found them, else by the first 4 MiB."""
        if self._events is None:
            while self._more():
                pass
            self._events = self._typed_by(self._whole())
        return self._events.schema

    def settle(self, bind: Callable[[pa.Schema], Bound]) -> Bound:
        """What ``bind`` makes of the columns, as soon as so many rows have come that it does not refuse them.

        Parameters
        ----------
        bind : callable
            Raises ``DataError`` or ``QueryError`` where it lacks a column, or one is of the wrong type.
        """
        self._bind = bind
        try:
            refused = 0
            while True:
                rows = self._format.rows(self._whole())
                least = max(self._least(rows), refused + 1)
                if refused < least <= len(rows):
                    found = self._fitting(rows, least, bind)
                    if found is not None:
                        return found
                    refused = len(rows)
                if not self._more():
                    return bind(self.schema)
        finally:
            self._bind = None

    def _shown(self, text: pa.Schema) -> pa.Schema:
        return text

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``, as they come."""
        assert self._events is not None, "ask for the schema first"
        self._stream.unread(self._head)
        self._head = b""
        yield from self._events.read(columns, batch_rows)

    def where(self, row: int) -> Row | None:
        """Where a row of the batch given last stands."""
        return None if self._events is None else self._events.where(row)

    def _more(self) -> bool:
        """Wait for more of the first 4 MiB, or of the first row, if that is longer; whether there is any."""
        if len(self._head) >= BLOCK_BYTES and (self._whole() or len(self._head) > LONGEST_ROW):
            return False
        if self._stream.would_wait:
            self._report_refusal()
        try:
            more = self._stream.read()
        except UNREADABLE as error:
            raise unreadable(self._name, error) from error
        self._head += more
        self._has_ended = not more
        return bool(more)

    def _whole(self) -> bytes:
        return self._head if self._has_ended else self._head[: last_line_end(self._head, quotes=self._format.quotes)]

    def _has_event(self) -> bool:
        rows = self._format.rows(self._whole())
        return bool(rows) and self._least(rows) <= len(rows)

    def _report_refusal(self) -> None:
        if self._bind is None or self._has_reported or not self._has_event():
            return
        try:
            schema = self._shown(self._typed_by(self._whole()).schema)
        except DataError as error:
            if error.code == NOT_ONE_ROW and self._malformed.policy == "skip":
                return  # rows that can be read may come
            raise
        try:
            self._bind(schema)
        except (DataError, QueryError) as error:
            is_untimed = error.code == "ACEP-D001" and not any(map(pa.types.is_null, schema.types))
            if self._format.has_fixed_columns and (error.code in MISSING or is_untimed):
                raise  # no other columns come
            self._has_reported = True
            LOG.warning("waiting for other events: %s", AcepError.__str__(error))

    def _least(self, rows: list[bytes]) -> int:
        """How many rows it takes to have one that is an event; more than there are where none has come."""
        ahead = next((place for place, row in enumerate(rows) if not self._format.is_ahead(row)), len(rows))
        refusal = None
        for number in range(ahead + 1, len(rows) + 1):
            if not rows[number - 1].strip():
                continue
            block = self._readable(Block(1, b"".join(rows[:number])))
            try:
                self._format.read_header(block)
            except DataError as error:  # titles alone are no header, which a row below may be
                if number > ahead + TITLES + 1:
                    raise
                refusal = error
            else:
                if self._format.after_header(block).data.strip():
                    return number
                refusal = None
        if refusal is not None and self._has_ended:
            raise refusal
        return len(rows) + 1

    def _readable(self, block: Block) -> Block:
        if self._malformed.policy == "refuse":
            return checked(block, self._name)
        return decodable(block, self._name, self._format.rows, lambda *_: None)

    def _fitting(self, rows: list[bytes], least: int, bind: Callable[[pa.Schema], Bound]) -> Bound | None:
        found = self._tried(rows[:least], bind)
        if found is not None or len(rows) == least or self._tried(rows, bind) is None:
            return found
        low, high = least, len(rows)  # the first is refused, the last is not
        while high > low + 1:
            middle = (low + high) // 2
            if self._tried(rows[:middle], bind) is None:
                low = middle
            else:
                high = middle
        return self._tried(rows[:high], bind)

    def _tried(self, rows: list[bytes], bind: Callable[[pa.Schema], Bound]) -> Bound | None:
        try:
            events = self._typed_by(b"".join(rows))
            found = bind(self._shown(events.schema)) if len(events.schema) else None
        except (DataError, QueryError):
            return None
        if found is not None:
            self._events = events
        return found

    def _typed_by(self, data: bytes) -> FileEvents:
        is_checked = self._malformed.policy == "refuse"
        read = blocks(io.BytesIO(data), self._name, quotes=self._format.quotes, is_checked=is_checked)
        return FileEvents([self._text_of(next(read, None))], reusable=False)

    def _text_of(self, sample: Block | None, place: Callable[[bytes, int], Row] | None = None) -> TextFile:
        return TextFile(self._name, lambda: nullcontext(self._stream), self._format, self._malformed, sample, place)
