"""Rows that were fetched from another library: in memory, and from a size on in a temporary file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile

import pyarrow as pa

IN_MEMORY = 64 << 20
"""Bytes that are kept in memory; what is larger goes to a file."""


class FetchedRows:
    """Record batches that can be read again and again.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Of the same columns; they are taken to the end.

    Attributes
    ----------
    rows : int
        How many there are.

    Raises
    ------
    OSError
        The temporary file cannot be written.

    Examples
    --------
    >>> fetched = FetchedRows([pa.record_batch({"ts": [1, 2]}), pa.record_batch({"ts": [3]})])
    >>> fetched.rows, fetched.has(["ts"]), [batch.num_rows for batch in fetched.batches()]
    (3, True, [2, 1])
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._kept: list[pa.RecordBatch] = []
        self._buffer: pa.Buffer | None = None
        self.rows = size = 0
        coming = iter(batches)
        for batch in coming:
            self._keep(batch)
            size += batch.nbytes
            if size > IN_MEMORY:
                self._spill(coming)
        self._names = frozenset(self._kept[0].schema.names if self._kept else ())

    def _keep(self, batch: pa.RecordBatch) -> None:
        self._kept.append(batch)
        self.rows += batch.num_rows

    def _spill(self, coming: Iterator[pa.RecordBatch]) -> None:
        """Write what is kept, and all that comes, to a file without a name: it is gone with the last reader of it."""
        with TemporaryFile() as file:
            with pa.ipc.new_stream(file, self._kept[0].schema) as writer:
                for batch in self._kept:
                    writer.write_batch(batch)
                for batch in coming:
                    writer.write_batch(batch)
                    self.rows += batch.num_rows
            file.flush()
            self._buffer = pa.py_buffer(mmap(file.fileno(), 0, access=ACCESS_READ))
        del self._kept[1:]

    def has(self, columns: Sequence[str]) -> bool:
        """Whether these columns were fetched."""
        return not self._kept or self._names.issuperset(columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, from the beginning."""
        if self._buffer is None:
            yield from self._kept
        else:
            with pa.ipc.open_stream(self._buffer) as reader:
                yield from reader
