"""The rows that come out of a shard: results, events that were left out, and metrics, each packed into one row.

One plan gives all three, so that a stream is read once; ``kind`` says which is which, and numbers are columns, so that
Spark adds them up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pyarrow as pa

from acep_approx.ipc import to_ipc
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.shard import REASON, Processed, ShardMetrics

MATCHES, LATE, METRICS = "matches", "late", "metrics"
_ARROW = {"int": pa.int64(), "float": pa.float64(), "tuple[int, ...]": pa.list_(pa.int64())}
_NUMBERS = [(field.name, _ARROW[str(field.type)]) for field in fields(ShardMetrics)]
SCHEMA = pa.schema([("shard", pa.int32()), ("kind", pa.string()), ("payload", pa.binary()), *_NUMBERS])
"""Columns of the packed rows; those after ``payload`` are NULL but for the metrics."""
ROWS_AT_ONCE = 1 << 17
"""Most results in one row: Spark takes no value of 2 GB."""
NUMBERS = tuple(name for name, _ in _NUMBERS)
DDL = {pa.int64(): "bigint", pa.float64(): "double", pa.list_(pa.int64()): "array<bigint>"}
PACKED = "shard int, kind string, payload binary, " + ", ".join(f"{name} {DDL[type_]}" for name, type_ in _NUMBERS)


def left_out_schema(job: Job) -> pa.Schema:
    """Columns of the events that were left out."""
    return job.schema.append(pa.field(REASON, pa.string()))


def packed(number: int, processed: Processed) -> Iterator[dict[str, Any]]:
    """The rows of what a shard has processed: of results and of events left out only where there are any."""
    nothing = dict.fromkeys(NUMBERS)
    for kind, table in ((MATCHES, processed.results), (LATE, processed.left_out)):
        for first in range(0, table.num_rows, ROWS_AT_ONCE):
            yield {"shard": number, "kind": kind, "payload": to_ipc(table.slice(first, ROWS_AT_ONCE)), **nothing}
    metrics = {**vars(processed.metrics), "shed": list(processed.metrics.shed)}
    yield {"shard": number, "kind": METRICS, "payload": processed.sample, **metrics}
