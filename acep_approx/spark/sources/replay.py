"""A data source for Spark that replays a recorded file: for demos, and to see what load a job can carry.

A recording is a file as a long stream: its events by number, repeated with times and keys shifted, and when each is
due. The same number is the same event in every process and after every restart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from acep_approx.arrays import Ints
from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import missing_column, plain_type, to_arrow
from acep_approx.events.reading.files import find_files
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.time import LIMIT, tick_unit, ticks

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


ROWS = 65_536
"""Events per Arrow batch at most."""
SUFFIX = "~"
"""Between a key and the number of the repetition."""
STAMP = pa.timestamp("us", tz="UTC")
_SPARK_TYPES = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.null(): pa.string(),
    pa.date64(): pa.date32(),
}
"""Types that Spark has, for those of files that it has not."""


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
        stored, roles = self.opened()
        types = {}
        for field in stored:
            plain = plain_type(field.type)
            if pa.types.is_timestamp(plain):
                types[field.name] = pa.timestamp("us", tz=plain.tz and "UTC")
            else:
                types[field.name] = _SPARK_TYPES.get(plain, plain)
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

    def opened(self) -> tuple[pa.Schema, Roles]:
        """The columns of the file, checked, and which of them are what."""
        stored = open_source(self.path, format=self.format).schema
        roles = infer_roles(stored, time=self.time, unit=self.unit)
        if (name := self.shift_keys) is not None:
            if name not in stored.names:
                raise missing_column(name, stored.names)
            type_ = plain_type(stored.field(name).type)
            if not (pa.types.is_string(type_) or pa.types.is_integer(type_)):
                raise DataError(
                    f"keys of type {type_} cannot be shifted (column {name!r})",
                    code="ACEP-S049",
                    hint="shift_keys names a column of strings or of integers",
                )
        return stored, roles


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


@lru_cache(maxsize=2)
def _load(recording: Recording, schema: pa.Schema, _versions: tuple[tuple[int, int], ...]) -> Loaded:
    stored, roles = recording.opened()
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


try:
    from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2
    SupportsTriggerAvailableNow = object  # type: ignore[assignment,misc]

LEAST = 20_000
"""Events that are worth a task of their own."""
MAX = "max"
OPTIONS = (
    "path", "format", "time", "unit", "speed", "rate", "repeat", "shift_keys", "start", "most", "partitions",
)  # fmt: skip
_OF_SPARK = ("paths",)


@dataclass(frozen=True)
class Settings:
    """The options of a replay, read and checked.

    Parameters
    ----------
    recording : Recording
    speed : float, optional
        None: as fast as they are asked for.
    rate : float, optional
        Events per second, in the place of ``speed``.
    start : str, optional
    most : int, optional
        Events per micro-batch.
    partitions : int
        Tasks per micro-batch.
    """

    recording: Recording
    speed: float | None
    rate: float | None
    start: str | None
    most: int | None
    partitions: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Settings:
        """Read the options of the data source.

        Raises
        ------
        UsageError
            ``ACEP-S045``: no path, or an option that there is not; ``ACEP-S046``: a value that makes no sense;
            ``ACEP-S047``: a speed and a rate.
        """
        _check_names(options)
        if "speed" in options and "rate" in options:
            raise UsageError(
                "a replay has a speed or a rate, not both",
                code="ACEP-S047",
                hint="speed follows the times of the events, rate is a number of events per second",
            )
        speed = options.get("speed", "1")
        return cls(
            Recording(
                options["path"],
                options.get("format"),
                options.get("time"),
                options.get("unit"),
                _whole(options, "repeat") or 1,
                options.get("shift_keys"),
            ),
            None if speed == MAX or "rate" in options else _positive("speed", speed),
            _positive("rate", options["rate"]) if "rate" in options else None,
            options.get("start"),
            _whole(options, "most"),
            _whole(options, "partitions") or os.cpu_count() or 1,
        )

    def first(self) -> int:
        """Number of the first event to be replayed: the first one that is not before ``start``."""
        if self.start is None:
            return 0
        known = self.recording.loaded()
        try:
            tick = int(ticks(pa.array([self.start]))[0]) if known.is_time else int(self.start)
        except (DataError, ValueError) as error:
            wanted = "a whole number, as the times of this file are"
            if known.is_time:
                wanted = "a time such as 2013-03-01T06:00"
            raise UsageError(
                f"start is {self.start!r}, and not {wanted}", code="ACEP-S046", hint=f"give {wanted}"
            ) from error
        return int(np.searchsorted(known.reached, tick, side="left"))

    def parts(self, first: int, end: int) -> list[InputPartition]:
        """Events ``first`` to ``end - 1`` as parts of about the same size, one per task."""
        count = end - first
        if count <= 0:
            return []
        parts = max(1, min(self.partitions, count // LEAST))
        ends = [first + count * number // parts for number in range(parts + 1)]
        return [InputPartition(part) for part in pairwise(ends)]


class Replay(DataSource):
    """The data source ``acep_replay``: a recorded file as a stream, at a chosen speed; as a batch, all of it.

    Options, all but ``path`` may be left out:

    ============ ======================================================================================================
    path         file or folder of Parquet, CSV or JSON lines, at the same place on all machines
    format       ``parquet``, ``csv`` or ``jsonl``; by default by its name
    time, unit   the time column, and the unit of its numbers: ``ns``, ``us``, ``ms`` or ``s``
    speed        ``60``: an hour in a minute; where times are numbers without a unit: so many a second; default 1.
                 ``max``: all that there is, at once
    rate         so many events a second, in the place of ``speed``
    repeat       so many times, one after the other, times shifted on; default 1
    shift_keys   a column whose values become others with each repetition
    start        first time to be replayed, e.g. ``2013-03-01T06:00``
    most         events per micro-batch at most
    partitions   tasks per micro-batch at most; by default as many as the driver has cores
    ============ ======================================================================================================

    Columns have the types that Spark has for those of the file, or those of ``.schema(...)``, which may leave columns
    out. The time comes out as a timestamp, whatever it is in the file, unless it is a number without a unit.

    Notes
    -----
    An offset is a number of events, so the same offsets are the same events in each run. Time begins with the first
    micro-batch of a process: after a restart the replay goes on with the event where it stopped, as if the query had
    never been down. With ``trigger(availableNow=True)`` everything is there at once, in batches of ``most``. Each
    Python worker keeps the file in memory as Arrow, once; repetitions need no memory.

    Examples
    --------
    >>> spark.dataSource.register(Replay)  # doctest: +SKIP
    >>> options = {"path": "flights.parquet", "speed": "3600", "repeat": "30", "shift_keys": "key"}
    >>> events = spark.readStream.format("acep_replay").options(**options).load()  # doctest: +SKIP
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``format(...)``."""
        return "acep_replay"

    def schema(self) -> StructType:
        """Columns of the events; see ``Recording.schema``."""
        from pyspark.errors import PySparkTypeError
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = Settings.of(self.options).recording.schema()
        try:
            return from_arrow_schema(schema, prefer_timestamp_ntz=True)
        except PySparkTypeError as error:
            raise DataError(
                f"Spark has no type for a column of the recording: {error}",
                code="ACEP-S050",
                hint="name the columns you need, and their types, with .schema(...)",
            ) from error

    def reader(self, schema: StructType) -> BatchReader:
        """All of the recording at once."""
        return BatchReader(Settings.of(self.options), _arrow(schema))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802  (Spark's name)
        """The recording as time goes by."""
        return StreamReader(Settings.of(self.options), _arrow(schema))


class _PartReader:
    def __init__(self, settings: Settings, schema: pa.Schema) -> None:
        self.settings = settings
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a part."""
        return self.settings.recording.loaded(self.schema).read(*partition.value)


