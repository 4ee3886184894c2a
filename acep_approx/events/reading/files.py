"""Files of events: which ones a user names, in which format, and opened as readers; several as one stream.

Columns of several files have common types, and it is said how files differ. Those of Parquet are read here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from glob import glob, has_magic
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import plain_schema
from acep_approx.events.reading.decoding import PARQUET, open_stored, refuse_misnamed, stored_as
from acep_approx.events.reading.decoding import SUFFIXES as COMPRESSED
from acep_approx.events.reading.formats.csv_headers import directives_of, likely_delimiter, looks_like_events
from acep_approx.events.reading.formats.json_documents import (
    HEAD_BYTES,
    AsLines,
    Document,
    document_of,
    has_several_on_a_line,
    starts_array,
)
from acep_approx.events.reading.formats.log_lines import likely_line_format
from acep_approx.events.reading.layout import Layout, Understood
from acep_approx.events.reading.malformed import MalformedRows, Row, row_of
from acep_approx.events.reading.nested import column_at, flat_schema, has_objects, paths_of
from acep_approx.events.reading.text import TextFile, text_format
from acep_approx.events.reading.widening import WRITTEN, as_wider, common_type, wider_text, with_marks
from acep_approx.events.stores import reaching
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.times_in_order import TimesInOrder
from acep_approx.shell import quoted
from history.places import StorePath, fault, place_of


class ParquetFile:
    """One Parquet file, read row group by row group.

    Parameters
    ----------
    name : str
        For messages.
    source : Path or pyarrow.NativeFile
        Path or buffer.
    """

    def __init__(self, name: str, source: Any) -> None:
        import pyarrow.parquet as pq

        self.name = name
        self.order = TimesInOrder()  # its texts are no times here
        self._source = source
        self._last: tuple[int, pa.RecordBatch] | None = None
        try:
            file = pq.ParquetFile(_opened(source))
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
                _opened(self._source), read_dictionary=self._text, pre_buffer=False, buffer_size=1 << 20
            ) as file:
                first = 0
                for batch in file.iter_batches(batch_rows, columns=here, use_threads=False):
                    self._last = first, batch
                    first += batch.num_rows
                    if not has_objects(batch.schema):
                        yield batch
                        continue
                    columns_here = [column_at(batch, self._paths[name]) for name in here]  # the file gives these alone
                    yield pa.RecordBatch.from_arrays(columns_here, names=here)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def where(self, row: int) -> Row | None:
        """Where a row of the batch given last stands: its number in the file, from 0, and what was read of it."""
        return None if self._last is None else row_of(self.name, self._last[0], self._last[1], row)

    def _damaged(self, error: Exception) -> Exception:
        if isinstance(error, OSError) and isinstance(self._source, StorePath):
            return fault(self._source, error)
        return DataError(
            f"{self.name}: cannot be read as Parquet: {error}",
            code="ACEP-D013",
            hint="the file may be damaged or cut off, or in another format: --input-format csv|jsonl",
        )


def _opened(source: Any) -> Any:
    """A file of events as Arrow opens it, anew each time that it is one of a store."""
    if isinstance(source, StorePath):
        return source.native()
    return str(source) if isinstance(source, Path) else source


_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://?")
"""``Path`` makes one slash of two."""
BROKERS = ("amqp", "amqps", "mqtt", "mqtts", "nats", "pulsar", "redis", "rediss", "ws", "wss")
"""Where messages come from that are no files."""
FORMATS = ("parquet", "csv", "jsonl", "json", "lines")
SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".psv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}
DELIMITERS = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
"""What a name says of the delimiter."""
FIRST_BYTES = 1 << 14
"""What is looked at where the name of a file does not tell its format."""
LOGS = (".log", ".txt")
"""Names of logs in a folder."""
FileReader = ParquetFile | TextFile
"""One file: its columns, its rows if known, and its batches."""
ONLY_CSV = ("delimiter", "columns", "decimal")
"""What only CSV has."""


def named_paths(given: str | Path) -> list[Path]:
    """The paths that a name stands for; a name with ``*``, ``?`` or ``[...]`` for all that fit, in name order.

    Raises
    ------
    DataError
        ``ACEP-D010`` there is no such file; ``ACEP-D181`` an address such as ``https://...``.
    PlaceError
        An object store refuses it.
    """
    path = place_of(given)
    if isinstance(path, StorePath):
        return _stored_paths(path)
    if is_there(given) and str(given) != "":  # which Path takes for the folder that one is in
        return [path]
    if address := _ADDRESS.match(str(given)):
        raise _an_address(str(given), address)
    if not has_magic(str(given)):
        raise _no_such_file(given)
    if found := sorted(glob(str(given), recursive=True)):  # noqa: PTH207  (a Path globs below a folder only)
        return [Path(name) for name in found]
    raise DataError(f"{path}: no file has such a name", code="ACEP-D010", hint="check the folder and the pattern")


def _stored_paths(place: StorePath) -> list[Path]:
    """An object, a folder of a store, or the objects of a folder whose names fit."""
    if place.exists():
        return [place]
    found: list[Path] = [*place.parent.glob(place.name)] if has_magic(place.name) else []
    if not found:
        raise _no_such_file(place)
    return found


def is_there(given: str | Path) -> bool:
    """Whether there is a file or a folder of a name that one can have.

    Raises
    ------
    DataError
        ``ACEP-D010``: none can.
    """
    if "\n" in str(given):
        raise DataError(
            f"{str(given).splitlines()[0]!r:.60} ...: a path has no lines: this is text",
            code="ACEP-D010",
            hint="write it to a file, and name that; or read it first, as by pyarrow.csv.read_csv(io.BytesIO(...))",
        )
    if "\0" in str(given):
        raise DataError(f"{str(given)!r:.80}: no file has such a name", code="ACEP-D010", hint="check the path")
    try:
        return Path(given).exists()
    except OSError as error:  # longer than names can be, such as a query
        raise DataError(
            f"{str(given)!r:.60} ...: no file has such a name: {error.strerror}",
            code="ACEP-D010",
            hint="name the file; a query comes before its inputs",
        ) from error


def _an_address(given: str, found: re.Match[str]) -> DataError:
    scheme = found[1].lower()
    address = f"{found[1]}://{given[found.end() :]}"
    if scheme in ("http", "https", "ftp"):
        hint = f"load it first: curl -L -o FILE '{address}'; or feed it: curl -sL '{address}' | acep look -"
    elif scheme == "file":
        hint = f"name the file itself: {re.sub('^/*', '/', given[found.end() :])}"
    elif scheme == "kafka":
        hint = "a topic is named kafka://BROKER:9092/TOPIC"
    elif scheme in BROKERS:
        hint = "let a client of it write the messages, one on a line: ... | acep run QUERY -"
    else:
        hint = "copy it here first, or to a store that is read: s3://, gs://, abfs://, hdfs://"
    return DataError(f"{address}: an address, and only files are read", code="ACEP-D181", hint=hint)


def _no_such_file(given: str | Path) -> DataError:
    path = place_of(given)
    if str(given) == "":
        return DataError("an empty name is no file", code="ACEP-D010", hint="is a variable of the shell not set?")
    from difflib import get_close_matches

    there = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, there, n=1)
    hint = f"did you mean {str(path.parent / close[0])!r}?" if close else "check the path"
    return DataError(f"{path}: there is no such file", code="ACEP-D010", hint=hint)


@dataclass(frozen=True)
class InputFile:
    """A file to read: its path and its format."""

    path: Path
    format: str


def find_files(
    paths: Sequence[str | Path],
    format: str | None = None,  # noqa: A002
    layout: Layout | None = None,
) -> list[InputFile]:
    """The files behind paths of files and folders.

    Parameters
    ----------
    paths : sequence of str or Path
        Files, in the order given; a folder stands for all files below it of a known format, in name order; a name with
        ``*``, ``?`` or ``[...]`` for the files that fit, in name order.
    format : str, optional
        ``parquet``, ``csv``, ``jsonl`` or ``json``. Default: by the file's name; where that does not tell it, by its
        first lines.
    layout : Layout, optional
        What is said of them: what only CSV has tells that files are CSV that tell nothing themselves.

    Returns
    -------
    list of InputFile
        At least one.

    Raises
    ------
    DataError
        ``ACEP-D010`` no such file; ``ACEP-D011`` nothing to read in a folder; ``ACEP-D012`` unknown format;
        ``ACEP-D181`` an address in the place of a path.
    """
    found: list[InputFile] = []
    is_csv = says_csv(layout)
    for path in chain.from_iterable(map(named_paths, paths)):
        if path.is_dir():
            inside = files_below(path, format, is_csv)
            if not inside:
                raise DataError(
                    f"{path}: the folder has no file that can be read",
                    code="ACEP-D011",
                    hint=f"files are recognised by {' '.join(SUFFIXES)}, the text formats also with "
                    f"{' '.join(COMPRESSED)}",
                )
            found += inside
        else:
            found.append(InputFile(path, format or format_of(path) or _detected_format(path, is_csv=is_csv)))
    return found


def says_csv(layout: Layout | None) -> bool:
    """Whether something is said that only CSV has."""
    return layout is not None and bool({*ONLY_CSV} & {*layout.said})


def files_below(folder: Path, format_: str | None, is_csv: bool) -> list[InputFile]:
    """The files that are read of a folder, in the order of their names.

    Parameters
    ----------
    folder : Path
    format_ : str or None
        What is said of it.
    is_csv : bool
        Whether something is said that only CSV has.
    """
    visible = [path for path in folder.rglob("*") if path.is_file() and _is_visible(path.relative_to(folder))]
    visible.sort(key=lambda path: path.relative_to(folder).parts)
    known = [(path, format_of(path) or _log_format(path, format_, is_csv=is_csv)) for path in visible]
    return [InputFile(path, format_ or by_name) for path, by_name in known if by_name]


def would_be_read(folder: Path, file: Path, format_: str | None, is_csv: bool) -> bool:
    """Whether a file that is to be written would be read with the files of a folder, by its name or behind links."""
    root = os.path.realpath(folder)
    places = Path(os.path.realpath(file.parent), file.name), Path(os.path.realpath(file))
    is_log = _plain(file).suffix in LOGS and (format_ == "lines" or is_csv)
    return (is_log or format_of(file) is not None) and any(
        place.is_relative_to(root) and _is_visible(place.relative_to(root)) for place in places
    )


def _is_visible(path: Path) -> bool:
    return not any(part[0] in "._" for part in path.parts)


def _log_format(path: Path, format_: str | None, *, is_csv: bool) -> str | None:
    """Of a log by its name: lines, where these are asked for; CSV, where that or lines of ``#`` name its columns."""
    if _plain(path).suffix not in LOGS:
        return None
    if format_ == "lines" or is_csv:
        return format_ or "csv"
    with open_stored(path, stored_as(path, None)) as stream:
        return "csv" if directives_of(stream.read(FIRST_BYTES), str(path)) is not None else None


