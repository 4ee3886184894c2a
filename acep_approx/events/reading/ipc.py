"""Tables as bytes: Arrow streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

SMALL = 1 << 20
"""Bytes up to which columns are not compressed by several threads: to hand them over takes longer, by far where all
cores are busy, as those of Spark's workers are."""


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
        It is none, or its columns point out of themselves.
    """
    buffer = pa.py_buffer(data)
    options = pa.ipc.IpcReadOptions(use_threads=buffer.size > SMALL)
    table = pa.ipc.open_stream(buffer, options=options).read_all()
    table.validate(full=True)
    return table