class BatchReader(_PartReader, DataSourceReader):
    """Reads a recording as a batch."""

    def partitions(self) -> list[InputPartition]:
        """One part per task; one without events where there are none."""
        first, total = self.settings.first(), self.settings.recording.loaded().total
        return self.settings.parts(first, total) or [InputPartition((0, 0))]


class StreamReader(_PartReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a recording as a stream: says what is there by now, and delivers it."""

    def __init__(self, settings: Settings, schema: pa.Schema) -> None:
        super().__init__(settings, schema)
        self._all_at_once = settings.speed is None and settings.rate is None
        self._begun: tuple[int, float] | None = None  # number of the first event, and when it was there
        self._reached: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  (Spark's name, as are those below)
        """Where a new query begins."""
        self._reached = self.settings.first()
        return self._offset(self._reached)

    def latestOffset(  # noqa: N802
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        """What is there by now.

        Parameters
        ----------
        start : dict, optional
            Where the last micro-batch ended. Spark before 4.2 does not say it.
        limit : ReadLimit, optional
            As ``getDefaultReadLimit`` gave it, or none.
        """
        if start is not None:
            self._check(start)
            first = start["event"]
        elif self._reached is not None:
            first = self._reached
        else:
            raise DataError(
                "a replay can go on after a restart with Spark 4.2 or newer, and this one is older",
                code="ACEP-S051",
                hint="begin anew, with another checkpoint, or use a newer Spark",
            )
        if self._begun is None:
            self._begun = first, monotonic()
        end = max(first, self._due(*self._begun))
        most = self.settings.most if limit is None else getattr(limit, "max_rows", None)
        if most is not None:
            end = min(end, first + most)
        self._reached = end
        return self._offset(end)

    def _due(self, first: int, begun: float) -> int:
        known, settings = self.settings.recording.loaded(), self.settings
        if self._all_at_once:
            return known.total
        seconds = monotonic() - begun
        if settings.rate is not None:
            return min(known.total, first + int(seconds * settings.rate))
        assert settings.speed is not None
        return known.after(first, seconds, settings.speed)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """At most as many events per micro-batch as the option says."""
        most = self.settings.most
        return super().getDefaultReadLimit() if most is None else ReadMaxRows(most)

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """The end of the recording, for the progress of the query: it is done when its end offset is this."""
        return self._offset(self.settings.recording.loaded().total)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """All of the recording counts as available."""
        self._all_at_once = True

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The events between two offsets, in parts."""
        self._check(start)
        return self.settings.parts(start["event"], end["event"])

    def _offset(self, event: int) -> dict[str, int]:
        return {"event": event, "of": self.settings.recording.loaded().total}

    def _check(self, offset: dict[str, int]) -> None:
        total = self.settings.recording.loaded().total
        if offset["of"] != total:
            raise DataError(
                f"the recording has {total:,} events now, and {offset['of']:,} when this stream began",
                code="ACEP-S048",
                hint="give it the same file and the same repeat, or begin anew with another checkpoint",
            )


def _arrow(schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _check_names(options: Mapping[str, str]) -> None:
    from difflib import get_close_matches

    for name in options:
        if name.lower() not in (*OPTIONS, *_OF_SPARK):
            close = get_close_matches(name.lower(), OPTIONS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the options are: {', '.join(OPTIONS)}"
            raise UsageError(f"a replay has no option {name!r}", code="ACEP-S045", hint=hint)
    if "path" not in options:
        raise UsageError(
            "a replay needs the path of a recorded file", code="ACEP-S045", hint='give it: .option("path", FILE)'
        )


def _positive(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        also = ", or the word max" if name == "speed" else ""
        raise UsageError(
            f"{name} is {text!r}, and not a number above 0",
            code="ACEP-S046",
            hint=f"give a number, e.g. {name}=60{also}",
        )
    return value


def _whole(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise UsageError(
            f"{name} is {text!r}, and not a whole number above 0", code="ACEP-S046", hint=f"e.g. {name}=30"
        )
    return int(text)
