"""The names in objects of JSON: how many there are, before each of them becomes a column with a value in every row.

Arrow's parser makes a column of each name, with room for all rows: where each object brings a name of its own, a file
of 2 MB takes more memory than there is. So the names are counted first, in little memory. Where they are many, rows are
read a few at a time, and an object that holds very many of them is taken for a map, whose names are values.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import refuse_many
from acep_approx.events.reading.formats.json_documents import escaped
from acep_approx.events.reading.nested import MOST_FIELDS, Path
from acep_approx.events.reading.widening import common_type

MOST_CELLS = 1 << 24
"""Rows times columns that are read at once."""
_FEW_CELLS = 1 << 20
_MANY_NAMES = 1 << 14
_PIECE = 1 << 18
_BASE = np.uint64(0x9E3779B97F4A7C15)


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
    """The powers of an odd number modulo 2**64, and what undoes them."""
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
    """Whole lines, as many at once as have few names for their number."""
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
