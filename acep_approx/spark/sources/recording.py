"""A recorded file as a long stream: its events by number, repeated with times and keys shifted, and when each is due.

Nothing here needs Spark. An event is known by its number: the same number is the same event in every process and after
every restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import missing_column, plain_type, to_arrow
from acep_approx.events.reading.files import find_files
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.time import LIMIT, tick_unit, ticks

ROWS = 65_536
"""Events per Arrow batch at most."""
SUFFIX = "~"
"""Between a key and the number of the repetition."""
STAMP = pa.timestamp("us", tz="UTC")
_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}
_OTHERS = {pa.float16(): pa.float32(), pa.null(): pa.string(), pa.date64(): pa.date32()}


@dataclass(frozen=True)
class Recording:
    """A file of events, and how it is repeated.

    Parameters
    ----------
    path : str
        File or folder: whatever ``open_source`` reads, and can read again.
    format : str, optional
        ``parquet``, ``csv`` or ``jsonl``; by default by its name.
    time, unit : str, optional
        The time column, and its unit where it holds numbers; by default as ``infer_roles`` finds it.
    repeat : int, default 1
        How often the events are played, one time after the other.
    shift_keys : str, optional
        A column of strings or of integers. Its values become others in each repetition: strings get ``~1``, ``~2``
        and so on, integers move on by their range.
    """

    path: str
    format: str | None = None
    time: str | None = None
    unit: str | None = None
    repeat: int = 1
    shift_keys: str | None = None

    def schema(self) -> pa.Schema:
        """Columns, in types that Spark has. A time is a timestamp, but for numbers without a unit: they are int64.

        Raises
        ------
        DataError
            ``ACEP-D001`` to ``ACEP-D003``: no such column, no time; ``ACEP-S049``: keys that cannot be shifted; the
            errors of ``open_source``.
        """
        stored, roles = self._opened()
        types = {field.name: _spark_type(field.type) for field in stored}
        types[roles.time] = STAMP if _is_time(stored, roles) else pa.int64()
        return pa.schema(types.items())

    def loaded(self, schema: pa.Schema | None = None) -> Loaded:
        """The events in memory; kept by the process for the next call.

        Parameters
        ----------
        schema : pyarrow.Schema, optional
            Columns and their types. By default only times are read.
        """
        files = find_files([self.path], self.format)
        versions = tuple((stat.st_mtime_ns, stat.st_size) for stat in (file.path.stat() for file in files))
        return _load(self, pa.schema([]) if schema is None else schema, versions)

    def _opened(self) -> tuple[pa.Schema, Roles]:
        stored = open_source(self.path, format=self.format).schema
        roles = infer_roles(stored, time=self.time, unit=self.unit)
        if self.shift_keys is not None:
            self._check_keys(stored)
        return stored, roles

    def _check_keys(self, stored: pa.Schema) -> None:
        name = self.shift_keys
        if name not in stored.names:
            raise missing_column(str(name), stored.names)
        type_ = plain_type(stored.field(name).type)
        if not (pa.types.is_string(type_) or pa.types.is_integer(type_)):
            raise DataError(
                f"keys of type {type_} cannot be shifted (column {name!r})",
                code="ACEP-S049",
                hint="shift_keys names a column of strings or of integers",
            )


@dataclass(frozen=True)
class Loaded:
    """The events of a recording in memory.

    Parameters
    ----------
    recording : Recording
    schema : pyarrow.Schema
        The columns asked for.
    table : pyarrow.Table
        All of them but the time.
    ticks, reached : numpy.ndarray of int64, shape (n,)
        Time of each event, and the latest time of the events up to it.
    time : str
        Name of the time column.
    is_time : bool
        Whether ticks are microseconds since 1970.
    step : int
        By how much integer keys move on with each repetition.
    """

    recording: Recording
    schema: pa.Schema
    table: pa.Table
    ticks: Ints
    reached: Ints
    time: str
    is_time: bool
    step: int = 0

    @property
    def total(self) -> int:
        """Number of events, with all repetitions."""
        return len(self.ticks) * self.recording.repeat

    @property
    def period(self) -> int:
        """Ticks by which each repetition is later: the length of the recording, and the mean time between events."""
        if not len(self.ticks):
            return 1
        span = int(self.reached[-1] - self.ticks.min())
        return span + max(1, span // max(1, len(self.ticks) - 1))

    def read(self, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """Events ``first`` to ``end - 1``.

        Yields
        ------
        pyarrow.RecordBatch
            At most ``ROWS`` events; columns that are not shifted share the memory of the table. Complexity: linear.
        """
        rows = len(self.ticks)
        while first < end:
            turn, row = divmod(first, rows)
            count = min(ROWS, rows - row, end - first)
            columns = [self._column(field, turn, row, count) for field in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
            first += count

    def _column(self, field: pa.Field, turn: int, row: int, count: int) -> pa.Array:
        if field.name == self.time:
            times = to_arrow(self.ticks[row : row + count] + turn * self.period)
            return (times.view(STAMP) if self.is_time else times).cast(field.type)
        column = self.table.column(field.name).slice(row, count).combine_chunks()
        if not turn or field.name != self.recording.shift_keys:
            return column
        if pa.types.is_string(field.type):
            return pc.binary_join_element_wise(column, f"{SUFFIX}{turn}", "")
        return pc.add(column, pa.scalar(turn * self.step, field.type))

    def after(self, start: int, seconds: float, speed: float) -> int:
        """How many events are there some time after event number ``start`` was.

        Parameters
        ----------
        start : int
        seconds : float
            Since then, in real time.
        speed : float
            Seconds of event time per second; ticks per second where ticks are plain numbers.

        Returns
        -------
        int
            Never less than ``start``. An event that is out of order comes with those around it. Complexity: O(log n).
        """
        if start >= self.total:
            return self.total
        rows, first = len(self.ticks), int(self.reached[0])
        turn, row = divmod(start, rows)
        begun = int(self.reached[row]) + turn * self.period
        now = begun + min(int(seconds * speed * (1e6 if self.is_time else 1)), LIMIT)
        turn = min((now - first) // self.period, self.recording.repeat - 1)
        within = int(np.searchsorted(self.reached, now - turn * self.period, side="right"))
        return turn * rows + within

    def first_at(self, tick: int) -> int:
        """Number of the first event that is not before a tick."""
        return int(np.searchsorted(self.reached, tick, side="left"))


@lru_cache(maxsize=2)
def _load(recording: Recording, schema: pa.Schema, _versions: tuple[tuple[int, int], ...]) -> Loaded:
    stored, roles = recording._opened()
    others = pa.schema([field for field in schema if field.name != roles.time])
    parts, times, row = [others.empty_table()], [np.zeros(0, np.int64)], 0
    for batch in open_source(recording.path, format=recording.format).batches([*others.names, roles.time]):
        times.append(ticks(batch.column(roles.time), roles.unit, first_row=row))
        parts.append(_cast(batch, others))
        row += batch.num_rows
    table, values = pa.concat_tables(parts).combine_chunks(), np.concatenate(times)
    is_time, step = _is_time(stored, roles), _step(table, recording)
    reached = np.maximum.accumulate(values)
    found = Loaded(recording, schema, table, values, reached, roles.time, is_time, step)
    if row and int(reached[-1]) + found.period * (recording.repeat - 1) >= LIMIT:
        raise UsageError(
            f"times would grow too large when the events are repeated {recording.repeat:,} times",
            code="ACEP-S046",
            hint="repeat them less often; ticks must be below 2**60",
        )
    return found


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            columns.append(plain.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"the column {field.name!r} cannot be read as {field.type}: {str(error).splitlines()[0]}",
                code="ACEP-S050",
                hint="give it another type with .schema(...), or leave it out there",
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _step(table: pa.Table, recording: Recording) -> int:
    """How far integer keys move on with each repetition: past all that there are."""
    name = recording.shift_keys
    if name not in table.schema.names or not pa.types.is_integer(table.schema.field(name).type):
        return 0
    ends = pc.min_max(table.column(name)).as_py()
    if ends["min"] is None:
        return 0
    step = int(ends["max"]) - int(ends["min"]) + 1
    type_ = table.schema.field(name).type
    if ends["max"] + step * (recording.repeat - 1) >= 2 ** (type_.bit_width - 1):
        raise DataError(
            f"the keys in {name!r} would outgrow {type_} when the events are repeated {recording.repeat:,} times",
            code="ACEP-S049",
            hint="repeat them less often, or give the column a wider type with .schema(...)",
        )
    return step


def _is_time(stored: pa.Schema, roles: Roles) -> bool:
    return tick_unit(stored.field(roles.time).type, roles.unit) is not None


def _spark_type(type_: pa.DataType) -> pa.DataType:
    """A type that Spark has, for one that files have."""
    plain = plain_type(type_)
    if pa.types.is_timestamp(plain):
        return pa.timestamp("us", tz=plain.tz and "UTC")
    return {**_SIGNED, **_OTHERS}.get(plain, plain)
