"""Files of events: which ones a user names, in which format, and opened as readers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

from acep_approx.errors import DataError, UsageError
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
from acep_approx.events.reading.layout import Layout
from acep_approx.events.reading.malformed import MalformedRows
from acep_approx.events.reading.parquet import ParquetFile
from acep_approx.events.reading.text import TextFile, text_format

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
    """
    path = Path(given)
    if is_there(given) and str(given) != "":  # which Path takes for the folder that one is in
        return [path]
    if address := _ADDRESS.match(str(given)):
        raise _an_address(str(given), address)
    if not has_magic(str(given)):
        raise _no_such_file(given)
    if found := sorted(glob(str(given), recursive=True)):  # noqa: PTH207  (a Path globs below a folder only)
        return [Path(name) for name in found]
    raise DataError(f"{path}: no file has such a name", code="ACEP-D010", hint="check the folder and the pattern")


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
        hint = f"copy it here first; or open it in Python: query.match(pyarrow.dataset.dataset({address!r}))"
    return DataError(f"{address}: an address, and only files are read", code="ACEP-D181", hint=hint)


def _no_such_file(given: str | Path) -> DataError:
    path = Path(given)
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
    paths: Sequence[str | Path], format: str | None = None, layout: Layout | None = None  # noqa: A002
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


def _unknown_format(path: Path, start: bytes) -> DataError:
    written = likely_line_format(start)
    say = f"say it: --input-format {'|'.join(FORMATS)} (format='...' in Python)"
    return DataError(
        f"{path}: the format cannot be told from the name, nor from the first lines",
        code="ACEP-D012",
        hint=f"its lines look like a log of {written}: --line-format {written} (line_format='{written}' of open_source)"
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
        return ParquetFile(name, name)
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
