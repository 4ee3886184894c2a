"""Events that can be read only once, kept as they pass, for who looks back at them when all is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import decoded
from acep_approx.events.late import LateEvents
from acep_approx.events.reading.malformed import MalformedRows, Row

MOST_BYTES = 128 * 1024 * 1024
"""What is kept at most, compressed; of more the latest events."""
PACKED = 10_000
"""Events that are compressed together."""


class KeptEvents:
    """The events that have passed; of very many the latest ones.

    Attributes
    ----------
    seen : int
        Events that have passed.
    rows : int
        Those of them that are kept.
    is_whole : bool
        Whether they were read to their end.
    """

    def __init__(self) -> None:
        self.seen = self.rows = 0
        self.is_whole = False
        self._bytes = self._waiting = 0
        self._packed: deque[tuple[int, pa.Buffer]] = deque()  # how many events, and these, compressed
        self._loose: list[pa.RecordBatch] = []  # of which ``_waiting`` is the number of events

    @property
    def note(self) -> str:
        """What of the events is not there, as a sentence; empty: all is."""
        if self.rows < self.seen:
            return f"Kept were the last {self.rows:,} of {self.seen:,} events: the page is of these."
        return "" if self.is_whole else f"The run stopped before the end of its input, after {self.seen:,} events."

    def keep(self, batch: pa.RecordBatch) -> None:
        """Keep the next events, with all of their columns."""
        if not batch.num_rows:
            return
        arrays = [decoded(column) for column in batch.columns]  # each batch has dictionaries of its own
        batch = pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
        if self._loose and not self._loose[0].schema.equals(batch.schema):
            self._pack()
        self._loose.append(batch)
        self.seen += batch.num_rows
        self.rows += batch.num_rows
        self._waiting += batch.num_rows
        if self._waiting >= PACKED or len(self._loose) >= PACKED // 10:
            self._pack()

    def _pack(self) -> None:
        whole = pa.Table.from_batches(self._loose).combine_chunks()
        for batch in whole.to_batches(max_chunksize=PACKED):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                writer.write_batch(batch)
            self._packed.append((batch.num_rows, sink.getvalue()))
            self._bytes += self._packed[-1][1].size
        self._loose, self._waiting = [], 0
        while self._bytes > MOST_BYTES and len(self._packed) > 1:
            rows, oldest = self._packed.popleft()
            self._bytes -= oldest.size
            self.rows -= rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What is kept, in its order."""
        for _, data in list(self._packed):
            yield from pa.ipc.open_stream(data)
        yield from self._loose


class KeptReader:
    """Kept events as a reader: can be read again.

    Parameters
    ----------
    kept : KeptEvents
    schema : pyarrow.Schema
        Their columns.
    """

    reusable = True

    def __init__(self, kept: KeptEvents, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows: int | None = kept.rows
        self._kept = kept

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        for batch in self._kept.batches():
            there = set(batch.schema.names)
            arrays = [
                batch.column(name) if name in there else pa.nulls(batch.num_rows, self.schema.field(name).type)
                for name in columns
            ]
            chosen = pa.RecordBatch.from_arrays(arrays, names=list(columns)) if columns else batch.select([])
            for first in range(0, batch.num_rows, batch_rows):
                yield chosen.slice(first, batch_rows)


class Renumbered(LateEvents):
    """Late events of a stream whose events have other numbers than those in their order.

    Parameters
    ----------
    number : callable
        Gives for places in the stream the numbers in the whole input.
    policy : str
        As for ``LateEvents``.
    """

    def __init__(self, number: Callable[[Ints], Ints], policy: str = "refuse") -> None:
        super().__init__(policy)
        self._number = number

    @property
    def renumbers(self) -> bool:
        """Whether ``original`` gives other numbers than it gets."""
        return True

    def original(self, rows: Ints) -> Ints:
        """Numbers in the whole input of events that are not late."""
        return self._number(super().original(rows))


class CountedRows(MalformedRows):
    """Malformed rows of an earlier pass: there are no others."""

    def __init__(self, earlier: MalformedRows) -> None:
        super().__init__(earlier.policy)
        self.count, self.reasons = earlier.count, list(earlier.reasons)

    def restart(self) -> None:
        """Nothing to forget."""

    def add(self, row: Row, reason: str) -> None:
        """Nothing to count: it was."""
