"""Which reader takes an object of Python: tables and frames of any library, record batches, dicts, numpy."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import unreadable
from acep_approx.events.reading.batches import BatchesEvents, Part
from acep_approx.events.reading.frames import (
    DatasetEvents,
    PolarsEvents,
    ReaderEvents,
    RelationEvents,
    StreamEvents,
    no_columns,
    stream_of,
)
from acep_approx.events.reading.malformed import MalformedRows
from acep_approx.events.reading.memory import REFUSED, DictEvents, FrameEvents, TableEvents

InMemory = (
    TableEvents
    | ReaderEvents
    | FrameEvents
    | PolarsEvents
    | RelationEvents
    | DatasetEvents
    | StreamEvents
    | BatchesEvents
    | DictEvents
)


def open_object(events: Any, malformed: MalformedRows | None = None) -> InMemory:
    """The reader of events that are no files; ``malformed`` is told of dicts that do not go together with others.

    Raises
    ------
    UsageError
        ``ACEP-U107``: they cannot be read from such an object; ``ACEP-U146``: it gives Arrow data without columns.
    DataError
        What the readers raise.
    """
    if isinstance(events, pa.RecordBatch):
        events = pa.Table.from_batches([events])
    if isinstance(events, pa.Table):
        return TableEvents(events)
    if isinstance(events, pa.RecordBatchReader):
        return ReaderEvents(events)
    return _of_library(events) or _of_arrow(events) or _of_items(events, malformed)


def _of_library(events: Any) -> InMemory | None:
    """The reader of a frame of a library that is loaded; None: it is none."""
    for module, names, reader in (
        ("pandas", ("DataFrame",), FrameEvents),
        ("polars", ("DataFrame", "LazyFrame"), PolarsEvents),
        ("duckdb", ("DuckDBPyRelation",), RelationEvents),
        ("pyarrow.dataset", ("Dataset",), DatasetEvents),
    ):
        library = sys.modules.get(module)
        if library is not None and isinstance(events, tuple(getattr(library, name) for name in names)):
            made: InMemory = reader(events)
            return made
    return None


def _of_arrow(events: Any) -> InMemory | None:
    """The reader of an object that speaks Arrow's PyCapsule interface; None: it does not.

    One that knows how many rows it has is a table, and can be asked again; of any other its stream is read once.
    """
    if hasattr(events, "__arrow_c_stream__"):
        rows = _rows_of(events)
        if rows is None or isinstance(events, Iterator):
            return ReaderEvents(stream_of(events), "the stream")
        return StreamEvents(events, rows)
    if hasattr(events, "__arrow_c_array__"):
        try:
            return TableEvents(pa.Table.from_batches([pa.record_batch(events)]))
        except REFUSED as error:
            raise no_columns(events, error) from error
    return None


def _rows_of(table: Any) -> int | None:
    rows = getattr(table, "num_rows", None)
    if rows is None and hasattr(type(table), "__len__"):
        try:
            rows = len(table)
        except TypeError:  # of an answer that can be had only once
            return None
    return rows if isinstance(rows, int) else None


def _of_items(events: Any, malformed: MalformedRows | None) -> InMemory:
    """The reader of an iterable: of dicts, or of record batches; or of an array of numpy with names of columns."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(events, numpy.ndarray) and events.dtype.names and events.ndim == 1:
        return TableEvents(_of_records(events))
    if not isinstance(events, Iterable) or isinstance(events, str | bytes | dict) or getattr(events, "ndim", 1) == 0:
        raise UsageError(
            f"events cannot be read from an object of type {type(events).__name__}",
            code="ACEP-U107",
            hint="a dict of columns is a table: pyarrow.table(events)"
            if isinstance(events, dict)
            else "pass a table or a frame (Arrow, pandas, polars, DuckDB), an iterable of dicts, or a path",
        )
    iterator = iter(events)
    is_once = iterator is events
    first = list(islice(iterator, 1))
    if first and isinstance(first[0], Part):
        return BatchesEvents(first, iterator) if is_once else BatchesEvents(_only_batches(events))
    return DictEvents(chain(first, iterator) if is_once else events, malformed)


def _only_batches(events: Iterable[Any]) -> list[Any]:
    parts = list(events)
    for number, part in enumerate(parts):
        if not isinstance(part, Part):
            raise DataError(
                f"item {number} is no record batch, as the first was: {part!r:.80}",
                code="ACEP-D066",
                hint="pass record batches or tables alone",
            )
    return parts


def _of_records(events: Any) -> pa.Table:
    """An array of numpy with names as a table."""
    columns, fields = [], []
    for name in events.dtype.names:
        values = events[name]
        try:
            columns.append(pa.array(values.astype(values.dtype.newbyteorder("="))))
            fields.append(pa.field(name, columns[-1].type))
        except REFUSED as error:
            columns.append(pa.nulls(len(values)))
            fields.append(unreadable(name, f"it is of type {values.dtype}: {error}"))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
