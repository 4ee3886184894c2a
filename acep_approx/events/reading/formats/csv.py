"""CSV: values of a line between delimiters, with a header line."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError
from acep_approx.events.blocks import FIRST_BYTES, Block, quoted_rows
from acep_approx.events.columns import CODED, encode_text, to_arrow
from acep_approx.events.reading.formats.as_written import (
    TRUTHS,
    WHOLE,
    changed,
    is_finite,
    is_followed,
    is_of_words,
    large_floats,
    marked,
    may_differ,
    not_as_written,
    refusal,
    rounded_texts,
)
from acep_approx.events.reading.formats.csv_headers import (
    DELIMITERS,
    Header,
    find_header,
    without_directives,
    without_spaces,
)
from acep_approx.events.reading.formats.readings import TextFormat, one_batch, with_type
from acep_approx.events.reading.layout import Layout, Stored, Understood
from acep_approx.events.reading.widening import WRITTEN
from acep_approx.events.roles import is_number

NULLS = ("", "NA", "N/A", "NULL", "null", "NaN", "nan")
"""What stands for null in CSV, unless it is between quotes."""


class CsvFormat(TextFormat):
    """Values between delimiters with a header line, RFC 4180 quoting.

    Parameters
    ----------
    name : str
        File name for messages.
    layout : Layout, optional
        What is said of the delimiter and others.
    stored : Stored, optional
        How the bytes lie in the file; only shown.

    Attributes
    ----------
    header : Header or None
        What the first lines say; None before ``read_header``. Another one, of the same columns, may take its place.
    """

    def __init__(self, name: str, layout: Layout | None = None, stored: Stored | None = None) -> None:
        super().__init__(name, layout, stored)
        self.header: Header | None = None
        self._unsure: list[str] = []

    @property
    def understood(self) -> Understood:
        """How the file was read; after ``decide``."""
        header, hints = self.header, []
        if header and header.rivals:
            signs = " or ".join(map(repr, header.rivals))
            hints.append(f"a comma between values, where {signs} fits as well: say it by --delimiter")
        if header and header.is_spaced:
            hints.append(f"the space behind each {header.delimiter!r} left out")
        if self._unsure:
            hints.append(f"text in {', '.join(self._unsure)}: say --decimal , if the comma stands before a fraction")
        return self._understood(
            "csv",
            delimiter=header.delimiter if header else self._layout.delimiter,
            header=self._layout.columns is None,
            skipped_lines=header.skipped if header else 0,
            decimal_commas=tuple(self._readings.decimals),
            hints=tuple(hints),
        )

    @property
    def quotes(self) -> bytes:
        """Where a quote opens a value: after the delimiter, or any of those that it may be."""
        known = self.header.delimiter if self.header else self._layout.delimiter
        blank = " " if self.header and self.header.is_spaced else ""
        return (known or "".join(DELIMITERS)).encode() + blank.encode()

    def read_header(self, first: Block) -> None:
        """Take the column names from the first row that is not blank and no comment.

        Raises
        ------
        DataError
            As ``find_header``.
        """
        columns = None if self._layout.columns is None else list(self._layout.columns)
        super().read_header(first)
        self._unsure = []
        self.header = find_header(first.data, self._name, self._layout.delimiter, columns)
        if not self.header.names:
            self.empty_schema()

    def empty_schema(self) -> pa.Schema:
        """Columns of a file without a byte: there are none, so it is refused (``ACEP-D015``)."""
        if self._layout.columns is not None:
            return pa.schema([(name, pa.null()) for name in self._layout.columns])
        raise DataError(
            f"{self._name}: the file is empty",
            code="ACEP-D015",
            hint="a CSV file needs at least a header line with the names of the columns",
        )

    def after_header(self, block: Block) -> Block:
        """The block without the header, if it is the first one, as plain CSV.

        Without spaces ahead of values where each has one; rows of delimiters alone are blank lines.
        """
        if self.header is None:
            return block
        lines, end = self.header.lines if block.line == 1 else 0, 0
        for _ in range(lines):
            end = block.data.find(b"\n", end) + 1 or len(block.data)
        data = block.data[end:] if end else block.data
        if self.header.directives is not None:
            data = without_directives(data, self.header.directives.names, self._name, block.line)
        if self.header.is_spaced:
            data = without_spaces(data, self.header.delimiter)
        empty = self.header.delimiter.encode() * (len(self.header.names) - 1)
        return Block(block.line + lines, self._with_blanks(data, empty))

    def _with_blanks(self, data: bytes, empty: bytes) -> bytes:
        """Rows without any value, as Excel writes them below a table, as blank lines."""
        if not empty or not (data.startswith(empty) or is_followed(data, b"\n", empty[:1])):
            return data
        if b'"' not in data:
            return re.sub(rb"(?m)^" + re.escape(empty) + rb"\r?$", b"", data)
        return b"".join(b"\n" if row.rstrip(b"\r\n") == empty else row for row in self.rows(data))

    def decide(self, data: bytes, schema: pa.Schema) -> bool:
        """Decide by the first rows which columns of text are times or numbers; see ``TextFormat``."""
        has_decimals = self._layout.decimal != "." and self.quotes[:1] != b","
        names = self._undecided(schema)
        if _is_blank(data) or not names:
            return self._readings.decide_times(pa.table({}), rows=0)
        head = data[: data.rfind(b"\n", 0, FIRST_BYTES) + 1]
        if head and b'"' not in head and self._layout.thousands is None:  # most is neither, as its first values show
            names = self._readings.likely(self._read(head, columns=names, skip_invalid=True), decimals=has_decimals)
        time = self._declared.open_time(schema)
        names = list(dict.fromkeys([*names, *time]))
        as_written = self._readings.as_written(names, schema) | dict.fromkeys(time, pa.string())
        table = self._read(data, types=as_written, columns=names, skip_invalid=True) if names else pa.table({})
        has_numbers = any(self._declared.find_time(n, table.column(n).combine_chunks().drop_null()) for n in time)
        if self._declared.find_thousands(table) or has_numbers:
            has_numbers = True
            table = table.drop_columns([name for name in names if name in self._declared])
        if has_decimals:
            self._unsure = self._readings.decide_decimals(table, is_said=self._layout.decimal == ",")
        return self._readings.decide_times(table, rows=1) or bool(self._readings.decimals) or has_numbers

    def infer(self, data: bytes) -> pa.Schema:
        """Types of the columns from whole rows; rows of the wrong length do not count.

        Numbers are texts where one of them would not come back as it is written; see ``as_written``.
        """
        if _is_blank(data):
            return self._declared.types(pa.schema([(name, pa.null()) for name in self._names]))
        texts = self.header.directives.texts if self.header and self.header.directives else ()
        types = {name: pa.string() for name in texts if name in self._names}
        table = self._read(data, types=types | self._given_types(self._names), skip_invalid=True)
        schema = self._readings.types(_finer_times(table.schema), table)
        for name, rows in large_floats(table):
            texts = self._texts(data, name, skip_invalid=True)
            is_whole = pc.all(pc.match_substring_regex(texts, WHOLE)).as_py()
            if is_whole and rounded_texts(texts.take(to_arrow(rows))):
                schema = _as_text(schema, name)
        for name, _ in self._changed(data, table, skip_invalid=True):
            schema = _as_text(schema, name)
        for field in table.schema:
            if is_of_words(field.type) and not self._are_alike(data, field):
                schema = with_type(schema, field.name, pa.string())
        return self._declared.types(schema)

    def parse(self, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """Whole rows as a batch of the columns of ``schema``, strings dictionary-encoded.

        Raises
        ------
        pyarrow.ArrowInvalid
            A row has too many or too few values, or a value is not of the type, also where a float would round it.
        """
        types = {f.name: CODED if pa.types.is_string(f.type) else f.type for f in schema}
        if _is_blank(data):
            return one_batch(pa.schema(types.items()).empty_table())
        given = self._given_types(types)
        words = {name: CODED for name, type_ in types.items() if is_of_words(type_) and name not in given}
        table = self._read(data, types=types | given | words, columns=list(types))
        table = self._readings.converted(table, {name: types[name] for name in given if name in self._readings})
        for name in words:
            column = self._in_words(name, table.column(name).combine_chunks(), types[name])
            table = table.set_column(table.schema.get_field_index(name), name, column)
        for name, rows in large_floats(table):
            if number := rounded_texts(self._texts(data, name).take(to_arrow(rows))):
                raise refusal(name, number)
        for name, text in self._changed(data, table):
            raise not_as_written(name, types[name], text)
        for name in self._declared.names(table.schema):
            column = self._declared.converted(name, table.column(name).combine_chunks())
            table = table.set_column(table.schema.get_field_index(name), name, encode_text(column))
        return one_batch(table)

    def _changed(self, data: bytes, table: pa.Table, *, skip_invalid: bool = False) -> Iterator[tuple[str, str]]:
        assert self.header is not None, "read the header first"
        names = [  # not those of times, nor what is read in another way
            field.name
            for field in table.schema
            if is_number(field.type) and field.name not in self._readings and not self._layout.is_time(field.name)
        ]
        floats = [name for name in names if pa.types.is_floating(table.schema.field(name).type)]
        sign = self.header.delimiter.encode()
        if not names or not may_differ(data, sign, has_decimals=bool(floats)):
            names = [name for name in floats if not is_finite(table.column(name))]
        data = marked(data, sign) if names else data
        for name in names:
            texts = self._texts(data, name, skip_invalid=skip_invalid)
            text = changed(texts, table.column(name).combine_chunks())
            if text is not None:
                yield name, text

    def _are_alike(self, data: bytes, field: pa.Field) -> bool:
        try:
            self._in_words(field.name, self._texts(data, field.name, skip_invalid=True), field.type)
        except pa.ArrowInvalid:
            return False
        return True

    @property
    def _names(self) -> list[str]:
        """Not the one without a name, where rows end with a delimiter."""
        names = self.header.names if self.header else []
        return names[:-1] if names and not names[-1] else names

    def _given_types(self, names: Iterable[str]) -> dict[str, pa.DataType]:
        given = {name: self._readings.given_type(name) for name in names if name in self._readings}
        return given | {name: pa.string() for name in names if name in self._declared}

    def _texts(self, data: bytes, name: str, *, skip_invalid: bool = False) -> pa.Array:
        table = self._read(data, types={name: pa.string()}, columns=[name], skip_invalid=skip_invalid)
        return table.column(name).combine_chunks()

    def _read(
        self,
        data: bytes,
        *,
        types: dict[str, pa.DataType] | None = None,
        columns: list[str] | None = None,
        skip_invalid: bool = False,
    ) -> pa.Table:
        from pyarrow import csv

        assert self.header is not None, "read the header first"
        nulls = [*(NULLS if self._layout.null is None else ("", *self._layout.null))]
        if self.header.directives:
            nulls.append(self.header.directives.null)
        # One thread: a block is small, and Arrow's threads can abort the process when it ends (apache/arrow#34314).
        return csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(column_names=self.header.names, block_size=len(data) + 1, use_threads=False),
            parse_options=csv.ParseOptions(
                delimiter=self.header.delimiter,
                newlines_in_values=b'"' in data,
                invalid_row_handler=(lambda _: "skip") if skip_invalid else None,
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=self._names if columns is None else columns,
                null_values=nulls,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=[truth for truth, _ in TRUTHS],
                false_values=[untruth for _, untruth in TRUTHS],
            ),
        )

    def is_ahead(self, row: bytes) -> bool:
        """Whether a row is a blank line or a comment, where it stands ahead of the first one that is not."""
        return not row.strip() or row.startswith(b"#")

    def rows(self, data: bytes) -> list[bytes]:
        """Split whole rows; a line end between quotes does not end a row."""
        if b'"' not in data:
            return io.BytesIO(data).readlines()
        return list(quoted_rows(data, self.quotes))


def _is_blank(data: bytes) -> bool:
    return not data or data.isspace()


def _as_text(schema: pa.Schema, name: str) -> pa.Schema:
    """The schema with a column of numbers as text, because one would not come back from its number."""
    return schema.set(schema.get_field_index(name), pa.field(name, pa.string(), metadata=WRITTEN))


def _finer_times(schema: pa.Schema) -> pa.Schema:
    """Whole seconds in the first rows say nothing about later ones: read times in microseconds."""
    for field in schema:
        if pa.types.is_timestamp(field.type) and field.type.unit == "s":
            schema = with_type(schema, field.name, pa.timestamp("us", tz=field.type.tz))
    return schema
