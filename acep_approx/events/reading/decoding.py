"""The bytes of a file as it lies on a disk or comes in a pipe: what they are, uncompressed, and in UTF-8.

What is neither text nor Parquet is told from its first bytes, with what to do instead.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zipfile
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.blocks import UNREADABLE, unreadable
from acep_approx.events.reading.layout import Stored

_PANDAS = "write it as Parquet in Python: pandas.{read}.to_parquet('events.parquet'); or give the frame to query.match"
_CAPTURE = "write it as CSV: tshark -r FILE -T fields -E header=y -E separator=, -e frame.time_epoch -e ip.src > p.csv"
_ROWS = "write its elements as rows, in Python: pandas.read_xml('FILE').to_csv('events.csv', index=False)"
_XES = "write it as CSV, in Python: pm4py.convert_to_dataframe(pm4py.read_xes('FILE')).to_csv('events.csv')"
_BINARY = (
    (
        b"SQLite format 3\x00",
        "a database of SQLite",
        "write a table of it as CSV: sqlite3 -header -csv FILE 'SELECT * FROM events ORDER BY ts' > events.csv",
    ),
    (b"\x89HDF\r\n\x1a\n", "a file of HDF5", _PANDAS.format(read="read_hdf(FILE)")),
    (b"ORC", "a file of ORC", _PANDAS.format(read="read_orc(FILE)")),
    (b"ARROW1", "a file of Arrow (Feather)", _PANDAS.format(read="read_feather(FILE)")),
    (b"Obj\x01", "a file of Avro", "write it as Parquet or JSON lines"),
    (b"\x93NUMPY", "an array of numpy", "give it to query.match in Python: numpy.load(FILE), with names of columns"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook of Excel (xls)", "save the sheet as CSV, and name that file"),
    (b"ElfFile\x00", "a log of Windows (EVTX)", "write it as JSON lines: evtx_dump -o jsonl FILE > events.jsonl"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)", _CAPTURE),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)", _CAPTURE),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)", _CAPTURE),
    (b"LPKSHHRH", "a journal of systemd", "write it as JSON lines: journalctl --file FILE -o json > events.jsonl"),
    (b"%PDF-", "a PDF", "get the data as CSV or JSON where the document comes from"),
)
"""How files begin, what they are, and what to do."""
PARQUET = b"PAR1"
"""How this format begins."""
_JSON_BEGIN = re.compile(rb"""(\[\s*)?\{\s*("([^"\\]|\\.)*"\s*:|\}$)""")
_PAGES = (b"<!doctype html", b"<html")
_XML = (
    (b"<log", "XML (a log of XES)", _XES),
    (b"<svg", "XML (a drawing, SVG)", "give the data that it shows, as CSV or JSON"),
    (b"<rss", "XML (a feed, RSS)", _ROWS),
    (b"<feed", "XML (a feed, Atom)", _ROWS),
    (b"<events", "XML", _ROWS),
    (b"<event", "XML", _ROWS),
)
"""The first element of XML, what that is, and what to do."""
_PROLOG = re.compile(rb"(?is)\s*(<\?xml.*?\?>|<!--.*?-->|<!doctype.*?>|\s)*")
_PICKLE = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_TAR = b"ustar"
_TAR_AT = 257
"""Where the mark of a tar archive stands."""
MARKS = {
    "gzip": b"\x1f\x8b",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "zstd": b"\x28\xb5\x2f\xfd",
    "lz4": b"\x04\x22\x4d\x18",
    "zip": b"PK\x03\x04",
}
"""How compressed data begin: what they are is told from this, not from names."""
_NO_MEMBER = b"PK\x05\x06"
"""How a zip archive begins that holds no file."""
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip")
"""Names of compressed files end so."""
_BYTE_ORDER = (
    ("utf-32", (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),  # of 16 bits the mark begins in the same way
    ("utf-16", (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
"""Texts that begin so; the mark of UTF-8 is left out by ``blocks``."""
DAMAGED = (*UNREADABLE, zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError, pa.ArrowException)
"""What uncompressing can raise; an encrypted member of an archive is a RuntimeError."""
HEAD_BYTES = 512
"""Enough to see a tar archive, whose mark stands at byte 257."""


def refuse_foreign(head: bytes, name: str) -> None:
    """Refuse data that begin like something else than text.

    Parameters
    ----------
    head : bytes
        The first ones, some hundred.
    name : str
        For messages.

    Raises
    ------
    DataError
        ``ACEP-D028`` a tar archive; ``ACEP-D180`` something else that is read by other programs, or a page of the web.
    """
    if head[_TAR_AT:].startswith(_TAR):
        raise DataError(
            f"{name}: a tar archive",
            code="ACEP-D028",
            hint="unpack it, and name the files or their folder: tar xf FILE",
        )
    for begin, kind, hint in _BINARY:
        if head.startswith(begin):
            raise _refused(name, kind, hint)
    if head.startswith(_PICKLE):
        raise _refused(name, "a pickle of Python", _PANDAS.format(read="read_pickle(FILE)"))
    if head.lstrip(b"\xef\xbb\xbf \r\n\t").lower().startswith(_PAGES):
        hint = "perhaps the page of a login or of an error was saved in the place of the data: load these again"
        raise _refused(name, "a page of the web (HTML)", hint)
    _refuse_xml(head, name)


def _refuse_xml(head: bytes, name: str) -> None:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    ahead = _PROLOG.match(text)
    rest = text[ahead.end() :] if ahead else text
    known = next((found for found in _XML if re.match(re.escape(found[0]) + rb"[\s>]", rest.lower())), None)
    if known is not None or text.startswith(b"<?xml"):
        _, kind, hint = known or (b"", "XML", _ROWS)
        raise _refused(name, kind, hint)


def refuse_misnamed(start: bytes, name: str, format: str) -> None:  # noqa: A002  (the word of the public interface)
    """Refuse Parquet that is to be read as text, and JSON that is to be read as CSV (``ACEP-D182``).

    Parameters
    ----------
    start : bytes
        The first ones of a text, some thousand.
    name : str
        For messages.
    format : str
        What it is to be read as.
    """
    first = start.lstrip(b"\xef\xbb\xbf \r\n\t").split(b"\n", 1)[0].strip()
    other = ""
    if start.startswith(PARQUET):
        other = "parquet"
    elif format == "csv" and (_JSON_BEGIN.match(first) or first in (b"[", b"{")):
        other = "json"
    if other:
        raise DataError(
            f"{name}: to be read as {format}, but it holds {other}",
            code="ACEP-D182",
            hint=f"rename it to end with .{other}, or say it: --input-format {other} (format='{other}' in Python)",
        )


def _refused(name: str, kind: str, hint: str) -> DataError:
    return DataError(f"{name}: {kind}, which is not read", code="ACEP-D180", hint=hint)


def stored_as(path: Path, encoding: str | None) -> Stored:
    """How the bytes of a file lie in it, told from its first ones.

    Raises
    ------
    DataError
        ``ACEP-D013`` it cannot be read; ``ACEP-D028`` an archive of several files; ``ACEP-D180`` no text.
    """
    with _opened(path) as file:
        compression = compression_of(file.peek(HEAD_BYTES)[:HEAD_BYTES], str(path))
    with _inflated(path, compression) as stream:
        try:
            head = stream.read(HEAD_BYTES)
        except UNREADABLE as error:
            raise unreadable(str(path), error) from error
    return Stored(compression, encoding_of(head, encoding, str(path)))


def open_stored(path: Path, stored: Stored) -> BinaryIO:
    """The text of a file, in UTF-8."""
    return in_utf8(_inflated(path, stored.compression), stored.encoding, str(path))


def compression_of(head: bytes, name: str) -> str | None:
    """How data are compressed that begin so.

    Raises
    ------
    DataError
        As ``refuse_foreign``; ``ACEP-D028``: an archive without a file.
    """
    refuse_foreign(head, name)
    if head.startswith(_NO_MEMBER):
        raise _several(name, 0)
    return next((kind for kind, mark in MARKS.items() if head.startswith(mark)), None)


def encoding_of(head: bytes, said: str | None, name: str) -> str:
    """The encoding of a text that begins so: what is said, or what a mark at its begin says, else UTF-8."""
    refuse_foreign(head, name)
    marked = next((kind for kind, marks in _BYTE_ORDER if head.startswith(marks)), "utf-8")
    return marked if said is None else codecs.lookup(said).name


def inflated(stream: Any, compression: str, name: str) -> BinaryIO:
    """Compressed bytes of a stream as what they were.

    Parameters
    ----------
    stream : binary file
        A pipe may be one: what its writer has flushed is there at once, of gzip, bzip2 and xz.
    compression : str
        As of ``Stored``.
    name : str
        For messages.
    """
    try:
        return _Inflated(_opener(stream, compression, name), name)  # type: ignore[return-value]
    except DAMAGED as error:
        raise unreadable(name, error) from error


def _opener(stream: Any, compression: str, name: str) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=stream)
    if compression == "bzip2":
        return bz2.BZ2File(stream)
    if compression == "xz":
        return lzma.LZMAFile(stream)
    if compression == "zip":
        is_file = isinstance(stream, io.BufferedReader) and stream.seekable()
        whole = stream if is_file else io.BytesIO(b"".join(iter(lambda: stream.read(1 << 20), b"")))
        return _member(whole, name)  # its table of contents is at the end
    source = pa.PythonFile(stream if isinstance(stream, io.IOBase) else _Raw(stream), mode="r")
    return pa.CompressedInputStream(source, compression)


class _Changed(ABC):
    """Bytes of a stream as something else; ``_next`` reads some by a method of the stream."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name

    def read(self, size: int = -1) -> bytes:
        return self._next(self._stream.read, size)

    def read1(self, size: int = -1) -> bytes:
        return self._next(getattr(self._stream, "read1", self._stream.read), size)

    @abstractmethod
    def _next(self, read: Any, size: int) -> bytes: ...


class _Inflated(_Changed, io.RawIOBase):
    """Damaged bytes are an error of the data, whoever reads them."""

    def _next(self, read: Any, size: int) -> bytes:
        try:
            return read(size)  # type: ignore[no-any-return]
        except DAMAGED as error:
            raise unreadable(self._name, error) from error

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def in_utf8(stream: Any, encoding: str, name: str) -> BinaryIO:
    """Bytes of text in any encoding as UTF-8."""
    return stream if encoding == "utf-8" else _Recoded(stream, encoding, name)  # type: ignore[return-value]


class _Recoded(_Changed, AbstractContextManager["_Recoded"]):
    def __init__(self, stream: Any, encoding: str, name: str) -> None:
        super().__init__(stream, name)
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def _next(self, read: Any, size: int) -> bytes:
        while data := read(size):
            if text := self._decoded(data):
                return text
        return self._decoded(b"", final=True)

    def _decoded(self, data: bytes, *, final: bool = False) -> bytes:
        try:
            return self._decoder.decode(data, final).encode()
        except UnicodeError as error:
            raise DataError(
                f"{self._name}: the text is not {self._encoding}: {error}",
                code="ACEP-D029",
                hint="say how it is written: --encoding latin-1, or cp1252 of Windows (encoding= of open_source)",
            ) from error

    def close(self) -> None:
        self._stream.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}", code="ACEP-D013") from error


def _inflated(path: Path, compression: str | None) -> BinaryIO:
    file: Any = _opened(path)
    if compression is None:
        return file  # type: ignore[no-any-return]
    try:
        return _Closing(inflated(file, compression, str(path)), file)  # type: ignore[return-value]
    except DataError:
        file.close()
        raise


class _Raw(io.RawIOBase):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size)  # type: ignore[no-any-return]

    def readable(self) -> bool:
        return True


class _Closing(io.RawIOBase):
    def __init__(self, stream: Any, file: io.BufferedReader) -> None:
        self._stream = stream
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size)  # type: ignore[no-any-return]

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._file.close()
        super().close()


def _member(file: Any, name: str) -> BinaryIO:
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise unreadable(name, error) from error
    members = [info for info in archive.infolist() if not info.is_dir() and "__MACOSX" not in info.filename]
    if any(info.filename.startswith("xl/") for info in members):
        raise DataError(
            f"{name}: a workbook of Excel (xlsx)", code="ACEP-D028", hint="save the sheet as CSV, and name that file"
        )
    if len(members) != 1:
        raise _several(name, len(members))
    return archive.open(members[0])  # type: ignore[return-value]


def _several(name: str, members: int) -> DataError:
    return DataError(
        f"{name}: a zip archive of {members} files",
        code="ACEP-D028",
        hint="unpack it, and name the files or their folder" if members else "there is nothing in it to read",
    )
