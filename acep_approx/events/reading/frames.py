"""Events in the frames of other libraries: polars, DuckDB, pyarrow datasets, and whatever hands out Arrow streams.

None of these libraries is imported here: an object of one exists only if the library is loaded already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from acep_approx.errors import AcepError, DataError, UsageError
from acep_approx.events.columns import plain_schema


def pieces(batches: Iterable[pa.RecordBatch], columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Some columns of batches, in pieces of at most ``batch_rows``."""
    for batch in batches:
        chosen = batch.select(list(columns))
        for start in range(0, chosen.num_rows, batch_rows):
            yield chosen.slice(start, batch_rows)


class ReaderEvents:
    """A one-shot reader of record batches.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
        The events.
    where : str, default "the reader"
        What it is, for messages.
    """

    reusable = False
    rows: int | None = None

    def __init__(self, reader: pa.RecordBatchReader, where: str = "the reader") -> None:
        self.schema = plain_schema(reader.schema, where)
        self._reader = reader

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        return pieces(self._reader, columns, batch_rows)


class PolarsEvents:
    """A polars frame; a lazy one is computed anew, in batches, each time it is read.

    Parameters
    ----------
    frame : polars.DataFrame or polars.LazyFrame
        The events.

    Raises
    ------
    DataError
        ``ACEP-D067``: the columns cannot be told.
    """

    reusable = True

    def __init__(self, frame: Any) -> None:
        self._polars = sys.modules["polars"]
        self._is_lazy = isinstance(frame, self._polars.LazyFrame)
        self._frame = frame
        self.rows: int | None = None if self._is_lazy else frame.height
        with _computing("the polars frame"):
            empty = self._polars.DataFrame(schema=frame.collect_schema()) if self._is_lazy else frame.clear()
            self.schema = plain_schema(pa.RecordBatchReader.from_stream(empty).schema, "the frame")

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns; no others are computed."""
        with _computing("the polars frame"):
            chosen = self._frame.select(self._polars.selectors.by_name(*columns))
            for part in self._parts(chosen, batch_rows):
                yield from pieces(pa.RecordBatchReader.from_stream(part), columns, batch_rows)

    def _parts(self, chosen: Any, batch_rows: int) -> Iterator[Any]:
        if not self._is_lazy:
            yield chosen
        elif hasattr(chosen, "collect_batches"):
            yield from chosen.collect_batches(chunk_size=batch_rows, maintain_order=True, lazy=True)
        else:  # older versions of polars give no batches
            yield chosen.collect()


class RelationEvents:
    """A DuckDB relation; it is run anew each time it is read.

    While it is read, its connection can run nothing else: that is DuckDB's rule.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
        The events, in the order that the relation has.

    Raises
    ------
    DataError
        ``ACEP-D067``: it cannot be run.
    """

    reusable = True
    rows: int | None = None

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        with _computing("the DuckDB relation"), closing(pa.RecordBatchReader.from_stream(relation.limit(0))) as reader:
            self.schema = plain_schema(reader.schema, "the relation")

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns; no others are computed."""
        column = sys.modules["duckdb"].ColumnExpression
        with _computing("the DuckDB relation"):
            chosen = self._relation.select(*map(column, columns))
            with closing(pa.RecordBatchReader.from_stream(chosen)) as reader:
                yield from pieces(reader, columns, batch_rows)


class DatasetEvents:
    """A pyarrow dataset, in the order of its files.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The events.
    """

    reusable = True
    rows: int | None = None

    def __init__(self, dataset: Any) -> None:
        self.schema = plain_schema(dataset.schema, "the dataset")
        self._dataset = dataset

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns; no others are read."""
        with _computing("the dataset"):
            batches = self._dataset.to_batches(columns=list(columns), batch_size=batch_rows)
            yield from pieces(batches, columns, batch_rows)


class StreamEvents:
    """A table of any library that can hand out Arrow streams of itself, as often as it is asked.

    Parameters
    ----------
    table : object
        Has ``__arrow_c_stream__``.
    rows : int or None
        How many there are, if that is known.
    """

    reusable = True

    def __init__(self, table: Any, rows: int | None) -> None:
        self.rows = rows
        self._table = table
        with closing(stream_of(table)) as reader:
            self.schema = plain_schema(reader.schema, "the table")

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        with closing(stream_of(self._table)) as reader:
            yield from pieces(reader, columns, batch_rows)


def stream_of(events: Any) -> pa.RecordBatchReader:
    """What an object with ``__arrow_c_stream__`` hands out.

    Raises
    ------
    UsageError
        ``ACEP-U146``: no record batches.
    """
    try:
        return pa.RecordBatchReader.from_stream(events)
    except pa.ArrowException as error:
        raise no_columns(events, error) from error


def no_columns(events: Any, error: Exception) -> UsageError:
    """The error for Arrow data that is no table (``ACEP-U146``)."""
    return UsageError(
        f"an object of type {type(events).__name__} gives Arrow data without columns: {error}",
        code="ACEP-U146",
        hint="pass a table: events are rows, and their attributes columns",
    )


@contextmanager
def _computing(what: str) -> Iterator[None]:
    """Tell what fails in another library as an error of the events (``ACEP-D067``)."""
    try:
        yield
    except AcepError:
        raise
    except Exception as error:
        raise DataError(
            f"{what} cannot be read: {type(error).__name__}: {error}",
            code="ACEP-D067",
            hint="try it by itself; types that Arrow does not have must be cast first",
        ) from error
