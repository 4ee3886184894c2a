"""Columns of text that hold something else: times in other ways than ISO-8601, and numbers with a decimal comma.

What a column holds is decided once, by the first rows. A later value that is written in another way makes its row a
malformed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools
from acep_approx.errors import DataError
from acep_approx.events.reading.formats.shared import with_type
from acep_approx.events.roles import is_number
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

_ISO = TimeFormat()
COMMA = r"^-?(0|[1-9]\d*|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?$"
"""A number as it is written where a comma stands before the fraction; of 007 and +7 it would not come back."""
FRACTION = r"^-?(0|\d{4,}|\d{1,3}(\.\d{3})+),\d+$|,(\d{1,2}|\d{4,})$"
"""One of them that can be nothing else: 1,234 may be a thousand."""
ISO = [f"%Y-%m-%d{gap}{clock}{zone}" for gap in " T" for clock in ("%H:%M:%S", "%H:%M") for zone in ("", "%z")]
"""What ISO-8601 looks like in the words of formats."""
MOST_UNREADABLE = 0.5
"""Share of the values of a column, from which on a format that was said is not meant for it."""


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

    def settle(self, times: dict[str, TimeFormat]) -> None:
        """Read columns that stayed open in these formats."""
        for name, written in times.items():
            self.times[name] = written
            del self.open_times[name]

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
        for name, chunked in zip(table.column_names, table.columns, strict=True):
            if not pa.types.is_string(chunked.type):
                continue
            texts = chunked.combine_chunks().drop_null()
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
                return _numbers(given)
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
    """Whether times end in letters of which nobody said what zone is meant."""
    try:
        parse_alone(texts, written)
    except UnknownZoneError:
        return True
    except pa.ArrowInvalid:
        return False
    return False


def in_order(batch: pa.RecordBatch, times: Mapping[str, TimeFormat], order: TimesInOrder) -> pa.RecordBatch:
    """The next rows, with times that need those before them."""
    for place, field in enumerate(batch.schema):
        written = times.get(field.name)
        if written is not None and written.is_in_order and pa.types.is_timestamp(field.type):
            batch = batch.set_column(place, field, order.resolved(field.name, batch.column(place), written))
    return batch


def impossible(batch: pa.RecordBatch, times: Mapping[str, TimeFormat], order: TimesInOrder) -> Bools:
    """Which of the next rows have a day that does not exist in the year that the rows before them tell."""
    wrong = np.zeros(batch.num_rows, np.bool_)
    for field in batch.schema:
        written = times.get(field.name)
        if written is not None and written.is_in_order and pa.types.is_timestamp(field.type):
            wrong |= order.impossible(field.name, batch.column(field.name), written)
    return wrong


def _numbers(texts: pa.Array) -> pa.Array:
    if pc.any(pc.invert(pc.match_substring_regex(texts, COMMA))).as_py():
        raise pa.ArrowInvalid("not a number")
    return pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".").cast(pa.float64())
