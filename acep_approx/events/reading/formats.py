"""The two text formats: how a block of CSV or of JSON lines becomes a record batch."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError
from acep_approx.events.blocks import Block, quoted_rows
from acep_approx.events.columns import CODED, refuse_twins, to_arrow
from acep_approx.events.reading.rounding import WHOLE, column_in, large_floats, refusal, rounded_lines, rounded_texts

NULLS = ("", "NA", "N/A", "NULL", "null", "NaN", "nan")
"""What stands for null in CSV, unless it is between quotes."""

DIGITS = pa.decimal256(76, 0)
"""Whole numbers of any length that people write."""

MOST_NESTED = 2000
"""Objects and lists on one line of JSON."""


class CsvFormat:
    """Comma-separated values with a header line, RFC 4180 quoting.

    Parameters
    ----------
    name : str
        File name for messages.
    """

    quotes = True

    def __init__(self, name: str) -> None:
        self._name = name
        self._names: list[str] = []
        self._header_lines = 0

    def read_header(self, first: Block) -> None:
        """Take the column names from the first row that is not blank.

        Raises
        ------
        DataError
            ``ACEP-D015``: no header, or two columns of one name.
        """
        import csv

        reader = csv.reader(line.decode() for line in io.BytesIO(first.data))
        try:
            self._names = next((row for row in reader if any(row)), [])
        except csv.Error as error:
            raise DataError(
                f"{self._name}: the header cannot be read: {error}",
                code="ACEP-D015",
                hint="lines must end with LF or CR LF",
            ) from error
        if not self._names:
            self.empty_schema()
        refuse_twins(self._names, self._name)
        self._header_lines = reader.line_num

    def empty_schema(self) -> pa.Schema:
        """Columns of a file without a byte: there are none, so it is refused (``ACEP-D015``)."""
        raise DataError(
            f"{self._name}: the file is empty",
            code="ACEP-D015",
            hint="a CSV file needs at least a header line with the names of the columns",
        )

    def after_header(self, block: Block) -> Block:
        """The block without the header, if it is the first one."""
        if block.line != 1:
            return block
        end = 0
        for _ in range(self._header_lines):
            end = block.data.find(b"\n", end) + 1 or len(block.data)
        return Block(1 + self._header_lines, block.data[end:])

    def infer(self, data: bytes) -> pa.Schema:
        """Types of the columns from whole rows; rows of the wrong length do not count.

        Whole numbers that no number of 64 bits holds are texts.
        """
        if _is_blank(data):
            return pa.schema([(name, pa.null()) for name in self._names])
        table = self._read(data, skip_invalid=True)
        schema = _finer_times(table.schema)
        for name, rows in large_floats(table):
            texts = self._texts(data, name, skip_invalid=True)
            is_whole = pc.all(pc.match_substring_regex(texts, WHOLE)).as_py()
            if is_whole and rounded_texts(texts.take(to_arrow(rows))):
                schema = _with_type(schema, name, pa.string())
        return schema

    def parse(self, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """Whole rows as a batch of the columns of ``schema``, strings dictionary-encoded.

        Raises
        ------
        pyarrow.ArrowInvalid
            A row has too many or too few values, or a value is not of the type, also where a float would round it.
        """
        types = {f.name: CODED if pa.types.is_string(f.type) else f.type for f in schema}
        if _is_blank(data):
            return _one_batch(pa.schema(types.items()).empty_table())
        table = self._read(data, types=types)
        for name, rows in large_floats(table):
            if number := rounded_texts(self._texts(data, name).take(to_arrow(rows))):
                raise refusal(name, number)
        return _one_batch(table)

    def _texts(self, data: bytes, name: str, *, skip_invalid: bool = False) -> pa.Array:
        """A column as it is written."""
        return self._read(data, types={name: pa.string()}, skip_invalid=skip_invalid).column(name).combine_chunks()

    def _read(
        self, data: bytes, *, types: dict[str, pa.DataType] | None = None, skip_invalid: bool = False
    ) -> pa.Table:
        from pyarrow import csv

        # One thread: a block is small, and Arrow's threads can abort the process when it ends (apache/arrow#34314).
        return csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(column_names=self._names, block_size=len(data) + 1, use_threads=False),
            parse_options=csv.ParseOptions(
                newlines_in_values=b'"' in data,
                invalid_row_handler=(lambda _: "skip") if skip_invalid else None,
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types or ()),
                null_values=NULLS,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def rows(self, data: bytes) -> list[bytes]:
        """Split whole rows; a line end between quotes does not end a row."""
        if b'"' not in data:
            return io.BytesIO(data).readlines()
        return list(quoted_rows(data))


class JsonFormat:
    """One JSON object per line.

    Parameters
    ----------
    name : str
        File name for messages.
    """

    quotes = False

    def __init__(self, name: str) -> None:
        self._name = name

    def read_header(self, first: Block) -> None:
        """Refuse a JSON array (``ACEP-D017``): it could not be read piece by piece."""
        if first.data.lstrip().startswith(b"["):
            raise DataError(
                f"{self._name}: this is a JSON array, not one JSON object per line",
                code="ACEP-D017",
                hint="convert it first, for example: jq -c '.[]' FILE > NEW.jsonl",
            )

    def empty_schema(self) -> pa.Schema:
        """Columns of a file without a byte: none."""
        return pa.schema([])

    def after_header(self, block: Block) -> Block:
        """The block itself: there is no header."""
        return block

    def infer(self, data: bytes) -> pa.Schema:
        """Types of the columns from whole lines. Whole numbers that no number of 64 bits holds are texts.

        Raises
        ------
        pyarrow.ArrowInvalid
            A line is not a JSON object, or a column changes its type.
        """
        if not _count_objects(data):
            return self.empty_schema()
        table = _read_json(data, None)
        schema = _finer_times(table.schema)
        for name, rows in large_floats(table):
            if rounded_lines(data, name, rows) and _has_whole_numbers(data, name):
                schema = _with_type(schema, name, pa.string())
        return schema

    def parse(self, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """Whole lines as a batch of the columns of ``schema``; other names in the objects are passed over.

        Raises
        ------
        pyarrow.ArrowInvalid
            A line is not a JSON object, or a value is not of the type, also where a float would round it.
        """
        lines = _count_objects(data)
        if not lines:
            return _one_batch(schema.empty_table())
        table = self._read(data, schema, lines)
        for name, rows in large_floats(table):
            if number := rounded_lines(data, name, rows):
                raise refusal(name, number)
        return _one_batch(table)

    def _read(self, data: bytes, schema: pa.Schema, lines: int) -> pa.Table:
        """Read lines; of columns of strings also those that hold whole numbers."""
        given = schema
        while True:
            try:
                return _read_json(data, given, lines).cast(schema)
            except pa.ArrowInvalid as error:
                name = column_in(str(error))
                if name is None or name not in given.names or not pa.types.is_string(given.field(name).type):
                    raise
                given = _with_type(given, name, DIGITS)

    def rows(self, data: bytes) -> list[bytes]:
        """Split whole lines."""
        return io.BytesIO(data).readlines()


def _read_json(data: bytes, schema: pa.Schema | None, lines: int | None = None) -> pa.Table:
    from pyarrow import json

    table = json.read_json(
        pa.BufferReader(data),
        read_options=json.ReadOptions(block_size=len(data) + 1, use_threads=False),
        parse_options=json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )
    if lines is not None and table.num_rows != lines:
        raise pa.ArrowInvalid("more than one JSON value on a line")
    return table


def _has_whole_numbers(data: bytes, name: str) -> bool:
    """Whether a column holds nothing but whole numbers."""
    try:
        _read_json(data, pa.schema([(name, DIGITS)]))
    except pa.ArrowInvalid:
        return False
    return True


def _with_type(schema: pa.Schema, name: str, type_: pa.DataType) -> pa.Schema:
    return schema.set(schema.get_field_index(name), pa.field(name, type_))


def _count_objects(data: bytes) -> int:
    """The number of lines that are not blank; each must begin with ``{`` and end with ``}``.

    Needed before pyarrow's parser sees the lines: a line ``null`` makes it crash, or counts as an event.
    """
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == ord("\n"))
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(array))
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    filled = ends > starts
    _refuse_nesting(data, len(ends))
    first, last = array[starts[filled]], array[ends[filled] - 1]
    if (first == ord("{")).all() and (last == ord("}")).all():
        return int(filled.sum())
    lines = [line.strip() for line in data.split(b"\n")]
    if any(line and not (line.startswith(b"{") and line.endswith(b"}")) for line in lines):
        raise pa.ArrowInvalid("not a JSON object")
    return sum(map(bool, lines))


def _refuse_nesting(data: bytes, lines: int) -> None:
    """Refuse lines on which so many values open that they could be nested too deeply for pyarrow's parser.

    It recurses, and some ten thousand levels end the process.
    """
    if _openings(data) > lines + MOST_NESTED and max(map(_openings, data.split(b"\n"))) > MOST_NESTED:
        raise pa.ArrowInvalid(f"more than {MOST_NESTED} objects and lists on a line")


def _openings(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[")


def _is_blank(data: bytes) -> bool:
    return not data or data.isspace()


def _finer_times(schema: pa.Schema) -> pa.Schema:
    """Whole seconds in the first rows say nothing about later ones: read times in microseconds."""
    fields: list[tuple[str, Any]] = []
    for field in schema:
        coarse = pa.types.is_timestamp(field.type) and field.type.unit == "s"
        fields.append((field.name, pa.timestamp("us", tz=field.type.tz) if coarse else field.type))
    return pa.schema(fields)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
