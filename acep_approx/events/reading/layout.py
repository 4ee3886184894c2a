"""How files of events are written: what a user says of it, and what was understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acep_approx.arguments import check_fields
from acep_approx.errors import UsageError, expect
from acep_approx.events.roles import OTHER_TIME_NAMES, TIME_NAMES
from acep_approx.events.time_formats import TimeFormat
from acep_approx.visible import broken_at

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
"""Delimiters by name."""


COLUMN_TYPES = ("text", "int", "float", "bool")
"""What columns are said to hold."""
THOUSANDS = (",", ".", " ", "'", "_")
"""Signs between the thousands of a number."""


@dataclass(frozen=True)
class Layout:
    """How files are written, as far as it is said; the rest is found out.

    Parameters
    ----------
    delimiter : str, optional
        What stands between the values of a line of CSV: one character, or ``comma``, ``semicolon``, ``tab``, ``pipe``,
        ``space``. Default: told from the name (``.tsv``), else from the first lines.
    encoding : str, optional
        Of a text file, as Python names it, such as ``latin-1`` or ``cp1252``. Default: UTF-8, or what the mark at its
        begin says.
    columns : sequence of str, optional
        Names of the columns of a CSV file that has no header.
    decimal : {".", ","}, optional
        What stands before the fraction of a number of CSV. Default: a point; a comma in columns that show it, where no
        comma stands between values.
    line_format : str, optional
        How the lines of a log are written; see ``docs/reference/data.md``.
    time_format : str or TimeFormat, optional
        How texts that are times are written. Default: told from the values.
    column_types : mapping of str to str, or sequence of str, optional
        What columns of text files hold: ``text``, ``int``, ``float`` or ``bool``, as ``{"id": "text"}`` or
        ``["id=text"]``. Default: told from the values.
    null : sequence of str, optional
        Texts that stand for null, in the place of those that do by default; an empty value always does.
    thousands : str, optional
        A sign between the thousands of numbers: ``","``, ``"."``, a blank, ``"'"`` or ``"_"``. Default: there is none.
    time : str, optional
        The column that is said to be the time: its numbers are times, however they are written.

    Raises
    ------
    UsageError
        ``ACEP-U116`` not a delimiter; ``ACEP-U119`` no such encoding; ``ACEP-U122`` names of columns that are no
        names, or two of one name; ``ACEP-U123`` ``decimal`` is neither a point nor a comma, or is the delimiter;
        ``ACEP-U206`` not a type of columns; ``ACEP-U207`` not a sign between thousands.
    """

    delimiter: str | None = None
    encoding: str | None = None
    columns: Sequence[str] | None = None
    decimal: str | None = None
    line_format: str | None = None
    time_format: TimeFormat | None = None
    column_types: Mapping[str, str] | Sequence[str] | str | None = None
    null: Sequence[str] | str | None = None
    thousands: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # what is given in many ways is kept in one
        set_(self, "time_format", TimeFormat.of(self.time_format))
        check_fields(self)
        set_(self, "delimiter", _delimiter(self.delimiter))
        if self.columns is not None:
            set_(self, "columns", _names(self.columns))
        if self.column_types is not None:
            set_(self, "column_types", _column_types(self.column_types))
        if self.null is not None:
            set_(self, "null", _nulls(self.null))
        _check_thousands(self.thousands, self.decimal or ".")
        _check_encoding(self.encoding)
        if self.decimal not in (None, ".", ",") or (self.decimal is not None and self.decimal == self.delimiter):
            raise UsageError(
                f"the decimal sign is {self.decimal!r}",
                code="ACEP-U123",
                hint="it is '.' (the default) or ',', and not what stands between values",
            )

    @property
    def said(self) -> list[str]:
        """The names of what is said of how files are written."""
        return [name for name, value in vars(self).items() if value is not None and name != "time"]

    @property
    def types(self) -> dict[str, str]:
        """The types of columns that are said."""
        return dict(self.column_types) if isinstance(self.column_types, Mapping) else {}

    def is_time(self, column: str) -> bool:
        """Whether a column is the time, as far as names tell."""
        return column == self.time or column.lower() in (*TIME_NAMES, *OTHER_TIME_NAMES)


@dataclass(frozen=True)
class Stored:
    """How the bytes of a text lie in a file.

    Parameters
    ----------
    compression : str, optional
        ``gzip``, ``bzip2``, ``xz``, ``zstd``, ``lz4`` or ``zip``. None: they are not compressed.
    encoding : str
        As Python names it.
    """

    compression: str | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Understood:
    """How a file was read.

    Parameters
    ----------
    format : str
        ``parquet``, ``csv``, ``jsonl``, ``json`` or ``lines``.
    compression : str, optional
        Of the whole file; ``gzip`` and others. None: it is not compressed.
    encoding : str, optional
        Of a text file.
    delimiter : str, optional
        Of a CSV file.
    header : bool, optional
        Whether the names of the columns stand in a CSV file.
    skipped_lines : int
        Comments, blank lines and titles ahead of the header.
    decimal_commas : tuple of str
        Columns of numbers with a comma before the fraction.
    thousands : tuple of str
        Columns of numbers that have the sign between thousands that was said.
    declared : mapping of str to str
        Columns whose types were said, and these.
    times : mapping of str to TimeFormat
        Columns of texts that were read as times, and how these are written. Times of ISO-8601 need no mention.
    open_times : mapping of str to sequence of str
        Columns that stayed text, because their values fit several formats of times (or one that lacks the year).
    nested : tuple of str
        Columns ``a.b`` that are fields of objects.
    array : str, optional
        The name of the array that holds the events, in a JSON file whose only value is an object.
    hints : tuple of str
        What else is to be said, with what to do about it.
    """

    format: str
    compression: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    skipped_lines: int = 0
    decimal_commas: tuple[str, ...] = ()
    thousands: tuple[str, ...] = ()
    declared: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, TimeFormat] = field(default_factory=dict)
    open_times: Mapping[str, Sequence[str]] = field(default_factory=dict)
    nested: tuple[str, ...] = ()
    array: str | None = None
    hints: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What a user may not expect, in words; empty for a plain file.

        Examples
        --------
        >>> Understood("csv", delimiter=";", encoding="utf-8", decimal_commas=("price",)).notes
        ["delimiter ';'", 'decimal comma in price']
        """
        by_format: dict[str, list[str]] = {}
        for name, written in self.times.items():
            by_format.setdefault(f"{written}, {written.order}" if written.order else str(written), []).append(name)
        lines = "1 line" if self.skipped_lines == 1 else f"{self.skipped_lines} lines"
        return [
            *([f"encoding {self.encoding}"] if self.encoding not in (None, "utf-8") else []),
            *([f"delimiter {self.delimiter!r}"] if self.delimiter not in (None, ",") else []),
            *([f"{lines} ahead of the header left out (comments, blanks, titles)"] if self.skipped_lines else []),
            *([f"events in the array {self.array!r}"] if self.array else []),
            *([f"decimal comma in {', '.join(self.decimal_commas)}"] if self.decimal_commas else []),
            *([f"thousands in {', '.join(self.thousands)}"] if self.thousands else []),
            *(f"times of {', '.join(names)} as {written}" for written, names in by_format.items()),
            *self.hints,
        ]


