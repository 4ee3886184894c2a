"""On the way to the shards: the events of each shard become one row, an Arrow stream.

A row per event would be turned into a Python object each; a row per shard costs nothing that grows with the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from acep_approx.events.reading.ipc import from_ipc, to_ipc

SHARD = "_acep_shard"
"""The column that says which shard an event belongs to."""
PACKED = "shard int, payload binary"
ROWS_AT_ONCE = 1 << 17
"""Events that are held back to make the rows longer, and the Arrow batches that the matcher gets."""
Batches = Iterator[pa.RecordBatch]


def packer(schema: pa.Schema) -> Callable[[Batches], Batches]:
    """For ``mapInArrow``: columns of ``schema``, whatever their names, and ``SHARD`` in, rows of ``PACKED`` out.

    Complexity: O(events + rows · shards).
    """

    def pack(batches: Batches) -> Batches:
        for table in gathered(batches):
            shard = table.column(SHARD).combine_chunks().to_numpy()
            order = np.argsort(shard, kind="stable")
            events = table.drop_columns([SHARD]).rename_columns(schema.names).cast(schema)
            events = events.take(pa.array(order)).combine_chunks()
            numbers, starts = np.unique(shard[order], return_index=True)
            ends = np.append(starts[1:], len(shard)).tolist()
            rows = [to_ipc(events.slice(a, b - a)) for a, b in zip(starts.tolist(), ends, strict=True)]
            yield pa.RecordBatch.from_arrays(
                [pa.array(numbers, pa.int32()), pa.array(rows, pa.binary())], names=["shard", "payload"]
            )

    return pack


def unpacker(schema: pa.Schema) -> Callable[[Batches], Batches]:
    """For ``mapInArrow``: rows with a column ``payload`` in, the tables that were packed out."""

    def unpack(batches: Batches) -> Batches:
        for batch in batches:
            for payload in batch.column("payload"):
                yield from from_ipc(payload.as_py()).cast(schema).to_batches()

    return unpack


def gathered(batches: Batches, rows: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The same rows in tables of at least ``rows`` each, but for the last one."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)
