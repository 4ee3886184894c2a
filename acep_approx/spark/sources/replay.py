"""A data source for Spark that replays a recorded file: for demos, and to see what load a job can carry."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from acep_approx.errors import DataError, UsageError
from acep_approx.spark.sources.recording import Recording

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

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
        """Number of the first event to be replayed."""
        if self.start is None:
            return 0
        known = self.recording.loaded()
        return known.first_at(_tick(self.start, is_time=known.is_time))

    def parts(self, first: int, end: int) -> list[Part]:
        """Events ``first`` to ``end - 1`` as parts of about the same size, one per task."""
        count = end - first
        if count <= 0:
            return []
        parts = max(1, min(self.partitions, count // LEAST))
        ends = [first + count * number // parts for number in range(parts + 1)]
        return [Part(a, b) for a, b in pairwise(ends)]


class Part(InputPartition):
    """Events ``first`` to ``end - 1``."""

    def __init__(self, first: int, end: int) -> None:
        super().__init__((first, end))


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


class BatchReader(DataSourceReader):
    """Reads a recording as a batch."""

    def __init__(self, settings: Settings, schema: pa.Schema) -> None:
        self.settings = settings
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """One part per task; one without events where there are none."""
        first, total = self.settings.first(), self.settings.recording.loaded().total
        return self.settings.parts(first, total) or [Part(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a part."""
        return self.settings.recording.loaded(self.schema).read(*partition.value)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a recording as a stream: says what is there by now, and delivers it."""

    def __init__(self, settings: Settings, schema: pa.Schema) -> None:
        self.settings = settings
        self.schema = schema
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
        first = self._start(start)
        if self._begun is None:
            self._begun = first, monotonic()
        end = max(first, self._due(*self._begun))
        most = self.settings.most if limit is None else getattr(limit, "max_rows", None)
        if most is not None:
            end = min(end, first + most)
        self._reached = end
        return self._offset(end)

    def _start(self, start: dict[str, int] | None) -> int:
        if start is not None:
            self._check(start)
            return start["event"]
        if self._reached is None:
            raise DataError(
                "a replay can go on after a restart with Spark 4.2 or newer, and this one is older",
                code="ACEP-S051",
                hint="begin anew, with another checkpoint, or use a newer Spark",
            )
        return self._reached

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

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a part."""
        return self.settings.recording.loaded(self.schema).read(*partition.value)

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


def _tick(text: str, *, is_time: bool) -> int:
    import pyarrow as pa

    from acep_approx.events.time import ticks

    try:
        return int(ticks(pa.array([text]))[0]) if is_time else int(text)
    except (DataError, ValueError) as error:
        wanted = "a time such as 2013-03-01T06:00" if is_time else "a whole number, as the times of this file are"
        raise UsageError(f"start is {text!r}, and not {wanted}", code="ACEP-S046", hint=f"give {wanted}") from error
