"""A stream of bytes as blocks of whole lines: checked, numbered, never the whole file at once."""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from acep_approx.errors import DataError, is_temporary

BLOCK_BYTES = 4 << 20
"""Size of a block. The first one also decides the types of the columns."""

FIRST_BYTES = 1 << 16
"""Of a block, in which values show what they can be."""
LONGEST_ROW = 64 << 20
"""Bytes from which on a row is taken for a mistake."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading bytes, compressed or not, can raise."""
_CLOSES = re.compile(rb'[^"]*(?:""[^"]*)*"(?!")')


class Readable(Protocol):
    """What blocks are cut from."""

    def read(self, size: int, /) -> bytes:
        """At most about so many bytes; none at the end."""
        ...


class Block(NamedTuple):
    """Whole lines of a file.

    ``line`` is the number of the first one, from 1. ``is_open``: a quote of its last row is never closed.
    """

    line: int
    data: bytes
    is_open: bool = False


def blocks(
    stream: Readable, name: str, *, quotes: bytes, size: int = BLOCK_BYTES, is_checked: bool = True
) -> Iterator[Block]:
    """Cut a stream into blocks of whole lines.

    Parameters
    ----------
    stream : binary file
        Read to its end, never closed. Where it gives less than it was asked for, the block is smaller.
    name : str
        File name for messages.
    quotes : bytes
        Delimiters after which a double quote opens a value: a line end up to the next one belongs to it (CSV). None:
        quotes mean nothing. With a blank among them blanks may stand before the quote.
    size : int
        Bytes per block. Default 4 MiB.
    is_checked : bool
        Whether bytes that are not UTF-8 are an error; see ``decodable``.

    Yields
    ------
    Block
        Non-empty; every one ends with a line end, except perhaps the last.

    Raises
    ------
    DataError
        ``ACEP-D013`` damaged compressed data; ``ACEP-D014`` not UTF-8; ``ACEP-D019`` a row of more than 64 MiB.
    """
    line, rest = 1, b""
    while data := _read(stream, name, size):
        data = rest + data
        if line == 1 and data.startswith(BYTE_ORDER_MARK):
            data = data[len(BYTE_ORDER_MARK) :]
        cut = last_line_end(data, quotes)
        rest = data[cut:]
        if cut:
            block = Block(line, data[:cut])
            yield checked(block, name) if is_checked else block
            line += data.count(b"\n", 0, cut)
        elif len(rest) > LONGEST_ROW:
            raise too_long(name, line)
    if rest:
        is_open = False
        if quotes and b'"' in rest:
            *_, last = quoted_rows(rest, quotes)
            is_open = _open_after(last, False, _opening(quotes))
        block = Block(line, rest, is_open)
        yield checked(block, name) if is_checked else block


def _read(stream: Readable, name: str, size: int) -> bytes:
    try:
        return stream.read(size)
    except UNREADABLE as error:
        raise unreadable(name, error) from error


def unreadable(name: str, error: Exception) -> DataError:
    """The error for bytes that cannot be had (``ACEP-D013``), to be raised by the caller."""
    passes = is_temporary(error)
    again = "try again when the disk, or the server that has it, answers"
    return DataError(
        f"{name}: cannot be read: {error or type(error).__name__}",
        code="ACEP-D013",
        hint=again if passes else "the file seems damaged or cut off: fetch or write it again",
        passes=passes,
    )


def too_long(name: str, line: int) -> DataError:
    """The error for a row of more than ``LONGEST_ROW`` (``ACEP-D019``), to be raised by the caller."""
    return DataError(
        f"{name}, line {line}: this row is longer than 64 MiB",
        code="ACEP-D019",
        hint="is this a text file of one event per line, and is every double quote closed?",
    )


def last_line_end(data: bytes, quotes: bytes) -> int:
    """Where the last whole row ends; 0 if there is none."""
    cut = data.rfind(b"\n") + 1
    if not quotes or b'"' not in data[:cut] or _are_pairs(data[:cut], quotes):
        return cut
    rows = list(quoted_rows(data, quotes))  # a value is open, or a quote is only a character
    complete = rows[-1].endswith(b"\n") and not _open_after(rows[-1], False, _opening(quotes))
    return len(data) if complete else len(data) - len(rows[-1])


def _are_pairs(data: bytes, quotes: bytes) -> bool:
    array = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(array == ord('"'))
    before = array[places[0::2] - 1]  # of a quote at the begin the last byte, which is a line end
    return len(places) % 2 == 0 and bool(np.isin(before, np.frombuffer(quotes + b'\n"', np.uint8)).all())


@lru_cache(maxsize=16)
def _opening(quotes: bytes) -> re.Pattern[bytes]:
    """Where a quote opens a value: at the begin of a line, and after a delimiter, or blanks behind it."""
    blanks = rb" *" if b" " in quotes else b""
    return re.compile(rb"(?:^|[" + re.escape(quotes.strip(b" ") or quotes) + rb"])" + blanks + b'"')


def quoted_rows(data: bytes, quotes: bytes) -> Iterator[bytes]:
    """Split CSV into rows; a line end between quotes does not end one. The last row may be incomplete."""
    lines: list[bytes] = []  # of a row; joined once: a quote that is never closed may hold very many
    inside, opens = False, _opening(quotes)
    for line in io.BytesIO(data):
        if b'"' in line:
            inside = _open_after(line, inside, opens)
        if inside:
            lines.append(line)
        elif lines:
            yield b"".join([*lines, line])
            lines = []
        else:
            yield line
    if lines:
        yield b"".join(lines)


def _open_after(line: bytes, inside: bool, opens: re.Pattern[bytes]) -> bool:
    """A quote within an unquoted value means nothing."""
    place = 0
    while True:
        found = (_CLOSES.match if inside else opens.search)(line, place)
        if found is None:
            return inside
        place, inside = found.end(), not inside


def checked(block: Block, name: str) -> Block:
    """The block, whose bytes are UTF-8 (``ACEP-D014`` where they are not)."""
    if block.data.isascii():
        return block
    try:
        block.data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = block.line + block.data.count(b"\n", 0, error.start)
        raise DataError(
            f"{name}, line {line}: byte 0x{block.data[error.start]:02x} is not UTF-8",
            code="ACEP-D014",
            hint="say how it is written: --encoding latin-1, or cp1252 of Windows (encoding='latin-1' of open_source)",
        ) from error
    return block


def decodable(
    block: Block, name: str, rows: Callable[[bytes], list[bytes]], report: Callable[[bytes, int, str], None]
) -> Block:
    """The block with blank lines in the place of rows that are not UTF-8, which are reported.

    Parameters
    ----------
    block : Block
    name : str
        Of the file, for messages.
    rows : callable
        Splits bytes into rows.
    report : callable
        Is told the row, its line, and why.

    Raises
    ------
    DataError
        ``ACEP-D014``: the first row of the file is not UTF-8, which may be a header.
    """
    try:
        checked(block, name)
    except DataError as refused:
        found, line = [], block.line
        for row in rows(block.data):
            try:
                row.decode()
                found.append(row)
            except UnicodeDecodeError as wrong:
                if line == 1:
                    raise refused from wrong
                found.append(b"\n" * row.count(b"\n"))
                report(row, line, f"byte 0x{row[wrong.start]:02x} is not UTF-8")
            line += row.count(b"\n")
        return Block(block.line, b"".join(found), block.is_open)
    return block