def format_of(path: Path) -> str | None:
    """The format that a name stands for."""
    suffix = _plain(path).suffix
    found = SUFFIXES.get(suffix)
    return None if found == "parquet" and path.suffix.lower() != suffix else found


def _plain(path: Path) -> Path:
    name = Path(path.name.lower())
    return name.with_suffix("") if name.suffix in COMPRESSED else name


def _detected_format(path: Path, *, is_csv: bool) -> str:
    stored = stored_as(path, None)
    with open_stored(path, stored) as stream:
        start = stream.read(FIRST_BYTES)
    whole = start[: start.rfind(b"\n") + 1] or start
    if stored.compression is None and start.startswith(PARQUET):
        return "parquet"
    if whole.lstrip()[:1] in (b"{", b"["):
        return "json"
    if is_csv or directives_of(whole, str(path)) is not None:
        return "csv"
    delimiter = likely_delimiter(whole).encode()
    lines = whole.splitlines()[:2]
    is_log = _plain(path).suffix in LOGS and looks_like_events(whole, delimiter.decode())
    if len(lines) < 2 or is_log or not all(delimiter in line for line in lines):
        raise _unknown_format(path, whole)
    return "csv"


def likely_log(name: str | Path) -> str:
    """The format of lines that a file has which is no table; empty where its first lines do not tell."""
    path = Path(name)
    if not path.is_file():
        return ""
    with open_stored(path, stored_as(path, None)) as stream:
        start = stream.read(FIRST_BYTES)
    return likely_line_format(start[: start.rfind(b"\n") + 1] or start)