def _delimiter(given: str | None) -> str | None:
    if given is None:
        return None
    expect("delimiter", given, str, "one character, or its name such as tab")
    found = DELIMITERS.get(given.lower(), given)
    if len(found) != 1 or not found.isascii() or found.isalnum() or found in '"\n\r\\':
        raise UsageError(
            f"{given!r} cannot stand between values",
            code="ACEP-U116",
            hint="it is one character that is no letter, digit or quote, or one of "
            + ", ".join(name for name in DELIMITERS if name.isalpha()),
        )
    return found


def _nulls(given: Sequence[str] | str) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        expect("null", text, str, "texts that stand for no value")
        if broken_at(text) is not None:
            raise UsageError(f"null is {text!r}", code="ACEP-U191", hint="give text without half characters")
    return texts


def _names(given: Sequence[str]) -> tuple[str, ...]:
    names = tuple(given.split(",")) if isinstance(given, str) else tuple(given)
    bad = [name for name in names if not isinstance(name, str) or not name.strip() or broken_at(name) is not None]
    twice = [name for name in names if names.count(name) > 1]
    if bad or twice or not names:
        what = "there are none" if not names else f"{bad[0]!r} is none" if bad else f"{twice[0]!r} stands there twice"
        raise UsageError(
            f"the names of the columns are not right: {what}",
            code="ACEP-U122",
            hint="name each: --columns ts,type,price",
        )
    return tuple(name.strip() for name in names)


def _column_types(given: Mapping[str, str] | Sequence[str] | str) -> dict[str, str]:
    if isinstance(given, Mapping):
        found = list(given.items())
    else:
        words = [word for part in ([given] if isinstance(given, str) else given) for word in str(part).split(",")]
        found = [(name.strip(), type_.strip()) for name, _, type_ in (word.rpartition("=") for word in words)]
    for name, type_ in found:
        if type_ not in COLUMN_TYPES or not isinstance(name, str) or not name:
            raise UsageError(
                f"{type_!r} is not a type of a column" if name else f"{type_!r} names no column and its type",
                code="ACEP-U206",
                hint=f"say it as --column-type id=text,price=float; the types are {', '.join(COLUMN_TYPES)}",
            )
    types = dict(found)
    twice = next((name for name, type_ in found if types[name] != type_), None)
    if twice is not None:
        raise UsageError(f"two types are said of column {twice!r}", code="ACEP-U206", hint="say one of them")
    return types


def _check_thousands(sign: Any, decimal: str) -> None:
    if sign is not None and (sign not in THOUSANDS or sign == decimal):
        raise UsageError(
            f"{sign!r} cannot stand between thousands" + (", it is the decimal sign" if sign == decimal else ""),
            code="ACEP-U207",
            hint=f"it is one of {' '.join(map(repr, THOUSANDS))}; the decimal sign is --decimal",
        )


def _check_encoding(name: Any) -> None:
    import codecs

    if name is None:
        return
    expect("encoding", name, str, "a name such as latin-1")
    try:
        codecs.lookup(name)
        "".encode(name)
    except (LookupError, ValueError) as error:
        raise UsageError(
            f"there is no encoding {name!r}",
            code="ACEP-U119",
            hint="name it as Python does: utf-8, utf-16, latin-1, cp1252",
        ) from error
