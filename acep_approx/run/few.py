"""A few events that are pushed as dicts, made into a batch at once.

``open_object`` and ``read_events`` find out what columns there are, of what types, and what is wrong with rows. Of
dicts with the names and types of others that came before, where nothing can be wrong, none of that is asked again; all
else goes that general way, which also finds the words for what is wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.events.columns import CODED, MOST_COLUMNS, to_arrow
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import few_ticks
from acep_approx.visible import broken_at

FEW = 64
"""Events of a list up to which they are looked at one by one."""
MOST_SHAPES = 64
"""Shapes that are remembered."""
SHORT = 64
"""Characters of texts that are remembered, at most."""
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

    def batch(self, events: list[Any], columns: tuple[str, ...]) -> pa.RecordBatch | None:
        """Some columns of such dicts, texts as codes; None where the general way must be gone."""
        if self._read != columns:
            self._read = columns
            types = [(name, self._types.get(name, NOTHING)) for name in columns]
            self._columns = None if any(type_ is NOTHING for _, type_ in types) else types
            self._coded = pa.schema([(name, CODED if type_ is TEXT else type_) for name, type_ in types])
        if self._columns is None:
            return None
        arrays = [_array([event[name] for event in events], type_) for name, type_ in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._coded)


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
    """Makes batches of lists of a few dicts; knows the shapes of those before."""

    def __init__(self) -> None:
        self._known: dict[object, Shape | None] = {}
        self._roles: Roles | None = None

    def shape(self, events: list[Any], roles: Roles) -> Shape | None:
        """The shape of all of these; None where they differ, or where something may be wrong with them."""
        if not 0 < len(events) <= FEW:
            return None
        if roles is not self._roles:
            self._roles, self._known = roles, {}
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
    def batch(
        shape: Shape, events: list[Any], roles: Roles, columns: tuple[str, ...], first_row: int
    ) -> EventBatch | None:
        """Dicts of a shape as a batch; None where something is wrong with them.

        Parameters
        ----------
        shape : Shape
        events : list
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
        ticks = few_ticks([event[roles.time] for event in events], roles.unit)
        if ticks is None:
            return None
        try:
            data = shape.batch(events, columns)
        except (ValueError, OverflowError):  # half of a character, a number of more than 64 bits
            return None
        return None if data is None else EventBatch(first_row, np.array(ticks, np.int64), data)


def _shape(names: tuple[Any, ...], kinds: tuple[type, ...], roles: Roles) -> Shape | None:
    if len(names) > MOST_COLUMNS or any(type(name) is not str or broken_at(name) is not None for name in names):
        return None
    if roles.start is not None or (roles.unit is not None and roles.unit.startswith("%")):
        return None
    kind = dict(zip(names, kinds, strict=True))
    if kind.get(roles.time) is not int or not TYPES.keys() >= {*kinds}:
        return None
    return Shape({name: TYPES[one] for name, one in kind.items()})
