"""JSON: one object per line, or a document that was made into such lines.

Arrow's parser makes a column of each name, with room for all rows: where each object brings a name of its own, a file
of 2 MB takes more memory than there is. So the names are counted first, in little memory. Where they are many, rows are
read a few at a time, and an object that holds very many of them is taken for a map, whose names are values.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.blocks import FIRST_BYTES, Block
from acep_approx.events.columns import encode_text, refuse_many, refuse_twins
from acep_approx.events.reading.formats.as_written import column_in, large_floats, refusal, rounded_lines
from acep_approx.events.reading.formats.json_documents import Document, Signs, escaped, split_objects
from acep_approx.events.reading.formats.readings import TextFormat, one_batch, with_type, without
from acep_approx.events.reading.layout import Layout, Stored, Understood
from acep_approx.events.reading.nested import (
    MOST_FIELDS,
    Path,
    column_at,
    flat_schema,
    has_objects,
    map_note,
    nested_schema,
    paths_of,
)
from acep_approx.events.reading.widening import common_type
from acep_approx.events.time_formats import TimeFormat

MOST_CELLS = 1 << 24
"""Rows times columns that are read at once."""
_FEW_CELLS = 1 << 20
_MANY_NAMES = 1 << 14
_PIECE = 1 << 18
_BASE = np.uint64(0x9E3779B97F4A7C15)
_CHANGED = re.compile(r"Column\(/(.*?)\) changed from (string|array|object) to (string|array|object)")
_BLANKS = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder().raw_decode
DIGITS = pa.decimal256(76, 0)
"""Whole numbers of any length that people write."""

MOST_NESTED = 100
"""Objects and lists inside one another."""


def different_names(data: bytes) -> int:
    """At most so many different names stand in whole lines of JSON, where these are many; some more where few."""
    most = data.count(b":")
    if most <= MOST_FIELDS:
        return most
    found: Ints = np.zeros(0, np.uint64)
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE) + 1 or len(data)
        found = np.union1d(found, _hashes(data[start:end]))
        start = end
    return len(found)


def _hashes(data: bytes) -> Ints:
    """A number for each different name: between the last two quotes ahead of a colon outside of text."""
    array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(array == ord('"'))
    if b'\\"' in data:  # such a quote ends no text
        quotes = quotes[~escaped(array, quotes)[0]]
    before = np.searchsorted(quotes, np.flatnonzero(array == ord(":")))
    before = before[(before % 2 == 0) & (before > 0)]
    starts, ends = quotes[before - 2], quotes[before - 1]
    powers, inverses = _powers(1 << (len(data)).bit_length())
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum((array + np.uint64(1)) * powers[: len(array)])))
    found: Ints = np.unique((sums[ends] - sums[starts]) * inverses[starts])
    return found


@lru_cache(maxsize=2)
def _powers(size: int) -> tuple[Ints, Ints]:
    inverse = np.uint64(pow(int(_BASE), -1, 1 << 64))
    one, other = (np.full(size, base, np.uint64) for base in (_BASE, inverse))
    one[0] = other[0] = 1
    return np.cumprod(one, dtype=np.uint64), np.cumprod(other, dtype=np.uint64)


class WideNames:
    """The columns of lines of JSON in which there are many names.

    Parameters
    ----------
    name : str
        File name for messages.
    read : callable
        Turns whole lines into a table of all their fields.

    Attributes
    ----------
    maps : list of Path
        Objects that are maps.
    """

    def __init__(self, name: str, read: Callable[[bytes], pa.Table]) -> None:
        self._name = name
        self._read = read
        self._leaves: dict[Path, pa.DataType] = {}
        self._fields: dict[Path, set[str]] = {}
        self.maps: list[Path] = []

    def columns(self, data: bytes) -> dict[Path, pa.DataType]:
        """The columns, with the types of the first values; without those in maps.

        Raises
        ------
        DataError
            ``ACEP-D130``: there are too many, as soon as that is clear.
        """
        for lines in _few_cells(map(self._narrow, io.BytesIO(data))):
            self._add(self._read(lines).schema, ())
            refuse_many([".".join(path) for path in self._leaves], self._name)
        return self._leaves

    def _narrow(self, line: bytes) -> bytes:
        """A line without maps where it holds very many names, for each of which Arrow's parser takes long."""
        if line.count(b":") <= _MANY_NAMES:
            return line
        try:
            values = json.loads(line)
        except ValueError:  # which the parser refuses
            return line
        if isinstance(values, dict):
            refuse_many(list(values), self._name)
            self._drop_maps(values, ())
        return json.dumps(values).encode() + b"\n"

    def _drop_maps(self, values: dict[str, Any], above: Path) -> None:
        for name, value in list(values.items()):
            if isinstance(value, dict) and len(value) > MOST_FIELDS:
                del values[name]
                self._leave_out((*above, name))
            elif isinstance(value, dict):
                self._drop_maps(value, (*above, name))

    def _add(self, fields: pa.Schema | pa.StructType, above: Path) -> None:
        for field in fields:
            path = (*above, field.name)
            if path in self.maps:
                continue
            if pa.types.is_struct(field.type):
                names = self._fields.setdefault(path, set())
                names.update(one.name for one in field.type)
                if len(names) > MOST_FIELDS:
                    self._leave_out(path)
                else:
                    self._add(field.type, path)
            else:
                known = self._leaves.get(path, field.type)
                self._leaves[path] = common_type(known, field.type) or known

    def _leave_out(self, path: Path) -> None:
        self.maps = [*(known for known in self.maps if known[: len(path)] != path), path]
        self._leaves = {leaf: type_ for leaf, type_ in self._leaves.items() if leaf[: len(path)] != path}


