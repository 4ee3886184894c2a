"""Parquet files, read row group by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import plain_schema
from acep_approx.events.reading.layout import Understood
from acep_approx.events.reading.malformed import Row, row_of
from acep_approx.events.reading.nested import column_at, flat_schema, has_objects, paths_of
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.times_in_order import TimesInOrder


class ParquetFile:
    """One Parquet file, read row group by row group.

    Parameters
    ----------
    name : str
        For messages.
    source : str or pyarrow.NativeFile
        Path or buffer.
    """

    def __init__(self, name: str, source: Any) -> None:
        import pyarrow.parquet as pq

        self.name = name
        self.order = TimesInOrder()  # its texts are no times here
        self._source = source
        self._last: tuple[int, pa.RecordBatch] | None = None
        try:
            file = pq.ParquetFile(source)
            stored = file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error
        self.schema = flat_schema(plain_schema(stored, name), name)
        self._paths = paths_of(stored)
        self.rows: int | None = file.metadata.num_rows
        self._text = [field.name for field in stored if field.type in (pa.string(), pa.large_string())]
        self.understood = Understood("parquet", nested=tuple(n for n, path in self._paths.items() if len(path) > 1))

    def settle_times(self, times: dict[str, TimeFormat]) -> None:
        """Nothing: its texts stay texts, which are read as times where they say when events were."""

    def read(
        self,
        columns: Sequence[str],
        schema: pa.Schema,  # noqa: ARG002  (the file has its own types)
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of those columns that are here; strings keep the dictionaries of the file."""
        import pyarrow.parquet as pq

        known = set(self.schema.names)
        here = [name for name in columns if name in known] or self.schema.names[:1]
        # No pre-buffering: it would keep all of the columns' bytes in memory until the end of the file. No threads: for
        # the few columns of a query they cost more than they save, and memory for each.
        try:
            with pq.ParquetFile(
                self._source, read_dictionary=self._text, pre_buffer=False, buffer_size=1 << 20
            ) as file:
                first = 0
                for batch in file.iter_batches(batch_rows, columns=here, use_threads=False):
                    self._last = first, batch
                    first += batch.num_rows
                    yield self._flat(batch, here) if has_objects(batch.schema) else batch
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def where(self, row: int) -> Row | None:
        """Where a row of the batch given last stands: its number in the file, from 0, and what was read of it."""
        return None if self._last is None else row_of(self.name, self._last[0], self._last[1], row)

    def _flat(self, batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
        """The columns that are wanted, of which some are fields of objects: the file gives these alone."""
        return pa.RecordBatch.from_arrays([column_at(batch, self._paths[name]) for name in columns], names=columns)

    def _damaged(self, error: Exception) -> DataError:
        return DataError(
            f"{self.name}: cannot be read as Parquet: {error}",
            code="ACEP-D013",
            hint="the file may be damaged or cut off, or in another format: --input-format csv|jsonl",
        )
