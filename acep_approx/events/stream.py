"""Events as a stream in time order: batches with ticks, row numbers, encoded strings; those without a time get one."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import decoded, encode_text, missing_column, plain_type, to_arrow
from acep_approx.events.late import SHOWN
from acep_approx.events.reading.malformed import Row
from acep_approx.events.reading.widening import one_table, with_marks
from acep_approx.events.roles import Roles, is_number
from acep_approx.events.source import BATCH_ROWS, Source
from acep_approx.events.time import PER_SECOND, tick_unit, to_datetime


@dataclass
class EventBatch:
    """Consecutive events of the stream.

    Parameters
    ----------
    first_row : int
        Row number of the first event over the whole stream, from 0; late events that were left out are not counted.
    ticks : numpy.ndarray of int64
        Time of each event, not decreasing. ``len(batch)`` is their number.
    data : pyarrow.RecordBatch
        The columns asked for; strings are ``dictionary<int32, string>``.
    ids : numpy.ndarray of int64, optional
        The names of the events, all different, from 0 to ``2**44``. Default: their row numbers.
    rows : numpy.ndarray of int64, optional
        Row numbers that rise, from 0 to ``2**44``, where they leave gaps. Default: from ``first_row`` on, one by one.
    """

    first_row: int
    ticks: npt.NDArray[np.int64]
    data: pa.RecordBatch
    ids: npt.NDArray[np.int64] | None = None
    rows: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.ticks)

    def slice(self, first: int, rows: int) -> EventBatch:
        """At most ``rows`` events from place ``first`` on; nothing is copied."""
        part = slice(first, first + rows)
        ids, row_numbers = (None if column is None else column[part] for column in (self.ids, self.rows))
        return EventBatch(self.first_row + first, self.ticks[part], self.data.slice(first, rows), ids, row_numbers)

    def of_columns(self, names: Sequence[str], first_row: int) -> EventBatch:
        """The same events as a program reads them: with these columns alone, numbered from a row on."""
        columns = [encode_text(self.data.column(name)) for name in names]
        return EventBatch(first_row, self.ticks, pa.RecordBatch.from_arrays(columns, names=[*names]))

    def at(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where the events of these names stand in the batch."""
        if self.ids is None:
            return ids - self.first_row if self.rows is None else np.searchsorted(self.rows, ids)
        order = np.argsort(self.ids)
        return order[np.searchsorted(self.ids, ids, sorter=order)]


