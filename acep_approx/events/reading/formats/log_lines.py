"""Lines of a log: the groups of a regular expression are the columns, which a template or a name may stand for."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools
from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import encode_text, to_arrow, to_numpy
from acep_approx.events.reading.formats.as_written import (
    WHOLE,
    changed,
    large_floats,
    not_as_written,
    refusal,
    rounded_texts,
    spelling,
)
from acep_approx.events.reading.formats.readings import TextFormat, one_batch, with_type, without
from acep_approx.events.reading.layout import Layout, Stored, Understood
from acep_approx.events.reading.widening import WRITTEN
from acep_approx.events.roles import is_number
from acep_approx.events.time_formats import TimeFormat

_TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d(?:T| +)\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)? ?(?:Z|UTC|[+-]\d\d:?\d\d)?"
    r"|\d{1,2}[./-]\w{2,3}[./-]\d{4}[ :,]+\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm])?(?: [+-]\d{4})?"
    r"|[A-Z][a-z]{2} +\d{1,2} +\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2},? +[A-Z][a-z]{2} +\d{1,2} +\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: [A-Z+-][A-Z\d]{1,4})? \d{4}"
    r"|\d{1,2}[-./]\d{1,2}(?:[-./]\d\d)? +\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
    r"|\d{8}[ -]+\d\d:\d\d(?::\d\d(?:[.,:]\d{1,9})?)?"
)
"""Times as they stand in logs: some have blanks in them."""
_ZONE = r"(?: (?:Z|[A-Z]{3,5}))?"
TIMES = ("time", "ts", "timestamp", "datetime", "event_time")
DAYS = ("date", "datum")
"""Names of a template that stand for a time, and for a day."""
_APACHE = (
    r"(?P<host>\S+) \S+ (?P<user>\S+) \[(?P<time>[^\]]+)\] "
    r'"(?:(?P<method>[A-Z]+) (?P<path>\S+)(?: (?P<protocol>[^" ]+))?|[^"]*)"'
    r" (?P<status>\d{3}) (?P<size>\d+|-)"
)
_AGENT = r' "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"'
READY = {
    "common": _APACHE,
    "combined": _APACHE + _AGENT,
    "apache": _APACHE + f"(?:{_AGENT})?.*",
    "syslog": (
        r"(?:<(?P<priority>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} +\d{1,2} +\d\d:\d\d:\d\d) +(?P<host>\S+) +"
        r"(?P<app>[^\s:\[]+)(?:\[(?P<pid>\d+)\])?: ?(?P<message>.*)"
    ),
    "syslog5424": (
        r"<(?P<priority>\d{1,3})>\d+ (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<pid>\S+) (?P<kind>\S+) "
        r"(?:-|(?P<data>\[.*?\])) ?(?P<message>.*)"
    ),
}
"""Formats by name. ``apache`` takes the lines of ``common`` and of ``combined``."""
TOLD = ("apache", "syslog", "syslog5424")
"""Those that lines are tried with."""
TOLD_BY = 5
"""Lines that are tried."""
TEMPLATES = (
    "{time} [{thread}] {level} {logger} - {message}",
    "{time} {level} [{thread}] {logger} - {message}",
    "{time} {level} [{thread}] {logger}: {message}",
    "{time} {level} {logger} - {message}",
    "{time} - {logger} - {level} - {message}",
    "{time} [{level}] {message}",
    "{time} - {level} - {message}",
    "{time} {level}: {message}",
    "{time}, {level} {message}",
    "{time} {pid} {tid} {level} {tag}: {message}",
    "{time} {level} {message}",
)
"""Logs of programs, whose lines have a level, the more telling first."""
_LEVELS = re.compile(r"(?i:trace|debug|info|notice|warn|warning|error|err|severe|critical|crit|fatal)|[VDIWEF]")
MOSTLY = 0.6
"""Of the lines that must fit a template: tracebacks have others."""
_PIECE = re.compile(r"\{(\w+)\}")
NULLS = ("", "-")
"""What stands for null."""
_TYPES = (
    *(pa.int64(), pa.float64(), pa.bool_(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.string()),
)
"""What values may be, the narrowest first."""
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


def line_pattern(given: str, said: TimeFormat | None = None) -> str:
    r"""A format of lines as a regular expression with named groups, which RE2 reads.

    Parameters
    ----------
    given : str
        A name of ``READY``; or a template such as ``{time} [{level}] {message}``; or a regular expression with groups
        ``(?P<name>...)``. It stands for the whole line.
    said : TimeFormat, optional
        How the times are written, as far as it is said; for a template.

    Raises
    ------
    UsageError
        ``ACEP-U120``: it is none of them, or no regular expression of RE2, or two groups have one name.

    Examples
    --------
    >>> line_pattern("{host} [{level}] {message}")
    '(?P<host>\\S+)[ \\t]+\\[(?P<level>[^\\]]*)\\][ \\t]+(?P<message>.*)'
    """
    found = READY.get(given)
    if found is None:
        found = given if "(?P<" in given else _of_template(given, said)
    try:
        names = [field.name for field in pc.extract_regex(pa.nulls(1, pa.string()), pattern=found).type]
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise _no_format(given, str(error)) from error
    if twice := [name for name in names if names.count(name) > 1]:
        raise _no_format(given, f"two groups are named {twice[0]!r}")
    return found


def likely_line_format(start: bytes) -> str:
    r"""The name of the format that all of the first lines of a log have; empty where there is none.

    Examples
    --------
    >>> likely_line_format(b"Mar 28 09:30:00 web sshd[7]: accepted\nMar 28 09:31:00 web cron: done\n")
    'syslog'
    """
    lines = [line.decode(errors="replace") for line in start.splitlines()[:TOLD_BY] if line.strip()]
    if not lines:
        return ""
    fitting = (name for name in TOLD if all(re.fullmatch(READY[name], line) for line in lines))
    return next(fitting, "") or next((template for template in TEMPLATES if _has_levels(template, lines)), "")


def _has_levels(template: str, lines: list[str]) -> bool:
    """Whether the first line, and most of the others, fit a template and have a level in its place."""
    found = [re.fullmatch(line_pattern(template), line) for line in lines]
    fits = [one is not None and _LEVELS.fullmatch(one["level"]) is not None for one in found]
    return fits[0] and sum(fits) >= MOSTLY * len(fits)


def _of_template(given: str, said: TimeFormat | None) -> str:
    names = _PIECE.findall(given)
    if not names:
        raise _no_format(given, "nothing in it has a name")
    is_day = said is not None and said.text is not None and not re.search("%[HITR]", said.text)
    days, times = ([name for name in names if name.lower() in known] for known in (DAYS, TIMES))
    time = next(iter([*(days if is_day else []), *times, *days]), None)  # a day only where it is said how it is written
    pattern, place = "", 0
    for found in _PIECE.finditer(given):
        pattern += _between(given[place : found.start()])
        place = found.end()
        text = _text_before(given[place : place + 1])
        if found[1] == time and said is not None and said.text is not None:
            text = said.pattern
        elif found[1].lower() in (*TIMES, *DAYS):
            text = _time_before(text)
        pattern += f"(?P<{found[1]}>{text})"
    return pattern + _between(given[place:])


def _between(text: str) -> str:
    """What stands between names: as many blanks as there are, where it has one."""
    return re.sub(r"(?:\\ |\\\t)+", r"[ \\t]+", re.escape(text))


def _text_before(after: str) -> str:
    if not after:
        return ".*"
    return rf"[^{re.escape(after)}]*" if after in "]\")'|;,>" else r"\S+"


def _time_before(text: str) -> str:
    """A time as times look; else text with a digit in it, at its begin where a blank ends it."""
    digits = r"[\[(<\"']?[+-]?\d\S*" if text == r"\S+" else rf"{text}\d{text}"
    return f"(?:{_TIME}){_ZONE}|{digits}"


def _no_format(given: str, reason: str) -> UsageError:
    return UsageError(
        f"{given!r} is no format of lines: {reason}",
        code="ACEP-U120",
        hint=f"write {', '.join(READY)}; or a template '{{time}} {{level}} {{message}}'; "
        r"or a regular expression with groups such as '(?P<host>\S+) (?P<message>.*)'",
    )


class LinesFormat(TextFormat):
    """One event per line, as a regular expression says; lines that it does not fit are malformed rows.

    Parameters
    ----------
    name : str
        File name for messages.
    layout : Layout
        With a ``line_format``.
    stored : Stored, optional
        How the bytes lie in the file; only shown.
    """

    def __init__(self, name: str, layout: Layout, stored: Stored | None = None) -> None:
        super().__init__(name, layout, stored)
        self._given = str(layout.line_format)
        self._pattern = f"^(?:{line_pattern(self._given, layout.time_format)})$"
        self._nulls = NULLS if layout.null is None else ("", *layout.null)

    @property
    def understood(self) -> Understood:
        """How the file was read; after ``decide``."""
        return self._understood("lines")

    def empty_schema(self) -> pa.Schema:
        """Columns of a file without a byte: the groups, of open types."""
        return self._declared.types(pa.schema([(name, pa.null()) for name in self._found(b"").column_names]))

    def sorted_out(self, data: bytes) -> tuple[bytes, list[int]]:
        """The lines that fit, and the numbers of the others, from 0; blank ones are none of them.

        Where all fit, nothing is copied. A log may have more lines that do not fit (of tracebacks) than others.
        """
        lines = _lines(data)
        is_blank = pc.invert(pc.match_substring_regex(lines, r"\S"))
        fits: Bools = to_numpy(pc.or_(pc.match_substring_regex(lines, self._pattern), is_blank))
        if fits.all():
            return data, []
        rows = self.rows(data)
        return b"".join(rows[row] for row in np.flatnonzero(fits).tolist()), np.flatnonzero(~fits).tolist()

    def decide(self, data: bytes, schema: pa.Schema) -> bool:
        """Decide by the first lines which columns of text are times; see ``TextFormat``.

        Raises
        ------
        DataError
            ``ACEP-D038``: no line fits; and as ``Converters.decide_times``.
        """
        table = self._found(data)
        if not table.num_rows and data.strip():
            shown = next(line for line in data.decode().splitlines() if line.strip())
            raise DataError(
                f"{self._name}: no line fits the format {self._given!r}; the first is {shown!r:.120}",
                code="ACEP-D038",
                hint="correct --line-format (line_format= of open_source): it must fit the whole line; or say how the "
                "{time} of a template is written: --time-format '%y%m%d %H%M%S'",
            )
        names = self._undecided(schema)
        for name in self._readings.as_written(names, schema):
            schema = with_type(schema, name, pa.string())
        numbers = [
            self._declared.find_time(name, table.column(name).combine_chunks().drop_null())
            for name in self._declared.open_time(schema)
        ]
        has_numbers = self._declared.find_thousands(table.select(names)) or any(numbers)
        names = [name for name in names if name not in self._declared]
        texts = table.select(names).cast(pa.schema([schema.field(name) for name in names]))
        times = self._readings.decide_times(texts, rows=table.num_rows)
        return times or has_numbers

    def infer(self, data: bytes) -> pa.Schema:
        """Types of the columns from the lines that fit."""
        table = self._found(data)
        schema = pa.schema([self._field(name, table.column(name)) for name in table.column_names])
        return self._declared.types(self._readings.types(schema, table))

    def parse(self, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """Lines as a batch of the columns of ``schema``, strings dictionary-encoded.

        Raises
        ------
        pyarrow.ArrowInvalid
            A line does not fit, or a value is not of the type, also where a float would round it.
        """
        table = self._found(data, is_strict=True)
        columns = []
        for field in schema:
            texts = table.column(field.name)
            if field.name in self._declared:
                columns.append(encode_text(self._declared.converted(field.name, texts.combine_chunks())))
            elif field.name in self._readings:
                given = _cast(field.name, texts, self._readings.given_type(field.name))
                columns.append(self._readings.convert(field.name, given).cast(field.type))
            else:
                values = _cast(field.name, texts, field.type).combine_chunks()
                self._check_written(field, texts.combine_chunks(), values)
                columns.append(encode_text(values))
        return one_batch(pa.Table.from_arrays(columns, names=schema.names))

    def _field(self, name: str, texts: pa.ChunkedArray) -> pa.Field:
        values = texts.combine_chunks().drop_null()
        if not len(values):
            return pa.field(name, pa.null())
        type_ = next(type_ for type_ in _TYPES if _is_of(values, type_))
        try:
            self._check_written(pa.field(name, type_), values, values.cast(type_))
        except pa.ArrowInvalid:
            return pa.field(name, pa.string(), metadata=WRITTEN)
        is_long = pa.types.is_string(type_) and _all_match(values, WHOLE)
        return pa.field(name, type_, metadata=WRITTEN if is_long else None)

    def _check_written(self, field: pa.Field, texts: pa.Array, values: pa.Array) -> None:
        if is_number(field.type) and not self._layout.is_time(field.name):
            text = changed(texts, values)
            if text is not None:
                raise not_as_written(field.name, field.type, text)
        elif pa.types.is_boolean(field.type):
            self._in_words(field.name, texts, field.type)

    def _found(self, data: bytes, *, is_strict: bool = False) -> pa.Table:
        lines = _lines(data)
        lines = lines.filter(pc.match_substring_regex(lines, r"\S"))
        found = pc.extract_regex(lines, pattern=self._pattern)
        if found.null_count:
            if is_strict:
                raise pa.ArrowInvalid("the line does not fit the format")
            found = found.drop_null()
        names = [field.name for field in found.type]
        columns = [without(pc.struct_field(found, name), self._nulls) for name in names]
        return pa.Table.from_arrays(columns, names=names)


def _lines(data: bytes) -> pa.Array:
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    whole = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
    return pc.ascii_rtrim(whole, characters="\r\n")


def _is_of(values: pa.Array, type_: pa.DataType) -> bool:
    if pa.types.is_boolean(type_) and not spelling(values):
        return False
    if pa.types.is_floating(type_) and (not _all_match(values, _NUMBER) or _all_match(values, WHOLE)):
        return False  # whole numbers of more than 64 bits stay text
    if pa.types.is_integer(type_) and not _all_match(values, WHOLE):
        return False
    try:
        values.cast(type_)
    except pa.ArrowInvalid:
        return False
    return True


def _all_match(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _cast(name: str, texts: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_null(type_) and texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    try:
        values = texts.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise pa.ArrowInvalid(f"column {name!r} is {type_} in the first rows, and this value is not") from error
    for _, rows in large_floats(pa.table([values], [name])):
        if number := rounded_texts(texts.combine_chunks().take(to_arrow(rows))):
            raise refusal(name, number)
    return values