def _unknown_format(path: Path, start: bytes) -> DataError:
    written = likely_line_format(start)
    say = f"say it: --input-format {'|'.join(FORMATS)} (format='...' in Python)"
    return DataError(
        f"{path}: the format cannot be told from the name, nor from the first lines",
        code="ACEP-D012",
        hint=f"its lines look like a log: --line-format {quoted(written)} (line_format={written!r} of open_source)"
        if written
        else f"{say}; of the lines of a log how they are written: --line-format '{{time}} {{level}} {{message}}', "
        "apache, syslog",
    )


def open_file(file: InputFile, malformed: MalformedRows, layout: Layout) -> FileReader:
    """Open one file as far as its columns and their types.

    Raises
    ------
    DataError
        ``ACEP-D013`` it cannot be read; ``ACEP-D182`` it is in another format; the errors of :class:`TextFile`.
    UsageError
        ``ACEP-U121``: something is said of it that such files have not.
    """
    name = str(file.path)
    check_layout(file.format, name, layout)
    if file.format == "parquet":
        return ParquetFile(name, file.path)
    stored = stored_as(file.path, layout.encoding)
    with open_stored(file.path, stored) as stream:
        start = stream.read(FIRST_BYTES)
    refuse_misnamed(start, name, file.format)
    if file.format == "csv" and layout.delimiter is None:
        named = DELIMITERS.get(_plain(file.path).suffix)  # which its first lines must have
        layout = replace(layout, delimiter=named if named is not None and named.encode() in start else None)
    if file.format in ("csv", "lines"):
        text = text_format(file.format, name, layout, stored)
        return TextFile(name, lambda: open_stored(file.path, stored), text, malformed)
    with open_stored(file.path, stored) as stream:
        if file.format == "json":
            document = document_of(stream.read(HEAD_BYTES))
        else:  # what is said to be lines may be an array all the same
            start = stream.read(1 << 12)
            document = document_of(start) if starts_array(start) else lines_or_objects(start)
    text = text_format(file.format, name, layout, stored, document)
    return TextFile(name, lambda: as_lines(open_stored(file.path, stored), document, name), text, malformed)


