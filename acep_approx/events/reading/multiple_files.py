"""Several files as one: their columns in common types, and what is to be said of how they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import plain_type
from acep_approx.events.reading.files import FileReader
from acep_approx.events.reading.widening import as_wider, common_type
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.times_in_order import TimesInOrder


class FileEvents:
    """Several files as one stream of events, with one schema.

    Parameters
    ----------
    files : sequence of FileReader
        In the order of the stream.
    reusable : bool
        Whether they can be read again.

    Raises
    ------
    DataError
        ``ACEP-D016``: a column has types in two files that do not go together; ``ACEP-D036``: times whose days and
        months stand the other way round in another file; ``ACEP-D170``: a file has no column of those before it.

    Attributes
    ----------
    understood : Understood
        How the first file was read.
    notes : list of str
        What is to be said of how the files were read, and of which, where it is not so in all of them.
    """

    def __init__(self, files: Sequence[FileReader], reusable: bool) -> None:
        self._files = files
        self.reusable = reusable
        _settle_times(files)
        self.understood = files[0].understood
        self.schema = _one_schema(files)
        self.notes = _notes(files)
        counts = [file.rows for file in files]
        self.rows = None if None in counts else sum(count or 0 for count in counts)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, file after file, in batches of at most ``batch_rows``."""
        schema, order = self.schema, TimesInOrder()
        for file in self._files:
            file.order = order
            for batch in file.read(columns, schema, batch_rows):
                schema = _wider(schema, batch)
                yield self._align(file.name, batch, [schema.field(name) for name in columns])
        order.finish()

    def _align(self, name: str, batch: pa.RecordBatch, columns: Sequence[pa.Field]) -> pa.RecordBatch:
        """The batch with all columns, in order and of these types; strings stay as they are encoded."""
        arrays = [
            _cast(name, column.name, batch.column(column.name), column.type)
            if column.name in batch.schema.names
            else pa.nulls(batch.num_rows, column.type)
            for column in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _notes(files: Sequence[FileReader]) -> list[str]:
    """What is to be said of how files were read; what is not so in all of them, with the names of those."""
    by_note: dict[str, list[str]] = {}
    for file in files:
        for note in dict.fromkeys(file.understood.notes):
            by_note.setdefault(note, []).append(file.name)
    by_files: dict[tuple[str, ...], list[str]] = {}
    for note, names in by_note.items():
        by_files.setdefault(tuple(names), []).append(note)
    found = []
    for those, notes in by_files.items():
        others = f" and {len(those) - 1} more" if len(those) > 1 else ""
        found += notes if len(those) == len(files) else [f"of {those[0]}{others}: {', '.join(notes)}"]
    return found


def _settle_times(files: Sequence[FileReader]) -> None:
    """Let files in which days and months look alike follow those that tell them apart."""
    decided: dict[str, tuple[TimeFormat, str]] = {}
    for file in files:
        for name, written in file.understood.times.items():
            known, other = decided.setdefault(name, (written, file.name))
            if known != written and _turned(known.text) == written.text:
                raise DataError(
                    f"column {name!r} holds times written as {known} in {other}, but as {written} in {file.name}",
                    code="ACEP-D036",
                    hint="say how they are written: --time-format (time_format=), or match the files one by one",
                )
    for file in files:
        times = {}
        for name, fitting in file.understood.open_times.items():
            if name in decided and decided[name][0].text in fitting:
                times[name] = decided[name][0]
        if times:
            file.settle_times(times)


def _turned(text: str | None) -> str | None:
    """A format with days in the place of months, and the other way round."""
    swapped = {"%d": "%m", "%m": "%d"}
    return None if text is None else re.sub("%[dm]", lambda found: swapped[found.group()], text)


def _wider(schema: pa.Schema, batch: pa.RecordBatch) -> pa.Schema:
    """The schema, with wider types where a batch has them."""
    for given in batch.schema:
        place = schema.get_field_index(given.name)
        known = schema.field(place).type
        type_ = common_type(known, plain_type(given.type)) or known
        if not type_.equals(known):
            schema = schema.set(place, pa.field(given.name, type_))
    return schema


def _cast(file: str, column: str, array: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return as_wider(array, type_)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{file}: column {column!r} cannot be read as {type_}, its type in all files together: {error}",
            code="ACEP-D016",
            hint="write the column with one type in all files",
        ) from error


def _one_schema(files: Sequence[FileReader]) -> pa.Schema:
    """All columns of all files, in their common types."""
    types: dict[str, pa.DataType] = {}
    first: dict[str, FileReader] = {}
    for file in files:
        _check_shared(file, first)
        for field in file.schema:
            known = types.get(field.name, field.type)
            both = common_type(known, field.type)
            if both is None:
                raise DataError(
                    f"column {field.name!r} is {known} in {first[field.name].name}, but {field.type} in {file.name}",
                    code="ACEP-D016",
                    hint=_open_time(field.name, [first[field.name], file])
                    or "write the column with one type in all files, or match the files one by one",
                )
            types[field.name] = both
            first.setdefault(field.name, file)
    return pa.schema(types.items())


def _open_time(column: str, files: Sequence[FileReader]) -> str:
    """What to do where times of a file fit several formats, so that they are text; empty where that is not so."""
    for file in files:
        if fitting := file.understood.open_times.get(column):
            said = " or ".join(f"--time-format {text!r}" for text in fitting)
            return f"times in {file.name} are text, their format is not sure: match the files one by one, with {said}"
    return ""


def _check_shared(file: FileReader, known: dict[str, FileReader]) -> None:
    """Refuse a file without any column of those before: it is of other events, or its delimiter was not found."""
    if known and file.schema.names and not known.keys() & set(file.schema.names):
        delimiter = file.understood.delimiter
        raise DataError(
            f"{file.name} has no column of the files before: {', '.join(file.schema.names)}"
            + (f", read with the delimiter {delimiter!r}" if delimiter else ""),
            code="ACEP-D170",
            hint="match it alone, with --delimiter where columns are not told apart; or leave it out",
        )
