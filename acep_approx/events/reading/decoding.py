"""The bytes of a text file as it lies on a disk or comes in a pipe: uncompressed, and in UTF-8."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.blocks import UNREADABLE, unreadable
from acep_approx.events.reading.foreign_formats import refuse_foreign
from acep_approx.events.reading.layout import Stored

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


class _Inflated(io.RawIOBase):
    """Compressed bytes as what they were; damaged ones are an error of the data, whoever reads them."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name

    def read(self, size: int = -1) -> bytes:
        return self._next(self._stream.read, size)

    def read1(self, size: int = -1) -> bytes:
        return self._next(getattr(self._stream, "read1", self._stream.read), size)

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


class _Recoded:
    """A stream of text in another encoding, as UTF-8."""

    def __init__(self, stream: Any, encoding: str, name: str) -> None:
        self._stream = stream
        self._encoding = encoding
        self._name = name
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int = -1) -> bytes:
        """At most about so many bytes; none at the end."""
        return self._next(self._stream.read, size)

    def read1(self, size: int = -1) -> bytes:
        """What is there by now."""
        return self._next(getattr(self._stream, "read1", self._stream.read), size)

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

    def __enter__(self) -> _Recoded:
        return self

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
    """A stream that can be read, as a file for Arrow."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size)  # type: ignore[no-any-return]

    def readable(self) -> bool:
        return True


class _Closing(io.RawIOBase):
    """A stream that closes the file below it, too."""

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
    """The only file of a zip archive."""
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