def lines_or_objects(start: bytes) -> Document:
    """What JSON lines are: an object on each, or several."""
    return Document("objects" if has_several_on_a_line(start) else "lines")


def as_lines(stream: Any, document: Document, name: str) -> Any:
    """A JSON document as JSON lines."""
    return stream if document.kind == "lines" else AsLines(stream, document, name)


def check_layout(format: str, name: str, layout: Layout) -> None:  # noqa: A002
    """Raise ``ACEP-U121`` if something is said of a file that its format has not."""
    if format == "lines" and layout.line_format is None:
        raise UsageError(
            f"{name} is to be read as lines, and their format is not said",
            code="ACEP-U120",
            hint="say it: --line-format '{time} {level} {message}' (line_format= of open_source)",
        )
    typed = ("column_types", "null", "thousands")
    others = {"parquet": (*ONLY_CSV, *typed, "encoding", "line_format"), "csv": ("line_format",), "lines": ONLY_CSV}
    for said in layout.said:
        if said in others.get(format, (*ONLY_CSV, "line_format")):
            raise UsageError(
                f"{said} is given, and {name} is read as {format}, which has none",
                code="ACEP-U121",
                hint=f"leave it out, or say the format of the files: --input-format {'|'.join(FORMATS)}",
            )


def standard_input() -> BufferedReader:
    """What can be read once."""
    if sys.stdin is None:
        hint = "name a file, or let a program write events: ... | acep run QUERY -"
        raise UsageError("standard input is closed", code="ACEP-U192", hint=hint)
    stream: Any = sys.stdin.buffer
    return stream  # type: ignore[no-any-return]


def check_format(format: str | None) -> None:  # noqa: A002
    """Raise ``ACEP-U104`` if there is no such format."""
    if format is not None and format not in FORMATS:
        raise UsageError(
            f"there is no format {format!r}", code="ACEP-U104", hint=f"the formats are {', '.join(FORMATS)}"
        )


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
        with reaching():
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
    """Return text if one file has a column as text and every other one can give it as text, too; else None."""
    if not any(map(pa.types.is_string, (field.type, known))):
        return None
    there = [file for file in files if field.name in file.schema.names]
    others = [file for file in there if not pa.types.is_string(file.schema.field(field.name).type)]
    read = [file.understood for file in others]
    others_way = [name for one in read for name in (*one.times, *one.decimal_commas, *one.thousands, *one.declared)]
    is_open = field.name not in others_way and all(one.format in AS_WRITTEN for one in read)
    return pa.string() if is_open else None


def _open_time(column: str, files: Sequence[FileReader]) -> str:
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