def _few_cells(given: Iterable[bytes]) -> Iterator[bytes]:
    lines: list[bytes] = []
    names = 0
    for line in given:
        here = line.count(b":")
        if lines and (len(lines) + 1) * (names + here) > _FEW_CELLS:
            yield b"".join(lines)
            lines, names = [], 0
        lines.append(line)
        names += here
    if lines:
        yield b"".join(lines)


def mixed_column(message: str) -> Path | None:
    """Of the parser's message: the field that is text and a list or an object; None if it says something else."""
    found = _CHANGED.search(message)
    if found is None or "string" not in found.groups()[1:]:
        return None
    return tuple(found[1].split("/"))


def with_texts(data: bytes, path: Path) -> bytes:
    r"""Lines of JSON whose field is a list or an object, with that as text; other lines stay as they are.

    Examples
    --------
    >>> with_texts(b'{"m": [1, "x"], "n": 1.50}\n{"m": "y"}\n', ("m",))
    b'{"m": "[1, \\"x\\"]", "n": 1.50}\n{"m": "y"}\n'
    """
    name = re.escape(json.dumps(path[-1]).encode())
    is_nested = re.compile(name + rb"\s*:\s*[\[{]")
    lines = data.splitlines(keepends=True)
    return b"".join(_with_text(line, path) if is_nested.search(line) else line for line in lines)


def _with_text(line: bytes, path: Path) -> bytes:
    text = line.decode()
    try:
        begin, end = _span(text, _BLANKS.match(text, 0).end(), path)  # type: ignore[union-attr]
    except (ValueError, IndexError):  # which the parser refuses
        return line
    return (text[:begin] + json.dumps(text[begin:end], ensure_ascii=False) + text[end:]).encode() if end else line


def _span(text: str, place: int, path: Path) -> tuple[int, int]:
    """Where the list or object of a field begins and ends; (0, 0) where it is something else."""
    place = _behind(text, place + 1)
    while text[place] == '"':
        key, place = _decode(text, place)
        begin = _behind(text, _behind(text, place) + 1)
        value, end = _decode(text, begin)
        if key == path[0]:
            if len(path) > 1:
                return _span(text, begin, path[1:]) if isinstance(value, dict) else (0, 0)
            return (begin, end) if isinstance(value, list | dict) else (0, 0)
        place = _behind(text, _behind(text, end) + 1)
    return 0, 0


