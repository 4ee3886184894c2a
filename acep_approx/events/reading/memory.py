"""Events that are already in memory: Arrow tables, pandas frames, dicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import from_python, missing_column, plain_schema, refuse_many, refuse_twins, unreadable
from acep_approx.events.reading.malformed import MalformedRows, Row
from acep_approx.events.reading.nested import flat_row, map_note, maps_among
from acep_approx.events.reading.widening import common_type
from acep_approx.events.roles import TIME_MARK, TIME_NAMES, WRITTEN_MARK, time_column
from acep_approx.visible import broken_at

DICTS_PER_CHUNK = 10_000
"""Dicts are converted in chunks of so many; of a generator the first one says which columns there are."""
REFUSED = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What Arrow raises for values that do not go together, or that it has no type for."""
OF_AN_EVENT = ("ACEP-D018", "ACEP-D022", "ACEP-D023")
"""Errors for which one event is to blame."""


class TableEvents:
    """A table or a record batch.

    Parameters
    ----------
    table : pyarrow.Table
        The events; a column that ``unreadable`` made stands for one that cannot be read.
    """

    reusable = True

    def __init__(self, table: pa.Table) -> None:
        self.schema = plain_schema(table.schema, "the table")
        if WRITTEN_MARK in (table.schema.metadata or {}):  # who reads live input pushes its columns before its events
            self.schema = self.schema.with_metadata({WRITTEN_MARK: b""})
        self.rows: int | None = table.num_rows
        self._table = table

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``."""
        yield from self._table.select(columns).to_batches(max_chunksize=batch_rows)


class FrameEvents:
    """A pandas frame; the levels of its index that have a name are columns too.

    A DatetimeIndex is the time of the events if no column can be told to be it. Without a name it becomes the column
    ``ts`` then (or the next of ``TIME_NAMES`` that is free), else it is left out, as any index without a name.

    Parameters
    ----------
    frame : pandas.DataFrame
        The events.
    """

    reusable = True

    def __init__(self, frame: Any) -> None:
        index = frame.index
        named = [name for name in index.names if name is not None and name not in frame.columns]
        frame = frame.reset_index(level=named) if named else frame
        names = [str(name) for name in frame.columns]
        refuse_twins(names, "the frame")
        self._frame = frame.set_axis(names, axis="columns")
        self.schema = self._schema()
        self.rows: int | None = len(frame)
        if index.nlevels == 1 and index.dtype.kind == "M" and time_column(self.schema) is None:
            if named:
                time = str(named[0])
            else:
                taken = {name.lower() for name in self.schema.names}
                time = next(name for name in (*TIME_NAMES, "index") if name not in taken)
                self._frame = self._frame.assign(**{time: index})[[time, *self.schema.names]]
                self.schema = self._schema()
            self.schema = self.schema.with_metadata({TIME_MARK: time.encode()})

    def _schema(self) -> pa.Schema:
        try:
            schema = pa.Schema.from_pandas(self._frame, preserve_index=False)
        except REFUSED:
            schema = pa.schema([_field_of(name, self._frame[name]) for name in self._frame.columns])
        return plain_schema(schema, "the frame")

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``, converted as they are read."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        frame = self._frame[list(columns)]
        for start in range(0, len(frame), batch_rows):
            part = frame.iloc[start : start + batch_rows]
            if any(_is_sparse(dtype) or _is_of_intervals(dtype) for dtype in part.dtypes):
                part = part.apply(_dense)
            try:
                yield pa.RecordBatch.from_pandas(part, schema=schema, preserve_index=False)
            except REFUSED as error:
                raise _mixed(_refused_column(part, schema), error) from error


def _field_of(name: str, series: Any) -> pa.Field:
    """A column of a frame that has one that is none for Arrow, which is an error only where it is read."""
    try:
        return pa.field(name, pa.array(_dense(series), from_pandas=True).type)
    except REFUSED as error:
        return unreadable(name, error)


def _is_sparse(dtype: Any) -> bool:
    return hasattr(dtype, "fill_value") and hasattr(dtype, "subtype")


def _is_of_intervals(dtype: Any) -> bool:
    """Whether it is one of categories that are intervals, which Arrow cannot take from their codes."""
    return hasattr(dtype, "categories") and hasattr(dtype.categories.dtype, "closed")


def _dense(series: Any) -> Any:
    """A column of pandas, with all of its values where it holds but those that differ from most, or codes of some."""
    if _is_of_intervals(series.dtype):
        return series.astype(series.dtype.categories.dtype)
    return series.sparse.to_dense() if _is_sparse(series.dtype) else series


def _refused_column(frame: Any, schema: pa.Schema) -> str:
    for field in schema:
        try:
            pa.array(frame[field.name], field.type, from_pandas=True)
        except REFUSED:
            return f"column {field.name!r} of the frame"
    return "the frame"


class DictEvents:
    """An iterable of dicts; one-shot if it is an iterator (a generator).

    Parameters
    ----------
    events : iterable of dict
        All of them, or of a generator the first 10,000, say which columns there are. A dict may lack a column (null),
        but not have others. The types are those of the values so far. The items of a dict in a dict are columns
        ``outer.inner``.
    malformed : MalformedRows, optional
        What happens to events that do not go together with others. Default: they are refused.

    Raises
    ------
    DataError
        ``ACEP-D018`` a column holds values of several types; ``ACEP-D022`` an event has a name that is no
        column; ``ACEP-D023`` an event is not a dict. Where malformed rows are skipped, such events are left out; a
        column has the type of most of its first values then.
    """

    def __init__(self, events: Iterable[Any], malformed: MalformedRows | None = None) -> None:
        self.malformed = MalformedRows() if malformed is None else malformed
        self._given: tuple[Sequence[Any], Sequence[int]] = [], []
        self.rows = len(events) if isinstance(events, Sized) else None
        iterator = iter(events)
        self.reusable = iterator is not events
        self._events = events
        self._made: dict[str, pa.Array] = {}  # columns of the first rows, where these cannot be read again
        first = list(islice(iterator, DICTS_PER_CHUNK))
        rows = [event for event in first if _is_event(event)] if self._skips else _only_dicts(first, 0)
        self._is_nested = any(isinstance(value, Mapping) for row in rows for value in row.values())
        self._maps: tuple[str, ...] = ()
        rows = self._flat(rows)
        names = dict.fromkeys(chain.from_iterable(rows))
        late: dict[Any, None] = {}
        if self.reusable:  # what is no dict, or no name, is refused when it is read
            others = (row for row in iterator if isinstance(row, (dict, Mapping)))
            more = dict.fromkeys(chain.from_iterable(map(flat_row, others) if self._is_nested else others))
            late = {name: None for name in more if isinstance(name, str) and name not in names}
        if self._is_nested:
            self._maps = maps_among([*names, *late])
            names, late = (dict.fromkeys(self._without_maps(some)) for some in (names, late))
        refuse_many([*names, *late], "the events")
        _refuse_broken([*names, *late])
        fields = [self._field_of(name, [row.get(name) for row in rows]) for name in names]
        fields += [pa.field(name, pa.null()) for name in late]
        self.schema = plain_schema(pa.schema(fields), "the events")
        self._pending = None if self.reusable else chain(first, iterator)

    @property
    def notes(self) -> list[str]:
        """What is to be said of the columns."""
        return [map_note(name.removesuffix(".")) for name in self._maps]

    def _flat(self, rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        if not self._is_nested:
            return rows
        flat = [flat_row(row) for row in rows]
        return [self._without_maps(row) for row in flat] if self._maps else [*flat]

    def _without_maps(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if not name.startswith(self._maps)}

    def expect(self, names: Iterable[str]) -> None:
        """Columns that there are, too, though no dict may have them."""
        for name in names:
            if name not in self.schema.names:
                if broken_at(name) is not None:  # Arrow has no such names
                    raise missing_column(name, self.schema.names)
                self.schema = self.schema.append(pa.field(name, pa.null()))

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``; types become wider as values come."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        known = set(self.schema.names)
        rows, first_row = iter(self._events) if self._pending is None else self._pending, 0
        made, self._made = self._made, {}
        while chunk := list(islice(rows, min(batch_rows, DICTS_PER_CHUNK))):
            try:
                if first_row == 0 and made and all(len(made.get(name, ())) == len(chunk) for name in columns):
                    arrays = [made[name] for name in columns]
                else:
                    arrays = _converted(self._fitting(chunk, known, first_row), schema, first_row)
                numbers: Sequence[int] = range(first_row, first_row + len(chunk))
            except DataError as error:
                if not self._skips or error.code not in OF_AN_EVENT:
                    raise
                numbers, arrays = self._salvaged(chunk, known, schema, first_row)
            batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
            self._given = [chunk[number - first_row] for number in numbers] if self._skips else [], numbers
            if batch.num_rows:
                yield batch
            schema = batch.schema
            first_row += len(chunk)

    def where(self, row: int) -> Row | None:
        """Which event a row of the batch given last is, where such may be left out."""
        events, numbers = self._given
        return _row(numbers[row], events[row]) if events else None

    @property
    def _skips(self) -> bool:
        return self.malformed.policy == "skip"

    def _fitting(self, chunk: list[Any], known: set[str], first_row: int) -> list[Mapping[str, Any]]:
        rows = self._flat(_only_dicts(chunk, first_row))
        if set().union(*rows) <= known:
            return rows
        row, event = next((row, event) for row, event in enumerate(rows, first_row) if set(event) - known)
        extra = ", ".join(sorted(map(repr, set(event) - known)))
        raise DataError(
            f"row {row}: {extra} did not occur in the first {DICTS_PER_CHUNK} events",
            code="ACEP-D022",
            hint="give the first event every column (None where it has no value), or pass an Arrow table",
            row=row,
        )

    def _salvaged(
        self, chunk: list[Any], known: set[str], schema: pa.Schema, first_row: int
    ) -> tuple[list[int], list[pa.Array]]:
        good: dict[int, Mapping[str, Any]] = {}
        told: dict[int, DataError] = {}
        for number, event in enumerate(chunk, first_row):
            try:
                (good[number],) = self._fitting([event], known, number)
            except DataError as error:
                told[number] = error
        for field in schema:
            type_ = field.type
            for number in list(good):
                try:
                    type_ = _convert(field.name, [good[number].get(field.name)], type_, number).type
                except DataError as error:
                    told[number] = error
                    del good[number]
        for number in sorted(told):
            reason = told[number].message.removeprefix(f"row {number}: ")
            self.malformed.add(_row(number, chunk[number - first_row]), reason)
        return list(good), _converted(list(good.values()), schema, first_row)

    def _field_of(self, name: str, values: list[Any]) -> pa.Field:
        """A column with its type, by its first values; one of several types is an error only where it is read."""
        try:
            column = _convert(name, values, pa.null(), 0)
        except DataError as error:
            return pa.field(name, self._most_of(values)) if self._skips else unreadable(name, error.message)
        if not self.reusable and not self._skips:
            self._made[name] = column
        return pa.field(name, column.type)

    @staticmethod
    def _most_of(values: list[Any]) -> pa.DataType:
        kinds = Counter(map(_kind, values))
        del kinds["NoneType"]
        most = kinds.most_common(1)[0][0]
        type_ = pa.null()
        for value in values:
            if _kind(value) == most:
                with suppress(*REFUSED):
                    type_ = _typed([value], type_).type
        return type_


def _refuse_broken(names: Iterable[Any]) -> None:
    if bad := next((name for name in names if isinstance(name, str) and broken_at(name) is not None), None):
        raise DataError(
            f"{bad!r} is no name of a column: it holds half of a character, or bytes that are not UTF-8",
            code="ACEP-D191",
            hint="name it in UTF-8",
        )


def _kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def _row(number: int, event: Any) -> Row:
    return Row("events", number, json.dumps(event, ensure_ascii=False, default=str, skipkeys=True), "row")


def _is_event(event: Any) -> bool:
    return isinstance(event, Mapping) and all(isinstance(name, str) for name in event)


def _only_dicts(chunk: list[Any], first_row: int) -> list[Mapping[str, Any]]:
    for row, event in enumerate(chunk, first_row):
        if not _is_event(event):
            raise DataError(
                f"row {row}: an event must be a dict with strings as keys, and this is {event!r:.80}",
                code="ACEP-D023",
                hint="for example {'ts': 1, 'type': 'A', 'price': 2.5}",
                row=row,
            )
    return chunk


def _converted(rows: list[Mapping[str, Any]], schema: pa.Schema, first_row: int) -> list[pa.Array]:
    return [_convert(field.name, [row.get(field.name) for row in rows], field.type, first_row) for field in schema]


def _convert(name: str, values: list[Any], type_: pa.DataType, first_row: int) -> pa.Array:
    try:
        return _typed(values, type_)
    except REFUSED as error:
        for row, value in enumerate(values, first_row):
            try:
                type_ = _typed([value], type_).type
            except REFUSED as refused:
                raise DataError(
                    f"row {row}: column {name!r} is {type_} so far, and {value!r:.80} does not fit: {refused}",
                    code="ACEP-D018",
                    hint="give all events values of one type in a column; whole numbers of more than 64 bits as text",
                    row=row,
                ) from refused
        raise _mixed(f"column {name!r} of the events", error) from error


def _typed(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_nested(type_):
        return pa.array(values, type_)
    found = from_python(values)
    wider = found.type if pa.types.is_null(type_) else common_type(type_, found.type)
    if wider is None:
        raise pa.ArrowInvalid(f"{found.type} and {type_} do not go together")
    return found if found.type.equals(wider) else found.cast(wider)


def _mixed(where: str, error: Exception) -> DataError:
    return DataError(
        f"{where}: values of several types in one column: {error}",
        code="ACEP-D018",
        hint="convert the column to one type first",
    )
