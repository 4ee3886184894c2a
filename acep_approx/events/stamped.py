"""Events that get their time from the clock, where they have none."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import UsageError
from acep_approx.events.columns import decoded, plain_type
from acep_approx.events.reading.malformed import Row
from acep_approx.events.roles import is_number
from acep_approx.events.source import Source
from acep_approx.events.time import PER_SECOND

STAMP = pa.timestamp("us", tz="UTC")


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