def _behind(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


class JsonFormat(TextFormat):
    """One JSON object per line.

    Parameters
    ----------
    name : str
        File name for messages.
    layout : Layout, optional
        What is said of times.
    stored : Stored, optional
        How the bytes lie in the file; only shown.
    document : Document, optional
        What the lines were made of; only shown.
    is_one_each : bool, default False
        Whether a line with several objects is none. By default they are as many events.
    paths : dict of str to Path, optional
        Where the values of columns stand within objects, where no lines are there to tell it.
    times : dict of str to TimeFormat, optional
        How the texts of columns are written that are times, where no lines are there to tell it.
    """

    has_fixed_columns = False

    def __init__(
        self,
        name: str,
        layout: Layout | None = None,
        stored: Stored | None = None,
        document: Document | None = None,
        *,
        is_one_each: bool = False,
        paths: dict[str, Path] | None = None,
        times: dict[str, TimeFormat] | None = None,
    ) -> None:
        super().__init__(name, layout, stored)
        self._is_one_each = is_one_each
        self._document = document or Document("lines")
        self._paths: dict[str, Path] = dict(paths or {})
        self._readings.times |= times or {}
        self._maps: list[str] = []
        self.row_word = "line" if self._document.kind == "lines" else "event"

    @property
    def understood(self) -> Understood:
        """How the file was read; after ``decide``."""
        return self._understood(
            "jsonl" if self._document.kind == "lines" else "json",
            nested=tuple(name for name, path in self._paths.items() if len(path) > 1),
            array=self._document.key,
            hints=tuple(map(map_note, self._maps)),
        )

    def empty_schema(self) -> pa.Schema:
        """Columns of a file without a byte: none."""
        return pa.schema([])

    def after_header(self, block: Block) -> Block:
        """The block, with one object on each line: there is no header."""
        return block if self._is_one_each else block._replace(data=split_objects(block.data))

    def decide(self, data: bytes, schema: pa.Schema) -> bool:
        """Decide by the first rows which columns of text are times; see ``TextFormat``."""
        names = self._undecided(schema)
        for name in self._readings.as_written(names, schema):
            schema = with_type(schema, name, pa.string())
        if not names:
            return self._readings.decide_times(pa.table({}), rows=len(schema))
        data = next(self.pieces(data, len(names)))  # so many lines that their values can be held
        head = data[: data.rfind(b"\n", 0, FIRST_BYTES) + 1]
        if head and self._layout.thousands is None and (first := _count_objects(head)):  # first values tell of most
            names = self._readings.likely(self._read(head, _only(schema, names), first), decimals=False)
        table = self._read(data, _only(schema, names), _count_objects(data)) if names else pa.table({})
        if has_thousands := self._declared.find_thousands(table):
            table = table.drop_columns([name for name in names if name in self._declared])
        return self._readings.decide_times(table, rows=1) or has_thousands

    def infer(self, data: bytes) -> pa.Schema:
        """Types of the columns from whole lines. Whole numbers that no number of 64 bits holds are texts.

        Raises
        ------
        pyarrow.ArrowInvalid
            A line is not a JSON object, or a column changes its type.
        """
        lines = _count_objects(data)
        if not lines:
            return self.empty_schema()
        table = self._flat(self._whole(data, lines))
        schema = self._readings.types(table.schema, table)
        for name, rows in large_floats(table):
            path = self._path(name)
            if rounded_lines(data, path, rows) and _has_whole_numbers(data, path):
                schema = with_type(schema, name, pa.string())
        return self._declared.types(schema)

    def parse(self, data: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """Whole lines as a batch of the columns of ``schema``; other names in the objects are passed over.

        Raises
        ------
        pyarrow.ArrowInvalid
            A line is not a JSON object, or a value is not of the type, also where a float would round it.
        """
        lines = _count_objects(data)
        if not lines:
            return one_batch(schema.empty_table())
        given = {f.name: self._readings.given_type(f.name) for f in schema if f.name in self._readings}
        plain = pa.schema([(field.name, given.get(field.name, field.type)) for field in schema]) if given else schema
        said = self._declared.names(schema)
        table = self._read(data, pa.schema([field for field in plain if field.name not in said]), lines)
        table = self._readings.converted(table, {name: schema.field(name).type for name in given})
        for place, field in enumerate(table.schema if self._layout.null is not None else ()):
            if pa.types.is_string(field.type):
                texts = without(table.column(place), tuple(self._layout.null or ()))
                table = table.set_column(place, field.name, texts)
        for name, rows in large_floats(table):
            if number := rounded_lines(data, self._path(name), rows):
                raise refusal(name, number)
        for name in said:
            table = table.append_column(name, self._as_said(data, name, lines))
        return one_batch(table.select(schema.names))

    def _inferred(self, data: bytes) -> pa.Table:
        """All columns; those whose types are said may hold texts on some lines and numbers on others."""
        try:
            return _read_inferred(data)
        except pa.ArrowInvalid:
            written = data
            for name in self._declared.said:
                written = _as_texts(written, self._path(name))
            if written == data:
                raise
            return _read_inferred(written)

    def _as_said(self, data: bytes, name: str, lines: int) -> pa.Array:
        """A column whose type is said, read from its texts; a number has the text that it is written as."""
        path = self._path(name)
        table = _read_json(_as_texts(data, path), nested_schema({path: pa.string()}), lines)
        texts = column_at(table, path)
        texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        return encode_text(self._declared.converted(name, without(texts, tuple(self._layout.null or ()))))

    def _read(self, data: bytes, schema: pa.Schema, lines: int) -> pa.Table:
        """Read lines; of columns of strings also those that hold whole numbers."""
        given = schema
        while True:
            try:
                return self._given(data, given, lines).cast(schema)
            except pa.ArrowInvalid as error:
                if (path := mixed_column(str(error))) is not None and (texts := with_texts(data, path)) != data:
                    data = texts
                    continue
                name = (column_in(str(error)) or "").replace("/", ".")
                if name not in given.names or not pa.types.is_string(given.field(name).type):
                    raise
                given = with_type(given, name, DIGITS)

    def _given(self, data: bytes, schema: pa.Schema, lines: int) -> pa.Table:
        if not len(schema):
            return pa.table({})
        paths = {self._path(field.name): field.type for field in schema}
        table = _read_json(data, nested_schema(paths), lines)
        if all(len(path) == 1 for path in paths):
            return table
        return pa.table([column_at(table, path) for path in paths], names=schema.names)

    def _whole(self, data: bytes, lines: int) -> pa.Table:
        names = different_names(data)
        if names <= MOST_FIELDS and names * lines <= MOST_CELLS:
            return self._inferred(data)
        wide = WideNames(self._name, self._inferred)
        columns = wide.columns(data)
        self._maps = [".".join(path) for path in wide.maps]
        return _read_json(next(self.pieces(data, len(columns))), nested_schema(columns))

    def pieces(self, data: bytes, columns: int) -> Iterator[bytes]:
        """Lines, as many at once as can be read with so many columns: a value takes its room where it is not there."""
        most = MOST_CELLS // max(columns, 1)
        if np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")) <= most:
            yield data
            return
        lines = io.BytesIO(data)
        while some := b"".join(islice(lines, most)):
            yield some

    def _flat(self, table: pa.Table) -> pa.Table:
        if not has_objects(table.schema):
            return table
        found = paths_of(table.schema)
        refuse_twins(flat_schema(table.schema, self._name).names, self._name)
        self._paths |= found
        return pa.table([column_at(table, path) for path in found.values()], names=list(found))

    def _path(self, name: str) -> Path:
        return self._paths.get(name, (name,))


def _only(schema: pa.Schema, names: list[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _as_texts(data: bytes, path: Path) -> bytes:
    written = re.escape(json.dumps(path[-1].rsplit(".", 1)[-1], ensure_ascii=False).encode())
    numbers = rb"(?<!\\)(%b\s*:\s*)(-?\d[0-9.eE+-]*|true|false)" % written
    return re.sub(numbers, rb'\1"\2"', with_texts(data, path))


def _read_inferred(data: bytes) -> pa.Table:
    """All columns of lines, their types by the values.

    Texts that look like times stay the texts that they are; lists and objects in the place of texts are texts.
    """
    lines, table = _count_objects(data), None
    while table is None:
        try:
            table = _read_json(data, None, lines)
        except pa.ArrowInvalid as error:
            path = mixed_column(str(error))
            if path is None or (texts := with_texts(data, path)) == data:
                raise
            data = texts
    types = pa.schema([field.with_type(_as_text(field.type)) for field in table.schema])
    return table if types.equals(table.schema) else _read_json(data, types)


def _as_text(type_: pa.DataType) -> pa.DataType:
    """The type with strings in the place of timestamps, in which the parser turns texts that look like times."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_as_text(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_as_text(type_.value_type)))
    return pa.string() if pa.types.is_timestamp(type_) else type_


def _read_json(data: bytes, schema: pa.Schema | None, lines: int | None = None) -> pa.Table:
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    table = read_json(
        pa.BufferReader(data),
        read_options=ReadOptions(block_size=len(data) + 1, use_threads=False),
        parse_options=ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )
    if lines is not None and table.num_rows != lines:
        raise pa.ArrowInvalid("more than one JSON value on a line")
    return table


def _has_whole_numbers(data: bytes, path: Path) -> bool:
    try:
        _read_json(data, nested_schema({path: DIGITS}))
    except pa.ArrowInvalid:
        return False
    return True


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
    _refuse_nesting(array, ends)
    first, last = array[starts[filled]], array[ends[filled] - 1]
    if (first == ord("{")).all() and (last == ord("}")).all():
        return int(filled.sum())
    lines = [line.strip() for line in data.split(b"\n")]
    if any(line and not (line.startswith(b"{") and line.endswith(b"}")) for line in lines):
        raise pa.ArrowInvalid("not a JSON object")
    return sum(map(bool, lines))


def _refuse_nesting(array: npt.NDArray[np.uint8], ends: Ints) -> None:
    """Refuse values that are nested too deeply for the parsers, which recurse; ``ends`` are those of the lines."""
    openings = sum(int(np.count_nonzero(array == ord(sign))) for sign in "{[")
    if openings <= len(ends) + MOST_NESTED:
        return
    ahead = np.searchsorted(np.flatnonzero((array == ord("{")) | (array == ord("["))), ends)
    if np.diff(ahead, prepend=0).max() <= MOST_NESTED:
        return
    _, depths = Signs().of(array.tobytes())
    if len(depths) and depths.max() > MOST_NESTED:
        raise pa.ArrowInvalid(f"more than {MOST_NESTED} objects and lists inside one another")
