"""Events that are already in memory: Arrow tables and readers, pandas frames, dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import plain_schema, refuse_twins

DICTS_PER_CHUNK = 10_000
"""Dicts are converted in chunks of so many; the first chunk decides the columns and their types."""


class TableEvents:
    """A table or a record batch.

    Parameters
    ----------
    table : pyarrow.Table
        The events.
    """

    reusable = True

    def __init__(self, table: pa.Table) -> None:
        self.schema = plain_schema(table.schema, "the table")
        self.rows: int | None = table.num_rows
        self._table = table

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        yield from self._table.select(columns).to_batches(max_chunksize=batch_rows)


class ReaderEvents:
    """A one-shot reader of record batches.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
        The events.
    """

    reusable = False
    rows: int | None = None

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.schema = plain_schema(reader.schema, "the reader")
        self._reader = reader

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        for batch in self._reader:
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.select(columns).slice(start, batch_rows)


class FrameEvents:
    """A pandas frame; the levels of its index that have a name are columns too.

    Parameters
    ----------
    frame : pandas.DataFrame
        The events.
    """

    reusable = True

    def __init__(self, frame: Any) -> None:
        named = [name for name in frame.index.names if name is not None and name not in frame.columns]
        frame = frame.reset_index(level=named) if named else frame
        names = [str(name) for name in frame.columns]
        refuse_twins(names, "the frame")
        self._frame = frame.set_axis(names, axis="columns")
        try:
            schema = pa.Schema.from_pandas(self._frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
            raise _mixed("the frame", error) from error
        self.schema = plain_schema(schema, "the frame")
        self.rows: int | None = len(frame)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``, converted as they are read."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        frame = self._frame[list(columns)]
        for start in range(0, len(frame), batch_rows):
            part = frame.iloc[start : start + batch_rows]
            try:
                yield pa.RecordBatch.from_pandas(part, schema=schema, preserve_index=False)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise _mixed("the frame", error) from error


class DictEvents:
    """An iterable of dicts; one-shot if it is an iterator (a generator).

    Parameters
    ----------
    events : iterable of dict
        The first 10,000 decide the columns and their types. A dict may lack a column (null), but not have
        others.

    Raises
    ------
    DataError
        ``ACEP-D018`` a column holds values of several types; ``ACEP-D022`` an event has a name that is no
        column; ``ACEP-D023`` an event is not a dict.
    """

    def __init__(self, events: Iterable[Any]) -> None:
        self.rows = len(events) if isinstance(events, Sized) else None
        iterator = iter(events)
        self.reusable = iterator is not events
        self._events = events
        first = list(islice(iterator, DICTS_PER_CHUNK))
        names = list(dict.fromkeys(chain.from_iterable(_only_dicts(first, 0))))
        columns = [(name, _infer(name, [row.get(name) for row in first])) for name in names]
        self.schema = plain_schema(pa.schema(columns), "the events")
        self._pending = None if self.reusable else chain(first, iterator)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        known = set(self.schema.names)
        rows = iter(self._events) if self._pending is None else self._pending
        first_row = 0
        while chunk := list(islice(rows, min(batch_rows, DICTS_PER_CHUNK))):
            _refuse_unknown(_only_dicts(chunk, first_row), known, first_row)
            arrays = [_convert(f.name, [row.get(f.name) for row in chunk], f.type, first_row) for f in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            first_row += len(chunk)


def _only_dicts(chunk: list[Any], first_row: int) -> list[Mapping[str, Any]]:
    for row, event in enumerate(chunk, first_row):
        if not isinstance(event, Mapping) or not all(isinstance(name, str) for name in event):
            raise DataError(
                f"row {row}: an event must be a dict with strings as keys, and this is {event!r:.80}",
                code="ACEP-D023",
                hint="for example {'ts': 1, 'type': 'A', 'price': 2.5}",
                row=row,
            )
    return chunk


def _refuse_unknown(chunk: list[Mapping[str, Any]], known: set[str], first_row: int) -> None:
    if set().union(*chunk) <= known:
        return
    row, event = next((row, event) for row, event in enumerate(chunk, first_row) if set(event) - known)
    extra = ", ".join(sorted(map(repr, set(event) - known)))
    raise DataError(
        f"row {row}: {extra} did not occur in the first {DICTS_PER_CHUNK} events",
        code="ACEP-D022",
        hint="give the first event every column (None where it has no value), or pass an Arrow table",
        row=row,
    )


def _infer(name: str, values: list[Any]) -> pa.DataType:
    try:
        type_ = pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise _mixed(f"column {name!r} of the events", error) from error
    return pa.string() if pa.types.is_null(type_) else type_


def _convert(name: str, values: list[Any], type_: pa.DataType, first_row: int) -> pa.Array:
    try:
        return _typed(values, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        for row, value in enumerate(values, first_row):
            try:
                _typed([value], type_)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise DataError(
                    f"row {row}: column {name!r} is {type_} in the first events, and {value!r:.80} is not",
                    code="ACEP-D018",
                    hint="give all events values of one type in a column, or pass an Arrow table",
                    row=row,
                ) from error
        raise


def _typed(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_integer(type_):
        guessed = pa.array(values)
        if pa.types.is_floating(guessed.type):
            return guessed.cast(type_)  # refuses fractions; asked for integers, Arrow would cut them off
    return pa.array(values, type_)


def _mixed(where: str, error: Exception) -> DataError:
    return DataError(
        f"{where}: values of several types in one column: {error}",
        code="ACEP-D018",
        hint="convert the column to one type first",
    )
