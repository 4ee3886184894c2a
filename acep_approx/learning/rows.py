"""Tests of live runs as they were written down: columns, and their bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.events.reading.ipc import from_ipc, to_ipc

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
KEY = b"acep"
NARROW = {"step": pa.int32(), "source": pa.int16(), "outcome": pa.int8(), "key": pa.int32()}
"""Columns that need no 64 bits."""


@dataclass(frozen=True)
class Rows:
    """Tests as they were written down, with what runs and their children remembered: parallel columns.

    Attributes
    ----------
    step, source, outcome : int64 arrays
        Step of the chart, its place, and what came of the test (``kernel_sample``).
    seen, passed : float64 arrays
        One by the chance that the run was looked at when an event came, and that it was when it passed; or 0.
    start, last, tick : int64 arrays
        Of the run's first and last event, and of the event at hand.
    cover : int64 array
        Start of the latest run that would have covered a child.
    rate : float64 array
        Events of the key per tick, of late.
    key : int64 array
        Position of the key in ``texts``; -1 where there is one partition.
    values, children : float64 arrays, shape (columns, rows)
        What the run remembers, and the child where there is one: as in ``Trace``, texts by position in ``texts``.
    """

    step: Ints
    source: Ints
    outcome: Ints
    seen: Floats
    passed: Floats
    start: Ints
    last: Ints
    tick: Ints
    cover: Ints
    rate: Floats
    key: Ints
    values: Floats
    children: Floats

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, chosen: Ints | slice | npt.NDArray[np.bool_]) -> Self:
        return type(self)(*(getattr(self, column.name)[..., chosen] for column in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Several as one."""
        return cls(*(np.concatenate([getattr(p, c.name) for p in parts], axis=-1) for c in fields(cls)))


def rows_to_bytes(rows: Rows, header: dict[str, Any]) -> bytes:
    """Rows as an Arrow stream, zstd inside; the header is its metadata."""
    columns: dict[str, pa.Array] = {}
    for column in fields(Rows):
        values = getattr(rows, column.name)
        if values.ndim == 1:
            columns[column.name] = pa.array(values).cast(NARROW.get(column.name, pa.array(values[:0]).type))
        else:
            columns |= {f"{column.name}.{number}": pa.array(each) for number, each in enumerate(values)}
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(header)})
    return to_ipc(table, compression="zstd")


def rows_of(raw: bytes) -> tuple[Rows, dict[str, Any]]:
    """What ``rows_to_bytes`` wrote."""
    table = from_ipc(raw)
    header: dict[str, Any] = json.loads(table.schema.metadata[KEY])
    found: dict[str, npt.NDArray[Any]] = {}
    for column in fields(Rows):
        if column.name in table.column_names:
            values = table.column(column.name).to_numpy()
            found[column.name] = values.astype(np.int64) if values.dtype.kind == "i" else values.copy()
        else:
            parts = [name for name in table.column_names if name.startswith(f"{column.name}.")]
            empty = np.zeros((0, len(table)))
            found[column.name] = np.array([table.column(name).to_numpy() for name in parts]) if parts else empty
    return Rows(**found), header
