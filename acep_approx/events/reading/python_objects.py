"""Which reader takes an object of Python: tables and frames of any library, record batches, dicts, numpy.

None of these libraries is imported here: an object of one exists only if the library is loaded already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from acep_approx.errors import AcepError, DataError, UsageError
from acep_approx.events.columns import plain_schema, plain_type, unreadable, why_unreadable
from acep_approx.events.reading.fetched import FetchedRows
from acep_approx.events.reading.malformed import MalformedRows
from acep_approx.events.reading.memory import REFUSED, DictEvents, FrameEvents, TableEvents
from acep_approx.events.reading.nested import column_at, flat_schema, has_objects, paths_of
from acep_approx.events.reading.widening import as_wider, common_type

Part: TypeAlias = pa.RecordBatch | pa.Table


def _pieces(batches: Iterable[pa.RecordBatch], columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        chosen = batch.select(list(columns))
        for start in range(0, chosen.num_rows, batch_rows):
            yield chosen.slice(start, batch_rows)


class Reader(Protocol):
    """Events to read: what ``Source`` and the readers around others ask for."""

    rows: int | None
    reusable: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns; below ``FlatEvents`` they may hold objects."""
        ...

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns that exist, in batches of at most ``batch_rows``."""
        ...


class LibraryEvents:
    """Events that another library hands out in batches; where it can be asked again, each time anew.

    Parameters
    ----------
    schema : pyarrow.Schema
        Their columns.
    batches : callable
        Gives the rows of some columns as batches of about so many; more columns may come, and larger batches.
    what : str
        They are, for messages.
    rows : int, optional
        How many there are, if that is known.
    reusable : bool, default True
        Whether they can be read again.

    Raises
    ------
    DataError
        ``ACEP-D015``, ``ACEP-D130``: the columns are not those of events.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[list[str], int], Iterable[pa.RecordBatch]],
        what: str,
        *,
        rows: int | None = None,
        reusable: bool = True,
    ) -> None:
        self.schema = plain_schema(schema, what)
        self.rows = rows
        self.reusable = reusable
        self._batches = batches

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        return _pieces(self._batches(list(columns), batch_rows), columns, batch_rows)


def _of_reader(reader: pa.RecordBatchReader, what: str = "the reader") -> LibraryEvents:
    return LibraryEvents(reader.schema, lambda *_: reader, what, reusable=False)


