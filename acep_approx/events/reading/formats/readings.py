"""What columns of text are read as: as it is said, else as the first rows tell; with what all formats of text share.

Columns may hold times in other ways than ISO-8601, and numbers with a decimal comma. What a column holds is decided
once. A later value that is written in another way makes its row a malformed one.

Where the type of a column is said, each value is read from its text as that. The texts of numbers may have signs that
stand between thousands; with these said, columns that have them are numbers.
"""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools
from acep_approx.errors import DataError
from acep_approx.events.blocks import Block
from acep_approx.events.columns import decoded, to_numpy
from acep_approx.events.reading.formats.as_written import in_words, spelling
from acep_approx.events.reading.layout import Layout, Stored, Understood
from acep_approx.events.roles import is_number, time_column
from acep_approx.events.time_formats import (
    MICROSECONDS,
    MICROSECONDS_UTC,
    OtherZoneError,
    TimeFormat,
    UnknownZoneError,
    are_iso,
    guesses,
    localized,
    no_year,
    parse_alone,
    unknown_zone,
)
from acep_approx.events.times_in_order import TimesInOrder
from acep_approx.shell import quoted

_ISO = TimeFormat()
COMMA = r"^-?(0|[1-9]\d*|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?$"
"""A number as it is written where a comma stands before the fraction; of 007 and +7 it would not come back."""
FRACTION = r"^-?(0|\d{4,}|\d{1,3}(\.\d{3})+),\d+$|,(\d{1,2}|\d{4,})$"
"""One of them that can be nothing else: 1,234 may be a thousand."""
ISO = [f"%Y-%m-%d{gap}{clock}{zone}" for gap in " T" for clock in ("%H:%M:%S", "%H:%M") for zone in ("", "%z")]
"""What ISO-8601 looks like in the words of formats."""
MOST_UNREADABLE = 0.5
"""Share of the values of a column, from which on a format that was said is not meant for it."""
TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
"""What is read for the words of ``--column-type``."""
_TRUE, _FALSE = ["true", "t", "yes", "y", "1"], ["false", "f", "no", "n", "0"]
_NUMBER, _WHOLE = r"^\s*-?\d+(\.\d+)?([eE][+-]?\d+)?\s*$", r"^\s*-?\d{1,18}\s*$"
_FLOAT = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity|nan))$"


