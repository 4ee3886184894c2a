"""CSV and JSON lines as record batches, block by block, with the rows that cannot be read singled out."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from itertools import accumulate

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.blocks import BLOCK_BYTES, Block, Readable, blocks, decodable
from acep_approx.events.columns import plain_schema, to_arrow
from acep_approx.events.reading.formats.csv import CsvFormat
from acep_approx.events.reading.formats.json import JsonFormat
from acep_approx.events.reading.formats.json_documents import Document
from acep_approx.events.reading.formats.log_lines import LinesFormat
from acep_approx.events.reading.formats.readings import TextFormat, impossible, in_order
from acep_approx.events.reading.layout import Layout, Stored, Understood
from acep_approx.events.reading.malformed import LEAVE_OUT, MalformedRows, Row
from acep_approx.events.reading.widening import one_table, wider_text, with_marks
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.times_in_order import TimesInOrder

Report = Callable[[bytes, int, str], None]
"""Is told of a row that cannot be read: the row, its line, and why."""


def text_format(
    kind: str, name: str, layout: Layout, stored: Stored, document: Document | None = None
) -> TextFormat:
    """The way in which a text file is written.

    Parameters
    ----------
    kind : str
        ``csv``, ``jsonl``, ``json`` or ``lines``.
    name : str
        File name for messages.
    layout : Layout
        What is said of it.
    stored : Stored
        How the bytes lie in the file.
    document : Document, optional
        What JSON is, if it is no lines.
    """
    if kind == "lines":
        return LinesFormat(name, layout, stored)
    return CsvFormat(name, layout, stored) if kind == "csv" else JsonFormat(name, layout, stored, document)


class TextFile:
    """One file (or standard input) of CSV or JSON lines.

    Parameters
    ----------
    name : str
        File name for messages.
    opener : callable
        Gives the stream of (decompressed) bytes as a context manager; called once per pass.
    format : TextFormat
        How rows are written; one object per file.
    malformed : MalformedRows
        Told of rows that cannot be read.
    sample : Block, optional
        The header and the rows that types are inferred from. Default: the first block.
    place : callable, optional
        Says where a row of a line stands. Default: there, in the file.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns and the types inferred from the sample; ``null`` where that has no value.
    order : TimesInOrder
        What is known of the times of earlier rows, in this pass, also in files before this one.
    """

    rows: int | None = None

    def __init__(
        self,
        name: str,
        opener: Callable[[], AbstractContextManager[Readable]],
        format: TextFormat,  # noqa: A002  (the word of the public interface)
        malformed: MalformedRows,
        sample: Block | None = None,
        place: Callable[[bytes, int], Row] | None = None,
    ) -> None:
        self.name = name
        self._place = place
        self._opener = opener
        self._format = format
        self._malformed = malformed
        self._rows: TextRows | None = None
        self._start = 0  # of the rows that were read together the first one in the batch given last
        self.order = TimesInOrder()
        self.schema = plain_schema(self._infer(sample), name)

    @property
    def understood(self) -> Understood:
        """How the file was read."""
        return self._format.understood

    def settle_times(self, times: dict[str, TimeFormat]) -> None:
        """Read columns of text that fit several formats of times in those that other files have decided on."""
        self._format.settle_times(times)
        types = {field.name: field.type for field in self.schema}
        self.schema = pa.schema((types | {name: self._format.type_of(name) for name in times}).items())

    def read(self, columns: Sequence[str], schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows, in order.

        Parameters
        ----------
        columns : sequence of str
            The columns wanted; names this file has not are left out.
        schema : pyarrow.Schema
            Types to read them as, until there are values that ask for wider ones.
        batch_rows : int
            At most so many rows per batch.

        Yields
        ------
        pyarrow.RecordBatch
            Never empty.
        """
        known = set(self.schema.names)
        here = [name for name in columns if name in known]
        wanted = pa.schema([schema.field(name) for name in here or self.schema.names[:1]])
        self._rows = rows = TextRows(self._format, wanted, self._report)
        for block in self._blocks():
            body = self._format.after_header(self._decodable(block, self._report))
            for read in rows.parse(self._closed(body) if block.is_open and body.data else body):
                batch = rows.ordered(read, self.order)
                for self._start in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(self._start, batch_rows)

    def where(self, row: int) -> Row | None:
        """Where a row of the batch given last stands."""
        found = self._rows and self._rows.standing(self._start + row)
        return self._row(*found) if found else None

    def _closed(self, block: Block) -> Block:
        """The block without its last row, whose quote is not closed: all lines behind it would be a value."""
        *rows, last = self._format.rows(block.data)
        data = b"".join(rows)
        self._report(last, block.line + data.count(b"\n"), "a double quote opens a value, and none closes it")
        return Block(block.line, data)

    def _blocks(self) -> Generator[Block, None, None]:
        with self._opener() as stream:
            is_checked = self._malformed.policy == "refuse"
            yield from blocks(stream, self.name, quotes=self._format.quotes, size=BLOCK_BYTES, is_checked=is_checked)

    def _decodable(self, block: Block, report: Report) -> Block:
        """The block without rows that are not UTF-8; where such are refused, they have been."""
        return block if self._malformed.policy == "refuse" else decodable(block, self.name, self._format.rows, report)

    def _infer(self, first: Block | None) -> pa.Schema:
        if first is None:
            with closing(self._blocks()) as stream:
                first = next(stream, None)
        if first is None:
            return self._format.empty_schema()
        first = self._decodable(first, lambda *_: None)  # they are told of when they are read
        self._format.read_header(first)
        block = self._format.after_header(first)
        data = block.data
        try:
            return self._decided(data)
        except pa.ArrowInvalid:
            return self._decided(b"".join(self._inferable(block)))

    def _decided(self, data: bytes) -> pa.Schema:
        schema = self._format.infer(data)
        return self._format.infer(data) if self._format.decide(data, schema) else schema

    def _inferable(self, block: Block) -> list[bytes]:
        """The longest run of first rows whose types agree, without rows that cannot be read even alone.

        Rows whose types differ from these are reported when they are read; here only a file of which nothing
        can be read, or whose malformed rows are refused, is an error.
        """
        rows, line = [], block.line
        for row in self._format.rows(block.data):
            try:
                self._format.infer(row)
                rows.append(row)
            except pa.ArrowInvalid as error:
                if self._malformed.policy == "refuse":
                    self._report(row, line, _plain_words(str(error)))
            line += row.count(b"\n")
        if not rows:
            raise DataError(
                f"{self.name}: not one row can be read",
                code="ACEP-D021",
                hint="is it in the right format? --input-format csv|jsonl|parquet (format='...' in Python)",
            )
        low, high = 1, len(rows)
        while high > low:
            middle = (low + high + 1) // 2
            try:
                self._format.infer(b"".join(rows[:middle]))
                low = middle
            except pa.ArrowInvalid:
                high = middle - 1
        return rows[:low]

    def _report(self, row: bytes, line: int, reason: str) -> None:
        self._malformed.add(self._row(row, line), reason)

    def _row(self, row: bytes, line: int) -> Row:
        if self._place is not None:
            return self._place(row, line)
        return Row(self.name, line, row.decode(errors="backslashreplace").rstrip("\r\n"), self._format.row_word)


