"""Events as a stream in time order: batches with ticks, row numbers and dictionary-encoded strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import encode_text, to_arrow
from acep_approx.events.roles import Roles
from acep_approx.events.source import BATCH_ROWS, Source
from acep_approx.events.time import tick_unit, ticks, to_datetime


@dataclass
class EventBatch:
    """Consecutive events of the stream.

    Parameters
    ----------
    first_row : int
        Row number of the first event over the whole stream, from 0.
    ticks : numpy.ndarray of int64
        Time of each event, not decreasing. ``len(batch)`` is their number.
    data : pyarrow.RecordBatch
        The columns asked for; strings are ``dictionary<int32, string>``.
    """

    first_row: int
    ticks: npt.NDArray[np.int64]
    data: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.ticks)

    def slice(self, first: int, rows: int) -> EventBatch:
        """At most ``rows`` events from place ``first`` on; nothing is copied."""
        return EventBatch(self.first_row + first, self.ticks[first : first + rows], self.data.slice(first, rows))


def read_events(
    source: Source,
    roles: Roles,
    *,
    columns: Sequence[str] | None = None,
    sort: bool = False,
    batch_rows: int = BATCH_ROWS,
    first_row: int = 0,
) -> Iterator[EventBatch]:
    """Read the events of a source in the order of time, then of arrival.

    Parameters
    ----------
    source : Source
        Where they come from.
    roles : Roles
        Which column is the time, and its unit.
    columns : sequence of str, optional
        Columns wanted in ``EventBatch.data`` (the time is read in any case). Default: all.
    sort : bool
        Sort the whole input first. Needs memory for all of its columns asked for; events of one time keep
        their order, and rows are numbered in the sorted order. Default: input must be sorted.
    batch_rows : int
        At most so many events per batch. Default 131,072.
    first_row : int
        Row number of the first event, where the source goes on with a stream. Default 0.

    Yields
    ------
    EventBatch
        Never empty.

    Raises
    ------
    DataError
        ``ACEP-D007`` time runs backwards; the errors of :func:`ticks` and of the source.
    """
    if columns is None:
        columns = source.schema.names
    batches = _with_ticks(source, roles, list(columns), batch_rows, first_row)
    if sort:
        yield from _sorted(batches, batch_rows)
        return
    unit = tick_unit(source.schema.field(roles.time).type, roles.unit)
    latest: int | None = None
    for batch in batches:
        _check_order(batch, latest, unit)
        latest = int(batch.ticks[-1])
        yield batch


def _with_ticks(
    source: Source, roles: Roles, columns: list[str], batch_rows: int, first_row: int
) -> Iterator[EventBatch]:
    row = first_row
    for data in source.batches([*columns, roles.time], batch_rows):
        if data.num_rows == 0:
            continue
        values = ticks(data.column(roles.time), roles.unit, first_row=row)
        arrays = [encode_text(data.column(name)) for name in columns]
        yield EventBatch(row, values, pa.RecordBatch.from_arrays(arrays, names=columns))
        row += len(values)


def _check_order(batch: EventBatch, latest: int | None, unit: str | None) -> None:
    values = batch.ticks
    if latest is not None and values[0] < latest:
        place, before = 0, latest
    else:
        backwards = values[1:] < values[:-1]
        if not backwards.any():
            return
        place = int(backwards.argmax()) + 1
        before = int(values[place - 1])
    row = batch.first_row + place
    shown = [_show(int(values[place]), unit), _show(before, unit)]
    raise DataError(
        f"row {row}: time runs backwards, from {shown[1]} to {shown[0]}",
        code="ACEP-D007",
        hint="sort the input, or let it be sorted here: --sort (sort=True); that needs memory for all of it",
        row=row,
    )


def _show(tick: int, unit: str | None) -> str:
    if unit is None:
        return str(tick)
    try:
        return str(to_datetime(np.array([tick]))[0].as_py().isoformat())
    except (ValueError, OverflowError):  # a year that Python's datetime cannot hold
        return f"{tick} us"


def _sorted(batches: Iterator[EventBatch], batch_rows: int) -> Iterator[EventBatch]:
    everything = list(batches)
    if not everything:
        return
    values = np.concatenate([batch.ticks for batch in everything])
    table = pa.Table.from_batches([batch.data for batch in everything]).unify_dictionaries().combine_chunks()
    del everything
    in_order = bool((values[1:] >= values[:-1]).all())
    order = None if in_order else np.argsort(values, kind="stable")  # Arrow's own sort is not stable
    for start in range(0, len(values), batch_rows):
        end = min(start + batch_rows, len(values))
        part = table.slice(start, end - start) if order is None else table.take(to_arrow(order[start:end]))
        arrays = [encode_text(column.combine_chunks()) for column in part.columns]
        yield EventBatch(
            start,
            values[start:end] if order is None else values[order[start:end]],
            pa.RecordBatch.from_arrays(arrays, names=table.column_names),
        )