class TextFormat(ABC):
    """How the rows of a text are written: what CSV, JSON lines and the lines of logs have in common.

    Parameters
    ----------
    name : str
        File name for messages.
    layout : Layout, optional
        What is said of it.
    stored : Stored, optional
        How the bytes lie in the file; only shown.
    """

    row_word = "line"
    has_fixed_columns = True
    """Whether no row brings columns that those before it lack."""

    def __init__(self, name: str, layout: Layout | None = None, stored: Stored | None = None) -> None:
        self._name = name
        self._layout = layout or Layout()
        self._stored = stored or Stored()
        self._readings = Converters(name, self._layout.time_format)
        self._declared = Declared(self._layout)
        self._truths: dict[str, tuple[str, ...]] = {}

    @property
    @abstractmethod
    def understood(self) -> Understood:
        """How the file was read; after ``decide``."""

    @abstractmethod
    def empty_schema(self) -> pa.Schema:
        """Columns of a file without a byte."""

    @abstractmethod
    def decide(self, data: bytes, schema: pa.Schema) -> bool:
        """Decide by the first rows which columns of text hold something else, and say whether any does.

        Parameters
        ----------
        data : bytes
        schema : pyarrow.Schema
            What ``infer`` has found in them; it finds more after this.

        Raises
        ------
        DataError
            As ``Converters.decide_times``.
        """

    @abstractmethod
    def infer(self, data: bytes) -> pa.Schema:
        """Types of the columns from whole rows.

        Raises
        ------
        pyarrow.ArrowInvalid
            A row cannot be read, or a column changes its type.
        """

    @abstractmethod
    def parse(self, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """Whole rows as a batch of the columns of ``schema``.

        Raises
        ------
        pyarrow.ArrowInvalid
            A row cannot be read, or a value is not of the type, also where a float would round it.
        """

    @property
    def quotes(self) -> bytes:
        """Delimiters after which a double quote opens a value; none: quotes mean nothing."""
        return b""

    def read_header(self, first: Block) -> None:  # noqa: ARG002  (most have none)
        """Take in what the first lines say; what was decided by other first rows is forgotten."""
        self._readings.forget()
        self._declared.forget()
        self._truths = {}

    def after_header(self, block: Block) -> Block:
        """The block without what is no row of it."""
        return block

    def rows(self, data: bytes) -> list[bytes]:
        """Split whole rows."""
        return io.BytesIO(data).readlines()

    def pieces(self, data: bytes, columns: int) -> Iterator[bytes]:  # noqa: ARG002
        """Rows, as many at once as can be read with so many columns."""
        yield data

    def sorted_out(self, data: bytes) -> tuple[bytes, list[int]]:
        """The rows that are of the format, and the numbers of the others, from 0."""
        return data, []

    def is_ahead(self, row: bytes) -> bool:
        """Whether a row is none where it stands ahead of the first one that is."""
        return not row.strip()

    @property
    def times(self) -> dict[str, TimeFormat]:
        """Columns that are read as times, and how these are written."""
        return self._readings.times

    def settle_times(self, times: dict[str, TimeFormat]) -> None:
        """Read columns that stayed open in formats that other files have decided on."""
        for name, written in times.items():
            self._readings.times[name] = written
            del self._readings.open_times[name]

    def type_of(self, name: str) -> pa.DataType:
        """The type of a column of text that is read as something else."""
        return self._readings.type_of(name)

    def _understood(self, kind: str, **more: Any) -> Understood:
        return Understood(
            kind,
            compression=self._stored.compression,
            encoding=self._stored.encoding,
            times=dict(self._readings.times),
            open_times=dict(self._readings.open_times),
            thousands=tuple(self._declared.with_thousands),
            declared=self._declared.said,
            **more,
        )

    def _undecided(self, schema: pa.Schema) -> list[str]:
        return [name for name in self._readings.wanted(schema) if name not in self._declared]

    def _in_words(self, name: str, texts: pa.Array, type_: pa.DataType) -> pa.Array:
        """Texts as booleans or times of day, all written as the first ones."""
        plain = decoded(texts)
        self._truths[name] = self._truths.get(name) or spelling(plain)
        return in_words(plain, type_, self._truths[name])


class Converters:
    """What columns of text are read as.

    Parameters
    ----------
    name : str
        File name for messages.
    said : TimeFormat, optional
        How times are written, as far as it is said.
    """

    def __init__(self, name: str, said: TimeFormat | None) -> None:
        self._name = name
        self._said = said or _ISO
        self.times: dict[str, TimeFormat] = {}
        self.open_times: dict[str, list[str]] = {}
        self.decimals: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self.times or name in self.decimals

    def forget(self) -> None:
        """Decide anew: other rows are the first ones."""
        self.times, self.open_times, self.decimals = {}, {}, []

    def wanted(self, schema: pa.Schema) -> list[str]:
        """The columns that are to be decided on: texts, and times that need a zone."""
        needs_zone = self._said.zone is not None
        return [
            field.name
            for field in schema
            if pa.types.is_string(field.type)
            or (self._said.is_of_digits and is_number(field.type))
            or (needs_zone and pa.types.is_timestamp(field.type) and field.type.tz is None)
        ]

    def as_written(self, names: Iterable[str], schema: pa.Schema) -> dict[str, pa.DataType]:
        """The types in which columns are to be given that are decided on: numbers as they are written."""
        return {name: pa.string() for name in names if is_number(schema.field(name).type)}

    def likely(self, table: pa.Table, *, decimals: bool) -> list[str]:
        """Of these columns, by their first values, the ones that may hold something else."""
        return [
            name
            for name, chunked in zip(table.column_names, table.columns, strict=True)
            if not pa.types.is_string(chunked.type) or self._is_likely(chunked.combine_chunks().drop_null(), decimals)
        ]

    def _is_likely(self, texts: pa.Array, decimals: bool) -> bool:
        if self._said.text is not None or not len(texts) or guesses(texts):
            return True
        return decimals and bool(pc.all(pc.match_substring_regex(texts, COMMA)).as_py())

    def decide_times(self, table: pa.Table, *, rows: int) -> bool:
        """Decide which columns of the first rows are times, and say whether any is.

        Parameters
        ----------
        table : pyarrow.Table
            The columns that may be.
        rows : int
            0 if there is none yet.

        Raises
        ------
        DataError
            ``ACEP-D033``: no column is written in the format that was said; ``ACEP-D035``: that has no year.
        """
        shown: list[str] = []
        for name, chunked in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_timestamp(chunked.type) and chunked.type.tz is None and self._said.zone is not None:
                self.times[name] = replace(self._said, text=None, year=None)
            if not pa.types.is_string(chunked.type) or name in self.decimals:
                continue
            texts = chunked.combine_chunks().drop_null()
            if self._said.text is None:
                self._guess(name, texts)
            elif self._is_of(texts, self._said):
                self.times[name] = self._said
            elif len(texts):
                shown.append(f"{name} has {texts[0].as_py()!r:.60}")
        if self._said.text is not None and not self.times and rows:
            raise DataError(
                f"{self._name}: no column holds times written as {self._said.text!r}"
                + (f"; {', '.join(shown[:3])}" if shown else ": no column holds text, or numbers of that length"),
                code="ACEP-D033",
                hint="correct --time-format, or leave it out to have it found",
            )
        return bool(self.times)

    def _guess(self, name: str, texts: pa.Array) -> None:
        found = guesses(texts)
        if found and found[0] in ISO and are_iso(texts, "us"):
            return  # these are read where they are used; as text they look in results as in the file
        written = replace(self._said, text=found[0]) if len(found) == 1 else None
        if written is not None and written.has_year and not _lacks_zone(texts, written):
            self.times[name] = written
        elif found:
            self.open_times[name] = found

    @staticmethod
    def _is_of(texts: pa.Array, said: TimeFormat) -> bool:
        """Whether a column is of a format that was said: some of its values may be wrong."""
        if not said.has_year:
            raise no_year(said.text or "")
        try:
            parse_alone(texts, said)
        except UnknownZoneError as error:
            raise unknown_zone(str(error)) from error
        except OtherZoneError:  # they are such times, which is told of each when it is read
            return True
        except pa.ArrowInvalid:
            some = texts.slice(0, 1000)
            return sum(_can_be(some.slice(row, 1), said) for row in range(len(some))) > MOST_UNREADABLE * len(some)
        return len(texts) > 0

    def decide_decimals(self, table: pa.Table, *, is_said: bool) -> list[str]:
        """Decide which columns of text are numbers with a decimal comma; those that may be are named."""
        unsure = []
        for name, texts in _texts_in(table):
            if not len(texts) or not pc.all(pc.match_substring_regex(texts, COMMA)).as_py():
                continue
            if is_said or pc.any(pc.match_substring_regex(texts, FRACTION)).as_py():
                self.decimals.append(name)
            elif pc.any(pc.match_substring(texts, ",")).as_py():
                unsure.append(name)
        return unsure

    def type_of(self, name: str) -> pa.DataType:
        """The type of a column that is read in another way."""
        if name in self.decimals:
            return pa.float64()
        return MICROSECONDS_UTC if self.times[name].is_utc else MICROSECONDS

    def given_type(self, name: str) -> pa.DataType:
        """The type in which the parser is to give such a column."""
        is_time = name in self.times and self.times[name].text is None
        return MICROSECONDS if is_time else pa.string()

    def converted(self, table: pa.Table, types: dict[str, pa.DataType]) -> pa.Table:
        """The table with these columns as what they are, of these types; see ``convert``."""
        for name, type_ in types.items():
            column = self.convert(name, table.column(name)).cast(type_)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        return table

    def convert(self, name: str, column: pa.ChunkedArray) -> pa.Array:
        """A column as what it is.

        Raises
        ------
        pyarrow.ArrowInvalid
            A value is not written as the first ones.
        """
        given = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        try:
            if name in self.decimals:
                if pc.any(pc.invert(pc.match_substring_regex(given, COMMA))).as_py():
                    raise pa.ArrowInvalid("not a number")
                return pc.replace_substring(pc.replace_substring(given, ".", ""), ",", ".").cast(pa.float64())
            written = self.times[name]
            if written.text is not None:
                return parse_alone(given, written)
            assert written.zone is not None, "else there is nothing to do"
            return localized(given.cast(MICROSECONDS), written.zone, ambiguous="earliest")
        except pa.ArrowInvalid as error:
            kind = "numbers with a decimal comma" if name in self.decimals else f"times, {self.times[name]}"
            raise pa.ArrowInvalid(f"column {name!r} holds {kind}: {error}") from error

    def types(self, schema: pa.Schema, table: pa.Table) -> pa.Schema:
        """A schema as the rows of a table have it, with the types that columns are read as."""
        for name in schema.names:
            if name in self:
                is_open = table.column(name).null_count == table.num_rows
                schema = with_type(schema, name, pa.null() if is_open else self.type_of(name))
        return schema


def _can_be(texts: pa.Array, said: TimeFormat) -> bool:
    try:
        parse_alone(texts, said)
    except pa.ArrowInvalid:
        return False
    return True


def _lacks_zone(texts: pa.Array, written: TimeFormat) -> bool:
    try:
        parse_alone(texts, written)
    except UnknownZoneError:
        return True
    except pa.ArrowInvalid:
        return False
    return False


def in_order(batch: pa.RecordBatch, times: Mapping[str, TimeFormat], order: TimesInOrder) -> pa.RecordBatch:
    """The next rows, with times that need those before them."""
    for place, field, written in _in_order(batch, times):
        batch = batch.set_column(place, field, order.resolved(field.name, batch.column(place), written))
    return batch


def impossible(batch: pa.RecordBatch, times: Mapping[str, TimeFormat], order: TimesInOrder) -> Bools:
    """Which of the next rows have a day that does not exist in the year that the rows before them tell."""
    wrong = np.zeros(batch.num_rows, np.bool_)
    for place, field, written in _in_order(batch, times):
        wrong |= order.impossible(field.name, batch.column(place), written)
    return wrong


def _in_order(batch: pa.RecordBatch, times: Mapping[str, TimeFormat]) -> list[tuple[int, pa.Field, TimeFormat]]:
    known = [(place, field, times.get(field.name)) for place, field in enumerate(batch.schema)]
    return [
        (place, field, written)
        for place, field, written in known
        if written is not None and written.is_in_order and pa.types.is_timestamp(field.type)
    ]


class Declared:
    """What is said of the types of columns, and what follows from the sign between thousands.

    Parameters
    ----------
    layout : Layout

    Attributes
    ----------
    said : mapping of str to str
        The words that are said, by column.
    with_thousands : list of str
        Columns that are numbers because of the sign between thousands.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._decimal = layout.decimal or "."
        self._thousands = layout.thousands
        self.said = layout.types
        self.with_thousands: list[str] = []
        self._time: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.said or name in self.with_thousands or name in self._time

    def forget(self) -> None:
        """Other rows are the first ones."""
        self.with_thousands, self._time = [], {}

    def names(self, schema: pa.Schema) -> list[str]:
        """The columns of these."""
        return [name for name in schema.names if name in self]

    def find_thousands(self, table: pa.Table) -> bool:
        """Find columns of text that are numbers with a sign between thousands, and say whether there is any."""
        if self._thousands is None:
            return False
        for name, texts in _texts_in(table):
            if name in self:
                continue
            has_sign = pc.any(pc.match_substring(texts, self._thousands)).as_py()
            if has_sign and pc.all(pc.match_substring_regex(texts, self._pattern)).as_py():
                self.with_thousands.append(name)
        return bool(self.with_thousands)

    def open_time(self, schema: pa.Schema) -> list[str]:
        """The column that is the time, if it is one of texts, of which nobody says how they are written."""
        name = self._layout.time or time_column(schema) or ""
        if name not in schema.names or name in self or self._layout.time_format is not None:
            return []
        return [name] if pa.types.is_string(schema.field(name).type) else []

    def find_time(self, name: str, texts: pa.Array) -> bool:
        """Take the texts of the column that is the time for numbers, where most of them are, and some are none.

        Rows with those are malformed ones: else one of them would make a text of each time.
        """
        is_number = to_numpy(pc.match_substring_regex(texts, _NUMBER))
        if is_number.all() or 2 * is_number.sum() <= len(texts):
            return False
        wholes = to_numpy(pc.match_substring_regex(texts, _WHOLE)).sum()
        self._time[name] = "int" if 2 * wholes > is_number.sum() else "float"
        return True

    def types(self, schema: pa.Schema) -> pa.Schema:
        """A schema with these columns in their types."""
        for name in self.names(schema):
            schema = with_type(schema, name, TYPES[self._word(name)])
        return schema

    def converted(self, name: str, texts: pa.Array) -> pa.Array:
        """Texts as what their column holds.

        Raises
        ------
        pyarrow.ArrowInvalid
            One is none.
        """
        word = self._word(name)
        if word == "text":
            return texts
        plain = pc.utf8_trim_whitespace(texts)
        if word == "bool":
            small = pc.utf8_lower(plain)
            is_true = pc.is_in(small, pa.array(_TRUE))
            is_right = pc.or_(is_true, pc.is_in(small, pa.array(_FALSE)))
        else:
            plain = self._plain(plain)
            is_right = pc.match_substring_regex(plain, r"^[+-]?\d+$" if word == "int" else _FLOAT)
        wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.fill_null(is_right, True)))
        if pc.any(wrong).as_py():
            text = texts[int(to_numpy(wrong).argmax())].as_py()
            nothing = "" if re.search(r"\d", text) else f"; if it stands for no value: --null {quoted(text):.60}"
            how = "holds times as numbers" if name in self._time else f"is said to be {word}"
            raise pa.ArrowInvalid(f"column {name!r} {how}, and {text!r:.60} is none{nothing}")
        if word == "bool":
            return pc.if_else(pc.is_valid(texts), is_true, None)
        return pc.replace_substring_regex(plain, r"^\+", "").cast(TYPES[word])  # a whole one must fit into 64 bits

    def _word(self, name: str) -> str:
        return self.said.get(name) or ("float" if name in self.with_thousands else self._time[name])

    @property
    def _pattern(self) -> str:
        sign, point = re.escape(self._thousands or ""), re.escape(self._decimal)
        return rf"^[+-]?(\d+|\d{{1,3}}({sign}\d{{3}})+)({point}\d+)?$"

    def _plain(self, texts: pa.Array) -> pa.Array:
        if self._thousands is not None:
            in_groups = pc.match_substring_regex(texts, self._pattern)
            texts = pc.if_else(in_groups, pc.replace_substring(texts, self._thousands, ""), texts)
        if self._decimal != ".":
            texts = pc.replace_substring(texts, self._decimal, ".")
        return texts


def without(texts: pa.Array, nulls: tuple[str, ...]) -> pa.Array:
    """Texts with null where one of these stands."""
    return pc.if_else(pc.is_in(texts, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), texts)


def _texts_in(table: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    for name, chunked in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(chunked.type):
            yield name, chunked.combine_chunks().drop_null()


def with_type(schema: pa.Schema, name: str, type_: pa.DataType) -> pa.Schema:
    """The schema with another type of one column."""
    return schema.set(schema.get_field_index(name), pa.field(name, type_))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