class TextRows:
    """One pass over the rows of a file: some columns, with types that become wider as values ask for it.

    Parameters
    ----------
    format : TextFormat
    wanted : pyarrow.Schema
        The columns, and their types so far.
    report : callable
        Told of rows that cannot be read: the row, its line, and why.
    has_fixed_types : bool, default False
        Whether a row is reported, too, whose values ask for wider types.
    """

    def __init__(
        self,
        format: TextFormat,  # noqa: A002
        wanted: pa.Schema,
        report: Report,
        *,
        has_fixed_types: bool = False,
    ) -> None:
        self._format = format
        self._wanted = wanted
        self._has_fixed_types = has_fixed_types
        self._told = report
        self._as_written = pa.schema([])
        self._block = Block(1, b"")  # the rows of the batch given last, and those that were left out
        self._gone: set[int] = set()  # lines of these
        self._lines: list[tuple[bytes, int]] | None = None

    def parse(self, block: Block) -> Iterator[pa.RecordBatch]:
        """The rows of a block that can be read."""
        line, before = block.line, b""
        for data in self._format.pieces(block.data, len(self._wanted)):
            line, before = line + before.count(b"\n"), data
            self._block, self._gone, self._lines = Block(line, data), set(), None
            fitting, others = self._format.sorted_out(data)
            rows = self._format.rows(data) if others else []
            for row in others:
                self._report(rows[row], line + row, "the line does not fit the format")
            for batch in self._parse(fitting):
                yield with_marks(batch, self._as_written)

    def ordered(self, batch: pa.RecordBatch, order: TimesInOrder) -> pa.RecordBatch:
        """The rows of the batch given last, with times that need those before them; others have none in the calendar.

        Raises
        ------
        DataError
            As ``TimesInOrder.resolved``, with the place of the row, where such rows are refused.
        """
        times = self._format.times
        if not any(written.is_in_order for written in times.values()):
            return batch
        before = order.state
        try:
            return in_order(batch, times, order)
        except DataError as error:
            order.go_back(before)
            wrong = impossible(batch, times, order)
            if not wrong.any():
                raise
            lines = [self.standing(row) for row in np.flatnonzero(wrong).tolist()]
            for found in filter(None, lines):
                try:
                    self._report(*found, error.message)
                except DataError as refused:
                    hint = f"{error.hint}; or {LEAVE_OUT}"
                    raise DataError(refused.message, code=error.code, hint=hint) from error
            return in_order(batch.take(to_arrow(np.flatnonzero(~wrong))), times, order)

    def standing(self, row: int) -> tuple[bytes, int] | None:
        """A row of the batch given last as it stands in the text, and its line; None: that is not known."""
        if self._lines is None:
            self._lines = [found for found in self._standing() if self._is_event(found[0])]
        return self._lines[row] if row < len(self._lines) else None

    def _standing(self) -> list[tuple[bytes, int]]:
        rows = self._format.rows(self._block.data)
        lines = accumulate((row.count(b"\n") for row in rows), initial=self._block.line)
        return [(row, line) for row, line in zip(rows, lines, strict=False) if line not in self._gone]

    def _is_event(self, row: bytes) -> bool:
        if row.strip():
            return True
        return bool(row.strip(b"\r\n")) and self._format.parse(row, self._wanted).num_rows > 0

    def _report(self, row: bytes, line: int, reason: str) -> None:
        self._told(row, line, reason)
        self._gone.add(line)
        self._lines = None

    def _parse(self, data: bytes) -> list[pa.RecordBatch]:
        try:
            batch = self._format.parse(data, self._wanted)
        except pa.ArrowInvalid:
            batches: list[pa.RecordBatch] = []
            self._widen(data)
            self._salvage(self._standing(), batches)
            return one_table(batches).combine_chunks().to_batches() if batches else []
        return [batch] if batch.num_rows else []

    def _widen(self, data: bytes) -> bool:
        if self._has_fixed_types:
            return False
        try:
            found = self._format.infer(data)
        except pa.ArrowInvalid:
            return False
        here = {field.name: field for field in found}
        types = {f.name: wider_text(f.type, here.get(f.name, f)) or f.type for f in self._wanted}
        wider = pa.schema(types.items())
        is_wider = not wider.equals(self._wanted)
        changed = [f.name for f in self._wanted if pa.types.is_integer(f.type) and pa.types.is_string(types[f.name])]
        self._as_written = pa.schema([*self._as_written, *(here[name] for name in changed)])
        self._wanted = wider
        return is_wider

    def _salvage(self, rows: list[tuple[bytes, int]], good: list[pa.RecordBatch]) -> None:
        """Read what can be read, by halving: the parser does not say which row of a block it refuses."""
        try:
            batch = self._format.parse(b"".join(row for row, _ in rows), self._wanted)
        except pa.ArrowInvalid as error:
            if len(rows) > 1:
                middle = len(rows) // 2
                self._salvage(rows[:middle], good)
                self._salvage(rows[middle:], good)
            elif self._widen(rows[0][0]):
                self._salvage(rows, good)
            else:
                self._report(*rows[0], self._reason(rows[0][0], str(error)))
        else:
            if batch.num_rows:
                good.append(batch)

    def _reason(self, row: bytes, message: str) -> str:
        if "conver" in message:  # "CSV conversion error", "Failed to convert JSON"
            for field in self._wanted:
                try:
                    self._format.parse(row, pa.schema([field]))
                except pa.ArrowInvalid:
                    where = "" if self._has_fixed_types else " in the first rows"
                    return f"column {field.name!r} is {field.type}{where}, and this value is not"
        return _plain_words(message)


def _plain_words(message: str) -> str:
    """The parser's message without its own prefix, its row number within the block, and the row itself."""
    message = re.sub(r"^(CSV|JSON) parse error: ", "", message)
    message = re.sub(r" in row \d+$", "", message)
    return re.sub(r"^(?:Row #\d+: )?(Expected \d+ columns, got \d+): .*", r"\1", message, flags=re.DOTALL)
