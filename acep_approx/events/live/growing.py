"""Files of text that grow: CSV and JSON lines, as whole lines come."""

from __future__ import annotations

import io
import logging
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from acep_approx.errors import DataError, UsageError
from acep_approx.events.blocks import BYTE_ORDER_MARK, FIRST_BYTES, LONGEST_ROW, Block, checked, last_line_end, too_long
from acep_approx.events.live.followed_path import FollowedPath, to_json
from acep_approx.events.live.text import LiveReading, LiveText
from acep_approx.events.reading.formats.csv import CsvFormat
from acep_approx.events.reading.formats.csv_headers import LOOKED_AT, find_header
from acep_approx.events.reading.formats.json import JsonFormat
from acep_approx.events.reading.formats.json_documents import is_whole_document
from acep_approx.events.reading.formats.readings import TextFormat

LOG = logging.getLogger("acep_approx.live")


class GrowingText(LiveText):
    """The rows of a file that grows, or of the files of a folder; see ``LiveText`` and ``FollowedPath``.

    Parameters
    ----------
    followed : FollowedPath
    format, reading
        As for ``LiveText``.

    Notes
    -----
    A line counts once it has its end. What stands behind the last line end of a file counts, too, when another file
    takes its place; else it waits, and is told when the run ends.
    """

    def __init__(
        self,
        followed: FollowedPath,
        format: TextFormat,  # noqa: A002  (the word of the public interface)
        reading: LiveReading,
    ) -> None:
        super().__init__(followed.name, format, reading)
        self.is_one_file = False
        self._files = followed
        self._header = "" if reading.resumed is None else str(reading.resumed.place["header"])
        if self._header and isinstance(format, CsvFormat):  # it may be that of a later file
            self._takes_header(Block(1, self._header.encode()), format)

    @property
    def paths(self) -> list[Path]:
        """The file that is read."""
        return [Path(self._files.name)]

    @property
    def lag(self) -> tuple[int, str] | None:
        """How much is there that was not read yet, and in what it is counted."""
        behind = self._files.lag
        return None if behind is None else (behind, "byte")

    def _pieces(self) -> Generator[Block]:
        files, rest, is_replaced = self._files, b"", False
        line = files.line
        while True:
            if not self.pace.is_stopped and (data := files.more()):
                self.pace.heard()
                rest, line, block = self._cut(rest + data, line)
                if block is not None:
                    yield block
            elif is_replaced:  # and all that was written to it up to then has been read
                if rest:
                    yield self._checked(Block(line, rest))
                files.go_on()
                rest, line, is_replaced = b"", 1, False
                self._name = files.name
            elif files.has_next():
                if self.is_one_file:
                    raise UsageError(
                        f"{self._name} was replaced, and the run knows by their number which events it has seen",
                        code="ACEP-U145",
                        hint="with --store let all events stand in one file that only grows; or leave --store out",
                    )
                is_replaced = True
            elif self.pace.is_over():
                if rest:
                    LOG.warning("%s, line %d has no end yet, and was not read", files.name, line)
                return
            else:
                if files.lag is not None:
                    self._say_waiting()
                self.pace.border()
                self.pace.wait()

    def _cut(self, data: bytes, line: int) -> tuple[bytes, int, Block | None]:
        if line == 1 and isinstance(self._format, JsonFormat) and is_whole_document(data):
            raise DataError(
                f"{self._name}: a JSON document cannot be followed: it is whole only when its last bracket is written",
                code="ACEP-D055",
                hint="write an object on each line (.jsonl); or read the file when it is whole, without --follow",
            )
        cut = last_line_end(data, self._format.quotes)
        if not cut and len(data) > LONGEST_ROW:
            raise too_long(self._name, line)
        if not cut:
            return data, line, None
        whole = data[:cut]
        return data[cut:], line + whole.count(b"\n"), self._checked(Block(line, whole))

    def _checked(self, block: Block) -> Block:
        return checked(block, self._name) if self._malformed.policy == "refuse" else block

    def close(self) -> None:
        """Let go of the file."""
        self._files.close()

    def _is_new(self, piece: Block) -> bool:
        return piece.line == 1

    def _taken(self, piece: Block) -> None:
        self._files.passed(len(piece.data), piece.data.count(b"\n"))

    def _place(self) -> dict[str, Any]:
        return {"kind": "file", "file": to_json(self._files.place()), "header": self._header}

    def _body(self, piece: Block) -> Block:
        """The rows of a piece: the header of a file that takes the place of another one must have the same columns."""
        if piece.line != 1:
            return self._format.after_header(piece)
        piece = Block(1, piece.data.removeprefix(BYTE_ORDER_MARK))
        if isinstance(self._format, CsvFormat) and self._header and not self._takes_header(piece, self._format):
            return piece
        body = self._format.after_header(piece)
        self._header = self._ahead(piece, body.line - piece.line).decode()
        return body

    def _ahead(self, piece: Block, lines: int) -> bytes:
        """The lines of the header with the first row below it, by which they are understood as they are now."""
        rows = self._format.rows(piece.data[: piece.data.rfind(b"\n", 0, FIRST_BYTES) + 1])
        for number in range(lines, min(len(rows), lines + LOOKED_AT) + 1):
            head = b"".join(rows[:number])
            if self._format.after_header(Block(1, head)).data.strip():
                return head
        return b"".join(islice(io.BytesIO(piece.data), lines))

    def _all_pieces(self) -> Iterator[Block]:
        waiting = self._waiting
        if len(waiting) > 1:  # of one file, whose header may stand in several of them
            self._waiting = [Block(waiting[0].line, b"".join(piece.data for piece in waiting))]
        return super()._all_pieces()

    def _takes_header(self, piece: Block, format: CsvFormat) -> bool:  # noqa: A002
        """Whether a new file begins with a header; its columns may stand in another order."""
        assert format.header is not None, "a file was read before"
        if format.header.directives is not None:  # its lines of # are checked wherever they stand
            return True
        known = set(format.header.names)
        try:
            header = find_header(piece.data, self._name, format.header.delimiter, None)
        except DataError:  # its first line looks like an event
            header = None
        if header is not None and set(header.names) == known - {""} and header.lines == piece.data.count(b"\n"):
            header = replace(header, names=[*header.names, *{""} & known], is_spaced=format.header.is_spaced)
        new = set() if header is None else set(header.names)
        if header is None or not known & new:
            LOG.warning("%s has no header; its columns are taken to be those of the file before", self._name)
            return False
        if known - {""} != new - {""}:
            raise DataError(
                f"{self._name}: the new file has other columns: {', '.join(sorted(new ^ known))} only in one of them",
                code="ACEP-D056",
                hint="begin anew with the new file, or give it the columns of the one before",
            )
        format.header = header  # what was decided of the columns stays
        return True