def _of_polars(frame: Any) -> LibraryEvents:
    """A polars frame; of a lazy one only the columns asked for are computed, in batches."""
    polars = sys.modules["polars"]
    is_lazy = isinstance(frame, polars.LazyFrame)

    def batches(columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        with _computing("the polars frame"):
            chosen = frame.select(polars.selectors.by_name(*columns))
            if not is_lazy:
                parts = [chosen]
            elif hasattr(chosen, "collect_batches"):
                parts = chosen.collect_batches(chunk_size=batch_rows, maintain_order=True, lazy=True)
            else:  # older versions of polars give no batches
                parts = [chosen.collect()]
            for part in parts:
                yield from pa.RecordBatchReader.from_stream(part)

    with _computing("the polars frame"):
        empty = polars.DataFrame(schema=frame.collect_schema()) if is_lazy else frame.clear()
        schema = pa.RecordBatchReader.from_stream(empty).schema
        return LibraryEvents(schema, batches, "the frame", rows=None if is_lazy else frame.height)


class RelationEvents(LibraryEvents):
    """A DuckDB relation, in its order.

    While a relation is read, its connection can run nothing else, and while the connection runs a query, no relation
    can be read. Columns that were fetched can be read at any time.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    """

    is_fetched = True

    def __init__(self, relation: Any) -> None:
        with _computing("the DuckDB relation"), closing(pa.RecordBatchReader.from_stream(relation.limit(0))) as reader:
            super().__init__(reader.schema, self._of_relation, "the relation")
        self._relation = relation
        self._fetched: FetchedRows | None = None

    def fetch(self, columns: Sequence[str]) -> None:
        """Read some columns to the end, and keep them."""
        self._fetched = FetchedRows(self._of_relation(list(columns)))
        self.rows = self._fetched.rows

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        if self._fetched is not None and self._fetched.has(columns):
            return _pieces(self._fetched.batches(), columns, batch_rows)
        return super().read(columns, batch_rows)

    def _of_relation(self, columns: list[str], _: int = 0) -> Iterator[pa.RecordBatch]:
        column = sys.modules["duckdb"].ColumnExpression
        with _computing("the DuckDB relation"):
            chosen = self._relation.select(*map(column, columns))
            with closing(pa.RecordBatchReader.from_stream(chosen)) as reader:
                yield from reader


def _of_dataset(dataset: Any) -> LibraryEvents:
    def batches(columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        with _computing("the dataset"):
            yield from dataset.to_batches(columns=columns, batch_size=batch_rows)

    return LibraryEvents(dataset.schema, batches, "the dataset")


class FlatEvents:
    """Events with the fields of their objects as columns; only what is asked for is read.

    Parameters
    ----------
    reader : Reader
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._paths = paths_of(reader.schema)
        self.schema = flat_schema(reader.schema, "the events")
        self.rows = reader.rows
        self.reusable = reader.reusable

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        for batch in self._reader.read(self._whole(columns), batch_rows):
            arrays = [column_at(batch, self._paths[name]) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    @property
    def is_fetched(self) -> bool:
        """Whether they come from a DuckDB relation; see ``RelationEvents``."""
        return isinstance(self._reader, RelationEvents)

    def fetch(self, columns: Sequence[str]) -> None:
        """Read some columns of a relation to the end, and keep them."""
        if isinstance(self._reader, RelationEvents):
            self._reader.fetch(self._whole(columns))

    def _whole(self, columns: Sequence[str]) -> list[str]:
        """The columns that hold these fields."""
        return list(dict.fromkeys(self._paths[name][0] for name in columns))


def _stream_of(events: Any) -> pa.RecordBatchReader:
    """What an object with ``__arrow_c_stream__`` hands out.

    Raises
    ------
    UsageError
        ``ACEP-U146``: no record batches.
    """
    try:
        return pa.RecordBatchReader.from_stream(events)
    except pa.ArrowException as error:
        raise _no_columns(events, error) from error


def _no_columns(events: Any, error: Exception) -> UsageError:
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


class BatchesEvents:
    """Record batches or tables, one after the other, as one stream.

    Parameters
    ----------
    first : sequence of pyarrow.RecordBatch or pyarrow.Table
        At least one. Together they say which columns there are, and their types; a batch that lacks a column has null
        there.
    others : iterator, optional
        What comes after them, read once; it may bring no other columns. None: all are there.

    Raises
    ------
    DataError
        ``ACEP-D066``, while reading: a batch has a column that ``first`` has not, or one of a type that does not go
        together with that of others.
    """

    def __init__(self, first: Sequence[Part], others: Iterator[Part] | None = None) -> None:
        known: dict[str, pa.Field] = {}
        for number, part in enumerate(first):
            for field in plain_schema(part.schema, f"batch {number}"):
                known[field.name] = _wider(known.get(field.name), field, number)
        self.schema = pa.schema(list(known.values()))
        self.reusable = others is None
        self.rows = sum(part.num_rows for part in first) if others is None else None
        self._first = first
        self._others: Iterable[Part] = () if others is None else others

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        parts = chain(self._first, self._others)
        yield from _pieces(self._fitted(parts, schema), columns, batch_rows)

    def _fitted(self, parts: Iterable[Part], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        known = set(self.schema.names)
        for number, part in enumerate(parts):
            if extra := set(part.schema.names) - known:
                raise DataError(
                    f"batch {number} has the columns {', '.join(sorted(extra))}, and the first had not",
                    code="ACEP-D066",
                    hint="give the first batch all columns, with nulls where it has no values",
                )
            for batch in part.to_batches() if isinstance(part, pa.Table) else [part]:
                arrays = []
                for field in schema:
                    if field.name in batch.schema.names:
                        column = batch.column(field.name)
                        type_ = _together(field.name, field.type, plain_type(column.type), number)
                        arrays.append(as_wider(column, type_))
                    else:
                        arrays.append(pa.nulls(batch.num_rows, field.type))
                yield pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _wider(known: pa.Field | None, found: pa.Field, number: int) -> pa.Field:
    """A column with the type of two batches; types that do not go together are an error only where it is read."""
    if known is None or why_unreadable(known) or why_unreadable(found):
        return found if known is None or not why_unreadable(known) else known
    try:
        return pa.field(found.name, _together(found.name, known.type, found.type, number))
    except DataError as error:
        return unreadable(found.name, error.message, error.code)


def _together(name: str, known: pa.DataType, found: pa.DataType, number: int) -> pa.DataType:
    wider = common_type(known, found)
    if wider is None:
        raise DataError(
            f"column {name!r} is {known} so far, and {found} in batch {number}",
            code="ACEP-D066",
            hint="give the column one type in all batches",
        )
    return wider


def open_object(events: Any, malformed: MalformedRows | None = None) -> Reader:
    """The reader of events that are no files; ``malformed`` is told of dicts that do not go together with others.

    Raises
    ------
    UsageError
        ``ACEP-U107``: they cannot be read from such an object; ``ACEP-U146``: it gives Arrow data without columns.
    DataError
        What the readers raise.
    """
    if isinstance(events, pa.RecordBatch):
        events = pa.Table.from_batches([events])
    if isinstance(events, pa.Table):
        reader: Reader = TableEvents(events)
    elif isinstance(events, pa.RecordBatchReader):
        reader = _of_reader(events)
    else:
        reader = _of_library(events) or _of_arrow(events) or _of_items(events, malformed)
    return FlatEvents(reader) if has_objects(reader.schema) else reader


def _of_library(events: Any) -> Reader | None:
    for module, names, reader in (
        ("pandas", ("DataFrame",), FrameEvents),
        ("polars", ("DataFrame", "LazyFrame"), _of_polars),
        ("duckdb", ("DuckDBPyRelation",), RelationEvents),
        ("pyarrow.dataset", ("Dataset",), _of_dataset),
    ):
        library = sys.modules.get(module)
        if library is not None and isinstance(events, tuple(getattr(library, name) for name in names)):
            return reader(events)
    return None


def _of_arrow(events: Any) -> Reader | None:
    """The reader of an object that speaks Arrow's PyCapsule interface; None: it does not.

    One that knows how many rows it has is a table, and can be asked again; of any other its stream is read once.
    """
    if hasattr(events, "__arrow_c_stream__"):
        rows = _rows_of(events)
        if rows is None or isinstance(events, Iterator):
            return _of_reader(_stream_of(events), "the stream")

        def batches(*_: Any) -> Iterator[pa.RecordBatch]:
            with closing(_stream_of(events)) as reader:
                yield from reader

        with closing(_stream_of(events)) as reader:
            return LibraryEvents(reader.schema, batches, "the table", rows=rows)
    if hasattr(events, "__arrow_c_array__"):
        try:
            return TableEvents(pa.Table.from_batches([pa.record_batch(events)]))
        except REFUSED as error:
            raise _no_columns(events, error) from error
    return None


def _rows_of(table: Any) -> int | None:
    rows = getattr(table, "num_rows", None)
    if rows is None and hasattr(type(table), "__len__"):
        try:
            rows = len(table)
        except TypeError:  # of an answer that can be had only once
            return None
    return rows if isinstance(rows, int) else None


def _of_items(events: Any, malformed: MalformedRows | None) -> Reader:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(events, numpy.ndarray) and events.dtype.names and events.ndim == 1:
        return TableEvents(_of_records(events))
    if not isinstance(events, Iterable) or isinstance(events, str | bytes | dict) or getattr(events, "ndim", 1) == 0:
        raise UsageError(
            f"events cannot be read from an object of type {type(events).__name__}",
            code="ACEP-U107",
            hint="a dict of columns is a table: pyarrow.table(events)"
            if isinstance(events, dict)
            else "pass a table or a frame (Arrow, pandas, polars, DuckDB), an iterable of dicts, or a path",
        )
    iterator = iter(events)
    is_once = iterator is events
    first = list(islice(iterator, 1))
    if first and isinstance(first[0], Part):
        return BatchesEvents(first, iterator) if is_once else BatchesEvents(_only_batches(events))
    return DictEvents(chain(first, iterator) if is_once else events, malformed)


def _only_batches(events: Iterable[Any]) -> list[Any]:
    parts = list(events)
    for number, part in enumerate(parts):
        if not isinstance(part, Part):
            raise DataError(
                f"item {number} is no record batch, as the first was: {part!r:.80}",
                code="ACEP-D066",
                hint="pass record batches or tables alone",
            )
    return parts


def _of_records(events: Any) -> pa.Table:
    columns, fields = [], []
    for name in events.dtype.names:
        values = events[name]
        try:
            columns.append(pa.array(values.astype(values.dtype.newbyteorder("="))))
            fields.append(pa.field(name, columns[-1].type))
        except REFUSED as error:
            columns.append(pa.nulls(len(values)))
            fields.append(unreadable(name, f"it is of type {values.dtype}: {error}"))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