def earliest(ticks: Iterable[int | None]) -> int | None:
    """The first of some ticks, as far as there are any.

    Examples
    --------
    >>> earliest([5, None, 3]), earliest([None])
    (3, None)
    """
    return min((tick for tick in ticks if tick is not None), default=None)


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
        Where they come from. As ``source.late`` says, an event that comes late is an error, or is left out; then the
        others are numbered without gaps, and ``source.late.original`` knows their numbers in the whole input.
    roles : Roles
        Which column is the time, and its unit.
    columns : sequence of str, optional
        Columns wanted in ``EventBatch.data`` (the time is read in any case). Default: all.
    sort : bool
        Sort the whole input first. Needs memory for all of its columns asked for; events of one time keep
        their order, and rows are numbered in the sorted order; none is late. Default: input must be sorted.
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
        ``ACEP-D002``: there is no such column; ``ACEP-D007`` time runs backwards; the errors of :func:`ticks` and of
        the source.
    """
    schema = source.schema
    names = schema.names if columns is None else list(columns)
    if sort:
        yield from _sorted(as_they_come(source, roles, names, batch_rows, first_row), batch_rows)
        return
    if roles.time not in schema.names:  # as where a run goes on with other events
        raise missing_column(roles.time, schema.names)
    unit = tick_unit(schema.field(roles.time).type, roles.unit)
    if source.late.policy == "skip":
        yield from _without_late(source, roles, names, batch_rows, first_row, unit)
        return
    latest: int | None = None
    for batch in as_they_come(source, roles, names, batch_rows, first_row):
        check_order(batch, unit, latest)
        latest = int(batch.ticks[-1])
        yield batch


def _without_late(
    source: Source, roles: Roles, columns: list[str], batch_rows: int, first_row: int, unit: str | None
) -> Iterator[EventBatch]:
    is_kept_whole = source.late.file is not None
    read = list(dict.fromkeys([*columns, *source.readable.names])) if is_kept_whole else columns
    latest, row = None, first_row
    for batch in as_they_come(source, roles, read, batch_rows, first_row):
        values = batch.ticks
        before = np.maximum.accumulate(np.insert(values[:-1], 0, values[0] if latest is None else latest))
        latest = max(int(before[-1]), int(values[-1]))
        late, kept = np.flatnonzero(values < before), np.flatnonzero(values >= before)
        data = batch.data.select(columns)
        if len(late):
            rows, places = batch.first_row + late, row + late - np.arange(len(late))
            named = [source.named(int(batch.first_row + i)) for i in late[:SHOWN]]
            times = zip(named, before[late[:SHOWN]].tolist(), values[late[:SHOWN]].tolist(), strict=True)
            reasons = [_backwards(*one, unit) for one in times]
            whole = batch.data.select(source.readable.names).take(to_arrow(late)) if is_kept_whole else None
            source.late.add(rows, places, reasons, whole)
            data = data.take(to_arrow(kept)) if columns else data
        if len(kept):
            yield EventBatch(row, values[kept], data)
            row += len(kept)


def as_they_come(
    source: Source, roles: Roles, columns: list[str], batch_rows: int, first_row: int
) -> Iterator[EventBatch]:
    """The events of a source in the order of arrival; see ``read_events``."""
    is_digits = roles.unit is not None and roles.unit.startswith("%")
    is_counted = is_number(plain_type(source.schema.field(roles.time).type)) and not is_digits
    row, rows = first_row, source.usable_rows(roles.read_in(columns), first_row)
    for data in source.batches(columns, batch_rows, rows):
        if data.num_rows == 0:
            continue
        if is_counted:
            source.counted(rows.ticks, roles.unit)
        arrays = [encode_text(data.column(name)) for name in columns]
        batch = with_marks(pa.RecordBatch.from_arrays(arrays, names=columns), data.schema)
        yield EventBatch(row, rows.ticks, batch)
        row += data.num_rows


def check_order(batch: EventBatch, unit: str | None, latest: int | None = None) -> None:
    """Refuse a batch in which time runs backwards (``ACEP-D007``), or that begins before ``latest``."""
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
    raise DataError(
        _backwards(f"row {row}", before, int(values[place]), unit),
        code="ACEP-D007",
        hint="sort the input, or let it be sorted here: --sort (sort=True); that needs memory for all of it. "
        "Or leave out what comes late: --on-late skip (on_late='skip')",
        row=row,
    )


def _backwards(named: str, before: int, after: int, unit: str | None) -> str:
    return f"{named}: time runs backwards, from {_show(before, unit)} to {_show(after, unit)}"


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
    table = one_table([batch.data for batch in everything]).combine_chunks()
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


STAMP = pa.timestamp("us", tz="UTC")


def stamped(source: Source, time: str | None, unit: str | None) -> Source:
    """The events of a source, with the time of the clock where they have none; see ``StampedEvents``."""
    return Source(StampedEvents(source, time or "ts", unit), source.malformed, source.late)


class StampedEvents:
    """The events of a source; those without a time have that of the clock at which they are read.

    Events that are read together get the same time.

    Parameters
    ----------
    source : Source
    time : str
        The column of the time; it need not be there.
    unit : str, optional
        What it counts, if it holds numbers.

    Raises
    ------
    UsageError
        ``ACEP-U067``: times are plain numbers, and no clock counts these.
    """

    def __init__(self, source: Source, time: str, unit: str | None = None) -> None:
        self.rows, self.reusable = source.rows, source.reusable
        self._source = source
        self._time = time
        self._unit = unit
        schema = source.schema
        place = schema.get_field_index(time)
        self._is_there = place >= 0
        type_ = plain_type(schema.field(place).type) if self._is_there else pa.null()
        if is_number(type_) and unit is None:
            raise UsageError(
                f"stamp=True, and the times in {time!r} are numbers of which nobody knows what they count",
                code="ACEP-U067",
                hint="say it: unit='s' (--unit s), or give every event a time",
            )
        self._type = STAMP if pa.types.is_null(type_) else type_
        field = pa.field(time, self._type)
        self.schema = schema.set(place, field) if self._is_there else schema.append(field)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        inner = [name for name in columns if name != self._time or self._is_there] or self._source.schema.names[:1]
        for batch in self._source.batches(inner, batch_rows):
            now = self._now()
            arrays = []
            for name in columns:
                if name != self._time:
                    arrays.append(batch.column(name))
                elif self._is_there:
                    arrays.append(pc.fill_null(decoded(batch.column(name)).cast(self._type), now))
                else:
                    arrays.append(pa.repeat(now, batch.num_rows))
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def where(self, row: int) -> Row | None:
        """Where a row of the batch given last stands."""
        return self._source.where(row)

    def _now(self) -> pa.Scalar:
        nanoseconds = clock.time_ns()
        if is_number(self._type):
            return pa.scalar(nanoseconds * PER_SECOND[str(self._unit)] // 10**9).cast(self._type)
        stamp = pa.scalar(nanoseconds // 1000, pa.int64()).cast(STAMP)
        if pa.types.is_string(self._type):
            return pa.scalar(pc.strftime(stamp, format="%Y-%m-%dT%H:%M:%SZ").as_py())
        return stamp.cast(self._type, safe=False)
