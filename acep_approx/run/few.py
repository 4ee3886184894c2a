"""A few events that are pushed as dicts, or as rows of a table, made into a batch at once.

``open_object`` and ``read_events`` find out what columns there are, of what types, and what is wrong with rows. Of
events with the names and types of others that came before, where nothing can be wrong, none of that is asked again;
all else goes that general way, which also finds the words for what is wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.events.columns import CODED, MOST_COLUMNS, encode_text, to_arrow
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import few_ticks
from acep_approx.visible import broken_at

FEW = 64
"""Events up to which they are looked at one by one."""
MOST_SHAPES = 64
"""The most shapes that are remembered."""
SHORT = 64
"""The most characters of a text that is remembered."""
NUMBER, TEXT, NOTHING = pa.int64(), pa.string(), pa.null()
TYPES = {int: NUMBER, float: pa.float64(), str: TEXT, bool: pa.bool_(), type(None): NOTHING}
"""Of columns with one kind of values of Python, as ``from_python`` has them."""


class Shape:
    """Dicts of the same names, in one order, with values of the same types.

    Attributes
    ----------
    schema : pyarrow.Schema
        Their columns.
    """

    def __init__(self, types: dict[str, pa.DataType]) -> None:
        self.schema = pa.schema([*types.items()])
        self._types = types
        self._read: tuple[str, ...] | None = None
        self._columns: list[tuple[str, pa.DataType]] | None = None
        self._coded: pa.Schema | None = None

    def batch(self, events: Any, columns: tuple[str, ...]) -> pa.RecordBatch | None:
        """Make a batch of some columns, with texts as codes; None if only the general way can."""
        if self._read != columns:
            self._read = columns
            types = [(name, self._types.get(name, NOTHING)) for name in columns]
            self._columns = None if any(type_ is NOTHING for _, type_ in types) else types
            self._coded = pa.schema([(name, CODED if type_ is TEXT else type_) for name, type_ in types])
        if self._columns is None:
            return None
        arrays = [self._array(events, name, type_) for name, type_ in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._coded)

    def times(self, events: Any, name: str) -> list[Any]:
        """The times of such events."""
        return [event[name] for event in events]

    def _array(self, events: Any, name: str, type_: pa.DataType) -> pa.Array:
        return _array([event[name] for event in events], type_)


class TableShape(Shape):
    """Rows of tables of one schema."""

    def times(self, events: Any, name: str) -> list[Any]:
        """The times of such rows."""
        times: list[Any] = events.column(name).to_pylist()
        return times

    def _array(self, events: Any, name: str, type_: pa.DataType) -> pa.Array:  # noqa: ARG002  (as that of dicts)
        column = events.column(name)
        return encode_text(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if type_ is TEXT:
        is_short = len(values) == 1 and len(values[0]) <= SHORT
        return _text(values[0]) if is_short else pa.array(values, TEXT).dictionary_encode()
    return to_arrow(np.array(values, np.int64)) if type_ is NUMBER else pa.array(values, type_)


@lru_cache(maxsize=1024)
def _text(value: str) -> pa.Array:
    """A column of one short text: most come again."""
    return pa.array([value], TEXT).dictionary_encode()


class FewEvents:
    """Makes batches of a few dicts in a list, or rows of a table; knows the shapes of those before."""

    def __init__(self) -> None:
        self._known: dict[object, Shape | None] = {}
        self._roles: Roles | None = None
        self._table: tuple[pa.Schema, Shape | None] | None = None

    def shape(self, events: Any, roles: Roles) -> Shape | None:
        """The shape of all of these; None where they differ, or where something may be wrong with them."""
        kind = type(events)
        if kind is not list and kind is not pa.Table and kind is not pa.RecordBatch:
            return None
        if not 0 < len(events) <= FEW:
            return None
        if roles is not self._roles:
            self._roles, self._known, self._table = roles, {}, None
        return self._of_dicts(events, roles) if kind is list else self._of_table(events, roles)

    def _of_table(self, table: Any, roles: Roles) -> Shape | None:
        if self._table is None or not table.schema.equals(self._table[0], check_metadata=True):
            self._table = table.schema, _table_shape(table.schema, roles)
        return self._table[1]

    def _of_dicts(self, events: list[Any], roles: Roles) -> Shape | None:
        if not all(type(event) is dict for event in events):
            return None
        shapes = {(tuple(event), tuple(map(type, event.values()))) for event in events}
        if len(shapes) > 1:
            return None
        (found,) = shapes
        if found not in self._known:
            if len(self._known) == MOST_SHAPES:
                self._known.clear()
            self._known[found] = _shape(*found, roles)
        return self._known[found]

    @staticmethod
    def batch(shape: Shape, events: Any, roles: Roles, columns: tuple[str, ...], first_row: int) -> EventBatch | None:
        """Events of a shape as a batch; None where something is wrong with them.

        Parameters
        ----------
        shape : Shape
        events : list, pyarrow.Table or pyarrow.RecordBatch
        roles : Roles
        columns : tuple of str
            Those that are read.
        first_row : int
            Row number of the first event.

        Examples
        --------
        >>> few, roles, events = FewEvents(), Roles("ts"), [{"ts": 5, "type": "A"}, {"ts": 6, "type": "B"}]
        >>> shape = few.shape(events, roles)
        >>> batch = few.batch(shape, events, roles, ("type",), 7)
        >>> batch.first_row, batch.ticks.tolist(), batch.data.to_pylist()
        (7, [5, 6], [{'type': 'A'}, {'type': 'B'}])
        >>> few.batch(shape, events[::-1], roles, ("type",), 7) is None
        True
        """
        times = shape.times(events, roles.time)
        ticks = None if None in times else few_ticks(times, roles.unit)
        if ticks is None:
            return None
        try:
            data = shape.batch(events, columns)
        except (ValueError, OverflowError):  # half of a character, a number of more than 64 bits
            return None
        return None if data is None else EventBatch(first_row, np.array(ticks, np.int64), data)


def _shape(names: tuple[Any, ...], kinds: tuple[type, ...], roles: Roles) -> Shape | None:
    if any(type(name) is not str or broken_at(name) is not None for name in names) or not TYPES.keys() >= {*kinds}:
        return None
    types = {name: TYPES[kind] for name, kind in zip(names, kinds, strict=True)}
    return Shape(types) if _serves(types, roles) else None


def _table_shape(schema: pa.Schema, roles: Roles) -> Shape | None:
    types = {field.name: TEXT if field.type.equals(CODED) else field.type for field in schema}
    has_more = schema.metadata or any(field.metadata for field in schema) or len(types) < len(schema)
    if has_more or not all(any(type_.equals(one) for one in TYPES.values()) for type_ in types.values()):
        return None
    own = {name: next(one for one in TYPES.values() if type_.equals(one)) for name, type_ in types.items()}
    return TableShape(own) if _serves(own, roles) else None


def _serves(types: dict[str, pa.DataType], roles: Roles) -> bool:
    """Whether the times are whole numbers that count something, and nothing else is done with columns beside."""
    is_counted = roles.start is None and (roles.unit is None or not roles.unit.startswith("%"))
    return is_counted and len(types) <= MOST_COLUMNS and types.get(roles.time) is NUMBER
