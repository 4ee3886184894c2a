"""One pass over events: what each column holds, the times, and the first events as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import events_in_lists, plain_type, refuse_unreadable
from acep_approx.events.reading.widening import one_table
from acep_approx.events.roles import Roles, open_times
from acep_approx.events.source import Source
from acep_approx.events.time_formats import TimeFormat
from acep_approx.profiling.columns import ColumnScan
from acep_approx.profiling.roles import taken_roles, time_role
from acep_approx.profiling.times import TimeScan, has_fractions, unit_of

KEPT_ROWS = 1_000_000
KEPT_BYTES = 128 * 2**20
"""So many of the first events are kept, for the first query."""
LOOKED_AT = 500
"""Columns that are looked at, where there are more: nobody reads on."""


class Scan:
    """What one pass over events finds.

    Parameters
    ----------
    source : Source
    given : dict
        The columns that were said to be ``time``, ``key`` and ``type``.
    unit : str or None
        The unit that was said.
    time_format : TimeFormat or None
        How times are written, as far as it was said.

    Attributes
    ----------
    columns : list of ColumnScan
    roles : Roles or None
        As a run takes them.
    time : RoleFound
    open_times : tuple of str
        Where no column is recognised as the time, although one holds times: why, and what to say. Else empty.
    unit : str or None
        Of the times: said, or plausible.
    times : TimeScan or None
        None where no column could be the time.
    schema : pyarrow.Schema
        The columns that are looked at.
    more_columns : int
        How many others there are.
    rows : int
    is_all : bool
        Whether there are no more rows.
    """

    def __init__(
        self, source: Source, given: dict[str, str | None], unit: str | None, time_format: TimeFormat | None
    ) -> None:
        self._source = source
        self._time_format = time_format
        self._given = given
        self.unit = unit
        refuse_unreadable(source.schema, [name for name in source.schema.names if name in given.values()])
        schema = source.readable
        self.roles: Roles | None = taken_roles(schema, given, unit, time_format) if schema.names else None
        self.schema = _looked_at(schema, [*given.values(), *_named(self.roles)])
        self.more_columns = len(schema) - len(self.schema)
        self.columns = [ColumnScan(field.name, field.type) for field in self.schema]
        self.open_times = open_times(source.schema) if self.roles is None else ()
        self.time = time_role(self.roles, given["time"], _nothing(self.schema), self.open_times)
        self.in_lists = events_in_lists(source.schema)
        self.times: TimeScan | None = None
        self.rows = 0
        self.is_all = True
        self._head: list[pa.RecordBatch] = []
        self._ticks: list[Ints] = []

    def read(self, most: int | None, on_progress: Callable[[int], None] | None) -> None:
        """Read the events, or so many of the first."""
        kept = 0
        for batch in self._batches(most):
            if self.rows == 0:
                self._begin(batch)
            for column, values in zip(self.columns, batch.columns, strict=True):
                column.add(values)
            ticks = None if self.times is None else self.times.add(batch.column(self.times.column))
            if kept < KEPT_BYTES and (room := KEPT_ROWS - sum(map(len, self._head))) > 0:
                kept += batch.nbytes
                self._head.append(batch.slice(0, room))
                self._ticks.append(np.zeros(len(batch), np.int64) if ticks is None else ticks[:room])
            self.rows += batch.num_rows
            if on_progress is not None:
                on_progress(self.rows)

    def _batches(self, most: int | None) -> Iterator[pa.RecordBatch]:
        left = most
        for batch in self._source.batches(self.schema.names):
            if left is not None:
                if left == 0 and batch.num_rows:
                    self.is_all = False
                    return
                self.is_all = batch.num_rows <= left
                batch = batch.slice(0, min(left, batch.num_rows))  # noqa: PLW2901
                left -= batch.num_rows
            if batch.num_rows:
                yield batch
            if not self.is_all:
                return

    def _begin(self, first: pa.RecordBatch) -> None:
        """Choose the column of the times, now that there are some."""
        self.time = time_role(self.roles, self._given["time"], first, self.open_times)
        column = self.time.best
        if column is None:
            return
        type_ = plain_type(first.schema.field(column).type)
        if self.unit is None and self._time_format is None:
            self.unit = unit_of(first.column(column)) if self.time.column else self.time.others[0].unit
            if self.unit is None and has_fractions(first.column(column)):
                self.unit = "s"
        unit = self.roles.unit if self.roles is not None and self.roles.time == column else None  # may be digits
        self.times = TimeScan.of(column, type_, unit or self.unit, self._time_format)

    def head(self) -> tuple[pa.Table, Ints]:
        """The first events, and their ticks."""
        if not self._head:
            return self.schema.empty_table(), np.zeros(0, np.int64)
        return one_table(self._head), np.concatenate(self._ticks)


def _named(roles: Roles | None) -> list[str | None]:
    return [] if roles is None else [roles.time, roles.type, roles.key]


def _looked_at(schema: pa.Schema, named: list[str | None]) -> pa.Schema:
    """The first columns, and those that play a role."""
    if len(schema) <= LOOKED_AT:
        return schema
    others = [field for field in list(schema)[LOOKED_AT:] if field.name in named]
    return pa.schema([*list(schema)[:LOOKED_AT], *others], schema.metadata)


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
