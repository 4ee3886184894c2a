"""Tables as bytes: Arrow streams."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

SMALL = 1 << 20
"""Bytes up to which columns are not compressed by several threads: to hand them over takes longer, by far where all
cores are busy, as those of Spark's workers are."""

UNFOLDED = {0: 256, 1: 1 << 16}
"""Bytes that one byte of a compressed column stands for, at most, by codec: LZ4, Zstandard."""
MOST_BYTES = 1 << 32
"""What the compressed columns of one part of a stream may hold together."""
# where things stand in Message, RecordBatch, DictionaryBatch and BodyCompression: see format/Message.fbs of Arrow
_KIND, _HEADER, _BATCH, _BUFFERS, _COMPRESSION, _CODEC = 1, 2, 1, 2, 3, 0
_DICTIONARY, _RECORDS = 2, 3


def to_ipc(table: pa.Table, compression: str | None = None) -> bytes:
    """A table, with the metadata of its schema, as an Arrow stream.

    Parameters
    ----------
    table : pyarrow.Table
    compression : {"zstd", "lz4"}, optional
        Of the columns. Default: none.

    Examples
    --------
    >>> from_ipc(to_ipc(pa.table({"x": [1, 2]}))).to_pydict()
    {'x': [1, 2]}
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=table.nbytes > SMALL)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_ipc(data: Any) -> pa.Table:
    """The table of an Arrow stream: bytes, or an array of them; nothing is copied.

    Raises
    ------
    pyarrow.ArrowInvalid
        It is none, its columns point out of themselves, or say that they are longer than they can be.
    """
    _check_lengths(pa.py_buffer(data))
    return read_ipc(data)


def read_ipc(data: Any) -> pa.Table:
    """The same of a stream that never was in a file: what it says of its lengths is believed."""
    buffer = pa.py_buffer(data)
    options = pa.ipc.IpcReadOptions(use_threads=buffer.size > SMALL)
    table = pa.ipc.open_stream(buffer, options=options).read_all()
    table.validate(full=True)
    return table


def _check_lengths(stream: pa.Buffer) -> None:
    """Refuse compressed columns that cannot be as long as they say: Arrow makes room for them before it looks.

    Raises
    ------
    pyarrow.ArrowInvalid
    """
    for message in pa.ipc.MessageReader.open_stream(stream):
        if message.body is None or not message.body.size:
            continue
        try:
            total = sum(_unfolded(memoryview(message.metadata), memoryview(message.body)))
        except (struct.error, IndexError) as error:
            raise pa.ArrowInvalid("a part of the stream is damaged") from error
        if total > MOST_BYTES:
            raise pa.ArrowInvalid(f"a part of the stream says that it holds {total} bytes")


def _unfolded(about: memoryview, body: memoryview) -> Iterator[int]:
    """How long the columns of a message say that they are, where they are compressed."""
    message = _follow(about, 0)
    kind, batch = _field(about, message, _KIND), _field(about, message, _HEADER)
    if not kind or not batch or about[kind] not in (_DICTIONARY, _RECORDS):
        return
    batch = _follow(about, batch)
    if about[kind] == _DICTIONARY:
        batch = _follow(about, _field(about, batch, _BATCH))
    compression, buffers = _field(about, batch, _COMPRESSION), _field(about, batch, _BUFFERS)
    if not compression or not buffers:
        return
    codec = _field(about, _follow(about, compression), _CODEC)
    most = UNFOLDED.get(about[codec] if codec else 0, 0)
    first = _follow(about, buffers)
    for number in range(*struct.unpack_from("<I", about, first)):
        offset, length = struct.unpack_from("<qq", about, first + 4 + 16 * number)
        if length:
            (size,) = struct.unpack_from("<q", body, offset)
            if not -1 <= size <= most * length:
                raise pa.ArrowInvalid(f"a column of {length} bytes says that it holds {size}")
            yield size


def _follow(about: memoryview, at: int) -> int:
    """Where an offset of a flatbuffer leads to."""
    return int(at + struct.unpack_from("<I", about, at)[0])


def _field(about: memoryview, table: int, number: int) -> int:
    """Where a field of a table of a flatbuffer stands; 0: it is not there."""
    fields = table - struct.unpack_from("<i", about, table)[0]
    (size,) = struct.unpack_from("<H", about, fields)
    if 4 + 2 * number >= size:
        return 0
    (ahead,) = struct.unpack_from("<H", about, fields + 4 + 2 * number)
    return int(table + ahead) if ahead else 0
