"""Several files as one: their columns in common types, and what is to be said of how they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import pyarrow as pa

from acep_approx.errors import DataError, UsageError
from acep_approx.events.reading.files import FileReader
from acep_approx.events.reading.malformed import Row
from acep_approx.events.reading.widening import WRITTEN, as_wider, common_type, wider_text, with_marks
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.times_in_order import TimesInOrder

AS_WRITTEN = ("csv", "lines")
"""Formats in which every value is a text."""


class FileEvents:
    """Several files as one stream of events, with one schema.

    Parameters
    ----------
    files : sequence of FileReader
        In the order of the stream.
    reusable : bool
        Whether they can be read again.
    paths : sequence of Path
        Theirs, where they have any.

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

    def __init__(self, files: Sequence[FileReader], reusable: bool, paths: Sequence[Path] = ()) -> None:
        self._files = files
        self.paths = paths
        self._file = files[0]  # that is read
        self.reusable = reusable
        _settle_times(files)
        self.understood = files[0].understood
        self.schema = _one_schema(files)
        if reusable or self.understood.format in AS_WRITTEN:
            _check_declared(self.schema, self.understood.declared)
        self.notes = _notes(files)
        counts = [file.rows for file in files]
        self.rows = None if None in counts else sum(count or 0 for count in counts)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, file after file, in batches of at most ``batch_rows``."""
        schema, order = self.schema, TimesInOrder()
        for file in self._files:
            self._file = file
            file.order = order
            for batch in file.read(columns, schema, batch_rows):
                schema = _wider(schema, batch)
                yield with_marks(_aligned(file.name, batch, [schema.field(name) for name in columns]), schema)
        order.finish()

    def where(self, row: int) -> Row | None:
        """Where a row of the batch given last stands."""
        return self._file.where(row)


def _aligned(file: str, batch: pa.RecordBatch, columns: Sequence[pa.Field]) -> pa.RecordBatch:
    here = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = []
    for column in columns:
        try:
            array = here.get(column.name)
            arrays.append(pa.nulls(batch.num_rows, column.type) if array is None else as_wider(array, column.type))
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{file}: column {column.name!r} cannot be read as {column.type}, its type in all files together: "
                f"{error}",
                code="ACEP-D016",
                hint="write the column with one type in all files",
            ) from error
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _notes(files: Sequence[FileReader]) -> list[str]:
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
    swapped = {"%d": "%m", "%m": "%d"}
    return None if text is None else re.sub("%[dm]", lambda found: swapped[found.group()], text)


def _wider(schema: pa.Schema, batch: pa.RecordBatch) -> pa.Schema:
    for given in batch.schema:
        place = schema.get_field_index(given.name)
        known = schema.field(place).type
        type_ = wider_text(known, given) or known
        if not type_.equals(known):
            is_text = pa.types.is_integer(known) and pa.types.is_string(type_)
            schema = schema.set(place, pa.field(given.name, type_, metadata=WRITTEN if is_text else None))
    return schema


def _one_schema(files: Sequence[FileReader]) -> pa.Schema:
    types: dict[str, pa.DataType] = {}
    first: dict[str, FileReader] = {}
    for file in files:
        _check_shared(file, first)
        for field in file.schema:
            known = types.get(field.name, field.type)
            both = common_type(known, field.type) or _as_text(field, known, files)
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


def _check_declared(schema: pa.Schema, declared: Mapping[str, str]) -> None:
    wrong = [name for name in declared if name not in schema.names]
    if wrong and len(schema):
        near = get_close_matches(wrong[0], schema.names, n=1)
        raise UsageError(
            f"a type is said of column {wrong[0]!r}, which is not there; the columns are: {', '.join(schema.names)}",
            code="ACEP-U205",
            hint=f"did you mean {near[0]!r}?" if near else "name one of these: --column-type COLUMN=TYPE",
        )


def _as_text(field: pa.Field, known: pa.DataType, files: Sequence[FileReader]) -> pa.DataType | None:
    """Text, where a column is text in one file, and no other knows anything of it but texts, which it can give, too."""
    if not any(map(pa.types.is_string, (field.type, known))):
        return None
    there = [file for file in files if field.name in file.schema.names]
    others = [file for file in there if not pa.types.is_string(file.schema.field(field.name).type)]
    read = [file.understood for file in others]
    others_way = [name for one in read for name in (*one.times, *one.decimal_commas, *one.thousands, *one.declared)]
    is_open = field.name not in others_way and all(one.format in AS_WRITTEN for one in read)
    return pa.string() if is_open else None


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
